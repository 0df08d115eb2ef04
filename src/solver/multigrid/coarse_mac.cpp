#include "solver/multigrid/coarse_mac.hpp"

#include <utility>

#include "solver/multigrid/smoothing.hpp"

namespace solenoid {

template <class T>
MacCoarseSolver<T>::MacCoarseSolver(Engine& engine, Kernels<T>& kernels, const MultigridOptions& options, int rounds)
    : engine_(engine),
      kernels_(kernels),
      options_(options),
      rounds_(rounds),
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
  T* y = nullptr;
  for (int round = 0; round < rounds_; ++round) {
    const auto free = [&] { return y == first_.data() ? other_.data() : first_.data(); };
    const auto smooth = [&] {
      y = smoothing_step<T>(kernels_, options_, b, y, free(), y == nullptr ? other_.data() : y);
    };
    smooth();
    kernels_.residual(b, y, free());
    tables_->correction.correct(free(), y);
    smooth();
  }
  kernels_.copy(y, x);
}

template class MacCoarseSolver<float>;
template class MacCoarseSolver<double>;

}  // namespace solenoid
