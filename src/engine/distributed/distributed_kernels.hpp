#pragma once
/// \file
/// Kernels of a level that several ranks share.

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/agreement.hpp"
#include "base/interrupt.hpp"
#include "engine/distributed/exchange.hpp"
#include "engine/engine.hpp"
#include "mesh/shared_records.hpp"

namespace solenoid::distributed {

/// Between a level that ranks share and the next coarser one, which each has all of: the part of that which this rank
/// has the finer cells of, and how it becomes all.
template <class T>
class Gathering {
 public:
  Gathering(Shared& shared, const Level& fine, const Level& whole) : shared_(shared), part_(part_of(fine, whole)) {
    const GatherPlan plan(part_.grid, whole.grid);
    const int record = whole.equation.record();
    const auto on = [&](const std::vector<Record>& records) { return on_device(shared.engine, records); };
    mine_ = on(plan.mine);
    all_ = on(plan.all);
    known_ = on(plan.known);
    same_ = on(plan.same);
    vector_ = Vector<T>(shared.engine, part_.size());
    packed_mine_ = Vector<T>(shared.engine, std::max<std::int64_t>(1, mine_.size() * record));
    packed_all_ = Vector<T>(shared.engine, std::max(all_.size(), known_.size()) * record);
    std::int64_t first = 0;
    for (const std::size_t count : plan.counts) {
      bytes_.push_back(count * record * sizeof(T));
      if (count > 0)
        of_ranks_.push_back({all_.data() + first, static_cast<std::int64_t>(count), 0, record, first * record});
      first += static_cast<std::int64_t>(count);
    }
    whole_record_ = record;
    shared.transport.reserve(bytes_);
  }

  /// The part of the coarser level that belongs to this rank, and a vector on it.
  [[nodiscard]] const Level& part() const { return part_; }
  [[nodiscard]] T* vector() { return vector_.data(); }

  /// coarse = the vectors of all ranks.
  void gather(Kernels<T>& kernels, T* coarse) {
    const PackedRecords mine{mine_.data(), mine_.size(), 0, whole_record_, 0};
    if (mine.count > 0) kernels.pack({&mine, 1}, vector(), packed_mine_.data());
    shared_.transport.gather_all(reinterpret_cast<const std::byte*>(packed_mine_.data()), bytes_,
                                 reinterpret_cast<std::byte*>(packed_all_.data()));
    kernels.unpack(of_ranks_, packed_all_.data(), coarse);
  }
  /// The vector has what `coarse` has, ghosts too.
  void spread(Kernels<T>& kernels, const T* coarse) {
    const PackedRecords from{same_.data(), same_.size(), 0, whole_record_, 0};
    const PackedRecords to{known_.data(), known_.size(), 0, whole_record_, 0};
    kernels.pack({&from, 1}, coarse, packed_all_.data());
    kernels.unpack({&to, 1}, packed_all_.data(), vector());
  }

 private:
  static Level part_of(const Level& fine, const Level& whole) {
    Grid grid = fine.grid.coarsen(fine.coarsening);
    const Coefficients coefficients = coarse_coefficients(fine.coefficients, fine.grid, fine.coarsening, grid);
    return {whole.equation, coefficients, std::move(grid)};
  }

  Shared& shared_;
  Level part_;
  int whole_record_ = 0;
  Vector<Record> mine_;
  Vector<Record> all_;
  Vector<Record> known_;
  Vector<Record> same_;
  Vector<T> vector_;
  Vector<T> packed_mine_;
  Vector<T> packed_all_;
  std::vector<std::size_t> bytes_;  // [rank]
  std::vector<PackedRecords> of_ranks_;
};

template <class T>
class DistributedKernels final : public Kernels<T> {
 public:
  DistributedKernels(Shared& shared, const Level& level, std::unique_ptr<Kernels<T>> kernels)
      : shared_(shared),
        ghosts_(shared.ghosts),
        level_(level),
        exchange_(shared.exchange<T>(level)),
        sums_(shared.engine, std::max<std::int64_t>(1, std::ssize(level.constants))),
        kernels_(std::move(kernels)),
        rounds_(do_all_round()) {}

  [[nodiscard]] const Level& level() const override { return level_; }

