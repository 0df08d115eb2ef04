#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "mesh/grid.hpp"
#include "solenoid/error.hpp"
#include "solenoid/solution.hpp"
#include "solution/cell_evaluator.hpp"
#include "solution/joined.hpp"

namespace solenoid {
namespace {

/// The points of an axis in one cell.
struct Piece {
  int cell = 0;              ///< lattice index
  std::size_t first = 0;     ///< of the axis
  std::vector<double> xi{};  ///< in the cell
};

/// The pieces of an axis, or nothing if a point is outside or, to rounding, on a lattice plane.
std::optional<std::vector<Piece>> pieces_of(const Grid& grid, int direction, std::span<const double> axis) {
  if (direction >= grid.dim()) return std::vector<Piece>{{0, 0, {0.0}}};
  const int extent = grid.extent()[direction];
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < axis.size(); ++i) {
    const double t = grid.metric().lattice_coordinate(direction, axis[i]);
    const double slack = 1e-12 * extent;
    if (!(t > 0.0 && t < extent && std::abs(t - std::round(t)) > slack)) return {};
    const int cell = static_cast<int>(t);
    if (pieces.empty() || pieces.back().cell != cell) pieces.push_back({cell, i});
    pieces.back().xi.push_back(t - cell);
  }
  return pieces;
}

/// Calls visit(cell, points, place) for tensor points in one cell after the other, where `place` has the index of each
/// on the axes. False where that cannot be: some are not inside of a cell.
template <class Visit>
bool for_cells(const Grid& grid, const Axes& axes, const Visit& visit) {
  if (grid.metric().map() != nullptr) return false;  // axes cross cells
  std::array<std::vector<Piece>, 3> pieces;
  for (int a = 0; a < 3; ++a) {
    auto found = pieces_of(grid, a, axes[a]);
    if (!found || (a >= grid.dim() && axes[a].size() != 1)) return false;
    pieces[a] = std::move(*found);
  }
  std::vector<std::size_t> place;
  for (const Piece& z : pieces[2]) {
    for (const Piece& y : pieces[1]) {
      for (const Piece& x : pieces[0]) {
        const auto cell = grid.at({x.cell, y.cell, z.cell});
        if (cell < 0) return false;
        place.clear();
        for (std::size_t k = 0; k < z.xi.size(); ++k) {
          for (std::size_t j = 0; j < y.xi.size(); ++j) {
            const std::size_t row = (z.first + k) * axes[1].size() + y.first + j;
            for (std::size_t i = 0; i < x.xi.size(); ++i) place.push_back(row * axes[0].size() + x.first + i);
          }
        }
        visit(cell, TensorPoints{x.xi, y.xi, z.xi}, place);
      }
    }
  }
  return true;
}

/// at_points(points, values) evaluates the field; in_cell(evaluator, cell, values) fills `components` numbers for each
/// of the evaluator's points, of which that numbered c counts.
template <class AtPoints, class InCell>
ScalarField field(const Solution& s, int components, int c, const AtPoints& at_points, const InCell& in_cell,
                  std::string label) {
  const auto on_grid = [s, components, c, at_points, in_cell](const Axes& axes, std::span<double> values) {
    CellEvaluator evaluator(s);
    std::vector<double> u;
    const bool done = for_cells(s.grid(), axes, [&](std::int64_t cell, const TensorPoints& xi, const auto& place) {
      evaluator.set_points(xi);
      u.resize(place.size() * components);
      in_cell(evaluator, cell, u.data());
      for (std::size_t q = 0; q < place.size(); ++q) values[place[q]] = u[q * components + c];
    });
    if (done) return;
    std::vector<Point> where;
    for (const double z : axes[2]) {
      for (const double y : axes[1]) {
        for (const double x : axes[0]) where.push_back({x, y, z});
      }
    }
    at_points(where, values);
  };
  return {ScalarField::Bulk(at_points), ScalarField::OnGrid(on_grid), std::move(label)};
}

ScalarField scalar_field(const Solution& s, const char* label) {
  return field(
      s, 1, 0,
      [s](std::span<const Point> points, std::span<double> values) {
        std::ranges::copy(s.pressure(points), values.begin());
      },
      [](CellEvaluator& evaluator, std::int64_t cell, double* p) { evaluator.pressure(cell, p); }, label);
}

}  // namespace

Solution Solution::bare() const {
  require_whole(*grid_, "a solution as data");
  Problem problem;
  problem.mesh = problem_.mesh;
  problem.order = problem_.order;
  problem.equation = problem_.equation;
  Solution result = *this;
  result.problem_ = std::move(problem);
  return result;
}

VectorField Solution::velocity_field() const {
  if (problem_.equation == EquationKind::poisson) {
    throw InputError("the solution of Poisson's equation has no velocity: ask for its value_field()");
  }
  const Solution s = bare();
  VectorField result;
  for (int c = 0; c < grid_->dim(); ++c) {
    result[c] = field(
        s, grid_->dim(), c,
        [s, c](std::span<const Point> points, std::span<double> values) {
          const std::vector<Point> u = s.velocity(points);
          for (std::size_t i = 0; i < u.size(); ++i) values[i] = u[i][c];
        },
        [](CellEvaluator& evaluator, std::int64_t cell, double* u) { evaluator.velocity(cell, u); },
        std::string("velocity of a solution, component ") + "xyz"[c]);
  }
  return result;
}

ScalarField Solution::pressure_field() const {
  if (problem_.equation == EquationKind::poisson) {
    throw InputError("the solution of Poisson's equation has no pressure: ask for its value_field()");
  }
  return scalar_field(bare(), "pressure of a solution");
}

ScalarField Solution::value_field() const {
  if (problem_.equation != EquationKind::poisson) {
    throw InputError("a flow has no value: ask for its velocity_field() or pressure_field()");
  }
  return scalar_field(bare(), "value of a solution");
}

}  // namespace solenoid
