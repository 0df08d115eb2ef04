/// \file
/// Messages between GPUs by NCCL, in the engine's stream: they may be recorded.

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nccl.h>

#include <cstring>
#include <string>
#include <utility>

#include "engine/distributed/transport.hpp"
#include "solenoid/error.hpp"

namespace solenoid::distributed {
namespace {

void check(ncclResult_t status, const char* what) {
  if (status != ncclSuccess) throw ResourceError(fmt::format("NCCL: {}: {}", what, ncclGetErrorString(status)));
}

class NcclTransport final : public Transport {
 public:
  NcclTransport(Engine& engine, std::shared_ptr<const Communicator> ranks)
      : ranks_(std::move(ranks)), stream_(static_cast<cudaStream_t>(engine.stream())) {
    ncclUniqueId id{};
    if (ranks_->rank() == 0) check(ncclGetUniqueId(&id), "start");
    const std::string text = ranks_->texts(ranks_->rank() == 0 ? std::string(id.internal, sizeof id.internal) : "")[0];
    std::memcpy(id.internal, text.data(), sizeof id.internal);
    check(ncclCommInitRank(&comm_, ranks_->size(), id, ranks_->rank()), "start");
    connect(engine);
  }
  ~NcclTransport() override {
    cudaStreamSynchronize(stream_);
    ncclCommDestroy(comm_);
  }
  NcclTransport(const NcclTransport&) = delete;
  NcclTransport& operator=(const NcclTransport&) = delete;

  [[nodiscard]] std::string_view name() const override { return "nccl"; }
  [[nodiscard]] bool recordable() const override { return true; }

  void exchange(std::span<const Message> sends, std::span<const Message> receives) override {
    check(ncclGroupStart(), "exchange");
    for (const Message& m : sends) check(ncclSend(m.data, m.bytes, ncclChar, m.rank, comm_, stream_), "exchange");
    for (const Message& m : receives) check(ncclRecv(m.data, m.bytes, ncclChar, m.rank, comm_, stream_), "exchange");
    check(ncclGroupEnd(), "exchange");
  }
  void gather_all(const std::byte* mine, std::span<const std::size_t> bytes, std::byte* all) override {
    check(ncclGroupStart(), "gathering");
    std::byte* next = all;
    for (int rank = 0; rank < ranks_->size(); ++rank) {
      check(ncclBroadcast(mine, next, bytes[rank], ncclChar, rank, comm_, stream_), "gathering");
      next += bytes[rank];
    }
    check(ncclGroupEnd(), "gathering");
  }
  void sum(double* numbers, int count) override {
    check(ncclAllReduce(numbers, numbers, count, ncclDouble, ncclSum, comm_, stream_), "sum");
  }

 private:
  /// Connections are made by the first message, and must be there before anything is recorded.
  void connect(Engine& engine) {
    const int size = ranks_->size();
    Vector<double> memory(engine, 2 * size + 1);
    auto* const bytes = reinterpret_cast<std::byte*>(memory.data());
    std::vector<Message> sends;
    std::vector<Message> receives;
    for (int rank = 0; rank < size; ++rank) {
      if (rank == ranks_->rank()) continue;
      sends.push_back({rank, bytes + sizeof(double) * rank, sizeof(double)});
      receives.push_back({rank, bytes + sizeof(double) * (size + rank), sizeof(double)});
    }
    exchange(sends, receives);
    const std::vector<std::size_t> counts(size, sizeof(double));
    gather_all(bytes + 2 * sizeof(double) * size, counts, bytes);
    sum(memory.data(), 1);
    engine.synchronise();
  }

  std::shared_ptr<const Communicator> ranks_;
  cudaStream_t stream_;
  ncclComm_t comm_ = nullptr;
};

}  // namespace

std::string nccl_unavailable() { return {}; }

std::unique_ptr<Transport> make_nccl_transport(Engine& engine, std::shared_ptr<const Communicator> communicator) {
  return std::make_unique<NcclTransport>(engine, std::move(communicator));
}

}  // namespace solenoid::distributed
