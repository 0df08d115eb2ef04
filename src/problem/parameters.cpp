#include <fmt/format.h>

#include <string>
#include <vector>

#include "solenoid/error.hpp"
#include "solenoid/problem.hpp"

namespace solenoid {
namespace {

/// visit(field) for all fields of a problem.
template <class P, class F>
void for_fields(P& problem, const F& visit) {
  const auto for_components = [&](auto& field) {
    for (auto& component : field) visit(component);
  };
  auto& boundary = problem.boundary;
  if (problem.varying_viscosity) visit(*problem.varying_viscosity);
  if (problem.varying_mass) visit(*problem.varying_mass);
  for (auto& region : problem.regions) {
    visit(region.inside);
    if (region.viscosity) visit(*region.viscosity);
    if (region.mass) visit(*region.mass);
    if (region.force) for_components(*region.force);
  }
  for_components(problem.force);
  for (auto& side : boundary.sides) for_components(side.data);
  for_components(boundary.holes.data);
  for (auto& region : boundary.regions) {
    visit(region.where);
    for_components(region.condition.data);
  }
  for (auto& hole : boundary.single_holes) for_components(hole.condition.data);
}

}  // namespace

Parameters parameters_of(const Problem& problem) {
  Parameters all;
  for_fields(problem,
             [&](const ScalarField& field) { all.insert(field.parameters().begin(), field.parameters().end()); });
  return all;
}

Problem with_parameters(Problem problem, const Parameters& values) {
  const Parameters known = parameters_of(problem);
  for (const auto& [name, value] : values) {
    if (known.contains(name)) continue;
    std::vector<std::string> names;
    for (const auto& [other, ignored] : known) names.push_back(fmt::format("`{}`", other));
    throw InputError(fmt::format("no expression of the problem depends on a parameter `{}`; they depend on {}", name,
                                 names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
  }
  for_fields(problem, [&](ScalarField& field) { field = field.at(values); });
  return problem;
}

}  // namespace solenoid
