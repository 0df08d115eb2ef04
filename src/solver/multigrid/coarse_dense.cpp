#include "solver/multigrid/coarse_dense.hpp"

#include <utility>

namespace solenoid {

template <class T>
DenseCoarseSolver<T>::DenseCoarseSolver(Engine& engine, Kernels<T>& kernels, LocalSolverKind local)
    : engine_(engine), kernels_(kernels), local_(local) {
  DenseCoarseSolver::use_tables(DenseCoarseSolver::make_tables());
}

template <class T>
std::shared_ptr<CoefficientTables> DenseCoarseSolver<T>::make_tables() {
  return tables_by<Tables>(this, dense_inverse(engine_, kernels_, local_));
}

template <class T>
std::shared_ptr<CoefficientTables> DenseCoarseSolver<T>::use_tables(std::shared_ptr<CoefficientTables> tables) {
  return std::exchange(tables_, made_as<Tables>(tables, this));
}

template <class T>
void DenseCoarseSolver<T>::solve(T* b, T* x) {
  DenseInverse<T>& inverse = tables_->inverse;
  kernels_.dense(inverse.index.size(), inverse.index.data(), inverse.matrix.data(), b, x);
}

template class DenseCoarseSolver<float>;
template class DenseCoarseSolver<double>;

}  // namespace solenoid
