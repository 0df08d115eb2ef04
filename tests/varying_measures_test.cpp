/// \file
/// What is measured of flows whose coefficients vary by cell, in both forms: forces, dissipation, fields and arrays,
/// against balances, flows that are known and plain arithmetic.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "element/basis.hpp"
#include "flows.hpp"
#include "levels.hpp"
#include "mesh/grid.hpp"
#include "solenoid/arrays.hpp"
#include "solenoid/case.hpp"
#include "solenoid/cellwise.hpp"
#include "solenoid/error.hpp"
#include "solenoid/output.hpp"
#include "solenoid/solver.hpp"

namespace solenoid {
namespace {

using test::Polynomial;

Solution solved(const Problem& problem, double rtol = 1e-12) {
  SolverOptions options = test::on_cpu(rtol);
  options.max_iterations = 400;
  auto [solution, report] = solve(problem, options);
  EXPECT_TRUE(report.converged) << report.reason;
  return solution;
}

/// Numbers of cells between 1 and `most`, each its own.
ScalarField patchwork(const Mesh& mesh, double most, std::uint64_t seed, double least = 1.0) {
  std::mt19937_64 generator(seed);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  return test::each_cell(mesh, [&] { return least + (most - least) * uniform(generator); });
}

Point cross(const Point& a, const Point& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

/// visit(point, weight, velocity) for Gauss points of all cells.
template <class Visit>
void for_points(const Solution& solution, const Visit& visit) {
  const Grid& grid = solution.grid();
  const Quadrature rule = gauss(solution.problem().order + 2);
  const int dim = grid.dim();
  const std::vector<double> one{0.0};
  const std::array<std::vector<double>, 3> xi{rule.points, rule.points, dim == 3 ? rule.points : one};
  std::vector<double> u;
  std::vector<double> p;
  for (const Record cell : grid.layout().owned_cells()) {
    solution.evaluate_cell(cell, xi, u, p);
    std::size_t number = 0;
    for (std::size_t k = 0; k < xi[2].size(); ++k) {
      for (std::size_t j = 0; j < rule.points.size(); ++j) {
        for (std::size_t i = 0; i < rule.points.size(); ++i, ++number) {
          const std::array<std::size_t, 3> q{i, j, k};
          Point x = grid.corner(cell);
          Point v{};
          double weight = 1.0;
          for (int a = 0; a < dim; ++a) {
            x[a] += grid.widths(cell)[a] * rule.points[q[a]];
            weight *= grid.widths(cell)[a] * rule.weights[q[a]];
            v[a] = u[number * dim + a];
          }
          visit(x, weight, v);
        }
      }
    }
  }
}

// Forces -------------------------------------------------------------------------------------------------------------

struct BalanceCase {
  int dim;
  int order;
  ViscousForm form;
};
std::string to_string(const BalanceCase& what) {
  return fmt::format("{}D_k{}_{}", what.dim, what.order, what.form == ViscousForm::stress ? "stress" : "gradient");
}
void PrintTo(const BalanceCase& what, std::ostream* stream) { *stream << to_string(what); }
class VaryingForces : public testing::TestWithParam<BalanceCase> {};

std::vector<BalanceCase> balance_cases() {
  std::vector<BalanceCase> cases;
  for (const int dim : {2, 3}) {
    for (int order = 0; order <= (dim == 2 ? 3 : 2); ++order) {
      if (!test::has_order(dim, order)) continue;
      if (dim == 2 || order < 2) cases.push_back({dim, order, ViscousForm::gradient});
      if (order > 0) cases.push_back({dim, order, ViscousForm::stress});
    }
  }
  return cases;
}

/// Walls, holes, open and slip sides, several conditions on a side, a periodic direction; solved directly.
bool is_small(const test::MeshCase& mesh) {
  constexpr std::array<std::string_view, 11> names{"odd_box", "l_shape",    "hole",           "slip_hole",
                                                   "slip",    "window",     "outflow_corner", "outflow_hole",
                                                   "channel", "periodic_x", "different_holes"};
  return std::find(names.begin(), names.end(), mesh.name) != names.end() &&
         mesh.mesh.cells[0] * mesh.mesh.cells[1] * mesh.mesh.cells[2] <= (mesh.mesh.dim == 2 ? 60 : 48);
}

/// All forces together are the integral of f - alpha u, on any mesh, with walls that move; in the stress form, which
/// knows no difference between flows that turn as a whole, torques too.
TEST_P(VaryingForces, BalanceWhatDrivesTheFlow) {
  const auto [dim, order, form] = GetParam();
  int cases = 0;
  int torques = 0;
  for (const auto& mesh : test::mesh_cases(dim)) {
    if (!is_small(mesh)) continue;
    SCOPED_TRACE(mesh.name);
    Problem problem{.mesh = mesh.mesh, .order = order, .boundary = mesh.boundary};
    problem.form = form;
    problem.varying_viscosity = patchwork(problem.mesh, 30.0, 5);
    problem.varying_mass = patchwork(problem.mesh, 20.0, 6, 0.1);
    const Polynomial x{{3.0, {0, 1, 0}}, {1.0, {1, 0, 0}}, {0.7, {0, 0, 0}}, {-2.0, {0, 0, 1}}};
    const Polynomial y{{-2.0, {1, 0, 0}}, {1.5, {0, 0, 0}}, {1.0, {1, 0, 1}}};
    problem.force = {x.field(), y.field()};
    if (dim == 3) problem.force[2] = Polynomial{{1.0, {1, 0, 0}}, {-1.0, {0, 1, 1}}}.field();
    const auto wave = [](const Point& p) { return std::sin(5 * p[0] + 3 * p[1]); };
    bool periodic = false;
    for (int side = 0; side < 2 * dim; ++side) {
      Side& s = problem.boundary.sides[side];
      periodic = periodic || s.kind == SideKind::periodic;
      if (s.kind == SideKind::velocity) s.data[side < 2 ? 1 : 0] = ScalarField(wave);
      if (s.kind == SideKind::outflow) s.data = {ScalarField(wave), 0.3};
    }
    const Solution solution = solved(problem);
    ++cases;
    const Point about{0.3, -0.2, 0.6};
    Point driving{};
    Point turning{};
    for_points(solution, [&](const Point& p, double weight, const Point& u) {
      Point f{};
      Point arm{};
      for (int c = 0; c < dim; ++c) {
        f[c] = problem.force[c](p) - (*problem.varying_mass)(p)*u[c];
        arm[c] = p[c] - about[c];
        driving[c] += weight * f[c];
      }
      const Point torque = cross(arm, f);
      for (int c = 0; c < 3; ++c) turning[c] += weight * torque[c];
    });
    Point sum{};
    Point torque{};
    double largest = 0.0;
    for (const BoundaryForce& force : solution.forces(about)) {
      for (int c = 0; c < 3; ++c) {
        sum[c] += force.force[c];
        torque[c] += force.torque[c];
        largest = std::max(largest, std::abs(force.force[c]));
      }
    }
    EXPECT_GT(largest, 0.1);
    for (int c = 0; c < dim; ++c) EXPECT_NEAR(sum[c], driving[c], 2e-9 * (1 + largest)) << "xyz"[c];
    if (form == ViscousForm::gradient || periodic) continue;
    ++torques;
    for (int c = dim == 2 ? 2 : 0; c < 3; ++c) EXPECT_NEAR(torque[c], turning[c], 2e-9 * (1 + largest)) << "xyz"[c];
  }
  EXPECT_GE(cases, 6);
  EXPECT_GE(torques, form == ViscousForm::stress ? 5 : 0);
}

std::map<std::string, BoundaryForce> by_name(const Solution& solution, const Point& about = {}) {
  std::map<std::string, BoundaryForce> result;
  for (const BoundaryForce& force : solution.forces(about)) result.emplace(force.name, force);
  return result;
}

/// u = G x with a trace of zero: a stress that is the same everywhere, by hand on each side.
TEST_P(VaryingForces, AreThoseOfALinearFlow) {
  const auto [dim, order, form] = GetParam();
  if (order == 0) GTEST_SKIP() << "u is not in the space";
  constexpr double nu = 0.7;
  const Gradient g{{{1.0, 0.3, -0.4}, {-2.0, dim == 2 ? -1.0 : 0.5, 0.8}, {0.6, 1.1, -1.5}}};
  Problem problem{.mesh = Mesh::unit(dim, 1), .order = order, .viscosity = nu, .form = form};
  problem.mesh.cells = {3, 2, 1};
  problem.mesh.upper = {1.5, 1.0, 0.5};
  VectorField velocity{};
  for (int c = 0; c < dim; ++c) {
    velocity[c] = ScalarField([=](const Point& x) {
      double value = 0.0;
      for (int a = 0; a < dim; ++a) value += g[c][a] * x[a];
      return value;
    });
  }
  for (int side = 0; side < 2 * dim; ++side) problem.boundary.sides[side].data = velocity;
  const Solution solution = solved(problem);
  const Point about{0.3, -0.2, 0.6};
  const auto forces = by_name(solution, about);
  double square = 0.0;
  for (int c = 0; c < dim; ++c) {
    for (int a = 0; a < dim; ++a) {
      square += form == ViscousForm::stress ? 0.5 * std::pow(g[c][a] + g[a][c], 2) : g[c][a] * g[c][a];
    }
  }
  double volume = 1.0;
  for (int a = 0; a < dim; ++a) volume *= problem.mesh.upper[a];
  EXPECT_NEAR(solution.dissipation(), nu * square * volume, 1e-9);
  for (int side = 0; side < 2 * dim; ++side) {
    const int a = side / 2;
    const double sign = side % 2 == 0 ? -1.0 : 1.0;
    const double area = volume / problem.mesh.upper[a];
    Point force{};
    Point arm{};
    for (int c = 0; c < dim; ++c) {
      force[c] = -sign * nu * area * (form == ViscousForm::stress ? g[c][a] + g[a][c] : g[c][a]);
      arm[c] = (c == a ? (sign > 0 ? problem.mesh.upper[a] : 0.0) : 0.5 * problem.mesh.upper[c]) - about[c];
    }
    const Point torque = cross(arm, force);
    const BoundaryForce& found =
        forces.at(std::string(std::array{"xmin", "xmax", "ymin", "ymax", "zmin", "zmax"}[side]));
    for (int c = 0; c < 3; ++c) {
      EXPECT_NEAR(found.force[c], force[c], 1e-9) << side;
      EXPECT_NEAR(found.sampled_viscous[c], force[c], 1e-9) << side;
      EXPECT_NEAR(found.sampled_pressure[c], 0.0, 1e-9) << side;
    }
    for (int c = dim == 3 ? 0 : 2; c < 3; ++c) EXPECT_NEAR(found.torque[c], torque[c], 1e-9) << side;
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, VaryingForces, testing::ValuesIn(balance_cases()),
                         [](const auto& info) { return to_string(info.param); });

/// Layers between walls, of which one moves: one shear stress, on walls and as the power that is put in.
TEST(VaryingMeasures, OfLayeredCouetteFlow) {
  constexpr std::array nu{1.0, 50.0, 0.2, 8.0};
  double compliance = 0.0;
  for (const double value : nu) compliance += 0.25 / value;
  for (const int dim : {2, 3}) {
    if (!test::has_order(dim, 1)) continue;
    for (const ViscousForm form : {ViscousForm::gradient, ViscousForm::stress}) {
      Problem problem{.mesh = Mesh::unit(dim, 2), .order = 1, .form = form};
      problem.varying_viscosity =
          ScalarField([=](const Point& x) { return nu.at(static_cast<std::size_t>(std::min(4.0 * x[1], 3.5))); });
      problem.boundary = test::periodic(dim == 2 ? std::vector{0} : std::vector{0, 2});
      problem.boundary.sides[3].data[0] = 1.0;
      const Solution solution = solved(problem);
      EXPECT_NEAR(solution.dissipation(), 1.0 / compliance, 1e-10);
      const auto forces = by_name(solution);
      EXPECT_NEAR(forces.at("ymin").force[0], 1.0 / compliance, 1e-10);
      EXPECT_NEAR(forces.at("ymax").force[0], -1.0 / compliance, 1e-10);
      EXPECT_NEAR(forces.at("ymax").sampled_viscous[0], -1.0 / compliance, 1e-10);
      const std::vector<Point> points{{0.3, 0.1, 0.3}, {0.7, 0.35, 0.3}, {0.2, 0.6, 0.3}, {0.1, 0.9, 0.3}};
      const auto stress = solution.flow_field(FlowField::stress, points);
      const auto strain = solution.flow_field(FlowField::strain_rate_invariant, points);
      for (std::size_t i = 0; i < points.size(); ++i) {
        EXPECT_NEAR(stress[i][3], 1.0 / compliance, 1e-10);
        EXPECT_NEAR(strain[i][0], 0.5 / (compliance * nu.at(i)), 1e-9);
      }
    }
  }
}

/// Nothing is sheared, so that nothing is lost, whatever the viscosity.
TEST(VaryingMeasures, OfARigidRotation) {
  if (!test::has_order(2, 2)) GTEST_SKIP();
  Problem problem{.mesh = Mesh::unit(2, 2), .order = 2};
  problem.varying_viscosity = patchwork(problem.mesh, 1e3, 2);
  for (Side& side : problem.boundary.sides) {
    side.data = {ScalarField([](const Point& x) { return -x[1]; }), ScalarField([](const Point& x) { return x[0]; })};
  }
  const Solution solution = solved(problem);
  EXPECT_LT(solution.dissipation(), 1e-16);
  for (const double value : field_at(solution, FlowField::strain_rate, 2)) EXPECT_LT(std::abs(value), 1e-10);
}

// Fields -------------------------------------------------------------------------------------------------------------

class VaryingFields : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!test::has_order(GetParam(), 2)) GTEST_SKIP();
  }
  static Solution flow(ViscousForm form) {
    const int dim = GetParam();
    Problem problem{.mesh = Mesh::unit(dim, 1), .order = 2, .form = form};
    problem.mesh.cells = {4, 3, 2};
    problem.mesh.upper = {2.0, 1.0, 1.5};
    problem.mesh.holes = {{{1, 0, 0}, {2, 2, 1}}};
    problem.varying_viscosity = patchwork(problem.mesh, 50.0, 8);
    problem.varying_mass = patchwork(problem.mesh, 4.0, 9);
    const auto expression = [&](const std::string& text) { return ScalarField::expression(text, dim); };
    const VectorField u =
        dim == 2 ? VectorField{expression("x*y"), expression("-y*y/2 + x*x")}
                 : VectorField{expression("x*y+z*z"), expression("-y*y/2 + x*x - y*z"), expression("z*z/2 + x*y")};
    return interpolate(problem, u, expression("1 + x - 2*y"));
  }
  /// By the definition.
  static std::vector<double> expected(const Solution& s, FlowField field, const Point& x) {
    const int dim = GetParam();
    const Gradient g = s.velocity_gradient({&x, 1})[0];
    const double p = s.pressure({&x, 1})[0];
    const double nu = (*s.problem().varying_viscosity)(x);
    double sheared = 0.0;
    double full = 0.0;
    std::vector<double> tensor;
    for (int c = 0; c < dim; ++c) {
      for (int a = 0; a < dim; ++a) {
        const double strain = (g[c][a] + g[a][c]) / 2.0;
        sheared += strain * strain;
        full += g[c][a] * g[c][a];
        tensor.push_back(field == FlowField::stress ? 2.0 * nu * strain - (a == c ? p : 0.0) : strain);
      }
    }
    switch (field) {
      case FlowField::dissipation: return {form_of(s.problem()) == ViscousForm::stress ? 2 * nu * sheared : nu * full};
      case FlowField::strain_rate_invariant: return {std::sqrt(sheared / 2)};
      case FlowField::viscosity: return {nu};
      case FlowField::mass: return {(*s.problem().varying_mass)(x)};
      default: return tensor;
    }
  }
};

/// Arrays at Gauss points and values at points are what the definitions say, NaN in holes.
TEST_P(VaryingFields, AreTheirDefinitions) {
  const int dim = GetParam();
  constexpr FlowField fields[] = {FlowField::dissipation, FlowField::strain_rate, FlowField::strain_rate_invariant,
                                  FlowField::stress,      FlowField::viscosity,   FlowField::mass};
  for (const ViscousForm form : {ViscousForm::gradient, ViscousForm::stress}) {
    const Solution s = flow(form);
    for (const int m : {1, 2}) {
      const auto axes = axes_of({s.problem().mesh, m});
      const auto gradient = gradient_at(s, m);
      const auto pressure = pressure_at(s, m);
      std::map<FlowField, std::vector<double>> arrays;
      for (const FlowField field : fields) arrays[field] = field_at(s, field, m);
      std::size_t number = 0;
      int in_hole = 0;
      for (const double x : axes[0]) {
        for (const double y : axes[1]) {
          for (const double z : axes[2]) {
            const Point point{x, y, z};
            const bool hole = s.find_cell(point) < 0;
            in_hole += hole ? 1 : 0;
            const auto expect_same = [&](double found, double value) {
              if (hole) {
                EXPECT_TRUE(std::isnan(found));
              } else {
                EXPECT_NEAR(found, value, 1e-10 * (1.0 + std::abs(value)));
              }
            };
            const Gradient g = s.velocity_gradient({&point, 1})[0];
            for (int c = 0; c < dim; ++c) {
              for (int a = 0; a < dim; ++a) expect_same(gradient[(number * dim + c) * dim + a], g[c][a]);
            }
            expect_same(pressure[number], s.pressure({&point, 1})[0]);
            for (const FlowField field : fields) {
              const auto value = expected(s, field, point);
              const FieldValue at_point = s.flow_field(field, {&point, 1})[0];
              ASSERT_EQ(static_cast<int>(value.size()), field_components(field, dim));
              for (std::size_t i = 0; i < value.size(); ++i) {
                expect_same(arrays[field][number * value.size() + i], value[i]);
                constexpr std::array<std::array<int, 3>, 3> symmetric{{{0, 3, 5}, {3, 1, 4}, {5, 4, 2}}};
                const std::size_t place = value.size() == 1 ? 0 : symmetric[i / dim][i % dim];
                expect_same(at_point[place], value[i]);
              }
            }
            ++number;
          }
        }
      }
      EXPECT_GT(in_hole, 0);
    }
    double sum = 0.0;  // of values at points, with the weights of a rule that is exact
    const int m = 4;
    const auto power = field_at(s, FlowField::dissipation, m);
    const Quadrature rule = gauss(m);
    const auto axes = axes_of({s.problem().mesh, m});
    const double cell = 2.0 / 8 * 1.0 / 6 * (dim == 3 ? 1.5 / 4 : 1.0);
    for (std::size_t i = 0; i < power.size(); ++i) {
      if (std::isnan(power[i])) continue;
      const std::size_t nz = axes[2].size();
      const std::size_t ny = axes[1].size();
      sum += cell * power[i] * rule.weights[i / nz / ny % m] * rule.weights[i / nz % ny % m] *
             (dim == 3 ? rule.weights[i % nz % m] : 1.0);
    }
    EXPECT_NEAR(s.dissipation(), sum, 1e-10 * sum);
  }
}

/// On sides: the stress in the cell behind the point, across the side.
TEST_P(VaryingFields, HaveNormalStressesOnSides) {
  const int dim = GetParam();
  const Solution s = flow(ViscousForm::stress);
  for (int side = 0; side < 2 * dim; ++side) {
    for (const int m : {1, 3}) {
      const auto found = normal_stress_at(s, side, m);
      const auto axes = axes_of({s.problem().mesh, m, side});
      ASSERT_EQ(found.size(), axes[0].size() * axes[1].size() * axes[2].size());
      std::size_t number = 0;
      for (const double x : axes[0]) {
        for (const double y : axes[1]) {
          for (const double z : axes[2]) {
            Point inside{x, y, z};
            inside[side / 2] += side % 2 == 0 ? 1e-9 : -1e-9;
            const double value = found[number++];
            if (s.find_cell(inside) < 0) {
              EXPECT_TRUE(std::isnan(value));
            } else {
              EXPECT_NEAR(value, expected(s, FlowField::stress, inside)[side / 2 * (dim + 1)], 1e-6) << side;
            }
          }
        }
      }
    }
  }
  EXPECT_THROW(normal_stress_at(s, -1), InputError);
  EXPECT_THROW(normal_stress_at(s, 2 * dim), InputError);
  Problem periodic = s.problem();
  periodic.mesh.holes.clear();
  periodic.boundary = test::periodic({0});
  EXPECT_THROW(normal_stress_at(interpolate(periodic, VectorField{}), 1), InputError);
}

INSTANTIATE_TEST_SUITE_P(Dimensions, VaryingFields, testing::Values(2, 3),
                         [](const auto& info) { return fmt::format("{}D", info.param); });

/// Fluid at rest under its weight: the pressure at the bottom, with nothing to add.
TEST(NormalStress, IsWrittenAsATable) {
  if (!test::has_order(2, 1)) GTEST_SKIP();
  Problem problem{.mesh = Mesh::unit(2, 2), .order = 1, .force = {0.0, -3.0}};
  const Solution solution = solved(problem);
  const auto file = std::filesystem::path(testing::TempDir()) / "normal_stress.csv";
  write_normal_stress(solution, 2, file);
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  std::string line;
  std::getline(text, line);
  EXPECT_EQ(line, "x,y,normal_stress");
  int lines = 0;
  while (std::getline(text, line)) {
    double x = 0.0;
    double y = 1.0;
    double stress = 0.0;
    ASSERT_EQ(std::sscanf(line.c_str(), "%lf,%lf,%lf", &x, &y, &stress), 3);
    EXPECT_EQ(x, 0.125 + 0.25 * lines++);
    EXPECT_EQ(y, 0.0);
    EXPECT_NEAR(stress, -1.5, 1e-10);
  }
  EXPECT_EQ(lines, 4);
  std::filesystem::remove(file);
}

TEST(NormalStress, IsAskedForInCases) {
  const std::string text = "[mesh]\ncells = [1, 1]\n[output]\nnormal_stress = ";
  EXPECT_EQ(parse_case(text + "{ymax = \"top.csv\", xmin = \"left.csv\"}", "a.toml").output.normal_stresses,
            (std::map<int, std::string>{{0, "left.csv"}, {3, "top.csv"}}));
  EXPECT_THROW(parse_case(text + "{zmax = \"top.csv\"}", "a.toml"), InputError);
  EXPECT_THROW(parse_case(text + "{ymax = \"top.png\"}", "a.toml"), InputError);
  EXPECT_THROW(parse_case(text + "{xmax = \"top.csv\"}\n[boundary]\nxmin = {periodic = true}\n", "a.toml"), InputError);
}

// Files --------------------------------------------------------------------------------------------------------------

/// A file has the problem's coefficients: what is measured is the same, and a solve that starts from it is done.
TEST(VaryingFiles, KeepCoefficients) {
  if (!test::has_order(2, 2) || !solution_files_unavailable().empty()) GTEST_SKIP();
  const auto file = std::filesystem::path(testing::TempDir()) / "varying.h5";
  Problem plain{.mesh = Mesh::unit(2, 2), .order = 2, .viscosity = 0.3, .mass = 2.0};
  plain.mesh.cells = {3, 2, 1};
  plain.mesh.holes = {{{1, 1, 0}, {2, 2, 1}}};
  plain.boundary.sides[0].data[1] = 1.0;
  plain.boundary.sides[1].kind = SideKind::outflow;
  std::map<std::string, Problem> problems;
  problems["stress form"] = plain;
  problems["stress form"].form = ViscousForm::stress;
  problems["mass"] = plain;
  problems["mass"].varying_mass = patchwork(plain.mesh, 9.0, 3);
  problems["both"] = plain;
  problems["both"].varying_viscosity = patchwork(plain.mesh, 100.0, 4);
  problems["both"].regions.push_back({.inside = ScalarField::expression("x < 0.4", 2), .viscosity = 7.0, .mass = 1.5});
  problems["gradient"] = problems["both"];
  problems["gradient"].form = ViscousForm::gradient;
  for (const auto& [name, problem] : problems) {
    SCOPED_TRACE(name);
    const Solution saved = solved(problem, 1e-10);
    saved.save(file);
    const Solution loaded = load_solution(file);
    const Problem& found = loaded.problem();
    EXPECT_EQ(form_of(found), form_of(problem));
    EXPECT_EQ(viscosity_varies(found), viscosity_varies(problem));
    EXPECT_EQ(mass_varies(found), mass_varies(problem));
    EXPECT_EQ(found.viscosity, problem.viscosity);
    EXPECT_EQ(found.mass, problem.mass);
    for (const FlowField field : {FlowField::viscosity, FlowField::mass, FlowField::stress}) {
      const auto a = field_at(saved, field, 2);
      const auto b = field_at(loaded, field, 2);
      for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])));
    }
    EXPECT_EQ(loaded.dissipation(), saved.dissipation());
    // The fields of the problem too, not only what the solution was made with.
    const auto again = interpolate(found, saved.velocity_field());
    EXPECT_NEAR(again.dissipation(), saved.dissipation(), 1e-9 * saved.dissipation());
    SolverOptions options;
    options.device = DeviceChoice::cpu;
    options.rtol = 1e-8;
    EXPECT_EQ(solve(problem, loaded, options).report.iterations, 0);
  }
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace solenoid
