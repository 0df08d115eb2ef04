#pragma once
/// \file
/// Full multigrid: from the coarsest level up, a cycle or more on each.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "base/interrupt.hpp"
#include "engine/engine.hpp"
#include "solenoid/solver.hpp"
#include "solver/hierarchy.hpp"
#include "solver/krylov/convergence.hpp"
#include "solver/multigrid/preconditioner.hpp"
#include "solver/vector_needs.hpp"

namespace solenoid {

/// b = the load of a level, by its kernels.
using AssembleLoad = std::function<void(const Level& level, Kernels<double>& kernels, double* b)>;

/// x_l = P x_{l-1}, then on each level x_l += M_l (b_l - A_l x_l) once or more often. Solution and residual in double,
/// cycles in precision S.
template <class S>
class FullMultigrid {
 public:
  FullMultigrid(Engine& engine, const Hierarchy& hierarchy, const SolverOptions& options, CyclePreconditioner<S>& m)
      : hierarchy_(hierarchy), options_(options), m_(m), residual_(engine, hierarchy.finest().size()) {
    const int finest = hierarchy.size() - 1;
    for (int l = 0; l <= finest; ++l) {
      const Level& level = *hierarchy.levels[l];
      LevelData data;
      if (l == finest) {
        data.kernels = &m.outer();
      } else if constexpr (std::is_same_v<S, double>) {
        data.kernels = &m.cycle().kernels(l);
      } else {
        data.owned = make_kernels<double>(engine, level, options.multigrid.local_solver);
        data.kernels = data.owned.get();
      }
      if (l > 0) data.kernels->prepare_transfer(*hierarchy.levels[l - 1]);
      if (l < finest) {
        m.cycle().record(l);
        data.load = Vector<double>(engine, level.size());
        data.value = Vector<double>(engine, level.size());
      }
      levels_.push_back(std::move(data));
    }
  }

  /// Beside b and x: the residual, and load and value of all levels but the finest.
  static VectorNeeds needs() { return on_finest<double>(1) + on_coarser<double>(2); }

  /// Assembles the loads of all levels but the finest; without, they are restricted.
  void set_coarse_loads(const AssembleLoad& assemble) {
    for (int l = 0; l + 1 < hierarchy_.size(); ++l) {
      assemble(*hierarchy_.levels[l], kernels(l), levels_[l].load.data());
      kernels(l).project(levels_[l].load.data());
    }
    restricts_loads_ = false;
  }

  /// The residual of the result is reported; it is not compared with rtol. Converged, as far as that can be seen here:
  /// the last cycle at least halved the residual, or left no more than rounding.
  void run(const double* b, double* x, Convergence& convergence) {
    const int finest = hierarchy_.size() - 1;
    const double norm_b = std::sqrt(m_.outer().dot(b, b));
    double* r = residual_.data();
    const auto load = [&](int l) { return l == finest ? b : levels_[l].load.data(); };
    const auto value = [&](int l) { return l == finest ? x : levels_[l].value.data(); };
    for (int l = finest; restricts_loads_ && l > 0; --l) {
      kernels(l).restrict_to(*hierarchy_.levels[l - 1], load(l), levels_[l - 1].load.data());
    }
    for (int l = 0; l <= finest; ++l) {
      if (l == 0) {
        kernels(l).zero(value(l));
      } else {
        kernels(l).prolong(*hierarchy_.levels[l - 1], value(l - 1), value(l));
      }
      for (int cycle = 0; cycle < options_.cycles; ++cycle) {
        check_interrupt();
        add(kernels(l), correction(l, load(l), value(l), l == 0 && cycle == 0), value(l));
      }
      if (convergence.monitor) convergence.monitor(0, 1.0);
    }
    convergence.iterations = options_.cycles;
    // A cycle leaves its right-hand side, the residual before it, as it is.
    Cycle<S>& cycle = m_.cycle();
    const double before = std::sqrt(cycle.kernels().dot(cycle.right_hand_side(), cycle.right_hand_side()));
    m_.outer().residual(b, x, r);
    const double after = std::sqrt(m_.outer().dot(r, r));
    const double relative = norm_b == 0.0 ? 0.0 : after / norm_b;
    convergence.history = {1.0, relative};
    constexpr double rounding = 1e-15;
    convergence.converged = std::isfinite(relative) && (2.0 * after <= before || relative <= rounding);
    convergence.reason = convergence.converged ? done
                         : std::isfinite(relative)
                             ? fmt::format(
                                   "full multigrid: the last cycle divided the residual by {:.2g}, not by "
                                   "2 or more: use method = \"gmres\"",
                                   before / after)
                             : "the residual is not finite";
  }

