/// \file
/// The cpu engine: SIMD kernels (kernels/) over ranges of cells and patches, one range per thread.

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <new>

#include "base/caches.hpp"
#include "base/threads.hpp"
#include "engine/cpu/ceilings.hpp"
#include "engine/cpu/kernels/table.hpp"
#include "engine/cpu/team.hpp"
#include "engine/engine.hpp"
#include "engine/tables.hpp"
#include "solenoid/error.hpp"

namespace solenoid {
namespace {

using cpu::Team;
using Record = Grid::Record;

CellTopology topology_of(const Grid& grid) {
  CellTopology topology{{}, {}, grid.cells(), grid.records(), grid.null()};
  for (int side = 0; side < 6; ++side) {
    topology.neighbour[side] = grid.neighbours(side);
    topology.face[side] = grid.faces(side);
  }
  return topology;
}

template <class T>
class CpuKernels final : public Kernels<T> {
 public:
  CpuKernels(Team& team, const Level& level, LocalSolverKind local)
      : team_(team),
        level_(level),
        table_(cpu::kernel_table<T>(level.equation.kind, level.equation.dim, level.equation.order)),
        local_(local),
        cell_(make_cell_data<T>(level)),
        topology_(topology_of(level.grid)) {
    for (const PatchKind& kind : level.patches.kinds) {
      const PatchSolver solver(level.equation, level.grid.size(), kind, local);
      const bool parity = splits_by_parity(kind, level.equation.dim);
      tables_.emplace_back(level.equation, kind, solver, parity);
      patches_.push_back({tables_.back().data(tables_.back().values().data()), parity});
    }
    make_batches();
    make_carry_lists();
    make_order();
    workspace_.resize(team.size());
    for (auto& memory : workspace_) {
      memory.reset(static_cast<std::byte*>(std::aligned_alloc(4096, (table_.workspace_bytes + 4095) / 4096 * 4096)));
      if (memory == nullptr) throw std::bad_alloc();
    }
  }

  [[nodiscard]] const Level& level() const override { return level_; }

  void apply(const T* x, T* y) override { apply_or_residual(nullptr, x, y); }
  void residual(const T* b, const T* x, T* r) override { apply_or_residual(b, x, r); }

  void smooth(int colour, const T* b, const T* x, T* y) override {
    const auto& uncovered = level_.patches.uncovered[colour];
    smooth_patches(colour, b, x, y, false, T(1), [&](int t) {
      const auto range = team_.range(static_cast<std::int64_t>(uncovered.size()), t);
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
    });
  }

  void smooth_add(int colour, const T* b, const T* x, T* y, T damping) override {
    smooth_patches(colour, b, x, y, true, damping, [](int) {});
  }

  void restrict_to(const Level& coarse, const T* fine_vector, T* coarse_vector) override {
    transfer(coarse, fine_vector, coarse_vector, table_.restrict_to);
    for_hat_only(coarse, [&](std::int64_t coarse_index) { coarse_vector[coarse_index] = T(0); });
    const auto gather = [&](std::int64_t coarse_index, std::int64_t fine_index, T weight) {
      coarse_vector[coarse_index] += weight * fine_vector[fine_index];
    };
    couple_hat_only(coarse, FineHat::same_face, gather);
    couple_hat_only(coarse, FineHat::middle, gather);
  }

  void prolong_add(const Level& coarse, const T* coarse_vector, T* fine_vector) override {
    transfer(coarse, coarse_vector, fine_vector, table_.prolong_add);
    // The kernel has seen to the middle hats already.
    couple_hat_only(coarse, FineHat::same_face, [&](std::int64_t coarse_index, std::int64_t fine_index, T weight) {
      fine_vector[fine_index] += weight * coarse_vector[coarse_index];
    });
  }

