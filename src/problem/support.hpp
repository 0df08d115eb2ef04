#pragma once
/// \file
/// What goes together: the one list of combinations that there are not. Validation refuses them, `solenoid info
/// --support` and docs/support.md list them, and a test runs what is left.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "solenoid/options.hpp"

namespace solenoid {

/// Something to decide about a problem or its solver, and what there is to choose from.
struct Axis {
  std::string_view name;
  std::string_view meaning;
  std::vector<std::string_view> values;
};

/// All axes but the order, which depends on the build (orders_for).
std::span<const Axis> support_axes();

/// Values of one axis that do not go with values of another.
struct Rule {
  std::string_view axis;
  std::vector<std::string_view> values;
  std::string_view with_axis;  ///< empty: they go with nothing
  std::vector<std::string_view> with_values;
  std::string_view reason;  ///< what the error says; {}, if it is there, stands for the value
};

std::span<const Rule> support_rules();

/// What was chosen on an axis, and the entry of Problem or SolverOptions that says so.
struct Decision {
  std::string_view axis;
  std::string value;
  std::string entry;
};

std::vector<Decision> decisions(const Problem& problem);
std::vector<Decision> decisions(const SolverOptions& options);

/// The rule that decisions break, or nullptr; `entry` and `value` are those that the rule does not allow.
struct Refusal {
  const Rule* rule = nullptr;
  std::string entry;
  std::string reason;
};
Refusal refusal(std::span<const Decision> decisions);

}  // namespace solenoid
