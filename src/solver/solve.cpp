#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "problem/names.hpp"
#include "problem/support.hpp"
#include "solenoid/error.hpp"
#include "solenoid/solver.hpp"
#include "solution/transfer.hpp"
#include "solver/description.hpp"
#include "solver/discretisation.hpp"
#include "solver/estimate.hpp"
#include "solver/methods.hpp"
#include "solver/prepare.hpp"

namespace solenoid {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double fractional_iterations(const Convergence& c) {
  if (c.iterations == 0 || c.history.empty()) return 0.0;
  const double reduction = c.history.back() / c.history.front();
  if (!(reduction > 0.0) || reduction >= 1.0) return 0.0;
  return std::log(c.rtol / c.history.front()) / (std::log(reduction) / c.iterations);
}

/// Sets up and solves; x has the coefficients of the solution. `initial`: the guess to start from, or nullptr.
void run(Engine& engine, Discretisation& discretisation, const Solution* initial, const SolverOptions& options,
         Vector<double>& x, Report& report) {
  const auto start = std::chrono::steady_clock::now();
  const auto say = [&](double fraction, std::string text) {
    if (options.progress) options.progress({"set-up", fraction, std::move(text)});
  };
  const Hierarchy& hierarchy = discretisation.hierarchy();
  say(0.3, fmt::format("{} levels, local solvers", hierarchy.size()));
  const auto solver = make_solver(engine, hierarchy, options);
  Kernels<double>& kernels = solver->outer();

  say(0.5, "right-hand side");
  Vector<double> b(engine, x.size());
  discretisation.load(engine, kernels, x, b);
  discretisation.end_of_loads();
  solver->reserve();
  if (options.method == Method::fmg && discretisation.has_coarse_loads()) {
    solver->set_coarse_loads([&](const Level& level, Kernels<double>& its_kernels, double* load) {
      discretisation.coarse_load(engine, level, its_kernels, load);
    });
  }
  if (initial != nullptr) {
    const Level& finest = discretisation.finest();
    const HostVector guess = unknowns_on(*initial, finest.grid, finest.equation.order, "start");
    engine.upload(guess.data(), x.data(), guess.size() * sizeof(double));
  }
  engine.synchronise();
  report.time_setup += seconds_since(start);

  Convergence convergence;
  convergence.rtol = options.rtol;
  convergence.max_iterations = options.max_iterations;
  convergence.monitor = [&](int iteration, double residual) {
    if (options.progress) {
      const double fraction = residual > 0.0 ? std::clamp(std::log(residual) / std::log(options.rtol), 0.0, 1.0) : 1.0;
      options.progress({"solve", fraction, fmt::format("iteration {}, residual {:.2e}", iteration, residual)});
    }
  };
  const auto solve_start = std::chrono::steady_clock::now();
  solver->run(b.data(), x.data(), initial == nullptr, convergence);
  kernels.project(x.data());
  engine.synchronise();
  report.time_solve = seconds_since(solve_start);
  report.error_estimate = solver->assess(x.data(), discretisation.lifted(), convergence);
  discretisation.complete(engine, kernels, x);

  report.converged = convergence.converged;
  report.reason = convergence.reason;
  report.iterations = convergence.iterations;
  report.residual_history = convergence.history;
  report.fractional_iterations = fractional_iterations(convergence);
}

/// \throws InputError for what a solve cannot start from.
void check_start(const Problem& problem, const Solution& initial, const SolverOptions& options) {
  if (initial.problem().equation != problem.equation) {
    throw InputError(fmt::format("start: it solves the equation `{}`, expected `{}`",
                                 name_of(initial.problem().equation), name_of(problem.equation)));
  }
  if (options.method == Method::fmg) {
    throw InputError(
        "start: full multigrid begins on the coarsest level, not from a guess: use method \"gmres\" or \"vcycle\", or "
        "leave the start out");
  }
}

bool is_known(const Exact& exact) { return exact.velocity || exact.pressure || exact.value; }

/// A known field that is not finite somewhere is no reason to lose the solution.
Errors measured(Discretisation& discretisation, Engine& engine, const Vector<double>& x, const Exact& exact) {
  try {
    return discretisation.errors(engine, x, exact);
  } catch (const InputError& error) {
    Errors none;
    none.not_measured = error.what();
    return none;
  }
}

Result solve_from(const Solution* initial, const Problem& problem, const SolverOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  check(problem, options);
  if (initial != nullptr) check_start(problem, *initial, options);
  Report report;
  if (options.progress) options.progress({"set-up", 0.0, "mesh and patches"});
  auto [engine, discretisation] = prepare(
      problem, options, [&](const Engine& engine) { return estimate(problem, options, MoreVectors{}, engine); });
  report.time_setup = seconds_since(start);

  Vector<double> x(*engine, discretisation.room());
  run(*engine, discretisation, initial, options, x, report);
  describe(*engine, discretisation, options, report);
  // The levels' vectors are gone by now, so that what this takes does not add to the peak.
  if (options.progress && is_known(options.exact)) options.progress({"measure", 0.0, "errors"});
  report.errors = measured(discretisation, *engine, x, options.exact);
  return {discretisation.solution(*engine, x), std::move(report)};
}

}  // namespace

Result solve(const Problem& problem, const SolverOptions& options) { return solve_from(nullptr, problem, options); }
Result solve(const Problem& problem, const Solution& start, const SolverOptions& options) {
  return solve_from(&start, problem, options);
}

}  // namespace solenoid
