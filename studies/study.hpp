#pragma once
/// \file
/// Named studies: reproductions and sweeps, each a subcommand of `solenoid study` with options of its own.
///
///     Command add_iterations(CLI::App& app) {
///       const auto options = std::make_shared<Options>();
///       add_choice(app, "--preset", options->preset, "...");
///       return [options] { return print_iterations(*options); };
///     }

#include "program/command_line.hpp"

namespace solenoid::studies {

using namespace program;  // commands, their options and exit codes

Command add_iterations(CLI::App& app);
Command add_convergence(CLI::App& app);
Command add_throughput(CLI::App& app);
Command add_capacity(CLI::App& app);
Command add_step104(CLI::App& app);
Command add_corners(CLI::App& app);
Command add_paper(CLI::App& app);

}  // namespace solenoid::studies
