#pragma once
/// \file
/// The viscosity of a patch whose cells have others (level/patch_scale.hpp), for kernels too.

#include <algorithm>

namespace solenoid {

/// `open_ends`: of the patch, on outflow sides, in the stress form; none in the gradient form. On fields without
/// divergence that vanish at all ends both forms are the same, at an open end the true matrix is up to twice the local
/// one, which lets the smoother diverge unless local problems are stiffer there.
template <class T>
constexpr T patch_viscosity(T mean, T largest, int open_ends) {
  return (T(1) + T(0.75) * static_cast<T>(open_ends)) * std::max(mean, T(0.5) * largest);
}

}  // namespace solenoid
