#pragma once
/// \file
/// The methods on a hierarchy of levels: GMRES, V-cycles, full multigrid.

#include <cmath>
#include <memory>
#include <type_traits>
#include <vector>

#include "solenoid/solver.hpp"
#include "solver/hierarchy.hpp"
#include "solver/krylov.hpp"
#include "solver/multigrid/cycle.hpp"

namespace solenoid {

/// One solve: the levels, the engine's data and the methods, in the precision S of the cycle.
template <class S>
class Solve {
 public:
  Solve(Engine& engine, const Hierarchy& hierarchy, const SolverOptions& options)
      : engine_(engine), hierarchy_(hierarchy), options_(options), cycle_(engine, hierarchy, cycle_of(options)) {
    if constexpr (!std::is_same_v<S, double>) {
      outer_ = make_kernels<double>(engine, hierarchy.finest(), options.multigrid.local_solver);
    }
    const int finest = hierarchy.size() - 1;
    for (int level = options.method == Method::fmg ? 0 : finest; level <= finest; ++level) cycle_.record(level);
  }

  [[nodiscard]] Cycle<S>& cycle() { return cycle_; }
  /// Kernels of the finest level in the precision of the solution.
  Kernels<double>& outer() {
    if constexpr (std::is_same_v<S, double>) {
      return cycle_.kernels();
    } else {
      return *outer_;
    }
  }

  /// To be called before run(): memory that methods use, so that nothing is allocated during a solve (unless it needs
  /// more iterations than expected).
  void reserve() {
    const std::int64_t size = hierarchy_.finest().size();
    const int iterations = expected_iterations(options_);
    if (options_.method != Method::gmres) work_ = Vector<double>(engine_, size);
    if (options_.method == Method::fmg) reserve_nested();
    if (options_.method != Method::gmres) return;
    if (options_.side == PreconditionerSide::right) {
      right_.reserve_basis(engine_, size, iterations + 1);
      right_.reserve_preconditioned(engine_, size, iterations);
      if constexpr (!std::is_same_v<S, double>) right_.reserve_work(engine_, size);
    } else {
      left_.reserve_basis(engine_, size, iterations + 1);
      left_.reserve_work(engine_, size);
    }
  }

  void run(const double* b, double* x, Convergence& convergence) {
    switch (options_.method) {
      case Method::gmres: return gmres(b, x, convergence);
      case Method::vcycle: return vcycles(b, x, convergence);
      case Method::fmg: return full_multigrid(b, x, convergence);
    }
  }

 private:
  /// A level of full multigrid, in double precision. The finest one has its vectors from the caller.
  struct Nested {
    std::unique_ptr<Kernels<double>> owned;  // or nullptr
    Kernels<double>* kernels = nullptr;
    Vector<double> load{};
    Vector<double> value{};
  };

  void reserve_nested() {
    const int levels = hierarchy_.size();
    for (int l = 0; l < levels; ++l) {
      const Level& level = *hierarchy_.levels[l];
      Nested nested;
      if (l == levels - 1) {
        nested.kernels = &outer();
      } else if constexpr (std::is_same_v<S, double>) {
        nested.kernels = &cycle_.kernels(l);
      } else {
        nested.owned = make_kernels<double>(engine_, level, options_.multigrid.local_solver);
        nested.kernels = nested.owned.get();
      }
      if (l > 0) nested.kernels->prepare_transfer(*hierarchy_.levels[l - 1]);
      if (l < levels - 1) {
        nested.load = Vector<double>(engine_, level.size());
        nested.value = Vector<double>(engine_, level.size());
      }
      nested_.push_back(std::move(nested));
    }
  }

  /// z = M r: one V-cycle.
  void precondition(const double* r, S* z) {
    cycle_.kernels().from_double(r, cycle_.right_hand_side());
    cycle_.kernels().copy(cycle_.run(), z);
  }

