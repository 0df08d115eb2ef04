#pragma once
/// \file
/// The marker-and-cell scheme on the cells of a level: one normal velocity a face, one pressure a cell.
///
/// In the bases of mesh/record.hpp its unknowns are coefficients of the level's own: the hats that are constant along
/// their face, and the constant pressures. With mass lumped on the hats its velocity block has, for component c,
///
///     alpha + nu / h_c^2 (2 u - neighbours along c) + sum over a != c of nu / h_a^2 (g (u - neighbour), w u at a wall)
///
/// per face (half of it from each of its cells), g and w the weights below; divergence and gradient are differences
/// over h. g = 1, w = 2 is the classical scheme (k = 0). As a correction for k >= 1 it takes g = 1.5 and w = 6, exact
/// for the flow through a channel of one cell.

#include <array>
#include <cstdint>
#include <vector>

#include "base/unset.hpp"
#include "level/level.hpp"
#include "solver/mac/aggregation.hpp"

namespace solenoid {

class MacScheme {
 public:
  /// Of a level of Stokes' equation, all of whose cells are here.
  explicit MacScheme(const Level& level);

  struct Nodes {
    NodeLattice lattice;
    Unset<NodePlace> places;
    RowOrder order;
    Unset<std::int64_t> index;  ///< [row]: in a vector of the level; of padding that of the null record

    [[nodiscard]] std::int32_t rows() const { return order.rows(); }
  };
  [[nodiscard]] int dim() const { return level_.grid.dim(); }
  [[nodiscard]] const Nodes& faces() const { return faces_; }
  [[nodiscard]] const Nodes& cells() const { return cells_; }
  /// The velocity block. With `more` reaction than the level has.
  [[nodiscard]] SparseRows velocity_matrix(double more = 0.0) const;
  /// B W B^T for weights W of the faces, [row].
  template <class T>
  [[nodiscard]] SparseRows pressure_matrix(const std::vector<T>& weight) const;
  /// [face row]: cell rows below and above it; the null row of cells where there is none.
  [[nodiscard]] const std::array<Unset<std::int32_t>, 2>& cell_of_face() const { return cell_of_face_; }
  /// [side][cell row]: the face row; the null row of faces where there is no unknown.
  [[nodiscard]] const std::array<Unset<std::int32_t>, 6>& face_of_cell() const { return face_of_cell_; }
  /// [face row]: 1 / h across it, times the coupling of velocities and pressures; 0 in padding.
  [[nodiscard]] const Unset<double>& inverse_width() const { return inverse_width_; }

 private:
  void number_faces();
  void connect();
  /// Row of the unknown on the lower face of a record in direction c, or -1.
  [[nodiscard]] std::int32_t row(Record record, int c) const { return row_of_hat_[c][record]; }

  const Level& level_;
  Nodes faces_;
  Nodes cells_;
  std::array<Unset<std::int32_t>, 3> row_of_hat_;
  Unset<Record> record_of_face_;  ///< [node]
  std::array<Unset<std::int32_t>, 2> cell_of_face_;
  std::array<Unset<std::int32_t>, 6> face_of_cell_;
  Unset<double> inverse_width_;
};

/// The scheme of lowest order for Poisson's equation: one value a cell, differences between cells.
SparseRows scalar_matrix(const Level& level, const RowOrder& cells);
/// The cells of a level as nodes.
MacScheme::Nodes cells_as_nodes(const Level& level);

}  // namespace solenoid
