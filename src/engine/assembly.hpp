#pragma once
/// \file
/// How the sparse matrices of the marker-and-cell scheme (engine/sparse.hpp) are made and coarsened, in the memory of
/// the engine that solves with them: rows of matrices, blocks of lattices, unsmoothed aggregation, Galerkin products.
/// Numbers are in double precision. All engines take the same steps (engine/assembly_steps.hpp), and what they make
/// does not depend on the number of threads.

#include <array>
#include <cstdint>
#include <memory>

#include "engine/engine.hpp"
#include "engine/sparse.hpp"
#include "level/level.hpp"

namespace solenoid {

/// Where the nodes of a matrix are.
struct NodeLattice {
  std::array<int, 3> extent{1, 1, 1};  ///< places per direction; wrapped in periodic directions
  std::array<bool, 3> periodic{};

  /// The lattice of blocks of two places in each direction. Periodic directions become even, so that two colours do.
  [[nodiscard]] NodeLattice coarse() const;
};

/// A place of the lattice, and the field (velocity component) of a node there: nodes of different fields are never
/// joined.
struct NodePlace {
  std::int32_t at[3];
  std::int16_t field;  ///< -1: of padding
  std::int16_t layer;  ///< nodes of one place and field that are neighbours have different ones
};

/// The nodes of a matrix as its rows: colour by colour, each padded (SparseFormat). Nodes of one colour are no
/// neighbours, if neighbours are at most one place apart.
struct SparseRows {
  int colours = 0;
  std::array<std::int32_t, SparseFormat::most_colours + 1> colour_begin{};
  NodeLattice lattice;
  int fields = 1;           ///< more than the largest field of a node
  std::int64_t nodes = 0;   ///< rows without padding
  Vector<NodePlace> place;  ///< [row]

  [[nodiscard]] std::int32_t count() const { return colour_begin[colours]; }
  [[nodiscard]] std::int32_t storage() const { return count() + SparseFormat::slice; }
};

/// Entries in the format of SparseMatrix.
struct AssembledMatrix {
  Vector<std::int64_t> begin;
  Vector<std::int32_t> column;
  Vector<double> value;
  Vector<double> diagonal;  ///< [row], null row included
};

/// Faces or cells of a level as nodes.
struct MacNodes {
  SparseRows rows;
  Vector<std::int64_t> index;  ///< [row]: in a vector of the level; of padding that of the null record
  Vector<Record> record;       ///< [row]; -1 of padding
};

/// The marker-and-cell scheme of a level: normal velocities on faces, pressures in cells. Of elements of higher order
/// these are the lowest modes.
struct MacScheme {
  MacNodes faces;
  MacNodes cells;
  std::array<Vector<std::int32_t>, 2> cell_of_face;  ///< [face row]: below, above it; the null row if there is none
  std::array<Vector<std::int32_t>, 6> face_of_cell;  ///< [side][cell row]; the null row where there is no unknown
  Vector<std::int32_t> row_of_hat;  ///< [component][record]: the face row of its lower face; -1 where there is none
  Vector<double> inverse_width;     ///< [face row]: 1 / h across it, times the coupling; 0 in padding
};

/// An entry is strong if it is at least this part of the largest one of one of its two rows.
inline constexpr double strong_entry = 0.25;

/// What becomes one node.
enum class Merge {
  block,      ///< all nodes of a block of the lattice (and of a field)
  connected,  ///< those of them that strong entries connect inside the block
};

/// Which rows become one.
struct Aggregation {
  Vector<std::int32_t> root;  ///< [row]: the first row of its aggregate; -1 of padding, and of nodes without neighbours
  Vector<NodePlace> place;    ///< [row]: of roots that of the aggregate
  NodeLattice lattice;
  int layers = 1;  ///< more than the largest layer of an aggregate
};

/// The next coarser matrix P^T A P, P the constants on aggregates.
struct Coarsened {
  SparseRows rows;
  AssembledMatrix matrix;
  Vector<std::int32_t> parent;  ///< [fine row, null row included]: the coarse row; the null row where there is none
  Vector<std::int32_t> child_begin;
  Vector<std::int32_t> child;
};

class SparseAssembly {
 public:
  virtual ~SparseAssembly() = default;

  /// Of a level of Stokes' equations, all of whose cells are here.
  [[nodiscard]] virtual MacScheme scheme(const Level& level) = 0;
  /// The velocity block (engine/mac_stencil.hpp), with a reaction.
  [[nodiscard]] virtual AssembledMatrix velocity_matrix(const Level& level, const MacScheme& scheme,
                                                        double reaction) = 0;
  /// B W B^T for weights W of the faces, [face row].
  [[nodiscard]] virtual AssembledMatrix pressure_matrix(const MacScheme& scheme, const double* weight) = 0;
  /// The cells of a level as nodes, and the matrix of Poisson's equation between them.
  [[nodiscard]] virtual MacNodes cells(const Level& level) = 0;
  [[nodiscard]] virtual AssembledMatrix scalar_matrix(const Level& level, const MacNodes& cells) = 0;

  /// Blocks of the lattice, or parts of them.
  [[nodiscard]] virtual Aggregation aggregate(const SparseRows& rows, const AssembledMatrix& matrix, Merge merge) = 0;
  /// Children are those before row `solved_from`.
  [[nodiscard]] virtual Coarsened coarsen(const SparseRows& rows, const AssembledMatrix& matrix,
                                          const Aggregation& aggregation, std::int32_t solved_from) = 0;

  /// Its entries as SparseMatrix has them, rounded, [entry]; the diagonal takes up what is left.
  virtual void round_entries(const SparseRows& rows, AssembledMatrix& matrix, std::uint16_t* value) = 0;
  /// The matrix as a dense one, row-major, between the rows in `row` (`count` of them), which have all its entries; in
  /// the beginning `dense` is zero. A node that stands alone and is held by nothing has 1 on the diagonal.
  virtual void dense(const SparseRows& rows, const AssembledMatrix& matrix, std::int64_t count, const std::int64_t* row,
                     double* dense) = 0;

  /// y = 1 in rows of nodes, else 0.
  virtual void ones(const SparseRows& rows, double* y) = 0;
  /// y = max(y, bound / x) in rows of nodes.
  virtual void bound_below(const SparseRows& rows, double bound, const double* x, double* y) = 0;
  /// y = 1 / x where x > 0, else 0
  virtual void invert(std::int64_t count, const double* x, double* y) = 0;
  virtual void convert(std::int64_t count, const double* x, float* y) = 0;
  virtual void convert(std::int64_t count, const double* x, double* y) = 0;
  virtual void convert(std::int64_t count, const float* x, double* y) = 0;
};

}  // namespace solenoid
