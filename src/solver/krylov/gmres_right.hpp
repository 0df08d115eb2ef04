#pragma once
/// \file
/// GMRES with the preconditioner on the right, written against the kernel set.

#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "engine/engine.hpp"
#include "solver/krylov/convergence.hpp"
#include "solver/krylov/hessenberg.hpp"
#include "solver/krylov/space.hpp"

namespace solenoid {

/// What gmres_right needs for that many iterations (at most `restart`, if restart > 0).
template <class T, class S>
constexpr KrylovVectors gmres_right_vectors(int iterations) {
  return {.basis = iterations + 1, .preconditioned = iterations, .work = std::is_same_v<T, S> ? 0 : 1};
}

/// For Convergence::stop, which looks at residuals of outer iterations.
inline const double* residual_in(const double* r) { return r; }
inline const double* residual_in(const float* /*r*/) { return nullptr; }

/// Flexible right-preconditioned GMRES: minimises |b - A x| over x_0 + span(M v_j); M may change from step to step.
template <class T, class S>
void gmres_right(Engine& engine, Kernels<T>& kernels, const Precondition<T, S>& precondition, const T* b, T* x,
                 bool x_is_zero, int restart, Convergence& convergence, KrylovSpace<T, S>& space) {
  const std::int64_t size = kernels.level().size();
  const double norm_b = std::sqrt(kernels.dot(b, b));
  if (norm_b == 0.0) {
    kernels.zero(x);
    convergence.converged = true;
    convergence.reason = "the right-hand side is zero";
    convergence.history.push_back(0.0);
    return;
  }
  auto& [v, z, wide] = space;  // wide: M v in the precision of the outer iteration
  double scale = norm_b;
  bool after_cycle = false;
  for (;;) {
    space.reserve(engine, size, gmres_right_vectors<T, S>(0));
    double beta = norm_b;
    if (!x_is_zero) {
      kernels.residual(b, x, v[0].data());
      beta = std::sqrt(kernels.dot(v[0].data(), v[0].data()));
    }
    if (convergence.iterations == 0) scale = convergence.scale(norm_b, beta);
    // The true residual decides; it also ends a round that only the recurrence thought converged.
    if (!after_cycle && !convergence.history.empty()) convergence.history.pop_back();
    convergence.converged = false;
    if (convergence.stop(beta / scale, residual_in(x_is_zero ? b : v[0].data()))) return;
    // One that is small already has too much divergence.
    after_cycle = convergence.cycle_first && (convergence.iterations == 0 || beta / scale <= convergence.rtol);
    if (after_cycle) {
      space.reserve(engine, size, gmres_right_vectors<T, S>(1));
      precondition(x_is_zero ? b : v[0].data(), z[0].data());
      const std::vector<double> one{1.0};
      add_combination(kernels, one, z, x);
      x_is_zero = false;
      ++convergence.iterations;
      continue;
    }
    kernels.scale(static_cast<T>(1.0 / beta), x_is_zero ? b : v[0].data(), v[0].data());

    Hessenberg hessenberg(beta);
    int steps = 0;
    double skew = 0.0;
    bool stopped = false;
    while (!stopped && (restart <= 0 || steps < restart)) {
      space.reserve(engine, size, gmres_right_vectors<T, S>(steps + 1));
      precondition(v[steps].data(), z[steps].data());
      T* w = v[steps + 1].data();
      const T* direction = nullptr;
      if constexpr (std::is_same_v<T, S>) {
        direction = z[steps].data();
      } else {
        kernels.from_float(z[steps].data(), wide.data());
        direction = wide.data();
      }
      // A M is close to the identity: of v - A M v less has to be removed than of A M v.
      kernels.residual(v[steps].data(), direction, w);
      ++convergence.iterations;
      const Components of_w = components(kernels, v, steps + 1, w, skew);
      std::vector<double> column = of_w.along;
      for (double& entry : column) entry = -entry;
      column[steps] += 1.0;
      const double residual = hessenberg.append(std::move(column)) / scale;
      ++steps;
      stopped = convergence.stop(residual);
      if (!stopped) make_next(kernels, v, of_w, w);
    }
    const auto y = hessenberg.solve();
    bool finite = true;
    for (const double value : y) finite = finite && std::isfinite(value);
    if (!finite) return;  // the reason is recorded
    add_combination(kernels, y, z, x);
    x_is_zero = false;
    if (stopped && !convergence.converged) return;
    if (stopped && std::is_same_v<T, float>) return;  // inner solves take the recurrence's word
  }
}

}  // namespace solenoid
