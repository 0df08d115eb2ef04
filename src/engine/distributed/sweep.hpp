#pragma once
/// \file
/// What of the ghosts a smoothing step needs, colour by colour: much less than all of it.
///
/// The new values of a patch depend on b, on what lies around the patch and on its old pressure. A value
/// of a ghost that is read by a patch of the next colour travels if it is not known: what patches of this rank
/// computed, and what has not changed since it came, is. A step from fresh ghosts (or from zero), the residual after
/// it, and a step from there, as in a V(1,1) cycle, are a chain of states of a vector; each has a message that leads to
/// the next colour. The message for the residual has what the first colour after it needs, too: corrections of coarser
/// levels leave ghosts as fresh as they were.

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "level/level.hpp"
#include "mesh/shared_records.hpp"

namespace solenoid::distributed {

/// Values [first, last) of a record: hats of a component, its other values, the pressure.
struct ValueClass {
  int first = 0;
  int last = 0;
};

/// Of the records of an equation: hats of each velocity component, other values of each, the pressure or Poisson's u.
std::vector<ValueClass> value_classes(const Equation& equation);

class Sweep {
 public:
  /// Collective.
  Sweep(const Level& level, const ExchangePlan& plan);

  /// Of a message between this rank and another: the records of each class, as places in the lists of the exchange
  /// plan.
  using OfClasses = std::vector<std::vector<std::int32_t>>;
  struct Message {
    std::vector<OfClasses> sends;     ///< [neighbour][class]
    std::vector<OfClasses> receives;  ///< [neighbour][class]
  };

  [[nodiscard]] const std::vector<ValueClass>& classes() const { return classes_; }
  /// The state that follows another one (0: fresh) once a colour is smoothed; nothing if that is not the next one. What
  /// follows the last one is states(): no more is known then.
  [[nodiscard]] std::optional<int> after_colour(int state, int colour) const;
  /// The same for the residual, whose message leaves the vector in this state.
  [[nodiscard]] std::optional<int> after_residual(int state) const {
    return state == colours_ ? std::optional(colours_ + 1) : std::nullopt;
  }
  /// What is sent in a state before its next step; nothing in most that need nothing.
  [[nodiscard]] const Message& message(int state) const { return messages_[state]; }
  [[nodiscard]] int states() const { return static_cast<int>(messages_.size()); }
  /// [state][place in the list of ghosts of all neighbours, one after the other]: classes that are stale in it, as
  /// bits.
  [[nodiscard]] const std::vector<std::uint32_t>& stale(int state) const { return stale_[state]; }

 private:
  using Classes = std::vector<std::uint32_t>;  // [ghost]: as bits
  class Cuts;

  [[nodiscard]] Classes read_by_colour(const Cuts& cuts, int colour) const;
  [[nodiscard]] Classes read_by_residual(const Cuts& cuts) const;
  void smooth(const Cuts& cuts, int colour, Classes& stale) const;
  /// Takes what is both stale and needed from the owners.
  void bring(const Cuts& cuts, const Classes& needed, Classes& stale);
  void keep(const Cuts& cuts, const Classes& stale);

  int colours_;
  std::vector<ValueClass> classes_;
  std::vector<Message> messages_;                  // [state]
  std::vector<std::vector<std::uint32_t>> stale_;  // [state]
};

}  // namespace solenoid::distributed
