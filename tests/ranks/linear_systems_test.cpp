/// \file
/// Linear systems whose vectors several ranks share, against that of one rank.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "parts_of_levels.hpp"
#include "solenoid/linear_system.hpp"

namespace solenoid {
namespace {

using namespace on_ranks;

ScalarField function(std::function<double(const Point&)> f) { return ScalarField(std::move(f)); }

/// A force that has nothing to do with the mesh.
VectorField force(const Problem& problem, double phase) {
  VectorField field;
  const int components = problem.equation == EquationKind::poisson ? 1 : problem.mesh.dim;
  for (int c = 0; c < components; ++c) {
    field[c] = function([=](const Point& x) { return std::sin(5.0 * x[c] + 3.0 * x[(c + 1) % 3] + phase + c); });
  }
  return field;
}

std::vector<std::pair<std::string, Problem>> problems() {
  std::vector<std::pair<std::string, Problem>> all;
  for (const int dim : {2, 3}) {
    const auto orders = available_orders(dim);
    if (orders.empty()) continue;
    Problem channel{.mesh = Mesh::unit(dim, dim == 2 ? 2 : 1), .order = orders.front(), .mass = 1.0};
    channel.mesh.cells = {4, 4, dim == 2 ? 1 : 4};
    channel.mesh.holes = {{{2, 2, 0}, {4, 4, dim - 1}}};  // which may be coarsened
    channel.boundary.sides[0].data[0] = 0.3;
    channel.boundary.sides[1].kind = SideKind::outflow;
    channel.boundary.sides[2].kind = SideKind::slip;
    all.emplace_back(fmt::format("channel {}D", dim), channel);

    Problem periodic{.mesh = Mesh::unit(dim, dim == 2 ? 4 : 3), .order = orders.front(), .mass = 2.0};
    periodic.boundary.sides[0].kind = periodic.boundary.sides[1].kind = SideKind::periodic;
    all.emplace_back(fmt::format("periodic {}D", dim), periodic);

    const auto poisson_orders = available_orders(dim, EquationKind::poisson);
    if (poisson_orders.empty()) continue;
    Problem poisson{
        .mesh = Mesh::unit(dim, dim == 2 ? 4 : 3), .order = poisson_orders.front(), .equation = EquationKind::poisson};
    poisson.boundary.sides[0].data[0] = 1.0;
    all.emplace_back(fmt::format("Poisson {}D", dim), poisson);
  }
  for (auto& [name, problem] : all) problem.force = force(problem, 0.0);
  return all;
}

/// The same calls of a system of one rank and of one that all share.
class BothSystems {
 public:
  explicit BothSystems(const Problem& problem) : one_(problem, options(nullptr)), all_(problem, options(ranks())) {}

  /// call(system), which returns a vector of it: the same solution, on all ranks together and on one.
  template <class Call>
  void same(const char* what, const Call& call) {
    const auto expected = call(one_);
    const auto got = call(all_);
    const Solution of_one = one_.solution(expected.get());
    const std::optional<Solution> of_all = all_.solution(got.get()).gathered();
    double difference = 0.0;
    double size = 1e-300;
    if (of_all) {
      const Values a = of_one.unknowns();
      const Values b = of_all->unknowns();
      ASSERT_EQ(a.size(), b.size());
      for (std::size_t i = 0; i < a.size(); ++i) {
        size = std::max(size, std::abs(a[i]));
        if (!(std::abs(a[i] - b[i]) <= difference)) difference = std::abs(a[i] - b[i]);
      }
    }
    expect_everywhere(difference <= 1e-8 * size, fmt::format("{} differs by {} of {}", what, difference, size));
    same_number(what, one_.dot(expected.get(), expected.get()), all_.dot(got.get(), got.get()));
  }
  static void same_number(const char* what, double expected, double got) {
    expect_everywhere(std::abs(got - expected) <= 1e-8 * (1e-12 + std::abs(expected)),
                      fmt::format("{}: {} and {}", what, got, expected));
  }

  LinearSystem& one() { return one_; }
  LinearSystem& all() { return all_; }

 private:
  static SolverOptions options(std::shared_ptr<const Communicator> communicator) {
    on_all();  // chooses the device of this rank
    SolverOptions options;
    options.device = chosen("SOLENOID_RANKS_DEVICE", DeviceChoice::cpu);
    if (communicator != nullptr) {
      options.transport = chosen("SOLENOID_RANKS_TRANSPORT", TransportChoice::automatic);
    }
    options.threads = 1;
    options.precision = Precision::full_double;
    options.rtol = 1e-10;
    options.communicator = std::move(communicator);
    options.replicated_cells = 1;
    return options;
  }

