#pragma once
/// \file
/// Levels with a viscosity at points, and the operator of that on every engine beside that of the reference engine.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <utility>

#include "engines.hpp"
#include "kernel_bench.hpp"
#include "levels.hpp"

namespace solenoid::test {

/// With a viscosity at points that varies inside of cells, from that of the cell up to this factor times it.
inline Level with_points(Level level, double factor = 10.0) {
  const CellCoefficients& means = *level.coefficients.by_cell;
  const int points = power(level.equation.order + 2, level.equation.dim);
  std::mt19937_64 generator(11);
  std::uniform_real_distribution<double> uniform(0.0, std::log(factor));
  Unset<double> values;
  for (const double mean : means.viscosity) {
    for (int q = 0; q < points; ++q) values.push_back(factor == 1.0 ? mean : mean * std::exp(uniform(generator)));
  }
  auto by_cell = std::make_shared<CellCoefficients>(means);
  by_cell->points =
      std::make_shared<const ViscosityPoints>(level.equation.dim, level.equation.order, std::move(values));
  level.coefficients.by_cell = by_cell;
  return level;
}

/// The operator of points and, as a last one of the results, that of the means: weights are in single precision.
inline void expect_operator_of_points(const Level& level, bool boundary_hats) {
  const Values b = random_vector(level, 1);
  const Values x = random_vector(level, 2, boundary_hats);
  const auto run = [&](Bench<double>& bench) {
    const Results means = apply_and_residual(bench, x, b);
    bench->take_points();
    Results results = apply_and_residual(bench, x, b);
    results.push_back(means.front());
    return results;
  };
  Bench<double> reference(oracle(), level, LocalSolverKind::direct);
  const Results expected = run(reference);
  double difference = 0.0;
  for (std::size_t i = 0; i < expected[0].size(); ++i) {
    difference = std::max(difference, std::abs(expected[0][i] - expected[2][i]));
  }
  EXPECT_GT(difference, 1.0);
  for (const auto& choice : engines()) {
    if (!has_order_of(choice.get(), level)) continue;
    Bench<double> bench(choice.get(), level, LocalSolverKind::direct);
    const Results actual = run(bench);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expect_same(level, expected[i], actual[i], i == 2 ? 2e-12 : 2e-7, fmt::format("[{}] on {}", i, choice.name));
    }
  }
}

/// Of a viscosity that is constant in cells: it is that of the means.
inline void expect_operator_of_means(const Level& level) {
  const Values b = random_vector(level, 1);
  const Values x = random_vector(level, 2);
  std::vector<Engine*> all;
  if (level.equation.order <= 1) all.push_back(&oracle());
  for (const auto& choice : engines()) all.push_back(&choice.get());
  for (Engine* const engine : all) {
    if (!has_order_of(*engine, level)) continue;
    Bench<double> bench(*engine, level, LocalSolverKind::direct);
    const Results expected = apply_and_residual(bench, x, b);
    bench->take_points();
    const Results actual = apply_and_residual(bench, x, b);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expect_same(level, expected[i], actual[i], 1e-13 * (level.equation.order + 1), engine->description());
    }
  }
}

}  // namespace solenoid::test
