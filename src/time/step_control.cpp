#include "time/step_control.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "solenoid/error.hpp"
#include "time/scheme.hpp"

namespace solenoid {
namespace {

/// [order - 1], from Bloch waves of the operator, the wind along an axis.
constexpr std::array limits_sbdf2{0.26, 0.11, 0.08, 0.07};
constexpr std::array limits_sbdf3{0.64, 0.60, 0.59, 0.57};
constexpr std::array limits_bdf2_ext3{0.39, 0.36, 0.35, 0.35};
constexpr std::array limits_ars233{1.67, 1.57, 1.53, 1.51};
constexpr std::array limits_ars443{1.40, 1.32, 1.29, 1.27};

/// Higher orders have the limit of the last that is known, which they differ from little.
template <std::size_t n>
double limit_of(const std::array<double, n>& limits, int order) {
  return limits[std::clamp(order - 1, 0, static_cast<int>(n) - 1)];
}

double rung_below(double length) { return std::exp2(std::floor(4.0 * std::log2(length) + 1e-9) / 4.0); }

}  // namespace

double convective_frequency(int order) {
  constexpr std::array known{1.48, 4.09, 7.51, 11.82, 16.85};
  if (order < static_cast<int>(known.size())) return known[order];
  // Beyond these second differences of 0.8 continue the series.
  double value = known[4];
  double difference = known[4] - known[3];
  for (int k = 5; k <= order; ++k) value += difference += 0.8;
  return value;
}

double stable_cfl(TimeScheme scheme, int order) {
  switch (scheme) {
    case TimeScheme::sbdf2: return limit_of(limits_sbdf2, order);
    case TimeScheme::sbdf3: return limit_of(limits_sbdf3, order);
    case TimeScheme::bdf2_ext3: return limit_of(limits_bdf2_ext3, order);
    case TimeScheme::ars233: return limit_of(limits_ars233, order);
    case TimeScheme::ars443: return limit_of(limits_ars443, order);
    case TimeScheme::sbdf1:
    case TimeScheme::sbdf4: return 0.0;
  }
  return 0.0;
}

double default_cfl(TimeScheme scheme, int order) {
  return scheme == TimeScheme::sbdf3 ? 0.5 : 0.8 * stable_cfl(scheme, order);
}

StepControl::StepControl(const TimeOptions& options, int order)
    : step_(options.step),
      cfl_(options.cfl),
      frequency_(convective_frequency(order)),
      starts_slowly_(is_multistep(options.scheme) && order_of(options.scheme) > 1) {}

double StepControl::next(double last, double rate, double longest) const {
  double wanted = step_ > 0.0 ? step_ : unlimited;
  if (follows_flow()) wanted = std::min(wanted, rung_below(std::min(rate > 0.0 ? reach() / rate : unlimited, longest)));
  if (!std::isfinite(wanted)) {
    throw InputError(
        "time.step: the flow is at rest and nothing moves it, neither velocities on sides, nor tractions or a force, "
        "so that no step is too long for `cfl`: give the longest one, too");
  }
  if (last == 0.0) return starts_slowly_ ? 0.01 * wanted : wanted;
  return std::min(wanted, cfl_ > 0.0 ? rung_below(1.25 * last) : 1.3 * last);
}

}  // namespace solenoid
