#pragma once
/// \file
/// A viscosity inside of cells: values at Gauss points, and what it is between and beyond them.

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "base/unset.hpp"
#include "element/viscosity_points.hpp"
#include "mesh/grid.hpp"
#include "mesh/record.hpp"

namespace solenoid {

/// nu at the (k + 2)^dim Gauss points of cells. In a cell log nu is the polynomial of degree k + 1 in each direction
/// through its values there, so that nu is positive wherever it is asked for, and jumps on faces stay where they are.
/// It goes no further beyond the values of a line of points than half their range: one that jumps inside of a cell
/// would.
class ViscosityPoints {
 public:
  /// Factors of values at the Gauss points of a line, for the polynomial through them at some place: [place][point].
  using Interpolation = std::vector<std::vector<double>>;

  /// `values`: [cell][point], x fastest.
  ViscosityPoints(int dim, int order, Unset<double> values);

  /// Gauss points per direction, in a cell and on a face of it.
  [[nodiscard]] int per_direction() const { return static_cast<int>(places_.size()); }
  [[nodiscard]] int in_cell() const { return in_cell_; }
  static constexpr int in_cell(int dim, int order) { return power(viscosity_points(order), dim); }
  [[nodiscard]] int on_face() const { return in_cell_ / per_direction(); }
  [[nodiscard]] const Unset<double>& values() const { return values_; }
  [[nodiscard]] const double* of_cell(Record cell) const { return &values_[static_cast<std::size_t>(cell) * in_cell_]; }

  /// At the points of face `side` of a cell, seen from inside: those of the directions along it, the lowest fastest.
  void trace(Record cell, int side, double* values) const;
  /// Those of all sides, one after the other, for little more than one.
  void traces(Record cell, double* values) const;
  /// For places in [0, 1].
  [[nodiscard]] Interpolation interpolation(const std::vector<double>& places) const;
  /// At the tensor points of places in each direction, x fastest.
  void evaluate(Record cell, const std::array<Interpolation, 3>& places, std::vector<double>& values) const;

  bool operator==(const ViscosityPoints& other) const { return values_ == other.values_; }

 private:
  void trace(const std::vector<double>& logarithms, int side, double* values) const;

  int dim_;
  int in_cell_;
  std::vector<double> places_;  // the Gauss points of [0, 1]
  Interpolation ends_;          // at 0 and at 1
  Unset<double> values_;
};

/// A viscosity less the mean, as operators keep it: in single precision, but not so much less that it would vanish.
inline float viscosity_difference(double value, double mean) {
  const auto difference = static_cast<float>(value - mean);
  if (mean + static_cast<double>(difference) >= 0.5 * value) return difference;
  return std::nextafter(difference, std::numeric_limits<float>::infinity());
}

/// nu_F of a face between cells with these viscosities, or at a point of it.
constexpr double face_viscosity(double a, double b) { return 2.0 / (1.0 / a + 1.0 / b); }

}  // namespace solenoid
