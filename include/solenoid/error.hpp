#pragma once
/// \file
/// Errors as part of the interface: each class is one exit code of the program.

#include <stdexcept>

namespace solenoid {

/// Any error that solenoid reports. Its message names what was wrong, where, what was expected and what to do.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Wrong input: a case file, an option, a mesh, boundary data or an expression. Exit code 2.
struct InputError : Error {
  using Error::Error;
};

/// The device or its memory does not suffice. Exit code 3.
struct ResourceError : Error {
  using Error::Error;
};

}  // namespace solenoid
