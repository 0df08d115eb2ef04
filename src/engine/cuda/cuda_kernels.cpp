#include "engine/cuda/cuda_kernels.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>
#include <type_traits>
#include <utility>

#include "engine/cuda/dense.hpp"
#include "engine/cuda/dense_inverse.hpp"
#include "engine/cuda/device_coefficients.hpp"
#include "engine/cuda/error.hpp"
#include "engine/cuda/kernels/elements.hpp"
#include "engine/cuda/mac_operator.hpp"
#include "engine/cuda/messages.hpp"
#include "engine/cuda/messages_in_kernel.hpp"
#include "engine/cuda/point_viscosity.hpp"
#include "engine/cuda/points/device_load.hpp"
#include "engine/cuda/smoother/colour_smoother.hpp"
#include "engine/cuda/smoother/small_smoother.hpp"
#include "engine/sheared.hpp"
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
        cell_(make_cell_data<T>(level)),
        mac_(mac_of(level)) {
    if (level.is_sheared()) sheared_ = make_sheared_data<T>(level);
    if (level.has_coefficients_by_cell()) use(std::make_shared<DeviceCoefficients<T>>(shared.engine, level));
    rehearse();
    if (is_in_one_kernel()) {
      norms_ = Vector<double>(shared.engine, most_norms());
      const cuda::Rehearsal rehearsal;
      float somewhere = 0.0F;
      residual_rounded(cell_.value, nullptr, &somewhere);
    }
  }

  [[nodiscard]] const Level& level() const override { return level_; }

  [[nodiscard]] std::shared_ptr<CoefficientTables> make_tables() override {
    auto tables = tables_by<Tables>(this);
    tables->cell = make_cell_data<T>(level_);
    tables->mac = mac_of(level_);
    if (level_.is_sheared()) tables->sheared = make_sheared_data<T>(level_);
    if (level_.has_coefficients_by_cell()) {
      tables->by_cell = std::make_shared<DeviceCoefficients<T>>(shared_.engine, level_);
    }
    for (auto* smoothers : {&multiplicative_, &additive_}) {
      for (auto& smoother : *smoothers) tables->smoothers.emplace_back(smoother.get(), smoother->make_tables());
    }
    if (small_ != nullptr) tables->small = small_->make_tables();
    if (at_points_ != nullptr) tables->point_weights = at_points_->weights(point_weights_);
    return tables;
  }
  std::shared_ptr<CoefficientTables> use_tables(std::shared_ptr<CoefficientTables> tables) override {
    const auto mine = made_as<Tables>(tables, this);
    require_tables_of_smoothers(mine->smoothers.size() == multiplicative_.size() + additive_.size() &&
                                (mine->small != nullptr) == (small_ != nullptr));
    auto before = tables_by<Tables>(this);
    before->cell = std::exchange(cell_, mine->cell);
    before->mac = std::exchange(mac_, mine->mac);
    before->sheared = std::exchange(sheared_, mine->sheared);
    before->by_cell = by_cell_;
    if (mine->by_cell != nullptr) use(mine->by_cell);
    for (auto& [smoother, its_tables] : mine->smoothers) {
      before->smoothers.emplace_back(smoother, smoother->use_tables(its_tables));
    }
    if (small_ != nullptr) before->small = small_->use_tables(mine->small);
    before->point_weights = point_weights_;
    if (at_points_ != nullptr) point_weights_ = mine->point_weights;
    return before;
  }

  /// Patches that have neighbours on all sides are those of the first family; others may read their old values.
  [[nodiscard]] bool smooths_from_halo() const override {
    return !multiplicative_.empty() && multiplicative_.front()->from_halo();
  }

  [[nodiscard]] bool brings_ghosts() const override {
    return multiplicative_.size() == 1 && multiplicative_.front()->brings_ghosts();
  }
  void smooth_bringing(int colour, const T* b, const T* x, T* y, KernelMessages& messages, T* vector) override {
    auto& in_kernel = dynamic_cast<cuda::MessagesInKernel&>(messages);
    smooth(multiplicative_, {colour, b, x, y, false, T(1), nullptr, in_kernel.of(vector)});
  }

  void take_points() override {
    if (!level_.has_viscosity_points()) return;
    at_points_ = std::make_unique<PointViscosityTerm>(shared_, level_);
    point_weights_ = at_points_->weights(nullptr);
    const cuda::Rehearsal rehearsal;
    apply(nullptr, nullptr);
  }

  void apply(const T* x, T* y) override { apply_or_residual(nullptr, x, y); }
  void residual(const T* b, const T* x, T* r) override { apply_or_residual(b, x, r); }
  [[nodiscard]] bool rounds_residuals() const override { return norms_.size() > 0; }
  void residual_rounded(const T* b, const T* x, float* r) override {
    auto arguments = operator_arguments(b, x, nullptr);
    arguments.rounded = r;
    arguments.norms = norms_.data();
    arguments.first_owned = level_.grid.layout().owned_cells().first();
    arguments.last_owned = level_.grid.layout().owned_cells().last();
    table_.apply(arguments, shared_.stream);
  }
  double norm_of_rounded() override {
    cuda::VectorBatch<double> norms{};
    norms.count = 1;
    norms.vector[0] = norms_.data();
    cuda::OwnedNumbers all{};
    all.whole = norms_.size();
    ++shared_.ticket;
    cuda::dots(all, norms, norms_.data(), shared_.reduction, shared_.results, 0, shared_.ticket, shared_.stream);
    shared_.wait_for_results();
    return std::sqrt(shared_.results->value[0]);
  }

  void smooth(int colour, const T* b, const T* x, T* y) override {
    smooth(multiplicative_, {colour, b, x, y, false, T(1)});
  }
  void smooth_add(int colour, const T* b, const T* x, T* y, T damping) override {
    smooth(additive_, {colour, b, x, y, true, damping});
  }
  void residual_for_small(int group, const T* b, const T* x, T* r) override {
    if (table_.residual_at == nullptr || mac_ || level_.goes_by_elements()) return residual(b, x, r);
    table_.residual_at(operator_arguments(b, x, r), small().unknowns(group), shared_.stream);
  }
  void smooth_small(int group, const T* r, T* x, T damping) override { small().smooth(group, r, x, damping); }

  void prepare_smoother(bool additive) override {
    const int colours = static_cast<int>(level_.patches.colours.size());
    auto& smoothers = additive ? additive_ : multiplicative_;
    if (smoothers.empty() && colours > 0) {
      smoothers = make_smoothers<T>({shared_, level_, *device_, cell_, table_, local_, &varying_, &sheared_}, additive);
    }
    const cuda::Rehearsal rehearsal;
    if (!level_.small_patches.groups.empty() && by_cell_ == nullptr) {
      residual_for_small(0, nullptr, nullptr, nullptr);
      smooth_small(0, nullptr, nullptr, T(1));
    }
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
    if (!level_.grid.layout().hats().empty()) {
      return Kernels<T>::prolong(coarse, coarse_vector, fine_vector);
    }
    if (coarse_ == nullptr) prepare_transfer(coarse);
    table_.prolong(transfer(device_->blocks(), coarse_vector, fine_vector, false), shared_.stream);
  }

  bool load([[maybe_unused]] const VectorField& force, [[maybe_unused]] T* b) override {
    if constexpr (std::is_same_v<T, double>) {
      if (level_.is_sheared()) return false;
      if (load_ == nullptr) load_ = std::make_unique<DeviceLoad>(shared_, level_, *device_);
      return (*load_)(force, b);
    } else {
      return false;
    }
  }

  void zero(T* x) override { cuda::zero(level_.size(), x, shared_.stream); }
  void copy(const T* x, T* y) override { cuda::convert(level_.size(), x, y, shared_.stream); }
  void scale(T a, const T* x, T* y) override { cuda::scale(level_.size(), a, x, y, shared_.stream); }
  void axpy(T a, const T* x, T* y) override { cuda::add(level_.size(), a, x, y, shared_.stream); }
  void dots(int count, const T* const* v, const T* w, double* result) override {
    constexpr int most = cuda::HostResults::most;
    for (int begin = 0; begin < count; begin += most) {
      const int part = std::min(most, count - begin);
      ++shared_.ticket;
      for_batches(part, v + begin, nullptr, [&](int first, const cuda::VectorBatch<T>& batch) {
        const bool last = first + batch.count == part;
        cuda::dots(cuda::owned_numbers(level_.grid.layout(), level_.equation.record()), batch, w, shared_.reduction,
                   shared_.results, first, last ? shared_.ticket : 0, shared_.stream);
      });
      shared_.wait_for_results();
      std::copy_n(shared_.results->value, part, result + begin);
    }
  }
  void axpys(int count, const double* a, const T* const* v, double scale, T* w) override {
    combine(count, a, v, static_cast<T>(scale), w);
  }
  void two_sums(int count, const T* const* v, const double* a, T* x, const double* b, T* y) override {
    static_assert(Kernels<T>::most_sums <= cuda::batch_vectors);
    for_batches(count, v, a, [&](int, const cuda::VectorBatch<T>& batch) {
      cuda::SecondSum<T> second{{}, y};
      std::copy_n(b, count, second.factor);
      cuda::two_sums(level_.size(), batch, x, second, shared_.stream);
    });
  }

  double l2_norm(const T* x) override {
    if (level_.equation.velocities() == 0) return std::sqrt(this->dot(x, x));
    ++shared_.ticket;
    velocity_square(x, shared_.ticket);
    shared_.wait_for_results();
    return std::sqrt(shared_.results->value[0]);
  }
  void project(T* x) override {
    for (std::size_t i = 0; i < level_.constants.size(); ++i) {
      cuda::remove_mean(device_->topology(), level_.equation.record(), constant_value(i), device_->carriers(i),
                        shared_.reduction, x, shared_.stream);
    }
  }

  void pack(std::span<const PackedRecords> what, const T* x, T* values) override {
    cuda::pack(what, level_.equation.record(), x, values, shared_.stream);
  }
  void unpack(std::span<const PackedRecords> what, const T* values, T* x) override {
    cuda::unpack(what, level_.equation.record(), values, x, shared_.stream);
  }
  void sum_constants(const T* x, double* sums) override {
    for (std::size_t i = 0; i < level_.constants.size(); ++i) {
      cuda::sum_mean(device_->topology(), level_.grid.layout(), level_.equation.record(), constant_value(i),
                     device_->carriers(i), shared_.reduction, x, sums + i, shared_.stream);
    }
  }
  void remove_constants(const double* sums, T* x) override {
    for (std::size_t i = 0; i < level_.constants.size(); ++i) {
      cuda::subtract_mean(device_->topology(), level_.equation.record(), constant_value(i), device_->carriers(i),
                          sums + i, level_.constants[i].carriers, x, shared_.stream);
    }
  }

  void gather(std::int64_t count, const std::int64_t* index, const T* x, T* values) override {
    if (count > 0) cuda::gather(count, index, x, values, shared_.stream);
  }
  void scatter(std::int64_t count, const std::int64_t* index, const T* values, T* x) override {
    if (count > 0) cuda::scatter(count, index, values, x, shared_.stream);
  }
  void scatter_add(std::int64_t count, const std::int64_t* index, const T* values, T* x) override {
    if (count > 0) cuda::scatter_add(count, index, values, x, shared_.stream);
  }
  void invert_dense(std::span<const DenseField> fields, double* matrix, T* inverse) override {
    cuda::invert_dense(shared_.engine, fields, matrix, inverse, shared_.stream);
  }
  void dense(std::int64_t count, const std::int64_t* index, const T* matrix, const T* b, T* x) override {
    cuda::multiply_dense(count, index, matrix, b, x, shared_.stream);
  }

  void from_double(const double* x, T* y) override { cuda::convert(level_.size(), x, y, shared_.stream); }
  void from_float(const float* x, T* y) override { cuda::convert(level_.size(), x, y, shared_.stream); }
  void axpys_float(int count, const double* a, const float* const* v, T* w) override { combine(count, a, v, T(1), w); }

 private:
  SmallSmoother<T>& small() {
    level_.require_constant_coefficients();
    if (small_ == nullptr) small_ = std::make_unique<SmallSmoother<T>>(shared_, level_);
    return *small_;
  }
  struct Tables final : CoefficientTables {
    CellData<T> cell;
    std::optional<MacStencil<T>> mac;
    ShearedData<T> sheared;
    std::shared_ptr<DeviceCoefficients<T>> by_cell;
    std::vector<std::pair<ColourSmoother<T>*, std::shared_ptr<CoefficientTables>>> smoothers;
    std::shared_ptr<CoefficientTables> small;
    std::shared_ptr<const DevicePointWeights> point_weights;
  };

  void use(std::shared_ptr<DeviceCoefficients<T>> by_cell) {
    by_cell_ = std::move(by_cell);
    varying_ = by_cell_->data();
  }
  /// The value of a record that a constant has: a constant velocity has equal hats and tangential modes 0, a constant
  /// scalar field mode 0 alone.
  [[nodiscard]] int constant_value(std::size_t i) const {
    return level_.constants[i].field * power(level_.equation.n(), level_.equation.dim);
  }

  void smooth(ColourSmoothers<T>& smoothers, const Colour<T>& colour) {
    if (smoothers.empty()) prepare_smoother(colour.add);
    for (auto& smoother : smoothers) smoother->smooth(colour);
  }

  /// Loads the kernels of everything but smoothing and transfers.
  void rehearse() {
    const cuda::Rehearsal rehearsal;
    const auto stream = shared_.stream;
    const std::int64_t size = level_.size();
    apply(nullptr, nullptr);
    residual(cell_.value, nullptr, nullptr);  // a right-hand side that is there
    cuda::dots(cuda::owned_numbers(level_.grid.layout(), level_.equation.record()), cuda::VectorBatch<T>{},
               static_cast<const T*>(nullptr), shared_.reduction, shared_.results, 0, 0, stream);
    cuda::combine(size, cuda::VectorBatch<T>{}, T(1), static_cast<T*>(nullptr), stream);
    cuda::combine(size, cuda::VectorBatch<float, T>{}, T(1), static_cast<T*>(nullptr), stream);
    zero(nullptr);
    copy(nullptr, nullptr);
    scale(T(1), nullptr, nullptr);
    axpy(T(1), nullptr, nullptr);
    from_double(nullptr, nullptr);
    from_float(nullptr, nullptr);
    velocity_square(nullptr, 0);
    project(nullptr);
    cuda::multiply_dense(1, nullptr, static_cast<const T*>(nullptr), static_cast<const T*>(nullptr),
                         static_cast<T*>(nullptr), stream);
    cuda::copy_records(1, nullptr, 1, static_cast<const T*>(nullptr), static_cast<T*>(nullptr), stream);
  }

  void velocity_square(const T* x, std::uint64_t ticket) {
    const Equation& equation = level_.equation;
    cuda::VelocityLayout<T> layout{};
    std::copy_n(&cell_.mass[0][0], sizeof(cell_.mass) / sizeof(T), &layout.mass[0][0]);
    for (int c = 0; c < equation.velocities(); ++c) layout.upper[c] = device_->topology().neighbour[2 * c + 1];
    layout.cells = level_.grid.layout().owned_cells().size();
    layout.velocities = equation.velocities();
    layout.n = equation.n();
    layout.columns = power(equation.n(), equation.dim - 1);
    layout.record_size = equation.record();
    cuda::velocity_square(layout, x, shared_.reduction, shared_.results, ticket, shared_.stream);
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

  void apply_or_residual(const T* b, const T* x, T* y) {
    if (mac_) return cuda::apply_mac(*mac_, device_->topology(), x, b, y, shared_.stream);
    if (level_.goes_by_elements()) {
      (level_.is_sheared() ? table_.apply_sheared : table_.apply_varying)(
          {&cell_, &varying_, &sheared_, device_->topology(), device_->blocks(), {}, x, b, y}, shared_.stream);
      if constexpr (std::is_same_v<T, double>) {
        if (at_points_ != nullptr) at_points_->add(*point_weights_, b == nullptr ? 1.0 : -1.0, x, y);
      }
      return;
    }
    table_.apply(operator_arguments(b, x, y), shared_.stream);
  }
  [[nodiscard]] cuda::ApplyArguments<T> operator_arguments(const T* b, const T* x, T* y) const {
    return {&cell_, device_->topology(), device_->tiles(), device_->blocks(), device_->boundary_sides(), x, b, y};
  }
  /// Thread blocks of the operator at most.
  [[nodiscard]] std::int64_t most_norms() const {
    return static_cast<std::int64_t>(device_->tiles().count) * (level_.equation.dim + 1);
  }
  /// Whether one kernel makes all of a residual in double precision.
  [[nodiscard]] bool is_in_one_kernel() const {
    return std::is_same_v<T, double> && level_.equation.velocities() > 0 && !mac_ && !level_.goes_by_elements() &&
           level_.grid.layout().hats().empty();
  }
  /// The operator where it is the marker-and-cell scheme.
  static std::optional<MacStencil<T>> mac_of(const Level& level) {
    if (!is_mac(level.equation)) return {};
    return MacStencil<T>(level);
  }

  [[nodiscard]] cuda::TransferArguments<T> transfer(cuda::RecordBlocks blocks, const T* from, T* to, bool add) const {
    return {&cell_,
            device_->topology(),
            coarse_->topology(),
            device_->children(),
            device_->parent(),
            {level_.coarsening.merges(0), level_.coarsening.merges(1), level_.coarsening.merges(2)},
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
  std::optional<MacStencil<T>> mac_;
  std::shared_ptr<DeviceCoefficients<T>> by_cell_;  // where they vary,
  VaryingData<T> varying_{};                        // and what it has
  ShearedData<T> sheared_{};                        // of parallelepipeds
  ColourSmoothers<T> multiplicative_;               // or empty, until they are needed
  ColourSmoothers<T> additive_;
  std::unique_ptr<SmallSmoother<T>> small_;        // the same
  std::unique_ptr<DeviceLoad> load_;               // once it is needed
  Vector<double> norms_;                           // of residuals that are rounded, or nothing
  std::unique_ptr<PointViscosityTerm> at_points_;  // once it was taken, with
  std::shared_ptr<const DevicePointWeights> point_weights_;
};

}  // namespace

template <class T>
std::unique_ptr<Kernels<T>> make_kernels(Shared& shared, const Level& level, LocalSolverKind local) {
  return std::make_unique<CudaKernels<T>>(shared, level, local);
}
template std::unique_ptr<Kernels<float>> make_kernels(Shared&, const Level&, LocalSolverKind);
template std::unique_ptr<Kernels<double>> make_kernels(Shared&, const Level&, LocalSolverKind);

}  // namespace solenoid::cuda
