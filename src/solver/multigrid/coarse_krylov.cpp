#include "solver/multigrid/coarse_krylov.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "solver/krylov/gmres_right.hpp"
#include "solver/multigrid/smoothing.hpp"

namespace solenoid {

template <class T>
KrylovCoarseSolver<T>::KrylovCoarseSolver(Engine& engine, Kernels<T>& kernels, const MultigridOptions& options)
    : engine_(engine),
      kernels_(kernels),
      options_(options),
      tables_(tables_by<Tables>(this, kernels.level())),
      first_(engine, kernels.level().size()),
      other_(engine, kernels.level().size()) {}

template <class T>
std::shared_ptr<CoefficientTables> KrylovCoarseSolver<T>::make_tables() {
  return tables_by<Tables>(this, kernels_.level());
}

template <class T>
std::shared_ptr<CoefficientTables> KrylovCoarseSolver<T>::use_tables(std::shared_ptr<CoefficientTables> tables) {
  return std::exchange(tables_, made_as<Tables>(tables, this));
}

template <class T>
void KrylovCoarseSolver<T>::solve(T* b, T* x) {
  Convergence convergence;
  convergence.rtol = 1e-2;
  convergence.max_iterations = 200;
  constexpr int restart = 50;
  kernels_.zero(x);
  kernels_.project(b);
  const Precondition<T, T> inner = [this](const T* r, T* z) { precondition(r, z); };
  gmres_right<T, T>(engine_, kernels_, inner, b, x, true, restart, convergence, space_);
}

template <class T>
void KrylovCoarseSolver<T>::precondition(const T* r, T* z) {
  const std::int64_t size = kernels_.level().size();
  std::vector<T> host(size);
  std::vector<double> load(size);
  std::vector<double> correction;
  engine_.download(r, host.data(), size * sizeof(T));
  std::copy(host.begin(), host.end(), load.begin());
  tables_->correction.apply(load, correction);
  std::transform(correction.begin(), correction.end(), host.begin(),
                 [](double value) { return static_cast<T>(value); });
  engine_.upload(host.data(), z, size * sizeof(T));
  kernels_.copy(smoothing_step(kernels_, options_, r, z, first_.data(), other_.data()), z);
  kernels_.project(z);
}

template class KrylovCoarseSolver<float>;
template class KrylovCoarseSolver<double>;

}  // namespace solenoid
