#pragma once
/// \file
/// Problems with known solutions, shared by the tests of whole solves.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "problem/regions.hpp"
#include "solenoid/cellwise.hpp"
#include "solenoid/solver.hpp"
#include "studies/manufactured.hpp"

namespace solenoid::test {

/// A polynomial in x, y, z.
class Polynomial {
 public:
  struct Term {
    double factor;
    std::array<int, 3> powers;
  };

  Polynomial() = default;
  explicit Polynomial(std::vector<Term> terms) : terms_(std::move(terms)) {}
  Polynomial(std::initializer_list<Term> terms) : terms_(terms) {}

  double operator()(const Point& x) const {
    double sum = 0.0;
    for (const auto& [factor, powers] : terms_) {
      double product = factor;
      for (int a = 0; a < 3; ++a) {
        for (int i = 0; i < powers[a]; ++i) product *= x[a];
      }
      sum += product;
    }
    return sum;
  }
  [[nodiscard]] Polynomial derivative(int a) const {
    std::vector<Term> terms;
    for (auto [factor, powers] : terms_) {
      if (powers[a] == 0) continue;
      factor *= powers[a]--;
      terms.push_back({factor, powers});
    }
    return Polynomial(std::move(terms));
  }
  friend Polynomial operator+(Polynomial p, const Polynomial& q) {
    p.terms_.insert(p.terms_.end(), q.terms_.begin(), q.terms_.end());
    return p;
  }
  friend Polynomial operator*(double factor, Polynomial p) {
    for (auto& term : p.terms_) term.factor *= factor;
    return p;
  }
  [[nodiscard]] ScalarField field() const {
    return std::function<double(const Point&)>([p = *this](const Point& x) { return p(x); });
  }

 private:
  std::vector<Term> terms_;
};

/// A solution of the Stokes equation with a mass term in RT_k x Q_k.
struct PolynomialFlow {
  int dim = 3;
  std::array<Polynomial, 3> velocity;
  Polynomial pressure;

  /// Every component has the full degree in every direction and is not zero on any side.
  static PolynomialFlow of_order(int dim, int k) {
    PolynomialFlow flow{.dim = dim, .velocity = {}, .pressure = {}};
    for (int a = 0; a < dim; ++a) {
      const int b = (a + 1) % dim;
      const int c = dim == 3 ? (a + 2) % dim : 2;
      // The stream function s = x_a^(k+1) x_b^(k+1) x_c^k - x_a x_b / 2 gives (ds/dx_b, -ds/dx_a) in the plane a, b.
      std::array<int, 3> full{};
      std::array<int, 3> low{};
      full[a] = full[b] = k + 1;
      if (dim == 3) full[c] = k;
      low[a] = low[b] = 1;
      const Polynomial stream{{1.0 + a, full}, {-0.5, low}};
      flow.velocity[a] = flow.velocity[a] + stream.derivative(b);
      flow.velocity[b] = flow.velocity[b] + (-1.0) * stream.derivative(a);
      std::array<int, 3> power{};
      power[a] = k;
      flow.pressure = flow.pressure + Polynomial{{0.7 - a, power}};
    }
    flow.pressure = flow.pressure + Polynomial{{1.0, {k, k, dim == 3 ? k : 0}}};
    return flow;
  }

