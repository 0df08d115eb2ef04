#include "time/scheme.hpp"

#include <algorithm>
#include <stdexcept>

#include "time/runge_kutta.hpp"

namespace solenoid {

bool is_multistep(TimeScheme scheme) { return scheme != TimeScheme::ars233 && scheme != TimeScheme::ars443; }

int order_of(TimeScheme scheme) {
  return is_multistep(scheme) ? lengths_of(scheme).derivative : tableau_of(scheme).order;
}

SchemeLengths lengths_of(TimeScheme scheme) {
  switch (scheme) {
    case TimeScheme::sbdf1: return {1, 1};
    case TimeScheme::sbdf2: return {2, 2};
    case TimeScheme::sbdf3: return {3, 3};
    case TimeScheme::sbdf4: return {4, 4};
    case TimeScheme::bdf2_ext3: return {2, 3};
    case TimeScheme::ars233:
    case TimeScheme::ars443: break;
  }
  throw std::logic_error("not a multistep scheme");
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

std::vector<double> differentiation_weights(double now, std::span<const double> times) {
  std::vector<double> weights(times.size(), 0.0);
  for (std::size_t i = 0; i < times.size(); ++i) {
    for (std::size_t m = 0; m < times.size(); ++m) {
      if (m == i) continue;
      double product = 1.0 / (times[i] - times[m]);
      for (std::size_t j = 0; j < times.size(); ++j) {
        if (j != i && j != m) product *= (now - times[j]) / (times[i] - times[j]);
      }
      weights[i] += product;
    }
  }
  return weights;
}

StepCoefficients step_coefficients(TimeScheme scheme, double now, std::span<const double> times) {
  const SchemeLengths lengths = lengths_of(scheme);
  const auto first = [&](int wanted) { return times.first(std::min<std::size_t>(wanted, times.size())); };
  StepCoefficients result;
  const auto before = first(lengths.derivative);
  std::vector<double> all{now};
  all.insert(all.end(), before.begin(), before.end());
  result.derivative = differentiation_weights(now, all);
  result.extrapolation = interpolation_weights(now, first(lengths.extrapolation));
  return result;
}

int number_of_solves(TimeScheme scheme) {
  return is_multistep(scheme) ? 1 : static_cast<int>(solves_of(tableau_of(scheme), 1.0).size());
}

std::vector<StepSolve> solves_of(TimeScheme scheme, std::span<const double> times) {
  if (is_multistep(scheme)) return {{step_coefficients(scheme, 0.0, times)}};
  return solves_of(tableau_of(scheme), -times[0]);
}

std::vector<double> mean_interpolation_weights(double now, std::span<const double> times) {
  // The derivative of the integral, whose differences are the means times the lengths.
  const std::vector<double> derivative = differentiation_weights(now, times);
  std::vector<double> weights(times.size() - 1);
  double sum = 0.0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    sum += derivative[i];
    weights[i] = sum * (times[i] - times[i + 1]);
  }
  return weights;
}

}  // namespace solenoid
