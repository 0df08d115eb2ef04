#include "studies/manufactured.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <vector>

namespace solenoid {
namespace {

constexpr double pi = std::numbers::pi;

/// Derivatives 0 to 3 of phi and 0 to 1 of the pressure's factor at one coordinate.
struct Jet {
  std::array<double, 4> phi{};
  std::array<double, 2> q{};
};

Jet gaussian(double x) {
  constexpr double mu = 0.65;
  constexpr double precision = 3.0;  // 1 / sigma^2
  const double t = precision * (x - mu);
  const double g0 = std::sqrt(precision / (2 * pi)) * std::exp(-0.5 * (x - mu) * t);
  const std::array<double, 4> g{g0, -t * g0, (t * t - precision) * g0, (3 * precision - t * t) * t * g0};
  const double s = x * (1 - x);
  const std::array<double, 4> b{s * s, 2 * s * (1 - 2 * x), 2 - 12 * s, 24 * x - 12};  // x^2 (1-x)^2
  return {{b[0] * g[0], b[1] * g[0] + b[0] * g[1], b[2] * g[0] + 2 * b[1] * g[1] + b[0] * g[2],
           b[3] * g[0] + 3 * (b[2] * g[1] + b[1] * g[2]) + b[0] * g[3]},
          {std::cos(2 * pi * x), -2 * pi * std::sin(2 * pi * x)}};
}

Jet trigonometric(double x) {
  const double s = std::sin(pi * x);
  const double c = std::cos(pi * x);
  const double s2 = 2 * s * c;          // sin 2 pi x
  const double c2 = (c - s) * (c + s);  // cos 2 pi x
  return {{s * s, pi * s2, 2 * pi * pi * c2, -4 * pi * pi * pi * s2}, {c, -pi * s}};
}

using Profile = Jet (*)(double x);
using Curl = std::array<std::array<double, 3>, 3>;

/// Remembers the jets of the coordinates seen last: the points of a tensor grid share theirs.
class JetCache {
 public:
  explicit JetCache(Profile profile) : profile_(profile) { keys_.fill(std::numeric_limits<double>::quiet_NaN()); }

  const Jet& operator()(double x) {
    constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;
    const auto slot = (std::bit_cast<std::uint64_t>(x) * golden) >> (64 - bits);
    if (keys_[slot] != x) {
      keys_[slot] = x;
      jets_[slot] = profile_(x);
    }
    return jets_[slot];
  }

