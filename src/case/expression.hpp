#pragma once
/// \file
/// Names in expressions.

#include <string>

namespace solenoid {

/// Why a parameter of expressions cannot have this name; empty if it can.
std::string why_no_parameter(const std::string& name);

}  // namespace solenoid
