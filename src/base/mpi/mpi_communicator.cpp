/// \file
/// Communicator by MPI.

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "base/launcher.hpp"
#include "base/mpi/mpi_library.hpp"
#include "solenoid/communicator.hpp"
#include "solenoid/error.hpp"

namespace solenoid {
namespace {

void check(int status, const char* what) {
  if (status == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(status, text.data(), &length);
  throw ResourceError(fmt::format("MPI: {}: {}", what, std::string_view(text.data(), length)));
}

/// Initialises MPI unless the caller did, and ends it then.
class Environment {
 public:
  Environment() {
    int already = 0;
    MPI_Initialized(&already);
    if (already != 0) return;
    int provided = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "initialisation");
    ours_ = true;
  }
  ~Environment() {
    if (ours_) MPI_Finalize();
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  bool ours_ = false;
};

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(MPI_Comm of, std::shared_ptr<Environment> environment) : environment_(std::move(environment)) {
    check(MPI_Comm_dup(of, &comm_), "duplication of a communicator");
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
    std::array<char, MPI_MAX_PROCESSOR_NAME> name{};
    int length = 0;
    MPI_Get_processor_name(name.data(), &length);
    host_ = {name.data(), static_cast<std::size_t>(length)};
    MPI_Comm on_host = MPI_COMM_NULL;
    check(MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &on_host), "ranks of this host");
    MPI_Comm_rank(on_host, &rank_on_host_);
    MPI_Comm_size(on_host, &ranks_on_host_);
    MPI_Comm_free(&on_host);
  }
  ~MpiCommunicator() override {
    int finalised = 0;
    MPI_Finalized(&finalised);
    if (finalised == 0) MPI_Comm_free(&comm_);
  }
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] std::string host() const override { return host_; }
  [[nodiscard]] int rank_on_host() const override { return rank_on_host_; }
  [[nodiscard]] int ranks_on_host() const override { return ranks_on_host_; }

