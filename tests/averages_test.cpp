/// \file
/// Averages of flows in time against sums over the steps, known flows and quadrature.

#include "solenoid/averages.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "element/basis.hpp"
#include "engines.hpp"
#include "mesh/grid.hpp"
#include "problem/orders.hpp"
#include "program.hpp"
#include "solenoid/error.hpp"
#include "solenoid/time_stepper.hpp"

namespace solenoid {
namespace {

constexpr double pi = std::numbers::pi;

bool has_order(int dim, int order) {
  const auto orders = available_orders(dim);
  return std::find(orders.begin(), orders.end(), order) != orders.end();
}

ScalarField in_time(const std::string& text, int dim) { return ScalarField::expression(text, dim, "", {{"t", 0.0}}); }

SolverOptions on(DeviceChoice device) {
  SolverOptions options;
  options.device = device;
  options.threads = 1;  // small problems, beside other tests
  options.precision = Precision::full_double;
  return options;
}
SolverOptions on_cpu() { return on(DeviceChoice::cpu); }

/// Past a hole, driven by sides and a force that swing.
Problem swinging(int dim) {
  Problem problem;
  problem.mesh.dim = dim;
  problem.mesh.cells = {4, 3, dim == 3 ? 2 : 1};
  problem.mesh.upper = {1.3, 1.0, 0.7};
  problem.mesh.refine = 1;
  problem.mesh.holes = {{{1, 1, 0}, {2, 2, 1}}};
  problem.order = 2;
  problem.viscosity = 0.02;
  problem.convection = true;
  problem.force[1] = in_time("sin(20*t)*x", dim);
  problem.boundary.sides[0].data[0] = in_time("(1 + 0.5*sin(20*t))*y*(1-y)", dim);
  problem.boundary.sides[1].kind = SideKind::outflow;
  problem.boundary.sides[3].data[0] = in_time("cos(15*t)", dim);
  return problem;
}

/// Integrals over a cell of the values of a Poisson solution, by its evaluation.
template <class Visit>
void for_points(const Solution& s, Record cell, const Visit& visit) {
  const Quadrature rule = gauss(s.problem().order + 2);
  const int n = s.problem().order + 2;
  const Point corner = s.grid().corner(cell);
  const Point widths = s.grid().widths(cell);
  const int dim = s.grid().dim();
  for (int q = 0; q < (dim == 3 ? n * n * n : n * n); ++q) {
    const std::array<int, 3> i{q % n, q / n % n, q / n / n};
    Point x = corner;
    double weight = 1.0;
    for (int a = 0; a < dim; ++a) {
      x[a] += widths[a] * rule.points[i[a]];
      weight *= widths[a] * rule.weights[i[a]];
    }
    visit(x, weight);
  }
}

class AveragesOn : public testing::TestWithParam<test::EngineChoice> {};
INSTANTIATE_TEST_SUITE_P(Engines, AveragesOn, testing::ValuesIn(test::engines()),
                         [](const auto& info) { return info.param.name; });

/// The same sums from the flows of the steps, all of which are kept: means at points, integrals over cells of stresses
/// and dissipation.
TEST_P(AveragesOn, AreThoseOfTheSteps) {
  for (const auto& kind :
       {std::pair{2, TimeScheme::sbdf3}, std::pair{2, TimeScheme::ars233}, std::pair{3, TimeScheme::sbdf3}}) {
    const auto dim = kind.first;
    const auto scheme = kind.second;
    if (!has_order(dim, 2)) GTEST_SKIP() << "order 2 is not in this build";
    // Steps of different lengths; in the middle of one the averages begin.
    TimeOptions options{.scheme = scheme, .step = 0.02, .cfl = 0.4, .average_start = 0.0123};
    options.initial[0] = in_time("y*(1-y)*(2 + cos(5*x))", dim);
    TimeStepper flow(swinging(dim), options, on(GetParam().device));
    std::vector<Solution> samples;
    std::vector<double> weights;
    double before = 0.0;
    EXPECT_FALSE(flow.averages());
    while (samples.size() < 12) {
      flow.step();
      const double begin = std::max(before, *options.average_start);
      before = flow.time();
      if (before <= begin) {
        EXPECT_FALSE(flow.averages());
        continue;
      }
      weights.push_back(before - begin);
      samples.push_back(flow.solution(0.5 * (before + begin)));
    }
    const Averages averages = *flow.averages();
    EXPECT_EQ(averages.start, 0.0123);
    EXPECT_NEAR(averages.length, flow.time() - 0.0123, 1e-14);
    double divergence = 1e-12;
    for (const Solution& sample : samples) divergence = std::max(divergence, sample.divergence_max());
    EXPECT_LT(averages.flow.divergence_max(), 2.0 * divergence);

    const auto mean = [&](const auto& value) {
      double sum = 0.0;
      for (std::size_t i = 0; i < samples.size(); ++i) sum += weights[i] * value(samples[i]);
      return sum / averages.length;
    };
    // As a whole: all energy is that of the mean flow or of what fluctuates.
    const auto trace = [&](const std::vector<Solution>& stresses) {
      double sum = 0.0;
      for (int c = 0; c < dim; ++c) {
        const Solution& stress = stresses[Averages::stress_index(dim, c, c)];
        for (const Record cell : stress.grid().layout().owned_cells()) {
          for_points(stress, cell, [&](const Point& x, double weight) { sum += weight * stress.value({&x, 1})[0]; });
        }
      }
      return sum;
    };
    const double energy = mean([](const Solution& s) { return s.kinetic_energy(); });
    EXPECT_NEAR(averages.flow.kinetic_energy() + 0.5 * trace(averages.stresses), energy, 1e-12 * energy);
    EXPECT_GT(0.5 * trace(averages.stresses), 1e-4 * energy);

    for (const Record cell : {0, 7, 15}) {
      std::vector<Point> points;
      std::vector<double> at;
      for_points(averages.flow, cell, [&](const Point& x, double weight) {
        points.push_back(x);
        at.push_back(weight);
      });
      const auto u_mean = averages.flow.velocity(points);
      const auto p_mean = averages.flow.pressure(points);
      const auto stress = averages.stress(points);
      const auto dissipation = averages.dissipation.value(points);
      std::vector<std::vector<Point>> u;
      std::vector<std::vector<double>> p;
      std::vector<std::vector<Gradient>> g;
      for (const Solution& s : samples) {
        u.push_back(s.velocity(points));
        p.push_back(s.pressure(points));
        g.push_back(s.velocity_gradient(points));
      }
      double dissipated = 0.0;
      double expected_dissipated = 0.0;
      Gradient integral{};
      Gradient expected{};
      for (std::size_t q = 0; q < points.size(); ++q) {
        double p_expected = 0.0;
        Point u_expected{};
        for (std::size_t i = 0; i < samples.size(); ++i) {
          const double part = weights[i] / averages.length;
          p_expected += part * p[i][q];
          for (int c = 0; c < dim; ++c) u_expected[c] += part * u[i][q][c];
          for (int c = 0; c < dim; ++c) {
            for (int a = 0; a < dim; ++a) expected_dissipated += at[q] * part * 0.02 * g[i][q][c][a] * g[i][q][c][a];
          }
        }
        dissipated += at[q] * dissipation[q];
        EXPECT_NEAR(p_mean[q], p_expected, 1e-10);
        for (int c = 0; c < dim; ++c) EXPECT_NEAR(u_mean[q][c], u_expected[c], 1e-12);
        for (int c = 0; c < dim; ++c) {
          for (int d = 0; d < dim; ++d) {
            integral[c][d] += at[q] * stress[q][c][d];
            for (std::size_t i = 0; i < samples.size(); ++i) {
              expected[c][d] +=
                  at[q] * weights[i] / averages.length * (u[i][q][c] - u_expected[c]) * (u[i][q][d] - u_expected[d]);
            }
          }
        }
      }
      EXPECT_NEAR(dissipated, expected_dissipated, 1e-11 * expected_dissipated);
      for (int c = 0; c < dim; ++c) {
        for (int d = 0; d < dim; ++d) EXPECT_NEAR(integral[c][d], expected[c][d], 1e-14) << c << d;
      }
    }
    EXPECT_THROW((void)averages.flow.forces(), InputError);
    EXPECT_THROW((void)averages.profile({true, false, false}), InputError);
  }
}

/// u = (y + sin(2 pi t) y^2, cos(2 pi t) x) with p = x y (2 + sin(2 pi t)), of which only the time makes errors: over a
/// period U = (y, 0), P = 2 x y, R_xx = y^4 / 2, R_yy = x^2 / 2, R_xy = 0, and the dissipation is
/// nu (1 + 2 y^2 + 1/2). The rule is of second order.
TEST(Averages, OfAPeriodAreKnown) {
  if (!has_order(2, 2)) GTEST_SKIP() << "order 2 is not in this build";
  Problem problem;
  problem.mesh = Mesh::unit(2, 2);
  problem.mesh.lower = {0.1, -0.2, 0.0};
  problem.mesh.upper = {1.3, 0.9, 1.0};
  problem.order = 2;
  problem.viscosity = 0.1;
  const VectorField velocity{in_time("y + sin(2*pi*t)*y*y", 2), in_time("cos(2*pi*t)*x", 2), 0.0};
  problem.force = {in_time("2*pi*cos(2*pi*t)*y*y - 0.2*sin(2*pi*t) + y*(2 + sin(2*pi*t))", 2),
                   in_time("-2*pi*sin(2*pi*t)*x + x*(2 + sin(2*pi*t))", 2), 0.0};
  for (int side = 0; side < 4; ++side) problem.boundary.sides[side].data = velocity;
  double before[4]{};
  for (const int steps : {20, 40}) {
    // Steps of one length, the last of which ends a period after the start.
    TimeStepper flow(problem, {.step = 1.0 / steps, .initial = velocity}, on_cpu());
    flow.advance(2.0);  // until nothing is left of the short ones
    TimeStepper averaged(problem, {.step = 1.0 / steps, .average_start = 0.0}, on_cpu(), *flow.checkpoint());
    for (int i = 0; i < steps; ++i) averaged.step();
    const Averages averages = *averaged.averages();
    EXPECT_EQ(averages.start, flow.time());
    EXPECT_NEAR(averages.length, 1.0, 1e-12);
    const double errors[4]{
        averages.flow.velocity_error({in_time("y", 2), 0.0, 0.0}), averages.flow.pressure_error(in_time("2*x*y", 2)),
        averages.stresses[2].value_error(in_time("x*x/2", 2)) + averages.stresses[1].value_error(0.0),
        averages.dissipation.value_error(in_time("0.1*(1.5 + 2*y*y)", 2))};
    fmt::print("{} steps: {}\n", steps, fmt::join(errors, " "));
    for (int i = 0; i < 4; ++i) {
      if (before[i] > 0.0) {
        EXPECT_TRUE(errors[i] < 1e-7 || errors[i] < before[i] / 3.0) << i << " " << errors[i] << " " << before[i];
      }
      before[i] = errors[i];
      EXPECT_LT(errors[i], 0.1);
    }
    // y^4 is not in Q_2, but its integrals over cells are kept.
    const auto xx = averages.stresses[0].value_error(in_time("y^4/2", 2));
    EXPECT_LT(xx, steps == 20 ? 0.02 : 0.005);
  }
}

/// With a time between them some flows count, each for the time since the one before; a restart goes on with that.
TEST_P(AveragesOn, AreThoseOfSomeSteps) {
  if (!has_order(2, 2)) GTEST_SKIP() << "order 2 is not in this build";
  TimeOptions options{.step = 0.02, .cfl = 0.4, .average_start = 0.0123, .average_every = 0.03};
  options.initial[0] = in_time("y*(1-y)*(2 + cos(5*x))", 2);
  TimeStepper flow(swinging(2), options, on(GetParam().device));
  const std::vector<Point> points{{0.11, 0.2, 0.0}, {0.9, 0.77, 0.0}};
  double length = 0.0;
  std::vector<double> sums(points.size(), 0.0);
  int steps = 0;
  int flows = 0;
  double before = 0.0;
  std::optional<Checkpoint> checkpoint;
  while (flows < 6) {
    flow.step();
    const double begin = std::max(before, *options.average_start);
    before = flow.time();
    if (before <= begin) continue;
    ++steps;
    const double since = before - *options.average_start - length;
    if (flows == 3 && !checkpoint) checkpoint = flow.checkpoint();
    if (since < options.average_every) {
      EXPECT_EQ(flow.averages().has_value(), flows > 0);
      continue;
    }
    ++flows;
    length += since;
    const auto velocity = flow.solution(0.5 * (before + begin)).velocity(points);
    for (std::size_t i = 0; i < points.size(); ++i) sums[i] += since * velocity[i][0];
    EXPECT_NEAR(flow.averages()->length, length, 1e-14);
  }
  EXPECT_GT(steps, 2 * flows);
  const Averages averages = *flow.averages();
  const auto mean = averages.flow.velocity(points);
  for (std::size_t i = 0; i < points.size(); ++i) EXPECT_NEAR(mean[i][0], sums[i] / length, 1e-12);

  TimeStepper rest(swinging(2), options, on(GetParam().device), *checkpoint);
  while (rest.time() < flow.time()) rest.step();
  EXPECT_EQ(rest.averages()->length, averages.length);
  EXPECT_EQ(rest.averages()->flow.unknowns(), averages.flow.unknowns());
  EXPECT_EQ(rest.averages()->stresses[1].unknowns(), averages.stresses[1].unknowns());

  options.average_start.reset();
  EXPECT_THROW(TimeStepper(swinging(2), options, on(GetParam().device)), InputError);
}

/// A flow that has become steady has no stresses at all.
TEST(Averages, OfASteadyFlowHaveNoStress) {
  Problem problem;
  problem.mesh = Mesh::unit(2, 2);
  problem.order = available_orders(2).front();
  problem.boundary.sides[3].data[0] = 1.0;
  TimeStepper flow(problem, {.step = 0.1, .average_start = 3.0}, on_cpu());
  flow.advance(4.0);
  const Averages averages = *flow.averages();
  for (const Solution& stress : averages.stresses) EXPECT_LT(stress.value_error(0.0), 1e-12);
  EXPECT_NEAR(averages.flow.kinetic_energy(), flow.solution().kinetic_energy(), 1e-9);
}

// Profiles -----------------------------------------------------------------------------------------------------------

/// Averages of known fields; periodic in x and z, with a hole that ends columns along x.
Averages known(int dim, int order, int refine, bool hole) {
  Problem problem;
  problem.mesh.dim = dim;
  problem.mesh.cells = {3, 2, dim == 3 ? 3 : 1};
  problem.mesh.lower = {0.0, -1.0, 0.5};
  problem.mesh.upper = {1.5, 1.0, 2.0};
  problem.mesh.refine = refine;
  if (hole) problem.mesh.holes = {{{1, 0, 0}, {2, 1, 2}}};
  problem.order = order;
  for (const int side : {0, 1, 4, 5}) problem.boundary.sides[side].kind = SideKind::periodic;
  const Parameters parameters{{"k", 2 * pi / 1.5}};
  const auto field = [&](const char* text) { return ScalarField::expression(text, dim, "", parameters); };
  const std::string z = dim == 3 ? "*(1 + 0.5*cos(k*z))" : "";
  Solution flow = interpolate(problem,
                              {field(("(1-y*y)*(2 + sin(k*x))" + z).c_str()), field("y*(1-y*y)*cos(k*x)"),
                               dim == 3 ? field("sin(k*z)*y") : 0.0},
                              field("y + cos(k*x)^2"));
  Problem scalar = problem;
  scalar.equation = EquationKind::poisson;
  std::vector<Solution> stresses;
  for (int i = 0; i < dim * (dim + 1) / 2; ++i) {
    stresses.push_back(interpolate(scalar, field(fmt::format("{} + y*y*sin(k*x)^2", i).c_str())));
  }
  return {0.0, 1.0, std::move(flow), std::move(stresses), interpolate(scalar, field("3 + y*sin(k*x)"))};
}

/// Rows are the quadrature along columns, by evaluation at points: those that are not in the domain do not count.
TEST(Profiles, AreQuadratureAlongColumns) {
  for (const int dim : {2, 3}) {
    const int order = has_order(dim, 2) ? 2 : available_orders(dim).front();
    const std::vector<std::array<bool, 3>> directions =
        dim == 2 ? std::vector<std::array<bool, 3>>{{true, false, false}, {false, false, false}}
                 : std::vector<std::array<bool, 3>>{{true, false, true}, {false, false, true}, {true, false, false}};
    for (const auto& along : directions) {
      const Averages averages = known(dim, order, 1, true);
      const Profile profile = averages.profile(along);
      const Grid& grid = averages.flow.grid();
      const Quadrature rule = gauss(order + 2);
      // Points and weights along a direction, or the place of the row.
      const auto line = [&](int a, const Point& at) {
        std::vector<std::pair<double, double>> points;
        if (a >= dim) return std::vector<std::pair<double, double>>{{0.0, 1.0}};
        if (!along[a]) return std::vector<std::pair<double, double>>{{at[a], 1.0}};
        for (int i = 0; i < grid.extent()[a]; ++i) {
          const double h = grid.metric().width(a, i);
          for (std::size_t q = 0; q < rule.points.size(); ++q) {
            points.emplace_back(grid.metric().plane(a, i) + h * rule.points[q], h * rule.weights[q]);
          }
        }
        return points;
      };
      ASSERT_FALSE(profile.rows.empty());
      for (std::size_t row = 0; row < profile.rows.size(); row += 5) {
        const Profile::Row& found = profile.rows[row];
        std::vector<Point> points;
        std::vector<double> weights;
        for (const auto& [z, wz] : line(2, found.at)) {
          for (const auto& [y, wy] : line(1, found.at)) {
            for (const auto& [x, wx] : line(0, found.at)) {
              points.push_back({x, y, z});
              weights.push_back(wx * wy * wz);
            }
          }
        }
        const auto u = averages.flow.velocity(points);
        const auto p = averages.flow.pressure(points);
        const auto r = averages.stress(points);
        const auto d = averages.dissipation.value(points);
        double sum = 0.0;
        Profile::Row expected;
        Gradient square{};
        for (std::size_t i = 0; i < points.size(); ++i) {
          if (std::isnan(p[i])) continue;
          sum += weights[i];
          expected.pressure += weights[i] * p[i];
          expected.dissipation += weights[i] * d[i];
          for (int c = 0; c < dim; ++c) expected.velocity[c] += weights[i] * u[i][c];
          for (int c = 0; c < dim; ++c) {
            for (int e = 0; e < dim; ++e) square[c][e] += weights[i] * (r[i][c][e] + u[i][c] * u[i][e]);
          }
        }
        ASSERT_GT(sum, 0.0);
        EXPECT_NEAR(found.pressure, expected.pressure / sum, 1e-12);
        EXPECT_NEAR(found.dissipation, expected.dissipation / sum, 1e-12);
        for (int c = 0; c < dim; ++c) EXPECT_NEAR(found.velocity[c], expected.velocity[c] / sum, 1e-12);
        for (int c = 0; c < dim; ++c) {
          for (int e = 0; e < dim; ++e) {
            const double expected_stress = square[c][e] / sum - expected.velocity[c] * expected.velocity[e] / sum / sum;
            EXPECT_NEAR(found.stress[c][e], expected_stress, 1e-11) << c << e;
          }
        }
      }
    }
  }
}

/// Of a known profile, with the order of the element.
TEST(Profiles, AreKnown) {
  const int order = available_orders(2).front();
  double before[2]{};
  for (const int refine : {2, 3}) {
    const Profile profile = known(2, order, refine, false).profile({true, false, false});
    ASSERT_EQ(std::ssize(profile.rows), (2 << refine) * (order + 1));
    EXPECT_EQ(profile.across, (std::vector<int>{1}));
    double errors[2]{};
    double last = -1.0;
    for (const Profile::Row& row : profile.rows) {
      const double y = row.at[1];
      EXPECT_GT(y, last);
      last = y;
      const double wall = 1.0 - y * y;
      // Means of sin^2 and cos^2 are 1/2; u and v are a quarter of a period apart.
      errors[0] = std::max({errors[0], std::abs(row.velocity[0] - 2.0 * wall), std::abs(row.velocity[1]),
                            std::abs(row.pressure - y - 0.5), std::abs(row.dissipation - 3.0)});
      errors[1] = std::max({errors[1], std::abs(row.stress[0][0] - 0.5 * y * y - 0.5 * wall * wall),
                            std::abs(row.stress[0][1] - 1.0 - 0.5 * y * y),
                            std::abs(row.stress[1][1] - 2.0 - 0.5 * y * y - 0.5 * y * y * wall * wall)});
    }
    fmt::print("errors of the profile: {:.2e} {:.2e}\n", errors[0], errors[1]);
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(before[i] <= 1e-10 || errors[i] < before[i] / std::pow(2.0, order + 0.7)) << i;
      before[i] = errors[i];
    }
  }
}

// The program --------------------------------------------------------------------------------------------------------

class AveragingProgram : public Program {};

TEST_F(AveragingProgram, WritesAveragesAndProfiles) {
  if (!has_order(2, 2)) GTEST_SKIP() << "order 2 is not in this build";
  write("channel.toml", R"toml([mesh]
cells = [2, 2]
refine = 1
[time]
end = 0.5
step = 0.05
initial = ["y*(1-y)", "0.1*sin(2*pi*x)"]
[physics]
viscosity = 0.05
convection = true
force = [0.1, 0]
[boundary]
xmin = {periodic = true}
[average]
start = 0.2
along = ["x"]
[output]
vtu = true
every = 0.1
)toml");
  ASSERT_EQ(run("solve channel.toml -o files --threads 1"), 0) << errors();
  shell("cd files && ls *average* *profile* >../list");
  EXPECT_EQ(read("list"),
            "channel_average.pvd\nchannel_average.vtu\nchannel_average_0003.vtu\nchannel_average_0004.vtu\n"
            "channel_average_0005.vtu\nchannel_profile.csv\nchannel_profile_0003.csv\nchannel_profile_0004.csv\n"
            "channel_profile_0005.csv\n");
  expect_contains(read("files/channel_average.pvd"), {"timestep=\"0.5\" file=\"channel_average_0005.vtu\""});
  expect_contains(read("files/channel_average.vtu"),
                  {"Name=\"velocity\" NumberOfComponents=\"3\"", "Name=\"reynolds_stress\" NumberOfComponents=\"6\"",
                   "Name=\"dissipation\""});
  const std::string profile = read("files/channel_profile.csv");
  EXPECT_TRUE(profile.starts_with("y,u_x,u_y,p,r_xx,r_xy,r_yy,dissipation\n")) << profile;
  EXPECT_EQ(std::count(profile.begin(), profile.end(), '\n'), 1 + 4 * 3);
  expect_contains(read("files/result.json"), {"\"average\"", "\"along\""});

  const auto refusal = [&](const std::string& settings) {
    EXPECT_EQ(run("check channel.toml " + settings), 2) << settings;
    return errors();
  };
  expect_contains(refusal("--set 'average.along=[\"y\"]'"), {"[average] along", "periodic", "y is none"});
  expect_contains(refusal("--set 'average.along=[\"z\"]'"), {"average.along", "2 dimensions"});
  expect_contains(refusal("--set average.start=0.5"), {"[average] start", "the flow ends at 0.5"});
  expect_contains(refusal("--set average.start=-1"), {"average.start", ">= 0"});
  write("steady.toml", "[mesh]\ncells = [1, 1]\n[average]\nstart = 0.0\n");
  EXPECT_EQ(run("check steady.toml"), 2);
  expect_contains(errors(), {"[average]", "[time]"});
}

/// A line for each step, with a number for each name. Between periodic sides curl u and grad u have one norm.
TEST_F(AveragingProgram, HasAHistoryOfAllThatIsMeasured) {
  if (!has_order(2, 2) || !has_order(3, 2)) GTEST_SKIP() << "order 2 is not in this build";
  write("box.toml", R"toml([mesh]
cells = [1, 1, 1]
upper = [6.283185307179586, 6.283185307179586, 6.283185307179586]
refine = 3
[time]
end = 0.1
step = 0.05
initial = ["sin(x)*cos(y)*cos(z)", "-cos(x)*sin(y)*cos(z)", 0]
[physics]
viscosity = 0.01
convection = true
[boundary]
xmin = {periodic = true}
ymin = {periodic = true}
[[probe]]
point = [1, 1, 1]
[output]
history = "history.csv"
forces = true
[[output.flux]]
axis = "x"
position = 1
)toml");
  for (const bool open : {false, true}) {  // periodic in z, or walls
    ASSERT_EQ(
        run("solve box.toml -o files --threads 1" + std::string(open ? "" : " --set boundary.zmin.periodic=true")), 0)
        << errors();
    std::istringstream lines(read("files/history.csv"));
    std::string names;
    std::getline(lines, names);
    EXPECT_EQ(names,
              std::string("step,time,length,cfl,cycles,kinetic_energy,dissipation,enstrophy,divergence_max,probe0_u_x,"
                          "probe0_u_y,probe0_u_z,probe0_p") +
                  (open ? ",zmin_force_x,zmin_force_y,zmin_force_z,zmin_torque_x,zmin_torque_y,zmin_torque_z,"
                          "zmax_force_x,zmax_force_y,zmax_force_z,zmax_torque_x,zmax_torque_y,zmax_torque_z"
                        : "") +
                  ",flux0");
    int count = 0;
    for (std::string line; std::getline(lines, line); ++count) {
      EXPECT_EQ(std::count(line.begin(), line.end(), ','), std::count(names.begin(), names.end(), ','));
      std::vector<double> values;
      std::istringstream numbers(line);
      for (std::string number; std::getline(numbers, number, ',');) values.push_back(std::stod(number));
      EXPECT_EQ(values[0], count);
      if (!open) {
        EXPECT_NEAR(values[7], values[6] / 0.02, 0.05 * values[7]);
      }
    }
    EXPECT_GT(count, 5);
  }
}

TEST(Averages, TakeMemoryThatIsPredicted) {
  if (!has_order(3, 2)) GTEST_SKIP() << "order 2 is not in this build";
  Problem problem;
  problem.mesh = Mesh::unit(3, 3);
  problem.order = 2;
  problem.boundary.sides[3].data[0] = 1.0;
  TimeOptions options{.step = 0.1};
  const auto without = estimate(problem, options, on_cpu()).bytes_needed;
  options.average_start = 0.0;
  const auto with = estimate(problem, options, on_cpu()).bytes_needed;
  TimeStepper flow(problem, options, on_cpu());
  flow.step();
  const Averages averages = *flow.averages();
  std::size_t bytes = averages.flow.coefficients().size_bytes() + averages.dissipation.coefficients().size_bytes();
  for (const Solution& stress : averages.stresses) bytes += stress.coefficients().size_bytes();
  EXPECT_NEAR(static_cast<double>(with - without) / static_cast<double>(bytes), 1.0, 0.15);
}

}  // namespace
}  // namespace solenoid
