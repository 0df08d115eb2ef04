#pragma once
/// \file
/// Messages between GPUs, by the threads of kernels: how values get out of vectors and into them, and how thread blocks
/// of two GPUs find out that what the other one sent is there.

#include <cstddef>
#include <cstdint>
#include <cuda/atomic>

#include "engine/cuda/launch.hpp"
#include "engine/cuda/messages.hpp"
#include "mesh/record.hpp"

namespace solenoid::cuda {

/// Threads that take a chunk of a message together, whatever thread block they belong to: both sides cut alike.
inline constexpr int chunk_threads = 256;
/// Values of a record that a thread moves.
inline constexpr int values_of_thread = 4;

template <class Part>
__host__ __device__ unsigned chunks_of_records(const Part& part) {
  return static_cast<unsigned>((part.count + chunk_threads - 1) / chunk_threads);
}
template <class Part>
__host__ __device__ unsigned chunks_of(const Part& part) {
  return chunks_of_records(part) *
         static_cast<unsigned>((part.last - part.first + values_of_thread - 1) / values_of_thread);
}

/// A thread's numbers of a message.
struct Chunk {
  std::int64_t in_vector = 0;
  std::int32_t in_message = 0;
  std::int32_t stride = 0;  ///< from one value to the next in the message
  int values = 0;
};

/// Neighbouring threads have neighbouring records. Lists of records do not change: they are read while earlier kernels
/// run, and while a peer is waited for.
template <class Part>
__device__ Chunk chunk_of(const Part& part, unsigned number, int thread, int record_size) {
  const unsigned of_records = chunks_of_records(part);
  const int j = static_cast<int>(number % of_records * chunk_threads) + thread;
  if (j >= part.count) return {};
  const int k = static_cast<int>(number / of_records) * values_of_thread;
  return {record_offset(part.records[j], record_size) + (part.first + k) * interleave,
          static_cast<std::int32_t>(part.at + j + std::int64_t{k} * part.count), static_cast<std::int32_t>(part.count),
          min(values_of_thread, part.last - part.first - k)};
}

/// Chunks that a thread of an exchange moves at once.
inline constexpr int chunks_at_once = 2;

/// All numbers of these chunks are loaded before the first is stored.
template <class T, int count, class Load, class Store>
__device__ void move(const Chunk (&chunks)[count], const Load& load, const Store& store) {
  T value[count][values_of_thread];
#pragma unroll
  for (int c = 0; c < count; ++c) {
#pragma unroll
    for (int k = 0; k < values_of_thread; ++k) {
      if (k < chunks[c].values) value[c][k] = load(chunks[c], k);
    }
  }
#pragma unroll
  for (int c = 0; c < count; ++c) {
#pragma unroll
    for (int k = 0; k < values_of_thread; ++k) {
      if (k < chunks[c].values) store(chunks[c], k, value[c][k]);
    }
  }
}
template <class T, int count>
__device__ void take(const Chunk (&chunks)[count], const T* x, T* message) {
  move<T>(
      chunks, [=](const Chunk& chunk, int k) { return x[chunk.in_vector + k * interleave]; },
      [=](const Chunk& chunk, int k, T value) { message[chunk.in_message + k * chunk.stride] = value; });
}
template <class T, int count>
__device__ void bring(const Chunk (&chunks)[count], const T* message, T* x) {
  move<T>(
      chunks, [=](const Chunk& chunk, int k) { return __ldcg(message + chunk.in_message + k * chunk.stride); },
      [=](const Chunk& chunk, int k, T value) { x[chunk.in_vector + k * interleave] = value; });
}

__device__ inline std::int64_t nanoseconds() {
  std::int64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

/// That of a thread block of an exchange.
__device__ inline int peer_of_block(const Peers& peers, int block) {
  int p = 0;
  while (p + 1 < peers.count && block >= peers.peer[p + 1].first_block) ++p;
  return p;
}

/// The part of a thread block, the block-th of its peer's, in an exchange: send(where in the peer's window),
/// receive(where in this rank's). Of at least 64 threads.
template <class Send, class Receive>
__device__ void exchange_with(const Peers& peers, const Peer& peer, int block, const Send& send,
                              const Receive& receive) {
  using Flag = ::cuda::atomic_ref<unsigned, ::cuda::thread_scope_system>;
  using Word = ::cuda::atomic_ref<unsigned, ::cuda::thread_scope_device>;
  const unsigned number = __ldcg(peer.exchanges) + 1;
  const std::int64_t half = number & 1;
  send(peer.there + half * peer.half_there);
  __syncthreads();
  if (threadIdx.x == 0) {
    Flag(peer.flags_there[block]).store(number, ::cuda::memory_order_release);
    const std::int64_t until = nanoseconds() + peers.patience;
    const Flag flag(peer.flags_here[block]);
    const Word failed(*peers.failed);
    // Numbers may wrap. Acquired once: each time empties the cache of those who work beside this block.
    while (static_cast<int>(flag.load(::cuda::memory_order_relaxed) - number) < 0) {
      if (nanoseconds() < until && failed.load(::cuda::memory_order_relaxed) == 0) continue;
      if (failed.exchange(1, ::cuda::memory_order_relaxed) == 0) {
        *const_cast<volatile unsigned*>(peers.told_host) = peer.rank + 1;
      }
      break;
    }
    static_cast<void>(flag.load(::cuda::memory_order_acquire));
  } else if (threadIdx.x == 32) {
    // All of its blocks know the number once they got here: the last one counts.
    const Word begun(*peer.begun);
    if (begun.fetch_add(1, ::cuda::memory_order_relaxed) + 1 == static_cast<unsigned>(peer.blocks)) {
      begun.store(0, ::cuda::memory_order_relaxed);
      Word(*peer.exchanges).store(number, ::cuda::memory_order_relaxed);
    }
  }
  __syncthreads();
  receive(peer.here + half * peer.half_here);
}

/// The share of thread block `number` of an exchange, which waits for earlier kernels with wait(). Its threads have as
/// many chunks side by side as they are enough for; where they are fewer than a chunk has, each moves the numbers of
/// several.
template <class T, class Wait>
__device__ void exchange_share(const RecordExchange& what, T* x, int number, const Wait& wait) {
  const int p = peer_of_block(what.peers, number);
  const Peer& peer = what.peers.peer[p];
  const int block = number - peer.first_block;
  const int side_by_side = max(1, static_cast<int>(blockDim.x) / chunk_threads);
  const int mine = min(static_cast<int>(threadIdx.x) / chunk_threads, side_by_side - 1);
  const int thread = static_cast<int>(threadIdx.x) - mine * chunk_threads;
  const int first = block * side_by_side + mine;
  const int step = peer.blocks * side_by_side;
  struct Some {
    Chunk chunk[chunks_at_once];
  };
  const auto find = [&](const RecordExchange::Parts& parts, int from, int of_thread) {
    Some some;
#pragma unroll
    for (int c = 0; c < chunks_at_once; ++c) {
      const int chunk = from + c * step;
      if (chunk >= parts.chunks[p] || of_thread >= chunk_threads) continue;
      int i = parts.first_part[p];
      while (i + 1 < parts.first_part[p + 1] && chunk >= parts.first_chunk[i + 1]) ++i;
      some.chunk[c] = chunk_of(parts.part[i], chunk - parts.first_chunk[i], of_thread, what.record_size);
    }
    return some;
  };
  const auto for_chunks = [&](const RecordExchange::Parts& parts, const Some& first_ones, const auto& visit) {
    visit(first_ones.chunk);
    for (int chunk = first, of_thread = thread;;) {
      of_thread += static_cast<int>(blockDim.x);
      if (of_thread >= chunk_threads) {
        of_thread = thread;
        chunk += chunks_at_once * step;
      }
      if (chunk >= parts.chunks[p]) return;
      visit(find(parts, chunk, of_thread).chunk);
    }
  };
  const Some first_sent = find(what.sends, first, thread);
  const Some first_received = find(what.receives, first, thread);
  wait();
  exchange_with(
      what.peers, peer, block,
      [&](std::byte* there) {
        for_chunks(what.sends, first_sent, [&](const auto& chunks) { take(chunks, x, reinterpret_cast<T*>(there)); });
      },
      [&](const std::byte* here) {
        for_chunks(what.receives, first_received,
                   [&](const auto& chunks) { bring(chunks, reinterpret_cast<const T*>(here), x); });
      });
}

// --- within a kernel that reads ghosts -------------------------------------------------------------------------------

/// The part of the first thread blocks of a kernel: they bring the ghosts that `waiting` others wait for. Not inlined:
/// the kernel keeps its registers.
template <class T>
__device__ __noinline__ void bring_ghosts(const Bringing<T>& bringing, int waiting, bool alone) {
  ExchangeInKernel& exchange = *bringing.exchange;
  exchange_share(exchange.messages, bringing.vector, static_cast<int>(blockIdx.x),
                 [&] { wait_for_earlier_kernels(alone); });
  __syncthreads();
  if (threadIdx.x != 0 || waiting == 0) return;
  using Word = ::cuda::atomic_ref<unsigned, ::cuda::thread_scope_device>;
  const Word done(exchange.done);
  if (done.fetch_add(1, ::cuda::memory_order_acq_rel) + 1 < static_cast<unsigned>(bringing.blocks)) return;
  done.store(0, ::cuda::memory_order_relaxed);
  Word(exchange.arrived).store(1, ::cuda::memory_order_release);
}

/// Thread 0 of a block that reads ghosts waits for them; others meet it at a barrier. Blocks start in their order, so
/// those that bring them are there. The last one that waits leaves the words as they were.
__device__ inline void wait_for_ghosts(ExchangeInKernel& exchange, int waiting) {
  if (threadIdx.x != 0) return;
  using Word = ::cuda::atomic_ref<unsigned, ::cuda::thread_scope_device>;
  const Word arrived(exchange.arrived);
  while (arrived.load(::cuda::memory_order_relaxed) == 0) __nanosleep(20);
  static_cast<void>(arrived.load(::cuda::memory_order_acquire));
  const Word seen(exchange.seen);
  if (seen.fetch_add(1, ::cuda::memory_order_relaxed) + 1 < static_cast<unsigned>(waiting)) return;
  seen.store(0, ::cuda::memory_order_relaxed);
  arrived.store(0, ::cuda::memory_order_relaxed);
}

}  // namespace solenoid::cuda
