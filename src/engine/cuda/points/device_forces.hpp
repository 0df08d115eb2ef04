#pragma once
/// \file
/// Forces on the boundary of flows on a level.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/cuda/cuda_kernels.hpp"
#include "engine/cuda/points/boundary_forces.hpp"
#include "engine/cuda/points/device_fields.hpp"
#include "solution/body_forces.hpp"
#include "solution/cell_rule.hpp"

namespace solenoid::cuda {

/// The boundary faces of owned cells, body by body, and what was evaluated at their points.
class DeviceForces {
 public:
  /// Of flows with such a problem.
  DeviceForces(Shared& shared, const Level& level, const Problem& problem);

  /// nullopt if there is no room for values at points.
  std::optional<SumsOfBodies> operator()(const FlowOfForces& flow, const CellPlaces& places);

 private:
  void find_faces(const Problem& problem);
  /// What is prescribed on sides, and the force, at points where they are not constant.
  [[nodiscard]] bool take_data(const Problem& problem);
  [[nodiscard]] bool take_force(const Problem& problem);
  /// A viscosity that varies inside of cells, at the points in cells on the boundary and on their sides.
  [[nodiscard]] bool take_viscosity(const Coefficients& coefficients);
  /// The data of faces that have conditions with functions: `functions_`, DataOfSides.
  void number_data(const std::vector<VectorField>& data);
  /// In a cell, on each side.
  [[nodiscard]] std::vector<CellRule> rules_of_places() const;
  /// So many numbers of each cell or side: evaluate(places, i, numbers), with places of its own for each thread.
  template <class MakePlaces, class Evaluate>
  [[nodiscard]] bool take_values(std::int64_t count, int numbers, const MakePlaces& make_places,
                                 const Evaluate& evaluate, Vector<double>& values);
  const double* reactions(const Coefficients& coefficients);

  Shared& shared_;
  const Level& level_;
  std::shared_ptr<DeviceLevel> device_;
  ForceMemory memory_;
  Array<double> tables_;
  std::vector<Record> cells_;        // by number
  std::vector<BoundaryFace> faces_;  // body by body
  std::vector<int> body_;            // of each part
  Array<BoundaryFace> device_faces_;
  Array<std::int32_t> first_;
  Vector<ForceSums> sums_;
  // On sides:
  std::vector<VectorField> data_;        // of conditions, when values were taken
  std::vector<bool> is_function_;        // of each condition
  std::vector<BoundaryFace> functions_;  // faces with values at points
  Array<DataOfSides> data_of_;
  Vector<Point> constants_;
  Vector<double> values_;
  // Inside:
  std::optional<VectorField> force_;  // when values were taken
  Point constant_force_{};
  Vector<double> force_at_;  // empty where the force is constant
  // Both:
  std::shared_ptr<const CellCoefficients> viscosity_of_;  // when values were taken
  Vector<double> viscosity_at_;                           // empty where it is constant in cells
  Array<double> reactions_;
  std::shared_ptr<const CellCoefficients> reactions_of_;
};

}  // namespace solenoid::cuda
