#pragma once
/// \file
/// Meshes with every kind of shape and side, and random vectors on their levels: shared by the tests of engines.

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/reference/reference_level.hpp"
#include "level/level.hpp"
#include "problem/regions.hpp"

namespace solenoid::test {

struct MeshCase {
  std::string name;
  Mesh mesh;
  Boundary boundary{};
  double mass = 0.0;
  EquationKind equation = EquationKind::stokes;

  [[nodiscard]] Level level(int order, PatchRules rules = {}, bool boundary_hats = false) const {
    const Equation what{.dim = mesh.dim, .order = order, .kind = equation};
    return {what, {.viscosity = 0.7, .reaction = mass}, Grid(mesh, boundary, boundary_hats), rules};
  }
};

/// Cells that are not cubes: h = 0.5, 0.4, 0.3 in x, y, z, so that a mistaken direction shows.
inline Mesh box(std::vector<int> cells, std::vector<IndexBox> holes = {}, int refine = 0) {
  Mesh mesh{.dim = static_cast<int>(cells.size()), .refine = refine, .holes = std::move(holes)};
  constexpr Point h{0.5, 0.4, 0.3};
  for (int a = 0; a < mesh.dim; ++a) {
    mesh.cells[a] = cells[a];
    mesh.lower[a] = -0.1 * a;
    mesh.upper[a] = mesh.lower[a] + h[a] * (cells[a] << refine);
  }
  return mesh;
}

/// Sides by number: 2a lower, 2a + 1 upper side of direction a.
inline Boundary sides(const std::vector<std::pair<int, SideKind>>& kinds, SideKind holes = SideKind::velocity) {
  Boundary boundary;
  for (const auto& [side, kind] : kinds) boundary.sides[side].kind = kind;
  boundary.holes.kind = holes;
  return boundary;
}

inline Boundary periodic(const std::vector<int>& directions) {
  Boundary boundary;
  for (const int a : directions) boundary.sides[2 * a].kind = boundary.sides[2 * a + 1].kind = SideKind::periodic;
  return boundary;
}

/// With another kind of condition on the faces of a side whose centres lie between two coordinates of a direction.
inline Boundary divided(Boundary boundary, int side, SideKind kind, int direction, double from, double to) {
  const auto where = [=](const Point& x) { return x[direction] > from && x[direction] < to ? 1.0 : 0.0; };
  boundary.regions.push_back({side, ScalarField(where), {kind}});
  return boundary;
}
/// With conditions of their own on the first holes.
inline Boundary with_holes(Boundary boundary, const std::vector<SideKind>& kinds) {
  for (const SideKind kind : kinds) {
    boundary.single_holes.push_back({static_cast<int>(boundary.single_holes.size()), {kind}});
  }
  return boundary;
}

inline std::vector<MeshCase> mesh_cases(int dim) {
  constexpr auto wall = SideKind::velocity;
  constexpr auto slip = SideKind::slip;
  constexpr auto outflow = SideKind::outflow;
  if (dim == 2) {
    return {
        {"odd_box", box({5, 3})},
        {"long_box", box({41, 4}), {}, 1.3},  // several batches of patches per colour, the last one not full
        {"l_shape", box({4, 4}, {{{2, 2, 0}, {4, 4, 1}}})},
        {"hole", box({5, 4}, {{{2, 1, 0}, {3, 2, 1}}})},
        {"slip_hole", box({6, 5}, {{{2, 2, 0}, {4, 3, 1}}}), sides({{1, slip}}, slip)},
        {"outflow_hole", box({7, 6}, {{{2, 2, 0}, {3, 3, 1}}, {{5, 3, 0}, {6, 4, 1}}}), sides({}, outflow), 1.3},
        {"slip", box({4, 5}), sides({{0, slip}, {1, slip}, {3, slip}})},
        {"outflow_upper", box({4, 3}), sides({{1, outflow}})},
        {"outflow_lower", box({4, 3}), sides({{2, outflow}}), 1.3},
        {"outflow_corner", box({3, 4}), sides({{1, outflow}, {3, outflow}})},
        {"outflow_both", box({4, 4}), sides({{0, outflow}, {1, outflow}, {2, slip}, {3, slip}}), 1.3},
        {"channel", box({7, 4}, {{{2, 1, 0}, {3, 2, 1}}, {{6, 3, 0}, {7, 4, 1}}}), sides({{1, outflow}, {3, slip}})},
        {"two_parts", box({7, 4}, {{{3, 0, 0}, {4, 4, 1}}}), sides({{1, outflow}})},
        {"two_free_parts", box({7, 4}, {{{3, 0, 0}, {4, 4, 1}}}),
         sides({{0, slip}, {1, slip}, {2, SideKind::periodic}, {3, SideKind::periodic}}, slip)},
        // y from -0.1 in steps of 0.4, x from 0 in steps of 0.5
        {"half_outflow", box({5, 4}), divided({}, 1, outflow, 1, 0.7, 2.0)},
        {"half_wall", box({4, 6}),
         divided(divided(sides({{0, outflow}}), 0, wall, 1, -1.0, 0.7), 2, slip, 0, 0.5, 1.5)},
        {"window", box({6, 5}), divided(divided(sides({{1, slip}}), 3, outflow, 0, 1.0, 2.0), 1, wall, 1, 0.3, 1.1),
         1.3},
        {"slip_and_outflow", box({4, 4}), divided(sides({{1, slip}, {2, outflow}}), 1, outflow, 1, 0.7, 2.0)},
        {"narrow_outflow", box({4, 5}), divided({}, 3, outflow, 0, 0.5, 1.0)},
        {"different_holes", box({8, 7}, {{{1, 2, 0}, {3, 3, 1}}, {{4, 2, 0}, {5, 4, 1}}, {{4, 5, 0}, {7, 6, 1}}}),
         with_holes({}, {slip, outflow})},
        {"touching_holes", box({6, 6}, {{{2, 2, 0}, {3, 4, 1}}, {{3, 2, 0}, {4, 3, 1}}}), with_holes({}, {wall, slip})},
        {"periodic_x", box({4, 3}), periodic({0})},
        {"periodic_2", box({2, 2}), periodic({0, 1})},
        {"periodic_odd", box({5, 3}), periodic({0, 1}), 1.3},
        {"periodic_even", box({4, 6}), periodic({0, 1})},
        {"periodic_hole", box({4, 5}, {{{0, 2, 0}, {1, 3, 1}}}), periodic({0, 1})},
    };
  }
  return {
      {"odd_box", box({3, 4, 2})},
      {"long_box", box({21, 4, 3}), {}, 1.3},
      {"l_shape", box({4, 4, 2}, {{{2, 2, 0}, {4, 4, 2}}})},
      {"hole", box({4, 3, 3}, {{{1, 1, 1}, {2, 2, 2}}})},
      {"outflow_hole", box({5, 4, 4}, {{{2, 1, 1}, {3, 2, 2}}}), sides({}, outflow)},
      {"slip", box({3, 3, 4}), sides({{0, slip}, {3, slip}, {4, slip}, {5, slip}})},
      {"outflow_upper", box({3, 3, 2}), sides({{5, outflow}})},
      {"outflow_lower", box({3, 2, 3}), sides({{2, outflow}}), 1.3},
      {"outflow_corner", box({3, 2, 3}), sides({{1, outflow}, {3, outflow}, {5, outflow}})},
      {"channel", box({5, 4, 3}, {{{2, 1, 0}, {3, 2, 3}}, {{4, 3, 0}, {5, 4, 1}}}),
       sides({{1, outflow}, {3, slip}, {4, slip}})},
      {"two_parts", box({5, 2, 3}, {{{2, 0, 0}, {3, 2, 3}}}), sides({{1, outflow}})},
      // x from 0 in steps of 0.5, y from -0.1 in steps of 0.4, z from -0.2 in steps of 0.3
      {"half_outflow", box({3, 4, 3}), divided({}, 1, outflow, 1, 0.7, 2.0)},
      {"window", box({4, 4, 3}),
       divided(divided(divided(sides({{1, slip}}), 3, outflow, 0, 0.5, 1.5), 1, wall, 2, 0.1, 1.0), 4, outflow, 0, 1.0,
               3.0),
       1.3},
      {"slip_and_outflow", box({3, 3, 4}), divided(sides({{5, slip}, {2, outflow}}), 5, outflow, 0, 0.5, 2.0)},
      {"different_holes", box({6, 4, 4}, {{{1, 1, 1}, {2, 2, 2}}, {{3, 1, 2}, {5, 2, 3}}}), with_holes({}, {slip})},
      {"periodic_x", box({4, 3, 2}), periodic({0})},
      {"periodic_2", box({2, 2, 2}), periodic({0, 1, 2})},
      {"periodic_odd", box({3, 4, 5}), periodic({0, 1, 2}), 1.3},
  };
}

/// Those on which Poisson's equation may be posed, with that equation.
inline std::vector<MeshCase> poisson_mesh_cases(int dim) {
  std::vector<MeshCase> cases;
  for (MeshCase& what : mesh_cases(dim)) {
    const auto sides = conditions({.mesh = what.mesh, .boundary = what.boundary});
    const auto known = [](const Side& side) {
      return side.kind == SideKind::velocity || side.kind == SideKind::periodic;
    };
    if (!std::all_of(sides.begin(), sides.end(), known)) continue;
    what.name = "poisson_" + what.name;
    what.equation = EquationKind::poisson;
    cases.push_back(what);
  }
  return cases;
}

/// Random numbers in [-1, 1] in all unknowns. `boundary_values`: in the stored normal unknowns of faces with
/// prescribed velocity too, as if they held boundary data.
inline std::vector<double> random_vector(const Level& level, std::uint64_t seed, bool boundary_values = false) {
  std::mt19937_64 generator(seed);
  std::uniform_real_distribution<double> distribution(-1.0, 1.0);
  auto used = reference::unknowns(level);
  if (boundary_values) {
    const Grid& grid = level.grid;
    const int block = power(level.equation.n(), level.equation.dim);
    const int hats = power(level.equation.n(), level.equation.dim - 1);
    for (const Record r : grid.layout().records()) {
      for (int c = 0; c < level.equation.velocities(); ++c) {
        if (grid.layout().is_hat(r) && grid.hat_direction(r) != c) continue;
        for (int i = 0; i < hats; ++i) used[level.index(r, c * block + i)] = true;
      }
    }
  }
  std::vector<double> x(used.size(), 0.0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (used[i]) x[i] = distribution(generator);
  }
  return x;
}

/// The ways in which the grid may be coarsened, for transfers: one per entry, possibly none.
inline std::vector<Coarsening> coarsenings(const Grid& grid) {
  std::vector<Coarsening> choices;
  for (int bits = 1; bits < 1 << grid.dim(); ++bits) {
    const std::array<bool, 3> directions{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0};
    if (const auto pairs = grid.pairing(directions)) choices.push_back(*pairs);
  }
  return choices;
}

}  // namespace solenoid::test
