#pragma once
/// \file
/// What is measured on a solution for the result file and the table that the program prints.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "solenoid/output.hpp"

namespace solenoid {

struct Measures {
  Errors errors;                         ///< against the fields that the case knows
  std::optional<double> divergence_max;  ///< if there is a velocity
  std::vector<Point> probe_velocity;     ///< NaN outside the domain
  std::vector<double> probe_pressure;    ///< or Poisson's u
  // What OutputOptions ask for.
  std::vector<BoundaryForce> forces;
  std::vector<double> fluxes;  ///< through the planes of OutputOptions::fluxes
  std::optional<double> kinetic_energy;
  std::optional<double> dissipation;
  std::optional<Point> permeability;
};

/// `errors`, if they have been measured already.
Measures measure(const Case& what, const Solution& solution, const std::optional<Errors>& errors = {});

/// The text of the result file; without measures what is known without evaluating the solution.
std::string result_json(const Case& what, const Report& report, const Measures* measures);
/// That of a permeability.
std::string result_json(const Case& what, const Permeability& result);
/// \throws InputError if the ranks do not have the same case and options, in the same build (a commit). Collective.
void check_same(const Communicator& ranks, const Case& what, std::string_view build);
/// write_result() with measures at hand.
void write_result(const Case& what, const Report& report, const Measures& measures, const std::filesystem::path& file);

}  // namespace solenoid
