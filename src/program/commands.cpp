#include "program/commands.hpp"

#include <iostream>
#include <sstream>
#include <vector>

#include "mesh/first_look.hpp"

namespace solenoid::program {

namespace {

/// Points in cells, two by two in each. None if there are too many boxes.
std::vector<Point> sample(const Problem& problem) {
  const auto grid = first_look(problem);
  if (!grid) return {};
  std::vector<Point> points;
  for (const Record cell : grid->layout().owned_cells()) {
    for (int i = 0; i < 1 << grid->dim(); ++i) {
      Point& point = points.emplace_back(grid->corner(cell));
      for (int a = 0; a < grid->dim(); ++a) point[a] += first_look_rule[i >> a & 1] * grid->widths(cell)[a];
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