  /// To be called after run(), with its result: estimates the error, and takes back that the solve has converged if too
  /// much of it is algebraic. `lifted`: the result lacks velocities through
  /// sides. They live in the outermost cells of the finest level and make it unlike what coarser levels can hold.
  std::optional<ErrorEstimate> assess(const double* x, bool lifted, Convergence& convergence) {
    if (convergence.history.empty() || !std::isfinite(convergence.history.back())) return {};
    ErrorEstimate estimate;
    estimate.algebraic = algebraic_error();
    if (!lifted) estimate.total = total_error(x);
    const double velocity = m_.outer().l2_norm(x);
    constexpr double rounding = 1e-12;
    if (estimate.algebraic <= rounding * velocity) {  // nothing is left to be reduced
      convergence.converged = true;
      convergence.reason = done;
    } else if (convergence.converged && estimate.total && estimate.algebraic > 0.5 * *estimate.total) {
      convergence.converged = false;
      convergence.reason = fmt::format(
          "full multigrid: {:.1e} of the error is algebraic, more than half of the estimated {:.1e}: use more cycles "
          "or method = \"gmres\"",
          estimate.algebraic, *estimate.total);
    } else if (convergence.converged && lifted && estimate.algebraic > convergence.rtol * velocity) {
      convergence.converged = false;
      convergence.reason = fmt::format(
          "full multigrid: there is flow through sides, so that the error cannot be estimated, and its algebraic part "
          "{:.1e} is above rtol = {:.0e} times the velocity: use more cycles or method = \"gmres\"",
          estimate.algebraic, convergence.rtol);
    }
    return estimate;
  }

 private:
  static constexpr const char* done = "full multigrid is done";

  /// In double precision. The finest level has its vectors from the caller.
  struct LevelData {
    std::unique_ptr<Kernels<double>> owned;  // or nullptr
    Kernels<double>* kernels = nullptr;
    Vector<double> load{};
    Vector<double> value{};
  };

  [[nodiscard]] Kernels<double>& kernels(int level) { return *levels_[level].kernels; }

  /// By a cycle on a level and those below.
  const S* correction(int level, const double* load, const double* value, bool value_is_zero) {
    if (value_is_zero) return m_.of(level, load);
    if (m_.take_residual(level, kernels(level), load, value)) return m_.of_taken(level);
    kernels(level).residual(load, value, residual_.data());
    return m_.of(level, residual_.data());
  }

  /// What cycles leave is smooth: the next coarser level finds nearly all of it. Takes the residual that run() left.
  double algebraic_error() {
    Cycle<S>& cycle = m_.cycle();
    const int finest = hierarchy_.size() - 1;
    const int level = std::max(0, finest - 1);
    cycle.kernels(finest).from_double(residual_.data(), cycle.right_hand_side(finest));
    if (level < finest) {
      cycle.kernels(finest).restrict_to(*hierarchy_.levels[level], cycle.right_hand_side(finest),
                                        cycle.right_hand_side(level));
    }
    return cycle.kernels(level).l2_norm(cycle.run(level));
  }

  /// By the differences to coarser levels, until each direction was coarser once.
  std::optional<double> total_error(const double* x) {
    const Equation& equation = hierarchy_.finest().equation;
    double* difference = residual_.data();
    double square = 0.0;
    std::array<bool, 3> missing{true, true, equation.dim == 3};
    for (int l = hierarchy_.size() - 1; l > 0; --l) {
      bool of_use = false;
      for (int a = 0; a < equation.dim; ++a) {
        if (!missing[a] || !hierarchy_.levels[l]->coarsening.merges(a)) continue;
        missing[a] = false;
        of_use = true;
      }
      if (!of_use) continue;
      kernels(l).prolong(*hierarchy_.levels[l - 1], levels_[l - 1].value.data(), difference);
      kernels(l).axpy(-1.0, l == hierarchy_.size() - 1 ? x : levels_[l].value.data(), difference);
      square += std::pow(kernels(l).l2_norm(difference), 2);
    }
    if (missing != std::array<bool, 3>{}) return {};
    return std::sqrt(square) / (std::exp2(equation.order + 1) - 1.0);
  }

  const Hierarchy& hierarchy_;
  const SolverOptions& options_;
  CyclePreconditioner<S>& m_;
  Vector<double> residual_;
  std::vector<LevelData> levels_;
  bool restricts_loads_ = true;
};

}  // namespace solenoid
