#include "element/matrices.hpp"

#include <cmath>

#include "element/basis.hpp"

namespace solenoid {
namespace {

Eigen::VectorXd as_vector(const std::vector<double>& v) {
  return Eigen::Map<const Eigen::VectorXd>(v.data(), static_cast<long>(v.size()));
}

/// gamma v v^T - 1/2 d v^T - 1/2 v d^T: the face form E of traces v and outward derivatives d.
Matrix face_form(double penalty, const Eigen::VectorXd& v, const Eigen::VectorXd& d) {
  return penalty * v * v.transpose() - 0.5 * (d * v.transpose() + v * d.transpose());
}

/// Of the modes of O on the lower face of a cell: values, and derivatives along the outward normal.
struct Traces {
  explicit Traces(const CellMatrices& cell) : lower(cell.value), lower_slope(cell.slope) {
    for (long j = 1; j < lower.size(); j += 2) {
      lower[j] *= -1.0;
      lower_slope[j] *= -1.0;
    }
  }
  Eigen::VectorXd lower;
  Eigen::VectorXd lower_slope;
};

}  // namespace

Matrix kronecker(const Matrix& slow, const Matrix& fast) {
  Matrix product(slow.rows() * fast.rows(), slow.cols() * fast.cols());
  for (long i = 0; i < slow.rows(); ++i) {
    for (long j = 0; j < slow.cols(); ++j) {
      product.block(i * fast.rows(), j * fast.cols(), fast.rows(), fast.cols()) = slow(i, j) * fast;
    }
  }
  return product;
}

CellMatrices::CellMatrices(int order_, double relative_penalty, bool lumped)
    : order(order_), penalty(relative_penalty * (order == 0 ? 1.0 : (order + 1.0) * (order + 2.0))) {
  const int n = order + 1;
  mass = stiffness = Matrix::Zero(n + 1, n + 1);
  divergence = Matrix::Zero(n, n + 1);
  volume = Matrix::Zero(n, n);
  for (int child = 0; child < 2; ++child) {
    embed_o[child] = Matrix::Zero(n, n);
    embed_p[child] = Matrix::Zero(n + 1, n + 1);
  }
  const auto rule = gauss(n + 2);
  for (std::size_t q = 0; q < rule.points.size(); ++q) {
    const double x = rule.points[q];
    const double w = rule.weights[q];
    const Eigen::VectorXd psi = as_vector(legendre(order, x));
    const Eigen::VectorXd dpsi = as_vector(legendre(order, x, 1));
    const Eigen::VectorXd b = as_vector(continuous(order, x));
    const Eigen::VectorXd db = as_vector(continuous(order, x, 1));
    mass += w * b * b.transpose();
    stiffness += w * db * db.transpose();
    divergence += w * psi * db.transpose();
    volume += w * dpsi * dpsi.transpose();
    for (int child = 0; child < 2; ++child) {
      const double coarse_x = 0.5 * (child + x);
      embed_o[child] += std::sqrt(0.5) * w * psi * as_vector(legendre(order, coarse_x)).transpose();
      // Bubble coefficients are moments of the derivative, since b_i' = psi_i.
      const Eigen::VectorXd coarse_db = 0.5 * as_vector(continuous(order, coarse_x, 1));
      embed_p[child].middleRows(1, order) += std::sqrt(0.5) * w * psi.tail(order) * coarse_db.transpose();
    }
  }
  for (int child = 0; child < 2; ++child) {
    embed_p[child].row(0) = std::sqrt(0.5) * as_vector(continuous(order, 0.5 * child)).transpose();
    embed_p[child].row(n) = std::sqrt(0.5) * as_vector(continuous(order, 0.5 * (child + 1))).transpose();
  }
  if (lumped) mass = 0.5 * Matrix::Identity(n + 1, n + 1);
  value = as_vector(legendre(order, 1.0));
  slope = as_vector(legendre(order, 1.0, 1));
}

PatchMatrices::PatchMatrices(const CellMatrices& cell) : cell_(&cell) {
  const int n = cell.order + 1;
  mass_p = stiffness_p = Matrix::Zero(2 * n + 1, 2 * n + 1);
  divergence = Matrix::Zero(2 * n, 2 * n + 1);
  for (int upper = 0; upper < 2; ++upper) {
    const int o = upper * n;
    mass_p.block(o, o, n + 1, n + 1) += cell.mass;
    stiffness_p.block(o, o, n + 1, n + 1) += cell.stiffness;
    divergence.block(o, o, n, n + 1) += cell.divergence;
  }
}

Matrix CellMatrices::laplace_o(int lower_weight, int upper_weight) const {
  const Traces traces(*this);
  return volume + lower_weight * face_form(penalty, traces.lower, traces.lower_slope) +
         upper_weight * face_form(penalty, value, slope);
}

Matrix PatchMatrices::laplace_o(int lower_weight, int upper_weight) const {
  const int n = cell_->order + 1;
  const Traces traces(*cell_);
  Matrix laplace = Matrix::Zero(2 * n, 2 * n);
  laplace.topLeftCorner(n, n) = cell_->laplace_o(lower_weight, 0);
  laplace.bottomRightCorner(n, n) = cell_->laplace_o(0, upper_weight);
  Eigen::VectorXd jump(2 * n);
  Eigen::VectorXd mean(2 * n);
  jump << cell_->value, -traces.lower;
  mean << 0.5 * cell_->slope, -0.5 * traces.lower_slope;
  return laplace + cell_->penalty * jump * jump.transpose() - mean * jump.transpose() - jump * mean.transpose();
}

}  // namespace solenoid
