#pragma once
/// \file
/// Means of a flow over the voxels of an image.

#include <array>
#include <cstdint>
#include <vector>

#include "solution/cell_evaluator.hpp"

namespace solenoid {

/// In units of ImageFields. One object serves one thread.
class VoxelMeans {
 public:
  /// `flow` must outlive this. \throws InputError unless it is a whole one, of a velocity, through an image.
  explicit VoxelMeans(const Solution& flow);

  /// Whether the flow is solved for there.
  [[nodiscard]] bool pore(const std::array<int, 3>& at) const { return first_cell(at) >= 0; }
  /// As many components as `velocity` has, 2 or 3.
  void velocity(const std::array<int, 3>& at, std::span<float> velocity);
  float pressure(const std::array<int, 3>& at);

 private:
  [[nodiscard]] Record first_cell(const std::array<int, 3>& at) const;
  /// visit(a cell of the voxel)
  template <class Visit>
  void for_cells(const std::array<int, 3>& at, const Visit& visit) const;

  const Grid& grid_;
  int cells_;  ///< of a voxel, per direction
  double area_;
  double length_;
  CellEvaluator evaluator_;
  std::vector<double> weights_;  ///< [point]; their sum over the cells of a voxel is 1
  std::vector<double> values_;
};

}  // namespace solenoid
