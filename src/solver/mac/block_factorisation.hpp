#pragma once
/// \file
/// The marker-and-cell scheme solved approximately: a block factorisation, of which only scalar problems are coarsened.
///
/// With A the velocity block, B the divergence, W = A^-1 1 (a local permeability, once for all) and S = B W B^T,
///
///     u = A~ r_u,   p = - S~ (B W A W B^T) S~ (r_p + B u),   u += A~ B^T p,
///
/// where A~ and S~ are some steps of flexible conjugate gradients with algebraic multigrid (sparse_multigrid.hpp). As
/// they depend on their right-hand side this is not quite linear. With Poisson's equation it is S~ alone, for its
/// matrix.

#include <memory>
#include <optional>

#include "engine/assembly.hpp"
#include "engine/engine.hpp"
#include "engine/sparse.hpp"
#include "solver/mac/sparse_multigrid.hpp"

namespace solenoid {

template <class T>
class BlockFactorisation {
 public:
  /// Of the scheme on the level of `kernels`, which outlive it, for the coefficients that it has now.
  BlockFactorisation(Engine& engine, Kernels<T>& kernels);

  /// x += E C E^T r: r and x are vectors of the level, E has the scheme's functions. Always the same work.
  void correct(const T* r, T* x);

 private:
  /// Of faces, or of cells.
  struct Field {
    Vector<std::int64_t> index;  ///< in vectors of the level
    Vector<T> load;
    Vector<T> value;
  };

  void make_stokes(const Level& level, SparseAssembly& assembly);
  void make_incidence(MacScheme& scheme, SparseAssembly& assembly);
  [[nodiscard]] Vector<double> weights(const MacScheme& scheme, const Level& level, SparseAssembly& assembly);
  [[nodiscard]] Field field(MacNodes& nodes);
  [[nodiscard]] Vector<T> vector(std::int32_t rows) { return {engine_, rows + SparseFormat::slice}; }

  Engine& engine_;
  Kernels<T>& kernels_;
  std::unique_ptr<SparseKernels<T>> sparse_;
  std::optional<SparseMultigrid<T>> velocity_;
  std::optional<SparseMultigrid<T>> scalar_;  ///< of the pressure, or of Poisson's u
  Field faces_;
  Field cells_;
  Vector<T> work_;  ///< two of faces
  Vector<T> other_;
  Vector<T> weight_;
  std::array<Vector<std::int32_t>, 2> cell_of_face_;
  std::array<Vector<std::int32_t>, 6> face_of_cell_;
  Vector<T> inverse_width_;
  Incidence<T> incidence_;
};

/// Bytes that a factorisation keeps, about: matrices with their aggregates, vectors, tables of faces and cells, on all
/// levels, and inverses of the coarsest. Per face with an unknown: a matrix row with 2 dim entries, eleven vectors,
/// what it touches and its place; per cell the same with fourteen vectors. Coarsest matrices that are not the finest
/// have about 0.7 of the nodes that they may have.
template <class T>
double block_factorisation_bytes(int dim, double faces, double cells, const DenseLimits& limits) {
  constexpr std::int64_t number = sizeof(T);
  constexpr double all_levels = 1.2;
  const std::int64_t row = 2 * dim * (2 + 4) + 2 * number + 4;
  const std::int64_t face = row + 11 * number + 2 * 4 + number + 8;
  const std::int64_t cell = row + 14 * number + 2 * dim * 4 + 8;
  const auto inverse = [](double nodes, std::int64_t most) {
    const auto inverted = static_cast<double>(most);
    const double count = nodes <= inverted ? nodes : 0.7 * inverted;
    return count * count * sizeof(T);
  };
  return all_levels * (static_cast<double>(face) * faces + static_cast<double>(cell) * cells) +
         inverse(faces, most_inverted(limits, false)) + inverse(cells, most_inverted(limits, true));
}

}  // namespace solenoid
