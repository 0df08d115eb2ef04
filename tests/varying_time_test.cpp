/// \file
/// Flows in time with coefficients that vary by cell, and in time.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "flows.hpp"
#include "problem/names.hpp"
#include "solenoid/cellwise.hpp"
#include "solenoid/checkpoint.hpp"
#include "solenoid/error.hpp"
#include "solenoid/time_stepper.hpp"

namespace solenoid {
namespace {

constexpr std::array all_schemes{TimeScheme::sbdf1,     TimeScheme::sbdf2,  TimeScheme::sbdf3, TimeScheme::sbdf4,
                                 TimeScheme::bdf2_ext3, TimeScheme::ars233, TimeScheme::ars443};

ScalarField expression(const std::string& text, double t = 0.0) {
  return ScalarField::expression(text, 2, "", {{"t", t}});
}

/// Numbers over a few decades, one for each cell.
ScalarField random_cells(const Mesh& mesh, double decades, std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::uniform_real_distribution<double> uniform(-0.5 * decades, 0.5 * decades);
  return test::each_cell(mesh, [&] { return std::pow(10.0, uniform(generator)); });
}

SolverOptions options() {
  SolverOptions options = test::on_cpu(1e-10);
  options.threads = 2;
  options.precision = Precision::mixed;
  options.max_iterations = 200;
  return options;
}

TimeOptions steps_of(double step, TimeScheme scheme = TimeScheme::sbdf3) {
  TimeOptions time;
  time.scheme = scheme;
  time.step = step;
  return time;
}

/// The L2 norm of the difference of velocities over that of the second.
double difference(const Solution& of, const Solution& from) {
  return of.velocity_error(from.velocity_field()) / std::sqrt(2.0 * from.kinetic_energy());
}

class VaryingTime : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::has_order(2, 2)) GTEST_SKIP() << "order 2 is not in this build";
  }
};

/// Layers of different viscosity that slide on each other, with a shear stress that grows upwards: what a cell has is
/// exact in space, and so are velocities
///
///     u = g(t) U(y),   nu_0(y) U'(y) = 1 + y,   nu = nu_0(y) (1 + t / 2),
///
/// whose errors are those of the scheme alone. Velocities on sides change in time, and a pressure does.
struct Layers {
  inline static const std::string profile = "(y < 0.5 ? 5*(y + y^2/2) : 3.125 + (y + y^2/2 - 0.625)/5)";

  static Problem problem(ViscousForm form, bool convection) {
    Problem problem{.mesh = Mesh::unit(2, 1), .order = 2, .form = form, .convection = convection};
    problem.varying_viscosity = expression("(y < 0.5 ? 0.2 : 5)*(1 + t/2)");
    problem.varying_mass = expression("y < 0.5 ? 1 : 3");
    problem.force[0] = expression("(3*cos(3*t) + (y < 0.5 ? 1 : 3)*(1 + sin(3*t)))*" + profile +
                                  " - (1 + t/2)*(1 + sin(3*t)) + cos(2*t)*y");
    problem.force[1] = expression("cos(2*t)*x");
    for (int side = 0; side < 4; ++side) {
      problem.boundary.sides[side].data = {expression("(1 + sin(3*t))*" + profile), 0.0, 0.0};
    }
    return problem;
  }
  static TimeOptions time(TimeScheme scheme, double step) {
    TimeOptions time = steps_of(step, scheme);
    time.initial = velocity(0.0);
    return time;
  }
  static VectorField velocity(double t) { return {expression("(1 + sin(3*t))*" + profile, t), 0.0, 0.0}; }
  static ScalarField pressure(double t) { return expression("cos(2*t)*(x*y - 0.25)", t); }
};