  void zero(T* x) override {
    for_range([=](auto range) { std::memset(x + range.begin, 0, (range.end - range.begin) * sizeof(T)); });
  }
  void copy(const T* x, T* y) override {
    for_range(
        [=](auto range) { std::memcpy(y + range.begin, x + range.begin, (range.end - range.begin) * sizeof(T)); });
  }
  void scale(T a, T* x) override {
    for_range([=](auto range) {
      for (auto i = range.begin; i < range.end; ++i) x[i] *= a;
    });
  }
  void axpy(T a, const T* x, T* y) override {
    for_range([=](auto range) {
      for (auto i = range.begin; i < range.end; ++i) y[i] += a * x[i];
    });
  }
  void dots(int count, const T* const* v, const T* w, double* result) override {
    // Blocks keep w in the first-level cache for all v; several partial sums keep the order of additions fixed and
    // fast.
    constexpr std::int64_t block = 2048;
    constexpr int partial = 16;
    std::vector<double> sums(static_cast<std::size_t>(team_.size()) * count, 0.0);
    team_.run([&](int t) {
      const auto range = team_.range(level_.size(), t, grain);
      std::vector<double> mine(count, 0.0);
      for (auto begin = range.begin; begin < range.end; begin += block) {
        const auto end = std::min(begin + block, range.end);
        for (int i = 0; i < count; ++i) {
          double sum[partial] = {};
          auto j = begin;
          for (; j + partial <= end; j += partial) {
            for (int l = 0; l < partial; ++l)
              sum[l] += static_cast<double>(v[i][j + l]) * static_cast<double>(w[j + l]);
          }
          for (; j < end; ++j) sum[0] += static_cast<double>(v[i][j]) * static_cast<double>(w[j]);
          for (const double part : sum) mine[i] += part;
        }
      }
      std::copy(mine.begin(), mine.end(), sums.begin() + static_cast<std::ptrdiff_t>(t) * count);
    });
    for (int i = 0; i < count; ++i) {
      result[i] = 0.0;
      for (int t = 0; t < team_.size(); ++t) result[i] += sums[static_cast<std::size_t>(t) * count + i];
    }
  }

  void axpys(int count, const double* a, const T* const* v, double scale, T* w) override {
    add_all(count, a, v, static_cast<T>(scale), w);
  }

  void project(T* x) override {
    const int block = power(level_.equation.n(), level_.equation.dim);
    if (level_.constants.pressure) {
      remove_mean(x, level_.equation.velocities() * block, [&](Record r) { return r < level_.grid.cells(); });
    }
    // A constant velocity has equal hats (those of hat-only records too), tangential modes 0.
    for (int c = 0; c < level_.equation.velocities(); ++c) {
      if (!level_.constants.velocity[c]) continue;
      remove_mean(x, c * block, [&](Record r) { return r < level_.grid.cells() || level_.grid.hat_direction(r) == c; });
    }
  }

  void dense(std::int64_t count, const std::int64_t* index, const T* matrix, const T* b, T* x) override {
    team_.run([&](int t) {
      const auto range = team_.range(count, t);
      for (auto i = range.begin; i < range.end; ++i) {
        constexpr int partial = 16;
        T sum[partial] = {};
        const T* row = matrix + i * count;
        std::int64_t j = 0;
        for (; j + partial <= count; j += partial) {
          for (int l = 0; l < partial; ++l) sum[l] += row[j + l] * b[index[j + l]];
        }
        for (; j < count; ++j) sum[0] += row[j] * b[index[j]];
        T total = T(0);
        for (const T part : sum) total += part;
        x[index[i]] = total;
      }
    });
  }

  void from_double(const double* x, T* y) override { convert(x, y); }
  void from_float(const float* x, T* y) override { convert(x, y); }
  void axpys_float(int count, const double* a, const float* const* v, T* w) override { add_all(count, a, v, T(1), w); }

 private:
  static constexpr std::int64_t grain = 512;

  template <class F>
  void for_range(F&& f) {
    team_.run([&](int t) { f(team_.range(level_.size(), t, grain)); });
  }

  /// w = scale (w + sum_i a[i] v[i])
  template <class S>
  void add_all(int count, const double* a, const S* const* v, T scale, T* w) {
    constexpr std::int64_t block = 2048;
    for_range([=](auto range) {
      for (auto begin = range.begin; begin < range.end; begin += block) {
        const auto end = std::min(begin + block, range.end);
        for (int i = 0; i < count; ++i) {
          const T factor = static_cast<T>(a[i]);
          for (auto j = begin; j < end; ++j) w[j] += factor * static_cast<T>(v[i][j]);
        }
        if (scale == T(1)) continue;
        for (auto j = begin; j < end; ++j) w[j] *= scale;
      }
    });
  }
  template <class S>
  void convert(const S* x, T* y) {
    for_range([=](auto range) {
      for (auto i = range.begin; i < range.end; ++i) y[i] = static_cast<T>(x[i]);
    });
  }

