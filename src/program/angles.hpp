#pragma once
/// \file
/// What people are told of the angles of sheared cells.

#include <string>

#include "solenoid/mesh.hpp"

namespace solenoid::program {

/// "smallest angle 30 degrees: ...", or nothing of boxes.
std::string angles_of(const Mesh& mesh);
/// The same if the angle is small, otherwise nothing.
std::string small_angles(const Mesh& mesh);

}  // namespace solenoid::program