  /// MPI_Allreduce may add in another order elsewhere.
  void sum(std::span<double> numbers) const override {
    std::vector<double> all(numbers.size() * size_);
    const int count = count_of(numbers.size());
    check(MPI_Allgather(numbers.data(), count, MPI_DOUBLE, all.data(), count, MPI_DOUBLE, comm_), "sum");
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      double total = 0.0;
      for (int r = 0; r < size_; ++r) total += all[r * numbers.size() + i];
      numbers[i] = total;
    }
  }
  void sum(std::span<std::int64_t> numbers) const override { reduce(numbers, MPI_INT64_T, MPI_SUM); }
  void maximum(std::span<double> numbers) const override { reduce(numbers, MPI_DOUBLE, MPI_MAX); }
  void any_bits(std::span<std::uint32_t> numbers) const override { reduce(numbers, MPI_UINT32_T, MPI_BOR); }

  void gather_all(std::span<const std::byte> mine, std::span<const std::size_t> bytes, std::byte* all) const override {
    std::vector<int> counts;
    std::transform(bytes.begin(), bytes.end(), std::back_inserter(counts), count_of);
    std::vector<int> first(counts.size(), 0);
    std::partial_sum(counts.begin(), counts.end() - 1, first.begin() + 1);
    check(
        MPI_Allgatherv(mine.data(), count_of(mine.size()), MPI_BYTE, all, counts.data(), first.data(), MPI_BYTE, comm_),
        "gathering");
  }
  [[nodiscard]] std::vector<std::string> texts(const std::string& mine) const override {
    std::vector<std::int64_t> sizes(size_, 0);
    sizes[rank_] = std::ssize(mine);
    sum(sizes);
    const std::vector<std::size_t> bytes(sizes.begin(), sizes.end());
    std::string all(std::accumulate(bytes.begin(), bytes.end(), std::size_t{0}), '\0');
    gather_all(std::as_bytes(std::span(mine)), bytes, reinterpret_cast<std::byte*>(all.data()));
    std::vector<std::string> result;
    std::size_t first = 0;
    for (const std::size_t size : bytes) {
      result.push_back(all.substr(first, size));
      first += size;
    }
    return result;
  }

  void exchange(std::span<const Message> sends, std::span<const Message> receives,
                const Work& meanwhile) const override {
    // Pieces of what an int counts.
    std::vector<MPI_Request> requests;
    const auto start = [&](std::span<const Message> messages, const auto& begin) {
      for (const Message& message : messages) {
        for (std::size_t at = 0; at < message.bytes; at += most) {
          const int count = count_of(std::min(most, message.bytes - at));
          check(begin(message.data + at, count, message.rank, &requests.emplace_back()), "exchange");
        }
      }
    };
    start(receives, [&](std::byte* data, int count, int rank, MPI_Request* request) {
      return MPI_Irecv(data, count, MPI_BYTE, rank, tag, comm_, request);
    });
    start(sends, [&](const std::byte* data, int count, int rank, MPI_Request* request) {
      return MPI_Isend(data, count, MPI_BYTE, rank, tag, comm_, request);
    });
    const int count = count_of(requests.size());
    const auto wait = [&] { check(MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE), "exchange"); };
    const auto advance = [&] {
      int done = 0;
      check(MPI_Testall(count, requests.data(), &done, MPI_STATUSES_IGNORE), "exchange");
    };
    try {
      if (meanwhile) meanwhile(advance);
    } catch (...) {
      wait();  // their memory is the caller's
      throw;
    }
    wait();
  }

  [[nodiscard]] bool all_arrive(double seconds) const override {
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Ibarrier(comm_, &request), "barrier");
    const double until = MPI_Wtime() + seconds;
    for (int arrived = 0;; std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
      check(MPI_Test(&request, &arrived, MPI_STATUS_IGNORE), "barrier");
      if (arrived != 0) return true;
      if (MPI_Wtime() > until) return false;
    }
  }
  void abort(int exit_code) const override { MPI_Abort(comm_, exit_code); }

 private:
  static constexpr int tag = 18;
  static constexpr std::size_t most = 1 << 30;

  static int count_of(std::size_t count) {
    if (count > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
      throw ResourceError(fmt::format("MPI: a message of {} elements is too long", count));
    }
    return static_cast<int>(count);
  }
  template <class T>
  void reduce(std::span<T> numbers, MPI_Datatype type, MPI_Op operation) const {
    check(MPI_Allreduce(MPI_IN_PLACE, numbers.data(), count_of(numbers.size()), type, operation, comm_), "reduction");
  }

  std::shared_ptr<Environment> environment_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  int rank_on_host_ = 0;
  int ranks_on_host_ = 1;
  std::string host_;
};

}  // namespace

std::shared_ptr<const Communicator> mpi_communicator(const void* mpi_comm) {
  return std::make_shared<MpiCommunicator>(*static_cast<const MPI_Comm*>(mpi_comm), nullptr);
}

MpiLibrary mpi_library() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> version{};
  int length = 0;
  MPI_Get_library_version(version.data(), &length);
  int initialised = 0;
  int finalised = 0;
  MPI_Initialized(&initialised);
  MPI_Finalized(&finalised);
  return {version.data(), sizeof(MPI_Comm), initialised != 0 && finalised == 0};
}

std::shared_ptr<const Communicator> launched_ranks() {
  // MPI can be initialised once: all groups of launched ranks share what ends it.
  static std::mutex guard;
  static std::weak_ptr<const Communicator> known;
  if (launched_processes() <= 1) return nullptr;
  const std::lock_guard lock(guard);
  auto ranks = known.lock();
  if (ranks == nullptr) {
    auto environment = std::make_shared<Environment>();
    ranks = std::make_shared<MpiCommunicator>(MPI_COMM_WORLD, std::move(environment));
    known = ranks;
  }
  return ranks;
}

}  // namespace solenoid
