#include "mesh/first_look.hpp"

#include <cstdint>

namespace solenoid {

std::optional<Grid> first_look(const Problem& problem) {
  constexpr std::int64_t enough_cells = 4096;
  constexpr std::int64_t too_many_boxes = 1'000'000;
  Mesh mesh = problem.mesh;
  std::int64_t cells = 1;
  for (int a = 0; a < mesh.dim; ++a) cells *= mesh.cells[a];
  if (cells > too_many_boxes) return {};
  for (mesh.refine = 0; mesh.refine < problem.mesh.refine && (cells <<= mesh.dim) <= enough_cells;) ++mesh.refine;
  return Grid(mesh, problem.boundary);
}

}  // namespace solenoid
