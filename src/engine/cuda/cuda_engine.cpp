/// \file
/// The cuda engine: device memory, levels on the device, and kernels (kernels/) in the order of one stream.

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <span>
#include <tuple>

#include "base/parallel.hpp"
#include "engine/cuda/ceilings.hpp"
#include "engine/cuda/error.hpp"
#include "engine/cuda/kernels/parity.hpp"
#include "engine/cuda/kernels/poisson.hpp"
#include "engine/cuda/parity_plan.hpp"
#include "engine/cuda/profile.hpp"
#include "engine/cuda/tiles.hpp"
#include "engine/cuda/vector.hpp"
#include "engine/engine.hpp"
#include "engine/tables.hpp"
#include "solenoid/error.hpp"

namespace solenoid {
namespace cuda {
namespace {

std::atomic<const char*> last_launch{nullptr};
thread_local int rehearsals = 0;

}  // namespace

Rehearsal::Rehearsal() noexcept { ++rehearsals; }
Rehearsal::~Rehearsal() { --rehearsals; }
bool Rehearsal::active() noexcept { return rehearsals > 0; }

void note_launch(const char* kernel) noexcept { last_launch.store(kernel, std::memory_order_relaxed); }

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  const char* kernel = last_launch.load(std::memory_order_relaxed);
  throw ResourceError(fmt::format("cuda: {} failed: {} ({}){}", what, cudaGetErrorString(status),
                                  cudaGetErrorName(status),
                                  kernel == nullptr ? "" : fmt::format("; the last kernel was '{}'", kernel)));
}

}  // namespace cuda

namespace {

using cuda::check;
using cuda::Stream;
using Record = Grid::Record;

class CudaEngine;

/// An array in the engine's memory.
template <class T>
class Array {
 public:
  Array() = default;
  Array(Engine& engine, std::span<const T> values) : memory_(engine, bytes_of(values)) {
    engine.upload(values.data(), memory_.data(), values.size_bytes());
  }
  [[nodiscard]] const T* data() const { return reinterpret_cast<const T*>(memory_.data()); }

 private:
  static std::int64_t bytes_of(std::span<const T> values) {
    return static_cast<std::int64_t>(std::max<std::size_t>(1, values.size()) * sizeof(T));
  }
  Vector<unsigned char> memory_;
};

/// Blocks of records in an order in which neighbours in space are near each other, so that kernels find in the caches
/// what they or others have loaded: slabs of rows; in these, pairs of planes; in these, 32 x 2 x 2 cells (one block at
/// even and one at odd x in each row).
class BlockOrder {
 public:
  explicit BlockOrder(const Grid& grid) : grid_(grid) {}

  [[nodiscard]] std::vector<std::int32_t> sorted(std::vector<std::int32_t> blocks) const {
    std::vector<std::pair<Key, std::int32_t>> keyed;
    keyed.reserve(blocks.size());
    for (const std::int32_t block : blocks) keyed.emplace_back(key(block), block);
    std::sort(keyed.begin(), keyed.end());
    std::transform(keyed.begin(), keyed.end(), blocks.begin(), [](const auto& entry) { return entry.second; });
    return blocks;
  }
  [[nodiscard]] std::vector<std::int32_t> all() const {
    std::vector<std::int32_t> blocks(static_cast<std::size_t>(whole_blocks(grid_.cells()) / interleave));
    for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<std::int32_t>(i);
    return sorted(std::move(blocks));
  }

 private:
  using Key = std::uint64_t;

  /// The slab of rows, the pair of planes in it and so on, the first in the highest bits.
  [[nodiscard]] Key key(std::int32_t block) const {
    constexpr int slab = 16;
    const auto& [x, y, z] = grid_.position(block * interleave);
    Key key = 0;
    const auto append = [&key](int value, int bits) { key = key << bits | static_cast<Key>(value); };
    append(y / slab, 18);
    append(z / 2, 20);
    append(y % slab / 2, 3);
    append(x / (2 * interleave), 18);
    append(z % 2, 1);
    append(y % 2, 1);
    append(x % 2, 1);
    return key;
  }

  const Grid& grid_;
};

/// A list of blocks of records on the device.
class DeviceBlocks {
 public:
  DeviceBlocks() = default;
  DeviceBlocks(Engine& engine, const std::vector<std::int32_t>& blocks)
      : memory_(engine, blocks), list_{memory_.data(), static_cast<std::int32_t>(blocks.size())} {}

  [[nodiscard]] const cuda::RecordBlocks& list() const { return list_; }

 private:
  Array<std::int32_t> memory_;
  cuda::RecordBlocks list_{};
};

/// Tiles of the operator on the device.
class DeviceTiles {
 public:
  DeviceTiles() = default;
  DeviceTiles(Engine& engine, const Level& level, const std::vector<std::int32_t>& blocks) {
    const int cells = cuda::tile_cells(level.equation.dim, level.equation.order);
    const cuda::TileList list = cuda::find_tiles(level.grid, blocks, cells / interleave);
    first_ = {engine, list.first};
    blocks_ = {engine, list.blocks};
    pattern_ = {engine, list.pattern};
    patterns_ = {engine, list.patterns};
    tiles_ = {first_.data(),
              blocks_.data(),
              pattern_.data(),
              patterns_.data(),
              static_cast<std::int32_t>(list.pattern.size()),
              list.most_blocks,
              list.most_faces};
  }

