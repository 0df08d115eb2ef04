#include "engine/cuda/messages.hpp"

#include <algorithm>
#include <stdexcept>

#include "engine/cuda/exchange.cuh"
#include "engine/cuda/launch.hpp"

namespace solenoid::cuda {
namespace {

constexpr int threads = chunk_threads;
static_assert(exchange_threads % chunk_threads == 0);

/// Parts of messages that a launch moves. Thread blocks come one part after the other.
struct Parts {
  static constexpr int most = 64;
  PackedRecords part[most];
  unsigned first_block[most + 1];  ///< of a part, and of what follows the last
  int count;
};

/// Lists of records do not change: they are read while earlier kernels run.
__device__ Chunk chunk_of(const Parts& parts, int record_size) {
  int p = 0;
  while (p + 1 < parts.count && blockIdx.x >= parts.first_block[p + 1]) ++p;
  return cuda::chunk_of(parts.part[p], blockIdx.x - parts.first_block[p], static_cast<int>(threadIdx.x), record_size);
}
template <class T>
__global__ void pack_kernel(const __grid_constant__ Parts parts, int record_size, const T* x, T* values) {
  const Chunk chunk[]{chunk_of(parts, record_size)};
  wait_for_earlier_kernels();
  take(chunk, x, values);
}
template <class T>
__global__ void unpack_kernel(const __grid_constant__ Parts parts, int record_size, const T* values, T* x) {
  const Chunk chunk[]{chunk_of(parts, record_size)};
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
    blocks += chunks_of(part);
    if (some.count == Parts::most) launch_them();
  }
  if (some.count > 0) launch_them();
}

/// Copies bytes by the threads of some blocks: 16 at a time where both lie so.
__device__ void copy_bytes(const std::byte* from, std::byte* to, std::int64_t bytes, int block, int blocks) {
  const std::int64_t first = std::int64_t{block} * exchange_threads + threadIdx.x;
  const std::int64_t step = std::int64_t{blocks} * exchange_threads;
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

template <class T>
__global__ void __launch_bounds__(exchange_threads)
    exchange_records_kernel(const __grid_constant__ RecordExchange what, T* x) {
  exchange_share(what, x, static_cast<int>(blockIdx.x), [] { wait_for_earlier_kernels(); });
}

__global__ void __launch_bounds__(exchange_threads) exchange_bytes_kernel(const __grid_constant__ ByteExchange what) {
  wait_for_earlier_kernels();
  const int p = peer_of_block(what.peers, static_cast<int>(blockIdx.x));
  const Peer& peer = what.peers.peer[p];
  const int block = static_cast<int>(blockIdx.x) - peer.first_block;
  const ByteExchange::Bytes& bytes = what.of[p];
  copy_bytes(what.own_from, what.own_to, what.own_bytes, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x));
  exchange_with(
      what.peers, peer, block, [&](std::byte* there) { copy_bytes(bytes.from, there, bytes.sent, block, peer.blocks); },
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
  peer.first_block = peers.blocks();
  peer.blocks = static_cast<int>(std::clamp<std::int64_t>(pieces, 1, most_blocks));
  peers.peer[peers.count++] = peer;
}

void add_parts(RecordExchange::Parts& parts, int peer, std::span<const PackedRecords> some) {
  int end = parts.first_part[peer];
  int chunks = 0;
  for (const PackedRecords& part : some) {
    if (end == RecordExchange::Parts::most) throw std::logic_error("too many parts of messages");
    parts.first_chunk[end] = chunks;
    parts.part[end++] = {part.records, static_cast<std::int32_t>(part.count), static_cast<std::int16_t>(part.first),
                         static_cast<std::int16_t>(part.last), part.at};
    chunks += static_cast<int>(chunks_of(part));
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
  return std::min(Peers::flags, multiprocessors);
}

void RecordExchange::add(const Peer& peer, std::span<const PackedRecords> to, std::span<const PackedRecords> from,
                         int block_threads, int most_blocks) {
  const int number = peers.count;
  if (number == 0) sends.first_part[0] = receives.first_part[0] = 0;
  add_parts(sends, number, to);
  add_parts(receives, number, from);
  const int side_by_side = std::max(1, block_threads / chunk_threads);
  const int chunks = std::max(sends.chunks[number], receives.chunks[number]);
  add_peer(peers, peer, (chunks + side_by_side - 1) / side_by_side, most_blocks);
}
template <class T>
void exchange(const RecordExchange& what, T* x, Stream stream) {
  launch("exchange of records", exchange_records_kernel<T>, what.peers.blocks(), exchange_threads, 0, stream, what, x);
}

void ByteExchange::add(const Peer& peer, const Bytes& bytes, int most_blocks) {
  of[peers.count] = bytes;
  constexpr std::int64_t piece = std::int64_t{exchange_threads} * sizeof(uint4);
  add_peer(peers, peer, (std::max(bytes.sent, bytes.received) + piece - 1) / piece, most_blocks);
}
void exchange(const ByteExchange& what, Stream stream) {
  launch("exchange of bytes", exchange_bytes_kernel, what.peers.blocks(), exchange_threads, 0, stream, what);
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