  void take_points() override {
    kernels_->take_points();
    at_points_ = level_.has_viscosity_points();
  }
  void apply(const T* x, T* y) override {
    bring(x);
    kernels_->apply(x, y);
    at_points_ ? make_stale(y) : ghosts_.set(y, Ghosts::near);
  }
  void residual(const T* b, const T* x, T* r) override {
    bring_for_residual(x);
    const auto state = ghosts_.are_fresh(b) && !at_points_ ? Ghosts::near : Ghosts::stale;
    kernels_->residual(b, x, r);
    state == Ghosts::stale ? make_stale(r) : ghosts_.set(r, state);
  }
  [[nodiscard]] bool rounds_residuals() const override { return rounds_; }
  void residual_rounded(const T* b, const T* x, float* r) override {
    bring_for_residual(x);
    kernels_->residual_rounded(b, x, r);
    ghosts_.set(r, ghosts_.are_fresh(b) ? Ghosts::near : Ghosts::stale);
  }
  double norm_of_rounded() override {
    double square = std::pow(kernels_->norm_of_rounded(), 2);
    shared_.ranks.sum(std::span(&square, 1));
    return std::sqrt(square);
  }
  void smooth(int colour, const T* b, const T* x, T* y) override {
    auto [needed, state] = for_colour(colour, x);
    if (needed.of == nullptr && !ghosts_.are_fresh(b)) {
      needed = {{}, b};
    } else {
      bring(b);
    }
    // They travel while patches are smoothed that read none.
    T* const of = const_cast<T*>(needed.of);
    KernelMessages* const within = of != nullptr && brings_ ? exchange_->in_kernel(needed.what) : nullptr;
    if (within != nullptr) {
      kernels_->smooth_bringing(colour, b, x, y, *within, of);
    } else if (of != nullptr) {
      (*exchange_)(*kernels_, needed.what, of,
                   [&](const auto& advance) { kernels_->smooth_inner(colour, b, x, y, advance); });
      kernels_->smooth_outer(colour, b, x, y);
    } else {
      kernels_->smooth(colour, b, x, y);
    }
    if (of != nullptr && !needed.what) ghosts_.set(of, Ghosts::fresh);
    if (state == Ghosts::stale) return make_stale(y);
    ghosts_.set(y, state);
    if (shared_.poisons) exchange_->poison(*kernels_, state, y);
  }
  void smooth_add(int colour, const T* b, const T* x, T* y, T damping) override {
    bring(b);
    bring(x);
    kernels_->smooth_add(colour, b, x, y, damping);
    make_stale(y);
  }

  /// Levels with small patches are whole.
  void residual_for_small(int group, const T* b, const T* x, T* r) override {
    kernels_->residual_for_small(group, b, x, r);
  }
  void smooth_small(int group, const T* r, T* x, T damping) override { kernels_->smooth_small(group, r, x, damping); }

  void prepare_smoother(bool additive) override {
    kernels_->prepare_smoother(additive);
    if (additive || !shared_.ranks.all(kernels_->smooths_from_halo())) return;
    exchange_->prepare_sweep();
    brings_ = shared_.ranks.all(kernels_->brings_ghosts());
    if (brings_) exchange_->prepare_in_kernels();
  }
  [[nodiscard]] std::shared_ptr<CoefficientTables> make_tables() override { return kernels_->make_tables(); }
  std::shared_ptr<CoefficientTables> use_tables(std::shared_ptr<CoefficientTables> tables) override {
    return kernels_->use_tables(std::move(tables));
  }

  void prepare_transfer(const Level& coarse) override {
    if (coarse.grid.partition() != nullptr) return kernels_->prepare_transfer(coarse);
    if (gathering_ != nullptr) return;
    gathering_ = std::make_unique<Gathering<T>>(shared_, level_, coarse);
    kernels_->prepare_transfer(gathering_->part());
  }
  void restrict_to(const Level& coarse, const T* fine_vector, T* coarse_vector) override {
    if (ghosts_.of(fine_vector) != Ghosts::near) bring(fine_vector);
    if (coarse.grid.partition() != nullptr) {
      kernels_->restrict_to(coarse, fine_vector, coarse_vector);
      return ghosts_.set(coarse_vector, Ghosts::stale);
    }
    prepare_transfer(coarse);
    kernels_->restrict_to(gathering_->part(), fine_vector, gathering_->vector());
    gathering_->gather(*kernels_, coarse_vector);
  }
  void prolong_add(const Level& coarse, const T* coarse_vector, T* fine_vector) override {
    with_part(coarse, coarse_vector, fine_vector, ghosts_.of(fine_vector),
              [&](const Level& part, const T* vector) { kernels_->prolong_add(part, vector, fine_vector); });
  }
  void prolong(const Level& coarse, const T* coarse_vector, T* fine_vector) override {
    with_part(coarse, coarse_vector, fine_vector, Ghosts::fresh,
              [&](const Level& part, const T* vector) { kernels_->prolong(part, vector, fine_vector); });
  }

