#include "engine/reference/spatial_form.hpp"

#include <cmath>

namespace solenoid::reference {

using Eigen::Matrix3d;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using Numbers = std::vector<std::int64_t>;

namespace {

/// `points` with weights times a viscosity.
Points weighted(const Points& points, const VectorXd& nu) { return {points.position, points.weight.cwiseProduct(nu)}; }

}  // namespace

SpatialTable::SpatialTable(const std::vector<LocalField>& fields, int dim, const Matrix3d& f,
                           const std::vector<Point>& points) {
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

SpatialForm::SpatialForm(const Equation& equation, double coupling, const AffineMap& map, const Point& h)
    : equation_(equation), dim_(equation.dim) {
  Matrix3d f = Matrix3d::Identity();
  for (int a = 0; a < dim_; ++a) {
    for (int i = 0; i < 3; ++i) f(i, a) = map.direction(a)[i];
  }
  const double jacobian = f.determinant();
  const Matrix3d inverse = f.inverse();
  const Quadrature rule = gauss(equation.order + 2);
  for (int c = 0; c <= dim_; ++c) fields_.emplace_back(equation, h, c);
  inside_ = cell_points(dim_, h, rule);
  inside_.weight *= jacobian;
  u_ = {fields_, dim_, f, inside_.position};
  for (int a = 0; a < dim_; ++a) {
    const double across = inverse.row(a).norm();
    normal_[a] = inverse.row(a).transpose() / across;
    gamma_[a] = equation.penalty(h[a] / across);  // the height between the planes xi_a = 0 and xi_a = h_a
    on_face_[a] = face_points(dim_, h, rule, 2 * a);
    on_face_[a].weight *= jacobian * across;
    for (const int side : {2 * a, 2 * a + 1}) {
      trace_[side] = {fields_, dim_, f, face_points(dim_, h, rule, side).position};
      for (int i = 0; i < dim_; ++i) traction_[side][i] = traction(trace_[side], a, i);
    }
  }

  const MatrixXd q = fields_.back().tabulate(inside_.position).value;
  const Eigen::Index count = u_.value[0].cols();
  mass_ = MatrixXd::Zero(count, count);
  divergence_ = MatrixXd::Zero(q.cols(), count);
  for (int i = 0; i < dim_; ++i) {
    mass_ += integrate(u_.value[i], inside_, u_.value[i]);
    divergence_ += coupling * integrate(q, inside_, u_.gradient[i][i]);
  }
  const VectorXd one = VectorXd::Ones(on_face_[0].weight.size());
  const MatrixXd functions = MatrixXd::Identity(count, count);
  viscous_ = viscous(VectorXd::Ones(inside_.weight.size()), functions);
  for (int a = 0; a < dim_; ++a) face_[a] = face(a, one, MatrixXd::Identity(2 * count, 2 * count));
  for (int side = 0; side < 2 * dim_; ++side) wall_[side] = wall(side, one, functions);
}

MatrixXd SpatialForm::viscous(const VectorXd& nu, const MatrixXd& u) const {
  const Points inside = weighted(inside_, nu);
  MatrixXd sum = MatrixXd::Zero(u.rows(), u.cols());
  for (int i = 0; i < dim_; ++i) {
    for (int j = 0; j < dim_; ++j) {
      if (equation_.form == ViscousForm::stress) {  // 2 eps_ij(u) eps_ij(v)
        const MatrixXd twice = u_.gradient[j][i] + u_.gradient[i][j];
        sum += 0.5 * integrate(twice, inside, twice * u);
      } else {
        sum += integrate(u_.gradient[j][i], inside, u_.gradient[j][i] * u);
      }
    }
  }
  return sum;
}

MatrixXd SpatialForm::traction(const SpatialTable& trace, int a, int i) const {
  MatrixXd sum = MatrixXd::Zero(trace.value[i].rows(), trace.value[i].cols());
  for (int j = 0; j < dim_; ++j) {
    sum += normal_[a][j] * trace.gradient[j][i];
    if (equation_.form == ViscousForm::stress) sum += normal_[a][j] * trace.gradient[i][j];
  }
  return sum;
}

MatrixXd SpatialForm::face(int a, const VectorXd& nu, const MatrixXd& u) const {
  const Points on_face = weighted(on_face_[a], nu);
  const SpatialTable& lower = trace_[2 * a];      // of the cell above the face
  const SpatialTable& upper = trace_[2 * a + 1];  // of the cell below it
  MatrixXd sum = MatrixXd::Zero(u.rows(), u.cols());
  for (int i = 0; i < dim_; ++i) {
    const MatrixXd jump = beside(upper.value[i], -lower.value[i]);
    const MatrixXd mean = 0.5 * beside(traction_[2 * a + 1][i], traction_[2 * a][i]);
    sum += integrate(jump, on_face, gamma_[a] * (jump * u) - mean * u) - integrate(mean, on_face, jump * u);
  }
  return sum;
}

MatrixXd SpatialForm::wall(int side, const VectorXd& nu, const MatrixXd& u) const {
  const int a = side / 2;
  const Points on_face = weighted(on_face_[a], nu);
  Eigen::Index first = 0;  // of functions of component a
  for (int c = 0; c < a; ++c) first += static_cast<Eigen::Index>(fields_[c].functions().size());
  const auto size = static_cast<Eigen::Index>(fields_[a].functions().size());
  MatrixXd sum = MatrixXd::Zero(u.rows(), u.cols());
  for (int i = 0; i < dim_; ++i) {
    MatrixXd value = trace_[side].value[i];
    value.middleCols(first, size).setZero();
    const MatrixXd outward = (side % 2 == 1 ? 1.0 : -1.0) * traction_[side][i];
    sum +=
        integrate(value, on_face, 2.0 * gamma_[a] * (value * u) - outward * u) - integrate(outward, on_face, value * u);
  }
  return sum;
}

Numbers SpatialForm::velocities(const Grid& grid, Record cell) const {
  Numbers all;
  for (std::size_t c = 0; c + 1 < fields_.size(); ++c) {
    const Numbers some = fields_[c].numbers(grid, cell);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

Numbers SpatialForm::pressures(const Grid& grid, Record cell) const { return fields_.back().numbers(grid, cell); }

void apply_spatial(const SpatialForm& form, const Level& level, bool at_points, const VectorXd& x, VectorXd& y) {
  const Grid& grid = level.grid;
  const CellCoefficients* const by_cell = level.coefficients.by_cell.get();
  const ViscosityPoints* const points = at_points ? by_cell->points.get() : nullptr;
  const auto viscosity = [&](Record cell) {
    return by_cell == nullptr ? level.coefficients.viscosity : by_cell->viscosity[cell];
  };
  const auto trace = [&](Record cell, int side) {
    VectorXd nu(points->on_face());
    points->trace(cell, side, nu.data());
    return nu;
  };
  for (const Record cell : grid.layout().cells()) {
    const Numbers here = form.velocities(grid, cell);
    const Numbers pressures = form.pressures(grid, cell);
    const VectorXd u = gather(x, here);
    const double reaction = by_cell == nullptr ? level.coefficients.reaction : by_cell->reaction[cell];
    scatter_add(reaction * (form.mass() * u) - form.divergence().transpose() * gather(x, pressures), here, y);
    scatter_add(-(form.divergence() * u), pressures, y);
    if (points == nullptr) {
      scatter_add(viscosity(cell) * (form.viscous() * u), here, y);
    } else {
      const Eigen::Map<const VectorXd> nu(points->of_cell(cell), points->in_cell());
      scatter_add(form.viscous(nu, u), here, y);
    }
    for (int side = 0; side < 2 * grid.dim(); ++side) {
      const Face face = grid.face(cell, side);
      if (face == Face::velocity) {
        scatter_add(points == nullptr ? VectorXd(viscosity(cell) * (form.wall(side) * u))
                                      : VectorXd(form.wall(side, trace(cell, side), u)),
                    here, y);
      } else if (face == Face::interior && side % 2 == 1) {
        Numbers both = here;
        const Record above = grid.neighbour(cell, side);
        const Numbers there = form.velocities(grid, above);
        both.insert(both.end(), there.begin(), there.end());
        const VectorXd u_both = gather(x, both);
        if (points == nullptr) {
          const double harmonic = 2.0 / (1.0 / viscosity(cell) + 1.0 / viscosity(above));
          scatter_add(harmonic * (form.face(side / 2) * u_both), both, y);
        } else {
          const VectorXd harmonic =
              2.0 / (trace(cell, side).cwiseInverse() + trace(above, side - 1).cwiseInverse()).array();
          scatter_add(form.face(side / 2, harmonic, u_both), both, y);
        }
      }
    }
  }
}

}  // namespace solenoid::reference
