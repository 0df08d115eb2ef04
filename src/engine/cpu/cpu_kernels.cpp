#include "engine/cpu/cpu_kernels.hpp"

#include <cstdlib>
#include <cstring>
#include <new>
#include <numeric>
#include <optional>
#include <vector>

#include "base/caches.hpp"
#include "base/interrupt.hpp"
#include "engine/cpu/batches.hpp"
#include "engine/cpu/cell_shares.hpp"
#include "engine/cpu/kernels/table.hpp"
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
        local_(local),
        topology_(topology_of(level.grid)),
        batches_(level),
        shares_(share_cells(team, level, sizeof(T), table_.locate)),
        transfers_(team, level, cell_, table_) {
    CpuKernels::use_tables(CpuKernels::make_tables());
    workspace_.resize(team.size());
    for (auto& memory : workspace_) {
      memory.reset(static_cast<std::byte*>(std::aligned_alloc(4096, (table_.workspace_bytes + 4095) / 4096 * 4096)));
      if (memory == nullptr) throw std::bad_alloc();
    }
  }

  [[nodiscard]] std::shared_ptr<CoefficientTables> make_tables() override {
    auto tables = tables_by<Tables>(this);
    tables->cell = make_cell_data<T>(level_);
    if (!smooths_) return tables;
    const auto& kinds = level_.patches.kinds;
    std::vector<int> all(kinds.size());
    std::iota(all.begin(), all.end(), 0);
    const auto& values = tables->values.emplace(level_, all, local_, true);
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      tables->patches.push_back(
          {values.data(i, values.values().data()), splits_by_parity(kinds[i], level_.equation.dim)});
    }
    return tables;
  }
  void use_tables(std::shared_ptr<CoefficientTables> tables) override {
    const auto mine = made_as<Tables>(tables, this);
    require_tables_of_smoothers(!smooths_ || mine->patches.size() == level_.patches.kinds.size());
    tables_ = mine;
    cell_ = mine->cell;
  }
  void prepare_smoother(bool /*additive*/) override {
    if (smooths_) return;
    smooths_ = true;
    CpuKernels::use_tables(CpuKernels::make_tables());
  }

  void apply(const T* x, T* y) override { apply_or_residual(nullptr, x, y); }
  void residual(const T* b, const T* x, T* r) override { apply_or_residual(b, x, r); }

  void smooth(int colour, const T* b, const T* x, T* y) override {
    smooth_patches(colour, b, x, y, false, T(1), [&](int t) { copy_uncovered(colour, t, x, y); });
  }
  void smooth_add(int colour, const T* b, const T* x, T* y, T damping) override {
    smooth_patches(colour, b, x, y, true, damping, [](int) {});
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

  void apply_or_residual(const T* b, const T* x, T* y) {
    // Streaming stores need whole cache lines; memory of the engine has them, that of others may not.
    const bool stream = large_ && reinterpret_cast<std::uintptr_t>(y) % 64 == 0;
    team_.run([&](int t) {
      const CellShare& share = shares_[t];
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
      table_.apply(arguments);
    });
  }

  /// also(t) is done by every thread when it is done with its patches.
  template <class F>
  void smooth_patches(int colour, const T* b, const T* x, T* y, bool add, T damping, F&& also) {
    prepare_smoother(add);
    team_.run([&](int t) {
      const auto& runs = batches_.colours[colour];
      const std::int64_t first = runs.empty() ? 0 : runs.front().begin;
      const auto range = team_.range(runs.empty() ? 0 : runs.back().end - first, t);
      for (const PatchRun& run : runs) {
        const std::int64_t begin = std::max(run.begin, first + range.begin);
        const std::int64_t end = std::min(run.end, first + range.end);
        if (begin >= end) continue;
        const Patch& patch = tables_->patches[run.kind];
        SmoothArguments<T> arguments{&cell_,
                                     &patch.data,
                                     topology_,
                                     batches_.lower.data(),
                                     batches_.active.data(),
                                     begin,
                                     end,
                                     first + range.end,
                                     local_,
                                     b,
                                     x,
                                     y,
                                     add,
                                     damping,
                                     workspace_[t].get()};
        constexpr std::int64_t between_looks = 8;  // dense local solvers of high orders take a tenth of a second each
        for (; arguments.begin < end; arguments.begin = arguments.end) {
          check_interrupt();
          arguments.end = std::min(end, arguments.begin + between_looks);
          (patch.parity ? table_.smooth_parity : table_.smooth_general)(arguments);
        }
      }
      also(t);
    });
  }

  /// Thread t's part of the records in no patch of a colour.
  void copy_uncovered(int colour, int t, const T* x, T* y) const {
    const auto& uncovered = level_.patches.uncovered[colour];
    const auto range = team_.range(std::ssize(uncovered), t);
    for (auto i = range.begin; i < range.end;) {
      auto end = i + 1;  // of consecutive records in a block
      while (end < range.end && uncovered[end] == uncovered[end - 1] + 1 && uncovered[end] % interleave != 0) ++end;
      const std::size_t bytes = (end - i) * sizeof(T);
      for (int value = 0; value < level_.equation.record(); ++value) {
        const std::int64_t at = level_.index(uncovered[i], value);
        if (x == nullptr) {
          std::memset(y + at, 0, bytes);
        } else {
          std::memcpy(y + at, x + at, bytes);
        }
      }
      i = end;
    }
  }

  struct Patch {
    PatchData<T> data;
    bool parity;
  };
  struct Tables final : CoefficientTables {
    CellData<T> cell;
    std::optional<PatchTables<T>> values;
    std::vector<Patch> patches;  // by patch kind
  };

  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };

  const KernelTable<T>& table_;
  LocalSolverKind local_;
  CellData<T> cell_;  // that of the tables, where transfers find it
  CellTopology topology_;
  bool smooths_ = false;  // tables of patches are made for those who smooth only
  std::shared_ptr<Tables> tables_;
  PatchBatches batches_;
  std::vector<CellShare> shares_;  // by thread
  Transfers<T> transfers_;
  const bool large_ = level_.size() * static_cast<std::int64_t>(sizeof(T)) > cache_bytes(3) / 2;
  std::vector<std::unique_ptr<std::byte, Free>> workspace_;
};

}  // namespace

template <class T>
std::unique_ptr<Kernels<T>> make_cpu_kernels(Team& team, const Level& level, LocalSolverKind local) {
  return std::make_unique<CpuKernels<T>>(team, level, local);
}

template std::unique_ptr<Kernels<float>> make_cpu_kernels<float>(Team&, const Level&, LocalSolverKind);
template std::unique_ptr<Kernels<double>> make_cpu_kernels<double>(Team&, const Level&, LocalSolverKind);

}  // namespace solenoid::cpu
