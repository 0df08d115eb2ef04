// What a mesh is made of: widths and planes of its lattice, and which cells become one on the next coarser level.

#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>

#include "engine/tables.hpp"
#include "levels.hpp"

namespace solenoid {
namespace {

/// Widths without a pattern, some of them equal in a row.
const std::vector<double> graded{0.5, 0.5, 0.5, 1.0, 0.25, 2.0, 2.0, 0.75};

TEST(Metric, UniformPlanesAreMultiplesOfTheWidth) {
  const Metric metric = Metric::uniform(2, {0.1, -3.0, 0.0}, {0.1, 0.7, 0.0}, {1000, 3, 1});
  for (int i = 0; i <= 1000; ++i) EXPECT_EQ(metric.plane(0, i), 0.1 + 0.1 * i);
  EXPECT_EQ(metric.plane(1, 3), -3.0 + 3 * 0.7);
  EXPECT_EQ(metric.uniform_width(), (Point{0.1, 0.7, 0.0}));
  EXPECT_EQ(metric.smallest_width(2), 0.1);
  EXPECT_EQ(metric.extent(2), 1);
  EXPECT_EQ(metric.width(2, 0), 0.0);
}

TEST(Metric, PlanesAreSumsOfWidths) {
  const Metric metric({1.0, 0.0, 0.0}, {graded, {3.0}, {}});
  double sum = 1.0;
  for (int i = 0; i <= metric.extent(0); ++i) {
    EXPECT_DOUBLE_EQ(metric.plane(0, i), sum);
    if (i < metric.extent(0)) sum += graded[i];
  }
  EXPECT_EQ(metric.smallest_width(2), 0.25);
  EXPECT_THROW(static_cast<void>(metric.uniform_width()), std::logic_error);
}

TEST(Metric, LatticeCoordinatesAreTheInverseOfPlanes) {
  const Metric metric({1.0, 0.0, 0.0}, {graded, {}, {}});
  for (int i = 0; i < metric.extent(0); ++i) {
    for (const double across : {0.01, 0.5, 0.99}) {
      EXPECT_NEAR(metric.lattice_coordinate(0, metric.plane(0, i) + across * metric.width(0, i)), i + across, 1e-12);
    }
  }
  EXPECT_NEAR(metric.lattice_coordinate(0, 0.5), -1.0, 1e-12);
  EXPECT_NEAR(metric.lattice_coordinate(0, metric.plane(0, 8) + 1.5), 10.0, 1e-12);
}

TEST(Metric, WidthsOfCellsThatBecomeOneAreAddedUp) {
  const Metric fine({1.0, 2.0, 0.0}, {graded, graded, {}});
  const Metric coarse = fine.coarsen(Coarsening({8, 8, 1}, {true, false, false}));
  ASSERT_EQ(coarse.extent(0), 4);
  ASSERT_EQ(coarse.extent(1), 8);
  EXPECT_EQ(coarse.extent(2), 1);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(coarse.width(0, i), graded[2 * i] + graded[2 * i + 1]);
  for (int i = 0; i <= 4; ++i) EXPECT_EQ(coarse.plane(0, i), fine.plane(0, 2 * i));
  for (int i = 0; i <= 8; ++i) EXPECT_EQ(coarse.plane(1, i), fine.plane(1, i));
}

TEST(Metric, RepeatedLatticesGoOnWhereOneEnds) {
  const Metric one({1.0, 0.0, 0.0}, {graded, {}, {}});
  const Metric three = one.repeat(0, 3);
  const double length = std::accumulate(graded.begin(), graded.end(), 0.0);
  ASSERT_EQ(three.extent(0), 24);
  for (int i = 0; i < 24; ++i) {
    EXPECT_EQ(three.width(0, i), graded[i % 8]);
    EXPECT_DOUBLE_EQ(three.plane(0, i), one.plane(0, i % 8) + i / 8 * length);
  }
}

/// Parents ascend by one, and the children that a parent names are those that name it.
void check_coarsening(const Coarsening& map) {
  for (int a = 0; a < 3; ++a) {
    int next = 0;
    for (int i = 0; i < map.coarse_extent(a); ++i) {
      EXPECT_EQ(map.first_child(a, i), next);
      EXPECT_GT(map.children(a, i), 0);
      for (int child = 0; child < map.children(a, i); ++child) EXPECT_EQ(map.parent(a, next++), i);
    }
    EXPECT_EQ(next, map.fine_extent(a));
    EXPECT_EQ(map.merges(a), map.coarse_extent(a) < map.fine_extent(a));
  }
}

TEST(Coarsening, PairsUpOrLeavesAsItIs) {
  const Coarsening map({8, 5, 1}, {true, false, false});
  check_coarsening(map);
  EXPECT_EQ(map.coarse_extent(0), 4);
  EXPECT_EQ(map.coarse_extent(1), 5);
  EXPECT_EQ(map.parent(0, 5), 2);
  EXPECT_EQ(map.first_child(0, 2), 4);
  EXPECT_EQ(map.children(0, 2), 2);
  check_coarsening(Coarsening({8, 5, 1}, {true, true, false}));
}

TEST(Coarsening, StepsBecomeOne) {
  const Coarsening first({16, 6, 5}, {true, true, false});
  const Coarsening second({8, 3, 5}, {true, false, false});
  const Coarsening both = first.then(second);
  check_coarsening(both);
  for (int a = 0; a < 3; ++a) {
    for (int i = 0; i < first.fine_extent(a); ++i) {
      EXPECT_EQ(both.parent(a, i), second.parent(a, first.parent(a, i)));
    }
  }
  EXPECT_EQ(both.children(0, 1), 4);
}

TEST(Coarsening, EveryCellIsTheChildOfOneThatHoldsIt) {
  for (const int dim : {2, 3}) {
    for (const auto& mesh : test::mesh_cases(dim)) {
      Level fine = mesh.level(0);
      for (const Coarsening& map : test::coarsenings(fine.grid)) {
        fine.coarsening = map;
        const Level coarse(fine.equation, fine.coefficients, fine.grid.coarsen(map));
        std::vector<int> parents(fine.grid.cells(), 0);
        const auto children = children_of(fine, coarse);
        for (std::size_t i = 0; i < children.size(); ++i) {
          const Grid::Record child = children[i];
          if (child == fine.grid.null()) continue;
          const auto parent = static_cast<Grid::Record>(i >> dim);
          ++parents.at(child);
          for (int a = 0; a < dim; ++a) {
            const double inside = fine.grid.corner(child)[a] - coarse.grid.corner(parent)[a];
            EXPECT_GT(inside, -1e-12);
            EXPECT_LT(inside + fine.grid.widths(child)[a], coarse.grid.widths(parent)[a] + 1e-12);
          }
        }
        for (const int count : parents) EXPECT_EQ(count, 1) << mesh.name;
      }
    }
  }
}

TEST(Coarsening, CellsPairUpOnlyWhereHolesDo) {
  Mesh mesh{.dim = 2, .cells = {4, 4, 1}, .refine = 0, .holes = {{{1, 0, 0}, {2, 2, 1}}}};
  EXPECT_FALSE(Grid(mesh, {}).pairing({true, true, false}));
  EXPECT_FALSE(Grid(mesh, {}).pairing({true, false, false}));
  EXPECT_TRUE(Grid(mesh, {}).pairing({false, true, false}));
  mesh.cells[1] = 5;
  EXPECT_FALSE(Grid(mesh, {}).pairing({false, true, false}));
  mesh.refine = 1;
  EXPECT_TRUE(Grid(mesh, {}).pairing({true, true, false}));
}

}  // namespace
}  // namespace solenoid
