#pragma once
/// \file
/// Coefficients that vary by cell, as kernels take them.

#include <vector>

#include "engine/kernel_data.hpp"
#include "level/level.hpp"

namespace solenoid {

/// Of a level whose coefficients vary.
template <class T>
class VaryingCoefficients {
 public:
  explicit VaryingCoefficients(const Level& level);

  /// With pointers into this.
  [[nodiscard]] VaryingData<T> data() const;
  [[nodiscard]] const std::vector<T>& viscosity() const { return viscosity_; }
  [[nodiscard]] const std::vector<T>& reaction() const { return reaction_; }

 private:
  std::vector<T> viscosity_;
  std::vector<T> reaction_;
  VaryingData<T> data_{};
};

}  // namespace solenoid
