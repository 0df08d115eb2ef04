#include "program/command_line.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <new>
#include <string_view>

#include "base/new_file.hpp"
#include "case/keys.hpp"
#include "case/nearest.hpp"
#include "problem/validate.hpp"
#include "solenoid/error.hpp"

namespace solenoid::program {

namespace fs = std::filesystem;

namespace {

/// \throws InputError if the next word is none of the commands that there are.
void check_command(CLI::App& app, int argc, const char* const* argv) {
  const auto commands = app.get_subcommands({});
  if (commands.empty() || argc == 0 || *argv[0] == '-') return;
  std::vector<std::string_view> names;
  for (CLI::App* command : commands) {
    if (command->get_name() == argv[0]) return;
    names.emplace_back(command->get_name());
  }
  throw InputError(fmt::format("unknown command `{}`{}", argv[0], suggestion(argv[0], names)));
}

int fail(ExitCode code, const char* message) {
  fmt::print(stderr, "solenoid: {}\n", message);
  return code;
}

}  // namespace

CommandLine::CommandLine(const std::string& name, const std::string& description) : app_(description, name) {
  app_.require_subcommand(1);
  app_.footer("Exit codes: 0 solved, 1 not converged, 2 bad input or usage, 3 device or memory failure");
  app_.failure_message(CLI::FailureMessage::simple);
}

void CommandLine::add(const std::string& name, const std::string& help, const AddCommand& command) {
  CLI::App* part = app_.add_subcommand(name, help);
  commands_.emplace_back(part, command(*part));
}

int CommandLine::run(int argc, const char* const* argv) {
  try {
    check_command(app_, argc - 1, argv + 1);
    try {
      app_.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return app_.exit(error) == 0 ? solved : bad_input;
    }
    for (const auto& [part, command] : commands_) {
      if (part->parsed()) return command();
    }
    return bad_input;
  } catch (const InvalidEntry& error) {
    return fail(bad_input, (key_label(key_path(error.entry)) + ": " + error.problem).c_str());
  } catch (const InputError& error) {
    return fail(bad_input, error.what());
  } catch (const std::bad_alloc&) {
    return fail(resource_failure, "out of memory");
  } catch (const std::exception& error) {
    return fail(resource_failure, error.what());
  }
}

CLI::Option* add_path(CLI::App& app, const std::string& flag, fs::path& target, const std::string& help) {
  const auto check = [](const std::string& path) { return path.empty() ? "expected a path, got nothing" : ""; };
  return app.add_option(flag, target, help)->check(check);
}

void add_threads(CLI::App& app, int& threads) {
  app.add_option("--threads", threads, "CPU threads; 0: all cores")->check(CLI::NonNegativeNumber);
}

const std::atomic<bool>& catch_interrupt() {
  static std::atomic<bool> interrupted{false};
  static const bool installed = [] {
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted = true; };
    action.sa_flags = SA_RESETHAND | SA_RESTART;  // a file that is being written is not broken off
    return sigaction(SIGINT, &action, nullptr) == 0;
  }();
  static_cast<void>(installed);
  return interrupted;
}

void check_writable(const fs::path& folder) {
  std::error_code error;
  fs::path existing = fs::absolute(folder);
  while (!fs::exists(existing, error) && existing.has_relative_path()) existing = existing.parent_path();
  if (!fs::is_directory(existing, error)) {
    throw InputError(fmt::format("cannot write to '{}': '{}' is not a folder", folder.string(), existing.string()));
  }
  std::string trial = (existing / ".solenoid.XXXXXX").string();
  const int file = mkstemp(trial.data());
  if (file < 0) {
    throw InputError(
        fmt::format("cannot write to '{}': no permission to create files in '{}'", folder.string(), existing.string()));
  }
  close(file);
  fs::remove(trial, error);
}

fs::path folder_of(const fs::path& file) { return file.has_parent_path() ? file.parent_path() : fs::path("."); }

void check_target(const std::string& name, const fs::path& file) {
  std::error_code ignored;
  if (!file.has_filename() || fs::is_directory(file, ignored)) {
    throw InputError(fmt::format("{} '{}' is a folder, expected a file", name, file.string()));
  }
  if (const auto replaced = replaced_by(file)) return check_writable(folder_of(*replaced));
  if (access(file.c_str(), W_OK) != 0) {
    throw InputError(fmt::format("{} '{}': no permission to write to it", name, file.string()));
  }
}

}  // namespace solenoid::program