  [[nodiscard]] const cuda::Tiles& tiles() const { return tiles_; }
  [[nodiscard]] bool empty() const { return tiles_.count == 0; }

 private:
  Array<std::int32_t> first_;
  Array<std::int32_t> blocks_;
  Array<std::int32_t> pattern_;
  Array<std::uint32_t> patterns_;
  cuda::Tiles tiles_{};
};

/// Patches of one colour and kind on the device.
struct DeviceRun {
  int kind;
  const std::int32_t* lower;
  std::int64_t count;
};

/// The blocks of records that a colour's patches of some kinds touch, and records that no patch of the colour has.
struct DeviceColour {
  std::vector<DeviceRun> runs;
  Array<std::int32_t> uncovered;
  std::int64_t uncovered_count;
};

/// What kernels need of a level in either precision.
class DeviceLevel {
 public:
  DeviceLevel(Engine& engine, const Level& level) : engine_(engine), level_(level) {
    const Grid& grid = level.grid;
    const std::size_t records = static_cast<std::size_t>(grid.null()) + 1;
    topology_ = {{}, {}, grid.cells(), grid.records(), grid.null()};
    for (int side = 0; side < 2 * grid.dim(); ++side) {
      neighbours_[side] = {engine, {grid.neighbours(side), records}};
      faces_[side] = {engine, {grid.faces(side), records}};
      topology_.neighbour[side] = neighbours_[side].data();
      topology_.face[side] = faces_[side].data();
    }
    const auto blocks = BlockOrder(grid).all();
    blocks_ = {engine, blocks};
    if (level.equation.kind == EquationKind::poisson) {
      boundary_sides_ = {engine, cuda::boundary_sides(grid)};
    } else {
      tiles_ = {engine, level, blocks};
    }
    const Patches& patches = level.patches;
    lower_cells_ = {engine, patches.lower_cell};
    for (std::size_t colour = 0; colour < patches.colours.size(); ++colour) {
      DeviceColour device;
      for (const PatchRun& run : patches.colours[colour]) {
        device.runs.push_back({run.kind, lower_cells_.data() + run.begin, run.end - run.begin});
      }
      device.uncovered = {engine, cuda::copy_order(patches.uncovered[colour])};
      device.uncovered_count = static_cast<std::int64_t>(patches.uncovered[colour].size());
      colours_.push_back(std::move(device));
    }
    for (int c = 0; c < grid.dim(); ++c) {
      hat_count_[c] = grid.cells();
      for (Record r = grid.cells(); r < grid.records(); ++r) hat_count_[c] += grid.hat_direction(r) == c ? 1 : 0;
    }
  }

  /// Children and parents for transfers to the next coarser level.
  void prepare_transfer(const Level& coarse) {
    if (children_.data() != nullptr) return;
    const auto children = children_of(level_, coarse);
    std::vector<std::int32_t> parent(level_.grid.cells(), 0);
    parallel_ranges({std::ssize(children)}, [&](CellRange range, std::int64_t) {
      for (auto i = range.begin; i < range.end; ++i) {
        if (children[i] != level_.grid.null()) parent[children[i]] = static_cast<std::int32_t>(i);
      }
    });
    children_ = {engine_, children};
    parent_ = {engine_, parent};
  }

  [[nodiscard]] const CellTopology& topology() const { return topology_; }
  /// All cells.
  [[nodiscard]] const cuda::RecordBlocks& blocks() const { return blocks_.list(); }
  /// The same for the operator of the Stokes equations;
  [[nodiscard]] const cuda::Tiles& tiles() const { return tiles_.tiles(); }
  /// and for that of Poisson's.
  [[nodiscard]] const std::uint8_t* boundary_sides() const { return boundary_sides_.data(); }
  /// Of all patches (Patches::lower_cell).
  [[nodiscard]] const std::int32_t* lower_cells() const { return lower_cells_.data(); }
  [[nodiscard]] const DeviceColour& colour(int i) const { return colours_[i]; }
  [[nodiscard]] const std::int32_t* children() const { return children_.data(); }
  [[nodiscard]] const std::int32_t* parent() const { return parent_.data(); }
  /// Records with a hat in direction c.
  [[nodiscard]] std::int64_t hat_count(int c) const { return hat_count_[c]; }

