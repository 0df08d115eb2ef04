#pragma once
/// \file
/// Which problems the flows are that a permeability is made of.

#include <array>
#include <memory>
#include <vector>

#include "solenoid/permeability.hpp"
#include "solenoid/solver.hpp"

namespace solenoid {

/// Flows whose problems differ in their loads alone.
struct FlowSetup {
  std::vector<int> directions;
  std::array<bool, 3> periodic{};
};

/// All sides periodic and driven by a force: one for all directions; otherwise one for each.
std::vector<FlowSetup> flow_setups(int dim, const PermeabilityOptions& options);

/// What a permeability is computed with.
struct FlowElement {
  int order = 2;
  bool lumped = false;
  int refine = 0;
};
inline FlowElement element_of(const PermeabilityOptions& options) {
  return {options.order, options.lumped, options.refine};
}
/// That of PermeabilityOptions::error. \throws InvalidEntry if this build has no higher order.
FlowElement finer_element(int dim, const PermeabilityOptions& options);

/// The flow along the first direction of a set-up, with nu = 1.
Problem flow_problem(std::shared_ptr<const VoxelImage> image, const FlowSetup& setup, Drive drive,
                     const FlowElement& element);

/// Whether several ranks share the cells of a flow. Voxels themselves do not pair up to coarser cells that they could
/// share, nor do few cells: each rank has the whole of flows of its own then.
bool shared_by_ranks(const Problem& problem, const SolverOptions& options);

/// How flows are solved for: GMRES restarts, where options do not say when. The directions that it keeps are most of
/// the memory, and few more iterations are needed.
SolverOptions flow_options(SolverOptions options);

/// What a linear system of such flows needs at its peak, on each of several ranks.
Estimate estimate_flow(const Problem& problem, const SolverOptions& options);

/// \throws InvalidEntry if options are out of range or do not go together, before anything is solved.
void validate(const std::shared_ptr<const VoxelImage>& image, const PermeabilityOptions& options,
              const SolverOptions& solver);

}  // namespace solenoid
