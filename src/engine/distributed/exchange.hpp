#pragma once
/// \file
/// Messages that bring ghosts.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/distributed/ghosts.hpp"
#include "engine/distributed/sweep.hpp"
#include "engine/distributed/transport.hpp"
#include "engine/engine.hpp"
#include "mesh/shared_records.hpp"

namespace solenoid::distributed {

template <class T>
class Exchange;

/// Tests of what travels: of the values that the messages of a step of a Sweep bring, one class of a record after the
/// other, [first, last) do not arrive.
struct Losses {
  bool watched = false;  ///< kernels bring nothing themselves
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::vector<PackedRecords> sent;  ///< all that the last messages were to bring
};

/// What all kernels of an engine share.
struct Shared {
  Engine& engine;  ///< of this rank
  Transport& transport;
  const Communicator& ranks;
  Ghosts ghosts{};
  bool poisons = false;  ///< writes NaN into ghosts that become stale: a test of who reads them
  Losses losses{};       ///< where it does
  template <class Of>
  using Known = std::map<const Level*, std::weak_ptr<Of>>;
  std::tuple<Known<Exchange<float>>, Known<Exchange<double>>, Known<Sweep>> known{};

  /// That of a level, made if there is none.
  template <class Of, class Make>
  std::shared_ptr<Of> of_level(const Level& level, const Make& make) {
    auto& entry = std::get<Known<Of>>(known)[&level];
    auto one = entry.lock();
    if (one == nullptr) entry = one = make();
    return one;
  }
  template <class T>
  std::shared_ptr<Exchange<T>> exchange(const Level& level) {
    return of_level<Exchange<T>>(level, [&] { return std::make_shared<Exchange<T>>(*this, level); });
  }
};

/// One side of the messages of a vector: some values of some records, packed in the memory of messages for one
/// neighbour after the other.
template <class T>
class Packed {
 public:
  /// For a neighbour: the records of each class.
  void add(int rank, const std::vector<ValueClass>& classes, const std::vector<std::vector<Record>>& records) {
    constexpr std::int64_t alignment = 16 / sizeof(T);  // what is copied at once
    size_ = (size_ + alignment - 1) / alignment * alignment;
    const std::int64_t first = size_;
    for (std::size_t k = 0; k < classes.size(); ++k) {
      const auto [begin, end] = classes[k];
      const auto count = std::ssize(records[k]);
      if (count == 0) continue;
      parts_.push_back({nullptr, count, begin, end, size_});
      size_ += count * (end - begin);
      list_.insert(list_.end(), records[k].begin(), records[k].end());
    }
    if (size_ > first) messages_.push_back({rank, first, size_ - first});
  }
  [[nodiscard]] std::int64_t size() const { return size_; }
  /// Once all are added.
  void finish(Engine& engine, T* memory) {
    records_ = on_device(engine, list_);
    const Record* next = records_.data();
    for (PackedRecords& part : parts_) next = (part.records = next) + part.count;
    auto part = parts_.begin();
    for (const auto& [rank, first, count] : messages_) {
      sent_.push_back(
          {rank, reinterpret_cast<std::byte*>(memory + first), static_cast<std::size_t>(count) * sizeof(T)});
      auto& parts_of = of_messages_.emplace_back(Transport::PartsOfMessage{rank, {}});
      for (; part != parts_.end() && part->at < first + count; ++part) {
        parts_of.parts.push_back(*part);
        parts_of.parts.back().at -= first;
      }
    }
  }
  [[nodiscard]] const std::vector<PackedRecords>& parts() const { return parts_; }
  [[nodiscard]] const Transport::Parts& parts_of_messages() const { return of_messages_; }
  [[nodiscard]] const std::vector<Transport::Message>& messages() const { return sent_; }

