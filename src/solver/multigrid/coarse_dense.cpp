#include "solver/multigrid/coarse_dense.hpp"

#include "solver/multigrid/dense_inverse.hpp"

namespace solenoid {

template <class T>
DenseCoarseSolver<T>::DenseCoarseSolver(Engine& engine, Kernels<T>& kernels, LocalSolverKind local)
    : kernels_(kernels) {
  const DenseInverse dense = invert(engine, kernels.level(), local);
  const Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic> rounded = dense.matrix.cast<T>();
  inverse_ = Vector<T>(engine, rounded.size());
  inverse_.upload(rounded.data());
  index_ = Vector<std::int64_t>(engine, static_cast<std::int64_t>(dense.index.size()));
  index_.upload(dense.index.data());
}

template <class T>
void DenseCoarseSolver<T>::solve(T* b, T* x) {
  kernels_.dense(index_.size(), index_.data(), inverse_.data(), b, x);
}

template class DenseCoarseSolver<float>;
template class DenseCoarseSolver<double>;

}  // namespace solenoid
