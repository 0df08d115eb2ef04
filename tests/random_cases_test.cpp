/// \file
/// Random cases on pairs of engines: what a cycle does, and what a solve finds.
///
/// SOLENOID_RANDOM_CASES (40) is their number, SOLENOID_RANDOM_FIRST (1) the first seed; what fails prints a case file.
/// SOLENOID_RANDOM_LARGE (0) is the number of larger ones that a GPU has to solve faster than the CPU of its host.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <thread>

#include "engine/engine.hpp"
#include "flows.hpp"
#include "level/patch_solver.hpp"
#include "problem/validate.hpp"
#include "random_cases.hpp"
#include "solenoid/error.hpp"
#include "solve_on.hpp"
#include "solver/discretisation.hpp"
#include "solver/methods.hpp"

namespace solenoid {
namespace {

using Values = std::vector<double>;

int count_of_cases() { return test::setting("SOLENOID_RANDOM_CASES", test::sanitized ? 8 : 40); }
int first_seed() { return test::setting("SOLENOID_RANDOM_FIRST", 1); }

// The reference engine is slow.
test::RandomCase small_case(int seed) { return test::draw_case(seed, 500, 12000); }
test::RandomCase varying_case(int seed) { return test::draw_case(seed, 500, 6000, test::Draws::varying); }
test::RandomCase large_case(int seed) { return test::draw_case(seed, 20000, 300000); }

// Vectors ------------------------------------------------------------------------------------------------------------

Values operator-(Values x, const Values& y) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] -= y[i];
  return x;
}

/// Whether a place in a vector holds a velocity; the others hold the pressure, or Poisson's u.
bool is_velocity(const Level& level, std::int64_t i) {
  const Equation& equation = level.equation;
  return i / interleave % equation.record() < equation.velocities() * power(equation.n(), equation.dim);
}

/// Euclidean norms of velocity and pressure.
using FieldNorms = std::array<double, 2>;
constexpr std::array<const char*, 2> field_names{"velocity", "pressure"};

FieldNorms norms(const Level& level, const Values& x) {
  FieldNorms squares{};
  level.for_each_unknown([&](std::int64_t i) { squares[is_velocity(level, i) ? 0 : 1] += x[i] * x[i]; });
  return {std::sqrt(squares[0]), std::sqrt(squares[1])};
}
double norm(const Level& level, const Values& x) {
  const auto [velocity, pressure] = norms(level, x);
  return std::hypot(velocity, pressure);
}

/// The largest of all cells.
struct Largest {
  double viscosity;
  double reaction;
  double contrast = 1.0;  ///< of viscosities

  explicit Largest(const Level& level)
      : viscosity(level.coefficients.viscosity), reaction(level.coefficients.reaction) {
    if (!level.has_coefficients_by_cell()) return;
    const CellCoefficients& by_cell = *level.coefficients.by_cell;
    const auto [least, most] = std::minmax_element(by_cell.viscosity.begin(), by_cell.viscosity.end());
    viscosity = *most;
    contrast = *most / *least;
    reaction = *std::max_element(by_cell.reaction.begin(), by_cell.reaction.end());
  }
};

/// (nu / h^2 + alpha) h: the force that a velocity of size h needs, and the pressure that balances one of size 1.
double momentum_scale(const Level& level) {
  const Point size = level.grid.metric().uniform_width();
  const double h = *std::min_element(size.begin(), size.begin() + level.equation.dim);
  const Largest largest(level);
  return (largest.viscosity / (h * h) + largest.reaction) * h;
}

/// Random numbers of a size for which momentum and mass balance matter alike: u of size h needs a force (nu / h^2 +
/// alpha) h and has a divergence of 1.
Values balanced_random_vector(const Level& level, std::uint64_t seed) {
  const double force = momentum_scale(level);
  test::Dice dice(seed);
  Values x(level.size(), 0.0);
  level.for_each_unknown(
      [&](std::int64_t i) { x[i] = dice.between(-1.0, 1.0) * (is_velocity(level, i) ? force : 1.0); });
  return x;
}

