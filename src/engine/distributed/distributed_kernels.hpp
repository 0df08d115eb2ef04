#pragma once
/// \file
/// Kernels of a level that several ranks share.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "base/interrupt.hpp"
#include "engine/distributed/ghosts.hpp"
#include "engine/distributed/transport.hpp"
#include "engine/engine.hpp"
#include "mesh/shared_records.hpp"

namespace solenoid::distributed {

template <class T>
class Exchange;

/// What all kernels of an engine share.
struct Shared {
  Engine& engine;  ///< of this rank
  Transport& transport;
  const Communicator& ranks;
  Ghosts ghosts;
  bool poisons = false;  ///< writes NaN into ghosts that become stale: a test of who reads them
  std::tuple<std::map<const Level*, std::weak_ptr<Exchange<float>>>,
             std::map<const Level*, std::weak_ptr<Exchange<double>>>>
      exchanges;

  /// Of a level's vectors.
  template <class T>
  std::shared_ptr<Exchange<T>> exchange(const Level& level) {
    auto& known = std::get<std::map<const Level*, std::weak_ptr<Exchange<T>>>>(exchanges)[&level];
    auto exchange = known.lock();
    if (exchange == nullptr) known = exchange = std::make_shared<Exchange<T>>(*this, level);
    return exchange;
  }
};

/// Messages of one vector: records packed for each neighbour, one after the other.
template <class T>
class Exchange {
 public:
  Exchange(Shared& shared, const Level& level) : shared_(shared) {
    const ExchangePlan plan(level.grid);
    std::vector<Record> sends;
    std::vector<Record> receives;
    const auto append = [](std::vector<Record>& all, const std::vector<Record>& some) {
      all.insert(all.end(), some.begin(), some.end());
    };
    for (const auto& neighbour : plan.neighbours) {
      append(sends, neighbour.sends);
      append(receives, neighbour.receives);
    }
    const int record = level.equation.record();
    send_records_ = on_device(shared.engine, sends);
    receive_records_ = on_device(shared.engine, receives);
    send_ = Vector<T>(shared.engine, std::max<std::int64_t>(1, std::ssize(sends) * record));
    receive_ = Vector<T>(shared.engine, std::max<std::int64_t>(1, std::ssize(receives) * record));
    if (shared.poisons) {
      none_ = on_device(shared.engine, std::vector<T>(receive_.size(), std::numeric_limits<T>::quiet_NaN()));
    }
    std::int64_t sent = 0;
    std::int64_t received = 0;
    const auto message = [&](int rank, Vector<T>& memory, const Vector<Record>& records, std::int64_t& first,
                             std::int64_t count, std::vector<PackedRecords>& packed,
                             std::vector<Transport::Message>& messages) {
      if (count == 0) return;
      packed.push_back({records.data() + first, count, 0, record, first * record});
      messages.push_back({rank, reinterpret_cast<std::byte*>(memory.data() + first * record),
                          static_cast<std::size_t>(count * record) * sizeof(T)});
      first += count;
    };
    for (const auto& [rank, its_sends, its_receives] : plan.neighbours) {
      message(rank, send_, send_records_, sent, std::ssize(its_sends), packed_sends_, sends_);
      message(rank, receive_, receive_records_, received, std::ssize(its_receives), packed_receives_, receives_);
    }
  }

  /// Makes the ghosts of x what nobody must read.
  void poison(Kernels<T>& kernels, T* x) { kernels.unpack(packed_receives_, none_.data(), x); }
  /// Brings the ghosts of x.
  void operator()(Kernels<T>& kernels, T* x) {
    kernels.pack(packed_sends_, x, send_.data());
    shared_.transport.exchange(sends_, receives_);
    kernels.unpack(packed_receives_, receive_.data(), x);
  }

