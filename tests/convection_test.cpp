/// \file
/// The convective term: engines against quadrature, and what it does to the energy.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "engine/engine.hpp"
#include "engine/reference/weak_form.hpp"
#include "levels.hpp"
#include "problem/orders.hpp"
#include "sheared_levels.hpp"

namespace solenoid {
namespace {

using Values = std::vector<double>;

struct Applied {
  Values y;
  double rate = 0.0;
};

Applied convect(Engine& engine, const Level& level, ConvectiveFlux flux, const Values& u) {
  const auto convection = engine.make_convection(level, flux);
  Vector<double> x(engine, level.size());
  x.upload(u.data());
  // What is not written shows.
  Vector<double> y = on_device(engine, Values(level.size(), std::numeric_limits<double>::quiet_NaN()));
  const auto cells = level.grid.layout().records().last();
  engine.zero(y.data() + level.index(whole_blocks(cells), 0), level.equation.record() * interleave * sizeof(double));
  Vector<double> work = on_device(engine, Values(level.size(), std::numeric_limits<double>::quiet_NaN()));
  Applied result{Values(level.size()), convection->apply(x.data(), y.data(), work.data())};
  y.download(result.y.data());
  // Padding of the last block of records is nobody's.
  for (std::int64_t r = cells; r < whole_blocks(cells); ++r) {
    for (int i = 0; i < level.equation.record(); ++i) result.y[level.index(r, i)] = 0.0;
  }
  return result;
}

double largest(const Values& x) {
  double most = 0.0;
  for (const double value : x) most = std::max(most, std::abs(value));
  return most;
}

void expect_equal(const Applied& got, const Applied& expected) {
  EXPECT_NEAR(got.rate, expected.rate, 1e-12 * expected.rate);
  const double size = largest(expected.y);
  ASSERT_GT(size, 0.0);
  double difference = 0.0;
  for (std::size_t i = 0; i < got.y.size(); ++i) {
    const double here = std::abs(got.y[i] - expected.y[i]);
    if (!(here <= difference)) difference = here;  // NaN too
  }
  EXPECT_LE(difference, 1e-12 * size);
}

class ConvectionOfOrder : public testing::TestWithParam<std::tuple<int, int>> {
 protected:
  [[nodiscard]] static int dim() { return std::get<0>(GetParam()); }
  [[nodiscard]] static int order() { return std::get<1>(GetParam()); }
  void SetUp() override {
    const auto orders = available_orders(dim());
    if (std::find(orders.begin(), orders.end(), order()) == orders.end()) GTEST_SKIP() << "not in this build";
  }
};

/// Meshes with all kinds of sides, of boxes and, but for order 0, of parallelepipeds.
std::vector<test::MeshCase> meshes(int dim, int order) {
  std::vector<test::MeshCase> all = test::mesh_cases(dim);
  if (order == 0) return all;
  std::uint64_t seed = 0;
  for (const test::MeshCase& what : test::mesh_cases(dim)) {
    all.push_back(test::sheared(what, ++seed));
    all.back().name += ", sheared";
  }
  return all;
}

TEST_P(ConvectionOfOrder, OfTheCpuEqualsQuadrature) {
  const auto reference = make_reference_engine();
  for (const int threads : {1, 3}) {
    const auto cpu = make_cpu_engine(threads);
    for (const test::MeshCase& what : meshes(dim(), order())) {
      SCOPED_TRACE(what.name);
      const Level level = what.level(order(), {}, true);
      const Values u = test::random_vector(level, 1, true);
      for (const auto flux : {ConvectiveFlux::upwind, ConvectiveFlux::central}) {
        expect_equal(convect(*cpu, level, flux, u), convect(*reference, level, flux, u));
      }
    }
    if (dim() == 3 && order() > 2) break;  // quadrature without tensors takes its time
  }
}

TEST_P(ConvectionOfOrder, OfTheGpuEqualsThatOfTheCpu) {
  if (!cuda_unavailable().empty()) GTEST_SKIP() << cuda_unavailable();
  const auto orders = orders_for(DeviceChoice::cuda, dim(), EquationKind::stokes);
  if (std::find(orders.begin(), orders.end(), order()) == orders.end()) GTEST_SKIP() << "not in this build";
  const auto cpu = make_cpu_engine(2);
  const auto cuda = make_engine(DeviceChoice::cuda, 0);
  for (const test::MeshCase& what : meshes(dim(), order())) {
    SCOPED_TRACE(what.name);
    const Level level = what.level(order(), {}, true);
    Values u = test::random_vector(level, 1, true);
    for (const auto flux : {ConvectiveFlux::upwind, ConvectiveFlux::central}) {
      const Applied got = convect(*cuda, level, flux, u);
      expect_equal(got, convect(*cpu, level, flux, u));
      const Applied again = convect(*cuda, level, flux, u);
      EXPECT_EQ(got.y, again.y);
      EXPECT_EQ(got.rate, again.rate);
    }
    // What is not finite is not lost.
    u[level.index(level.grid.layout().cells().last() - 1, 0)] = std::numeric_limits<double>::quiet_NaN();
    EXPECT_FALSE(std::isfinite(convect(*cuda, level, ConvectiveFlux::upwind, u).rate));
  }
}

TEST_P(ConvectionOfOrder, HasTheSameBitsForAnyNumberOfThreads) {
  const test::MeshCase what = test::mesh_cases(dim())[1];
  const Level level = what.level(order(), {}, true);
  const Values u = test::random_vector(level, 2, true);
  const Values one = convect(*make_cpu_engine(1), level, ConvectiveFlux::upwind, u).y;
  EXPECT_EQ(one, convect(*make_cpu_engine(4), level, ConvectiveFlux::upwind, u).y);
}

/// What convection takes from the energy of a divergence-free u without normal velocities on sides that are not open.
struct Taken {
  double upwind = 0.0;  ///< sum over inner faces of <|u_n| / 2 [u], [u]>
  double open =
      0.0;  ///< sum over open faces of <max(u_n, 0) - u_n / 2, |u|^2>, where the flow leaves and where it turns
};

/// By quadrature.
Taken taken_by_convection(const Level& level, const Values& u) {
  using namespace reference;
  const int dim = level.equation.dim;
  const int points = convection_points(level.equation.order);
  const Point h = level.grid.metric().uniform_width();
  const auto values = [&](int c, Record cell, int side) {
    const LocalField field(level.equation, h, c);
    const auto numbers = field.numbers(level.grid, cell);
    Eigen::VectorXd coefficients(numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) coefficients[i] = u[numbers[i]];
    return Eigen::VectorXd(field.tabulate(face_points(dim, h, gauss(points), side).position).value * coefficients);
  };
  Taken sum;
  for (const Record cell : level.grid.layout().cells()) {
    for (int side = 0; side < 2 * dim; ++side) {
      const int a = side / 2;
      const Face face = level.grid.face(cell, side);
      const bool open = face == Face::outflow;
      if (!open && (face != Face::interior || side % 2 == 0)) continue;
      const Eigen::VectorXd weight = face_points(dim, h, gauss(points), side).weight;
      const Eigen::VectorXd normal = (side % 2 == 0 ? -1.0 : 1.0) * values(a, cell, side);
      for (int c = 0; c < dim; ++c) {
        const Eigen::VectorXd mine = values(c, cell, side);
        if (open) {
          const Eigen::ArrayXd flux = normal.array().max(0.0) - 0.5 * normal.array();
          sum.open += (weight.array() * flux * mine.array().square()).sum();
        } else if (c != a) {
          const Eigen::VectorXd jump = mine - values(c, level.grid.neighbour(cell, side), 2 * a);
          sum.upwind += 0.5 * (weight.array() * normal.array().abs() * jump.array().square()).sum();
        }
      }
    }
  }
  return sum;
}

/// A divergence-free velocity: what a projection leaves of a random one.
Values divergence_free(const Level& level, std::uint64_t seed) {
  const auto engine = make_reference_engine();
  const std::vector<bool> unknown = reference::unknowns(level);
  // min |u - u_0| with div u = 0, dense: small levels only
  std::vector<std::int64_t> velocities;
  std::vector<std::int64_t> pressures;
  const int first = level.equation.dim * power(level.equation.n(), level.equation.dim);
  for (std::size_t i = 0; i < unknown.size(); ++i) {
    if (!unknown[i]) continue;
    (static_cast<int>(i / interleave) % level.equation.record() < first ? velocities : pressures)
        .push_back(static_cast<std::int64_t>(i));
  }
  const auto kernels = engine->kernels_double(level, LocalSolverKind::direct);
  Eigen::MatrixXd divergence(pressures.size(), velocities.size());
  for (std::size_t j = 0; j < velocities.size(); ++j) {
    Values x(level.size(), 0.0);
    Values y(level.size(), 0.0);
    x[velocities[j]] = 1.0;
    kernels->apply(x.data(), y.data());
    for (std::size_t i = 0; i < pressures.size(); ++i) divergence(i, j) = y[pressures[i]];
  }
  Values u = test::random_vector(level, seed);
  Eigen::VectorXd start(velocities.size());
  for (std::size_t j = 0; j < velocities.size(); ++j) start[j] = u[velocities[j]];
  const Eigen::VectorXd free =
      start - divergence.transpose() *
                  (divergence * divergence.transpose()).completeOrthogonalDecomposition().solve(divergence * start);
  std::fill(u.begin(), u.end(), 0.0);
  for (std::size_t j = 0; j < velocities.size(); ++j) u[velocities[j]] = free[j];
  return u;
}

TEST_P(ConvectionOfOrder, TakesFromTheEnergyWhatUpwindingAndOpenSidesTake) {
  if (order() > 3 || (dim() == 3 && order() > 2)) GTEST_SKIP() << "by dense matrices";
  const auto cpu = make_cpu_engine(1);
  const std::vector<int> cells = dim() == 2 ? std::vector{4, 3} : std::vector{3, 2, 2};
  constexpr auto outflow = SideKind::outflow;
  const int last = 2 * dim() - 1;
  for (const auto& [mesh, boundary] :
       {std::pair(test::box(cells), Boundary{}),
        std::pair(test::box(cells), dim() == 2 ? test::periodic({0, 1}) : test::periodic({0, 1, 2})),
        std::pair(test::box(cells), test::sides({{0, outflow}})),
        std::pair(test::box(cells), test::sides({{0, outflow}, {1, outflow}, {last, SideKind::slip}})),
        std::pair(test::box(cells), test::divided({}, last, outflow, 0, 0.5, 2.0)),
        std::pair(test::box(cells, {{{1, 0, 0}, {2, 1, 1}}}), test::sides({{1, outflow}}, outflow))}) {
    const Level level = test::MeshCase{"", mesh, boundary, 1.0}.level(order(), {}, true);
    const Values u = divergence_free(level, 3);
    const auto energy = [&](ConvectiveFlux flux) {
      const Values y = convect(*cpu, level, flux, u).y;
      return std::inner_product(u.begin(), u.end(), y.begin(), 0.0);
    };
    const auto [upwind, open] = taken_by_convection(level, u);
    EXPECT_NEAR(energy(ConvectiveFlux::upwind), upwind + open, 1e-12 * (upwind + open));
    EXPECT_NEAR(energy(ConvectiveFlux::central), open, 1e-12 * (upwind + open));
    const auto sides = conditions({.mesh = mesh, .boundary = boundary});
    const bool is_open = std::any_of(sides.begin(), sides.end(), [](const Side& s) { return s.kind == outflow; });
    EXPECT_EQ(open > 0.0, is_open) << open;
    if (order() == 0) continue;
    EXPECT_GT(upwind, 0.0);
  }
}

TEST_P(ConvectionOfOrder, KeepsTheEnergyInParallelepipeds) {
  if (order() == 0) GTEST_SKIP() << "no such cells";
  if (order() > 3 || (dim() == 3 && order() > 2)) GTEST_SKIP() << "by dense matrices";
  const auto cpu = make_cpu_engine(1);
  const std::vector<int> cells = dim() == 2 ? std::vector{4, 3} : std::vector{3, 2, 2};
  std::uint64_t seed = 10;
  for (const Boundary& boundary : {Boundary{}, dim() == 2 ? test::periodic({0, 1}) : test::periodic({0, 1, 2})}) {
    const Level level = test::sheared({"", test::box(cells), boundary, 1.0}, ++seed).level(order(), {}, true);
    const Values u = divergence_free(level, 3);
    const auto energy = [&](ConvectiveFlux flux) {
      const Values y = convect(*cpu, level, flux, u).y;
      return std::inner_product(u.begin(), u.end(), y.begin(), 0.0);
    };
    const double upwind = energy(ConvectiveFlux::upwind);
    EXPECT_GT(upwind, 0.0);
    EXPECT_NEAR(energy(ConvectiveFlux::central), 0.0, 1e-12 * upwind);
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, ConvectionOfOrder, testing::Combine(testing::Values(2, 3), testing::Range(0, 9)),
                         [](const auto& info) {
                           return fmt::format("{}d_k{}", std::get<0>(info.param), std::get<1>(info.param));
                         });

}  // namespace
}  // namespace solenoid
