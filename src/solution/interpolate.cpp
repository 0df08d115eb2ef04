#include <array>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "base/host_vector.hpp"
#include "base/parallel.hpp"
#include "element/basis.hpp"
#include "mesh/grid.hpp"
#include "mesh/record.hpp"
#include "problem/pulled_back.hpp"
#include "problem/validate.hpp"
#include "solenoid/error.hpp"
#include "solenoid/solution.hpp"
#include "solution/univariate.hpp"

namespace solenoid {
namespace {

/// Points on the unit interval, and the coefficients of an interpolant (rows) from values there (columns), for h = 1.
struct Moments {
  std::vector<double> points;
  UnivariateMatrix matrix;
};

/// Of O: (f, psi_i).
Moments of_legendre(int order, const Quadrature& rule) {
  const int count = static_cast<int>(rule.points.size());
  Moments moments{rule.points, UnivariateMatrix::zero(order + 1, count)};
  for (int q = 0; q < count; ++q) {
    const auto psi = legendre(order, rule.points[q]);
    for (int i = 0; i <= order; ++i) moments.matrix(i, q) = rule.weights[q] * psi[i];
  }
  return moments;
}

/// Of P: lower hat f(0), bubbles (f', psi_i) = [f psi_i] - (f, psi_i'), upper hat f(1).
Moments of_continuous(int order, const Quadrature& rule) {
  const int count = static_cast<int>(rule.points.size());
  Moments moments{{0.0}, UnivariateMatrix::zero(order + 2, count + 2)};
  moments.points.insert(moments.points.end(), rule.points.begin(), rule.points.end());
  moments.points.push_back(1.0);
  UnivariateMatrix& matrix = moments.matrix;
  matrix(0, 0) = 1.0;
  matrix(order + 1, count + 1) = 1.0;
  const auto lower = legendre(order, 0.0);
  const auto upper = legendre(order, 1.0);
  for (int i = 1; i <= order; ++i) {
    matrix(i, 0) = -lower[i];
    matrix(i, count + 1) = upper[i];
    for (int q = 0; q < count; ++q) {
      matrix(i, q + 1) = -rule.weights[q] * legendre(order, rule.points[q], 1)[i];
    }
  }
  return moments;
}

/// Coefficients of fields in cells. One object serves one thread.
class CellMoments {
 public:
  CellMoments(const Grid& grid, int order, EquationKind equation)
      : grid_(grid),
        dim_(grid.dim()),
        velocities_(velocity_components(equation, dim_)),
        legendre_(of_legendre(order, gauss(order + 3))),
        continuous_(of_continuous(order, gauss(order + 3))) {}

  /// Of field `c` in a cell, x fastest: of a velocity with the upper hats, P being its own direction.
  const std::vector<double>& of(const ScalarField& field, int c, Record cell) {
    const Point corner = grid_.corner(cell);
    const Point widths = grid_.widths(cell);
    std::array<std::vector<double>, 3> axes{{{}, {}, {0.0}}};
    double scale = 1.0;
    for (int a = 0; a < dim_; ++a) {
      axes[a].clear();
      for (const double xi : in(c, a).points) axes[a].push_back(corner[a] + widths[a] * xi);
      scale *= std::sqrt(widths[a]);
    }
    values_.resize(axes[0].size() * axes[1].size() * axes[2].size());
    field.evaluate(Axes{axes[0], axes[1], axes[2]}, values_);
    int inner = 1;
    for (int a = 0; a < dim_; ++a) {
      contract(in(c, a).matrix, inner, values_, next_);
      values_.swap(next_);
      inner *= in(c, a).matrix.rows;
    }
    for (double& value : values_) value *= scale;
    return values_;
  }

 private:
  [[nodiscard]] const Moments& in(int c, int a) const { return c < velocities_ && a == c ? continuous_ : legendre_; }

  const Grid& grid_;
  int dim_;
  int velocities_;
  Moments legendre_;
  Moments continuous_;
  std::vector<double> values_;
  std::vector<double> next_;
};

/// `u` and a pressure, or Poisson's u alone.
Solution interpolated(const Problem& problem, const VectorField& u, const ScalarField& p) {
  validate_but_for_order(problem);
  const EquationKind equation = problem.equation;
  const auto grid = std::make_shared<const Grid>(problem.mesh, problem.boundary, equation == EquationKind::stokes);
  const AffineMap* const map = grid->metric().map();
  const VectorField velocity = map == nullptr ? u : pulled_back_velocity(u, *map);
  const ScalarField scalar = map == nullptr ? p : pulled_back_scalar(p, *map);
  const int dim = grid->dim();
  const int order = problem.order;
  const int n = order + 1;
  const int velocities = velocity_components(equation, dim);
  const int record = record_size(dim, order, equation);
  const int block = power(n, dim);
  HostVector x = zeros(std::int64_t{grid->layout().storage()} * record);

  const Ranges cells{grid->layout().owned_cells().size(), 256};
  parallel_for(cells.number(), [&] {
    return [&, moments = CellMoments(*grid, order, equation)](std::int64_t number) mutable {
      const CellRange range = cells[number];
      for (auto cell = static_cast<Record>(range.begin); cell < range.end; ++cell) {
        double* const own = &x[record_offset(cell, record)];
        for (int c = 0; c <= velocities; ++c) {
          const bool is_velocity = c < velocities;
          const std::vector<double>& values = moments.of(is_velocity ? velocity[c] : scalar, c, cell);
          const Record behind = is_velocity ? grid->neighbour(cell, 2 * c + 1) : cell;
          double* const upper = grid->layout().is_hat(behind) ? &x[record_offset(behind, record)] : nullptr;
          std::array<int, 3> i{};
          for (const double value : values) {
            int offset = c * block;
            const bool hat = is_velocity && i[c] == n;  // of the upper face, which the next cell owns
            for (int a = 0; a < dim; ++a) {
              if (hat && a == c) continue;
              offset += i[a] * (is_velocity ? velocity_stride(dim, order, c, a) : pressure_stride(order, a));
            }
            if (!hat) {
              own[interleave * offset] = value;
            } else if (upper != nullptr) {
              upper[interleave * offset] = value;
            }
            for (int a = 0; a < dim && ++i[a] == n + (is_velocity && a == c ? 1 : 0); ++a) i[a] = 0;
          }
        }
      }
    };
  });
  return {problem, grid, std::move(x)};
}

}  // namespace

Solution interpolate(const Problem& problem, const VectorField& velocity, const ScalarField& pressure) {
  if (problem.equation == EquationKind::poisson) {
    throw InputError("interpolate: Poisson's equation has a value, but neither velocity nor pressure");
  }
  return interpolated(problem, velocity, pressure);
}

Solution interpolate(const Problem& problem, const ScalarField& value) {
  if (problem.equation != EquationKind::poisson) {
    throw InputError("interpolate: a flow has velocity and pressure, and no value");
  }
  return interpolated(problem, {}, value);
}

}  // namespace solenoid
