#include "time/average_sums.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/parallel.hpp"
#include "element/basis.hpp"
#include "level/viscosity_in_cells.hpp"
#include "mesh/record.hpp"
#include "solenoid/error.hpp"
#include "solution/cell_evaluator.hpp"
#include "solution/gradients.hpp"
#include "solution/transfer.hpp"
#include "solution/univariate.hpp"

namespace solenoid {
namespace {

std::size_t pairs_of(int dim) { return static_cast<std::size_t>(dim) * (dim + 1) / 2; }

/// What the fields of moments are solutions of.
Problem of_field(Problem problem) {
  problem.equation = EquationKind::poisson;
  problem.convection = false;
  problem.varying_viscosity.reset();
  problem.varying_mass.reset();
  problem.viscosity_cap.reset();
  problem.viscosity_points = ViscosityPlaces::cell;
  problem.form.reset();
  for (Region& region : problem.regions) {
    region.viscosity.reset();
    region.mass.reset();
  }
  return problem;
}

HostVector copy_of(const HostVector& values) {
  HostVector copy = zeros(std::ssize(values));
  parallel_ranges({std::ssize(values)}, [&](CellRange range, std::int64_t) {
    std::copy(values.begin() + range.begin, values.begin() + range.end, copy.begin() + range.begin);
  });
  return copy;
}

/// L2 projections to Q_k from values at k + 2 Gauss points a direction. One object serves one thread.
class Projection {
 public:
  Projection(const Grid& grid, int order)
      : grid_(&grid), rule_(gauss(order + 2)), matrix_(UnivariateMatrix::zero(order + 1, order + 2)) {
    for (int q = 0; q < order + 2; ++q) {
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

/// Calls work(evaluator of `coefficients`, projection, cell) for all cells of this rank.
template <class Work>
void for_cells(const Grid& grid, int order, const HostVector& coefficients, CellEvaluator::Tables tables,
               const Work& work) {
  const Ranges cells{grid.layout().owned_cells().size(), 256};
  parallel_for(cells.number(), [&] {
    Projection projection(grid, order);
    CellEvaluator evaluator(grid, order, coefficients);
    evaluator.set_points(projection.points(), tables);
    return [&, work = Work(work), projection, evaluator](std::int64_t number) mutable {
      const CellRange range = cells[number];
      for (auto cell = static_cast<Record>(range.begin); cell < range.end; ++cell) work(evaluator, projection, cell);
    };
  });
}

}  // namespace

double AverageSums::vectors(int dim) { return 2.0 + static_cast<double>(pairs_of(dim) + 1) / (dim + 1); }

AverageSums::AverageSums(const Problem& problem, std::shared_ptr<const Grid> grid, double start)
    : problem_(problem),
      grid_(std::move(grid)),
      start_(start),
      mean_(zeros(std::int64_t{grid_->layout().storage()} * record_size(grid_->dim(), problem.order))) {
  const std::int64_t size = std::int64_t{grid_->layout().storage()} * power(problem.order + 1, grid_->dim());
  for (std::size_t i = 0; i <= pairs_of(grid_->dim()); ++i) moments_.push_back(zeros(size));
}

AverageSums::AverageSums(const Problem& problem, std::shared_ptr<const Grid> grid, const Averages& from)
    : problem_(problem),
      grid_(std::move(grid)),
      start_(from.start),
      length_(from.length),
      mean_(coefficients_on(from.flow, *grid_, problem.order, "averages of the checkpoint")) {
  const auto add_moment = [&](const Solution& field) {
    moments_.push_back(coefficients_on(field, *grid_, problem.order, "averages of the checkpoint"));
  };
  std::for_each(from.stresses.begin(), from.stresses.end(), add_moment);
  add_moment(from.dissipation);
}

void AverageSums::add(HostVector flow, double length, const Coefficients& coefficients) {
  const int dim = grid_->dim();
  const int order = problem_.order;
  const int record = power(order + 1, dim);
  const int points = power(order + 2, dim);
  const ViscousForm form = form_of(problem_);
  const std::vector<double> places = gauss(order + 2).points;
  const double r = length / (length_ + length);
  length_ += length;
  by_cell_ = coefficients.by_cell;
  if (by_cell_ == nullptr) {
    problem_.viscosity = coefficients.viscosity;
    problem_.mass = coefficients.reaction;
  }

  const auto for_coefficients = [&](HostVector& moment, Record cell, const std::vector<double>& values,
                                    const auto& change) {
    double* const own = &moment[record_offset(cell, record)];
    for (int i = 0; i < record; ++i) change(own[interleave * i], values[i]);
  };
  for_cells(*grid_, order, flow, CellEvaluator::Tables::values_and_derivatives,
            [&, g = std::vector<double>(points * dim * dim), values = std::vector<double>(points),
             viscosity = ViscosityInCells(coefficients, dim, {places, places, places})](
                CellEvaluator& evaluator, Projection& projection, Record cell) mutable {
              evaluator.gradient(cell, g.data());
              const std::vector<double>& nu = viscosity.of(cell);
              for (int q = 0; q < points; ++q) {
                values[q] = dissipation_of(form, nu[q], gradient_of(dim, &g[q * dim * dim]));
              }
              for_coefficients(moments_.back(), cell, projection.of(values, cell),
                               [r](double& mean, double value) { mean += r * (value - mean); });
            });
  const Ranges numbers{std::ssize(flow)};
  parallel_ranges(numbers, [&](CellRange range, std::int64_t) {
    for (std::int64_t i = range.begin; i < range.end; ++i) flow[i] -= mean_[i];
  });
  for_cells(*grid_, order, flow, CellEvaluator::Tables::values,
            [&, u = std::vector<double>(points * dim), values = std::vector<double>(points)](
                CellEvaluator& evaluator, Projection& projection, Record cell) mutable {
              evaluator.velocity(cell, u.data());
              for (int c = 0; c < dim; ++c) {
                for (int d = c; d < dim; ++d) {
                  for (int q = 0; q < points; ++q) values[q] = u[q * dim + c] * u[q * dim + d];
                  for_coefficients(moments_[Averages::stress_index(dim, c, d)], cell, projection.of(values, cell),
                                   [r](double& mean, double value) { mean = (1.0 - r) * (mean + r * value); });
                }
              }
            });
  parallel_ranges(numbers, [&](CellRange range, std::int64_t) {
    for (std::int64_t i = range.begin; i < range.end; ++i) mean_[i] += r * flow[i];
  });
}

std::optional<Averages> AverageSums::averages() const {
  if (length_ == 0.0) return {};
  const auto field = [&](const HostVector& values) { return Solution(of_field(problem_), grid_, copy_of(values)); };
  std::vector<Solution> stresses;
  for (std::size_t i = 0; i + 1 < moments_.size(); ++i) stresses.push_back(field(moments_[i]));
  Solution flow(problem_, grid_, copy_of(mean_), {}, by_cell_);
  flow.set_acceleration({});  // a mean has none, and so no forces
  return Averages{start_, length_, std::move(flow), std::move(stresses), field(moments_.back())};
}

}  // namespace solenoid
