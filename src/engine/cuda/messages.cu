#include "engine/cuda/messages.hpp"

#include <algorithm>
#include <cuda/atomic>
#include <stdexcept>

#include "engine/cuda/launch.hpp"
#include "mesh/record.hpp"

namespace solenoid::cuda {
namespace {

constexpr int threads = 256;

/// Parts of messages that a launch moves. Thread blocks come one part after the other.
struct Parts {
  static constexpr int most = 64;
  PackedRecords part[most];
  unsigned first_block[most + 1];  ///< of a part, and of what follows the last
  int count;
};

/// Values of a record that a thread moves.
constexpr int values_of_thread = 4;

template <class Part>
__host__ __device__ unsigned chunks_of_records(const Part& part) {
  return static_cast<unsigned>((part.count + threads - 1) / threads);
}

/// A thread's numbers of a message.
struct Chunk {
  std::int64_t in_vector = 0;
  std::int64_t in_message = 0;
  std::int32_t stride = 0;  ///< from one value to the next in the message
  int values = 0;
};

/// Of thread blocks that take a part together; neighbouring threads have neighbouring records.
template <class Part>
__device__ Chunk chunk_of(const Part& part, unsigned block, int record_size) {
  const unsigned of_records = chunks_of_records(part);
  const int j = static_cast<int>(block % of_records * threads + threadIdx.x);
  if (j >= part.count) return {};
  const int k = static_cast<int>(block / of_records) * values_of_thread;
  return {record_offset(part.records[j], record_size) + (part.first + k) * interleave,
          part.at + j + std::int64_t{k} * part.count, static_cast<std::int32_t>(part.count),
          min(values_of_thread, part.last - part.first - k)};
}

/// Several numbers are loaded before the first is stored.
template <class T, class Load, class Store>
__device__ void move(const Chunk& chunk, const Load& load, const Store& store) {
  T value[values_of_thread];
#pragma unroll
  for (int k = 0; k < values_of_thread; ++k) {
    if (k < chunk.values) value[k] = load(k);
  }
#pragma unroll
  for (int k = 0; k < values_of_thread; ++k) {
    if (k < chunk.values) store(k, value[k]);
  }
}
template <class T>
__device__ void take(const Chunk& chunk, const T* x, T* message) {
  move<T>(
      chunk, [=](int k) { return x[chunk.in_vector + k * interleave]; },
      [=](int k, T value) { message[chunk.in_message + std::int64_t{k} * chunk.stride] = value; });
}
template <class T>
__device__ void bring(const Chunk& chunk, const T* message, T* x) {
  move<T>(
      chunk, [=](int k) { return __ldcg(message + chunk.in_message + std::int64_t{k} * chunk.stride); },
      [=](int k, T value) { x[chunk.in_vector + k * interleave] = value; });
}

/// Lists of records do not change: they are read while earlier kernels run.
__device__ Chunk chunk_of(const Parts& parts, int record_size) {
  int p = 0;
  while (p + 1 < parts.count && blockIdx.x >= parts.first_block[p + 1]) ++p;
  return chunk_of(parts.part[p], blockIdx.x - parts.first_block[p], record_size);
}
template <class T>
__global__ void pack_kernel(const __grid_constant__ Parts parts, int record_size, const T* x, T* values) {
  const Chunk chunk = chunk_of(parts, record_size);
  wait_for_earlier_kernels();
  take(chunk, x, values);
}
template <class T>
__global__ void unpack_kernel(const __grid_constant__ Parts parts, int record_size, const T* values, T* x) {
  const Chunk chunk = chunk_of(parts, record_size);
  wait_for_earlier_kernels();
  bring(chunk, values, x);
}

/// visit(parts, thread blocks) for as many parts as a launch takes.
template <class Visit>
void for_launches(std::span<const PackedRecords> parts, const Visit& visit) {
  Parts some;
  some.count = 0;
  unsigned blocks = 0;
  const auto launch_them = [&] {
    some.first_block[some.count] = blocks;
    visit(some, blocks);
    some.count = 0;
    blocks = 0;
  };
  for (const PackedRecords& part : parts) {
    if (part.count == 0) continue;
    some.part[some.count] = part;
    some.first_block[some.count++] = blocks;
    blocks += chunks_of_records(part) * blocks_for(part.last - part.first, values_of_thread);
    if (some.count == Parts::most) launch_them();
  }
  if (some.count > 0) launch_them();
}

/// Copies bytes by the threads of some blocks: 16 at a time where both lie so.
__device__ void copy_bytes(const std::byte* from, std::byte* to, std::int64_t bytes, int block, int blocks) {
  const std::int64_t first = std::int64_t{block} * threads + threadIdx.x;
  const std::int64_t step = std::int64_t{blocks} * threads;
  std::int64_t wide = 0;
  if ((reinterpret_cast<std::uintptr_t>(from) | reinterpret_cast<std::uintptr_t>(to)) % sizeof(uint4) == 0) {
    wide = bytes / sizeof(uint4);
#pragma unroll 4
    for (std::int64_t i = first; i < wide; i += step) {
      reinterpret_cast<uint4*>(to)[i] = reinterpret_cast<const uint4*>(from)[i];
    }
  }
  const std::int64_t words = bytes / sizeof(unsigned);
#pragma unroll 4
  for (std::int64_t i = wide * (sizeof(uint4) / sizeof(unsigned)) + first; i < words; i += step) {
    reinterpret_cast<unsigned*>(to)[i] = reinterpret_cast<const unsigned*>(from)[i];
  }
}

__device__ std::int64_t nanoseconds() {
  std::int64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

/// The part of a thread block in an exchange: send(peer, where in its window), receive(peer, where in this rank's).
template <class Send, class Receive>
__device__ void exchange_with(const Peers& peers, int p, const Send& send, const Receive& receive) {
  using Flag = ::cuda::atomic_ref<unsigned, ::cuda::thread_scope_system>;
  using Word = ::cuda::atomic_ref<unsigned, ::cuda::thread_scope_device>;
  const Peer& peer = peers.peer[p];
  const int block = static_cast<int>(blockIdx.x) - peer.first_block;
  const unsigned number = __ldcg(peer.exchanges) + 1;
  const std::int64_t half = number & 1;
  send(peer.there + half * peer.half_there);
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence_system();
    Flag(peer.flags_there[block]).store(number, ::cuda::memory_order_release);
    const std::int64_t until = nanoseconds() + peers.patience;
    const Flag flag(peer.flags_here[block]);
    const Word failed(*peers.failed);
    // Numbers may wrap.
    while (static_cast<int>(flag.load(::cuda::memory_order_acquire) - number) < 0) {
      if (nanoseconds() < until && failed.load(::cuda::memory_order_relaxed) == 0) continue;
      if (failed.exchange(1, ::cuda::memory_order_relaxed) == 0) {
        *const_cast<volatile unsigned*>(peers.told_host) = peer.rank + 1;
      }
      break;
    }
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

__device__ int peer_of_block(const Peers& peers) {
  int p = 0;
  while (p + 1 < peers.count && static_cast<int>(blockIdx.x) >= peers.peer[p + 1].first_block) ++p;
  return p;
}

__device__ Chunk chunk_of(const RecordExchange::Parts& parts, int p, int chunk, int record_size) {
  if (chunk >= parts.chunks[p]) return {};
  int i = parts.first_part[p];
  while (i + 1 < parts.first_part[p + 1] && chunk >= parts.first_chunk[i + 1]) ++i;
  return chunk_of(parts.part[i], chunk - parts.first_chunk[i], record_size);
}

/// visit(chunk) for the share of a block, of which the first is known.
template <class Visit>
__device__ void for_chunks(const RecordExchange::Parts& parts, int p, const Chunk& first, int block, int blocks,
                           int record_size, const Visit& visit) {
  visit(first);
  for (int chunk = block + blocks; chunk < parts.chunks[p]; chunk += blocks) {
    visit(chunk_of(parts, p, chunk, record_size));
  }
}

/// Lists of records do not change: they are read while earlier kernels run, and while the peer is waited for.
template <class T>
__global__ void __launch_bounds__(threads) exchange_records_kernel(const __grid_constant__ RecordExchange what, T* x) {
  const int p = peer_of_block(what.peers);
  const Peer& peer = what.peers.peer[p];
  const int block = static_cast<int>(blockIdx.x) - peer.first_block;
  const Chunk first_sent = chunk_of(what.sends, p, block, what.record_size);
  const Chunk first_received = chunk_of(what.receives, p, block, what.record_size);
  wait_for_earlier_kernels();
  exchange_with(
      what.peers, p,
      [&](std::byte* there) {
        for_chunks(what.sends, p, first_sent, block, peer.blocks, what.record_size,
                   [&](const Chunk& chunk) { take(chunk, x, reinterpret_cast<T*>(there)); });
      },
      [&](const std::byte* here) {
        for_chunks(what.receives, p, first_received, block, peer.blocks, what.record_size,
                   [&](const Chunk& chunk) { bring(chunk, reinterpret_cast<const T*>(here), x); });
      });
}

__global__ void __launch_bounds__(threads) exchange_bytes_kernel(const __grid_constant__ ByteExchange what) {
  wait_for_earlier_kernels();
  const int p = peer_of_block(what.peers);
  const Peer& peer = what.peers.peer[p];
  const int block = static_cast<int>(blockIdx.x) - peer.first_block;
  const ByteExchange::Bytes& bytes = what.of[p];
  copy_bytes(what.own_from, what.own_to, what.own_bytes, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x));
  exchange_with(
      what.peers, p, [&](std::byte* there) { copy_bytes(bytes.from, there, bytes.sent, block, peer.blocks); },
      [&](const std::byte* here) { copy_bytes(here, bytes.to, bytes.received, block, peer.blocks); });
}

__global__ void add_in_order_kernel(int ranks, int count, const double* of_ranks, double* numbers) {
  wait_for_earlier_kernels();
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    double sum = 0.0;
    for (int r = 0; r < ranks; ++r) sum += of_ranks[r * count + i];
    numbers[i] = sum;
  }
}

/// A peer, with thread blocks for so many pieces of work: their number is the same on both sides.
void add_peer(Peers& peers, Peer peer, std::int64_t pieces, int most_blocks) {
  if (peers.count == Peers::most) throw std::logic_error("too many peers");
  peer.first_block =
      peers.count == 0 ? 0 : peers.peer[peers.count - 1].first_block + peers.peer[peers.count - 1].blocks;
  peer.blocks = static_cast<int>(std::clamp<std::int64_t>(pieces, 1, most_blocks));
  peers.peer[peers.count++] = peer;
}

unsigned blocks_of(const Peers& peers) {
  const Peer& last = peers.peer[peers.count - 1];
  return static_cast<unsigned>(last.first_block + last.blocks);
}

void add_parts(RecordExchange::Parts& parts, int peer, std::span<const PackedRecords> some) {
  int end = parts.first_part[peer];
  int chunks = 0;
  for (const PackedRecords& part : some) {
    if (end == RecordExchange::Parts::most) throw std::logic_error("too many parts of messages");
    parts.first_chunk[end] = chunks;
    parts.part[end++] = {part.records, static_cast<std::int32_t>(part.count), static_cast<std::int16_t>(part.first),
                         static_cast<std::int16_t>(part.last), part.at};
    chunks += static_cast<int>(chunks_of_records(part) * blocks_for(part.last - part.first, values_of_thread));
  }
  parts.first_part[peer + 1] = end;
  parts.chunks[peer] = chunks;
}

}  // namespace

template <class T>
void pack(std::span<const PackedRecords> parts, int record_size, const T* x, T* values, Stream stream) {
  for_launches(parts, [&](const Parts& some, unsigned blocks) {
    launch("pack", pack_kernel<T>, blocks, threads, 0, stream, some, record_size, x, values);
  });
}
template <class T>
void unpack(std::span<const PackedRecords> parts, int record_size, const T* values, T* x, Stream stream) {
  for_launches(parts, [&](const Parts& some, unsigned blocks) {
    launch("unpack", unpack_kernel<T>, blocks, threads, 0, stream, some, record_size, values, x);
  });
}

int most_blocks_at_once() {
  int device = 0;
  int multiprocessors = 0;
  check(cudaGetDevice(&device), "device");
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device), "multiprocessors");
  const auto of_multiprocessor = [](auto kernel) {
    int blocks = 0;
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, 0), "blocks of a multiprocessor");
    return blocks;
  };
  const int blocks =
      std::min({of_multiprocessor(exchange_records_kernel<float>), of_multiprocessor(exchange_records_kernel<double>),
                of_multiprocessor(exchange_bytes_kernel)});
  return std::min(Peers::flags, blocks * multiprocessors);
}

