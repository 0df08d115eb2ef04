/// \file
/// Messages between GPUs of a host by stores into each other's memory, in the engine's stream: they may be recorded.

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/cuda/error.hpp"
#include "engine/cuda/messages.hpp"
#include "engine/cuda/messages_in_kernel.hpp"
#include "engine/distributed/transport.hpp"
#include "solenoid/error.hpp"

namespace solenoid::distributed {
namespace {

using cuda::check;

constexpr std::chrono::nanoseconds patience = std::chrono::seconds(60);

/// Numbers that a sum has at once.
constexpr std::size_t most_numbers = 64;

/// Memory of this GPU that others write into. Not of the engine's pool, which processes cannot share.
class DeviceMemory {
 public:
  explicit DeviceMemory(std::size_t bytes) {
    check(cudaMalloc(&memory_, bytes), "memory for messages");
    check(cudaMemset(memory_, 0, bytes), "memory for messages");
    check(cudaDeviceSynchronize(), "memory for messages");  // before anybody else writes there
  }
  ~DeviceMemory() { cudaFree(memory_); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(memory_); }
  template <class T>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(memory_);
  }

 private:
  void* memory_ = nullptr;
};

/// Of all ranks. Collective.
std::vector<cudaIpcMemHandle_t> all_handles(const Communicator& ranks, const cudaIpcMemHandle_t& mine) {
  std::vector<cudaIpcMemHandle_t> handles(ranks.size());
  const std::vector<std::size_t> sizes(ranks.size(), sizeof mine);
  ranks.gather_all(std::as_bytes(std::span(&mine, 1)), sizes, reinterpret_cast<std::byte*>(handles.data()));
  return handles;
}

/// Memory of each rank, as this one sees it.
class SharedMemory {
 public:
  /// Collective.
  SharedMemory(const Communicator& ranks, std::size_t bytes) : ranks_(ranks), mine_(bytes) {
    cudaIpcMemHandle_t handle{};
    check(cudaIpcGetMemHandle(&handle, mine_.data()), "cudaIpcGetMemHandle");
    const std::vector<cudaIpcMemHandle_t> handles = all_handles(ranks, handle);
    for (int rank = 0; rank < ranks.size(); ++rank) {
      void* memory = mine_.data();
      if (rank != ranks.rank()) {
        check(cudaIpcOpenMemHandle(&memory, handles[rank], cudaIpcMemLazyEnablePeerAccess), "cudaIpcOpenMemHandle");
      }
      of_.push_back(static_cast<std::byte*>(memory));
    }
  }
  ~SharedMemory() {
    for (int rank = 0; rank < std::ssize(of_); ++rank) {
      if (rank != ranks_.rank()) cudaIpcCloseMemHandle(of_[rank]);
    }
  }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  [[nodiscard]] std::byte* of(int rank) const { return of_[rank]; }

 private:
  const Communicator& ranks_;
  DeviceMemory mine_;
  std::vector<std::byte*> of_;
};

/// Where messages between each two ranks lie: [receiver][sender].
struct Places {
  std::vector<std::size_t> first;  ///< in the receiver's window
  std::vector<std::size_t> half;   ///< bytes of a half
};

/// The smallest of all ranks' numbers. Collective.
int least(const Communicator& ranks, int mine) {
  double number = -mine;
  ranks.maximum(std::span(&number, 1));
  return static_cast<int>(-number);
}

class PeerTransport final : public Transport {
 public:
  PeerTransport(Engine& engine, std::shared_ptr<const Communicator> ranks)
      : engine_(engine),
        ranks_(std::move(ranks)),
        stream_(static_cast<cudaStream_t>(engine.stream())),
        blocks_at_once_(least(*ranks_, cuda::most_blocks_at_once())),
        failed_(sizeof(unsigned)),
        counts_(2 * ranks_->size() * sizeof(unsigned)),
        flags_(*ranks_, ranks_->size() * cuda::Peers::flags * sizeof(unsigned)),
        numbers_(ranks_->size() * most_numbers * sizeof(double)) {
    void* host = nullptr;
    check(cudaMallocHost(&host, sizeof(unsigned)), "memory for messages");
    told_host_ = new (host) unsigned(0);
    reserve(std::vector<std::size_t>(ranks_->size(), most_numbers * sizeof(double)));
  }
  /// Ranks do not wait for each other: they may end at any time. Nobody writes any more into this one's window, as all
  /// exchanges are done.
  ~PeerTransport() override {
    cudaStreamSynchronize(stream_);
    cudaFreeHost(told_host_);
  }
  PeerTransport(const PeerTransport&) = delete;
  PeerTransport& operator=(const PeerTransport&) = delete;