  /// Whole blocks of cells for each thread.
  [[nodiscard]] Team::Range cell_range(int t) const { return team_.range(level_.grid.cells(), t, interleave); }

  /// Patches in batches of one per lane. Where enough lower cells of a block of records are patches of a kind, the
  /// lanes are the block, so that records are read as they lie; the others, as those along walls, fill batches in
  /// order. All kinds of a colour advance through the mesh together: what one brings into the caches others find there.
  void make_batches() {
    constexpr int width = interleave;
    struct NewBatch {
      Record last;  ///< lower cell
      int kind;
      std::uint32_t active;
      std::array<Record, interleave> lower;
    };
    const auto& patches = level_.patches;
    for (const auto& runs : patches.colours) {
      std::vector<NewBatch> batches;
      for (const PatchRun& run : runs) {
        std::vector<Record> left_over;
        const auto fill = [&] {
          NewBatch batch{left_over.back(), run.kind, (1U << left_over.size()) - 1, {}};
          batch.lower.fill(level_.grid.null());
          std::copy(left_over.begin(), left_over.end(), batch.lower.begin());
          batches.push_back(batch);
          left_over.clear();
        };
        for (auto i = run.begin; i < run.end;) {
          const Record group = patches.lower_cell[i] / width;
          auto end = i;
          std::uint32_t active = 0;
          for (; end < run.end && patches.lower_cell[end] / width == group; ++end) {
            active |= 1U << patches.lower_cell[end] % width;
          }
          if (2 * (end - i) >= width) {
            NewBatch batch{patches.lower_cell[end - 1], run.kind, active, {}};
            for (int l = 0; l < width; ++l) {
              const Record cell = group * width + l;
              batch.lower[l] = cell < level_.grid.cells() ? cell : level_.grid.null();
            }
            batches.push_back(batch);
            i = end;
          }
          for (; i < end; ++i) {
            left_over.push_back(patches.lower_cell[i]);
            if (left_over.size() == width) fill();
          }
        }
        if (!left_over.empty()) fill();
      }
      std::sort(batches.begin(), batches.end(), [](const NewBatch& a, const NewBatch& b) { return a.last < b.last; });
      auto& colour = batches_.emplace_back();
      for (const NewBatch& batch : batches) {
        const auto begin = std::ssize(active_);
        if (colour.empty() || colour.back().kind != batch.kind) colour.push_back({batch.kind, begin, begin});
        ++colour.back().end;
        lower_.insert(lower_.end(), batch.lower.begin(), batch.lower.end());
        active_.push_back(batch.active);
      }
    }
  }

  void make_carry_lists() {
    const Grid& grid = level_.grid;
    carry_.resize(team_.size());
    for (int t = 0; t < team_.size(); ++t) {
      const auto range = cell_range(t);
      for (auto cell = static_cast<Record>(range.begin); cell < range.end; ++cell) {
        for (int c = 0; c < level_.equation.velocities(); ++c) {
          const Record below = grid.neighbour(cell, 2 * c);
          if (below < grid.cells() && (below < range.begin || below >= range.end)) carry_[t][c].push_back(below);
        }
      }
    }
  }

