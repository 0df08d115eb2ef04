/// \file
/// Several ranks against one: kernels on parts of a level against those of all of it, and whole solves. To be started
/// by mpirun; every rank does the serial work, too.
///
/// Cuts lie anywhere: seeds are single cells with random weights. Ghosts are NaN before each kernel and where they are
/// not what their owners have.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "base/agreement.hpp"
#include "compare_kernels.hpp"
#include "flows.hpp"
#include "parts_of_levels.hpp"
#include "problem/names.hpp"
#include "random_cases.hpp"
#include "solenoid/arrays.hpp"
#include "solenoid/communicator.hpp"
#include "solenoid/error.hpp"
#include "solenoid/output.hpp"
#include "solenoid/time_stepper.hpp"
#include "solve_on.hpp"
#include "solver/discretisation.hpp"
#include "solver/load.hpp"

namespace solenoid {
namespace {

using namespace on_ranks;

// Kernels ------------------------------------------------------------------------------------------------------------

/// On levels with all boundary hats.
void compare_convection(const Levels& levels) {
  const auto whole = on_one().make_convection(levels.whole, ConvectiveFlux::upwind);
  const auto part = on_all().make_convection(levels.part, ConvectiveFlux::upwind);
  const Values u = test::random_vector(levels.whole, 1, true);
  Vector<double> expected(on_one(), levels.whole.size());
  Vector<double> got(on_all(), levels.part.size());
  Vector<double> work(on_one(), levels.whole.size());
  Vector<double> work_of_part(on_all(), levels.part.size());
  const double rate = whole->apply(on<double>(on_one(), u).data(), expected.data(), work.data());
  const double rate_of_all =
      part->apply(on<double>(on_all(), levels.part_of(u)).data(), got.data(), work_of_part.data());
  const double difference = levels.difference(from(got), from(expected));
  expect_everywhere(difference <= 1e-12, fmt::format("convection: {}", difference));
  expect_everywhere(std::abs(rate - rate_of_all) <= 1e-12 * rate, fmt::format("rates {} and {}", rate, rate_of_all));
}

/// To a coarser level that is shared by the ranks, or whole on each, and back.
template <class T>
void compare_transfers(const test::MeshCase& what, int order, bool shared) {
  test::MeshCase refined = what;
  refined.mesh.refine = 1;
  const auto partition = cut(what.mesh, extent_of(what.mesh), 3);
  auto choices = test::coarsenings(refined.level(order).grid);
  if (order > 1 && what.mesh.dim == 3) choices.erase(choices.begin(), choices.end() - 1);  // for time
  for (const Coarsening& pairs : choices) {
    Levels fine(refined, order, {}, false, partition);
    fine.whole.coarsening = fine.part.coarsening = pairs;
    const Level coarse(fine.whole.equation, fine.whole.coefficients, fine.whole.grid.coarsen(pairs));
    const Level coarse_part(fine.whole.equation, fine.whole.coefficients,
                            shared ? fine.part.grid.coarsen(pairs) : fine.part.grid.coarsen_whole(pairs));
    const auto kernels = make_kernels<T>(on_one(), fine.whole, LocalSolverKind::direct);
    const auto part_kernels = make_kernels<T>(on_all(), fine.part, LocalSolverKind::direct);
    const auto coarse_kernels = make_kernels<T>(on_all(), coarse_part, LocalSolverKind::direct);
    const Values x = test::random_vector(fine.whole, 1);
    const Values c = test::random_vector(coarse, 2);
    const std::string name =
        fmt::format("{} {}{}{}", shared ? "shared" : "whole", pairs.merges(0), pairs.merges(1), pairs.merges(2));
    // of the coarse level: records by their places
    const GatherPlan* plan = nullptr;
    std::unique_ptr<GatherPlan> made;
    if (shared) plan = (made = std::make_unique<GatherPlan>(coarse_part.grid, coarse.grid)).get();

    // fine x -> coarse, by way of the residual, whose rows next to owned ones are there
    Vector<T> all = on<T>(on_one(), x);
    Vector<T> zero(on_one(), fine.whole.size());
    Vector<T> r(on_one(), fine.whole.size());
    Vector<T> restricted(on_one(), coarse.size());
    kernels->residual(zero.data(), all.data(), r.data());
    kernels->restrict_to(coarse, r.data(), restricted.data());
    Vector<T> mine = on<T>(on_all(), fine.part_of(x));
    Vector<T> my_zero(on_all(), fine.part.size());
    Vector<T> my_r(on_all(), fine.part.size());
    Vector<T> my_restricted(on_all(), coarse_part.size());
    part_kernels->residual(my_zero.data(), mine.data(), my_r.data());
    part_kernels->restrict_to(coarse_part, my_r.data(), my_restricted.data());
    const Values expected = from(restricted);
    const Values got = from(my_restricted);
    double most = 0.0;
    double size = 1e-300;
    for (const double value : expected) size = std::max(size, std::abs(value));
    const auto differ = [&](double a, double b) {
      if (!(std::abs(a - b) <= most)) most = std::abs(a - b);
    };
    if (shared) {
      for (std::size_t j = 0; j < plan->known.size(); ++j) {
        if (!coarse_part.grid.layout().is_owned(plan->known[j])) continue;
        for (int i = 0; i < coarse.equation.record(); ++i) {
          differ(got[coarse_part.index(plan->known[j], i)], expected[coarse.index(plan->same[j], i)]);
        }
      }
    } else {
      for (std::size_t i = 0; i < expected.size(); ++i) differ(got[i], expected[i]);
    }
    const double tolerance = sizeof(T) == 4 ? 2e-4 : 1e-10;
    expect_everywhere(most <= tolerance * size, fmt::format("restriction, {}: {}", name, most / size));

    // coarse c -> fine
    Values my_c = c;
    if (shared) {
      my_c.assign(coarse_part.size(), 0.0);
      for (std::size_t j = 0; j < plan->known.size(); ++j) {
        for (int i = 0; i < coarse.equation.record(); ++i) {
          my_c[coarse_part.index(plan->known[j], i)] = coarse_part.grid.layout().is_owned(plan->known[j])
                                                           ? c[coarse.index(plan->same[j], i)]
                                                           : std::numeric_limits<double>::quiet_NaN();
        }
      }
    }
    kernels->prolong_add(coarse, on<T>(on_one(), c).data(), all.data());
    kernels->apply(all.data(), r.data());
    part_kernels->bring_ghosts(fine.part, mine.data());
    part_kernels->prolong_add(coarse_part, on<T>(on_all(), my_c).data(), mine.data());
    part_kernels->apply(mine.data(), my_r.data());
    const double prolonged = fine.difference(from(mine), from(all));
    expect_everywhere(prolonged <= tolerance, fmt::format("prolongation, {}: {}", name, prolonged));
    const double applied = fine.difference(from(my_r), from(r));  // reads the ghosts
    expect_everywhere(applied <= tolerance, fmt::format("prolongation with its ghosts, {}: {}", name, applied));
  }
}

class RanksKernels : public testing::TestWithParam<int> {
 protected:
  static std::vector<test::MeshCase> cases(int dim) {
    auto all = test::mesh_cases(dim);
    for (auto& what : test::poisson_mesh_cases(dim)) all.push_back(what);
    return all;
  }
};

TEST_P(RanksKernels, EqualThoseOfOne) {
  const int order = GetParam();
  for (const int dim : {2, 3}) {
    for (const test::MeshCase& what : cases(dim)) {
      if (order != 1 && !is_one_of_few(what)) continue;
      const auto orders = available_orders(dim, what.equation);
      if (std::find(orders.begin(), orders.end(), order) == orders.end() || !can_be_cut(what.mesh)) continue;
      SCOPED_TRACE(fmt::format("{} {}D order {}", what.name, dim, order));
      const auto partition = cut(what.mesh, extent_of(what.mesh), 2);
      compare_kernels<double>(Levels(what, order, {}, false, partition), LocalSolverKind::direct);
      compare_transfers<double>(what, order, true);
      compare_transfers<double>(what, order, false);
      if (what.equation == EquationKind::stokes) compare_convection(Levels(what, order, {}, true, partition));
      if (order > 2) continue;
      compare_kernels<float>(Levels(what, order, {}, true, partition), LocalSolverKind::direct);
      const bool stokes = what.equation == EquationKind::stokes;
      const auto other = stokes ? LocalSolverKind::chebyshev : LocalSolverKind::direct;
      const auto problem = stokes || order == 0 ? PatchProblem::galerkin : PatchProblem::fused;
      compare_kernels<double>(Levels(what, order, {problem, ColourOrder::lexicographic}, false, partition), other);
      compare_transfers<float>(what, order, true);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Order, RanksKernels, testing::Range(0, 5));

/// Every cell has one owner; what one rank sends another awaits.
TEST(RanksPartition, SendsMatchReceives) {
  for (const int dim : {2, 3}) {
    for (const test::MeshCase& what : test::mesh_cases(dim)) {
      if (std::int64_t{what.mesh.cells[0]} * what.mesh.cells[1] * what.mesh.cells[2] < 8 * ranks()->size()) continue;
      const auto partition = cut(what.mesh, extent_of(what.mesh), 4);
      const Grid part(what.mesh, what.boundary, true, partition);
      const Grid whole(what.mesh, what.boundary, true);
      EXPECT_EQ(part.cell_count(), whole.layout().cells().size());
      const ExchangePlan plan(part);
      std::vector<std::int64_t> sent(ranks()->size() * ranks()->size(), 0);
      std::vector<std::int64_t> received = sent;
      std::int64_t ghosts = 0;
      for (const auto& [rank, sends, receives] : plan.neighbours) {
        sent[ranks()->rank() * ranks()->size() + rank] = std::ssize(sends);
        received[rank * ranks()->size() + ranks()->rank()] = std::ssize(receives);
        ghosts += std::ssize(receives);
        for (const Record r : sends) EXPECT_TRUE(part.layout().is_owned(r));
        for (const Record r : receives) EXPECT_FALSE(part.layout().is_owned(r));
      }
      ranks()->sum(std::span(sent));
      ranks()->sum(std::span(received));
      EXPECT_EQ(sent, received) << what.name;
      const auto& layout = part.layout();
      EXPECT_EQ(ghosts, layout.records().size() - layout.owned_cells().size() - layout.owned_hats().size())
          << what.name;
    }
  }
}

/// Random loads are the same bits, wherever the cuts are.
TEST(RanksLoad, RandomOnesAreThoseOfOne) {
  for (const int dim : {2, 3}) {
    for (const test::MeshCase& what : test::mesh_cases(dim)) {
      if (std::int64_t{what.mesh.cells[0]} * what.mesh.cells[1] * what.mesh.cells[2] < 8 * ranks()->size()) continue;
      const Levels levels(what, 1, {}, false, cut(what.mesh, extent_of(what.mesh), 4));
      const HostVector whole = random_vector(levels.whole, 3);
      const HostVector part = random_vector(levels.part, 3);
      const double difference = levels.difference({part.begin(), part.end()}, {whole.begin(), whole.end()});
      expect_everywhere(difference == 0.0, fmt::format("{} {}D: {}", what.name, dim, difference));
    }
  }
}

// Solves -------------------------------------------------------------------------------------------------------------

struct Solved {
  Convergence convergence;
  Values x;
};

template <class T>
Solved solve_on(Engine& engine, const Problem& problem, const SolverOptions& options) {
  Discretisation discretisation(problem, options, engine.dense_limits());
  auto [b, x, convergence] = test::solve_on<T>(engine, discretisation, options);
  const auto kernels = make_kernels<double>(engine, discretisation.finest(), LocalSolverKind::direct);
  discretisation.complete(engine, *kernels, x);
  const auto whole = discretisation.solution(engine, x).gathered();
  return {convergence, whole ? whole->unknowns() : Values{}};
}

Solved solve_on(Engine& engine, const Problem& problem, const SolverOptions& options) {
  return options.precision == Precision::mixed ? solve_on<float>(engine, problem, options)
                                               : solve_on<double>(engine, problem, options);
}

/// alpha h^2 / nu. Where the reaction dominates, a random load, which has divergence, is balanced by a pressure that is
/// thousands of times as large, and residuals have the rounding of that.
double reaction(const Problem& problem) {
  const Mesh& mesh = problem.mesh;
  double h = std::numeric_limits<double>::infinity();
  for (int a = 0; a < mesh.dim; ++a) {
    h = std::min(h, std::ldexp((mesh.upper[a] - mesh.lower[a]) / mesh.cells[a], -mesh.refine));
  }
  return problem.mass * h * h / problem.viscosity;
}

/// Random cases: the same history, to rounding, and the same solution, with NaN in all ghosts that are not fresh.
TEST(RanksSolves, EqualThoseOfOne) {
  int compared = 0;
  const int first = test::setting("SOLENOID_RANDOM_FIRST", 1);
  const int count = test::setting("SOLENOID_RANDOM_CASES", ranks()->size() <= 3 ? 30 : 12);
  for (int seed = first; seed < first + count; ++seed) {
    const test::RandomCase drawn = test::draw_case(seed, 2000, 12000);
    SCOPED_TRACE(drawn.file);
    Case what;
    Solved expected;
    Solved got;
    std::string refused;
    try {
      what = drawn.read();
      what.solver.replicated_cells = 1;
      expected = solve_on(on_one(), what.problem, what.solver);
      what.solver.communicator = ranks();
      got = solve_on(on_all(), what.problem, what.solver);
    } catch (const InputError& error) {
      refused = error.what();
    }
    expect_everywhere(ranks()->all(refused.empty()) || ranks()->all(!refused.empty()), "refused by some: " + refused);
    if (!refused.empty()) continue;
    ++compared;
    const auto& a = expected.convergence.history;
    const auto& b = got.convergence.history;
    const bool mixed = what.solver.precision == Precision::mixed;
    const bool rough = what.solver.random_load != 0 && reaction(what.problem) > 1e3;
    const int slack = rough ? 2 + expected.convergence.iterations / 10 : mixed ? 1 : 0;
    expect_everywhere(std::abs(std::ssize(a) - std::ssize(b)) <= slack,
                      fmt::format("{} and {} iterations", expected.convergence.iterations, got.convergence.iterations));
    for (std::size_t i = 0; !rough && i < std::min(a.size(), b.size()); ++i) {
      const double rounding = (mixed ? 0.1 : 1e-3) * a[i] + (mixed ? 1e-9 : 1e-13);
      expect_everywhere(std::abs(a[i] - b[i]) <= rounding, fmt::format("residual {}: {} and {}", i, a[i], b[i]));
    }
    double size = 0.0;
    double difference = 0.0;
    for (std::size_t i = 0; i < got.x.size(); ++i) {
      size = std::max(size, std::abs(expected.x[i]));
      difference = std::max(difference, std::abs(expected.x[i] - got.x[i]));
      if (std::isnan(got.x[i])) difference = std::numeric_limits<double>::infinity();
    }
    expect_everywhere(difference <= (mixed ? 1.0 : 1e-3) * std::max(what.solver.rtol, 1e-8) * 1e3 * size,
                      fmt::format("solutions differ by {} of {}", difference, size));
  }
  EXPECT_GT(compared, 0);
}

/// Two runs give the same bits.
TEST(RanksSolves, AreDeterministic) {
  Case what = parse_case(
      "[mesh]\ncells = [3, 2]\nrefine = 3\n[element]\norder = 2\n[physics]\nforce = [\"sin(5*x*y)\", \"x\"]\n"
      "[boundary]\nxmax = {outflow = true}\nymax = {velocity = [\"1\", \"0\"]}\n",
      "a case");
  if (!test::has_order(2, 2)) GTEST_SKIP() << "the order is not in this build";
  what.solver.communicator = ranks();
  what.solver.replicated_cells = 1;
  const Solved first = solve_on(on_all(), what.problem, what.solver);
  const Solved second = solve_on(on_all(), what.problem, what.solver);
  EXPECT_EQ(first.convergence.history, second.convergence.history);
  EXPECT_EQ(first.x, second.x);
}

ScalarField expression(const char* text, int dim = 3) { return ScalarField::expression(text, dim); }

/// What is asked of a solution that ranks share.
TEST(RanksSolution, SaysWhatThatOfOneSays) {
  for (const int dim : {2, 3}) {
    const auto orders = available_orders(dim);
    if (std::find(orders.begin(), orders.end(), 2) == orders.end()) continue;
    Problem problem;
    problem.mesh = Mesh::unit(dim, dim == 2 ? 4 : 3);
    problem.order = 2;
    problem.force = dim == 2 ? VectorField{expression("sin(3*x)*y", 2), expression("x*x", 2), 0.0}
                             : VectorField{expression("sin(3*x)*y"), expression("z*x"), expression("y")};
    problem.boundary.sides[1].kind = SideKind::outflow;
    problem.boundary.sides[0].data = VectorField{expression("y*(1-y)", dim), 0.0, 0.0};
    SolverOptions options;
    options.device = DeviceChoice::cpu;
    options.threads = 1;
    options.precision = Precision::full_double;
    options.rtol = 1e-11;
    options.exact.velocity = VectorField{expression("x", dim), expression("y", dim), 0.0};
    options.exact.pressure = expression("x*y", dim);
    const Result one = solve(problem, options);
    options.communicator = ranks();
    options.replicated_cells = 1;
    const Result all = solve(problem, options);
    const auto near = [&](double expected, double got, const char* what) {
      expect_everywhere(std::abs(expected - got) <= 1e-8 * (1.0 + std::abs(expected)),
                        fmt::format("{}: {} and {}", what, expected, got));
    };
    near(*one.report.errors.velocity, *all.report.errors.velocity, "velocity error");
    near(*one.report.errors.pressure, *all.report.errors.pressure, "pressure error");
    near(one.solution.kinetic_energy(), all.solution.kinetic_energy(), "kinetic energy");
    near(one.solution.dissipation(), all.solution.dissipation(), "dissipation");
    near(one.solution.max_speed(), all.solution.max_speed(), "speed");
    EXPECT_LT(all.solution.divergence_max(), 1e-9);
    near(one.solution.flux(0, 0.5), all.solution.flux(0, 0.5), "flux");
    near(one.solution.flux(1, 0.3), all.solution.flux(1, 0.3), "flux");
    const auto forces = one.solution.forces();
    const auto of_all = all.solution.forces();
    ASSERT_EQ(forces.size(), of_all.size());
    for (std::size_t i = 0; i < forces.size(); ++i) {
      for (int a = 0; a < 3; ++a) {
        near(forces[i].force[a], of_all[i].force[a], "force");
        near(forces[i].torque[a], of_all[i].torque[a], "torque");
      }
    }
    const std::vector<Point> points{
        {0.5, 0.5, 0.5}, {0.25, 0.75, 0.125}, {0.1, 0.2, 0.3}, {1.0, 1.0, 1.0}, {2.0, 0.0, 0.0}};
    const auto u = one.solution.velocity(points);
    const auto v = all.solution.velocity(points);
    for (std::size_t i = 0; i + 1 < points.size(); ++i) {
      for (int a = 0; a < dim; ++a) near(u[i][a], v[i][a], "velocity at a point");
    }
    EXPECT_TRUE(std::isnan(v.back()[0]));
    EXPECT_EQ(all.report.ranks, ranks()->size());
    EXPECT_EQ(std::accumulate(all.report.rank_cells.begin(), all.report.rank_cells.end(), std::int64_t{0}),
              all.report.cells);
  }
}

/// A flow in time, with data that change and flow through sides; on one rank.
Case flow_in_time() {
  Case what = parse_case(
      "[mesh]\ncells = [3, 2]\nrefine = 3\n[time]\nend = 1\ncfl = 0.4\nstep = 0.1\ninitial = [\"y\", "
      "\"0.2*sin(6*x)\"]\n"
      "[physics]\nviscosity = 0.01\nconvection = true\nforce = [\"sin(5*x*y+t)\", \"x\"]\n"
      "[boundary]\nxmin = {velocity = [\"y*(1+sin(t))\", 0]}\nxmax = {outflow = true}\n"
      "ymax = {velocity = [\"1+t\", 0]}\n[average]\nstart = 0.0001\n",
      "a case");
  choose_device(what.solver);
  what.solver.threads = 1;
  what.solver.precision = Precision::full_double;
  return what;
}

/// The largest difference of unknowns of the first rank relative to the largest of them; 0 on other ranks.
double flow_difference(const std::optional<Solution>& gathered, const Solution& expected_flow) {
  if (!gathered) return 0.0;
  const Values expected = expected_flow.unknowns();
  const Values got = gathered->unknowns();
  double difference = 0.0;
  double size = 0.0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    size = std::max(size, std::abs(expected[i]));
    difference = std::max(difference, std::abs(expected[i] - got[i]));
    if (std::isnan(got[i])) difference = std::numeric_limits<double>::infinity();
  }
  return difference / size;
}

/// Those of several ranks are those of one, to rounding.
void expect_same_averages(const TimeStepper& all, const TimeStepper& one) {
  const auto got = all.averages()->gathered();
  const Averages expected = *one.averages();
  double difference = 0.0;
  if (got) {
    EXPECT_EQ(got->start, expected.start);
    EXPECT_NEAR(got->length, expected.length, 1e-12);
    difference =
        std::max(flow_difference(got->flow, expected.flow), flow_difference(got->dissipation, expected.dissipation));
    for (std::size_t i = 0; i < got->stresses.size(); ++i) {
      difference = std::max(difference, flow_difference(got->stresses[i], expected.stresses[i]));
    }
  }
  expect_everywhere(difference <= 1e-6, fmt::format("averages differ by {}", difference));
}

/// A flow that all ranks share.
TimeStepper shared(Case what) {
  what.solver.communicator = ranks();
  what.solver.replicated_cells = 1;
  return {what.problem, what.time->options, what.solver};
}

/// Along the periodic direction, of which each rank has a part.
TEST(RanksFlow, HasTheProfileOfOne) {
  if (!test::has_order(2, 2)) GTEST_SKIP() << "the order is not in this build";
  Case what = parse_case(
      "[mesh]\ncells = [4, 3]\nrefine = 2\n[time]\nend = 1\nstep = 0.05\ninitial = [\"y*(1-y)\", "
      "\"0.2*sin(2*pi*x)\"]\n[physics]\nviscosity = 0.01\nconvection = true\nforce = [0.1, 0]\n"
      "[boundary]\nxmin = {periodic = true}\n[average]\nstart = 0.01\nalong = [\"x\"]\n",
      "a case");
  what.solver.device = DeviceChoice::cpu;
  what.solver.threads = 1;
  what.solver.precision = Precision::full_double;
  TimeStepper one(what.problem, what.time->options, what.solver);
  TimeStepper all = shared(what);
  for (int i = 0; i < 20; ++i) {
    one.step();
    all.step();
  }
  const Profile expected = one.averages()->profile(what.time->average_along);
  const Profile got = all.averages()->profile(what.time->average_along);
  ASSERT_EQ(got.rows.size(), expected.rows.size());
  ASSERT_EQ(got.rows.size(), 36U);
  double difference = 0.0;
  for (std::size_t i = 0; i < got.rows.size(); ++i) {
    EXPECT_EQ(got.rows[i].at, expected.rows[i].at);
    difference = std::max({difference, std::abs(got.rows[i].velocity[0] - expected.rows[i].velocity[0]),
                           std::abs(got.rows[i].stress[0][1] - expected.rows[i].stress[0][1]),
                           std::abs(got.rows[i].dissipation - expected.rows[i].dissipation)});
  }
  expect_everywhere(difference <= 1e-8, fmt::format("profiles differ by {}", difference));
}

TEST(RanksFlow, IsThatOfOne) {
  if (!test::has_order(2, 2)) GTEST_SKIP() << "the order is not in this build";
  for (const TimeScheme scheme : {TimeScheme::sbdf3, TimeScheme::ars233, TimeScheme::ars443}) {
    Case what = flow_in_time();
    what.time->options.scheme = scheme;
    TimeStepper one(what.problem, what.time->options, what.solver);
    TimeStepper all = shared(what);
    for (int i = 0; i < 12; ++i) {
      const StepReport expected = one.step();
      const StepReport got = all.step();
      expect_everywhere(expected.length == got.length, "lengths of steps");
      EXPECT_NEAR(got.cfl, expected.cfl, 1e-8 * expected.cfl);
    }
    const double difference = flow_difference(all.solution().gathered(), one.solution());
    expect_everywhere(difference <= 1e-7, fmt::format("flows differ by {}", difference));
    expect_same_averages(all, one);
    // Fields are asked for at points, and for profiles, by all ranks.
    const Averages averages = *all.averages();
    const std::vector<Point> points{{0.3, 0.4, 0.0}, {0.8, 0.1, 0.0}, {2.0, 0.0, 0.0}};
    const auto expected = one.averages()->stress(points);
    const auto got = averages.stress(points);
    const auto vorticity = all.solution().flow_field(FlowField::vorticity, points);
    const auto expected_vorticity = one.solution().flow_field(FlowField::vorticity, points);
    for (int i = 0; i < 2; ++i) {
      EXPECT_NEAR(got[i][0][1], expected[i][0][1], 1e-7);
      EXPECT_NEAR(vorticity[i][2], expected_vorticity[i][2], 1e-5);
    }
    EXPECT_TRUE(std::isnan(got[2][0][0]));
    EXPECT_NEAR(all.solution().enstrophy(), one.solution().enstrophy(), 1e-6 * one.solution().enstrophy());
    EXPECT_EQ(all.report().ranks, ranks()->size());
  }
}

/// No hats are moved there, so that ghosts stay what they are from step to step.
TEST(RanksFlow, WithoutABoundaryIsThatOfOne) {
  if (!test::has_order(2, 2)) GTEST_SKIP() << "the order is not in this build";
  for (const auto& [scheme, precision, bound] : {std::tuple(TimeScheme::sbdf3, Precision::full_double, 1e-9),
                                                 std::tuple(TimeScheme::ars443, Precision::full_double, 1e-9),
                                                 std::tuple(TimeScheme::sbdf3, Precision::mixed, 1e-5)}) {
    Case what = flow_in_time();
    for (auto& side : what.problem.boundary.sides) side = {SideKind::periodic};
    what.time->options.initial = {ScalarField::expression("1 + sin(2*pi*y)", 2),
                                  ScalarField::expression("0.2*sin(2*pi*x)", 2), 0.0};
    what.problem.force = {ScalarField::expression("cos(2*pi*y)", 2), 0.0, 0.0};
    what.time->options.scheme = scheme;
    what.solver.precision = precision;
    TimeStepper one(what.problem, what.time->options, what.solver);
    TimeStepper all = shared(what);
    for (int i = 0; i < 12; ++i) {
      one.step();
      all.step();
    }
    const double difference = flow_difference(all.solution().gathered(), one.solution());
    expect_everywhere(difference <= bound, fmt::format("flows differ by {}", difference));
  }
}

/// Arrays are those of the whole mesh on all ranks, given and got.
TEST(RanksFlow, TakesAndGivesArrays) {
  if (!test::has_order(2, 2)) GTEST_SKIP() << "the order is not in this build";
  Case what = flow_in_time();
  what.problem.mesh.cells = {4, 3, 1};
  what.problem.mesh.holes = {{{1, 1, 0}, {2, 2, 1}}};
  what.problem.boundary.sides[2].kind = what.problem.boundary.sides[3].kind = SideKind::periodic;
  const Mesh& mesh = what.problem.mesh;
  TimeStepper one(what.problem, what.time->options, what.solver);
  TimeStepper all = shared(what);
  Values force(velocity_at(one.solution(), 2).size());
  std::iota(force.begin(), force.end(), 0.0);
  for (double& value : force) value = std::sin(value);
  Values inflow(2 * axes_of({mesh, 1, 0})[1].size());
  std::iota(inflow.begin(), inflow.end(), 1.0);
  for (double& value : inflow) value = 1.0 / value;
  for (TimeStepper* flow : {&one, &all}) {
    flow->set_force(field_of({mesh, 2}, force, "force"));
    flow->set_boundary(0, field_of({mesh, 1, 0}, inflow, "xmin"));
    flow->set_reaction(0.5);
    for (int i = 0; i < 5; ++i) flow->step();
  }
  const double difference = flow_difference(all.solution().gathered(), one.solution());
  expect_everywhere(difference <= 1e-7, fmt::format("flows differ by {}", difference));
  const auto expect_same = [](const Values& got, const Values& expected) {
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      const bool outside = std::isnan(expected[i]);
      EXPECT_TRUE(outside ? std::isnan(got[i]) : std::abs(got[i] - expected[i]) <= 1e-7)
          << got[i] << " for " << expected[i];
    }
  };
  for (const int m : {1, 3}) expect_same(velocity_at(all.solution(), m), velocity_at(one.solution(), m));
  const auto fluxes = face_fluxes(all.solution());
  const auto expected_fluxes = face_fluxes(one.solution());
  for (int a = 0; a < 2; ++a) expect_same(fluxes[a], expected_fluxes[a]);
  // By copies of some cells as by those of all.
  const Solution whole = all.solution();
  const std::vector<Point> points{{0.1, 0.2, 0.0}, {0.62, 0.9, 0.0}, {0.9, 0.34, 0.0}};
  EXPECT_EQ(all.velocity(points), whole.velocity(points));
  EXPECT_EQ(all.pressure(points), whole.pressure(points));
  for (const double position : {0.25, 0.3}) EXPECT_EQ(all.flux(0, position), whole.flux(0, position));
  const auto forces = all.forces();
  const auto expected_forces = whole.forces();
  ASSERT_EQ(forces.size(), expected_forces.size());
  double most = 0.0;
  for (const BoundaryForce& each : expected_forces) {
    for (const double entry : each.force) most = std::max(most, std::abs(entry));
  }
  ASSERT_GT(most, 0.0);
  for (std::size_t i = 0; i < forces.size(); ++i) {  // devices add up in an order of their own
    for (int a = 0; a < 3; ++a) {
      EXPECT_NEAR(forces[i].force[a], expected_forces[i].force[a], 1e-11 * most) << forces[i].name;
      EXPECT_NEAR(forces[i].torque[a], expected_forces[i].torque[a], 1e-11 * most) << forces[i].name;
    }
  }
}

/// A gradient is the same everywhere, and how steady the flow is.
TEST(RanksFlow, HoldsItsRate) {
  if (!test::has_order(2, 2)) GTEST_SKIP() << "the order is not in this build";
  Case what = flow_in_time();
  what.problem.boundary.sides[0] = what.problem.boundary.sides[1] = {SideKind::periodic};
  what.time->options.flow_rate = Point{0.7, 0.0, 0.0};
  what.time->options.steady = 1e-8;
  TimeStepper one(what.problem, what.time->options, what.solver);
  TimeStepper all = shared(what);
  for (int i = 0; i < 12; ++i) {
    const StepReport expected = one.step();
    const StepReport got = all.step();
    EXPECT_NEAR(got.gradient[0], expected.gradient[0], 1e-6 * std::abs(expected.gradient[0]));
    EXPECT_NEAR(*got.change, *expected.change, 1e-6 * *expected.change);
  }
  const double rate = all.solution().flux(0, what.problem.mesh.lower[0] + 0.01);
  expect_everywhere(std::abs(rate - 0.7) < 1e-13, fmt::format("the flow rate is {}", rate));
}

/// To the same bits on as many ranks, to rounding on one.
TEST(RanksFlow, GoesOnFromACheckpoint) {
  if (!test::has_order(2, 2)) GTEST_SKIP() << "the order is not in this build";
  if (!solution_files_unavailable().empty()) GTEST_SKIP() << solution_files_unavailable();
  Case what = flow_in_time();
  const Case of_one = what;
  what.solver.communicator = ranks();
  what.solver.replicated_cells = 1;
  TimeStepper all(what.problem, what.time->options, what.solver);
  for (int i = 0; i < 6; ++i) all.step();
  const auto name = ranks()->texts(fmt::format("solenoid_ranks_{}.h5", getpid())).front();
  const auto file = std::filesystem::temp_directory_path() / name;
  const auto checkpoint = all.checkpoint();
  EXPECT_EQ(checkpoint.has_value(), ranks()->rank() == 0);
  in_agreement(ranks().get(), [&] {
    if (checkpoint) checkpoint->save(file);
  });
  const Checkpoint loaded = load_checkpoint(file);
  TimeStepper rest(what.problem, what.time->options, what.solver, loaded);
  TimeStepper one(of_one.problem, of_one.time->options, of_one.solver, loaded);
  for (int i = 0; i < 6; ++i) {
    all.step();
    rest.step();
    one.step();
  }
  const auto expected = all.solution().gathered();
  const auto got = rest.solution().gathered();
  expect_everywhere(!expected || expected->unknowns() == got->unknowns(), "other bits on as many ranks");
  const double difference = flow_difference(expected, one.solution());
  expect_everywhere(difference <= 1e-7, fmt::format("the flow differs from that of one rank by {}", difference));
  const auto averages = all.averages()->gathered();
  const auto of_rest = rest.averages()->gathered();
  expect_everywhere(!averages || (averages->flow.unknowns() == of_rest->flow.unknowns() &&
                                  averages->stresses[1].unknowns() == of_rest->stresses[1].unknowns() &&
                                  averages->dissipation.unknowns() == of_rest->dissipation.unknowns()),
                    "other bits of averages on as many ranks");
  expect_same_averages(all, one);
  if (ranks()->rank() == 0) std::filesystem::remove(file);
}

/// An error on one rank is one of all.
TEST(RanksErrors, AreThoseOfAll) {
  Problem problem;
  problem.mesh = Mesh::unit(2, 4);
  problem.order = available_orders(2).back();
  problem.force[0] = ScalarField([](const Point& x) { return x[0] > 0.9 ? std::nan("") : 1.0; });
  SolverOptions options;
  options.device = DeviceChoice::cpu;
  options.threads = 1;
  options.communicator = ranks();
  options.replicated_cells = 1;
  try {
    solve(problem, options);
    ADD_FAILURE() << "no error";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("must be finite"), std::string::npos) << error.what();
  }

