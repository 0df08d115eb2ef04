#include "engine/cpu/cpu_kernels.hpp"

#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "base/caches.hpp"
#include "base/interrupt.hpp"
#include "engine/cpu/cell_shares.hpp"
#include "engine/cpu/kernels/table.hpp"
#include "engine/cpu/point_viscosity.hpp"
#include "engine/cpu/smoother.hpp"
#include "engine/cpu/transfers.hpp"
#include "engine/cpu/vector_operations.hpp"
#include "engine/tables.hpp"

namespace solenoid::cpu {
namespace {

/// Operator and smoother: SIMD kernels (kernels/) over ranges of cells and batches of patches, one range per thread.
template <class T>
class CpuKernels final : public VectorOperations<T> {
 public:
  CpuKernels(Team& team, const Level& level, LocalSolverKind local)
      : VectorOperations<T>(team, level),
        table_(kernel_table<T>(level.equation.kind, level.equation.dim, level.equation.order)),
        varying_(level.has_coefficients_by_cell() ? &varying_table<T>(level.equation.dim, level.equation.order)
                                                  : nullptr),
        sheared_(level.is_sheared() ? &sheared_table<T>(level.equation.dim, level.equation.order) : nullptr),
        topology_(topology_of(level.grid)),
        smoother_(team, level, local, table_),
        shares_(share_cells(team, level, sizeof(T), table_.locate)),
        transfers_(team, level, cell_, table_) {
    CpuKernels::use_tables(CpuKernels::make_tables());
  }

  [[nodiscard]] std::shared_ptr<CoefficientTables> make_tables() override {
    auto tables = tables_by<Tables>(this);
    tables->cell = make_cell_data<T>(level_);
    if (varying_ != nullptr) tables->cell.viscosity = T(0);  // VaryingData has it
    tables->local_problems = smoother_.make_tables(tables_ == nullptr ? nullptr : &tables_->local_problems);
    if (at_points_ != nullptr) tables->point_weights = at_points_->weights(tables_->point_weights);
    return tables;
  }
  std::shared_ptr<CoefficientTables> use_tables(std::shared_ptr<CoefficientTables> tables) override {
    const auto mine = made_as<Tables>(tables, this);
    require_tables_of_smoothers(smoother_.complete(mine->local_problems));
    cell_ = mine->cell;
    return std::exchange(tables_, mine);
  }
  void prepare_smoother(bool additive) override {
    if (!level_.small_patches.groups.empty() && !level_.goes_by_elements()) shares_of_small(0);
    if (!smoother_.prepare(additive)) return;
    CpuKernels::use_tables(CpuKernels::make_tables());
  }

  void take_points() override {
    if (!level_.has_viscosity_points()) return;
    at_points_ = std::make_unique<PointViscosityTerm>(team_, level_);
    tables_->point_weights = at_points_->weights(nullptr);
  }

  [[nodiscard]] bool smooths_from_halo() const override { return smoother_.has_halo_form(); }

  void apply(const T* x, T* y) override { apply_or_residual(shares_, nullptr, x, y); }
  void residual(const T* b, const T* x, T* r) override { apply_or_residual(shares_, b, x, r); }
  void residual_for_small(int group, const T* b, const T* x, T* r) override {
    if (level_.goes_by_elements()) return residual(b, x, r);
    apply_or_residual(shares_of_small(group), b, x, r);
  }

  void smooth(int colour, const T* b, const T* x, T* y) override {
    prepare_smoother(false);
    team_.run([&](int t) {
      smoother_.smooth(tables_->local_problems, cell_, {colour, Reads::anything, b, x, y}, t);
      copy_uncovered(colour, t, x, y);
    });
  }
  void smooth_inner(int colour, const T* b, const T* x, T* y, const std::function<void()>& advance) override {
    prepare_smoother(false);
    team_.run([&](int t) {
      smoother_.smooth(tables_->local_problems, cell_, {colour, Reads::no_ghosts, b, x, y, &advance}, t);
    });
  }
  void smooth_outer(int colour, const T* b, const T* x, T* y) override {
    team_.run([&](int t) {
      smoother_.smooth(tables_->local_problems, cell_, {colour, Reads::ghosts, b, x, y}, t);
      copy_uncovered(colour, t, x, y);  // ghosts among them
    });
  }
  void smooth_add(int colour, const T* b, const T* x, T* y, T damping) override {
    prepare_smoother(true);
    team_.run([&](int t) { smoother_.smooth_add(tables_->local_problems, cell_, colour, t, b, x, y, damping); });
  }
  void smooth_small(int group, const T* r, T* x, T damping) override {
    level_.require_constant_coefficients();
    level_.require_boxes();
    if (!smoother_.prepared()) prepare_smoother(false);
    team_.run([&](int t) { smoother_.smooth_small(tables_->local_problems, group, t, r, x, damping); });
  }