  bool load(const VectorField& force, T* b) override {
    ghosts_.set(b, Ghosts::stale);
    bool is_done = false;
    in_agreement(&shared_.ranks, [&] { is_done = kernels_->load(force, b); });
    return shared_.ranks.all(is_done);
  }

  void zero(T* x) override {
    kernels_->zero(x);
    ghosts_.set(x, Ghosts::fresh);
  }
  void copy(const T* x, T* y) override {
    kernels_->copy(x, y);
    ghosts_.set(y, ghosts_.of(x));
  }
  void scale(T a, const T* x, T* y) override {
    kernels_->scale(a, x, y);
    ghosts_.set(y, ghosts_.of(x));
  }
  void axpy(T a, const T* x, T* y) override {
    kernels_->axpy(a, x, y);
    ghosts_.combine(x, y);
  }
  /// All ranks end early here if one is asked to.
  void dots(int count, const T* const* v, const T* w, double* result) override {
    kernels_->dots(count, v, w, result);
    std::vector<double> numbers(result, result + count);
    shared_.transport.check_peers();
    numbers.push_back(ends_early() ? 1.0 : 0.0);
    shared_.ranks.sum(std::span(numbers));
    std::copy_n(numbers.begin(), count, result);
    if (numbers.back() > 0.0) throw Interrupted("interrupted");
  }
  void axpys(int count, const double* a, const T* const* v, double scale, T* w) override {
    kernels_->axpys(count, a, v, scale, w);
    for (int i = 0; i < count; ++i) ghosts_.combine(v[i], w);
  }
  void two_sums(int count, const T* const* v, const double* a, T* x, const double* b, T* y) override {
    kernels_->two_sums(count, v, a, x, b, y);
    for (T* const sum : {x, y}) {
      ghosts_.set(sum, Ghosts::fresh);
      for (int i = 0; i < count; ++i) ghosts_.combine(v[i], sum);
    }
  }
  double l2_norm(const T* x) override {
    bring(x);
    const double norm = kernels_->l2_norm(x);
    double square = norm * norm;
    shared_.ranks.sum(std::span(&square, 1));
    return std::sqrt(square);
  }
  void project(T* x) override {
    if (level_.constants.empty()) return;
    kernels_->sum_constants(x, sums_.data());
    shared_.transport.sum(sums_.data(), static_cast<int>(level_.constants.size()));
    kernels_->remove_constants(sums_.data(), x);
  }
  void gather(std::int64_t count, const std::int64_t* index, const T* x, T* values) override {
    kernels_->gather(count, index, x, values);
  }
  void scatter(std::int64_t count, const std::int64_t* index, const T* values, T* x) override {
    kernels_->scatter(count, index, values, x);  // x may have the records of another level
    ghosts_.set(x, Ghosts::stale);
  }
  void scatter_add(std::int64_t count, const std::int64_t* index, const T* values, T* x) override {
    kernels_->scatter_add(count, index, values, x);
    ghosts_.set(x, Ghosts::stale);
  }
  void pack(std::span<const PackedRecords> what, const T* x, T* values) override { kernels_->pack(what, x, values); }
  void bring_ghosts(const Level& of, T* x) override {
    if (ghosts_.are_fresh(x)) return;
    (*shared_.exchange<T>(of))(*kernels_, {}, x);
    ghosts_.set(x, Ghosts::fresh);
  }

  /// Levels that are solved by a matrix are whole.
  void dense(std::int64_t count, const std::int64_t* index, const T* matrix, const T* b, T* x) override {
    kernels_->dense(count, index, matrix, b, x);
  }
  void invert_dense(std::span<const DenseField> fields, double* matrix, T* inverse) override {
    kernels_->invert_dense(fields, matrix, inverse);
  }

  void from_double(const double* x, T* y) override {
    kernels_->from_double(x, y);
    ghosts_.set(y, ghosts_.of(x));
  }
  void from_float(const float* x, T* y) override {
    bring_float(x);
    kernels_->from_float(x, y);
    ghosts_.set(y, ghosts_.of(x));
  }
  void axpys_float(int count, const double* a, const float* const* v, T* w) override {
    for (int i = 0; i < count && ghosts_.are_fresh(w); ++i) bring_float(v[i]);
    kernels_->axpys_float(count, a, v, w);
    for (int i = 0; i < count; ++i) ghosts_.combine(v[i], w);
  }

