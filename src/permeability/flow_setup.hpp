#pragma once
/// \file
/// Which problems the flows are that a permeability is made of.

#include <array>
#include <memory>
#include <vector>

#include "solenoid/permeability.hpp"

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

/// How flows are solved for: GMRES restarts, where options do not say when. The directions that it keeps are most of
/// the memory, and few more iterations are needed.
SolverOptions flow_options(SolverOptions options);

/// \throws InvalidEntry if options are out of range or do not go together, before anything is solved.
void validate(const std::shared_ptr<const VoxelImage>& image, const PermeabilityOptions& options,
              const SolverOptions& solver);

}  // namespace solenoid
