#pragma once
/// \file
/// Cycles alone.

#include <cmath>
#include <cstdint>

#include "engine/engine.hpp"
#include "solver/krylov/convergence.hpp"
#include "solver/multigrid/preconditioner.hpp"
#include "solver/vector_needs.hpp"

namespace solenoid {

/// The vector of cycles alone, beside b and x. It is kept for the next solve.
struct CycleVectors {
  Vector<double> residual;

  void reserve(Engine& engine, std::int64_t size) {
    if (residual.size() == 0) residual = Vector<double>(engine, size);
  }
  static VectorNeeds needs() { return on_finest<double>(1); }
};

/// x += M (b - A x) until the residual is small, with the cycle in precision S.
template <class S>
void cycle_iteration(CyclePreconditioner<S>& m, const double* b, double* x, Convergence& convergence,
                     CycleVectors& vectors) {
  Kernels<double>& kernels = m.outer();
  double* r = vectors.residual.data();
  const double norm_b = std::sqrt(kernels.dot(b, b));
  if (norm_b == 0.0) kernels.zero(x);
  double scale = norm_b;
  for (;; ++convergence.iterations) {
    // Who looks at residuals wants them as they are.
    const bool taken = !convergence.also && m.take_residual(b, x);
    if (!taken) kernels.residual(b, x, r);
    const double norm = taken ? kernels.norm_of_rounded() : std::sqrt(kernels.dot(r, r));
    if (convergence.iterations == 0) scale = convergence.scale(norm_b, norm);
    if (convergence.stop(norm_b == 0.0 ? 0.0 : norm / scale, r)) return;
    add(kernels, taken ? m.of_taken() : m.of(r), x);
  }
}

}  // namespace solenoid
