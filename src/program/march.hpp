#pragma once
/// \file
/// Flows in time, with what is written on the way.

#include <chrono>
#include <filesystem>
#include <optional>
#include <vector>

#include "output/result_json.hpp"
#include "program/progress.hpp"
#include "program/stopped.hpp"
#include "solenoid/averages.hpp"
#include "solenoid/case.hpp"

namespace solenoid::program {

/// Files that a flow in time writes on its way; empty paths are not asked for.
struct MarchTargets {
  std::filesystem::path history;     ///< CSV
  std::filesystem::path vtu;         ///< "flow.vtu": flow_0000.vtu and so on, and flow.pvd that says when each is
  std::filesystem::path picture;     ///< "flow.png": flow_0000.png and so on
  std::filesystem::path average;     ///< "flow_average.vtu": flow_average_0003.vtu and so on, and the .pvd
  std::filesystem::path profile;     ///< "flow_profile.csv": flow_profile_0003.csv and so on
  std::filesystem::path checkpoint;  ///< "flow_checkpoint.h5": flow_checkpoint_0000.h5 and so on, the last two of them
  /// What goes on from this checkpoint; the files go on, too, if they are in its folder, and otherwise begin anew.
  std::filesystem::path from;
};

/// write_vtu() of what several ranks, or one, have solved: the first one where each has all of it, as with small
/// meshes.
void write_cells(const Case& what, const Solution& solution, const std::filesystem::path& file);
void write_cells(const Case& what, const Averages& averages, const std::filesystem::path& file);
/// The picture of a solution and those of the fields of the case; the first rank writes. Returns their names.
std::vector<std::filesystem::path> write_pictures(const Case& what, const Solution& solution,
                                                  const std::filesystem::path& file);
/// The profile that the case asks for; the first rank writes.
void write_profile(const Case& what, const Averages& averages, const std::filesystem::path& file);

struct Marched {
  Result result;
  std::optional<Averages> averages;  ///< if the case asks for them and their time has come
};

/// Steps from the beginning, or from where it stopped, to the end of a case with a table [time]. Ends early if it is
/// asked to, or in time to write a checkpoint before the deadline: the report says so, and the solution is that of the
/// last step. Of several ranks the first writes.
Marched march(const Case& what, const MarchTargets& targets, std::optional<Stopped> from,
              std::chrono::steady_clock::time_point deadline, ProgressDisplay& display);

}  // namespace solenoid::program
