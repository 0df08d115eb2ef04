/// \file
/// Where the cells of the cpu smoother's batches lie: the lists that they share are their own, and a batch without one
/// smooths the same.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <memory>
#include <vector>

#include "engine/cpu/batches.hpp"
#include "engine/cpu/cell_shares.hpp"
#include "engine/tables.hpp"
#include "levels.hpp"
#include "solenoid/problem.hpp"

namespace solenoid {
namespace {

/// Batches of a level, and what their kernel needs.
template <class T>
struct Smoothing {
  explicit Smoothing(const Level& level_)
      : level(level_),
        table(cpu::kernel_table<T>(EquationKind::stokes, level.equation.dim, level.equation.order)),
        batches(team, level, cpu::halo_kinds(level), table.find_places),
        tables(level, batches.problems, LocalSolverKind::direct, true) {
    for (std::size_t i = 0; i < batches.problems.size(); ++i) {
      problems.push_back(tables.data(i, tables.values().data()));
    }
  }

  /// Values that nobody writes are not a number.
  std::vector<T> smooth(const std::vector<cpu::PatchLanes>& some, int colour, const std::vector<T>& b,
                        const std::vector<T>& x) const {
    const auto count = static_cast<int>(problems.size());
    const std::int64_t bytes = (table.halo_workspace_bytes(count) + 4095) / 4096 * 4096;
    const std::unique_ptr<void, void (*)(void*)> workspace(std::aligned_alloc(4096, bytes), std::free);
    std::vector<T> y(x.size(), std::numeric_limits<T>::quiet_NaN());
    const auto end = std::ssize(some);
    table.smooth_halo({&cell, topology_of(level.grid), batches.kinds.data(), problems.data(), batches.splits.data(),
                       count, some.data(), batches.places[colour].data(), 0, end, 0, end, b.data(), x.data(), y.data(),
                       workspace.get()});
    return y;
  }

  const Level& level;
  const cpu::KernelTable<T>& table;
  cpu::Team team{1};
  cpu::HaloBatches batches;
  PatchTables<T> tables;
  std::vector<PatchData<T>> problems;
  CellData<T> cell = make_cell_data<T>(level);
};

template <class T>
void expect_same_without_lists(const Level& level) {
  const Smoothing<T> smoothing(level);
  const auto random = [&](int seed) {
    const std::vector<double> values = test::random_vector(level, seed);
    return std::vector<T>(values.begin(), values.end());
  };
  const std::vector<T> b = random(1);
  const std::vector<T> x = random(2);
  for (int colour = 0; colour < std::ssize(smoothing.batches.colours); ++colour) {
    std::vector<cpu::PatchLanes> batches = smoothing.batches.colours[colour];
    if (batches.empty()) continue;
    const std::vector<T> shared = smoothing.smooth(batches, colour, b, x);
    for (std::size_t i = 0; i < batches.size(); i += 2) batches[i].places = cpu::PatchLanes::unknown;
    const std::vector<T> mixed = smoothing.smooth(batches, colour, b, x);
    for (cpu::PatchLanes& batch : batches) batch.places = cpu::PatchLanes::unknown;
    const std::vector<T> found = smoothing.smooth(batches, colour, b, x);
    const auto same = [](T a, T c) { return a == c || (a != a && c != c); };
    EXPECT_TRUE(std::equal(shared.begin(), shared.end(), mixed.begin(), same)) << "colour " << colour;
    EXPECT_TRUE(std::equal(shared.begin(), shared.end(), found.begin(), same)) << "colour " << colour;
    EXPECT_TRUE(std::any_of(shared.begin(), shared.end(), [](T a) { return a == a && a != T(0); }));
  }
}

void expect_own_lists(const Level& level) {
  const Smoothing<float> smoothing(level);
  const std::ptrdiff_t size = cpu::PatchPlaces::count(level.equation.dim);
  std::vector<cpu::LanePlaces> own(size);
  for (std::size_t colour = 0; colour < smoothing.batches.colours.size(); ++colour) {
    for (const cpu::PatchLanes& batch : smoothing.batches.colours[colour]) {
      if (batch.places == cpu::PatchLanes::unknown) continue;
      smoothing.table.find_places(topology_of(level.grid), batch, own.data());
      EXPECT_TRUE(std::equal(own.begin(), own.end(), smoothing.batches.places[colour].begin() + batch.places * size));
    }
  }
}

TEST(SharedPlaces, AreThoseOfEachBatch) {
  for (const int dim : {2, 3}) {
    const int order = available_orders(dim).front();
    for (const test::MeshCase& what : test::mesh_cases(dim)) {
      SCOPED_TRACE(std::to_string(dim) + "D " + what.name);
      const Level level = what.level(order);
      expect_own_lists(level);
      expect_same_without_lists<float>(level);
      expect_same_without_lists<double>(level);
    }
  }
}

TEST(SharedPlaces, AreFewInABox) {
  const test::MeshCase box{"box", test::box({1, 1, 1}, {}, 5)};
  const Level level = box.level(available_orders(3).front());
  const Smoothing<float> smoothing(level);
  for (std::size_t colour = 0; colour < smoothing.batches.colours.size(); ++colour) {
    const auto batches = std::ssize(smoothing.batches.colours[colour]);
    const auto lists = std::ssize(smoothing.batches.places[colour]) / cpu::PatchPlaces::count(3);
    EXPECT_LE(8 * lists, batches) << "colour " << colour;
    for (const cpu::PatchLanes& batch : smoothing.batches.colours[colour]) {
      EXPECT_NE(batch.places, cpu::PatchLanes::unknown);
    }
  }
}

/// Holes that lie without order make more lists than are kept.
TEST(SharedPlaces, AreKeptForAnEighthOfTheBatchesAtMost) {
  std::vector<IndexBox> holes;
  for (int i = 0; i < 900; ++i) {
    const int x = i * 7919 % 96;
    const int y = i * 104729 % 96;
    holes.push_back({{x, y, 0}, {x + 1, y + 1, 1}});
  }
  const test::MeshCase porous{"porous", test::box({96, 96}, holes)};
  const Level level = porous.level(available_orders(2).front());
  const Smoothing<float> smoothing(level);
  std::ptrdiff_t unknown = 0;
  for (std::size_t colour = 0; colour < smoothing.batches.colours.size(); ++colour) {
    const auto& batches = smoothing.batches.colours[colour];
    const auto lists = std::ssize(smoothing.batches.places[colour]) / cpu::PatchPlaces::count(2);
    EXPECT_LE(lists, std::max<std::ptrdiff_t>(64, std::ssize(batches) / 8));
    unknown += std::count_if(batches.begin(), batches.end(),
                             [](const cpu::PatchLanes& batch) { return batch.places == cpu::PatchLanes::unknown; });
  }
  EXPECT_GT(unknown, 0);
  expect_own_lists(level);
  expect_same_without_lists<float>(level);
}

}  // namespace
}  // namespace solenoid
