#pragma once
/// \file
/// How messages about a field begin.

#include <string>

namespace solenoid {

/// "force[0]: " for a field with that label, or nothing.
inline std::string prefix(const std::string& label) { return label.empty() ? "" : label + ": "; }

}  // namespace solenoid
