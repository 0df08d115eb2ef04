#pragma once
/// \file
/// Sums over flows at the Gauss points of cells, as engines have them.

#include <span>

#include "engine/flow_data.hpp"
#include "level/coefficients.hpp"
#include "mesh/grid.hpp"
#include "solenoid/integrals.hpp"

namespace solenoid {

CellMap cell_map(const Grid& grid);

/// Of these coefficients, in whose memory it is.
ViscosityOfCells viscosity_of_cells(const Coefficients& coefficients);

/// What shares of a grid's cells make together, added in their order.
FlowIntegrals integrals_of(std::span<const FlowPartial> shares, const Grid& grid);
double dissipation_of(std::span<const FlowPartial> shares, const Grid& grid);

}  // namespace solenoid
