#include "solver/mac/scheme.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/parallel.hpp"

namespace solenoid {
namespace {

constexpr std::int32_t none = -1;

/// Weights of differences between neighbours and at walls.
struct Weights {
  double interior;
  double wall;

  [[nodiscard]] double of(Face face) const {
    return face == Face::interior ? interior : face == Face::velocity ? wall : 0.0;
  }
};

Weights weights_of(const Equation& equation) { return equation.order == 0 ? Weights{1.0, 2.0} : Weights{1.5, 6.0}; }

/// [row]: the place of each node's value in a vector of the level.
template <class Place>
Unset<std::int64_t> places_of(const Level& level, const RowOrder& order, const Place& place) {
  Unset<std::int64_t> index;
  fill(index, order.rows(), level.index(level.grid.layout().null(), 0));
  parallel_ranges({std::ssize(order.row)}, [&](CellRange range, std::int64_t) {
    for (std::int64_t node = range.begin; node < range.end; ++node) index[order.row[node]] = place(node);
  });
  return index;
}

}  // namespace

MacScheme::MacScheme(const Level& level) : level_(level) {
  number_faces();
  cells_ = cells_as_nodes(level_);
  connect();
}

void MacScheme::number_faces() {
  const Grid& grid = level_.grid;
  const VectorLayout& layout = grid.layout();
  const int dim = grid.dim();
  for (int a = 0; a < dim; ++a) {
    faces_.lattice.periodic[a] = grid.periodic()[a];
    faces_.lattice.extent[a] = grid.extent()[a] + (grid.periodic()[a] ? 0 : 1);
  }
  // Of each component those of the records in their order.
  const auto has_unknown = [&](Record r, int c) {
    return layout.is_cell(r) ? !normal_fixed(grid.face(r, 2 * c)) : c == grid.hat_direction(r);
  };
  const Ranges records{layout.records().size()};
  std::vector<std::int64_t> first(dim * records.number() + 1, 0);  // [component][range of records]
  const auto for_unknowns = [&](const auto& visit) {
    parallel_ranges(records, [&](CellRange range, std::int64_t i) {
      for (int c = 0; c < dim; ++c) {
        std::int64_t node = first[c * records.number() + i];
        for (auto r = static_cast<Record>(range.begin); r < range.end; ++r) {
          if (has_unknown(r, c)) visit(r, c, node++);
        }
      }
    });
  };
  std::vector<std::int64_t> counts(first.size(), 0);
  parallel_ranges(records, [&](CellRange range, std::int64_t i) {
    for (int c = 0; c < dim; ++c) {
      for (auto r = static_cast<Record>(range.begin); r < range.end; ++r) {
        counts[c * records.number() + i + 1] += has_unknown(r, c) ? 1 : 0;
      }
    }
  });
  std::partial_sum(counts.begin(), counts.end(), first.begin());
  faces_.places.resize(first.back());
  record_of_face_.resize(first.back());
  for_unknowns([&](Record r, int c, std::int64_t node) {
    const bool cell = layout.is_cell(r);
    NodePlace place{grid.position(cell ? r : grid.neighbour(r, 2 * c)), c};
    if (!cell) ++place.at[c];
    faces_.places[node] = place;
    record_of_face_[node] = r;
  });
  faces_.order = RowOrder(faces_.lattice, faces_.places);
  for (int c = 0; c < dim; ++c) fill(row_of_hat_[c], layout.storage(), none);
  for_unknowns([&](Record r, int c, std::int64_t node) { row_of_hat_[c][r] = faces_.order.row[node]; });
  const int block = power(level_.equation.n(), dim);
  faces_.index = places_of(level_, faces_.order, [&](std::int64_t node) {
    return level_.index(record_of_face_[node], faces_.places[node].field * block);
  });
}

void MacScheme::connect() {
  const Grid& grid = level_.grid;
  const VectorLayout& layout = grid.layout();
  const int dim = grid.dim();
  const Point h = grid.metric().uniform_width();
  const auto cell_row = [&](Record r) { return layout.is_cell(r) ? cells_.order.row[r] : cells_.rows(); };
  for (auto& cells : cell_of_face_) fill(cells, faces_.rows(), cells_.rows());
  fill(inverse_width_, faces_.rows() + SparseFormat::slice, 0.0);
  parallel_ranges({std::ssize(record_of_face_)}, [&](CellRange range, std::int64_t) {
    for (std::int64_t node = range.begin; node < range.end; ++node) {
      const Record r = record_of_face_[node];
      const int c = faces_.places[node].field;
      const std::int32_t row = faces_.order.row[node];
      cell_of_face_[0][row] = cell_row(grid.neighbour(r, 2 * c));
      cell_of_face_[1][row] = cell_row(r);
      inverse_width_[row] = level_.coefficients.coupling / h[c];
    }
  });
  for (int side = 0; side < 2 * dim; ++side) fill(face_of_cell_[side], cells_.rows(), faces_.rows());
  parallel_ranges({layout.cells().size()}, [&](CellRange range, std::int64_t) {
    for (auto cell = static_cast<Record>(range.begin); cell < range.end; ++cell) {
      for (int side = 0; side < 2 * dim; ++side) {
        const std::int32_t face = row(side % 2 == 0 ? cell : grid.neighbour(cell, side), side / 2);
        if (face != none) face_of_cell_[side][cells_.order.row[cell]] = face;
      }
    }
  });
}

SparseRows MacScheme::velocity_matrix(double more) const {
  const Grid& grid = level_.grid;
  const int dim = grid.dim();
  const Point h = grid.metric().uniform_width();
  const Weights weights = weights_of(level_.equation);
  const double viscosity = level_.coefficients.viscosity;
  const double reaction = level_.coefficients.reaction + more;
  return make_rows(faces_.order, [&](std::int64_t node, RowBuilder& builder) {
    const Record record = record_of_face_[node];
    const int c = faces_.places[node].field;
    const std::int32_t own = faces_.order.row[node];
    const auto add = [&](std::int32_t column, double value) {
      if (column != none) builder.add(column, value);
    };
    // What each of the two cells of the face adds, which is its upper (0) or its lower one (1).
    for (int end = 0; end < 2; ++end) {
      const Record cell = end == 0 ? record : grid.neighbour(record, 2 * c);
      if (!grid.layout().is_cell(cell)) continue;
      const double stretch = viscosity / (h[c] * h[c]);
      add(own, stretch + 0.5 * reaction);
      add(end == 0 ? row(grid.neighbour(cell, 2 * c + 1), c) : row(cell, c), -stretch);
      for (int side = 0; side < 2 * dim; ++side) {
        const int a = side / 2;
        if (a == c) continue;
        const Face face = grid.face(cell, side);
        const double shear = 0.5 * weights.of(face) * viscosity / (h[a] * h[a]);
        add(own, shear);
        if (face != Face::interior) continue;
        const Record beside = grid.neighbour(cell, side);
        add(row(end == 0 ? beside : grid.neighbour(beside, 2 * c + 1), c), -shear);
      }
    }
  });
}

template <class T>
SparseRows MacScheme::pressure_matrix(const std::vector<T>& weight) const {
  const int dim = level_.grid.dim();
  return make_rows(cells_.order, [&](std::int64_t node, RowBuilder& builder) {
    const std::int32_t own = cells_.order.row[node];
    for (int side = 0; side < 2 * dim; ++side) {
      const std::int32_t face = face_of_cell_[side][own];
      if (face == faces_.rows()) continue;
      const std::int32_t other = cell_of_face_[side % 2][face];
      if (other == own) continue;  // a ring of one cell
      const double entry = static_cast<double>(weight[face]) * inverse_width_[face] * inverse_width_[face];
      builder.add_diagonal(entry);
      if (other != cells_.rows()) builder.add(other, -entry);
    }
  });
}

template SparseRows MacScheme::pressure_matrix(const std::vector<float>&) const;
template SparseRows MacScheme::pressure_matrix(const std::vector<double>&) const;

MacScheme::Nodes cells_as_nodes(const Level& level) {
  const Grid& grid = level.grid;
  MacScheme::Nodes cells;
  cells.lattice = {grid.extent(), grid.periodic()};
  cells.places.resize(grid.layout().cells().size());
  parallel_ranges({std::ssize(cells.places)}, [&](CellRange range, std::int64_t) {
    for (auto cell = static_cast<Record>(range.begin); cell < range.end; ++cell) {
      cells.places[cell] = {grid.position(cell), 0};
    }
  });
  cells.order = RowOrder(cells.lattice, cells.places);
  const int scalar = level.equation.velocities() * power(level.equation.n(), grid.dim());
  cells.index =
      places_of(level, cells.order, [&](std::int64_t cell) { return level.index(static_cast<Record>(cell), scalar); });
  return cells;
}

SparseRows scalar_matrix(const Level& level, const RowOrder& cells) {
  const Grid& grid = level.grid;
  const Point h = grid.metric().uniform_width();
  const Weights weights = weights_of(level.equation);
  return make_rows(cells, [&](std::int64_t cell, RowBuilder& builder) {
    builder.add_diagonal(level.coefficients.reaction);
    for (int side = 0; side < 2 * grid.dim(); ++side) {
      const Face face = grid.face(static_cast<Record>(cell), side);
      const double jump = weights.of(face) * level.coefficients.viscosity / (h[side / 2] * h[side / 2]);
      builder.add_diagonal(jump);
      if (face == Face::interior) builder.add(cells.row[grid.neighbour(static_cast<Record>(cell), side)], -jump);
    }
  });
}

}  // namespace solenoid
