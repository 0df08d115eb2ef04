/// \file
/// Every engine of this machine against the reference engine: every kernel, over dimensions, orders, precisions, meshes
/// and patches.

#include <gtest/gtest.h>

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/engine.hpp"
#include "engines.hpp"
#include "kernel_bench.hpp"
#include "levels.hpp"
#include "solenoid/error.hpp"
#include "solenoid/solver.hpp"

namespace solenoid {
namespace {

using test::Bench;
using test::expect_same;
using test::MeshCase;
using test::oracle;
using test::Results;
using test::tolerance;
using test::Values;

struct KernelCase {
  test::EngineChoice engine;
  MeshCase mesh;
  int order = 1;
  PatchRules rules{};
  LocalSolverKind local = LocalSolverKind::direct;
};

std::string to_string(const KernelCase& what) {
  const auto& [engine, mesh, order, rules, local] = what;
  return engine.name + "_" + std::to_string(mesh.mesh.dim) + "d_" + mesh.name + "_k" + std::to_string(order) +
         (rules.problem == PatchProblem::galerkin ? "_galerkin"
          : rules.problem == PatchProblem::fused  ? "_fused"
                                                  : "") +
         (rules.colour_order == ColourOrder::lexicographic ? "_lexicographic" : "") +
         (local == LocalSolverKind::dense ? "_dense" : "");
}

void PrintTo(const KernelCase& what, std::ostream* stream) { *stream << to_string(what); }
std::string name_of(const testing::TestParamInfo<KernelCase>& info) { return to_string(info.param); }

std::vector<KernelCase> kernel_cases(const test::EngineChoice& engine) {
  const PatchRules paper{.problem = PatchProblem::galerkin, .colour_order = ColourOrder::lexicographic};
  const PatchRules fused{.problem = PatchProblem::fused};
  std::vector<KernelCase> cases;
  for (const int dim : {2, 3}) {
    for (const auto& mesh : test::mesh_cases(dim)) {
      for (int order = 0; order <= (dim == 2 ? 4 : 2); ++order) cases.push_back({engine, mesh, order});
      cases.push_back({engine, mesh, dim == 2 ? 3 : 1, paper});
      cases.push_back({engine, mesh, 1, {}, LocalSolverKind::dense});
      cases.push_back({engine, mesh, 0, paper, LocalSolverKind::dense});
    }
  }
  for (const int dim : {2, 3}) {
    for (const auto& mesh : test::poisson_mesh_cases(dim)) {
      for (int order = 0; order <= (dim == 2 ? 4 : 2); ++order) cases.push_back({engine, mesh, order});
      cases.push_back({engine, mesh, dim == 2 ? 3 : 1, paper});
      cases.push_back({engine, mesh, dim == 2 ? 3 : 1, fused});
    }
  }
  for (int order = 5; order <= 8; ++order) {
    for (const auto& mesh : test::poisson_mesh_cases(2)) {
      if (mesh.name == "poisson_odd_box") cases.push_back({engine, mesh, order});
    }
  }
  const auto poisson_box = [](std::vector<int> cells, const Boundary& boundary) {
    return MeshCase{"poisson_box", test::box(std::move(cells)), boundary, 0.0, EquationKind::poisson};
  };
  cases.push_back({engine, poisson_box({3, 3, 2}, {}), 3, paper});
#ifdef NDEBUG
  cases.push_back({engine, poisson_box({3, 2, 2}, test::periodic({0})), 4});
  cases.push_back({engine, poisson_box({2, 2, 2}, {}), 7});
#endif
  // High orders on meshes with few kinds of patch: the reference engine takes its time.
  for (int order = 5; order <= 8; ++order) {
    for (const auto& mesh : test::mesh_cases(2)) {
      if (mesh.name == "odd_box" || mesh.name == "channel") cases.push_back({engine, mesh, order});
    }
  }
  const MeshCase walls{"walls", test::box({3, 3, 2})};
  cases.push_back({engine, walls, 3});
  cases.push_back({engine, walls, 3, paper});
  cases.push_back(
      {engine, {"pair", test::box({3, 2, 2}), test::sides({{1, SideKind::outflow}, {2, SideKind::slip}})}, 3});
#ifdef NDEBUG  // without optimisation the reference engine's dense factorisations take minutes
  cases.push_back({engine, {"pair", test::box({2, 3, 2}), test::periodic({1})}, 4});
  cases.push_back({engine, {"pair", test::box({2, 2, 2})}, 5});
#endif
  // Rows of one block, less and more, two to a batch, with and without ends; many rows, so that patches at their ends
  // fill batches.
  const auto rows = [&](const std::vector<int>& cells, const Boundary& boundary = {}) {
    std::string name = boundary.sides[0].kind == SideKind::periodic ? "endless_rows" : "rows";
    for (const int count : cells) name += "_" + std::to_string(count);
    cases.push_back({engine, {name, test::box(cells), boundary}, 1});
  };
  for (const auto& cells :
       std::vector<std::vector<int>>{{4, 48}, {7, 40}, {16, 20}, {17, 9}, {32, 5}, {33, 5}, {66, 4}}) {
    rows(cells);
    rows(cells, test::periodic({0}));
  }
  for (const auto& cells : std::vector<std::vector<int>>{{4, 8, 5}, {16, 4, 3}, {33, 3, 3}}) {
    rows(cells);
    rows(cells, test::periodic({0, 2}));
  }
  // A build for developers may have few orders.
  std::erase_if(cases, [](const KernelCase& what) {
    const auto orders = available_orders(what.mesh.mesh.dim, what.mesh.equation);
    return std::find(orders.begin(), orders.end(), what.order) == orders.end();
  });
  return cases;
}

std::vector<KernelCase> kernel_cases() {
  std::vector<KernelCase> cases;
  for (const auto& engine : test::engines()) {
    for (auto& what : kernel_cases(engine)) cases.push_back(std::move(what));
  }
  return cases;
}

class KernelsTest : public testing::TestWithParam<KernelCase> {
 protected:
  /// The CUDA engine of a build may have fewer orders than the cpu engine.
  void SetUp() override {
    if (GetParam().engine.device != DeviceChoice::cuda) return;
    const Level level = this->level();
    try {
      GetParam().engine.get().kernels_float(level, GetParam().local);
    } catch (const InputError& error) {
      GTEST_SKIP() << error.what();
    }
  }
  [[nodiscard]] Level level(bool boundary_hats = false) const {
    return GetParam().mesh.level(GetParam().order, GetParam().rules, boundary_hats);
  }
  /// Runs the same on both engines and compares: run(bench) returns a vector of level `of`.
  template <class T, class Run>
  void compare(const Level& level, const Level& of, const std::string& what, const Run& run) {
    Bench<T> expected(oracle(), level, GetParam().local);
    Bench<T> actual(GetParam().engine.get(), level, GetParam().local);
    const Results expected_result = run(expected);
    const Results actual_result = run(actual);
    for (std::size_t i = 0; i < expected_result.size(); ++i) {
      expect_same(of, expected_result[i], actual_result[i], tolerance<T>(level.equation.order),
                  what + " [" + std::to_string(i) + "] in " + (sizeof(T) == sizeof(float) ? "float" : "double"));
    }
  }

