#include "solver/multigrid/cycle.hpp"

#include "level/schur_inverses.hpp"
#include "solver/multigrid/smoothing.hpp"

namespace solenoid {

template <class T>
Cycle<T>::Cycle(Engine& engine, const Hierarchy& hierarchy, const MultigridOptions& options)
    : engine_(engine), options_(options) {
  options_.cycle_index = cycle_index(options, hierarchy.finest().equation);
  const SchurInverses::Keep keep(*hierarchy.finest().schur_inverses);
  for (const auto& level : hierarchy.levels) {
    LevelData data;
    data.kernels = make_kernels<T>(engine, *level, options.local_solver);
    data.b = Vector<T>(engine, level->size());
    data.x = Vector<T>(engine, level->size());
    const bool smoothed = level != hierarchy.levels.front();
    if (smoothed) data.y = Vector<T>(engine, level->size());
    if (smoothed && level != hierarchy.levels.back() && options_.cycle_index > 1) {
      data.load = Vector<T>(engine, level->size());
      data.sum = Vector<T>(engine, level->size());
    }
    data.kernels->prepare_smoother(options_.smoother == SmootherKind::additive);
    if (!levels_.empty()) data.kernels->prepare_transfer(levels_.back().kernels->level());
    levels_.push_back(std::move(data));
  }
  coarsest_ = make_coarse_solver(engine, hierarchy, options_, *levels_[0].kernels);
}

template <class T>
const T* Cycle<T>::run(int level) {
  LevelData& data = levels_[level];
  if (!data.recorded) return without_constants(level);
  data.recorded();
  return data.result;
}

template <class T>
void Cycle<T>::record(int level) {
  if (!coarsest_->same_work()) return;
  LevelData& data = levels_[level];
  data.recorded = engine_.record([this, &data, level] { data.result = without_constants(level); });
}

template <class T>
std::shared_ptr<CoefficientTables> Cycle<T>::make_tables() {
  auto tables = tables_by<Tables>(this);
  const SchurInverses::Keep keep(*kernels().level().schur_inverses);
  for (LevelData& data : levels_) tables->kernels.push_back(data.kernels->make_tables());
  tables->coarsest = coarsest_->make_tables();
  return tables;
}

template <class T>
std::shared_ptr<CoefficientTables> Cycle<T>::use_tables(const std::shared_ptr<CoefficientTables>& tables) {
  const auto mine = made_as<Tables>(tables, this);
  auto before = tables_by<Tables>(this);
  for (std::size_t l = 0; l < levels_.size(); ++l) {
    before->kernels.push_back(levels_[l].kernels->use_tables(mine->kernels[l]));
  }
  before->coarsest = coarsest_->use_tables(mine->coarsest);
  for (LevelData& data : levels_) {
    if (data.recorded) data.recorded.refresh();
  }
  return before;
}

template <class T>
const T* Cycle<T>::without_constants(int level) {
  T* x = cycle(level, options_.cycle_index);
  levels_[level].kernels->project(x);  // of coarser levels too: constants are constants after prolongation
  return x;
}

template <class T>
T* Cycle<T>::cycle(int level, int index) {
  LevelData& fine = levels_[level];
  if (level == 0) {
    coarsest_->solve(fine.b.data(), fine.x.data());
    return fine.x.data();
  }
  LevelData& coarse = levels_[level - 1];
  const Level& coarse_level = coarse.kernels->level();
  const auto smooth = [&](const T* x, T* first, T* other) {
    return smoothing_step<T>(*fine.kernels, options_, fine.b.data(), x, first, other);
  };
  T* x = smooth(nullptr, fine.x.data(), fine.y.data());
  T* free = x == fine.x.data() ? fine.y.data() : fine.x.data();
  fine.kernels->residual(fine.b.data(), x, free);
  fine.kernels->restrict_to(coarse_level, free, coarse.b.data());
  fine.kernels->prolong_add(coarse_level, correction(level - 1, index), x);
  return smooth(x, free, x);
}

template <class T>
const T* Cycle<T>::correction(int level, int index) {
  const T* x = cycle(level, index);
  if (level == 0 || index == 1) return x;
  LevelData& data = levels_[level];
  data.kernels->copy(x, data.sum.data());
  data.kernels->copy(data.b.data(), data.load.data());
  for (int i = 1; i < index; ++i) {
    data.kernels->residual(data.load.data(), data.sum.data(), data.b.data());
    data.kernels->axpy(T(1), cycle(level, 1), data.sum.data());
  }
  return data.sum.data();
}

template class Cycle<float>;
template class Cycle<double>;

}  // namespace solenoid