TEST_F(VaryingTime, HasTheOrderOfTheScheme) {
  for (const TimeScheme scheme : all_schemes) {
    const bool has_stages = scheme == TimeScheme::ars233 || scheme == TimeScheme::ars443;
    for (const ViscousForm form : {ViscousForm::stress, ViscousForm::gradient}) {
      if (form == ViscousForm::gradient && scheme != TimeScheme::sbdf3) continue;
      // Of others steps are too long for it.
      const bool convection = form == ViscousForm::stress && !has_stages && scheme != TimeScheme::sbdf4;
      std::vector<double> errors;
      for (const int steps : has_stages ? std::vector{8, 16} : std::vector{20, 40}) {
        TimeStepper flow(Layers::problem(form, convection), Layers::time(scheme, 1.0 / steps), options());
        flow.advance(1.0);
        const Solution solution = flow.solution(1.0);
        errors.push_back(solution.velocity_error(Layers::velocity(1.0)));
        errors.push_back(solution.pressure_error(Layers::pressure(1.0)));
        EXPECT_LE(solution.divergence_max(), 1e-11) << name_of(scheme);
      }
      const auto what = fmt::format("{}: velocity {:.2e}, {:.2e}, pressure {:.2e}, {:.2e}", name_of(scheme), errors[0],
                                    errors[2], errors[1], errors[3]);
      EXPECT_GE(std::log2(errors[0] / errors[2]), test::least_order(scheme) - 0.1) << what;
      EXPECT_GE(std::log2(errors[1] / errors[3]), test::least_order(scheme) - 0.1) << what;
      EXPECT_LE(errors[2], 1e-3) << what;
    }
  }
}

/// Numbers by cell with contrasts, between walls, one of which moves, and an open side.
Problem random_flow(std::uint64_t seed, ViscousForm form, bool convection) {
  Problem problem{.mesh = Mesh::unit(2, 3), .order = 2, .form = form, .convection = convection};
  problem.varying_viscosity = random_cells(problem.mesh, 2.0, seed);
  problem.varying_mass = random_cells(problem.mesh, 1.0, seed + 1);
  problem.force = {expression("sin(3*y)"), expression("x"), 0.0};
  problem.boundary.sides[1].kind = SideKind::outflow;
  problem.boundary.sides[3].data = {expression("x*(1-x)"), 0.0, 0.0};
  return problem;
}

/// What a flow settles to is the steady flow, which another solver finds.
TEST_F(VaryingTime, SettlesToTheSteadyFlow) {
  for (const ViscousForm form : {ViscousForm::stress, ViscousForm::gradient}) {
    const Problem problem = random_flow(1, form, false);
    const auto steady = solve(problem, options());
    ASSERT_TRUE(steady.report.converged);
    TimeOptions time = steps_of(0.2, TimeScheme::sbdf2);
    time.steady = 1e-8;
    TimeStepper flow(problem, time, options());
    flow.advance(50.0);
    EXPECT_TRUE(flow.steady());
    const Solution settled = flow.solution();
    EXPECT_LE(difference(settled, steady.solution), 1e-6);
    EXPECT_NEAR(settled.dissipation(), steady.solution.dissipation(), 1e-5 * steady.solution.dissipation());
    EXPECT_NEAR(flow.summary().dissipation, settled.dissipation(), 1e-12 * settled.dissipation());
    EXPECT_NEAR(settled.forces()[0].force[1], steady.solution.forces()[0].force[1], 1e-4);
    const std::vector<Point> points{{0.3, 0.4, 0.0}, {0.9, 0.9, 0.0}};
    for (const FlowField field : {FlowField::viscosity, FlowField::mass}) {
      EXPECT_EQ(settled.flow_field(field, points), steady.solution.flow_field(field, points));
    }
  }
}

/// With one number everywhere and the gradient form it is the flow of constant coefficients.
TEST_F(VaryingTime, IsThatOfConstantCoefficientsWhereTheyAreTheSame) {
  for (const TimeScheme scheme : {TimeScheme::sbdf3, TimeScheme::ars443}) {
    Problem constant = random_flow(2, ViscousForm::gradient, true);
    constant.varying_viscosity.reset();
    constant.varying_mass.reset();
    constant.viscosity = 0.05;
    constant.mass = 0.3;
    Problem by_cell = constant;
    by_cell.varying_viscosity = ScalarField(0.05);
    by_cell.varying_mass = ScalarField(0.3);
    TimeStepper expected(constant, steps_of(0.01, scheme), options());
    TimeStepper actual(by_cell, steps_of(0.01, scheme), options());
    expected.advance(0.3);
    actual.advance(0.3);
    EXPECT_LE(difference(actual.solution(), expected.solution()), 1e-4) << name_of(scheme);
  }
}

