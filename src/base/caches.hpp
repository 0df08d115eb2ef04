#pragma once
/// \file
/// The sizes of the machine's caches.

#include <cstdint>

namespace solenoid {

/// Bytes of a data cache of the given level (2 or 3) that the first core uses, shared or not; a usual size if the
/// system does not say. From sysfs: sysconf takes the third-level caches of all of the host's cores together, even on a
/// virtual machine with few of them.
std::int64_t cache_bytes(int level);

}  // namespace solenoid
