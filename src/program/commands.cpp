#include "program/commands.hpp"

namespace solenoid::program {

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

}  // namespace solenoid::program
