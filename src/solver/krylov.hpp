#pragma once
/// \file
/// GMRES, written against the kernel set.

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "engine/engine.hpp"

namespace solenoid {

/// How an iteration is going; shared by all outer methods.
struct Convergence {
  double rtol = 1e-8;
  int max_iterations = 50;
  /// Called with the relative residual after every iteration; false stops the solve ("interrupted").
  std::function<bool(int iteration, double residual)> monitor;

  bool converged = false;
  std::string reason;
  int iterations = 0;
  std::vector<double> history{};  ///< relative residual norms, the initial one first

  /// Records a residual. True if the iteration has to stop, for whatever reason.
  bool stop(double residual) {
    history.push_back(residual);
    if (!std::isfinite(residual)) {
      reason = "the residual is not finite";
      return true;
    }
    if (residual <= rtol) {
      converged = true;
      reason = "relative residual below rtol";
      return true;
    }
    if (monitor && !monitor(iterations, residual)) {
      reason = "interrupted";
      return true;
    }
    if (iterations >= max_iterations) {
      reason = "max_iterations reached";
      return true;
    }
    return false;
  }
};

/// z = M r for the preconditioner M; S is the precision it works in.
template <class T, class S>
using Preconditioner = std::function<void(const T* r, S* z)>;

/// The least-squares problem of GMRES: Hessenberg matrix, Givens rotations, residual.
class Hessenberg {
 public:
  explicit Hessenberg(double beta) : g_{beta} {}
  /// Appends column j (entries 0..j+1) and returns the new residual norm.
  double append(std::vector<double> column);
  /// Coefficients y of the minimiser.
  [[nodiscard]] std::vector<double> solve() const;

