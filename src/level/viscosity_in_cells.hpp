#pragma once
/// \file
/// The viscosity at the same places of one cell after the other, however it is given.

#include <array>
#include <memory>
#include <vector>

#include "level/coefficients.hpp"

namespace solenoid {

/// At tensor points with these coordinates in [0, 1]; point (i, j, l) has index i + nx (j + ny l). One object serves
/// one thread.
class ViscosityInCells {
 public:
  ViscosityInCells(const Coefficients& coefficients, int dim, const std::array<std::vector<double>, 3>& xi)
      : by_cell_(coefficients.by_cell), number_(coefficients.viscosity) {
    std::size_t count = 1;
    for (int a = 0; a < dim; ++a) count *= xi[a].size();
    values_.assign(count, number_);
    if (!has_points()) return;
    for (int a = 0; a < dim; ++a) places_[a] = by_cell_->points->interpolation(xi[a]);
  }

  const std::vector<double>& of(Record cell) {
    if (has_points()) {
      by_cell_->points->evaluate(cell, places_, values_);
    } else if (by_cell_ != nullptr) {
      values_.assign(values_.size(), by_cell_->viscosity[cell]);
    }
    return values_;
  }
  /// To the last bit what the operator has on faces with prescribed velocities.
  const std::vector<double>& of_operator(Record cell) {
    of(cell);
    if (!has_points()) return values_;
    const double mean = by_cell_->viscosity[cell];
    for (double& value : values_) value = mean + viscosity_difference(value, mean);
    return values_;
  }

 private:
  [[nodiscard]] bool has_points() const { return by_cell_ != nullptr && by_cell_->points != nullptr; }

  std::shared_ptr<const CellCoefficients> by_cell_;
  double number_;
  std::array<ViscosityPoints::Interpolation, 3> places_;
  std::vector<double> values_;
};

}  // namespace solenoid
