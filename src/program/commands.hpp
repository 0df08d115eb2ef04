#pragma once
/// \file
/// The commands of the program.

#include <filesystem>
#include <string>
#include <vector>

#include "problem/names.hpp"
#include "program/command_line.hpp"
#include "solenoid/case.hpp"

namespace solenoid::program {

// Each adds its options to its part of the command line. The command must not outlive it.
Command add_solve(const CommandOptions& line);
Command add_restart(const CommandOptions& line);
Command add_permeability(const CommandOptions& line);
Command add_check(const CommandOptions& line);
Command add_info(const CommandOptions& line);

/// Becomes the program of the studies, which has the rest of the command line: `arguments` ends with a null pointer.
/// \throws InputError if it is not there.
[[noreturn]] void start_studies(char** arguments);

/// What every command that reads a case has on its command line: the case, --set, --device, --precision and --threads.
struct CaseArguments {
  std::filesystem::path file;
  std::vector<std::string> settings;
  SolverOptions solver;

  void add_to(const CommandOptions& line);
  [[nodiscard]] bool from_stdin() const { return file == "-"; }
  /// Of the case, for people.
  [[nodiscard]] std::string name() const { return from_stdin() ? "stdin" : file.string(); }
  /// The case with the options of the command line. \throws InputError also where its exact solution is found not to be
  /// finite, so that nobody solves for errors that there are not.
  [[nodiscard]] Case read() const;
};

}  // namespace solenoid::program
