#pragma once
/// \file
/// A few points of a domain, for a first look at fields that are to be known on all of it.

#include <optional>

#include "mesh/grid.hpp"
#include "solenoid/problem.hpp"

namespace solenoid {

/// The grid of a mesh, or of a coarser one that is fine enough for a first look, with all its cells here. None if there
/// are too many boxes: a first look is not to take long, nor memory. The problem must be valid.
std::optional<Grid> first_look(const Problem& problem);

/// Where fields are looked at in a cell, from 0 to 1 in each direction: where no finer mesh has a vertex, as a solution
/// may be singular there.
inline constexpr std::array<double, 2> first_look_rule{0.2113, 0.7887};

}  // namespace solenoid
