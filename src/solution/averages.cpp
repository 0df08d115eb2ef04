#include "solenoid/averages.hpp"

#include <algorithm>
#include <utility>

#include "base/parallel.hpp"
#include "element/basis.hpp"
#include "element/moments.hpp"
#include "mesh/grid.hpp"
#include "problem/validate.hpp"
#include "solution/cell_evaluator.hpp"
#include "solution/joined.hpp"

namespace solenoid {
namespace {

/// Cells behind each other along directions, and the points of a profile in them.
class Columns {
 public:
  Columns(const Averages& averages, const std::array<bool, 3>& along)
      : averages_(averages),
        grid_(averages.flow.grid()),
        along_(along),
        at_(gauss(averages.flow.problem().order + 1)),
        over_(gauss(averages.flow.problem().order + 2)) {
    for (int a = 0; a < grid_.dim(); ++a) {
      (along_[a] ? depth_ : count_)[a] = grid_.extent()[a];
      if (!along_[a]) points_ *= std::ssize(at_.points);
    }
  }

  [[nodiscard]] std::int64_t size() const { return std::int64_t{count_[0]} * count_[1] * count_[2]; }
  [[nodiscard]] std::int64_t rows() const { return size() * points_; }
  /// Coordinates of a row, and where it is in the order of the rows of a profile.
  [[nodiscard]] std::pair<Point, std::int64_t> place(std::int64_t column, std::int64_t point) const {
    const std::array<int, 3> cell = position(column);
    Point x{};
    std::int64_t place = 0;
    std::int64_t stride = 1;
    const auto per_cell = std::ssize(at_.points);
    for (int a = 0; a < grid_.dim(); ++a) {
      if (along_[a]) continue;
      const std::int64_t i = point % per_cell;
      point /= per_cell;
      x[a] = grid_.metric().plane(a, cell[a]) + at_.points[i] * grid_.metric().width(a, cell[a]);
      place += stride * (cell[a] * per_cell + i);
      stride *= count_[a] * per_cell;
    }
    return {x, place};
  }

  /// Calls visit(row, weight, U, P, R, dissipation) for the points of the cells of this rank, where `row` is column
  /// times points plus point; R in the order of Averages::stresses. Columns on several threads.
  template <class Visit>
  void for_points(const Visit& visit) const {
    parallel_for(size(), [&] { return Worker<Visit>(*this, visit); });
  }
  [[nodiscard]] std::int64_t points() const { return points_; }

 private:
  template <class Visit>
  class Worker {
   public:
    Worker(const Columns& columns, const Visit& visit)
        : c_(&columns), visit_(&visit), flow_(columns.averages_.flow), dissipation_(columns.averages_.dissipation) {
      const int dim = c_->grid_.dim();
      for (int a = 0; a < dim; ++a) xi_[a] = (c_->along_[a] ? c_->over_ : c_->at_).points;
      flow_.set_points(xi_);
      dissipation_.set_points(xi_);
      for (const Solution& stress : c_->averages_.stresses) stresses_.emplace_back(stress).set_points(xi_);
      u_.resize(static_cast<std::size_t>(flow_.points()) * dim);
      p_.resize(flow_.points());
      d_.resize(flow_.points());
      r_.assign(stresses_.size(), std::vector<double>(flow_.points()));
    }

    void operator()(std::int64_t column) {
      const Grid& grid = c_->grid_;
      const std::array<int, 3> first = c_->position(column);
      std::array<int, 3> i{};
      for (i[2] = 0; i[2] < c_->depth_[2]; ++i[2]) {
        for (i[1] = 0; i[1] < c_->depth_[1]; ++i[1]) {
          for (i[0] = 0; i[0] < c_->depth_[0]; ++i[0]) {
            const Record cell = grid.at({first[0] + i[0], first[1] + i[1], first[2] + i[2]});
            if (grid.layout().owned_cells().contains(cell)) add(column, cell);
          }
        }
      }
    }

   private:
    void add(std::int64_t column, Record cell) {
      const int dim = c_->grid_.dim();
      flow_.velocity(cell, u_.data());
      flow_.pressure(cell, p_.data());
      dissipation_.pressure(cell, d_.data());
      for (std::size_t s = 0; s < stresses_.size(); ++s) stresses_[s].pressure(cell, r_[s].data());
      const Point widths = c_->grid_.widths(cell);
      std::array<double, 6> stress{};
      for (int q = 0; q < flow_.points(); ++q) {
        double weight = 1.0;
        std::int64_t point = 0;
        std::int64_t stride = 1;
        int rest = q;
        for (int a = 0; a < dim; ++a) {
          const int i = rest % static_cast<int>(xi_[a].size());
          rest /= static_cast<int>(xi_[a].size());
          if (c_->along_[a]) {
            weight *= c_->over_.weights[i] * widths[a];
          } else {
            point += stride * i;
            stride *= std::ssize(xi_[a]);
          }
        }
        Point u{};
        std::copy_n(&u_[static_cast<std::size_t>(q) * dim], dim, u.begin());
        for (std::size_t s = 0; s < stresses_.size(); ++s) stress[s] = r_[s][q];
        (*visit_)(column * c_->points_ + point, weight, u, p_[q], stress, d_[q]);
      }
    }

