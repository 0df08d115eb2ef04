#pragma once
/// \file
/// The choices that problems and solver options offer.

namespace solenoid {

enum class EquationKind { stokes, poisson };

enum class SideKind {
  velocity,  ///< u = g (no-slip where g = 0); with Poisson u = g[0]
  slip,      ///< u.n = 0, no shear stress
  outflow,   ///< nu du/dn - p n = traction
  periodic,  ///< wraps to the opposite side
};

enum class Method { gmres, fmg, vcycle };
enum class Preset { standard, paper };
enum class Precision { mixed, full_double };
enum class DeviceChoice { automatic, cpu, cuda };
enum class TransportChoice {
  automatic,  ///< the fastest that works
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
enum class LocalSolverKind { direct, chebyshev, cg, dense };

}  // namespace solenoid
