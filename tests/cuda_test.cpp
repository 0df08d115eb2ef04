/// \file
/// Whole solves on the cuda engine: the same iterations and answers as on the cpu, the same bits every time.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "engine/engine.hpp"
#include "flows.hpp"
#include "levels.hpp"
#include "solenoid/error.hpp"
#include "solver/load.hpp"
#include "solver/methods.hpp"
#include "solver/multigrid/dense_inverse.hpp"
#include "studies/manufactured.hpp"

namespace solenoid {
namespace {

class CudaSolve : public testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = cuda_unavailable();
    if (!reason.empty()) GTEST_SKIP() << "nothing is solved on a GPU: " << reason;
  }

  static Result solve_on(DeviceChoice device, const Problem& problem, SolverOptions options) {
    options.device = device;
    options.threads = 2;
    return solve(problem, options);
  }
  /// A random load on a mesh, refined once.
  static Problem problem_on(const test::MeshCase& mesh, int order) {
    Problem problem{.mesh = mesh.mesh,
                    .order = order,
                    .viscosity = 0.7,
                    .mass = mesh.mass,
                    .boundary = mesh.boundary,
                    .equation = mesh.equation};
    problem.mesh.refine += 1;
    return problem;
  }
  /// A problem with a random load in both precisions: the same answers, with as many iterations.
  static void expect_the_same(const std::string& name, const Problem& problem);
};

/// The levels of both engines.
struct Hierarchies {
  Hierarchy on_cpu;
  Hierarchy on_gpu;

  explicit Hierarchies(const Problem& problem, const MultigridOptions& options = {})
      : on_cpu(problem, options), on_gpu(problem, options, make_cuda_engine()->dense_limits()) {}
  [[nodiscard]] bool end_alike() const { return on_cpu.size() == on_gpu.size() && on_cpu.coarse == on_gpu.coarse; }
};

/// Equal numbers of iterations; one engine may take one more where the other just met the tolerance. Where the gpu's
/// levels end earlier, with an inverse, it takes at most one more; or as many as a cycle on two levels needs, where the
/// cpu has one level, so that the inner Krylov method is its whole solve.
void expect_same_iterations(const Problem& problem, const Report& a, const Report& b, double rtol,
                            const std::string& what) {
  if (const Hierarchies levels(problem); !levels.end_alike()) {
    const int two_levels = levels.on_cpu.size() == 1 ? 10 : 0;
    EXPECT_LE(b.iterations, std::max(a.iterations + 1, two_levels)) << what;
    return;
  }
  const auto fewer = static_cast<std::size_t>(std::min(a.iterations, b.iterations));
  const double residual = std::max(a.residual_history[fewer], b.residual_history[fewer]);
  EXPECT_TRUE(a.iterations == b.iterations || residual <= 1.5 * rtol)
      << what << ": " << a.iterations << " and " << b.iterations << " iterations, residual " << residual;
}

void CudaSolve::expect_the_same(const std::string& name, const Problem& problem) {
  for (const Precision precision : {Precision::full_double, Precision::mixed}) {
    SolverOptions options;
    options.precision = precision;
    options.random_load = 1;
    options.rtol = 1e-10;
    const auto [expected, on_cpu] = solve_on(DeviceChoice::cpu, problem, options);
    const auto [actual, on_gpu] = solve_on(DeviceChoice::cuda, problem, options);
    const std::string what = name + ", " + on_gpu.precision;
    EXPECT_TRUE(on_gpu.converged) << what << ": " << on_gpu.reason;
    EXPECT_LE(on_gpu.residual_history.back(), options.rtol) << what;
    expect_same_iterations(problem, on_cpu, on_gpu, options.rtol, what);
    EXPECT_LE(test::relative_difference(expected, actual), 1e-8) << what;
  }
}

class CudaSolveOrders : public CudaSolve, public testing::WithParamInterface<std::tuple<int, int>> {};

