#pragma once
/// \file
/// A coarsest level that is too large for a direct solve: a smoothing step, a correction of lowest order, a smoothing
/// step.
///
/// Corrections from vertex patches are divergence-free and carry no flux through any cross-section. So the smoother
/// alone never finds a net flow around a periodic direction, through a net of pores or from one outflow side to
/// another. The marker-and-cell scheme (solver/mac/) holds these flows.

#include <memory>

#include "solver/mac/block_factorisation.hpp"
#include "solver/multigrid/coarse_solver.hpp"

namespace solenoid {

template <class T>
class MacCoarseSolver final : public CoarseSolver<T> {
 public:
  /// `rounds`: how often solve() does that.
  MacCoarseSolver(Engine& engine, Kernels<T>& kernels, const MultigridOptions& options, int rounds);
  void solve(T* b, T* x) override;
  [[nodiscard]] std::shared_ptr<CoefficientTables> make_tables() override;
  std::shared_ptr<CoefficientTables> use_tables(std::shared_ptr<CoefficientTables> tables) override;

 private:
  struct Tables final : CoefficientTables {
    Tables(Engine& engine, Kernels<T>& kernels) : correction(engine, kernels) {}
    BlockFactorisation<T> correction;
  };

  Engine& engine_;
  Kernels<T>& kernels_;
  const MultigridOptions options_;
  int rounds_;
  std::shared_ptr<Tables> tables_;
  Vector<T> first_;  ///< of smoothing steps
  Vector<T> other_;
};

}  // namespace solenoid
