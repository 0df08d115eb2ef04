// Double against mixed precision over problem size.
#include <fmt/format.h>

#include "solver/hierarchy.hpp"
#include "studies/manufactured.hpp"
#include "studies/paper/experiment.hpp"
#include "studies/report/svg.hpp"
#include "studies/run.hpp"
#include "studies/timed_solve.hpp"

namespace solenoid::studies::paper {
namespace {

constexpr double rtol = 1e-8;

template <class S>
Json measure(const Setting& setting, const Problem& problem) {
  SolverOptions options = setting.solver();
  options.rtol = rtol;
  options.precision = sizeof(S) == sizeof(double) ? Precision::full_double : Precision::mixed;
  const Estimate need = estimate(problem, options);
  if (need.bytes_needed > need.bytes_available) return left_out("the memory does not suffice");
  const Hierarchy hierarchy(problem, options.multigrid, setting.engine.dense_limits());
  TimedSolve<S> timed(setting.engine, hierarchy, problem, options);
  const double seconds = timed.solve_seconds();
  return {{"dofs", hierarchy.finest().dofs()},
          {"converged", timed.convergence().converged},
          {"iterations", timed.convergence().iterations},
          {"seconds", seconds}};
}

std::vector<Task> tasks(const Setting& setting) {
  std::vector<Task> list;
  const double most = setting.quick ? 3e5 : 1.4e8;
  for (const int order : {1, 2, 3, 4}) {
    for (int refine = 1; unknowns_about(3, order, refine) <= most; ++refine) {
      for (const bool mixed : {false, true}) {
        list.push_back(
            {{{"order", order}, {"refine", refine}, {"precision", mixed ? "mixed" : "double"}},
             fmt::format("RT_{}, {} cells, {} precision", order, cells_text(3, refine), mixed ? "mixed" : "double"),
             10.0 * unknowns_about(3, order, refine),
             [=, &setting] {
               const Problem problem = manufactured_problem(ManufacturedKind::gaussian, 3, order, refine);
               return mixed ? measure<float>(setting, problem) : measure<double>(setting, problem);
             }});
      }
    }
  }
  return list;
}

void present(const Rows& all, const Machine& machine, report::Page& page) {
  const Rows rows = measured(all);
  page.heading("Double against mixed precision");
  page.text(fmt::format(
      "Unknowns per second of a solve by GMRES to {:.0e}, without set-up, on {}. Mixed: cycles in single precision, "
      "iteration and residuals in double. On an A100 the paper reaches more than 20 million unknowns per second in "
      "mixed "
      "precision, up to 1.6 times as many as in double.",
      rtol, machine.device));
  report::LineChart chart;
  chart.x = {.title = "unknowns", .logarithmic = true};
  chart.y = {.title = "million unknowns per second", .logarithmic = true};
  report::Table table{.caption = "On the largest mesh of both",
                      .head = {"", "unknowns", "iterations", "double, million/s", "mixed, million/s", "gain"},
                      .rows = {}};
  for (int order = 1; order <= 4; ++order) {
    for (const char* precision : {"mixed", "double"}) {
      const bool mixed = precision == std::string("mixed");
      report::Series series{.name = fmt::format("k = {}, {}", order, precision),
                            .points = {},
                            .colour = order - 1,
                            .marker = order - 1,
                            .dashed = !mixed};
      for (const Json& row : where(where(rows, "order", order), "precision", precision)) {
        const double dofs = row["dofs"];
        series.points.push_back({dofs, 1e-6 * dofs / row["seconds"].get<double>()});
      }
      chart.series.push_back(series);
    }
    const Rows part = where(rows, "order", order);
    for (auto row = part.rbegin(); row != part.rend(); ++row) {
      const Rows same = where(part, "refine", (*row)["refine"]);
      if (same.size() != 2) continue;
      const auto rate = [&](const char* precision) {
        const Json found = where(same, "precision", precision).at(0);
        return 1e-6 * found["dofs"].get<double>() / found["seconds"].get<double>();
      };
      table.rows.push_back({fmt::format("RT_{}", order), fmt::format("{}", (*row)["dofs"].get<long>()),
                            fmt::format("{}", (*row)["iterations"].get<int>()), fmt::format("{:.4g}", rate("double")),
                            fmt::format("{:.4g}", rate("mixed")),
                            fmt::format("{:.2f}", rate("mixed") / rate("double"))});
      break;
    }
  }
  page.figure(svg(chart), "Solid: mixed. Dashed: double.");
  page.table(table);
  remark_left_out(all, page);
}

}  // namespace

const Experiment precision{"precision", tasks, present};

}  // namespace solenoid::studies::paper
