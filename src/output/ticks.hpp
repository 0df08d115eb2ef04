#pragma once
/// \file
/// Where the ticks of an axis are and what stands at them.

#include <string>
#include <vector>

namespace solenoid {

/// 1, 2 or 5 times a power of ten, so that at most `count` steps fit into `range` > 0.
double nice_step(double range, int count);

/// The multiples of `step` in [low, high], at most 100 of them.
std::vector<double> multiples(double step, double low, double high);

/// A number for people: resolved to `resolution` > 0, no zeros at its end, with an exponent if the largest number of
/// its scale is below 1e-3 or from 1e5 on. "0.25", "-1.5e-4".
std::string number_label(double value, double resolution, double largest);

}  // namespace solenoid
