// The largest problem that fits: full multigrid, errors and memory.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "studies/manufactured.hpp"
#include "studies/run.hpp"
#include "studies/study.hpp"

namespace solenoid::studies {
namespace {

constexpr auto kind = ManufacturedKind::trigonometric;
constexpr int cycles = 2;  // on a level, so that the pressure has its order too
/// How far below k + 1 an observed order may be.
constexpr double tolerance = 0.2;
/// By how much more memory a solve may use than was predicted: tables that do not grow with the mesh.
constexpr double tables = 64e6;

struct Options : StudyArguments {
  double size = 1e12;
};

struct Row {
  double velocity_error = 0.0;
  double pressure_error = 0.0;
};

class CapacityStudy {
 public:
  explicit CapacityStudy(const Options& options) : options_(options), run_(options, "capacity", 0.0) {}

  int operator()() {
    check_orders(options_.dim, options_.orders);
    run_.json["dim"] = options_.dim;
    run_.json["rows"] = Json::array();
    run_.print(fmt::format("Full multigrid, {} V-cycles a level, mixed precision, {}D{}; expected order: k + 1\n",
                           cycles, options_.dim,
                           run_.ranks() == nullptr ? "" : run_.ranks_text() + ", memory in GB of each"));
    run_.print(
        "                            memory, GB      bytes/      seconds            velocity           pressure");
    run_.print("order    cells    unknowns  needed    used  unknown  set-up  solve      error  order     error  order");
    bool good = true;
    for (const int order : options_.orders) {
      good = study(order) && good;
      if (StudyRun::interrupted()) break;
    }
    return run_.finish(good);
  }

 private:
  /// A cube of boxes^dim coarse boxes.
  [[nodiscard]] Problem problem(int order, int boxes, int refine) const {
    Problem problem = manufactured_problem(kind, options_.dim, order, refine);
    for (int a = 0; a < options_.dim; ++a) problem.mesh.cells[a] = boxes;
    return problem;
  }
  [[nodiscard]] SolverOptions solver() const {
    SolverOptions solver = run_.solver_options();
    solver.method = Method::fmg;
    solver.cycles = cycles;
    return solver;
  }

  /// The largest mesh that fits, and the one with cells twice as large.
  bool study(int order) {
    Problem largest;
    std::int64_t most = 0;
    for (int boxes = 5; boxes <= 9; ++boxes) {
      for (int refine = 1;; ++refine) {
        const Problem candidate = problem(order, boxes, refine);
        const Estimate need = estimate(candidate, solver());
        if (need.bytes_needed > need.bytes_available || static_cast<double>(need.dofs) > options_.size) break;
        if (need.dofs > most) most = need.dofs, largest = candidate;
      }
    }
    if (most == 0) {
      run_.print(fmt::format("RT_{}: nothing fits", order));
      return false;
    }
    std::optional<Row> coarse;
    bool good = true;
    for (const int coarser : {1, 0}) {
      Problem mesh = largest;
      mesh.mesh.refine -= coarser;
      const auto label =
          fmt::format("RT_{}, {} x 2^{} cells per direction", order, mesh.mesh.cells[0], mesh.mesh.refine);
      const Estimate need = estimate(mesh, solver());
      const auto result = run_.solve(label, mesh, solver());
      if (!result) return false;
      run_.show(label + ": errors");
      good = add(mesh, need, *result, coarse) && good;
    }
    return good;
  }

  bool add(const Problem& problem, const Estimate& need, const Result& result, std::optional<Row>& coarse) {
    const Manufactured exact(kind, options_.dim);
    const Solution& solution = result.solution;
    const Report& report = result.report;
    const auto dofs = static_cast<double>(report.dofs);
    const auto used = static_cast<double>(report.memory_bytes);  // of the rank with the most
    const auto used_by_all =
        report.ranks == 1 ? used
                          : std::accumulate(report.rank_memory_bytes.begin(), report.rank_memory_bytes.end(), 0.0);
    const Row row{solution.velocity_error(exact.velocity), solution.pressure_error(exact.pressure)};
    Json entry = {{"order", problem.order},
                  {"boxes", problem.mesh.cells[0]},
                  {"refine", problem.mesh.refine},
                  {"dofs", report.dofs},
                  {"bytes_needed", need.bytes_needed},
                  {"bytes_available", need.bytes_available},
                  {"bytes_used", report.memory_bytes},
                  {"bytes_per_dof", used_by_all / dofs},
                  {"seconds", {{"setup", report.time_setup}, {"solve", report.time_solve}}},
                  {"error", {{"velocity_l2", row.velocity_error}, {"pressure_l2", row.pressure_error}}}};
    bool good = report.converged && used <= static_cast<double>(need.bytes_needed) + tables;
    std::string velocity_order;
    std::string pressure_order;
    if (coarse) {
      const double velocity = std::log2(coarse->velocity_error / row.velocity_error);
      const double pressure = std::log2(coarse->pressure_error / row.pressure_error);
      entry["observed_order"] = {{"velocity", velocity}, {"pressure", pressure}};
      velocity_order = fmt::format("{:.2f}", velocity);
      pressure_order = fmt::format("{:.2f}", pressure);
      good = good && std::min(velocity, pressure) > problem.order + 1 - tolerance;
    }
    const auto cells = fmt::format("{}^{}", problem.mesh.cells[0] << problem.mesh.refine, options_.dim);
    run_.print(
        fmt::format("RT_{:<3} {:>7}  {:>10}  {:6.2f}  {:6.2f}  {:7.1f}  {:6.2f}  {:5.3f}  {:.3e}  {:>5}  {:.2e}  {:>5}",
                    problem.order, cells, report.dofs, static_cast<double>(need.bytes_needed) * 1e-9, used * 1e-9,
                    used_by_all / dofs, report.time_setup, report.time_solve, row.velocity_error, velocity_order,
                    row.pressure_error, pressure_order));
    run_.json["rows"].push_back(entry);
    coarse = row;
    return good;
  }

  const Options& options_;
  StudyRun run_;
};

}  // namespace

Command add_capacity(const CommandOptions& line) {
  const auto options = std::make_shared<Options>();
  options->dim = 3;
  options->orders = {2};
  options->add_to(line, "3", "2");
  options->add_transport_to(line);
  line.add("--size", options->size, "most unknowns (default: what the memory holds)").shows("").from(1, 1e12);
  return [options] { return CapacityStudy(*options)(); };
}

}  // namespace solenoid::studies
