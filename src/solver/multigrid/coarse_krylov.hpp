#pragma once
/// \file
/// A coarsest level that is too large for a direct solve, solved by GMRES inside a flexible outer method.

#include <memory>

#include "solver/krylov/space.hpp"
#include "solver/multigrid/coarse_solver.hpp"
#include "solver/multigrid/mac_correction.hpp"

namespace solenoid {

template <class T>
class KrylovCoarseSolver final : public CoarseSolver<T> {
 public:
  KrylovCoarseSolver(Engine& engine, Kernels<T>& kernels, const MultigridOptions& options);
  void solve(T* b, T* x) override;
  [[nodiscard]] std::shared_ptr<CoefficientTables> make_tables() override;
  std::shared_ptr<CoefficientTables> use_tables(std::shared_ptr<CoefficientTables> tables) override;
  [[nodiscard]] bool same_work() const override { return false; }

 private:
  struct Tables final : CoefficientTables {
    explicit Tables(const Level& level) : correction(level) {}
    MacCorrection correction;
  };

  /// z = M r: lowest-order correction, then a smoothing step.
  void precondition(const T* r, T* z);

  Engine& engine_;
  Kernels<T>& kernels_;
  const MultigridOptions options_;
  std::shared_ptr<Tables> tables_;
  Vector<T> first_;  ///< of smoothing steps
  Vector<T> other_;
  KrylovSpace<T> space_;
};

}  // namespace solenoid
