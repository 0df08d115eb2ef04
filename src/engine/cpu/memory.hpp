#pragma once
/// \file
/// Memory of the cpu engine, counted.

#include <cstddef>
#include <cstdint>

#include "engine/cpu/team.hpp"

namespace solenoid::cpu {

class Memory {
 public:
  explicit Memory(Team& team) : team_(team) {}

  /// Zeroed; pages lie near the thread that works on them. \throws ResourceError
  void* allocate(std::size_t bytes);
  void release(void* memory, std::size_t bytes) noexcept;
  void zero(void* memory, std::size_t bytes);
  void copy(const void* from, void* to, std::size_t bytes);

  [[nodiscard]] std::int64_t in_use() const { return in_use_; }
  [[nodiscard]] std::int64_t peak() const { return peak_; }

 private:
  /// work(offset, bytes) for all bytes, each thread its part.
  template <class Work>
  void in_parts(std::size_t bytes, const Work& work);

  Team& team_;
  std::int64_t in_use_ = 0;
  std::int64_t peak_ = 0;
};

}  // namespace solenoid::cpu