/// Projections have coefficients of their own: whatever those of the flow are, and also after data are set.
TEST_F(VaryingTime, ProjectsWithoutThem) {
  Problem still = random_flow(3, ViscousForm::stress, false);
  still.boundary = {};
  TimeOptions time = steps_of(0.01, TimeScheme::ars233);
  time.initial = {expression("sin(pi*x)^2*sin(2*pi*y)"), expression("x - sin(2*pi*x)*sin(pi*y)^2"), 0.0};
  still.viscosity_cap = {1e-3, 1e3};
  Problem constant = still;
  constant.varying_viscosity.reset();
  constant.varying_mass.reset();
  constant.viscosity_cap.reset();
  constant.form.reset();
  const TimeStepper expected(constant, time, options());
  TimeStepper actual(still, time, options());
  EXPECT_LE(difference(actual.solution(), expected.solution()), 1e-9);
  // Updates are projections, too.
  const Region half{.inside = expression("x < 0.5"), .viscosity = ScalarField(100.0)};
  still.regions.push_back(half);
  TimeStepper with_data(still, time, options());
  with_data.set_force(still.force);
  TimeStepper without(still, time, options());
  for (int i = 0; i < 3; ++i) {
    with_data.step();
    without.step();
  }
  EXPECT_EQ(with_data.solution().unknowns(), without.solution().unknowns());
  EXPECT_LE(without.solution().divergence_max(), 1e-11);
}

/// Each step of implicit Euler is a steady flow with more of a mass term, and the last flow as a force.
TEST_F(VaryingTime, IsASequenceOfSteadySolves) {
  const Problem problem = random_flow(4, ViscousForm::stress, false);
  const double dt = 0.05;
  TimeStepper flow(problem, steps_of(dt, TimeScheme::sbdf1), options());
  Solution last = flow.solution();
  Problem step = problem;
  step.varying_mass = ScalarField(std::function<double(const Point&)>(
      [mass = *problem.varying_mass, dt](const Point& x) { return mass(x) + 1.0 / dt; }));
  for (int i = 0; i < 4; ++i) {
    const VectorField before = last.velocity_field();
    for (int c = 0; c < 2; ++c) {
      step.force[c] = ScalarField(std::function<double(const Point&)>(
          [f = problem.force[c], u = before[c], dt](const Point& x) { return f(x) + u(x) / dt; }));
    }
    last = solve(step, options()).solution;
    flow.step();
    EXPECT_NEAR(flow.time(), dt * (i + 1), 1e-12);
    EXPECT_LE(difference(flow.solution(), last), 1e-3) << i;
  }
}

/// From a file, with all that a scheme keeps: coefficients that depend on the time and on the cell, averages.
TEST_F(VaryingTime, GoesOnWithTheSameBits) {
  if (!solution_files_unavailable().empty()) GTEST_SKIP() << solution_files_unavailable();
  for (const TimeScheme scheme : {TimeScheme::sbdf3, TimeScheme::ars233}) {
    Problem problem = random_flow(5, ViscousForm::stress, true);
    const ScalarField cells = *problem.varying_mass;
    problem.varying_viscosity = expression("0.1*exp(sin(5*t)*x)");
    TimeOptions time = steps_of(0.02, scheme);
    time.average_start = 0.0;
    TimeStepper flow(problem, time, options());
    for (int i = 0; i < 4; ++i) flow.step();
    const auto file = std::filesystem::temp_directory_path() / fmt::format("varying_time_{}.h5", name_of(scheme));
    flow.checkpoint()->save(file);
    const Checkpoint checkpoint = load_checkpoint(file);
    std::filesystem::remove(file);
    TimeStepper next(problem, time, options(), checkpoint);
    for (int i = 0; i < 3; ++i) {
      flow.step();
      next.step();
    }
    EXPECT_EQ(next.solution().unknowns(), flow.solution().unknowns()) << name_of(scheme);
    ASSERT_TRUE(next.averages() && flow.averages());
    EXPECT_EQ(next.averages()->flow.unknowns(), flow.averages()->flow.unknowns());
    EXPECT_EQ(next.averages()->dissipation.unknowns(), flow.averages()->dissipation.unknowns());
  }
}

