#include "engine/point_weights.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "base/parallel.hpp"
#include "base/unset.hpp"
#include "problem/affine_map.hpp"

namespace solenoid {
namespace {

/// nu at the points of the faces of all cells, seen from inside: [cell][side][point].
class Traces {
 public:
  explicit Traces(const Level& level)
      : sides_(2 * level.equation.dim), on_face_(level.coefficients.by_cell->points->on_face()) {
    const ViscosityPoints& points = *level.coefficients.by_cell->points;
    const auto cells = static_cast<std::int64_t>(level.grid.layout().cells().size());
    values_.resize(cells * sides_ * on_face_);
    parallel_ranges({cells}, [&](CellRange range, std::int64_t) {
      for (auto cell = range.begin; cell < range.end; ++cell) {
        points.traces(static_cast<Record>(cell), &values_[cell * sides_ * on_face_]);
      }
    });
  }
  [[nodiscard]] const double* of(Record cell, int side) const {
    return &values_[(std::int64_t{cell} * sides_ + side) * on_face_];
  }

 private:
  int sides_;
  int on_face_;
  Unset<double> values_;
};

/// Of one level.
class Weights {
 public:
  explicit Weights(const Level& level)
      : level_(level),
        viscosity_(level.coefficients.by_cell->viscosity),
        points_(*level.coefficients.by_cell->points),
        traces_(level) {}

  /// Those of a cell, `interleave` apart.
  void write(Record cell, float* to) const {
    const double mean = viscosity_[cell];
    const double* const inside = points_.of_cell(cell);
    for (int q = 0; q < points_.in_cell(); ++q, to += interleave) *to = viscosity_difference(inside[q], mean);
    for (int side = 0; side < 2 * level_.equation.dim; ++side) {
      write_face(cell, side, to);
      to += points_.on_face() * interleave;
    }
  }

 private:
  void write_face(Record cell, int side, float* to) const {
    const Face face = level_.grid.face(cell, side);
    const double* const mine = traces_.of(cell, side);
    if (face == Face::interior) {
      const Record behind = level_.grid.neighbour(cell, side);
      const double* const its = traces_.of(behind, side ^ 1);
      const double mean = face_viscosity(viscosity_[cell], viscosity_[behind]);
      for_points(side, to, [&](int at) { return viscosity_difference(face_viscosity(mine[at], its[at]), mean); });
    } else if (face == Face::velocity) {
      for_points(side, to, [&](int at) { return viscosity_difference(mine[at], viscosity_[cell]); });
    } else {
      for_points(side, to, [](int) { return 0.0F; });
    }
  }
  /// number(where traces have it) for each point of a face.
  template <class Number>
  void for_points(int side, float* to, const Number& number) const {
    for (int q = 0; q < points_.on_face(); ++q) to[q * interleave] = number(place(side / 2, q));
  }
  /// Where traces have point q of a face across a, whose directions count from a + 1 on: the lowest one first.
  [[nodiscard]] int place(int a, int q) const {
    if (level_.equation.dim < 3 || a != 1) return q;
    const int m = points_.per_direction();
    return q / m + q % m * m;
  }

  const Level& level_;
  const std::vector<double>& viscosity_;
  const ViscosityPoints& points_;
  Traces traces_;
};

}  // namespace

ViscosityTables make_viscosity_tables(const Level& level) {
  const Equation& equation = level.equation;
  ViscosityTables tables{};
  tables.functions = make_point_tables(equation.order, viscosity_points(equation.order));
  tables.penalty = equation.penalty(1.0);
  for (int a = 0; a < equation.dim; ++a) tables.inverse_h[a] = 1.0 / level.grid.metric().uniform_width()[a];
  if (const AffineMap* const map = level.grid.metric().map(); map != nullptr) {
    for (int a = 0; a < equation.dim; ++a) {
      for (int b = 0; b < equation.dim; ++b) {
        tables.metric[a][b] = map->metric()[a][b];
        tables.inverse[a][b] = map->inverse_metric()[a][b] / map->jacobian();
      }
    }
    tables.turned = 1.0 / map->jacobian();
  }
  return tables;
}

Unset<float> point_weights(const Level& level) {
  const int size = point_weights_of_cell(level.equation.dim, level.equation.order);
  const RecordRange cells = level.grid.layout().near_cells();
  const std::int64_t blocks = (std::int64_t{cells.size()} + interleave - 1) / interleave;
  Unset<float> result(static_cast<std::size_t>(blocks) * interleave * size);
  if (blocks > 0) std::fill(result.end() - interleave * size, result.end(), 0.0F);  // more than there are cells
  const Weights weights(level);
  parallel_ranges({cells.size()}, [&](CellRange range, std::int64_t) {
    for (auto cell = static_cast<Record>(range.begin); cell < range.end; ++cell) {
      weights.write(cell, &result[record_offset(cell, size)]);
    }
  });
  return result;
}

}  // namespace solenoid
