#include "engine/cuda/cuda_kernels.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "engine/cuda/error.hpp"
#include "engine/cuda/kernels/parity.hpp"
#include "engine/cuda/kernels/poisson.hpp"
#include "engine/cuda/parity_plan.hpp"
#include "engine/tables.hpp"

namespace solenoid::cuda {

void Shared::wait_for_results() const {
  const std::atomic_ref<std::uint64_t> arrived(results->ticket);
  constexpr int looks = 1 << 14;
  for (int i = 1; arrived.load(std::memory_order_acquire) != ticket; ++i) {
    if (i % looks != 0) continue;
    const cudaError_t status = cudaStreamQuery(stream);
    if (status != cudaErrorNotReady) check(status, "wait for results");
  }
}

namespace {

template <class T>
class CudaKernels final : public Kernels<T> {
 public:
  CudaKernels(Shared& shared, const Level& level, LocalSolverKind local)
      : shared_(shared),
        level_(level),
        table_(cuda::kernel_table<T>(level.equation.kind, level.equation.dim, level.equation.order)),
        device_(shared.level(level)),
        local_(local),
        cell_(make_cell_data<T>(level)) {
    rehearse();
  }

  [[nodiscard]] const Level& level() const override { return level_; }

  void apply(const T* x, T* y) override { apply_or_residual(device_->tiles(), nullptr, x, y); }
  void residual(const T* b, const T* x, T* r) override { apply_or_residual(device_->tiles(), b, x, r); }

  void smooth(int colour, const T* b, const T* x, T* y) override {
    if (!smoother_ready_) prepare_smoother(false);
    if (parity_ != nullptr) {
      auto arguments = parity_->colour(colour);
      arguments.cell = &cell_;
      arguments.topology = device_->topology();
      arguments.b = b;
      arguments.x = x;
      arguments.y = y;
      parity_->smooth(arguments, shared_.stream);
    } else {
      const DeviceColour& device = device_->colour(colour);
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
        if (local_ == LocalSolverKind::direct && table_.parity[0].smooth != nullptr &&
            cuda::parity_plan_fits(level_.size())) {
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
      for (const auto& records : plan.uncovered) {
        uncovered_.emplace_back(engine, records);
        uncovered_count_.push_back(static_cast<std::int32_t>(records.size()));
      }
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
      arguments.uncovered = uncovered_[i].data();
      arguments.uncovered_count = uncovered_count_[i];
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
    std::vector<Array<std::int32_t>> uncovered_;  // by colour
    std::vector<std::int32_t> uncovered_count_;
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
    const auto stream = shared_.stream;
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
    const PatchSolver solver(level_.equation, level_.grid.size(), kind, local_);
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
    return general_tiles_[{colour, use}] = {shared_.engine, level_, near_each_other(level_.grid, blocks)};
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
      const cuda::SmoothArguments<T> arguments{patches_[run.kind].data,
                                               device_->topology(),
                                               run.lower,
                                               run.count,
                                               local_,
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
  LocalSolverKind local_;
  CellData<T> cell_;
  bool smoother_ready_ = false;
  std::unique_ptr<PoissonSmoother> poisson_;                  // or nullptr
  std::unique_ptr<ParitySmoother> parity_;                    // or nullptr
  std::vector<Patch> patches_;                                // by kind
  std::map<std::pair<int, Use>, DeviceTiles> general_tiles_;  // by colour
  Vector<T> residual_;                                        // for smooth_general
};

}  // namespace

template <class T>
std::unique_ptr<Kernels<T>> make_kernels(Shared& shared, const Level& level, LocalSolverKind local) {
  return std::make_unique<CudaKernels<T>>(shared, level, local);
}
template std::unique_ptr<Kernels<float>> make_kernels(Shared&, const Level&, LocalSolverKind);
template std::unique_ptr<Kernels<double>> make_kernels(Shared&, const Level&, LocalSolverKind);

}  // namespace solenoid::cuda
