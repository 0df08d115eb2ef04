/// \file
/// Coefficients by cell that are replaced: what was set up with others is to the last bit what a new set-up is.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.hpp"
#include "engines.hpp"
#include "flows.hpp"
#include "solenoid/cellwise.hpp"
#include "solenoid/error.hpp"
#include "solenoid/linear_system.hpp"
#include "solver/discretisation.hpp"
#include "solver/kept_tables.hpp"
#include "solver/methods.hpp"

namespace solenoid {
namespace {

/// Numbers over a few decades, one for each cell.
ScalarField random_cells(const Mesh& mesh, double decades, std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::uniform_real_distribution<double> uniform(-0.5 * decades, 0.5 * decades);
  return test::each_cell(mesh, [&] { return std::pow(10.0, uniform(generator)); });
}
/// The same, of which some are zero.
ScalarField random_reaction(const Mesh& mesh, std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  return test::each_cell(mesh,
                         [&] { return uniform(generator) < 0.3 ? 0.0 : std::pow(10.0, 3.0 * uniform(generator)); });
}

/// Walls that flow goes through and along, so that right-hand sides have viscosities, and a side that is open.
Problem random_problem(int dim, int order, ViscousForm form, std::uint64_t seed) {
  Problem problem{.mesh = Mesh::unit(dim, dim == 2 ? 3 : 1), .order = order, .form = form};
  if (seed % 2 == 0) problem.mesh.holes.push_back({{0, 0, 0}, {1, 1, 1}});
  if (seed % 2 == 0) problem.mesh.cells = {2, 2, dim == 2 ? 1 : 2};
  problem.varying_viscosity = random_cells(problem.mesh, 3.0, seed);
  problem.varying_mass = random_reaction(problem.mesh, seed + 1);
  problem.force = {ScalarField([](const Point& x) { return std::sin(3.0 * x[1]); }), 1.0, dim == 3 ? 0.5 : 0.0};
  problem.boundary.sides[0].data = {ScalarField([](const Point& x) { return 1.0 + x[1]; }), 0.3, 0.0};
  problem.boundary.sides[1] = {SideKind::outflow, {0.2, 0.0, 0.0}};
  problem.boundary.sides[3].data = {1.0, 0.0, 0.0};
  return problem;
}

Problem with_coefficients(Problem problem, const ScalarField& viscosity, const ScalarField& mass) {
  problem.varying_viscosity = viscosity;
  problem.varying_mass = mass;
  return problem;
}

struct Replaced {
  int dim;
  int order;
  ViscousForm form;
  Precision precision;
};
void PrintTo(const Replaced& what, std::ostream* stream) {
  *stream << fmt::format("{}D, k = {}, {}, {}", what.dim, what.order,
                         what.form == ViscousForm::stress ? "stress" : "gradient",
                         what.precision == Precision::mixed ? "mixed" : "double");
}

std::vector<Replaced> replaced_cases() {
  std::vector<Replaced> cases;
  for (const auto& [dim, order] : std::vector<std::pair<int, int>>{{2, 0}, {2, 1}, {2, 2}, {2, 4}, {3, 1}, {3, 2}}) {
    if (!test::has_order(dim, order)) continue;
    for (const ViscousForm form : {ViscousForm::stress, ViscousForm::gradient}) {
      if (order == 0 && form == ViscousForm::stress) continue;
      for (const Precision precision : {Precision::mixed, Precision::full_double}) {
        // From order to order the other half: all pairs of choices.
        const bool odd = (form == ViscousForm::stress) == (precision == Precision::mixed);
        if (order > 0 && odd != (order == 2)) continue;
        cases.push_back({dim, order, form, precision});
      }
    }
  }
  return cases;
}

class ReplacedCoefficients : public testing::TestWithParam<Replaced> {};

/// What solves are made of, on an engine.
struct Machinery {
  Engine& engine;
  Discretisation discretisation;
  std::unique_ptr<LinearSolver> solver;
  KeptTables kept;

  Machinery(Engine& engine_, const Problem& problem, const SolverOptions& options)
      : engine(engine_),
        discretisation(problem, options, engine.dense_limits()),
        solver(make_solver(engine, discretisation.hierarchy(), options)) {
    solver->reserve();
  }

  void set(const Problem& other) {
    kept.change(discretisation, solver->preconditioner(), coefficients_of(other, discretisation.finest().grid));
  }

