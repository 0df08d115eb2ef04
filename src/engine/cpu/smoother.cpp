#include "engine/cpu/smoother.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <new>
#include <span>

#include "base/interrupt.hpp"
#include "base/parallel.hpp"
#include "engine/cpu/cell_shares.hpp"
#include "level/patch_scale.hpp"

namespace solenoid::cpu {
namespace {

// Batches; dense local solvers of high orders take a tenth of a second each.
constexpr std::int64_t between_looks = 8;
constexpr std::int64_t between_looks_of_halo = 32;

}  // namespace

template <class T>
Smoother<T>::Smoother(Team& team, const Level& level, LocalSolverKind local, const KernelTable<T>& table)
    : team_(team),
      level_(level),
      local_(local),
      table_(table),
      varying_(level.has_coefficients_by_cell() ? &varying_table<T>(level.equation.dim, level.equation.order)
                                                : nullptr),
      sheared_(level.is_sheared() ? &sheared_table<T>(level.equation.dim, level.equation.order) : nullptr),
      topology_(topology_of(level.grid)),
      takes_halo_(level.patches.kinds.size(), false) {
  if (has_halo_form()) takes_halo_ = halo_kinds(level);
  for (const PatchKind& kind : level.patches.kinds) splits_.push_back(splits_by_parity(kind, level.equation.dim));
  problem_of_ = first_with_problem(level);
  workspace_.resize(team.size());
}

template <class T>
bool Smoother<T>::prepare(bool additive) {
  if (additive ? all_.has_value() : halo_.has_value()) return false;
  const bool by_cell = varying_ != nullptr;  // then batches belong to tables
  small_places_ = small_places(level_);
  for (const auto& places : small_places_) {
    reserve_workspace(2 * std::ssize(places) * interleave * static_cast<std::int64_t>(sizeof(T)));
  }
  const auto kinds = static_cast<int>(takes_halo_.size());
  reserve_workspace(table_.workspace_bytes(by_cell ? std::numeric_limits<int>::max() : kinds));
  if (additive) {
    all_.emplace(team_, level_, [&](int kind, std::int64_t /*i*/) { return by_cell ? -1 : problem_of_[kind]; });
    return true;
  }
  others_.emplace(team_, level_,
                  [&](int kind, std::int64_t /*i*/) { return by_cell || takes_halo_[kind] ? -1 : problem_of_[kind]; });
  halo_.emplace(team_, level_, takes_halo_, table_.find_places);
  if (!halo_->problems.empty()) {
    reserve_workspace(table_.halo_workspace_bytes(static_cast<int>(halo_->problems.size())));
  }
  return true;
}

template <class T>
void Smoother<T>::reserve_workspace(std::int64_t bytes) {
  if (bytes <= workspace_bytes_) return;
  for (auto& memory : workspace_) {
    memory.reset(static_cast<std::byte*>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096)));
    if (memory == nullptr) throw std::bad_alloc();
  }
  workspace_bytes_ = bytes;
}

template <class T>
typename Smoother<T>::Tables Smoother<T>::make_tables(const Tables* before) const {
  Tables tables;
  tables.multiplicative_ = halo_.has_value();
  tables.additive_ = all_.has_value();
  if (sheared_ != nullptr) tables.sheared_ = make_sheared_data<T>(level_);
  if (varying_ != nullptr) {
    tables.varying_.emplace(level_);
    if (prepared()) tables.problems_ = make_problems(before == nullptr ? nullptr : before->problems_);
    return tables;
  }
  if (sheared_ == nullptr && prepared()) {
    tables.of_shapes_ = small_inverses<T>(level_);
  }
  std::vector<int> kinds;
  if (halo_) kinds = halo_->problems;
  for (int i = 0; i < std::ssize(takes_halo_); ++i) {
    const int problem = problem_of_[i];
    const bool known = std::find(kinds.begin(), kinds.end(), problem) != kinds.end();
    if (!known && (all_ || (others_ && !takes_halo_[i]))) kinds.push_back(problem);
  }
  const auto& values = tables.values_.emplace_back(level_, kinds, local_, true);
  tables.of_kinds_.resize(takes_halo_.size());
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    tables.of_kinds_[kinds[i]] = values.data(i, values.values().data());
  }
  if (halo_) {
    for (const int kind : halo_->problems) tables.of_problems_.push_back(tables.of_kinds_[kind]);
  }
  return tables;
}

