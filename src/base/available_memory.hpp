#pragma once
/// \file
/// Memory of the host that is free.

#include <cstdint>

namespace solenoid {

/// Bytes that the system says can still be allocated.
std::int64_t available_memory();

}  // namespace solenoid
