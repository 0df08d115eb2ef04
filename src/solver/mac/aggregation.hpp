#pragma once
/// \file
/// Sparse symmetric matrices on lattices, and how they are coarsened: unsmoothed aggregation with Galerkin products.
/// On the host, on all cores; results do not depend on their number.

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/parallel.hpp"
#include "base/unset.hpp"
#include "engine/sparse.hpp"

namespace solenoid {

/// `count` times the same, written by all threads.
template <class T>
void fill(Unset<T>& values, std::int64_t count, T value) {
  values.resize(count);
  parallel_ranges({count}, [&](CellRange range, std::int64_t) {
    std::fill(values.begin() + range.begin, values.begin() + range.end, value);
  });
}

/// Where the nodes of a matrix are.
struct NodeLattice {
  std::array<int, 3> extent{1, 1, 1};  ///< places per direction; wrapped in periodic directions
  std::array<bool, 3> periodic{};

  /// In each direction the coarse place of a place: pairs. Periodic directions become even, so that two colours do.
  [[nodiscard]] std::array<std::vector<std::int32_t>, 3> blocks() const;
  /// The lattice of the blocks.
  [[nodiscard]] NodeLattice coarse() const;
};

/// A place of the lattice, and the field (velocity component) of a node there: nodes of different fields are never
/// joined.
struct NodePlace {
  std::array<std::int32_t, 3> at{};
  std::int32_t field = 0;
  std::int32_t layer = 0;  ///< nodes of one place and field that are neighbours have different ones
};

/// How nodes are numbered as rows of a matrix: colour by colour, each padded (engine/sparse.hpp). Nodes of one colour
/// are no neighbours, if neighbours are at most one place apart.
struct RowOrder {
  RowOrder() = default;
  /// `layers`: more than the largest layer of a node.
  RowOrder(const NodeLattice& lattice, std::span<const NodePlace> nodes, int layers = 1);

  int colours = 0;
  std::array<std::int32_t, SparseFormat::most_colours + 1> colour_begin{};
  Unset<std::int32_t> row;  ///< [node]

  [[nodiscard]] std::int32_t rows() const { return colour_begin[colours]; }
};

/// Rows on the host: entries besides the diagonal by rows, in compressed form. Padding has empty rows.
struct SparseRows {
  RowOrder order;
  Unset<std::int64_t> begin;  ///< [row]; one more than there are rows
  Unset<std::int32_t> column;
  Unset<double> value;
  Unset<double> diagonal;
};

struct SparseEntry {
  std::int32_t column = 0;
  double value = 0.0;
};

/// A row as it is made: entries add up.
class RowBuilder {
 public:
  void clear(std::int32_t row) {
    row_ = row;
    diagonal_ = 0.0;
    entries_.clear();
  }
  void add(std::int32_t column, double value) {
    if (column == row_) {
      diagonal_ += value;
      return;
    }
    for (SparseEntry& entry : entries_) {
      if (entry.column == column) {
        entry.value += value;
        return;
      }
    }
    entries_.push_back({column, value});
  }
  void add_diagonal(double value) { diagonal_ += value; }
  void clear_diagonal() { diagonal_ = 0.0; }
  [[nodiscard]] double diagonal() const { return diagonal_; }
  [[nodiscard]] const std::vector<SparseEntry>& entries() const { return entries_; }

 private:
  std::int32_t row_ = 0;
  double diagonal_ = 0.0;
  std::vector<SparseEntry> entries_;
};

/// fill(node, row builder) makes the row of a node. It is called twice.
template <class Fill>
SparseRows make_rows(RowOrder order, const Fill& fill) {
  SparseRows rows;
  rows.order = std::move(order);
  const RowOrder& of = rows.order;
  rows.begin.assign(of.rows() + 1, 0);
  rows.diagonal.assign(of.rows(), 0.0);
  const auto for_rows = [&](const auto& visit) {
    parallel_ranges({std::ssize(of.row)}, [&](CellRange range, std::int64_t) {
      RowBuilder row;
      for (std::int64_t node = range.begin; node < range.end; ++node) {
        row.clear(of.row[node]);
        fill(node, row);
        visit(of.row[node], row);
      }
    });
  };
  for_rows([&](std::int32_t i, const RowBuilder& row) {
    rows.begin[i + 1] = std::ssize(row.entries());
    rows.diagonal[i] = row.diagonal();
  });
  std::partial_sum(rows.begin.begin(), rows.begin.end(), rows.begin.begin());
  rows.column.resize(rows.begin.back());
  rows.value.resize(rows.begin.back());
  for_rows([&](std::int32_t i, const RowBuilder& row) {
    std::int64_t at = rows.begin[i];
    for (const SparseEntry& entry : row.entries()) {
      rows.column[at] = entry.column;
      rows.value[at++] = entry.value;
    }
  });
  return rows;
}

/// What becomes one node.
enum class Merge {
  block,      ///< all nodes of a block of the lattice (and of a field)
  connected,  ///< those of them that strong entries connect inside the block
};

/// Which nodes become one.
struct Aggregation {
  Unset<std::int32_t> of_node;  ///< the aggregate of each, -1 for those that have no neighbours
  Unset<NodePlace> places;      ///< of the aggregates
  NodeLattice lattice;
  int layers = 1;
};
/// Blocks of the lattice, or parts of them.
Aggregation aggregate_blocks(const SparseRows& rows, std::span<const NodePlace> nodes, const NodeLattice& lattice,
                             Merge merge);
/// Pairs with the largest entries, then pairs of these; what finds none joins the one that it is most coupled to. For
/// matrices with few nodes, wherever they are: of their places is said no more than colours that go together. None
/// where there would be more colours than a matrix can have.
Aggregation aggregate_pairs(const SparseRows& rows);

/// The next coarser matrix P^T A P, P the constants on aggregates.
struct Coarsened {
  SparseRows matrix;
  Unset<std::int32_t> parent;  ///< [fine row]: the coarse row; that behind all rows where there is none
  Unset<std::int32_t> child_begin;
  Unset<std::int32_t> child;  ///< without rows of the last colour
};
Coarsened coarsen(const SparseRows& fine, const Aggregation& aggregation);

}  // namespace solenoid
