#pragma once
/// \file
/// Levels whose cells are parallelepipeds, as kernels take them.

#include "engine/sheared_data.hpp"
#include "level/level.hpp"

namespace solenoid {

template <class T>
ShearedData<T> make_sheared_data(const Level& level);

}  // namespace solenoid
