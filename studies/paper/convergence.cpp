// Errors in 3D over meshes and over run time.
#include <fmt/format.h>

#include <cmath>

#include "solver/hierarchy.hpp"
#include "studies/manufactured.hpp"
#include "studies/paper/experiment.hpp"
#include "studies/report/svg.hpp"
#include "studies/run.hpp"
#include "studies/timed_solve.hpp"

namespace solenoid::studies::paper {
namespace {

constexpr auto kind = ManufacturedKind::gaussian;
constexpr double rtol = 1e-10;  // so that the finest errors are the discretisation's

Json measure(const Setting& setting, int order, int refine) {
  SolverOptions options = setting.solver();
  options.rtol = rtol;
  const Problem problem = manufactured_problem(kind, 3, order, refine);
  Json row = solve_row(problem, options, [](const Result& result, Json& figures) {
    const Manufactured exact(kind, 3);
    figures["error"] = {{"velocity_l2", result.solution.velocity_error(exact.velocity)},
                        {"pressure_l2", result.solution.pressure_error(exact.pressure)}};
    figures["divergence_max"] = result.solution.divergence_max();
  });
  if (row.contains("left_out")) return row;
  const Hierarchy hierarchy(problem, options.multigrid, setting.engine.dense_limits());
  row["seconds"] = TimedSolve<float>(setting.engine, hierarchy, problem, options).solve_seconds();
  return row;
}

std::vector<Task> tasks(const Setting& setting) {
  std::vector<Task> list;
  const double most = setting.quick ? 3e5 : 8e7;
  for (const int order : {1, 2, 3, 4}) {
    for (int refine = 1; unknowns_about(3, order, refine) <= most; ++refine) {
      list.push_back({{{"order", order}, {"refine", refine}},
                      fmt::format("RT_{}, {} cells", order, cells_text(3, refine)),
                      3.0 * unknowns_about(3, order, refine),
                      [=, &setting] { return measure(setting, order, refine); }});
    }
  }
  return list;
}

report::LineChart chart(const Rows& rows, const char* field, const char* what, bool over_time) {
  report::LineChart chart;
  chart.x = {.title = over_time ? "seconds" : "cells per direction", .logarithmic = true};
  chart.y = {.title = fmt::format("L2 error of the {}", what), .logarithmic = true};
  for (int order = 1; order <= 4; ++order) {
    report::Series series{.name = fmt::format("k = {}", order), .points = {}, .colour = order - 1, .marker = order - 1};
    for (const Json& row : where(rows, "order", order)) {
      const double x = over_time ? row["seconds"].get<double>() : std::ldexp(1.0, row["refine"].get<int>());
      series.points.push_back({x, row["error"][field].get<double>()});
    }
    chart.series.push_back(series);
  }
  return chart;
}

void present(const Rows& all, const Machine& machine, report::Page& page) {
  const Rows rows = measured(all);
  page.heading("Convergence in three dimensions");
  page.text(
      fmt::format("The paper's problem in the unit cube, GMRES to {:.0e} in mixed precision. The paper shows the same "
                  "curves without "
                  "numbers; the orders k + 1 are those that it finds.",
                  rtol));
  page.figure(svg(chart(rows, "velocity_l2", "velocity", false)), "Velocity.");
  page.figure(svg(chart(rows, "pressure_l2", "pressure", false)), "Pressure.");
  report::Table table{.caption = "Observed orders between the last two meshes",
                      .head = {"", "expected", "velocity", "pressure", "largest divergence, of |u|/h"},
                      .rows = {}};
  for (int order = 1; order <= 4; ++order) {
    const Rows part = where(rows, "order", order);
    if (part.size() < 2) continue;
    const Json& coarse = part[part.size() - 2];
    const Json& fine = part.back();
    const auto observed = [&](const char* field) {
      return fmt::format("{:.2f}",
                         std::log2(coarse["error"][field].get<double>() / fine["error"][field].get<double>()));
    };
    double divergence = 0.0;
    for (const Json& row : part) divergence = std::max(divergence, row["divergence_max"].get<double>());
    table.rows.push_back({fmt::format("RT_{}", order), std::to_string(order + 1), observed("velocity_l2"),
                          observed("pressure_l2"), fmt::format("{:.1e}", divergence)});
  }
  page.table(table);
  page.text(
      "The divergence is at rounding in double precision. In mixed precision it is that of single-precision cycles, "
      "times "
      "the tolerance of the solve.");
  page.heading("Error against run time");
  page.text(
      fmt::format("Time of the solve, without set-up, on {}. As in the paper, higher orders reach an accuracy sooner.",
                  machine.device));
  page.figure(svg(chart(rows, "velocity_l2", "velocity", true)), "Velocity.");
  page.figure(svg(chart(rows, "pressure_l2", "pressure", true)), "Pressure.");
  remark_left_out(all, page);
}

}  // namespace

const Experiment convergence_3d{"convergence_3d", tasks, present};

}  // namespace solenoid::studies::paper
