#pragma once
/// \file
/// GMRES with the preconditioner on the left, written against the kernel set.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/engine.hpp"
#include "solver/krylov/convergence.hpp"
#include "solver/krylov/hessenberg.hpp"
#include "solver/krylov/space.hpp"

namespace solenoid {

/// What gmres_left needs for that many iterations (at most `restart`, if restart > 0).
constexpr KrylovVectors gmres_left_vectors(int iterations) { return {.basis = iterations + 1, .work = 1}; }

/// Left-preconditioned GMRES: minimises |M (b - A x)| over x_0 + span(v_j); residuals are those of the preconditioned
/// system.
///
/// M works in lower precision: M w has an error in proportion to |w|, and that of M A v_j would soon exceed the
/// residual. So this column is not computed but measured: x goes from the best combination so far, of residual z, by
/// the length s of that residual along v_j, and M A v_j = (z - M (b - A x)) / s. Such errors fall as the residual does.
/// Space and minimum are the same; M is applied once for each iteration, once for M b and at restarts.
///
/// M r is known but for the part `uncertain` of its length. With m the residual measured last, and column i known but
/// for d_i, the residual of a combination is known but for e,
///   e^2 = (uncertain |m|)^2 + sum_i (d_i c_i)^2,   c_i what v_i is changed by since that measurement,
/// and the next column but for ((uncertain |m|)^2 + e^2)^(1/2) / s. A residual counts as no less than e, so that
/// nothing is left to be checked; where e exceeds what the recurrence says, a residual is measured and a new space
/// begun.
template <class T>
void gmres_left(Engine& engine, Kernels<T>& kernels, const Precondition<T, T>& precondition, const T* b, T* x,
                bool x_is_zero, int restart, double uncertain, Convergence& convergence, KrylovSpace<T>& space) {
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
  const auto measure = [&] {  // v_0 = M (b - A x)
    kernels.residual(b, x, work.data());
    precondition(work.data(), v[0].data());
    return std::sqrt(kernels.dot(v[0].data(), v[0].data()));
  };
  double beta = x_is_zero ? norm_b : measure();
  bool stopped = convergence.stop(beta / norm_b);
  while (!stopped) {
    kernels.scale(static_cast<T>(1.0 / beta), v[0].data(), v[0].data());
    Hessenberg hessenberg(beta);
    std::vector<double> added;  // to x, of each v_j
    const auto go_to = [&](const std::vector<double>& y) {
      std::vector<double> way = y;
      for (std::size_t i = 0; i < added.size(); ++i) way[i] -= added[i];
      add_combination(kernels, way, v, x);
      added = y;
    };
    std::vector<double> best;     // of the columns so far
    std::vector<double> unknown;  // d_i
    double error = uncertain * beta;
    double residual = beta;
    double skew = 0.0;
    bool trusted = true;
    for (int j = 0; !stopped && trusted && (restart <= 0 || j < restart); ++j) {
      space.reserve(engine, size, gmres_left_vectors(j + 1));
      std::vector<double> z = hessenberg.residual();
      const double step = std::copysign(residual, z[j]);
      std::vector<double> trial = best;
      trial.push_back(step);
      go_to(trial);
      kernels.residual(b, x, work.data());
      precondition(work.data(), v[j + 1].data());
      ++convergence.iterations;
      const Components of_w = components(kernels, v, j + 1, v[j + 1].data(), skew);
      const std::vector<double>& measured = of_w.along;
      double square = 0.0;
      z.push_back(0.0);
      for (std::size_t i = 0; i < z.size(); ++i) {
        z[i] = (z[i] - measured[i]) / step;
        square += measured[i] * measured[i];
      }
      const double of_measured = uncertain * std::sqrt(square);
      unknown.push_back(std::hypot(of_measured, error) / residual);
      residual = hessenberg.append(std::move(z));
      best = hessenberg.solve();
      error = of_measured;
      for (std::size_t i = 0; i < best.size(); ++i) error = std::hypot(error, unknown[i] * (best[i] - trial[i]));
      trusted = error <= residual;
      stopped = convergence.stop(std::max(error, residual) / norm_b);
      if (!stopped && trusted) make_next(kernels, v, of_w, v[j + 1].data());
    }
    for (const double value : best) {
      if (!std::isfinite(value)) return;  // the reason is recorded
    }
    go_to(best);
    if (stopped) return;
    beta = measure();
    convergence.history.pop_back();
    stopped = convergence.stop(beta / norm_b);
  }
}

}  // namespace solenoid
