#pragma once
/// \file
/// What is measured on a solution for the result file and the table that the program prints.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "solenoid/output.hpp"

namespace solenoid {

struct Measures {
  std::optional<double> velocity_error;  ///< L2, if the case has an exact velocity
  std::optional<double> pressure_error;  ///< L2, if the case has an exact pressure
  std::optional<double> value_error;     ///< L2, if the case has an exact value of Poisson's u
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

Measures measure(const Case& what, const Solution& solution);

/// The text of the result file; without measures what is known without evaluating the solution.
std::string result_json(const Case& what, const Report& report, const Measures* measures);
/// write_result() with measures at hand.
void write_result(const Case& what, const Report& report, const Measures& measures, const std::filesystem::path& file);

}  // namespace solenoid
