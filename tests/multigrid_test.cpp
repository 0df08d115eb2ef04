/// \file
/// The multigrid method: every option works, and iteration counts stay small whatever the mesh.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "engine/engine.hpp"
#include "engines.hpp"
#include "flows.hpp"
#include "levels.hpp"
#include "problem/parts.hpp"
#include "problem/validate.hpp"
#include "solenoid/error.hpp"
#include "solver/discretisation.hpp"
#include "solver/hierarchy.hpp"
#include "solver/load.hpp"
#include "solver/methods.hpp"
#include "solver/multigrid/dense_inverse.hpp"

namespace solenoid {
namespace {

using test::paper;

SolverOptions options_with(std::uint64_t random_load, double rtol = 1e-8) {
  SolverOptions options;
  options.rtol = rtol;
  options.random_load = random_load;
  options.max_iterations = 100;
  options.threads = 1;  // small meshes; ctest runs many at a time
  return options;
}

/// Iterations to 1e-8, for a random right-hand side (the hardest) unless told otherwise; 1000 if there is no
/// convergence.
int iterations(const Problem& problem, const SolverOptions& options = options_with(1)) {
  const Report report = solve(problem, options).report;
  return report.converged ? report.iterations : 1000;
}

Problem on(const Mesh& mesh, int order, const Boundary& boundary = {}, double mass = 0.0) {
  return {.mesh = mesh, .order = order, .mass = mass, .boundary = boundary};
}
/// Square cells of size 2^-refine.
Mesh boxes(std::vector<int> cells, int refine, std::vector<IndexBox> holes = {}) {
  Mesh mesh{.dim = static_cast<int>(cells.size()), .refine = refine, .holes = std::move(holes)};
  for (int a = 0; a < mesh.dim; ++a) mesh.upper[a] = mesh.cells[a] = cells[a];
  return mesh;
}

// Options ------------------------------------------------------------------------------------------------------------

/// Rounds of GMRES that end with the correction of the round before take two iterations more than one round, those that
/// do not seven.
TEST(Gmres, RoundsKeepTheCorrectionBeforeThem) {
  if (!test::has_order(2, 2)) GTEST_SKIP() << "the order is not in this build";
  const Problem problem = paper(2, 2, 4);
  for (const Precision precision : {Precision::mixed, Precision::full_double}) {
    SolverOptions options;
    options.threads = 1;
    options.max_iterations = 100;
    options.precision = precision;
    options.multigrid.smoother = SmootherKind::additive;
    const Report whole = solve(problem, options).report;
    options.restart = 2;
    const Report rounds = solve(problem, options).report;
    EXPECT_TRUE(whole.converged && rounds.converged);
    EXPECT_LE(rounds.iterations, whole.iterations + 4) << rounds.precision;
  }
}

class Options : public testing::TestWithParam<std::tuple<int, LocalSolverKind>> {};
INSTANTIATE_TEST_SUITE_P(LocalSolvers, Options,
                         testing::Combine(testing::Values(2, 3),
                                          testing::Values(LocalSolverKind::direct, LocalSolverKind::chebyshev,
                                                          LocalSolverKind::cg, LocalSolverKind::dense)));

/// Each of 32 combinations with one of the local solvers: with each of these every two of the choices.
TEST_P(Options, AllCombinationsConverge) {
  const auto [dim, local] = GetParam();
  const int order = dim == 2 ? 2 : 1;
  if (!test::has_order(dim, order)) GTEST_SKIP() << "the order is not in this build";
  const Problem problem = paper(dim, order, dim == 2 && !test::sanitized ? 4 : 2);
  const auto engine = make_reference_engine();
  const Level level(equation_of(problem), coefficients_of(problem), Grid(problem.mesh, problem.boundary, true));
  const auto reference = engine->kernels_double(level, LocalSolverKind::direct);
  const HostVector load = assemble_load(problem, level);
  const double norm = std::sqrt(reference->dot(load.data(), load.data()));
  const auto true_residual = [&](const Solution& solution) {
    std::vector<double> r(load.size());
    reference->residual(load.data(), solution.coefficients().data(), r.data());
    return std::sqrt(reference->dot(r.data(), r.data())) / norm;
  };
  const int of_local = static_cast<int>(local);
  for (int choice = 0; choice < 32; ++choice) {
    const auto bit = [choice](int i) { return (choice >> i & 1) != 0; };
    if ((bit(0) ^ bit(1) ^ bit(3)) != ((of_local & 1) != 0)) continue;
    if ((bit(0) ^ bit(2) ^ bit(4)) != ((of_local & 2) != 0)) continue;
    const bool additive = bit(0);
    SolverOptions options;
    options.threads = 1;
    options.multigrid = {.smoother = additive ? SmootherKind::additive : SmootherKind::multiplicative,
                         .colour_order = bit(1) ? ColourOrder::lexicographic : ColourOrder::diagonal,
                         .patch = bit(2) ? PatchProblem::galerkin : PatchProblem::symmetric,
                         .local_solver = local};
    options.precision = bit(3) ? Precision::full_double : Precision::mixed;
    options.side = bit(4) ? PreconditionerSide::left : PreconditionerSide::right;
    const auto describe = [&](const Report& report) {
      return testing::Message() << (additive ? "additive" : "multiplicative") << (bit(1) ? ", lexicographic" : "")
                                << (bit(2) ? ", galerkin" : "") << ", " << report.precision << (bit(4) ? ", left" : "")
                                << ": " << report.reason << " after " << report.iterations;
    };

    const auto [solution, report] = solve(problem, options);
    EXPECT_TRUE(report.converged) << describe(report);
    EXPECT_LE(report.iterations, additive ? 30 : 7) << describe(report);
    const double residual = true_residual(solution);
    if (options.side == PreconditionerSide::left) {  // the report's is that of the preconditioned system
      EXPECT_LE(residual, 1e-6) << describe(report);
      continue;
    }
    EXPECT_NEAR(residual, report.residual_history.back(), 1e-2 * residual) << describe(report);
    EXPECT_LE(residual, options.rtol) << describe(report);

    options.restart = 3;
    options.max_iterations = 100;
    const Report restarted = solve(problem, options).report;
    EXPECT_TRUE(restarted.converged) << describe(restarted);
    EXPECT_GE(restarted.iterations, report.iterations);

    if (additive) continue;  // a preconditioner only: its V-cycle alone diverges
    options.method = Method::vcycle;
    const auto [iterated, vcycles] = solve(problem, options);
    EXPECT_TRUE(vcycles.converged) << describe(vcycles);
    EXPECT_LE(vcycles.iterations, 10) << describe(vcycles);
    EXPECT_NEAR(true_residual(iterated), vcycles.residual_history.back(), 1e-2 * options.rtol);
    options.method = Method::fmg;
    const auto [full, fmg] = solve(problem, options);
    EXPECT_TRUE(fmg.converged) << describe(fmg);
    EXPECT_NEAR(true_residual(full), fmg.residual_history.back(), 1e-2 * fmg.residual_history.back());
    options.cycles = 2;
    const Report twice = solve(problem, options).report;
    EXPECT_EQ(twice.iterations, 2);
    EXPECT_LE(twice.residual_history.back(), 0.5 * fmg.residual_history.back()) << describe(twice);
  }
}

TEST(SolverOptions, PaperPresetIsThePaper) {
  SolverOptions options;
  options.apply(Preset::paper);
  EXPECT_EQ(options.side, PreconditionerSide::left);
  EXPECT_EQ(options.multigrid.colour_order, ColourOrder::lexicographic);
  EXPECT_EQ(options.multigrid.patch, PatchProblem::galerkin);
  // Its levels go down to one patch, whatever an engine could solve at once.
  const Hierarchy hierarchy(paper(3, 1, 4), options.multigrid, {.than_by_cycle = 2000});
  EXPECT_EQ(hierarchy.size(), 4);
  EXPECT_EQ(hierarchy.coarse, CoarseSolve::patch);
}

/// The F-cycle for k = 0, and for k = 1 in 2D; for k = 1 in 3D a weaker penalty on levels coarsened in all directions
/// at once, and below.
TEST(SolverOptions, ChooseCycleAndPenaltyOfCoarseLevels) {
  const auto check = [](const Mesh& mesh, int order, const MultigridOptions& options, int cycle,
                        const std::vector<double>& penalties) {
    const Hierarchy hierarchy(on(mesh, order), options);
    EXPECT_EQ(cycle_index(options, hierarchy.finest().equation), cycle);
    std::vector<double> found;
    for (const auto& level : hierarchy.levels) found.insert(found.begin(), level->equation.relative_penalty);
    EXPECT_EQ(found, penalties);
  };
  const double weaker = 2.0 / 3.0;
  const Mesh cube = Mesh::unit(3, 3);
  Mesh brick = cube;
  brick.upper[0] = 2.0;
  Mesh flat = cube;
  flat.upper[0] = 1.0 / 16.0;
  check(cube, 0, {}, 2, {1.0, 1.0, 1.0});
  check(cube, 1, {}, 1, {1.0, weaker, weaker});
  check(cube, 2, {}, 1, {1.0, 1.0, 1.0});
  check(brick, 1, {}, 1, {1.0, 1.0, weaker, weaker});
  check(flat, 1, {}, 1, {1.0, 1.0, 1.0, 1.0, 1.0});
  check(Mesh::unit(2, 4), 1, {}, 2, {1.0, 1.0, 1.0, 1.0});
  check(cube, 1, {.cycle_index = 2, .coarse_penalty = 0.9}, 2, {1.0, 0.9, 0.9});
  SolverOptions paper;
  paper.apply(Preset::paper);
  check(cube, 1, paper.multigrid, 1, {1.0, 1.0, 1.0});
}

// Coarsest level ------------------------------------------------------------------------------------------------------

/// The inverse in precision T on the host.
template <class T>
std::pair<std::vector<std::int64_t>, Eigen::MatrixXd> inverse_of(Engine& engine, const Level& level) {
  const auto kernels = make_kernels<T>(engine, level, LocalSolverKind::direct);
  const DenseInverse<T> inverse = dense_inverse(engine, *kernels, LocalSolverKind::direct);
  std::vector<std::int64_t> index(inverse.index.size());
  inverse.index.download(index.data());
  const auto count = static_cast<Eigen::Index>(index.size());
  Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic> matrix(count, count);
  inverse.matrix.download(matrix.data());
  return {std::move(index), matrix.template cast<double>()};
}

double largest_width(const Level& level) {
  const Point widths = level.grid.metric().uniform_width();
  return *std::max_element(widths.begin(), widths.end());
}

/// Z A x = x without its constants, Z = 0 on constants, Z symmetric. Pressures are as large as those of velocities of
/// size one, and measured by that: where the reaction dominates, A x would otherwise have lost them in its rounding.
void expect_inverse(Engine& engine, const Level& level, const std::string& name,
                    const std::pair<std::vector<std::int64_t>, Eigen::MatrixXd>& inverse) {
  const std::vector<std::int64_t>& index = inverse.first;
  const Eigen::MatrixXd& matrix = inverse.second;
  ASSERT_EQ(matrix.rows(), level.dofs()) << name;
  EXPECT_EQ((matrix - matrix.transpose()).norm(), 0.0) << name;
  const auto kernels = make_kernels<double>(engine, level, LocalSolverKind::direct);
  Vector<double> x(engine, level.size());
  Vector<double> y(engine, level.size());
  const auto values_of = [&](const Vector<double>& v) {
    std::vector<double> host(static_cast<std::size_t>(level.size()));
    v.download(host.data());
    Eigen::VectorXd values(matrix.rows());
    for (Eigen::Index i = 0; i < values.size(); ++i) values[i] = host[index[i]];
    return values;
  };
  const Equation& equation = level.equation;
  const double h = largest_width(level);
  const int pressures = equation.velocities() * power(equation.n(), equation.dim);  // where they begin in a record
  Eigen::VectorXd unit = Eigen::VectorXd::Ones(matrix.rows());
  std::vector<double> random = test::random_vector(level, 5);
  for (Eigen::Index i = 0; i < unit.size(); ++i) {
    if (index[i] / interleave % equation.record() < pressures) continue;
    unit[i] = level.coefficients.viscosity / h + level.coefficients.reaction * h;
    random[index[i]] *= unit[i];
  }
  x.upload(random.data());
  const Eigen::VectorXd with_constants = values_of(x);
  kernels->project(x.data());
  kernels->apply(x.data(), y.data());
  const Eigen::VectorXd expected = values_of(x);
  // In these units the condition is some 1e4 at most, whatever the reaction.
  constexpr double factor = 10.0;
  constexpr double rounding = factor * 1e4 * std::numeric_limits<double>::epsilon();
  const Eigen::VectorXd error = (matrix * values_of(y) - expected).cwiseQuotient(unit);
  EXPECT_LE(error.norm(), rounding * expected.cwiseQuotient(unit).norm()) << name;
  const Eigen::VectorXd constants = with_constants - expected;
  EXPECT_LE((matrix * constants).norm(), 1e-10 * matrix.norm() * expected.norm()) << name;
}

/// On every engine, for all kinds of sides, and for alpha h^2 / nu from 0 to 1e8: for 0, and one of the others.
TEST(DenseInverse, IsExactToRounding) {
  constexpr std::array ratios{1.0, 1e4, 1e8};
  for (const auto& choice : test::engines()) {
    for (const int dim : {2, 3}) {
      std::vector<test::MeshCase> cases = test::mesh_cases(dim);
      const auto poisson = test::poisson_mesh_cases(dim);
      cases.insert(cases.end(), poisson.begin(), poisson.end());
      std::size_t number = 0;
      for (test::MeshCase& what : cases) {
        ++number;
        for (const int order : {0, 1, 2}) {
          if (!test::has_order(dim, order, what.equation)) continue;
          const Level plain = what.level(order);
          if (plain.dofs() > 600) continue;
          for (const double ratio : {0.0, ratios[(number + order) % ratios.size()]}) {
            what.mass = ratio * plain.coefficients.viscosity / std::pow(largest_width(plain), 2);
            const Level level = what.level(order);
            const std::string name = fmt::format("{}, {}, k = {}, {:g}", choice.name, what.name, order, ratio);
            const auto inverse = inverse_of<double>(choice.get(), level);
            expect_inverse(choice.get(), level, name, inverse);
            const Eigen::MatrixXd rounded = inverse.second.cast<float>().cast<double>();
            EXPECT_EQ((inverse_of<float>(choice.get(), level).second - rounded).norm(), 0.0) << name;
          }
        }
      }
    }
  }
}

#ifdef NDEBUG  // takes minutes without optimisation
/// Several thousand unknowns.
TEST(DenseInverse, OfLargeLevelsIsExactToRounding) {
  if (test::sanitized) GTEST_SKIP() << "takes long";
  const auto holes = test::box({6, 5, 3}, {{{1, 1, 1}, {2, 3, 2}}, {{4, 0, 0}, {5, 1, 3}}});
  const auto ends = test::sides({{1, SideKind::outflow}, {2, SideKind::slip}, {3, SideKind::slip}}, SideKind::slip);
  for (const auto& choice : test::engines()) {
    for (const test::MeshCase& what : {test::MeshCase{"walls", holes},
                                       {"ends", holes, ends},
                                       {"periodic", test::box({5, 4, 4}), test::periodic({0, 1, 2})},
                                       {"poisson", test::box({9, 8, 5}), {}, 1e4, EquationKind::poisson}}) {
      if (!test::has_order(3, 1, what.equation)) continue;
      const Level level = what.level(1);
      expect_inverse(choice.get(), level, choice.name + ", " + what.name, inverse_of<double>(choice.get(), level));
    }
  }
}
#endif

/// Walls leave a lone cell of order 0 its pressure, a constant, and nothing else.
TEST(DenseInverse, OfALoneCellIsZero) {
  if (!test::has_order(2, 0)) GTEST_SKIP() << "the order is not in this build";
  Problem problem;
  problem.mesh = Mesh::unit(2, 0);
  problem.order = 0;
  const Level level(equation_of(problem), coefficients_of(problem), Grid(problem.mesh, problem.boundary), PatchRules{});
  for (const auto& choice : test::engines()) {
    const Eigen::MatrixXd matrix = inverse_of<double>(choice.get(), level).second;
    ASSERT_EQ(matrix.size(), 1);
    EXPECT_EQ(matrix(0, 0), 0.0);
  }
}

/// Where levels cannot be coarsened further, an engine may prefer an inverse to the marker-and-cell scheme; where they
/// can be, that changes nothing.
TEST(DenseInverse, ReplacesTheMarkerAndCellScheme) {
  const DenseLimits large{.than_by_cycle = 2048, .than_by_mac = 8192};
  const auto check = [&](const Problem& problem, int levels, CoarseSolve coarse, int levels_on_cpu,
                         CoarseSolve coarse_on_cpu) {
    const Hierarchy hierarchy(problem, {}, large);
    EXPECT_EQ(hierarchy.size(), levels) << problem.mesh.cells[0];
    EXPECT_EQ(hierarchy.coarse, coarse) << problem.mesh.cells[0];
    const Hierarchy on_cpu(problem, {});
    EXPECT_EQ(on_cpu.size(), levels_on_cpu) << problem.mesh.cells[0];
    EXPECT_EQ(on_cpu.coarse, coarse_on_cpu) << problem.mesh.cells[0];
  };
  const auto dense = CoarseSolve::dense;
  const auto mac = CoarseSolve::mac;
  check(on(boxes({5, 5, 5}, 1), 1), 2, dense, 2, mac);  // 4000
  check(on(boxes({5, 5, 5}, 2), 1), 3, dense, 3, mac);
  check(on(boxes({7, 7, 7}, 1), 1), 2, mac, 2, mac);    // 10976
  check(on(boxes({3, 3, 3}, 0), 2), 1, dense, 1, mac);  // the finest, too: 2916
  // Patches cover one refinement of the boxes, but not the boxes themselves: 6264 unknowns. Small patches do.
  const std::vector<IndexBox> holes{{{1, 1, 1}, {2, 2, 3}}, {{2, 2, 0}, {3, 3, 2}}, {{0, 3, 2}, {1, 4, 4}}};
  check(on(boxes({4, 4, 4}, 2, holes), 2), 3, dense, 3, mac);
  // 6912 unknowns at 4^3 cells, which can be coarsened.
  EXPECT_EQ(Hierarchy(on(Mesh::unit(3, 4), 2), {}, large).size(), 4);
  EXPECT_EQ(Hierarchy(on(Mesh::unit(3, 4), 2), {}).size(), 4);
  check(on(boxes({4, 4, 4}, 0, holes), 2), 1, dense, 1, mac);
}

/// GMRES from the left needs a linear cycle: where an engine inverts the coarsest level, and not where Krylov
/// methods take part in its solution.
TEST(Gmres, FromTheLeftIsRefusedWhereTheCycleIsNotLinear) {
  const Problem problem = on(boxes({5, 5, 5}, 1), 1);
  const DenseLimits large{.than_by_cycle = 2048, .than_by_mac = 8192};
  SolverOptions left;
  left.side = PreconditionerSide::left;
  EXPECT_NO_THROW(Discretisation(problem, left, large));
  EXPECT_NO_THROW(Discretisation(problem, {}, DenseLimits{}));
  try {
    Discretisation(problem, left, DenseLimits{});
    ADD_FAILURE() << "not refused";
  } catch (const InvalidEntry& refused) {
    EXPECT_EQ(refused.entry, "side");
    EXPECT_THAT(refused.problem, testing::HasSubstr("Krylov methods take part in solving it: use \"right\""));
  }
}

/// An engine may have levels end early.
TEST(DenseInverse, OfALargerLevelSolvesTheSame) {
  if (!test::has_order(3, 1)) GTEST_SKIP() << "the order is not in this build";
  const Problem problem = paper(3, 1, 3);
  const auto engine = make_cpu_engine(1);
  std::vector<std::vector<double>> solutions;
  std::vector<int> counts;
  for (const std::int64_t limit : {0, 2000}) {
    const Hierarchy hierarchy(problem, {}, {.than_by_cycle = limit});
    EXPECT_EQ(hierarchy.size(), limit == 0 ? 3 : 2);
    EXPECT_EQ(hierarchy.coarse, limit == 0 ? CoarseSolve::patch : CoarseSolve::dense);
    const SolverOptions options;
    Solve<float> solve(*engine, hierarchy, options);
    Vector<double> b(*engine, hierarchy.finest().size());
    Vector<double> x(*engine, hierarchy.finest().size());
    b.upload(random_vector(hierarchy.finest(), 1).data());
    solve.outer().project(b.data());
    Convergence convergence;
    solve.run(b.data(), x.data(), true, convergence);
    solve.outer().project(x.data());
    EXPECT_TRUE(convergence.converged);
    counts.push_back(convergence.iterations);
    solutions.emplace_back(x.size());
    x.download(solutions.back().data());
  }
  EXPECT_LE(std::abs(counts[0] - counts[1]), 1);
  const Eigen::Map<const Eigen::VectorXd> first(solutions[0].data(), static_cast<Eigen::Index>(solutions[0].size()));
  const Eigen::Map<const Eigen::VectorXd> second(solutions[1].data(), first.size());
  EXPECT_LE((first - second).norm(), 1e-5 * first.norm());
  // The finest level is never solved directly because an engine likes to.
  EXPECT_EQ(Hierarchy(paper(3, 1, 2), {}, {.than_by_cycle = 2000}).size(), 2);
}

// GMRES --------------------------------------------------------------------------------------------------------------

struct SolvedFromTheLeft {
  int applied = 0;  ///< cycles
  Convergence convergence;
  double residual = 0.0;  ///< as a cycle in double precision measures it
};

/// By GMRES with a cycle in precision S on the left.
template <class S>
SolvedFromTheLeft solve_from_the_left(const Problem& problem, const SolverOptions& options) {
  const auto engine = make_cpu_engine(1);
  const Hierarchy hierarchy(problem, options.multigrid);
  CyclePreconditioner<S> preconditioner(*engine, hierarchy, options);
  Kernels<double>& kernels = preconditioner.outer();
  const std::int64_t size = hierarchy.finest().size();
  Vector<double> b(*engine, size);
  Vector<double> x(*engine, size);
  b.upload(assemble_load(problem, hierarchy.finest()).data());
  kernels.project(b.data());
  SolvedFromTheLeft solved;
  const Precondition<double, double> counted = [&](const double* r, double* z) {
    ++solved.applied;
    preconditioner.apply(r, z);
  };
  solved.convergence.rtol = options.rtol;
  KrylovSpace<double> space;
  constexpr double rounding = std::is_same_v<S, double> ? 1e-13 : 1e-5;
  gmres_left<double>(*engine, kernels, counted, b.data(), x.data(), true, options.restart, rounding, solved.convergence,
                     space);
  EXPECT_TRUE(solved.convergence.converged) << solved.convergence.reason;

  CyclePreconditioner<double> exact(*engine, hierarchy, options);
  Vector<double> r(*engine, size);
  const auto norm_after_cycle = [&](const double* vector) {
    exact.apply(vector, r.data());
    return std::sqrt(kernels.dot(r.data(), r.data()));
  };
  const double norm = norm_after_cycle(b.data());
  kernels.residual(b.data(), x.data(), r.data());
  solved.residual = norm_after_cycle(r.data()) / norm;
  return solved;
}

/// The cycle is applied once for each iteration, for the right-hand side, and where it starts again. What is said of
/// the residual is true.
template <class S>
void check_left(int restart, double rtol) {
  SolverOptions options;
  options.restart = restart;
  options.rtol = rtol;
  const auto [applied, convergence, residual] =
      solve_from_the_left<S>(paper(3, test::has_order(3, 1) ? 1 : 2, 2), options);
  EXPECT_LE(convergence.iterations, 12);
  const int starts = restart > 0 ? (convergence.iterations + restart - 1) / restart : 1;
  EXPECT_EQ(applied, convergence.iterations + starts);
  EXPECT_NEAR(residual, convergence.history.back(), 0.01 * convergence.history.back());
}

TEST(LeftGmres, AppliesTheCycleOncePerIteration) {
  for (const int restart : {0, 2}) {
    for (const double rtol : {1e-3, 1e-8, 1e-11}) {
      SCOPED_TRACE(testing::Message() << "restart " << restart << ", rtol " << rtol);
      check_left<float>(restart, rtol);
      check_left<double>(restart, rtol);
    }
  }
}

/// Where viscosities jump, combinations change by much more than the residual: what was said of it was once a
/// thousandth of what it was.
TEST(LeftGmres, KnowsItsResidualWhereViscositiesJump) {
  if (!test::has_order(2, 4)) GTEST_SKIP() << "order 4 is not in this build";
  Problem problem = paper(2, 4, 1);
  problem.mesh.cells = {2, 2, 1};
  problem.varying_viscosity = ScalarField::expression("x > 0.4 ? 1e4 : 1", 2);
  problem.form = ViscousForm::gradient;
  SolverOptions options;
  options.rtol = 1e-7;
  const auto [applied, convergence, residual] = solve_from_the_left<float>(problem, options);
  EXPECT_LE(residual, 1.1 * options.rtol);
  EXPECT_NEAR(residual, convergence.history.back(), 0.1 * convergence.history.back());
}

/// Long or flat domains: where short directions have two cells left, the others are coarsened on.
TEST(Hierarchy, GoesDownToASmallLevelWhateverTheAspect) {
  const auto check = [](const Mesh& mesh, int order) {
    if (!test::has_order(mesh.dim, order)) return;
    const Hierarchy hierarchy(on(mesh, order), {});
    EXPECT_NE(hierarchy.coarse, CoarseSolve::mac);
    EXPECT_NE(hierarchy.coarse, CoarseSolve::krylov);
    const Level& coarsest = *hierarchy.levels.front();
    EXPECT_TRUE(hierarchy.coarse == CoarseSolve::patch || coarsest.dofs() <= 1000) << coarsest.dofs();
    for (int l = 1; l < hierarchy.size(); ++l) EXPECT_TRUE(hierarchy.levels[l]->patches.cover_everything) << l;
  };
  for (const int order : {1, 2, 3}) {
    for (const double ratio : {16.0, 64.0, 1.0 / 16.0, 1.0 / 64.0}) {
      for (int a = 0; a < 3; ++a) {
        SCOPED_TRACE(testing::Message() << "order " << order << ", ratio " << ratio << " in direction " << a);
        Mesh mesh = Mesh::unit(3, 4);
        mesh.upper[a] = ratio;
        check(mesh, order);
        if (a == 2) continue;
        Mesh flat = Mesh::unit(2, 7);
        flat.upper[a] = ratio * ratio;
        check(flat, order);
      }
    }
  }
}

// Iteration counts ---------------------------------------------------------------------------------------------------

/// A random right-hand side is the hardest: 1.5 to 2 iterations more than a smooth one.
class Iterations : public testing::TestWithParam<std::tuple<int, int>> {
 protected:
  void SetUp() override {
    if (!test::has_order(dim(), order())) GTEST_SKIP() << "the order is not in this build";
    if (test::sanitized && dim() == 3) GTEST_SKIP() << "takes long";
  }
  [[nodiscard]] int dim() const { return std::get<0>(GetParam()); }
  [[nodiscard]] int order() const { return std::get<1>(GetParam()); }
  /// What one box needs. k = 0 grows slowly with refinement.
  [[nodiscard]] int usual() const {
    constexpr std::array<int, 4> counts_2d{22, 13, 6, 4};
    constexpr std::array<int, 4> counts_3d{17, 9, 6, 4};
    return (dim() == 2 ? counts_2d : counts_3d)[order()];
  }
  void expect_few(const std::string& name, const Mesh& mesh, const Boundary& boundary = {}, int more = 1,
                  double mass = 0.0) const {
    const Problem problem{.mesh = mesh, .order = order(), .mass = mass, .boundary = boundary};
    // A single level that is too large for an inverse is smoothed and corrected once an iteration.
    constexpr int of_single_level = 13;
    const Hierarchy hierarchy(problem, {});
    const bool single = hierarchy.size() == 1 && hierarchy.coarse == CoarseSolve::mac;
    EXPECT_LE(iterations(problem), single ? std::max(of_single_level, usual() + more) : usual() + more) << name;
  }
};
INSTANTIATE_TEST_SUITE_P(Orders, Iterations, testing::Combine(testing::Values(2, 3), testing::Range(0, 4)));

TEST_P(Iterations, OneBoxAtEveryRefinement) {
  for (int refine = 0; refine <= (dim() == 2 ? 6 : 4) - order() / 3; ++refine) {
    expect_few("refine " + std::to_string(refine), Mesh::unit(dim(), refine));
  }
}

TEST_P(Iterations, PaperProblem) {
  if (order() == 0) GTEST_SKIP() << "the paper's orders are higher";
  const int bound = dim() == 2 ? std::array{0, 11, 5, 4}[order()] : std::array{0, 6, 4, 3}[order()];
  const int most = (dim() == 2 ? std::array{0, 6, 6, 5} : std::array{0, 5, 4, 3})[order()];
  for (int refine = 1; refine <= most; ++refine) {
    const int count = iterations(paper(dim(), order(), refine), options_with(0));
    EXPECT_LE(count, bound) << "refine " << refine;
  }
}

TEST_P(Iterations, CoarseMeshesOfManyBoxes) {
  const auto meshes = dim() == 2 ? std::vector<std::vector<int>>{{2, 3}, {7, 5}, {21, 21}, {1, 40}, {33, 2}}
                                 : std::vector<std::vector<int>>{{2, 3, 1}, {5, 5, 5}, {22, 1, 1}};
  for (const auto& cells : meshes) {
    const bool large = cells == std::vector{5, 5, 5} || cells == std::vector{21, 21};
    const int most = (dim() == 2 ? 3 : 2) - (large ? 1 : 0);
    for (int refine = 1; refine <= most; ++refine) {
      expect_few(std::to_string(cells[0]) + " boxes, refine " + std::to_string(refine), boxes(cells, refine));
    }
  }
  if (dim() == 3 && order() == 1) expect_few("12 x 11 x 10 boxes", boxes({12, 11, 10}, 1));
}

TEST_P(Iterations, MeshesWithoutRefinement) {
  const auto meshes = dim() == 2 ? std::vector<std::vector<int>>{{8, 8}, {16, 16}, {17, 15}, {2, 31}}
                                 : std::vector<std::vector<int>>{{4, 4, 4}, {8, 8, 8}, {7, 6, 5}};
  for (const auto& cells : meshes) expect_few(std::to_string(cells[0]) + " boxes", boxes(cells, 0));
}

/// Cells too far from cubes for the block factorisation, and too many for an inverse: an inner Krylov method.
TEST_P(Iterations, StretchedCellsThatDoNotPairUp) {
  for (const double ratio : {5.0, 17.0}) {
    const bool high = order() > 1;  // fewer cells are too many
    Mesh mesh = dim() == 2 ? boxes(high ? std::vector{21, 13} : std::vector{41, 25}, 0)
                           : boxes(high ? std::vector{5, 5, 5} : std::vector{9, 7, 7}, 0);
    mesh.upper[0] = mesh.lower[0] + ratio * (mesh.upper[0] - mesh.lower[0]);
    const Hierarchy hierarchy({.mesh = mesh, .order = order()}, {});
    EXPECT_EQ(hierarchy.coarse, CoarseSolve::krylov);
    EXPECT_EQ(hierarchy.size(), 1);
    expect_few("1 : " + std::to_string(ratio), mesh, {}, 0);
  }
}

TEST_P(Iterations, UnionsOfBoxes) {
  if (dim() == 2) {
    expect_few("L-shape", boxes({2, 2}, 4, {{{1, 1}, {2, 2}}}), {}, 2);
    expect_few("step", boxes({6, 2}, 3, {{{0, 0}, {2, 1}}}), {}, 2);
    expect_few("hole", boxes({3, 3}, 3, {{{1, 1}, {2, 2}}}), {}, 2);
    expect_few("zigzag", boxes({5, 3}, 3, {{{1, 0}, {2, 2}}, {{3, 1}, {4, 3}}}), {}, 2);
    expect_few("obstacle", boxes({8, 4}, 3, {{{2, 1}, {3, 2}}}), test::periodic({0}), 2);
    return;
  }
  const int refine = order() == 3 ? 1 : 2;
  // Of the random loads on these few cells, half reach 1e-8 in the sixth iteration and half miss it by little.
  expect_few("L-shape", boxes({2, 2, 1}, refine, {{{1, 1, 0}, {2, 2, 1}}}), {}, order() == 3 ? 3 : 2);
  expect_few("cavity", boxes({3, 3, 3}, refine, {{{1, 1, 1}, {2, 2, 2}}}), {}, 2);
  expect_few("tunnel", boxes({3, 3, 2}, refine, {{{1, 1, 0}, {2, 2, 2}}}), {}, 2);
  expect_few("obstacle", boxes({4, 3, 2}, refine, {{{1, 1, 0}, {2, 2, 1}}}), test::periodic({0}), 2);
}

/// Boxes removed at random, as long as the domain hangs together.
TEST_P(Iterations, PorousSamples) {
  std::mt19937 generator(11);
  Problem problem = on(dim() == 2 ? boxes({12, 10}, 2) : boxes({5, 4, 5}, 1), order());
  Mesh& mesh = problem.mesh;
  const int count = dim() == 2 ? 40 : 30;
  for (int i = 0; i < count; ++i) {
    IndexBox hole;
    for (int a = 0; a < dim(); ++a) {
      hole.lower[a] = static_cast<int>(generator() % mesh.cells[a]);
      hole.upper[a] = hole.lower[a] + 1;
    }
    mesh.holes.push_back(hole);
    if (parts_of(mesh, {}).count != 1) mesh.holes.pop_back();
  }
  expect_few("walls", mesh, {}, 3);
  if (dim() == 2 || order() < 3) expect_few("periodic", mesh, test::periodic({0}), 3);
  // Ends of small patches are walls, where nothing is here.
  expect_few("slip", mesh, test::sides({}, SideKind::slip), order() == 3 ? 10 : 6);
}

TEST_P(Iterations, PeriodicDomains) {
  const int refine = (dim() == 2 ? 4 : 3) - order() / 3;
  const Mesh mesh = Mesh::unit(dim(), refine);
  const std::vector<int> all = dim() == 2 ? std::vector{0, 1} : std::vector{0, 1, 2};
  expect_few("one direction", mesh, test::periodic({1}));
  expect_few("all directions", mesh, test::periodic(all));
  expect_few("all directions, with mass", mesh, test::periodic(all), 1, 10.0);
  const Mesh odd = dim() == 2 ? boxes({13, 7}, 0) : boxes({5, 3, 4}, 0);
  expect_few("odd ring", odd, test::periodic({0}), 2);
  expect_few("odd rings", odd, test::periodic(all), 2);
  expect_few("odd rings, with mass", odd, test::periodic(all), 2, 1.0);
}

TEST_P(Iterations, SlipAndOutflowSides) {
  constexpr auto slip = SideKind::slip;
  constexpr auto outflow = SideKind::outflow;
  const int refine = (dim() == 2 ? 5 : 3) - order() / 3;
  const Mesh mesh = Mesh::unit(dim(), refine);
  const int more = dim() == 2 ? 1 : 2;
  expect_few("slip", mesh, test::sides({{0, slip}}), more);
  expect_few("two slip", mesh, test::sides({{0, slip}, {3, slip}}), more);
  expect_few("three slip", mesh, test::sides({{0, slip}, {1, slip}, {3, slip}}), more);
  expect_few("outflow", mesh, test::sides({{1, outflow}}), more);
  expect_few("two outflow", mesh, test::sides({{0, outflow}, {1, outflow}}), more);
  expect_few("outflow at a corner", mesh, test::sides({{1, outflow}, {2, outflow}}), more);
  // No side holds the flow: constant velocities are left to the coarsest problem, which is one patch.
  std::vector<std::pair<int, SideKind>> open{{0, outflow}, {1, outflow}};
  std::vector<std::pair<int, SideKind>> frictionless = open;
  for (int side = 2; side < 2 * dim(); ++side) {
    open.emplace_back(side, outflow);
    frictionless.emplace_back(side, slip);
  }
  expect_few("open on all sides", mesh, test::sides(open), more);
  expect_few("frictionless channel", mesh, test::sides(frictionless), more);
  expect_few("channel", mesh, test::sides({{0, outflow}, {1, outflow}, {2, slip}}), more);
  expect_few("slip channel", mesh, test::sides({{1, outflow}, {2, slip}, {3, slip}}), more);
}

/// One patch, whose local problem maps constant velocities to zero: it leaves rounding.
TEST_P(Iterations, DenseLocalSolversOfAPatchWithoutWalls) {
  if (dim() == 3 && order() > 4) GTEST_SKIP() << "takes its time";
  Boundary open;
  for (int side = 0; side < 2 * dim(); ++side) open.sides[side].kind = SideKind::outflow;
  SolverOptions options = options_with(1);
  for (const auto local : {LocalSolverKind::direct, LocalSolverKind::dense}) {
    options.multigrid.local_solver = local;
    EXPECT_LE(iterations(on(Mesh::unit(dim(), 1), order(), open), options), 2) << static_cast<int>(local);
  }
}

TEST_P(Iterations, FlatCellsAreSemicoarsened) {
  if (order() == 0) GTEST_SKIP() << "not promised";
  const int refine = dim() == 2 ? 5 : 3;
  if (dim() == 3 && order() != 2) GTEST_SKIP() << "not promised";
  const int cube = iterations(on(Mesh::unit(dim(), refine), order()));
  for (const double ratio : {2.0, 3.0, 8.0, 16.0}) {
    for (int a = 0; a < dim(); ++a) {
      Mesh flat = Mesh::unit(dim(), refine);
      flat.upper[a] = 1.0 / ratio;
      const int count = iterations(on(flat, order()));
      EXPECT_LE(count, 1.5 * cube) << "ratio " << ratio << " in direction " << a;
    }
  }
  if (dim() == 3) {
    // Three lengths: the shortest is coarsened first, alone.
    for (const Point& upper :
         {Point{8.0, 4.0, 1.0}, Point{1.0, 3.0, 8.0}, Point{1.0, 8.0, 0.125}, Point{1.9, 1.4, 1.0}}) {
      Mesh brick = Mesh::unit(3, refine);
      brick.upper = upper;
      EXPECT_LE(iterations(on(brick, order())), 1.5 * cube) << upper[0] << " x " << upper[1] << " x " << upper[2];
    }
  }
  Mesh split = Mesh::unit(dim(), refine - 1);
  split.cells[1] = 8;
  EXPECT_LE(iterations(on(split, order())), 1.5 * cube);
}

/// For k = 1, too, though only levels of cubes have its weaker penalty: the F-cycle would not save more than two.
TEST(SemicoarsenedIterations, OfTheVCycleAreNearlyThoseOfTheFCycle) {
  if (!test::has_order(3, 1)) GTEST_SKIP() << "the order is not in this build";
  for (const Point& upper : {Point{4.0, 1.0, 1.0}, Point{1.0, 1.0, 16.0}, Point{0.25, 1.0, 1.0},
                             Point{1.0, 0.0625, 1.0}, Point{1.0, 3.0, 8.0}}) {
    Mesh brick = Mesh::unit(3, 3);
    brick.upper = upper;
    SolverOptions twice = options_with(1);
    twice.multigrid = {.cycle_index = 2, .coarse_penalty = 1.0};
    EXPECT_LE(iterations(on(brick, 1)), iterations(on(brick, 1), twice) + 2)
        << upper[0] << " x " << upper[1] << " x " << upper[2];
  }
}

/// Down to levels on which patches span the domain in the short directions.
TEST_P(Iterations, LongAndFlatDomains) {
  if (order() < 2) GTEST_SKIP() << "not promised";
  const int refine = dim() == 2 ? 5 : 3;
  const int square = iterations(on(Mesh::unit(dim(), refine), order()));
  for (const double ratio : {64.0, 1.0 / 64.0}) {
    for (int a = 0; a < dim(); ++a) {
      Mesh mesh = Mesh::unit(dim(), refine);
      mesh.upper[a] = ratio;
      EXPECT_LE(iterations(on(mesh, order())), 2 * square) << "ratio " << ratio << " in direction " << a;
    }
  }
}

TEST_P(Iterations, MassAndViscosityAddNone) {
  const int refine = (dim() == 2 ? 4 : 3) - order() / 3;
  Problem problem = on(Mesh::unit(dim(), refine), order());
  const int stokes = iterations(problem);
  const double h2 = std::pow(0.25, refine);
  for (const double mass : {1e-2, 1.0, 1e2, 1e4}) {
    problem.mass = mass / h2;
    const int count = iterations(problem);
    EXPECT_LE(count, stokes + 1) << "alpha h^2 = " << mass;
  }
  problem.mass = 0.0;
  for (const double viscosity : {1e-6, 1e-3, 1e3, 1e6}) {
    Problem forced = problem;
    forced.force = Manufactured(ManufacturedKind::gaussian, dim()).force;
    const int count = iterations(forced, options_with(0));
    forced.viscosity = viscosity;
    const int mine = iterations(forced, options_with(0));
    // Velocities a million times as large as forces: their rounding in single precision is seen in the divergence.
    EXPECT_LE(mine, count + (viscosity < 1e-3 ? 1 : 0)) << "viscosity " << viscosity;
  }
}

/// The Schur complement of a patch changes from a mass matrix to a Laplacian as the reaction grows.
TEST_P(Iterations, IterativeLocalSolversKeepUpWithTheReaction) {
  const int refine = dim() == 2 ? 4 : 2;
  const Mesh mesh = Mesh::unit(dim(), refine);
  constexpr double viscosity = 0.01;
  const Boundary open = test::sides({{1, SideKind::outflow}, {2, SideKind::slip}});
  for (const auto& choice : test::engines()) {
    const Level level(equation_of(on(mesh, order())), Coefficients{}, Grid(mesh, {}), PatchRules{});
    if (!test::has_order_of(choice.get(), level)) continue;
    for (const bool is_open : {false, true}) {
      for (const double reaction : {0.0, 1.0, 1e2, 1e4, 1e6}) {                         // alpha h^2 / nu
        if (is_open && order() == 3 && (reaction == 1.0 || reaction == 1e4)) continue;  // takes long
        Problem problem = on(mesh, order(), is_open ? open : Boundary{}, reaction * viscosity * std::pow(4.0, refine));
        problem.viscosity = viscosity;
        SolverOptions options = options_with(1);
        options.device = choice.device;
        const int direct = iterations(problem, options);
        ASSERT_LE(direct, 100);
        for (const auto local : {LocalSolverKind::chebyshev, LocalSolverKind::cg}) {
          options.multigrid.local_solver = local;
          EXPECT_LE(iterations(problem, options), 1.5 * direct + 2)
              << choice.name << (local == LocalSolverKind::cg ? ", cg" : ", chebyshev")
              << ", alpha h^2 / nu = " << reaction << (is_open ? ", open" : "") << ", direct " << direct;
        }
      }
    }
  }
}

}  // namespace
}  // namespace solenoid