  /// The order of the operator's blocks of cells, the same as their numbers or, where three layers of cells do not fit
  /// into the second-level cache, strip by strip of rows that do; and what follows from it for the shares of hats.
  void make_order() {
    const Grid& grid = level_.grid;
    const int dim = level_.equation.dim;
    const std::int64_t row = std::int64_t{grid.extent()[0]} * level_.equation.record() * static_cast<int>(sizeof(T));
    constexpr int fewest = 4;  // rows of a strip: those at its ends are read twice
    const auto rows = std::max<std::int64_t>(fewest, cache_bytes(2) / 2 / (3 * row));
    const auto strip = [&](Record cell) { return dim == 3 ? grid.position(cell)[1] / rows : 0; };
    blocks_.resize(team_.size());
    std::vector<std::int32_t> turn(grid.null() + 1, -1);  // of a cell, in its thread
    for (int t = 0; t < team_.size(); ++t) {
      const auto range = cell_range(t);
      auto& blocks = blocks_[t];
      for (auto cell = range.begin; cell < range.end; cell += interleave) {
        blocks.emplace_back().first = static_cast<Record>(cell);
      }
      std::stable_sort(blocks.begin(), blocks.end(),
                       [&](const auto& a, const auto& b) { return strip(a.first) < strip(b.first); });
      for (std::size_t i = 0; i < blocks.size(); ++i) {
        const auto end = std::min<std::int64_t>(blocks[i].first + interleave, range.end);
        std::fill(turn.begin() + blocks[i].first, turn.begin() + end, static_cast<std::int32_t>(i));
      }
    }
    team_.run([&](int t) {
      const auto range = cell_range(t);
      const auto inside = [&](Record r) { return r >= range.begin && r < range.end; };
      for (cpu::CellBlock& block : blocks_[t]) {
        table_.locate(topology_, static_cast<Record>(range.end), block);
        for (Record cell = block.first; cell < std::min<std::int64_t>(block.first + interleave, range.end); ++cell) {
          const auto lane = static_cast<std::uint16_t>(1U << (cell - block.first));
          for (int c = 0; c < level_.equation.velocities(); ++c) {
            const Record below = grid.neighbour(cell, 2 * c);
            const Record next = grid.neighbour(cell, 2 * c + 1);
            const bool waits = inside(below) ? turn[below] < turn[cell] : below < grid.cells();
            if (waits) block.share_waits[c] |= lane;
            if (inside(next)) (turn[next] > turn[cell] ? block.next_is_later : block.next_is_done)[c] |= lane;
          }
        }
      }
    });
  }

  void apply_or_residual(const T* b, const T* x, T* y) {
    // Streaming stores need whole cache lines; memory of the engine has them, that of others may not.
    const bool stream = large_ && reinterpret_cast<std::uintptr_t>(y) % 64 == 0;
    team_.run([&](int t) {
      const auto range = cell_range(t);
      cpu::ApplyArguments<T> arguments{&cell_,
                                       topology_,
                                       static_cast<Record>(range.begin),
                                       static_cast<Record>(range.end),
                                       blocks_[t].data(),
                                       std::ssize(blocks_[t]),
                                       {carry_[t][0].data(), carry_[t][1].data(), carry_[t][2].data()},
                                       {},
                                       x,
                                       b,
                                       y,
                                       stream};
      for (int c = 0; c < 3; ++c) arguments.carry_count[c] = static_cast<std::int64_t>(carry_[t][c].size());
      table_.apply(arguments);
    });
  }

  template <class F>
  void smooth_patches(int colour, const T* b, const T* x, T* y, bool add, T damping, F&& also) {
    team_.run([&](int t) {
      const auto& runs = batches_[colour];
      const std::int64_t first = runs.empty() ? 0 : runs.front().begin;
      const auto range = team_.range(runs.empty() ? 0 : runs.back().end - first, t);
      for (const PatchRun& run : runs) {
        const std::int64_t begin = std::max(run.begin, first + range.begin);
        const std::int64_t end = std::min(run.end, first + range.end);
        if (begin >= end) continue;
        const Patch& patch = patches_[run.kind];
        const cpu::SmoothArguments<T> arguments{
            &cell_, &patch.data, topology_, lower_.data(), active_.data(),     begin, end, first + range.end, local_, b,
            x,      y,           add,       damping,       workspace_[t].get()};
        (patch.parity ? table_.smooth_parity : table_.smooth_general)(arguments);
      }
      also(t);
    });
  }

  const std::vector<Record>& children(const Level& coarse) {
    if (children_.empty()) children_ = children_of(level_, coarse);
    return children_;
  }

  template <class F>
  void transfer(const Level& coarse, const T* from, T* to, F kernel) {
    const Record* children_data = children(coarse).data();
    team_.run([&](int t) {
      const auto range = team_.range(coarse.grid.cells(), t, interleave);
      const cpu::TransferArguments<T> arguments{&cell_,
                                                topology_of(coarse.grid),
                                                children_data,
                                                level_.grid.null(),
                                                {level_.coarsened[0], level_.coarsened[1], level_.coarsened[2]},
                                                static_cast<Record>(range.begin),
                                                static_cast<Record>(range.end),
                                                from,
                                                to};
      kernel(arguments);
    });
  }

