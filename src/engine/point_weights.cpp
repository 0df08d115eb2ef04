#include "engine/point_weights.hpp"

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "base/parallel.hpp"

namespace solenoid {
namespace {

/// Of one level.
class Weights {
 public:
  explicit Weights(const Level& level)
      : level_(level),
        viscosity_(level.coefficients.by_cell->viscosity),
        points_(*level.coefficients.by_cell->points),
        mine_(points_.on_face()),
        its_(points_.on_face()) {}

  /// Those of a cell, `interleave` apart.
  void write(Record cell, float* to) {
    const double mean = viscosity_[cell];
    const double* const inside = points_.of_cell(cell);
    for (int q = 0; q < points_.in_cell(); ++q, to += interleave) *to = viscosity_difference(inside[q], mean);
    for (int side = 0; side < 2 * level_.equation.dim; ++side) {
      const double of_face = make_face(cell, side);
      for (int q = 0; q < points_.on_face(); ++q, to += interleave) {
        *to = viscosity_difference(mine_[place(side / 2, q)], of_face);
      }
    }
  }

 private:
  /// nu_F at the points of a face, in `mine_`; returns that of the means.
  double make_face(Record cell, int side) {
    const Face face = level_.grid.face(cell, side);
    if (face == Face::interior) {
      const Record behind = level_.grid.neighbour(cell, side);
      points_.trace(cell, side, mine_.data());
      points_.trace(behind, side ^ 1, its_.data());
      for (std::size_t q = 0; q < mine_.size(); ++q) mine_[q] = face_viscosity(mine_[q], its_[q]);
      return face_viscosity(viscosity_[cell], viscosity_[behind]);
    }
    if (face == Face::velocity) {
      points_.trace(cell, side, mine_.data());
      return viscosity_[cell];
    }
    mine_.assign(mine_.size(), 0.0);
    return 0.0;
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
  std::vector<double> mine_;
  std::vector<double> its_;
};

}  // namespace

ViscosityTables make_viscosity_tables(const Level& level) {
  const Equation& equation = level.equation;
  ViscosityTables tables{
      make_point_tables(equation.order, viscosity_points(equation.order)), equation.penalty(1.0), {}};
  for (int a = 0; a < equation.dim; ++a) tables.inverse_h[a] = 1.0 / level.grid.metric().uniform_width()[a];
  return tables;
}

std::vector<float> point_weights(const Level& level) {
  const int size = point_weights_of_cell(level.equation.dim, level.equation.order);
  const RecordRange cells = level.grid.layout().near_cells();
  const std::int64_t blocks = (std::int64_t{cells.size()} + interleave - 1) / interleave;
  std::vector<float> result(static_cast<std::size_t>(blocks) * interleave * size);
  parallel_ranges({cells.size()}, [&](CellRange range, std::int64_t) {
    Weights weights(level);
    for (auto cell = static_cast<Record>(range.begin); cell < range.end; ++cell) {
      weights.write(cell, &result[record_offset(cell, size)]);
    }
  });
  return result;
}

}  // namespace solenoid
