#pragma once
/// \file
/// The methods on a hierarchy of levels: GMRES, cycles alone, full multigrid.

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "base/host_vector.hpp"
#include "solenoid/solver.hpp"
#include "solver/hierarchy.hpp"
#include "solver/krylov/gmres_left.hpp"
#include "solver/krylov/gmres_right.hpp"
#include "solver/multigrid/cycle_iteration.hpp"
#include "solver/multigrid/full_multigrid.hpp"
#include "solver/multigrid/preconditioner.hpp"
#include "solver/vector_needs.hpp"

namespace solenoid {

/// The numbers of y behind the whole blocks of cells, which not every kernel writes, become zero.
void zero_end(Engine& engine, const Level& level, double* y);

/// AffineMap::sine of its cells.
double sine_of(const Level& level);

/// What of a solve does not depend on the precision of the cycle.
class LinearSolver {
 public:
  virtual ~LinearSolver() = default;
  virtual Preconditioner& preconditioner() = 0;
  /// Kernels of the finest level in the precision of the solution.
  virtual Kernels<double>& outer() = 0;
  /// To be called before run(): memory that methods use, so that nothing is allocated during a solve (unless it needs
  /// more iterations than expected). `room`: numbers that work() is to have, if it is wanted.
  virtual void reserve(std::int64_t room = 0) = 0;
  /// A vector that GMRES and cycles alone work in: what they leave in it means nothing, between runs it is anyone's.
  virtual Vector<double>& work() = 0;
  /// For full multigrid, after reserve(): FullMultigrid::set_coarse_loads.
  virtual void set_coarse_loads(const AssembleLoad& assemble) = 0;
  /// From x, of which is known whether it is zero. Full multigrid does not start from anything: there it must be.
  virtual void run(const double* b, double* x, bool x_is_zero, Convergence& convergence) = 0;
  /// To be called after run(), with its result: what the method says of its error (FullMultigrid::assess).
  virtual std::optional<ErrorEstimate> assess(const double* x, bool lifted, Convergence& convergence) = 0;
};

/// One solve: the levels, the engine's data and the methods, with the cycle in precision S. `options` must outlive it.
template <class S>
class Solve final : public LinearSolver {
 public:
  Solve(Engine& engine, const Hierarchy& hierarchy, const SolverOptions& options)
      : engine_(engine), hierarchy_(hierarchy), options_(options), preconditioner_(engine, hierarchy, options) {}

  [[nodiscard]] Cycle<S>& cycle() { return preconditioner_.cycle(); }
  Preconditioner& preconditioner() override { return preconditioner_; }
  Kernels<double>& outer() override { return preconditioner_.outer(); }

  void reserve(std::int64_t room = 0) override {
    const std::int64_t size = hierarchy_.finest().size();
    is_lent_ = room > 0;
    if (is_lent_) work() = Vector<double>(engine_, room);
    switch (options_.method) {
      case Method::gmres:
        if (options_.side == PreconditionerSide::right) {
          right_.reserve(engine_, size, right_vectors(options_, sine_of(hierarchy_.finest())));
        } else {
          left_.reserve(engine_, size, left_vectors(options_, sine_of(hierarchy_.finest())));
        }
        break;
      case Method::vcycle: cycles_.reserve(engine_, size); break;
      case Method::fmg:
        full_ = std::make_unique<FullMultigrid<S>>(engine_, hierarchy_, options_, preconditioner_);
        break;
    }
  }
  Vector<double>& work() override {
    if (options_.method != Method::gmres) return cycles_.residual;
    return options_.side == PreconditionerSide::right ? right_.work : left_.work;
  }

  void set_coarse_loads(const AssembleLoad& assemble) override { full_->set_coarse_loads(assemble); }

  /// What reserve() allocates. `sine`: of the angles of cells, AffineMap::sine.
  static VectorNeeds needs(const SolverOptions& options, double sine) {
    switch (options.method) {
      case Method::gmres:
        return options.side == PreconditionerSide::right ? KrylovSpace<double, S>::needs(right_vectors(options, sine))
                                                         : KrylovSpace<double>::needs(left_vectors(options, sine));
      case Method::vcycle: return CycleVectors::needs();
      case Method::fmg: return FullMultigrid<S>::needs();
    }
    return {};
  }

  void run(const double* b, double* x, bool x_is_zero, Convergence& convergence) override {
    if (is_lent_) zero_end(engine_, hierarchy_.finest(), work().data());
    switch (options_.method) {
      case Method::gmres: return gmres(b, x, x_is_zero, convergence);
      case Method::vcycle: return cycle_iteration<S>(preconditioner_, b, x, convergence, cycles_);
      case Method::fmg: return full_->run(b, x, convergence);
    }
  }
  std::optional<ErrorEstimate> assess(const double* x, bool lifted, Convergence& convergence) override {
    if (options_.method != Method::fmg) return {};
    return full_->assess(x, lifted, convergence);
  }

 private:
  /// Iterations that memory is reserved for: about one for each decimal digit, more where cells are sheared
  /// (docs/sheared.md, "What is solved"); who wants restarts expects twice as many.
  static int expected_iterations(const SolverOptions& options, double sine) {
    const double digits = -std::log10(std::clamp(options.rtol, 1e-16, 0.1)) / std::pow(sine, 3);
    const auto iterations = static_cast<int>(std::lround(digits));
    const int most = options.restart > 0 ? std::min(options.restart, options.max_iterations) : options.max_iterations;
    return std::clamp(options.restart > 0 ? 2 * iterations : iterations, 1, std::max(1, most));
  }
  static KrylovVectors right_vectors(const SolverOptions& options, double sine) {
    return gmres_right_vectors<double, S>(expected_iterations(options, sine), options.restart);
  }
  static KrylovVectors left_vectors(const SolverOptions& options, double sine) {
    return gmres_left_vectors(expected_iterations(options, sine));
  }

  void gmres(const double* b, double* x, bool x_is_zero, Convergence& convergence) {
    if (options_.side == PreconditionerSide::right) {
      const Precondition<double, S> right = [this](const double* r, S* z) {
        cycle().kernels().copy(preconditioner_.of(r), z);
      };
      return gmres_right<double, S>(engine_, outer(), right, b, x, x_is_zero, options_.restart, convergence, right_);
    }
    const Precondition<double, double> left = [this](const double* r, double* z) { preconditioner_.apply(r, z); };
    gmres_left<double>(engine_, outer(), left, b, x, x_is_zero, options_.restart, uncertain(), convergence, left_);
  }
  /// What the cycle lacks to be linear, in parts of its result, on the safe side.
  [[nodiscard]] double uncertain() const {
    if (options_.multigrid.local_solver == LocalSolverKind::cg) return 1e-3;
    return std::is_same_v<S, double> ? 1e-13 : 1e-5;
  }

  Engine& engine_;
  const Hierarchy& hierarchy_;
  const SolverOptions& options_;
  CyclePreconditioner<S> preconditioner_;
  KrylovSpace<double, S> right_;
  KrylovSpace<double> left_;
  CycleVectors cycles_;
  bool is_lent_ = false;  // work(), between runs
  std::unique_ptr<FullMultigrid<S>> full_;
};

/// Solve in the precision that the options name; they must outlive it.
std::unique_ptr<LinearSolver> make_solver(Engine& engine, const Hierarchy& hierarchy, const SolverOptions& options);
/// Solve::needs in that precision.
VectorNeeds solver_needs(const SolverOptions& options, double sine);

}  // namespace solenoid
