/// \file
/// The cuda engine: device memory, levels on the device, and kernels (kernels/) in the order of one stream.

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <tuple>

#include "engine/cuda/error.hpp"
#include "engine/cuda/kernels/parity.hpp"
#include "engine/cuda/parity_plan.hpp"
#include "engine/cuda/tiles.hpp"
#include "engine/cuda/vector.hpp"
#include "engine/engine.hpp"
#include "engine/tables.hpp"
#include "solenoid/error.hpp"

namespace solenoid {
namespace cuda {
namespace {

std::atomic<const char*> last_launch{nullptr};

}  // namespace

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
  Array(Engine& engine, const std::vector<T>& values) : memory_(engine, bytes_of(values)) {
    engine.upload(values.data(), memory_.data(), values.size() * sizeof(T));
  }
  [[nodiscard]] const T* data() const { return reinterpret_cast<const T*>(memory_.data()); }

 private:
  static std::int64_t bytes_of(const std::vector<T>& values) {
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
  using Key = std::array<int, 7>;

  [[nodiscard]] Key key(std::int32_t block) const {
    constexpr int slab = 16;
    const auto& [x, y, z] = grid_.position(block * interleave);
    return {y / slab, z / 2, y % slab / 2, x / (2 * interleave), z % 2, y % 2, x % 2};
  }

  const Grid& grid_;
};

/// A list of blocks of records on the device.
class DeviceBlocks {
 public:
  DeviceBlocks() = default;
  DeviceBlocks(Engine& engine, const Level& level, const std::vector<std::int32_t>& blocks)
      : memory_(engine, blocks),
        list_{memory_.data(), static_cast<std::int32_t>(blocks.size()),
              cuda::most_tile_faces(level.grid, blocks,
                                    cuda::tile_cells(level.equation.dim, level.equation.order) / interleave)} {}

  [[nodiscard]] const cuda::RecordBlocks& list() const { return list_; }
  [[nodiscard]] bool empty() const { return list_.count == 0; }

 private:
  Array<std::int32_t> memory_;
  cuda::RecordBlocks list_{};
};

/// Patches of one colour and kind on the device.
struct DeviceRun {
  int kind;
  Array<std::int32_t> lower;
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
      neighbours_[side] = {engine, std::vector<Record>(grid.neighbours(side), grid.neighbours(side) + records)};
      faces_[side] = {engine, std::vector<Face>(grid.faces(side), grid.faces(side) + records)};
      topology_.neighbour[side] = neighbours_[side].data();
      topology_.face[side] = faces_[side].data();
    }
    blocks_ = {engine, level, BlockOrder(grid).all()};
    std::vector<std::uint8_t> sides(records, 0);
    for (std::size_t r = 0; r < records; ++r) {
      for (int side = 0; side < 2 * grid.dim(); ++side) {
        if (grid.face(static_cast<Record>(r), side) != Face::interior) sides[r] |= 1 << side;
      }
    }
    boundary_sides_ = {engine, sides};
    const Patches& patches = level.patches;
    for (std::size_t colour = 0; colour < patches.colours.size(); ++colour) {
      DeviceColour device;
      for (const PatchRun& run : patches.colours[colour]) {
        const std::vector<Record> lower(patches.lower_cell.begin() + run.begin, patches.lower_cell.begin() + run.end);
        device.runs.push_back({run.kind, {engine, lower}, run.end - run.begin});
      }
      device.uncovered = {engine, patches.uncovered[colour]};
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
    for (std::size_t i = 0; i < children.size(); ++i) {
      if (children[i] != level_.grid.null()) parent[children[i]] = static_cast<std::int32_t>(i);
    }
    children_ = {engine_, children};
    parent_ = {engine_, parent};
  }

  [[nodiscard]] const CellTopology& topology() const { return topology_; }
  /// All cells.
  [[nodiscard]] const cuda::RecordBlocks& blocks() const { return blocks_.list(); }
  [[nodiscard]] const std::uint8_t* boundary_sides() const { return boundary_sides_.data(); }
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
  Array<std::uint8_t> boundary_sides_;
  std::vector<DeviceColour> colours_;
  Array<Record> children_;
  Array<std::int32_t> parent_;
  std::array<std::int64_t, 3> hat_count_{};
};

/// What all kernels of an engine share.
struct Shared {
  Engine& engine;
  Stream stream;
  double* partial;  ///< room for the partial sums of one batch of reductions
  double* result;   ///< host memory that the device writes to: batch_vectors numbers
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
};

template <class T>
class CudaKernels final : public Kernels<T> {
 public:
  CudaKernels(Shared& shared, const Level& level, LocalSolverKind local)
      : shared_(shared),
        level_(level),
        table_(cuda::kernel_table<T>(level.equation.dim, level.equation.order)),
        device_(shared.level(level)),
        local_(static_cast<Local>(local)),
        cell_(make_cell_data<T>(level)) {}