  LinearSystem one_;
  LinearSystem all_;
};

TEST(RanksLinearSystem, IsThatOfOne) {
  for (const auto& [name, problem] : problems()) {
    SCOPED_TRACE(name);
    BothSystems both(problem);
    const auto load = [](LinearSystem& system) {
      auto b = system.make_vector();
      system.load(b.get());
      return b;
    };
    /// call(system, b, result)
    const auto of_load = [&](const char* what, const auto& call) {
      both.same(what, [&](LinearSystem& system) {
        const auto b = load(system);
        auto result = system.make_vector();
        call(system, b.get(), result.get());
        return result;
      });
    };
    const auto operators = [&] {
      both.same("load", load);
      of_load("A", [](LinearSystem& system, const double* x, double* y) { system.apply(x, y); });
      of_load("M", [](LinearSystem& system, const double* r, double* z) { system.precondition(r, z); });
      of_load("the solution",
              [](LinearSystem& system, const double* b, double* x) { EXPECT_TRUE(system.solve(b, x).converged); });
    };
    operators();
    of_load("mass", [](LinearSystem& system, const double* x, double* y) { system.apply_mass(x, y); });
    const VectorField other = force(problem, 1.0);
    both.same("another load", [&](LinearSystem& system) {
      auto b = system.make_vector();
      system.load(b.get(), other);
      return b;
    });
    for (LinearSystem* const system : {&both.one(), &both.all()}) system->set_coefficients(0.5, 7.0);
    operators();
    for (LinearSystem* const system : {&both.one(), &both.all()}) {
      const auto x = system->make_vector();
      EXPECT_TRUE(system->solve(load(*system).get(), x.get()).converged);
      EXPECT_EQ(system->solve(load(*system).get(), x.get(), true, 1e-6).iterations, 0);
    }
    const auto energy = [&](LinearSystem& system) { return system.integrals(load(system).get()).velocity_square; };
    if (problem.equation == EquationKind::stokes) both.same_number("energy", energy(both.one()), energy(both.all()));
  }
}

/// What anybody may have written into a vector is what is read, also if its old values have been read before.
TEST(RanksLinearSystem, HasPartsOfVectors) {
  for (const auto& [name, problem] : problems()) {
    SCOPED_TRACE(name);
    BothSystems both(problem);
    LinearSystem& all = both.all();
    const auto number_of_all = [&](double mine) {
      ranks()->sum(std::span(&mine, 1));
      return mine;
    };
    EXPECT_EQ(all.dofs_of_all(), both.one().dofs());
    EXPECT_EQ(number_of_all(static_cast<double>(all.dofs())), static_cast<double>(all.dofs_of_all()));
    EXPECT_EQ(std::ssize(all.unknowns()), all.dofs());

    const auto b = all.make_vector();
    all.load(b.get());
    const auto y = all.make_vector();
    all.apply(b.get(), y.get());
    const auto packed = [&](const double* x) {
      Vector<double> values(on_all(), all.dofs());  // in the memory of the same device
      on_all().synchronise();                       // the system has another stream
      all.pack(x, values.data());
      all.synchronise();
      return from(values);
    };
    const Values of_b = packed(b.get());
    const Values of_y = packed(y.get());
    double sum = 0.0;
    for (std::size_t i = 0; i < of_b.size(); ++i) sum += of_b[i] * of_y[i];
    both.same_number("dot", number_of_all(sum), all.dot(b.get(), y.get()));

    const auto x = all.make_vector();
    all.copy(y.get(), x.get());
    all.apply(x.get(), y.get());  // what is around x has been brought
    const Vector<double> values = on<double>(on_all(), of_b);
    on_all().synchronise();
    all.unpack(values.data(), x.get());
    all.apply(x.get(), y.get());
    EXPECT_EQ(packed(x.get()), of_b);
    EXPECT_EQ(packed(y.get()), of_y);
  }
}

TEST(RanksLinearSystem, IsRefusedWhereNothingIsShared) {
  SolverOptions options;
  options.device = DeviceChoice::cpu;
  options.communicator = ranks();
  try {
    const LinearSystem system({.mesh = Mesh::unit(2, 3), .order = available_orders(2).front()}, options);
    ADD_FAILURE() << "no error";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("this mesh of 64 cells is not shared"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace solenoid