template <class T>
Values to_host(Engine& engine, const T* x, std::int64_t size) {
  engine.synchronise();
  std::vector<T> host(size);
  engine.download(x, host.data(), host.size() * sizeof(T));
  return {host.begin(), host.end()};
}

// What engines do ----------------------------------------------------------------------------------------------------

template <class T>
Values cycle(Engine& engine, const Hierarchy& hierarchy, const SolverOptions& options, const Values& r) {
  Cycle<T> cycle(engine, hierarchy, cycle_of(options));
  cycle.record(hierarchy.size() - 1);
  const std::vector<T> rounded(r.begin(), r.end());
  engine.upload(rounded.data(), cycle.right_hand_side(), rounded.size() * sizeof(T));
  return to_host(engine, cycle.run(), hierarchy.finest().size());
}

struct Solved {
  Values b;
  Values x;
  Convergence convergence;

  [[nodiscard]] double last_residual() const { return convergence.history.back(); }
};

template <class T>
Solved solve_on(Engine& engine, Discretisation& discretisation, const SolverOptions& options) {
  const auto [b, x, convergence] = test::solve_on<T>(engine, discretisation, options);
  const std::int64_t size = discretisation.finest().size();
  return {to_host(engine, b.data(), size), to_host(engine, x.data(), size), convergence};
}

Values residual(Engine& engine, const Level& level, const Solved& solved) {
  const auto kernels = engine.kernels_double(level, LocalSolverKind::direct);
  kernels->take_points();
  Vector<double> b(engine, level.size());
  Vector<double> x(engine, level.size());
  Vector<double> r(engine, level.size());
  b.upload(solved.b.data());
  x.upload(solved.x.data());
  kernels->residual(b.data(), x.data(), r.data());
  return to_host(engine, r.data(), level.size());
}

// What they have to agree in -----------------------------------------------------------------------------------------

/// Two engines on one hierarchy, that of the second. The oracle solves all local problems exactly; other engines do the
/// same as each other.
template <class T>
class Comparison {
 public:
  Comparison(Engine& expected, Engine& actual, const Case& what, bool oracle)
      : expected_(expected),
        actual_(actual),
        options_(what.solver),
        truncated_(oracle && (local() == LocalSolverKind::chebyshev || local() == LocalSolverKind::cg)),
        discretisation_(what.problem, what.solver, actual.dense_limits()) {}

  void cycles(std::uint64_t seed);
  void solves();

 private:
  [[nodiscard]] const Hierarchy& hierarchy() const { return discretisation_.hierarchy(); }
  [[nodiscard]] const Level& level() const { return discretisation_.finest(); }
  [[nodiscard]] LocalSolverKind local() const { return options_.multigrid.local_solver; }

  /// alpha h^2 / nu
  [[nodiscard]] double reaction() const {
    const double h = level().grid.metric().smallest_width(level().equation.dim);
    const Largest largest(level());
    return largest.reaction * h * h * largest.contrast / largest.viscosity;
  }
  /// Bound for the relative difference of what a cycle makes of a vector.
  [[nodiscard]] double tolerance() const;
  void same_verdict(const Convergence& a, const Convergence& b) const;

  Engine& expected_;
  Engine& actual_;
  SolverOptions options_;
  bool truncated_;  ///< the second engine stops iterations in local problems that the first one solves exactly
  Discretisation discretisation_;
};

/// What a truncated local solve leaves of the error, at most (docs/method.md: eight steps of Chebyshev's iteration, up
/// to thirty of conjugate gradients): 2 / (rho^m + rho^-m) for m steps, rho = (sqrt(K) + 1) / (sqrt(K) - 1), K the
/// condition of the iteration. The worst patch of all levels.
double error_of_local_solves(const Hierarchy& hierarchy, LocalSolverKind local, double cg_tolerance) {
  double worst = 0.0;
  for (const auto& level : hierarchy.levels) {
    for (const PatchKind& kind : level->patches.kinds) {
      const PatchSolver solver(level->equation, level->coefficients, level->grid.metric().uniform_width(), kind,
                               LocalSolverKind::chebyshev);
      const auto [lower, upper] = solver.schur_bounds();
      const double root = std::sqrt(upper / lower);
      const int steps = local == LocalSolverKind::cg ? 30 : 8;
      const double power = std::pow((root + 1.0) / (root - 1.0), steps);
      worst = std::max(worst, 2.0 / (power + 1.0 / power));
    }
  }
  return local == LocalSolverKind::cg ? std::max(worst, cg_tolerance) : worst;
}

