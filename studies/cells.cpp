// What coefficients by cell and sheared cells cost: kernels beside those of boxes with constant coefficients.
#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "problem/regions.hpp"
#include "solenoid/error.hpp"
#include "solver/discretisation.hpp"
#include "solver/hierarchy.hpp"
#include "solver/load.hpp"
#include "studies/manufactured.hpp"
#include "studies/run.hpp"
#include "studies/study.hpp"
#include "studies/timed_solve.hpp"
#include "studies/timing.hpp"

namespace solenoid::studies {
namespace {

struct Options : StudyArguments {
  std::vector<double> sizes{1e6};
  int rounds = 1;
  bool kernels = false;
};

/// Cells and coefficients that differ from the first one's.
constexpr std::array<const char*, 6> kinds{"constant",  "by cell", "stress form",
                                           "at points", "sheared", "sheared, at points"};

Problem problem_of(const std::string& kind, int dim, int order, int refine) {
  Problem problem = manufactured_problem(ManufacturedKind::trigonometric, dim, order, refine);
  if (kind != "constant" && kind != "sheared") {
    problem.form = kind == "by cell" ? ViscousForm::gradient : ViscousForm::stress;
    problem.varying_viscosity = ScalarField::expression("exp(2*x*y)", dim);
    if (kind.ends_with("at points")) problem.viscosity_points = ViscosityPlaces::gauss;
  }
  if (kind.starts_with("sheared")) {
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
    run_.json["rounds"] = options_.rounds;
    run_.json["rows"] = Json::array();
    run_.print(
        "ns per unknown, and in parentheses over that of constant coefficients\n"
        "order    cells     unknowns  kind                operator fp64  operator fp32  smoothing step fp32      "
        "convection");
    for (const int order : options_.orders) {
      for (const double size : options_.sizes) {
        const int refine = refine_about(options_.dim, order, size);
        std::array<Measured, kinds.size()> all;
        for (int round = 0; round < options_.rounds; ++round) {
          for (std::size_t i = 0; i < kinds.size(); ++i) {
            measure(kinds[i], order, refine, all[i]);
            if (StudyRun::interrupted()) return run_.finish(false);
          }
        }
        for (std::size_t i = 0; i < kinds.size(); ++i) add(kinds[i], order, refine, all[i], all[0]);
      }
    }
    return run_.finish(true);
  }

 private:
  /// Of one kind of cells.
  struct Measured {
    std::string refused;  ///< why, if it was
    std::int64_t dofs = 0;
    /// Of the operator in both precisions, of a smoothing step and, where viscosities play no part in it, of the
    /// convective term.
    std::array<std::vector<double>, 4> seconds;
    std::vector<KernelUse> kernels;

    [[nodiscard]] double median(std::size_t i) const { return median_of(seconds[i]); }
  };

  void measure(const std::string& kind, int order, int refine, Measured& result) {
    const Problem problem = problem_of(kind, options_.dim, order, refine);
    SolverOptions solver;
    solver.device = options_.device;
    solver.threads = options_.threads;
    solver.method = Method::vcycle;
    try {
      check(problem, solver);
    } catch (const InputError& error) {
      result.refused = error.what();
      return;
    }
    run_.show(fmt::format("RT_{}, {}, {}", order, cells_text(options_.dim, refine), kind));
    const Hierarchy hierarchy(problem, solver.multigrid, engine_->dense_limits());
    TimedSolve<float> timed(*engine_, hierarchy, problem, solver);
    timed.limit(10.0);
    constexpr Pace pace = Pace::at_once;
    result.dofs = hierarchy.finest().dofs();
    result.seconds[0].push_back(timed.operator_double_seconds(pace));
    result.seconds[1].push_back(timed.operator_seconds(pace));
    result.seconds[2].push_back(timed.smoothing_step_seconds(pace));
    if (!has_coefficients_by_cell(problem))
      result.seconds[3].push_back(convection_seconds(problem, hierarchy.finest()));
    if (options_.kernels) result.kernels = engine_->profile([&] { timed.smoothing_step(); });
  }

  [[nodiscard]] double convection_seconds(const Problem& problem, const Level& finest) const {
    const Level level{finest.equation, finest.coefficients, Grid(problem.mesh, problem.boundary, true)};
    const auto convection = engine_->make_convection(level, ConvectiveFlux::upwind);
    std::array<Vector<double>, 3> x;
    for (Vector<double>& vector : x) vector = {*engine_, level.size()};
    x[0].upload(random_vector(level, 1).data());
    constexpr double enough = 0.2;
    return median_seconds(
        enough, [] {}, [&] { convection->apply(x[0].data(), x[1].data(), x[2].data()); });
  }

  void add(const std::string& kind, int order, int refine, const Measured& measured, const Measured& constant) {
    const std::string cells = cells_text(options_.dim, refine);
    if (!measured.refused.empty()) {
      run_.print(fmt::format("RT_{:<3} {:>7}  {:>11}  {:<18}  {}", order, cells, "", kind, measured.refused));
      return;
    }
    const auto text = [&](std::size_t i) {
      const double seconds = measured.median(i);
      return fmt::format("{:.4f} ({:4.2f})", seconds / static_cast<double>(measured.dofs) * 1e9,
                         seconds / constant.median(i));
    };
    Json row{{"order", order},
             {"refine", refine},
             {"kind", kind},
             {"dofs", measured.dofs},
             {"device", engine_->description()},
             {"seconds",
              {{"operator_fp64", measured.median(0)},
               {"operator_fp32", measured.median(1)},
               {"smoothing_step_fp32", measured.median(2)}}}};
    const bool has_convection = !measured.seconds[3].empty();
    if (has_convection) row["seconds"]["convection"] = measured.median(3);
    run_.print(fmt::format("RT_{:<3} {:>7}  {:>11}  {:<18}  {:>13}  {:>13}  {:>19}  {:>14}", order, cells,
                           measured.dofs, kind, text(0), text(1), text(2), has_convection ? text(3) : ""));
    for (const KernelUse& kernel : measured.kernels) {
      run_.print(fmt::format("    {:8.2f} us, {:3} registers, {:3} bytes spilled, occupancy {:.2f}: {:.90}",
                             kernel.seconds * 1e6, kernel.registers, kernel.local_bytes, kernel.occupancy,
                             kernel.name));
    }
    run_.json["rows"].push_back(std::move(row));
  }

  const Options& options_;
  StudyRun run_;
  std::unique_ptr<Engine> engine_;
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
  line.add("--rounds", options->rounds, "how often all kinds of cells are measured, in turn; medians count")
      .from(1, 1000)
      .shows_default();
  line.add_flag("--kernels", options->kernels, "of a GPU: list the kernels of a smoothing step");
  return [options] { return CellsStudy(*options)(); };
}

}  // namespace solenoid::studies
