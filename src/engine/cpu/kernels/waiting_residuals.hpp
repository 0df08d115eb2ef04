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
    slots_.free = count_;
  }
  [[nodiscard]] int free() const { return slots_.free; }
  [[nodiscard]] bool empty() const { return slots_.free == count_; }

  /// Residuals of the patches `which` of a batch; as many are free.
  void put(const PatchLanes& lanes, LaneSet which, const Arrays& work) {
    const T* const from = reinterpret_cast<const T*>(&work);
    for (int slot = 0; which != 0; ++slot) {
      if (slots_.problem[slot] != none) continue;
      const int lane = std::countr_zero(which);
      which &= which - 1;
      slots_.problem[slot] = lanes.kind[lane];
      slots_.lower[slot] = lanes.lower[lane];
      --slots_.free;
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
    Queue best{none, 0};
    for (int slot = 0; slot < count_; ++slot) {
      const std::int32_t problem = slots_.problem[slot];
      if (problem == none || problem == best.problem) continue;
      const auto length = std::count(slots_.problem + slot, slots_.problem + count_, problem);
      if (length > best.length) best = {problem, static_cast<int>(length)};
    }
    return best;
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
      ++slots_.free;
      lanes.lower[lane] = slots_.lower[slot];
      lanes.last_lane = static_cast<std::uint8_t>(lane);
      const T* const from = values_ + std::int64_t{slot} * size;
      for (int i = 0; i < size; ++i) to[i * width + lane] = from[i];
      ++lane;
    }
    lanes.active = static_cast<std::uint16_t>((1U << lane) - 1);
    return lanes;
  }

 private:
  static constexpr int size = Arrays::residual_size;
  static constexpr std::int32_t none = -1;
  static constexpr int most = 16 * width;
  static constexpr std::int64_t most_bytes = 16 << 20;
  struct alignas(SOLENOID_SIMD_BYTES) Slots {
    int free;
    std::int32_t problem[most];  // or none
    std::int32_t lower[most];
  };

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