  [[nodiscard]] const Level& level() const override { return level_; }

  void apply(const T* x, T* y) override { apply_or_residual(device_->blocks(), nullptr, x, y); }
  void residual(const T* b, const T* x, T* r) override { apply_or_residual(device_->blocks(), b, x, r); }

  void smooth(int colour, const T* b, const T* x, T* y) override {
    if (patches_.empty()) prepare_smoother(false);
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
      table_.smooth_parity(arguments, shared_.stream);
    } else {
      cuda::copy_records(device.uncovered_count, device.uncovered.data(), level_.equation.record(), x, y,
                         shared_.stream);
    }
    smooth_general(colour, b, x, y, Use::rest, T(1));
  }
  void smooth_add(int colour, const T* b, const T* x, T* y, T damping) override {
    if (patches_.empty()) prepare_smoother(true);
    smooth_general(colour, b, x, y, Use::add, damping);
  }

  void prepare_smoother(bool additive) override {
    if (patches_.empty()) {
      if (local_ == Local::direct && table_.smooth_parity != nullptr && cuda::parity_plan_fits(level_)) {
        parity_ = std::make_unique<ParitySmoother>(shared_.engine, level_, table_.parity_patches);
      }
      for (const PatchKind& kind : level_.patches.kinds) {
        const PatchSolver solver(level_.equation, level_.grid.size(), kind, static_cast<LocalSolverKind>(local_));
        const PatchTables<T> tables(level_.equation, kind, solver, false);
        Array<T> values(shared_.engine, tables.values());
        const PatchData<T> data = tables.data(values.data());
        const bool fast = parity_ != nullptr && parity_->covers(patches_.size());
        patches_.push_back({std::move(values), data, fast});
      }
    }
    for (int colour = 0; colour < static_cast<int>(level_.patches.colours.size()); ++colour) {
      prepare(colour, additive ? Use::add : Use::rest);
    }
  }
  void prepare_transfer(const Level& coarse) override {
    device_->prepare_transfer(coarse);
    coarse_ = shared_.level(coarse);
  }
  void restrict_to(const Level& coarse, const T* fine_vector, T* coarse_vector) override {
    prepare_transfer(coarse);
    table_.restrict_to(transfer(coarse_->blocks(), fine_vector, coarse_vector), shared_.stream);
  }
  void prolong_add(const Level& coarse, const T* coarse_vector, T* fine_vector) override {
    prepare_transfer(coarse);
    table_.prolong_add(transfer(device_->blocks(), coarse_vector, fine_vector), shared_.stream);
  }

  void zero(T* x) override { check(cudaMemsetAsync(x, 0, level_.size() * sizeof(T), shared_.stream), "zero"); }
  void copy(const T* x, T* y) override {
    check(cudaMemcpyAsync(y, x, level_.size() * sizeof(T), cudaMemcpyDeviceToDevice, shared_.stream), "copy");
  }
  void scale(T a, T* x) override { cuda::scale(level_.size(), a, x, shared_.stream); }
  void axpy(T a, const T* x, T* y) override { cuda::add(level_.size(), a, x, y, shared_.stream); }
  double dot(const T* x, const T* y) override {
    double result = 0.0;
    const T* const v[] = {x};
    dots(1, v, y, &result);
    return result;
  }
  void dots(int count, const T* const* v, const T* w, double* result) override {
    for_batches(count, v, nullptr, [&](int first, const cuda::VectorBatch<T>& batch) {
      cuda::dots(level_.size(), batch, w, shared_.partial, shared_.result, shared_.stream);
      shared_.engine.synchronise();
      std::copy_n(shared_.result, batch.count, result + first);
    });
  }
  void axpys(int count, const double* a, const T* const* v, T* w) override {
    for_batches(count, v, a, [&](int, const cuda::VectorBatch<T>& batch) {
      cuda::combine(level_.size(), batch, w, shared_.stream);
    });
  }

  void project(T* x) override {
    const int dim = level_.equation.dim;
    const int block = power(level_.equation.n(), dim);
    const auto remove_mean = [&](int value, const std::int32_t* below, std::int64_t count) {
      cuda::remove_mean(device_->topology(), level_.equation.record(), value, below, count, shared_.partial, x,
                        shared_.stream);
    };
    if (level_.constants.pressure) remove_mean(dim * block, nullptr, level_.grid.cells());
    // A constant velocity has equal hats (those of hat-only records too), tangential modes 0.
    for (int c = 0; c < dim; ++c) {
      if (level_.constants.velocity[c]) {
        remove_mean(c * block, device_->topology().neighbour[2 * c], device_->hat_count(c));
      }
    }
  }

