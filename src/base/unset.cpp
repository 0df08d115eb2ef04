#include "base/unset.hpp"

#include <sys/mman.h>

namespace solenoid {
namespace {

constexpr std::size_t huge = std::size_t{1} << 21;

std::align_val_t alignment(std::size_t bytes) { return std::align_val_t{bytes < huge ? 64 : huge}; }

}  // namespace

void* allocate_pages(std::size_t bytes) {
  void* const memory = ::operator new(bytes, alignment(bytes));
  if (bytes >= huge) madvise(memory, bytes, MADV_HUGEPAGE);  // a hint
  return memory;
}

void release_pages(void* memory, std::size_t bytes) noexcept { ::operator delete(memory, alignment(bytes)); }

}  // namespace solenoid
