#include "solver/multigrid.hpp"

#include <algorithm>

#include "solver/dense_inverse.hpp"

namespace solenoid {
template <class T>
Multigrid<T>::Multigrid(Engine& engine, const Hierarchy& hierarchy, const MultigridOptions& options)
    : engine_(engine), hierarchy_(hierarchy), options_(options) {
  if (options_.damping == 0.0) options_.damping = 0.9 / (1 << hierarchy.finest().equation.dim);
  options_.cycle_index = cycle_index(options, hierarchy.finest().equation, hierarchy.finest().grid.size());
  for (const auto& level : hierarchy.levels) {
    LevelData data;
    data.kernels = make_kernels<T>(engine, *level, options.local_solver);
    data.b = Vector<T>(engine, level->size());
    data.x = Vector<T>(engine, level->size());
    data.y = Vector<T>(engine, level->size());
    const bool between = level != hierarchy.levels.front() && level != hierarchy.levels.back();
    if (between && options_.cycle_index > 1) {
      data.load = Vector<T>(engine, level->size());
      data.sum = Vector<T>(engine, level->size());
    }
    data.kernels->prepare_smoother(options_.smoother == SmootherKind::additive);
    if (!levels_.empty()) data.kernels->prepare_transfer(levels_.back().kernels->level());
    levels_.push_back(std::move(data));
  }
  if (hierarchy.coarse == CoarseSolve::dense) make_dense();
  if (hierarchy.coarse == CoarseSolve::krylov) {
    mac_ = std::make_unique<MacCorrection>(*hierarchy.levels[0]);
    coarse_work_ = Vector<T>(engine, hierarchy.levels[0]->size());
  }
}

template <class T>
T* Multigrid<T>::smooth(int level, const T* b, const T* x, T* first, T* other) {
  Kernels<T>& kernels = *levels_[level].kernels;
  const int colours = static_cast<int>(kernels.level().patches.colours.size());
  if (options_.smoother == SmootherKind::additive) {
    if (x == nullptr) {
      kernels.zero(first);
    } else {
      kernels.copy(x, first);
    }
    for (int colour = 0; colour < colours; ++colour) {
      kernels.smooth_add(colour, b, x, first, static_cast<T>(options_.damping));
    }
    return first;
  }
  T* to = first;
  T* from = other;
  for (int colour = 0; colour < colours; ++colour) {
    kernels.smooth(colour, b, colour == 0 ? x : from, to);
    std::swap(to, from);
  }
  return from;
}

template <class T>
const T* Multigrid<T>::cycle(int level) {
  LevelData& data = levels_[level];
  if (!data.recorded) return whole_cycle(level);
  data.recorded();
  return data.result;
}

template <class T>
void Multigrid<T>::record(int level) {
  // An inner Krylov method looks at numbers while it runs.
  if (hierarchy_.coarse == CoarseSolve::krylov) return;
  LevelData& data = levels_[level];
  data.recorded = engine_.record([this, &data, level] { data.result = whole_cycle(level); });
}

template <class T>
const T* Multigrid<T>::whole_cycle(int level) {
  T* x = run_cycle(level, options_.cycle_index);
  levels_[level].kernels->project(x);  // of coarser levels too: constants are constants after prolongation
  return x;
}

template <class T>
T* Multigrid<T>::run_cycle(int level, int index) {
  if (level == 0) return solve_coarsest();
  LevelData& fine = levels_[level];
  LevelData& coarse = levels_[level - 1];
  const Level& coarse_level = coarse.kernels->level();
  T* x = smooth(level, fine.b.data(), nullptr, fine.x.data(), fine.y.data());
  T* free = x == fine.x.data() ? fine.y.data() : fine.x.data();
  fine.kernels->residual(fine.b.data(), x, free);
  fine.kernels->restrict_to(coarse_level, free, coarse.b.data());
  fine.kernels->prolong_add(coarse_level, correction(level - 1, index), x);
  return smooth(level, fine.b.data(), x, free, x);
}

template <class T>
const T* Multigrid<T>::correction(int level, int index) {
  const T* x = run_cycle(level, index);
  if (level == 0 || index == 1) return x;
  LevelData& data = levels_[level];
  data.kernels->copy(x, data.sum.data());
  data.kernels->copy(data.b.data(), data.load.data());
  for (int i = 1; i < index; ++i) {
    data.kernels->residual(data.load.data(), data.sum.data(), data.b.data());
    data.kernels->axpy(T(1), run_cycle(level, 1), data.sum.data());
  }
  return data.sum.data();
}

template <class T>
T* Multigrid<T>::solve_coarsest() {
  LevelData& coarsest = levels_[0];
  Kernels<T>& kernels = *coarsest.kernels;
  T* x = coarsest.x.data();
  switch (hierarchy_.coarse) {
    case CoarseSolve::patch: kernels.smooth(0, coarsest.b.data(), nullptr, x); break;
    case CoarseSolve::dense:
      kernels.dense(coarse_count_, coarse_index_.data(), inverse_.data(), coarsest.b.data(), x);
      break;
    case CoarseSolve::krylov: {
      Convergence convergence;
      convergence.rtol = 1e-2;
      convergence.max_iterations = 200;
      const Preconditioner<T, T> precondition = [this](const T* r, T* z) { precondition_coarsest(r, z); };
      kernels.zero(x);
      kernels.project(coarsest.b.data());
      gmres_right<T, T>(engine_, kernels, precondition, coarsest.b.data(), x, true, 50, convergence, coarse_space_);
      break;
    }
  }
  return x;
}

template <class T>
void Multigrid<T>::precondition_coarsest(const T* r, T* z) {
  Kernels<T>& kernels = *levels_[0].kernels;
  const std::int64_t size = kernels.level().size();
  std::vector<T> host(size);
  std::vector<double> load(size);
  std::vector<double> correction;
  engine_.download(r, host.data(), size * sizeof(T));
  std::copy(host.begin(), host.end(), load.begin());
  mac_->apply(load, correction);
  std::transform(correction.begin(), correction.end(), host.begin(),
                 [](double value) { return static_cast<T>(value); });
  engine_.upload(host.data(), z, size * sizeof(T));
  const T* result = smooth(0, r, z, coarse_work_.data(), levels_[0].y.data());
  kernels.copy(result, z);
  kernels.project(z);
}

template <class T>
void Multigrid<T>::make_dense() {
  const DenseInverse dense = invert(engine_, *hierarchy_.levels[0], options_.local_solver);
  const Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic> rounded = dense.matrix.cast<T>();
  inverse_ = Vector<T>(engine_, rounded.size());
  inverse_.upload(rounded.data());
  coarse_count_ = static_cast<std::int64_t>(dense.index.size());
  coarse_index_ = Vector<std::int64_t>(engine_, coarse_count_);
  coarse_index_.upload(dense.index.data());
}

template class Multigrid<float>;
template class Multigrid<double>;

}  // namespace solenoid
