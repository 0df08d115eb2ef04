#include <fmt/format.h>

#include <cmath>

#include "problem/regions.hpp"
#include "problem/validate.hpp"
#include "solenoid/time_stepper.hpp"

namespace solenoid {

void validate(const Problem& problem, const TimeOptions& time) {
  const auto fail = [](const char* entry, const std::string& what) { throw InvalidEntry(entry, what); };
  if (problem.equation != EquationKind::stokes) fail("equation", "only flows change in time");
  const auto check_range = [&](const char* entry, double value) {
    if (!(value >= 0.0) || !std::isfinite(value)) fail(entry, fmt::format("expected a number >= 0, got {}", value));
  };
  check_range("step", time.step);
  check_range("cfl", time.cfl);
  if (time.average_start) check_range("average.start", *time.average_start);
  check_range("average.every", time.average_every);
  if (time.average_every > 0.0 && !time.average_start) fail("average.every", "there are no averages: give their start");
  check_range("steady", time.steady);
  if (time.step == 0.0 && time.cfl == 0.0) fail("step", "expected a length of steps, or `cfl`");
  for (int a = 0; time.flow_rate && a < 3; ++a) {
    const double rate = (*time.flow_rate)[a];
    if (!std::isfinite(rate)) fail("flow_rate", fmt::format("expected finite numbers, got {}", rate));
    if (rate == 0.0 || (a < problem.mesh.dim && problem.boundary.sides[2 * a].kind == SideKind::periodic)) continue;
    fail("flow_rate", fmt::format("direction {} is not periodic: there sides say how much flows; expected 0, got {:g}",
                                  "xyz"[a], rate));
  }
  if (time.flow_rate && periodic_directions(problem).empty()) {
    fail("flow_rate", "no direction is periodic, so that sides say how much flows: leave it out");
  }
  if (!problem.convection && time.step == 0.0) {
    fail("cfl", "nothing limits the steps of a flow without convection: give `step`");
  }
}

}  // namespace solenoid
