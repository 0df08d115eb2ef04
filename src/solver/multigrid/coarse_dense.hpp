#pragma once
/// \file
/// The coarsest level solved by its dense (pseudo-)inverse.

#include <cstdint>

#include "solver/multigrid/coarse_solver.hpp"

namespace solenoid {

template <class T>
class DenseCoarseSolver final : public CoarseSolver<T> {
 public:
  /// Computes the inverse in double precision and rounds it.
  DenseCoarseSolver(Engine& engine, Kernels<T>& kernels, LocalSolverKind local);
  void solve(T* b, T* x) override;

 private:
  Kernels<T>& kernels_;
  Vector<std::int64_t> index_;  ///< places of the unknowns in vectors of the level
  Vector<T> inverse_;           ///< row by row
};

}  // namespace solenoid
