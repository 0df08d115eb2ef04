#include "engine/reference/sheared_form.hpp"

#include <cmath>

namespace solenoid::reference {
namespace {

using Eigen::Matrix3d;
using Eigen::MatrixXd;
using Eigen::Vector3d;
using Eigen::VectorXd;
using Numbers = std::vector<std::int64_t>;

/// Values and gradients in space of all velocity functions of a cell: a row per point, a column per function.
struct SpatialTable {
  std::array<MatrixXd, 3> value;                    // [component]
  std::array<std::array<MatrixXd, 3>, 3> gradient;  // [direction][component]

  SpatialTable(const std::vector<LocalField>& fields, int dim, const Matrix3d& f, const std::vector<Point>& points) {
    Eigen::Index columns = 0;
    for (int c = 0; c < dim; ++c) columns += static_cast<Eigen::Index>(fields[c].functions().size());
    for (int i = 0; i < dim; ++i) {
      value[i] = MatrixXd::Zero(static_cast<Eigen::Index>(points.size()), columns);
      for (int j = 0; j < dim; ++j) gradient[j][i] = value[i];
    }
    const double jacobian = f.determinant();
    const Matrix3d inverse = f.inverse();
    Eigen::Index first = 0;
    for (int c = 0; c < dim; ++c) {
      const Table table = fields[c].tabulate(points);
      const Eigen::Index count = table.value.cols();
      for (int i = 0; i < dim; ++i) {
        value[i].middleCols(first, count) = f(i, c) / jacobian * table.value;
        for (int j = 0; j < dim; ++j) {
          for (int a = 0; a < dim; ++a) {
            gradient[j][i].middleCols(first, count) += f(i, c) / jacobian * inverse(a, j) * table.derivative[a];
          }
        }
      }
      first += count;
    }
  }

