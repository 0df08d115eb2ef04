#include "engine/reference/weak_form.hpp"

#include <cmath>

#include "element/basis.hpp"

namespace solenoid::reference {
namespace {

using Eigen::MatrixXd;

/// Points that exceed what products of two functions and of their derivatives need, or, where the mass matrix is
/// lumped, those of the trapezoidal rule, which is as exact for all but products of values.
Quadrature quadrature(const Equation& equation) {
  if (equation.lumped) return {{0.0, 1.0}, {0.5, 0.5}};
  return gauss(equation.order + 2);
}

}  // namespace

MatrixXd integrate(const MatrixXd& f, const Points& points, const MatrixXd& g) {
  return f.transpose() * points.weight.asDiagonal() * g;
}

MatrixXd beside(const MatrixXd& left, const MatrixXd& right) {
  MatrixXd both(left.rows(), left.cols() + right.cols());
  both << left, right;
  return both;
}

Eigen::VectorXd gather(const Eigen::VectorXd& x, const std::vector<std::int64_t>& places) {
  Eigen::VectorXd values(static_cast<Eigen::Index>(places.size()));
  for (std::size_t i = 0; i < places.size(); ++i) values[static_cast<Eigen::Index>(i)] = x[places[i]];
  return values;
}

void scatter_add(const Eigen::VectorXd& values, const std::vector<std::int64_t>& places, Eigen::VectorXd& x) {
  for (std::size_t i = 0; i < places.size(); ++i) x[places[i]] += values[static_cast<Eigen::Index>(i)];
}

Points cell_points(int dim, const Point& h, const Quadrature& rule) {
  const auto count = static_cast<int>(rule.points.size());
  Points points;
  const int total = power(count, dim);
  points.weight.resize(total);
  for (int q = 0; q < total; ++q) {
    Point position{};
    double weight = 1.0;
    for (int a = 0, rest = q; a < dim; ++a, rest /= count) {
      position[a] = rule.points[rest % count];
      weight *= rule.weights[rest % count] * h[a];
    }
    points.position.push_back(position);
    points.weight[q] = weight;
  }
  return points;
}

Points face_points(int dim, const Point& h, const Quadrature& rule, int side) {
  const auto count = static_cast<int>(rule.points.size());
  const int normal = side / 2;
  Points points;
  const int total = power(count, dim - 1);
  points.weight.resize(total);
  for (int q = 0; q < total; ++q) {
    Point position{};
    double weight = 1.0;
    for (int a = 0, rest = q; a < dim; ++a) {
      if (a == normal) {
        position[a] = side % 2;
        continue;
      }
      position[a] = rule.points[rest % count];
      weight *= rule.weights[rest % count] * h[a];
      rest /= count;
    }
    points.position.push_back(position);
    points.weight[q] = weight;
  }
  return points;
}

LocalField::LocalField(const Equation& equation, const Point& h, int component)
    : dim_(equation.dim),
      order_(equation.order),
      record_(equation.record()),
      parallel_(component < equation.velocities() ? component : -1),
      h_(h) {
  const int n = equation.n();
  const bool velocity = parallel_ >= 0;
  std::array<int, 3> count{1, 1, 1};
  for (int a = 0; a < dim_; ++a) count[a] = a == parallel_ ? n + 1 : n;
  for (int z = 0; z < count[2]; ++z) {
    for (int y = 0; y < count[1]; ++y) {
      for (int x = 0; x < count[0]; ++x) {
        Function function{{x, y, z}, false, component * power(n, dim_)};
        if (velocity) function.upper_hat = function.index[component] == n;
        for (int a = 0; a < dim_; ++a) {
          const int stride = velocity ? velocity_stride(dim_, order_, component, a) : pressure_stride(order_, a);
          // An upper hat is the lower hat, index 0, of the record behind.
          const bool shared = function.upper_hat && a == component;
          function.offset += shared ? 0 : stride * function.index[a];
        }
        functions_.push_back(function);
      }
    }
  }
}

Table LocalField::tabulate(const std::vector<Point>& points) const {
  const auto rows = static_cast<Eigen::Index>(points.size());
  const auto columns = static_cast<Eigen::Index>(functions_.size());
  Table table;
  table.value.resize(rows, columns);
  for (int a = 0; a < dim_; ++a) table.derivative[a].resize(rows, columns);
  for (Eigen::Index q = 0; q < rows; ++q) {
    std::array<std::array<std::vector<double>, 2>, 3> univariate;  // [direction][derivative][function]
    for (int a = 0; a < dim_; ++a) {
      for (int d = 0; d < 2; ++d) {
        const double x = points[q][a];
        univariate[a][d] = a == parallel_ ? continuous(order_, x, d) : legendre(order_, x, d);
        for (double& value : univariate[a][d]) value /= std::sqrt(h_[a]) * (d == 1 ? h_[a] : 1.0);
      }
    }
    for (Eigen::Index j = 0; j < columns; ++j) {
      const auto product = [&](int differentiated) {
        double value = 1.0;
        for (int a = 0; a < dim_; ++a) value *= univariate[a][a == differentiated ? 1 : 0][functions_[j].index[a]];
        return value;
      };
      table.value(q, j) = product(-1);
      for (int a = 0; a < dim_; ++a) table.derivative[a](q, j) = product(a);
    }
  }
  return table;
}

std::vector<std::int64_t> LocalField::numbers(const Grid& grid, Record cell) const {
  std::vector<std::int64_t> numbers;
  numbers.reserve(functions_.size());
  for (const Function& function : functions_) {
    const auto record = function.upper_hat ? grid.neighbour(cell, 2 * parallel_ + 1) : cell;
    numbers.push_back(record_offset(record, record_) + std::int64_t{interleave} * function.offset);
  }
  return numbers;
}

WeakForm::WeakForm(const Equation& equation, const Coefficients& coefficients, const Point& h) {
  const int dim = equation.dim;
  const double nu = coefficients.viscosity;
  for (int c = 0; c <= equation.velocities(); ++c) fields_.emplace_back(equation, h, c);

  const Points inside = cell_points(dim, h, quadrature(equation));
  const Table q = pressure().tabulate(inside.position);
  for (int c = 0; c < components(); ++c) {
    const Table u = fields_[c].tabulate(inside.position);
    const auto& weight = equation.weights.viscous[c];
    cell_[c] = equation.weights.mass[c] * coefficients.reaction * integrate(u.value, inside, u.value);
    for (int a = 0; a < dim; ++a) cell_[c] += weight[a] * nu * integrate(u.derivative[a], inside, u.derivative[a]);
    if (has_pressure()) divergence_[c] = coefficients.coupling * integrate(q.value, inside, u.derivative[c]);

    for (int a = 0; a < dim; ++a) {
      if (a == fields_[c].parallel()) continue;
      const double gamma = equation.penalty(h[a]);
      std::array<Table, 2> trace;
      const Points on_face = face_points(dim, h, quadrature(equation), 2 * a);
      for (int upper = 0; upper < 2; ++upper) {
        trace[upper] = fields_[c].tabulate(face_points(dim, h, quadrature(equation), 2 * a + upper).position);
        const MatrixXd& value = trace[upper].value;
        if (c == 0) trace_[2 * a + upper] = value;
        const MatrixXd normal = (upper == 1 ? 1.0 : -1.0) * trace[upper].derivative[a];
        const MatrixXd consistency = integrate(value, on_face, normal);
        end_[2 * a + upper][c] =
            weight[a] * nu * (gamma * integrate(value, on_face, value) - 0.5 * (consistency + consistency.transpose()));
      }
      // The normal points from the lower cell, which sees the face as its upper one, to the upper cell.
      MatrixXd jump(trace[0].value.rows(), 2 * trace[0].value.cols());
      MatrixXd mean(jump.rows(), jump.cols());
      jump << trace[1].value, -trace[0].value;
      mean << 0.5 * trace[1].derivative[a], 0.5 * trace[0].derivative[a];
      const MatrixXd consistency = integrate(jump, on_face, mean);
      face_[a][c] = weight[a] * nu * (gamma * integrate(jump, on_face, jump) - consistency - consistency.transpose());
    }
  }
}

Eigen::MatrixXd embedding(const Equation& equation, const Point& fine_h, int component,
                          const std::array<bool, 3>& coarsened, const std::array<bool, 3>& upper) {
  Point coarse_h = fine_h;
  for (int a = 0; a < equation.dim; ++a) coarse_h[a] *= coarsened[a] ? 2.0 : 1.0;

  const Points points = cell_points(equation.dim, fine_h, gauss(equation.order + 2));
  std::vector<Point> in_coarse = points.position;
  for (Point& x : in_coarse) {
    for (int a = 0; a < equation.dim; ++a) {
      if (coarsened[a]) x[a] = 0.5 * (x[a] + (upper[a] ? 1.0 : 0.0));
    }
  }
  const MatrixXd fine = LocalField(equation, fine_h, component).tabulate(points.position).value;
  const MatrixXd coarse = LocalField(equation, coarse_h, component).tabulate(in_coarse).value;
  return integrate(fine, points, fine).llt().solve(integrate(fine, points, coarse));
}

}  // namespace solenoid::reference
