#include "engine/cpu/assembly.hpp"

#include <span>
#include <vector>

#include "engine/assembly_steps.hpp"
#include "engine/tables.hpp"

namespace solenoid::cpu {
namespace {

/// Steps by the threads of a team; the engine's memory is the host's.
class HostSteps {
 public:
  HostSteps(Engine& /*engine*/, Team& team) : team_(team) {}

  template <class F>
  void for_all(std::int64_t count, const F& f) {
    const auto run = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) f(i);
    };
    constexpr std::int64_t worth = 1 << 14;  // a team
    if (count <= worth || team_.size() == 1) return run(0, count);
    team_.run([&](int t) {
      Team::in_pieces(team_.range(count, t), worth, [&](Team::Range piece) { run(piece.begin, piece.end); });
    });
  }
  template <class T>
  void sum_before(std::int64_t count, T* x) {
    std::vector<T> sums(team_.size(), T(0));
    team_.run([&](int t) {
      const Team::Range range = team_.range(count, t);
      for (std::int64_t i = range.begin; i < range.end; ++i) sums[t] += x[i];
    });
    T before = 0;
    for (T& sum : sums) sum = std::exchange(before, before + sum);
    team_.run([&](int t) {
      const Team::Range range = team_.range(count, t);
      for (std::int64_t i = range.begin; i < range.end; ++i) sums[t] += std::exchange(x[i], sums[t]);
    });
    x[count] = before;
  }
  template <class T>
  std::span<const T> view(std::span<const T> values) {
    return values;
  }
  template <class T>
  T fetch(const T* value) {
    return *value;
  }
  CellTopology topology(const Level& level) { return topology_of(level.grid); }

 private:
  Team& team_;
};

}  // namespace

std::unique_ptr<SparseAssembly> make_assembly(Engine& engine, Team& team) {
  return std::make_unique<assembly::Assembly<HostSteps>>(engine, team);
}

}  // namespace solenoid::cpu
