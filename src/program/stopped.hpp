#pragma once
/// \file
/// What a checkpoint of a case holds besides the flow: the case itself, and how far its files are.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "solenoid/case.hpp"
#include "solenoid/checkpoint.hpp"
#include "time/settling.hpp"

namespace solenoid::program {

/// What has been done of a flow in time, besides its steps.
struct Done {
  int cycles = 0;
  std::vector<double> residuals;
  double seconds = 0.0;                ///< for steps and files
  std::uintmax_t history_size = 0;     ///< bytes of the history,
  std::string history_end;             ///< whose last line is this
  std::vector<double> series;          ///< times that have files
  std::vector<TimeAndChange> changes;  ///< of all steps, where a steady flow is asked for
  int checkpoints = 0;                 ///< this one included
};

/// A flow in time that goes on.
struct Stopped {
  Case what;
  Checkpoint flow;
  Done done;
};

/// For Checkpoint::note; `threads`: how many there are.
std::string note_of(const Case& what, int threads, const Done& done);
/// `end`: another one than the case has. \throws InputError as load_checkpoint(), and if it is a checkpoint of another
/// program, or beyond the end.
Stopped read_stopped(const std::filesystem::path& file, std::optional<double> end);

}  // namespace solenoid::program
