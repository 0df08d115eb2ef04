#pragma once
/// \file
/// What solve() and LinearSystem have in common: from a problem to levels and a right-hand side, and from coefficients
/// back to a solution.

#include <cstdint>
#include <memory>
#include <vector>

#include "base/host_vector.hpp"
#include "engine/engine.hpp"
#include "solenoid/solver.hpp"
#include "solver/hierarchy.hpp"

namespace solenoid {

/// \throws InputError if problem and options are not valid, ResourceError if memory does not suffice.
void check(const Problem& problem, const SolverOptions& options);

class Discretisation {
 public:
  /// The problem must be valid; `dense_limits` are the engine's.
  Discretisation(const Problem& problem, const SolverOptions& options, const DenseLimits& dense_limits);

  [[nodiscard]] const Problem& problem() const { return problem_; }
  [[nodiscard]] const Hierarchy& hierarchy() const { return hierarchy_; }
  /// Of the problem and its levels, also for what load() makes of boundary velocities. Kernels get to know by
  /// Preconditioner::make_tables and use_tables. \throws InputError as Level::set_coefficients; nothing is changed
  /// then.
  void set_coefficients(const Coefficients& coefficients);
  [[nodiscard]] const Level& finest() const { return hierarchy_.finest(); }
  /// Numbers that the vectors of load() need room for: those of the finest level and, where boundary velocities have to
  /// be lifted, the hats on all upper boundary faces.
  [[nodiscard]] std::int64_t room() const;

  /// b = the right-hand side for homogeneous boundary velocities; constants that A maps to zero are removed. `kernels`:
  /// of the finest level. `work` is left zero. \throws InputError where a field is not finite, or if there is no
  /// solution.
  void load(Engine& engine, Kernels<double>& kernels, Vector<double>& work, Vector<double>& b);
  /// The two parts of that before anything is removed: what a force adds, and what boundary data do.
  [[nodiscard]] HostVector force_load(const VectorField& force) const;
  void boundary_load(Engine& engine, Vector<double>& work, Vector<double>& b);
  /// Removes from b the constants that A maps to zero. \throws InputError if there is no solution: what is removed is
  /// the mean of a force that nothing balances.
  void balance(Kernels<double>& kernels, double* b);
  /// Whether there are boundary velocities that solution() adds: flow through sides.
  [[nodiscard]] bool lifted();
  /// The loads of all levels but the finest, for full multigrid, where they are not P^T times that of the finest:
  /// values on sides enter with the penalty of a level's own cells. Empty elsewhere, and where velocities are lifted().
  std::vector<HostVector> coarse_loads();
  /// The solution with these coefficients: x plus the boundary velocities.
  [[nodiscard]] Solution solution(const Vector<double>& x);

 private:
  /// The boundary velocities on the grid that stores all boundary hats, or nothing where all are zero.
  const HostVector& lift();
  /// load -= A u_g, where u_g are the boundary velocities. `b` and `work` have room() numbers; `work` is left zero.
  void subtract_lift(Engine& engine, Vector<double>& work, Vector<double>& b, HostVector& load);

  Problem problem_;
  MultigridOptions multigrid_;
  std::uint64_t random_load_;
  Hierarchy hierarchy_;
  std::shared_ptr<Level> lift_level_;  // of the grid that stores all boundary hats
  HostVector lift_;
};

}  // namespace solenoid