/// Given at the end of each step, as multistep schemes want it, it is the expression.
TEST_F(VaryingTime, DependsOnTheTimeAsWhatIsSet) {
  const std::string viscosity = "0.1 + x*sin(t)^2 + (y < 0.5 ? 1 : 0.01)";
  const std::string mass = "1 + t*y";
  Problem problem = random_flow(6, ViscousForm::stress, true);
  problem.varying_viscosity = expression(viscosity);
  problem.varying_mass = expression(mass);
  TimeStepper by_expression(problem, steps_of(0.05), options());
  TimeStepper by_call(random_flow(7, ViscousForm::stress, true), steps_of(0.05), options());
  const std::vector<Point> points{{0.3, 0.4, 0.0}};
  for (int i = 0; i < 6; ++i) {
    const double t = by_call.time() + by_call.next_step();
    by_call.set_viscosity(expression(viscosity).at({{"t", t}}));
    by_call.set_reaction(expression(mass).at({{"t", t}}));
    by_call.step();
    by_expression.step();
    const Solution one = by_expression.solution();
    const Solution other = by_call.solution();
    EXPECT_EQ(one.unknowns(), other.unknowns()) << i;
    EXPECT_EQ(one.dissipation(), other.dissipation()) << i;
    EXPECT_EQ(one.flow_field(FlowField::viscosity, points), other.flow_field(FlowField::viscosity, points));
  }
  const auto checkpoint = by_call.checkpoint();
  EXPECT_EQ(checkpoint->set, (std::vector<std::string>{"mass", "viscosity"}));
  TimeStepper next(random_flow(7, ViscousForm::stress, true), steps_of(0.05), options(), *checkpoint);
  EXPECT_THROW(next.step(), InputError);
  next.set_viscosity(expression(viscosity).at({{"t", by_call.time()}}));
  EXPECT_THROW(next.step(), InputError);
  next.set_reaction(expression(mass).at({{"t", by_call.time()}}));
  next.step();
  by_call.step();
  EXPECT_EQ(next.solution().unknowns(), by_call.solution().unknowns());
}

/// Stiff layers and a flow rate that is held: what drives it says how much of it goes where. Dissipation is the mean of
/// the averages, too.
TEST_F(VaryingTime, HoldsAFlowRate) {
  Problem problem{.mesh = Mesh::unit(2, 3), .order = 2};
  problem.varying_viscosity = expression("y < 0.5 ? 1 : 10");
  for (const int side : {0, 1}) problem.boundary.sides[side].kind = SideKind::periodic;
  TimeOptions time = steps_of(0.05, TimeScheme::sbdf2);
  time.flow_rate = Point{1.0, 0.0, 0.0};
  time.average_start = 1.9;
  TimeStepper flow(problem, time, options());
  StepReport last;
  while (flow.time() < 2.0) last = flow.step();
  const Solution solution = flow.solution();
  EXPECT_NEAR(solution.mean_velocity()[0], 1.0, 1e-10);
  // Steady: the force does the work that viscosity takes.
  EXPECT_NEAR(last.gradient[0], solution.dissipation(), 1e-5 * last.gradient[0]);
  const Solution mean = flow.averages()->dissipation;
  double sum = 0.0;
  const int n = 64;
  for (int i = 0; i < n; ++i) {
    for (const double value : mean.value(std::vector<Point>{{0.3, (i + 0.5) / n, 0.0}})) sum += value / n;
  }
  EXPECT_NEAR(sum, solution.dissipation(), 2e-3 * sum);
}

TEST_F(VaryingTime, RefusesWrongCoefficients) {
  const Problem problem = random_flow(8, ViscousForm::stress, false);
  TimeStepper flow(problem, steps_of(0.05), options());
  TimeStepper undisturbed(problem, steps_of(0.05), options());
  flow.step();
  undisturbed.step();
  for (const double wrong : {-1.0, 0.0, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(flow.set_viscosity(wrong), InputError);
    EXPECT_THROW(flow.set_viscosity(test::each_cell(problem.mesh, [&] { return wrong; })), InputError);
  }
  EXPECT_THROW(flow.set_reaction(-1.0), InputError);
  flow.step();
  undisturbed.step();
  EXPECT_EQ(flow.solution().unknowns(), undisturbed.solution().unknowns());
  Problem constant = problem;
  constant.varying_viscosity.reset();
  constant.varying_mass.reset();
  constant.form.reset();
  TimeStepper of_numbers(constant, steps_of(0.05), options());
  EXPECT_THROW(of_numbers.set_viscosity(*problem.varying_viscosity), InputError);
  EXPECT_THROW(of_numbers.set_reaction(*problem.varying_mass), InputError);
  EXPECT_NO_THROW(of_numbers.set_viscosity(2.0));
  EXPECT_EQ(of_numbers.solution().problem().viscosity, 2.0);
}

}  // namespace
}  // namespace solenoid
