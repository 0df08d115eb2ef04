#pragma once
/// \file
/// Forces on the bodies in a flow, from sums over boundary faces.

#include <cstdint>
#include <map>
#include <vector>

#include "level/coefficients.hpp"
#include "mesh/grid.hpp"
#include "solenoid/problem.hpp"
#include "solution/tested_flow.hpp"

namespace solenoid {

struct BoundaryForce;

/// Over the faces on each body: sides of the bounding box are bodies 0 to 5, holes[i] is body 6 + i.
struct SumsOfBodies {
  std::map<int, ForceSums> of_body;

  void merge(const SumsOfBodies& other) {
    for (const auto& [body, sums] : other.of_body) of_body[body].merge(sums);
  }
};

/// The bodies that the boundary faces of a grid are on. Mesh and grid must outlive this.
class Bodies {
 public:
  Bodies(const Mesh& mesh, const Grid& grid);
  [[nodiscard]] int at(Record cell, int side) const;

 private:
  const Mesh* mesh_;
  const Grid* grid_;
  std::vector<std::int32_t> holes_;
};

/// Conditions on faces by number: those of the sides of the bounding box, then those of holes (hole_side in
/// problem/regions.hpp).
int condition_at(const Grid& grid, Record cell, int side);
/// What is prescribed by each of them.
std::vector<VectorField> data_of_conditions(const Problem& problem);

/// Points per direction of the quadrature of forces, which is that of the load vector.
int force_points(const Problem& problem);

TestedFlow tested_flow(const Problem& problem, const Grid& grid, const Point& about);

/// sum_i factors[i] flows[i]
struct SumOfFlows {
  std::vector<double> factors;
  std::vector<const double*> flows;
};

/// A flow in vectors of a level.
struct FlowOfForces {
  const Problem& problem;
  const Coefficients& coefficients;
  const double* flow;
  SumOfFlows acceleration;  ///< du/dt, or nothing; in the memory of a device one flow, its factor 1
  Point about;
};

/// The sums over the boundary faces of this rank's cells, of a flow in the memory of the host. If one rank throws, all
/// do.
SumsOfBodies sums_of_forces(const Grid& grid, const FlowOfForces& flow);

/// Solution::forces(), of the sums over the faces of this rank's cells. Collective.
std::vector<BoundaryForce> forces_on_bodies(const Problem& problem, const Grid& grid, const SumsOfBodies& sums);

}  // namespace solenoid
