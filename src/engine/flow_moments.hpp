#pragma once
/// \file
/// Second moments of a flow in time: the sums over cells of AverageSums (time/average_sums.hpp).

#include <cstdint>

#include "element/moments.hpp"

namespace solenoid {

struct Coefficients;

/// For each cell of a level, whose grid stores all boundary hats, moments in the space Q_k: as vectors of Poisson's
/// equation (mesh/record.hpp), one after the other, `size` numbers each.
class FlowMoments {
 public:
  virtual ~FlowMoments() = default;
  /// One more flow u, that is the part r of all the time so far: with U the mean before it and d = u - U
  ///
  ///     R_cd = (1 - r) (R_cd + r P(d_c d_d)),    D = D + r (P(eps) - D),    eps = nu |grad u|^2 or 2 nu |eps(u)|^2,
  ///
  /// P the L2 projection to Q_k by moment_points(k) Gauss points a direction. u and U are vectors of the level.
  virtual void add(const double* u, const double* mean, double r, const Coefficients& coefficients, std::int64_t size,
                   double* moments) = 0;
};

}  // namespace solenoid
