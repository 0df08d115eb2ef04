/// \file
/// Cells that are parallelepipeds: the cpu engine against the reference engine, and local problems against the exact
/// ones.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "engine/engine.hpp"
#include "engines.hpp"
#include "flows.hpp"
#include "kernel_bench.hpp"
#include "level/patch_weights.hpp"
#include "levels.hpp"
#include "levels_with_points.hpp"
#include "problem/affine_map.hpp"
#include "problem/names.hpp"
#include "sheared_levels.hpp"
#include "solenoid/error.hpp"

namespace solenoid {
namespace {

using test::Bench;
using test::expect_same;
using test::MeshCase;
using test::oracle;
using test::random_edges;
using test::Results;
using test::sheared;
using test::tolerance;
using test::Values;

struct ShearedCase {
  MeshCase mesh;
  int order = 1;
};

std::string to_string(const ShearedCase& what) {
  return fmt::format("{}d_{}_k{}", what.mesh.mesh.dim, what.mesh.name, what.order);
}
void PrintTo(const ShearedCase& what, std::ostream* stream) { *stream << to_string(what); }

std::vector<ShearedCase> sheared_cases() {
  std::vector<ShearedCase> cases;
  std::uint64_t seed = 0;
  for (const int dim : {2, 3}) {
    for (const auto& mesh : test::mesh_cases(dim)) {
      for (int order = 1; order <= (dim == 2 ? 3 : 1); ++order) cases.push_back({sheared(mesh, ++seed), order});
    }
  }
  // With all kinds of sides and holes: the reference engine takes its time.
  constexpr std::array of_order_2{"odd_box", "outflow_corner",  "channel",    "window",
                                  "slip",    "different_holes", "periodic_2", "periodic_odd"};
  for (const auto& mesh : test::mesh_cases(3)) {
    if (std::find(of_order_2.begin(), of_order_2.end(), mesh.name) != of_order_2.end()) {
      cases.push_back({sheared(mesh, ++seed), 2});
    }
  }
  for (int order = 4; order <= 8; ++order) {
    for (const auto& mesh : test::mesh_cases(2)) {
      if (mesh.name == "odd_box" || mesh.name == "channel") cases.push_back({sheared(mesh, ++seed), order});
    }
  }
  cases.push_back({sheared({"walls", test::box({3, 3, 2})}, ++seed), 3});
#ifdef NDEBUG  // without optimisation the reference engine's dense factorisations take minutes
  cases.push_back({sheared({"pair", test::box({3, 2, 2}), test::periodic({0})}, ++seed), 4});
  cases.push_back({sheared({"pair", test::box({2, 2, 2})}, ++seed), 5});
#endif
  for (const auto& cells : std::vector<std::vector<int>>{{7, 40}, {33, 5}, {33, 3, 3}}) {
    cases.push_back({sheared({fmt::format("rows_{}", cells[0]), test::box(cells)}, ++seed), 1});
  }
  std::erase_if(cases, [](const ShearedCase& what) { return !test::has_order(what.mesh.mesh.dim, what.order); });
  return cases;
}

/// visit(engine) for those of this machine that have the level's order.
template <class Visit>
void for_engines(const Level& level, const Visit& visit) {
  for (const auto& choice : test::engines()) {
    SCOPED_TRACE(choice.name);
    if (test::has_order_of(choice.get(), level)) visit(choice.get());
  }
}

class ShearedKernels : public testing::TestWithParam<ShearedCase> {
 protected:
  template <class T, class Run>
  void compare(const Level& level, LocalSolverKind local, const std::string& what, const Run& run) {
    Bench<T> expected(oracle(), level, local);
    const Results expected_result = run(expected);
    constexpr bool single = sizeof(T) == sizeof(float);
    for_engines(level, [&](Engine& engine) {
      std::vector<std::string> variants = engine.smoother_variants(level.equation, single);
      variants.emplace_back();
      for (const std::string& variant : variants) {
        engine.choose_smoother(variant);
        Bench<T> actual(engine, level, local);
        const Results actual_result = run(actual);
        for (std::size_t i = 0; i < expected_result.size(); ++i) {
          expect_same(level, expected_result[i], actual_result[i], 2.0 * tolerance<T>(level.equation.order),
                      fmt::format("{} [{}] in {} {}", what, i, single ? "float" : "double", variant));
        }
      }
    });
  }