  problem.force[0] = 1.0;
  const Solution part = solve(problem, options).solution;
  const ScalarField known([](const Point& x) { return x[1] > 0.9 ? std::nan("") : 1.0; });
  EXPECT_THROW((void)part.velocity_error({known, 0.0, 0.0}), InputError);
  EXPECT_THROW((void)part.pressure_error(known), InputError);
}

/// Files of all cells are not made of a part.
TEST(RanksErrors, ArePartsWhereAllCellsAreNeeded) {
  Problem problem;
  problem.mesh = Mesh::unit(2, 4);
  problem.order = available_orders(2).back();
  SolverOptions options;
  options.device = DeviceChoice::cpu;
  options.threads = 1;
  options.communicator = ranks();
  options.replicated_cells = 1;
  const Solution part = solve(problem, options).solution;
  EXPECT_THROW(write_picture(part, "part.png"), InputError);
  EXPECT_THROW(write_csv(part, std::vector<Point>{{0.5, 0.5, 0.0}}, "part.csv"), InputError);
  EXPECT_THROW(write_vtu(part, "part.vtu"), InputError);
}

}  // namespace
}  // namespace solenoid

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const auto ranks = solenoid::launched_ranks();
  if (ranks == nullptr) {
    fmt::print(stderr, "start this with mpirun -n 2 or more\n");
    return 2;
  }
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  if (ranks->rank() != 0) delete listeners.Release(listeners.default_result_printer());
  const int mine = RUN_ALL_TESTS();
  return ranks->any(mine != 0) ? 1 : 0;
}
