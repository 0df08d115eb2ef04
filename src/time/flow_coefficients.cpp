#include "time/flow_coefficients.hpp"

#include <algorithm>
#include <memory>

#include "base/agreement.hpp"
#include "problem/other_coefficients.hpp"

namespace solenoid {
namespace {

Coefficients with_more_reaction(const Coefficients& coefficients, double more) {
  Coefficients result = coefficients;
  if (coefficients.by_cell == nullptr) {
    result.reaction += more;
    return result;
  }
  const auto by_cell = std::make_shared<CellCoefficients>(*coefficients.by_cell);
  for (double& reaction : by_cell->reaction) reaction += more;
  result.by_cell = by_cell;
  return result;
}

}  // namespace

FlowCoefficients::FlowCoefficients(const Problem& problem, const Level& finest)
    : finest_(finest), problem_(problem), change_(coefficients_depend_on(problem, "t")), now_(made(problem, 0.0)) {}

Coefficients FlowCoefficients::made(const Problem& problem, double t) const {
  const bool depend = coefficients_depend_on(problem, "t");
  Coefficients result;
  in_agreement(finest_.grid.communicator(), [&] {
    result = coefficients_of(depend ? with_parameters(problem, {{"t", t}}) : problem, finest_.grid);
  });
  return result;
}

void FlowCoefficients::set(const Problem& problem, double t) {
  now_ = made(problem, t);
  with_derivative_.clear();
  time_ = t;
  problem_ = problem;
  change_ = coefficients_depend_on(problem, "t");
}

const Coefficients& FlowCoefficients::at(double t) {
  if (change_ && t != time_) set(problem_, t);
  return now_;
}

Coefficients FlowCoefficients::with_derivative(double t, double c_0) {
  const Coefficients& now = at(t);
  if (now.by_cell == nullptr) return with_more_reaction(now, c_0);
  const auto found = std::find_if(with_derivative_.begin(), with_derivative_.end(),
                                  [&](const auto& each) { return each.first == c_0; });
  if (found != with_derivative_.end()) return found->second;
  constexpr std::size_t most = 3;  // as tables are kept (solver/kept_tables.hpp)
  if (with_derivative_.size() == most) with_derivative_.erase(with_derivative_.begin());
  return with_derivative_.emplace_back(c_0, with_more_reaction(now, c_0)).second;
}

}  // namespace solenoid
