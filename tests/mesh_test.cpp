// What a mesh is made of: widths and planes of its lattice, which cells become one on the next coarser level, and which
// records there are.

#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>
#include <utility>

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
        std::vector<int> parents(fine.grid.layout().cells().size(), 0);
        const auto children = children_of(fine, coarse);
        for (std::size_t i = 0; i < children.size(); ++i) {
          const Record child = children[i];
          if (child == fine.grid.layout().null()) continue;
          const auto parent = static_cast<Record>(i >> dim);
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

/// Cells that faces connect are of one part, and as many parts are told apart as a walk from cell to cell finds.
void check_parts(const Grid& grid, const std::string& name) {
  std::vector<int> seen(grid.layout().cells().size(), 0);
  int walks = 0;
  for (const Record first : grid.layout().cells()) {
    if (seen[first] != 0) continue;
    ++walks;
    std::vector<Record> front{first};
    seen[first] = 1;
    while (!front.empty()) {
      const Record cell = front.back();
      front.pop_back();
      for (int side = 0; side < 2 * grid.dim(); ++side) {
        EXPECT_TRUE(grid.has_face(grid.part(cell), side, grid.face(cell, side)));
        const Record other = grid.neighbour(cell, side);
        if (!grid.layout().is_cell(other)) continue;
        EXPECT_EQ(grid.part(other), grid.part(cell)) << name;
        if (std::exchange(seen[other], 1) == 0) front.push_back(other);
      }
    }
  }
  EXPECT_EQ(walks, grid.parts()) << name;
}

TEST(Parts, AreWhatFacesConnect) {
  for (const int dim : {2, 3}) {
    for (auto mesh : test::mesh_cases(dim)) {
      mesh.mesh.refine = 1;
      const Grid grid(mesh.mesh, mesh.boundary);
      check_parts(grid, mesh.name);
      for (const Coarsening& map : test::coarsenings(grid)) check_parts(grid.coarsen(map), mesh.name + ", coarser");
    }
  }
  // Corners do not connect, periodic faces do.
  const Mesh corners = test::box({3, 3}, {{{0, 0, 0}, {1, 2, 1}}, {{1, 2, 0}, {2, 3, 1}}});
  EXPECT_EQ(Grid(corners, {}).parts(), 2);
  EXPECT_EQ(Grid(corners, test::periodic({0})).parts(), 1);
  check_parts(Grid(corners, {}), "corners");
}

TEST(Parts, HaveFacesOfTheirOwn) {
  const Mesh mesh = test::box({5, 2}, {{{2, 0, 0}, {3, 2, 1}}});
  const Grid grid(mesh, test::sides({{1, SideKind::outflow}, {2, SideKind::slip}}));
  const int left = grid.part(grid.at({0, 0, 0}));
  const int right = grid.part(grid.at({4, 0, 0}));
  EXPECT_NE(left, right);
  EXPECT_FALSE(grid.has_face(left, Face::outflow));
  EXPECT_TRUE(grid.has_face(right, Face::outflow));
  EXPECT_TRUE(grid.has_face(left, 2, Face::slip));
  EXPECT_FALSE(grid.has_face(left, 3, Face::slip));
}

/// Groups follow each other in the order of a vector; whole blocks hold them, and one more the null record.
void check_layout(const VectorLayout& layout, Record cells, Record hats) {
  EXPECT_EQ(layout.cells().size(), cells);
  EXPECT_EQ(layout.hats().size(), hats);
  EXPECT_EQ(layout.owned_cells().first(), 0);
  EXPECT_EQ(layout.cells().first(), 0);
  EXPECT_EQ(layout.hats().first(), cells);
  EXPECT_EQ(layout.owned_hats().first(), cells);
  EXPECT_EQ(layout.records().size(), cells + hats);
  EXPECT_EQ(layout.null() % interleave, 0);
  EXPECT_GE(layout.null(), cells + hats);
  EXPECT_LT(layout.null(), cells + hats + interleave);
  EXPECT_EQ(layout.storage(), layout.null() + interleave);
  Record count = 0;
  for (const Record record : layout.records()) {
    EXPECT_EQ(record, count++);
    EXPECT_NE(layout.is_cell(record), layout.is_hat(record));
  }
  EXPECT_EQ(count, cells + hats);
  EXPECT_FALSE(layout.is_cell(layout.null()) || layout.is_hat(layout.null()));
}

/// In a row cells at even places come before those at odd ones: two cells further is one number further.
bool rows_run_along(const Grid& grid, int direction) {
  for (const Record cell : grid.layout().cells()) {
    auto further = grid.position(cell);
    further[direction] += 2;
    if (further[direction] < grid.extent()[direction] && grid.at(further) != cell + 1) return false;
  }
  return true;
}

TEST(Numbering, RowsEndAtNoSlipOrOutflowSideIfThereIsAChoice) {
  const Mesh cube{.dim = 3, .refine = 2, .holes = {}};
  const auto along = [&](std::array<SideKind, 6> kinds) {
    Boundary boundary;
    for (int side = 0; side < 6; ++side) boundary.sides[side].kind = kinds[side];
    const Grid grid(cube, boundary);
    const int direction = grid.numbering()[0];
    EXPECT_TRUE(rows_run_along(grid, direction));
    EXPECT_TRUE(rows_run_along(grid.coarsen(*grid.pairing({true, true, true})), direction));
    const Grid twice = grid.copies(2);
    for (const Record cell : grid.layout().cells()) {
      auto position = grid.position(cell);
      EXPECT_EQ(twice.position(cell), position);
      position[2] += grid.extent()[2];
      EXPECT_EQ(twice.at(position), cell + grid.layout().cells().size());
    }
    return direction;
  };
  constexpr auto wall = SideKind::velocity;
  constexpr auto slip = SideKind::slip;
  constexpr auto outflow = SideKind::outflow;
  EXPECT_EQ(along({wall, wall, wall, slip, wall, outflow}), 0);
  EXPECT_EQ(along({wall, outflow, wall, wall, wall, wall}), 1);
  EXPECT_EQ(along({slip, wall, wall, outflow, wall, wall}), 2);
  EXPECT_EQ(along({slip, slip, slip, slip, slip, slip}), 0);
}

TEST(Numbering, RowsAlongAnotherDirectionAreNotShort) {
  Boundary boundary;
  boundary.sides[1].kind = SideKind::outflow;
  EXPECT_EQ(Grid({.dim = 2, .cells = {4, 1, 1}, .refine = 2, .holes = {}}, boundary).numbering()[0], 0);
  EXPECT_EQ(Grid({.dim = 2, .cells = {4, 1, 1}, .refine = 5, .holes = {}}, boundary).numbering()[0], 1);
}

TEST(VectorLayout, GhostsComeBehindWhatIsOwned) {
  const VectorLayout layout({40, 5}, {9, 2});
  check_layout(layout, 49, 7);
  EXPECT_EQ(layout.owned_cells().size(), 40);
  EXPECT_EQ(layout.owned_hats().size(), 5);
  EXPECT_FALSE(layout.owned_cells().contains(40));
  EXPECT_TRUE(layout.is_cell(40));
  EXPECT_FALSE(layout.owned_hats().contains(54));
  EXPECT_TRUE(layout.is_hat(54));
}

TEST(VectorLayout, OfAGridHasItsCellsAndOpenUpperFaces) {
  for (const int dim : {2, 3}) {
    for (const auto& mesh : test::mesh_cases(dim)) {
      const Grid grid(mesh.mesh, mesh.boundary);
      Record cells = 0;
      Record hats = 0;
      std::array<int, 3> at{};
      for (at[2] = 0; at[2] < grid.extent()[2]; ++at[2]) {
        for (at[1] = 0; at[1] < grid.extent()[1]; ++at[1]) {
          for (at[0] = 0; at[0] < grid.extent()[0]; ++at[0]) {
            const Record cell = grid.at(at);
            if (cell < 0) continue;
            ++cells;
            for (int a = 0; a < dim; ++a) hats += grid.face(cell, 2 * a + 1) == Face::outflow ? 1 : 0;
          }
        }
      }
      check_layout(grid.layout(), cells, hats);
      EXPECT_EQ(grid.layout().owned_cells().size(), cells) << mesh.name;
      EXPECT_EQ(grid.layout().owned_hats().size(), hats) << mesh.name;
    }
  }
}

}  // namespace
}  // namespace solenoid