/// Those with the same reaction are made together. They depend on no viscosity but by rounded numbers, and so are often
/// those that there are.
template <class T>
std::shared_ptr<const VaryingProblems<T>> Smoother<T>::make_problems(
    const std::shared_ptr<const VaryingProblems<T>>& before) const {
  const auto& lower_cell = level_.patches.lower_cell;
  std::vector<double> reactions(lower_cell.size());
  parallel_ranges({std::ssize(reactions)}, [&](CellRange range, std::int64_t) {
    for (auto i = range.begin; i < range.end; ++i) reactions[i] = patch_scale(level_, lower_cell[i]).reaction;
  });
  std::map<double, std::map<int, int>> numbers;  // [reaction][kind]
  std::vector<std::pair<double, int>> of_numbers;
  std::vector<int> of_patch(lower_cell.size());
  for (const auto& runs : level_.patches.colours) {
    for (const PatchRun& run : runs) {
      for (auto i = run.begin; i < run.end; ++i) {
        if (i > run.begin && reactions[i] == reactions[i - 1]) {
          of_patch[i] = of_patch[i - 1];
          continue;
        }
        const auto next = static_cast<int>(of_numbers.size());
        const auto [number, is_new] = numbers[reactions[i]].emplace(problem_of_[run.kind], next);
        if (is_new) of_numbers.emplace_back(reactions[i], problem_of_[run.kind]);
        of_patch[i] = number->second;
      }
    }
  }
  if (before != nullptr && before->numbers == of_numbers && before->of_patch == of_patch) return before;
  PatchBatches batches(team_, level_, [&](int /*kind*/, std::int64_t i) { return of_patch[i]; });
  auto problems = std::make_shared<VaryingProblems<T>>(
      VaryingProblems<T>{std::move(of_patch), std::move(of_numbers), {}, std::move(batches), {}, {}});
  problems->of_numbers.resize(problems->numbers.size());
  for (const auto& [reaction, kind] : problems->numbers) problems->splits.push_back(splits_[kind]);
  for (const auto& [reaction, of_kinds] : numbers) {
    std::vector<int> kinds;
    for (const auto& [kind, number] : of_kinds) kinds.push_back(kind);
    const auto& values = problems->values.emplace_back(level_, Coefficients{.reaction = reaction}, kinds, local_, true);
    std::size_t i = 0;
    for (const auto& [kind, number] : of_kinds) {
      problems->of_numbers[number] = values.data(i++, values.values().data());
    }
  }
  return problems;
}

template <class T>
bool Smoother<T>::complete(const Tables& tables) const {
  return tables.additive_ >= all_.has_value() && tables.multiplicative_ >= halo_.has_value();
}

template <class T>
SmoothArguments<T> Smoother<T>::arguments(const CellData<T>& cell, const Step& step, int t) const {
  Arguments arguments{};
  arguments.cell = &cell;
  arguments.topology = topology_;
  arguments.local = local_;
  std::copy_n(table_.solve, 2, arguments.solve);
  arguments.b = step.b;
  arguments.x = step.x;
  arguments.y = step.y;
  arguments.workspace = workspace_[t].get();
  return arguments;
}

template <class T>
void Smoother<T>::smooth(const Tables& tables, const CellData<T>& cell, const Step& step, int t) {
  smooth_halo(tables, cell, step, t);
  smooth_with_residual(tables, *others_, step, t, arguments(cell, step, t));
}