  template <class T>
  void apply_and_residual(bool boundary_hats) {
    const Level level = this->level(boundary_hats);
    const Values b = test::random_vector(level, 1);
    const Values x = test::random_vector(level, 2, boundary_hats);
    compare<T>(level, level, "apply, residual", [&](Bench<T>& bench) { return test::apply_and_residual(bench, x, b); });
  }

  template <class T>
  void smoothers() {
    const Level level = this->level();
    const Values x = test::random_vector(level, 3);
    Values b = test::random_vector(level, 4);
    if (level.equation.kind == EquationKind::poisson) {  // so that old and new values are of one size
      const double h = level.grid.metric().uniform_width()[0];
      for (double& value : b) value *= level.equation.penalty(h) / h;
    }
    const int colours = static_cast<int>(level.patches.colours.size());
    ASSERT_GT(colours, 0);
    compare<T>(level, level, "smooth, all colours after each other: from zero, with old values, added",
               [&](Bench<T>& bench) { return test::smooth_each_colour(bench, colours, x, b); });
  }

  template <class T>
  void transfers() {
    Level fine = this->level();
    auto choices = test::coarsenings(fine.grid);
    if (fine.equation.order > 3 && choices.size() > 1) choices.erase(choices.begin(), choices.end() - 1);  // for time
    for (const Coarsening& pairs : choices) {
      fine.coarsening = pairs;
      const Level coarse(fine.equation, fine.coefficients, fine.grid.coarsen(pairs), GetParam().rules);
      const Values x = test::random_vector(coarse, 5);
      const Values y = test::random_vector(fine, 6);
      compare<T>(fine, fine, "prolong", [&](Bench<T>& bench) {
        const auto vx = bench.vector(x);
        auto vy = bench.vector(y);
        auto vz = bench.vector(y);
        bench->prolong_add(coarse, vx.data(), vy.data());
        bench->prolong(coarse, vx.data(), vz.data());
        return Results{bench.values(vy), bench.values(vz)};
      });
      compare<T>(fine, coarse, "restrict_to", [&](Bench<T>& bench) {
        const auto vy = bench.vector(y);
        auto vx = bench.output(coarse);
        bench->restrict_to(coarse, vy.data(), vx.data());
        return Results{bench.values(vx)};
      });
    }
  }

