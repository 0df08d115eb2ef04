#include "engine/cuda/smoother/small_smoother.hpp"

#include <utility>

#include "engine/tables.hpp"

namespace solenoid::cuda {

template <class T>
SmallSmoother<T>::SmallSmoother(Shared& shared, const Level& level) : shared_(shared), level_(level) {
  for (const auto& places : small_places(level)) {
    shapes_.push_back({{shared.engine, places}, static_cast<int>(places.size())});
  }
  for (const SmallGroup& group : level.small_patches.groups) groups_.emplace_back(shared.engine, group.patches);
  use_tables(make_tables());
}

template <class T>
std::shared_ptr<CoefficientTables> SmallSmoother<T>::make_tables() const {
  auto tables = tables_by<Tables>(this);
  for (const auto& inverse : small_inverses<T>(level_)) tables->inverses.emplace_back(shared_.engine, inverse);
  return tables;
}

template <class T>
std::shared_ptr<CoefficientTables> SmallSmoother<T>::use_tables(const std::shared_ptr<CoefficientTables>& tables) {
  return std::exchange(tables_, made_as<Tables>(tables, this));
}

template <class T>
PatchUnknowns SmallSmoother<T>::unknowns(int group) const {
  const auto& [shape, patches] = level_.small_patches.groups[group];
  return {.records = reinterpret_cast<const std::int32_t*>(groups_[group].data()),
          .count = static_cast<std::int32_t>(patches.size()),
          .unknowns = shapes_[shape].unknowns.data(),
          .size = shapes_[shape].size};
}

template <class T>
void SmallSmoother<T>::smooth(int group, const T* r, T* x, T damping) const {
  const PatchUnknowns of = unknowns(group);
  const SmallArguments<T> arguments{
      .of = of,
      .record_size = level_.equation.record(),
      .inverse = tables_->inverses[level_.small_patches.groups[group].shape].data(),
      .r = r,
      .x = x,
      .damping = damping,
  };
  smooth_small(arguments, of.count >= many_small_patches * shared_.multiprocessors, shared_.stream);
}

template class SmallSmoother<float>;
template class SmallSmoother<double>;

}  // namespace solenoid::cuda
