#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/engine.hpp"
#include "mesh/record.hpp"
#include "solenoid/solver.hpp"
#include "solver/hierarchy.hpp"
#include "solver/load.hpp"
#include "solver/methods.hpp"

namespace solenoid {
namespace {

/// What a mesh is made of, counted on the coarse boxes without building it.
struct CoarseCounts {
  std::int64_t boxes = 0;
  std::int64_t fixed = 0;    ///< lower faces where the normal velocity is prescribed: unknowns the box does not have
  std::int64_t outflow = 0;  ///< upper faces on outflow sides: unknowns on top of those of the box
  std::int64_t upper = 0;    ///< upper faces at all boundaries
};

CoarseCounts count_coarse(const Problem& problem) {
  const Mesh& mesh = problem.mesh;
  const auto& sides = problem.boundary.sides;
  const auto in_hole = [&](const std::array<int, 3>& position) {  // holes may overlap
    return std::any_of(mesh.holes.begin(), mesh.holes.end(), [&](const IndexBox& box) {
      for (int a = 0; a < mesh.dim; ++a) {
        if (position[a] < box.lower[a] || position[a] >= box.upper[a]) return false;
      }
      return true;
    });
  };
  /// What lies behind a side of a box; `periodic` stands for another box.
  const auto behind = [&](std::array<int, 3> position, int side) {
    const int a = side / 2;
    position[a] += side % 2 == 0 ? -1 : 1;
    if (position[a] < 0 || position[a] >= mesh.cells[a]) {
      if (sides[side].kind != SideKind::periodic) return sides[side].kind;
      position[a] = side % 2 == 0 ? mesh.cells[a] - 1 : 0;
    }
    return in_hole(position) ? problem.boundary.holes.kind : SideKind::periodic;
  };
  CoarseCounts counts;
  const int layers = mesh.dim == 3 ? mesh.cells[2] : 1;
  for (int z = 0; z < layers; ++z) {
    for (int y = 0; y < mesh.cells[1]; ++y) {
      for (int x = 0; x < mesh.cells[0]; ++x) {
        const std::array<int, 3> position{x, y, z};
        if (in_hole(position)) continue;
        ++counts.boxes;
        if (problem.equation == EquationKind::poisson) continue;  // no unknowns belong to faces
        for (int a = 0; a < mesh.dim; ++a) {
          const SideKind lower = behind(position, 2 * a);
          counts.fixed += lower == SideKind::velocity || lower == SideKind::slip;
          const SideKind upper = behind(position, 2 * a + 1);
          counts.outflow += upper == SideKind::outflow;
          counts.upper += upper != SideKind::periodic;
        }
      }
    }
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

Point cell_size(const Mesh& mesh, int refine) {
  Point size{};
  for (int a = 0; a < mesh.dim; ++a) {
    size[a] = std::ldexp((mesh.upper[a] - mesh.lower[a]) / static_cast<double>(mesh.cells[a]), -refine);
  }
  return size;
}

/// Cells of all levels, the finest first, as Hierarchy coarsens them.
std::vector<double> cells_of_levels(const CoarseCounts& counts, const Mesh& mesh, int refine) {
  const int dim = mesh.dim;
  std::array<std::int64_t, 3> extent{1, 1, 1};
  for (int a = 0; a < dim; ++a) extent[a] = static_cast<std::int64_t>(mesh.cells[a]) << refine;
  Point size = cell_size(mesh, refine);
  std::vector<double> cells{static_cast<double>(cells_at(counts, dim, refine))};
  for (;;) {
    const auto directions = directions_to_coarsen(dim, size);
    double next = cells.back();
    for (int a = 0; a < dim; ++a) {
      if (!directions[a]) continue;
      if (extent[a] % 2 != 0 || extent[a] <= 2) return cells;
      extent[a] /= 2;
      size[a] *= 2.0;
      next /= 2.0;
    }
    cells.push_back(next);
  }
}

/// Vectors of a solve with the cycle in precision S.
template <class S>
VectorNeeds vector_needs(const Problem& problem, const SolverOptions& options, int refine) {
  const int index = cycle_index(cycle_of(options), equation_of(problem), cell_size(problem.mesh, refine));
  const VectorNeeds load_and_solution = on_finest<double>(2);
  return load_and_solution + Cycle<S>::needs(index) + Solve<S>::needs(options);
}

/// Bytes of a solve.
std::int64_t bytes_at(const CoarseCounts& counts, const Problem& problem, const SolverOptions& options,
                      const Engine& engine, int refine) {
  const int dim = problem.mesh.dim;
  const auto levels = cells_of_levels(counts, problem.mesh, refine);
  const double finest = levels.front();
  const double all = std::accumulate(levels.begin(), levels.end(), 0.0);
  const double number = record_size(dim, problem.order, problem.equation);
  const VectorNeeds needs = options.precision == Precision::mixed ? vector_needs<float>(problem, options, refine)
                                                                  : vector_needs<double>(problem, options, refine);
  double bytes = static_cast<double>(needs.finest) * finest + static_cast<double>(needs.coarser) * (all - finest);
  // Load and solution have room for all boundary hats where velocities have to be lifted.
  if (has_boundary_velocity(problem)) bytes += 16.0 * static_cast<double>(faces_at(counts.upper, dim, refine));
  return static_cast<std::int64_t>(bytes * number + static_cast<double>(engine.bytes_per_cell(dim)) * all);
}

}  // namespace

Estimate estimate(const Problem& problem, const SolverOptions& options) {
  validate(problem);
  validate(problem, options);
  Estimate estimate;
  const CoarseCounts counts = count_coarse(problem);
  estimate.dofs = dofs_at(counts, problem, problem.mesh.refine);
  const auto engine = make_engine(options.device, 1);
  estimate.bytes_needed = bytes_at(counts, problem, options, *engine, problem.mesh.refine);
  estimate.bytes_available = engine->bytes_available();
  estimate.largest_refine = -1;
  constexpr int most = 20;
  for (int refine = 0;
       refine <= most && bytes_at(counts, problem, options, *engine, refine) <= estimate.bytes_available; ++refine) {
    estimate.largest_refine = refine;
  }
  return estimate;
}

}  // namespace solenoid
