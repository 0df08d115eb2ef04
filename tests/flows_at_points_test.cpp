/// \file
/// Sums over flows at Gauss points of boxes and sheared cells, with viscosities of all kinds: moments against what
/// solutions say at points, integrals of engines, and arrays of a device, against those of the host.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/host_vector.hpp"
#include "element/basis.hpp"
#include "engine/flow_moments.hpp"
#include "engines.hpp"
#include "levels.hpp"
#include "problem/orders.hpp"
#include "sheared_flows.hpp"
#include "solenoid/arrays.hpp"
#include "solenoid/solution.hpp"
#include "time/host_moments.hpp"

namespace solenoid {
namespace {

using Values = std::vector<double>;

enum class Viscosity { constant, by_cell, at_points };

struct What {
  Viscosity viscosity = Viscosity::constant;
  ViscousForm form = ViscousForm::gradient;
  bool sheared = false;
};
std::string to_string(const What& what) {
  constexpr std::array names{"constant", "by_cell", "at_points"};
  return fmt::format("{}_{}{}", names[static_cast<int>(what.viscosity)],
                     what.form == ViscousForm::stress ? "stress" : "gradient", what.sheared ? "_sheared" : "");
}

Coefficients coefficients(const Grid& grid, int order, Viscosity viscosity) {
  if (viscosity == Viscosity::constant) return {.viscosity = 0.7};
  std::mt19937_64 generator(3);
  std::uniform_real_distribution<double> decades(-1.5, 1.5);
  CellCoefficients by_cell;
  Unset<double> at_points;
  for (Record cell = 0; cell < grid.layout().cells().last(); ++cell) {
    by_cell.viscosity.push_back(std::pow(10.0, decades(generator)));
    by_cell.reaction.push_back(0.0);
    for (int q = 0; q < ViscosityPoints::in_cell(grid.dim(), order); ++q) {
      at_points.push_back(std::pow(10.0, decades(generator)));
    }
  }
  if (viscosity == Viscosity::at_points) {
    by_cell.points = std::make_shared<const ViscosityPoints>(grid.dim(), order, std::move(at_points));
  }
  return {.by_cell = std::make_shared<const CellCoefficients>(std::move(by_cell))};
}

class FlowsOfOrder : public testing::TestWithParam<std::tuple<int, int>> {
 protected:
  [[nodiscard]] static int dim() { return std::get<0>(GetParam()); }
  [[nodiscard]] static int order() { return std::get<1>(GetParam()); }
  void SetUp() override {
    const auto orders = available_orders(dim());
    if (std::find(orders.begin(), orders.end(), order()) == orders.end()) GTEST_SKIP() << "not in this build";
  }

