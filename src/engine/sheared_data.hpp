#pragma once
/// \file
/// What compiled kernels see of a level whose cells are parallelepipeds, beside CellData: plain data.

#include "engine/kernel_data.hpp"

namespace solenoid {

/// With g, G, J of problem/affine_map.hpp and edges h; derivatives in kernels are those on the unit interval.
template <class T>
struct ShearedData {
  T metric[3][3];  ///< g
  T flux[3][3];    ///< nu G_ab / (J h_a h_b), nu = 1 where coefficients vary by cell
  T mass[3][3];    ///< alpha g / J, alpha = 1 where they do
  bool has_mass;
  bool stress;      ///< the stress form: (grad u)^T too
  T turned[3][3];   ///< nu / (J h_a h_b), nu as in `flux`
  T inverse[3][3];  ///< G
  /// Bubble j of P is hat[j] psi_(j+1) - hat[j-1] psi_(j-1), and the hats 1/2 psi_0 -+ hat[0] psi_1.
  T hat[max_n];
  T root[max_n + 1];  ///< (2 j + 1)^(1/2): psi_j' = sum of 2 root[i] root[j] psi_i over i < j, i + j odd
};

}  // namespace solenoid
