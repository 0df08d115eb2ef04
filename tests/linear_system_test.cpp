/// \file
/// The linear system for methods of other people: what its vectors hold, and that it has the solution of solve().

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "engine/engine.hpp"
#include "solenoid/error.hpp"
#include "solenoid/linear_system.hpp"

namespace solenoid {
namespace {

struct SystemCase {
  std::string name;
  Problem problem;
};

std::vector<SystemCase> cases() {
  const ScalarField lid(std::function<double(const Point&)>(
      [](const Point& x) { return std::pow(x[0] * (1 - x[0]), 2) * (1 + x[2] * (1 - x[2])); }));
  std::vector<SystemCase> all;
  for (const int dim : {2, 3}) {
    const auto orders = available_orders(dim);
    if (orders.empty()) continue;
    const std::string suffix = dim == 2 ? "2D" : "3D";
    Problem cavity{.mesh = Mesh::unit(dim, dim == 2 ? 3 : 2), .order = orders.back()};
    cavity.boundary.sides[3].data[0] = lid;
    all.push_back({"cavity" + suffix, cavity});

    Problem channel{.mesh = Mesh::unit(dim, 1), .order = orders.back(), .mass = 1.0};
    channel.mesh.cells = {4, 3, dim == 2 ? 1 : 3};
    channel.mesh.holes = {{{1, 1, 0}, {2, 2, 1}}};
    channel.force[0] = 1.0;
    channel.boundary.sides[1].kind = SideKind::outflow;
    channel.boundary.sides[1].data[0] = 0.5;
    channel.boundary.sides[2].kind = SideKind::slip;
    all.push_back({"channel" + suffix, channel});

    const auto poisson_orders = available_orders(dim, EquationKind::poisson);
    if (poisson_orders.empty()) continue;
    Problem poisson{.mesh = Mesh::unit(dim, 2), .order = poisson_orders.back(), .equation = EquationKind::poisson};
    poisson.force[0] = lid;
    poisson.boundary.sides[0].data[0] = 1.0;
    all.push_back({"poisson" + suffix, poisson});
  }
  return all;
}

class LinearSystemTest : public testing::TestWithParam<std::tuple<SystemCase, DeviceChoice>> {
 protected:
  [[nodiscard]] static const Problem& problem() { return std::get<0>(GetParam()).problem; }
  [[nodiscard]] static SolverOptions options() {
    SolverOptions options;
    options.device = std::get<1>(GetParam());
    options.threads = 2;
    return options;
  }

  LinearSystem system{problem(), options()};

  /// What a function leaves in a vector of NaN.
  template <class F>
  std::vector<double> result(F&& write) {
    std::vector<double> values(system.size(), std::numeric_limits<double>::quiet_NaN());
    const auto vector = system.make_vector();
    system.upload(values, vector.get());
    write(vector.get());
    system.download(vector.get(), values);
    return values;
  }
};

TEST_P(LinearSystemTest, WritesAllUnknownsAndZeroElsewhere) {
  const auto places = system.unknowns();
  EXPECT_EQ(std::ssize(places), system.dofs());
  std::vector<bool> unknown(system.size(), false);
  for (const auto place : places) unknown[place] = true;
  const auto x = system.make_vector();
  std::vector<double> values(system.size(), 0.0);
  for (const auto place : places) values[place] = std::sin(static_cast<double>(place));
  system.upload(values, x.get());

  const auto expect_vector = [&](const char* what, const std::vector<double>& v) {
    std::int64_t wrong = 0;
    double square = 0.0;
    for (std::size_t i = 0; i < v.size(); ++i) {
      wrong += unknown[i] ? !std::isfinite(v[i]) : v[i] != 0.0;
      square += v[i] * v[i];
    }
    EXPECT_EQ(wrong, 0) << what;
    EXPECT_GT(square, 0.0) << what;
  };
  expect_vector("load", result([&](double* b) { system.load(b); }));
  expect_vector("apply", result([&](double* y) { system.apply(x.get(), y); }));
  expect_vector("precondition", result([&](double* z) { system.precondition(x.get(), z); }));
}

TEST_P(LinearSystemTest, HasTheSolutionOfSolve) {
  const auto b = result([&](double* v) { system.load(v); });
  std::vector<double> x(system.size(), 0.0);
  const auto residual = [&] {
    const auto vector = system.make_vector();
    system.upload(x, vector.get());
    auto r = result([&](double* y) { system.apply(vector.get(), y); });
    for (std::size_t i = 0; i < r.size(); ++i) r[i] = b[i] - r[i];
    return r;
  };
  const auto square = [](const std::vector<double>& v) {
    return std::inner_product(v.begin(), v.end(), v.begin(), 0.0);
  };
  for (int step = 0; step < 40; ++step) {
    const auto r = residual();
    const auto vector = system.make_vector();
    system.upload(r, vector.get());
    const auto z = result([&](double* v) { system.precondition(vector.get(), v); });
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += z[i];
  }
  EXPECT_LT(std::sqrt(square(residual())), 1e-9 * std::sqrt(square(b)));

  const auto vector = system.make_vector();
  system.upload(x, vector.get());
  const Solution ours = system.solution(vector.get());
  auto exact = options();
  exact.rtol = 1e-12;
  const Solution theirs = solve(problem(), exact).solution;
  ASSERT_EQ(ours.coefficients().size(), theirs.coefficients().size());
  double difference = 0.0;
  double largest = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    difference = std::max(difference, std::abs(ours.coefficients()[i] - theirs.coefficients()[i]));
    largest = std::max(largest, std::abs(theirs.coefficients()[i]));
  }
  EXPECT_LT(difference, 1e-7 * largest);
}

TEST_P(LinearSystemTest, RefusesToWorkInPlace) {
  const auto x = system.make_vector();
  EXPECT_THROW(system.apply(x.get(), x.get()), InputError);
}

/// Memory of others has any alignment on the CPU.
TEST(LinearSystem, UnalignedVectorsGiveTheSame) {
  const auto orders = available_orders(2);
  if (orders.empty()) GTEST_SKIP() << "no orders in 2D";
  SolverOptions options;
  options.device = DeviceChoice::cpu;
  LinearSystem system({.mesh = Mesh::unit(2, 3), .order = orders.back()}, options);
  std::vector<double> x(system.size() + 1, 0.0);
  for (const auto place : system.unknowns()) x[place] = std::cos(static_cast<double>(place));
  std::vector<double> y(system.size() + 1);
  system.apply(x.data(), y.data());
  const std::vector<double> expected(y.begin(), y.end() - 1);
  std::rotate(x.begin(), x.end() - 1, x.end());
  system.apply(x.data() + 1, y.data() + 1);
  EXPECT_EQ(std::vector<double>(y.begin() + 1, y.end()), expected);
}

TEST(LinearSystem, RefusesWrongProblems) {
  EXPECT_THROW(LinearSystem({.mesh = Mesh::unit(2, 3), .order = 99}), InputError);
}

std::vector<DeviceChoice> devices() {
  std::vector<DeviceChoice> all{DeviceChoice::cpu};
  if (cuda_unavailable().empty()) all.push_back(DeviceChoice::cuda);
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, LinearSystemTest,
                         testing::Combine(testing::ValuesIn(cases()), testing::ValuesIn(devices())),
                         [](const auto& info) {
                           const bool cpu = std::get<1>(info.param) == DeviceChoice::cpu;
                           return std::get<0>(info.param).name + (cpu ? "_cpu" : "_cuda");
                         });

}  // namespace
}  // namespace solenoid
