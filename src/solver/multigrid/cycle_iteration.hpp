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
  const auto norm_of_b = [&] { return std::sqrt(kernels.dot(b, b)); };
  // From a guess, what is small next to its residual is small enough: b matters where that is rounding itself, so that
  // cycles gain nothing.
  bool lacks_b = convergence.from_guess;
  double scale = lacks_b ? 0.0 : norm_of_b();
  if (!lacks_b && scale == 0.0) kernels.zero(x);
  for (;; ++convergence.iterations) {
    // Who looks at residuals wants them as they are.
    const bool taken = !convergence.also && m.take_residual(b, x);
    if (!taken) kernels.residual(b, x, r);
    const double norm = taken ? kernels.norm_of_rounded() : std::sqrt(kernels.dot(r, r));
    if (lacks_b && convergence.iterations == 0) scale = norm;
    if (lacks_b && convergence.iterations >= convergence.min_iterations && norm > convergence.rtol * scale) {
      scale = convergence.scale(norm_of_b(), scale);
      lacks_b = false;
    }
    if (convergence.stop(norm == 0.0 ? 0.0 : norm / scale, r)) return;
    add(kernels, taken ? m.of_taken() : m.of(r), x);
  }
}

}  // namespace solenoid
