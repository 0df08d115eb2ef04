#pragma once
/// \file
/// Kernels of one engine beside those of the reference engine: vectors to and from the host, and how results are
/// compared.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "engine/reference/reference_level.hpp"

namespace solenoid::test {

using Values = std::vector<double>;
using Results = std::vector<Values>;

/// Rounding of the kernels' own precision; sums in the local solver grow with the order.
template <class T>
double tolerance(int order) {
  return sizeof(T) == sizeof(float) ? 1e-5 * (order + 1) : 1e-12;
}

inline Engine& oracle() {
  static const auto engine = make_reference_engine();
  return *engine;
}

/// One engine's kernels of a level, with vectors to and from the host.
template <class T>
class Bench {
 public:
  Bench(Engine& engine, const Level& level, LocalSolverKind local)
      : engine_(engine), level_(level), kernels_(make_kernels<T>(engine, level, local)) {}

  Kernels<T>* operator->() { return kernels_.get(); }
  Engine& engine() { return engine_; }

  Vector<T> vector(const Values& values) {
    const std::vector<T> rounded(values.begin(), values.end());
    Vector<T> result(engine_, static_cast<std::int64_t>(rounded.size()));
    result.upload(rounded.data());
    return result;
  }
  /// A vector to be written to: not a number in every unknown, so that one left out shows.
  Vector<T> output(const Level& level) {
    const auto unknown = reference::unknowns(level);
    Values values(unknown.size(), 0.0);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (unknown[i]) values[i] = std::numeric_limits<double>::quiet_NaN();
    }
    return vector(values);
  }
  Vector<T> output() { return output(level_); }
  Values values(const Vector<T>& x) {
    engine_.synchronise();
    std::vector<T> host(x.size());
    x.download(host.data());
    return {host.begin(), host.end()};
  }

 private:
  Engine& engine_;
  const Level& level_;
  std::unique_ptr<Kernels<T>> kernels_;
};

/// A x and b - A x.
template <class T>
Results apply_and_residual(Bench<T>& bench, const Values& x, const Values& b) {
  const auto vx = bench.vector(x);
  const auto vb = bench.vector(b);
  auto y = bench.output();
  auto r = bench.output();
  bench->apply(vx.data(), y.data());
  bench->residual(vb.data(), vx.data(), r.data());
  return {bench.values(y), bench.values(r)};
}

/// Of each colour: from zero, with old values, added.
template <class T>
Results smooth_each_colour(Bench<T>& bench, int colours, const Values& x, const Values& b) {
  const auto vx = bench.vector(x);
  const auto vb = bench.vector(b);
  Results results;
  for (int colour = 0; colour < colours; ++colour) {
    auto from_zero = bench.output();
    auto y = bench.output();
    auto added = bench.vector(x);
    bench->smooth(colour, vb.data(), nullptr, from_zero.data());
    bench->smooth(colour, vb.data(), vx.data(), y.data());
    bench->smooth_add(colour, vb.data(), vx.data(), added.data(), T(0.25));
    results.push_back(bench.values(from_zero));
    results.push_back(bench.values(y));
    results.push_back(bench.values(added));
  }
  return results;
}

/// Largest difference, for each field relative to the field's largest value, and zeros where there is no unknown.
inline void expect_same(const Level& level, const Values& expected, const Values& actual, double tolerance,
                        const std::string& what) {
  ASSERT_EQ(expected.size(), actual.size());
  const auto unknown = reference::unknowns(level);
  const std::size_t record = level.equation.record();
  const auto place = [&](std::size_t i) { return i / interleave % record; };  // in its record
  const auto owner = [&](std::size_t i) { return i / interleave / record * interleave + i % interleave; };
  const std::size_t block = power(level.equation.n(), level.equation.dim);
  Values scale(level.equation.velocities() + 1, std::numeric_limits<double>::min());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    double& largest = scale[place(i) / block];
    largest = std::max(largest, std::abs(expected[i]));
  }
  // Components of the velocity have one scale.
  if (level.equation.velocities() > 0) {
    const double velocity = *std::max_element(scale.begin(), scale.end() - 1);
    std::fill(scale.begin(), scale.end() - 1, velocity);
  }
  double worst = 0.0;
  std::size_t where = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (!unknown[i]) {
      ASSERT_EQ(actual[i], 0.0) << what << ": no unknown at record " << owner(i) << ", place " << place(i);
    }
    const double difference = std::abs(actual[i] - expected[i]) / scale[place(i) / block];
    if (!(difference <= worst)) worst = difference, where = i;
    if (std::isnan(difference)) break;
  }
  EXPECT_LE(worst, tolerance) << what << ": record " << owner(where) << " of " << level.grid.layout().cells().size()
                              << " cells, place " << place(where) << " of " << record << ", expected "
                              << expected[where] << ", got " << actual[where];
}

}  // namespace solenoid::test