  /// Right-hand side, its image, its product with M, and the solution.
  std::vector<std::vector<double>> results() {
    const auto vector = [&] { return Vector<double>(engine, discretisation.room()); };
    Vector<double> work = vector();
    Vector<double> b = vector();
    Vector<double> y = vector();
    std::vector<std::vector<double>> all;
    const auto add = [&](const Vector<double>& of) {
      all.emplace_back(of.size());
      of.download(all.back().data());
    };
    discretisation.load(engine, solver->outer(), work, b);
    add(b);
    solver->outer().apply(b.data(), y.data());
    add(y);
    solver->preconditioner().apply(b.data(), y.data());
    add(y);
    Convergence convergence;
    convergence.max_iterations = 4;
    solver->outer().zero(y.data());
    solver->run(b.data(), y.data(), true, convergence);
    add(y);
    return all;
  }
};

TEST_P(ReplacedCoefficients, AreThoseOfANewSetUp) {
  const auto& [dim, order, form, precision] = GetParam();
  SolverOptions options = test::on_cpu();
  options.precision = precision;
  std::vector<std::pair<std::string, Engine*>> engines;
  for (const auto& choice : test::engines()) engines.emplace_back(choice.name, &choice.get());
  const auto reference = make_reference_engine();
  if (order <= 1 && precision == Precision::full_double) engines.emplace_back("reference", reference.get());
  for (const std::uint64_t seed : {10, 11}) {
    const Problem first = random_problem(dim, order, form, seed);
    // Another viscosity alone, another mass term alone, both.
    const ScalarField viscosity = random_cells(first.mesh, 4.0, seed + 20);
    const ScalarField mass = random_reaction(first.mesh, seed + 30);
    const std::vector<Problem> others{with_coefficients(first, viscosity, *first.varying_mass),
                                      with_coefficients(first, viscosity, mass), with_coefficients(first, 2.5, mass),
                                      with_coefficients(first, viscosity, 0.0)};
    for (const auto& [name, engine] : engines) {
      const bool few = dim == 3;  // local problems take their time
      if ((few || name == "reference") && seed != 10) continue;
      if (name == "cuda" && !test::has_order_of(*engine, Discretisation(first, options, {}).finest())) continue;
      Machinery changing(*engine, first, options);
      const auto before = changing.results();
      for (const Problem& other : few ? std::vector{others[1]} : others) {
        changing.set(other);
        Machinery made(*engine, other, options);
        const auto changed = changing.results();
        EXPECT_TRUE(changed == made.results()) << name << ", seed " << seed;
        EXPECT_FALSE(changed == before) << name << ", seed " << seed;
      }
      changing.set(first);
      EXPECT_TRUE(changing.results() == before) << name << ", seed " << seed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, ReplacedCoefficients, testing::ValuesIn(replaced_cases()));

// Linear systems -----------------------------------------------------------------------------------------------------

SolverOptions two_threads() {
  SolverOptions options = test::on_cpu(1e-8);
  options.threads = 2;
  options.max_iterations = 300;
  options.precision = Precision::mixed;
  return options;
}

/// What a system is, in numbers: of A, M, its load and a solution.
std::vector<std::vector<double>> results(LinearSystem& system) {
  const auto b = system.make_vector();
  const auto x = system.make_vector();
  const auto values = [&](const std::shared_ptr<double>& of) {
    std::vector<double> all(system.size());
    system.download(of.get(), all);
    return all;
  };
  std::vector<std::vector<double>> all;
  system.load(b.get());
  all.push_back(values(b));
  system.apply(b.get(), x.get());
  all.push_back(values(x));
  system.precondition(b.get(), x.get());
  all.push_back(values(x));
  EXPECT_TRUE(system.solve(b.get(), x.get()).converged);
  const Solution solution = system.solution(x.get());
  all.emplace_back(solution.coefficients().begin(), solution.coefficients().end());
  all.push_back({solution.dissipation(), solution.forces()[2].force[0], solution.forces()[3].force[1]});
  const std::vector<Point> points{{0.9, 0.8, 0.7}, {0.3, 0.9, 0.2}};
  for (const FlowField field : {FlowField::viscosity, FlowField::mass}) {
    for (const FieldValue& value : solution.flow_field(field, points)) all.push_back({value[0]});
  }
  // With another force: what sides add is kept.
  system.load(b.get(), {0.5, 1.0, 0.0});
  all.push_back(values(b));
  return all;
}

Problem flow_problem() {
  Problem problem = random_problem(2, 2, ViscousForm::stress, 10);
  problem.varying_viscosity = random_cells(problem.mesh, 2.0, 1);
  return problem;
}

class VaryingSystem : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::has_order(2, 2)) GTEST_SKIP() << "order 2 is not in this build";
  }
};

/// Also of what solutions make of them: stresses, dissipation, forces.
TEST_F(VaryingSystem, HasOtherCoefficients) {
  const Problem problem = flow_problem();
  const ScalarField viscosity = random_cells(problem.mesh, 2.0, 5);
  const ScalarField mass = random_reaction(problem.mesh, 6);
  LinearSystem system(problem, two_threads());
  const auto before = results(system);

  LinearSystem of_viscosity(with_coefficients(problem, viscosity, *problem.varying_mass), two_threads());
  system.set_viscosity(viscosity);
  EXPECT_TRUE(results(system) == results(of_viscosity));
  LinearSystem of_both(with_coefficients(problem, viscosity, mass), two_threads());
  system.set_reaction(mass);
  EXPECT_TRUE(results(system) == results(of_both));
  LinearSystem of_numbers(with_coefficients(problem, 3.0, 0.5), two_threads());
  system.set_coefficients(3.0, 0.5);
  EXPECT_TRUE(results(system) == results(of_numbers));
  system.set_coefficients(*problem.varying_viscosity, *problem.varying_mass);
  EXPECT_TRUE(results(system) == before);
}

/// The same local problems, but of other patches.
TEST_F(VaryingSystem, MovesAReaction) {
  Problem problem{.mesh = Mesh::unit(2, 3)};
  for (int side = 0; side < 4; ++side) problem.boundary.sides[side].kind = SideKind::periodic;
  const auto half = [](int direction) {
    return ScalarField(
        std::function<double(const Point&)>([=](const Point& x) { return x[direction] < 0.5 ? 16.0 : 0.0; }));
  };
  problem.force = {1.0, ScalarField::expression("sin(2*pi*x)", 2), 0.0};
  problem.varying_mass = half(0);
  LinearSystem system(problem, two_threads());
  Problem of_other = problem;
  of_other.varying_mass = half(1);
  LinearSystem other(of_other, two_threads());
  system.set_reaction(half(1));
  const auto preconditioned = [](LinearSystem& of) {
    const auto b = of.make_vector();
    const auto z = of.make_vector();
    of.load(b.get());
    of.precondition(b.get(), z.get());
    std::vector<double> values(of.size());
    of.download(z.get(), values);
    return values;
  };
  EXPECT_EQ(preconditioned(system), preconditioned(other));
}

/// Caps stay; regions give way, but for their forces.
TEST_F(VaryingSystem, KeepsCapsAndForcesOfRegions) {
  Problem problem = flow_problem();
  const ScalarField inside(std::function<double(const Point&)>([](const Point& x) { return x[0] > 0.5 ? 1.0 : 0.0; }));
  problem.regions.push_back({inside, ScalarField(50.0), ScalarField(3.0), VectorField{2.0, 1.0, 0.0}});
  problem.viscosity_cap = {0.1, 10.0};
  LinearSystem system(problem, two_threads());
  Problem other = with_coefficients(problem, random_cells(problem.mesh, 6.0, 3), *problem.varying_mass);
  other.regions.front().viscosity.reset();
  LinearSystem fresh(other, two_threads());
  system.set_viscosity(*other.varying_viscosity);
  EXPECT_TRUE(results(system) == results(fresh));
  EXPECT_EQ(system.problem().regions.front().mass->constant(), 3.0);
}

/// Parameters that coefficients depend on.
TEST_F(VaryingSystem, HasOtherParameters) {
  const auto at_time = [](double t) {
    Problem problem = flow_problem();
    problem.varying_viscosity = ScalarField::expression("exp(t*x)", 2, "", {{"t", t}});
    return problem;
  };
  LinearSystem system(at_time(1.0), two_threads());
  LinearSystem other(at_time(3.0), two_threads());
  system.set_parameters({{"t", 3.0}});
  EXPECT_TRUE(results(system) == results(other));
}

/// What is refused leaves all as it was.
TEST_F(VaryingSystem, RefusesWrongCoefficients) {
  const Problem problem = flow_problem();
  LinearSystem system(problem, two_threads());
  const auto before = results(system);
  const auto cells = [&](double odd_one) {
    bool first = true;
    return test::each_cell(problem.mesh, [&] { return std::exchange(first, false) ? 2.0 : odd_one; });
  };
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const double wrong : {-1.0, std::numeric_limits<double>::quiet_NaN(), infinity}) {
    EXPECT_THROW(system.set_viscosity(cells(wrong)), InputError) << wrong;
    EXPECT_THROW(system.set_reaction(cells(wrong)), InputError) << wrong;
    EXPECT_THROW(system.set_viscosity(wrong), InputError) << wrong;
    EXPECT_THROW(system.set_coefficients(2.0, cells(wrong)), InputError) << wrong;
  }
  EXPECT_THROW(system.set_viscosity(cells(0.0)), InputError);
  EXPECT_THROW(system.set_viscosity(0.0), InputError);
  EXPECT_TRUE(results(system) == before);
}