 private:
  Engine& engine_;
  const Level& level_;
  std::array<Array<Record>, 6> neighbours_;
  std::array<Array<Face>, 6> faces_;
  CellTopology topology_{};
  DeviceBlocks blocks_;
  DeviceTiles tiles_;
  Array<std::uint8_t> boundary_sides_;
  Array<Record> lower_cells_;
  std::vector<DeviceColour> colours_;
  Array<Record> children_;
  Array<std::int32_t> parent_;
  std::array<std::int64_t, 3> hat_count_{};
};

/// What all kernels of an engine share.
struct Shared {
  Engine& engine;
  Stream stream;
  int multiprocessors;
  cuda::Reduction reduction;
  cuda::HostResults* results;  ///< host memory that the device writes to
  std::uint64_t ticket = 0;    ///< of the last results that were asked for
  std::map<const Level*, std::weak_ptr<DeviceLevel>> levels{};

  std::shared_ptr<DeviceLevel> level(const Level& host) {
    auto& known = levels[&host];
    auto level = known.lock();
    if (level == nullptr) {
      level = std::make_shared<DeviceLevel>(engine, host);
      known = level;
    }
    return level;
  }

  /// Waits for the results of the current ticket. Looks at them instead of asking the driver, which takes longer; asks
  /// now and then, so that an error ends the wait.
  void wait_for_results() const {
    const std::atomic_ref<std::uint64_t> arrived(results->ticket);
    constexpr int looks = 1 << 14;
    for (int i = 1; arrived.load(std::memory_order_acquire) != ticket; ++i) {
      if (i % looks != 0) continue;
      const cudaError_t status = cudaStreamQuery(stream);
      if (status != cudaErrorNotReady) check(status, "wait for results");
    }
  }
};

template <class T>
class CudaKernels final : public Kernels<T> {
 public:
  CudaKernels(Shared& shared, const Level& level, LocalSolverKind local)
      : shared_(shared),
        level_(level),
        table_(cuda::kernel_table<T>(level.equation.kind, level.equation.dim, level.equation.order)),
        device_(shared.level(level)),
        local_(static_cast<Local>(local)),
        cell_(make_cell_data<T>(level)) {
    rehearse();
  }

  [[nodiscard]] const Level& level() const override { return level_; }

  void apply(const T* x, T* y) override { apply_or_residual(device_->tiles(), nullptr, x, y); }
  void residual(const T* b, const T* x, T* r) override { apply_or_residual(device_->tiles(), b, x, r); }

  void smooth(int colour, const T* b, const T* x, T* y) override {
    if (!smoother_ready_) prepare_smoother(false);
    const DeviceColour& device = device_->colour(colour);
    if (parity_ != nullptr) {
      auto arguments = parity_->colour(colour);
      arguments.cell = &cell_;
      arguments.topology = device_->topology();
      arguments.uncovered = device.uncovered.data();
      arguments.uncovered_count = static_cast<std::int32_t>(device.uncovered_count);
      arguments.b = b;
      arguments.x = x;
      arguments.y = y;
      parity_->smooth(arguments, shared_.stream);
    } else {
      cuda::copy_records(device.uncovered_count, device.uncovered.data(), level_.equation.record(), x, y,
                         shared_.stream);
    }
    if (poisson_ != nullptr) {
      smooth_poisson(colour, b, x, y, false, T(1));
    } else {
      smooth_general(colour, b, x, y, Use::rest, T(1));
    }
  }
  void smooth_add(int colour, const T* b, const T* x, T* y, T damping) override {
    if (!smoother_ready_) prepare_smoother(true);
    if (poisson_ != nullptr) {
      smooth_poisson(colour, b, x, y, true, damping);
    } else {
      smooth_general(colour, b, x, y, Use::add, damping);
    }
  }

  void prepare_smoother(bool additive) override {
    const int colours = static_cast<int>(level_.patches.colours.size());
    if (level_.equation.kind == EquationKind::poisson) {
      if (!smoother_ready_) {
        poisson_ = std::make_unique<PoissonSmoother>(shared_.engine, level_, table_.poisson);
      }
    } else {
      if (!smoother_ready_) {
        if (local_ == Local::direct && table_.parity[0].smooth != nullptr && cuda::parity_plan_fits(level_.size())) {
          parity_ = std::make_unique<ParitySmoother>(shared_.engine, level_, parity_variant());
        }
        patches_.resize(level_.patches.kinds.size());
        for (std::size_t i = 0; i < patches_.size(); ++i) patches_[i].fast = parity_ != nullptr && parity_->covers(i);
      }
      for (int colour = 0; colour < colours; ++colour) prepare(colour, additive ? Use::add : Use::rest);
    }
    smoother_ready_ = true;
    const cuda::Rehearsal rehearsal;
    for (int colour = 0; colour < colours; ++colour) {
      additive ? smooth_add(colour, nullptr, nullptr, nullptr, T(1)) : smooth(colour, nullptr, nullptr, nullptr);
    }
  }
  void prepare_transfer(const Level& coarse) override {
    device_->prepare_transfer(coarse);
    coarse_ = shared_.level(coarse);
    const cuda::Rehearsal rehearsal;
    table_.restrict_to(transfer(coarse_->blocks(), nullptr, nullptr, false), shared_.stream);
    table_.prolong(transfer(device_->blocks(), nullptr, nullptr, false), shared_.stream);
  }
  void restrict_to(const Level& coarse, const T* fine_vector, T* coarse_vector) override {
    if (coarse_ == nullptr) prepare_transfer(coarse);
    table_.restrict_to(transfer(coarse_->blocks(), fine_vector, coarse_vector, false), shared_.stream);
  }
  void prolong_add(const Level& coarse, const T* coarse_vector, T* fine_vector) override {
    if (coarse_ == nullptr) prepare_transfer(coarse);
    table_.prolong(transfer(device_->blocks(), coarse_vector, fine_vector, true), shared_.stream);
  }
  void prolong(const Level& coarse, const T* coarse_vector, T* fine_vector) override {
    // Hats of hat-only records are sums.
    if (level_.grid.records() != level_.grid.cells()) {
      return Kernels<T>::prolong(coarse, coarse_vector, fine_vector);
    }
    if (coarse_ == nullptr) prepare_transfer(coarse);
    table_.prolong(transfer(device_->blocks(), coarse_vector, fine_vector, false), shared_.stream);
  }

