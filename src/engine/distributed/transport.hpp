#pragma once
/// \file
/// How messages get from the memory of one engine into that of another.

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "engine/engine.hpp"
#include "solenoid/communicator.hpp"

namespace solenoid::distributed {

/// All pointers are to memory of the engine. Everything happens in the order of the engine's work.
class Transport {
 public:
  using Message = Communicator::Message;

  virtual ~Transport() = default;
  /// As people know it: "cpu", "staged", "nccl".
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Whether the engine may record what these functions do (Engine::record).
  [[nodiscard]] virtual bool recordable() const = 0;
  virtual void exchange(std::span<const Message> sends, std::span<const Message> receives) = 0;
  /// As Communicator::gather_all.
  virtual void gather_all(const std::byte* mine, std::span<const std::size_t> bytes, std::byte* all) = 0;
  /// As Communicator::sum.
  virtual void sum(double* numbers, int count) = 0;
};

/// By the communicator, from memory that is the host's too.
std::unique_ptr<Transport> make_host_transport(std::shared_ptr<const Communicator> communicator);
/// By the communicator, through copies in memory of the host.
std::unique_ptr<Transport> make_staged_transport(Engine& engine, std::shared_ptr<const Communicator> communicator);
/// By NCCL, between GPUs of which each has one rank. \throws ResourceError, as says nccl_unavailable().
std::unique_ptr<Transport> make_nccl_transport(Engine& engine, std::shared_ptr<const Communicator> communicator);
std::string nccl_unavailable();

}  // namespace solenoid::distributed
