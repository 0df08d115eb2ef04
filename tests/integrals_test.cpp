/// \file
/// Integrals and errors where the coefficients lie: what a device has against what the host has.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "base/host_vector.hpp"
#include "engines.hpp"
#include "levels.hpp"
#include "solenoid/linear_system.hpp"
#include "solution/part_errors.hpp"

namespace solenoid {
namespace {

struct IntegralCase {
  test::MeshCase mesh;
  int order;
};

/// None without a device.
std::vector<IntegralCase> integral_cases() {
  std::vector<IntegralCase> cases;
  if (!cuda_unavailable().empty()) return cases;
  for (const int dim : {2, 3}) {
    for (const auto& mesh : test::mesh_cases(dim)) {
      for (const int order : available_orders(dim, mesh.equation)) cases.push_back({mesh, order});
    }
    // More cells than a device takes at a time.
    cases.push_back({{.name = "many_cells", .mesh = Mesh::unit(dim, dim == 2 ? 9 : 5)}, available_orders(dim).front()});
  }
  return cases;
}

std::string name(const IntegralCase& c) {
  return std::to_string(c.mesh.mesh.dim) + "d_" + c.mesh.name + "_k" + std::to_string(c.order);
}
std::string name_of(const testing::TestParamInfo<IntegralCase>& info) { return name(info.param); }
void PrintTo(const IntegralCase& c, std::ostream* out) { *out << name(c); }

ScalarField expression(const std::string& text) { return ScalarField::expression(text, 3); }
ScalarField function(double (*f)(const Point&)) { return ScalarField(std::function<double(const Point&)>(f)); }

VectorField wave() { return {expression("sin(2*x)*cos(3*y) + z"), expression("x < 0.7 ? y : 0.4*x"), 0.3}; }

void expect_equal(const FlowIntegrals& found, const FlowIntegrals& expected) {
  const double of_velocity = std::sqrt(expected.velocity_square);
  for (int c = 0; c < 3; ++c) EXPECT_NEAR(found.velocity[c], expected.velocity[c], 1e-12 * (1.0 + of_velocity)) << c;
  EXPECT_NEAR(found.velocity_square / expected.velocity_square, 1.0, 1e-12);
  EXPECT_NEAR(found.gradient_square / expected.gradient_square, 1.0, 1e-12);
  EXPECT_NEAR(found.vorticity_square / expected.gradient_square, expected.vorticity_square / expected.gradient_square,
              1e-12);
  EXPECT_NEAR(found.max_speed / expected.max_speed, 1.0, 1e-12);
  // Of a solution without divergence: rounding, and nothing else.
  EXPECT_NEAR(found.max_divergence, expected.max_divergence, 1e-11 * std::sqrt(expected.gradient_square));
}

/// A solution with random coefficients, and the same on a device.
class Integrals : public testing::TestWithParam<IntegralCase> {
 protected:
  void SetUp() override {
    Engine& engine = test::EngineChoice{"cuda", DeviceChoice::cuda}.get();
    if (!test::has_order_of(engine, level)) GTEST_SKIP() << "not in this build";
    const auto values = test::random_vector(level, 7, true);
    HostVector coefficients = zeros(level.size());
    std::copy(values.begin(), values.end(), coefficients.begin());
    x = Vector<double>(engine, level.size());
    x.upload(coefficients.data());
    const test::MeshCase& mesh = GetParam().mesh;
    const Problem problem{.mesh = mesh.mesh,
                          .order = GetParam().order,
                          .mass = mesh.mass,
                          .boundary = mesh.boundary,
                          .equation = mesh.equation};
    on_host.emplace(problem, std::shared_ptr<const Grid>(std::shared_ptr<void>(), &level.grid),
                    std::move(coefficients));
    integrator = engine.make_integrator(level);
    ASSERT_NE(integrator, nullptr);
  }

  [[nodiscard]] bool flow() const { return level.equation.velocities() > 0; }

