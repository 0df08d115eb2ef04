#pragma once
/// \file
/// Flows in time, with what is written on the way.

#include <chrono>
#include <filesystem>
#include <optional>

#include "output/result_json.hpp"
#include "program/progress.hpp"
#include "program/stopped.hpp"
#include "solenoid/case.hpp"

namespace solenoid::program {

/// Files that a flow in time writes on its way; empty paths are not asked for.
struct MarchTargets {
  std::filesystem::path history;     ///< CSV
  std::filesystem::path vtu;         ///< "flow.vtu": flow_0000.vtu and so on, and flow.pvd that says when each is
  std::filesystem::path picture;     ///< "flow.png": flow_0000.png and so on
  std::filesystem::path checkpoint;  ///< "flow_checkpoint.h5": flow_checkpoint_0000.h5 and so on, the last two of them
  /// What goes on from this checkpoint; the files go on, too, if they are in its folder, and otherwise begin anew.
  std::filesystem::path from;
};

/// write_vtu() of what several ranks, or one, have solved: the first one where each has all of it, as with small
/// meshes.
void write_cells(const Case& what, const Solution& solution, const std::filesystem::path& file);

/// Steps from the beginning, or from where it stopped, to the end of a case with a table [time]. Ends early if it is
/// asked to, or in time to write a checkpoint before the deadline: the report says so, and the solution is that of the
/// last step. Of several ranks the first writes.
Result march(const Case& what, const MarchTargets& targets, std::optional<Stopped> from,
             std::chrono::steady_clock::time_point deadline, ProgressDisplay& display);

}  // namespace solenoid::program
