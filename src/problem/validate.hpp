#pragma once
/// \file
/// Errors that know which entry of a problem or of its options they are about, and what can be said of a mesh without
/// its problem, or of one that is a porous sample.

#include <string>
#include <string_view>

#include "solenoid/error.hpp"
#include "solenoid/mesh.hpp"
#include "solenoid/problem.hpp"

namespace solenoid {

/// A wrong entry of Problem or SolverOptions: "viscosity", "mesh.holes[0]", "boundary.xmin" or "local_solver", for
/// example. The message says "viscosity: problem"; who knows where the entry was written may say that instead.
struct InvalidEntry : InputError {
  InvalidEntry(std::string entry_path, const std::string& what_is_wrong);
  std::string entry;
  std::string problem;
};

/// What numbers may be, in words.
namespace expected {
inline constexpr std::string_view rtol = "a number > 0 and < 1";
inline constexpr std::string_view max_iterations = "an integer >= 1";
inline constexpr std::string_view restart = "an integer >= 0";
inline constexpr std::string_view cycles = "an integer >= 1";
inline constexpr std::string_view damping = "a number from 0 to 1";
inline constexpr std::string_view cycle_index = "0, 1 or 2";
inline constexpr std::string_view coarse_penalty = "a finite number >= 0";
}  // namespace expected

/// As validate(problem), whether this build has the order or not.
void validate_but_for_order(const Problem& problem);
/// \throws InvalidEntry if the box or a hole is not valid by itself.
void validate(const Mesh& mesh);

/// After how many iterations case files and Python give up where nobody says: more where coefficients vary by cell.
int usual_max_iterations(const Problem& problem);
/// \throws InputError unless solutions of the problem have a velocity.
void require_velocity(const Problem& problem);
/// \throws InvalidEntry unless the mean velocity of the flow says what the permeability of the domain is: no reaction,
/// walls that do not move, a constant force, in directions that are periodic.
void validate_permeability(const Problem& problem);
/// Whether there can be averages along directions.
void validate_profile(const Problem& problem, const std::array<bool, 3>& along);

}  // namespace solenoid
