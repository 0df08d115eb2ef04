#pragma once
/// \file
/// Which vectors have ghosts that are copies of what their owners have. Kernels say what they do to them; whoever needs
/// them exchanges them if they are not there. So no algorithm knows of ghosts.

#include <unordered_map>

namespace solenoid::distributed {

class Ghosts {
 public:
  /// Above 0: a state of the level's Sweep, in which some values of ghosts are what their owners have.
  using State = int;
  static constexpr State fresh = 0;  ///< all of them
  static constexpr State near = -1;  ///< rows of the operator in cells next to owned ones: what restriction reads
  static constexpr State stale = -2;

  /// Of a vector, known by its memory; nullptr stands for zero.
  [[nodiscard]] State of(const void* x) const {
    if (x == nullptr) return fresh;
    const auto found = states_.find(x);
    return found == states_.end() ? stale : found->second;
  }
  [[nodiscard]] bool are_fresh(const void* x) const { return of(x) == fresh; }
  void set(const void* x, State state) { states_[x] = state; }
  /// Its memory is given back.
  void forget(const void* x) { states_.erase(x); }
  /// y is a combination of itself and x.
  void combine(const void* x, const void* y) {
    const State a = of(x);
    const State b = of(y);
    set(y, a == b || b == fresh ? a : a == fresh ? b : stale);
  }

  using Known = std::unordered_map<const void*, State>;
  /// Of all vectors that something was said of.
  [[nodiscard]] const Known& known() const { return states_; }
  void forget() { states_.clear(); }

 private:
  Known states_;
};

}  // namespace solenoid::distributed
