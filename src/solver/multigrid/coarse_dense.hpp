#pragma once
/// \file
/// The coarsest level solved by its dense (pseudo-)inverse.

#include <memory>
#include <utility>

#include "solver/multigrid/coarse_solver.hpp"
#include "solver/multigrid/dense_inverse.hpp"

namespace solenoid {

template <class T>
class DenseCoarseSolver final : public CoarseSolver<T> {
 public:
  DenseCoarseSolver(Engine& engine, Kernels<T>& kernels, LocalSolverKind local);
  void solve(T* b, T* x) override;
  [[nodiscard]] std::shared_ptr<CoefficientTables> make_tables() override;
  std::shared_ptr<CoefficientTables> use_tables(std::shared_ptr<CoefficientTables> tables) override;

 private:
  struct Tables final : CoefficientTables {
    explicit Tables(DenseInverse<T> what) : inverse(std::move(what)) {}
    DenseInverse<T> inverse;
  };

  Engine& engine_;
  Kernels<T>& kernels_;
  LocalSolverKind local_;
  std::shared_ptr<Tables> tables_;
};

}  // namespace solenoid
