#pragma once
/// \file
/// Inverse Schur blocks made on the device, where PatchSolver makes them on the host: all of a level at a time.

#include <vector>

#include "engine/cuda/smoother/inverse_form.hpp"
#include "engine/engine.hpp"
#include "engine/tables.hpp"

namespace solenoid::cuda {

/// Writes the inverses that are missing in `tables`, which is device memory. Returns when it is done: kernels load
/// inverses before they wait for earlier ones. Works in 64 MiB, or what the largest block needs.
template <class T>
void make_inverses(Engine& engine, const std::vector<MissingInverses>& missing, InverseForm form, T* tables,
                   Stream stream);

}  // namespace solenoid::cuda
