#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "problem/validate.hpp"
#include "solenoid/options.hpp"
#include "solenoid/problem.hpp"

namespace solenoid {
namespace {

/// `field`, but in regions what of_region(region) is, if anything.
template <class OfRegion>
ScalarField with_regions(const ScalarField& field, const std::vector<Region>& regions, const OfRegion& of_region) {
  std::vector<ScalarField::Piece> pieces;
  for (const Region& region : regions) {
    if (std::optional<ScalarField> there = of_region(region)) pieces.push_back({region.inside, std::move(*there)});
  }
  return ScalarField::piecewise(field, std::move(pieces));
}

}  // namespace

bool viscosity_varies(const Problem& problem) {
  return problem.varying_viscosity || std::any_of(problem.regions.begin(), problem.regions.end(),
                                                  [](const Region& region) { return region.viscosity.has_value(); });
}

bool mass_varies(const Problem& problem) {
  return problem.varying_mass || std::any_of(problem.regions.begin(), problem.regions.end(),
                                             [](const Region& region) { return region.mass.has_value(); });
}

ScalarField viscosity_field(const Problem& problem) {
  return with_regions(problem.varying_viscosity.value_or(problem.viscosity), problem.regions,
                      [](const Region& region) { return region.viscosity; });
}

ScalarField mass_field(const Problem& problem) {
  return with_regions(problem.varying_mass.value_or(problem.mass), problem.regions,
                      [](const Region& region) { return region.mass; });
}

VectorField force_field(const Problem& problem) {
  VectorField force;
  for (std::size_t c = 0; c < force.size(); ++c) {
    force[c] = with_regions(problem.force[c], problem.regions, [&](const Region& region) {
      return region.force ? std::optional((*region.force)[c]) : std::nullopt;
    });
  }
  return force;
}

void set_force(Problem& problem, const VectorField& force) {
  problem.force = force;
  for (Region& region : problem.regions) region.force.reset();
}

ViscousForm form_of(const Problem& problem) {
  return problem.form.value_or(viscosity_varies(problem) ? ViscousForm::stress : ViscousForm::gradient);
}

bool has_coefficients_by_cell(const Problem& problem) {
  return viscosity_varies(problem) || mass_varies(problem) || form_of(problem) == ViscousForm::stress;
}

int usual_max_iterations(const Problem& problem) {
  constexpr int by_cell = 200;
  return has_coefficients_by_cell(problem) ? by_cell : SolverOptions{}.max_iterations;
}

}  // namespace solenoid
