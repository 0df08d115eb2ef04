#include "program/commands.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <vector>

#include "base/new_file.hpp"
#include "mesh/grid.hpp"
#include "solenoid/error.hpp"

namespace solenoid::program {

namespace fs = std::filesystem;

namespace {

/// Points in cells of the mesh, or of a coarser one that is fine enough for a first look: two by two in each, none of
/// which lies where a finer mesh has a vertex, as a solution may be singular there. None if there are too many boxes.
std::vector<Point> sample(const Problem& problem) {
  constexpr std::int64_t enough_cells = 4096;
  constexpr std::int64_t too_many_boxes = 1'000'000;  // a first look is not to take long, nor memory
  constexpr std::array<double, 2> rule{0.2113, 0.7887};
  Mesh mesh = problem.mesh;
  std::int64_t cells = 1;
  for (int a = 0; a < mesh.dim; ++a) cells *= mesh.cells[a];
  if (cells > too_many_boxes) return {};
  for (mesh.refine = 0; mesh.refine < problem.mesh.refine && (cells <<= mesh.dim) <= enough_cells;) ++mesh.refine;
  const Grid grid(mesh, problem.boundary);
  std::vector<Point> points;
  for (Grid::Record cell = 0; cell < grid.cells(); ++cell) {
    for (int i = 0; i < 1 << mesh.dim; ++i) {
      Point& point = points.emplace_back(grid.corner(cell));
      for (int a = 0; a < mesh.dim; ++a) point[a] += rule[i >> a & 1] * grid.size()[a];
    }
  }
  return points;
}

/// \throws InputError where the exact solution is not finite.
void check_exact(const Case& what) {
  std::vector<ScalarField> fields;
  if (what.exact.velocity) fields.assign(what.exact.velocity->begin(), what.exact.velocity->end());
  if (what.exact.pressure) fields.push_back(*what.exact.pressure);
  if (what.exact.value) fields.push_back(*what.exact.value);
  if (fields.empty()) return;
  const std::vector<Point> points = sample(what.problem);
  std::vector<double> values(points.size());
  for (const ScalarField& field : fields) field.evaluate(points, values);
}

}  // namespace

CLI::Option* add_path(CLI::App& app, const std::string& flag, fs::path& target, const std::string& help) {
  const auto check = [](const std::string& path) { return path.empty() ? "expected a path, got nothing" : ""; };
  return app.add_option(flag, target, help)->check(check);
}

void add_threads(CLI::App& app, int& threads) {
  app.add_option("--threads", threads, "CPU threads; 0: all cores")->check(CLI::NonNegativeNumber);
}

void CaseArguments::add_to(CLI::App& app) {
  app.add_option("case", file, "case file (TOML)")->required()->type_name("CASE.toml");
  add_choice(app, "--device", solver.device, "where to solve");
  add_choice(app, "--precision", solver.precision, "of the multigrid cycle; residuals are always double");
  add_threads(app, solver.threads);
}

Case CaseArguments::read() const {
  Case what = read_case(file);
  what.solver.device = solver.device;
  what.solver.precision = solver.precision;
  what.solver.threads = solver.threads;
  check_exact(what);
  return what;
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