std::string refusal(const std::function<void()>& of) {
  try {
    of();
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing";
}

/// Other kernels, another form: that takes a new set-up.
TEST_F(VaryingSystem, RefusesWhatIsAnotherProblem) {
  const Mesh mesh = Mesh::unit(2, 3);
  const ScalarField varying = random_cells(mesh, 2.0, 1);
  Problem constant{.mesh = mesh};
  LinearSystem of_numbers(constant, two_threads());
  EXPECT_NE(refusal([&] { of_numbers.set_viscosity(varying); }).find("viscosity: expected a number"),
            std::string::npos);
  EXPECT_NE(refusal([&] { of_numbers.set_reaction(varying); }).find("mass: expected a number"), std::string::npos);
  EXPECT_NO_THROW(of_numbers.set_viscosity(2.0));

  Problem without_form = constant;
  without_form.varying_mass = random_reaction(mesh, 2);
  LinearSystem nameless(without_form, two_threads());
  EXPECT_NE(refusal([&] { nameless.set_viscosity(varying); }).find("different problems"), std::string::npos);
  EXPECT_NO_THROW(nameless.set_viscosity(2.0));
  EXPECT_EQ(form_of(nameless.problem()), ViscousForm::gradient);

  for (const ViscousForm form : {ViscousForm::gradient, ViscousForm::stress}) {
    Problem with_form = without_form;
    with_form.form = form;
    LinearSystem named(with_form, two_threads());
    named.set_viscosity(varying);
    EXPECT_EQ(form_of(named.problem()), form);
    LinearSystem fresh(with_coefficients(with_form, varying, *with_form.varying_mass), two_threads());
    EXPECT_TRUE(results(named) == results(fresh));
  }
}

/// What no side holds, constants or rotations, a reaction held.
TEST_F(VaryingSystem, RefusesAReactionThatComesOrGoes) {
  Problem periodic{.mesh = Mesh::unit(2, 3)};
  for (auto& side : periodic.boundary.sides) side.kind = SideKind::periodic;
  periodic.varying_viscosity = random_cells(periodic.mesh, 2.0, 1);
  LinearSystem system(periodic, two_threads());
  EXPECT_NE(refusal([&] { system.set_reaction(1.0); }).find("come or go"), std::string::npos);
  EXPECT_EQ(system.problem().mass, 0.0);

  Problem open{.mesh = Mesh::unit(2, 3), .mass = 1.0};
  for (auto& side : open.boundary.sides) side.kind = SideKind::outflow;
  open.varying_viscosity = random_cells(open.mesh, 2.0, 1);
  LinearSystem free(open, two_threads());
  EXPECT_NE(refusal([&] { free.set_reaction(0.0); }).find("reaction"), std::string::npos);
  EXPECT_EQ(free.problem().mass, 1.0);
  EXPECT_NO_THROW(free.set_reaction(2.0));
}

/// What replacing takes is a few cycles, not a set-up.
TEST_F(VaryingSystem, ReplacingMakesNoHierarchy) {
  const Problem problem = flow_problem();
  LinearSystem system(problem, two_threads());
  const std::int64_t before = system.memory_bytes();
  for (int i = 0; i < 5; ++i) system.set_viscosity(random_cells(problem.mesh, 2.0, i));
  const std::int64_t with_kept = system.memory_bytes();
  for (int i = 5; i < 10; ++i) system.set_viscosity(random_cells(problem.mesh, 2.0, i));
  EXPECT_EQ(system.memory_bytes(), with_kept);
  EXPECT_LE(with_kept, 4 * before);
}

}  // namespace
}  // namespace solenoid
