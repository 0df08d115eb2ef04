#include "solution/transfer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <span>
#include <utility>

#include "base/parallel.hpp"
#include "element/basis.hpp"
#include "mesh/places.hpp"
#include "mesh/record.hpp"
#include "solenoid/error.hpp"
#include "solution/joined.hpp"
#include "solution/univariate.hpp"

namespace solenoid {
namespace {

/// One direction of two lattices on the same interval: one cell is as wide as `ratio` cells of the other lattice.
struct Direction {
  int ratio = 1;
  bool refines = true;  ///< whether target cells are the narrow ones
  /// [place of the narrow cell in the wide one]: from the functions of a source cell to their part of those of a target
  /// cell. P: lower hat, bubbles, upper hat.
  std::vector<UnivariateMatrix> continuous;
  std::vector<UnivariateMatrix> legendre;

  [[nodiscard]] int first_source(int target) const { return refines ? target / ratio : target * ratio; }
  [[nodiscard]] int sources() const { return refines ? 1 : ratio; }
  /// Which of the matrices is for the source cell first_source(target) + i.
  [[nodiscard]] int matrix(int target, int i) const { return refines ? target % ratio : i; }
};

Direction make_direction(int source_extent, int target_extent, int source_order, int target_order) {
  Direction d;
  d.refines = target_extent >= source_extent;
  d.ratio = d.refines ? target_extent / source_extent : source_extent / target_extent;
  const double widths = d.refines ? 1.0 / d.ratio : d.ratio;  // target / source
  const Quadrature rule = gauss(std::max(source_order, target_order) + 2);
  for (int place = 0; place < d.ratio; ++place) {
    // Coordinates in the cells of a point of the narrow one.
    const auto in_wide = [&](double x) { return (place + x) / d.ratio; };
    const auto in_source = [&](double x) { return d.refines ? in_wide(x) : x; };
    const auto in_target = [&](double x) { return d.refines ? x : in_wide(x); };
    const double measure = d.refines ? 1.0 : 1.0 / d.ratio;  // of the narrow cell, in the target cell

    auto o = UnivariateMatrix::zero(target_order + 1, source_order + 1);
    auto p = UnivariateMatrix::zero(target_order + 2, source_order + 2);
    for (std::size_t q = 0; q < rule.points.size(); ++q) {
      const auto psi = legendre(target_order, in_target(rule.points[q]));
      const auto value = legendre(source_order, in_source(rule.points[q]));
      const auto slope = continuous(source_order, in_source(rule.points[q]), 1);
      const double weight = rule.weights[q] * measure;
      for (int i = 0; i < o.rows; ++i) {
        for (int j = 0; j < o.columns; ++j) o(i, j) += weight * std::sqrt(widths) * psi[i] * value[j];
      }
      for (int i = 1; i <= target_order; ++i) {
        for (int j = 0; j < p.columns; ++j) p(i, j) += weight * widths * std::sqrt(widths) * psi[i] * slope[j];
      }
    }
    const bool has_lower = d.refines || place == 0;
    const bool has_upper = d.refines || place == d.ratio - 1;
    const auto lower = continuous(source_order, in_source(0.0));
    const auto upper = continuous(source_order, in_source(1.0));
    for (int j = 0; j < p.columns; ++j) {
      if (has_lower) p(0, j) = std::sqrt(widths) * lower[j];
      if (has_upper) p(target_order + 1, j) = std::sqrt(widths) * upper[j];
    }
    d.legendre.push_back(std::move(o));
    d.continuous.push_back(std::move(p));
  }
  return d;
}

/// From a solution to the cells of another grid. One object serves one thread.
class Transfer {
 public:
  Transfer(const Solution& solution, const Grid& target, int order)
      : source_(solution.grid()),
        target_(target),
        values_(solution.coefficients()),
        dim_(target.dim()),
        source_order_(solution.problem().order),
        target_order_(order),
        velocities_(velocity_components(solution.problem().equation, dim_)),
        source_record_(record_size(dim_, source_order_, solution.problem().equation)) {
    for (int a = 0; a < dim_; ++a) {
      directions_[a] = make_direction(source_.extent()[a], target_.extent()[a], source_order_, target_order_);
    }
  }

  /// Whether cells and functions are the same.
  [[nodiscard]] bool copies() const { return source_order_ == target_order_ && source_.extent() == target_.extent(); }
  /// Target cells in which a source cell has a part, and source cells that have a part in a target cell.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> overlap() const {
    std::pair<std::int64_t, std::int64_t> counts{1, 1};
    for (int a = 0; a < dim_; ++a) (directions_[a].refines ? counts.first : counts.second) *= directions_[a].ratio;
    return counts;
  }
  /// Whether the whole target cell is in the source's domain.
  [[nodiscard]] bool covered(Record cell) const {
    bool all = true;
    for_sources(cell, [&](Record source, const auto&) { all = all && source >= 0; });
    return all;
  }

