#include "time/settling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace solenoid {

std::string settling(const std::vector<TimeAndChange>& changes, double wanted) {
  if (changes.empty()) return "no step has been made";
  const auto [now, change] = changes.back();
  const auto half = std::find_if(changes.begin(), changes.end(), [&](const auto& c) { return c[0] >= 0.5 * now; });
  const auto [before, change_before] = *half;
  const std::string seen =
      fmt::format("the velocity changes by {:.2e} of itself per unit of time, {:g} is asked for", change, wanted);
  if (!(before < now)) return seen;
  const std::string then = fmt::format("at t = {:.4g} it was {:.2e}", before, change_before);
  constexpr double falls = 0.9;
  if (!(change < falls * change_before)) return fmt::format("{}; {}: it is not getting there", seen, then);
  const double left = (now - before) * std::log(change / wanted) / std::log(change_before / change);
  return fmt::format("{}; {}: at that pace it is steady at t = {:.3g}", seen, then, now + left);
}

}  // namespace solenoid
