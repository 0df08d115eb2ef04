#pragma once

namespace solenoid {

/// Of a flow in dim dimensions: the stresses R_cd, c <= d, row by row, then the dissipation.
constexpr int flow_moments(int dim) { return dim * (dim + 1) / 2 + 1; }
constexpr int stress_index(int dim, int c, int d) { return c * dim - c * (c - 1) / 2 + d - c; }

/// Gauss points per direction, in which products of velocities of order k are projected to Q_k.
constexpr int moment_points(int order) { return order + 2; }

}  // namespace solenoid
