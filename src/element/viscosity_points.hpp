#pragma once

namespace solenoid {

/// Gauss points per direction for a viscosity inside of cells of order k, on cells and faces.
constexpr int viscosity_points(int order) { return order + 2; }

}  // namespace solenoid
