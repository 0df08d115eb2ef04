#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/parallel.hpp"
#include "engine/engine.hpp"
#include "engine/point_weights.hpp"
#include "mesh/record.hpp"
#include "problem/parts.hpp"
#include "problem/regions.hpp"
#include "problem/support.hpp"
#include "solenoid/error.hpp"
#include "solenoid/image.hpp"
#include "solenoid/solver.hpp"
#include "solver/estimate.hpp"
#include "solver/hierarchy.hpp"
#include "solver/load.hpp"
#include "solver/mac/block_factorisation.hpp"
#include "solver/methods.hpp"
#include "solver/multigrid/dense_inverse.hpp"

namespace solenoid {
namespace {

/// What a mesh is made of, counted on the coarse boxes without building it.
struct CoarseCounts {
  std::int64_t boxes = 0;
  std::int64_t fixed = 0;    ///< lower faces where the normal velocity is prescribed: unknowns the box does not have
  std::int64_t outflow = 0;  ///< upper faces on outflow sides: unknowns on top of those of the box
  std::int64_t upper = 0;    ///< upper faces at all boundaries
  std::vector<SideKinds> kinds;  ///< [side]
};

CoarseCounts count_coarse(const Problem& problem) {
  const Mesh& mesh = problem.mesh;
  const Boundary& boundary = problem.boundary;
  CoarseCounts counts;
  for (int side = 0; side < 2 * mesh.dim; ++side) counts.kinds.emplace_back(mesh, boundary, side);
  const std::vector<std::int32_t> holes = mesh.image == nullptr ? holes_of_boxes(mesh) : std::vector<std::int32_t>{};
  const std::vector<int> sides = hole_sides(mesh, boundary);
  constexpr int none = -1;
  /// The number of the condition on a hole, or none.
  const auto hole_at = [&](const std::array<int, 3>& at) {
    if (mesh.image != nullptr) return mesh.image->solid(at) ? 0 : none;
    const std::int32_t hole = holes[number_of_box(mesh, at)];
    return hole < 0 ? none : sides[hole];
  };
  /// What lies behind a side of a box; `periodic` stands for another box.
  const auto behind = [&](std::array<int, 3> position, int side) {
    const int a = side / 2;
    position[a] += side % 2 == 0 ? -1 : 1;
    if (position[a] < 0 || position[a] >= mesh.cells[a]) {
      if (boundary.sides[side].kind != SideKind::periodic) return counts.kinds[side].at(position);
      position[a] = side % 2 == 0 ? mesh.cells[a] - 1 : 0;
    }
    const int hole = hole_at(position);
    return hole == none ? SideKind::periodic : hole_side(boundary, hole).kind;
  };
  struct Sums {
    std::int64_t boxes, fixed, outflow, upper;
  };
  const Ranges rows{std::int64_t{mesh.cells[1]} * (mesh.dim == 3 ? mesh.cells[2] : 1), 64};
  std::vector<Sums> sums(rows.number(), Sums{});
  parallel_ranges(rows, [&](CellRange range, std::int64_t i) {
    Sums here{};
    for (auto row = range.begin; row < range.end; ++row) {
      for (int x = 0; x < mesh.cells[0]; ++x) {
        const std::array<int, 3> position{x, static_cast<int>(row % mesh.cells[1]),
                                          static_cast<int>(row / mesh.cells[1])};
        if (hole_at(position) != none) continue;
        ++here.boxes;
        if (problem.equation == EquationKind::poisson) continue;  // no unknowns belong to faces
        for (int a = 0; a < mesh.dim; ++a) {
          const SideKind lower = behind(position, 2 * a);
          here.fixed += lower == SideKind::velocity || lower == SideKind::slip;
          const SideKind upper = behind(position, 2 * a + 1);
          here.outflow += upper == SideKind::outflow;
          here.upper += upper != SideKind::periodic;
        }
      }
    }
    sums[i] = here;
  });
  for (const Sums& here : sums) {
    counts.boxes += here.boxes;
    counts.fixed += here.fixed;
    counts.outflow += here.outflow;
    counts.upper += here.upper;
  }
  return counts;
}

std::int64_t cells_at(const CoarseCounts& counts, int dim, int refine) {
  return counts.boxes << (static_cast<std::int64_t>(dim) * refine);
}

std::int64_t faces_at(std::int64_t coarse_faces, int dim, int refine) {
  return coarse_faces << (static_cast<std::int64_t>(dim - 1) * refine);
}

std::int64_t dofs_at(const CoarseCounts& counts, const Problem& problem, int refine) {
  const int dim = problem.mesh.dim;
  return cells_at(counts, dim, refine) * record_size(dim, problem.order, problem.equation) +
         faces_at(counts.outflow - counts.fixed, dim, refine) * power(problem.order + 1, dim - 1);
}

double sine_of(const Mesh& mesh) { return mesh.edges ? AffineMap(mesh.dim, mesh.lower, *mesh.edges).sine() : 1.0; }

Point cell_size(const Mesh& mesh, int refine) {
  Point size{};
  for (int a = 0; a < mesh.dim; ++a) {
    size[a] = std::ldexp(length_along(mesh, a) / static_cast<double>(mesh.cells[a]), -refine);
  }
  return mesh.edges ? AffineMap(mesh.dim, mesh.lower, *mesh.edges).heights(size) : size;
}

/// Cells of all levels, the finest first, as Hierarchy coarsens them.
std::vector<double> cells_of_levels(const CoarseCounts& counts, const Problem& problem, int refine) {
  const Mesh& mesh = problem.mesh;
  const int dim = mesh.dim;
  std::array<std::int64_t, 3> extent{1, 1, 1};
  std::array<int, 3> halvings{};
  for (int a = 0; a < dim; ++a) extent[a] = static_cast<std::int64_t>(mesh.cells[a]) << refine;
  const auto boundaries_pair_up = [&](int a) {
    if (halvings[a] < refine) return true;
    const int half = 2 << (halvings[a] - refine);  // in coarse boxes
    return std::all_of(mesh.holes.begin(), mesh.holes.end(),
                       [&](const IndexBox& box) { return box.lower[a] % half == 0 && box.upper[a] % half == 0; }) &&
           (mesh.image == nullptr || mesh.image->in_blocks(a, half)) &&
           std::all_of(counts.kinds.begin(), counts.kinds.end(),
                       [&](const SideKinds& side) { return side.in_blocks(a, half); });
  };
  Point size = cell_size(mesh, refine);
  std::vector<double> cells{static_cast<double>(cells_at(counts, dim, refine))};
  if (problem.lumped) return cells;
  for (;;) {
    const std::array<bool, 3> left = more_than_two(extent);
    auto directions = directions_to_coarsen(dim, size);
    for (int a = 0; a < dim; ++a) {
      if (directions[a] && !left[a]) directions = directions_to_coarsen(dim, size, left);
    }
    if (directions == std::array<bool, 3>{}) return cells;
    double next = cells.back();
    for (int a = 0; a < dim; ++a) {
      if (!directions[a]) continue;
      if (extent[a] % 2 != 0 || !boundaries_pair_up(a)) return cells;
      extent[a] /= 2;
      ++halvings[a];
      size[a] *= 2.0;
      next /= 2.0;
    }
    cells.push_back(next);
  }
}

/// What the coarsest level is solved by, as Hierarchy chooses it.
struct CoarsestNeeds {
  double dense_unknowns = 0.0;  ///< of a dense inverse, if it is not a small one
  double mac_cells = 0.0;       ///< of the marker-and-cell scheme,
  double mac_faces = 0.0;       ///< and faces with its velocities,
  int mac_vectors = 0;          ///< of the level for smoothing around it
  bool by_krylov = false;       ///< whether Krylov methods take part
};
CoarsestNeeds needs_of_coarsest(const CoarseCounts& counts, const Problem& problem, const std::vector<double>& cells,
                                int refine, const MultigridOptions& options, const DenseLimits& limits) {
  const int dim = problem.mesh.dim;
  const auto fixed_faces = [&](double of_level) {
    const double cells_of_face = std::pow(of_level / cells.front(), static_cast<double>(dim - 1) / dim);
    return static_cast<double>(faces_at(counts.fixed - counts.outflow, dim, refine)) * cells_of_face;
  };
  const auto unknowns = [&](double of_level) {
    return of_level * record_size(dim, problem.order, problem.equation) -
           fixed_faces(of_level) * power(problem.order + 1, dim - 1);
  };
  if (problem.mesh.edges) {
    const double count = unknowns(cells.back());
    return {.dense_unknowns = std::min<double>(count, most_dense_by_cell), .by_krylov = count > most_dense_by_cell};
  }
  const bool is_small = unknowns(cells.back()) <= always_dense;
  const bool by_cell = has_coefficients_by_cell(problem);
  CoarsestNeeds by_mac;
  by_mac.by_krylov = !is_small;
  if (!is_small && !by_cell) {
    by_mac.mac_cells = cells.back();
    by_mac.mac_faces = dim * cells.back() - fixed_faces(cells.back());
    by_mac.mac_vectors = problem.lumped ? 0 : 2;
  }
  if (problem.lumped && !by_cell) return by_mac;
  for (std::size_t level = 1; !options.all_levels && level < cells.size(); ++level) {
    const double count = unknowns(cells[level]);
    if (count <= static_cast<double>(limits.than_by_cycle)) return {.dense_unknowns = count};
  }
  const double count = unknowns(cells.back());
  const double most = std::max<double>(by_cell ? most_dense_by_cell : 0, limits.than_by_mac);
  if (count <= most) {
    return {.dense_unknowns = count};
  }
  return by_mac;
}

/// Bytes per cell of the finest level of a viscosity at points: weights and upper hats of the operator, and of that on
/// boundary velocities if there are any, and what the host has.
double bytes_of_viscosity_points(const Problem& problem, const Engine& engine) {
  if (problem.viscosity_points == ViscosityPlaces::cell) return 0.0;
  const int dim = problem.mesh.dim;
  const int on_host = engine.stream() == nullptr ? ViscosityPoints::in_cell(dim, problem.order) : 0;
  const double of_operator = static_cast<double>(sizeof(float)) * point_weights_of_cell(dim, problem.order) +
                             static_cast<double>(sizeof(double)) * dim * power(problem.order + 1, dim - 1);
  return (has_boundary_velocity(problem) ? 2.0 : 1.0) * of_operator + static_cast<double>(sizeof(double)) * on_host;
}

/// Bytes of a solve with the cycle in precision S.
template <class S>
std::int64_t bytes_at(const CoarseCounts& counts, const Problem& problem, const SolverOptions& options,
                      const MoreVectors& more, const Engine& engine, int refine) {
  const int dim = problem.mesh.dim;
  const auto levels = cells_of_levels(counts, problem, refine);
  const double finest = levels.front();
  const double all = std::accumulate(levels.begin(), levels.end(), 0.0);
  const double number = record_size(dim, problem.order, problem.equation);
  const auto bytes_of = [&](const VectorNeeds& needs) {
    return number * (static_cast<double>(needs.finest) * finest + static_cast<double>(needs.coarser) * (all - finest));
  };
  const int index = cycle_index(cycle_of(options), equation_of(problem));
  // Load and solution have room for all boundary hats.
  const auto hats = static_cast<double>(faces_at(counts.upper, dim, refine));
  const double vector = bytes_of(on_finest<double>(1)) + number * sizeof(double) * hats;
  const auto [unknowns, mac_cells, mac_faces, mac_vectors, by_krylov] =
      needs_of_coarsest(counts, problem, levels, refine, options.multigrid, engine.dense_limits());
  // The coarsest level is not smoothed in the cycle, which has one vector less there.
  const double of_coarsest = static_cast<double>(sizeof(S)) * number * (mac_vectors - 1) * levels.back();
  const double coarsest = of_coarsest + sizeof(S) * unknowns * unknowns +
                          block_factorisation_bytes<S>(dim, mac_faces, mac_cells, engine.dense_limits());
  const bool is_additive = options.multigrid.smoother == SmootherKind::additive;
  const double smoothers = has_coefficients_by_cell(problem) || problem.mesh.edges
                               ? bytes_of(on_all<S>(engine.vectors_by_elements(is_additive)))
                               : 0.0;
  const double levels_and_solution = bytes_of(Cycle<S>::needs(index)) + smoothers + vector + coarsest +
                                     finest * bytes_of_viscosity_points(problem, engine);
  // Memory in which an inverse is computed serves the method afterwards.
  const double load_and_method = vector + bytes_of(solver_needs(options, sine_of(problem.mesh)));
  const double more_vectors = more.always + (by_krylov ? more.beside_krylov : 0.0);
  const double bytes =
      levels_and_solution + more_vectors * vector + std::max(load_and_method, dense_inverse_work(unknowns));
  return static_cast<std::int64_t>(bytes + static_cast<double>(engine.bytes_per_cell(dim)) * all);
}

/// Of several ranks, each. Boxes of cells are about cubes, with ghosts around them; a level that is too small to be
/// shared takes no memory to speak of.
std::int64_t bytes_at(const CoarseCounts& counts, const Problem& problem, const SolverOptions& options,
                      const MoreVectors& more, const Engine& engine, int refine) {
  const std::int64_t all = options.precision == Precision::mixed
                               ? bytes_at<float>(counts, problem, options, more, engine, refine)
                               : bytes_at<double>(counts, problem, options, more, engine, refine);
  const auto cells = static_cast<double>(cells_at(counts, problem.mesh.dim, refine));
  const int ranks = options.communicator == nullptr ? 1 : options.communicator->size();
  if (ranks == 1 || cells <= static_cast<double>(std::max<std::int64_t>(options.replicated_cells, 8 * ranks)))
    return all;
  const double edge = std::pow(cells / ranks, 1.0 / problem.mesh.dim);
  const int layers = problem.mesh.edges ? Partition::sheared_layers : Partition::layers;
  const double with_ghosts = std::pow((edge + 2 * layers) / edge, problem.mesh.dim);
  return static_cast<std::int64_t>(static_cast<double>(all) / ranks * with_ghosts);
}

}  // namespace

Estimate estimate(const Problem& problem, const SolverOptions& options) {
  return estimate(problem, options, MoreVectors{});
}

Estimate estimate(const Problem& problem, const SolverOptions& options, const MoreVectors& more) {
  validate(problem);
  validate(problem, options);
  return estimate(problem, options, more, *make_engine(options.device, 1, options.communicator, options.transport));
}

Estimate estimate(const Problem& problem, const SolverOptions& options, const MoreVectors& more, const Engine& engine) {
  Estimate estimate;
  const CoarseCounts counts = count_coarse(problem);
  estimate.dofs = dofs_at(counts, problem, problem.mesh.refine);
  estimate.bytes_needed = bytes_at(counts, problem, options, more, engine, problem.mesh.refine);
  estimate.bytes_available = engine.bytes_available();
  estimate.largest_refine = -1;
  constexpr int most = 20;
  for (int refine = 0;
       refine <= most && bytes_at(counts, problem, options, more, engine, refine) <= estimate.bytes_available;
       ++refine) {
    estimate.largest_refine = refine;
  }
  return estimate;
}

void require_memory(const Estimate& need) {
  if (need.bytes_needed <= need.bytes_available) return;
  throw ResourceError(fmt::format(
      "not enough memory: {} unknowns need {:.2f} GB, {:.2f} GB are available; the largest refinement that fits is "
      "{}",
      need.dofs, static_cast<double>(need.bytes_needed) * 1e-9, static_cast<double>(need.bytes_available) * 1e-9,
      need.largest_refine >= 0 ? fmt::format("refine = {}", need.largest_refine) : "none"));
}

}  // namespace solenoid