  void zero(T* x) override { cuda::zero(level_.size(), x, shared_.stream); }
  void copy(const T* x, T* y) override { cuda::convert(level_.size(), x, y, shared_.stream); }
  void scale(T a, T* x) override { cuda::scale(level_.size(), a, x, shared_.stream); }
  void axpy(T a, const T* x, T* y) override { cuda::add(level_.size(), a, x, y, shared_.stream); }
  void dots(int count, const T* const* v, const T* w, double* result) override {
    constexpr int most = cuda::HostResults::most;
    for (int begin = 0; begin < count; begin += most) {
      const int part = std::min(most, count - begin);
      ++shared_.ticket;
      for_batches(part, v + begin, nullptr, [&](int first, const cuda::VectorBatch<T>& batch) {
        const bool last = first + batch.count == part;
        cuda::dots(level_.size(), batch, w, shared_.reduction, shared_.results, first, last ? shared_.ticket : 0,
                   shared_.stream);
      });
      shared_.wait_for_results();
      std::copy_n(shared_.results->value, part, result + begin);
    }
  }
  void axpys(int count, const double* a, const T* const* v, double scale, T* w) override {
    combine(count, a, v, static_cast<T>(scale), w);
  }

  void project(T* x) override {
    const int dim = level_.equation.dim;
    const int block = power(level_.equation.n(), dim);
    const auto remove_mean = [&](int value, const std::int32_t* below, std::int64_t count) {
      cuda::remove_mean(device_->topology(), level_.equation.record(), value, below, count, shared_.reduction, x,
                        shared_.stream);
    };
    if (level_.constants.pressure) remove_mean(level_.equation.velocities() * block, nullptr, level_.grid.cells());
    // A constant velocity has equal hats (those of hat-only records too), tangential modes 0.
    for (int c = 0; c < dim; ++c) {
      if (level_.constants.velocity[c]) {
        remove_mean(c * block, device_->topology().neighbour[2 * c], device_->hat_count(c));
      }
    }
  }

  void dense(std::int64_t count, const std::int64_t* index, const T* matrix, const T* b, T* x) override {
    cuda::multiply_dense(count, index, matrix, b, x, shared_.stream);
  }

  void from_double(const double* x, T* y) override { cuda::convert(level_.size(), x, y, shared_.stream); }
  void from_float(const float* x, T* y) override { cuda::convert(level_.size(), x, y, shared_.stream); }
  void axpys_float(int count, const double* a, const float* const* v, T* w) override { combine(count, a, v, T(1), w); }

 private:
  struct Patch {
    Array<T> values;  ///< empty until smooth_general needs them
    PatchData<T> data{};
    bool fast = false;  ///< splits by parity, for smooth_parity
  };

  /// A level's patches as smooth_parity wants them.
  class ParitySmoother {
   public:
    ParitySmoother(Engine& engine, const Level& level, const cuda::ParityKernel<T>& kernel) : kernel_(kernel) {
      const cuda::ParityPlan<T> plan(level, kernel.patches);
      patches_ = {engine, plan.patches};
      tables_ = {engine, plan.tables};
      schur_ = {engine, plan.schur};
      covered_ = plan.covered;
      for (const auto& batches : plan.colours) {
        batches_.emplace_back(engine, batches);
        count_.push_back(static_cast<std::int32_t>(batches.size()));
      }
    }
    [[nodiscard]] bool covers(std::size_t kind) const { return covered_[kind] != 0; }
    [[nodiscard]] cuda::ParityArguments<T> colour(int i) const {
      cuda::ParityArguments<T> arguments{};
      arguments.patches = patches_.data();
      arguments.batches = batches_[i].data();
      arguments.batch_count = count_[i];
      arguments.tables = tables_.data();
      arguments.schur = schur_.data();
      return arguments;
    }
    void smooth(const cuda::ParityArguments<T>& arguments, Stream stream) const { kernel_.smooth(arguments, stream); }

