/// \file
/// Coefficients by cell on several ranks against one: kernels, means on coarser grids, whole solves.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "compare_kernels.hpp"
#include "flows.hpp"
#include "level/coefficients.hpp"
#include "level/patch_scale.hpp"
#include "mesh/shared_records.hpp"
#include "parts_of_levels.hpp"
#include "sheared_levels.hpp"
#include "solenoid/case.hpp"
#include "solenoid/linear_system.hpp"
#include "solenoid/solver.hpp"
#include "solenoid/time_stepper.hpp"

namespace solenoid {
namespace {

using namespace on_ranks;

/// Viscosities over three orders of magnitude, reactions in some cells, both from where a cell is. With so many
/// viscosities in each cell, or none.
Coefficients random_coefficients(const Grid& grid, int order, int points) {
  const auto by_cell = std::make_shared<CellCoefficients>();
  Unset<double> values;
  for (const Record cell : grid.layout().cells()) {
    const auto& at = grid.position(cell);
    std::mt19937_64 generator(at[0] * 7919U + at[1] * 104729U + at[2] * 1299709U);
    std::uniform_real_distribution<double> uniform;
    by_cell->viscosity.push_back(std::pow(10.0, 3.0 * uniform(generator) - 1.5));
    by_cell->reaction.push_back(uniform(generator) < 0.5 ? 20.0 * uniform(generator) : 0.0);
    for (int q = 0; q < points; ++q) values.push_back(by_cell->viscosity.back() * (1.0 + uniform(generator)));
  }
  if (points > 0) by_cell->points = std::make_shared<const ViscosityPoints>(grid.dim(), order, std::move(values));
  return {.by_cell = by_cell};
}

Coefficients random_coefficients(const Grid& grid) { return random_coefficients(grid, 0, 0); }

Equation equation_of(int dim, int order) {
  return {.dim = dim, .order = order, .form = order > 0 && dim == 3 ? ViscousForm::stress : ViscousForm::gradient};
}

class RanksVaryingKernels : public testing::TestWithParam<int> {};

TEST_P(RanksVaryingKernels, EqualThoseOfOne) {
  const int order = GetParam();
  for (const int dim : {2, 3}) {
    if (!test::has_order(dim, order)) continue;
    for (const test::MeshCase& box : test::mesh_cases(dim)) {
      if (!can_be_cut(box.mesh) || (order != 1 && !is_one_of_few(box))) continue;
      for (const bool sheared : {false, true}) {
        if (sheared && (order == 0 || !is_one_of_few(box))) continue;
        const test::MeshCase what = sheared ? test::sheared(box, 1) : box;
        SCOPED_TRACE(fmt::format("{} {}D order {}{}", what.name, dim, order, sheared ? ", sheared" : ""));
        const Levels levels(equation_of(dim, order), what, cut(what.mesh, extent_of(what.mesh), 2),
                            [&](const Grid& grid) { return random_coefficients(grid, order, power(order + 2, dim)); });
        compare_kernels<double>(levels, LocalSolverKind::direct);
        if (order == 1 && !sheared) compare_kernels<float>(levels, LocalSolverKind::direct);
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Order, RanksVaryingKernels, testing::Values(0, 1, 2));

/// Of a grid that ranks share, ghosts too, and of a whole one.
TEST(RanksVaryingCoefficients, OfCoarserGridsAreThoseOfOne) {
  for (const int dim : {2, 3}) {
    for (test::MeshCase what : test::mesh_cases(dim)) {
      if (!can_be_cut(what.mesh)) continue;
      const auto partition = cut(what.mesh, extent_of(what.mesh), 3);
      what.mesh.refine += 1;
      const Grid whole(what.mesh, what.boundary);
      const Grid part(what.mesh, what.boundary, false, partition);
      for (const Coarsening& pairs : test::coarsenings(whole)) {
        const Grid coarse = whole.coarsen(pairs);
        const auto expected = coarse_coefficients(random_coefficients(whole), whole, pairs, coarse).by_cell;
        const Grid shared = part.coarsen(pairs);
        const auto of_shared = coarse_coefficients(random_coefficients(part), part, pairs, shared).by_cell;
        const Grid everywhere = part.coarsen_whole(pairs);
        const auto of_whole = coarse_coefficients(random_coefficients(part), part, pairs, everywhere).by_cell;
        bool same = of_shared->viscosity.size() == static_cast<std::size_t>(shared.layout().cells().size()) &&
                    of_whole->viscosity.size() == expected->viscosity.size();
        const auto compare = [&](const Grid& grid, const CellCoefficients& got) {
          for (const Record cell : grid.layout().cells()) {
            const auto& [x, y, z] = grid.position(cell);
            const Record at = coarse.at({x, y, z});
            same =
                same && got.viscosity[cell] == expected->viscosity[at] && got.reaction[cell] == expected->reaction[at];
          }
        };
        compare(shared, *of_shared);
        compare(everywhere, *of_whole);
        expect_everywhere(same, fmt::format("{} {}D", what.name, dim));
      }
    }
  }
}

/// The largest difference of unknowns over the largest of them; 0 where they are not gathered.
double difference_of(const std::optional<Solution>& gathered, const Solution& one) {
  double difference = 0.0;
  double size = 1e-300;
  if (!gathered) return 0.0;
  const Values expected = one.unknowns();
  const Values got = gathered->unknowns();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    size = std::max(size, std::abs(expected[i]));
    if (!(std::abs(expected[i] - got[i]) <= difference)) difference = std::abs(expected[i] - got[i]);
  }
  return difference / size;
}

/// Stiff bodies in a flow, by a function, by regions and with a mass term in some cells.
const char* const cases[] = {
    "[mesh]\ncells = [2, 2]\nrefine = 4\n[element]\norder = 2\n[physics]\nviscosity = \"exp(4*x*y)\"\n"
    "force = [\"y\", \"sin(5*x)\"]\n[[region]]\ninside = \"(x-0.5)^2 + (y-0.5)^2 < 0.04\"\nviscosity = 100\n"
    "force = [0, -1]\n[boundary]\nxmin = {velocity = [\"y*(1-y)\", 0]}\nxmax = {outflow = true}\nymax = {slip = "
    "true}\n",
    "[mesh]\ncells = [2, 1, 1]\nrefine = 3\nupper = [2, 1, 1]\n[element]\norder = 1\n[physics]\n"
    "viscosity = \"x > 1 ? 51 : 1\"\nmass = \"z > 0.5 ? 30 : 0\"\nforce = [\"y\", 0, \"sin(5*x)\"]\n[boundary]\nxmin = "
    "{periodic = true}\nxmax = {periodic = true}\n",
    "[mesh]\ncells = [5, 4]\nrefine = 3\nholes = [{lower = [2, 1], upper = [3, 2]}]\n[element]\norder = 3\n[physics]\n"
    "form = \"gradient\"\nviscosity = \"2 + sin(9*x)\"\nforce = [\"y\", 0]\n",
    // at Gauss points, between sides of all kinds
    "[mesh]\ncells = [2, 2]\nrefine = 3\n[element]\norder = 2\n[physics]\nviscosity = \"exp(4*x*y)\"\n"
    "viscosity_points = \"gauss\"\nforce = [\"y\", \"sin(5*x)\"]\n[boundary]\nxmin = {velocity = [\"y*(1-y)\", "
    "\"y\"]}\nxmax = {outflow = true}\nymax = {slip = true}\n",
    // a coarsest level that is not solved directly
    "[mesh]\ncells = [19, 17]\nrefine = 1\n[element]\norder = 3\n[physics]\nviscosity = \"exp(6*x*y)\"\nforce = "
    "[\"y\", \"sin(5*x)\"]\n",
};

TEST(RanksVaryingSolves, EqualThoseOfOne) {
  for (const char* const text : cases) {
    SCOPED_TRACE(text);
    Case what = parse_case(text, "a case");
    if (!test::has_order(what.problem.mesh.dim, what.problem.order)) continue;
    choose_device(what.solver);
    what.solver.threads = 1;
    what.solver.precision = Precision::full_double;
    what.solver.rtol = 1e-9;
    what.solver.replicated_cells = 1;
    const Result one = solve(what.problem, what.solver);
    what.solver.communicator = ranks();
    const Result all = solve(what.problem, what.solver);
    EXPECT_TRUE(one.report.converged);
    EXPECT_EQ(one.report.iterations, all.report.iterations);
    const auto near = [&](double expected, double got, const char* name) {
      expect_everywhere(std::abs(expected - got) <= 1e-7 * (1.0 + std::abs(expected)),
                        fmt::format("{}: {} and {}", name, expected, got));
    };
    near(one.solution.kinetic_energy(), all.solution.kinetic_energy(), "kinetic energy");
    near(one.solution.dissipation(), all.solution.dissipation(), "dissipation");
    const auto forces = one.solution.forces();
    const auto of_all = all.solution.forces();
    ASSERT_EQ(forces.size(), of_all.size());
    for (std::size_t i = 0; i < forces.size(); ++i) {
      for (int a = 0; a < 3; ++a) near(forces[i].force[a], of_all[i].force[a], "force");
    }
    const double difference = difference_of(all.solution.gathered(), one.solution);
    expect_everywhere(difference <= 1e-6, fmt::format("solutions differ by {}", difference));
  }
}

/// On ranks without a changed cell too: of the first change one rank has all cells, or few ranks have.
TEST(RanksVaryingSystems, TakeOtherCoefficients) {
  for (const char* const text : {cases[0], cases[1]}) {
    SCOPED_TRACE(text);
    Case what = parse_case(text, "a case");
    if (!test::has_order(what.problem.mesh.dim, what.problem.order)) continue;
    what.problem.mesh.refine -= 1;  // many solves
    choose_device(what.solver);
    what.solver.threads = 1;
    what.solver.precision = Precision::full_double;
    what.solver.rtol = 1e-9;
    what.solver.replicated_cells = 1;
    LinearSystem one(what.problem, what.solver);
    what.solver.communicator = ranks();
    LinearSystem all(what.problem, what.solver);
    const int dim = what.problem.mesh.dim;
    const auto compare = [&](const char* after) {
      const auto solved = [](LinearSystem& system) {
        const auto b = system.make_vector();
        const auto x = system.make_vector();
        system.load(b.get());
        const LinearReport report = system.solve(b.get(), x.get());
        EXPECT_TRUE(report.converged);
        return std::pair(report.iterations, system.solution(x.get()));
      };
      const auto [iterations, flow] = solved(one);
      const auto [iterations_of_all, flow_of_all] = solved(all);
      EXPECT_EQ(iterations, iterations_of_all) << after;
      const double difference = difference_of(flow_of_all.gathered(), flow);
      expect_everywhere(difference <= 1e-6, fmt::format("after {} solutions differ by {}", after, difference));
    };
    const auto both = [&](const auto& change) {
      change(one);
      change(all);
    };
    const auto in_corner = ScalarField::expression("x < 0.2 && y < 0.2 ? 5 : 1", dim);
    both([&](LinearSystem& system) { system.set_viscosity(in_corner); });
    compare("a viscosity that is larger in a corner");
    const auto mass = ScalarField::expression("x < 0.2 && y < 0.2 ? 100 : 0", dim);
    both([&](LinearSystem& system) { system.set_reaction(mass); });
    compare("a reaction in a corner");
    both([&](LinearSystem& system) { system.set_viscosity(in_corner); });
    compare("the same viscosity");
    const auto smooth = ScalarField::expression("1 + 20*x*y", dim);
    both([&](LinearSystem& system) { system.set_coefficients(smooth, ScalarField(0.0)); });
    compare("another viscosity everywhere");
    both([&](LinearSystem& system) { system.set_coefficients(in_corner, mass); });
    compare("tables that were kept");
    EXPECT_THROW(all.set_viscosity(ScalarField::expression("x - 0.1", dim)), InputError);
    compare("a viscosity that is refused");
  }
}

/// With a flow rate and a viscosity that changes in a corner; and one that goes on from what the first has written.
TEST(RanksVaryingFlows, EqualThoseOfOne) {
  if (!test::has_order(2, 2)) GTEST_SKIP() << "the order is not in this build";
  Case what = parse_case(
      "[mesh]\ncells = [4, 2]\nrefine = 2\nupper = [2, 1]\n[element]\norder = 2\n[physics]\n"
      "viscosity = \"1 + x\"\nmass = \"x > 1.8 ? 30 : 0\"\n"
      "[boundary]\nxmin = {periodic = true}\nxmax = {periodic = true}\n",
      "a case");
  choose_device(what.solver);
  what.solver.threads = 1;
  what.solver.precision = Precision::full_double;
  what.solver.replicated_cells = 1;
  what.problem.convection = true;
  what.problem.varying_viscosity = ScalarField::expression("x < 0.2 && y < 0.2 ? 1 + t : 1", 2, "", {{"t", 0.0}});
  TimeOptions time;
  time.step = 0.02;
  time.flow_rate = Point{1.0, 0.0, 0.0};
  for (const TimeScheme scheme : {TimeScheme::sbdf2, TimeScheme::ars443}) {
    time.scheme = scheme;
    what.solver.communicator = nullptr;
    TimeStepper one(what.problem, time, what.solver);
    what.solver.communicator = ranks();
    TimeStepper all(what.problem, time, what.solver);
    for (int step = 0; step < 4; ++step) {
      if (step == 2) {
        const auto corner = ScalarField::expression("x < 0.2 && y < 0.2 ? 3 : 1", 2);
        one.set_viscosity(corner);
        all.set_viscosity(corner);
      }
      const StepReport report = one.step();
      const StepReport of_all = all.step();
      EXPECT_EQ(report.cycles, of_all.cycles) << step;
      const double difference = difference_of(all.solution().gathered(), one.solution());
      expect_everywhere(difference <= 1e-6, fmt::format("step {}: flows differ by {}", step, difference));
      const FlowSummary summary = one.summary();
      const FlowSummary summary_of_all = all.summary();
      expect_everywhere(std::abs(summary.dissipation - summary_of_all.dissipation) <= 1e-7 * summary.dissipation,
                        fmt::format("dissipation {} and {}", summary.dissipation, summary_of_all.dissipation));
    }
  }
}

/// A viscosity that is not positive on one rank is refused by all.
TEST(RanksVaryingSolves, AreRefusedByAll) {
  Case what = parse_case(
      "[mesh]\ncells = [2, 2]\nrefine = 4\n[physics]\nviscosity = \"x - 0.01\"\nforce = [\"y\", 0]\n", "a case");
  what.solver.device = DeviceChoice::cpu;
  what.solver.threads = 1;
  what.solver.replicated_cells = 1;
  what.solver.communicator = ranks();
  EXPECT_THROW((void)solve(what.problem, what.solver), InputError);
}

}  // namespace
}  // namespace solenoid
