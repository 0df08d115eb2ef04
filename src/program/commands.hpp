#pragma once
/// \file
/// The commands of the program.

#include <CLI/CLI.hpp>
#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "case/names.hpp"
#include "solenoid/case.hpp"

namespace solenoid::program {

enum ExitCode { solved = 0, not_converged = 1, bad_input = 2, resource_failure = 3 };

/// What a command does once the command line has been read; returns the exit code.
using Command = std::function<int()>;

// Each adds its options to its part of the command line. The command must not outlive it.
Command add_solve(CLI::App& app);
Command add_check(CLI::App& app);
Command add_info(CLI::App& app);
Command add_study(CLI::App& app);

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

/// --threads
void add_threads(CLI::App& app, int& threads);

/// What every command that reads a case has on its command line: the case, --device, --precision and --threads.
struct CaseArguments {
  std::filesystem::path file;
  SolverOptions solver;

  void add_to(CLI::App& app);
  /// The case with the options of the command line. \throws InputError also where its exact solution is found not to be
  /// finite, so that nobody solves for errors that there are not.
  [[nodiscard]] Case read() const;
};

/// The flag that Ctrl-C sets from the first call on. A second Ctrl-C kills.
const std::atomic<bool>& catch_interrupt();

/// \throws InputError if `folder` could not be created or written to.
void check_writable(const std::filesystem::path& folder);
/// The folder that a file is in.
std::filesystem::path folder_of(const std::filesystem::path& file);
/// \throws InputError if the file could not be written; `name` says which it is: "--json".
void check_target(const std::string& name, const std::filesystem::path& file);

}  // namespace solenoid::program
