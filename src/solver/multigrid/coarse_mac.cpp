#include "solver/multigrid/coarse_mac.hpp"

#include <utility>

#include "solver/multigrid/smoothing.hpp"

namespace solenoid {

template <class T>
MacCoarseSolver<T>::MacCoarseSolver(Engine& engine, Kernels<T>& kernels, const MultigridOptions& options)
    : engine_(engine),
      kernels_(kernels),
      options_(options),
      tables_(tables_by<Tables>(this, engine, kernels)),
      first_(engine, kernels.level().equation.lumped ? 0 : kernels.level().size()),
      other_(engine, first_.size()) {
  if (first_.size() > 0) kernels_.prepare_smoother(options_.smoother == SmootherKind::additive);
}

template <class T>
std::shared_ptr<CoefficientTables> MacCoarseSolver<T>::make_tables() {
  return tables_by<Tables>(this, engine_, kernels_);
}

template <class T>
std::shared_ptr<CoefficientTables> MacCoarseSolver<T>::use_tables(std::shared_ptr<CoefficientTables> tables) {
  return std::exchange(tables_, made_as<Tables>(tables, this));
}

template <class T>
void MacCoarseSolver<T>::solve(T* b, T* x) {
  kernels_.project(b);
  if (kernels_.level().equation.lumped) {
    kernels_.zero(x);
    tables_->correction.correct(b, x);
    return;
  }
  T* y = smoothing_step<T>(kernels_, options_, b, nullptr, first_.data(), other_.data());
  T* const rest = y == first_.data() ? other_.data() : first_.data();
  kernels_.residual(b, y, rest);
  tables_->correction.correct(rest, y);
  T* const z = smoothing_step<T>(kernels_, options_, b, y, rest, y);
  kernels_.copy(z, x);
}

template class MacCoarseSolver<float>;
template class MacCoarseSolver<double>;

}  // namespace solenoid
