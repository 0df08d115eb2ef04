#pragma once
/// \file
/// What a flow in time goes on from, as if it had never stopped.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "solenoid/averages.hpp"
#include "solenoid/solution.hpp"

namespace solenoid {

/// TimeStepper::checkpoint() makes it, a TimeStepper begins with it.
struct Checkpoint {
  /// The flow at the end of a step. With Runge-Kutta schemes its pressure is the mean over the step.
  struct State {
    double time = 0.0;
    double length = 0.0;  ///< of the step that led to it; 0: the beginning
    Solution flow;
    Point gradient{};  ///< StepReport::gradient
  };

  std::vector<State> states{};  ///< the last one first, as many as a scheme wants
  int steps = 0;                ///< since the beginning
  std::optional<Averages> averages{};
  /// Names of data that were set between steps, by TimeStepper::set_force() ("force"), set_boundary() ("xmin"),
  /// set_reaction() ("mass") and set_viscosity() ("viscosity"), which are not here: who goes on sets them again.
  std::vector<std::string> set{};
  std::string note{};  ///< whatever its owner needs to go on, besides the flow

  /// Writes an HDF5 file (docs/solution-file.md), whole or not at all. \throws Error if the file cannot be written,
  /// InputError if the build has no HDF5.
  void save(const std::filesystem::path& file) const;
};

/// What Checkpoint::save() has written; as load_solution() without force and boundary data. \throws InputError if the
/// file cannot be read, is no checkpoint, or was cut off or changed; ResourceError if memory does not suffice.
Checkpoint load_checkpoint(const std::filesystem::path& file);

}  // namespace solenoid
