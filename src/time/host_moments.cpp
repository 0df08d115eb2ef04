#include "time/host_moments.hpp"

#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "base/parallel.hpp"
#include "element/basis.hpp"
#include "level/viscosity_in_cells.hpp"
#include "mesh/record.hpp"
#include "solution/cell_evaluator.hpp"
#include "solution/gradients.hpp"
#include "solution/univariate.hpp"

namespace solenoid {
namespace {

/// L2 projections to Q_k from values at moment_points(k) Gauss points a direction. One object serves one thread.
class Projection {
 public:
  Projection(const Grid& grid, int order)
      : grid_(&grid),
        rule_(gauss(moment_points(order))),
        matrix_(UnivariateMatrix::zero(order + 1, moment_points(order))) {
    for (int q = 0; q < moment_points(order); ++q) {
      const auto psi = legendre(order, rule_.points[q]);
      for (int i = 0; i <= order; ++i) matrix_(i, q) = rule_.weights[q] * psi[i];
    }
  }

  [[nodiscard]] TensorPoints points() const { return {rule_.points, rule_.points, rule_.points}; }
  /// Coefficients in a cell of values at its points, x fastest.
  const std::vector<double>& of(const std::vector<double>& values, Record cell) {
    const Point widths = grid_->widths(cell);
    double scale = 1.0;
    int inner = 1;
    const std::vector<double>* from = &values;
    for (int a = 0; a < grid_->dim(); ++a) {
      contract(matrix_, inner, *from, next_);
      work_.swap(next_);
      from = &work_;
      inner *= matrix_.rows;
      scale *= std::sqrt(widths[a]);
    }
    for (double& value : work_) value *= scale;
    return work_;
  }

 private:
  const Grid* grid_;
  Quadrature rule_;
  UnivariateMatrix matrix_;
  std::vector<double> work_;
  std::vector<double> next_;
};

/// Adds to the moments of one cell after the other. One object serves one thread.
class CellMoments {
 public:
  CellMoments(const Level& level, std::span<const double> u, std::span<const double> mean,
              const Coefficients& coefficients)
      : level_(&level),
        dim_(level.grid.dim()),
        projection_(level.grid, level.equation.order),
        flow_(level.grid, level.equation.order, u),
        mean_(level.grid, level.equation.order, mean),
        viscosity_(coefficients, dim_, projection_.points()) {
    flow_.set_points(projection_.points(), CellEvaluator::Tables::values_and_derivatives);
    mean_.set_points(projection_.points());
    u_.resize(static_cast<std::size_t>(flow_.points()) * dim_);
    before_.resize(u_.size());
    gradient_.resize(u_.size() * dim_);
    values_.resize(flow_.points());
  }

  void add(Record cell, double r, std::int64_t size, double* moments) {
    const auto change = [&](int moment, const auto& changed) {
      const std::vector<double>& found = projection_.of(values_, cell);
      double* const own = moments + moment * size + record_offset(cell, static_cast<int>(found.size()));
      for (std::size_t i = 0; i < found.size(); ++i) {
        double& value = own[static_cast<std::size_t>(interleave) * i];
        value = changed(value, found[i]);
      }
    };
    const int points = flow_.points();
    flow_.velocity(cell, u_.data());
    mean_.velocity(cell, before_.data());
    for (std::size_t i = 0; i < u_.size(); ++i) u_[i] -= before_[i];
    for (int c = 0; c < dim_; ++c) {
      for (int d = c; d < dim_; ++d) {
        for (int q = 0; q < points; ++q) values_[q] = u_[q * dim_ + c] * u_[q * dim_ + d];
        change(stress_index(dim_, c, d), [r](double before, double now) { return (1.0 - r) * (before + r * now); });
      }
    }
    flow_.gradient(cell, gradient_.data());
    const std::vector<double>& nu = viscosity_.of(cell);
    for (int q = 0; q < points; ++q) {
      values_[q] =
          dissipation_of(level_->equation.form, nu[q], gradient_of(dim_, &gradient_[std::size_t(q) * dim_ * dim_]));
    }
    change(flow_moments(dim_) - 1, [r](double before, double now) { return before + r * (now - before); });
  }

 private:
  const Level* level_;
  int dim_;
  Projection projection_;
  CellEvaluator flow_;
  CellEvaluator mean_;
  ViscosityInCells viscosity_;
  std::vector<double> u_;
  std::vector<double> before_;
  std::vector<double> gradient_;
  std::vector<double> values_;
};

}  // namespace

void HostMoments::add(const double* u, const double* mean, double r, const Coefficients& coefficients,
                      std::int64_t size, double* moments) {
  const auto numbers = static_cast<std::size_t>(level_.size());
  const Ranges cells{level_.grid.layout().owned_cells().size(), 256};
  parallel_for(cells.number(), [&] {
    return [&, own = CellMoments(level_, {u, numbers}, {mean, numbers}, coefficients)](std::int64_t number) mutable {
      const CellRange range = cells[number];
      for (auto cell = static_cast<Record>(range.begin); cell < range.end; ++cell) own.add(cell, r, size, moments);
    };
  });
}

}  // namespace solenoid
