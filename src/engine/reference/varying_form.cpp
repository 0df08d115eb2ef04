#include "engine/reference/varying_form.hpp"

namespace solenoid::reference {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using Numbers = std::vector<std::int64_t>;

namespace {

/// `points` with weights times a viscosity.
Points weighted(const Points& points, const VectorXd& nu) { return {points.position, points.weight.cwiseProduct(nu)}; }

}  // namespace

VectorTable::VectorTable(const std::vector<LocalField>& fields, const std::vector<Point>& points) {
  const int dim = static_cast<int>(fields.size());
  Eigen::Index columns = 0;
  for (const LocalField& field : fields) columns += static_cast<Eigen::Index>(field.functions().size());
  const MatrixXd zero = MatrixXd::Zero(static_cast<Eigen::Index>(points.size()), columns);
  Eigen::Index first = 0;
  for (int c = 0; c < dim; ++c) {
    const Table table = fields[c].tabulate(points);
    const Eigen::Index count = table.value.cols();
    value[c] = zero;
    value[c].middleCols(first, count) = table.value;
    for (int a = 0; a < dim; ++a) {
      derivative[a][c] = zero;
      derivative[a][c].middleCols(first, count) = table.derivative[a];
    }
    first += count;
  }
}

VaryingForm::VaryingForm(const Equation& equation, const Point& h)
    : equation_(equation), dim_(equation.dim), stress_(equation.form == ViscousForm::stress), h_(h) {
  const Quadrature rule = gauss(equation.order + 2);
  for (int c = 0; c < dim_; ++c) fields_.emplace_back(equation, h, c);
  inside_ = cell_points(dim_, h, rule);
  u_ = {fields_, inside_.position};
  for (int side = 0; side < 2 * dim_; ++side) {
    on_face_[side] = face_points(dim_, h, rule, side);
    trace_[side] = {fields_, on_face_[side].position};
  }

  const Eigen::Index count = u_.value[0].cols();
  mass_ = MatrixXd::Zero(count, count);
  for (int c = 0; c < dim_; ++c) mass_ += integrate(u_.value[c], inside_, u_.value[c]);
  viscous_ = viscous(VectorXd::Ones(inside_.weight.size()));
  const VectorXd one = VectorXd::Ones(on_face_[0].weight.size());
  for (int a = 0; a < dim_; ++a) face_[a] = face(a, one);
  for (int side = 0; side < 2 * dim_; ++side) wall_[side] = wall(side, one);
}

MatrixXd VaryingForm::viscous(const VectorXd& nu) const {
  const Points inside = weighted(inside_, nu);
  const auto& gradient = u_.derivative;
  MatrixXd sum = MatrixXd::Zero(mass_.rows(), mass_.cols());
  for (int c = 0; c < dim_; ++c) {
    for (int a = 0; a < dim_; ++a) {
      if (stress_) {  // 2 eps_ac(u) eps_ac(v)
        sum += 0.5 * integrate(gradient[a][c] + gradient[c][a], inside, gradient[a][c] + gradient[c][a]);
      } else {
        sum += integrate(gradient[a][c], inside, gradient[a][c]);
      }
    }
  }
  return sum;
}

/// What S_c is made of, on one side of a face across a.
MatrixXd VaryingForm::traction(const VectorTable& trace, int a, int c) const {
  if (!stress_) return trace.derivative[a][c];
  return trace.derivative[a][c] + trace.derivative[c][a];
}

MatrixXd VaryingForm::face(int a, const VectorXd& nu) const {
  const Points on_face = weighted(on_face_[2 * a], nu);
  const VectorTable& lower = trace_[2 * a];      // of the cell above the face
  const VectorTable& upper = trace_[2 * a + 1];  // of the cell below it
  const Eigen::Index count = mass_.cols();
  MatrixXd sum = MatrixXd::Zero(2 * count, 2 * count);
  for (int c = 0; c < dim_; ++c) {
    if (c == a) continue;
    // The normal points from the lower to the upper cell.
    const MatrixXd jump = beside(upper.value[c], -lower.value[c]);
    const MatrixXd mean = 0.5 * beside(traction(upper, a, c), traction(lower, a, c));
    const MatrixXd consistency = integrate(jump, on_face, mean);
    sum += equation_.penalty(h_[a]) * integrate(jump, on_face, jump) - consistency - consistency.transpose();
  }
  return sum;
}

MatrixXd VaryingForm::wall(int side, const VectorXd& nu) const {
  const int a = side / 2;
  const Points on_face = weighted(on_face_[side], nu);
  const VectorTable& trace = trace_[side];
  MatrixXd sum = MatrixXd::Zero(mass_.rows(), mass_.cols());
  for (int c = 0; c < dim_; ++c) {
    if (c == a) continue;
    const MatrixXd outward = (side % 2 == 1 ? 1.0 : -1.0) * traction(trace, a, c);
    const MatrixXd one_sided = integrate(trace.value[c], on_face, outward);
    sum += 2.0 * equation_.penalty(h_[a]) * integrate(trace.value[c], on_face, trace.value[c]) - one_sided -
           one_sided.transpose();
  }
  return sum;
}

Numbers VaryingForm::numbers(const Grid& grid, Record cell) const {
  Numbers all;
  for (const LocalField& field : fields_) {
    const Numbers some = field.numbers(grid, cell);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

void apply_varying(const VaryingForm& form, const Level& level, bool at_points, const VectorXd& x, VectorXd& y) {
  const Grid& grid = level.grid;
  const CellCoefficients& coefficients = *level.coefficients.by_cell;
  const std::vector<double>& viscosity = coefficients.viscosity;
  const ViscosityPoints* const points = at_points ? coefficients.points.get() : nullptr;
  const auto trace = [&](Record cell, int side) {
    VectorXd nu(points->on_face());
    points->trace(cell, side, nu.data());
    return nu;
  };
  for (const Record cell : grid.layout().cells()) {
    const Numbers here = form.numbers(grid, cell);
    const VectorXd u = gather(x, here);
    scatter_add(coefficients.reaction[cell] * (form.mass() * u), here, y);
    if (points == nullptr) {
      scatter_add(viscosity[cell] * (form.viscous() * u), here, y);
    } else {
      const Eigen::Map<const VectorXd> nu(points->of_cell(cell), points->in_cell());
      scatter_add(form.viscous(nu) * u, here, y);
    }
    for (int side = 0; side < 2 * grid.dim(); ++side) {
      const Face face = grid.face(cell, side);
      if (face == Face::velocity) {
        scatter_add(points == nullptr ? VectorXd(viscosity[cell] * (form.wall(side) * u))
                                      : VectorXd(form.wall(side, trace(cell, side)) * u),
                    here, y);
      } else if (face == Face::interior && side % 2 == 1) {
        const Record above = grid.neighbour(cell, side);
        const Numbers there = form.numbers(grid, above);
        Numbers both = here;
        both.insert(both.end(), there.begin(), there.end());
        const VectorXd u_both = gather(x, both);
        if (points == nullptr) {
          const double harmonic = 2.0 / (1.0 / viscosity[cell] + 1.0 / viscosity[above]);
          scatter_add(harmonic * (form.face(side / 2) * u_both), both, y);
        } else {
          const VectorXd harmonic =
              2.0 / (trace(cell, side).cwiseInverse() + trace(above, side - 1).cwiseInverse()).array();
          scatter_add(form.face(side / 2, harmonic) * u_both, both, y);
        }
      }
    }
  }
}

}  // namespace solenoid::reference