 private:
  Shared& shared_;
  Vector<Record> send_records_;
  Vector<Record> receive_records_;
  Vector<T> send_;
  Vector<T> receive_;
  Vector<T> none_;  // what poisoned ghosts have
  std::vector<PackedRecords> packed_sends_;
  std::vector<PackedRecords> packed_receives_;
  std::vector<Transport::Message> sends_;
  std::vector<Transport::Message> receives_;
};

/// Between a level that ranks share and the next coarser one, which each has all of: the part of that which this rank
/// has the finer cells of, and how it becomes all.
template <class T>
class Gathering {
 public:
  Gathering(Shared& shared, const Level& fine, const Level& whole)
      : shared_(shared), part_(whole.equation, whole.coefficients, fine.grid.coarsen(fine.coarsening)) {
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
        kernels_(std::move(kernels)) {}

  [[nodiscard]] const Level& level() const override { return level_; }

  void apply(const T* x, T* y) override {
    bring(x);
    kernels_->apply(x, y);
    ghosts_.set(y, Ghosts::State::near);
  }
  void residual(const T* b, const T* x, T* r) override {
    bring(x);
    const auto state = ghosts_.fresh(b) ? Ghosts::State::near : Ghosts::State::stale;
    kernels_->residual(b, x, r);
    state == Ghosts::State::stale ? make_stale(r) : ghosts_.set(r, state);
  }
  void smooth(int colour, const T* b, const T* x, T* y) override {
    bring(b);
    bring(x);
    kernels_->smooth(colour, b, x, y);
    make_stale(y);
  }
  void smooth_add(int colour, const T* b, const T* x, T* y, T damping) override {
    bring(b);
    bring(x);
    kernels_->smooth_add(colour, b, x, y, damping);
    make_stale(y);
  }

  void prepare_smoother(bool additive) override { kernels_->prepare_smoother(additive); }
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
    if (ghosts_.of(fine_vector) == Ghosts::State::stale) bring(fine_vector);
    if (coarse.grid.partition() != nullptr) {
      kernels_->restrict_to(coarse, fine_vector, coarse_vector);
      return ghosts_.set(coarse_vector, Ghosts::State::stale);
    }
    prepare_transfer(coarse);
    kernels_->restrict_to(gathering_->part(), fine_vector, gathering_->vector());
    gathering_->gather(*kernels_, coarse_vector);
  }
  void prolong_add(const Level& coarse, const T* coarse_vector, T* fine_vector) override {
    with_part(coarse, coarse_vector, fine_vector, ghosts_.fresh(fine_vector),
              [&](const Level& part, const T* vector) { kernels_->prolong_add(part, vector, fine_vector); });
  }
  void prolong(const Level& coarse, const T* coarse_vector, T* fine_vector) override {
    with_part(coarse, coarse_vector, fine_vector, true,
              [&](const Level& part, const T* vector) { kernels_->prolong(part, vector, fine_vector); });
  }

  bool load(const VectorField& force, T* b) override {
    ghosts_.set(b, Ghosts::State::stale);
    return kernels_->load(force, b);
  }

  void zero(T* x) override {
    kernels_->zero(x);
    ghosts_.set(x, Ghosts::State::fresh);
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
    numbers.push_back(ends_early() ? 1.0 : 0.0);
    shared_.ranks.sum(std::span(numbers));
    std::copy_n(numbers.begin(), count, result);
    if (numbers.back() > 0.0) throw Interrupted("interrupted");
  }
  void axpys(int count, const double* a, const T* const* v, double scale, T* w) override {
    kernels_->axpys(count, a, v, scale, w);
    for (int i = 0; i < count; ++i) ghosts_.combine(v[i], w);
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
    ghosts_.set(x, Ghosts::State::stale);
  }
  void bring_ghosts(const Level& of, T* x) override {
    if (ghosts_.fresh(x)) return;
    (*shared_.exchange<T>(of))(*kernels_, x);
    ghosts_.set(x, Ghosts::State::fresh);
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
    for (int i = 0; i < count && ghosts_.fresh(w); ++i) bring_float(v[i]);
    kernels_->axpys_float(count, a, v, w);
    for (int i = 0; i < count; ++i) ghosts_.combine(v[i], w);
  }

 private:
  /// Ghosts are caches of what others own: bringing them changes no vector.
  void bring(const T* x) {
    if (ghosts_.fresh(x)) return;
    (*exchange_)(*kernels_, const_cast<T*>(x));
    ghosts_.set(x, Ghosts::State::fresh);
  }
  void make_stale(T* x) {
    ghosts_.set(x, Ghosts::State::stale);
    if (shared_.poisons) exchange_->poison(*kernels_, x);
  }
  /// In single precision they take half the time: brought before numbers get wider.
  void bring_float(const float* x) {
    if (std::is_same_v<T, float> || ghosts_.fresh(x)) return;
    if (narrow_ == nullptr) {
      narrow_ = shared_.exchange<float>(level_);
      narrow_kernels_ = make_kernels<float>(shared_.engine, level_, LocalSolverKind::direct);
    }
    (*narrow_)(*narrow_kernels_, const_cast<float*>(x));
    ghosts_.set(x, Ghosts::State::fresh);
  }

  /// Prolongs from a coarser level with its ghosts. It writes the children of the cells next to owned ones: all ghosts,
  /// where cells become one in each direction.
  template <class Prolong>
  void with_part(const Level& coarse, const T* coarse_vector, const T* fine_vector, bool fresh,
                 const Prolong& prolong) {
    if (coarse.grid.partition() == nullptr) {
      prepare_transfer(coarse);
      gathering_->spread(*kernels_, coarse_vector);
      prolong(gathering_->part(), gathering_->vector());
    } else {
      bring_ghosts(coarse, const_cast<T*>(coarse_vector));
      prolong(coarse, coarse_vector);
    }
    for (int a = 0; a < level_.equation.dim; ++a) fresh = fresh && level_.coarsening.merges(a);
    ghosts_.set(fine_vector, fresh ? Ghosts::State::fresh : Ghosts::State::stale);
  }

  Shared& shared_;
  Ghosts& ghosts_;
  const Level& level_;
  std::shared_ptr<Exchange<T>> exchange_;
  Vector<double> sums_;
  std::unique_ptr<Gathering<T>> gathering_;
  std::unique_ptr<Kernels<T>> kernels_;
  // Of vectors in single precision, where these are in double, once there is one:
  std::shared_ptr<Exchange<float>> narrow_;
  std::unique_ptr<Kernels<float>> narrow_kernels_;
};

}  // namespace solenoid::distributed