  Level level = GetParam().mesh.level(GetParam().order, {}, GetParam().mesh.equation == EquationKind::stokes);
  Vector<double> x;
  std::optional<Solution> on_host;
  std::unique_ptr<Integrator> integrator;
};

TEST_P(Integrals, OfVelocitiesAreThoseOfTheHost) {
  if (!flow()) return;
  expect_equal(integrator->flow(x.data()), on_host->integrals());
  EXPECT_EQ(integrator->flow(x.data()).gradient_square, integrator->flow(x.data()).gradient_square);
}

TEST_P(Integrals, ErrorsAreThoseOfTheHost) {
  if (flow()) {
    for (const VectorField& exact : {wave(), VectorField{}, VectorField{0.0, expression("exp(x)*y"), 1.5}}) {
      const auto square = integrator->velocity_error_square(exact, x.data());
      ASSERT_TRUE(square);
      EXPECT_NEAR(std::sqrt(*square) / on_host->velocity_error(exact), 1.0, 1e-12);
    }
  }
  // A large mean is no reason to lose digits of what differs from it.
  for (const ScalarField& exact : {ScalarField(0.0), ScalarField(1e5), expression("sin(x)*y - 40")}) {
    const auto of_parts = integrator->scalar_errors(exact, x.data());
    ASSERT_TRUE(of_parts);
    const double found = error_norm(on_host->problem(), level.grid, *of_parts);
    EXPECT_NEAR(found / (flow() ? on_host->pressure_error(exact) : on_host->value_error(exact)), 1.0, 1e-9);
  }
}

TEST_P(Integrals, AreLeftToTheHostWhereTheyCannotBeTaken) {
  const ScalarField of_caller = function([](const Point& p) { return p[0]; });
  const ScalarField not_finite = expression("1/(x - x)");
  for (const ScalarField& field : {of_caller, not_finite}) {
    EXPECT_FALSE(integrator->scalar_errors(field, x.data()));
    if (flow()) {
      EXPECT_FALSE(integrator->velocity_error_square({field, 0.0, 0.0}, x.data()));
    }
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Integrals);  // there may be no device
INSTANTIATE_TEST_SUITE_P(Cases, Integrals, testing::ValuesIn(integral_cases()), name_of);

/// A channel with an obstacle, with inflow that is lifted.
Problem channel(int dim) {
  Problem problem{.mesh = Mesh::unit(dim, 1), .order = available_orders(dim).back()};
  problem.mesh.cells = {4, 3, dim == 2 ? 1 : 3};
  problem.mesh.holes = {{{1, 1, 0}, {2, 2, 1}}};
  problem.boundary.sides[0].data[0] = ScalarField::expression("y*(1 - y)", 2);
  problem.boundary.sides[1].kind = SideKind::outflow;
  return problem;
}

TEST(IntegralsOfSystems, AreThoseOfTheirSolutions) {
  for (const auto& choice : test::engines()) {
    for (const int dim : {2, 3}) {
      if (available_orders(dim).empty()) continue;
      SolverOptions options;
      options.device = choice.device;
      LinearSystem system(channel(dim), options);
      const auto b = system.make_vector();
      const auto x = system.make_vector();
      system.load(b.get());
      EXPECT_TRUE(system.solve(b.get(), x.get()).converged);
      const Solution solution = system.solution(x.get());
      // What the solution computes itself, from its coefficients.
      const std::span<const double> values = solution.coefficients();
      HostVector coefficients = zeros(std::ssize(values));
      std::copy(values.begin(), values.end(), coefficients.begin());
      const Solution fresh(solution.problem(), std::make_shared<const Grid>(solution.grid()), std::move(coefficients));
      expect_equal(system.integrals(x.get()), fresh.integrals());
      EXPECT_NEAR(solution.dissipation() / fresh.dissipation(), 1.0, 1e-12);
      EXPECT_NEAR(solution.max_speed() / fresh.max_speed(), 1.0, 1e-12);

      Exact exact;
      exact.velocity = wave();
      exact.pressure = function([](const Point& p) { return p[0] * p[1]; });
      const Errors errors = system.errors(x.get(), exact);
      EXPECT_NEAR(errors.velocity.value() / fresh.velocity_error(wave()), 1.0, 1e-12);
      EXPECT_NEAR(errors.pressure.value() / fresh.pressure_error(*exact.pressure), 1.0, 1e-12);
      EXPECT_FALSE(errors.value);
    }
  }
}

TEST(IntegralsOfSystems, SolvesMeasureErrors) {
  for (const auto& choice : test::engines()) {
    SolverOptions options;
    options.device = choice.device;
    options.exact.velocity = wave();
    options.exact.pressure = expression("x*y");
    const Problem problem = channel(2);
    auto [solution, report] = solve(problem, options);
    EXPECT_NEAR(report.errors.velocity.value() / solution.velocity_error(wave()), 1.0, 1e-12);
    EXPECT_NEAR(report.errors.pressure.value() / solution.pressure_error(expression("x*y")), 1.0, 1e-12);
    EXPECT_EQ(report.errors.not_measured, "");

    options.exact.pressure = expression("1/(x - x)");
    const Result without = solve(problem, options);
    EXPECT_TRUE(without.report.converged);
    EXPECT_FALSE(without.report.errors.pressure);
    EXPECT_NE(without.report.errors.not_measured, "");
  }
}

TEST(IntegralsOfSystems, PoissonHasNoVelocity) {
  if (available_orders(2, EquationKind::poisson).empty()) GTEST_SKIP() << "no order in this build";
  Problem problem{.mesh = Mesh::unit(2, 2),
                  .order = available_orders(2, EquationKind::poisson).back(),
                  .equation = EquationKind::poisson};
  problem.force[0] = 1.0;
  LinearSystem system(problem, {});
  const auto x = system.make_vector();
  EXPECT_THROW(static_cast<void>(system.integrals(x.get())), InputError);
  Exact exact;
  exact.value = 2.0;
  EXPECT_NEAR(system.errors(x.get(), exact).value.value(), 2.0, 1e-14);
}

}  // namespace
}  // namespace solenoid
