#pragma once
/// \file
/// The levels of a problem, and what the coarsest one is solved with.

#include <array>
#include <memory>
#include <vector>

#include "engine/engine.hpp"
#include "level/level.hpp"
#include "solenoid/solver.hpp"

namespace solenoid {

/// How the coarsest level is solved.
enum class CoarseSolve {
  patch,  ///< one patch covers the level: its local solver is exact
  dense,  ///< a dense (pseudo-)inverse
  mac,    ///< too large for a direct solve: smoothing and the marker-and-cell scheme, inside a flexible outer method
  krylov  ///< the same where cells are far from cubes: GMRES with the smoother, and that scheme factorised
};

/// Whether Krylov methods take part: then the cycle is not linear, and does not solve this level to rounding.
constexpr bool is_by_krylov(CoarseSolve coarse) { return coarse == CoarseSolve::mac || coarse == CoarseSolve::krylov; }

/// Unknowns up to which the coarsest level is inverted as a dense matrix on every engine.
inline constexpr std::int64_t always_dense = 1000;
/// The same where coefficients vary by cell, or cells are sheared, and boxes do not pair up any more.
inline constexpr std::int64_t most_dense_by_cell = 8000;

/// How levels are dealt out to ranks.
struct Distribution {
  std::shared_ptr<const Communicator> ranks;  ///< nullptr: one
  /// A level of at most so many cells, and those coarser, are the same on all ranks: there messages take longer than
  /// work.
  std::int64_t replicated_cells = 4096;
};

/// Whether ranks share the cells of a lattice.
bool is_shared(const Distribution& distribution, const std::array<int, 3>& extent);

struct Hierarchy {
  /// Levels go down to one refinement of the coarse boxes; from there on only while the coarsest is too large for a
  /// direct solve and the boxes pair up. They end earlier below the finest where the engine would rather have a dense
  /// inverse (`limits`: Engine::dense_limits) and one patch does not do, unless the options ask for all levels. In
  /// cells that are not near square only the short directions are coarsened; where these have two cells left, the next
  /// longer ones. Coarse levels, and the coarsest always, are whole on each rank. A level with unknowns that no vertex
  /// patch reaches is the coarsest, and has small patches. Collective. \throws InputError if cells that are far from
  /// cubes have unknowns that no vertex patch reaches, if there are more ranks than pieces of the mesh, or if the
  /// coarsest level is too large for each rank to solve it.
  Hierarchy(const Problem& problem, const MultigridOptions& options, const DenseLimits& limits = {},
            const Distribution& distribution = {});

  /// Level::set_coefficients on all levels, given those of the finest. (Discretisation::set_coefficients sees to what
  /// solves have besides.)
  void set_coefficients(const Coefficients& coefficients);

  [[nodiscard]] const Level& finest() const { return *levels.back(); }
  [[nodiscard]] int size() const { return static_cast<int>(levels.size()); }

  std::vector<std::unique_ptr<Level>> levels;  ///< coarsest first
  CoarseSolve coarse = CoarseSolve::dense;
};

/// The directions in which cells of this size are coarsened next, of those that `among` has.
std::array<bool, 3> directions_to_coarsen(int dim, const Point& size,
                                          const std::array<bool, 3>& among = {true, true, true});
/// The directions in which a domain has more than two cells.
std::array<bool, 3> more_than_two(const std::array<std::int64_t, 3>& extent);

/// MultigridOptions::cycle_index, chosen where the options leave it open.
int cycle_index(const MultigridOptions& options, const Equation& equation);

/// The equation that a problem states.
Equation equation_of(const Problem& problem);

}  // namespace solenoid
