#pragma once
/// \file
/// How long work takes.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
#include <thread>
#include <vector>

namespace solenoid {

/// Time of work(), which waits until it is done.
template <class Work>
double seconds_of(Work work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The median of at least ten runs that take `enough` seconds together, each after prepare(), after one that does not
/// count; of fewer once they have taken `most` seconds.
template <class Prepare, class Work>
double median_seconds(double enough, Prepare prepare, Work work,
                      double most = std::numeric_limits<double>::infinity()) {
  constexpr std::size_t fewest_runs = 10;
  prepare();
  work();
  std::vector<double> times;
  double sum = 0.0;
  while ((times.size() < fewest_runs || sum < enough) && sum < most) {
    prepare();
    times.push_back(seconds_of(work));
    sum += times.back();
  }
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

/// Lets the device rest, so that a time does not depend on what ran before: at the limit of its power a device lowers
/// its clock (an H200 within a tenth of a second, by up to a quarter) and raises it again when it rests.
inline void rest() { std::this_thread::sleep_for(std::chrono::milliseconds(300)); }

}  // namespace solenoid
