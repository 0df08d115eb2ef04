#pragma once
/// \file
/// Averages over time while it goes on.

#include <memory>
#include <vector>

#include "base/host_vector.hpp"
#include "level/coefficients.hpp"
#include "mesh/grid.hpp"
#include "solenoid/averages.hpp"
#include "solenoid/problem.hpp"

namespace solenoid {

/// Means and central second moments of a flow, each step one more term: with the part r of all the time that the new
/// step is, and its difference d from the mean so far,
///
///     U += r d,   R = (1 - r) (R + r d d^T):
///
/// no large numbers are subtracted from each other. What a cell has depends on nothing but its own values, so that the
/// sums are the same for any number of threads.
class AverageSums {
 public:
  /// From `start` on. The grid stores the normal unknowns of all upper boundary faces.
  AverageSums(const Problem& problem, std::shared_ptr<const Grid> grid, double start);
  /// Goes on with averages of all cells. \throws InputError if they are of another mesh or order.
  AverageSums(const Problem& problem, std::shared_ptr<const Grid> grid, const Averages& from);

  [[nodiscard]] double start() const { return start_; }
  /// Up to which flows have counted, if all since the start have.
  [[nodiscard]] double end() const { return start_ + length_; }
  /// A flow, in the layout of Solution's coefficients, that counts for so much time, with the coefficients of its
  /// equation. Of several ranks each has its part; not collective.
  void add(HostVector flow, double length, const Coefficients& coefficients);
  /// nothing before the first add()
  [[nodiscard]] std::optional<Averages> averages() const;

  /// Vectors of a flow that this takes, that of add() included.
  static double vectors(int dim);

 private:
  Problem problem_;
  std::shared_ptr<const Grid> grid_;
  double start_;
  double length_ = 0.0;
  std::shared_ptr<const CellCoefficients> by_cell_;  // of the last flow, where they vary
  HostVector mean_;
  std::vector<HostVector> moments_;  // of Q_k: Averages::stresses, then the dissipation
};

}  // namespace solenoid
