#pragma once

namespace solenoid {

/// Gauss points per direction for the convective term of order k, on cells and faces: exact for degree 3 k + 2, which
/// all integrands have where |u_n| is smooth. With fewer the central flux makes or takes energy.
constexpr int convection_points(int order) { return (3 * (order + 1) + 1) / 2; }

}  // namespace solenoid
