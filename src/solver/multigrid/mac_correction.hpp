#pragma once
/// \file
/// A lowest-order correction for a coarsest level that is too large to be solved directly.
///
/// Corrections from vertex patches are divergence-free and carry no flux through any cross-section. So the smoother
/// alone never finds a net flow around a periodic direction, around a hole or from one outflow side to another. The
/// marker-and-cell scheme (k = 0) holds these flows: it is assembled on the coarsest lattice that the level pairs up
/// to, and factorised. With Poisson's equation the scheme of lowest order has one value a cell; it carries over long
/// distances what patches pass on from neighbour to neighbour. Where coefficients vary by cell those of the scheme are
/// means over its cells; its viscous term is that of the gradient form in any case. On cells that are parallelepipeds
/// it is that of the local problems (level/patch_weights.hpp).

#include <Eigen/Sparse>
#include <Eigen/SparseLU>
#include <array>
#include <cstdint>
#include <vector>

#include "level/level.hpp"

namespace solenoid {

class MacCorrection {
 public:
  /// \throws ResourceError if the factorisation fails.
  explicit MacCorrection(const Level& level);

  /// x = P A_0^-1 P^T r, with P the embedding of the lowest-order space; host vectors in record layout of the level.
  void apply(const std::vector<double>& r, std::vector<double>& x) const;

 private:
  struct Entry {
    std::int64_t row;  ///< in a vector of the level
    int column;        ///< unknown of the marker-and-cell scheme
    double weight;
  };

  void number_unknowns();
  void assemble(const std::vector<Constant>& constants, const Grid& fine);
  void embed(const Level& level);
  /// The cell that a cell of the level's lattice is part of.
  [[nodiscard]] Record parent(const Grid& fine, Record cell) const;
  [[nodiscard]] int hat(Record record, int c) const { return hat_unknown_[record][c]; }

  Equation equation_;
  Coefficients coefficients_;
  Grid grid_;
  Coarsening coarsening_;                        ///< from the level's lattice to this one
  std::vector<std::array<int, 3>> hat_unknown_;  ///< [record][direction] -> unknown, or -1
  int pressure_ = 0;                             ///< first pressure unknown
  int size_ = 0;
  std::vector<Entry> embedding_;
  Eigen::SparseLU<Eigen::SparseMatrix<double>> factors_;
};

}  // namespace solenoid
