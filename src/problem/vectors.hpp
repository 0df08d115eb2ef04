#pragma once
/// \file
/// Arithmetic of vectors in space.

#include "solenoid/mesh.hpp"

namespace solenoid {

constexpr double dot_product(const Point& a, const Point& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

constexpr Point cross_product(const Point& a, const Point& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

/// to += factor what
constexpr void add_times(Point& to, double factor, const Point& what) {
  for (int i = 0; i < 3; ++i) to[i] += factor * what[i];
}

}  // namespace solenoid