  void dense(std::int64_t count, const std::int64_t* index, const T* matrix, const T* b, T* x) override {
    zero(x);
    cuda::multiply_dense(count, index, matrix, b, x, shared_.stream);
  }

  void from_double(const double* x, T* y) override { cuda::convert(level_.size(), x, y, shared_.stream); }
  void from_float(const float* x, T* y) override { cuda::convert(level_.size(), x, y, shared_.stream); }
  void axpy_float(T a, const float* x, T* y) override { cuda::add(level_.size(), a, x, y, shared_.stream); }

 private:
  struct Patch {
    Array<T> values;
    PatchData<T> data;
    bool fast;  ///< splits by parity, for smooth_parity
  };

  /// A level's patches as smooth_parity wants them.
  class ParitySmoother {
   public:
    ParitySmoother(Engine& engine, const Level& level, int batch) {
      const cuda::ParityPlan<T> plan(level, batch);
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

   private:
    Array<cuda::ParityPatch> patches_;
    Array<T> tables_;
    Array<T> schur_;
    std::vector<Array<cuda::PatchBatch>> batches_;  // by colour
    std::vector<std::int32_t> count_;
    std::vector<char> covered_;
  };

  template <class F>
  void for_batches(int count, const T* const* v, const double* factor, const F& visit) {
    for (int first = 0; first < count; first += cuda::batch_vectors) {
      cuda::VectorBatch<T> batch{};
      batch.count = std::min(cuda::batch_vectors, count - first);
      for (int i = 0; i < batch.count; ++i) {
        batch.vector[i] = v[first + i];
        if (factor != nullptr) batch.factor[i] = static_cast<T>(factor[first + i]);
      }
      visit(first, batch);
    }
  }

  void apply_or_residual(const cuda::RecordBlocks& blocks, const T* b, const T* x, T* y) {
    table_.apply({&cell_, device_->topology(), device_->boundary_sides(), blocks, x, b, y}, shared_.stream);
  }

  /// What smooth_general is used for: the patches that smooth_parity leaves, or all to be added.
  enum class Use : std::uint8_t { rest, add };
  [[nodiscard]] bool wanted(const DeviceRun& run, Use use) const { return use == Use::add || !patches_[run.kind].fast; }

  /// The residual that smooth_general needs, and the blocks of records on which it needs it.
  const DeviceBlocks& prepare(int colour, Use use) {
    const auto known = general_blocks_.find({colour, use});
    if (known != general_blocks_.end()) return known->second;
    const Patches& patches = level_.patches;
    std::vector<std::int32_t> blocks;
    const auto& runs = device_->colour(colour).runs;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (!wanted(runs[i], use)) continue;
      const PatchRun& run = patches.colours[colour][i];
      for (auto patch = run.begin; patch < run.end; ++patch) {
        const auto cells = patch_cells(level_.grid, patches.lower_cell[patch]);
        for (int bits = 0; bits < 1 << level_.equation.dim; ++bits) blocks.push_back(cells[bits] / interleave);
      }
    }
    std::sort(blocks.begin(), blocks.end());
    blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
    if (!blocks.empty() && residual_.size() == 0) residual_ = Vector<T>(shared_.engine, level_.size());
    return general_blocks_[{colour, use}] = {shared_.engine, level_, BlockOrder(level_.grid).sorted(blocks)};
  }

