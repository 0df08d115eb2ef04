#include "program/study.hpp"

#include <utility>

namespace solenoid::program {

const std::vector<Study>& studies() {
  static const std::vector<Study> all{
      {"iterations", "GMRES iterations over orders and levels; --preset paper: the paper's Table 1", add_iterations},
      {"convergence", "Errors and their orders over orders and refinements", add_convergence},
      {"throughput", "Time per unknown of each part, beside what the machine can do at most", add_throughput},
      {"capacity", "Full multigrid on the largest mesh that fits: memory, errors and their order", add_capacity},
      {"step104", "Error against time and unknowns on the problem of deal.II's step-104", add_step104},
      {"paper", "All tables and figures of the paper in one report", add_paper}};
  return all;
}

Command add_study(CLI::App& app) {
  app.require_subcommand(1);
  std::vector<std::pair<CLI::App*, Command>> commands;
  for (const auto& [name, help, add] : studies()) {
    CLI::App* part = app.add_subcommand(name, help);
    commands.emplace_back(part, add(*part));
  }
  return [commands] {
    for (const auto& [part, command] : commands) {
      if (part->parsed()) return command();
    }
    return static_cast<int>(bad_input);
  };
}

}  // namespace solenoid::program
