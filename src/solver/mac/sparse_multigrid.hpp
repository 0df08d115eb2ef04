#pragma once
/// \file
/// Algebraic multigrid by unsmoothed aggregation for one sparse symmetric matrix, with all its numbers in the engine's
/// memory: what solve() does is the same whatever the numbers are, so that it may be recorded.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/assembly.hpp"
#include "engine/engine.hpp"
#include "engine/sparse.hpp"

namespace solenoid {

struct SparseMultigridOptions {
  Merge merge = Merge::block;
  /// Conjugate-gradient steps of solve().
  int steps = 2;
  /// Two steps of conjugate gradients on each coarse level (K-cycle), or one cycle there, whose correction is scaled
  /// (V-cycle): constants on aggregates are too stiff by about that factor.
  bool k_cycle = false;
};

/// Nodes of the coarsest matrix at most, of which an engine has the inverse.
inline std::int64_t most_inverted(const DenseLimits& limits, bool k_cycle) {
  constexpr std::int64_t everywhere = 400;
  return std::max(everywhere, k_cycle ? limits.than_by_k_cycle : limits.than_by_cycle);
}

template <class T>
class SparseMultigrid {
 public:
  /// Of the matrix `finest` of these rows. `dense`: kernels of any level, which outlive this object.
  SparseMultigrid(Engine& engine, SparseAssembly& assembly, SparseKernels<T>& kernels, Kernels<T>& dense,
                  const SparseRows& rows, AssembledMatrix finest, const SparseMultigridOptions& options);

  /// x = about A^-1 b. For a singular matrix b is orthogonal to its constants, and x may have some in it. b and x are
  /// other vectors than those of this object.
  void solve(const T* b, T* x) { is_inverted(0) ? cycle(0, b, x) : conjugate_gradients(0, options_.steps, b, x); }
  [[nodiscard]] const SparseMatrix<T>& matrix() const { return levels_.front().matrix; }
  [[nodiscard]] int levels() const { return static_cast<int>(levels_.size()); }

 private:
  struct LevelData {
    // The matrix, and its aggregates on the next coarser level.
    Vector<std::int64_t> begin;
    Vector<std::int32_t> column;
    Vector<std::uint16_t> value;
    Vector<T> diagonal;
    Vector<T> inverse_diagonal;
    Vector<std::int32_t> parent;
    Vector<std::int32_t> child_begin;
    Vector<std::int32_t> child;
    SparseMatrix<T> matrix;
    Aggregates aggregates;
    bool by_colours = true;  ///< smoothed by Gauss-Seidel, otherwise by Jacobi's method
    // Vectors: right-hand side and result of coarse levels, residuals of the cycle and of conjugate gradients, their
    // directions.
    Vector<T> b;
    Vector<T> x;
    Vector<T> r;
    Vector<T> rest;
    std::vector<Vector<T>> d;
    std::vector<Vector<T>> a_d;
    Vector<T> curvature;
  };

  /// How the next level is smoothed, if it has these rows (SparseMatrix).
  struct Smoothing {
    bool by_colours;
    std::int32_t solved_from;
    std::int32_t solved_to;
  };
  [[nodiscard]] Smoothing smoothing_of(const SparseRows& rows) const;
  void add_level(SparseAssembly& assembly, const SparseRows& rows, AssembledMatrix matrix);
  void set_aggregates(LevelData& fine, Coarsened& coarse);
  void invert_coarsest(SparseAssembly& assembly, const SparseRows& rows, const AssembledMatrix& matrix);
  [[nodiscard]] bool is_inverted(int level) const { return level + 1 == levels() && coarsest_inverse_.size() > 0; }
  void conjugate_gradients(int level, int steps, const T* b, T* x);
  /// x = one cycle for b.
  void cycle(int level, const T* b, T* x);

  Engine& engine_;
  SparseKernels<T>& kernels_;
  Kernels<T>& dense_;
  SparseMultigridOptions options_;
  std::vector<LevelData> levels_;  // finest first
  Vector<std::int64_t> coarsest_row_;
  Vector<T> coarsest_inverse_;
};

}  // namespace solenoid