  /// Calls visit(level, problem) for meshes and viscosities.
  template <class Visit>
  static void for_levels(const Visit& visit) {
    const std::vector<What> whats{{},
                                  {Viscosity::by_cell},
                                  {Viscosity::by_cell, ViscousForm::stress},
                                  {Viscosity::at_points, ViscousForm::stress},
                                  {Viscosity::constant, ViscousForm::gradient, true},
                                  {Viscosity::by_cell, ViscousForm::stress, true},
                                  {Viscosity::at_points, ViscousForm::gradient, true}};
    int meshes = 0;
    for (const test::MeshCase& mesh_case : test::mesh_cases(dim())) {
      if (++meshes > 1 && meshes * power(order() + 1, dim()) > 200) break;  // they take their time
      for (const What& what : whats) {
        if (order() == 0 && (what.sheared || what.form == ViscousForm::stress)) continue;
        if (what.sheared && !mesh_case.boundary.regions.empty()) continue;  // which say where in boxes
        SCOPED_TRACE(mesh_case.name + " " + to_string(what));
        Problem problem{.mesh = mesh_case.mesh, .order = order(), .boundary = mesh_case.boundary};
        problem.viscosity = 0.7;
        problem.form = what.form;
        if (what.viscosity != Viscosity::constant) problem.varying_viscosity = ScalarField(1.0);
        if (what.viscosity == Viscosity::at_points) problem.viscosity_points = ViscosityPlaces::gauss;
        if (what.sheared) {
          problem.mesh.edges = test::some_edges(dim());
          for (int a = 0; a < dim(); ++a) {
            for (double& x : (*problem.mesh.edges)[a]) x *= problem.mesh.upper[a] - problem.mesh.lower[a];
          }
        }
        Grid grid(problem.mesh, problem.boundary, true);
        const Coefficients values = coefficients(grid, order(), what.viscosity);
        visit(Level({.dim = dim(), .order = order(), .form = what.form}, values, std::move(grid)), problem);
      }
    }
  }
  static Solution solution(const Level& level, const Problem& problem, const Values& x) {
    HostVector unknowns = zeros(level.size());
    std::copy(x.begin(), x.end(), unknowns.begin());
    return {problem,
            std::shared_ptr<const Grid>(std::shared_ptr<void>(), &level.grid),
            std::move(unknowns),
            {},
            level.coefficients.by_cell};
  }
};

/// What add() says, by sums over points and functions.
Values expected_moments(const Level& level, const Solution& flow, const Solution& mean, double r, std::int64_t size,
                        Values moments) {
  const Grid& grid = level.grid;
  const int dim = grid.dim();
  const int order = level.equation.order;
  const Quadrature rule = gauss(moment_points(order));
  const auto per_direction = static_cast<int>(rule.points.size());
  const int n = order + 1;
  const AffineMap* const map = grid.metric().map();
  for (const Record cell : grid.layout().owned_cells()) {
    const Point corner = grid.corner(cell);
    const Point widths = grid.widths(cell);
    const int count = power(per_direction, dim);
    std::vector<Point> points(count);
    Values weights(count, 1.0);
    std::vector<Values> modes(count, Values(power(n, dim), 1.0));
    for (int q = 0; q < count; ++q) {
      Point xi = corner;
      int rest = q;
      int inner = 1;
      for (int a = 0; a < dim; ++a) {
        const int i = rest % per_direction;
        rest /= per_direction;
        xi[a] += widths[a] * rule.points[i];
        weights[q] *= rule.weights[i] * std::sqrt(widths[a]);
        const auto psi = legendre(order, rule.points[i]);
        for (int m = 0; m < power(n, dim); ++m) modes[q][m] *= psi[m / inner % n];
        inner *= n;
      }
      points[q] = map != nullptr ? map->at(xi) : xi;
    }
    const auto u = flow.velocity(points);
    const auto before = mean.velocity(points);
    const auto g = flow.velocity_gradient(points);
    const auto& by_cell = level.coefficients.by_cell;
    std::vector<Values> found(flow_moments(dim), Values(power(n, dim), 0.0));
    for (int q = 0; q < count; ++q) {
      const double nu = by_cell == nullptr           ? level.coefficients.viscosity
                        : by_cell->points != nullptr ? by_cell->points->of_cell(cell)[q]
                                                     : by_cell->viscosity[cell];
      double square = 0.0;
      Values squares;
      for (int c = 0; c < dim; ++c) {
        for (int d = c; d < dim; ++d) squares.push_back((u[q][c] - before[q][c]) * (u[q][d] - before[q][d]));
        for (int a = 0; a < dim; ++a) {
          const double rate = 0.5 * (g[q][c][a] + g[q][a][c]);
          square += level.equation.form == ViscousForm::stress ? 2.0 * rate * rate : g[q][c][a] * g[q][c][a];
        }
      }
      squares.push_back(nu * square);
      for (std::size_t m = 0; m < squares.size(); ++m) {
        for (std::size_t i = 0; i < modes[q].size(); ++i) found[m][i] += weights[q] * modes[q][i] * squares[m];
      }
    }
    for (std::size_t m = 0; m < found.size(); ++m) {
      for (std::size_t i = 0; i < found[m].size(); ++i) {
        double& value = moments[m * size + record_offset(cell, power(n, dim)) + i * interleave];
        value = m + 1 == found.size() ? (1.0 - r) * value + r * found[m][i]
                                      : (1.0 - r) * value + (1.0 - r) * r * found[m][i];
      }
    }
  }
  return moments;
}

Values added(Engine& engine, FlowMoments& sums, const Level& level, const Values& u, const Values& mean, double r,
             std::int64_t size, const Values& before) {
  Vector<double> moments = on_device(engine, before);
  sums.add(on_device(engine, u).data(), on_device(engine, mean).data(), r, level.coefficients, size, moments.data());
  Values result(before.size());
  moments.download(result.data());
  return result;
}

TEST_P(FlowsOfOrder, HaveTheMomentsOfPoints) {
  for_levels([](const Level& level, const Problem& problem) {
    const Values u = test::random_vector(level, 5, true);
    const Values mean = test::random_vector(level, 6, true);
    const int moments = flow_moments(dim());
    const std::int64_t size = std::int64_t{level.grid.layout().storage()} * power(order() + 1, dim());
    Values before(size * moments, 0.0);
    std::mt19937_64 generator(9);
    std::uniform_real_distribution<double> uniform(0.0, 1.0);
    for (double& value : before) value = uniform(generator);
    constexpr double r = 0.3;
    const Values expected =
        expected_moments(level, solution(level, problem, u), solution(level, problem, mean), r, size, before);
    const auto expect_moments = [&](Engine& engine, FlowMoments& sums) {
      const Values found = added(engine, sums, level, u, mean, r, size, before);
      for (int m = 0; m < moments; ++m) {
        double largest = 0.0;
        double difference = 0.0;
        for (std::int64_t i = m * size; i < (m + 1) * size; ++i) {
          largest = std::max(largest, std::abs(expected[i]));
          const double here = std::abs(found[i] - expected[i]);
          if (!(here <= difference)) difference = here;  // NaN too
        }
        EXPECT_LE(difference, 1e-12 * largest) << "moment " << m;
      }
      // A flow that is its own mean has no stress at all.
      const Values steady = added(engine, sums, level, u, u, 0.5, size, Values(before.size(), 0.0));
      EXPECT_TRUE(std::all_of(steady.begin(), steady.end() - size, [](double value) { return value == 0.0; }));
    };
    for (const test::EngineChoice& choice : test::engines()) {
      if (!test::has_order_of(choice.get(), level)) continue;
      SCOPED_TRACE(choice.name);
      const auto sums = choice.get().make_flow_moments(level);
      ASSERT_NE(sums, nullptr);
      expect_moments(choice.get(), *sums);
    }
    SCOPED_TRACE("host");
    HostMoments of_host(level);
    expect_moments(test::EngineChoice{"cpu", DeviceChoice::cpu}.get(), of_host);
  });
}

void expect_arrays_of(const Solution& host, Integrator& device, Engine& engine, const double* x) {
  const int points = 2;
  const auto velocity = velocity_at(host, points);
  Vector<double> velocities(engine, std::ssize(velocity));
  device.velocity_at(points, x, velocities.data());
  Values values(velocity.size());
  velocities.download(values.data());
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(std::isnan(values[i]), std::isnan(velocity[i]));
    if (std::isnan(values[i])) continue;
    EXPECT_NEAR(values[i], velocity[i], 1e-12 * host.max_speed());
  }
  const int dim = host.grid().dim();
  const auto fluxes = face_fluxes(host);
  std::array<Vector<double>, 3> on_faces;
  std::array<double*, 3> pointers{};
  for (int a = 0; a < dim; ++a) {
    on_faces[a] = {engine, std::ssize(fluxes[a])};
    pointers[a] = on_faces[a].data();
  }
  device.face_fluxes(x, pointers);
  for (int a = 0; a < dim; ++a) {
    values.resize(fluxes[a].size());
    on_faces[a].download(values.data());
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], fluxes[a][i], 1e-12);
  }
}