  /// visit(index) for every hat of the coarse hat-only records.
  template <class F>
  void for_hat_only(const Level& coarse, F&& visit) {
    const int block = power(level_.equation.n(), level_.equation.dim);
    const int columns = power(level_.equation.n(), level_.equation.dim - 1);
    for (Record hat = coarse.grid.cells(); hat < coarse.grid.records(); ++hat) {
      for (int i = 0; i < columns; ++i) visit(coarse.index(hat, coarse.grid.hat_direction(hat) * block + i));
    }
  }

  /// The fine hats that a coarse hat on an upper outflow face is made of: those on the same face, and those in the
  /// middle of the coarse cell.
  enum class FineHat { same_face, middle };

  /// couple(coarse index, fine index, weight) for the hats of coarse hat-only records.
  template <class F>
  void couple_hat_only(const Level& coarse, FineHat which, F&& couple) {
    const Equation& equation = level_.equation;
    const int dim = equation.dim;
    const int n = equation.n();
    const int block = power(n, dim);
    const int columns = power(n, dim - 1);
    for (Record hat = coarse.grid.cells(); hat < coarse.grid.records(); ++hat) {
      const int c = coarse.grid.hat_direction(hat);
      const bool refined = level_.coarsened[c];
      if (!refined && which == FineHat::middle) continue;
      const int row = which == FineHat::same_face ? n : 0;  // of the upper child
      const T own = refined ? cell_.embed_p[1][row][n] : T(1);
      const Record cell = coarse.grid.neighbour(hat, 2 * c);
      for (int bits = 0; bits < 1 << dim; ++bits) {
        if (((bits >> c & 1) != 0) != refined) continue;
        const Record child = children(coarse)[(static_cast<std::size_t>(cell) << dim) + bits];
        if (child == level_.grid.null()) continue;
        const Record fine = which == FineHat::same_face ? level_.grid.neighbour(child, 2 * c + 1) : child;
        const auto embed = [&](int direction, int fine_mode, int coarse_mode) -> T {
          if (!level_.coarsened[direction]) return fine_mode == coarse_mode ? T(1) : T(0);
          return cell_.embed_o[bits >> direction & 1][fine_mode][coarse_mode];
        };
        for (int j = 0; j < columns; ++j) {
          for (int i = 0; i < columns; ++i) {
            const T tangential =
                embed((c + 1) % dim, i % n, j % n) * (dim == 3 ? embed((c + 2) % dim, i / n, j / n) : T(1));
            couple(coarse.index(hat, c * block + j), level_.index(fine, c * block + i), own * tangential);
          }
        }
      }
    }
  }

  /// Subtracts from value `i` of the records with carries(record) its mean over them.
  template <class F>
  void remove_mean(T* x, int i, F&& carries) {
    struct Sum {
      double value = 0.0;
      std::int64_t count = 0;
    };
    std::vector<Sum> sums(team_.size());
    const auto for_carriers = [&](int t, auto&& visit) {
      const auto range = team_.range(level_.grid.records(), t);
      for (auto r = static_cast<Record>(range.begin); r < range.end; ++r) {
        if (carries(r)) visit(x[level_.index(r, i)]);
      }
    };
    team_.run([&](int t) {
      Sum sum;
      for_carriers(t, [&](T value) {
        sum.value += static_cast<double>(value);
        ++sum.count;
      });
      sums[t] = sum;
    });
    Sum all;
    for (const Sum& sum : sums) {
      all.value += sum.value;
      all.count += sum.count;
    }
    const T mean = static_cast<T>(all.value / static_cast<double>(all.count));
    team_.run([&](int t) { for_carriers(t, [&](T& value) { value -= mean; }); });
  }

  struct Patch {
    PatchData<T> data;
    bool parity;
  };

  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };

