#pragma once
/// \file
/// Small patches (level/small_patches.hpp): one per lane, all with the same dense inverse.

#include "engine/cpu/kernels/simd.hpp"

namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE {

template <class T>
void smooth_small(const SmallArguments<T>& arguments) {
  using V = Simd<T>;
  using Lane = typename V::Lane;
  const int size = arguments.size;
  V* const values = static_cast<V*>(arguments.workspace);
  V* const corrections = values + size;
  for (std::int64_t begin = arguments.begin; begin < arguments.end; begin += width) {
    const int lanes = static_cast<int>(std::min<std::int64_t>(width, arguments.end - begin));
    std::int64_t first[2][width];
    for (int lane = 0; lane < width; ++lane) {
      // Lanes that are left do what the last one does, but are not written.
      const std::int32_t* const records = arguments.records + 2 * (begin + std::min(lane, lanes - 1));
      for (int i = 0; i < 2; ++i) first[i][lane] = record_offset(records[i], arguments.record_size);
    }
    for (int j = 0; j < size; ++j) {
      const auto [record, offset] = arguments.unknowns[j];
      Lane* const value = reinterpret_cast<Lane*>(values + j);
      for (int lane = 0; lane < width; ++lane) value[lane] = arguments.r[first[record][lane] + offset];
    }
    multiply_block(size, arguments.inverse, values, corrections);
    for (int j = 0; j < size; ++j) {
      const auto [record, offset] = arguments.unknowns[j];
      const Lane* const correction = reinterpret_cast<const Lane*>(corrections + j);
      for (int lane = 0; lane < lanes; ++lane) {
        arguments.x[first[record][lane] + offset] += arguments.damping * correction[lane];
      }
    }
  }
}

}  // namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE
