#pragma once
/// \file
/// What a flow is like as a whole, out of its integrals.

#include "mesh/grid.hpp"
#include "solenoid/integrals.hpp"

namespace solenoid {

inline FlowSummary summary_of(const FlowIntegrals& all, double viscosity, const Grid& grid) {
  return {.kinetic_energy = 0.5 * all.velocity_square,
          .dissipation = viscosity * all.gradient_square,
          .enstrophy = 0.5 * all.vorticity_square,
          .divergence_max = all.max_speed == 0.0
                                ? 0.0
                                : all.max_divergence * grid.metric().smallest_width(grid.dim()) / all.max_speed};
}

}  // namespace solenoid
