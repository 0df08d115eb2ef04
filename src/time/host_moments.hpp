#pragma once
/// \file
/// Second moments of flows in memory of the host.

#include "engine/flow_moments.hpp"
#include "level/level.hpp"

namespace solenoid {

/// What a cell has depends on nothing but its own values, so that moments are the same for any number of threads.
class HostMoments final : public FlowMoments {
 public:
  /// Of a level, which must outlive it.
  explicit HostMoments(const Level& level) : level_(level) {}
  void add(const double* u, const double* mean, double r, const Coefficients& coefficients, std::int64_t size,
           double* moments) override;

 private:
  const Level& level_;
};

}  // namespace solenoid
