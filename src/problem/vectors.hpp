#pragma once
/// \file
/// Arithmetic of vectors in space.

#include <array>

#include "solenoid/mesh.hpp"

namespace solenoid {

/// Numbers may be many at once, next to which doubles are the same for all.
template <class T>
using Vector3 = std::array<T, 3>;

template <class A = double, class B = double>
constexpr auto dot_product(const Vector3<A>& a, const Vector3<B>& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

template <class A = double, class B = double>
constexpr auto cross_product(const Vector3<A>& a, const Vector3<B>& b) {
  return Vector3<decltype(a[0] * b[0])>{a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2],
                                        a[0] * b[1] - a[1] * b[0]};
}

/// to += factor what
template <class T, class Factor, class What = double>
constexpr void add_times(Vector3<T>& to, const Factor& factor, const Vector3<What>& what) {
  for (int i = 0; i < 3; ++i) to[i] += factor * what[i];
}

}  // namespace solenoid