  template <class T>
  void vector_operations() {
    const Level level = this->level();
    const std::vector<Values> v{test::random_vector(level, 7), test::random_vector(level, 8),
                                test::random_vector(level, 9)};
    // Some of the unknowns, in no order, and a matrix that is not symmetric.
    std::vector<std::int64_t> index;
    const auto unknown = reference::unknowns(level);
    for (std::int64_t i = 0; i < level.size(); i += 3) {
      if (unknown[i]) index.push_back(i);
    }
    index.resize(std::min<std::size_t>(index.size(), 100));
    std::shuffle(index.begin(), index.end(), std::mt19937(10));
    const auto count = static_cast<std::int64_t>(index.size());
    Values matrix(count * count);
    for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i] = std::sin(static_cast<double>(i));

    std::vector<Values> scalars;
    Values norms;
    compare<T>(level, level, "vector operations", [&](Bench<T>& bench) {
      Results results;
      const auto v0 = bench.vector(v[0]);
      const auto v1 = bench.vector(v[1]);
      const auto v2 = bench.vector(v[2]);
      auto w = bench.output();
      const auto store = [&] { results.push_back(bench.values(w)); };
      bench->copy(v0.data(), w.data());
      store();
      bench->axpy(T(-0.3), v1.data(), w.data());
      store();
      bench->scale(T(1.7), w.data(), w.data());
      store();
      bench->scale(T(-0.6), v2.data(), w.data());
      store();
      const std::vector<const T*> three{v0.data(), v1.data(), v2.data()};
      const std::vector<double> factors{0.5, -2.0, 0.125};
      bench->axpys(3, factors.data(), three.data(), 1.0, w.data());
      store();
      bench->axpys(1, factors.data(), three.data(), -0.75, w.data());
      store();
      // More than go through memory side by side.
      std::vector<const T*> many;
      std::vector<double> of_many;
      for (int i = 0; i < 11; ++i) {
        many.push_back(three[i % 3]);
        of_many.push_back(0.1 * (i - 4));
      }
      bench->axpys(11, of_many.data(), many.data(), 0.5, w.data());
      store();
      const std::vector<double> others{-1.0, 0.25, 3.0};
      auto sum = bench.output();
      auto other_sum = bench.output();
      bench->two_sums(3, three.data(), factors.data(), sum.data(), others.data(), other_sum.data());
      results.push_back(bench.values(sum));
      results.push_back(bench.values(other_sum));
      Values products(5);
      bench->dots(3, three.data(), w.data(), products.data());
      products[3] = bench->dot(v0.data(), w.data());
      products[4] = bench->dot(w.data(), w.data());
      scalars.push_back(products);
      norms.push_back(bench->l2_norm(v0.data()));
      bench->project(w.data());
      store();
      bench->zero(w.data());
      store();

      Vector<double> in_double(bench.engine(), level.size());
      in_double.upload(v[1].data());
      const std::vector<float> rounded(v[2].begin(), v[2].end());
      Vector<float> in_float(bench.engine(), level.size());
      in_float.upload(rounded.data());
      bench->from_double(in_double.data(), w.data());
      store();
      const std::vector<const float*> twice{in_float.data(), in_float.data()};
      bench->axpys_float(2, factors.data(), twice.data(), w.data());
      store();
      bench->from_float(in_float.data(), w.data());
      store();

      const auto z = bench.vector(matrix);
      const std::size_t bytes = index.size() * sizeof(index[0]);
      void* places = bench.engine().allocate(bytes);
      bench.engine().upload(index.data(), places, bytes);
      auto y = bench.vector(v[1]);
      const auto* const at = static_cast<const std::int64_t*>(places);
      bench->dense(count, at, z.data(), v0.data(), y.data());
      results.push_back(bench.values(y));
      auto values = bench.vector(Values(count, std::numeric_limits<double>::quiet_NaN()));
      bench->gather(count, at, v1.data(), values.data());
      bench->scatter(count, at, values.data(), w.data());
      store();
      bench->scatter_add(count, at, values.data(), w.data());
      store();
      bench.engine().release(places, bytes);
      return results;
    });
    const double scale = *std::max_element(scalars[0].begin(), scalars[0].end());  // |w|^2 is among them
    for (std::size_t i = 0; i < scalars[0].size(); ++i) {
      EXPECT_NEAR(scalars[0][i], scalars[1][i], tolerance<T>(GetParam().order) * scale) << "inner product " << i;
    }
    EXPECT_NEAR(norms[0], norms[1], tolerance<T>(GetParam().order) * norms[0]) << "L2 norm";
  }
};
INSTANTIATE_TEST_SUITE_P(Cases, KernelsTest, testing::ValuesIn(kernel_cases()), name_of);

TEST_P(KernelsTest, Apply) {
  for (const bool boundary_values : {false, true}) {
    apply_and_residual<double>(boundary_values);
    apply_and_residual<float>(boundary_values);
  }
}
TEST_P(KernelsTest, Smooth) {
  smoothers<double>();
  smoothers<float>();
}
TEST_P(KernelsTest, Transfer) {
  transfers<double>();
  transfers<float>();
}
TEST_P(KernelsTest, VectorOperations) {
  vector_operations<double>();
  vector_operations<float>();
}

/// What the first colour makes of zero.
template <class T>
Values first_colour(Engine& by, const Level& level, LocalSolverKind local, const Values& b) {
  Bench<T> bench(by, level, local);
  const auto vb = bench.vector(b);
  auto y = bench.output();
  bench->smooth(0, vb.data(), nullptr, y.data());
  return bench.values(y);
}

/// Chebyshev and CG against the exact local solver of the oracle, from no reaction to nothing else.
template <class T>
void iterative_local_solvers(const test::EngineChoice& engine, const MeshCase& mesh, int order, double reaction) {
  Level level = mesh.level(order);
  level.coefficients.reaction =
      reaction * level.coefficients.viscosity / std::pow(level.grid.metric().uniform_width()[0], 2);
  const Values b = test::random_vector(level, 4);
  const auto smoothed = [&](Engine& by, LocalSolverKind local) { return first_colour<T>(by, level, local, b); };
  const Values expected = smoothed(oracle(), LocalSolverKind::direct);
  for (const auto local : {LocalSolverKind::chebyshev, LocalSolverKind::cg}) {
    const bool cg = local == LocalSolverKind::cg;
    expect_same(level, expected, smoothed(engine.get(), local), cg ? (sizeof(T) == sizeof(float) ? 1e-4 : 1e-6) : 0.1,
                mesh.name + ", order " + std::to_string(order) + (cg ? ", cg" : ", chebyshev") +
                    ", alpha h^2 / nu = " + std::to_string(reaction));
  }
}

TEST(LocalSolvers, IterateToTheSolutionWhateverTheReaction) {
  for (const auto& engine : test::engines()) {
    for (const int dim : {2, 3}) {
      for (const int order : available_orders(dim)) {
        if (order > (dim == 2 ? 4 : 2)) continue;
        for (const MeshCase& mesh : test::mesh_cases(dim)) {
          if (mesh.name != "odd_box" && mesh.name != "outflow_corner") continue;
          if (!test::has_order_of(engine.get(), mesh.level(order))) continue;
          for (const double reaction : {0.0, 1.0, 1e2, 1e4, 1e6}) {
            iterative_local_solvers<float>(engine, mesh, order, reaction);
            iterative_local_solvers<double>(engine, mesh, order, reaction);
          }
        }
      }
    }
  }
}

/// A right-hand side of little but a constant pressure, which no velocity of the patch changes.
template <class T>
void solve_beside_a_constant(const test::EngineChoice& engine, const MeshCase& mesh, int order) {
  const Level level = mesh.level(order);
  const double rest = std::sqrt(std::numeric_limits<T>::epsilon());
  Values b = test::random_vector(level, 4);
  for (double& value : b) value *= rest;
  const int constant = level.equation.dim * power(level.equation.n(), level.equation.dim);
  for (const Record cell : level.grid.layout().cells()) b[level.index(cell, constant)] += 1.0;
  const auto smoothed = [&](Engine& by, LocalSolverKind local) { return first_colour<T>(by, level, local, b); };
  // Of what is not constant rounding leaves half of the digits.
  expect_same(level, smoothed(oracle(), LocalSolverKind::direct), smoothed(engine.get(), LocalSolverKind::cg),
              100.0 * rest, mesh.name + ", order " + std::to_string(order));
}

TEST(LocalSolvers, OfConjugateGradientsKeepOutOfTheKernel) {
  for (const auto& engine : test::engines()) {
    for (const int dim : {2, 3}) {
      for (const int order : available_orders(dim)) {
        if (order > 3) continue;
        for (const MeshCase& mesh : test::mesh_cases(dim)) {
          if (mesh.name != "odd_box" && mesh.name != "periodic_2") continue;
          if (!test::has_order_of(engine.get(), mesh.level(order))) continue;
          solve_beside_a_constant<float>(engine, mesh, order);
          solve_beside_a_constant<double>(engine, mesh, order);
        }
      }
    }
  }
}

/// Right-hand sides whose squares are about the smallest numbers there are: nothing is divided by what is lost there.
TEST(LocalSolvers, OfConjugateGradientsTakeTheSmallestNumbers) {
  for (const auto& engine : test::engines()) {
    for (const int dim : {2, 3}) {
      for (const int order : available_orders(dim)) {
        Level level = test::mesh_cases(dim).front().level(order);
        level.coefficients.viscosity = 100.0;
        if (!test::has_order_of(engine.get(), level)) continue;
        const Values b = test::random_vector(level, 4);
        for (double scale = 1e-15; scale > 1e-25; scale *= 0.7) {
          Values tiny = b;
          for (double& value : tiny) value *= scale;
          for (const double value : first_colour<float>(engine.get(), level, LocalSolverKind::cg, tiny)) {
            ASSERT_TRUE(std::isfinite(value)) << engine.name << ", " << dim << "D, order " << order << ", " << scale;
          }
        }
      }
    }
  }
}

/// Matrices of several fields, each with constants in the kernel (one, or two that share nothing) or none, and the
/// sizes of one tile, less and more.
template <class T>
void invert_on(Engine& engine, const Level& level) {
  using Eigen::MatrixXd;
  struct What {
    int velocities;  // in each of two fields
    int pressures;
    int velocity_constants;
    int pressure_constants;
  };
  std::srand(1);
  const auto without = [](const DenseField& field, Eigen::Index size) -> MatrixXd {
    MatrixXd project = MatrixXd::Identity(size, size);
    for (const auto& unknowns : field.constants) {
      Eigen::VectorXd constant = Eigen::VectorXd::Zero(size);
      for (const std::int64_t i : unknowns) constant[i - field.begin] = 1.0;
      constant.normalize();
      project -= constant * constant.transpose();
    }
    return project;
  };
  for (const What& what : {What{3, 2, 0, 0},
                           {64, 64, 1, 1},
                           {70, 30, 1, 0},
                           {100, 33, 0, 1},
                           {80, 90, 2, 2},
                           {0, 1, 0, 0},
                           {0, 130, 0, 1},
                           {0, 140, 0, 2}}) {
    const std::int64_t velocities = 2 * what.velocities;
    std::vector<DenseField> fields{
        {0, what.velocities, {}}, {what.velocities, velocities, {}}, {velocities, velocities + what.pressures, {}}};
    if (what.velocities == 0) fields.erase(fields.begin(), fields.begin() + 2);
    DenseField& pressure = fields.back();
    for (int constant = 0; constant < what.velocity_constants; ++constant) {
      auto& unknowns = fields.front().constants.emplace_back();
      for (std::int64_t i = constant; i < what.velocities; i += 3) unknowns.push_back(i);
    }
    for (int constant = 0; constant < what.pressure_constants; ++constant) {
      auto& unknowns = pressure.constants.emplace_back();
      for (std::int64_t i = pressure.begin + constant; i < pressure.end; i += 2) unknowns.push_back(i);
    }
    const Eigen::Index count = pressure.end;
    MatrixXd matrix = MatrixXd::Zero(count, count);
    for (const DenseField& field : fields) {
      const Eigen::Index size = field.end - field.begin;
      if (what.velocities != 0 && &field == &pressure) break;
      const MatrixXd root = MatrixXd::Random(size, size) + size * MatrixXd::Identity(size, size);
      const MatrixXd project = without(field, size);
      matrix.block(field.begin, field.begin, size, size) = project * root * root.transpose() * project / size;
    }
    if (what.velocities != 0) {
      MatrixXd coupling = without(pressure, what.pressures) * MatrixXd::Random(what.pressures, velocities);
      coupling.leftCols(what.velocities) *= without(fields.front(), what.velocities);
      matrix.bottomLeftCorner(what.pressures, velocities) = coupling;
      matrix.topRightCorner(velocities, what.pressures) = coupling.transpose();
    }
    Bench<T> bench(engine, level, LocalSolverKind::direct);
    Vector<double> on_device(engine, matrix.size());
    on_device.upload(matrix.data());
    auto result = bench.vector(Values(matrix.size(), std::numeric_limits<double>::quiet_NaN()));
    bench->invert_dense(fields, on_device.data(), result.data());
    const Values values = bench.values(result);
    const Eigen::Map<const MatrixXd> actual(values.data(), count, count);

    const Eigen::SelfAdjointEigenSolver<MatrixXd> eigen(matrix);
    const double zero = 1e-10 * eigen.eigenvalues().cwiseAbs().maxCoeff();
    const Eigen::VectorXd inverses =
        eigen.eigenvalues().unaryExpr([=](double value) { return std::abs(value) <= zero ? 0.0 : 1.0 / value; });
    const MatrixXd expected = eigen.eigenvectors() * inverses.asDiagonal() * eigen.eigenvectors().transpose();
    EXPECT_LE((actual - expected).norm(), (sizeof(T) == sizeof(float) ? 1e-6 : 1e-12) * expected.norm()) << count;
    EXPECT_EQ((actual - actual.transpose()).norm(), 0.0) << count;
  }
}

/// Short and long rows, up to the largest matrix that the engine asks for.
template <class T>
void multiply_on(Engine& engine, const Level& level) {
  Bench<T> bench(engine, level, LocalSolverKind::direct);
  const std::int64_t most = std::max<std::int64_t>(engine.dense_limits().than_by_mac, 300);
  for (const std::int64_t count : {5, 300, 2048, 2049, 4100, 8192}) {
    if (count > most) break;
    const auto left = [](std::int64_t i) { return std::sin(static_cast<double>(i) + 1.0); };
    const auto right = [](std::int64_t j) { return std::cos(static_cast<double>(3 * j)); };
    std::vector<T> matrix(count * count);
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::int64_t j = 0; j < count; ++j) matrix[i * count + j] = static_cast<T>(left(i) * right(j));
    }
    std::vector<std::int64_t> index(count);
    for (std::int64_t i = 0; i < count; ++i) index[i] = 2 * i;
    std::shuffle(index.begin(), index.end(), std::mt19937(3));
    Values b(2 * count);
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = std::sin(0.1 * static_cast<double>(i * i));
    Vector<T> z(engine, count * count);
    z.upload(matrix.data());
    Vector<std::int64_t> places(engine, count);
    places.upload(index.data());
    const auto from = bench.vector(b);
    auto x = bench.vector(Values(2 * count, 7.0));
    bench->dense(count, places.data(), z.data(), from.data(), x.data());
    const Values actual = bench.values(x);
    double sum = 0.0;
    for (std::int64_t j = 0; j < count; ++j) sum += right(j) * b[index[j]];
    Values expected(2 * count, 7.0);
    for (std::int64_t i = 0; i < count; ++i) expected[index[i]] = left(i) * sum;
    const double scale = std::sqrt(static_cast<double>(count));
    for (std::int64_t i = 0; i < 2 * count; ++i) {
      ASSERT_NEAR(actual[i], expected[i], (sizeof(T) == sizeof(float) ? 1e-5 : 1e-13) * scale) << count << ": " << i;
    }
  }
}

