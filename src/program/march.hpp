#pragma once
/// \file
/// Flows in time, with what is written on the way.

#include <filesystem>

#include "output/result_json.hpp"
#include "program/progress.hpp"
#include "solenoid/case.hpp"

namespace solenoid::program {

/// Files that a flow in time writes on its way; empty paths are not asked for.
struct MarchTargets {
  std::filesystem::path history;  ///< CSV
  std::filesystem::path vtu;      ///< "flow.vtu": flow_0000.vtu and so on, and flow.pvd that says when each is
  std::filesystem::path picture;  ///< "flow.png": flow_0000.png and so on
};

/// Steps from the beginning to the end of a case with a table [time]. Ends early if it is asked to: the report says
/// so, and the solution is that of the last step. Of several ranks the first writes.
Result march(const Case& what, const MarchTargets& targets, ProgressDisplay& display);

}  // namespace solenoid::program
