#pragma once
/// \file
/// Messages between GPUs: packed out of vectors, and stored into the memory of other GPUs.

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/cuda/kernels/arguments.hpp"
#include "engine/packed_records.hpp"

namespace solenoid::cuda {

/// Messages (PackedRecords): out of a vector, and into it. All parts by one launch, up to 64.
template <class T>
void pack(std::span<const PackedRecords> parts, int record_size, const T* x, T* values, Stream stream);
template <class T>
void unpack(std::span<const PackedRecords> parts, int record_size, const T* values, T* x, Stream stream);

/// An exchange with GPUs whose memory this one can write.
///
/// Each rank has a window, where others write: for each of them two halves, used in turn. Some thread blocks work for
/// each peer, as many as those of the peer for this rank: each sends a share, stores the number of the exchange into a
/// flag of the peer's, waits until its own flag has it, and takes a share. A rank writes into a half again two
/// exchanges later, when it has received what its peer sent after reading it. Exchanges of two ranks are counted in the
/// memory of their GPUs, so that what is recorded may be repeated. Both sides exchange in a kernel of its own, or both
/// within another one.
struct Peer {
  std::byte* there;         ///< where this rank writes in the peer's window
  std::int64_t half_there;  ///< from one half to the other
  unsigned* flags_there;    ///< [thread block]
  const std::byte* here;    ///< where the peer writes in this rank's window
  std::int64_t half_here;
  unsigned* flags_here;
  unsigned* exchanges;  ///< of the two that were begun,
  unsigned* begun;      ///< and by how many thread blocks the last one
  int rank;
  int first_block;  ///< its thread blocks
  int blocks;
};
struct Peers {
  static constexpr int most = 7;
  static constexpr int flags = 512;  ///< thread blocks of all peers, at most: they run at the same time
  Peer peer[most];
  int count = 0;
  unsigned* failed = nullptr;     ///< nonzero if a peer was waited for in vain: nobody is waited for any more
  unsigned* told_host = nullptr;  ///< 1 + its rank, in memory of the host
  std::int64_t patience = 0;      ///< how long a peer is waited for, ns

  /// Thread blocks of all.
  [[nodiscard]] int blocks() const { return count == 0 ? 0 : peer[count - 1].first_block + peer[count - 1].blocks; }
};

/// How many thread blocks an exchange may have on the current device, all at the same time.
int most_blocks_at_once();

/// Threads of a block of an exchange in a kernel of its own. A thread block waits until what it stored into another
/// GPU's memory is there, and many that wait do so one after the other: so they are few and large.
inline constexpr int exchange_threads = 1024;

/// Messages of vectors: taken from the records there, and brought to the records here, by one kernel. Some 6 us and the
/// bytes over the link between the GPUs.
class RecordExchange {
 public:
  /// Values `first` to `last` - 1 of records, as PackedRecords, in the message of a peer.
  struct Part {
    const std::int32_t* records;
    std::int32_t count;
    std::int16_t first;
    std::int16_t last;
    std::int64_t at;
  };
  struct Parts {
    static constexpr int most = Peers::most * 7;
    Part part[most];
    int first_chunk[most];            ///< of a part, counted in the message
    int first_part[Peers::most + 1];  ///< of a peer
    int chunks[Peers::most];          ///< of a message
  };
  Peers peers;
  Parts sends;
  Parts receives;
  int record_size = 0;

  /// Adds a peer, with the parts of its two messages, how many threads a block has, and the most blocks that it gets.
  void add(const Peer& peer, std::span<const PackedRecords> to, std::span<const PackedRecords> from, int block_threads,
           int most_blocks);
  [[nodiscard]] int blocks() const { return peers.blocks(); }
};
template <class T>
void exchange(const RecordExchange& what, T* x, Stream stream);

/// In device memory: an exchange that the first thread blocks of another kernel see to, and how far it is: three words,
/// 0 when the kernel begins, and when it ends.
struct ExchangeInKernel {
  RecordExchange messages;
  unsigned done;     ///< thread blocks that have brought their share
  unsigned arrived;  ///< 1 once all have
  unsigned seen;     ///< thread blocks that have waited for that
};
/// What such a kernel is given: so many of its thread blocks bring ghosts of a vector.
template <class T>
struct Bringing {
  ExchangeInKernel* exchange = nullptr;
  T* vector = nullptr;
  int blocks = 0;
};

/// Messages of bytes, multiples of 4, and what this rank keeps of its own.
class ByteExchange {
 public:
  struct Bytes {
    const std::byte* from;
    std::int64_t sent;
    std::byte* to;
    std::int64_t received;
  };
  Peers peers;
  Bytes of[Peers::most];
  const std::byte* own_from = nullptr;
  std::byte* own_to = nullptr;
  std::int64_t own_bytes = 0;

  void add(const Peer& peer, const Bytes& bytes, int most_blocks);
};
void exchange(const ByteExchange& what, Stream stream);

/// numbers[i] = sum of of_ranks[rank][i] over the ranks, in their order.
void add_in_order(int ranks, int count, const double* of_ranks, double* numbers, Stream stream);

}  // namespace solenoid::cuda
