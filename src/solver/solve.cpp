#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "solenoid/error.hpp"
#include "solenoid/solver.hpp"
#include "solver/hierarchy.hpp"
#include "solver/krylov.hpp"
#include "solver/load.hpp"
#include "solver/multigrid.hpp"

namespace solenoid {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// A fully periodic domain has a steady flow only if the force has no mean (or there is a mass term).
void check_mean_force(const Level& level, Kernels<double>& kernels, Vector<double>& b) {
  const auto& velocity = level.constants.velocity;
  if (!velocity[0] && !velocity[1] && !velocity[2]) return;
  const double before = kernels.dot(b.data(), b.data());
  kernels.project(b.data());
  const double after = kernels.dot(b.data(), b.data());
  constexpr double tolerance = 1e-6;
  if (before - after > tolerance * tolerance * before) {
    throw InputError(
        "[physics] force: its mean pushes a flow that no wall holds back, so that there is no steady solution: "
        "subtract the "
        "mean from the force, add a wall, or set a mass term ([physics] mass > 0)");
  }
}

/// One solve: the levels, the engine's data and the methods, in the precision S of the cycle.
template <class S>
class Solve {
 public:
  Solve(Engine& engine, const Hierarchy& hierarchy, const SolverOptions& options)
      : engine_(engine), hierarchy_(hierarchy), options_(options), multigrid_(engine, hierarchy, options.multigrid) {
    if constexpr (!std::is_same_v<S, double>) {
      outer_ = make_kernels<double>(engine, hierarchy.finest(), options.multigrid.local_solver);
    }
    const int finest = hierarchy.size() - 1;
    for (int level = options.method == Method::fmg ? 0 : finest; level <= finest; ++level) multigrid_.record(level);
  }

  Kernels<double>& outer() {
    if constexpr (std::is_same_v<S, double>) {
      return multigrid_.kernels();
    } else {
      return *outer_;
    }
  }

  /// To be called before run(): memory that methods use, so that nothing is allocated during a solve (unless it needs
  /// more iterations than expected).
  void reserve() {
    const std::int64_t size = hierarchy_.finest().size();
    const int iterations = expected_iterations(options_);
    if (options_.method != Method::gmres) work_ = Vector<double>(engine_, size);
    if (options_.method == Method::fmg) reserve_nested();
    if (options_.method != Method::gmres) return;
    if (options_.side == PreconditionerSide::right) {
      right_.reserve_basis(engine_, size, iterations + 1);
      right_.reserve_preconditioned(engine_, size, iterations);
      if constexpr (!std::is_same_v<S, double>) right_.reserve_work(engine_, size);
    } else {
      left_.reserve_basis(engine_, size, iterations + 1);
      left_.reserve_work(engine_, size);
    }
  }

  void run(const double* b, double* x, Convergence& convergence) {
    switch (options_.method) {
      case Method::gmres: return gmres(b, x, convergence);
      case Method::vcycle: return vcycles(b, x, convergence);
      case Method::fmg: return full_multigrid(b, x, convergence);
    }
  }

 private:
  /// A level of full multigrid, in double precision. The finest one has its vectors from the caller.
  struct Nested {
    std::unique_ptr<Kernels<double>> owned;  // or nullptr
    Kernels<double>* kernels = nullptr;
    Vector<double> load{};
    Vector<double> value{};
  };

  void reserve_nested() {
    const int levels = hierarchy_.size();
    for (int l = 0; l < levels; ++l) {
      const Level& level = *hierarchy_.levels[l];
      Nested nested;
      if (l == levels - 1) {
        nested.kernels = &outer();
      } else if constexpr (std::is_same_v<S, double>) {
        nested.kernels = &multigrid_.kernels(l);
      } else {
        nested.owned = make_kernels<double>(engine_, level, options_.multigrid.local_solver);
        nested.kernels = nested.owned.get();
      }
      if (l > 0) nested.kernels->prepare_transfer(*hierarchy_.levels[l - 1]);
      if (l < levels - 1) {
        nested.load = Vector<double>(engine_, level.size());
        nested.value = Vector<double>(engine_, level.size());
      }
      nested_.push_back(std::move(nested));
    }
  }

  /// z = M r: one V-cycle.
  void precondition(const double* r, S* z) {
    multigrid_.kernels().from_double(r, multigrid_.right_hand_side());
    multigrid_.kernels().copy(multigrid_.cycle(), z);
  }

  void gmres(const double* b, double* x, Convergence& convergence) {
    if (options_.side == PreconditionerSide::right) {
      const Preconditioner<double, S> right = [this](const double* r, S* z) { precondition(r, z); };
      return gmres_right<double, S>(engine_, outer(), right, b, x, true, options_.restart, convergence, right_);
    }
    const Preconditioner<double, double> left = [this](const double* r, double* z) {
      multigrid_.kernels().from_double(r, multigrid_.right_hand_side());
      widen(multigrid_.cycle(), z);
    };
    constexpr double trust = std::is_same_v<S, double> ? 0.0 : 1e-5;
    gmres_left<double>(engine_, outer(), left, b, x, options_.restart, trust, convergence, left_);
  }

  void widen(const S* from, double* to) {
    if constexpr (std::is_same_v<S, double>) {
      outer().copy(from, to);
    } else {
      outer().from_float(from, to);
    }
  }
  void add(Kernels<double>& kernels, const S* correction, double* x) {
    if constexpr (std::is_same_v<S, double>) {
      kernels.axpy(1.0, correction, x);
    } else {
      constexpr double one = 1.0;
      kernels.axpys_float(1, &one, &correction, x);
    }
  }

