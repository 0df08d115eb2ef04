#include "base/binding.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <sstream>

namespace solenoid {
namespace {

using Cores = std::vector<int>;

/// [rank of this host]: what it may run on; that of this rank first.
std::vector<Cores> cores_of_host(const Communicator& ranks) {
  const Cores mine = allowed_cores();
  std::vector<Cores> all{mine};
  const auto texts = ranks.texts(fmt::format("{} {}", ranks.host(), fmt::join(mine, " ")));
  for (int rank = 0; rank < ranks.size(); ++rank) {
    std::istringstream stream(texts[rank]);
    std::string host;
    stream >> host;
    if (rank == ranks.rank() || host != ranks.host()) continue;
    all.emplace_back(std::istream_iterator<int>(stream), std::istream_iterator<int>());
  }
  return all;
}

int share(std::int64_t cores, std::int64_t ranks) { return static_cast<int>(std::max<std::int64_t>(1, cores / ranks)); }

int share_of_cores(const std::vector<Cores>& all, const Cores& one) {
  return share(std::ssize(one), std::count(all.begin(), all.end(), one));
}

/// Whether the first rank and those that may run on some of its cores have more threads than cores.
bool is_crowded(const std::vector<Cores>& all, int threads) {
  int running = 0;
  Cores together;
  for (const Cores& one : all) {
    if (std::find_first_of(one.begin(), one.end(), all[0].begin(), all[0].end()) == one.end()) continue;
    running += threads != 0 ? threads : share_of_cores(all, one);
    Cores both;
    std::set_union(together.begin(), together.end(), one.begin(), one.end(), std::back_inserter(both));
    together = std::move(both);
  }
  return running > std::ssize(together);
}

/// "core 3", "cores 0-3,8".
std::string text_of(const Cores& cores) {
  std::string text = cores.size() == 1 ? "core " : "cores ";
  for (std::size_t i = 0; i < cores.size(); ++i) {
    const std::size_t first = i;
    while (i + 1 < cores.size() && cores[i + 1] == cores[i] + 1) ++i;
    text += fmt::format("{}{}", first == 0 ? "" : ",", cores[first]);
    if (i > first) text += fmt::format("-{}", cores[i]);
  }
  return text;
}

}  // namespace

std::vector<int> allowed_cores(pid_t process) {
  cpu_set_t set;
  CPU_ZERO(&set);
  Cores cores;
  if (sched_getaffinity(process, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

int share_of_cores(const Communicator& ranks) {
  const std::vector<Cores> all = cores_of_host(ranks);
  return share_of_cores(all, all[0]);
}

std::string too_narrow_binding(const Communicator& ranks, int threads) {
  const std::vector<Cores> all = cores_of_host(ranks);
  const Cores& mine = all[0];
  // A rank that is not bound may run where its launcher may.
  const std::int64_t unbound = std::ssize(allowed_cores(getppid()));
  const int could_use = threads != 0 ? threads : share(unbound, std::ssize(all));
  const bool narrow = std::ssize(mine) < unbound && (std::ssize(mine) < could_use || is_crowded(all, threads));
  double most = narrow ? could_use : 0.0;
  ranks.maximum(std::span(&most, 1));
  auto texts = ranks.texts(narrow ? fmt::format("rank {} to {} of {}", ranks.rank(), text_of(mine), ranks.host()) : "");
  std::erase(texts, "");
  if (texts.empty()) return {};
  constexpr std::size_t named = 4;
  const std::size_t others = texts.size() - std::min(named, texts.size());
  texts.resize(texts.size() - others);
  return fmt::format(
      "ranks are bound to too few cores, where each could use {} of its own: {}{}; bind them to as many, by `mpirun "
      "--map-by slot:pe={}`, or to none, by `mpirun --bind-to none`",
      static_cast<int>(most), fmt::join(texts, ", "), others == 0 ? "" : fmt::format(" and {} more", others),
      static_cast<int>(most));
}

}  // namespace solenoid
