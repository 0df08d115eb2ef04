#pragma once
/// \file
/// Which vectors have ghosts that are copies of what their owners have. Kernels say what they do to them; whoever needs
/// them exchanges them if they are not there. So no algorithm knows of ghosts.

#include <algorithm>
#include <unordered_map>

namespace solenoid::distributed {

class Ghosts {
 public:
  enum class State {
    stale,
    near,   ///< rows of the operator in cells next to owned ones: what restriction reads
    fresh,  ///< all of them
  };

  /// Of a vector, known by its memory; nullptr stands for zero.
  [[nodiscard]] State of(const void* x) const {
    if (x == nullptr) return State::fresh;
    const auto found = states_.find(x);
    return found == states_.end() ? State::stale : found->second;
  }
  [[nodiscard]] bool fresh(const void* x) const { return of(x) == State::fresh; }
  void set(const void* x, State state) { states_[x] = state; }
  /// Its memory is given back.
  void forget(const void* x) { states_.erase(x); }
  /// y is a combination of itself and x.
  void combine(const void* x, const void* y) { set(y, std::min(of(x), of(y))); }

  using Known = std::unordered_map<const void*, State>;
  /// Of all vectors that something was said of.
  [[nodiscard]] const Known& known() const { return states_; }
  void forget() { states_.clear(); }

 private:
  Known states_;
};

}  // namespace solenoid::distributed
