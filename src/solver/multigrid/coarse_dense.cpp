#include "solver/multigrid/coarse_dense.hpp"

namespace solenoid {

template <class T>
DenseCoarseSolver<T>::DenseCoarseSolver(Engine& engine, Kernels<T>& kernels, LocalSolverKind local)
    : kernels_(kernels), inverse_(dense_inverse(engine, kernels, local)) {}

template <class T>
void DenseCoarseSolver<T>::solve(T* b, T* x) {
  kernels_.dense(inverse_.index.size(), inverse_.index.data(), inverse_.matrix.data(), b, x);
}

template class DenseCoarseSolver<float>;
template class DenseCoarseSolver<double>;

}  // namespace solenoid
