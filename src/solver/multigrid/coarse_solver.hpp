#pragma once
/// \file
/// What the coarsest level is solved with.

#include <memory>

#include "engine/engine.hpp"
#include "solver/hierarchy.hpp"

namespace solenoid {

/// Solves A x = b on the coarsest level, in precision T. Constants that A maps to zero may be left in x.
template <class T>
class CoarseSolver {
 public:
  virtual ~CoarseSolver() = default;
  /// b and x are different vectors; b may lose constants that A maps to zero.
  virtual void solve(T* b, T* x) = 0;
  /// As Kernels::make_tables, beside what the kernels have.
  [[nodiscard]] virtual std::shared_ptr<CoefficientTables> make_tables() = 0;
  virtual std::shared_ptr<CoefficientTables> use_tables(std::shared_ptr<CoefficientTables> tables) = 0;
  /// Whether solve() does the same whatever the numbers are, so that an engine may record it (Engine::record).
  [[nodiscard]] virtual bool same_work() const { return true; }
};

/// The solver for hierarchy.coarse. `kernels` are those of the coarsest level and outlive it.
template <class T>
std::unique_ptr<CoarseSolver<T>> make_coarse_solver(Engine& engine, const Hierarchy& hierarchy,
                                                    const MultigridOptions& options, Kernels<T>& kernels);

}  // namespace solenoid
