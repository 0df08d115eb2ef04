#include "program/angles.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "problem/affine_map.hpp"

namespace solenoid::program {
namespace {

constexpr double small = 45.0;

/// Of an edge and the plane, or line, of the others.
double smallest_angle(const Mesh& mesh) {
  return std::asin(AffineMap(mesh.dim, mesh.lower, *mesh.edges).sine()) * 180.0 / std::numbers::pi;
}

bool is_small(double angle) { return angle < small - 1e-6; }

}  // namespace

std::string angles_of(const Mesh& mesh) {
  if (!mesh.edges) return {};
  const double angle = smallest_angle(mesh);
  return fmt::format("smallest angle {:.3g} degrees{}", angle,
                     is_small(angle) ? fmt::format(": below {:g} pressures are less accurate, and the solve takes more "
                                                   "iterations",
                                                   small)
                                     : "");
}

std::string small_angles(const Mesh& mesh) {
  return mesh.edges && is_small(smallest_angle(mesh)) ? angles_of(mesh) : std::string();
}

}  // namespace solenoid::program
