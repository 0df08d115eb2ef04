#pragma once
/// \file
/// Algebraic multigrid by unsmoothed aggregation for one sparse symmetric matrix, with all its numbers in the engine's
/// memory: what solve() does is the same whatever the numbers are, so that it may be recorded.

#include <cstdint>
#include <span>
#include <vector>

#include "engine/engine.hpp"
#include "engine/sparse.hpp"
#include "solver/mac/aggregation.hpp"

namespace solenoid {

struct SparseMultigridOptions {
  Merge merge = Merge::block;
  /// Conjugate-gradient steps of solve().
  int steps = 2;
  /// Two steps of conjugate gradients on each coarse level (K-cycle), or one cycle there, whose correction is scaled
  /// (V-cycle): constants on aggregates are too stiff by about that factor.
  bool k_cycle = false;
};

template <class T>
class SparseMultigrid {
 public:
  /// `finest`: its matrix; `nodes`: of it. `dense`: kernels of any level.
  SparseMultigrid(Engine& engine, SparseKernels<T>& kernels, Kernels<T>& dense, SparseRows finest,
                  Unset<NodePlace> nodes, NodeLattice lattice, const SparseMultigridOptions& options);

  /// x = about A^-1 b. For a singular matrix b is orthogonal to its constants, and x may have some in it. b and x are
  /// other vectors than those of this object.
  void solve(const T* b, T* x) { conjugate_gradients(0, options_.steps, b, x); }
  [[nodiscard]] const SparseMatrix<T>& matrix() const { return levels_.front().matrix; }
  [[nodiscard]] int levels() const { return static_cast<int>(levels_.size()); }

 private:
  struct LevelData {
    // The matrix, and its aggregates on the next coarser level.
    Vector<std::int64_t> begin;
    Vector<std::int32_t> column;
    Vector<T> value;
    Vector<T> diagonal;
    Vector<T> inverse_diagonal;
    Vector<std::int32_t> parent;
    Vector<std::int32_t> child_begin;
    Vector<std::int32_t> child;
    SparseMatrix<T> matrix;
    Aggregates aggregates;
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

  void add_level(const SparseRows& rows);
  void set_aggregates(LevelData& fine, const Coarsened& coarse);
  void invert_coarsest(const SparseRows& rows, Kernels<T>& dense);
  void conjugate_gradients(int level, int steps, const T* b, T* x);
  /// x = one cycle for b.
  void cycle(int level, const T* b, T* x);

  Engine& engine_;
  SparseKernels<T>& kernels_;
  SparseMultigridOptions options_;
  std::vector<LevelData> levels_;  // finest first
  Vector<std::int32_t> coarsest_row_;
  Vector<T> coarsest_inverse_;
};

}  // namespace solenoid