  [[nodiscard]] std::string_view name() const override { return "peer"; }
  [[nodiscard]] bool recordable() const override { return true; }

  /// Windows that are too small stay, as what was recorded may use them.
  void reserve(std::span<const std::size_t> bytes_from) override {
    const int size = ranks_->size();
    const bool enough = !places_.half.empty() && [&] {
      const std::size_t* const half = places_.half.data() + ranks_->rank() * size;
      return std::equal(bytes_from.begin(), bytes_from.end(), half, std::less_equal<>());
    }();
    if (ranks_->all(enough)) return;
    std::vector<std::size_t> mine(2 * size);
    std::size_t end = 0;
    for (int rank = 0; rank < size; ++rank) {
      constexpr std::size_t line = 128;
      const std::size_t known = places_.half.empty() ? 0 : places_.half[ranks_->rank() * size + rank];
      mine[rank] = end;
      mine[size + rank] = rank == ranks_->rank() ? 0 : (std::max(known, bytes_from[rank]) + line - 1) / line * line;
      end += 2 * mine[size + rank];
    }
    std::vector<std::size_t> all(mine.size() * size);
    const std::vector<std::size_t> sizes(size, mine.size() * sizeof(std::size_t));
    ranks_->gather_all(std::as_bytes(std::span(mine)), sizes, reinterpret_cast<std::byte*>(all.data()));
    places_ = {};
    for (int rank = 0; rank < size; ++rank) {
      const auto of_rank = all.begin() + static_cast<std::ptrdiff_t>(mine.size()) * rank;
      places_.first.insert(places_.first.end(), of_rank, of_rank + size);
      places_.half.insert(places_.half.end(), of_rank + size, of_rank + 2 * size);
    }
    windows_.push_back(std::make_unique<SharedMemory>(*ranks_, std::max<std::size_t>(end, 1)));
  }

