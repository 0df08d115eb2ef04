#pragma once
/// \file
/// Meshes of cells that are parallelepipeds.

#include <array>
#include <cmath>
#include <cstdint>
#include <random>

#include "levels.hpp"
#include "problem/affine_map.hpp"
#include "solenoid/error.hpp"

namespace solenoid::test {

/// Random edges of these lengths, no two of which are near each other's line.
inline std::array<Point, 3> random_edges(int dim, const Point& length, std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> normal;
  for (;;) {
    std::array<Point, 3> edges{};
    for (int a = 0; a < dim; ++a) {
      double square = 0.0;
      for (int i = 0; i < dim; ++i) square += std::pow(edges[a][i] = normal(generator), 2);
      for (double& x : edges[a]) x *= length[a] / std::sqrt(square);
    }
    try {
      if (AffineMap(dim, {}, edges).sine() > 0.5) return edges;
    } catch (const InputError&) {  // left-handed
    }
  }
}

/// The same mesh and regions with sheared cells.
inline MeshCase sheared(MeshCase what, std::uint64_t seed) {
  Mesh& mesh = what.mesh;
  Point length{};
  for (int a = 0; a < mesh.dim; ++a) length[a] = mesh.upper[a] - mesh.lower[a];
  mesh.edges = random_edges(mesh.dim, length, seed);
  const AffineMap map(mesh.dim, mesh.lower, *mesh.edges);
  for (SideRegion& region : what.boundary.regions) {
    region.where = ScalarField([map, lower = mesh.lower, where = region.where](const Point& x) {
      Point in_box = map.pulled_back(x);
      for (int a = 0; a < 3; ++a) in_box[a] += lower[a];
      return where(in_box);
    });
  }
  return what;
}

}  // namespace solenoid::test
