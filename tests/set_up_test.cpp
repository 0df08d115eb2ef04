/// \file
/// What is set up on several threads is the same for any number of them.

#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <vector>

#include "base/threads.hpp"
#include "engine/cpu/batches.hpp"
#include "engine/cpu/team.hpp"
#include "engine/cuda/smoother/parity_plan.hpp"
#include "engine/tables.hpp"
#include "levels.hpp"
#include "mesh/places.hpp"
#include "solver/hierarchy.hpp"
#include "solver/lift.hpp"
#include "solver/load.hpp"

namespace solenoid {
namespace {

int threads = 1;

}  // namespace

// In place of those of the library: as many threads as a test wants, whatever the machine has.
int cores() { return threads; }
int threads_for(int asked) { return asked == 0 ? threads : asked; }

namespace {

/// Tables one after the other.
class Tables {
 public:
  template <class T>
  void add(std::span<const T> table) {
    const auto bytes = std::as_bytes(table);
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  template <class T>
  void add(const T& value) {
    add(std::span<const T>(&value, 1));
  }
  template <class T, class Allocator>
  void add(const std::vector<T, Allocator>& table) {
    add(std::ssize(table));
    add(std::span<const T>(table));
  }
  void add(const std::vector<PatchRun>& runs) {
    add(std::ssize(runs));
    for (const auto& [kind, begin, end] : runs) add(kind), add(begin), add(end);
  }

  bool operator==(const Tables&) const = default;

 private:
  std::vector<std::byte> bytes_;
};

void add(Tables& tables, const Level& level) {
  const Grid& grid = level.grid;
  const auto records = static_cast<std::size_t>(grid.layout().null()) + 1;
  for (int side = 0; side < 6; ++side) {
    tables.add(std::span(grid.neighbours(side), records));
    tables.add(std::span(grid.faces(side), records));
  }
  for (const Record cell : grid.layout().cells()) {
    tables.add(grid.position(cell));
    tables.add(grid.part(cell));
  }
  for (const Record hat : grid.layout().hats()) tables.add(grid.hat_direction(hat));
  for (int part = 0; part < grid.parts(); ++part) {
    for (int side = 0; side < 2 * grid.dim(); ++side) tables.add(grid.has_face(part, side, Face::slip));
  }
  for (const auto& runs : level.patches.colours) tables.add(runs);
  for (const auto& records_of_colour : level.patches.uncovered) tables.add(records_of_colour);
  tables.add(level.patches.lower_cell);
  tables.add(level.patches.cover_everything);
}

Tables tables_of(const Problem& problem) {
  Tables tables;
  const Hierarchy hierarchy(problem, {}, {});
  for (const auto& level : hierarchy.levels) add(tables, *level);
  const Level& finest = hierarchy.finest();
  tables.add(children_of(finest, *hierarchy.levels[hierarchy.size() - 2]));
  tables.add(UnknownsByPlace(finest.grid, problem.order, problem.equation).index());
  const cuda::ParityPlan plan(finest, 32);
  tables.add(plan.patches);
  for (const auto& batches : plan.colours) tables.add(batches);
  for (const auto& records : plan.uncovered) tables.add(records);
  tables.add(std::span<const double>(assemble_load(problem, finest)));
  tables.add(std::span<const double>(random_vector(finest, 1)));
  const Level with_hats(finest.equation, finest.coefficients, Grid(problem.mesh, problem.boundary, true));
  add(tables, with_hats);
  tables.add(std::span<const double>(boundary_lift(problem, with_hats).values));
  return tables;
}

/// Of so many cells that there are several ranges of each of them.
std::vector<Problem> problems() {
  Problem holes{.mesh = Mesh::unit(2, 6), .order = 1};
  holes.mesh.cells = {4, 4, 1};
  holes.mesh.holes = {{{1, 1, 0}, {2, 2, 1}}, {{3, 0, 0}, {4, 1, 1}}};
  holes.boundary.sides[1].kind = SideKind::outflow;
  holes.boundary.sides[0].data[0] = ScalarField([](const Point& x) { return x[1] * (1.0 - x[1]); });
  Problem parts = holes;
  parts.mesh.holes = {{{0, 1, 0}, {4, 2, 1}}};
  parts.boundary.sides[2].kind = SideKind::slip;
  Problem ring{.mesh = Mesh::unit(3, 1), .order = 1};
  ring.mesh.cells = {17, 16, 16};
  ring.boundary = test::periodic({0});
  std::vector<Problem> all{holes, parts, ring};
  for (Problem& problem : all) {
    problem.force = {ScalarField([](const Point& x) { return x[0] * x[1]; }), ScalarField(1.0), {}};
  }
  return all;
}

TEST(SetUp, IsTheSameForAnyNumberOfThreads) {
  for (const Problem& problem : problems()) {
    threads = 1;
    const Tables expected = tables_of(problem);
    for (threads = 2; threads <= 5; threads += 3) EXPECT_TRUE(tables_of(problem) == expected) << threads;
  }
}

TEST(SetUp, BatchesAreTheSameForAnyNumberOfThreads) {
  for (const Problem& problem : problems()) {
    const Level level(equation_of(problem), coefficients_of(problem), Grid(problem.mesh, problem.boundary), {});
    const auto batches = [&](int team_size) {
      Tables tables;
      cpu::Team team(team_size);
      const std::vector<bool> takes = cpu::halo_kinds(level);
      const int dim = level.equation.dim;
      const auto find_places =  // the same for all orders
          cpu::kernel_table<float>(EquationKind::stokes, dim, available_orders(dim).back()).find_places;
      const auto add = [&](const std::vector<cpu::PatchLanes>& colour) {
        for (const cpu::PatchLanes& batch : colour) {
          tables.add(batch.lower);
          tables.add(batch.kind);
          tables.add(batch.active);
          tables.add(batch.places);
        }
      };
      const cpu::HaloBatches halo(team, level, takes, find_places);
      for (std::size_t c = 0; c < halo.colours.size(); ++c) {
        add(halo.colours[c]);
        tables.add(std::ssize(halo.places[c]));
      }
      const auto number = [](int kind, std::int64_t /*i*/) { return kind; };
      for (const auto& colour : cpu::PatchBatches(team, level, number).colours) add(colour);
      return tables;
    };
    const Tables expected = batches(1);
    for (const int size : {2, 5}) EXPECT_TRUE(batches(size) == expected) << size;
  }
}

}  // namespace
}  // namespace solenoid
