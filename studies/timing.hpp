#pragma once
/// \file
/// How long work takes.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "solenoid/communicator.hpp"

namespace solenoid {

/// Time of work(), which waits until it is done. Several ranks begin together, and need as long as the slowest: it is
/// the same on all.
template <class Work>
double seconds_of(Work work, const Communicator* ranks = nullptr) {
  if (ranks != nullptr) static_cast<void>(ranks->any(false));  // they wait for each other
  const auto start = std::chrono::steady_clock::now();
  work();
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (ranks != nullptr) ranks->maximum(std::span(&seconds, 1));
  return seconds;
}

/// Of some times: of an even number the longer of the two in the middle.
inline double median_of(std::vector<double> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

/// The median of at least ten runs that take `enough` seconds together, each after prepare(), after one that does not
/// count; of fewer once they have taken `most` seconds.
template <class Prepare, class Work>
double median_seconds(double enough, Prepare prepare, Work work, double most = std::numeric_limits<double>::infinity(),
                      const Communicator* ranks = nullptr) {
  constexpr std::size_t fewest_runs = 10;
  prepare();
  work();
  std::vector<double> times;
  double sum = 0.0;
  while ((times.size() < fewest_runs || sum < enough) && sum < most) {
    prepare();
    times.push_back(seconds_of(work, ranks));
    sum += times.back();
  }
  return median_of(std::move(times));
}

/// Lets the device rest, so that a time does not depend on what ran before: at the limit of its power a device lowers
/// its clock (an H200 within a tenth of a second, by up to a quarter) and raises it again when it rests.
inline void rest() { std::this_thread::sleep_for(std::chrono::milliseconds(300)); }

}  // namespace solenoid
