#pragma once
/// \file
/// Local problems where coefficients vary by cell: those of nu = 1 and a reaction, in the gradient form with no-slip
/// ends (PatchRules::no_slip_ends), scaled. With the viscosity nu_p of a patch
///
///     A_p^+ = T S^+ T,    T = nu_p^(-1/2) on velocities, nu_p^(1/2) on pressures,
///
/// is the inverse for viscosity nu_p everywhere, so that divergences are solved exactly and no table depends on nu.
///
///     nu_p = max(mean of the cells' nu, largest / 2),    in the stress form times 1 + 3/4 (ends on outflow sides)
///
/// Weights of inner faces are at most twice the viscosity of either side, so that no-slip ends bound what is really
/// there; on fields without divergence the true matrix is at most 1.22 (largest / nu_p) times the local one, where the
/// mean alone lets it be 4.8 times as large: local problems that are too weak let the smoother diverge.
///
/// alpha / nu_p is the mean reaction over nu_p, rounded up to one of few values, so that patches share tables.

#include <vector>

#include "level/level.hpp"

namespace solenoid {

struct PatchScale {
  double viscosity = 1.0;  ///< nu_p
  double reaction = 0.0;   ///< alpha / nu_p, of the local problem with nu = 1
};

/// The largest over the smallest viscosity of all cells of a level, and of the cells of a patch where that is largest.
struct Contrast {
  double all = 1.0;
  double in_patches = 1.0;
};
/// Of a level whose coefficients vary.
Contrast contrast_of(const Level& level);

/// Of the patch of a lower cell, on a level whose coefficients vary.
PatchScale patch_scale(const Level& level, Record lower);
/// Of all patches of a level, in their order; where coefficients are constant 1 and 0.
std::vector<PatchScale> patch_scales(const Level& level);

}  // namespace solenoid
