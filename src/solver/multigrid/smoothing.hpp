#pragma once
/// \file
/// A smoothing step: all colours of patches.

#include <utility>

#include "engine/engine.hpp"
#include "solenoid/solver.hpp"

namespace solenoid {

/// x <- S(x, b): all colours once, in their order. The result is left in `first` or in `other`; returned. x == nullptr
/// stands for zero; x may be `other`.
template <class T>
T* smoothing_step(Kernels<T>& kernels, const MultigridOptions& options, const T* b, const T* x, T* first, T* other) {
  const Level& level = kernels.level();
  const int colours = static_cast<int>(level.patches.colours.size());
  if (options.smoother == SmootherKind::additive) {
    const double damping = options.damping != 0.0 ? options.damping : 0.9 / (1 << level.equation.dim);
    if (x == nullptr) {
      kernels.zero(first);
    } else {
      kernels.copy(x, first);
    }
    for (int colour = 0; colour < colours; ++colour) {
      kernels.smooth_add(colour, b, x, first, static_cast<T>(damping));
    }
    return first;
  }
  T* to = first;
  T* from = other;
  for (int colour = 0; colour < colours; ++colour) {
    kernels.smooth(colour, b, colour == 0 ? x : from, to);
    std::swap(to, from);
  }
  return from;
}

}  // namespace solenoid