 private:
  std::vector<std::vector<double>> columns_;
  std::vector<double> cosine_;
  std::vector<double> sine_;
  std::vector<double> g_;
};

/// Removes the components of w along v[0..count) (classical Gram-Schmidt, repeated if much cancelled) and returns them,
/// followed by the norm of what is left; w comes back normalised.
/// Traffic: count + 1 vectors read for the products, count + 2 moved for the update.
template <class T>
std::vector<double> orthonormalise(Kernels<T>& kernels, const std::vector<Vector<T>>& v, int count, T* w) {
  std::vector<const T*> basis(count);
  for (int i = 0; i < count; ++i) basis[i] = v[i].data();
  std::vector<double> h(count + 1, 0.0);
  std::vector<double> product(count);
  double before = std::sqrt(kernels.dot(w, w));
  for (int pass = 0; pass < 2; ++pass) {
    kernels.dots(count, basis.data(), w, product.data());
    for (int i = 0; i < count; ++i) {
      h[i] += product[i];
      product[i] = -product[i];
    }
    kernels.axpys(count, product.data(), basis.data(), w);
    h[count] = std::sqrt(kernels.dot(w, w));
    if (h[count] > 0.1 * before) break;
    before = h[count];
  }
  if (h[count] > 0.0) kernels.scale(static_cast<T>(1.0 / h[count]), w);
  return h;
}

/// Flexible right-preconditioned GMRES: minimises |b - A x| over x_0 + span(M v_j); M may change from step to step.
/// Memory: one vector of T and one of S per iteration, as they are needed (at most `restart` of each, if restart > 0).
template <class T, class S>
void gmres_right(Engine& engine, Kernels<T>& kernels, const Preconditioner<T, S>& precondition, const T* b, T* x,
                 bool x_is_zero, int restart, Convergence& convergence) {
  const std::int64_t size = kernels.level().size();
  const double norm_b = std::sqrt(kernels.dot(b, b));
  if (norm_b == 0.0) {
    kernels.zero(x);
    convergence.converged = true;
    convergence.reason = "the right-hand side is zero";
    convergence.history.push_back(0.0);
    return;
  }
  Vector<T> wide(engine, size);  // M v in the precision of the outer iteration
  std::vector<Vector<T>> v;
  std::vector<Vector<S>> z;
  for (;;) {
    if (v.empty()) v.emplace_back(engine, size);
    if (x_is_zero) {
      kernels.copy(b, v[0].data());
    } else {
      kernels.residual(b, x, v[0].data());
    }
    const double beta = std::sqrt(kernels.dot(v[0].data(), v[0].data()));
    // The true residual decides; it also ends a round that only the recurrence thought converged.
    if (!convergence.history.empty()) convergence.history.pop_back();
    convergence.converged = false;
    if (convergence.stop(beta / norm_b)) return;
    kernels.scale(static_cast<T>(1.0 / beta), v[0].data());

    Hessenberg hessenberg(beta);
    int steps = 0;
    bool stopped = false;
    while (!stopped && (restart <= 0 || steps < restart)) {
      if (static_cast<int>(z.size()) <= steps) z.emplace_back(engine, size);
      if (static_cast<int>(v.size()) <= steps + 1) v.emplace_back(engine, size);
      precondition(v[steps].data(), z[steps].data());
      T* w = v[steps + 1].data();
      const T* direction = nullptr;
      if constexpr (std::is_same_v<T, S>) {
        direction = z[steps].data();
      } else {
        kernels.from_float(z[steps].data(), wide.data());
        direction = wide.data();
      }
      kernels.apply(direction, w);
      ++convergence.iterations;
      const double residual = hessenberg.append(orthonormalise(kernels, v, steps + 1, w)) / norm_b;
      ++steps;
      stopped = convergence.stop(residual);
    }
    const auto y = hessenberg.solve();
    bool finite = true;
    for (const double value : y) finite = finite && std::isfinite(value);
    if (!finite) return;  // the reason is recorded
    for (int i = 0; i < steps; ++i) {
      if constexpr (std::is_same_v<T, S>) {
        kernels.axpy(static_cast<T>(y[i]), z[i].data(), x);
      } else {
        kernels.axpy_float(static_cast<T>(y[i]), z[i].data(), x);
      }
    }
    x_is_zero = false;
    if (stopped && !convergence.converged) return;
    if (stopped && std::is_same_v<T, float>) return;  // inner solves take the recurrence's word
  }
}

/// Left-preconditioned GMRES: minimises |M (b - A x)|; residuals are those of the preconditioned system. As above, what
/// the recurrence thinks converged is checked against the residual itself. Where M works in lower precision, the
/// recurrence is believed down to a reduction by `trust` only: then a new round starts from the residual itself.
template <class T>
void gmres_left(Engine& engine, Kernels<T>& kernels, const Preconditioner<T, T>& precondition, const T* b, T* x,
                int restart, double trust, Convergence& convergence) {
  const std::int64_t size = kernels.level().size();
  Vector<T> work(engine, size);
  std::vector<Vector<T>> v;
  v.emplace_back(engine, size);
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
    bool stopped = false;
    double reduction = 1.0;
    while (!stopped && reduction > trust && (restart <= 0 || steps < restart)) {
      if (static_cast<int>(v.size()) <= steps + 1) v.emplace_back(engine, size);
      T* w = v[steps + 1].data();
      kernels.apply(v[steps].data(), work.data());
      precondition(work.data(), w);
      ++convergence.iterations;
      const double residual = hessenberg.append(orthonormalise(kernels, v, steps + 1, w)) / norm_b;
      ++steps;
      reduction = residual * norm_b / beta;
      stopped = convergence.stop(residual);
    }
    const auto y = hessenberg.solve();
    for (const double value : y) {
      if (!std::isfinite(value)) return;  // the reason is recorded
    }
    for (int i = 0; i < steps; ++i) kernels.axpy(static_cast<T>(y[i]), v[i].data(), x);
    if (stopped && !convergence.converged) return;
    kernels.residual(b, x, work.data());
    precondition(work.data(), v[0].data());
    beta = std::sqrt(kernels.dot(v[0].data(), v[0].data()));
  }
}

}  // namespace solenoid
