#pragma once
/// \file
/// The monolithic multigrid V-cycle (paper, Section 3), in precision T.

#include <memory>
#include <vector>

#include "engine/engine.hpp"
#include "solver/hierarchy.hpp"
#include "solver/krylov.hpp"
#include "solver/mac_correction.hpp"

namespace solenoid {

/// The cycle of a solve. Full multigrid does V-cycles, whatever the order: it sees to all levels by itself.
inline MultigridOptions cycle_of(const SolverOptions& options) {
  MultigridOptions multigrid = options.multigrid;
  if (options.method == Method::fmg && multigrid.cycle_index == 0) multigrid.cycle_index = 1;
  return multigrid;
}

template <class T>
class Multigrid {
 public:
  Multigrid(Engine& engine, const Hierarchy& hierarchy, const MultigridOptions& options);

  /// The V-cycle on levels 0..level for the right-hand side in `right_hand_side(level)`, from x = 0: one pre- and one
  /// post-smoothing step. Returns the result, which lives until the next cycle; constants are removed from it.
  const T* cycle(int level);
  /// Prepares cycle(level) for being called many times: the engine may record what it does.
  void record(int level);
  const T* cycle() { return cycle(static_cast<int>(levels_.size()) - 1); }
  [[nodiscard]] T* right_hand_side(int level) { return levels_[level].b.data(); }
  [[nodiscard]] T* right_hand_side() { return levels_.back().b.data(); }
  [[nodiscard]] Kernels<T>& kernels(int level) { return *levels_[level].kernels; }
  [[nodiscard]] Kernels<T>& kernels() { return *levels_.back().kernels; }

  /// One smoothing step x <- S(x, b) with b of that level: all colours. The result is left in `x` or in `other`;
  /// returned. x == nullptr stands for zero, then the result is in one of `first` and `other`.
  T* smooth(int level, const T* b, const T* x, T* first, T* other);

 private:
  struct LevelData {
    std::unique_ptr<Kernels<T>> kernels;
    Vector<T> b;
    Vector<T> x;  // x and y take turns: a colour reads one and writes the other
    Vector<T> y;
    Vector<T> load;  // F-cycle on coarse levels: the first right-hand side, and the sum of the corrections
    Vector<T> sum;
    std::function<void()> recorded;  // what cycle() does on this level, if it was recorded, and where it leaves its
    const T* result = nullptr;       // result
  };

  const T* whole_cycle(int level);
  /// A cycle on levels 0..level; the result may have constants in it.
  T* run_cycle(int level, int index);

  /// The coarse-grid correction for the right-hand side of a level: one cycle or, in an F-cycle, a second one that is a
  /// V-cycle. A W-cycle needs as many iterations, but visits a level twice as often as the next finer one: on an engine
  /// for which small levels take as long as large ones, these visits were most of its time.
  const T* correction(int level, int index);
  T* solve_coarsest();
  void make_dense();
  /// z = M r on the coarsest level for the inner Krylov method: lowest-order correction, then a smoothing step.
  void precondition_coarsest(const T* r, T* z);

  Engine& engine_;
  const Hierarchy& hierarchy_;
  MultigridOptions options_;
  std::vector<LevelData> levels_;
  Vector<T> inverse_;                  // dense coarse solve
  Vector<std::int64_t> coarse_index_;  // its unknowns
  std::int64_t coarse_count_ = 0;
  std::unique_ptr<MacCorrection> mac_;  // inner Krylov method
  Vector<T> coarse_work_;
  KrylovSpace<T> coarse_space_;
};

}  // namespace solenoid
