#pragma once
/// \file
/// SparseAssembly by data-parallel steps, written once for all engines: functions of an index, called for all of a
/// range in any order. What several of them write to one place is joined by operations whose order does not matter, so
/// that results are the same every time.
///
/// A Backend has
///     for_all(count, f)               f(i) for i in [0, count)
///     sum_before(count, x)            x[i] becomes x[0] + ... + x[i - 1], i in [0, count]; x[count] counts as 0
///     topology(level)                 CellTopology of a level in the engine's memory
///     view(span)                      an object whose data() has these numbers in the engine's memory
///     fetch<T>(pointer)               a number of the engine's memory

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "base/anywhere.hpp"
#include "engine/assembly_rows.hpp"
#include "engine/kernel_data.hpp"
#include "engine/mac_stencil.hpp"

namespace solenoid::assembly {

template <class Backend>
class Assembly final : public SparseAssembly {
 public:
  template <class... Arguments>
  explicit Assembly(Engine& engine, Arguments&&... arguments)
      : engine_(engine), backend_(engine, std::forward<Arguments>(arguments)...) {}

  MacScheme scheme(const Level& level) override;
  AssembledMatrix velocity_matrix(const Level& level, const MacScheme& scheme, double reaction) override;
  AssembledMatrix pressure_matrix(const MacScheme& scheme, const double* weight) override;
  MacNodes cells(const Level& level) override;
  AssembledMatrix scalar_matrix(const Level& level, const MacNodes& cells) override;
  Aggregation aggregate(const SparseRows& rows, const AssembledMatrix& matrix, Merge merge) override;
  Coarsened coarsen(const SparseRows& rows, const AssembledMatrix& matrix, const Aggregation& aggregation,
                    std::int32_t solved_from) override;

  void round_entries(const SparseRows& rows, AssembledMatrix& matrix, std::uint16_t* value) override {
    const std::int64_t* const begin = matrix.begin.data();
    const double* const exact = matrix.value.data();
    double* const diagonal = matrix.diagonal.data();
    backend_.for_all(rows.count(), [=] SOLENOID_ANYWHERE(std::int64_t i) {
      double left = 0.0;
      for (std::int64_t e = begin[i / slice] + i % slice; e < begin[i / slice + 1]; e += slice) {
        value[e] = rounded_entry(exact[e]);
        left += exact[e] - entry_value<double>(value[e]);
      }
      diagonal[i] += left;
    });
  }
  void dense(const SparseRows& rows, const AssembledMatrix& matrix, std::int64_t count, const std::int64_t* row,
             double* dense) override {
    Vector<std::int32_t> number(engine_, rows.storage());
    std::int32_t* const number_of = number.data();
    backend_.for_all(count,
                     [=] SOLENOID_ANYWHERE(std::int64_t i) { number_of[row[i]] = static_cast<std::int32_t>(i); });
    const Entries entries(rows, matrix);
    const double* const diagonal = matrix.diagonal.data();
    backend_.for_all(count, [=] SOLENOID_ANYWHERE(std::int64_t i) {
      double* const to = dense + i * count;
      const double own = diagonal[row[i]];
      to[i] = own == 0.0 ? 1.0 : own;
      entries.for_row(row[i], [&](std::int32_t column, double value) { to[number_of[column]] = value; });
    });
    engine_.synchronise();
  }
  void ones(const SparseRows& rows, double* y) override {
    const NodePlace* const place = rows.place.data();
    backend_.for_all(rows.count(), [=] SOLENOID_ANYWHERE(std::int64_t i) { y[i] = place[i].field < 0 ? 0.0 : 1.0; });
  }
  void bound_below(const SparseRows& rows, double bound, const double* x, double* y) override {
    const NodePlace* const place = rows.place.data();
    backend_.for_all(rows.count(), [=] SOLENOID_ANYWHERE(std::int64_t i) {
      if (place[i].field >= 0 && y[i] < bound / x[i]) y[i] = bound / x[i];
    });
  }
  void invert(std::int64_t count, const double* x, double* y) override {
    backend_.for_all(count, [=] SOLENOID_ANYWHERE(std::int64_t i) { y[i] = x[i] > 0.0 ? 1.0 / x[i] : 0.0; });
  }
  void convert(std::int64_t count, const double* x, float* y) override { copy(count, x, y); }
  void convert(std::int64_t count, const double* x, double* y) override { copy(count, x, y); }
  void convert(std::int64_t count, const float* x, double* y) override { copy(count, x, y); }

