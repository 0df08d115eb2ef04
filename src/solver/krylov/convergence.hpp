#pragma once
/// \file
/// How an iteration is going, and when it ends.

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
  /// Residuals are relative to that of the guess, not to the right-hand side: of cycles alone.
  bool from_guess = false;
  /// What the residual must be besides small, if anything: of cycles alone.
  std::function<bool(const double* residual)> also;
  /// Called with the relative residual after every iteration.
  std::function<void(int iteration, double residual)> monitor;

  bool converged = false;
  std::string reason;
  int iterations = 0;
  std::vector<double> history{};  ///< relative residual norms, the initial one first

  /// So little of the right-hand side is rounding.
  static constexpr double rounding = 1e-13;

  /// Records a relative residual norm, `r` being the residual. True if the iteration has to stop, for whatever reason.
  /// \throws Interrupted
  bool stop(double residual, const double* r = nullptr) {
    check_interrupt();
    history.push_back(residual);
    if (monitor) monitor(iterations, residual);
    if (!std::isfinite(residual)) {
      reason = "the residual is not finite";
      return true;
    }
    if (residual <= rtol && iterations >= min_iterations && (!also || also(r))) {
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
