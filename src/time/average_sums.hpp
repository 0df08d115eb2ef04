#pragma once
/// \file
/// Averages over time while it goes on.

#include <memory>
#include <optional>

#include "engine/engine.hpp"
#include "solenoid/averages.hpp"
#include "solenoid/problem.hpp"
#include "solver/discretisation.hpp"

namespace solenoid {

/// Means and central second moments of a flow, each step one more term: with the part r of all the time that the new
/// step is, and its difference d from the mean so far,
///
///     U += r d,   R = (1 - r) (R + r d d^T):
///
/// no large numbers are subtracted from each other. They are kept and made where the flow is.
class AverageSums {
 public:
  /// From `start` on. The discretisation, and kernels of its level with all sides, must outlive this.
  AverageSums(Engine& engine, const Discretisation& of, Kernels<double>& kernels, const Problem& problem, double start);
  /// Goes on with averages of all cells. \throws InputError if they are of another mesh or order.
  AverageSums(Engine& engine, const Discretisation& of, Kernels<double>& kernels, const Problem& problem,
              const Averages& from);

  [[nodiscard]] double start() const { return start_; }
  /// Up to which flows have counted, if all since the start have.
  [[nodiscard]] double end() const { return start_ + length_; }
  /// A completed flow (Discretisation::complete) that counts for so much time, with the coefficients of its equation;
  /// its difference from the mean takes its place. Of several ranks each has its part; not collective.
  void add(Vector<double>& flow, double length, const Coefficients& coefficients);
  /// nothing before the first add()
  [[nodiscard]] std::optional<Averages> averages() const;

  /// Vectors of a flow that this takes.
  static double vectors(int dim);

 private:
  /// Of Q_k.
  [[nodiscard]] std::int64_t moment_size() const;

  Engine& engine_;
  const Discretisation& of_;
  Kernels<double>& kernels_;
  Problem problem_;
  double start_;
  double length_ = 0.0;
  std::shared_ptr<const CellCoefficients> by_cell_;  // of the last flow, where they vary
  std::unique_ptr<FlowMoments> sums_;
  Vector<double> mean_;
  Vector<double> moments_;
};

}  // namespace solenoid
