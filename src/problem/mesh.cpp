#include "solenoid/mesh.hpp"

namespace solenoid {

Mesh Mesh::unit(int dim, int refine) {
  Mesh mesh;
  mesh.dim = dim;
  mesh.refine = refine;
  return mesh;
}

}  // namespace solenoid
