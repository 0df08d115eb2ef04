#pragma once
/// \file
/// The choices that problems and solver options offer.

#include "solenoid/kernel_choices.hpp"

namespace solenoid {

enum class SideKind {
  velocity,  ///< u = g (no-slip where g = 0); with Poisson u = g[0]
  slip,      ///< u.n = 0, no shear stress
  outflow,   ///< nu du/dn - p n = traction; in the stress form 2 nu eps(u) n - p n
  periodic,  ///< wraps to the opposite side
};

/// The viscous term: - div(nu grad u), or - div(2 nu eps(u)) with eps(u) = (grad u + grad u^T) / 2. The same where nu
/// is constant, but for what is prescribed on outflow sides.
enum class ViscousForm {
  gradient,
  stress,
};

/// Where a viscosity that varies is taken.
enum class ViscosityPlaces {
  cell,   ///< the mean of each cell
  gauss,  ///< at the Gauss points of cells and faces; cycles of the multigrid method have the means
};

enum class Method { gmres, fmg, vcycle };
enum class Preset { standard, paper };
enum class Precision { mixed, full_double };
enum class DeviceChoice { automatic, cpu, cuda };
enum class TransportChoice {
  automatic,  ///< the fastest that works
  peer,       ///< into the memory of the other GPUs, of the same host: one rank on each
  nccl,       ///< between GPUs, by NVIDIA's library: one rank on each
  staged,     ///< between GPUs through memory of the hosts, by MPI: several ranks may share one
};
/// Implicit for what is linear, explicit for convection.
enum class TimeScheme {
  sbdf1,  ///< multistep schemes: BDF with extrapolated convection, of orders 1 to 4
  sbdf2,
  sbdf3,
  sbdf4,
  bdf2_ext3,  ///< BDF of order 2, extrapolation of order 3
  ars233,     ///< Runge-Kutta schemes of order 3 by Ascher, Ruuth and Spiteri: 3 solves a step,
  ars443,     ///< and 4
};
enum class PreconditionerSide { right, left };
enum class SmootherKind { multiplicative, additive };
enum class ColourOrder { diagonal, lexicographic };
enum class PatchProblem { symmetric, galerkin, fused };
/// What a flow has at a point besides velocity and pressure. Tensors are symmetric.
enum class FlowField {
  vorticity,              ///< curl u; in 2D dv/dx - du/dy
  q,                      ///< Q = (|W|^2 - |S|^2) / 2, S and W the symmetric and the antisymmetric part of grad u
  dissipation,            ///< nu |grad u|^2, in the stress form 2 nu |S|^2
  strain_rate,            ///< the tensor S = eps(u) = (grad u + grad u^T) / 2
  strain_rate_invariant,  ///< the second one, sqrt(S:S / 2): half the shear rate
  stress,                 ///< the tensor 2 nu eps(u) - p I
  viscosity,              ///< nu of the cell
  mass,                   ///< alpha of the cell
};

}  // namespace solenoid
