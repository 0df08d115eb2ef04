#pragma once
/// \file
/// Whether a flow in time is on its way to a steady one.

#include <array>
#include <string>
#include <vector>

namespace solenoid {

/// A time, and StepReport::change of the step that reached it.
using TimeAndChange = std::array<double, 2>;

/// What is seen of a flow that is not as steady as it is wanted to be: how much it changes, how that was at half of the
/// time, and when it would be steady if it went on so. In words for people: "the velocity changes by ...".
std::string settling(const std::vector<TimeAndChange>& changes, double wanted);

}  // namespace solenoid