  [[nodiscard]] VectorField velocity_field() const {
    return {velocity[0].field(), velocity[1].field(), velocity[2].field()};
  }
  /// alpha u - nu Laplace u + grad p
  [[nodiscard]] VectorField force(double nu, double alpha) const {
    VectorField force;
    for (int c = 0; c < dim; ++c) {
      Polynomial f = alpha * velocity[c] + pressure.derivative(c);
      for (int a = 0; a < dim; ++a) f = f + (-nu) * velocity[c].derivative(a).derivative(a);
      force[c] = f.field();
    }
    return force;
  }
  /// nu du/dn - p n on a side.
  [[nodiscard]] VectorField traction(double nu, int side) const {
    const double sign = side % 2 == 0 ? -1.0 : 1.0;
    VectorField traction;
    for (int c = 0; c < dim; ++c) {
      Polynomial t = (nu * sign) * velocity[c].derivative(side / 2);
      if (c == side / 2) t = t + (-sign) * pressure;
      traction[c] = t.field();
    }
    return traction;
  }
};

/// Whether a flow that is known everywhere can be prescribed on a boundary: by velocities, and tractions on sides. A
/// hole with outflow has one traction for all its faces.
inline bool takes_a_flow(const Problem& problem) {
  const Boundary& boundary = problem.boundary;
  const auto is_wall = [](const Side& side) { return side.kind == SideKind::velocity; };
  const std::vector<Side> all = conditions(problem);
  return is_wall(boundary.holes) &&
         std::all_of(boundary.single_holes.begin(), boundary.single_holes.end(),
                     [&](const HoleSide& hole) { return is_wall(hole.condition); }) &&
         std::all_of(all.begin(), all.end(),
                     [&](const Side& side) { return is_wall(side) || side.kind == SideKind::outflow; });
}

/// With the force, the velocities and the tractions of a flow.
inline Problem with_flow(Problem problem, const PolynomialFlow& flow) {
  problem.force = flow.force(problem.viscosity, problem.mass);
  const auto prescribe = [&](int side, Side& condition) {
    condition.data =
        condition.kind == SideKind::outflow ? flow.traction(problem.viscosity, side) : flow.velocity_field();
  };
  Boundary& boundary = problem.boundary;
  for (int side = 0; side < 2 * flow.dim; ++side) prescribe(side, boundary.sides[side]);
  for (auto& [side, where, condition] : boundary.regions) prescribe(side, condition);
  boundary.holes.data = flow.velocity_field();
  for (auto& [hole, condition] : boundary.single_holes) condition.data = flow.velocity_field();
  return problem;
}

/// The largest difference of coefficients over the largest of `a`; NaN if one is.
inline double relative_difference(const Solution& a, const Solution& b) {
  const std::span<const double> of_a = a.coefficients();
  const std::span<const double> of_b = b.coefficients();
  const auto or_nan = [](double x, double y) { return y > x || std::isnan(y) ? y : x; };
  double largest = 0.0;
  double difference = 0.0;
  for (std::size_t i = 0; i < of_a.size(); ++i) {
    largest = or_nan(largest, std::abs(of_a[i]));
    difference = or_nan(difference, std::abs(of_a[i] - of_b[i]));
  }
  return difference / largest;
}

/// The problem of the paper's experiments.
inline Problem paper(int dim, int order, int refine) {
  return manufactured_problem(ManufacturedKind::gaussian, dim, order, refine);
}

/// One thread of a processor, all in double precision.
inline SolverOptions on_cpu(double rtol = 1e-12) {
  SolverOptions options;
  options.device = DeviceChoice::cpu;
  options.threads = 1;
  options.precision = Precision::full_double;
  options.rtol = rtol;
  return options;
}

/// A field with a number of its own in each cell: what draw() returns, x fastest.
template <class Draw>
ScalarField each_cell(const Mesh& mesh, const Draw& draw) {
  std::array<std::int64_t, 3> extent{1, 1, 1};
  for (int a = 0; a < mesh.dim; ++a) extent[a] = std::int64_t{mesh.cells[a]} << mesh.refine;
  std::vector<double> values(extent[0] * extent[1] * extent[2]);
  for (double& value : values) value = draw();
  return cellwise(mesh, extent, std::move(values));
}

/// Of velocity and pressure in time where velocities on sides change: Runge-Kutta schemes have order 2 at least.
inline double least_order(TimeScheme scheme) {
  switch (scheme) {
    case TimeScheme::sbdf1: return 1.0;
    case TimeScheme::sbdf3: return 3.0;
    case TimeScheme::sbdf4: return 4.0;
    default: return 2.0;
  }
}

/// True if the build has this order.
inline bool has_order(int dim, int order, EquationKind equation = EquationKind::stokes) {
  const auto orders = available_orders(dim, equation);
  return std::find(orders.begin(), orders.end(), order) != orders.end();
}

/// Sanitizers make programs slow, and change nothing about iteration counts and memory.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

/// The largest difference of unknowns relative to the largest of them.
inline double difference_of_unknowns(const Solution& of, const Solution& from) {
  const std::vector<double> got = of.unknowns();
  const std::vector<double> expected = from.unknowns();
  if (got.size() != expected.size()) return std::numeric_limits<double>::infinity();
  double most = 0.0;
  double size = 0.0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    size = std::max(size, std::abs(expected[i]));
    const double here = std::abs(got[i] - expected[i]);
    if (!(here <= most)) most = here;  // NaN too
  }
  return most / size;
}

}  // namespace solenoid::test
