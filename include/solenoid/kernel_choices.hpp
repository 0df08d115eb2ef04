#pragma once
/// \file
/// The choices that kernels know, apart from all others, so that a new one of those compiles no kernels anew.

namespace solenoid {

enum class EquationKind { stokes, poisson };
enum class LocalSolverKind { direct, chebyshev, cg, dense };

}  // namespace solenoid
