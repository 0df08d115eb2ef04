#include "time/energy_alarm.hpp"

#include <algorithm>
#include <cstddef>

namespace solenoid {

std::optional<EnergyAlarm::Growth> EnergyAlarm::after(int step, double energy, const std::function<double()>& made) {
  constexpr std::size_t steps = 50;
  constexpr double much = 1.5;
  constexpr double too_much = 2.0;
  constexpr double part = 0.5;
  const auto least =
      std::min_element(past_.begin(), past_.end(), [](const Past& a, const Past& b) { return a.energy < b.energy; });
  const bool grows = least != past_.end() && energy > much * least->energy;
  if (grows && !growth_) {
    // In one step, or little by little.
    const Past from = energy > much * past_.back().energy ? past_.back() : *least;
    growth_ = Growth{from.step, from.energy, 0.0};
  }
  if (!grows) growth_.reset();
  past_.push_back({step, energy});
  if (past_.size() > steps) past_.pop_front();
  if (!growth_) return {};
  growth_->made += made();
  const bool alarm = energy > too_much * growth_->before && growth_->made > part * (energy - growth_->before);
  return alarm ? growth_ : std::nullopt;
}

}  // namespace solenoid
