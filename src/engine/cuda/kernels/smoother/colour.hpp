#pragma once
/// \file
/// One colour of a smoother, for the engine and its kernels: plain data.

#include "engine/cuda/messages.hpp"

namespace solenoid::cuda {

/// One colour of the multiplicative smoother, y = x + corrections, or of the additive one, y += damping * corrections.
///
/// With `root` corrections are T S^+ r of residuals that are there already (level/patch_scale.hpp): b is r = T (b - A
/// x) in the patches' cells. Hats between two cells of a patch are the sum of what both cells have of them, the lower
/// one in the place of its lower hats, but where these are unknowns.
template <class T>
struct Colour {
  int number;
  const T* b;
  const T* x;  ///< nullptr stands for zero
  T* y;        ///< other memory than x
  bool add;
  T damping;
  const T* root = nullptr;  ///< nu_p^(1/2) of the patch with this lower cell, [record]
  Bringing<T> bringing{};   ///< of b or x

  /// Of corrections.
  [[nodiscard]] T factor() const { return add ? damping : T(1); }
};

}  // namespace solenoid::cuda
