#pragma once
/// \file
/// Named studies: reproductions and sweeps, each a subcommand of `solenoid study` with options of its own.
///
///     Command add_iterations(const CommandOptions& line) {
///       const auto options = std::make_shared<Options>();
///       add_choice(line, "--preset", options->preset, "...");
///       return [options] { return print_iterations(*options); };
///     }

#include "program/command_line.hpp"

namespace solenoid::studies {

using namespace program;  // commands, their options and exit codes

Command add_iterations(const CommandOptions& line);
Command add_convergence(const CommandOptions& line);
Command add_throughput(const CommandOptions& line);
Command add_step(const CommandOptions& line);
Command add_capacity(const CommandOptions& line);
Command add_coefficients(const CommandOptions& line);
Command add_cells(const CommandOptions& line);
Command add_step104(const CommandOptions& line);
Command add_corners(const CommandOptions& line);
Command add_voxels(const CommandOptions& line);
Command add_sinkers(const CommandOptions& line);
Command add_scaling(const CommandOptions& line);
Command add_paper(const CommandOptions& line);

}  // namespace solenoid::studies
