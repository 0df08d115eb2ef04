#include "program/commands.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "solenoid/error.hpp"

namespace solenoid::program {

namespace fs = std::filesystem;

void CaseArguments::add_to(CLI::App& app) {
  app.add_option("case", file, "case file (TOML)")->required()->type_name("CASE.toml");
  add_choice(app, "--device", solver.device, "where to solve");
  add_choice(app, "--precision", solver.precision, "of the multigrid cycle; residuals are always double");
  app.add_option("--threads", solver.threads, "CPU threads; 0: all cores")->check(CLI::Range(0, 65536));
}

Case CaseArguments::read() const {
  Case what = read_case(file);
  what.solver.device = solver.device;
  what.solver.precision = solver.precision;
  what.solver.threads = solver.threads;
  return what;
}

const std::atomic<bool>& catch_interrupt() {
  static std::atomic<bool> interrupted{false};
  static const bool installed = [] {
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted = true; };
    action.sa_flags = SA_RESETHAND;
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

void check_target(const fs::path& json) {
  if (fs::is_directory(json)) throw InputError(fmt::format("--json '{}' is a folder, expected a file", json.string()));
  check_writable(folder_of(json));
}

}  // namespace solenoid::program
