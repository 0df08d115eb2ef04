#pragma once
/// \file
/// The coarsest level solved by its dense (pseudo-)inverse.

#include "solver/multigrid/coarse_solver.hpp"
#include "solver/multigrid/dense_inverse.hpp"

namespace solenoid {

template <class T>
class DenseCoarseSolver final : public CoarseSolver<T> {
 public:
  DenseCoarseSolver(Engine& engine, Kernels<T>& kernels, LocalSolverKind local);
  void solve(T* b, T* x) override;

 private:
  Kernels<T>& kernels_;
  DenseInverse<T> inverse_;
};

}  // namespace solenoid
