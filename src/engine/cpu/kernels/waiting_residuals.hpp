#pragma once
/// \file
/// A place for residuals of patches to wait in until there are enough of one local problem to fill a batch.

#include <cstddef>

#include "engine/cpu/kernels/simd.hpp"

namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE {

/// In memory that somebody else owns, for residuals as Arrays has them: its first Arrays::residual_size values. A
/// residual after the other.
template <class T, class Arrays>
class WaitingResiduals {
 public:
  /// Bytes of memory for so many local problems.
  static std::int64_t bytes(int problems) {
    return static_cast<std::int64_t>(sizeof(Slots)) + slots(problems) * static_cast<std::int64_t>(sizeof(T)) * size;
  }

  WaitingResiduals(std::byte* memory, int problems)
      : count_(slots(problems)),
        slots_(*reinterpret_cast<Slots*>(memory)),
        values_(reinterpret_cast<T*>(memory + sizeof(Slots))) {}

  void clear() {
    std::fill_n(slots_.problem, count_, none);
    slots_.queue_count = 0;
    slots_.free = count_;
    for (int slot = 0; slot < count_; ++slot) slots_.free_slot[slot] = slot;
  }
  [[nodiscard]] int free() const { return slots_.free; }
  [[nodiscard]] bool empty() const { return slots_.free == count_; }

  /// Residuals of the patches `which` of a batch; as many are free.
  void put(const PatchLanes& lanes, LaneSet which, const Arrays& work) {
    const T* const from = reinterpret_cast<const T*>(&work);
    for (; which != 0; which &= which - 1) {
      const int lane = std::countr_zero(which);
      const int slot = slots_.free_slot[--slots_.free];
      slots_.problem[slot] = lanes.kind[lane];
      slots_.lower[slot] = lanes.lower[lane];
      Queue& queue = queue_of(lanes.kind[lane]);
      ++queue.length;
      T* const to = values_ + std::int64_t{slot} * size;
      for (int i = 0; i < size; ++i) to[i] = from[i * width + lane];
    }
  }

  struct Queue {
    int problem;
    int length;
  };
  /// Those with the problem that most of them have.
  [[nodiscard]] Queue longest() const {
    const auto shorter = [](const Queue& a, const Queue& b) { return a.length < b.length; };
    const auto best = std::max_element(slots_.queue, slots_.queue + slots_.queue_count, shorter);
    return best == slots_.queue + slots_.queue_count ? Queue{none, 0} : *best;
  }

  /// Takes patches of a problem out, a batch at most: into the lanes of `work`.
  PatchLanes take(int problem, std::int32_t null, Arrays& work) {
    T* const to = reinterpret_cast<T*>(&work);
    PatchLanes lanes{};
    std::fill_n(lanes.lower, width, null);
    std::fill_n(lanes.kind, width, problem);
    int lane = 0;
    for (int slot = 0; slot < count_ && lane < width; ++slot) {
      if (slots_.problem[slot] != problem) continue;
      slots_.problem[slot] = none;
      slots_.free_slot[slots_.free++] = slot;
      lanes.lower[lane] = slots_.lower[slot];
      lanes.last_lane = static_cast<std::uint8_t>(lane);
      const T* const from = values_ + std::int64_t{slot} * size;
      for (int i = 0; i < size; ++i) to[i * width + lane] = from[i];
      ++lane;
    }
    lanes.active = static_cast<std::uint16_t>((1U << lane) - 1);
    Queue& queue = queue_of(problem);
    queue.length -= lane;
    if (queue.length == 0) queue = slots_.queue[--slots_.queue_count];
    return lanes;
  }

 private:
  static constexpr int size = Arrays::residual_size;
  static constexpr std::int32_t none = -1;
  static constexpr int most = 16 * width;
  static constexpr std::int64_t most_bytes = 16 << 20;
  struct alignas(SOLENOID_SIMD_BYTES) Slots {
    int free;
    int queue_count;
    int free_slot[most];
    std::int32_t problem[most];  // or none
    std::int32_t lower[most];
    Queue queue[most];
  };

  /// That of a problem; a new one if there is none.
  Queue& queue_of(int problem) {
    Queue* const end = slots_.queue + slots_.queue_count;
    Queue* const found = std::find_if(slots_.queue, end, [&](const Queue& queue) { return queue.problem == problem; });
    if (found == end) {
      *found = {problem, 0};
      ++slots_.queue_count;
    }
    return *found;
  }

  /// Two batches at least: a batch may have to wait as a whole.
  static int slots(int problems) {
    constexpr auto fit = static_cast<int>(most_bytes / (static_cast<std::int64_t>(sizeof(T)) * size));
    return std::clamp(std::min(problems, most / width) * width, 2 * width, std::clamp(fit, 2 * width, most));
  }

  const int count_;
  Slots& slots_;
  T* const values_;
};

}  // namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE
