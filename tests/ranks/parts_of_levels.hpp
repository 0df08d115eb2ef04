#pragma once
/// \file
/// Tests that mpirun starts: the ranks and their engines, and levels of which each has a part.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/distributed/distributed_engine.hpp"
#include "engine/engine.hpp"
#include "levels.hpp"
#include "mesh/shared_records.hpp"
#include "problem/names.hpp"
#include "solenoid/communicator.hpp"
#include "solenoid/error.hpp"
#include "solenoid/solver.hpp"

namespace solenoid::on_ranks {

using Values = std::vector<double>;

inline std::shared_ptr<const Communicator> ranks() {
  static const auto communicator = launched_ranks();
  return communicator;
}

/// SOLENOID_RANKS_DEVICE (cpu) is the device of the ranks, SOLENOID_RANKS_TRANSPORT (auto) how messages between GPUs
/// travel.
template <class Choice>
Choice chosen(const char* name, Choice otherwise) {
  const char* const asked = std::getenv(name);
  for (const auto& [word, value] : Names<Choice>::all) {
    if (asked != nullptr && word == asked) return value;
  }
  return otherwise;
}

inline Engine& on_all();
inline void choose_device(SolverOptions& options) {
  on_all();  // chooses the GPU of this rank, also for what it solves alone
  options.device = chosen("SOLENOID_RANKS_DEVICE", DeviceChoice::cpu);
  options.transport = chosen("SOLENOID_RANKS_TRANSPORT", TransportChoice::automatic);
}

/// One thread, so that many ranks share few cores.
inline Engine& on_one() {
  on_all();  // chooses the device of this rank
  static const auto engine = make_engine(chosen("SOLENOID_RANKS_DEVICE", DeviceChoice::cpu), 1);
  return *engine;
}
inline Engine& on_all() {
  static const auto engine = [] {
    auto made = make_engine(chosen("SOLENOID_RANKS_DEVICE", DeviceChoice::cpu), 1, ranks(),
                            chosen("SOLENOID_RANKS_TRANSPORT", TransportChoice::automatic));
    poison_ghosts(*made);
    return made;
  }();
  return *engine;
}

/// Fails on all ranks if it fails on one, so that they stay together.
inline void expect_everywhere(bool good, const std::string& what) {
  const bool all = ranks()->all(good);
  EXPECT_TRUE(all) << what << (good ? ": on another rank" : "");
}

/// A level, and the part of it that this rank has.
class Levels {
 public:
  Levels(const test::MeshCase& what, int order, const PatchRules& rules, bool boundary_hats,
         const std::shared_ptr<const Partition>& partition)
      : whole(what.level(order, rules, boundary_hats)),
        part(whole.equation, whole.coefficients, Grid(what.mesh, what.boundary, boundary_hats, partition), rules),
        plan_(part.grid, whole.grid) {}
  /// With coefficients by cell, which are given the grid.
  template <class CoefficientsOf>
  Levels(const Equation& equation, const test::MeshCase& what, const std::shared_ptr<const Partition>& partition,
         const CoefficientsOf& coefficients)
      : whole(level_of(equation, Grid(what.mesh, what.boundary), coefficients)),
        part(level_of(equation, Grid(what.mesh, what.boundary, false, partition), coefficients)),
        plan_(part.grid, whole.grid) {}

  /// The values that this rank has of a vector of the whole level; NaN in ghosts.
  [[nodiscard]] Values part_of(const Values& of_whole) const {
    Values x(part.size(), 0.0);
    for_values([&](Record here, std::int64_t place, std::int64_t in_whole) {
      x[place] = part.grid.layout().is_owned(here) ? of_whole[in_whole] : std::numeric_limits<double>::quiet_NaN();
    });
    return x;
  }
  /// The largest difference in owned records, relative to the largest value.
  [[nodiscard]] double difference(const Values& of_part, const Values& of_whole) const {
    double most = 0.0;
    double size = 1e-300;
    for (const double value : of_whole) size = std::max(size, std::abs(value));
    for_values([&](Record here, std::int64_t place, std::int64_t in_whole) {
      if (!part.grid.layout().is_owned(here)) return;
      const double difference = std::abs(of_part[place] - of_whole[in_whole]);
      if (!(difference <= most)) most = difference;
    });
    return most / size;
  }

  /// Where values of this rank are in a vector of the whole level.
  [[nodiscard]] std::vector<std::int64_t> in_whole(const std::vector<std::int64_t>& places) const {
    std::vector<std::int64_t> found(part.size(), -1);
    for_values([&](Record, std::int64_t place, std::int64_t in_whole) { found[place] = in_whole; });
    std::vector<std::int64_t> result;
    for (const std::int64_t place : places) result.push_back(found[place]);
    return result;
  }

  Level whole;
  Level part;

 private:
  template <class CoefficientsOf>
  static Level level_of(const Equation& equation, Grid grid, const CoefficientsOf& coefficients) {
    const Coefficients by_cell = coefficients(grid);
    return {equation, by_cell, std::move(grid), {.no_slip_ends = true}};
  }

  /// visit(record of the part, place in its vectors, place in those of the whole level)
  template <class Visit>
  void for_values(const Visit& visit) const {
    for (std::size_t j = 0; j < plan_.known.size(); ++j) {
      for (int i = 0; i < part.equation.record(); ++i) {
        visit(plan_.known[j], part.index(plan_.known[j], i), whole.index(plan_.same[j], i));
      }
    }
  }
  GatherPlan plan_;
};

inline std::shared_ptr<const Partition> cut(const Mesh& mesh, const std::array<int, 3>& seeds, std::uint64_t seed) {
  return std::make_shared<const Partition>(ranks(), mesh.dim, seeds, [seed](const std::array<int, 3>& at) {
    std::uint64_t bits = seed + at[0] * 7919U + at[1] * 104729U + at[2] * 1299709U;
    return static_cast<std::int64_t>(1 + std::mt19937_64(bits)() % 5);
  });
}

inline std::array<int, 3> extent_of(const Mesh& mesh) {
  std::array<int, 3> extent{1, 1, 1};
  for (int a = 0; a < mesh.dim; ++a) extent[a] = mesh.cells[a] << mesh.refine;
  return extent;
}

/// Whether there are cells enough.
inline bool can_be_cut(const Mesh& mesh) {
  try {
    cut(mesh, extent_of(mesh), 1);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

/// A vector in the memory of an engine.
template <class T>
Vector<T> on(Engine& engine, const Values& values) {
  return on_device(engine, std::vector<T>(values.begin(), values.end()));
}
template <class T>
Values from(const Vector<T>& vector) {
  std::vector<T> host(vector.size());
  vector.download(host.data());
  return {host.begin(), host.end()};
}

}  // namespace solenoid::on_ranks
