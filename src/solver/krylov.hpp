#pragma once
/// \file
/// GMRES, written against the kernel set.

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.hpp"
#include "solenoid/solver.hpp"

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

/// Vectors of a Krylov method: one of T and, with a flexible preconditioner, one of S per iteration. They are kept for
/// the next solve; what is reserved need not be allocated during one.
template <class T, class S = T>
struct KrylovSpace {
  std::vector<Vector<T>> v;  ///< orthonormal basis
  std::vector<Vector<S>> z;  ///< preconditioned basis
  Vector<T> work;

  void reserve_basis(Engine& engine, std::int64_t size, int count) { grow(engine, size, count, v); }
  void reserve_preconditioned(Engine& engine, std::int64_t size, int count) { grow(engine, size, count, z); }
  void reserve_work(Engine& engine, std::int64_t size) {
    if (work.size() == 0) work = Vector<T>(engine, size);
  }

 private:
  template <class V>
  static void grow(Engine& engine, std::int64_t size, int count, V& vectors) {
    while (static_cast<int>(vectors.size()) < count) vectors.emplace_back(engine, size);
  }
};

/// Iterations that memory is reserved for, and predicted with: about one for each decimal digit.
inline int expected_iterations(const SolverOptions& options) {
  const int digits = static_cast<int>(std::lround(-std::log10(std::clamp(options.rtol, 1e-16, 0.1))));
  const int most = options.restart > 0 ? std::min(options.restart, options.max_iterations) : options.max_iterations;
  return std::clamp(digits, 1, std::max(1, most));
}

/// Removes the components of w along v[0..count) (classical Gram-Schmidt) and returns them, followed by the norm of
/// what is left; w comes back normalised. One pass for all products, the norm that of w less that of what was removed,
/// and one pass for the update are all, as long as that suffices. `skew` bounds what the basis so far lacks to be
/// orthonormal: cancellation magnifies it from vector to vector; before it exceeds `enough`, the vector is
/// orthogonalised once more.
template <class T>
std::vector<double> orthonormalise(Kernels<T>& kernels, const std::vector<Vector<T>>& v, int count, T* w,
                                   double& skew) {
  constexpr double enough = 1e-5;
  std::vector<const T*> factors(count + 1);  // the last one is w itself, for its norm
  for (int i = 0; i < count; ++i) factors[i] = v[i].data();
  factors[count] = w;
  std::vector<double> h(count + 1, 0.0);
  std::vector<double> product(count + 1);
  constexpr int passes = 2;
  for (int pass = 1; pass <= passes; ++pass) {
    kernels.dots(count + 1, factors.data(), w, product.data());
    const double before = product[count];
    double left = before;
    for (int i = 0; i < count; ++i) {
      h[i] += product[i];
      left -= product[i] * product[i];
      product[i] = -product[i];
    }
    const double magnified = (skew + std::numeric_limits<T>::epsilon()) * before;
    const bool accurate = left > 0.0 && magnified <= enough * left;
    h[count] = std::sqrt(accurate ? left : before);
    kernels.axpys(count, product.data(), factors.data(), accurate ? 1.0 / h[count] : 1.0, w);
    if (accurate) {
      skew = std::max(skew, magnified / left);
      break;
    }
    if (pass < passes) continue;
    h[count] = std::sqrt(kernels.dot(w, w));
    if (h[count] > 0.0) kernels.scale(static_cast<T>(1.0 / h[count]), w);
    break;
  }
  return h;
}

/// x += sum_i y[i] v[i], i < y.size().
template <class T, class S>
void add_combination(Kernels<T>& kernels, const std::vector<double>& y, const std::vector<Vector<S>>& v, T* x) {
  std::vector<const S*> vectors(y.size());
  for (std::size_t i = 0; i < y.size(); ++i) vectors[i] = v[i].data();
  const int count = static_cast<int>(y.size());
  if constexpr (std::is_same_v<T, S>) {
    kernels.axpys(count, y.data(), vectors.data(), 1.0, x);
  } else {
    kernels.axpys_float(count, y.data(), vectors.data(), x);
  }
}

/// Flexible right-preconditioned GMRES: minimises |b - A x| over x_0 + span(M v_j); M may change from step to step.
/// Memory: one vector of T and one of S per iteration (at most `restart` of each, if restart > 0) and, if T and S
/// differ, one of T.
template <class T, class S>
void gmres_right(Engine& engine, Kernels<T>& kernels, const Preconditioner<T, S>& precondition, const T* b, T* x,
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
  if constexpr (!std::is_same_v<T, S>) space.reserve_work(engine, size);
  auto& [v, z, wide] = space;  // wide: M v in the precision of the outer iteration
  for (;;) {
    space.reserve_basis(engine, size, 1);
    double beta = norm_b;
    if (x_is_zero) {
      kernels.copy(b, v[0].data());
    } else {
      kernels.residual(b, x, v[0].data());
      beta = std::sqrt(kernels.dot(v[0].data(), v[0].data()));
    }
    // The true residual decides; it also ends a round that only the recurrence thought converged.
    if (!convergence.history.empty()) convergence.history.pop_back();
    convergence.converged = false;
    if (convergence.stop(beta / norm_b)) return;
    kernels.scale(static_cast<T>(1.0 / beta), v[0].data());

    Hessenberg hessenberg(beta);
    int steps = 0;
    double skew = 0.0;
    bool stopped = false;
    while (!stopped && (restart <= 0 || steps < restart)) {
      space.reserve_preconditioned(engine, size, steps + 1);
      space.reserve_basis(engine, size, steps + 2);
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
      std::vector<double> column = orthonormalise(kernels, v, steps + 1, w, skew);
      for (double& entry : column) entry = -entry;
      column[steps] += 1.0;
      const double residual = hessenberg.append(std::move(column)) / norm_b;
      ++steps;
      stopped = convergence.stop(residual);
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

/// Left-preconditioned GMRES: minimises |M (b - A x)|; residuals are those of the preconditioned system. As above, what
/// the recurrence thinks converged is checked against the residual itself. Where M works in lower precision, the
/// recurrence is believed down to a reduction by `trust` only: then a new round starts from the residual itself.
template <class T>
void gmres_left(Engine& engine, Kernels<T>& kernels, const Preconditioner<T, T>& precondition, const T* b, T* x,
                int restart, double trust, Convergence& convergence, KrylovSpace<T>& space) {
  const std::int64_t size = kernels.level().size();
  space.reserve_work(engine, size);
  space.reserve_basis(engine, size, 1);
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
      space.reserve_basis(engine, size, steps + 2);
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