  /// visit(field, values) for the fields of a target cell: of a velocity n^(dim-1) times lower hat, bubbles, upper hat,
  /// its own direction slowest, as in a record.
  template <class Visit>
  void for_fields(Record cell, const Visit& visit) {
    for (int field = 0; field <= velocities_; ++field) {
      const bool velocity = field < velocities_;
      const auto order = velocity ? own_direction_last(field) : std::array{0, 1, 2};
      sum_.clear();
      for_sources(cell, [&](Record source, const std::array<int, 3>& matrix) {
        load(source, field);
        if (!copies()) {
          for (int i = 0; i < dim_; ++i) {
            const Direction& d = directions_[order[i]];
            const auto& table = (velocity && order[i] == field ? d.continuous : d.legendre)[matrix[order[i]]];
            contract(table, power(target_order_ + 1, i), work_, next_);
            work_.swap(next_);
          }
        }
        if (sum_.empty()) {
          sum_ = work_;
        } else {
          for (std::size_t i = 0; i < sum_.size(); ++i) sum_[i] += work_[i];
        }
      });
      visit(field, sum_);
    }
  }

 private:
  [[nodiscard]] std::array<int, 3> own_direction_last(int c) const {
    if (dim_ == 2) return {1 - c, c, 2};
    return {(c + 1) % 3, (c + 2) % 3, c};
  }

  /// visit(source cell or -1, matrix of each direction)
  template <class Visit>
  void for_sources(Record cell, const Visit& visit) const {
    const auto& position = target_.position(cell);
    std::array<int, 3> count{1, 1, 1};
    for (int a = 0; a < dim_; ++a) count[a] = directions_[a].sources();
    std::array<int, 3> i{};
    for (i[2] = 0; i[2] < count[2]; ++i[2]) {
      for (i[1] = 0; i[1] < count[1]; ++i[1]) {
        for (i[0] = 0; i[0] < count[0]; ++i[0]) {
          std::array<int, 3> at{0, 0, 0};
          std::array<int, 3> matrix{0, 0, 0};
          for (int a = 0; a < dim_; ++a) {
            at[a] = directions_[a].first_source(position[a]) + i[a];
            matrix[a] = directions_[a].matrix(position[a], i[a]);
          }
          visit(source_.at(at), matrix);
        }
      }
    }
  }

  /// `work_` = the values of a field in a source cell, with the upper hats of a velocity.
  void load(Record cell, int field) {
    const int block = power(source_order_ + 1, dim_);
    work_.clear();
    const auto append = [&](Record record, int count) {
      const double* from = values_.data() + record_offset(record, source_record_);
      for (int i = 0; i < count; ++i) work_.push_back(from[interleave * (field * block + i)]);
    };
    append(cell, block);
    if (field < velocities_) append(source_.neighbour(cell, 2 * field + 1), power(source_order_ + 1, dim_ - 1));
  }

  const Grid& source_;
  const Grid& target_;
  std::span<const double> values_;
  int dim_;
  int source_order_;
  int target_order_;
  int velocities_;
  int source_record_;
  std::array<Direction, 3> directions_{};
  std::vector<double> work_{};
  std::vector<double> next_{};
  std::vector<double> sum_{};
};

/// Whether cells are boxes, or parallelepipeds with edges in the same directions from the same point.
bool same_map(const AffineMap* one, const AffineMap* other) {
  if (one == nullptr || other == nullptr) return one == other;
  constexpr double tolerance = 1e-10;
  for (int a = 0; a <= one->dim(); ++a) {
    Point xi{};
    if (a < one->dim()) xi[a] = 1.0;
    const Point x = one->at(xi);
    const Point y = other->at(xi);
    for (int i = 0; i < 3; ++i) {
      if (!(std::abs(x[i] - y[i]) <= tolerance * std::max(1.0, std::abs(x[i])))) return false;
    }
  }
  return true;
}

/// \throws InputError unless both lattices lie on one box and one cuts the cells of the other, in each direction.
void check_lattices(const Grid& source, const Grid& target, const std::string& what) {
  if (source.dim() != target.dim()) {
    throw InputError(
        fmt::format("{}: it is {}-dimensional, the problem is {}-dimensional", what, source.dim(), target.dim()));
  }
  if (!same_map(source.metric().map(), target.metric().map())) {
    throw InputError(
        fmt::format("{}: its domain is of another shape than that of the problem, by the edges of cells or "
                    "where they begin; expected the same domain",
                    what));
  }
  for (int a = 0; a < source.dim(); ++a) {
    const auto ends = [a](const Grid& grid) {
      return std::pair{grid.metric().plane(a, 0), grid.metric().plane(a, grid.extent()[a])};
    };
    const auto [lower, upper] = ends(target);
    const auto [source_lower, source_upper] = ends(source);
    const double tolerance = 1e-10 * (upper - lower);
    if (!(std::abs(lower - source_lower) <= tolerance && std::abs(upper - source_upper) <= tolerance)) {
      throw InputError(
          fmt::format("{}: in {} its domain lies from {:.6g} to {:.6g}, that of the problem from {:.6g} to "
                      "{:.6g}; expected the same domain",
                      what, "xyz"[a], source_lower, source_upper, lower, upper));
    }
    const int from = source.extent()[a];
    const int to = target.extent()[a];
    if (from % to != 0 && to % from != 0) {
      throw InputError(
          fmt::format("{}: it has {} cells in {}, the problem has {}; expected the same number, a multiple "
                      "or a whole part of it",
                      what, from, "xyz"[a], to));
    }
  }
}

}  // namespace

