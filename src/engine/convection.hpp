#pragma once
/// \file
/// The convective term of the Navier-Stokes equations: div(u (x) u), tested.

#include <cstdint>

#include "element/convection_points.hpp"

namespace solenoid {

/// What passes through a face, per unit of normal velocity.
enum class ConvectiveFlux : std::uint8_t {
  upwind,   ///< the value on the side that the flow comes from
  central,  ///< the mean of both sides; for tests
};

/// The convective term of one level, whose grid stores all boundary hats (Grid::boundary_hats): u has its normal
/// velocities on sides. For every basis function v
///
///     (C(u) u, v) = - sum_K sum_ca (u_a u_c, d_a v_c)_K + sum_F <u_n {u} + s |u_n| / 2 [u], [v]>_F
///                   + sum_sides <max(u_n, 0) u, v>,
///
/// by convection_points(k) Gauss points per direction; n from minus to plus on inner faces and outward on sides, [u] =
/// u- - u+, s = 1 (upwind) or 0 (central). The normal component is single-valued, so that only the others jump. On
/// sides that is
/// * outflow: the directional condition nu du/dn - p n - min(u_n, 0) u = traction, which takes no energy in where the
///   flow turns;
/// * velocity: what flows out; what a prescribed velocity g brings in, <min(g_n, 0) g, v>, is a load of the caller's;
/// * slip: nothing, as u_n = 0 there.
/// In cells that are parallelepipeds all of this is in space: with the velocities u, v of the boxes that they are made
/// of the first factor of u (x) u stays u and the other one becomes g u / J^2 (problem/affine_map.hpp), faces are those
/// of the boxes; rates are |u_a| / (J h_a). Deterministic, and with the same bits for any number of threads.
class Convection {
 public:
  virtual ~Convection() = default;
  /// y = C(u) u; zero where velocities are prescribed, and for pressures. u, y and `work` are different vectors of the
  /// level, the last of which is only memory: nothing in it has to be what it is in vectors, before or after. Returns
  /// the rate at which the flow crosses cells: the largest sum_a |u_a| / h_a at a quadrature point.
  virtual double apply(const double* u, double* y, double* work) = 0;
};

}  // namespace solenoid