    const Columns* c_;
    const Visit* visit_;
    CellEvaluator flow_;
    CellEvaluator dissipation_;
    std::vector<CellEvaluator> stresses_{};
    TensorPoints xi_{{{0.0}, {0.0}, {0.0}}};
    std::vector<double> u_;
    std::vector<double> p_;
    std::vector<double> d_;
    std::vector<std::vector<double>> r_{};
  };

  /// Of the first cell of a column.
  [[nodiscard]] std::array<int, 3> position(std::int64_t column) const {
    return {static_cast<int>(column % count_[0]), static_cast<int>(column / count_[0] % count_[1]),
            static_cast<int>(column / count_[0] / count_[1])};
  }

  const Averages& averages_;
  const Grid& grid_;
  std::array<bool, 3> along_;
  Quadrature at_;    // in directions that are left
  Quadrature over_;  // in the others
  std::array<int, 3> count_{1, 1, 1};
  std::array<int, 3> depth_{1, 1, 1};
  std::int64_t points_ = 1;  // of a column
};

}  // namespace

std::size_t Averages::stress_index(int dim, int c, int d) {
  if (c > d) std::swap(c, d);
  return static_cast<std::size_t>(solenoid::stress_index(dim, c, d));
}

std::vector<Gradient> Averages::stress(std::span<const Point> points) const {
  const int dim = flow.grid().dim();
  std::vector<Gradient> result(points.size());
  for (int c = 0; c < dim; ++c) {
    for (int d = c; d < dim; ++d) {
      const std::vector<double> values = stresses[stress_index(dim, c, d)].value(points);
      for (std::size_t i = 0; i < values.size(); ++i) result[i][c][d] = result[i][d][c] = values[i];
    }
  }
  return result;
}

Profile Averages::profile(const std::array<bool, 3>& along) const {
  validate_profile(flow.problem(), along);
  const Grid& grid = flow.grid();
  const int dim = grid.dim();
  const Columns columns(*this, along);
  // Means first, then what differs from them.
  const std::size_t means = 3 + static_cast<std::size_t>(dim);
  std::vector<double> sums(columns.rows() * means, 0.0);
  columns.for_points(
      [&](std::int64_t row, double weight, const Point& u, double p, const auto& /*stress*/, double dissipation) {
        double* const sum = &sums[row * means];
        sum[0] += weight;
        sum[1] += weight * p;
        sum[2] += weight * dissipation;
        for (int c = 0; c < dim; ++c) sum[3 + c] += weight * u[c];
      });
  grid.add_up<double>(sums);
  for (std::int64_t row = 0; row < columns.rows(); ++row) {
    double* const sum = &sums[row * means];
    for (std::size_t i = 1; i < means && sum[0] > 0.0; ++i) sum[i] /= sum[0];
  }
  const std::size_t pairs = stresses.size();
  std::vector<double> squares(columns.rows() * pairs, 0.0);
  columns.for_points(
      [&](std::int64_t row, double weight, const Point& u, double /*p*/, const auto& stress, double /*dissipation*/) {
        const double* const mean = &sums[row * means + 3];
        for (int c = 0; c < dim; ++c) {
          for (int d = c; d < dim; ++d) {
            const std::size_t pair = stress_index(dim, c, d);
            squares[row * pairs + pair] += weight * (stress[pair] + (u[c] - mean[c]) * (u[d] - mean[d]));
          }
        }
      });
  grid.add_up<double>(squares);

  Profile profile;
  for (int a = 0; a < dim; ++a) {
    if (!along[a]) profile.across.push_back(a);
  }
  std::vector<Profile::Row> rows(columns.rows());
  std::vector<char> there(columns.rows(), 0);
  for (std::int64_t column = 0; column < columns.size(); ++column) {
    for (std::int64_t point = 0; point < columns.points(); ++point) {
      const std::int64_t i = column * columns.points() + point;
      const double* const mean = &sums[i * means];
      if (mean[0] == 0.0) continue;
      const auto [x, place] = columns.place(column, point);
      Profile::Row& row = rows[place];
      there[place] = 1;
      row.at = x;
      row.pressure = mean[1];
      row.dissipation = mean[2];
      std::copy_n(mean + 3, dim, row.velocity.begin());
      for (int c = 0; c < dim; ++c) {
        for (int d = 0; d < dim; ++d) {
          row.stress[c][d] = squares[i * pairs + stress_index(dim, c, d)] / mean[0];
        }
      }
    }
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (there[i] != 0) profile.rows.push_back(rows[i]);
  }
  return profile;
}

std::optional<Averages> Averages::gathered() const {
  auto whole = flow.gathered();
  auto whole_dissipation = dissipation.gathered();
  std::vector<Solution> whole_stresses;
  for (const Solution& stress : stresses) {
    if (auto gathered = stress.gathered()) whole_stresses.push_back(std::move(*gathered));
  }
  if (!whole) return {};
  return Averages{start, length, std::move(*whole), std::move(whole_stresses), std::move(*whole_dissipation)};
}

}  // namespace solenoid
