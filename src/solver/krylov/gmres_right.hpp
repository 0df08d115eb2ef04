#pragma once
/// \file
/// GMRES with the preconditioner on the right, written against the kernel set.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/engine.hpp"
#include "solver/krylov/convergence.hpp"
#include "solver/krylov/hessenberg.hpp"
#include "solver/krylov/space.hpp"

namespace solenoid {

/// What gmres_right needs for that many iterations (at most `restart`, if restart > 0).
template <class T, class S>
constexpr KrylovVectors gmres_right_vectors(int iterations, int restart) {
  return {.basis = iterations + 1,
          .preconditioned = iterations,
          .work = std::is_same_v<T, S> ? 0 : 1,
          .previous = restart > 1 ? 1 : 0};
}

/// For Convergence::stop, which looks at residuals of outer iterations.
inline const double* residual_in(const double* r) { return r; }
inline const double* residual_in(const float* /*r*/) { return nullptr; }

/// The space in which a round of GMRES looks for a correction: A times the directions so far in an orthonormal basis v,
/// the first vector of which is the residual, of norm beta.
template <class T>
class Round {
 public:
  Round(Kernels<T>& kernels, std::vector<Vector<T>>& v, double beta) : kernels_(kernels), v_(v), hessenberg_(beta) {}

  /// Directions.
  [[nodiscard]] int size() const { return size_; }
  /// Adds a direction; returns the norm of the least residual.
  double extend(const T* direction) {
    // A M is close to the identity: of v - A M v less has to be removed than of A M v.
    T* const w = v_[size_ + 1].data();
    kernels_.residual(v_[size_].data(), direction, w);
    of_next_ = components(kernels_, v_, size_ + 1, w, skew_);
    std::vector<double> column = of_next_.along;
    for (double& entry : column) entry = -entry;
    column[size_] += 1.0;
    ++size_;
    return hessenberg_.append(std::move(column));
  }
  /// The vector that the next direction is made of: v[size()].
  void make_next() { solenoid::make_next(kernels_, v_, of_next_, v_[size_].data()); }
  /// The parts of the directions in the correction that leaves this residual.
  [[nodiscard]] std::vector<double> minimiser() const { return hessenberg_.solve(); }

 private:
  Kernels<T>& kernels_;
  std::vector<Vector<T>>& v_;
  Hessenberg hessenberg_;
  int size_ = 0;
  double skew_ = 0.0;
  Components of_next_;
};

/// Flexible right-preconditioned GMRES: minimises |b - A x| over x_0 + span(M v_j); M may change from step to step. A
/// round of `restart` vectors ends with the correction of the round before it in place of an M v_j (LGMRES of Baker,
/// Jessup and Manteuffel, 2005): without it rounds tend to repeat each other's errors.
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
  auto& [v, z, wide, previous] = space;  // wide: M v in the precision of the outer iteration
  bool has_previous = false;
  double scale = norm_b;
  bool after_cycle = false;
  for (;;) {
    space.reserve(engine, size, gmres_right_vectors<T, S>(0, restart));
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
      space.reserve(engine, size, gmres_right_vectors<T, S>(1, restart));
      precondition(x_is_zero ? b : v[0].data(), z[0].data());
      const std::vector<double> one{1.0};
      add_combination(kernels, one, z, x);
      x_is_zero = false;
      ++convergence.iterations;
      continue;
    }
    kernels.scale(static_cast<T>(1.0 / beta), x_is_zero ? b : v[0].data(), v[0].data());

    Round round(kernels, v, beta);
    bool stopped = false;
    bool with_previous = false;
    double left = 1.0;
    while (!stopped && (restart <= 0 || round.size() < restart)) {
      const int last = round.size();
      space.reserve(engine, size, gmres_right_vectors<T, S>(last + 1, restart));
      if (last > 0) round.make_next();
      precondition(v[last].data(), z[last].data());
      if constexpr (std::is_same_v<T, S>) {
        left = round.extend(z[last].data()) / scale;
      } else {
        kernels.from_float(z[last].data(), wide.data());
        left = round.extend(wide.data()) / scale;
      }
      ++convergence.iterations;
      if (has_previous && round.size() + 1 == restart && left > convergence.rtol) {
        space.reserve(engine, size, gmres_right_vectors<T, S>(restart, restart));
        round.make_next();
        left = round.extend(previous.data()) / scale;
        with_previous = true;
      }
      stopped = convergence.stop(left);
    }
    std::vector<double> y = round.minimiser();
    bool finite = true;
    for (const double value : y) finite = finite && std::isfinite(value);
    if (!finite) return;  // the reason is recorded
    const double of_previous = with_previous ? y.back() : 0.0;
    if (with_previous) y.pop_back();
    if (restart > 1 && !stopped) {
      with_previous ? kernels.scale(static_cast<T>(of_previous), previous.data(), previous.data())
                    : kernels.zero(previous.data());
      add_combination(kernels, y, z, previous.data());
      kernels.axpy(T(1), previous.data(), x);
      const double image = std::sqrt(std::max(0.0, beta * beta - left * scale * left * scale));  // |A previous|
      has_previous = image > 0.0;
      if (has_previous) kernels.scale(static_cast<T>(1.0 / image), previous.data(), previous.data());
    } else {
      add_combination(kernels, y, z, x);
      if (with_previous) kernels.axpy(static_cast<T>(of_previous), previous.data(), x);
    }
    x_is_zero = false;
    if (stopped && !convergence.converged) return;
    if (stopped && std::is_same_v<T, float>) return;  // inner solves take the recurrence's word
  }
}

}  // namespace solenoid
