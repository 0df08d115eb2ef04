#include "engine/reference/reference_convection.hpp"

#include <algorithm>

#include "engine/reference/reference_level.hpp"

namespace solenoid::reference {

using Eigen::MatrixXd;
using Eigen::VectorXd;

ReferenceConvection::ReferenceConvection(const Level& level, ConvectiveFlux flux)
    : level_(level),
      map_(level.grid.metric().map() != nullptr ? *level.grid.metric().map() : AffineMap::identity(level.equation.dim)),
      upwind_(flux == ConvectiveFlux::upwind ? 1.0 : 0.0) {
  const int dim = level.equation.dim;
  const int points = convection_points(level.equation.order);
  const Point h = level.grid.metric().uniform_width();
  inside_ = cell_points(dim, h, gauss(points));
  for (int side = 0; side < 2 * dim; ++side) on_face_[side] = face_points(dim, h, gauss(points), side);
  for (int c = 0; c < dim; ++c) {
    fields_.emplace_back(level.equation, h, c);
    table_[c] = fields_[c].tabulate(inside_.position);
    inside_values_[c] = table_[c].value;
    for (int side = 0; side < 2 * dim; ++side) trace_[side][c] = fields_[c].tabulate(on_face_[side].position).value;
  }
}

VectorXd ReferenceConvection::values(const MatrixXd& table, int c, Record cell, const double* u) const {
  const auto numbers = fields_[c].numbers(level_.grid, cell);
  VectorXd coefficients(static_cast<Eigen::Index>(numbers.size()));
  for (std::size_t i = 0; i < numbers.size(); ++i) coefficients[static_cast<Eigen::Index>(i)] = u[numbers[i]];
  return table * coefficients;
}

ReferenceConvection::Vectors ReferenceConvection::velocity(const std::array<MatrixXd, 3>& tables, Record cell,
                                                           const double* u) const {
  Vectors result;
  result.fill(VectorXd::Zero(tables[0].rows()));
  for (int c = 0; c < level_.equation.dim; ++c) {
    const VectorXd along = values(tables[c], c, cell, u) / map_.jacobian();
    for (int i = 0; i < level_.equation.dim; ++i) result[i] += map_.direction(c)[i] * along;
  }
  return result;
}

VectorXd ReferenceConvection::dot(const Vectors& vectors, const Point& vector) const {
  VectorXd sum = VectorXd::Zero(vectors[0].size());
  for (int i = 0; i < level_.equation.dim; ++i) sum += vector[i] * vectors[i];
  return sum;
}

void ReferenceConvection::test(const MatrixXd& table, const VectorXd& f, int c, Record cell, double* y) const {
  const VectorXd sums = table.transpose() * f;
  const auto numbers = fields_[c].numbers(level_.grid, cell);
  for (std::size_t i = 0; i < numbers.size(); ++i) y[numbers[i]] += sums[static_cast<Eigen::Index>(i)];
}

void ReferenceConvection::test_on_face(int side, const Vectors& flux, Record cell, double* y) const {
  for (int c = 0; c < level_.equation.dim; ++c) {
    const VectorXd along = dot(flux, map_.direction(c)) / map_.jacobian();
    test(trace_[side][c], along.cwiseProduct(on_face_[side].weight), c, cell, y);
  }
}

// Faces of parallelepipeds have the normal row a of F^-1, times J the area of those of boxes.
VectorXd ReferenceConvection::through(int side, const Vectors& u) const {
  return map_.jacobian() * (side % 2 == 1 ? 1.0 : -1.0) * dot(u, map_.inverse()[side / 2]);
}

void ReferenceConvection::add_inner_face(Record cell, int a, const double* u, double* y) const {
  const Record above = level_.grid.neighbour(cell, 2 * a + 1);
  const Vectors minus = velocity(trace_[2 * a + 1], cell, u);
  const Vectors plus = velocity(trace_[2 * a], above, u);
  const VectorXd w = through(2 * a + 1, minus);
  Vectors flux;
  Vectors back;
  for (int i = 0; i < 3; ++i) {
    flux[i] =
        0.5 * w.array() * (minus[i] + plus[i]).array() + 0.5 * upwind_ * w.array().abs() * (minus[i] - plus[i]).array();
    back[i] = -flux[i];
  }
  test_on_face(2 * a + 1, flux, cell, y);
  test_on_face(2 * a, back, above, y);
}

void ReferenceConvection::add_side(Record cell, int side, const double* u, double* y) const {
  Vectors leaving = velocity(trace_[side], cell, u);
  const VectorXd w = through(side, leaving).cwiseMax(0.0);
  for (VectorXd& component : leaving) component = component.cwiseProduct(w);
  test_on_face(side, leaving, cell, y);
}

double ReferenceConvection::apply(const double* u, double* y, double* /*work*/) {
  const int dim = level_.equation.dim;
  const Point h = level_.grid.metric().uniform_width();
  std::fill_n(y, level_.size(), 0.0);
  double rate = 0.0;
  for (const Record cell : level_.grid.layout().cells()) {
    const Vectors here = velocity(inside_values_, cell, u);
    Vectors along;  // edges: u . grad = sum_a along_a d_a
    VectorXd rates = VectorXd::Zero(inside_.weight.size());
    for (int a = 0; a < dim; ++a) {
      along[a] = dot(here, map_.inverse()[a]);
      rates += along[a].cwiseAbs() / h[a];
    }
    rate = std::max(rate, rates.maxCoeff());
    for (int c = 0; c < dim; ++c) {
      // u . v for v of component c, times the volume.
      const VectorXd tested = dot(here, map_.direction(c)).cwiseProduct(inside_.weight);
      for (int a = 0; a < dim; ++a) test(table_[c].derivative[a], -along[a].cwiseProduct(tested), c, cell, y);
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