/// Local problems of order k on cells of aspect a (of parallelograms: the longest edge over the smallest height) have
/// conditions K of about (k + 1)^4 a^2, times the contrast of viscosities. Errors of sums, which have no direction,
/// grow with its root. In double precision those of inverses count as well, which are as large as K, or K n^2 where a
/// dense inverse is that of a coarsest level of n cells; and as some thousand, or as the reaction, where it holds
/// velocity and pressure, whose sizes that sets apart.
template <class T>
double Comparison<T>::tolerance() const {
  const Equation& equation = level().equation;
  const Point h = level().grid.metric().uniform_width();
  const AffineMap* const map = level().grid.metric().map();
  const Point heights = map != nullptr ? map->heights(h) : h;
  const double longest = *std::max_element(h.begin(), h.begin() + equation.dim);
  const double shortest = *std::min_element(heights.begin(), heights.begin() + equation.dim);
  const double condition = std::pow(equation.n(), 4) * std::pow(longest / shortest, 2) * Largest(level()).contrast;
  const auto& extent = hierarchy().levels.front()->grid.extent();
  const double cells = hierarchy().coarse == CoarseSolve::dense ? *std::max_element(extent.begin(), extent.end()) : 1;
  double bound = 10.0 * std::numeric_limits<T>::epsilon() * std::sqrt(condition) + 1e-12 +
                 100.0 * std::numeric_limits<double>::epsilon() * condition * cells * cells;
  if (hierarchy().coarse == CoarseSolve::mac || hierarchy().coarse == CoarseSolve::krylov) {
    // An inner method that minimises residuals in a norm that hardly sees the mass balance where there is much
    // reaction; with the additive smoother it takes dozens of steps, and rounding shows in all that it is asked for:
    // two digits.
    bound = options_.multigrid.smoother == SmootherKind::additive ? 1e-2 : bound + 1e-10;
  }
  if (local() == LocalSolverKind::dense) bound += 20.0 * std::numeric_limits<double>::epsilon() * reaction();
  constexpr double cg_tolerance = std::is_same_v<T, float> ? 1e-5 : 1e-9;
  if (truncated_) return bound + 10.0 * error_of_local_solves(hierarchy(), local(), cg_tolerance);
  // An engine may take a step of conjugate gradients more than the other.
  return local() == LocalSolverKind::cg ? bound + 10.0 * cg_tolerance : bound;
}

template <class T>
void Comparison<T>::cycles(std::uint64_t seed) {
  const Values r = balanced_random_vector(level(), seed);
  const Values x = cycle<T>(expected_, hierarchy(), options_, r);
  const FieldNorms size = norms(level(), x);
  const FieldNorms difference = norms(level(), x - cycle<T>(actual_, hierarchy(), options_, r));
  // In the pressure rounding is that of all terms of the momentum balance.
  const FieldNorms terms{size[0], size[1] + momentum_scale(level()) * size[0]};
  for (const int field : {0, 1}) {
    EXPECT_LE(difference[field], tolerance() * terms[field]) << field_names[field] << " after one cycle";
  }
}