  void exchange(std::span<const Message> sends, std::span<const Message> receives) override {
    cuda::ByteExchange what;
    for (int rank = 0; rank < ranks_->size(); ++rank) {
      const Message* const to = with(sends, rank);
      const Message* const from = with(receives, rank);
      if (to == nullptr && from == nullptr) continue;
      cuda::ByteExchange::Bytes bytes{};
      if (to != nullptr) bytes = {to->data, static_cast<std::int64_t>(to->bytes), nullptr, 0};
      if (from != nullptr) bytes.to = from->data;
      if (from != nullptr) bytes.received = static_cast<std::int64_t>(from->bytes);
      add(what, rank, bytes);
    }
    exchange_bytes(what);
  }
  bool bring(const Parts& sends, const Parts& receives, int record_size, float* x) override {
    exchange_records(sends, receives, record_size, x);
    return true;
  }
  bool bring(const Parts& sends, const Parts& receives, int record_size, double* x) override {
    exchange_records(sends, receives, record_size, x);
    return true;
  }
  std::unique_ptr<KernelMessages> in_kernel(const Parts& sends, const Parts& receives, int record_size) override {
    const int most = std::min(most_blocks(), cuda::MessagesInKernel::most_blocks / (ranks_->size() - 1));
    return std::make_unique<cuda::MessagesInKernel>(
        engine_, records(sends, receives, record_size, cuda::MessagesInKernel::block_threads, most));
  }
  void gather_all(const std::byte* mine, std::span<const std::size_t> bytes, std::byte* all) override {
    cuda::ByteExchange what;
    what.own_from = mine;
    what.own_bytes = static_cast<std::int64_t>(bytes[ranks_->rank()]);
    for (int rank = 0; rank < ranks_->size(); ++rank) {
      if (rank == ranks_->rank()) {
        what.own_to = all;
      } else {
        add(what, rank, {mine, what.own_bytes, all, static_cast<std::int64_t>(bytes[rank])});
      }
      all += bytes[rank];
    }
    exchange_bytes(what);
  }
  void sum(double* numbers, int count) override {
    for (int first = 0; first < count; first += most_numbers) {
      const int some = std::min<int>(count - first, most_numbers);
      const std::vector<std::size_t> bytes(ranks_->size(), some * sizeof(double));
      gather_all(reinterpret_cast<const std::byte*>(numbers + first), bytes, numbers_.data());
      cuda::add_in_order(ranks_->size(), some, numbers_.as<double>(), numbers + first, stream_);
    }
  }
  void check_peers() const override {
    const unsigned failed = *const_cast<const volatile unsigned*>(told_host_);
    if (failed == 0) return;
    throw ResourceError(fmt::format("rank {}: rank {} sent nothing for {} s: it ended or hangs (transport \"peer\")",
                                    ranks_->rank(), failed - 1,
                                    std::chrono::duration_cast<std::chrono::seconds>(patience).count()));
  }

 private:
  template <class Messages>
  static auto with(const Messages& messages, int rank) -> decltype(messages.data()) {
    const auto found = std::find_if(messages.begin(), messages.end(), [&](const auto& m) { return m.rank == rank; });
    return found == messages.end() ? nullptr : &*found;
  }
  template <class T>
  void exchange_records(const Parts& sends, const Parts& receives, int record_size, T* x) {
    cuda::exchange(records(sends, receives, record_size, cuda::exchange_threads, most_blocks()), x, stream_);
  }
  [[nodiscard]] cuda::RecordExchange records(const Parts& sends, const Parts& receives, int record_size,
                                             int block_threads, int most_blocks) const {
    cuda::RecordExchange what;
    what.record_size = record_size;
    for (int rank = 0; rank < ranks_->size(); ++rank) {
      const auto* const to = with(sends, rank);
      const auto* const from = with(receives, rank);
      if (to == nullptr && from == nullptr) continue;
      constexpr std::span<const PackedRecords> nothing;
      what.add(peer(rank), to == nullptr ? nothing : to->parts, from == nullptr ? nothing : from->parts, block_threads,
               most_blocks);
    }
    wait_as_told(what.peers);
    return what;
  }
  void add(cuda::ByteExchange& what, int rank, const cuda::ByteExchange::Bytes& bytes) {
    const cuda::Peer with = peer(rank);
    if (bytes.sent > with.half_there || bytes.received > with.half_here) {
      throw std::logic_error("a message between GPUs is longer than the window reserved for it");
    }
    what.add(with, bytes, most_blocks());
  }
  void exchange_bytes(cuda::ByteExchange& what) {
    wait_as_told(what.peers);
    cuda::exchange(what, stream_);
  }
  void wait_as_told(cuda::Peers& peers) const {
    peers.failed = failed_.as<unsigned>();
    peers.told_host = told_host_;
    peers.patience = patience.count();
  }
  [[nodiscard]] int most_blocks() const { return blocks_at_once_ / (ranks_->size() - 1); }
  [[nodiscard]] cuda::Peer peer(int rank) const {
    const int mine = ranks_->rank();
    const int size = ranks_->size();
    const SharedMemory& window = *windows_.back();
    return {.there = window.of(rank) + places_.first[rank * size + mine],
            .half_there = static_cast<std::int64_t>(places_.half[rank * size + mine]),
            .flags_there = flags(rank, mine),
            .here = window.of(mine) + places_.first[mine * size + rank],
            .half_here = static_cast<std::int64_t>(places_.half[mine * size + rank]),
            .flags_here = flags(mine, rank),
            .exchanges = counts_.as<unsigned>() + 2 * rank,
            .begun = counts_.as<unsigned>() + 2 * rank + 1,
            .rank = rank,
            .first_block = 0,
            .blocks = 0};
  }
  [[nodiscard]] unsigned* flags(int of, int from) const {
    return reinterpret_cast<unsigned*>(flags_.of(of)) + std::ptrdiff_t{from} * cuda::Peers::flags;
  }

