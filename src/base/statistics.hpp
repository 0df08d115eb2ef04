#pragma once
/// \file
/// What is joined from parts of a domain: means, variances, maxima.

#include <cmath>

namespace solenoid {

/// Integral of (e - mean)^2 over a set, without cancellation; sets are joined by the parallel variance formula.
struct Variance {
  double measure = 0.0;  ///< of the set
  double mean = 0.0;
  double square = 0.0;

  void merge(const Variance& other) {
    if (other.measure == 0.0) return;
    const double total = measure + other.measure;
    const double difference = other.mean - mean;
    square += other.square + difference * difference * measure * other.measure / total;
    mean += difference * other.measure / total;
    measure = total;
  }
};

/// The larger one, or NaN if one is.
inline double max_or_nan(double a, double b) { return b > a || std::isnan(b) ? b : a; }

}  // namespace solenoid
