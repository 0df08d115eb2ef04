#pragma once
/// \file
/// Large arrays that nobody fills before they are written.

#include <cstddef>
#include <new>
#include <utility>
#include <vector>

namespace solenoid {

/// Memory in huge pages where it is large: with small ones, making the pages takes longer than to write them.
void* allocate_pages(std::size_t bytes);
void release_pages(void* memory, std::size_t bytes) noexcept;

/// Leaves values unset that are not given.
template <class T>
struct UnsetAllocator {
  using value_type = T;

  UnsetAllocator() = default;
  template <class U>
  UnsetAllocator(const UnsetAllocator<U>&) {}

  T* allocate(std::size_t count) { return static_cast<T*>(allocate_pages(count * sizeof(T))); }
  void deallocate(T* memory, std::size_t count) noexcept { release_pages(memory, count * sizeof(T)); }
  template <class U>
  void construct(U* value) {
    ::new (static_cast<void*>(value)) U;
  }
  template <class U, class... Arguments>
  void construct(U* value, Arguments&&... arguments) {
    ::new (static_cast<void*>(value)) U(std::forward<Arguments>(arguments)...);
  }
  bool operator==(const UnsetAllocator&) const = default;
};

/// Numbers and the like, unset until they are written. What all threads write, all threads make the pages of.
template <class T>
using Unset = std::vector<T, UnsetAllocator<T>>;

}  // namespace solenoid
