#pragma once
/// \file
/// Local problems of cells that are parallelepipeds (problem/affine_map.hpp): separable ones, near the exact ones.
///
/// With g, G and J of the map the viscous term is
///
///     (grad u, grad v) = 1/J sum g_cc' G_ab (d_a w_c, d_b z_c')
///
/// and couples components and directions, which fast diagonalisation cannot. What it solves in place of that is
///
///     A_c = C_cc L^P + sum_{a != c} C_ca M^P L^O_a + alpha g_cc / J M^P,    J C_ca = s g_cc G_aa,
///     J C_cc = s (g_cc G_cc + sum_{a < b} max(0, -2 t_ab if c is a or b, otherwise 2 t_ab)),    t_ab = g_ab G_ab:
///
/// the diagonal terms, and of the others what adds to them on divergence-free fields. On these the exact matrix is at
/// most lambda times the one with s = 1, lambda being found by Lanczos's method on a patch with neighbours on all
/// sides; s = max(1, lambda / 1.8) keeps smoothing from diverging. Only the viscous term is scaled: local problems
/// solve for the divergence exactly.
///
/// Where coefficients vary by cell the exact matrix may be more than one of nu_p, too (level/patch_scale.hpp), and in
/// three dimensions both together let smoothing diverge. There s = max(1, lambda / 1.2).

#include <array>
#include <compare>

#include "problem/affine_map.hpp"

namespace solenoid {

struct Equation;

/// Factors of the matrices of local problems. Of boxes all are 1.
struct PatchWeights {
  Matrix3 viscous{{{1, 1, 1}, {1, 1, 1}, {1, 1, 1}}};  ///< C, [component][direction]
  Point mass{1, 1, 1};                                 ///< g_cc / J

  auto operator<=>(const PatchWeights&) const = default;
};

/// For cells with edges of lengths h. `by_cell`: coefficients vary.
PatchWeights patch_weights(const Equation& equation, const AffineMap& map, const Point& h, bool by_cell);
/// The lambda above.
double largest_ratio(const Equation& equation, const AffineMap& map, const Point& h);

}  // namespace solenoid