  /// x += M (b - A x) until the residual is small.
  void vcycles(const double* b, double* x, Convergence& convergence) {
    const double norm_b = std::sqrt(outer().dot(b, b));
    Vector<double>& r = work_;
    for (;; ++convergence.iterations) {
      outer().residual(b, x, r.data());
      const double norm = std::sqrt(outer().dot(r.data(), r.data()));
      if (convergence.stop(norm_b == 0.0 ? 0.0 : norm / norm_b)) return;
      multigrid_.kernels().from_double(r.data(), multigrid_.right_hand_side());
      add(outer(), multigrid_.cycle(), x);
    }
  }

  /// Full multigrid, one V-cycle a level: x_l = P x_{l-1}, x_l += M_l (b_l - A_l x_l). Solution and residual in double.
  /// The residual of the result is reported; it is not compared with rtol.
  void full_multigrid(const double* b, double* x, Convergence& convergence) {
    const int levels = hierarchy_.size();
    const double norm_b = std::sqrt(outer().dot(b, b));
    Vector<double>& r = work_;
    const auto kernels = [&](int l) -> Kernels<double>& { return *nested_[l].kernels; };
    const auto load = [&](int l) { return l == levels - 1 ? b : nested_[l].load.data(); };
    const auto value = [&](int l) { return l == levels - 1 ? x : nested_[l].value.data(); };
    for (int l = levels - 1; l > 0; --l)
      kernels(l).restrict_to(*hierarchy_.levels[l - 1], load(l), nested_[l - 1].load.data());
    for (int l = 0; l < levels; ++l) {
      const double* residual = load(l);
      kernels(l).zero(value(l));
      if (l > 0) {
        kernels(l).prolong_add(*hierarchy_.levels[l - 1], value(l - 1), value(l));
        kernels(l).residual(load(l), value(l), r.data());
        residual = r.data();
      }
      multigrid_.kernels(l).from_double(residual, multigrid_.right_hand_side(l));
      add(kernels(l), multigrid_.cycle(l), value(l));
      if (convergence.monitor && !convergence.monitor(0, 1.0)) {
        convergence.reason = "interrupted";
        return;
      }
    }
    convergence.iterations = 1;
    outer().residual(b, x, r.data());
    const double norm = norm_b == 0.0 ? 0.0 : std::sqrt(outer().dot(r.data(), r.data())) / norm_b;
    convergence.history = {1.0, norm};
    convergence.converged = std::isfinite(norm) && norm < 0.5;
    convergence.reason = convergence.converged ? "full multigrid: one V-cycle per level"
                         : std::isfinite(norm) ? "full multigrid: the residual did not fall"
                                               : "the residual is not finite";
  }

  Engine& engine_;
  const Hierarchy& hierarchy_;
  const SolverOptions& options_;
  Multigrid<S> multigrid_;
  std::unique_ptr<Kernels<double>> outer_;
  KrylovSpace<double, S> right_;
  KrylovSpace<double> left_;
  Vector<double> work_;
  std::vector<Nested> nested_;
};

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

  Vector<double> b(engine, finest.size());
  {
    say(0.5, "right-hand side");
    std::vector<double> load =
        options.random_load != 0 ? random_vector(finest, options.random_load) : assemble_load(problem, finest);
    if (has_boundary_velocity(problem)) {
      // b - A u_g on the grid that stores all boundary hats.
      lift = boundary_lift(problem, lift_level);
      const auto lift_kernels = make_kernels<double>(engine, lift_level, options.multigrid.local_solver);
      Vector<double> hats(engine, lift_level.size());
      Vector<double> image(engine, lift_level.size());
      hats.upload(lift.data());
      lift_kernels->apply(hats.data(), image.data());
      std::vector<double> all(lift_level.size());
      image.download(all.data());
      std::vector<double> common(finest.size(), 0.0);
      copy_common(lift_level, all, finest, common);
      finest.for_each_unknown([&](std::int64_t i) { load[i] -= common[i]; });
    }
    b.upload(load.data());
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
  const auto lift_grid =
      std::make_shared<const Level>(equation_of(problem), Grid(problem.mesh, problem.boundary, true));
  report.dofs = hierarchy.finest().dofs();
  report.cells = hierarchy.finest().grid.cells();
  report.levels = hierarchy.size();
  report.device = engine->description();
  report.threads = engine->threads();
  report.precision = options.precision == Precision::mixed ? "mixed" : "double";
  report.time_setup = seconds_since(start);

  const Level& finest = hierarchy.finest();
  Vector<double> x(*engine, finest.size());
  std::vector<double> lift;
  if (options.precision == Precision::mixed) {
    run<float>(*engine, hierarchy, problem, options, *lift_grid, x, lift, report);
  } else {
    run<double>(*engine, hierarchy, problem, options, *lift_grid, x, lift, report);
  }
  // The levels' vectors are gone by now, so that these do not add to the peak.
  std::vector<double> values(finest.size());
  x.download(values.data());
  std::vector<double> coefficients(lift_grid->size(), 0.0);
  copy_common(finest, values, *lift_grid, coefficients);
  for (std::size_t i = 0; i < lift.size(); ++i) coefficients[i] += lift[i];
  std::shared_ptr<const Grid> grid(lift_grid, &lift_grid->grid);
  return {Solution(problem, std::move(grid), std::move(coefficients)), std::move(report)};
}

}  // namespace solenoid
