#include "time/scheme.hpp"

#include <algorithm>

namespace solenoid {

SchemeLengths lengths_of(TimeScheme scheme) {
  switch (scheme) {
    case TimeScheme::sbdf1: return {1, 1};
    case TimeScheme::sbdf2: return {2, 2};
    case TimeScheme::sbdf3: return {3, 3};
    case TimeScheme::sbdf4: return {4, 4};
    case TimeScheme::bdf2_ext3: return {2, 3};
  }
  return {};
}

std::vector<double> interpolation_weights(double now, std::span<const double> times) {
  std::vector<double> weights(times.size(), 1.0);
  for (std::size_t i = 0; i < times.size(); ++i) {
    for (std::size_t j = 0; j < times.size(); ++j) {
      if (j != i) weights[i] *= (now - times[j]) / (times[i] - times[j]);
    }
  }
  return weights;
}

StepCoefficients step_coefficients(TimeScheme scheme, double now, std::span<const double> times) {
  const SchemeLengths lengths = lengths_of(scheme);
  const auto first = [&](int wanted) { return times.first(std::min<std::size_t>(wanted, times.size())); };
  StepCoefficients result;
  const auto before = first(lengths.derivative);
  const std::vector<double> weights = interpolation_weights(now, before);
  result.derivative.push_back(0.0);
  for (std::size_t i = 0; i < before.size(); ++i) {
    result.derivative[0] += 1.0 / (now - before[i]);
    result.derivative.push_back(weights[i] / (before[i] - now));
  }
  result.extrapolation = interpolation_weights(now, first(lengths.extrapolation));
  return result;
}

}  // namespace solenoid
