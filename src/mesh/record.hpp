#pragma once
/// \file
/// Where an unknown lies: inside its cell's record, and where the record lies in a vector.
///
/// A record holds (dim + 1) n^dim numbers, n = k + 1: velocity component 0, 1, (2), then pressure, n^dim each.
/// Velocity component c counts its own direction c slowest, then the others in cyclic order, c + 1 fastest:
///
///     3D:  value(c; i_c, i_a, i_b) at  c n^3 + i_a + n i_b + n^2 i_c,   a = c + 1, b = c + 2 (mod 3)
///     2D:  value(c; i_c, i_a)      at  c n^2 + i_a + n i_c,             a = c + 1 (mod 2)
///
/// i_c = 0 is the hat on the cell's lower face in direction c, i_c = 1..k are bubbles; i_a, i_b count Legendre modes.
/// Pressure counts x fastest: value(i_0, i_1, i_2) at dim n^dim + i_0 + n i_1 + n^2 i_2.
/// With Poisson's equation a record holds the n^dim values of u, counted as those of a pressure, and nothing else.
///
/// Records are interleaved by 16: a vector is an array [block of 16 records][value][record in the block]. The lanes of
/// a SIMD register and the threads of a warp work on neighbouring records, so that they load one value of all of them
/// with unit stride. The last block is padded with zeros.

#include <cstdint>

#include "solenoid/kernel_choices.hpp"

namespace solenoid {

/// Exponents are numbers of directions, 0 to 3. Not recursive: nvcc leaves calls of such functions in kernels whose n
/// is a power of two.
constexpr int power(int base, int exponent) {
  return exponent == 0 ? 1 : exponent == 1 ? base : exponent == 2 ? base * base : base * base * base;
}

/// Velocity components, which come first in a record. After them comes one scalar field: the pressure, or Poisson's u.
constexpr int velocity_components(EquationKind equation, int dim) { return equation == EquationKind::stokes ? dim : 0; }

/// Numbers in one record.
constexpr int record_size(int dim, int order, EquationKind equation = EquationKind::stokes) {
  return (velocity_components(equation, dim) + 1) * power(order + 1, dim);
}

/// Records side by side in memory; a multiple of the SIMD lanes of every machine.
inline constexpr int interleave = 16;

/// Place of value 0 of a record in a vector of records with `size` numbers; value i lies at + i * interleave.
constexpr std::int64_t record_offset(std::int64_t record, int size) {
  return record / interleave * interleave * size + record % interleave;
}

/// The next multiple of `interleave`.
constexpr std::int64_t whole_blocks(std::int64_t records) {
  return (records + interleave - 1) / interleave * interleave;
}

/// Stride of direction `a` inside the block of velocity component `c`.
constexpr int velocity_stride(int dim, int order, int c, int a) {
  const int n = order + 1;
  const int turn = (a - c + dim) % dim;  // 0: own direction
  return turn == 0 ? power(n, dim - 1) : power(n, turn - 1);
}

/// Stride of direction `a` inside the block of the pressure, or of Poisson's u.
constexpr int pressure_stride(int order, int a) { return power(order + 1, a); }

}  // namespace solenoid
