#pragma once
/// \file
/// The table [permeability].

#include <string>
#include <vector>

#include "case/value.hpp"
#include "solenoid/permeability.hpp"

namespace solenoid {

PermeabilityOptions read_permeability(const Value& value);

std::vector<KeyInfo> permeability_infos();

/// The keys and tables that have no place beside [permeability]: it says what flows there are, and what is measured.
std::vector<std::string> keys_beside_permeability();

}  // namespace solenoid
