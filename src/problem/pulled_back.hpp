#pragma once
/// \file
/// Data of a problem on cells that are parallelepipeds, as fields on the boxes that these are made of.

#include "problem/affine_map.hpp"
#include "solenoid/field.hpp"

namespace solenoid {

/// factor F^T f, at xi: of forces and tractions.
VectorField pulled_back_force(const VectorField& f, const AffineMap& map, double factor = 1.0);
/// J F^-1 u, at xi: of velocities.
VectorField pulled_back_velocity(const VectorField& u, const AffineMap& map);
/// p, at xi.
ScalarField pulled_back_scalar(const ScalarField& p, const AffineMap& map);

}  // namespace solenoid