void RecordExchange::add(const Peer& peer, std::span<const PackedRecords> to, std::span<const PackedRecords> from,
                         int most_blocks) {
  const int number = peers.count;
  if (number == 0) sends.first_part[0] = receives.first_part[0] = 0;
  add_parts(sends, number, to);
  add_parts(receives, number, from);
  add_peer(peers, peer, std::max(sends.chunks[number], receives.chunks[number]), most_blocks);
}
template <class T>
void exchange(const RecordExchange& what, T* x, Stream stream) {
  launch("exchange of records", exchange_records_kernel<T>, blocks_of(what.peers), threads, 0, stream, what, x);
}

void ByteExchange::add(const Peer& peer, const Bytes& bytes, int most_blocks) {
  of[peers.count] = bytes;
  constexpr std::int64_t piece = std::int64_t{threads} * sizeof(uint4);
  add_peer(peers, peer, (std::max(bytes.sent, bytes.received) + piece - 1) / piece, most_blocks);
}
void exchange(const ByteExchange& what, Stream stream) {
  launch("exchange of bytes", exchange_bytes_kernel, blocks_of(what.peers), threads, 0, stream, what);
}

void add_in_order(int ranks, int count, const double* of_ranks, double* numbers, Stream stream) {
  launch("sum over ranks", add_in_order_kernel, 1, threads, 0, stream, ranks, count, of_ranks, numbers);
}

template void pack<float>(std::span<const PackedRecords>, int, const float*, float*, Stream);
template void pack<double>(std::span<const PackedRecords>, int, const double*, double*, Stream);
template void unpack<float>(std::span<const PackedRecords>, int, const float*, float*, Stream);
template void unpack<double>(std::span<const PackedRecords>, int, const double*, double*, Stream);
template void exchange<float>(const RecordExchange&, float*, Stream);
template void exchange<double>(const RecordExchange&, double*, Stream);

}  // namespace solenoid::cuda
