#include "solver/hierarchy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "base/agreement.hpp"
#include "problem/parts.hpp"
#include "problem/validate.hpp"

namespace solenoid {
namespace {

/// Unknowns of a coarsest level up to which each rank solves it.
constexpr std::int64_t most_on_each_rank = 400'000;

/// What decides how strongly cells couple: how far apart their faces are.
Point sizes_of(const Metric& metric) {
  const Point widths = metric.uniform_width();
  return metric.map() == nullptr ? widths : metric.map()->heights(widths);
}

/// Seeds are the cells of the first lattice that is not shared, coarsened as levels are; nullptr if that is the finest.
std::shared_ptr<const Partition> partition_of(const Mesh& mesh, const Distribution& distribution) {
  std::array<int, 3> extent{1, 1, 1};
  for (int a = 0; a < mesh.dim; ++a) extent[a] = mesh.cells[a] << mesh.refine;
  Point size = sizes_of(Metric::of(mesh));
  const auto finest = extent;
  while (is_shared(distribution, extent)) {
    auto directions = directions_to_coarsen(mesh.dim, size);
    const auto left = more_than_two({extent[0], extent[1], extent[2]});
    for (int a = 0; a < mesh.dim; ++a) {
      if (directions[a] && !left[a]) directions = directions_to_coarsen(mesh.dim, size, left);
    }
    bool pairs_up = directions != std::array<bool, 3>{};
    for (int a = 0; a < mesh.dim; ++a) pairs_up = pairs_up && !(directions[a] && extent[a] % 2 != 0);
    if (!pairs_up) break;
    for (int a = 0; a < mesh.dim; ++a) {
      if (!directions[a]) continue;
      extent[a] /= 2;
      size[a] *= 2.0;
    }
  }
  if (extent == finest) return nullptr;
  // What a seed weighs: cells of the finest lattice, or coarse boxes, whichever is coarser than it.
  const std::shared_ptr<const VoxelImage> image = image_of(mesh);
  const auto weight = [&](const std::array<int, 3>& seed) {
    std::array<int, 3> first{};
    std::array<int, 3> last{1, 1, 1};
    for (int a = 0; a < mesh.dim; ++a) {
      first[a] = static_cast<int>(std::int64_t{seed[a]} * mesh.cells[a] / extent[a]);
      last[a] = std::max<int>(first[a] + 1, static_cast<int>((seed[a] + std::int64_t{1}) * mesh.cells[a] / extent[a]));
    }
    std::int64_t boxes = 0;
    for (int z = first[2]; z < last[2]; ++z) {
      for (int y = first[1]; y < last[1]; ++y) {
        for (int x = first[0]; x < last[0]; ++x) boxes += image->pore({x, y, z}) ? 1 : 0;
      }
    }
    return boxes;
  };
  return std::make_shared<const Partition>(distribution.ranks, mesh.dim, extent, weight);
}

bool one_patch_is_exact(const Level& level, LocalSolverKind local) {
  if (level.goes_by_elements()) return false;
  const auto& patches = level.patches;
  if (level.grid.partition() != nullptr || patches.lower_cell.size() != 1 || !patches.cover_everything) return false;
  if (local != LocalSolverKind::direct && local != LocalSolverKind::dense) return false;
  for (int a = 0; a < level.equation.dim; ++a) {
    if (patches.kinds[0][a].weight != patches.kinds[0][a].face || level.grid.periodic()[a]) return false;
    // The matrix of the whole patch is inverted without constant velocities in mind.
    if (local == LocalSolverKind::dense && level.has_constant(a)) return false;
  }
  return true;
}

/// The block factorisation of the marker-and-cell scheme is made for voxels, with widths that differ by two at most.
bool near_cubes(const Level& level) {
  constexpr double most = 2.0;
  if (level.is_sheared()) return false;
  const Point& h = level.grid.metric().uniform_width();
  const auto [narrowest, widest] = std::minmax_element(h.begin(), h.begin() + level.equation.dim);
  return *widest <= 1.001 * most * *narrowest;
}

/// Of the equation on the level made by coarsening one with that of `fine` in `directions`. Levels finer than those
/// coarsened in all three directions would not smooth what a weaker penalty lets through.
/// Where coefficients vary, or cells are sheared, nothing may be weaker.
double coarse_penalty(const MultigridOptions& options, const Equation& fine, const std::array<bool, 3>& directions,
                      bool may_be_weaker) {
  constexpr double weaker = 2.0 / 3.0;
  if (options.coarse_penalty != 0.0) return options.coarse_penalty;
  return may_be_weaker && fine.order == 1 && directions == std::array{true, true, true} ? weaker
                                                                                        : fine.relative_penalty;
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

Equation equation_of(const Problem& problem) {
  return {.dim = problem.mesh.dim,
          .order = problem.order,
          .kind = problem.equation,
          .lumped = problem.lumped,
          .form = form_of(problem)};
}

bool is_shared(const Distribution& distribution, const std::array<int, 3>& extent) {
  if (distribution.ranks == nullptr || distribution.ranks->size() == 1) return false;
  const std::int64_t pieces = std::int64_t{8} * distribution.ranks->size();
  return std::int64_t{extent[0]} * extent[1] * extent[2] > std::max(distribution.replicated_cells, pieces);
}

Hierarchy::Hierarchy(const Problem& problem, const MultigridOptions& options, const DenseLimits& limits,
                     const Distribution& distribution) {
  const bool by_cell = has_coefficients_by_cell(problem);
  const bool sheared = problem.mesh.edges.has_value();
  const PatchRules rules{options.patch, options.colour_order, by_cell};
  const auto partition = partition_of(problem.mesh, distribution);
  std::vector<std::unique_ptr<Level>> fine_to_coarse;
  const Equation equation = equation_of(problem);
  Grid finest_grid(problem.mesh, problem.boundary, false, partition);
  Coefficients coefficients;
  in_agreement(distribution.ranks.get(), [&] { coefficients = coefficients_of(problem, finest_grid); });
  // The marker-and-cell scheme has a solver that needs neither patches nor coarser cells.
  fine_to_coarse.push_back(equation.lumped
                               ? std::make_unique<Level>(equation, coefficients, std::move(finest_grid))
                               : std::make_unique<Level>(equation, coefficients, std::move(finest_grid), rules));
  const auto make_whole = [&] {
    const Level& level = *fine_to_coarse.back();
    if (level.dofs() > most_on_each_rank) {
      throw InputError(
          fmt::format("{} ranks: the coarsest level has {} unknowns, of which each rank would have all; at most {} are "
                      "possible: use "
                      "one rank, or a mesh that can be coarsened further (even numbers of cells)",
                      distribution.ranks->size(), level.dofs(), most_on_each_rank));
    }
    Grid grid = level.grid.whole();
    const Coefficients of_all = whole_coefficients(level.coefficients, level.grid, grid);
    auto whole = std::make_unique<Level>(level.equation, of_all, std::move(grid), rules);
    whole->schur_inverses = level.schur_inverses;
    fine_to_coarse.back() = std::move(whole);
  };

  const auto refined_once = [&](const Grid& grid) {
    for (int a = 0; a < grid.dim(); ++a) {
      if (grid.extent()[a] > 2 * problem.mesh.cells[a]) return false;
    }
    return true;
  };
  const auto is_finest = [&](const Level& level) { return &level == fine_to_coarse.front().get(); };
  const auto small = [&](const Level& level) {
    return level.dofs() <= (is_finest(level) ? always_dense : std::max(always_dense, limits.than_by_cycle));
  };
  // Other ways than a direct solve are for boxes and constant coefficients. Those that are not small are coarsened
  // further where that is possible.
  const auto invertible_anywhere = [&](const Level& level) {
    return small(level) || ((by_cell || sheared) && level.dofs() <= most_dense_by_cell);
  };
  const auto invertible = [&](const Level& level) {
    return invertible_anywhere(level) || level.dofs() <= limits.than_by_mac;
  };

  for (;;) {
    Level& level = *fine_to_coarse.back();
    const bool covered = level.patches.cover_everything;
    if (equation.lumped) {
      if (!near_cubes(level)) {
        throw InvalidEntry(
            "order",
            "the marker-and-cell scheme is for cells whose widths differ by two at most: use an order k, or "
            "another mesh");
      }
      coarse = small(level) ? CoarseSolve::dense : CoarseSolve::mac;
      break;
    }
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
    if (!is_finest(level) && !options.all_levels && level.dofs() <= limits.than_by_cycle) {
      coarse = CoarseSolve::dense;
      break;
    }
    struct Coarser {
      Coarsening pairs;
      std::unique_ptr<Level> level;
    };
    bool cuts_cells = false;  // some coarse cell would be one of several ranks
    const auto coarsened = [&](const std::array<bool, 3>& directions) -> std::optional<Coarser> {
      const auto pairs = covered ? level.grid.pairing(directions) : std::nullopt;
      if (!pairs) return {};
      const std::array extent{pairs->coarse_extent(0), pairs->coarse_extent(1), pairs->coarse_extent(2)};
      if (level.grid.partition() != nullptr && !level.grid.partition()->refines_to(extent)) {
        cuts_cells = true;
        return {};
      }
      Equation coarser = level.equation;
      coarser.relative_penalty = coarse_penalty(options, level.equation, directions, !by_cell && !sheared);
      Grid grid = is_shared(distribution, extent) ? level.grid.coarsen(*pairs) : level.grid.coarsen_whole(*pairs);
      const Coefficients means = coarse_coefficients(level.coefficients, level.grid, *pairs, grid);
      return Coarser{*pairs, std::make_unique<Level>(coarser, means, std::move(grid), rules)};
    };
    const int dim = level.grid.dim();
    const Point size = sizes_of(level.grid.metric());
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
    if (cuts_cells) {
      make_whole();
      continue;
    }
    // Small patches are for what the marker-and-cell scheme solves.
    const bool by_mac = !by_cell && !invertible(level) && near_cubes(level);
    if (next && (next->level->patches.cover_everything || invertible(*next->level) || by_mac)) {
      level.coarsening = next->pairs;
      next->level->schur_inverses = level.schur_inverses;
      fine_to_coarse.push_back(std::move(next->level));
      continue;
    }
    // What is refused does not depend on the engine.
    if (!covered && is_finest(level) && !invertible_anywhere(level) && !near_cubes(level)) {
      throw InvalidEntry(
          "mesh.refine",
          fmt::format(
              "the mesh has unknowns that no vertex patch reaches, and its cells are far from cubes: every cell "
              "must belong to a block of 2^{} cells around an interior vertex (cells {} x {} x {}). Refine once "
              "more: refine = {}",
              level.equation.dim, level.grid.extent()[0], level.grid.extent()[1], level.grid.extent()[2],
              problem.mesh.refine + 1));
    }
    if ((by_cell || sheared) && !covered && !invertible(level)) {
      throw InvalidEntry(
          "mesh.refine",
          fmt::format("the coarsest level has {} unknowns, too many for a direct solve (at most {}), and some of them "
                      "are in no vertex patch, which {} want: refine once more, refine = {}",
                      level.dofs(), most_dense_by_cell,
                      by_cell ? "coefficients that vary by cell" : "cells that are parallelepipeds",
                      problem.mesh.refine + 1));
    }
    coarse = invertible(level) ? CoarseSolve::dense : by_mac ? CoarseSolve::mac : CoarseSolve::krylov;
    break;
  }
  if (fine_to_coarse.back()->grid.partition() != nullptr) make_whole();
  std::reverse(fine_to_coarse.begin(), fine_to_coarse.end());
  levels = std::move(fine_to_coarse);
}

/// The same everywhere: no level refuses what another one takes.
void Hierarchy::set_coefficients(const Coefficients& coefficients) {
  Coefficients means = coefficients;
  for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
    (*level)->set_coefficients(means);
    if (const auto coarser = std::next(level); coarser != levels.rend()) {
      means = coarse_coefficients(means, (*level)->grid, (*level)->coarsening, (*coarser)->grid);
    }
  }
}

}  // namespace solenoid
