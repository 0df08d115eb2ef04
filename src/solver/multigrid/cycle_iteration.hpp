#pragma once
/// \file
/// Cycles alone.

#include <algorithm>
#include <cmath>

#include "engine/engine.hpp"
#include "solver/krylov/convergence.hpp"
#include "solver/multigrid/preconditioner.hpp"
#include "solver/vector_needs.hpp"

namespace solenoid {

/// x += M (b - A x) until the residual is small, with the cycle in precision S.
template <class S>
class CycleIteration {
 public:
  CycleIteration(Engine& engine, CyclePreconditioner<S>& m) : m_(m), residual_(engine, m.outer().level().size()) {}

  /// Beside b and x: the residual.
  static VectorNeeds needs() { return on_finest<double>(1); }

  void run(const double* b, double* x, Convergence& convergence) {
    Kernels<double>& kernels = m_.outer();
    double* r = residual_.data();
    const double norm_b = std::sqrt(kernels.dot(b, b));
    if (norm_b == 0.0) kernels.zero(x);
    double scale = norm_b;
    for (;; ++convergence.iterations) {
      kernels.residual(b, x, r);
      const double norm = std::sqrt(kernels.dot(r, r));
      if (convergence.iterations == 0) scale = convergence.scale(norm_b, norm);
      if (convergence.stop(norm_b == 0.0 ? 0.0 : norm / scale, r)) return;
      add(kernels, m_.of(r), x);
    }
  }

 private:
  CyclePreconditioner<S>& m_;
  Vector<double> residual_;
};

}  // namespace solenoid
