// What coefficients by cell and sheared cells cost: kernels beside those of boxes with constant coefficients.
#include <fmt/format.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "solenoid/error.hpp"
#include "solver/discretisation.hpp"
#include "solver/hierarchy.hpp"
#include "studies/manufactured.hpp"
#include "studies/run.hpp"
#include "studies/study.hpp"
#include "studies/timed_solve.hpp"

namespace solenoid::studies {
namespace {

struct Options : StudyArguments {
  std::vector<double> sizes{1e6};
  bool kernels = false;
};

/// Cells and coefficients that differ from the first one's.
constexpr std::array<const char*, 4> kinds{"constant", "by cell", "stress form", "sheared"};

Problem problem_of(const std::string& kind, int dim, int order, int refine) {
  Problem problem = manufactured_problem(ManufacturedKind::trigonometric, dim, order, refine);
  if (kind == "by cell" || kind == "stress form") {
    problem.form = kind == "by cell" ? ViscousForm::gradient : ViscousForm::stress;
    problem.varying_viscosity = ScalarField::expression("exp(2*x*y)", dim);
  } else if (kind == "sheared") {
    const Point third = dim == 3 ? Point{0.5, 0.28867513459481287, 0.816496580927726} : Point{0, 0, 1};
    problem.mesh.edges = {{{1, 0, 0}, {0.5, 0.8660254037844386, 0}, third}};  // at 60 degrees to each other
  }
  return problem;
}

class CellsStudy {
 public:
  explicit CellsStudy(const Options& options)
      : options_(options), run_(options, "cells", 0.0), engine_(make_engine(options.device, options.threads)) {}

  int operator()() {
    check_orders(options_.dim, options_.orders);
    run_.json["dim"] = options_.dim;
    run_.json["rows"] = Json::array();
    run_.print(
        "ns per unknown, and in parentheses over that of constant coefficients\n"
        "order    cells     unknowns  kind         operator fp64  operator fp32  smoothing step fp32");
    for (const int order : options_.orders) {
      for (const double size : options_.sizes) {
        constant_.clear();
        for (const char* const kind : kinds) {
          add(kind, order, refine_about(options_.dim, order, size));
          if (StudyRun::interrupted()) return run_.finish(false);
        }
      }
    }
    return run_.finish(true);
  }

 private:
  void add(const std::string& kind, int order, int refine) {
    const Problem problem = problem_of(kind, options_.dim, order, refine);
    SolverOptions solver;
    solver.device = options_.device;
    solver.threads = options_.threads;
    solver.method = Method::vcycle;
    const std::string cells = cells_text(options_.dim, refine);
    try {
      check(problem, solver);
    } catch (const InputError& error) {
      run_.print(fmt::format("RT_{:<3} {:>7}  {:>11}  {:<11}  {}", order, cells, "", kind, error.what()));
      return;
    }
    run_.show(fmt::format("RT_{}, {}, {}", order, cells, kind));
    const Hierarchy hierarchy(problem, solver.multigrid, engine_->dense_limits());
    TimedSolve<float> timed(*engine_, hierarchy, problem, solver);
    timed.limit(10.0);
    constexpr Pace pace = Pace::at_once;
    const std::vector<double> seconds{timed.operator_double_seconds(pace), timed.operator_seconds(pace),
                                      timed.smoothing_step_seconds(pace)};
    if (constant_.empty()) constant_ = seconds;
    const auto dofs = hierarchy.finest().dofs();
    const auto text = [&](std::size_t i) {
      return fmt::format("{:.4f} ({:4.2f})", seconds[i] / static_cast<double>(dofs) * 1e9, seconds[i] / constant_[i]);
    };
    Json row{{"order", order},
             {"refine", refine},
             {"kind", kind},
             {"dofs", dofs},
             {"device", engine_->description()},
             {"seconds",
              {{"operator_fp64", seconds[0]}, {"operator_fp32", seconds[1]}, {"smoothing_step_fp32", seconds[2]}}}};
    run_.print(fmt::format("RT_{:<3} {:>7}  {:>11}  {:<11}  {:>13}  {:>13}  {:>19}", order, cells, dofs, kind, text(0),
                           text(1), text(2)));
    if (options_.kernels) {
      for (const KernelUse& kernel : engine_->profile([&] { timed.smoothing_step(); })) {
        run_.print(fmt::format("    {:8.2f} us, {:3} registers, {:3} bytes spilled, occupancy {:.2f}: {:.90}",
                               kernel.seconds * 1e6, kernel.registers, kernel.local_bytes, kernel.occupancy,
                               kernel.name));
      }
    }
    run_.json["rows"].push_back(std::move(row));
  }

  const Options& options_;
  StudyRun run_;
  std::unique_ptr<Engine> engine_;
  std::vector<double> constant_;  // seconds
};

}  // namespace

Command add_cells(const CommandOptions& line) {
  const auto options = std::make_shared<Options>();
  options->dim = 3;
  options->orders = {1, 2, 3};
  options->add_to(line, "3", "1,2,3");
  line.add("--sizes", options->sizes, "numbers of unknowns, as 1e6,3e6; the nearest refinements are taken")
      .from(1, 1e12)
      .shows_default();
  line.add_flag("--kernels", options->kernels, "of a GPU: list the kernels of a smoothing step");
  return [options] { return CellsStudy(*options)(); };
}

}  // namespace solenoid::studies
