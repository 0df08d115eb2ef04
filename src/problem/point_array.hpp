#pragma once
/// \file
/// Arrays at Gauss points of cells that fields were made of (solenoid/arrays.hpp), for engines that evaluate these
/// fields themselves.

#include <array>
#include <cstddef>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace solenoid {

/// In each cell the polynomial through the values at its points, or on each face of a side. The array is [x][y][z]
/// [component].
class PointArray {
 public:
  struct Shape {
    int points;                ///< per direction, of a cell
    std::array<int, 3> count;  ///< along each direction, in all
    int components;
    bool in_cells;                  ///< not on a side
    std::array<double, 3> lower{};  ///< of the lattice of cells
    std::array<double, 3> upper{};

    [[nodiscard]] std::size_t size() const {
      return static_cast<std::size_t>(count[0]) * count[1] * count[2] * components;
    }
  };

  PointArray(const Shape& shape, std::vector<double> values) : shape_(shape), values_(std::move(values)) {}
  /// In the memory of a device; `fetch` copies it to the host.
  PointArray(const Shape& shape, const double* on_device, std::function<void(double* host)> fetch)
      : shape_(shape), on_device_(on_device), fetch_(std::move(fetch)) {}

  [[nodiscard]] const Shape& shape() const { return shape_; }
  /// nullptr if it is in the memory of the host.
  [[nodiscard]] const double* on_device() const { return on_device_; }
  /// Copied there when it is asked for the first time, from any thread.
  [[nodiscard]] const std::vector<double>& values() const {
    if (on_device_ == nullptr) return values_;
    std::call_once(fetched_, [&] {
      values_.resize(shape_.size());
      fetch_(values_.data());
    });
    return values_;
  }

 private:
  Shape shape_;
  mutable std::vector<double> values_;
  const double* on_device_ = nullptr;
  std::function<void(double*)> fetch_;
  mutable std::once_flag fetched_;
};

}  // namespace solenoid
