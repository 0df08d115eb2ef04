#pragma once
/// \file
/// Full multigrid: from the coarsest level up, a cycle or more on each.

#include <cmath>
#include <memory>
#include <type_traits>
#include <vector>

#include "engine/engine.hpp"
#include "solver/hierarchy.hpp"
#include "solver/krylov/convergence.hpp"
#include "solver/multigrid/preconditioner.hpp"
#include "solver/vector_needs.hpp"

namespace solenoid {

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

  /// The residual of the result is reported; it is not compared with rtol.
  void run(const double* b, double* x, Convergence& convergence) {
    const int finest = hierarchy_.size() - 1;
    const double norm_b = std::sqrt(m_.outer().dot(b, b));
    double* r = residual_.data();
    const auto kernels = [&](int l) -> Kernels<double>& { return *levels_[l].kernels; };
    const auto load = [&](int l) { return l == finest ? b : levels_[l].load.data(); };
    const auto value = [&](int l) { return l == finest ? x : levels_[l].value.data(); };
    for (int l = finest; l > 0; --l)
      kernels(l).restrict_to(*hierarchy_.levels[l - 1], load(l), levels_[l - 1].load.data());
    for (int l = 0; l <= finest; ++l) {
      if (l == 0) {
        kernels(l).zero(value(l));
      } else {
        kernels(l).prolong(*hierarchy_.levels[l - 1], value(l - 1), value(l));
      }
      for (int cycle = 0; cycle < options_.cycles; ++cycle) {
        const bool from_zero = l == 0 && cycle == 0;
        if (!from_zero) kernels(l).residual(load(l), value(l), r);
        add(kernels(l), m_.of(l, from_zero ? load(l) : r), value(l));
      }
      if (convergence.monitor && !convergence.monitor(0, 1.0)) {
        convergence.reason = "interrupted";
        return;
      }
    }
    convergence.iterations = options_.cycles;
    m_.outer().residual(b, x, r);
    const double norm = norm_b == 0.0 ? 0.0 : std::sqrt(m_.outer().dot(r, r)) / norm_b;
    convergence.history = {1.0, norm};
    convergence.converged = std::isfinite(norm) && norm < 0.5;
    convergence.reason = convergence.converged ? "full multigrid is done"
                         : std::isfinite(norm) ? "full multigrid: the residual did not fall"
                                               : "the residual is not finite";
  }

 private:
  /// In double precision. The finest level has its vectors from the caller.
  struct LevelData {
    std::unique_ptr<Kernels<double>> owned;  // or nullptr
    Kernels<double>* kernels = nullptr;
    Vector<double> load{};
    Vector<double> value{};
  };

  const Hierarchy& hierarchy_;
  const SolverOptions& options_;
  CyclePreconditioner<S>& m_;
  Vector<double> residual_;
  std::vector<LevelData> levels_;
};

}  // namespace solenoid