  Team& team_;
  const Level& level_;
  const cpu::KernelTable<T>& table_;
  LocalSolverKind local_;
  CellData<T> cell_;
  CellTopology topology_;
  std::vector<PatchTables<T>> tables_;  // by patch kind
  std::vector<Patch> patches_;
  std::vector<std::vector<PatchRun>> batches_;  // [colour]: runs of batches
  std::vector<Record> lower_;                   // [batch][lane]
  std::vector<std::uint32_t> active_;           // [batch]
  std::vector<std::array<std::vector<Record>, 3>> carry_;
  std::vector<std::vector<cpu::CellBlock>> blocks_;  // [thread]: of the operator, in the order of its work
  const bool large_ = level_.size() * static_cast<std::int64_t>(sizeof(T)) > cache_bytes(3) / 2;
  std::vector<Record> children_;
  std::vector<std::unique_ptr<std::byte, Free>> workspace_;
};

/// Bytes that the system says can still be allocated.
std::int64_t available_memory() {
  std::ifstream info("/proc/meminfo");
  for (std::string key; info >> key;) {
    std::int64_t kilobytes = 0;
    if (key == "MemAvailable:" && info >> kilobytes) return kilobytes * 1024;
  }
  return static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

class CpuEngine final : public Engine {
 public:
  explicit CpuEngine(int threads) : team_(threads) {}

  [[nodiscard]] std::string description() const override {
    const std::string_view set = cpu::instruction_set();
    const std::string_view name = set == "v4" ? "AVX-512" : set == "v3" ? "AVX2" : "SIMD of the build";
    return fmt::format("cpu, {} thread{}, {}", team_.size(), team_.size() == 1 ? "" : "s", name);
  }
  [[nodiscard]] int threads() const override { return team_.size(); }

  /// The level itself: lattice, neighbours, faces, patches.
  [[nodiscard]] std::int64_t bytes_per_cell(int dim) const override { return dim == 2 ? 150 : 175; }

  std::unique_ptr<Kernels<float>> kernels_float(const Level& level, LocalSolverKind local) override {
    return std::make_unique<CpuKernels<float>>(team_, level, local);
  }
  std::unique_ptr<Kernels<double>> kernels_double(const Level& level, LocalSolverKind local) override {
    return std::make_unique<CpuKernels<double>>(team_, level, local);
  }

  void* allocate(std::size_t bytes) override {
    // Huge pages: records of neighbouring rows lie far apart, and 4 KiB pages would miss the address cache.
    constexpr std::size_t huge = std::size_t{1} << 21;
    const std::size_t alignment = bytes >= huge ? huge : 64;
    void* memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    if (memory == nullptr) {
      throw ResourceError(fmt::format("out of memory: {:.2f} GB asked for, {:.2f} GB in use by this solve",
                                      bytes * 1e-9, static_cast<double>(bytes_in_use_) * 1e-9));
    }
    if (bytes >= huge) madvise(memory, bytes, MADV_HUGEPAGE);
    team_.run([&](int t) {  // pages land near the thread that first touches them
      const auto range = team_.range(static_cast<std::int64_t>(bytes), t, 4096);
      std::memset(static_cast<std::byte*>(memory) + range.begin, 0, range.end - range.begin);
    });
    bytes_in_use_ += static_cast<std::int64_t>(bytes);
    bytes_peak_ = std::max(bytes_peak_, bytes_in_use_);
    return memory;
  }
  void release(void* memory, std::size_t bytes) noexcept override {
    std::free(memory);
    bytes_in_use_ -= static_cast<std::int64_t>(bytes);
  }
  void zero(void* memory, std::size_t bytes) override { std::memset(memory, 0, bytes); }
  void upload(const void* host, void* device, std::size_t bytes) override { std::memcpy(device, host, bytes); }
  void download(const void* device, void* host, std::size_t bytes) override { std::memcpy(host, device, bytes); }
  void synchronise() override {}
  Ceilings measure_ceilings() override {
    return {.memory = measure_copy(team_.size(), bytes_available()).bytes_per_second,
            .fma_float = measure_fma<float>(team_.size()),
            .fma_double = measure_fma<double>(team_.size())};
  }
  [[nodiscard]] std::int64_t bytes_in_use() const override { return bytes_in_use_; }
  [[nodiscard]] std::int64_t bytes_peak() const override { return bytes_peak_; }
  [[nodiscard]] std::int64_t bytes_available() const override { return available_memory(); }

 private:
  Team team_;
  std::int64_t bytes_in_use_ = 0;
  std::int64_t bytes_peak_ = 0;
};

}  // namespace

std::unique_ptr<Engine> make_cpu_engine(int threads) { return std::make_unique<CpuEngine>(threads_for(threads)); }

}  // namespace solenoid
