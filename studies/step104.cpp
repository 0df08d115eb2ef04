// The test problem of deal.II's tutorial step-104: error against time and unknowns, beside what is published there.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "problem/names.hpp"
#include "solver/hierarchy.hpp"
#include "studies/manufactured.hpp"
#include "studies/run.hpp"
#include "studies/study.hpp"
#include "studies/timed_solve.hpp"

namespace solenoid::studies {
namespace {

constexpr auto kind = ManufacturedKind::trigonometric;
constexpr int dim = 3;
constexpr double rtol = 1e-8;  // as there

/// deal.II 9.8, step-104: Taylor-Hood Q2-Q1, block-preconditioned GMRES to 1e-8, one NVIDIA H100. The velocity error is
/// known for the largest mesh only.
struct Published {
  double dofs;
  double seconds;
};
constexpr Published published[] = {{0.11e6, 0.11}, {0.86e6, 0.25}, {6.7e6, 1.2}, {53.07e6, 8.8}};
constexpr int published_iterations = 24;
constexpr double published_error = 1.5e-6;

struct Options : StudyArguments {
  double size = 4e6;
};

struct Row {
  Method method = Method::gmres;
  int order = 0;
  int refine = 0;
  Report report;
  double seconds = 0.0;  ///< of a solve: the median of several
  double velocity_error = 0.0;
};

class Step104Study {
 public:
  explicit Step104Study(const Options& options)
      : options_(options),
        run_(options, "step104", total(options)),
        engine_(make_engine(options.device, options.threads)) {}

  int operator()() {
    check_orders(dim, options_.orders);
    run_.json["rtol"] = rtol;
    run_.json["rows"] = Json::array();
    run_.print(
        fmt::format("Problem of deal.II's step-104, 3D, mixed precision; gmres: to {:.0e}; fmg: one V-cycle a level\n"
                    "                                       iter-      seconds\n"
                    "order    cells   unknowns    method  ations   set-up      solve   velocity   pressure  divergence",
                    rtol));
    for (const int order : options_.orders) {
      for (int refine = 1; unknowns_about(dim, order, refine) <= options_.size; ++refine) {
        for (const Method method : {Method::gmres, Method::fmg}) {
          add(order, refine, method);
          if (StudyRun::interrupted()) return run_.finish(false);
        }
      }
    }
    compare();
    return run_.finish(converged_);
  }

 private:
  static double total(const Options& options) {
    double sum = 0.0;
    for (const int order : options.orders) {
      for (int refine = 1; unknowns_about(dim, order, refine) <= options.size; ++refine) {
        sum += 2 * unknowns_about(dim, order, refine);
      }
    }
    return sum;
  }
  double solve_seconds(const Problem& problem, const SolverOptions& options) {
    const Hierarchy hierarchy(problem, options.multigrid, engine_->dense_limits());
    return TimedSolve<float>(*engine_, hierarchy, problem, options).solve_seconds();
  }

  void add(int order, int refine, Method method) {
    SolverOptions options;
    options.method = method;
    options.rtol = rtol;
    options.device = options_.device;
    options.threads = options_.threads;
    const auto label = fmt::format("RT_{}, {} cells, {}", order, cells_text(dim, refine), name_of(method));
    const Problem problem = manufactured_problem(kind, dim, order, refine);
    const auto result = run_.solve(label, problem, options);
    if (!result) return;
    run_.show(label + ": times");
    const double seconds = solve_seconds(problem, options);
    run_.show(label + ": errors");
    const Manufactured exact(kind, dim);
    const Solution& solution = result->solution;
    const Row row{method, order, refine, result->report, seconds, solution.velocity_error(exact.velocity)};
    const double pressure_error = solution.pressure_error(exact.pressure);
    const double divergence = solution.divergence_max();
    converged_ = converged_ && row.report.converged;
    run_.print(fmt::format("RT_{:<3} {:>7}  {:>9}  {:>8}  {:>6}  {:7.3f}  {:9.5f}  {:9.2e}  {:9.2e}  {:10.1e}{}", order,
                           cells_text(dim, refine), row.report.dofs, name_of(method), row.report.iterations,
                           row.report.time_setup, row.seconds, row.velocity_error, pressure_error, divergence,
                           row.report.converged ? "" : "  " + row.report.reason));
    run_.json["rows"].push_back({{"method", name_of(method)},
                                 {"order", order},
                                 {"refine", refine},
                                 {"dofs", row.report.dofs},
                                 {"converged", row.report.converged},
                                 {"iterations", row.report.iterations},
                                 {"seconds", {{"setup", row.report.time_setup}, {"solve", row.seconds}}},
                                 {"error", {{"velocity_l2", row.velocity_error}, {"pressure_l2", pressure_error}}},
                                 {"divergence_max", divergence}});
    rows_.push_back(row);
  }

  /// The fastest solve that is as accurate as the largest one of the tutorial.
  void compare() {
    const auto& largest = published[std::size(published) - 1];
    Json list = Json::array();
    for (const auto& [dofs, seconds] : published) list.push_back({{"dofs", dofs}, {"seconds", seconds}});
    run_.json["published"] = {{"source", "deal.II 9.8, step-104, Q2-Q1, one NVIDIA H100"},
                              {"rtol", rtol},
                              {"iterations", published_iterations},
                              {"velocity_l2", published_error},
                              {"solves", list}};
    run_.print(
        fmt::format("\nPublished for deal.II's step-104 (Q2-Q1, H100): {:.2f} million unknowns, {} iterations, {} s, "
                    "velocity error {:.1e}.",
                    largest.dofs * 1e-6, published_iterations, largest.seconds, published_error));
    const Row* fastest = nullptr;
    for (const Row& row : rows_) {
      if (!row.report.converged || row.velocity_error > published_error) continue;
      if (fastest == nullptr || row.seconds < fastest->seconds) fastest = &row;
    }
    if (fastest == nullptr) {
      run_.print("No solve here is as accurate; a larger --size or --orders would be.");
      return;
    }
    run_.print(fmt::format(
        "Fastest solve here that is as accurate: RT_{}, {} cells, {}: {} unknowns, {:.5f} s, velocity error "
        "{:.1e}: {:.0f} times faster, on {}.",
        fastest->order, cells_text(dim, fastest->refine), name_of(fastest->method), fastest->report.dofs,
        fastest->seconds, fastest->velocity_error, largest.seconds / fastest->seconds, fastest->report.device));
    run_.json["as_accurate"] = {{"method", name_of(fastest->method)},
                                {"order", fastest->order},
                                {"refine", fastest->refine},
                                {"dofs", fastest->report.dofs},
                                {"velocity_l2", fastest->velocity_error},
                                {"seconds", fastest->seconds}};
  }

  const Options& options_;
  StudyRun run_;
  std::unique_ptr<Engine> engine_;
  std::vector<Row> rows_;
  bool converged_ = true;
};

}  // namespace

Command add_step104(const CommandOptions& line) {
  const auto options = std::make_shared<Options>();
  for (const int order : available_orders(dim)) {
    if (order >= 1 && order <= 5) options->orders.push_back(order);
  }
  options->add_to(line, "3", "1..5");
  line.remove("--dim");
  line.add("--size", options->size, "most unknowns").from(1, 1e12).shows_default();
  return [options] { return Step104Study(*options)(); };
}

}  // namespace solenoid::studies
