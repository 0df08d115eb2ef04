#pragma once
/// \file
/// Cells and fields of points on the device.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/cuda/device_level.hpp"
#include "engine/cuda/kernels/points.hpp"
#include "engine/cuda/points/point_program.hpp"
#include "mesh/grid.hpp"
#include "solenoid/field.hpp"

namespace solenoid::cuda {

/// Where the cells of a grid are.
class DevicePlaces {
 public:
  DevicePlaces(Engine& engine, const Grid& grid);

  [[nodiscard]] CellPlaces places() const;

 private:
  Array<std::array<std::int32_t, 3>> positions_;
  std::array<Array<double>, 3> planes_;
  std::array<Array<double>, 3> widths_;
};

/// Given fields, as programs for the points of a block's cells.
class DeviceFields {
 public:
  /// `memory.most` is not looked at: programs take so much that several blocks fit on a multiprocessor, or else all
  /// there is. nullopt if one is a function of the caller or needs too much memory.
  static std::optional<DeviceFields> compile(Engine& engine, std::span<const ScalarField> fields, PointMemory memory);

  [[nodiscard]] PointField operator[](std::size_t i) const;
  [[nodiscard]] std::size_t size() const { return programs_.size(); }
  /// Of a block's memory that they need.
  [[nodiscard]] int numbers() const;

 private:
  DeviceFields() = default;

  struct Uploaded {
    PointProgram program;
    bool zero;
    Array<PointInstruction> instructions;
    Array<double> constants;
  };
  std::vector<Uploaded> programs_;
};

}  // namespace solenoid::cuda