TEST_P(FlowsOfOrder, HaveTheIntegralsOfTheHost) {
  for_levels([](const Level& level, const Problem& problem) {
    const Values u = test::random_vector(level, 5, true);
    const Solution host = solution(level, problem, u);
    const FlowIntegrals expected = host.integrals();
    for (const test::EngineChoice& choice : test::engines()) {
      Engine& engine = choice.get();
      if (!test::has_order_of(engine, level)) continue;
      SCOPED_TRACE(choice.name);
      const Vector<double> x = on_device(engine, u);
      const auto integrator = engine.make_integrator(level);
      ASSERT_NE(integrator, nullptr);
      const FlowIntegrals found = integrator->flow(x.data());
      const double of_velocity = std::sqrt(expected.velocity_square);
      for (int c = 0; c < 3; ++c) EXPECT_NEAR(found.velocity[c], expected.velocity[c], 1e-12 * (1.0 + of_velocity));
      EXPECT_NEAR(found.velocity_square / expected.velocity_square, 1.0, 1e-12);
      EXPECT_NEAR(found.gradient_square / expected.gradient_square, 1.0, 1e-12);
      EXPECT_NEAR(found.vorticity_square, expected.vorticity_square, 1e-12 * expected.gradient_square);
      EXPECT_NEAR(found.max_speed / expected.max_speed, 1.0, 1e-12);
      EXPECT_NEAR(found.max_divergence / expected.max_divergence, 1.0, 1e-11);
      EXPECT_NEAR(integrator->dissipation(x.data(), level.coefficients) / host.dissipation(), 1.0, 1e-12);
      if (engine.stream() != nullptr) expect_arrays_of(host, *integrator, engine, x.data());
    }
  });
}

