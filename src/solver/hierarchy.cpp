#include "solver/hierarchy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "problem/validate.hpp"

namespace solenoid {
namespace {

/// Unknowns up to which the coarsest level is inverted as a dense matrix on every engine.
constexpr std::int64_t always_dense = 1000;

bool one_patch_is_exact(const Level& level, LocalSolverKind local) {
  const auto& patches = level.patches;
  if (patches.lower_cell.size() != 1 || !patches.cover_everything) return false;
  if (local != LocalSolverKind::direct && local != LocalSolverKind::dense) return false;
  for (int a = 0; a < level.equation.dim; ++a) {
    if (patches.kinds[0][a].weight != patches.kinds[0][a].face || level.grid.periodic()[a]) return false;
    // The matrix of the whole patch is inverted without constant velocities in mind.
    if (local == LocalSolverKind::dense && level.has_constant(a)) return false;
  }
  return true;
}

/// Of the equation on the level made by coarsening one with that of `fine` in `directions`. Levels finer than those
/// coarsened in all three directions would not smooth what a weaker penalty lets through.
double coarse_penalty(const MultigridOptions& options, const Equation& fine, const std::array<bool, 3>& directions) {
  constexpr double weaker = 2.0 / 3.0;
  if (options.coarse_penalty != 0.0) return options.coarse_penalty;
  return fine.order == 1 && directions == std::array{true, true, true} ? weaker : fine.relative_penalty;
}

}  // namespace

/// The shortest, across which cells couple most strongly, and those that are not much longer.
std::array<bool, 3> directions_to_coarsen(int dim, const Point& size, const std::array<bool, 3>& among) {
  double shortest = std::numeric_limits<double>::infinity();
  for (int a = 0; a < dim; ++a) {
    if (among[a]) shortest = std::min(shortest, size[a]);
  }
  std::array<bool, 3> directions{};
  for (int a = 0; a < dim; ++a) directions[a] = among[a] && 0.75 * size[a] <= shortest;
  return directions;
}

std::array<bool, 3> more_than_two(const std::array<std::int64_t, 3>& extent) {
  return {extent[0] > 2, extent[1] > 2, extent[2] > 2};
}

int cycle_index(const MultigridOptions& options, const Equation& equation) {
  if (options.cycle_index != 0) return options.cycle_index;
  return equation.order == 0 || (equation.order == 1 && equation.dim == 2) ? 2 : 1;
}

Equation equation_of(const Problem& problem) { return {problem.mesh.dim, problem.order, problem.equation}; }

Coefficients coefficients_of(const Problem& problem) { return {problem.viscosity, problem.mass}; }

Hierarchy::Hierarchy(const Problem& problem, const MultigridOptions& options, const DenseLimits& limits) {
  const Coefficients coefficients = coefficients_of(problem);
  const PatchRules rules{options.patch, options.colour_order};
  std::vector<std::unique_ptr<Level>> fine_to_coarse;
  fine_to_coarse.push_back(
      std::make_unique<Level>(equation_of(problem), coefficients, Grid(problem.mesh, problem.boundary), rules));

  const auto refined_once = [&](const Grid& grid) {
    for (int a = 0; a < grid.dim(); ++a) {
      if (grid.extent()[a] > 2 * problem.mesh.cells[a]) return false;
    }
    return true;
  };
  const Level* const finest = fine_to_coarse[0].get();
  const auto small = [&](const Level& level) {
    return level.dofs() <= (&level == finest ? always_dense : std::max(always_dense, limits.than_by_cycle));
  };
  const auto invertible = [&](const Level& level) { return small(level) || level.dofs() <= limits.than_by_krylov; };

  for (;;) {
    Level& level = *fine_to_coarse.back();
    const bool covered = level.patches.cover_everything;
    if (refined_once(level.grid)) {
      if (one_patch_is_exact(level, options.local_solver)) {
        coarse = CoarseSolve::patch;
        break;
      }
      if (small(level)) {
        coarse = CoarseSolve::dense;
        break;
      }
    }
    if (&level != finest && !options.all_levels && level.dofs() <= limits.than_by_cycle) {
      coarse = CoarseSolve::dense;
      break;
    }
    struct Coarser {
      Coarsening pairs;
      std::unique_ptr<Level> level;
    };
    const auto coarsened = [&](const std::array<bool, 3>& directions) -> std::optional<Coarser> {
      const auto pairs = covered ? level.grid.pairing(directions) : std::nullopt;
      if (!pairs) return {};
      Equation coarser = level.equation;
      coarser.relative_penalty = coarse_penalty(options, level.equation, directions);
      return Coarser{*pairs, std::make_unique<Level>(coarser, coefficients, level.grid.coarsen(*pairs), rules)};
    };
    const int dim = level.grid.dim();
    const Point& size = level.grid.metric().uniform_width();
    const auto strongest = directions_to_coarsen(dim, size);
    auto next = coarsened(strongest);
    if (!next || !(next->level->patches.cover_everything || small(*next->level))) {
      // Patches span the domain where it has two cells, and are exact across these. It is others that are left.
      const auto& extent = level.grid.extent();
      const auto others = directions_to_coarsen(dim, size, more_than_two({extent[0], extent[1], extent[2]}));
      if (others != strongest && others != std::array<bool, 3>{}) {
        auto other = coarsened(others);
        if (other && other->level->patches.cover_everything) next = std::move(other);
      }
    }
    if (next && (next->level->patches.cover_everything || invertible(*next->level))) {
      level.coarsening = next->pairs;
      next->level->schur_inverses = level.schur_inverses;
      fine_to_coarse.push_back(std::move(next->level));
      continue;
    }
    // What is refused does not depend on the engine.
    if (!covered && &level == finest && !small(level)) {
      throw InvalidEntry(
          "mesh.refine",
          fmt::format("the mesh has unknowns that no vertex patch reaches: every cell must belong to a block of 2^{} "
                      "cells around an interior vertex (cells {} x {} x {}). Refine once more: refine = {}",
                      level.equation.dim, level.grid.extent()[0], level.grid.extent()[1], level.grid.extent()[2],
                      problem.mesh.refine + 1));
    }
    coarse = invertible(level) ? CoarseSolve::dense : CoarseSolve::krylov;
    break;
  }
  std::reverse(fine_to_coarse.begin(), fine_to_coarse.end());
  levels = std::move(fine_to_coarse);
}

/// The same everywhere: no level refuses what another one takes.
void Hierarchy::set_coefficients(const Coefficients& coefficients) {
  for (const auto& level : levels) level->set_coefficients(coefficients);
}

}  // namespace solenoid