template <class T>
void Smoother<T>::smooth_add(const Tables& tables, const CellData<T>& cell, int colour, int t, const T* b, const T* x,
                             T* y, T damping) {
  const Step step{colour, Reads::anything, b, x, y};
  Arguments of_all = arguments(cell, step, t);
  of_all.add = true;
  of_all.damping = damping;
  smooth_with_residual(tables, *all_, step, t, of_all);
}

template <class T>
void Smoother<T>::smooth_small(const Tables& tables, int group, int t, const T* r, T* x, T damping) {
  const SmallGroup& of = level_.small_patches.groups[group];
  const std::vector<SmallPlace>& unknowns = small_places_[of.shape];
  SmallArguments<T> arguments{};
  arguments.records = of.patches.data()->data();
  arguments.unknowns = unknowns.data();
  arguments.size = static_cast<int>(unknowns.size());
  arguments.record_size = level_.equation.record();
  arguments.inverse = tables.of_shapes_[of.shape].data();
  arguments.r = r;
  arguments.x = x;
  arguments.damping = damping;
  arguments.workspace = workspace_[t].get();
  Team::in_pieces(team_.range(std::ssize(of.patches), t, interleave), between_looks * interleave,
                  [&](Team::Range range) {
                    arguments.begin = range.begin;
                    arguments.end = range.end;
                    table_.smooth_small(arguments);
                  });
}

template <class T>
void Smoother<T>::smooth_halo(const Tables& tables, const CellData<T>& cell, const Step& step, int t) {
  const std::span<const PatchLanes> batches = halo_->of(step.colour, step.what);
  const auto range = team_.range(std::ssize(batches), t);
  if (range.begin == range.end) return;
  HaloArguments<T> arguments{&cell,
                             topology_,
                             halo_->kinds.data(),
                             tables.of_problems_.data(),
                             halo_->splits.data(),
                             static_cast<int>(halo_->problems.size()),
                             batches.data(),
                             halo_->places[step.colour].data(),
                             range.begin,
                             range.end,
                             range.begin,
                             range.begin,
                             step.b,
                             step.x,
                             step.y,
                             workspace_[t].get()};
  while (arguments.begin < arguments.last) {
    check_interrupt();
    advance(step, t);
    arguments.end = std::min(arguments.last, arguments.begin + between_looks_of_halo);
    table_.smooth_halo(arguments);
    arguments.begin = arguments.end;
  }
}

template <class T>
void Smoother<T>::smooth_with_residual(const Tables& tables, const PatchBatches& batches, const Step& step, int t,
                                       Arguments arguments) {
  const bool by_cell = varying_ != nullptr;
  const VaryingData<T> coefficients = by_cell ? varying(tables) : VaryingData<T>{};
  const std::span<const PatchLanes> of_colour =
      (by_cell ? tables.problems_->batches : batches).of(step.colour, step.what);
  const auto& problems = by_cell ? tables.problems_->of_numbers : tables.of_kinds_;
  arguments.problems = problems.data();
  arguments.problem_count = static_cast<int>(problems.size());
  arguments.splits = (by_cell ? tables.problems_->splits : splits_).data();
  arguments.batches = of_colour.data();
  const auto range = team_.range(std::ssize(of_colour), t);
  arguments.first = range.begin;
  arguments.last = range.end;
  Team::in_pieces(range, between_looks, [&](Team::Range piece) {
    advance(step, t);
    arguments.begin = piece.begin;
    arguments.end = piece.end;
    if (sheared_ != nullptr) {
      sheared_->smooth(sheared(tables), by_cell ? &coefficients : nullptr, arguments);
    } else if (by_cell) {
      varying_->smooth(coefficients, arguments);
    } else {
      table_.smooth(arguments);
    }
  });
}

template class Smoother<float>;
template class Smoother<double>;

}  // namespace solenoid::cpu