TEST_P(CudaSolveOrders, EqualTheCpu) {
  const auto [dim, order] = GetParam();
  if (!test::has_order(dim, order)) GTEST_SKIP() << "the order is not in this build";
  for (const auto& mesh : test::mesh_cases(dim)) {
    expect_the_same(mesh.name, problem_on(mesh, order));
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, CudaSolveOrders, testing::Combine(testing::Values(2, 3), testing::Values(1, 2, 3)),
                         [](const auto& test) {
                           return "In" + std::to_string(std::get<0>(test.param)) + "dOrder" +
                                  std::to_string(std::get<1>(test.param));
                         });

/// The same values as of a residual that is there, and its norm; nothing else is written. Not where other kernels write
/// a part of it.
TEST_P(CudaSolveOrders, RoundResiduals) {
  const auto [dim, order] = GetParam();
  if (!test::has_order(dim, order)) GTEST_SKIP() << "the order is not in this build";
  const auto engine = make_cuda_engine();
  for (test::MeshCase mesh : test::mesh_cases(dim)) {
    for (const int refine : {0, 1}) {
      mesh.mesh.refine = refine;
      const Level level = mesh.level(order);
      const auto kernels = make_kernels<double>(*engine, level, LocalSolverKind::direct);
      const Vector<double> b = on_device(*engine, test::random_vector(level, 1));
      const Vector<double> x = on_device(*engine, test::random_vector(level, 2));
      Vector<double> r(*engine, level.size());
      Vector<float> rounded(*engine, level.size());
      EXPECT_EQ(kernels->rounds_residuals(), level.grid.layout().hats().empty()) << mesh.name;
      if (!kernels->rounds_residuals()) continue;
      kernels->residual_rounded(b.data(), x.data(), rounded.data());
      const double norm = kernels->norm_of_rounded();
      kernels->residual(b.data(), x.data(), r.data());
      EXPECT_NEAR(norm / std::sqrt(kernels->dot(r.data(), r.data())), 1.0, 1e-13) << mesh.name;
      std::vector<double> expected(level.size());
      std::vector<float> got(level.size());
      r.download(expected.data());
      rounded.download(got.data());
      std::int64_t others = 0;
      for (std::size_t i = 0; i < got.size(); ++i) others += got[i] != static_cast<float>(expected[i]) ? 1 : 0;
      EXPECT_EQ(others, 0) << mesh.name;
    }
  }
}

class CudaPoissonOrders : public CudaSolve, public testing::WithParamInterface<std::tuple<int, int>> {};

TEST_P(CudaPoissonOrders, EqualTheCpu) {
  const auto [dim, order] = GetParam();
  if (!test::has_order(dim, order, EquationKind::poisson)) GTEST_SKIP() << "the order is not in this build";
  for (const auto& mesh : test::poisson_mesh_cases(dim)) {
    if (dim == 3 && order > 3 && mesh.name == "poisson_long_box") continue;  // for time
    expect_the_same(mesh.name, problem_on(mesh, order));
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, CudaPoissonOrders, testing::Combine(testing::Values(2, 3), testing::Range(1, 8)),
                         [](const auto& test) {
                           return "In" + std::to_string(std::get<0>(test.param)) + "dOrder" +
                                  std::to_string(std::get<1>(test.param));
                         });

TEST_F(CudaSolve, PoissonByEveryMethod) {
  const std::vector<int> orders = available_orders(3, EquationKind::poisson);
  const Problem problem = manufactured_poisson(3, orders.back() > 2 ? 3 : orders.back(), 4);
  for (const Method method : {Method::gmres, Method::fmg, Method::vcycle}) {
    for (const PatchProblem patch : {PatchProblem::symmetric, PatchProblem::galerkin, PatchProblem::fused}) {
      if (patch == PatchProblem::fused && method != Method::gmres) continue;
      SolverOptions options;
      options.method = method;
      options.multigrid.patch = patch;
      const auto [expected, on_cpu] = solve_on(DeviceChoice::cpu, problem, options);
      const auto [actual, on_gpu] = solve_on(DeviceChoice::cuda, problem, options);
      EXPECT_EQ(on_gpu.iterations, on_cpu.iterations) << static_cast<int>(method) << ' ' << static_cast<int>(patch);
      EXPECT_LE(test::relative_difference(expected, actual), method == Method::fmg ? 1e-5 : 1e-6);
    }
  }
  SolverOptions additive;
  additive.multigrid.smoother = SmootherKind::additive;
  const int on_gpu = solve_on(DeviceChoice::cuda, problem, additive).report.iterations;
  const int on_cpu = solve_on(DeviceChoice::cpu, problem, additive).report.iterations;
  EXPECT_TRUE(Hierarchies(problem).end_alike() ? on_gpu == on_cpu : on_gpu <= on_cpu) << on_gpu << ' ' << on_cpu;
}

/// Both engines have the paper's levels there, and so its fractional iterations.
TEST_F(CudaSolve, ThePapersMethodHasTheSameFractionalIterations) {
  for (const auto& [dim, order, refine] : {std::tuple(2, 2, 4), std::tuple(2, 3, 5), std::tuple(3, 1, 4)}) {
    if (!test::has_order(dim, order)) continue;
    SolverOptions options;
    options.apply(Preset::paper);
    options.precision = Precision::full_double;
    for (const LocalSolverKind local : {LocalSolverKind::dense, LocalSolverKind::cg, LocalSolverKind::direct}) {
      options.multigrid.local_solver = local;
      const Problem problem = test::paper(dim, order, refine);
      const Report on_cpu = solve_on(DeviceChoice::cpu, problem, options).report;
      const Report on_gpu = solve_on(DeviceChoice::cuda, problem, options).report;
      EXPECT_NEAR(on_gpu.fractional_iterations, on_cpu.fractional_iterations, 1e-3) << dim << "D, order " << order;
    }
  }
}

/// Engines may have kernels for large levels that the meshes above do not get to see.
TEST_F(CudaSolve, LargeLevelsEqualTheCpu) {
  for (const auto& [dim, order, refine] : {std::tuple(2, 2, 7), std::tuple(3, 1, 5), std::tuple(3, 2, 5)}) {
    if (!test::has_order(dim, order)) continue;
    const Problem problem = test::paper(dim, order, refine);
    SolverOptions options;
    options.random_load = 1;
    options.rtol = 1e-6;
    const auto [expected, on_cpu] = solve_on(DeviceChoice::cpu, problem, options);
    const auto [actual, on_gpu] = solve_on(DeviceChoice::cuda, problem, options);
    const std::string what = std::to_string(dim) + "D, order " + std::to_string(order);
    EXPECT_TRUE(on_gpu.converged) << what << ": " << on_gpu.reason;
    expect_same_iterations(problem, on_cpu, on_gpu, options.rtol, what);
    EXPECT_LE(test::relative_difference(expected, actual), 1e-4) << what;
  }
}

TEST_F(CudaSolve, EveryMethodAndLocalSolver) {
  if (!test::has_order(2, 2)) GTEST_SKIP() << "the order is not in this build";
  Problem problem = test::paper(2, 2, 3);
  problem.mesh.cells = {3, 3, 1};  // so that both engines have the same levels
  ASSERT_TRUE(Hierarchies(problem).end_alike());
  for (const Method method : {Method::gmres, Method::fmg, Method::vcycle}) {
    for (const LocalSolverKind local :
         {LocalSolverKind::direct, LocalSolverKind::chebyshev, LocalSolverKind::cg, LocalSolverKind::dense}) {
      SolverOptions options;
      options.method = method;
      options.multigrid.local_solver = local;
      const auto [expected, on_cpu] = solve_on(DeviceChoice::cpu, problem, options);
      const auto [actual, on_gpu] = solve_on(DeviceChoice::cuda, problem, options);
      EXPECT_EQ(on_gpu.iterations, on_cpu.iterations) << static_cast<int>(method) << ' ' << static_cast<int>(local);
      EXPECT_LE(test::relative_difference(expected, actual), method == Method::fmg ? 1e-5 : 1e-6);
    }
  }
}

TEST_F(CudaSolve, PredictsItsMemory) {
  const auto expect_as_predicted = [](const std::string& what, const Problem& problem, SolverOptions options) {
    if (!test::has_order(problem.mesh.dim, problem.order, problem.equation)) return;
    options.device = DeviceChoice::cuda;
    const auto needed = static_cast<double>(estimate(problem, options).bytes_needed);
    const auto used = static_cast<double>(solve(problem, options).report.memory_bytes);
    constexpr double tables = 16e6;  // of local solvers and the coarsest level, whatever the number of cells
    EXPECT_LE(used, 1.02 * needed + tables) << what;
    EXPECT_GE(used, 0.96 * needed) << what;
  };
  const auto by = [](Method method, Precision precision = Precision::mixed) {
    SolverOptions options;
    options.method = method;
    options.precision = precision;
    options.rtol = 1e-6;
    return options;
  };
  const Problem cube = test::paper(3, 2, 6);
  expect_as_predicted("gmres", cube, by(Method::gmres));
  expect_as_predicted("fmg", cube, by(Method::fmg));
  expect_as_predicted("vcycle", cube, by(Method::vcycle));
  expect_as_predicted("double", cube, by(Method::fmg, Precision::full_double));
  expect_as_predicted("F-cycle", test::paper(2, 1, 10), by(Method::gmres));
  SolverOptions left = by(Method::gmres);
  left.side = PreconditionerSide::left;
  expect_as_predicted("left", cube, left);
  Problem flat = cube;
  flat.mesh.upper[0] = 4.0;
  expect_as_predicted("flat cells", flat, by(Method::fmg));
  Problem driven = cube;
  driven.boundary.sides[3].data[0] = 1.0;
  expect_as_predicted("boundary velocity", driven, by(Method::fmg));
  Problem open = cube;
  open.boundary.sides[1].kind = SideKind::outflow;
  expect_as_predicted("outflow", open, by(Method::fmg));
  Problem holes = test::paper(3, 2, 4);  // a dense inverse of 6000 unknowns
  for (int a = 0; a < 3; ++a) holes.mesh.upper[a] = holes.mesh.cells[a] = 4;
  holes.mesh.holes = {{{1, 1, 1}, {2, 2, 3}}, {{2, 2, 0}, {3, 3, 2}}, {{0, 3, 2}, {1, 4, 4}}};
  expect_as_predicted("holes, vcycle", holes, by(Method::vcycle));
  expect_as_predicted("holes, gmres", holes, by(Method::gmres));
  holes.mesh.refine = 2;
  expect_as_predicted("few cells with holes", holes, by(Method::gmres));
  const Problem poisson = manufactured_poisson(3, 2, 6);
  expect_as_predicted("Poisson, gmres", poisson, by(Method::gmres));
  expect_as_predicted("Poisson, fmg", poisson, by(Method::fmg));
}

/// Coarsest levels that cannot be coarsened, up to the largest that is inverted. A table of milliseconds.
TEST_F(CudaSolve, InvertsWithinATenthOfASecond) {
  if (!test::has_order(3, 1)) GTEST_SKIP() << "the order is not in this build";
  const auto engine = make_cuda_engine();
  const auto milliseconds = [&](const auto& work) {
    engine->synchronise();
    const auto start = std::chrono::steady_clock::now();
    work();
    engine->synchronise();
    return 1e3 * std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  constexpr auto direct = LocalSolverKind::direct;
  fmt::print("unknowns  matrix  all, single  double  product, single  double [ms]\n");
  for (const bool warm : {false, true}) {  // kernels are loaded when they run for the first time
    for (const std::vector<int>& cells : {std::vector{4, 4, 4}, {8, 4, 4}, {8, 8, 4}}) {
      const Level level = test::MeshCase{"box", test::box(cells)}.level(1);
      ASSERT_LE(level.dofs(), engine->dense_limits().than_by_mac);
      const auto measure = [&]<class T>(T /*type*/) {
        const auto kernels = make_kernels<T>(*engine, level, direct);
        Vector<T> b(*engine, level.size());
        Vector<T> x(*engine, level.size());
        std::optional<DenseInverse<T>> inverse;
        const double all = milliseconds([&] { inverse.emplace(dense_inverse(*engine, *kernels, direct)); });
        constexpr int times = 50;
        const auto multiply = engine->record([&] {
          for (int i = 0; i < times; ++i) {
            kernels->dense(inverse->index.size(), inverse->index.data(), inverse->matrix.data(), b.data(), x.data());
          }
        });
        multiply();
        return std::pair(all, milliseconds(multiply) / times);
      };
      std::vector<std::int64_t> index;
      level.for_each_unknown([&](std::int64_t place) { index.push_back(place); });
      const double matrix = milliseconds([&] { operator_matrix(*engine, level, direct, index); });
      const auto in_single = measure(float{});
      const auto in_double = measure(double{});
      if (!warm) continue;
      fmt::print("{:8} {:7.2f} {:12.2f} {:7.2f} {:16.4f} {:7.4f}\n", level.dofs(), matrix, in_single.first,
                 in_double.first, in_single.second, in_double.second);
      EXPECT_LE(in_single.first, 100.0) << level.dofs();
      EXPECT_LE(in_double.first, 100.0) << level.dofs();
    }
  }
}

TEST_F(CudaSolve, RefusesWhatDoesNotFit) {
  if (!test::has_order(3, 2)) GTEST_SKIP() << "the order is not in this build";
  SolverOptions options;
  options.device = DeviceChoice::cuda;
  const Problem problem = test::paper(3, 2, 12);
  const Estimate need = estimate(problem, options);
  EXPECT_GT(need.bytes_needed, need.bytes_available);
  EXPECT_GT(need.largest_refine, 0);
  try {
    solve(problem, options);
    FAIL() << "no device has so much memory";
  } catch (const ResourceError& error) {
    EXPECT_NE(std::string(error.what()).find("refine = " + std::to_string(need.largest_refine)), std::string::npos);
  }
}

TEST_F(CudaSolve, ListsItsKernelsAndCeilings) {
  if (!test::has_order(2, 2)) GTEST_SKIP() << "the order is not in this build";
  const auto engine = make_cuda_engine();
  const Ceilings ceilings = engine->measure_ceilings();
  EXPECT_GT(ceilings.memory, 1e11);
  EXPECT_GT(ceilings.cache, ceilings.memory);
  EXPECT_GT(ceilings.shared, ceilings.cache);
  EXPECT_GT(ceilings.fma_float, ceilings.fma_double);
  const Problem problem = test::paper(2, 2, 5);
  const Hierarchy hierarchy(problem, MultigridOptions{}, engine->dense_limits());
  const SolverOptions options;
  Vector<double> b(*engine, hierarchy.finest().size());
  Vector<double> x(*engine, hierarchy.finest().size());
  b.upload(assemble_load(problem, hierarchy.finest()).data());
  const auto kernels = engine->profile([&] {
    Solve<float> solve(*engine, hierarchy, options);
    Convergence convergence;
    solve.run(b.data(), x.data(), true, convergence);
    EXPECT_TRUE(convergence.converged);
  });
  const auto smoother = std::find_if(kernels.begin(), kernels.end(), [](const KernelUse& kernel) {
    return kernel.name.starts_with("smooth_parity<float, 2, 2");
  });
  ASSERT_NE(smoother, kernels.end());
  EXPECT_GE(smoother->launches, 8);
  EXPECT_GT(smoother->seconds, 0.0);
  EXPECT_GT(smoother->registers, 16);
  EXPECT_GT(smoother->shared_bytes, 0);
  EXPECT_GT(smoother->occupancy, 0.0);
  EXPECT_LE(smoother->occupancy, 1.0);
}

TEST_F(CudaSolve, IsDeterministic) {
  SolverOptions options;
  options.random_load = 3;
  for (const Problem& what : {test::paper(3, 1, 3), manufactured_poisson(3, 1, 3)}) {
    if (!test::has_order(3, 1, what.equation)) continue;
    const Solution first = solve_on(DeviceChoice::cuda, what, options).solution;
    const Solution second = solve_on(DeviceChoice::cuda, what, options).solution;
    EXPECT_TRUE(std::equal(first.coefficients().begin(), first.coefficients().end(), second.coefficients().begin()));
  }
}

TEST(CudaDevice, SaysWhyThereIsNone) {
  const std::string reason = cuda_unavailable();
  if (reason.empty()) {
    EXPECT_NE(make_engine(DeviceChoice::automatic, 1)->description().find("cuda"), std::string::npos);
    return;
  }
  EXPECT_NE(make_engine(DeviceChoice::automatic, 1)->description().find("cpu"), std::string::npos);
  try {
    make_engine(DeviceChoice::cuda, 1);
    FAIL() << "an engine without a device";
  } catch (const ResourceError& error) {
    EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace solenoid
