#pragma once
/// \file
/// Levels on the device: what kernels look up, in either precision.

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/cuda/flow_points.hpp"
#include "engine/cuda/kernels/arguments.hpp"
#include "engine/cuda/vector.hpp"
#include "engine/engine.hpp"
#include "level/level.hpp"

namespace solenoid::cuda {

/// An array in the engine's memory.
template <class T>
class Array {
 public:
  Array() = default;
  Array(Engine& engine, std::span<const T> values) : memory_(engine, bytes_of(values)) {
    engine.upload(values.data(), memory_.data(), values.size_bytes());
  }
  [[nodiscard]] const T* data() const { return reinterpret_cast<const T*>(memory_.data()); }

 private:
  static std::int64_t bytes_of(std::span<const T> values) {
    return static_cast<std::int64_t>(std::max<std::size_t>(1, values.size()) * sizeof(T));
  }
  Vector<unsigned char> memory_;
};

/// A list of blocks of records on the device.
class DeviceBlocks {
 public:
  DeviceBlocks() = default;
  DeviceBlocks(Engine& engine, const std::vector<std::int32_t>& blocks)
      : memory_(engine, blocks), list_{memory_.data(), static_cast<std::int32_t>(blocks.size())} {}

  [[nodiscard]] const RecordBlocks& list() const { return list_; }

 private:
  Array<std::int32_t> memory_;
  RecordBlocks list_{};
};

/// Tiles of the operator on the device.
class DeviceTiles {
 public:
  DeviceTiles() = default;
  /// Of these blocks of the level's records.
  DeviceTiles(Engine& engine, const Level& level, const std::vector<std::int32_t>& blocks);

  [[nodiscard]] const Tiles& tiles() const { return tiles_; }

 private:
  Array<std::int32_t> lists_;
  Array<std::uint32_t> patterns_;
  Tiles tiles_{};
};

/// A list of records on the device.
struct DeviceRecords {
  Array<std::int32_t> list;
  std::int64_t count;
};

/// What kernels need of a level in either precision.
class DeviceLevel {
 public:
  DeviceLevel(Engine& engine, const Level& level);

  /// Children and parents for transfers to the next coarser level.
  void prepare_transfer(const Level& coarse);

  [[nodiscard]] const CellTopology& topology() const { return topology_; }
  /// All cells.
  [[nodiscard]] const RecordBlocks& blocks() const { return blocks_.list(); }
  /// The same for the operator of the Stokes equations, but for the marker-and-cell scheme (mac_operator.hpp) and
  /// coefficients by cell (kernels/varying.hpp);
  [[nodiscard]] const Tiles& tiles() const { return tiles_.tiles(); }
  /// and for that of Poisson's.
  [[nodiscard]] const std::uint8_t* boundary_sides() const { return boundary_sides_.data(); }
  /// Of all patches (Patches::lower_cell).
  [[nodiscard]] const std::int32_t* lower_cells() const { return lower_cells_.data(); }
  /// That no patch of a colour has.
  [[nodiscard]] const DeviceRecords& uncovered(int colour) const { return uncovered_[colour]; }
  [[nodiscard]] const std::int32_t* children() const { return children_.data(); }
  [[nodiscard]] const std::int32_t* parent() const { return parent_.data(); }
  /// A viscosity at k + 2 Gauss points per direction; that of cells stays here until another one comes.
  ViscosityOfCells viscosity(const Coefficients& coefficients) { return viscosity_.of(engine_, coefficients); }
  /// Those that have a constant (Level::constants), for remove_mean.
  [[nodiscard]] const MeanRecords& carriers(std::size_t constant) const { return carriers_[constant]; }

 private:
  Engine& engine_;
  const Level& level_;
  std::array<Array<Record>, 6> neighbours_;
  std::array<Array<Face>, 6> faces_;
  CellTopology topology_{};
  DeviceBlocks blocks_;
  DeviceTiles tiles_;
  Array<std::uint8_t> boundary_sides_;
  Array<Record> lower_cells_;
  std::vector<DeviceRecords> uncovered_;  // by colour
  Array<Record> children_;
  Array<std::int32_t> parent_;
  std::vector<Array<Record>> constant_records_;  // of those that are not everywhere
  std::vector<MeanRecords> carriers_;
  DeviceViscosity viscosity_;
};

}  // namespace solenoid::cuda