   private:
    cuda::ParityKernel<T> kernel_;
    Array<cuda::ParityPatch> patches_;
    Array<T> tables_;
    Array<T> schur_;
    std::vector<Array<cuda::PatchBatch>> batches_;  // by colour
    std::vector<std::int32_t> count_;
    std::vector<char> covered_;
  };

  /// A level's patches as smooth_poisson wants them.
  class PoissonSmoother {
   public:
    PoissonSmoother(Engine& engine, const Level& level, const cuda::PoissonKernel<T>& kernel) : kernel_(kernel) {
      std::vector<PatchData<T>> kinds;
      for (const PatchKind& kind : level.patches.kinds) {
        const PatchSolver solver(level.equation, level.grid.size(), kind, LocalSolverKind::direct);
        const PatchTables<T> tables(level.equation, kind, solver, false);
        kinds.push_back(tables.data(tables_.emplace_back(engine, tables.values()).data()));
      }
      kinds_ = {engine, kinds};
      for (const auto& runs : level.patches.colours) {
        std::vector<cuda::PoissonBatch> batches;
        for (const PatchRun& run : runs) {
          for (auto begin = run.begin; begin < run.end; begin += kernel.patches) {
            const auto count = std::min<std::int64_t>(kernel.patches, run.end - begin);
            batches.push_back({static_cast<std::int32_t>(begin), static_cast<std::int32_t>(count), run.kind});
          }
        }
        batches_.emplace_back(engine, batches);
        count_.push_back(static_cast<std::int32_t>(batches.size()));
      }
    }
    [[nodiscard]] cuda::PoissonArguments<T> colour(int i) const {
      cuda::PoissonArguments<T> arguments{};
      arguments.kinds = kinds_.data();
      arguments.batches = batches_[i].data();
      arguments.batch_count = count_[i];
      return arguments;
    }
    void smooth(const cuda::PoissonArguments<T>& arguments, Stream stream) const { kernel_.smooth(arguments, stream); }

   private:
    cuda::PoissonKernel<T> kernel_;
    std::vector<Array<T>> tables_;  // by kind
    Array<PatchData<T>> kinds_;
    std::vector<Array<cuda::PoissonBatch>> batches_;  // by colour
    std::vector<std::int32_t> count_;
  };

  /// The variant with the fewest patches in a batch for which each colour still has a multiprocessor for each batch.
  [[nodiscard]] const cuda::ParityKernel<T>& parity_variant() const {
    std::int64_t most = 0;
    for (const auto& colour : level_.patches.colours) {
      std::int64_t count = 0;
      for (const PatchRun& run : colour) count += run.end - run.begin;
      most = std::max(most, count);
    }
    for (int variant = cuda::parity_variants - 1; variant > 0; --variant) {
      const cuda::ParityKernel<T>& kernel = table_.parity[variant];
      if (kernel.smooth != nullptr && most <= std::int64_t{kernel.patches} * shared_.multiprocessors) return kernel;
    }
    return table_.parity[0];
  }

  /// Loads the kernels of everything but smoothing and transfers.
  void rehearse() {
    const cuda::Rehearsal rehearsal;
    const Stream stream = shared_.stream;
    const std::int64_t size = level_.size();
    apply(nullptr, nullptr);
    residual(cell_.value, nullptr, nullptr);  // a right-hand side that is there
    cuda::dots(size, cuda::VectorBatch<T>{}, static_cast<const T*>(nullptr), shared_.reduction, shared_.results, 0, 0,
               stream);
    cuda::combine(size, cuda::VectorBatch<T>{}, T(1), static_cast<T*>(nullptr), stream);
    cuda::combine(size, cuda::VectorBatch<float, T>{}, T(1), static_cast<T*>(nullptr), stream);
    zero(nullptr);
    copy(nullptr, nullptr);
    scale(T(1), nullptr);
    axpy(T(1), nullptr, nullptr);
    from_double(nullptr, nullptr);
    from_float(nullptr, nullptr);
    project(nullptr);
    cuda::multiply_dense(1, nullptr, static_cast<const T*>(nullptr), static_cast<const T*>(nullptr),
                         static_cast<T*>(nullptr), stream);
    cuda::copy_records(1, nullptr, 1, static_cast<const T*>(nullptr), static_cast<T*>(nullptr), stream);
  }

  template <class S>
  void combine(int count, const double* a, const S* const* v, T scale, T* w) {
    for_batches(count, v, a, [&](int first, const cuda::VectorBatch<S, T>& batch) {
      const bool last = first + batch.count == count;
      cuda::combine(level_.size(), batch, last ? scale : T(1), w, shared_.stream);
    });
  }

  template <class S, class F>
  void for_batches(int count, const S* const* v, const double* factor, const F& visit) {
    for (int first = 0; first < count; first += cuda::batch_vectors) {
      cuda::VectorBatch<S, T> batch{};
      batch.count = std::min(cuda::batch_vectors, count - first);
      for (int i = 0; i < batch.count; ++i) {
        batch.vector[i] = v[first + i];
        if (factor != nullptr) batch.factor[i] = static_cast<T>(factor[first + i]);
      }
      visit(first, batch);
    }
  }

