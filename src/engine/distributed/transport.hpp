#pragma once
/// \file
/// How messages get from the memory of one engine into that of another.

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.hpp"
#include "engine/packed_records.hpp"
#include "solenoid/communicator.hpp"

namespace solenoid::distributed {

/// All pointers are to memory of the engine. Everything happens in the order of the engine's work.
class Transport {
 public:
  using Message = Communicator::Message;
  using Work = Communicator::Work;
  /// The parts of the message for, or from, a rank, which begins at 0.
  struct PartsOfMessage {
    int rank;
    std::vector<PackedRecords> parts;
  };
  using Parts = std::vector<PartsOfMessage>;

  virtual ~Transport() = default;
  /// As people know it: "cpu", "staged", "nccl", "peer".
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Whether the engine may record what these functions do (Engine::record).
  [[nodiscard]] virtual bool recordable() const = 0;
  /// Says how many bytes come from each rank at once, at most, from now on. Collective, before there are more than
  /// ever.
  virtual void reserve(std::span<const std::size_t> /*bytes_from*/) {}
  virtual void exchange(std::span<const Message> sends, std::span<const Message> receives) = 0;
  /// The same, with work that touches none of those bytes while they travel; or after that.
  virtual void exchange_while(std::span<const Message> sends, std::span<const Message> receives, const Work& work) {
    exchange(sends, receives);
    work([] {});
  }
  /// Packs messages of these parts out of x, exchanges them, and brings them into the ghosts of x; false if it does
  /// not, so that kernels pack and unpack.
  virtual bool bring(const Parts& /*sends*/, const Parts& /*receives*/, int /*record_size*/, float* /*x*/) {
    return false;
  }
  virtual bool bring(const Parts& /*sends*/, const Parts& /*receives*/, int /*record_size*/, double* /*x*/) {
    return false;
  }
  /// The same exchange of vectors of one precision, for kernels that can see to it (Kernels::smooth_bringing); nullptr
  /// if there is no such thing.
  [[nodiscard]] virtual std::unique_ptr<KernelMessages> in_kernel(const Parts& /*sends*/, const Parts& /*receives*/,
                                                                  int /*record_size*/) {
    return nullptr;
  }
  /// As Communicator::gather_all.
  virtual void gather_all(const std::byte* mine, std::span<const std::size_t> bytes, std::byte* all) = 0;
  /// As Communicator::sum.
  virtual void sum(double* numbers, int count) = 0;
  /// \throws ResourceError if another rank was waited for in vain, as far as that is known.
  virtual void check_peers() const {}
};

/// By the communicator, from memory that is the host's too.
std::unique_ptr<Transport> make_host_transport(std::shared_ptr<const Communicator> communicator);
/// By the communicator, through copies in memory of the host.
std::unique_ptr<Transport> make_staged_transport(Engine& engine, std::shared_ptr<const Communicator> communicator);
/// Into the memory of the other GPUs, all of this host, of which each has one rank. \throws ResourceError, as says
/// peer_unavailable().
std::unique_ptr<Transport> make_peer_transport(Engine& engine, std::shared_ptr<const Communicator> communicator);
/// Why not; collective.
std::string peer_unavailable(const Communicator& ranks);
/// By NCCL, between GPUs of which each has one rank. \throws ResourceError, as says nccl_unavailable().
std::unique_ptr<Transport> make_nccl_transport(Engine& engine, std::shared_ptr<const Communicator> communicator);
std::string nccl_unavailable();

}  // namespace solenoid::distributed