  Engine& engine_;
  std::shared_ptr<const Communicator> ranks_;
  cudaStream_t stream_;
  int blocks_at_once_;  // the same for all ranks
  DeviceMemory failed_;
  DeviceMemory counts_;  // [rank]: exchanges, and thread blocks that have begun the last one
  SharedMemory flags_;   // [from][thread block]
  DeviceMemory numbers_;
  unsigned* told_host_ = nullptr;
  Places places_;
  std::vector<std::unique_ptr<SharedMemory>> windows_;
};

/// Whether this GPU can write the memory of all of these.
bool reaches(const std::vector<std::string>& gpus) {
  int mine = 0;
  check(cudaGetDevice(&mine), "device");
  for (const std::string& gpu : gpus) {
    int device = 0;
    if (cudaDeviceGetByPCIBusId(&device, gpu.c_str()) != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      return false;  // hidden from this process: whether it can be reached cannot be asked
    }
    int can = 0;
    if (device != mine) check(cudaDeviceCanAccessPeer(&can, mine, device), "cudaDeviceCanAccessPeer");
    if (device != mine && can == 0) return false;
  }
  return true;
}

/// Whether processes see each other's memory: containers may forbid it. Collective.
bool shares(const Communicator& ranks) {
  const DeviceMemory mine(sizeof(unsigned));
  cudaIpcMemHandle_t handle{};
  bool all_seen = cudaIpcGetMemHandle(&handle, mine.data()) == cudaSuccess;
  const std::vector<cudaIpcMemHandle_t> handles = all_handles(ranks, handle);
  for (int rank = 0; rank < ranks.size(); ++rank) {
    if (rank == ranks.rank()) continue;
    void* memory = nullptr;
    const bool seen = cudaIpcOpenMemHandle(&memory, handles[rank], cudaIpcMemLazyEnablePeerAccess) == cudaSuccess;
    if (seen) cudaIpcCloseMemHandle(memory);
    all_seen = all_seen && seen;
  }
  static_cast<void>(cudaGetLastError());  // it is not one of what comes
  return ranks.all(all_seen);
}

}  // namespace

std::string peer_unavailable(const Communicator& ranks) {
  if (!ranks.all(ranks.ranks_on_host() == ranks.size())) return "the ranks are on several hosts";
  if (ranks.size() > cuda::Peers::most + 1) return fmt::format("at most {} ranks", cuda::Peers::most + 1);
  int device = 0;
  check(cudaGetDevice(&device), "device");
  std::array<char, 32> bus{};
  check(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), device), "cudaDeviceGetPCIBusId");
  const std::vector<std::string> gpus = ranks.texts(bus.data());
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (std::count(gpus.begin(), gpus.end(), gpus[i]) > 1) return "several ranks share a GPU";
  }
  if (!ranks.all(reaches(gpus))) return "the GPUs cannot write into each other's memory";
  if (!shares(ranks)) return "processes do not see each other's memory of GPUs (CUDA IPC)";
  return {};
}

std::unique_ptr<Transport> make_peer_transport(Engine& engine, std::shared_ptr<const Communicator> communicator) {
  return std::make_unique<PeerTransport>(engine, std::move(communicator));
}

}  // namespace solenoid::distributed
