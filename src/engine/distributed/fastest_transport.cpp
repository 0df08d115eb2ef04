#include "engine/distributed/fastest_transport.hpp"

#include <chrono>
#include <limits>
#include <utility>
#include <vector>

namespace solenoid::distributed {
namespace {

/// Seconds that messages of a coarse level take, where most of them are sent, between each two ranks: the longest of
/// all ranks.
double trial(Engine& engine, Transport& transport, const Communicator& ranks) {
  constexpr std::size_t bytes = 16 << 10;
  constexpr int repetitions = 32;
  const auto numbers = static_cast<std::int64_t>(bytes / sizeof(float));
  Vector<float> memory(engine, 2 * numbers * ranks.size());
  std::vector<Transport::Message> sends;
  std::vector<Transport::Message> receives;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    if (rank == ranks.rank()) continue;
    float* const both = memory.data() + 2 * numbers * rank;
    sends.push_back({rank, reinterpret_cast<std::byte*>(both), bytes});
    receives.push_back({rank, reinterpret_cast<std::byte*>(both + numbers), bytes});
  }
  transport.reserve(std::vector<std::size_t>(ranks.size(), bytes));
  const auto work = [&] {
    for (int i = 0; i < repetitions; ++i) transport.exchange(sends, receives);
  };
  const Recorded recorded = transport.recordable() ? engine.record(work) : Recorded(work, [] {});
  recorded();
  engine.synchronise();
  static_cast<void>(ranks.any(false));  // all are there
  const auto start = std::chrono::steady_clock::now();
  recorded();
  engine.synchronise();
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ranks.maximum(std::span(&seconds, 1));
  return seconds;
}

}  // namespace

std::unique_ptr<Transport> fastest_transport(Engine& engine, const std::shared_ptr<const Communicator>& ranks) {
  std::vector<std::unique_ptr<Transport>> all;
  if (peer_unavailable(*ranks).empty()) {
    all.push_back(make_peer_transport(engine, ranks));
  } else if (nccl_unavailable().empty()) {
    all.push_back(make_nccl_transport(engine, ranks));
  }
  all.push_back(make_staged_transport(engine, ranks));
  std::unique_ptr<Transport> fastest;
  double least = std::numeric_limits<double>::infinity();
  for (auto& transport : all) {
    const double seconds = trial(engine, *transport, *ranks);
    if (seconds < least) {
      least = seconds;
      fastest = std::move(transport);
    }
  }
  return fastest;
}

}  // namespace solenoid::distributed
