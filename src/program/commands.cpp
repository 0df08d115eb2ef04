#include "program/commands.hpp"

#include <array>
#include <iostream>
#include <sstream>
#include <vector>

#include "mesh/grid.hpp"

namespace solenoid::program {

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
  for (const Record cell : grid.layout().owned_cells()) {
    for (int i = 0; i < 1 << mesh.dim; ++i) {
      Point& point = points.emplace_back(grid.corner(cell));
      for (int a = 0; a < mesh.dim; ++a) point[a] += rule[i >> a & 1] * grid.widths(cell)[a];
    }
  }
  return points;
}

std::string text_of_stdin() {
  std::ostringstream text;
  text << std::cin.rdbuf();
  return text.str();
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

void CaseArguments::add_to(const CommandOptions& line) {
  line.add("case", file, "case file (TOML); -: stdin").required().type("CASE.toml");
  line.add_repeated("--set", settings,
                    "set a key of the case, as mesh.refine=5 or 'physics.force=[\"y\", 0]'; may be repeated")
      .type("KEY=VALUE");
  add_choice(line, "--device", solver.device, "where to solve");
  add_choice(line, "--precision", solver.precision, "of the multigrid cycle; residuals are always double");
  add_threads(line, solver.threads);
  add_choice(line, "--transport", solver.transport, "how messages between ranks with GPUs travel");
}

Case CaseArguments::read() const {
  Case what = from_stdin() ? parse_case(text_of_stdin(), name(), settings) : read_case(file, settings);
  what.solver.device = solver.device;
  what.solver.precision = solver.precision;
  what.solver.threads = solver.threads;
  what.solver.transport = solver.transport;
  check_exact(what);
  return what;
}

}  // namespace solenoid::program
