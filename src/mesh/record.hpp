#pragma once
/// \file
/// Where an unknown lies inside a cell's record.
///
/// A record holds (dim + 1) n^dim numbers, n = k + 1: velocity component 0, 1, (2), then pressure, n^dim each.
/// Velocity component c counts its own direction c slowest, then the others in cyclic order, c + 1 fastest:
///
///     3D:  value(c; i_c, i_a, i_b) at  c n^3 + i_a + n i_b + n^2 i_c,   a = c + 1, b = c + 2 (mod 3)
///     2D:  value(c; i_c, i_a)      at  c n^2 + i_a + n i_c,             a = c + 1 (mod 2)
///
/// i_c = 0 is the hat on the cell's lower face in direction c, i_c = 1..k are bubbles; i_a, i_b count Legendre modes.
/// Pressure counts x fastest: value(i_0, i_1, i_2) at dim n^dim + i_0 + n i_1 + n^2 i_2.

#include <cstdint>

namespace solenoid {

constexpr int power(int base, int exponent) { return exponent == 0 ? 1 : base * power(base, exponent - 1); }

/// Numbers in one record.
constexpr int record_size(int dim, int order) { return (dim + 1) * power(order + 1, dim); }

/// Stride of direction `a` inside the block of velocity component `c`.
constexpr int velocity_stride(int dim, int order, int c, int a) {
  const int n = order + 1;
  const int turn = (a - c + dim) % dim;  // 0: own direction
  return turn == 0 ? power(n, dim - 1) : power(n, turn - 1);
}

/// Stride of direction `a` inside the pressure block.
constexpr int pressure_stride(int order, int a) { return power(order + 1, a); }

}  // namespace solenoid
