#include "permeability/flow_setup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "problem/validate.hpp"
#include "solver/estimate.hpp"
#include "solver/hierarchy.hpp"

namespace solenoid {

std::vector<FlowSetup> flow_setups(int dim, const PermeabilityOptions& options) {
  std::vector<FlowSetup> setups;
  const bool across = options.sides == SidesAcross::periodic;
  const bool shared = across && options.drive == Drive::force;
  for (int direction = 0; direction < dim; ++direction) {
    if (!options.directions[direction]) continue;
    if (shared && !setups.empty()) {
      setups[0].directions.push_back(direction);
      continue;
    }
    FlowSetup& setup = setups.emplace_back();
    setup.directions = {direction};
    for (int a = 0; a < dim; ++a) setup.periodic[a] = a == direction ? options.drive == Drive::force : across;
  }
  return setups;
}

FlowElement finer_element(int dim, const PermeabilityOptions& options) {
  FlowElement element = element_of(options);
  if (options.error == ErrorCheck::refinement) {
    ++element.refine;
    return element;
  }
  const std::vector<int> orders = available_orders(dim);
  const auto next = std::upper_bound(orders.begin(), orders.end(), options.order);
  if (next == orders.end()) {
    throw InvalidEntry(
        "permeability.error",
        fmt::format("this build has no order above {} to compare with in {}D: use \"refinement\"", options.order, dim));
  }
  element.order = *next;
  element.lumped = false;
  return element;
}

Problem flow_problem(std::shared_ptr<const VoxelImage> image, const FlowSetup& setup, Drive drive,
                     const FlowElement& element) {
  Problem problem;
  problem.mesh = Mesh::of(std::move(image), element.refine);
  problem.order = element.order;
  problem.lumped = element.lumped;
  auto& sides = problem.boundary.sides;
  for (int a = 0; a < problem.mesh.dim; ++a) {
    if (setup.periodic[a]) sides[2 * a].kind = sides[2 * a + 1].kind = SideKind::periodic;
  }
  const int direction = setup.directions.front();
  if (drive == Drive::force) {
    problem.force[direction] = 1.0;
  } else {
    sides[2 * direction].kind = sides[2 * direction + 1].kind = SideKind::outflow;
    // The traction nu du/dn - p n of a pressure p, where n points against the flow.
    sides[2 * direction].data[direction] = problem.mesh.upper[direction] - problem.mesh.lower[direction];
  }
  return problem;
}

bool shared_by_ranks(const Problem& problem, const SolverOptions& options) {
  if (problem.lumped || problem.mesh.refine == 0) return false;
  std::array<int, 3> extent{1, 1, 1};
  for (int a = 0; a < problem.mesh.dim; ++a) extent[a] = problem.mesh.cells[a] << problem.mesh.refine;
  return is_shared({options.communicator, options.replicated_cells}, extent);
}

SolverOptions flow_options(SolverOptions options) {
  constexpr int few = 6;
  if (options.restart == 0) options.restart = few;
  return options;
}

Estimate estimate_flow(const Problem& problem, const SolverOptions& options) {
  // Besides load and solution: the flow with all its boundary values. If a force drives it, so that nothing says what
  // the pressure is, also the load of the sides, and the load without the constants of the pressure.
  const auto& sides = problem.boundary.sides;
  const bool open = std::any_of(sides.begin(), sides.end(), [](const Side& s) { return s.kind == SideKind::outflow; });
  SolverOptions of_flow = flow_options(options);
  if (!shared_by_ranks(problem, options)) of_flow.communicator = nullptr;
  return estimate(problem, of_flow, MoreVectors{.always = open ? 1.0 : 3.0});
}

void validate(const std::shared_ptr<const VoxelImage>& image, const PermeabilityOptions& options,
              const SolverOptions& solver) {
  if (image == nullptr) throw InvalidEntry("mesh.image", "a permeability is that of an image: there is none");
  const int dim = image->dim();
  const auto setups = flow_setups(dim, options);
  if (setups.empty()) {
    throw InvalidEntry("permeability.directions",
                       fmt::format("expected at least one direction of the image, which has {}", dim));
  }
  if (solver.method == Method::fmg) {
    throw InvalidEntry("method",
                       "flows along several directions share their set-up, and full multigrid has one for each load: "
                       "use \"gmres\" or \"vcycle\"");
  }
  std::vector<FlowElement> elements{element_of(options)};
  if (options.error != ErrorCheck::none) elements.push_back(finer_element(dim, options));
  for (const FlowElement& element : elements) {
    const Problem problem = flow_problem(image, setups.front(), options.drive, element);
    validate(problem);
    validate(problem, solver);
  }
}

}  // namespace solenoid
