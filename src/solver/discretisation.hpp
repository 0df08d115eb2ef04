#pragma once
/// \file
/// What solve() and LinearSystem have in common: from a problem to levels and a right-hand side, and from coefficients
/// back to a solution.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/host_vector.hpp"
#include "engine/engine.hpp"
#include "solenoid/solver.hpp"
#include "solver/hierarchy.hpp"
#include "solver/lift.hpp"
#include "solver/lift_operator.hpp"
#include "solver/load.hpp"

namespace solenoid {

/// \throws InputError if problem and options are not valid.
void check(const Problem& problem, const SolverOptions& options);

class Discretisation {
 public:
  /// The problem must be valid; `dense_limits` are the engine's. \throws InputError as Hierarchy, and for GMRES from
  /// the left where the cycle is not linear.
  Discretisation(const Problem& problem, const SolverOptions& options, const DenseLimits& dense_limits);

  [[nodiscard]] const Problem& problem() const { return problem_; }
  [[nodiscard]] const Hierarchy& hierarchy() const { return hierarchy_; }
  /// Of the problem and its levels, also for what load() makes of boundary velocities. Kernels get to know by
  /// Preconditioner::make_tables and use_tables. \throws InputError as Level::set_coefficients; nothing is changed
  /// then.
  void set_coefficients(const Coefficients& coefficients);
  /// What the problem says of its coefficients becomes what `other` says, which is the same but for them: where they
  /// vary by cell set_coefficients() has numbers of levels alone.
  void state_coefficients(const Problem& other);
  /// Of expressions, as with_parameters; kinds and places of conditions stay what they are.
  void set_parameters(const Parameters& values);
  /// Force and boundary data of another problem, in which kinds and places of conditions are the same.
  void set_data(const Problem& data);
  [[nodiscard]] const Level& finest() const { return hierarchy_.finest(); }
  /// Numbers that the vectors of load() and complete() need room for: those of the finest level and the hats on all
  /// upper boundary faces.
  [[nodiscard]] std::int64_t room() const;

  /// b = the right-hand side for homogeneous boundary velocities; constants that A maps to zero are removed. `kernels`:
  /// of the finest level. `work` is left zero. \throws InputError where a field is not finite, or if there is no
  /// solution.
  void load(Engine& engine, Kernels<double>& kernels, Vector<double>& work, Vector<double>& b);
  /// The two parts of that before anything is removed: what a force adds, and what boundary data do.
  void force_load(Engine& engine, Kernels<double>& kernels, const VectorField& force, double* b) const;
  void boundary_load(Engine& engine, Kernels<double>& kernels, Vector<double>& work, Vector<double>& b);
  /// b = (velocity, v) by more points than load() takes, for the projection of a velocity to those that are
  /// divergence-free and have the normal velocities on sides; with alpha = 1 and hardly any viscosity.
  void projection_load(Engine& engine, Kernels<double>& kernels, const VectorField& velocity, Vector<double>& work,
                       Vector<double>& b);
  /// Removes from b the constants that A maps to zero. \throws InputError if there is no solution: what is removed is
  /// the mean of a force that nothing balances.
  void balance(Kernels<double>& kernels, double* b);
  /// Whether there are boundary velocities that complete() adds: flow through sides.
  [[nodiscard]] bool lifted();
  /// Whether full multigrid needs a load of its own on each level, as it is not P^T times that of the finest: values on
  /// sides enter with the penalty of a level's own cells. Not where velocities are lifted().
  [[nodiscard]] bool has_coarse_loads();
  /// b = that of a level, before constants are removed.
  void coarse_load(Engine& engine, const Level& level, Kernels<double>& kernels, double* b) const;
  /// Frees what load() keeps for the next one with the same engine, which must be there until then.
  void end_of_loads() { lift_operator_.reset(); }
  /// x, which has room(), becomes the coefficients of the solution: the boundary velocities are added, and all hats on
  /// the boundary have their places. `kernels`: of the finest level.
  void complete(Engine& engine, Kernels<double>& kernels, Vector<double>& x);
  /// The boundary velocities, of level_with_sides().
  const SparseVector& lift();
  /// The finest level with the hats on all sides: that of completed vectors.
  [[nodiscard]] const Level& level_with_sides() const { return *lift_level_; }
  /// Of the levels, on the host.
  [[nodiscard]] std::int64_t bytes() const;
  [[nodiscard]] std::shared_ptr<const Grid> grid_with_sides() const { return {lift_level_, &lift_level_->grid}; }
  /// Of a vector of that level in memory of the host, as a Solution has them.
  [[nodiscard]] HostVector downloaded(const Vector<double>& completed) const;
  /// b = the load of this problem on a level, before anything is lifted or balanced.
  /// `more`: Gauss points, by which the host has to see to it.
  static void assemble(Engine& engine, const Level& level, Kernels<double>& kernels, const Problem& problem, double* b,
                       int more = 0);
  // Of the solution with these coefficients:
  [[nodiscard]] Solution solution(Engine& engine, const Vector<double>& completed);
  /// Of another problem on this mesh, with the same sides and with these coefficients.
  [[nodiscard]] Solution solution_of(const Problem& problem, const Coefficients& coefficients,
                                     const Vector<double>& completed,
                                     const std::optional<FlowIntegrals>& integrals = {}) const;
  /// The same for what is made of these records alone: others are not copied to the host, and not set.
  [[nodiscard]] Solution solution_of(const Problem& problem, const Coefficients& coefficients, Engine& engine,
                                     Kernels<double>& kernels, const Vector<double>& completed,
                                     const std::vector<Record>& records) const;
  [[nodiscard]] FlowIntegrals integrals(Engine& engine, const Vector<double>& completed);
  /// The same where the engine takes them, sooner than the host would.
  [[nodiscard]] std::optional<FlowIntegrals> engine_integrals(Engine& engine, const Vector<double>& completed);
  /// Solution::dissipation() of solution_of().
  [[nodiscard]] double dissipation(Engine& engine, const Problem& problem, const Coefficients& coefficients,
                                   const Vector<double>& completed);
  /// Solution::forces() where the flow is in the memory of the host, or the engine sees to them.
  [[nodiscard]] std::optional<std::vector<BoundaryForce>> engine_forces(Engine& engine, const FlowOfForces& flow);
  /// Of vectors that are completed; nullptr where the host integrates.
  Integrator* integrator(Engine& engine);
  /// \throws InputError where an exact field is not finite.
  [[nodiscard]] Errors errors(Engine& engine, const Vector<double>& completed, const Exact& exact);

 private:
  [[nodiscard]] bool on_some_rank(bool here) const;
  /// As downloaded(), of these records.
  [[nodiscard]] HostVector downloaded(Engine& engine, Kernels<double>& kernels, const Vector<double>& completed,
                                      const std::vector<Record>& records) const;
  /// b = the load of this problem, which has the boundary velocities, for homogeneous ones. `work` is left zero.
  void assemble_lifted(Engine& engine, Kernels<double>& kernels, const Problem& problem, Vector<double>& work,
                       Vector<double>& b, int more = 0);

  Problem problem_;
  MultigridOptions multigrid_;
  std::uint64_t random_load_;
  Hierarchy hierarchy_;
  std::shared_ptr<Level> lift_level_;  // of the grid that stores all boundary hats
  std::optional<SparseVector> lift_;
  std::optional<LiftOperator> lift_operator_;
  Coefficients lift_operator_of_;
  std::optional<std::unique_ptr<Integrator>> integrator_;  // once it was asked for
};

}  // namespace solenoid
