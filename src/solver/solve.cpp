#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "base/zeros.hpp"
#include "solenoid/error.hpp"
#include "solenoid/solver.hpp"
#include "solver/hierarchy.hpp"
#include "solver/load.hpp"
#include "solver/methods.hpp"

namespace solenoid {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// A fully periodic domain has a steady flow, and Poisson's equation a solution, only if the force has no mean (or
/// there is a mass term).
void check_mean_force(const Level& level, Kernels<double>& kernels, Vector<double>& b) {
  const bool poisson = level.equation.kind == EquationKind::poisson;
  const auto& velocity = level.constants.velocity;
  if (!(poisson && level.constants.pressure) && !velocity[0] && !velocity[1] && !velocity[2]) return;
  const double before = kernels.dot(b.data(), b.data());
  kernels.project(b.data());
  const double after = kernels.dot(b.data(), b.data());
  constexpr double tolerance = 1e-6;
  if (before - after > tolerance * tolerance * before) {
    if (poisson) {
      throw InputError(
          "[physics] force: it has a mean, but no value is prescribed anywhere, so that there is no solution: subtract "
          "the mean from the force, prescribe a value on a side, or set a mass term ([physics] mass > 0)");
    }
    throw InputError(
        "[physics] force: its mean pushes a flow that no wall holds back, so that there is no steady solution: "
        "subtract the "
        "mean from the force, add a wall, or set a mass term ([physics] mass > 0)");
  }
}

double fractional_iterations(const Convergence& c) {
  const double reduction = c.history.empty() ? 1.0 : c.history.back();
  if (c.iterations == 0 || !(reduction > 0.0) || reduction >= 1.0) return 0.0;
  return std::log(c.rtol) / (std::log(reduction) / c.iterations);
}

/// Sets up and solves; x is the solution on the finest level, `lift` the boundary velocities or empty.
template <class S>
void run(Engine& engine, const Hierarchy& hierarchy, const Problem& problem, const SolverOptions& options,
         const Level& lift_level, Vector<double>& x, std::vector<double>& lift, Report& report) {
  const auto start = std::chrono::steady_clock::now();
  const auto say = [&](double fraction, std::string text) {
    if (options.progress) options.progress({"set-up", fraction, std::move(text)});
  };
  const Level& finest = hierarchy.finest();
  say(0.3, fmt::format("{} levels, local solvers", hierarchy.size()));
  Solve<S> solve(engine, hierarchy, options);
  Kernels<double>& kernels = solve.outer();

  Vector<double> b(engine, x.size());
  {
    say(0.5, "right-hand side");
    std::vector<double> load =
        options.random_load != 0 ? random_vector(finest, options.random_load) : assemble_load(problem, finest);
    if (has_boundary_velocity(problem)) {
      // b - A u_g on the grid that stores all boundary hats, for which x and b have room.
      lift = boundary_lift(problem, lift_level);
      const auto lift_kernels = make_kernels<double>(engine, lift_level, options.multigrid.local_solver);
      x.upload(lift.data());
      lift_kernels->apply(x.data(), b.data());
      std::vector<double> image = zeros(lift_level.size());
      b.download(image.data());
      subtract_common(lift_level, image, finest, load);
      lift_kernels->zero(x.data());
    }
    engine.upload(load.data(), b.data(), load.size() * sizeof(double));
  }
  if (options.random_load == 0) check_mean_force(finest, kernels, b);
  kernels.project(b.data());
  solve.reserve();
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
    return options.interrupted == nullptr || !options.interrupted->load();
  };
  const auto solve_start = std::chrono::steady_clock::now();
  solve.run(b.data(), x.data(), convergence);
  kernels.project(x.data());
  engine.synchronise();
  report.time_solve = seconds_since(solve_start);

  report.converged = convergence.converged;
  report.reason = convergence.reason;
  report.iterations = convergence.iterations;
  report.residual_history = convergence.history;
  report.fractional_iterations = fractional_iterations(convergence);
  report.memory_bytes = engine.bytes_peak();
}

}  // namespace

Result solve(const Problem& problem, const SolverOptions& options) {
  validate(problem);
  validate(problem, options);
  const auto start = std::chrono::steady_clock::now();
  const Estimate need = estimate(problem, options);
  if (need.bytes_needed > need.bytes_available) {
    throw ResourceError(fmt::format(
        "not enough memory: {} unknowns need {:.2f} GB, {:.2f} GB are available; the largest refinement that fits is "
        "{}",
        need.dofs, static_cast<double>(need.bytes_needed) * 1e-9, static_cast<double>(need.bytes_available) * 1e-9,
        need.largest_refine >= 0 ? fmt::format("refine = {}", need.largest_refine) : "none"));
  }
  Report report;
  const auto engine = make_engine(options.device, options.threads);
  if (options.progress) options.progress({"set-up", 0.0, "mesh and patches"});
  const Hierarchy hierarchy(problem, options.multigrid);
  const bool has_velocity = problem.equation == EquationKind::stokes;
  const auto lift_grid =
      std::make_shared<const Level>(equation_of(problem), Grid(problem.mesh, problem.boundary, has_velocity));
  report.dofs = hierarchy.finest().dofs();
  report.cells = hierarchy.finest().grid.cells();
  report.levels = hierarchy.size();
  report.device = engine->description();
  report.threads = engine->threads();
  report.precision = options.precision == Precision::mixed ? "mixed" : "double";
  report.time_setup = seconds_since(start);

  const Level& finest = hierarchy.finest();
  // Room for all boundary hats, if they have to be lifted.
  Vector<double> x(*engine, has_boundary_velocity(problem) ? lift_grid->size() : finest.size());
  std::vector<double> lift;
  if (options.precision == Precision::mixed) {
    run<float>(*engine, hierarchy, problem, options, *lift_grid, x, lift, report);
  } else {
    run<double>(*engine, hierarchy, problem, options, *lift_grid, x, lift, report);
  }
  // The levels' vectors are gone by now, so that these do not add to the peak.
  std::vector<double> coefficients = zeros(lift_grid->size());
  x.download(coefficients.data());
  move_hats(finest, *lift_grid, coefficients);
  for (std::size_t i = 0; i < lift.size(); ++i) coefficients[i] += lift[i];
  std::shared_ptr<const Grid> grid(lift_grid, &lift_grid->grid);
  return {Solution(problem, std::move(grid), std::move(coefficients)), std::move(report)};
}

}  // namespace solenoid
