#pragma once
/// \file
/// Products of small matrices on tensor cores, as a warp's lanes hold them (SchurTiles).

#include <cstdint>

namespace solenoid::cuda {

/// Parts of 11 bits.
__device__ inline void split(float value, std::uint32_t& high, std::uint32_t& low) {
  high = (__float_as_uint(value) + 0x1000U) & 0xffffe000U;
  low = __float_as_uint(value - __uint_as_float(high));
}
__device__ inline void multiply_parts(const std::uint32_t (&a)[4], const std::uint32_t (&b)[2], float (&sum)[4]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// sum += a b, 16 x 8 times 8 x 8. Single precision: three products of parts of 11 bits.
__device__ inline void multiply_tile(const float (&a)[4], const float (&b)[2], float (&sum)[4]) {
  std::uint32_t a_high[4];
  std::uint32_t a_low[4];
  std::uint32_t b_high[2];
  std::uint32_t b_low[2];
#pragma unroll
  for (int i = 0; i < 4; ++i) split(a[i], a_high[i], a_low[i]);
#pragma unroll
  for (int i = 0; i < 2; ++i) split(b[i], b_high[i], b_low[i]);
  multiply_parts(a_high, b_low, sum);
  multiply_parts(a_low, b_high, sum);
  multiply_parts(a_high, b_high, sum);
}
__device__ inline void multiply_tile(const double (&a)[4], const double (&b)[2], double (&sum)[4]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
          : "+d"(sum[2 * half]), "+d"(sum[2 * half + 1])
          : "d"(a[half + 2 * k]), "d"(b[k]));
    }
  }
}

/// A lane's part of an operand.
template <class T>
__device__ void load_four(const T* from, T (&to)[4]) {
  if constexpr (sizeof(T) == 4) {
    const float4 four = __ldg(reinterpret_cast<const float4*>(from));
    to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
  } else {
    const double2 low = __ldg(reinterpret_cast<const double2*>(from));
    const double2 high = __ldg(reinterpret_cast<const double2*>(from) + 1);
    to[0] = low.x, to[1] = low.y, to[2] = high.x, to[3] = high.y;
  }
}

}  // namespace solenoid::cuda
