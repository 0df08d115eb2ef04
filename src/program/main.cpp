// solenoid: the command line.
#include <string_view>
#include <utility>

#include "program/commands.hpp"
#include "program/launch.hpp"
#include "solenoid/version.hpp"

int main(int argc, char** argv) {
  using namespace solenoid::program;
  CommandLine line("solenoid", "Incompressible viscous flow with exactly divergence-free velocities");
  line.set_version(std::string("solenoid ") + solenoid::version);
  line.add("solve", "Solve what a case file describes", add_solve);
  line.add("restart", "Go on with a flow in time from a checkpoint, to the same bits as if it had never stopped",
           add_restart);
  line.add("permeability", "Compute the permeability of the image in a case file", add_permeability);
  line.add("check", "Validate a case file and say what would be solved", add_check);
  line.add("info", "The build, the devices and what is supported", add_info);
  line.add("study", "Reproductions and sweeps",
           [&](const CommandOptions&) { return [&]() -> int { start_studies(argv + 2); }; });
  // What follows `study` is for the studies to read, and so is `help study`.
  const auto is = [&](int i, std::string_view word) { return i < argc && argv[i] == word; };
  if (is(1, "help") && is(2, "study")) std::swap(argv[1], argv[2]);
  if (is(1, "study")) return line.run(2, argv);
  return run_as_ranks([&] { return line.run(argc, argv); });
}
