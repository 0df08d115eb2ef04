#pragma once
/// \file
/// What a device can do at most, measured.

#include <cstddef>

struct CUstream_st;

namespace solenoid {
struct Ceilings;
}

namespace solenoid::cuda {

/// Medians of ten runs. `memory`: two arrays of `bytes` each, far larger than the caches.
Ceilings measure_ceilings(void* from, void* to, std::size_t bytes, CUstream_st* stream);

}  // namespace solenoid::cuda
