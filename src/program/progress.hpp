#pragma once
/// \file
/// What people see on stderr while work goes on.

#include <chrono>
#include <string>

#include "solenoid/solver.hpp"

namespace solenoid::program {

/// On a terminal one line that is updated, with the time left on long work; otherwise one line per finished stage, or
/// with Lines::all one per message.
class ProgressDisplay {
 public:
  enum class Lines {
    none,
    stages,     ///< a line per finished stage stays
    all,        ///< a line per message stays, on a terminal too
    transient,  ///< nothing stays: what stays is printed by others, after clear()
  };

  explicit ProgressDisplay(Lines lines);
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;
  ~ProgressDisplay() { finish(); }

  void show(const Progress& progress);
  /// Erases the updated line of a terminal; the stage goes on.
  void clear() const;
  /// A line on stderr, unless nothing but errors is to be printed.
  void warn(const std::string& text);
  /// Ends the current stage.
  void finish();
  /// The latest message, "solve: iteration 3, residual 1.20e-05", or nothing between stages.
  [[nodiscard]] std::string latest() const;

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] double elapsed() const;

  Lines lines_;
  bool terminal_;
  Clock::time_point start_;
  Progress last_;  // the stage is empty before the first one and after the last
};

}  // namespace solenoid::program