  void restrict_to(const Level& coarse, const T* fine_vector, T* coarse_vector) override {
    transfers_.restrict_to(coarse, fine_vector, coarse_vector);
  }
  void prolong_add(const Level& coarse, const T* coarse_vector, T* fine_vector) override {
    transfers_.prolong_add(coarse, coarse_vector, fine_vector);
  }

 private:
  using VectorOperations<T>::team_;
  using VectorOperations<T>::level_;

  /// Those with the small patches of a group.
  const std::vector<CellShare>& shares_of_small(int group) {
    if (small_shares_.empty()) {
      for (const SmallGroup& of : level_.small_patches.groups) {
        small_shares_.push_back(share_cells_of(of, team_, level_, sizeof(T), table_.locate));
      }
    }
    return small_shares_[group];
  }
  void apply_or_residual(const std::vector<CellShare>& shares, const T* b, const T* x, T* y) {
    // Streaming stores need whole cache lines; memory of the engine has them, that of others may not.
    const bool stream = large_ && reinterpret_cast<std::uintptr_t>(y) % 64 == 0;
    const std::optional<VaryingData<T>> varying =
        varying_ == nullptr ? std::nullopt : std::optional(Smoother<T>::varying(tables_->local_problems));
    team_.run([&](int t) {
      const CellShare& share = shares[t];
      ApplyArguments<T> arguments{&cell_,
                                  topology_,
                                  static_cast<Record>(share.range.begin),
                                  static_cast<Record>(share.range.end),
                                  share.blocks.data(),
                                  std::ssize(share.blocks),
                                  {share.carry[0].data(), share.carry[1].data(), share.carry[2].data()},
                                  {},
                                  x,
                                  b,
                                  y,
                                  stream};
      for (int c = 0; c < 3; ++c) arguments.carry_count[c] = std::ssize(share.carry[c]);
      if (sheared_ != nullptr) {
        sheared_->apply(Smoother<T>::sheared(tables_->local_problems), varying ? &*varying : nullptr, arguments);
      } else if (varying) {
        varying_->apply(*varying, arguments);
      } else {
        table_.apply(arguments);
      }
    });
    if constexpr (std::is_same_v<T, double>) {
      if (at_points_ != nullptr) at_points_->add(*tables_->point_weights, b == nullptr ? 1.0 : -1.0, x, y);
    }
  }

  /// Thread t's part of the records in no patch of a colour.
  void copy_uncovered(int colour, int t, const T* x, T* y) const {
    const auto& uncovered = level_.patches.uncovered[colour];
    const auto range = team_.range(std::ssize(uncovered), t);
    for (auto i = range.begin; i < range.end;) {
      auto end = i + 1;  // of consecutive records in a block
      while (end < range.end && uncovered[end] == uncovered[end - 1] + 1 && uncovered[end] % interleave != 0) ++end;
      const std::int64_t begin = level_.index(uncovered[i], 0);
      const std::int64_t past = level_.index(uncovered[i], level_.equation.record());
      for (std::int64_t at = begin; at < past; at += interleave) {
        for (std::int64_t l = at; l < at + (end - i); ++l) y[l] = x == nullptr ? T(0) : x[l];
      }
      i = end;
    }
  }

  struct Tables final : CoefficientTables {
    CellData<T> cell;
    typename Smoother<T>::Tables local_problems;
    std::shared_ptr<const HostPointWeights> point_weights;  // with the viscosity at points
  };

  const KernelTable<T>& table_;
  const VaryingTable<T>* varying_;  // where coefficients vary by cell, otherwise nullptr
  const ShearedTable<T>* sheared_;  // where cells are parallelepipeds, otherwise nullptr
  CellData<T> cell_;                // that of the tables, where transfers find it
  CellTopology topology_;
  Smoother<T> smoother_;
  std::unique_ptr<PointViscosityTerm> at_points_;  // once it was taken
  std::shared_ptr<Tables> tables_;
  std::vector<CellShare> shares_;                     // by thread
  std::vector<std::vector<CellShare>> small_shares_;  // [group]: where its residual is needed, once it was
  Transfers<T> transfers_;
  const bool large_ = level_.size() * static_cast<std::int64_t>(sizeof(T)) > cache_bytes(3) / 2;
};

}  // namespace

template <class T>
std::unique_ptr<Kernels<T>> make_cpu_kernels(Team& team, const Level& level, LocalSolverKind local) {
  return std::make_unique<CpuKernels<T>>(team, level, local);
}

template std::unique_ptr<Kernels<float>> make_cpu_kernels<float>(Team&, const Level&, LocalSolverKind);
template std::unique_ptr<Kernels<double>> make_cpu_kernels<double>(Team&, const Level&, LocalSolverKind);

}  // namespace solenoid::cpu
