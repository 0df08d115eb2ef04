#pragma once
/// \file
/// GMRES with the preconditioner on the left, written against the kernel set.

#include <cmath>
#include <cstdint>
#include <vector>

#include "engine/engine.hpp"
#include "solver/krylov/convergence.hpp"
#include "solver/krylov/hessenberg.hpp"
#include "solver/krylov/space.hpp"

namespace solenoid {

/// What gmres_left needs for that many iterations (at most `restart`, if restart > 0).
constexpr KrylovVectors gmres_left_vectors(int iterations) { return {.basis = iterations + 1, .work = 1}; }

/// Left-preconditioned GMRES: minimises |M (b - A x)|; residuals are those of the preconditioned system. As above, what
/// the recurrence thinks converged is checked against the residual itself. Where M works in lower precision, the
/// recurrence is believed down to a reduction by `trust` only: then a new round starts from the residual itself.
template <class T>
void gmres_left(Engine& engine, Kernels<T>& kernels, const Precondition<T, T>& precondition, const T* b, T* x,
                int restart, double trust, Convergence& convergence, KrylovSpace<T>& space) {
  const std::int64_t size = kernels.level().size();
  space.reserve(engine, size, gmres_left_vectors(0));
  auto& v = space.v;
  auto& work = space.work;
  precondition(b, v[0].data());
  const double norm_b = std::sqrt(kernels.dot(v[0].data(), v[0].data()));
  if (norm_b == 0.0) {
    kernels.zero(x);
    convergence.converged = true;
    convergence.reason = "the right-hand side is zero";
    convergence.history.push_back(0.0);
    return;
  }
  for (double beta = norm_b;;) {
    if (!convergence.history.empty()) convergence.history.pop_back();
    convergence.converged = false;
    if (convergence.stop(beta / norm_b)) return;
    kernels.scale(static_cast<T>(1.0 / beta), v[0].data());
    Hessenberg hessenberg(beta);
    int steps = 0;
    double skew = 0.0;
    bool stopped = false;
    double reduction = 1.0;
    while (!stopped && reduction > trust && (restart <= 0 || steps < restart)) {
      space.reserve(engine, size, gmres_left_vectors(steps + 1));
      T* w = v[steps + 1].data();
      kernels.apply(v[steps].data(), work.data());
      precondition(work.data(), w);
      ++convergence.iterations;
      const double residual = hessenberg.append(orthonormalise(kernels, v, steps + 1, w, skew)) / norm_b;
      ++steps;
      reduction = residual * norm_b / beta;
      stopped = convergence.stop(residual);
    }
    const auto y = hessenberg.solve();
    for (const double value : y) {
      if (!std::isfinite(value)) return;  // the reason is recorded
    }
    add_combination(kernels, y, v, x);
    if (stopped && !convergence.converged) return;
    kernels.residual(b, x, work.data());
    precondition(work.data(), v[0].data());
    beta = std::sqrt(kernels.dot(v[0].data(), v[0].data()));
  }
}

}  // namespace solenoid
