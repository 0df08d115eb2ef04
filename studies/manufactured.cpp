#include "studies/manufactured.hpp"

#include <fmt/format.h>

#include <array>
#include <string>

namespace solenoid {
namespace {

/// Of a profile at one coordinate, as expressions: derivatives 0 to 3 of phi and 0 to 1 of the pressure's factor.
struct Jet {
  std::array<std::string, 4> phi;
  std::array<std::string, 2> q;
};

Jet gaussian(const std::string& x) {
  const std::string t = fmt::format("(3*({}-0.65))", x);
  const std::string g = fmt::format("(sqrt(1.5/pi)*exp(-1.5*({}-0.65)^2))", x);  // g' = -t g
  const std::string b0 = fmt::format("({0}*(1-{0}))^2", x);                      // and its derivatives
  const std::string b1 = fmt::format("(2*({0}*(1-{0}))*(1-2*{0}))", x);
  const std::string b2 = fmt::format("(2-12*({0}*(1-{0})))", x);
  const std::string b3 = fmt::format("(24*{}-12)", x);
  return {{fmt::format("({}*{})", b0, g), fmt::format("(({1}-{0}*{2})*{3})", b0, b1, t, g),
           fmt::format("(({2}-2*{1}*{3}+{0}*({3}^2-3))*{4})", b0, b1, b2, t, g),
           fmt::format("(({3}-3*{2}*{4}+3*{1}*({4}^2-3)+{0}*(9-{4}^2)*{4})*{5})", b0, b1, b2, b3, t, g)},
          {fmt::format("cos(2*pi*{})", x), fmt::format("(-2*pi*sin(2*pi*{}))", x)}};
}

Jet trigonometric(const std::string& x) {
  return {{fmt::format("sin(pi*{})^2", x), fmt::format("(pi*sin(2*pi*{}))", x), fmt::format("(2*pi^2*cos(2*pi*{}))", x),
           fmt::format("(-4*pi^3*sin(2*pi*{}))", x)},
          {fmt::format("cos(pi*{})", x), fmt::format("(-pi*sin(pi*{}))", x)}};
}

using Curl = std::array<std::array<int, 3>, 3>;

Curl curl_of(ManufacturedKind kind, int dim) {
  if (dim == 2) return {{{0, 1, 0}, {-1, 0, 0}, {}}};
  if (kind == ManufacturedKind::gaussian) return {{{0, 1, 1}, {-1, 0, -1}, {-1, 1, 0}}};
  return {{{0, 1, -1}, {-1, 0, 1}, {1, -1, 0}}};
}

/// Expressions of one kind and dimension.
class Texts {
 public:
  Texts(ManufacturedKind kind, int dim) : dim_(dim), curl_(curl_of(kind, dim)) {
    for (int a = 0; a < dim; ++a) {
      const std::string x(1, static_cast<char>('x' + a));
      jets_[a] = kind == ManufacturedKind::gaussian ? gaussian(x) : trigonometric(x);
    }
  }

  [[nodiscard]] std::string velocity(int c) const {
    std::string sum;
    for (int a = 0; a < dim_; ++a) add(curl_[c][a], derivative({a == 0, a == 1, a == 2}), sum);
    return sum;
  }
  [[nodiscard]] std::string laplacian(int c) const {
    std::string sum;
    for (int a = 0; a < dim_; ++a) {
      for (int b = 0; b < dim_; ++b) {
        std::array<int, 3> order{a == 0, a == 1, a == 2};
        order[b] += 2;
        add(curl_[c][a], derivative(order), sum);
      }
    }
    return sum;
  }
  /// dp/dx_c; c = -1: p itself.
  [[nodiscard]] std::string pressure(int c) const {
    std::string product;
    for (int a = 0; a < dim_; ++a) product += (a > 0 ? "*" : "") + jets_[a].q[a == c ? 1 : 0];
    return product;
  }

 private:
  /// prod_a (d/dx_a)^order[a] psi
  [[nodiscard]] std::string derivative(const std::array<int, 3>& order) const {
    std::string product;
    for (int a = 0; a < dim_; ++a) product += (a > 0 ? "*" : "") + jets_[a].phi[order[a]];
    return product;
  }
  static void add(int sign, const std::string& term, std::string& sum) {
    if (sign != 0) sum += (sign > 0 ? "+" : "-") + term;
  }

  int dim_;
  Curl curl_;
  std::array<Jet, 3> jets_;
};

}  // namespace

Manufactured::Manufactured(ManufacturedKind kind, int dim, double viscosity) {
  const Texts texts(kind, dim);
  for (int c = 0; c < dim; ++c) {
    velocity[c] = ScalarField::expression(texts.velocity(c), dim, fmt::format("manufactured velocity[{}]", c));
    force[c] =
        ScalarField::expression(fmt::format("-{:.17g}*({})+{}", viscosity, texts.laplacian(c), texts.pressure(c)), dim,
                                fmt::format("manufactured force[{}]", c));
  }
  pressure = ScalarField::expression(texts.pressure(-1), dim, "manufactured pressure");
}

Problem manufactured_problem(ManufacturedKind kind, int dim, int order, int refine) {
  Problem problem;
  problem.mesh = Mesh::unit(dim, refine);
  problem.order = order;
  problem.force = Manufactured(kind, dim, problem.viscosity).force;
  return problem;
}

Problem manufactured_poisson(int dim, int order, int refine) {
  const std::string u = Texts(ManufacturedKind::trigonometric, dim).pressure(-1);
  Problem problem;
  problem.equation = EquationKind::poisson;
  problem.mesh = Mesh::unit(dim, refine);
  problem.order = order;
  for (int side = 0; side < 2 * dim; ++side) {
    problem.boundary.sides[side].data[0] = ScalarField::expression(u, dim, "manufactured value");
  }
  problem.force[0] = ScalarField::expression(fmt::format("{}*pi^2*{}", dim, u), dim, "manufactured force");  // -Laplace
  return problem;
}

}  // namespace solenoid
