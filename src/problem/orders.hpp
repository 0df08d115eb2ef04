#pragma once
/// \file
/// Which orders are compiled for which engine.

#include <vector>

#include "solenoid/choices.hpp"

namespace solenoid {

/// The orders that this build has for the engine of a device (cpu or cuda), ascending.
std::vector<int> orders_for(DeviceChoice device, int dim, EquationKind equation);

}  // namespace solenoid
