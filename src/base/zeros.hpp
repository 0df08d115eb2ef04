#pragma once
/// \file
/// Large host vectors.

#include <cstdint>
#include <vector>

namespace solenoid {

/// `count` zeros. All cores make the pages: with one, that takes longer than to fill them.
std::vector<double> zeros(std::int64_t count);

}  // namespace solenoid