  template <class T>
  void apply_and_residual(bool boundary_hats) {
    const Level level = GetParam().mesh.level(GetParam().order, {}, boundary_hats);
    const Values b = test::random_vector(level, 1);
    const Values x = test::random_vector(level, 2, boundary_hats);
    compare<T>(level, LocalSolverKind::direct, "apply, residual",
               [&](Bench<T>& bench) { return test::apply_and_residual(bench, x, b); });
  }

  template <class T>
  void smoothers(LocalSolverKind local, PatchProblem problem) {
    const Level level = GetParam().mesh.level(GetParam().order, {.problem = problem});
    const Values x = test::random_vector(level, 3);
    const Values b = test::random_vector(level, 4);
    const int colours = static_cast<int>(level.patches.colours.size());
    ASSERT_GT(colours, 0);
    compare<T>(level, local, "smooth, all colours: from zero, with old values, added",
               [&](Bench<T>& bench) { return test::smooth_each_colour(bench, colours, x, b); });
  }
};

TEST_P(ShearedKernels, ApplyTheOperator) {
  for (const bool boundary_hats : {false, true}) {
    apply_and_residual<float>(boundary_hats);
    apply_and_residual<double>(boundary_hats);
  }
}

TEST_P(ShearedKernels, Smooth) {
  smoothers<float>(LocalSolverKind::direct, PatchProblem::symmetric);
  smoothers<double>(LocalSolverKind::direct, PatchProblem::symmetric);
}

TEST_P(ShearedKernels, SmoothWithTheMatrixOfThePatch) {
  if (GetParam().order > 2 || GetParam().mesh.mesh.dim == 3) GTEST_SKIP();
  smoothers<double>(LocalSolverKind::dense, PatchProblem::symmetric);
  smoothers<double>(LocalSolverKind::direct, PatchProblem::galerkin);
}

/// With viscosities over three decades and reactions of which some are zero, by cell.
Level with_coefficients(const ShearedCase& what, ViscousForm form, bool reaction, bool boundary_hats = false) {
  Level level = what.mesh.level(what.order, {.no_slip_ends = true}, boundary_hats);
  std::mt19937_64 generator(7);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  const auto by_cell = std::make_shared<CellCoefficients>();
  for (Record cell = 0; cell < level.grid.layout().cells().last(); ++cell) {
    by_cell->viscosity.push_back(std::pow(10.0, 3.0 * uniform(generator) - 1.5));
    const double alpha = std::pow(10.0, 4.0 * uniform(generator) - 1.0);
    by_cell->reaction.push_back(reaction && uniform(generator) < 0.7 ? alpha : 0.0);
  }
  Equation equation = level.equation;
  equation.form = form;
  return {equation, {.by_cell = by_cell}, std::move(level.grid), {.no_slip_ends = true}};
}

TEST_P(ShearedKernels, VaryByCell) {
  const ShearedCase& what = GetParam();
  const bool reaction = what.order != 1;
  const auto compare_both = [&](const Level& level, const std::string& name, const auto& run) {
    compare<float>(level, LocalSolverKind::direct, name, run);
    compare<double>(level, LocalSolverKind::direct, name, run);
  };
  for (const ViscousForm form : {ViscousForm::gradient, ViscousForm::stress}) {
    SCOPED_TRACE(name_of(form));
    const Level with_hats = with_coefficients(what, form, reaction, true);
    const Values x = test::random_vector(with_hats, 2, true);
    const Values b = test::random_vector(with_hats, 1);
    compare_both(with_hats, "apply, residual, by cell",
                 [&](auto& bench) { return test::apply_and_residual(bench, x, b); });
    const Level level = with_coefficients(what, form, reaction);
    const Values old = test::random_vector(level, 3);
    const Values load = test::random_vector(level, 4);
    const int colours = static_cast<int>(level.patches.colours.size());
    compare_both(level, "smooth, by cell",
                 [&](auto& bench) { return test::smooth_each_colour(bench, colours, old, load); });
  }
}

TEST_P(ShearedKernels, ApplyTheOperatorOfPoints) {
  const ShearedCase& what = GetParam();
  for (const ViscousForm form : {ViscousForm::gradient, ViscousForm::stress}) {
    SCOPED_TRACE(name_of(form));
    // With boundary hats for one of the forms: the oracle makes new matrices for every cell and face.
    const bool boundary_hats = what.order == 1 || form == ViscousForm::stress;
    const Level level = with_coefficients(what, form, what.order != 1, boundary_hats);
    test::expect_operator_of_points(test::with_points(level), boundary_hats);
    test::expect_operator_of_means(test::with_points(level, 1.0));
  }
}

/// (A x, y) = (x, A y)
TEST_P(ShearedKernels, AreSymmetric) {
  const Level level = GetParam().mesh.level(GetParam().order);
  const Values x = test::random_vector(level, 5);
  const Values y = test::random_vector(level, 6);
  const auto dot = [](const Values& a, const Values& b) {
    return Eigen::Map<const Eigen::VectorXd>(a.data(), std::ssize(a))
        .dot(Eigen::Map<const Eigen::VectorXd>(b.data(), std::ssize(b)));
  };
  for_engines(level, [&](Engine& engine) {
    Bench<double> bench(engine, level, LocalSolverKind::direct);
    const auto image = [&](const Values& values) {
      const auto v = bench.vector(values);
      auto result = bench.output();
      bench->apply(v.data(), result.data());
      return bench.values(result);
    };
    const Values image_x = image(x);
    EXPECT_NEAR(dot(image_x, y), dot(x, image(y)), 1e-13 * std::sqrt(dot(image_x, image_x) * dot(y, y)));
  });
}

/// Kernels that are handed other coefficients are those of a level that had them from the first, to the last bit.
TEST_P(ShearedKernels, TakeOtherCoefficients) {
  const Values x = test::random_vector(GetParam().mesh.level(GetParam().order), 2);
  const Values b = test::random_vector(GetParam().mesh.level(GetParam().order), 3);
  for_engines(GetParam().mesh.level(GetParam().order), [&](Engine& engine) {
    Level level = GetParam().mesh.level(GetParam().order);
    Coefficients others{.viscosity = 0.02, .reaction = level.coefficients.reaction == 0.0 ? 0.0 : 7.0};
    const auto results = [&](Bench<double>& bench) {
      Results all = test::apply_and_residual(bench, x, b);
      const Results smoothed = test::smooth_each_colour(bench, 1, x, b);
      all.insert(all.end(), smoothed.begin(), smoothed.end());
      return all;
    };
    Bench<double> replaced(engine, level, LocalSolverKind::direct);
    const Results before = results(replaced);
    level.set_coefficients(others);
    const auto old = replaced->use_tables(replaced->make_tables());
    Bench<double> made(engine, level, LocalSolverKind::direct);
    EXPECT_EQ(results(replaced), results(made));
    replaced->use_tables(old);
    EXPECT_EQ(results(replaced), before);
  });
}

/// Right angles are those of boxes.
TEST_P(ShearedKernels, AreThoseOfBoxesAtRightAngles) {
  MeshCase straight = GetParam().mesh;
  straight.boundary.regions.clear();
  MeshCase turned = straight;
  std::array<Point, 3> edges{};
  for (int a = 0; a < straight.mesh.dim; ++a) edges[a][a] = straight.mesh.upper[a] - straight.mesh.lower[a];
  straight.mesh.edges.reset();
  const double c = std::cos(0.7);
  const double s = std::sin(0.7);
  for (Point& edge : edges) edge = {c * edge[0] - s * edge[1], s * edge[0] + c * edge[1], edge[2]};
  turned.mesh.edges = edges;
  const Level expected_level = straight.level(GetParam().order);
  const Level level = turned.level(GetParam().order);
  EXPECT_NEAR(largest_ratio(level.equation, *level.grid.metric().map(), level.grid.metric().uniform_width()), 1.0,
              1e-10);
  const Values x = test::random_vector(level, 7);
  const Values b = test::random_vector(level, 8);
  const int colours = static_cast<int>(level.patches.colours.size());
  for_engines(level, [&](Engine& engine) {
    Bench<double> expected(engine, expected_level, LocalSolverKind::direct);
    Bench<double> actual(engine, level, LocalSolverKind::direct);
    Results expected_results = test::apply_and_residual(expected, x, b);
    Results results = test::apply_and_residual(actual, x, b);
    for (std::size_t i = 0; i < results.size(); ++i) {
      expect_same(level, expected_results[i], results[i], 4e-12, fmt::format("operator [{}]", i));
    }
    expected_results = test::smooth_each_colour(expected, colours, x, b);
    results = test::smooth_each_colour(actual, colours, x, b);
    for (std::size_t i = 0; i < results.size(); ++i) {
      expect_same(level, expected_results[i], results[i], 4e-12, fmt::format("smoother [{}]", i));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Meshes, ShearedKernels, testing::ValuesIn(sheared_cases()),
                         [](const auto& test) { return to_string(test.param); });

// The map ------------------------------------------------------------------------------------------------------------

TEST(AffineMap, HasItsInverse) {
  for (const int dim : {2, 3}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Point origin{0.3, -0.2, dim == 3 ? 1.7 : 0.0};
      const AffineMap map(dim, origin, random_edges(dim, {2.0, 0.5, 0.7}, seed));
      const Point xi{0.4, -1.2, dim == 3 ? 0.6 : 0.0};
      const Point back = map.pulled_back(map.at(xi));
      const Point flux = map.flux(map.velocity(xi));
      for (int a = 0; a < 3; ++a) {
        EXPECT_NEAR(back[a], xi[a], 1e-14);
        EXPECT_NEAR(flux[a], xi[a], 1e-14);
        for (int b = 0; b < dim; ++b) {
          double product = 0.0;
          for (int c = 0; c < 3; ++c) product += map.metric()[a][c] * map.inverse_metric()[c][b];
          EXPECT_NEAR(product, a == b ? 1.0 : 0.0, 1e-13);
        }
      }
    }
  }
}

TEST(AffineMap, KnowsHeights) {
  const AffineMap map(2, {}, {Point{2, 0, 0}, Point{0.5, std::sqrt(0.75), 0}, Point{}});
  EXPECT_NEAR(map.height(0, 2.0), std::sqrt(3.0), 1e-14);
  EXPECT_NEAR(map.height(1, 1.0), std::sqrt(0.75), 1e-14);
  EXPECT_NEAR(map.sine(), std::sqrt(0.75), 1e-14);
}

TEST(AffineMap, RefusesWhatIsFlatOrLeftHanded) {
  EXPECT_THROW(AffineMap(2, {}, {Point{1, 0, 0}, Point{2, 0, 0}, Point{}}), InputError);
  EXPECT_THROW(AffineMap(2, {}, {Point{0, 1, 0}, Point{1, 0, 0}, Point{}}), InputError);
  EXPECT_THROW(AffineMap(3, {}, {Point{1, 0, 0}, Point{0, 1, 0}, Point{1, 1, 0}}), InputError);
}

// Local problems -----------------------------------------------------------------------------------------------------

/// The bound that scales local problems is that of the operator on a patch that has neighbours on all sides.
TEST(PatchWeights, BoundTheExactMatrix) {
  for (const int dim : {2, 3}) {
    for (int order = 1; order <= (dim == 2 ? 3 : 1); ++order) {
      if (!test::has_order(dim, order)) continue;
      for (std::uint64_t seed = 0; seed < (dim == 2 ? 5 : 2); ++seed) {
        const Level level = sheared({"patch", test::box(std::vector<int>(dim, 4))}, 100 + seed).level(order);
        const AffineMap& map = *level.grid.metric().map();
        const Point h = level.grid.metric().uniform_width();
        const double lambda = largest_ratio(level.equation, map, h);
        const double scale = std::max(1.0, lambda / 1.8);
        for (int c = 0; c < dim; ++c) {
          for (int a = 0; a < dim; ++a) {
            const double diagonal = map.metric()[c][c] * map.inverse_metric()[a][a] / map.jacobian() * scale;
            EXPECT_GE(level.equation.weights.viscous[c][a], (1.0 - 1e-12) * diagonal);
            if (a == c) continue;
            EXPECT_NEAR(level.equation.weights.viscous[c][a], diagonal, 1e-12 * diagonal);
          }
        }
        // Power iteration with the local solver and the exact operator.
        const reference::WeakForm form(level.equation, level.coefficients, h);
        const reference::PatchSystem local(form, dim, PatchKind{});
        const reference::ReferenceLevel exact(level);
        const auto cells = patch_cells(level.grid, level.grid.at({1, 1, dim == 3 ? 1 : 0}));
        const int velocities = dim * power(order + 1, dim);
        const auto without_pressure = [&](Eigen::VectorXd x) {
          for (Eigen::Index at = 0; at < x.size(); ++at) {
            if (at / interleave % level.equation.record() >= velocities) x[at] = 0.0;
          }
          return x;
        };
        const Values start = test::random_vector(level, seed);
        Eigen::VectorXd f = without_pressure(Eigen::Map<const Eigen::VectorXd>(start.data(), std::ssize(start)));
        double ratio = 0.0;
        for (int step = 0; step < 200; ++step) {
          Eigen::VectorXd u = Eigen::VectorXd::Zero(f.size());
          local.solve_add(level.grid, cells, f, u);
          u = without_pressure(u);
          ratio = u.norm();
          f = without_pressure(exact.apply(u / ratio));
        }
        EXPECT_NEAR(ratio, lambda / scale, 0.01 * ratio) << dim << "D, k = " << order << ", seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace solenoid