 private:
  /// Ghosts are caches of what others own: bringing them changes no vector.
  void bring(const T* x) {
    if (ghosts_.are_fresh(x)) return;
    (*exchange_)(*kernels_, {}, const_cast<T*>(x));
    ghosts_.set(x, Ghosts::fresh);
  }
  struct Needed {
    typename Exchange<T>::What what;
    const T* of;  ///< nullptr: nothing
  };
  /// What a colour needs of x, which may be in some state of a sweep: nothing, what is sent in that state, or all; and
  /// the state of the result.
  std::pair<Needed, Ghosts::State> for_colour(int colour, const T* x) const {
    const Sweep* const sweep = exchange_->sweep();
    const Ghosts::State state = ghosts_.of(x);
    Needed needed{{}, state == Ghosts::fresh ? nullptr : x};
    if (sweep == nullptr) return {needed, Ghosts::stale};
    std::optional<int> next = state < 0 ? std::nullopt : sweep->after_colour(state, colour);
    if (next) needed.what = state;
    if (!next) next = sweep->after_colour(Ghosts::fresh, colour);
    return {needed, next && *next < sweep->states() ? *next : Ghosts::stale};
  }
  void bring_for_residual(const T* x) {
    const Sweep* const sweep = exchange_->sweep();
    const Ghosts::State state = ghosts_.of(x);
    const auto next = sweep == nullptr || state < 0 ? std::nullopt : sweep->after_residual(state);
    if (!next) return bring(x);
    (*exchange_)(*kernels_, state, const_cast<T*>(x));
    ghosts_.set(x, *next);
  }
  [[nodiscard]] bool do_all_round() const {
    double one_does_not = kernels_->rounds_residuals() ? 0.0 : 1.0;
    if (std::is_same_v<T, double>) shared_.ranks.maximum(std::span(&one_does_not, 1));
    return one_does_not == 0.0;
  }
  void make_stale(T* x) {
    ghosts_.set(x, Ghosts::stale);
    if (shared_.poisons) exchange_->poison(*kernels_, x);
  }
  /// In single precision they take half the time: brought before numbers get wider.
  void bring_float(const float* x) {
    if (std::is_same_v<T, float> || ghosts_.are_fresh(x)) return;
    if (narrow_ == nullptr) {
      narrow_ = shared_.exchange<float>(level_);
      narrow_kernels_ = make_kernels<float>(shared_.engine, level_, LocalSolverKind::direct);
    }
    (*narrow_)(*narrow_kernels_, {}, const_cast<float*>(x));
    ghosts_.set(x, Ghosts::fresh);
  }

  /// Prolongs from a coarser level with its ghosts. It writes the children of the cells next to owned ones: two layers,
  /// where cells become one in each direction. If there are no more, they stay as fresh as they were.
  template <class Prolong>
  void with_part(const Level& coarse, const T* coarse_vector, const T* fine_vector, Ghosts::State state,
                 const Prolong& prolong) {
    if (coarse.grid.partition() == nullptr) {
      prepare_transfer(coarse);
      gathering_->spread(*kernels_, coarse_vector);
      prolong(gathering_->part(), gathering_->vector());
    } else {
      bring_ghosts(coarse, const_cast<T*>(coarse_vector));
      prolong(coarse, coarse_vector);
    }
    for (int a = 0; a < level_.equation.dim; ++a) {
      if (!level_.coarsening.merges(a) || level_.grid.ghost_layers() > 2) state = Ghosts::stale;
    }
    ghosts_.set(fine_vector, state);
  }

  Shared& shared_;
  Ghosts& ghosts_;
  const Level& level_;
  std::shared_ptr<Exchange<T>> exchange_;
  Vector<double> sums_;
  bool brings_ = false;     // ghosts within the kernels of smoothing
  bool at_points_ = false;  // what those add is for owned records alone
  std::unique_ptr<Gathering<T>> gathering_;
  std::unique_ptr<Kernels<T>> kernels_;
  bool rounds_;
  // Of vectors in single precision, where these are in double, once there is one:
  std::shared_ptr<Exchange<float>> narrow_;
  std::unique_ptr<Kernels<float>> narrow_kernels_;
};

}  // namespace solenoid::distributed