  /// Component i of d_n u or, in the stress form, of 2 eps(u) n.
  [[nodiscard]] MatrixXd traction(const Vector3d& normal, const Equation& equation, int i) const {
    MatrixXd sum = MatrixXd::Zero(value[i].rows(), value[i].cols());
    for (int j = 0; j < equation.dim; ++j) {
      sum += normal[j] * gradient[j][i];
      if (equation.form == ViscousForm::stress) sum += normal[j] * gradient[i][j];
    }
    return sum;
  }
};

}  // namespace

ShearedForm::ShearedForm(const Equation& equation, double coupling, const AffineMap& map, const Point& h) {
  const int dim = equation.dim;
  Matrix3d f = Matrix3d::Identity();
  for (int a = 0; a < dim; ++a) {
    for (int i = 0; i < 3; ++i) f(i, a) = map.direction(a)[i];
  }
  const double jacobian = f.determinant();
  const Matrix3d inverse = f.inverse();
  const Quadrature rule = gauss(equation.order + 2);
  for (int c = 0; c <= dim; ++c) fields_.emplace_back(equation, h, c);

  Points inside = cell_points(dim, h, rule);
  inside.weight *= jacobian;
  const SpatialTable u(fields_, dim, f, inside.position);
  const MatrixXd q = fields_.back().tabulate(inside.position).value;
  const Eigen::Index count = u.value[0].cols();
  viscous_ = mass_ = MatrixXd::Zero(count, count);
  divergence_ = MatrixXd::Zero(q.cols(), count);
  for (int i = 0; i < dim; ++i) {
    mass_ += integrate(u.value[i], inside, u.value[i]);
    for (int j = 0; j < dim; ++j) {
      if (equation.form == ViscousForm::stress) {  // 2 eps_ij(u) eps_ij(v)
        const MatrixXd twice = u.gradient[j][i] + u.gradient[i][j];
        viscous_ += 0.5 * integrate(twice, inside, twice);
      } else {
        viscous_ += integrate(u.gradient[j][i], inside, u.gradient[j][i]);
      }
    }
    divergence_ += coupling * integrate(q, inside, u.gradient[i][i]);
  }

  for (int a = 0; a < dim; ++a) {
    const Vector3d across = inverse.row(a).transpose();
    const Vector3d normal = across.normalized();
    const double height = h[a] / across.norm();  // between the planes xi_a = 0 and xi_a = h_a
    const double gamma = equation.penalty(height);
    Points on_face = face_points(dim, h, rule, 2 * a);
    on_face.weight *= jacobian * across.norm();
    const SpatialTable lower(fields_, dim, f, face_points(dim, h, rule, 2 * a).position);      // of the cell above it
    const SpatialTable upper(fields_, dim, f, face_points(dim, h, rule, 2 * a + 1).position);  // of the cell below it
    Eigen::Index first = 0;  // of functions of component a
    for (int c = 0; c < a; ++c) first += static_cast<Eigen::Index>(fields_[c].functions().size());
    const auto size = static_cast<Eigen::Index>(fields_[a].functions().size());
    face_[a] = MatrixXd::Zero(2 * count, 2 * count);
    for (const int side : {2 * a, 2 * a + 1}) wall_[side] = MatrixXd::Zero(count, count);
    for (int i = 0; i < dim; ++i) {
      // The normal points from the lower to the upper cell.
      const MatrixXd jump = beside(upper.value[i], -lower.value[i]);
      const MatrixXd mean = 0.5 * beside(upper.traction(normal, equation, i), lower.traction(normal, equation, i));
      const MatrixXd consistency = integrate(jump, on_face, mean);
      face_[a] += gamma * integrate(jump, on_face, jump) - consistency - consistency.transpose();
      for (const int side : {2 * a, 2 * a + 1}) {
        const bool is_upper = side % 2 == 1;
        const SpatialTable& trace = is_upper ? upper : lower;
        MatrixXd value = trace.value[i];
        value.middleCols(first, size).setZero();
        const MatrixXd outward = (is_upper ? 1.0 : -1.0) * trace.traction(normal, equation, i);
        const MatrixXd one_sided = integrate(value, on_face, outward);
        wall_[side] += 2.0 * gamma * integrate(value, on_face, value) - one_sided - one_sided.transpose();
      }
    }
  }
}

Numbers ShearedForm::velocities(const Grid& grid, Record cell) const {
  Numbers all;
  for (std::size_t c = 0; c + 1 < fields_.size(); ++c) {
    const Numbers some = fields_[c].numbers(grid, cell);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

Numbers ShearedForm::pressures(const Grid& grid, Record cell) const { return fields_.back().numbers(grid, cell); }

void apply_sheared(const ShearedForm& form, const Level& level, const VectorXd& x, VectorXd& y) {
  const Grid& grid = level.grid;
  const CellCoefficients* const by_cell = level.coefficients.by_cell.get();
  const auto viscosity = [&](Record cell) {
    return by_cell == nullptr ? level.coefficients.viscosity : by_cell->viscosity[cell];
  };
  for (const Record cell : grid.layout().cells()) {
    const Numbers here = form.velocities(grid, cell);
    const Numbers pressures = form.pressures(grid, cell);
    const VectorXd u = gather(x, here);
    const double reaction = by_cell == nullptr ? level.coefficients.reaction : by_cell->reaction[cell];
    scatter_add(viscosity(cell) * (form.viscous() * u) + reaction * (form.mass() * u) -
                    form.divergence().transpose() * gather(x, pressures),
                here, y);
    scatter_add(-(form.divergence() * u), pressures, y);
    for (int side = 0; side < 2 * grid.dim(); ++side) {
      const Face face = grid.face(cell, side);
      if (face == Face::velocity) {
        scatter_add(viscosity(cell) * (form.wall(side) * u), here, y);
      } else if (face == Face::interior && side % 2 == 1) {
        Numbers both = here;
        const Record above = grid.neighbour(cell, side);
        const Numbers there = form.velocities(grid, above);
        both.insert(both.end(), there.begin(), there.end());
        const double harmonic = 2.0 / (1.0 / viscosity(cell) + 1.0 / viscosity(above));
        scatter_add(harmonic * (form.face(side / 2) * gather(x, both)), both, y);
      }
    }
  }
}

}  // namespace solenoid::reference