  void smooth_general(int colour, const T* b, const T* x, T* y, Use use, T damping) {
    const DeviceBlocks& blocks = prepare(colour, use);
    if (blocks.empty()) return;
    const T* residual = b;
    if (x != nullptr) {
      apply_or_residual(blocks.list(), b, x, residual_.data());
      residual = residual_.data();
    }
    for (const DeviceRun& run : device_->colour(colour).runs) {
      if (!wanted(run, use)) continue;
      const cuda::SmoothArguments<T> arguments{&cell_,
                                               patches_[run.kind].data,
                                               device_->topology(),
                                               run.lower.data(),
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

  [[nodiscard]] cuda::TransferArguments<T> transfer(cuda::RecordBlocks blocks, const T* from, T* to) const {
    return {&cell_,
            device_->topology(),
            coarse_->topology(),
            device_->children(),
            device_->parent(),
            {level_.coarsened[0], level_.coarsened[1], level_.coarsened[2]},
            blocks,
            from,
            to};
  }

  Shared& shared_;
  const Level& level_;
  const cuda::KernelTable<T>& table_;
  std::shared_ptr<DeviceLevel> device_;
  std::shared_ptr<DeviceLevel> coarse_;
  Local local_;
  CellData<T> cell_;
  std::unique_ptr<ParitySmoother> parity_;                      // or nullptr
  std::vector<Patch> patches_;                                  // by kind
  std::map<std::pair<int, Use>, DeviceBlocks> general_blocks_;  // by colour
  Vector<T> residual_;                                          // for smooth_general
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
    check(cudaStreamCreateWithFlags(&zeroing_, cudaStreamNonBlocking), "cudaStreamCreate");
    void* host = nullptr;
    check(cudaMallocHost(&host, cuda::batch_vectors * sizeof(double)), "cudaMallocHost");
    partial_ = Vector<double>(*this, std::int64_t{cuda::batch_vectors} * cuda::reduction_blocks);
    shared_ = std::make_unique<Shared>(Shared{*this, stream_, partial_.data(), static_cast<double*>(host)});
  }
  ~CudaEngine() override {
    cudaStreamSynchronize(stream_);
    cudaFreeHost(shared_->result);
    partial_ = {};
    cudaStreamDestroy(zeroing_);
    cudaStreamDestroy(stream_);
  }
  CudaEngine(const CudaEngine&) = delete;
  CudaEngine& operator=(const CudaEngine&) = delete;

  [[nodiscard]] std::string description() const override {
    return fmt::format("cuda, {}, {:.0f} GB", properties_.name, static_cast<double>(properties_.totalGlobalMem) * 1e-9);
  }
  [[nodiscard]] int threads() const override { return 1; }
  [[nodiscard]] int vectors_for_smoothing() const override { return 1; }

  std::unique_ptr<Kernels<float>> kernels_float(const Level& level, LocalSolverKind local) override {
    return std::make_unique<CudaKernels<float>>(*shared_, level, local);
  }
  std::unique_ptr<Kernels<double>> kernels_double(const Level& level, LocalSolverKind local) override {
    return std::make_unique<CudaKernels<double>>(*shared_, level, local);
  }

  void* allocate(std::size_t bytes) override {
    void* memory = nullptr;
    if (const cudaError_t status = cudaMalloc(&memory, bytes); status != cudaSuccess) {
      cudaGetLastError();
      throw ResourceError(
          fmt::format("out of device memory: {:.2f} GB asked for, {:.2f} GB in use by this solve, {:.2f} GB free on {}",
                      static_cast<double>(bytes) * 1e-9, static_cast<double>(bytes_in_use_) * 1e-9,
                      static_cast<double>(bytes_available()) * 1e-9, properties_.name));
    }
    bytes_in_use_ += static_cast<std::int64_t>(bytes);
    bytes_peak_ = std::max(bytes_peak_, bytes_in_use_);
    check(cudaMemsetAsync(memory, 0, bytes, zeroing_), "zeroing of new memory");
    check(cudaStreamSynchronize(zeroing_), "zeroing of new memory");
    return memory;
  }
  void release(void* memory, std::size_t bytes) noexcept override {
    cudaFree(memory);  // waits for the kernels that use it
    bytes_in_use_ -= static_cast<std::int64_t>(bytes);
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

  std::function<void()> record(const std::function<void()>& work) override {
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), "start of a graph");
    cudaGraph_t graph = nullptr;
    try {
      work();
    } catch (...) {
      cudaStreamEndCapture(stream_, &graph);
      if (graph != nullptr) cudaGraphDestroy(graph);
      throw;
    }
    check(cudaStreamEndCapture(stream_, &graph), "end of a graph");
    cudaGraphExec_t executable = nullptr;
    const cudaError_t status = cudaGraphInstantiate(&executable, graph, 0);
    cudaGraphDestroy(graph);
    check(status, "instantiation of a graph");
    const std::shared_ptr<CUgraphExec_st> owner(executable, [](cudaGraphExec_t e) { cudaGraphExecDestroy(e); });
    return [stream = stream_, owner] {
      check(cudaGraphLaunch(owner.get(), stream), "launch of a graph");
      cuda::note_launch("graph of a cycle");
    };
  }

  [[nodiscard]] std::int64_t bytes_in_use() const override { return bytes_in_use_; }
  [[nodiscard]] std::int64_t bytes_peak() const override { return bytes_peak_; }
  [[nodiscard]] std::int64_t bytes_available() const override {
    std::size_t free = 0;
    std::size_t total = 0;
    check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    return static_cast<std::int64_t>(free);
  }

 private:
  cudaDeviceProp properties_{};
  Stream stream_ = nullptr;
  Stream zeroing_ = nullptr;  // apart from the work that is being recorded
  std::int64_t bytes_in_use_ = 0;
  std::int64_t bytes_peak_ = 0;
  Vector<double> partial_;
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
