#include "engine/reference/varying_form.hpp"

namespace solenoid::reference {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using Numbers = std::vector<std::int64_t>;

/// Values and derivatives of all components of a cell's functions: a row per point, a column per function.
struct VectorTable {
  std::array<MatrixXd, 3> value;                      // [component]
  std::array<std::array<MatrixXd, 3>, 3> derivative;  // [direction][component]

  VectorTable(const std::vector<LocalField>& fields, const std::vector<Point>& points) {
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
};

}  // namespace

VaryingForm::VaryingForm(const Equation& equation, const Point& h) {
  const int dim = equation.dim;
  const bool stress = equation.form == ViscousForm::stress;
  const Quadrature rule = gauss(equation.order + 2);
  for (int c = 0; c < dim; ++c) fields_.emplace_back(equation, h, c);

  const Points inside = cell_points(dim, h, rule);
  const VectorTable u(fields_, inside.position);
  const Eigen::Index count = u.value[0].cols();
  mass_ = viscous_ = MatrixXd::Zero(count, count);
  for (int c = 0; c < dim; ++c) {
    mass_ += integrate(u.value[c], inside, u.value[c]);
    for (int a = 0; a < dim; ++a) {
      const auto& gradient = u.derivative;
      if (stress) {  // 2 eps_ac(u) eps_ac(v)
        viscous_ += 0.5 * integrate(gradient[a][c] + gradient[c][a], inside, gradient[a][c] + gradient[c][a]);
      } else {
        viscous_ += integrate(gradient[a][c], inside, gradient[a][c]);
      }
    }
  }

  for (int a = 0; a < dim; ++a) {
    const double gamma = equation.penalty(h[a]);
    const Points on_face = face_points(dim, h, rule, 2 * a);
    const VectorTable lower(fields_, face_points(dim, h, rule, 2 * a).position);      // of the cell above the face
    const VectorTable upper(fields_, face_points(dim, h, rule, 2 * a + 1).position);  // of the cell below it
    const auto traction = [&](const VectorTable& trace, int c) -> MatrixXd {
      if (!stress) return trace.derivative[a][c];
      return trace.derivative[a][c] + trace.derivative[c][a];
    };
    face_[a] = MatrixXd::Zero(2 * count, 2 * count);
    for (const int side : {2 * a, 2 * a + 1}) wall_[side] = MatrixXd::Zero(count, count);
    for (int c = 0; c < dim; ++c) {
      if (c == a) continue;
      // The normal points from the lower to the upper cell.
      const MatrixXd jump = beside(upper.value[c], -lower.value[c]);
      const MatrixXd mean = 0.5 * beside(traction(upper, c), traction(lower, c));
      const MatrixXd consistency = integrate(jump, on_face, mean);
      face_[a] += gamma * integrate(jump, on_face, jump) - consistency - consistency.transpose();
      for (const int side : {2 * a, 2 * a + 1}) {
        const bool is_upper = side % 2 == 1;
        const MatrixXd& value = is_upper ? upper.value[c] : lower.value[c];
        const MatrixXd outward = is_upper ? traction(upper, c) : MatrixXd(-traction(lower, c));
        const MatrixXd one_sided = integrate(value, on_face, outward);
        wall_[side] += 2.0 * gamma * integrate(value, on_face, value) - one_sided - one_sided.transpose();
      }
    }
  }
}

Numbers VaryingForm::numbers(const Grid& grid, Record cell) const {
  Numbers all;
  for (const LocalField& field : fields_) {
    const Numbers some = field.numbers(grid, cell);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

void apply_varying(const VaryingForm& form, const Level& level, const VectorXd& x, VectorXd& y) {
  const Grid& grid = level.grid;
  const auto& [viscosity, reaction] = *level.coefficients.by_cell;
  for (const Record cell : grid.layout().cells()) {
    const Numbers here = form.numbers(grid, cell);
    const VectorXd u = gather(x, here);
    scatter_add(viscosity[cell] * (form.viscous() * u) + reaction[cell] * (form.mass() * u), here, y);
    for (int side = 0; side < 2 * grid.dim(); ++side) {
      const Face face = grid.face(cell, side);
      if (face == Face::velocity) {
        scatter_add(viscosity[cell] * (form.wall(side) * u), here, y);
      } else if (face == Face::interior && side % 2 == 1) {
        const Record above = grid.neighbour(cell, side);
        const double harmonic = 2.0 / (1.0 / viscosity[cell] + 1.0 / viscosity[above]);
        const Numbers there = form.numbers(grid, above);
        Numbers both = here;
        both.insert(both.end(), there.begin(), there.end());
        scatter_add(harmonic * (form.face(side / 2) * gather(x, both)), both, y);
      }
    }
  }
}

}  // namespace solenoid::reference
