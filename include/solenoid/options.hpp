#pragma once
/// \file
/// How a problem is solved: method, tolerance, device, and what the multigrid cycle is made of.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "solenoid/choices.hpp"
#include "solenoid/communicator.hpp"
#include "solenoid/problem.hpp"

namespace solenoid {

/// What the multigrid cycle is made of (paper, Section 3). Poisson's local problems are always solved by fast
/// diagonalisation, and `fused` ones are Poisson's only.
struct MultigridOptions {
  SmootherKind smoother = SmootherKind::multiplicative;
  ColourOrder colour_order = ColourOrder::diagonal;
  PatchProblem patch = PatchProblem::symmetric;
  LocalSolverKind local_solver = LocalSolverKind::direct;
  double damping = 0.0;  ///< of the additive smoother; 0 chooses 0.9 / 2^dim
  /// Coarse solves per cycle: 1 is the V-cycle; 2 the F-cycle, whose second coarse solve is a V-cycle; 0 chooses the
  /// F-cycle for k = 0, and for k = 1 in 2D: there the V-cycle's convergence depends on the number of levels. It
  /// chooses the V-cycle otherwise and in full multigrid.
  int cycle_index = 0;
  /// Interior penalty of all levels but the finest, relative to that of the element on their cells; 0 chooses 2/3 for
  /// k = 1 on the first level made by coarsening in three directions at once and below it, otherwise 1.
  double coarse_penalty = 0.0;
  /// Levels down to one refinement of the coarse boxes, also on an engine that would solve a larger one directly.
  bool all_levels = false;
};

/// A message while work goes on: the stage ("set-up", "solve", ...), what is done of it (0 to 1) and a line of text.
struct Progress {
  std::string stage;
  double fraction = 0.0;
  std::string text;
};

struct SolverOptions {
  Method method = Method::gmres;
  double rtol =
      1e-8;  ///< on the true residual (right) or the preconditioned one (left), relative to the right-hand side
  int max_iterations = 50;
  /// GMRES restart length; 0: none. From the right the last vector of a round is the correction of the round before, so
  /// that one more is kept.
  int restart = 0;
  /// V-cycles on each level of full multigrid. For k >= 2 one makes the velocity as accurate as the element allows, two
  /// the pressure as well. Full multigrid has converged if the last cycle at least halved the residual and at most half
  /// of the estimated error is algebraic (Report::error_estimate).
  int cycles = 1;
  PreconditionerSide side = PreconditionerSide::right;
  Precision precision = Precision::mixed;
  DeviceChoice device = DeviceChoice::automatic;
  int threads = 0;  ///< 0: all cores that the process is bound to, of several ranks its share of them
  MultigridOptions multigrid{};
  std::function<void(const Progress&)> progress{};  ///< called between stages and iterations, from the calling thread
  /// Replaces the load by a random vector (a test of the solver, not of the discretisation) if not 0: the seed. It is
  /// the same for any number of threads and ranks.
  std::uint64_t random_load = 0;

  /// Ranks that solve the problem together (communicator.hpp); nullptr: this process alone. All call solve() with the
  /// same problem and options, and what they ask of solutions is asked by all. Each has its part of the solution.
  std::shared_ptr<const Communicator> communicator{};
  /// How messages between ranks with GPUs travel; processors have MPI alone.
  TransportChoice transport = TransportChoice::automatic;
  /// Levels of at most so many cells are the same on all ranks; at least 8 for each.
  std::int64_t replicated_cells = 4096;

  /// Fields that are known: solve() measures errors against them, on the device if they are expressions.
  Exact exact{};

  /// Sets what `preset` stands for. `paper`: left preconditioning, lexicographic colours, exact diagonal blocks, the
  /// V-cycle through all levels, with the element's penalty on each. `standard`: what these are if nothing is set.
  void apply(Preset preset);
};

/// \throws InputError if an option is out of its range or does not go with the problem, or if there are more threads
/// than a small multiple of what the machine runs at a time.
void validate(const Problem& problem, const SolverOptions& options);

}  // namespace solenoid
