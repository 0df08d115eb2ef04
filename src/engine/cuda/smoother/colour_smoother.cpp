#include "engine/cuda/smoother/colour_smoother.hpp"

#include <algorithm>

#include "engine/cuda/smoother/device_inverses.hpp"
#include "engine/cuda/smoother/parity_plan.hpp"
#include "engine/tables.hpp"

namespace solenoid::cuda {
namespace {

/// Patches of the colour that has most of them.
std::int64_t largest_colour(const Patches& patches) {
  std::int64_t most = 0;
  for (const auto& colour : patches.colours) {
    std::int64_t count = 0;
    for (const PatchRun& run : colour) count += run.end - run.begin;
    most = std::max(most, count);
  }
  return most;
}

/// The variant that was asked for by name, or nullptr if it is no variant of this instance.
template <class T>
const ParityKernel<T>* variant_named(const KernelTable<T>& table, const std::string& name) {
  for (const ParityKernel<T>& kernel : table.parity) {
    if (kernel.smooth != nullptr && kernel.name == name) return &kernel;
  }
  return nullptr;
}

/// The variant with the fewest patches in a batch for which each colour still has a multiprocessor for each batch;
/// nullptr if the instance has none.
template <class T>
const ParityKernel<T>* variant_for_size(const SmoothedLevel<T>& level) {
  const std::int64_t most = largest_colour(level.level.patches);
  for (int variant = parity_variants - 1; variant > 0; --variant) {
    const ParityKernel<T>& kernel = level.table.parity[variant];
    if (kernel.smooth != nullptr && most <= std::int64_t{kernel.patches} * level.shared.multiprocessors) return &kernel;
  }
  return level.table.parity[0].smooth != nullptr ? &level.table.parity[0] : nullptr;
}

}  // namespace

template <class T>
ColourSmoothers<T> make_smoothers(const SmoothedLevel<T>& level, bool additive) {
  const auto& kinds = level.level.patches.kinds;
  const std::vector<char> all(kinds.size(), 1);
  ColourSmoothers<T> smoothers;
  if (level.level.equation.kind == EquationKind::poisson) {
    smoothers.push_back(make_poisson_smoother(level));
    return smoothers;
  }
  const std::string& asked_for = level.shared.smoother;
  const ParityKernel<T>* const variant =
      asked_for.empty() ? variant_for_size(level) : variant_named(level.table, asked_for);
  if (additive || level.local != LocalSolverKind::direct || variant == nullptr ||
      !parity_plan_fits(level.level.size())) {
    smoothers.push_back(make_general_smoother(level, all, false));
    return smoothers;
  }
  std::vector<char> rest;
  for (const PatchKind& kind : kinds) rest.push_back(splits_by_parity(kind, level.level.equation.dim) ? 0 : 1);
  smoothers.push_back(make_parity_smoother(level, *variant));
  if (std::count(rest.begin(), rest.end(), 1) > 0) smoothers.push_back(make_general_smoother(level, rest, true));
  return smoothers;
}
template ColourSmoothers<float> make_smoothers(const SmoothedLevel<float>&, bool);
template ColourSmoothers<double> make_smoothers(const SmoothedLevel<double>&, bool);

template <class T>
void copy_uncovered(const SmoothedLevel<T>& level, const Colour<T>& colour) {
  const DeviceRecords& records = level.device.uncovered(colour.number);
  copy_records(records.count, records.list.data(), level.level.equation.record(), colour.x, colour.y,
               level.shared.stream);
}
template void copy_uncovered(const SmoothedLevel<float>&, const Colour<float>&);
template void copy_uncovered(const SmoothedLevel<double>&, const Colour<double>&);

template <class T>
DeviceKinds<T>::DeviceKinds(const SmoothedLevel<T>& level, const std::vector<char>& take, const Also& also) {
  const auto& kinds = level.level.patches.kinds;
  std::vector<int> taken;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (take[i] != 0) taken.push_back(static_cast<int>(i));
  }
  const auto room = [](int size) { return inverse_numbers(InverseForm::padded_rows, size); };
  const PatchTables<T> tables(level.level, taken, level.local, false, room);
  Engine& engine = level.shared.engine;
  tables_ = Vector<T>(engine, static_cast<std::int64_t>(tables.size()));
  engine.upload(tables.values().data(), tables_.data(), tables.values().size_bytes());
  make_inverses(engine, tables.missing(), InverseForm::padded_rows, tables_.data(), level.shared.stream);
  std::vector<PatchData<T>> data(kinds.size());
  for (std::size_t i = 0; i < taken.size(); ++i) {
    if (also) also(taken[i], tables.data(i, tables.values().data()));
    data[taken[i]] = tables.data(i, tables_.data());
  }
  kinds_ = {engine, data};
}
template class DeviceKinds<float>;
template class DeviceKinds<double>;

}  // namespace solenoid::cuda
