#pragma once
/// \file
/// Times of a solve and of its parts, everything set up beforehand.

#include <algorithm>
#include <limits>
#include <vector>

#include "engine/engine.hpp"
#include "solver/discretisation.hpp"
#include "solver/hierarchy.hpp"
#include "solver/methods.hpp"
#include "solver/multigrid/smoothing.hpp"
#include "studies/timing.hpp"

namespace solenoid {

/// How a part is timed: from rest, for some tens of milliseconds; after a second of the same work, at the clock that
/// the device keeps up; or, where a tenth more or less does not matter, at once.
enum class Pace { rested, sustained, at_once };

// The fewest vectors that are read or written: a colour of the smoother reads two and writes one, a V-cycle is two
// smoothing steps (the first colour starts from zero), a residual and two transfers on the finest level, and coarser
// ones.
inline double smoothing_step_vectors(int dim) { return 3.0 * (1 << dim); }
inline double vcycle_vectors(int dim) {
  const double coarse = 1.0 / (1 << dim);  // unknowns of the next level
  return (2.0 * smoothing_step_vectors(dim) - 1.0 + 3.0 + 3.0 + 2.0 * coarse) / (1.0 - coarse);
}

/// A solve of a problem without flow through its sides, ready to run, with the cycle in precision S. Times are of the
/// work alone, of all unknowns of the finest level, in seconds. The ranks of the options work together.
template <class S>
class TimedSolve {
 public:
  TimedSolve(Engine& engine, const Hierarchy& hierarchy, const Problem& problem, const SolverOptions& options)
      : engine_(engine),
        options_(options),
        solve_(engine, hierarchy, options_),
        b_(engine, hierarchy.finest().size()),
        x_(engine, hierarchy.finest().size()) {
    Discretisation::assemble(engine, hierarchy.finest(), outer(), problem, b_.data());
    outer().project(b_.data());
    solve_.reserve();
  }

  /// Parts and solves are timed until this is over, should they take so long that ten runs would take longer.
  void limit(double seconds) { most_ = seconds; }

  /// One solve from zero.
  void run() {
    prepare();
    solve();
  }
  /// What the last solve did.
  [[nodiscard]] const Convergence& convergence() const { return convergence_; }
  /// Its solution.
  [[nodiscard]] const Vector<double>& x() const { return x_; }

  double solve_seconds() {
    constexpr double enough = 0.2;
    const auto from_zero = [this] { prepare(); };
    return median_seconds(
        enough, from_zero, [this] { solve(); }, most_, ranks());
  }
  /// A x in double precision. This and the following overwrite x().
  double operator_double_seconds(Pace pace = Pace::rested) {
    return seconds(pace, [this] { outer().apply(b_.data(), x_.data()); });
  }
  double operator_seconds(Pace pace = Pace::rested) {
    make_room();
    return seconds(pace, [this] { kernels().apply(load(), y_.data()); });
  }
  double smoothing_step_seconds(Pace pace = Pace::rested) {
    make_room();
    return seconds(pace, [this] { smoothing_step(); });
  }
  /// Once there is room.
  void smoothing_step() {
    solenoid::smoothing_step<S>(kernels(), options_.multigrid, load(), y_.data(), z_.data(), y_.data());
  }
  double cycle_seconds(Pace pace = Pace::rested) {
    make_room();
    return seconds(pace, [this] { solve_.cycle().run(); });
  }

  /// Of work() that the engine may finish later. A run is as many in a row as take some milliseconds: inside a solve,
  /// too, nobody waits for each.
  template <class Work>
  double seconds(Pace pace, Work work) {
    constexpr double run = 5e-3;
    const auto in_a_row = [&](int count) {
      for (int i = 0; i < count; ++i) work();
      engine_.synchronise();
    };
    in_a_row(1);
    const int count = std::max(1, static_cast<int>(run / seconds_of([&] { in_a_row(1); }, ranks())));
    const auto row = [&] { in_a_row(count); };
    if (pace == Pace::rested) {
      rest();
    } else if (pace == Pace::sustained) {
      constexpr double warm_up = 1.0;
      double spent = 0.0;
      while (spent < warm_up) spent += seconds_of(row, ranks());
    }
    const auto nothing = [] {};
    return median_seconds(0.0, nothing, row, most_, ranks()) / count;
  }

 private:
  [[nodiscard]] const Communicator* ranks() const { return options_.communicator.get(); }
  Kernels<double>& outer() { return solve_.outer(); }
  Kernels<S>& kernels() { return solve_.cycle().kernels(); }
  S* load() { return solve_.cycle().right_hand_side(); }

  void prepare() {
    outer().zero(x_.data());
    engine_.synchronise();
  }
  void solve() {
    convergence_ = Convergence{};
    convergence_.rtol = options_.rtol;
    convergence_.max_iterations = options_.max_iterations;
    solve_.run(b_.data(), x_.data(), true, convergence_);
    outer().project(x_.data());
    engine_.synchronise();
  }
  /// Vectors for the parts in precision S, which solves have no need of.
  void make_room() {
    if (y_.size() == 0) {
      y_ = Vector<S>(engine_, x_.size());
      z_ = Vector<S>(engine_, x_.size());
    }
    kernels().from_double(b_.data(), load());
  }

  Engine& engine_;
  SolverOptions options_;
  Solve<S> solve_;
  Vector<double> b_;
  Vector<double> x_;
  Vector<S> y_;
  Vector<S> z_;
  Convergence convergence_;
  double most_ = std::numeric_limits<double>::infinity();
};

}  // namespace solenoid
