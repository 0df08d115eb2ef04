#pragma once
/// \file
/// What the machine can do at most: measured ceilings to hold kernels against.

#include <cstdint>

namespace solenoid {

struct CopyRate {
  std::int64_t bytes = 0;         ///< size of the two arrays together
  double bytes_per_second = 0.0;  ///< read and written
};

/// Copies one large array to another with non-temporal stores, from all threads; the best of several runs. The arrays
/// have at least 1 GB, or four times the last-level cache if that is more, but no more than a quarter of `available`.
CopyRate measure_copy(int threads, std::int64_t available);

/// Floating-point operations per second of independent fused multiply-adds (two operations each) in the widest SIMD
/// registers, from all threads; the best of several runs. T: float or double.
template <class T>
double measure_fma(int threads);

}  // namespace solenoid
