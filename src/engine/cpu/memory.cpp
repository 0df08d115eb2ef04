#include "engine/cpu/memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "solenoid/error.hpp"

namespace solenoid::cpu {

void* Memory::allocate(std::size_t bytes) {
  // Huge pages: records of neighbouring rows lie far apart, and 4 KiB pages would miss the address cache.
  constexpr std::size_t huge = std::size_t{1} << 21;
  const std::size_t alignment = bytes >= huge ? huge : 64;
  std::unique_ptr<void, void (*)(void*)> memory(
      std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment), std::free);
  if (memory == nullptr) {
    throw ResourceError(fmt::format("out of memory: {:.2f} GB asked for, {:.2f} GB in use by this solve", bytes * 1e-9,
                                    static_cast<double>(in_use_) * 1e-9));
  }
  if (bytes >= huge) madvise(memory.get(), bytes, MADV_HUGEPAGE);
  zero(memory.get(), bytes);  // pages land near the thread that first touches them
  in_use_ += static_cast<std::int64_t>(bytes);
  peak_ = std::max(peak_, in_use_);
  return memory.release();
}

template <class Work>
void Memory::in_parts(std::size_t bytes, const Work& work) {
  team_.run([&](int t) {
    constexpr std::int64_t piece = std::int64_t{1} << 22;  // a hundredth of a second, if its pages are made
    Team::in_pieces(team_.range(static_cast<std::int64_t>(bytes), t, 4096), piece,
                    [&](Team::Range range) { work(range.begin, range.end - range.begin); });
  });
}

void Memory::zero(void* memory, std::size_t bytes) {
  in_parts(bytes,
           [&](std::int64_t at, std::int64_t count) { std::memset(static_cast<std::byte*>(memory) + at, 0, count); });
}

void Memory::copy(const void* from, void* to, std::size_t bytes) {
  in_parts(bytes, [&](std::int64_t at, std::int64_t count) {
    std::memcpy(static_cast<std::byte*>(to) + at, static_cast<const std::byte*>(from) + at, count);
  });
}

void Memory::release(void* memory, std::size_t bytes) noexcept {
  std::free(memory);
  in_use_ -= static_cast<std::int64_t>(bytes);
}

}  // namespace solenoid::cpu
