// The paper's Table 2: Poisson's equation against Stokes, on the same number of cells.
#include <fmt/format.h>

#include <cmath>

#include "problem/names.hpp"
#include "solver/hierarchy.hpp"
#include "studies/manufactured.hpp"
#include "studies/paper/experiment.hpp"
#include "studies/paper/published.hpp"
#include "studies/run.hpp"
#include "studies/timed_solve.hpp"

namespace solenoid::studies::paper {
namespace {

constexpr double rtol = 1e-6;

struct Column {
  const char* name;
  EquationKind equation;
  int order;
  PatchProblem patch;
  const published::Table2Column& printed;
};
constexpr Column columns[] = {
    {"Poisson Q_4", EquationKind::poisson, 4, PatchProblem::symmetric, published::poisson_q4},
    {"Poisson Q_7", EquationKind::poisson, 7, PatchProblem::symmetric, published::poisson_q7},
    {"Poisson, fused, Q_4", EquationKind::poisson, 4, PatchProblem::fused, published::poisson_fused_q4},
    {"Poisson, fused, Q_7", EquationKind::poisson, 7, PatchProblem::fused, published::poisson_fused_q7},
    {"Stokes RT_2", EquationKind::stokes, 2, PatchProblem::symmetric, published::stokes_rt2},
    {"Stokes RT_4", EquationKind::stokes, 4, PatchProblem::symmetric, published::stokes_rt4}};

/// Unknowns of a vertex patch with its boundary: (2 n)^3 of a scalar, and for Stokes 3 (2 n + 1) (2 n)^2 velocities.
int dofs_per_patch(EquationKind equation, int order) {
  const int m = 2 * (order + 1);
  return m * m * m + (equation == EquationKind::stokes ? 3 * (m + 1) * m * m : 0);
}

Json measure(const Setting& setting, const Column& column, int refine) {
  Problem problem = manufactured_problem(ManufacturedKind::gaussian, 3, column.order, refine);
  if (column.equation == EquationKind::poisson) {
    problem = {.mesh = Mesh::unit(3, refine), .order = column.order, .equation = EquationKind::poisson};
    problem.force[0] = 1.0;
  }
  SolverOptions options = setting.solver();
  options.rtol = rtol;
  options.multigrid.patch = column.patch;
  const Estimate need = estimate(problem, options);
  if (need.bytes_needed > need.bytes_available) return left_out("the memory does not suffice");
  const Hierarchy hierarchy(problem, options.multigrid, setting.engine.dense_limits());
  TimedSolve<float> timed(setting.engine, hierarchy, problem, options);
  Json row = {{"dofs", hierarchy.finest().dofs()}, {"cells", hierarchy.finest().grid.layout().owned_cells().size()}};
  row["solve_seconds"] = timed.solve_seconds();
  row["converged"] = timed.convergence().converged;
  row["iterations"] = timed.convergence().iterations;
  row["operator_fp64_seconds"] = timed.operator_double_seconds();
  row["smoothing_step_fp32_seconds"] = timed.smoothing_step_seconds();
  return row;
}

std::vector<Task> tasks(const Setting& setting) {
  std::vector<Task> list;
  const int refine = setting.quick ? 3 : 5;
  for (const Column& column : columns) {
    list.push_back({{{"column", column.name}, {"refine", refine}},
                    fmt::format("{}, {} cells", column.name, cells_text(3, refine)),
                    10.0 * unknowns_about(3, column.order, refine, column.equation),
                    [=, &setting, &column] { return measure(setting, column, refine); }});
  }
  return list;
}

void present(const Rows& all, const Machine& machine, report::Page& page) {
  const Rows rows = measured(all);
  page.heading("Table 2: Poisson against Stokes");
  const int refine = rows.empty() ? 5 : rows[0]["refine"].get<int>();
  report::Table table{
      .caption = fmt::format("{} cells, relative residual {:.0e}; times in ns per unknown, on {}; in brackets the "
                             "paper's, 32^3 cells on an A100",
                             cells_text(3, refine), rtol, machine.device),
      .head = {"", "unknowns of a patch", "operator fp64", "smoothing step fp32", "iterations", "solve"},
      .rows = {}};
  for (const Column& column : columns) {
    const published::Table2Column& printed = column.printed;
    std::vector<std::string> line{
        column.name, fmt::format("{} ({})", dofs_per_patch(column.equation, column.order), printed.dofs_per_patch)};
    const Rows found = where(rows, "column", column.name);
    const auto add = [&](const char* field, double value) {
      const auto seconds = found.empty() ? std::nullopt : number(found[0], Json::json_pointer(field));
      line.push_back(seconds ? fmt::format("{:.3g} ({})", *seconds / found[0]["dofs"].get<double>() * 1e9, value)
                             : fmt::format("- ({})", value));
    };
    add("/operator_fp64_seconds", printed.operator_ns);
    add("/smoothing_step_fp32_seconds", printed.smoothing_ns);
    line.push_back(found.empty() ? fmt::format("- ({})", printed.iterations)
                                 : fmt::format("{} ({})", found[0]["iterations"].get<int>(), printed.iterations));
    add("/solve_seconds", printed.solve_ns);
    table.rows.push_back(line);
  }
  page.table(table);
  page.text(
      "Poisson's equation with a force of 1, by which the iterations of the fused smoother are counted: with a smooth "
      "manufactured load there are fewer. Local problems of both equations have the residual as it is when a colour "
      "begins, computed inside the smoother; those of the fused one leave out what the paper's leave out. The paper's "
      "stopping test is on the preconditioned residual, ours on the true one.");
  remark_left_out(all, page);
}

}  // namespace

const Experiment table2{"table2", tasks, present};

}  // namespace solenoid::studies::paper
