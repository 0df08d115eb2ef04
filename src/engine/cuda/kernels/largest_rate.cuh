#pragma once
/// \file
/// The largest rate at which a flow crosses cells, of all thread blocks. Rates are compared as bits: those of numbers
/// that are not negative are in their order, and behind them comes what is not a number, so that none is lost.

#include <cstdint>

namespace solenoid::cuda {

/// `bits`: of the largest that a thread has met, `thread` its number in the block. Most warps find that another has
/// written as much.
__device__ inline void write_largest_rate(std::uint64_t bits, unsigned thread, std::uint64_t* rate) {
  const auto high = static_cast<unsigned>(bits >> 32);
  const unsigned highest = __reduce_max_sync(~0U, high);
  const unsigned lowest = __reduce_max_sync(~0U, high == highest ? static_cast<unsigned>(bits) : 0U);
  const unsigned long long largest = static_cast<unsigned long long>(highest) << 32 | lowest;
  auto* const most = reinterpret_cast<unsigned long long*>(rate);
  if (thread % 32 == 0 && largest > *static_cast<volatile unsigned long long*>(most)) atomicMax(most, largest);
}

}  // namespace solenoid::cuda
