/// \file
/// Patches of the cpu engine whose residuals wait for others with their local problem: a thread has few of them, so
/// that they wait otherwise than where there is one thread, and get the same bits.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "engine/engine.hpp"
#include "kernel_bench.hpp"
#include "level/patch_scale.hpp"
#include "levels.hpp"
#include "problem/affine_map.hpp"
#include "solenoid/problem.hpp"

namespace solenoid {
namespace {

using test::Bench;
using test::MeshCase;
using test::Results;
using test::Values;

/// Bits: values that are not a number, as nobody wrote them, are the same.
bool same(const Results& a, const Results& b) {
  const auto equal = [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](const Values& x, const Values& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), equal);
  });
}

template <class T>
void expect_same_bits(const Level& level, LocalSolverKind local) {
  const Values x = test::random_vector(level, 1);
  const Values b = test::random_vector(level, 2);
  const auto smoothed = [&](int threads) {
    const std::unique_ptr<Engine> engine = make_engine(DeviceChoice::cpu, threads);
    Bench<T> bench(*engine, level, local);
    return test::smooth_each_colour(bench, static_cast<int>(std::ssize(level.patches.colours)), x, b);
  };
  const Results expected = smoothed(1);
  for (const int threads : {2, 15}) EXPECT_TRUE(same(expected, smoothed(threads))) << threads;
}

void expect_same_bits(const Level& level, LocalSolverKind local = LocalSolverKind::direct) {
  expect_same_bits<float>(level, local);
  expect_same_bits<double>(level, local);
}

/// Holes without order in 2D: patches of all kinds, in rows of all lengths.
MeshCase porous(EquationKind equation = EquationKind::stokes, SideKind holes = SideKind::velocity) {
  std::vector<IndexBox> boxes;
  for (int i = 0; i < 200; ++i) {
    const int x = i * 7919 % 61;
    const int y = i * 104729 % 47;
    boxes.push_back({{x, y, 0}, {x + 1, y + 1, 1}});
  }
  MeshCase result{"porous", test::box({61, 47}, std::move(boxes)), test::sides({{1, SideKind::outflow}}, holes)};
  if (equation == EquationKind::poisson) result.boundary = {};
  result.equation = equation;
  return result;
}

/// Cells with reactions so different that every second patch has another local problem.
Level with_reactions(const Mesh& mesh, int order) {
  const Equation equation{.dim = mesh.dim, .order = order, .form = ViscousForm::gradient};
  Grid grid(mesh, {});
  std::mt19937_64 generator(5);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  const auto by_cell = std::make_shared<CellCoefficients>();
  for (Record cell = 0; cell < grid.layout().cells().last(); ++cell) {
    by_cell->viscosity.push_back(std::pow(10.0, 3.0 * uniform(generator) - 1.5));
    by_cell->reaction.push_back(std::pow(10.0, 12.0 * uniform(generator)));
  }
  return {equation, {.by_cell = by_cell}, std::move(grid), {.no_slip_ends = true}};
}

TEST(WaitingPatches, GetTheSameBitsWhereverTheyWait) {
  const int order = std::max(1, available_orders(2).front());
  expect_same_bits(porous().level(order));
  expect_same_bits(porous(EquationKind::stokes, SideKind::slip).level(order), LocalSolverKind::cg);
  expect_same_bits(porous(EquationKind::poisson).level(order));
  expect_same_bits(porous(EquationKind::poisson).level(order, {.problem = PatchProblem::fused}));
}

TEST(WaitingPatches, GetTheSameBitsOnSlantedCells) {
  const int order = std::max(1, available_orders(2).front());
  MeshCase slanted = porous();
  slanted.mesh.edges = {{{30.5, 0, 0}, {9.4, 18.8, 0}, {0, 0, 1}}};
  expect_same_bits(slanted.level(order));
}

/// There are more local problems than residuals have places to wait in batches of.
TEST(WaitingPatches, GetTheSameBitsWhereNoPlaceIsLeft) {
  const int order = std::max(1, available_orders(2).front());
  const Level level = with_reactions(test::box({64, 40}), order);
  std::set<double> reactions;
  for (const Record lower : level.patches.lower_cell) reactions.insert(patch_scale(level, lower).reaction);
  EXPECT_GT(reactions.size(), 16U);
  expect_same_bits(level);
}

}  // namespace
}  // namespace solenoid