 private:
  static constexpr int bits = 5;
  Profile profile_;
  std::array<double, 1 << bits> keys_{};
  std::array<Jet, 1 << bits> jets_;
};

/// The field whose value at a point is value(jets of its dim coordinates).
template <int dim, class Value>
ScalarField field(Profile profile, std::string label, Value value) {
  return {[=](std::span<const Point> points, std::span<double> values) {
            JetCache jet(profile);
            std::array<Jet, 3> jets;
            for (std::size_t i = 0; i < points.size(); ++i) {
              for (int a = 0; a < dim; ++a) jets[a] = jet(points[i][a]);
              values[i] = value(jets);
            }
          },
          [=](const Axes& axes, std::span<double> values) {
            std::array<std::vector<Jet>, 3> of_axis;
            for (int a = 0; a < 3; ++a) {
              for (const double x : axes[a]) of_axis[a].push_back(profile(x));
            }
            auto next = values.begin();
            std::array<Jet, 3> jets;
            for (const Jet& z : of_axis[2]) {
              jets[2] = z;
              for (const Jet& y : of_axis[1]) {
                jets[1] = y;
                for (const Jet& x : of_axis[0]) {
                  jets[0] = x;
                  *next++ = value(jets);
                }
              }
            }
          },
          std::move(label)};
}

/// prod_a (d/dx_a)^order[a] psi
template <int dim>
double derivative(const std::array<Jet, 3>& jets, const std::array<int, 3>& order) {
  double product = 1.0;
  for (int a = 0; a < dim; ++a) product *= jets[a].phi[order[a]];
  return product;
}

template <int dim>
double velocity(const std::array<Jet, 3>& jets, const std::array<double, 3>& curl) {
  double sum = 0.0;
  for (int a = 0; a < dim; ++a) {
    if (curl[a] == 0.0) continue;
    std::array<int, 3> order{};
    order[a] = 1;
    sum += curl[a] * derivative<dim>(jets, order);
  }
  return sum;
}

template <int dim>
double laplacian(const std::array<Jet, 3>& jets, const std::array<double, 3>& curl) {
  double sum = 0.0;
  for (int a = 0; a < dim; ++a) {
    if (curl[a] == 0.0) continue;
    for (int b = 0; b < dim; ++b) {
      std::array<int, 3> order{};
      order[a] = 1;
      order[b] += 2;
      sum += curl[a] * derivative<dim>(jets, order);
    }
  }
  return sum;
}

/// dp/dx_c; c = -1: p itself.
template <int dim>
double pressure(const std::array<Jet, 3>& jets, int c) {
  double product = 1.0;
  for (int a = 0; a < dim; ++a) product *= jets[a].q[a == c ? 1 : 0];
  return product;
}

Curl curl_of(ManufacturedKind kind, int dim) {
  if (dim == 2) return {{{0, 1, 0}, {-1, 0, 0}, {}}};
  if (kind == ManufacturedKind::gaussian) return {{{0, 1, 1}, {-1, 0, -1}, {-1, 1, 0}}};
  return {{{0, 1, -1}, {-1, 0, 1}, {1, -1, 0}}};
}

template <int dim>
void set_fields(ManufacturedKind kind, double viscosity, Manufactured& fields) {
  const Profile profile = kind == ManufacturedKind::gaussian ? gaussian : trigonometric;
  const Curl curl = curl_of(kind, dim);
  const auto name = [](const char* what, int c) { return std::string(what) + "[" + std::to_string(c) + "]"; };
  for (int c = 0; c < dim; ++c) {
    const auto row = curl[c];
    fields.velocity[c] = field<dim>(profile, name("manufactured velocity", c),
                                    [=](const std::array<Jet, 3>& jets) { return velocity<dim>(jets, row); });
    fields.force[c] = field<dim>(profile, name("manufactured force", c), [=](const std::array<Jet, 3>& jets) {
      return -viscosity * laplacian<dim>(jets, row) + pressure<dim>(jets, c);
    });
  }
  fields.pressure = field<dim>(profile, "manufactured pressure",
                               [](const std::array<Jet, 3>& jets) { return pressure<dim>(jets, -1); });
}

}  // namespace

Manufactured::Manufactured(ManufacturedKind kind, int dim, double viscosity) {
  if (dim == 2) {
    set_fields<2>(kind, viscosity, *this);
  } else {
    set_fields<3>(kind, viscosity, *this);
  }
}

Problem manufactured_problem(ManufacturedKind kind, int dim, int order, int refine) {
  Problem problem;
  problem.mesh = Mesh::unit(dim, refine);
  problem.order = order;
  problem.force = Manufactured(kind, dim, problem.viscosity).force;
  return problem;
}

Problem manufactured_poisson(int dim, int order, int refine) {
  const ScalarField u = Manufactured(ManufacturedKind::trigonometric, dim).pressure;
  Problem problem;
  problem.equation = EquationKind::poisson;
  problem.mesh = Mesh::unit(dim, refine);
  problem.order = order;
  for (int side = 0; side < 2 * dim; ++side) problem.boundary.sides[side].data[0] = u;
  const double factor = dim * std::numbers::pi * std::numbers::pi;  // -Laplace u = factor u
  const auto scaled = [=](const auto& points, std::span<double> values) {
    u.evaluate(points, values);
    for (double& value : values) value *= factor;
  };
  problem.force[0] =
      ScalarField([=](std::span<const Point> points, std::span<double> values) { scaled(points, values); },
                  [=](const Axes& axes, std::span<double> values) { scaled(axes, values); }, "manufactured force");
  return problem;
}

}  // namespace solenoid
