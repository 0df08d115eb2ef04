#pragma once
/// \file
/// Records that no patch of a colour covers, on their way from x to y.
///
/// A batch takes those near its cells with it: they are copied when its cells are written, with which they share
/// sectors of memory. What is written to a sector at different times goes to memory one by one, and the sector is read
/// first. Where there are no batches, or teams, which have no time for it, thread blocks of their own do it.

#include "engine/cuda/kernels/smoother/parameters.cuh"

namespace solenoid::cuda {

/// `at_once` of them at a time, by so many threads of a block.
template <class T, int dim, int order, int threads, int at_once>
struct UncoveredRecords : Places<record_size(dim, order)> {
  using Arguments = ParityParameters<T, dim, order>;
  using Addresses = Places<record_size(dim, order)>;
  using Addresses::offset, Addresses::pointer;

  static constexpr int record = record_size(dim, order);
  static constexpr int copying = threads / at_once;  // threads for a record
  static constexpr int values = (record + copying - 1) / copying;
  static constexpr int parts = (values + 15) / 16;
  static constexpr int values_at_once = (values + parts - 1) / parts;

  /// What a thread copies of a record at a time.
  struct Copied {
    T of[values_at_once];
  };
  /// visit(i, at) for this thread's values in a part of a record.
  template <class F>
  static __device__ void for_values(int part, F&& visit) {
#pragma unroll
    for (int i = 0; i < values_at_once; ++i) {
      const int value = (part * values_at_once + i) * copying;
      if (value + copying <= record || value + static_cast<int>(threadIdx.x) / at_once < record) {
        visit(i, value * interleave);
      }
    }
  }
  static __device__ std::uint32_t first() { return threadIdx.x / at_once * interleave; }
  static __device__ void fetch_record(const Arguments& arguments, std::uint32_t place, int part, Copied& copied) {
    const T* const x = pointer(arguments.x, place + first());
    for_values(part, [&](int i, int at) { copied.of[i] = arguments.x != nullptr ? x[at] : T(0); });
  }
  static __device__ void store_record(const Arguments& arguments, std::uint32_t place, int part, const Copied& copied) {
    T* const y = pointer(arguments.y, place + first());
    for_values(part, [&](int i, int at) { y[at] = copied.of[i]; });
  }
  static __device__ void copy_parts(const Arguments& arguments, std::uint32_t place, int from) {
#pragma unroll
    for (int part = from; part < parts; ++part) {
      Copied copied;
      fetch_record(arguments, place, part, copied);
      store_record(arguments, place, part, copied);
    }
  }

  // --- those of a batch, one for each lane ---------------------------------------------------------------------------

  /// In shared memory: places of the first ones, and how many there are.
  static constexpr int shared_bytes = (at_once + 1) * 4;
  static constexpr std::uint32_t nowhere = ~0U;
  static __device__ void find(const Arguments& arguments, const PatchBatch& batch, std::uint32_t* places) {
    const int lane = threadIdx.x;
    if (lane >= at_once) return;
    places[lane] = lane < batch.copy_count ? offset(arguments.uncovered[batch.copy_begin + lane]) : nowhere;
    if (lane == 0) places[at_once] = batch.copy_count;
  }
  static __device__ void fetch(const Arguments& arguments, const std::uint32_t* places, Copied& copied) {
    const std::uint32_t place = places[threadIdx.x % at_once];
    if (place != nowhere) fetch_record(arguments, place, 0, copied);
  }
  static __device__ void store(const Arguments& arguments, const std::uint32_t* places, const Copied& copied) {
    const std::uint32_t place = places[threadIdx.x % at_once];
    if (place == nowhere) return;
    store_record(arguments, place, 0, copied);
    copy_parts(arguments, place, 1);
    const int count = places[at_once];
    for (int i = threadIdx.x % at_once + at_once; i < count; i += at_once) {
      copy_parts(arguments, offset(arguments.uncovered[arguments.batches[arguments.block()].copy_begin + i]), 0);
    }
  }

  // --- the share of a thread block that does nothing else ------------------------------------------------------------

  struct Share {
    int next;  // of this lane
    int end;
    std::int32_t record;  // that of `next`
  };
  static __device__ Share find_share(const Arguments& arguments) {
    const int share = arguments.uncovered_share;
    const int rest = arguments.uncovered_rest;
    const int number = arguments.block() - arguments.batch_count;
    const int begin = number * share + min(number, rest);
    Share found{begin + static_cast<int>(threadIdx.x) % at_once, begin + share + (number < rest ? 1 : 0), 0};
    if (found.next < found.end) found.record = arguments.uncovered[found.next];
    return found;
  }
  static __device__ void copy(const Arguments& arguments, Share found) {
    while (found.next < found.end) {
      copy_parts(arguments, offset(found.record), 0);
      found.next += at_once;
      if (found.next < found.end) found.record = arguments.uncovered[found.next];
    }
  }
};

}  // namespace solenoid::cuda