TEST(FlowsOnThreads, HaveTheSameBits) {
  for (const int dim : {2, 3}) {
    const auto orders = available_orders(dim);
    if (orders.empty()) continue;
    const int order = orders.front();
    const Mesh mesh = Mesh::unit(dim, dim == 2 ? 6 : 4);  // several pieces of work for each
    const Level level({.dim = dim, .order = order}, {.viscosity = 0.7}, Grid(mesh, {}, true));
    const Values u = test::random_vector(level, 5, true);
    const std::int64_t size = std::int64_t{level.grid.layout().storage()} * power(order + 1, dim);
    std::vector<FlowIntegrals> integrals;
    std::vector<double> dissipation;
    std::vector<Values> moments;
    for (const int threads : {1, 3}) {
      const auto engine = make_cpu_engine(threads);
      const Vector<double> x = on_device(*engine, u);
      const auto integrator = engine->make_integrator(level);
      integrals.push_back(integrator->flow(x.data()));
      dissipation.push_back(integrator->dissipation(x.data(), level.coefficients));
      const Values nothing(u.size(), 0.0);
      moments.push_back(added(*engine, *engine->make_flow_moments(level), level, u, nothing, 0.5, size,
                              Values(size * flow_moments(dim), 0.0)));
    }
    EXPECT_EQ(integrals[0].velocity, integrals[1].velocity);
    EXPECT_EQ(integrals[0].velocity_square, integrals[1].velocity_square);
    EXPECT_EQ(integrals[0].gradient_square, integrals[1].gradient_square);
    EXPECT_EQ(integrals[0].vorticity_square, integrals[1].vorticity_square);
    EXPECT_EQ(dissipation[0], dissipation[1]);
    EXPECT_EQ(moments[0], moments[1]);
  }
}

std::string name_of(const testing::TestParamInfo<std::tuple<int, int>>& info) {
  return fmt::format("{}D_k{}", std::get<0>(info.param), std::get<1>(info.param));
}
INSTANTIATE_TEST_SUITE_P(Plane, FlowsOfOrder, testing::Combine(testing::Values(2), testing::Range(0, 9)), name_of);
INSTANTIATE_TEST_SUITE_P(Space, FlowsOfOrder, testing::Combine(testing::Values(3), testing::Range(0, 7)), name_of);

}  // namespace
}  // namespace solenoid