template <class T>
void Comparison<T>::solves() {
  const std::array solved{solve_on<T>(expected_, discretisation_, options_),
                          solve_on<T>(actual_, discretisation_, options_)};
  // Engines other than the oracle have viscosities at points in single precision.
  const double rounding = level().has_viscosity_points() ? 1e-7 : 1e-12;
  EXPECT_LE(norm(level(), solved[0].b - solved[1].b), rounding * norm(level(), solved[0].b)) << "right-hand side";
  same_verdict(solved[0].convergence, solved[1].convergence);
  const bool converged = solved[0].convergence.converged && solved[1].convergence.converged;
  if (!converged && options_.method != Method::fmg) return;  // full multigrid is one pass, whatever comes of it

  // M r, M a cycle of the engine that is trusted, is the error of x but for what the cycle leaves of it.
  FieldNorms error{};
  for (std::size_t i = 0; i < solved.size(); ++i) {
    const Solved& one = solved.at(i);
    const Values r = residual(expected_, level(), {solved[0].b, one.x, {}});
    const Values correction = cycle<double>(expected_, hierarchy(), options_, r);
    const auto [velocity, pressure] = norms(level(), correction);
    error[0] += velocity;
    error[1] += pressure;
    if (options_.method == Method::fmg) continue;
    if (options_.method == Method::gmres && options_.side == PreconditionerSide::left) {
      const Values load = cycle<double>(expected_, hierarchy(), options_, solved[0].b);
      // Truncated local solves make a cycle that is not quite linear, as GMRES wants it to be.
      EXPECT_LE(norm(level(), correction), ((truncated_ ? 2.0 : 1.1) * options_.rtol + rounding) * norm(level(), load));
    } else {
      // Single precision shows in all stresses, which may be far above the force: each has its own residual then.
      const bool own = level().has_viscosity_points() && i > 0;
      const Values asked = own ? residual(actual_, level(), {one.b, one.x, {}}) : r;
      EXPECT_LE(norm(level(), asked), (1.01 * options_.rtol + rounding) * norm(level(), solved[0].b));
    }
  }
  const FieldNorms size = norms(level(), solved[0].x);
  const FieldNorms difference = norms(level(), solved[0].x - solved[1].x);
  const double stress = momentum_scale(level()) * size[0];
  for (const int field : {0, 1}) {
    EXPECT_LE(difference[field], 10.0 * error[field] + 1e-12 * size[field]) << field_names[field];
    // Full multigrid does the same steps on both, and rounding is as after a cycle.
    if (options_.method != Method::fmg) continue;
    EXPECT_LE(difference[field], tolerance() * (size[field] + (field == 1 ? stress : 0.0)))
        << field_names[field] << " after full multigrid";
  }
}

/// The same iterations, those of the slower one until its residual is twice rtol: where residuals stand still for a
/// while, as those of GMRES may, rounding decides on which side of rtol. But for one where the residual is about that,
/// or where rounding delays an iteration that takes many; and one more in single precision where the reaction
/// dominates: the pressure of a velocity with divergence, which random loads have, is then thousands of times as large
/// as the force. One more, too, where rounding in a cycle is more than rtol, or where iterations in local problems end
/// at a tolerance, which rounding decides: such a cycle is not linear. Truncated local solves make cycles as good
/// as 1.5 times as many, or, where they leave much of the error (high orders on flat cells), as many as it takes if an
/// iteration leaves the square root of that; and if that is more than one half, the cycles of full multigrid, each of
/// which has to halve the residual, may not do.
template <class T>
void Comparison<T>::same_verdict(const Convergence& a, const Convergence& b) const {
  const auto describe = [](const Convergence& c) {
    return fmt::format("{} after {} iterations, residual {:.2e}", c.reason, c.iterations, c.history.back());
  };
  const auto message = [&] { return "expected: " + describe(a) + "; got: " + describe(b); };
  const int fewer = std::min(a.iterations, b.iterations);
  int slack = 1 + fewer / 10 + (std::is_same_v<T, float> && reaction() > 1e3 ? 1 : 0) +
              (local() == LocalSolverKind::cg || tolerance() > options_.rtol ? 1 : 0);
  double left = 0.0;  // by an iteration
  if (truncated_) {
    left = std::sqrt(error_of_local_solves(hierarchy(), local(), 0.0));
    const double iterations = std::log(options_.rtol) / std::log(left);
    slack = std::max(2 + fewer / 2, static_cast<int>(std::ceil(iterations)));
  }
  if (a.converged && b.converged) {
    const Convergence& slower = a.iterations < b.iterations ? b : a;
    const auto near = std::find_if(slower.history.begin(), slower.history.end(),
                                   [&](double residual) { return residual <= 2.0 * options_.rtol; });
    const auto more = std::min<std::ptrdiff_t>(slower.iterations, near - slower.history.begin());
    EXPECT_LE(more - fewer, slack) << message();
  } else if (a.converged || b.converged) {
    const Convergence& converged = a.converged ? a : b;
    EXPECT_TRUE(options_.method == Method::fmg ? left > 0.5 : converged.iterations + slack > options_.max_iterations)
        << message() << ", truncated local solves leave " << left;
  } else if (!truncated_ && options_.method != Method::fmg && std::isfinite(a.history.back())) {
    EXPECT_LE(std::max(a.history.back(), b.history.back()), 2.0 * std::min(a.history.back(), b.history.back()))
        << message();
  }
}

