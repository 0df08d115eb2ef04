#include "engine/reference/reference_convection.hpp"

#include <algorithm>

#include "engine/reference/reference_level.hpp"

namespace solenoid::reference {

using Eigen::MatrixXd;
using Eigen::VectorXd;

ReferenceConvection::ReferenceConvection(const Level& level, ConvectiveFlux flux)
    : level_(level), upwind_(flux == ConvectiveFlux::upwind ? 1.0 : 0.0) {
  const int dim = level.equation.dim;
  const int points = convection_points(level.equation.order);
  const Point h = level.grid.metric().uniform_width();
  inside_ = cell_points(dim, h, gauss(points));
  for (int side = 0; side < 2 * dim; ++side) on_face_[side] = face_points(dim, h, gauss(points), side);
  for (int c = 0; c < dim; ++c) {
    fields_.emplace_back(level.equation, h, c);
    table_[c] = fields_[c].tabulate(inside_.position);
    for (int side = 0; side < 2 * dim; ++side) trace_[side][c] = fields_[c].tabulate(on_face_[side].position).value;
  }
}

VectorXd ReferenceConvection::values(const MatrixXd& table, int c, Record cell, const double* u) const {
  const auto numbers = fields_[c].numbers(level_.grid, cell);
  VectorXd coefficients(static_cast<Eigen::Index>(numbers.size()));
  for (std::size_t i = 0; i < numbers.size(); ++i) coefficients[static_cast<Eigen::Index>(i)] = u[numbers[i]];
  return table * coefficients;
}

void ReferenceConvection::test(const MatrixXd& table, const VectorXd& f, int c, Record cell, double* y) const {
  const VectorXd sums = table.transpose() * f;
  const auto numbers = fields_[c].numbers(level_.grid, cell);
  for (std::size_t i = 0; i < numbers.size(); ++i) y[numbers[i]] += sums[static_cast<Eigen::Index>(i)];
}

void ReferenceConvection::add_inner_face(Record cell, int a, const double* u, double* y) const {
  const Record above = level_.grid.neighbour(cell, 2 * a + 1);
  const auto& mine = trace_[2 * a + 1];
  const auto& its = trace_[2 * a];
  const VectorXd w = values(mine[a], a, cell, u);
  for (int c = 0; c < level_.equation.dim; ++c) {
    if (c == a) continue;
    const VectorXd minus = values(mine[c], c, cell, u);
    const VectorXd plus = values(its[c], c, above, u);
    const VectorXd flux =
        (0.5 * w.array() * (minus + plus).array() + 0.5 * upwind_ * w.array().abs() * (minus - plus).array()) *
        on_face_[2 * a].weight.array();
    test(mine[c], flux, c, cell, y);
    test(its[c], -flux, c, above, y);
  }
}

void ReferenceConvection::add_side(Record cell, int side, const double* u, double* y) const {
  const auto& trace = trace_[side];
  const double outward = side % 2 == 1 ? 1.0 : -1.0;
  const VectorXd w = outward * values(trace[side / 2], side / 2, cell, u);
  for (int c = 0; c < level_.equation.dim; ++c) {
    const VectorXd leaving = w.array().max(0.0) * values(trace[c], c, cell, u).array() * on_face_[side].weight.array();
    test(trace[c], leaving, c, cell, y);
  }
}

double ReferenceConvection::apply(const double* u, double* y, double* /*work*/) {
  const int dim = level_.equation.dim;
  const Point h = level_.grid.metric().uniform_width();
  std::fill_n(y, level_.size(), 0.0);
  double rate = 0.0;
  for (const Record cell : level_.grid.layout().cells()) {
    std::array<VectorXd, 3> velocity;
    VectorXd rates = VectorXd::Zero(inside_.weight.size());
    for (int c = 0; c < dim; ++c) {
      velocity[c] = values(table_[c].value, c, cell, u);
      rates += velocity[c].cwiseAbs() / h[c];
    }
    rate = std::max(rate, rates.maxCoeff());
    for (int c = 0; c < dim; ++c) {
      for (int a = 0; a < dim; ++a) {
        const VectorXd product = velocity[a].array() * velocity[c].array() * inside_.weight.array();
        test(table_[c].derivative[a], -product, c, cell, y);
      }
    }
    for (int side = 0; side < 2 * dim; ++side) {
      if (level_.grid.face(cell, side) != Face::interior) {
        add_side(cell, side, u, y);
      } else if (side % 2 == 1) {
        add_inner_face(cell, side / 2, u, y);
      }
    }
  }
  const auto unknown = unknowns(level_);
  for (std::size_t i = 0; i < unknown.size(); ++i) {
    if (!unknown[i]) y[i] = 0.0;
  }
  return rate;
}

}  // namespace solenoid::reference