TEST(DenseMatrices, AreInvertedAndMultipliedWith) {
  const int dim = available_orders(2).empty() ? 3 : 2;
  ASSERT_FALSE(available_orders(dim).empty());
  const Level level = MeshCase{"box", test::box(std::vector(dim, 2))}.level(available_orders(dim).front());
  for (const auto& choice : test::engines()) {
    SCOPED_TRACE(choice.name);
    invert_on<double>(choice.get(), level);
    invert_on<float>(choice.get(), level);
    multiply_on<double>(choice.get(), level);
    multiply_on<float>(choice.get(), level);
  }
}

TEST(Cuda, IsTestedHere) {
  const std::string reason = cuda_unavailable();
  if (!reason.empty()) GTEST_SKIP() << "no kernel of the cuda engine was tested: " << reason;
}

TEST_P(KernelsTest, IsDeterministic) {
  const Level level = this->level();
  const Values x = test::random_vector(level, 11);
  const Values b = test::random_vector(level, 12);
  Bench<float> bench(GetParam().engine.get(), level, GetParam().local);
  const auto run = [&] {
    const auto vx = bench.vector(x);
    const auto vb = bench.vector(b);
    auto y = bench.output();
    bench->smooth(0, vb.data(), vx.data(), y.data());
    Values values = bench.values(y);
    values.push_back(bench->dot(y.data(), vb.data()));
    return values;
  };
  EXPECT_EQ(run(), run());
}

}  // namespace
}  // namespace solenoid