  // Steps are in public functions, as nvcc asks for.
  template <class S, class T>
  void copy(std::int64_t count, const S* x, T* y) {
    backend_.for_all(count, [=] SOLENOID_ANYWHERE(std::int64_t i) { y[i] = static_cast<T>(x[i]); });
  }
  template <class T>
  void fill(Vector<T>& values, std::int64_t count, T value) {
    values = Vector<T>(engine_, std::max<std::int64_t>(1, count));
    T* const x = values.data();
    backend_.for_all(count, [=] SOLENOID_ANYWHERE(std::int64_t i) { x[i] = value; });
  }
  /// Numbers the i in [0, count) that are nodes, colour by colour: rows.place and row[i], none where there is none.
  /// place_of(i) is its place, of field -1 where i is no node.
  template <class PlaceOf>
  Vector<std::int32_t> number(std::int64_t count, int layers, const PlaceOf& place_of, SparseRows& rows);
  /// [record]: the row of a cell; the null row of other records.
  Vector<std::int32_t> rows_of_records(const MacNodes& cells, const CellTopology& topology) {
    Vector<std::int32_t> rows;
    fill(rows, topology.null + 1, cells.rows.count());
    std::int32_t* const row = rows.data();
    const std::int32_t* const record = cells.record.data();
    backend_.for_all(cells.rows.count(), [=] SOLENOID_ANYWHERE(std::int64_t i) {
      if (record[i] != none) row[record[i]] = static_cast<std::int32_t>(i);
    });
    return rows;
  }
  /// Entries besides the diagonal have room, those of each row `count_of` [row]; columns are the null row.
  AssembledMatrix make_room(const SparseRows& rows, const std::int32_t* count_of);
  /// fill(row, builder) makes a row of a node. It is called twice.
  template <class Fill>
  AssembledMatrix make_matrix(const SparseRows& rows, const Fill& fill);
  void find_parts(const SparseRows& rows, const AssembledMatrix& matrix, Aggregation& result);
  /// Puts the members of groups together, in the order of their numbers: of_member[i] is the group of i, or none.
  struct Groups {
    Vector<std::int32_t> begin;
    Vector<std::int32_t> member;
  };
  Groups group(std::int64_t count, const std::int32_t* of_member, std::int64_t groups);

