// solenoid: the command line. Errors become exit codes here and nowhere else.
#include <fmt/format.h>

#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "case/nearest.hpp"
#include "program/commands.hpp"
#include "solenoid/error.hpp"
#include "solenoid/version.hpp"

namespace {

using namespace solenoid::program;

/// \throws InputError if the next word is none of the commands that there are.
void check_command(CLI::App& app, int argc, const char* const* argv) {
  const auto commands = app.get_subcommands({});
  if (commands.empty() || argc == 0 || *argv[0] == '-') return;
  std::vector<std::string_view> names;
  for (CLI::App* command : commands) {
    if (command->get_name() == argv[0]) return check_command(*command, argc - 1, argv + 1);
    names.emplace_back(command->get_name());
  }
  throw solenoid::InputError(fmt::format("unknown command `{}`{}", argv[0], solenoid::suggestion(argv[0], names)));
}

int run(int argc, char** argv) {
  CLI::App app("Incompressible viscous flow with exactly divergence-free velocities", "solenoid");
  app.set_version_flag("--version", std::string("solenoid ") + solenoid::version);
  app.require_subcommand(1);
  app.footer("Exit codes: 0 solved, 1 not converged, 2 bad input or usage, 3 device or memory failure");

  std::vector<std::pair<CLI::App*, Command>> commands;
  const auto add = [&](const char* name, const char* help, Command (*add_command)(CLI::App&)) {
    CLI::App* part = app.add_subcommand(name, help);
    commands.emplace_back(part, add_command(*part));
  };
  add("solve", "Solve what a case file describes", add_solve);
  add("check", "Validate a case file and say what would be solved", add_check);
  add("info", "The build, the devices and what is supported", add_info);
  add("study", "Reproductions and sweeps", add_study);

  check_command(app, argc - 1, argv + 1);
  app.failure_message(CLI::FailureMessage::simple);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? solved : bad_input;
  }
  for (const auto& [part, command] : commands) {
    if (part->parsed()) return command();
  }
  return bad_input;
}

int fail(ExitCode code, const char* message) {
  fmt::print(stderr, "solenoid: {}\n", message);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const solenoid::InputError& error) {
    return fail(bad_input, error.what());
  } catch (const std::bad_alloc&) {
    return fail(resource_failure, "out of memory");
  } catch (const std::exception& error) {
    return fail(resource_failure, error.what());
  }
}
