#pragma once
/// \file
/// Errors that know which key of a case file they are about, and what can be said of a mesh without its problem.

#include <string>

#include "solenoid/error.hpp"
#include "solenoid/mesh.hpp"

namespace solenoid {

/// A problem with the value of a key, "mesh.holes[0]" for example. The message says "[mesh] holes[0]: problem".
struct KeyError : InputError {
  KeyError(std::string key_path, std::string what_is_wrong);
  std::string path;
  std::string problem;
};

/// "mesh.holes[0]" as people read it: "[mesh] holes[0]".
std::string key_label(const std::string& path);

/// \throws KeyError if the box or a hole is not valid by itself. Whether the domain is connected depends on periodic
/// sides too.
void validate(const Mesh& mesh);

}  // namespace solenoid
