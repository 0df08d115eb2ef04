#pragma once
/// \file
/// The valid name that someone who made a typing error meant.

#include <string>
#include <string_view>
#include <vector>

namespace solenoid {

/// The candidate with the smallest edit distance (insertions, deletions, substitutions, swaps of neighbours; case does
/// not count), empty if none is near.
std::string_view nearest_name(std::string_view word, const std::vector<std::string_view>& candidates);

/// ": did you mean `x`?" if a candidate is near, else "; valid are `a`, `b`, ...".
std::string suggestion(std::string_view word, const std::vector<std::string_view>& candidates);

}  // namespace solenoid
