#pragma once
/// \file
/// A smoothing step: all colours of vertex patches, then all groups of small patches.

#include <utility>

#include "engine/engine.hpp"
#include "solenoid/solver.hpp"

namespace solenoid {

/// Small patches of all groups, one group after the other with the residual of what the ones before left. `free` is
/// overwritten.
template <class T>
void smooth_small_patches(Kernels<T>& kernels, const T* b, T* x, T* free, T damping) {
  const int groups = static_cast<int>(kernels.level().small_patches.groups.size());
  for (int group = 0; group < groups; ++group) {
    kernels.residual_for_small(group, b, x, free);
    kernels.smooth_small(group, free, x, damping);
  }
}

/// x <- S(x, b): all colours once, in their order, then small patches where there are some. The result is left in
/// `first` or in `other`; returned. x == nullptr stands for zero; x may be `other`.
template <class T>
T* smoothing_step(Kernels<T>& kernels, const MultigridOptions& options, const T* b, const T* x, T* first, T* other) {
  const Level& level = kernels.level();
  const int colours = static_cast<int>(level.patches.colours.size());
  const auto start_from = [&](T* start) {
    if (x == nullptr) {
      kernels.zero(start);
    } else if (x != start) {
      kernels.copy(x, start);
    }
  };
  if (options.smoother == SmootherKind::additive) {
    const double damping = options.damping != 0.0 ? options.damping : 0.9 / (1 << level.equation.dim);
    start_from(first);
    for (int colour = 0; colour < colours; ++colour) {
      kernels.smooth_add(colour, b, x, first, static_cast<T>(damping));
    }
    // They overlap vertex patches and each other less than these do.
    smooth_small_patches(kernels, b, first, other, T(1));
    return first;
  }
  T* to = first;
  T* from = other;
  if (colours == 0) start_from(from);
  for (int colour = 0; colour < colours; ++colour) {
    kernels.smooth(colour, b, colour == 0 ? x : from, to);
    std::swap(to, from);
  }
  smooth_small_patches(kernels, b, from, to, T(1));
  return from;
}

}  // namespace solenoid
