#include "solenoid/options.hpp"

namespace solenoid {

void SolverOptions::apply(Preset preset) {
  const bool paper = preset == Preset::paper;
  side = paper ? PreconditionerSide::left : PreconditionerSide::right;
  multigrid.colour_order = paper ? ColourOrder::lexicographic : ColourOrder::diagonal;
  multigrid.patch = paper ? PatchProblem::galerkin : PatchProblem::symmetric;
  multigrid.cycle_index = paper ? 1 : 0;
  multigrid.coarse_penalty = paper ? 1.0 : 0.0;
  multigrid.all_levels = paper;
}

}  // namespace solenoid
