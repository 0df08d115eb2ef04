#include <unistd.h>

#include <algorithm>

#include "engine/engine.hpp"
#include "mesh/record.hpp"
#include "solenoid/solver.hpp"

namespace solenoid {
namespace {

/// Cells of the mesh at a refinement, without building it. Holes may overlap: count coarse boxes one by one.
std::int64_t cells_at(const Mesh& mesh, int refine) {
  std::int64_t coarse = 0;
  for (int z = 0; z < mesh.cells[2]; ++z) {
    for (int y = 0; y < mesh.cells[1]; ++y) {
      for (int x = 0; x < mesh.cells[0]; ++x) {
        const std::array<int, 3> position{x, y, z};
        coarse += std::none_of(mesh.holes.begin(), mesh.holes.end(), [&](const IndexBox& box) {
          for (int a = 0; a < mesh.dim; ++a) {
            if (position[a] < box.lower[a] || position[a] >= box.upper[a]) return false;
          }
          return true;
        });
      }
    }
  }
  return coarse << (static_cast<std::int64_t>(mesh.dim) * refine);
}

/// Bytes of a solve per number in a vector of the finest level, and per cell.
std::int64_t bytes_at(const Problem& problem, const SolverOptions& options, int refine) {
  const int dim = problem.mesh.dim;
  const double levels = 1.0 / (1.0 - 1.0 / (1 << dim));  // all levels over the finest
  const double cycle = (options.precision == Precision::mixed ? 4.0 : 8.0);
  constexpr double assumed_iterations = 6.0;
  double bytes = 3 * cycle * levels;  // b and two iterates of the cycle
  bytes += 16.0;                      // b and x
  switch (options.method) {
    case Method::gmres: bytes += 8.0 + (assumed_iterations + 1) * 8.0 + assumed_iterations * cycle; break;
    case Method::fmg: bytes += 8.0 + 16.0 * (levels - 1.0); break;
    case Method::vcycle: bytes += 8.0; break;
  }
  constexpr double bytes_per_cell = 200.0;  // lattice, neighbours, patches of all levels
  const double cells = static_cast<double>(cells_at(problem.mesh, refine));
  return static_cast<std::int64_t>(cells * (bytes * record_size(dim, problem.order) + bytes_per_cell));
}

}  // namespace

Estimate estimate(const Problem& problem, const SolverOptions& options) {
  Estimate estimate;
  const int dim = problem.mesh.dim;
  estimate.dofs = cells_at(problem.mesh, problem.mesh.refine) * record_size(dim, problem.order);
  estimate.bytes_needed = bytes_at(problem, options, problem.mesh.refine);
  estimate.bytes_available = make_cpu_engine(1)->bytes_available();
  estimate.largest_refine = -1;
  constexpr int most = 20;
  for (int refine = 0; refine <= most && bytes_at(problem, options, refine) <= estimate.bytes_available; ++refine) {
    estimate.largest_refine = refine;
  }
  return estimate;
}

}  // namespace solenoid
