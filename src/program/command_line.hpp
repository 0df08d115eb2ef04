#pragma once
/// \file
/// The command line of a program: its commands and their exit codes, and the options that several of them have. The
/// studies have the same.

#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "problem/names.hpp"

namespace solenoid::program {

enum ExitCode { solved = 0, not_converged = 1, bad_input = 2, resource_failure = 3 };

/// What a command does once the command line has been read; returns the exit code.
using Command = std::function<int()>;
/// Adds the options of a command to its part of the command line. The command must not outlive it.
using AddCommand = std::function<Command(CLI::App& app)>;

/// A program that consists of commands.
class CommandLine {
 public:
  /// What people call it and what it is for, as its help says.
  CommandLine(const std::string& name, const std::string& description);

  void set_version(const std::string& text) { app_.set_version_flag("-V,--version", text); }
  void add(const std::string& name, const std::string& help, const AddCommand& command);
  /// Runs the command that is asked for and returns its exit code; `help` and no command at all print the help. Errors
  /// become messages and exit codes here and nowhere else.
  int run(int argc, const char* const* argv);

 private:
  CLI::App app_;
  std::vector<std::pair<CLI::App*, Command>> commands_;
};

/// An option whose value is one of the names of `Choice`.
template <class Choice>
CLI::Option* add_choice(CLI::App& app, const std::string& flag, Choice& target, const std::string& help) {
  std::vector<std::string> names;
  for (const auto& [name, value] : Names<Choice>::all) names.emplace_back(name);
  const auto set = [&target](const std::string& word) {
    for (const auto& [name, value] : Names<Choice>::all) {
      if (name == word) target = value;
    }
  };
  return app.add_option_function<std::string>(flag, set, help)
      ->check(CLI::IsMember(names))
      ->default_str(std::string(name_of(target)));
}

/// An option that is the path of a file or folder. An empty one is an error: it is a variable of a script without
/// value.
CLI::Option* add_path(CLI::App& app, const std::string& flag, std::filesystem::path& target, const std::string& help);

/// A check of an option: a number from `least` on, and up to `most` if there is such.
CLI::Validator number_from(double least, double most = std::numeric_limits<double>::infinity());

/// --threads
void add_threads(CLI::App& app, int& threads);

/// Whether there was a Ctrl-C, which from the first call on does nothing else; a second one kills.
bool caught_interrupt();

/// \throws InputError if `folder` could not be created or written to.
void check_writable(const std::filesystem::path& folder);
/// The folder that a file is in.
std::filesystem::path folder_of(const std::filesystem::path& file);
/// \throws InputError if the file could not be written; `name` says which it is: "--json".
void check_target(const std::string& name, const std::filesystem::path& file);

}  // namespace solenoid::program
