#pragma once
/// \file
/// What the parts of a solve need in vectors, for the prediction of memory.

#include <cstdint>

namespace solenoid {

/// Bytes for each number of a vector of a level.
struct VectorNeeds {
  std::int64_t finest = 0;   ///< of the finest level
  std::int64_t coarser = 0;  ///< of every other level

  friend VectorNeeds operator+(const VectorNeeds& a, const VectorNeeds& b) {
    return {a.finest + b.finest, a.coarser + b.coarser};
  }
};

/// `count` vectors in precision T on the finest level; on each of the others; on each.
template <class T>
VectorNeeds on_finest(int count) {
  return {.finest = count * static_cast<std::int64_t>(sizeof(T))};
}
template <class T>
VectorNeeds on_coarser(int count) {
  return {.coarser = count * static_cast<std::int64_t>(sizeof(T))};
}
template <class T>
VectorNeeds on_all(int count) {
  return on_finest<T>(count) + on_coarser<T>(count);
}

}  // namespace solenoid