// Cases --------------------------------------------------------------------------------------------------------------

/// An InputError of a case is a refusal: the case is not compared.
class Pair {
 public:
  Pair(Engine& expected, Engine& actual, bool oracle) : expected_(expected), actual_(actual), oracle_(oracle) {}

  void compare(const test::RandomCase& drawn) {
    SCOPED_TRACE(fmt::format("{} and {} differ in seed {}:\n\n{}", expected_.description(), actual_.description(),
                             drawn.seed, drawn.file));
    try {
      const Case what = drawn.read();
      if (drawn.precision == Precision::mixed) {
        compare<float>(drawn, what);
      } else {
        compare<double>(drawn, what);
      }
    } catch (const InputError& error) {
      refused_.push_back(error.what());
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
  [[nodiscard]] const std::vector<std::string>& refused() const { return refused_; }

 private:
  template <class T>
  void compare(const test::RandomCase& drawn, const Case& what) {
    Comparison<T> comparison(expected_, actual_, what, oracle_);
    comparison.cycles(drawn.seed);
    comparison.solves();
  }

  Engine& expected_;
  Engine& actual_;
  bool oracle_;
  std::vector<std::string> refused_;
};

/// A part of all cases, so that several can be worked on at a time.
class RandomCases : public testing::TestWithParam<int> {
 public:
  static constexpr int parts = 8;

 protected:
  using Draw = test::RandomCase (*)(int seed);

  static void compare_cpu_with_reference(Draw draw) {
    const auto reference = make_reference_engine();
    const auto cpu = make_engine(DeviceChoice::cpu, 2);
    Pair pair(*reference, *cpu, true);
    compare(pair, draw);
  }
  static void compare_gpu_with_cpu(Draw draw) {
    if (const auto reason = cuda_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
    const auto cpu = make_engine(DeviceChoice::cpu, 2);
    const auto cuda = make_engine(DeviceChoice::cuda, 0);
    Pair pair(*cpu, *cuda, false);
    compare(pair, draw);
    for (const std::string& message : pair.refused()) fmt::print("refused: {}\n", message);
  }

 private:
  static void compare(Pair& pair, Draw draw) {
    for (int i = GetParam(); i < count_of_cases(); i += parts) pair.compare(draw(first_seed() + i));
  }
};

TEST_P(RandomCases, CpuEqualsTheReference) { compare_cpu_with_reference(small_case); }
TEST_P(RandomCases, CpuEqualsTheReferenceWhereCoefficientsVary) { compare_cpu_with_reference(varying_case); }
TEST_P(RandomCases, GpuEqualsTheCpu) { compare_gpu_with_cpu(small_case); }
TEST_P(RandomCases, GpuEqualsTheCpuWhereCoefficientsVary) { compare_gpu_with_cpu(varying_case); }

INSTANTIATE_TEST_SUITE_P(Parts, RandomCases, testing::Range(0, RandomCases::parts));

/// What is refused says where and why; most of what is drawn is not.
TEST(RandomDraws, AreMostlyCasesThatCanBeSolved) {
  const auto cpu = make_engine(DeviceChoice::cpu, 1);
  int solvable = 0;
  for (int i = 0; i < 2 * count_of_cases(); ++i) {
    const int seed = first_seed() + i / 2;
    const auto drawn = i % 2 == 0 ? small_case(seed) : varying_case(seed);
    try {
      const Case what = drawn.read();
      Discretisation discretisation(what.problem, what.solver, {});
      const auto kernels = make_kernels<double>(*cpu, discretisation.finest(), LocalSolverKind::direct);
      Vector<double> work(*cpu, discretisation.room());
      Vector<double> load(*cpu, discretisation.room());
      discretisation.load(*cpu, *kernels, work, load);
      ++solvable;
    } catch (const InvalidEntry&) {  // names the entry
    } catch (const InputError& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find('['), std::string::npos) << "names no key: " << message << "\n\n" << drawn.file;
    }
  }
  EXPECT_GE(solvable, 0.8 * 2 * count_of_cases());
}

/// Large cases, for which a GPU is there, with their times. A coarsest problem of more than 8192 unknowns is solved by
/// an inner Krylov method with parts on the host: there the GPU may be slower, and two iterations tell by how much.
TEST(LargeRandomCases, AreSolvedFasterByAGpu) {
  const int count = test::setting("SOLENOID_RANDOM_LARGE", 0);
  if (count == 0) GTEST_SKIP() << "SOLENOID_RANDOM_LARGE is not set";
  if (const auto reason = cuda_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
  constexpr std::int64_t large = 20000;
  constexpr std::int64_t largest_dense = 8192;
  const int threads = std::min(16U, std::thread::hardware_concurrency());
  const auto cpu = make_engine(DeviceChoice::cpu, threads);
  const auto cuda = make_engine(DeviceChoice::cuda, 0);
  Pair pair(*cpu, *cuda, false);
  const auto time = [&](int seed) {
    const test::RandomCase drawn = large_case(seed);
    Case what = drawn.read();
    const Hierarchy hierarchy(what.problem, what.solver.multigrid, cuda->dense_limits());
    const std::int64_t coarsest = hierarchy.levels[0]->dofs();
    if (hierarchy.finest().dofs() < large) return false;
    if (what.solver.precision == Precision::full_double) {  // refused before anything is compared
      const MultigridOptions& multigrid = what.solver.multigrid;
      make_kernels<double>(*cuda, hierarchy.finest(), multigrid.local_solver)
          ->prepare_smoother(multigrid.smoother == SmootherKind::additive);
    }
    const auto milliseconds = [&](DeviceChoice device, int times) {
      what.solver.device = device;
      what.solver.threads = threads;
      double best = std::numeric_limits<double>::infinity();
      for (int i = 0; i < times; ++i) best = std::min(best, 1e3 * solve(what.problem, what.solver).report.time_solve);
      return best;
    };
    if (coarsest > largest_dense) {
      what.solver.max_iterations = 2;
    } else {
      pair.compare(drawn);
    }
    const double on_gpu = milliseconds(DeviceChoice::cuda, 3);
    double on_cpu = milliseconds(DeviceChoice::cpu, 1);
    if (on_cpu < 2.0 * on_gpu) on_cpu = std::min(on_cpu, milliseconds(DeviceChoice::cpu, 2));
    fmt::print("{:5} {:9} {:9} {:9.2f} {:9.2f}{}\n", seed, hierarchy.finest().dofs(), coarsest, on_gpu, on_cpu,
               on_gpu > on_cpu ? "  slower" : "");
    std::fflush(stdout);
    EXPECT_TRUE(on_gpu <= on_cpu || coarsest > largest_dense) << "seed " << seed << "\n\n" << drawn.file;
    return true;
  };
  fmt::print(" seed  unknowns  coarsest  GPU [ms]  {} threads [ms]\n", threads);
  int timed = 0;
  for (int seed = first_seed(); seed < first_seed() + count; ++seed) {
    try {
      timed += time(seed) ? 1 : 0;
    } catch (const InputError& error) {
      fmt::print("{:5} refused: {}\n", seed, error.what());
    } catch (const ResourceError& error) {  // iterative local solvers of high orders
      fmt::print("{:5} refused: {}\n", seed, error.what());
    }
  }
  fmt::print("{} of {} timed\n", timed, count);
}

}  // namespace
}  // namespace solenoid
