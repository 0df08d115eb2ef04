#pragma once
/// \file
/// How an iteration is going, and when it ends.

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "base/interrupt.hpp"

namespace solenoid {

/// How an iteration is going; shared by all outer methods.
struct Convergence {
  double rtol = 1e-8;
  int max_iterations = 50;
  int min_iterations = 0;
  /// Residuals are relative to that of the guess, not to the right-hand side: of cycles, and GMRES from the right.
  bool from_guess = false;
  /// GMRES from the right begins with a cycle, and ends with cycles where `also` wants more. They solve for divergences
  /// exactly, of which GMRES would leave as much as of all else; once these are gone no vector of its space has any.
  bool cycle_first = false;
  /// What the residual must be besides small, if anything: of cycles, and GMRES from the right with `cycle_first`.
  std::function<bool(const double* residual)> also;
  /// Called with the relative residual after every iteration.
  std::function<void(int iteration, double residual)> monitor;

  bool converged = false;
  std::string reason;
  int iterations = 0;
  std::vector<double> history{};  ///< relative residual norms, the initial one first

  /// So little of the right-hand side is rounding.
  static constexpr double rounding = 1e-13;

  /// What residuals are relative to, from the norms of the right-hand side and of the guess's residual.
  [[nodiscard]] double scale(double norm_b, double norm_of_guess) const {
    return from_guess ? std::max(norm_of_guess, norm_b * rounding / rtol) : norm_b;
  }

  /// Records a relative residual norm, `r` being the residual, or nullptr where only its norm is known yet. True if the
  /// iteration has to stop, for whatever reason. \throws Interrupted
  bool stop(double residual, const double* r = nullptr) {
    check_interrupt();
    history.push_back(residual);
    if (monitor) monitor(iterations, residual);
    if (!std::isfinite(residual)) {
      reason = "the residual is not finite";
      return true;
    }
    if (residual <= rtol && iterations >= min_iterations && (!also || r == nullptr || also(r))) {
      converged = true;
      reason = "relative residual below rtol";
      return true;
    }
    if (iterations >= max_iterations) {
      reason = "max_iterations reached";
      return true;
    }
    return false;
  }
};

}  // namespace solenoid