 private:
  struct Range {
    int rank;
    std::int64_t first;
    std::int64_t count;
  };
  std::vector<Record> list_;
  Vector<Record> records_;
  std::vector<PackedRecords> parts_;
  std::vector<Range> messages_;
  std::vector<Transport::Message> sent_;
  Transport::Parts of_messages_;
  std::int64_t size_ = 0;
};

/// The messages of vectors of a level: of all values of all ghosts and, once they are prepared, those of a Sweep.
template <class T>
class Exchange {
 public:
  Exchange(Shared& shared, const Level& level) : shared_(shared), level_(level), plan_(level.grid) {
    const std::vector<ValueClass> all{{0, level.equation.record()}};
    for (const auto& [rank, sends, receives] : plan_.neighbours) {
      full_.sends.add(rank, all, {sends});
      full_.receives.add(rank, all, {receives});
    }
    send_ = Vector<T>(shared.engine, std::max<std::int64_t>(1, full_.sends.size()));
    receive_ = Vector<T>(shared.engine, std::max<std::int64_t>(1, full_.receives.size()));
    finish(full_);
    std::vector<std::size_t> bytes_from(shared.ranks.size(), 0);
    for (const auto& message : full_.receives.messages()) bytes_from[message.rank] = message.bytes;
    shared.transport.reserve(bytes_from);
    if (shared.poisons) {
      none_ = on_device(shared.engine, std::vector<T>(receive_.size(), std::numeric_limits<T>::quiet_NaN()));
      huge_ = on_device(shared.engine, std::vector<T>(receive_.size(), T(1e30)));
      poison_all_.add(0, all, {cells_among_ghosts()});
      poison_all_.add(0, value_classes(level.equation), hats_among_ghosts());
      poison_all_.finish(shared.engine, none_.data());
    }
  }

  /// Makes the messages of a smoothing step. Collective.
  void prepare_sweep() {
    if (sweep_ != nullptr) return;
    sweep_ = shared_.of_level<Sweep>(level_, [&] { return std::make_shared<Sweep>(level_, plan_); });
    for (int state = 0; state < sweep_->states(); ++state) {
      const auto& [sends, receives] = sweep_->message(state);
      Both& both = of_states_.emplace_back();
      const auto of = [](const std::vector<Record>& list, const Sweep::OfClasses& places) {
        std::vector<std::vector<Record>> records(places.size());
        for (std::size_t k = 0; k < places.size(); ++k) {
          for (const std::int32_t place : places[k]) records[k].push_back(list[place]);
        }
        return records;
      };
      for (std::size_t n = 0; n < plan_.neighbours.size(); ++n) {
        const auto& neighbour = plan_.neighbours[n];
        both.sends.add(neighbour.rank, sweep_->classes(), of(neighbour.sends, sends[n]));
        both.receives.add(neighbour.rank, sweep_->classes(), of(neighbour.receives, receives[n]));
      }
      finish(both);
      if (!shared_.poisons) continue;
      std::vector<std::vector<Record>> stale(sweep_->classes().size());
      const auto& bits = sweep_->stale(state);
      std::size_t place = 0;
      for (const auto& neighbour : plan_.neighbours) {
        for (const Record r : neighbour.receives) {
          for (std::size_t k = 0; k < stale.size(); ++k) {
            if ((bits[place] >> k & 1) != 0) stale[k].push_back(r);
          }
          ++place;
        }
      }
      Packed<T>& poison = poisons_.emplace_back();
      poison.add(0, sweep_->classes(), stale);
      poison.finish(shared_.engine, huge_.data());
    }
  }
  /// nullptr until it is prepared.
  [[nodiscard]] const Sweep* sweep() const { return sweep_.get(); }

  /// All ghosts, or those that the next step of a sweep needs in a state.
  using What = std::optional<int>;
  /// Brings them.
  void operator()(Kernels<T>& kernels, What what, T* x) {
    (*this)(kernels, what, x, [](const auto&) {});
  }
  /// The same, and work that needs none of them: while they travel, if the transport can do that.
  void operator()(Kernels<T>& kernels, What what, T* x, const Transport::Work& work) {
    bring(kernels, both(what), x, work);
    if (what && shared_.poisons) lose(kernels, both(what).receives.parts(), x);
  }
  /// Kernels bring them; nullptr if they cannot, or if nothing is to be brought.
  [[nodiscard]] KernelMessages* in_kernel(What what) {
    return shared_.losses.watched ? nullptr : both(what).in_kernel.get();
  }
  /// Lets kernels bring ghosts themselves, if the transport can do that.
  void prepare_in_kernels() {
    if (full_.in_kernel != nullptr) return;
    for (Both& both : of_states_) make_in_kernel(both);
    make_in_kernel(full_);
  }
  /// Makes all ghosts of x, or those that are stale in a state, what nobody must read.
  void poison(Kernels<T>& kernels, T* x) { kernels.unpack(poison_all_.parts(), none_.data(), x); }
  void poison(Kernels<T>& kernels, int state, T* x) { kernels.unpack(poisons_[state].parts(), huge_.data(), x); }

