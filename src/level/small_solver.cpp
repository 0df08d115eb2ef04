#include "level/small_solver.hpp"

#include <array>

#include "base/exchange.hpp"
#include "mesh/record.hpp"

namespace solenoid {
namespace {

using Kind = SmallShape::Kind;

/// A direction of a shape. Functions of P and of O count through its cells, as in PatchMatrices.
struct Direction {
  int modes = 0;               // of O
  std::vector<int> functions;  // of P, those that are unknowns
};

Direction direction_of(int n, const SmallShape& shape, int a) {
  const bool own = shape.direction == a;
  const int modes = own && shape.kind == Kind::pair ? 2 * n : n;
  // The hat of a ring is that on the lower and on the upper face of its cell.
  const bool lower = own && (shape.kind == Kind::lower_outflow || shape.kind == Kind::ring);
  const bool upper = own && shape.kind == Kind::upper_outflow;
  Direction direction{modes, {}};
  for (int e = lower ? 0 : 1; e < modes + (upper ? 1 : 0); ++e) direction.functions.push_back(e);
  return direction;
}

/// Its univariate matrices.
struct DirectionMatrices {
  Matrix mass_p;
  Matrix stiffness_p;
  Matrix divergence;
  Matrix laplace_o;
};

DirectionMatrices matrices_of(const CellMatrices& cell, const SmallShape& shape, int a) {
  const Direction direction = direction_of(cell.order + 1, shape, a);
  const auto count = static_cast<long>(direction.functions.size());
  Matrix select = Matrix::Zero(direction.modes + 1, count);  // unknowns as functions of P
  for (long j = 0; j < count; ++j) select(direction.functions[j], j) = 1.0;
  const bool own = shape.direction == a;
  if (own && shape.kind == Kind::ring) select(direction.modes, 0) = 1.0;
  const auto among_unknowns = [&](const Matrix& of_p) { return Matrix(select.transpose() * of_p * select); };
  if (own && shape.kind == Kind::pair) {
    const PatchMatrices pair(cell);
    return {among_unknowns(pair.mass_p), among_unknowns(pair.stiffness_p), pair.divergence * select,
            pair.laplace_o(2, 2)};
  }
  const int lower = own && shape.kind == Kind::lower_outflow ? 0 : 2;
  const int upper = own && shape.kind == Kind::upper_outflow ? 0 : 2;
  return {among_unknowns(cell.mass), among_unknowns(cell.stiffness), cell.divergence * select,
          cell.laplace_o(lower, upper)};
}

/// Functions of each direction, x fastest: those of P in direction `parallel`, of O in the others. visit(indices)
template <class Visit>
void for_each_function(const std::array<Direction, 3>& directions, int dim, int parallel, const Visit& visit) {
  std::array<int, 3> count{1, 1, 1};
  for (int a = 0; a < dim; ++a) {
    count[a] = a == parallel ? static_cast<int>(directions[a].functions.size()) : directions[a].modes;
  }
  for (int z = 0; z < count[2]; ++z) {
    for (int y = 0; y < count[1]; ++y) {
      for (int x = 0; x < count[0]; ++x) {
        std::array<int, 3> function{x, y, z};
        if (parallel >= 0) function[parallel] = directions[parallel].functions[function[parallel]];
        visit(function);
      }
    }
  }
}

/// Of `factor(a)` in each direction a, x fastest.
template <class Factor>
Matrix tensor_product(int dim, const Factor& factor) {
  Matrix product = factor(0);
  for (int a = 1; a < dim; ++a) product = kronecker(factor(a), product);
  return product;
}

}  // namespace

std::vector<SmallUnknown> small_unknowns(const Equation& equation, const SmallShape& shape) {
  const int dim = equation.dim;
  const int n = equation.n();
  std::array<Direction, 3> directions;
  for (int a = 0; a < dim; ++a) directions[a] = direction_of(n, shape, a);
  std::vector<SmallUnknown> unknowns;
  for (int c = 0; c <= equation.velocities(); ++c) {
    const bool velocity = c < equation.velocities();
    for_each_function(directions, dim, velocity ? c : -1, [&](const std::array<int, 3>& function) {
      SmallUnknown unknown{0, c * power(n, dim)};
      for (int a = 0; a < dim; ++a) {
        const int stride = velocity ? velocity_stride(dim, equation.order, c, a) : pressure_stride(equation.order, a);
        unknown.record += function[a] / n;  // upper hats are the lower ones of the next record
        unknown.value += function[a] % n * stride;
      }
      unknowns.push_back(unknown);
    });
  }
  return unknowns;
}

Matrix small_inverse(const Equation& equation, const Coefficients& coefficients, const Point& h,
                     const SmallShape& shape) {
  const int dim = equation.dim;
  const CellMatrices cell(equation.order, equation.relative_penalty, equation.lumped);
  std::array<DirectionMatrices, 3> directions;
  long scalars = 1;  // unknowns of the scalar field
  for (int a = 0; a < dim; ++a) {
    directions[a] = matrices_of(cell, shape, a);
    scalars *= directions[a].laplace_o.rows();
  }
  const auto identity = [&](int a) {
    const long modes = directions[a].laplace_o.rows();
    return Matrix(Matrix::Identity(modes, modes));
  };
  /// Of a velocity component, or, with parallel = -1, of Poisson's u.
  const auto elliptic = [&](int parallel) {
    const auto mass = [&](int a) { return a == parallel ? directions[a].mass_p : identity(a); };
    Matrix sum = coefficients.reaction * tensor_product(dim, mass);
    for (int b = 0; b < dim; ++b) {
      const auto second_derivative = [&](int a) {
        return a != b ? mass(a) : b == parallel ? directions[b].stiffness_p : directions[b].laplace_o;
      };
      sum += coefficients.viscosity / (h[b] * h[b]) * tensor_product(dim, second_derivative);
    }
    return sum;
  };

  Matrix matrix;
  const auto invert = [&](long begin, long end) { exchange(matrix, begin, end, 1); };
  if (equation.velocities() == 0) {
    matrix = elliptic(-1);
    invert(0, scalars);
    fill_upper(matrix, 1);
    return -matrix;
  }
  const auto unknowns = static_cast<long>(small_unknowns(equation, shape).size());
  const long velocities = unknowns - scalars;
  matrix = Matrix::Zero(unknowns, unknowns);
  long begin = 0;
  for (int c = 0; c < dim; ++c) {
    const Matrix a = elliptic(c);
    matrix.block(begin, begin, a.rows(), a.rows()) = a;
    matrix.block(velocities, begin, scalars, a.rows()) =
        -coefficients.coupling / h[c] *
        tensor_product(dim, [&](int b) { return b == c ? directions[b].divergence : identity(b); });
    begin += a.rows();
  }
  // Velocities first: of either field what is left is definite once the constant pressure v is bordered out, which adds
  // v v^T / shift to the inverse.
  invert(0, velocities);
  Eigen::VectorXd constant = Eigen::VectorXd::Zero(unknowns);
  double shift = 0.0;
  if (shape.kind != Kind::lower_outflow && shape.kind != Kind::upper_outflow) {
    for (long i = 0; i < scalars; ++i) {
      bool lowest = true;
      long rest = i;
      for (int a = 0; a < dim; ++a) {
        const long modes = directions[a].laplace_o.rows();
        lowest = lowest && rest % modes % equation.n() == 0;
        rest /= modes;
      }
      if (lowest) constant[velocities + i] = 1.0;
    }
    constant.normalize();
    // For k = 0 a lone cell has nothing but the constant: any shift does.
    shift = scalars == 1 ? -1.0 : matrix.diagonal().tail(scalars).mean();
    matrix += shift * constant * constant.transpose();
  }
  invert(velocities, unknowns);
  fill_upper(matrix, 1);
  if (shift != 0.0) matrix += constant * constant.transpose() / shift;
  return -matrix;
}

}  // namespace solenoid