 private:
  Engine& engine_;
  Backend backend_;
};

template <class Backend>
template <class PlaceOf>
Vector<std::int32_t> Assembly<Backend>::number(std::int64_t count, int layers, const PlaceOf& place_of,
                                               SparseRows& rows) {
  const Colouring colouring(rows.lattice);
  rows.colours = colouring.of_layer * layers;
  Vector<std::int32_t> row;
  fill(row, count, none);
  std::int32_t* const row_of = row.data();
  Vector<std::int32_t> before(engine_, count + 1);
  std::int32_t* const rank = before.data();
  std::int64_t total = 0;
  rows.nodes = 0;
  for (int colour = 0; colour < rows.colours; ++colour) {
    backend_.for_all(count, [=] SOLENOID_ANYWHERE(std::int64_t i) {
      const NodePlace place = place_of(i);
      rank[i] = place.field >= 0 && colouring(place) == colour ? 1 : 0;
    });
    backend_.sum_before(count, rank);
    const auto first = static_cast<std::int32_t>(total);
    rows.colour_begin[colour] = first;
    backend_.for_all(count, [=] SOLENOID_ANYWHERE(std::int64_t i) {
      if (rank[i + 1] > rank[i]) row_of[i] = first + rank[i];
    });
    const std::int32_t here = backend_.fetch(rank + count);
    rows.nodes += here;
    total += (here + slice - 1) / slice * slice;
    if (total > std::numeric_limits<std::int32_t>::max() - slice) {
      throw ResourceError("the marker-and-cell scheme has more unknowns of one kind than can be numbered (2^31)");
    }
  }
  rows.colour_begin[rows.colours] = static_cast<std::int32_t>(total);
  while (rows.colours > 1 && rows.colour_begin[rows.colours - 1] == rows.colour_begin[rows.colours]) --rows.colours;
  fill(rows.place, rows.count(), NodePlace{{0, 0, 0}, -1, 0});
  NodePlace* const place = rows.place.data();
  backend_.for_all(count, [=] SOLENOID_ANYWHERE(std::int64_t i) {
    if (row_of[i] != none) place[row_of[i]] = place_of(i);
  });
  return row;
}

template <class Backend>
AssembledMatrix Assembly<Backend>::make_room(const SparseRows& rows, const std::int32_t* count_of) {
  AssembledMatrix matrix;
  const std::int32_t count = rows.count();
  const std::int64_t slices = count / slice;
  matrix.begin = Vector<std::int64_t>(engine_, slices + 1);
  std::int64_t* const begin = matrix.begin.data();
  backend_.for_all(slices, [=] SOLENOID_ANYWHERE(std::int64_t s) {
    std::int32_t longest = 0;
    for (std::int64_t i = s * slice; i < (s + 1) * slice; ++i) longest = count_of[i] > longest ? count_of[i] : longest;
    begin[s] = std::int64_t{longest} * slice;
  });
  backend_.sum_before(slices, begin);
  const std::int64_t entries = backend_.fetch(begin + slices);
  fill(matrix.column, entries, count);
  matrix.value = Vector<double>(engine_, std::max<std::int64_t>(1, entries));
  matrix.diagonal = Vector<double>(engine_, rows.storage());
  return matrix;
}

template <class Backend>
template <class Fill>
AssembledMatrix Assembly<Backend>::make_matrix(const SparseRows& rows, const Fill& fill_row) {
  const NodePlace* const place = rows.place.data();
  Vector<std::int32_t> counts(engine_, rows.count() + 1);
  std::int32_t* const count_of = counts.data();
  backend_.for_all(rows.count(), [=] SOLENOID_ANYWHERE(std::int64_t i) {
    if (place[i].field < 0) return;
    RowBuilder row(static_cast<std::int32_t>(i));
    fill_row(static_cast<std::int32_t>(i), row);
    count_of[i] = row.count();
  });
  AssembledMatrix matrix = make_room(rows, count_of);
  const std::int64_t* const begin = matrix.begin.data();
  std::int32_t* const column = matrix.column.data();
  double* const value = matrix.value.data();
  double* const diagonal = matrix.diagonal.data();
  backend_.for_all(rows.count(), [=] SOLENOID_ANYWHERE(std::int64_t i) {
    if (place[i].field < 0) return;
    RowBuilder row(static_cast<std::int32_t>(i));
    fill_row(static_cast<std::int32_t>(i), row);
    diagonal[i] = row.diagonal();
    const std::int64_t first = begin[i / slice] + i % slice;
    for (int j = 0; j < row.count(); ++j) {
      column[first + j * slice] = row.column(j);
      value[first + j * slice] = row.value(j);
    }
  });
  return matrix;
}

// The scheme --------------------------------------------------------------------------------------

template <class Backend>
MacNodes Assembly<Backend>::cells(const Level& level) {
  const Grid& grid = level.grid;
  MacNodes cells;
  cells.rows.lattice = {grid.extent(), grid.periodic()};
  const auto positions = backend_.view(grid.positions());
  const auto* const position = positions.data();
  const std::int64_t count = grid.layout().cells().size();
  const auto place_of = [=] SOLENOID_ANYWHERE(std::int64_t i) {
    return NodePlace{{position[i][0], position[i][1], position[i][2]}, 0, 0};
  };
  const Vector<std::int32_t> row = number(count, 1, place_of, cells.rows);
  const int scalar = level.equation.velocities() * power(level.equation.n(), grid.dim());
  fill(cells.index, cells.rows.count(), level.index(grid.layout().null(), 0));
  fill(cells.record, cells.rows.count(), none);
  const std::int32_t* const row_of = row.data();
  std::int64_t* const index = cells.index.data();
  std::int32_t* const record = cells.record.data();
  const int record_size = level.equation.record();
  backend_.for_all(count, [=] SOLENOID_ANYWHERE(std::int64_t i) {
    record[row_of[i]] = static_cast<std::int32_t>(i);
    index[row_of[i]] = record_offset(i, record_size) + std::int64_t{interleave} * scalar;
  });
  return cells;
}

template <class Backend>
MacScheme Assembly<Backend>::scheme(const Level& level) {
  const Grid& grid = level.grid;
  const int dim = grid.dim();
  MacScheme scheme;
  scheme.cells = cells(level);
  const CellTopology topology = backend_.topology(level);
  const std::int32_t records = topology.records;
  const std::int32_t number_of_cells = topology.cells;

  // Faces, of each component those of the records in their order.
  SparseRows& rows = scheme.faces.rows;
  rows.fields = dim;
  for (int a = 0; a < dim; ++a) {
    rows.lattice.periodic[a] = grid.periodic()[a];
    rows.lattice.extent[a] = grid.extent()[a] + (grid.periodic()[a] ? 0 : 1);
  }
  const auto positions = backend_.view(grid.positions());
  const auto directions = backend_.view(grid.hat_directions());
  const auto* const position = positions.data();
  const auto* const direction = directions.data();
  const auto place_of = [=] SOLENOID_ANYWHERE(std::int64_t i) {
    const auto c = static_cast<int>(i / records);
    const auto r = static_cast<std::int32_t>(i % records);
    const bool is_cell = r < number_of_cells;
    const bool there = is_cell ? !normal_fixed(topology.face[2 * c][r]) : c == direction[r - number_of_cells];
    if (!there) return NodePlace{{0, 0, 0}, -1, 0};
    const auto& at = position[is_cell ? r : topology.neighbour[2 * c][r]];
    NodePlace place{{at[0], at[1], at[2]}, static_cast<std::int16_t>(c), 0};
    if (!is_cell) ++place.at[c];
    return place;
  };
  const std::int64_t count = std::int64_t{dim} * records;
  scheme.row_of_hat = number(count, 1, place_of, rows);
  const std::int32_t* const row_of = scheme.row_of_hat.data();

  const std::int32_t no_cell = scheme.cells.rows.count();
  const std::int32_t no_face = rows.count();
  fill(scheme.faces.index, no_face, level.index(grid.layout().null(), 0));
  fill(scheme.faces.record, no_face, none);
  for (auto& cells : scheme.cell_of_face) fill(cells, no_face, no_cell);
  scheme.inverse_width = Vector<double>(engine_, rows.storage());
  const Vector<std::int32_t> cell_rows = rows_of_records(scheme.cells, topology);
  const std::int32_t* const cell_row = cell_rows.data();
  const std::int32_t* const cell_of_row = scheme.cells.record.data();
  std::int64_t* const index = scheme.faces.index.data();
  std::int32_t* const record = scheme.faces.record.data();
  std::int32_t* const below = scheme.cell_of_face[0].data();
  std::int32_t* const above = scheme.cell_of_face[1].data();
  double* const inverse_width = scheme.inverse_width.data();
  const MacStencil<double> stencil(level);
  const int record_size = level.equation.record();
  const int block = power(level.equation.n(), dim);
  backend_.for_all(count, [=] SOLENOID_ANYWHERE(std::int64_t i) {
    const std::int32_t face = row_of[i];
    if (face == none) return;
    const auto c = static_cast<int>(i / records);
    const auto r = static_cast<std::int32_t>(i % records);
    record[face] = r;
    index[face] = record_offset(r, record_size) + std::int64_t{interleave} * c * block;
    below[face] = cell_row[topology.neighbour[2 * c][r]];
    above[face] = cell_row[r];
    inverse_width[face] = stencil.inverse_h[c];
  });

  for (int side = 0; side < 2 * dim; ++side) {
    fill(scheme.face_of_cell[side], no_cell, no_face);
    std::int32_t* const face_of = scheme.face_of_cell[side].data();
    const std::int64_t first = std::int64_t{side / 2} * records;
    backend_.for_all(no_cell, [=] SOLENOID_ANYWHERE(std::int64_t i) {
      const std::int32_t cell = cell_of_row[i];
      if (cell == none) return;
      const std::int32_t r = side % 2 == 0 ? cell : topology.neighbour[side][cell];
      if (r < records && row_of[first + r] != none) face_of[i] = row_of[first + r];
    });
  }
  return scheme;
}

template <class Backend>
AssembledMatrix Assembly<Backend>::velocity_matrix(const Level& level, const MacScheme& scheme, double reaction) {
  const MacStencil<double> stencil(level, reaction);
  const CellTopology topology = backend_.topology(level);
  const std::int32_t records = topology.records;
  const NodePlace* const place = scheme.faces.rows.place.data();
  const std::int32_t* const record_of_row = scheme.faces.record.data();
  const std::int32_t* const row_of_hat = scheme.row_of_hat.data();
  return make_matrix(scheme.faces.rows, [=] SOLENOID_ANYWHERE(std::int32_t own, RowBuilder & row) {
    const int c = place[own].field;
    const std::int32_t* const row_of = row_of_hat + std::int64_t{c} * records;
    stencil.for_row(
        topology, record_of_row[own], c, [&](double value) { row.add_diagonal(value); },
        [&](std::int32_t record, double value) {
          if (record < records && row_of[record] != none) row.add(row_of[record], value);
        });
  });
}

template <class Backend>
AssembledMatrix Assembly<Backend>::pressure_matrix(const MacScheme& scheme, const double* weight) {
  const std::array<const std::int32_t*, 2> cell_of{scheme.cell_of_face[0].data(), scheme.cell_of_face[1].data()};
  std::array<const std::int32_t*, 6> face_of{};
  const int sides = 2 * scheme.faces.rows.fields;
  for (int side = 0; side < sides; ++side) face_of[side] = scheme.face_of_cell[side].data();
  const double* const inverse_width = scheme.inverse_width.data();
  const std::int32_t no_cell = scheme.cells.rows.count();
  const std::int32_t no_face = scheme.faces.rows.count();
  return make_matrix(scheme.cells.rows, [=] SOLENOID_ANYWHERE(std::int32_t own, RowBuilder & row) {
    for (int side = 0; side < sides; ++side) {
      const std::int32_t face = face_of[side][own];
      if (face == no_face) continue;
      const std::int32_t other = cell_of[side % 2][face];
      if (other == own) continue;  // a ring of one cell
      const double entry = weight[face] * inverse_width[face] * inverse_width[face];
      row.add_diagonal(entry);
      if (other != no_cell) row.add(other, -entry);
    }
  });
}

template <class Backend>
AssembledMatrix Assembly<Backend>::scalar_matrix(const Level& level, const MacNodes& cells) {
  const MacStencil<double> stencil(level);
  const CellTopology topology = backend_.topology(level);
  const std::int32_t* const cell_of_row = cells.record.data();
  const Vector<std::int32_t> rows_of_cells = rows_of_records(cells, topology);
  const std::int32_t* const row_of_cell = rows_of_cells.data();
  return make_matrix(cells.rows, [=] SOLENOID_ANYWHERE(std::int32_t own, RowBuilder & row) {
    stencil.for_cell(
        topology, cell_of_row[own], [&](double value) { row.add_diagonal(value); },
        [&](std::int32_t cell, double value) { row.add(row_of_cell[cell], value); });
  });
}

// Aggregates --------------------------------------------------------------------------------------

template <class Backend>
Aggregation Assembly<Backend>::aggregate(const SparseRows& rows, const AssembledMatrix& matrix, Merge merge) {
  Aggregation result;
  result.lattice = rows.lattice.coarse();
  const Blocks blocks(rows.lattice);
  const Entries entries(rows, matrix);
  const NodePlace* const place = rows.place.data();
  fill(result.root, rows.count(), none);
  std::int32_t* const root = result.root.data();
  if (merge == Merge::connected) {
    find_parts(rows, matrix, result);
  } else {
    Vector<std::int32_t> firsts;
    fill(firsts, rows.fields * blocks.count(), std::numeric_limits<std::int32_t>::max());
    std::int32_t* const first = firsts.data();
    backend_.for_all(rows.count(), [=] SOLENOID_ANYWHERE(std::int64_t i) {
      if (place[i].field >= 0 && !entries.empty(i))
        lower_to(first + blocks.key(place[i]), static_cast<std::int32_t>(i));
    });
    backend_.for_all(rows.count(), [=] SOLENOID_ANYWHERE(std::int64_t i) {
      if (place[i].field >= 0 && !entries.empty(i)) root[i] = first[blocks.key(place[i])];
    });
  }
  if (result.place.size() == 0) result.place = Vector<NodePlace>(engine_, rows.count());
  NodePlace* const coarse = result.place.data();
  backend_.for_all(rows.count(), [=] SOLENOID_ANYWHERE(std::int64_t i) {
    if (root[i] != i) return;
    for (int a = 0; a < 3; ++a) coarse[i].at[a] = blocks.of(a, place[i].at[a]);
    coarse[i].field = place[i].field;
  });
  return result;
}

/// Parts of blocks that strong entries connect, in result.root, and layers so that parts of a block that weak entries
/// connect have different ones. Where that would take too many all entries count as strong.
template <class Backend>
void Assembly<Backend>::find_parts(const SparseRows& rows, const AssembledMatrix& matrix, Aggregation& result) {
  const Blocks blocks(rows.lattice);
  const Entries entries(rows, matrix);
  const NodePlace* const place = rows.place.data();
  const std::int32_t count = rows.count();
  std::int32_t* const root = result.root.data();
  result.place = Vector<NodePlace>(engine_, count);
  NodePlace* const coarse = result.place.data();
  Vector<double> largest_entries(engine_, count);
  double* const largest = largest_entries.data();
  backend_.for_all(count, [=] SOLENOID_ANYWHERE(std::int64_t i) {
    double most = 0.0;
    entries.for_row(i, [&](std::int32_t, double value) { most = fabs(value) > most ? fabs(value) : most; });
    largest[i] = most;
  });
  Vector<std::int32_t> flag(engine_, 1);
  std::int32_t* const changed = flag.data();
  const auto repeat_until_unchanged = [&](const auto& step) {
    do {
      engine_.zero(changed, sizeof(std::int32_t));
      step();
    } while (backend_.fetch(changed) != 0);
  };
  Vector<std::int32_t> merged;  // [block]: all entries count
  constexpr std::int32_t open = -1;
  Vector<std::int32_t> layers;
  Vector<std::int32_t> taken(engine_, count);
  std::int32_t* const bits = taken.data();
  for (;;) {
    const std::int32_t* const all = merged.data();
    backend_.for_all(count, [=] SOLENOID_ANYWHERE(std::int64_t i) {
      root[i] = place[i].field >= 0 && !entries.empty(i) ? static_cast<std::int32_t>(i) : none;
    });
    repeat_until_unchanged([&] {
      backend_.for_all(count, [=] SOLENOID_ANYWHERE(std::int64_t i) {
        const std::int32_t before = read(root + i);
        if (before == none) return;
        const bool any = all != nullptr && all[blocks.key(place[i])] != 0;
        std::int32_t least = before;
        entries.for_row(i, [&](std::int32_t j, double value) {
          const double bound = strong_entry * (largest[i] < largest[j] ? largest[i] : largest[j]);
          if ((!any && fabs(value) < bound) || !blocks.same(place[i], place[j])) return;
          const std::int32_t other = read(root + j);
          if (other < least) least = other;
        });
        if (least == before) return;
        write(root + i, least);
        write(changed, 1);
      });
    });
    // Parts get the least layer that those before them, which weak entries connect them to, have left.
    fill(layers, count, open);
    std::int32_t* const layer = layers.data();
    repeat_until_unchanged([&] {
      engine_.zero(bits, count * sizeof(std::int32_t));
      constexpr std::int32_t waits = 1 << 30;
      backend_.for_all(count, [=] SOLENOID_ANYWHERE(std::int64_t i) {
        const std::int32_t mine = root[i];
        if (mine == none || layer[mine] != open) return;
        entries.for_row(i, [&](std::int32_t j, double) {
          const std::int32_t other = root[j];
          if (other >= mine || !blocks.same(place[i], place[j])) return;
          set_bits(bits + mine, layer[other] == open ? waits : 1 << layer[other]);
        });
      });
      backend_.for_all(count, [=] SOLENOID_ANYWHERE(std::int64_t i) {
        if (root[i] != i || layer[i] != open) return;
        if ((bits[i] & waits) != 0) {
          write(changed, 1);
          return;
        }
        int least = 0;
        while ((bits[i] >> least & 1) != 0) ++least;
        layer[i] = least;
      });
    });
    Vector<std::int32_t> of_all(engine_, 1);
    std::int32_t* const used = of_all.data();
    backend_.for_all(count, [=] SOLENOID_ANYWHERE(std::int64_t i) {
      if (root[i] == i && layer[i] > 0) set_bits(used, 1 << layer[i]);
    });
    const auto layers_used = static_cast<std::uint32_t>(backend_.fetch(used)) | 1U;
    const int last = static_cast<int>(std::bit_width(layers_used)) - 1;
    if (last < most_layers) {
      result.layers = last + 1;
      backend_.for_all(count, [=] SOLENOID_ANYWHERE(std::int64_t i) {
        if (root[i] == i) coarse[i].layer = static_cast<std::int16_t>(layer[i]);
      });
      return;
    }
    if (merged.size() == 0) fill(merged, rows.fields * blocks.count(), std::int32_t{0});
    std::int32_t* const merge = merged.data();
    backend_.for_all(count, [=] SOLENOID_ANYWHERE(std::int64_t i) {
      if (root[i] == i && layer[i] >= most_layers) write(merge + blocks.key(place[i]), 1);
    });
  }
}

template <class Backend>
typename Assembly<Backend>::Groups Assembly<Backend>::group(std::int64_t count, const std::int32_t* of_member,
                                                            std::int64_t groups) {
  Groups result{Vector<std::int32_t>(engine_, groups + 1), {}};
  Vector<std::int32_t> next(engine_, groups);
  std::int32_t* const begin = result.begin.data();
  std::int32_t* const taken = next.data();
  backend_.for_all(count, [=] SOLENOID_ANYWHERE(std::int64_t i) {
    if (of_member[i] != none) fetch_add(begin + of_member[i], 1);
  });
  backend_.sum_before(groups, begin);
  result.member = Vector<std::int32_t>(engine_, std::max(1, backend_.fetch(begin + groups)));
  std::int32_t* const member = result.member.data();
  backend_.for_all(count, [=] SOLENOID_ANYWHERE(std::int64_t i) {
    const std::int32_t mine = of_member[i];
    if (mine != none) member[begin[mine] + fetch_add(taken + mine, 1)] = static_cast<std::int32_t>(i);
  });
  backend_.for_all(groups, [=] SOLENOID_ANYWHERE(std::int64_t g) {
    for (std::int32_t last = begin[g] + 1; last < begin[g + 1]; ++last) {
      const std::int32_t here = member[last];
      std::int32_t to = last;
      for (; to > begin[g] && member[to - 1] > here; --to) member[to] = member[to - 1];
      member[to] = here;
    }
  });
  return result;
}

template <class Backend>
Coarsened Assembly<Backend>::coarsen(const SparseRows& rows, const AssembledMatrix& matrix,
                                     const Aggregation& aggregation, std::int32_t solved_from) {
  const Entries entries(rows, matrix);
  const std::int32_t count = rows.count();
  Coarsened result;
  result.rows.lattice = aggregation.lattice;
  result.rows.fields = rows.fields;
  const std::int32_t* const root = aggregation.root.data();
  const NodePlace* const place_of_root = aggregation.place.data();
  const Vector<std::int32_t> coarse_rows = number(
      count, aggregation.layers,
      [=] SOLENOID_ANYWHERE(std::int64_t i) {
        return root[i] == i ? place_of_root[i] : NodePlace{{0, 0, 0}, -1, 0};
      },
      result.rows);
  const std::int32_t* const row_of_root = coarse_rows.data();
  const std::int32_t coarse = result.rows.count();
  Vector<std::int32_t> coarse_of(engine_, count);  // none where there is none
  std::int32_t* const mine = coarse_of.data();
  fill(result.parent, rows.storage(), coarse);
  std::int32_t* const parent = result.parent.data();
  backend_.for_all(count, [=] SOLENOID_ANYWHERE(std::int64_t i) {
    mine[i] = root[i] == none ? none : row_of_root[root[i]];
    if (root[i] != none) parent[i] = mine[i];
  });

  const Groups members = group(count, mine, coarse);
  const std::int32_t* const begin = members.begin.data();
  const std::int32_t* const member = members.member.data();
  result.child_begin = Vector<std::int32_t>(engine_, coarse + 1);
  std::int32_t* const child_begin = result.child_begin.data();
  backend_.for_all(coarse, [=] SOLENOID_ANYWHERE(std::int64_t i) {
    std::int32_t end = begin[i + 1];
    while (end > begin[i] && member[end - 1] >= solved_from) --end;
    child_begin[i] = end - begin[i];
  });
  backend_.sum_before(coarse, child_begin);
  result.child = Vector<std::int32_t>(engine_, std::max(1, backend_.fetch(child_begin + coarse)));
  std::int32_t* const child = result.child.data();
  backend_.for_all(coarse, [=] SOLENOID_ANYWHERE(std::int64_t i) {
    for (std::int32_t c = child_begin[i]; c < child_begin[i + 1]; ++c) child[c] = member[begin[i] + c - child_begin[i]];
  });

  // Which columns each row has: as many as it can have are kept apart meanwhile.
  Vector<std::int64_t> rooms(engine_, coarse + 1);
  std::int64_t* const room = rooms.data();
  backend_.for_all(coarse, [=] SOLENOID_ANYWHERE(std::int64_t i) {
    std::int64_t sum = 0;
    for (std::int32_t m = begin[i]; m < begin[i + 1]; ++m) {
      entries.for_row(member[m], [&](std::int32_t column, double) { sum += parent[column] != i ? 1 : 0; });
    }
    room[i] = sum;
  });
  backend_.sum_before(coarse, room);
  Vector<std::int32_t> counts(engine_, coarse + 1);
  std::int32_t* const count_of = counts.data();
  {
    Vector<std::int32_t> seen(engine_, std::max<std::int64_t>(1, backend_.fetch(room + coarse)));
    std::int32_t* const columns = seen.data();
    backend_.for_all(coarse, [=] SOLENOID_ANYWHERE(std::int64_t i) {
      std::int32_t* const mine_here = columns + room[i];
      std::int32_t found = 0;
      for (std::int32_t m = begin[i]; m < begin[i + 1]; ++m) {
        entries.for_row(member[m], [&](std::int32_t column, double) {
          const std::int32_t to = parent[column];
          if (to == i) return;
          for (std::int32_t j = 0; j < found; ++j) {
            if (mine_here[j] == to) return;
          }
          mine_here[found++] = to;
        });
      }
      count_of[i] = found;
    });
  }
  result.matrix = make_room(result.rows, count_of);
  const std::int64_t* const first = result.matrix.begin.data();
  std::int32_t* const column_of = result.matrix.column.data();
  double* const value_of = result.matrix.value.data();
  double* const diagonal_of = result.matrix.diagonal.data();
  const double* const fine_diagonal = matrix.diagonal.data();
  backend_.for_all(coarse, [=] SOLENOID_ANYWHERE(std::int64_t i) {
    const std::int64_t row = first[i / slice] + i % slice;
    double diagonal = 0.0;
    double size = 0.0;
    std::int64_t found = 0;
    for (std::int32_t m = begin[i]; m < begin[i + 1]; ++m) {
      diagonal += fine_diagonal[member[m]];
      size += fine_diagonal[member[m]];
      entries.for_row(member[m], [&](std::int32_t column, double value) {
        const std::int32_t to = parent[column];
        if (to == i) {
          diagonal += value;
          return;
        }
        std::int64_t j = 0;
        while (j < found && column_of[row + j * slice] != to) ++j;
        if (j == found) ++found;
        column_of[row + j * slice] = to;
        value_of[row + j * slice] += value;
      });
    }
    // The sum of a part that nothing holds is zero but for rounding.
    constexpr double rounding = 1e-9;
    diagonal_of[i] = found == 0 && diagonal <= rounding * size ? 0.0 : diagonal;
  });
  return result;
}

}  // namespace solenoid::assembly