  void gmres(const double* b, double* x, Convergence& convergence) {
    if (options_.side == PreconditionerSide::right) {
      const Preconditioner<double, S> right = [this](const double* r, S* z) { precondition(r, z); };
      return gmres_right<double, S>(engine_, outer(), right, b, x, true, options_.restart, convergence, right_);
    }
    const Preconditioner<double, double> left = [this](const double* r, double* z) {
      cycle_.kernels().from_double(r, cycle_.right_hand_side());
      widen(cycle_.run(), z);
    };
    constexpr double trust = std::is_same_v<S, double> ? 0.0 : 1e-5;
    gmres_left<double>(engine_, outer(), left, b, x, options_.restart, trust, convergence, left_);
  }

  void widen(const S* from, double* to) {
    if constexpr (std::is_same_v<S, double>) {
      outer().copy(from, to);
    } else {
      outer().from_float(from, to);
    }
  }
  void add(Kernels<double>& kernels, const S* correction, double* x) {
    if constexpr (std::is_same_v<S, double>) {
      kernels.axpy(1.0, correction, x);
    } else {
      constexpr double one = 1.0;
      kernels.axpys_float(1, &one, &correction, x);
    }
  }

  /// x += M (b - A x) until the residual is small.
  void vcycles(const double* b, double* x, Convergence& convergence) {
    const double norm_b = std::sqrt(outer().dot(b, b));
    Vector<double>& r = work_;
    for (;; ++convergence.iterations) {
      outer().residual(b, x, r.data());
      const double norm = std::sqrt(outer().dot(r.data(), r.data()));
      if (convergence.stop(norm_b == 0.0 ? 0.0 : norm / norm_b)) return;
      cycle_.kernels().from_double(r.data(), cycle_.right_hand_side());
      add(outer(), cycle_.run(), x);
    }
  }

  /// Full multigrid: x_l = P x_{l-1}, then on each level x_l += M_l (b_l - A_l x_l) once or more often. Solution and
  /// residual in double. The residual of the result is reported; it is not compared with rtol.
  void full_multigrid(const double* b, double* x, Convergence& convergence) {
    const int levels = hierarchy_.size();
    const double norm_b = std::sqrt(outer().dot(b, b));
    Vector<double>& r = work_;
    const auto kernels = [&](int l) -> Kernels<double>& { return *nested_[l].kernels; };
    const auto load = [&](int l) { return l == levels - 1 ? b : nested_[l].load.data(); };
    const auto value = [&](int l) { return l == levels - 1 ? x : nested_[l].value.data(); };
    for (int l = levels - 1; l > 0; --l)
      kernels(l).restrict_to(*hierarchy_.levels[l - 1], load(l), nested_[l - 1].load.data());
    for (int l = 0; l < levels; ++l) {
      if (l == 0) {
        kernels(l).zero(value(l));
      } else {
        kernels(l).prolong(*hierarchy_.levels[l - 1], value(l - 1), value(l));
      }
      for (int cycle = 0; cycle < options_.cycles; ++cycle) {
        const bool from_zero = l == 0 && cycle == 0;
        if (!from_zero) kernels(l).residual(load(l), value(l), r.data());
        cycle_.kernels(l).from_double(from_zero ? load(l) : r.data(), cycle_.right_hand_side(l));
        add(kernels(l), cycle_.run(l), value(l));
      }
      if (convergence.monitor && !convergence.monitor(0, 1.0)) {
        convergence.reason = "interrupted";
        return;
      }
    }
    convergence.iterations = options_.cycles;
    outer().residual(b, x, r.data());
    const double norm = norm_b == 0.0 ? 0.0 : std::sqrt(outer().dot(r.data(), r.data())) / norm_b;
    convergence.history = {1.0, norm};
    convergence.converged = std::isfinite(norm) && norm < 0.5;
    convergence.reason = convergence.converged ? "full multigrid is done"
                         : std::isfinite(norm) ? "full multigrid: the residual did not fall"
                                               : "the residual is not finite";
  }

  Engine& engine_;
  const Hierarchy& hierarchy_;
  const SolverOptions& options_;
  Cycle<S> cycle_;
  std::unique_ptr<Kernels<double>> outer_;
  KrylovSpace<double, S> right_;
  KrylovSpace<double> left_;
  Vector<double> work_;
  std::vector<Nested> nested_;
};

}  // namespace solenoid
