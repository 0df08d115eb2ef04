#pragma once
/// \file
/// The monolithic multigrid cycle (paper, Section 3), in precision T.

#include <memory>
#include <vector>

#include "engine/engine.hpp"
#include "solver/hierarchy.hpp"
#include "solver/multigrid/coarse_solver.hpp"
#include "solver/vector_needs.hpp"

namespace solenoid {

/// The cycle of a solve. Full multigrid does V-cycles, whatever the order: it sees to all levels by itself.
inline MultigridOptions cycle_of(const SolverOptions& options) {
  MultigridOptions multigrid = options.multigrid;
  if (options.method == Method::fmg && multigrid.cycle_index == 0) multigrid.cycle_index = 1;
  return multigrid;
}

template <class T>
class Cycle {
 public:
  Cycle(Engine& engine, const Hierarchy& hierarchy, const MultigridOptions& options);

  /// Right-hand side and two iterates; on the levels between, what an F-cycle (index 2) keeps.
  static VectorNeeds needs(int index) { return on_all<T>(3) + on_coarser<T>(index > 1 ? 2 : 0); }

  /// One cycle on levels 0..level for the right-hand side in `right_hand_side(level)`, from x = 0: one pre- and one
  /// post-smoothing step. Returns the result, which lives until the next cycle; constants are removed from it.
  const T* run(int level);
  /// Prepares run(level) for being called many times: the engine may record what it does.
  void record(int level);
  /// Tables of the coefficients that the levels have now (Hierarchy::set_coefficients), for all levels, beside those in
  /// use. Local problems are solved for that and the coarsest level is inverted.
  [[nodiscard]] std::shared_ptr<CoefficientTables> make_tables();
  /// Hands over what make_tables() returned, then or earlier: the cycle has these coefficients from now on. Returns the
  /// tables that were in use. Within a millisecond, as nothing is computed: kernels get other addresses and numbers,
  /// recorded work is refreshed.
  std::shared_ptr<CoefficientTables> use_tables(const std::shared_ptr<CoefficientTables>& tables);
  const T* run() { return run(static_cast<int>(levels_.size()) - 1); }
  [[nodiscard]] T* right_hand_side(int level) { return levels_[level].b.data(); }
  [[nodiscard]] T* right_hand_side() { return levels_.back().b.data(); }
  [[nodiscard]] Kernels<T>& kernels(int level) { return *levels_[level].kernels; }
  [[nodiscard]] Kernels<T>& kernels() { return *levels_.back().kernels; }

 private:
  struct Tables final : CoefficientTables {
    std::vector<std::shared_ptr<CoefficientTables>> kernels;  // coarsest level first
    std::shared_ptr<CoefficientTables> coarsest;
  };
  struct LevelData {
    std::unique_ptr<Kernels<T>> kernels;
    Vector<T> b;
    Vector<T> x;  // x and y take turns: a colour reads one and writes the other
    Vector<T> y;
    Vector<T> load;  // F-cycle on coarse levels: the first right-hand side, and the sum of the corrections
    Vector<T> sum;
    Recorded recorded;          // what run() does on this level, if it was recorded,
    const T* result = nullptr;  // and where it leaves its result
  };

  const T* without_constants(int level);
  /// A cycle on levels 0..level; the result may have constants in it.
  T* cycle(int level, int index);

  /// The coarse-grid correction for the right-hand side of a level: one cycle or, in an F-cycle, a second one that is a
  /// V-cycle. A W-cycle needs as many iterations, but visits a level twice as often as the next finer one: on an engine
  /// for which small levels take as long as large ones, these visits were most of its time.
  const T* correction(int level, int index);

  Engine& engine_;
  MultigridOptions options_;
  std::vector<LevelData> levels_;
  std::unique_ptr<CoarseSolver<T>> coarsest_;
};

}  // namespace solenoid
