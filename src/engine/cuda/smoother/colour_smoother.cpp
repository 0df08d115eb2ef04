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
  if (!level.level.goes_by_elements()) return make_constant_smoothers(level, additive);
  ColourSmoothers<T> smoothers;
  smoothers.push_back(make_element_smoother(level, additive));
  return smoothers;
}
template ColourSmoothers<float> make_smoothers(const SmoothedLevel<float>&, bool);
template ColourSmoothers<double> make_smoothers(const SmoothedLevel<double>&, bool);

template <class T>
const ParityKernel<T>* parity_kernel_for(const SmoothedLevel<T>& level, bool additive) {
  if (additive || level.local != LocalSolverKind::direct || !parity_plan_fits(level.level.size())) return nullptr;
  const std::string& asked_for = level.shared.smoother;
  return asked_for.empty() ? variant_for_size(level) : variant_named(level.table, asked_for);
}
template const ParityKernel<float>* parity_kernel_for(const SmoothedLevel<float>&, bool);
template const ParityKernel<double>* parity_kernel_for(const SmoothedLevel<double>&, bool);

template <class T>
ColourSmoothers<T> make_constant_smoothers(const SmoothedLevel<T>& level, bool additive) {
  const auto& kinds = level.level.patches.kinds;
  ColourSmoothers<T> smoothers;
  if (level.level.equation.kind == EquationKind::poisson) {
    smoothers.push_back(make_poisson_smoother(level));
    return smoothers;
  }
  const ParityKernel<T>* const variant = parity_kernel_for(level, additive);
  if (variant == nullptr) {
    const std::vector<char> all(kinds.size(), 1);
    smoothers.push_back(make_general_smoother(level, problems_of_kinds(level.level, all), false));
    return smoothers;
  }
  std::vector<char> rest;
  for (const PatchKind& kind : kinds) rest.push_back(splits_by_parity(kind, level.level.equation.dim) ? 0 : 1);
  smoothers.push_back(make_parity_smoother(level, *variant));
  smoothers.back()->use_tables(smoothers.back()->make_tables());
  if (std::count(rest.begin(), rest.end(), 1) > 0) {
    smoothers.push_back(make_general_smoother(level, problems_of_kinds(level.level, rest), true));
  }
  return smoothers;
}
template ColourSmoothers<float> make_constant_smoothers(const SmoothedLevel<float>&, bool);
template ColourSmoothers<double> make_constant_smoothers(const SmoothedLevel<double>&, bool);

template <class T>
void copy_uncovered(const SmoothedLevel<T>& level, const Colour<T>& colour) {
  const DeviceRecords& records = level.device.uncovered(colour.number);
  copy_records(records.count, records.list.data(), level.level.equation.record(), colour.x, colour.y,
               level.shared.stream);
}
template void copy_uncovered(const SmoothedLevel<float>&, const Colour<float>&);
template void copy_uncovered(const SmoothedLevel<double>&, const Colour<double>&);

LocalProblems problems_of_kinds(const Level& level, const std::vector<char>& take) {
  const Patches& patches = level.patches;
  LocalProblems problems;
  std::vector<int> number(take.size());
  for (std::size_t kind = 0; kind < take.size(); ++kind) {
    if (take[kind] == 0) continue;
    number[kind] = static_cast<int>(problems.all.size());
    problems.all.push_back({static_cast<int>(kind), level.coefficients});
  }
  for (const auto& runs : patches.colours) {
    auto& mine = problems.colours.emplace_back();
    for (const PatchRun& run : runs) {
      if (take[run.kind] == 0) continue;
      const auto first = patches.lower_cell.begin();
      mine.push_back({number[run.kind], {first + run.begin, first + run.end}});
    }
  }
  return problems;
}

template <class T>
DeviceProblems<T>::DeviceProblems(const SmoothedLevel<T>& level, const std::vector<LocalProblems::Problem>& problems,
                                  const Also& also) {
  const auto room = [](int size) { return inverse_numbers(InverseForm::padded_rows, size); };
  Engine& engine = level.shared.engine;
  std::vector<PatchData<T>> data;
  for (std::size_t begin = 0; begin < problems.size(); begin = data.size()) {
    const Coefficients& coefficients = problems[begin].coefficients;
    std::vector<int> kinds;
    for (auto i = begin; i < problems.size(); ++i) {
      if (!are_same(problems[i].coefficients, coefficients, level.level.grid)) break;
      kinds.push_back(problems[i].kind);
    }
    const PatchTables<T> tables(level.level, coefficients, kinds, level.local, false, room);
    auto& there = tables_.emplace_back(engine, static_cast<std::int64_t>(tables.size()));
    engine.upload(tables.values().data(), there.data(), tables.values().size_bytes());
    make_inverses(engine, tables.missing(), InverseForm::padded_rows, there.data(), level.shared.stream);
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      if (also) also(begin + i, tables.data(i, tables.values().data()));
      data.push_back(tables.data(i, there.data()));
    }
  }
  data_ = {engine, data};
}
template class DeviceProblems<float>;
template class DeviceProblems<double>;

}  // namespace solenoid::cuda
