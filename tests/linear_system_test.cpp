/// \file
/// The linear system for methods of other people: what its vectors hold, and that it has the solution of solve().

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
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

    // Many boxes of a high order take long.
    const int most = dim == 3 ? std::min(orders.back(), 3) : orders.back();
    const int order = *std::find_if(orders.rbegin(), orders.rend(), [&](int one) { return one <= most; });
    Problem channel{.mesh = Mesh::unit(dim, 1), .order = order, .mass = 1.0};
    channel.mesh.cells = {4, 3, dim == 2 ? 1 : 3};
    channel.mesh.holes = {{{1, 1, 0}, {2, 2, 1}}};
    channel.force[0] = 1.0;
    channel.boundary.sides[0].data[0] = 0.3;
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

  /// What a function that calls a system leaves in a vector of NaN. On a GPU each system has its own order of things.
  template <class F>
  static std::vector<double> result(LinearSystem& of, F&& write) {
    std::vector<double> values(of.size(), std::numeric_limits<double>::quiet_NaN());
    const auto vector = of.make_vector();
    of.upload(values, vector.get());
    write(vector.get());
    of.download(vector.get(), values);
    return values;
  }
  template <class F>
  std::vector<double> result(F&& write) {
    return result(system, std::forward<F>(write));
  }
  static std::shared_ptr<double> vector_of(LinearSystem& of, const std::vector<double>& values) {
    const auto vector = of.make_vector();
    of.upload(values, vector.get());
    return vector;
  }
  std::vector<double> download(const std::shared_ptr<double>& vector) {
    std::vector<double> values(system.size());
    system.download(vector.get(), values);
    return values;
  }
  static double norm(const std::vector<double>& v) {
    return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
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

TEST_P(LinearSystemTest, KeepsReleasedVectorsForTheNextOnes) {
  auto vector = system.make_vector();
  const double* const place = vector.get();
  const std::int64_t memory = system.memory_bytes();
  system.upload(std::vector<double>(system.size(), 1.0), vector.get());
  vector.reset();
  const auto next = system.make_vector();
  EXPECT_EQ(next.get(), place);
  EXPECT_EQ(system.memory_bytes(), memory);
  std::vector<double> values(system.size(), 2.0);
  system.download(next.get(), values);
  EXPECT_EQ(std::count(values.begin(), values.end(), 0.0), std::ssize(values));
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
  for (int step = 0; step < 40; ++step) {
    const auto r = residual();
    const auto vector = system.make_vector();
    system.upload(r, vector.get());
    const auto z = result([&](double* v) { system.precondition(vector.get(), v); });
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += z[i];
  }
  EXPECT_LT(norm(residual()), 1e-9 * norm(b));

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

/// From zero, and from a guess: of the solution itself nothing is left to do. Later solves allocate nothing.
TEST_P(LinearSystemTest, Solves) {
  const auto b = system.make_vector();
  const auto x = system.make_vector();
  const auto r = system.make_vector();
  system.load(b.get());
  const LinearReport report = system.solve(b.get(), x.get(), false, 1e-11);
  EXPECT_TRUE(report.converged) << report.reason;
  EXPECT_EQ(std::ssize(report.residual_history), report.iterations + 1);
  system.apply(x.get(), r.get());
  const auto load = download(b);
  auto residual = download(r);
  std::transform(residual.begin(), residual.end(), load.begin(), residual.begin(), std::minus<>());
  EXPECT_LE(norm(residual), 1.1e-11 * norm(load));
  EXPECT_GE(norm(residual), 0.5 * report.residual_history.back() * norm(load));

  const auto solved = download(x);
  EXPECT_EQ(system.solve(b.get(), x.get(), true, 1e-9).iterations, 0);
  auto kept = download(x);
  for (std::size_t i = 0; i < kept.size(); ++i) kept[i] -= solved[i];
  EXPECT_LE(norm(kept), 1e-14 * norm(solved));  // constants are taken off once more
  const std::int64_t bytes = system.memory_bytes();
  EXPECT_EQ(system.solve(b.get(), x.get(), false, 1e-11).residual_history, report.residual_history);
  EXPECT_EQ(download(x), solved);
  EXPECT_EQ(system.memory_bytes(), bytes);
  const LinearReport to_default = system.solve(b.get(), x.get());
  EXPECT_LE(to_default.residual_history.back(), options().rtol);
  EXPECT_LE(to_default.iterations, report.iterations);
}

/// With another alpha the operator differs by the mass matrix; so do those of other viscosities not.
TEST_P(LinearSystemTest, MassMatrixIsTheDerivativeByAlpha) {
  Problem heavier = problem();
  heavier.mass += 2.0;
  LinearSystem other(heavier, options());
  std::vector<double> values(system.size(), 0.0);
  for (const auto place : system.unknowns()) values[place] = std::sin(static_cast<double>(3 * place));
  const auto x = vector_of(system, values);
  const auto x_of_other = vector_of(other, values);
  const auto mass = result([&](double* y) { system.apply_mass(x.get(), y); });
  const auto without = result([&](double* y) { system.apply(x.get(), y); });
  auto difference = result(other, [&](double* y) { other.apply(x_of_other.get(), y); });
  for (std::size_t i = 0; i < mass.size(); ++i) difference[i] -= without[i] + 2.0 * mass[i];
  EXPECT_LE(norm(difference), 1e-14 * norm(without));
  EXPECT_GT(norm(mass), 0.0);
}

TEST_P(LinearSystemTest, LoadsOtherForces) {
  Problem other = problem();
  other.force = {
      ScalarField(std::function<double(const Point&)>([](const Point& x) { return std::sin(3 * x[0]) * x[1] + x[2]; })),
      0.5, 0.0};
  LinearSystem of_other(other, options());
  const auto expected = result(of_other, [&](double* b) { of_other.load(b); });
  for (int repeat = 0; repeat < 2; ++repeat) {
    auto found = result([&](double* b) { system.load(b, other.force); });
    for (std::size_t i = 0; i < found.size(); ++i) found[i] -= expected[i];
    EXPECT_LE(norm(found), 1e-14 * norm(expected));
  }
}

/// Bit for bit that of a problem with these coefficients, there and back again; wrong ones change nothing.
TEST_P(LinearSystemTest, HasOtherCoefficients) {
  Problem changed = problem();
  changed.viscosity = 0.3;
  changed.mass = 7.0;
  LinearSystem other(changed, options());
  std::vector<double> values(system.size(), 0.0);
  for (const auto place : system.unknowns()) values[place] = std::sin(static_cast<double>(3 * place));
  const ScalarField wave(std::function<double(const Point&)>([](const Point& at) { return std::sin(3 * at[0]); }));
  const auto all_of = [&](LinearSystem& of) {
    const auto x = vector_of(of, values);
    std::vector<std::vector<double>> all;
    all.push_back(result(of, [&](double* b) { of.load(b); }));
    all.push_back(result(of, [&](double* b) { of.load(b, {wave, 0.5, 0.0}); }));
    all.push_back(result(of, [&](double* y) { of.apply(x.get(), y); }));
    all.push_back(result(of, [&](double* z) { of.precondition(x.get(), z); }));
    all.push_back(result(of, [&](double* y) { of.apply_mass(x.get(), y); }));
    all.push_back(result(of, [&](double* z) { of.solve(x.get(), z, false, 1e-8); }));
    const Solution solution = of.solution(x.get());
    all.emplace_back(solution.coefficients().begin(), solution.coefficients().end());
    return all;
  };
  const auto before = all_of(system);
  system.set_coefficients(0.3, 7.0);
  EXPECT_EQ(system.problem().viscosity, 0.3);
  EXPECT_EQ(system.problem().mass, 7.0);
  EXPECT_EQ(system.solution(vector_of(system, values).get()).problem().mass, 7.0);
  EXPECT_TRUE(all_of(system) == all_of(other));
  EXPECT_THROW(system.set_reaction(-1.0), InputError);
  EXPECT_THROW(system.set_reaction(std::numeric_limits<double>::quiet_NaN()), InputError);
  EXPECT_THROW(system.set_viscosity(0.0), InputError);
  EXPECT_TRUE(all_of(system) == all_of(other));
  system.set_reaction(problem().mass);
  system.set_viscosity(problem().viscosity);
  EXPECT_TRUE(all_of(system) == before);
}

/// As of a problem whose expressions have other values of their parameters from the start: velocities that flow in are
/// not there at all at one of them.
TEST_P(LinearSystemTest, HasOtherParameters) {
  const auto at_time = [](double t) {
    Problem changed = problem();
    const Parameters time{{"t", t}};
    const auto field = [&](const char* text) { return ScalarField::expression(text, 2, "", time); };
    changed.force[0] = field("y*cos(t) + t");
    changed.boundary.sides[0].data[0] = field("t*(1 + y)");
    if (changed.equation == EquationKind::stokes && changed.boundary.sides[1].kind == SideKind::velocity) {
      changed.boundary.sides[1].data[0] = field("t*(1 + y)");
    }
    return changed;
  };
  LinearSystem changing(at_time(0.0), options());
  EXPECT_EQ(parameters_of(changing.problem()), (Parameters{{"t", 0.0}}));
  for (const double t : {0.7, 0.0, -0.2}) {
    LinearSystem fresh(at_time(t), options());
    changing.set_parameters({{"t", t}});
    EXPECT_EQ(parameters_of(changing.problem()).at("t"), t);
    const auto results = [&](LinearSystem& of) {
      const auto x = vector_of(of, std::vector<double>(of.size(), 0.0));
      const Solution solution = of.solution(x.get());
      std::vector all{result(of, [&](double* b) { of.load(b); }),
                      result(of, [&](double* b) { of.load(b, of.problem().force); })};
      all.emplace_back(solution.coefficients().begin(), solution.coefficients().end());
      return all;
    };
    EXPECT_TRUE(results(changing) == results(fresh)) << t;
  }
  EXPECT_THROW(changing.set_parameters({{"T", 1.0}}), InputError);
  EXPECT_EQ(parameters_of(changing.problem()).at("t"), -0.2);
  EXPECT_THROW(system.set_parameters({{"t", 1.0}}), InputError);
}

TEST(LinearSystem, KeepsWhereConditionsHold) {
  const auto orders = available_orders(2);
  if (orders.empty()) GTEST_SKIP() << "no orders in 2D";
  Problem problem{.mesh = Mesh::unit(2, 2), .order = orders.back()};
  const Parameters values{{"level", 0.5}, {"speed", 1.0}};
  problem.boundary.regions.push_back({3,
                                      ScalarField::expression("x < level", 2, "", values),
                                      {.data = {ScalarField::expression("speed", 2, "", values)}}});
  SolverOptions options;
  options.device = DeviceChoice::cpu;
  LinearSystem system(problem, options);
  system.set_parameters({{"level", 0.5}, {"speed", 2.0}});
  EXPECT_EQ(system.problem().boundary.regions[0].condition.data[0].constant(), 2.0);
  EXPECT_THROW(system.set_parameters({{"level", 0.25}, {"speed", 3.0}}), InputError);
  EXPECT_EQ(system.problem().boundary.regions[0].condition.data[0].constant(), 2.0);
}

/// Values that were there before are kept, but not without end.
TEST_P(LinearSystemTest, KeepsWhatRecentCoefficientsNeed) {
  constexpr int kept = 8;
  for (int i = 0; i <= kept; ++i) system.set_reaction(1.5 + i);
  const std::int64_t bytes = system.memory_bytes();
  for (int i = 0; i <= kept; ++i) {
    system.set_reaction(1.5 + i);
    EXPECT_EQ(system.memory_bytes(), bytes) << "a value that was there before";
  }
  for (int i = 0; i <= 2 * kept; ++i) {
    system.set_reaction(40.0 + i);
    EXPECT_EQ(system.memory_bytes(), bytes) << "a new value";
  }
}

TEST_P(LinearSystemTest, RefusesToWorkInPlace) {
  const auto x = system.make_vector();
  EXPECT_THROW(system.apply(x.get(), x.get()), InputError);
  EXPECT_THROW(system.apply_mass(x.get(), x.get()), InputError);
  EXPECT_THROW(system.solve(x.get(), x.get()), InputError);
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
  const auto orders = available_orders(2);
  if (orders.empty()) GTEST_SKIP() << "no orders in 2D";
  const Problem problem{.mesh = Mesh::unit(2, 3), .order = orders.back()};
  EXPECT_THROW(LinearSystem(problem, {.method = Method::fmg, .device = DeviceChoice::cpu}), InputError);
  LinearSystem system(problem, {.device = DeviceChoice::cpu});
  const auto b = system.make_vector();
  const auto x = system.make_vector();
  EXPECT_THROW(system.solve(b.get(), x.get(), false, -1.0), InputError);
}

/// Without a reaction constants are left out where no side holds them: the spaces are others.
TEST(LinearSystem, RefusesAReactionThatComesWhereNoSideHoldsConstants) {
  const auto orders = available_orders(2);
  if (orders.empty()) GTEST_SKIP() << "no orders in 2D";
  Problem problem{.mesh = Mesh::unit(2, 3), .order = orders.back()};
  for (auto& side : problem.boundary.sides) side.kind = SideKind::periodic;
  LinearSystem system(problem, {.device = DeviceChoice::cpu});
  EXPECT_THROW(system.set_reaction(1.0), InputError);
  EXPECT_EQ(system.problem().mass, 0.0);
  EXPECT_NO_THROW(system.set_viscosity(2.0));
}

/// What A maps to zero is no part of the right-hand side.
TEST(LinearSystem, SolvesWithoutConstants) {
  const auto orders = available_orders(2);
  if (orders.empty()) GTEST_SKIP() << "no orders in 2D";
  LinearSystem system({.mesh = Mesh::unit(2, 3), .order = orders.back()}, {.device = DeviceChoice::cpu});
  const auto b = system.make_vector();
  const auto x = system.make_vector();
  for (const auto place : system.unknowns()) b.get()[place] = 1.0 + std::cos(static_cast<double>(place));
  EXPECT_TRUE(system.solve(b.get(), x.get(), false, 1e-10).converged);
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