HostVector unknowns_on(const Solution& solution, const Grid& grid, int order, const std::string& what) {
  require_whole(solution.grid(), what);
  check_lattices(solution.grid(), grid, what);
  const EquationKind equation = solution.problem().equation;
  const int dim = grid.dim();
  const int record = record_size(dim, order, equation);
  const int block = power(order + 1, dim);
  const int velocities = velocity_components(equation, dim);

  const Transfer transfer(solution, grid, order);
  const Ranges cells{grid.layout().owned_cells().size(), 1024};
  const auto [targets, sources] = transfer.overlap();
  std::atomic<bool> same = grid.cell_count() * sources == solution.grid().cell_count() * targets;
  parallel_ranges(cells, [&](CellRange range, std::int64_t) {
    for (auto cell = static_cast<Record>(range.begin); cell < range.end && same; ++cell) {
      if (!transfer.covered(cell)) same = false;
    }
  });
  if (!same) throw InputError(what + ": its domain is not that of the problem: the holes differ");

  HostVector x = zeros(std::int64_t{grid.layout().storage()} * record);
  std::atomic<bool> finite = true;
  const auto store = [&](Record r, const auto& values) {
    for_each_unknown_of(grid, order, equation, r, [&](int i) {
      const double value = values(i);
      if (!std::isfinite(value)) finite = false;
      x[record_offset(r, record) + std::int64_t{interleave} * i] = value;
    });
  };
  parallel_for(cells.number(), [&] {
    return [&, transfer = Transfer(transfer), own = std::vector<double>(record)](std::int64_t number) mutable {
      const CellRange range = cells[number];
      for (auto cell = static_cast<Record>(range.begin); cell < range.end; ++cell) {
        transfer.for_fields(cell, [&](int field, const std::vector<double>& values) {
          std::copy_n(values.begin(), block, own.begin() + std::ptrdiff_t{field} * block);
          if (field == velocities) return;
          const Record behind = grid.neighbour(cell, 2 * field + 1);
          if (!grid.layout().is_hat(behind)) return;
          store(behind, [&](int i) { return values[i - field * block + block]; });
        });
        store(cell, [&](int i) { return own[i]; });
      }
    };
  });
  if (!finite) throw InputError(what + ": it is not finite");
  return x;
}

HostVector coefficients_on(const Solution& solution, const Grid& grid, int order, const std::string& what) {
  const Grid& source = solution.grid();
  require_whole(source, what);
  check_lattices(source, grid, what);
  if (source.extent() != grid.extent() || solution.problem().order != order ||
      source.cell_count() != grid.cell_count()) {
    throw InputError(
        fmt::format("{}: expected the cells and the order {} of the problem; leave the averages out", what, order));
  }
  const EquationKind equation = solution.problem().equation;
  const int record = record_size(grid.dim(), order, equation);
  HostVector x = zeros(std::int64_t{grid.layout().storage()} * record);
  std::atomic<bool> same = true;
  std::atomic<bool> finite = true;
  const auto copy = [&](Record from, Record to) {
    const double* const source_values = solution.coefficients().data() + record_offset(from, record);
    double* const values = &x[record_offset(to, record)];
    for (int i = 0; i < record; ++i) {
      values[interleave * i] = source_values[interleave * i];
      if (!std::isfinite(values[interleave * i])) finite = false;
    }
  };
  parallel_ranges({grid.layout().cells().size(), 1024}, [&](CellRange range, std::int64_t) {
    for (auto cell = static_cast<Record>(range.begin); cell < range.end; ++cell) {
      const auto& [i, j, k] = grid.position(cell);
      const Record from = source.at({i, j, k});
      if (from < 0) {
        same = false;
        continue;
      }
      copy(from, cell);
      for (int c = 0; c < velocity_components(equation, grid.dim()); ++c) {
        const Record above = grid.neighbour(cell, 2 * c + 1);
        const Record from_above = source.neighbour(from, 2 * c + 1);
        if (grid.layout().is_hat(above) && source.layout().is_hat(from_above)) copy(from_above, above);
      }
    }
  });
  if (!same) throw InputError(what + ": its domain is not that of the problem: the holes differ");
  if (!finite) throw InputError(what + ": it is not finite");
  return x;
}

}  // namespace solenoid