 private:
  struct Both {
    Packed<T> sends;
    Packed<T> receives;
    std::unique_ptr<KernelMessages> in_kernel;
    [[nodiscard]] bool is_empty() const { return sends.size() == 0 && receives.size() == 0; }
  };
  void make_in_kernel(Both& both) {
    if (both.is_empty()) return;
    both.in_kernel = shared_.transport.in_kernel(both.sends.parts_of_messages(), both.receives.parts_of_messages(),
                                                 level_.equation.record());
  }
  [[nodiscard]] Both& both(What what) { return what ? of_states_[*what] : full_; }
  void finish(Both& both) {
    both.sends.finish(shared_.engine, send_.data());
    both.receives.finish(shared_.engine, receive_.data());
  }
  void bring(Kernels<T>& kernels, const Both& both, T* x, const Transport::Work& work) {
    if (both.is_empty()) return work([] {});
    const int record = level_.equation.record();
    if (shared_.transport.bring(both.sends.parts_of_messages(), both.receives.parts_of_messages(), record, x)) {
      return work([] {});
    }
    kernels.pack(both.sends.parts(), x, send_.data());
    shared_.transport.exchange_while(both.sends.messages(), both.receives.messages(), work);
    kernels.unpack(both.receives.parts(), receive_.data(), x);
  }
  [[nodiscard]] std::vector<Record> cells_among_ghosts() const {
    const auto& layout = level_.grid.layout();
    std::vector<Record> cells;
    for (const Record cell : RecordRange(layout.owned_cells().last(), layout.cells().last())) cells.push_back(cell);
    return cells;
  }
  /// By value class: other values of hat-only records are zero in every vector.
  [[nodiscard]] std::vector<std::vector<Record>> hats_among_ghosts() const {
    const auto& layout = level_.grid.layout();
    std::vector<std::vector<Record>> hats(value_classes(level_.equation).size());
    if (level_.equation.velocities() == 0) return hats;
    for (const Record hat : RecordRange(layout.owned_hats().last(), layout.hats().last())) {
      hats[level_.grid.hat_direction(hat)].push_back(hat);
    }
    return hats;
  }
  void lose(Kernels<T>& kernels, const std::vector<PackedRecords>& parts, T* x) {
    const std::int64_t first = shared_.losses.first;
    const std::int64_t last = shared_.losses.last;
    shared_.losses.sent = parts;
    std::int64_t begin = 0;
    for (const auto& [records, count, from, to, at] : parts) {
      const std::int64_t here = std::clamp(first - begin, std::int64_t{0}, count);
      const std::int64_t end = std::clamp(last - begin, std::int64_t{0}, count);
      const PackedRecords lost{records + here, end - here, from, to, 0};
      if (lost.count > 0) kernels.unpack({&lost, 1}, huge_.data(), x);
      begin += count;
    }
  }

  Shared& shared_;
  const Level& level_;
  ExchangePlan plan_;
  Vector<T> send_;
  Vector<T> receive_;
  Vector<T> none_;  // what poisoned ghosts have: no numbers
  Vector<T> huge_;  // or, where kernels may multiply by zero what they do not need, large ones
  Both full_;
  Packed<T> poison_all_;
  std::shared_ptr<Sweep> sweep_;
  std::vector<Both> of_states_;  // [state of the sweep]
  std::vector<Packed<T>> poisons_;
};

}  // namespace solenoid::distributed
