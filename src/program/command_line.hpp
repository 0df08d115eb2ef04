#pragma once
/// \file
/// The command line of a program: its commands and their exit codes, and the options that several of them have. The
/// studies have the same.

#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "problem/names.hpp"

// CLI11. Its header takes as long to compile as a study, so that one file alone includes it.
namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace solenoid::program {

enum ExitCode { solved = 0, not_converged = 1, bad_input = 2, resource_failure = 3 };

/// What a command does once the command line has been read; returns the exit code.
using Command = std::function<int()>;

/// An option of a command, and what else holds for it.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option type(const std::string& name) const;  ///< what its value is, for the help: "FILE"
  /// A number from `least` on, and up to `most` if there is such.
  Option from(double least, double most = std::numeric_limits<double>::infinity()) const;
  Option one_of(const std::vector<std::string>& words) const;
  Option required() const;
  Option excludes(const Option& other) const;
  Option shows_default() const;                 ///< the help says what the target holds now,
  Option shows(const std::string& text) const;  ///< or this
  [[nodiscard]] bool given() const;             ///< on the command line

 private:
  CLI::Option* option_;
};

/// The options of a command. Their targets must outlive them.
class CommandOptions {
 public:
  explicit CommandOptions(CLI::App& app) : app_(app) {}

  /// `names`: "-o,--output", or "case" for an argument without a name. T: int, std::uint64_t, double, a path (not
  /// empty: that is a variable of a script without value), std::vector<double> or std::vector<std::string>; lists are
  /// separated by commas.
  template <class T>
  Option add(const std::string& names, T& target, const std::string& help) const;
  /// True if it is there.
  Option add_flag(const std::string& names, bool& target, const std::string& help) const;
  /// One that may be there several times, a value each.
  Option add_repeated(const std::string& names, std::vector<std::string>& target, const std::string& help) const;
  /// read(value) keeps the value or throws an InputError.
  Option add_read(const std::string& names, std::function<void(const std::string&)> read,
                  const std::string& help) const;
  void remove(const std::string& name) const;

 private:
  CLI::App& app_;
};

/// Adds the options of a command to its part of the command line. The command must not outlive it.
using AddCommand = std::function<Command(const CommandOptions& options)>;

/// A program that consists of commands.
class CommandLine {
 public:
  /// What people call it and what it is for, as its help says.
  CommandLine(const std::string& name, const std::string& description);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  void set_version(const std::string& text);
  void add(const std::string& name, const std::string& help, const AddCommand& command);
  /// Runs the command that is asked for and returns its exit code; `help` and no command at all print the help. Errors
  /// become messages and exit codes here and nowhere else.
  int run(int argc, const char* const* argv);

 private:
  std::unique_ptr<CLI::App> app_;
  std::vector<std::pair<CLI::App*, Command>> commands_;
};

/// An option whose value is one of the names of `Choice`.
template <class Choice>
Option add_choice(const CommandOptions& options, const std::string& flag, Choice& target, const std::string& help) {
  std::vector<std::string> names;
  for (const auto& [name, value] : Names<Choice>::all) names.emplace_back(name);
  const auto set = [&target](const std::string& word) {
    for (const auto& [name, value] : Names<Choice>::all) {
      if (name == word) target = value;
    }
  };
  return options.add_read(flag, set, help).one_of(names).shows(std::string(name_of(target)));
}

/// --threads
void add_threads(const CommandOptions& options, int& threads);

/// Whether there was a Ctrl-C or a SIGTERM, which from the first call on do nothing else; a second one kills.
bool caught_interrupt();

/// \throws InputError if `folder` could not be created or written to.
void check_writable(const std::filesystem::path& folder);
/// The folder that a file is in.
std::filesystem::path folder_of(const std::filesystem::path& file);
/// \throws InputError if the file could not be written; `name` says which it is: "--json".
void check_target(const std::string& name, const std::filesystem::path& file);

}  // namespace solenoid::program
