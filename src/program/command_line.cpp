#include "program/command_line.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <new>
#include <string_view>
#include <type_traits>

#include "base/new_file.hpp"
#include "case/keys.hpp"
#include "case/nearest.hpp"
#include "problem/validate.hpp"
#include "solenoid/error.hpp"
#include "solenoid/interrupt.hpp"
#include "solenoid/time_stepper.hpp"

namespace solenoid::program {

namespace fs = std::filesystem;

namespace {

/// \throws InputError if the first word is none of the commands that there are.
void check_command(const CLI::App& app, const std::vector<std::string>& words) {
  const auto commands = app.get_subcommands({});
  if (commands.empty() || words.empty() || words[0][0] == '-') return;
  std::vector<std::string_view> names;
  for (const CLI::App* command : commands) {
    if (command->get_name() == words[0]) return;
    names.emplace_back(command->get_name());
  }
  throw InputError(fmt::format("unknown command `{}`{}", words[0], suggestion(words[0], names)));
}

/// \throws InputError if a word that was not understood is an option that there is not.
void check_options(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  std::vector<std::string> names;
  for (const CLI::Option* option : (parsed.empty() ? app : *parsed[0]).get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  for (const std::string& word : app.remaining(true)) {
    if (word.size() < 2 || word[0] != '-') continue;
    const std::string option = word.substr(0, word.find('='));
    throw InputError(fmt::format("unknown option `{}`{}", option, suggestion(option, {names.begin(), names.end()})));
  }
}

/// `help solve` and the like as options, and the help for no words.
std::vector<std::string> with_help(std::vector<std::string> words) {
  if (words.empty()) return {"--help"};
  if (words[0] != "help") return words;
  words.erase(words.begin());
  words.resize(std::min<std::size_t>(words.size(), 1));
  words.emplace_back("--help");
  return words;
}

int fail(ExitCode code, const char* message) {
  fmt::print(stderr, "solenoid: {}\n", message);
  return code;
}

}  // namespace

CommandLine::CommandLine(const std::string& name, const std::string& description)
    : app_(std::make_unique<CLI::App>(description, name)) {
  app_->require_subcommand(1);
  app_->footer(
      "`help COMMAND` lists the options of a command.\nExit codes: 0 solved, 1 not converged, 2 bad input or usage, 3 "
      "device or memory failure");
  app_->failure_message(CLI::FailureMessage::simple);
}

CommandLine::~CommandLine() = default;

void CommandLine::set_version(const std::string& text) { app_->set_version_flag("-V,--version", text); }

void CommandLine::add(const std::string& name, const std::string& help, const AddCommand& command) {
  CLI::App* part = app_->add_subcommand(name, help);
  commands_.emplace_back(part, command(CommandOptions(*part)));
}

int CommandLine::run(int argc, const char* const* argv) {
  try {
    std::vector<std::string> words = with_help({argv + 1, argv + argc});
    check_command(*app_, words);
    try {
      std::reverse(words.begin(), words.end());
      app_->parse(std::move(words));
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() != 0) check_options(*app_);
      return app_->exit(error) == 0 ? solved : bad_input;
    }
    for (const auto& [part, command] : commands_) {
      if (part->parsed()) return command();
    }
    return bad_input;
  } catch (const InvalidEntry& error) {
    return fail(bad_input, (key_label(key_path(error.entry)) + ": " + error.problem).c_str());
  } catch (const InputError& error) {
    return fail(bad_input, error.what());
  } catch (const Interrupted& error) {
    return fail(not_converged, error.what());
  } catch (const StepFailed& error) {
    return fail(not_converged, error.what());
  } catch (const std::bad_alloc&) {
    return fail(resource_failure, "out of memory");
  } catch (const std::exception& error) {
    return fail(resource_failure, error.what());
  }
}

Option Option::type(const std::string& name) const {
  option_->type_name(name);
  return *this;
}

Option Option::from(double least, double most) const {
  const std::string range =
      std::isfinite(most) ? fmt::format("from {:g} to {:g}", least, most) : fmt::format(">= {:g}", least);
  const auto check = [=](const std::string& text) {
    double value = 0.0;
    const bool fits = CLI::detail::lexical_cast(text, value) && value >= least && value <= most;
    return fits ? std::string() : fmt::format("expected a number {}, got {}", range, text);
  };
  option_->check(CLI::Validator(check, range));
  return *this;
}

Option Option::one_of(const std::vector<std::string>& words) const {
  option_->check(CLI::IsMember(words));
  return *this;
}

Option Option::required() const {
  option_->required();
  return *this;
}

Option Option::excludes(const Option& other) const {
  option_->excludes(other.option_);
  return *this;
}

Option Option::shows_default() const {
  option_->capture_default_str();
  return *this;
}

Option Option::shows(const std::string& text) const {
  option_->default_str(text);
  return *this;
}

bool Option::given() const { return option_->count() > 0; }

template <class T>
Option CommandOptions::add(const std::string& names, T& target, const std::string& help) const {
  CLI::Option* const option = app_.add_option(names, target, help);
  if constexpr (std::is_same_v<T, fs::path>) {
    option->check([](const std::string& path) { return path.empty() ? "expected a path, got nothing" : ""; });
  } else if constexpr (std::is_same_v<T, std::vector<double>> || std::is_same_v<T, std::vector<std::string>>) {
    option->delimiter(',');
  }
  return Option(option);
}
template Option CommandOptions::add(const std::string&, int&, const std::string&) const;
template Option CommandOptions::add(const std::string&, std::uint64_t&, const std::string&) const;
template Option CommandOptions::add(const std::string&, double&, const std::string&) const;
template Option CommandOptions::add(const std::string&, fs::path&, const std::string&) const;
template Option CommandOptions::add(const std::string&, std::vector<double>&, const std::string&) const;
template Option CommandOptions::add(const std::string&, std::vector<std::string>&, const std::string&) const;

Option CommandOptions::add_flag(const std::string& names, bool& target, const std::string& help) const {
  return Option(app_.add_flag(names, target, help));
}

Option CommandOptions::add_repeated(const std::string& names, std::vector<std::string>& target,
                                    const std::string& help) const {
  return Option(app_.add_option(names, target, help)->allow_extra_args(false));
}

Option CommandOptions::add_read(const std::string& names, std::function<void(const std::string&)> read,
                                const std::string& help) const {
  const auto keep = [names, read = std::move(read)](const std::string& text) {
    try {
      read(text);
    } catch (const InputError& error) {
      throw CLI::ValidationError(names, error.what());
    }
  };
  return Option(app_.add_option_function<std::string>(names, keep, help));
}

void CommandOptions::remove(const std::string& name) const { app_.remove_option(app_.get_option(name)); }

void add_threads(const CommandOptions& options, int& threads) {
  options.add("--threads", threads, "CPU threads; 0: all cores").from(0).type("N");
}

bool caught_interrupt() {
  static std::atomic<bool> interrupted{false};
  static const bool installed = [] {
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted = true; };
    action.sa_flags = SA_RESETHAND | SA_RESTART;  // a file that is being written is not broken off
    return sigaction(SIGINT, &action, nullptr) == 0 && sigaction(SIGTERM, &action, nullptr) == 0;
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
