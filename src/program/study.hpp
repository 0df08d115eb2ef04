#pragma once
/// \file
/// Named studies: reproductions and sweeps, each a subcommand of `solenoid study` with options of its own.

#include <vector>

#include "program/commands.hpp"

namespace solenoid::program {

/// A study. `add` puts its options on its own part of the command line and returns what to do with them:
///
///     Command add_iterations(CLI::App& app) {
///       const auto options = std::make_shared<Options>();
///       add_choice(app, "--preset", options->preset, "...");
///       return [options] { return print_iterations(*options); };
///     }
struct Study {
  const char* name;
  const char* help;
  Command (*add)(CLI::App& app);
};

Command add_iterations(CLI::App& app);
Command add_convergence(CLI::App& app);
Command add_throughput(CLI::App& app);
Command add_capacity(CLI::App& app);
Command add_step104(CLI::App& app);
Command add_paper(CLI::App& app);

/// All studies, in the order of the help.
const std::vector<Study>& studies();

}  // namespace solenoid::program