  void apply_or_residual(const cuda::Tiles& tiles, const T* b, const T* x, T* y) {
    table_.apply({&cell_, device_->topology(), tiles, device_->blocks(), device_->boundary_sides(), x, b, y},
                 shared_.stream);
  }

  /// What smooth_general is used for: the patches that smooth_parity leaves, or all to be added.
  enum class Use : std::uint8_t { rest, add };
  [[nodiscard]] bool wanted(int kind, Use use) const { return use == Use::add || !patches_[kind].fast; }

  void prepare_tables(int kind_number) {
    Patch& patch = patches_[kind_number];
    if (patch.values.data() != nullptr) return;
    const PatchKind& kind = level_.patches.kinds[kind_number];
    const PatchSolver solver(level_.equation, level_.grid.size(), kind, static_cast<LocalSolverKind>(local_));
    const PatchTables<T> tables(level_.equation, kind, solver, false);
    patch.values = {shared_.engine, tables.values()};
    patch.data = tables.data(patch.values.data());
  }

  /// The residual that smooth_general needs, and the tiles on which it needs it.
  const DeviceTiles& prepare(int colour, Use use) {
    const auto known = general_tiles_.find({colour, use});
    if (known != general_tiles_.end()) return known->second;
    const Patches& patches = level_.patches;
    std::vector<char> touched(static_cast<std::size_t>(whole_blocks(level_.grid.cells()) / interleave), 0);
    for (const PatchRun& run : patches.colours[colour]) {
      if (!wanted(run.kind, use)) continue;
      prepare_tables(run.kind);
      for (auto patch = run.begin; patch < run.end; ++patch) {
        const auto cells = patch_cells(level_.grid, patches.lower_cell[patch]);
        for (int bits = 0; bits < 1 << level_.equation.dim; ++bits) touched[cells[bits] / interleave] = 1;
      }
    }
    std::vector<std::int32_t> blocks;
    for (std::size_t i = 0; i < touched.size(); ++i) {
      if (touched[i] != 0) blocks.push_back(static_cast<std::int32_t>(i));
    }
    if (!blocks.empty() && residual_.size() == 0) residual_ = Vector<T>(shared_.engine, level_.size());
    return general_tiles_[{colour, use}] = {shared_.engine, level_, BlockOrder(level_.grid).sorted(blocks)};
  }

  void smooth_poisson(int colour, const T* b, const T* x, T* y, bool add, T damping) {
    auto arguments = poisson_->colour(colour);
    arguments.cell = &cell_;
    arguments.topology = device_->topology();
    arguments.lower = device_->lower_cells();
    arguments.b = b;
    arguments.x = x;
    arguments.y = y;
    arguments.add = add;
    arguments.damping = damping;
    poisson_->smooth(arguments, shared_.stream);
  }

  void smooth_general(int colour, const T* b, const T* x, T* y, Use use, T damping) {
    const DeviceTiles& tiles = prepare(colour, use);
    if (tiles.empty()) return;
    const T* residual = b;
    if (x != nullptr) {
      apply_or_residual(tiles.tiles(), b, x, residual_.data());
      residual = residual_.data();
    }
    for (const DeviceRun& run : device_->colour(colour).runs) {
      if (!wanted(run.kind, use)) continue;
      const cuda::SmoothArguments<T> arguments{&cell_,
                                               patches_[run.kind].data,
                                               device_->topology(),
                                               run.lower,
                                               run.count,
                                               local_,
                                               b,
                                               x,
                                               residual,
                                               y,
                                               use == Use::add,
                                               damping};
      table_.smooth_general(arguments, shared_.stream);
    }
  }

  [[nodiscard]] cuda::TransferArguments<T> transfer(cuda::RecordBlocks blocks, const T* from, T* to, bool add) const {
    return {&cell_,
            device_->topology(),
            coarse_->topology(),
            device_->children(),
            device_->parent(),
            {level_.coarsened[0], level_.coarsened[1], level_.coarsened[2]},
            blocks,
            from,
            to,
            add};
  }

  Shared& shared_;
  const Level& level_;
  const cuda::KernelTable<T>& table_;
  std::shared_ptr<DeviceLevel> device_;
  std::shared_ptr<DeviceLevel> coarse_;
  Local local_;
  CellData<T> cell_;
  bool smoother_ready_ = false;
  std::unique_ptr<PoissonSmoother> poisson_;                  // or nullptr
  std::unique_ptr<ParitySmoother> parity_;                    // or nullptr
  std::vector<Patch> patches_;                                // by kind
  std::map<std::pair<int, Use>, DeviceTiles> general_tiles_;  // by colour
  Vector<T> residual_;                                        // for smooth_general
};

/// Why there is no usable device; empty if there is one.
std::string why_unavailable() {
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) return "no NVIDIA driver is installed";
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorInsufficientDriver) {
    return fmt::format("the NVIDIA driver is too old: it supports CUDA {}.{}, this build needs {}.{}", driver / 1000,
                       driver % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
  }
  if (status != cudaSuccess || count == 0) {
    return fmt::format("no CUDA device was found ({})", status == cudaSuccess ? "none" : cudaGetErrorString(status));
  }
  if (const cudaError_t code = cuda::probe(); code != cudaSuccess) {
    cudaGetLastError();  // the next call starts clean
    cudaDeviceProp properties{};
    cudaGetDeviceProperties(&properties, 0);
    return fmt::format(
        "this build has no code for {} (compute capability {}.{}): {}; add it to "
        "CMAKE_CUDA_ARCHITECTURES and build again",
        properties.name, properties.major, properties.minor, cudaGetErrorString(code));
  }
  return {};
}

