#include "solenoid/mesh.hpp"

#include <utility>

#include "solenoid/image.hpp"

namespace solenoid {

Mesh Mesh::unit(int dim, int refine) {
  Mesh mesh;
  mesh.dim = dim;
  mesh.refine = refine;
  return mesh;
}

Mesh Mesh::of(std::shared_ptr<const VoxelImage> image, int refine) {
  Mesh mesh;
  mesh.dim = image->dim();
  mesh.cells = image->extent();
  for (int a = 0; a < mesh.dim; ++a) mesh.upper[a] = mesh.cells[a] * (image->voxel()[a] / image->voxel()[0]);
  mesh.refine = refine;
  mesh.image = std::move(image);
  return mesh;
}

Mesh Mesh::sheared(int dim, const std::array<Point, 3>& edges, int refine) {
  Mesh mesh = unit(dim, refine);
  mesh.edges = edges;
  return mesh;
}

}  // namespace solenoid
