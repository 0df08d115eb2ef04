#pragma once
/// \file
/// The tables of kernels that work at Gauss points.

#include "engine/cpu/kernels/point_tables.hpp"

namespace solenoid::cpu {

/// Of order k, for so many Gauss points.
PointTables make_point_tables(int order, int points);

}  // namespace solenoid::cpu
