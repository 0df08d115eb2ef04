#include "problem/other_coefficients.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "problem/validate.hpp"

namespace solenoid {
namespace {

/// One of the coefficients of a problem.
struct Which {
  const char* entry;
  double Problem::*number;
  std::optional<ScalarField> Problem::*field;
  std::optional<ScalarField> Region::*in_region;
  bool (*varies)(const Problem&);
};
constexpr Which viscosity_of_problem{"viscosity", &Problem::viscosity, &Problem::varying_viscosity, &Region::viscosity,
                                     &viscosity_varies};
constexpr Which mass_of_problem{"mass", &Problem::mass, &Problem::varying_mass, &Region::mass, &mass_varies};

Problem with(Problem problem, const Which& which, const ScalarField& value) {
  const std::optional<double> number = value.constant();
  if (number && !which.varies(problem)) {
    problem.*which.number = *number;
    return problem;
  }
  if (!has_coefficients_by_cell(problem)) {
    throw InvalidEntry(
        which.entry, fmt::format("expected a number, as constant coefficients were set up: set up anew with a {} that "
                                 "varies, be it an array of one and the same number",
                                 which.entry));
  }
  problem.*which.field = value;
  for (Region& region : problem.regions) (region.*which.in_region).reset();
  return problem;
}

bool depends(const ScalarField& field, const std::string& parameter) { return field.parameters().contains(parameter); }

}  // namespace

Problem with_viscosity(Problem problem, const ScalarField& viscosity) {
  if (!viscosity.constant() && has_coefficients_by_cell(problem) && !viscosity_varies(problem) && !problem.form) {
    throw InvalidEntry("viscosity",
                       "was one number at set-up, so that the form of the viscous term is \"gradient\", and one that "
                       "varies has the form \"stress\" unless another is named: these are different problems. Set up "
                       "with the form that is meant, form = \"stress\" or form = \"gradient\"");
  }
  return with(std::move(problem), viscosity_of_problem, viscosity);
}

Problem with_mass(Problem problem, const ScalarField& mass) { return with(std::move(problem), mass_of_problem, mass); }

bool coefficients_depend_on(const Problem& problem, const std::string& parameter) {
  const auto is_in = [&](const std::optional<ScalarField>& field) { return field && depends(*field, parameter); };
  return is_in(problem.varying_viscosity) || is_in(problem.varying_mass) ||
         std::any_of(problem.regions.begin(), problem.regions.end(), [&](const Region& region) {
           const bool has_any = region.viscosity || region.mass;
           return (has_any && depends(region.inside, parameter)) || is_in(region.viscosity) || is_in(region.mass);
         });
}

}  // namespace solenoid