class CudaEngine final : public Engine {
 public:
  CudaEngine() {
    check(cudaGetDeviceProperties(&properties_, 0), "cudaGetDeviceProperties");
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    check(cudaStreamCreateWithFlags(&aside_, cudaStreamNonBlocking), "cudaStreamCreate");
    cudaMemPoolProps pool{};
    pool.allocType = cudaMemAllocationTypePinned;
    pool.location.type = cudaMemLocationTypeDevice;
    check(cudaMemPoolCreate(&pool_, &pool), "cudaMemPoolCreate");
    std::uint64_t kept = kept_bytes;
    check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &kept), "cudaMemPoolSetAttribute");
    void* host = nullptr;
    check(cudaMallocHost(&host, sizeof(cuda::HostResults)), "cudaMallocHost");
    const auto results = new (host) cuda::HostResults{};
    constexpr std::int64_t partial = std::int64_t{cuda::batch_vectors} * cuda::reduction_blocks;
    reduction_ = Vector<double>(*this, partial + 2);
    double* const value = reduction_.data() + partial;
    const cuda::Reduction reduction{reduction_.data(), value, reinterpret_cast<std::uint32_t*>(value + 1)};
    shared_ = std::make_unique<Shared>(Shared{*this, stream_, properties_.multiProcessorCount, reduction, results});
  }
  ~CudaEngine() override {
    reduction_ = {};
    cudaStreamSynchronize(stream_);
    cudaFreeHost(shared_->results);
    cudaMemPoolDestroy(pool_);
    cudaStreamDestroy(aside_);
    cudaStreamDestroy(stream_);
  }
  CudaEngine(const CudaEngine&) = delete;
  CudaEngine& operator=(const CudaEngine&) = delete;

  [[nodiscard]] std::string description() const override {
    return fmt::format("cuda, {}, {:.0f} GB, compute capability {}.{}", properties_.name,
                       static_cast<double>(properties_.totalGlobalMem) * 1e-9, properties_.major, properties_.minor);
  }
  [[nodiscard]] int threads() const override { return 1; }
  /// The residual, where patches are left to the general smoother.
  [[nodiscard]] int vectors_for_smoothing(const SmoothingNeeds& needs) const override {
    if (needs.equation == EquationKind::poisson) return 0;
    const bool parity =
        needs.single
            ? cuda::kernel_table<float>(EquationKind::stokes, needs.dim, needs.order).parity[0].smooth != nullptr
            : cuda::kernel_table<double>(EquationKind::stokes, needs.dim, needs.order).parity[0].smooth != nullptr;
    return needs.direct && needs.symmetric && parity && cuda::parity_plan_fits(needs.size) ? 0 : 1;
  }
  /// As many patches as cells.
  [[nodiscard]] std::int64_t bytes_per_cell(int dim) const override {
    constexpr std::int64_t side = sizeof(Record) + sizeof(Face);  // what is behind
    constexpr std::int64_t patch = sizeof(Record) + sizeof(cuda::ParityPatch);
    constexpr std::int64_t transfer = 2 * sizeof(Record);  // parent and child
    constexpr std::int64_t rest = 5;                       // tiles, blocks of records, batches of patches
    return 2 * dim * side + patch + transfer + rest;
  }

  [[nodiscard]] std::int64_t dense_limit() const override { return cuda::most_dense; }

  std::unique_ptr<Kernels<float>> kernels_float(const Level& level, LocalSolverKind local) override {
    return std::make_unique<CudaKernels<float>>(*shared_, level, local);
  }
  std::unique_ptr<Kernels<double>> kernels_double(const Level& level, LocalSolverKind local) override {
    return std::make_unique<CudaKernels<double>>(*shared_, level, local);
  }

  /// From a pool, in the order of the stream: nothing waits, and what was released is handed out again.
  void* allocate(std::size_t bytes) override {
    // Memory that is taken while work is recorded belongs to the engine, not to the graph.
    const Stream stream = recording_ ? aside_ : stream_;
    void* memory = nullptr;
    if (const cudaError_t status = cudaMallocFromPoolAsync(&memory, bytes, pool_, stream); status != cudaSuccess) {
      cudaGetLastError();
      throw ResourceError(
          fmt::format("out of device memory: {:.2f} GB asked for, {:.2f} GB in use by this solve, {:.2f} GB free on {}",
                      static_cast<double>(bytes) * 1e-9, static_cast<double>(bytes_in_use_) * 1e-9,
                      static_cast<double>(bytes_available()) * 1e-9, properties_.name));
    }
    bytes_in_use_ += static_cast<std::int64_t>(bytes);
    bytes_peak_ = std::max(bytes_peak_, bytes_in_use_);
    check(cudaMemsetAsync(memory, 0, bytes, stream), "zeroing of new memory");
    if (recording_) check(cudaStreamSynchronize(stream), "zeroing of new memory");
    return memory;
  }
  void release(void* memory, std::size_t bytes) noexcept override {
    cudaFreeAsync(memory, recording_ ? aside_ : stream_);  // after the kernels that use it
    bytes_in_use_ -= static_cast<std::int64_t>(bytes);
  }
  void zero(void* memory, std::size_t bytes) override {
    check(cudaMemsetAsync(memory, 0, bytes, stream_), "zeroing of memory");
  }
  void upload(const void* host, void* device, std::size_t bytes) override {
    check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream_), "upload");
    synchronise();
  }
  void download(const void* device, void* host, std::size_t bytes) override {
    check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream_), "download");
    synchronise();
  }
  void synchronise() override { check(cudaStreamSynchronize(stream_), "synchronisation"); }
  [[nodiscard]] void* stream() const override { return stream_; }
  void wait_for(void* stream) override {
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
    const cudaError_t recorded = cudaEventRecord(event, static_cast<cudaStream_t>(stream));
    const cudaError_t ordered = recorded == cudaSuccess ? cudaStreamWaitEvent(stream_, event) : recorded;
    cudaEventDestroy(event);
    check(ordered, "waiting for another stream");
  }

  std::function<void()> record(const std::function<void()>& work) override {
    if (cuda::Profile::active() != nullptr) return work;  // which watches single kernels
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), "start of a graph");
    cudaGraph_t graph = nullptr;
    recording_ = true;
    try {
      work();
    } catch (...) {
      recording_ = false;
      cudaStreamEndCapture(stream_, &graph);
      if (graph != nullptr) cudaGraphDestroy(graph);
      throw;
    }
    recording_ = false;
    check(cudaStreamEndCapture(stream_, &graph), "end of a graph");
    cudaGraphExec_t executable = nullptr;
    const cudaError_t status = cudaGraphInstantiate(&executable, graph, 0);
    cudaGraphDestroy(graph);
    check(status, "instantiation of a graph");
    const std::shared_ptr<CUgraphExec_st> owner(executable, [](cudaGraphExec_t e) { cudaGraphExecDestroy(e); });
    check(cudaGraphUpload(executable, stream_), "upload of a graph");  // otherwise its first launch does
    return [stream = stream_, owner] {
      check(cudaGraphLaunch(owner.get(), stream), "launch of a graph");
      cuda::note_launch("graph of a cycle");
    };
  }

  Ceilings measure_ceilings() override {
    constexpr std::int64_t enough = std::int64_t{2} << 30;
    const std::int64_t bytes = std::min(enough, bytes_available() / 4);
    Vector<unsigned char> from(*this, bytes);
    Vector<unsigned char> to(*this, bytes);
    return cuda::measure_ceilings(from.data(), to.data(), static_cast<std::size_t>(bytes), stream_);
  }
  std::vector<KernelUse> profile(const std::function<void()>& work) override {
    const cuda::Profile profile;
    work();
    synchronise();
    return profile.kernels();
  }

  [[nodiscard]] std::int64_t bytes_in_use() const override { return bytes_in_use_; }
  [[nodiscard]] std::int64_t bytes_peak() const override { return bytes_peak_; }
  [[nodiscard]] std::int64_t bytes_available() const override {
    std::size_t free = 0;
    std::size_t total = 0;
    check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    std::uint64_t reserved = 0;
    std::uint64_t used = 0;
    check(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent, &reserved), "cudaMemPoolGetAttribute");
    check(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrUsedMemCurrent, &used), "cudaMemPoolGetAttribute");
    return static_cast<std::int64_t>(free + reserved - used);
  }

 private:
  /// Released memory that the pool keeps; the rest goes back to the device at the next synchronisation.
  static constexpr std::uint64_t kept_bytes = 1 << 30;

  cudaDeviceProp properties_{};
  Stream stream_ = nullptr;
  Stream aside_ = nullptr;  // apart from the work that is being recorded
  cudaMemPool_t pool_ = nullptr;
  bool recording_ = false;
  std::int64_t bytes_in_use_ = 0;
  std::int64_t bytes_peak_ = 0;
  Vector<double> reduction_;
  std::unique_ptr<Shared> shared_;
};

}  // namespace

std::string cuda_unavailable() { return why_unavailable(); }

std::unique_ptr<Engine> make_cuda_engine() {
  if (const std::string reason = why_unavailable(); !reason.empty()) {
    throw InputError(fmt::format("device cuda was asked for, but {}; use --device cpu", reason));
  }
  return std::make_unique<CudaEngine>();
}

}  // namespace solenoid
