#include "solver/description.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace solenoid {

std::int64_t peak_memory(const Engine& engine, const Discretisation& discretisation) {
  return engine.bytes_peak() + (engine.stream() == nullptr ? discretisation.bytes() : 0);
}

void describe(const Engine& engine, const Discretisation& discretisation, const SolverOptions& options,
              Report& report) {
  report.dofs = discretisation.finest().dofs();
  report.cells = discretisation.finest().grid.cell_count();
  report.levels = discretisation.hierarchy().size();
  report.device = engine.description();
  report.threads = engine.threads();
  report.precision = options.precision == Precision::mixed ? "mixed" : "double";
  report.memory_bytes = peak_memory(engine, discretisation);
  if (options.communicator == nullptr || options.communicator->size() == 1) return;
  const Communicator& ranks = *options.communicator;
  report.ranks = ranks.size();
  report.transport = engine.transport();
  const auto of_ranks = [&](std::int64_t mine) {
    std::vector<std::int64_t> all(ranks.size(), 0);
    all[ranks.rank()] = mine;
    ranks.sum(std::span(all));
    return all;
  };
  report.rank_cells = of_ranks(discretisation.finest().grid.layout().owned_cells().size());
  report.rank_memory_bytes = of_ranks(report.memory_bytes);
  report.memory_bytes = *std::max_element(report.rank_memory_bytes.begin(), report.rank_memory_bytes.end());
}

}  // namespace solenoid
