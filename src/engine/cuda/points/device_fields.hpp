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
#include "problem/point_array.hpp"
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

/// Given fields, as programs for the points of a block's cells, or as arrays at points of cells of the grid.
class DeviceFields {
 public:
  /// `memory.most` is not looked at: programs take so much that several blocks fit on a multiprocessor, or else all
  /// there is. nullopt if one is a function of the caller or needs too much memory.
  static std::optional<DeviceFields> compile(Engine& engine, const Grid& grid, std::span<const ScalarField> fields,
                                             PointMemory memory);

  [[nodiscard]] PointField operator[](std::size_t i) const;
  [[nodiscard]] std::size_t size() const { return fields_.size(); }
  /// Of a block's memory that they need.
  [[nodiscard]] int numbers() const;

 private:
  DeviceFields() = default;

  struct Uploaded {
    PointProgram program;
    bool zero;
    Array<PointInstruction> instructions;
    Array<double> constants;
    ArrayField array;
  };
  /// What components of an array share.
  struct UploadedArray {
    const PointArray* array;
    Array<double> values;  // empty if it is there already
    Array<double> factors;
  };

  /// nullopt if the device has no room for its array.
  std::optional<ArrayField> component_of(Engine& engine, const ScalarField& field, int points);

  std::vector<Uploaded> fields_;
  std::vector<UploadedArray> arrays_;
};

}  // namespace solenoid::cuda
