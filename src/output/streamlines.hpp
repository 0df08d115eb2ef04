#pragma once
/// \file
/// Evenly spaced streamlines of a plane vector field (Jobard and Lefer, 1997).

#include <vector>

#include "output/canvas.hpp"

namespace solenoid {

/// A vector per pixel, in pixel directions; NaN where there is no field.
struct VectorRaster {
  int width = 0;
  int height = 0;
  std::vector<Spot> values;

  /// Bilinear interpolation between pixel centres; NaN outside or next to a NaN.
  [[nodiscard]] Spot at(const Spot& spot) const;
};

/// Streamlines about `separation` pixels apart, in the direction of the field, points one pixel apart.
std::vector<Polyline> streamlines(const VectorRaster& field, double separation);

}  // namespace solenoid
