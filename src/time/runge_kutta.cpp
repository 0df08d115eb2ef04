#include "time/runge_kutta.hpp"

#include <cmath>
#include <numeric>
#include <stdexcept>

namespace solenoid {
namespace {

Tableau make_ars233() {
  const double g = (3.0 + std::sqrt(3.0)) / 6.0;
  return {3, {{g}, {1.0 - 2.0 * g, g}}, {{g}, {g - 1.0, 2.0 * (1.0 - g)}}, {0.5, 0.5}, {0.0, 0.5, 0.5}};
}

Tableau make_ars443() {
  const std::vector<double> implicit{1.5, -1.5, 0.5, 0.5};
  const std::vector<double> forward{0.25, 1.75, 0.75, -1.75};
  return {3,
          {{0.5}, {1.0 / 6.0, 0.5}, {-0.5, 0.5, 0.5}, implicit},
          {{0.5}, {11.0 / 18.0, 1.0 / 18.0}, {5.0 / 6.0, -5.0 / 6.0, 0.5}, forward},
          implicit,
          {0.25, 1.75, 0.75, -1.75, 0.0}};
}

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

/// u_n + dt (sum_j a_j I_j + sum_j e_j E_j) as sum_j flows[j] U_j + dt sum_j forward[j] E_j, from the first one on.
struct Eliminated {
  std::vector<double> flows;
  std::vector<double> forward;
};

/// `before`: of the stages 1 and on, without their own a_jj I_j. dt I_j = (U_j - before[j - 1]) / a_jj.
Eliminated eliminate(const Tableau& tableau, const std::vector<double>& a, const std::vector<double>& e,
                     std::size_t known, const std::vector<Eliminated>& before) {
  Eliminated result{std::vector<double>(known, 0.0), std::vector<double>(known, 0.0)};
  result.flows[0] = 1.0;
  for (std::size_t j = 0; j < known; ++j) result.forward[j] = e[j];
  for (std::size_t j = 1; j < known; ++j) {
    const double part = a[j - 1] / tableau.implicit[j - 1].back();
    result.flows[j] += part;
    for (std::size_t l = 0; l < j; ++l) {
      result.flows[l] -= part * before[j - 1].flows[l];
      result.forward[l] -= part * before[j - 1].forward[l];
    }
  }
  return result;
}

/// Known flows are counted from the last one.
StepSolve solve_of(const Eliminated& known, double from_end, double factor, double forward_factor) {
  StepSolve solve;
  solve.from_end = from_end;
  solve.coefficients.derivative = {factor};
  for (auto i = known.flows.rbegin(); i != known.flows.rend(); ++i) {
    solve.coefficients.derivative.push_back(-factor * *i);
  }
  for (auto i = known.forward.rbegin(); i != known.forward.rend(); ++i) {
    solve.coefficients.extrapolation.push_back(forward_factor * *i);
  }
  return solve;
}

}  // namespace

bool Tableau::ends_with_last_stage() const {
  std::vector<double> last = forward.back();
  last.push_back(0.0);
  return implicit.back() == implicit_weights && last == forward_weights;
}

const Tableau& tableau_of(TimeScheme scheme) {
  static const Tableau ars233 = make_ars233();
  static const Tableau ars443 = make_ars443();
  switch (scheme) {
    case TimeScheme::ars233: return ars233;
    case TimeScheme::ars443: return ars443;
    default: throw std::logic_error("a multistep scheme has no tableau");
  }
}

std::vector<StepSolve> solves_of(const Tableau& tableau, double dt) {
  std::vector<StepSolve> solves;
  std::vector<Eliminated> before;
  const std::size_t stages = tableau.implicit.size();
  for (std::size_t i = 1; i <= stages; ++i) {
    const std::vector<double>& row = tableau.implicit[i - 1];
    before.push_back(eliminate(tableau, row, tableau.forward[i - 1], i, before));
    const double own = row.back();
    solves.push_back(solve_of(before.back(), (sum(row) - 1.0) * dt, 1.0 / (own * dt), 1.0 / own));
  }
  if (tableau.ends_with_last_stage()) {
    solves.back().from_end = 0.0;
  } else {
    const Eliminated end = eliminate(tableau, tableau.implicit_weights, tableau.forward_weights, stages + 1, before);
    solves.push_back(solve_of(end, 0.0, 1.0, dt));
    solves.back().is_update = true;
  }
  return solves;
}

std::vector<double> mean_pressure_weights(const Tableau& tableau, double dt) {
  std::vector<double> weights = tableau.implicit_weights;
  if (!tableau.ends_with_last_stage()) weights.push_back(1.0 / dt);
  return weights;
}

}  // namespace solenoid
