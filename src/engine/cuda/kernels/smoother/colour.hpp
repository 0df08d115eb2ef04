#pragma once
/// \file
/// One colour of a smoother, for the engine and its kernels: plain data.

namespace solenoid::cuda {

/// One colour of the multiplicative smoother, y = x + corrections, or of the additive one, y += damping * corrections.
template <class T>
struct Colour {
  int number;
  const T* b;
  const T* x;  ///< nullptr stands for zero
  T* y;        ///< other memory than x
  bool add;
  T damping;

  /// Of corrections.
  [[nodiscard]] T factor() const { return add ? damping : T(1); }
};

}  // namespace solenoid::cuda
