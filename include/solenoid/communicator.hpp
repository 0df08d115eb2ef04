#pragma once
/// \file
/// Ranks: processes that work on one problem together, each on its part of the mesh.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace solenoid {

/// A group of ranks, as of MPI. All functions are collective: every rank of the group calls them in the same order.
/// Results are the same bits on every rank.
class Communicator {
 public:
  /// Bytes for, or from, another rank.
  struct Message {
    int rank = 0;
    std::byte* data = nullptr;
    std::size_t bytes = 0;
  };

  virtual ~Communicator() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  /// What people see of this rank: the name of its host.
  [[nodiscard]] virtual std::string host() const = 0;
  /// Ranks on the same host before this one, and all of them.
  [[nodiscard]] virtual int rank_on_host() const = 0;
  [[nodiscard]] virtual int ranks_on_host() const = 0;

  /// Each number becomes its sum over the ranks, added in their order.
  virtual void sum(std::span<double> numbers) const = 0;
  virtual void sum(std::span<std::int64_t> numbers) const = 0;
  /// Each number becomes its largest.
  virtual void maximum(std::span<double> numbers) const = 0;
  /// Each number becomes what has the bits that it has on some rank.
  virtual void any_bits(std::span<std::uint32_t> numbers) const = 0;
  /// The bytes of all ranks, one after the other; `bytes`: how many each has.
  virtual void gather_all(std::span<const std::byte> mine, std::span<const std::size_t> bytes,
                          std::byte* all) const = 0;
  /// The texts of all ranks, in their order.
  [[nodiscard]] virtual std::vector<std::string> texts(const std::string& mine) const = 0;
  /// Work while messages travel, which touches none of their bytes. It gets a function to call now and then, from the
  /// thread that it is called by: messages get on only when somebody looks after them.
  using Work = std::function<void(const std::function<void()>& advance)>;
  /// Sends and receives all of these; not collective, but what one rank sends to another that one receives.
  virtual void exchange(std::span<const Message> sends, std::span<const Message> receives,
                        const Work& meanwhile = {}) const = 0;
  /// Waits until all ranks have called this, but no longer than so many seconds; whether they have. Once in the life of
  /// a group.
  [[nodiscard]] virtual bool all_arrive(double seconds) const = 0;
  /// Ends all ranks of the group, at once.
  virtual void abort(int exit_code) const = 0;

  /// Whether some rank says so.
  [[nodiscard]] bool any(bool mine) const {
    std::uint32_t bit = mine ? 1 : 0;
    any_bits({&bit, 1});
    return bit != 0;
  }
  [[nodiscard]] bool all(bool mine) const { return !any(!mine); }
};

/// The group of a communicator of MPI, given as a pointer to an MPI_Comm of the caller's. MPI is initialised, and stays
/// so while this lives. The group is duplicated, so that messages do not mix. \throws ResourceError if this build is
/// without MPI.
std::shared_ptr<const Communicator> mpi_communicator(const void* mpi_comm);
/// Under a launcher of several processes (mpirun, srun): the group of all of them, for which MPI is initialised here if
/// it is not yet, and ended with the last owner. Otherwise nullptr. \throws ResourceError if there are several
/// processes but this build is without MPI.
std::shared_ptr<const Communicator> launched_ranks();

}  // namespace solenoid
