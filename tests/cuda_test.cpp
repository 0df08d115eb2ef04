/// \file
/// Whole solves on the cuda engine: the same iterations and answers as on the cpu, the same bits every time.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/engine.hpp"
#include "flows.hpp"
#include "levels.hpp"
#include "solenoid/error.hpp"

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
  static double difference(const Solution& a, const Solution& b) {
    double largest = 0.0;
    double worst = 0.0;
    for (std::size_t i = 0; i < a.coefficients().size(); ++i) {
      largest = std::max(largest, std::abs(a.coefficients()[i]));
      worst = std::max(worst, std::abs(a.coefficients()[i] - b.coefficients()[i]));
    }
    return worst / largest;
  }
  /// A random load on a mesh, refined once.
  static Problem problem_on(const test::MeshCase& mesh, int order) {
    Problem problem{.mesh = mesh.mesh, .order = order, .viscosity = 0.7, .mass = mesh.mass, .boundary = mesh.boundary};
    problem.mesh.refine += 1;
    return problem;
  }
};

TEST_F(CudaSolve, EqualsTheCpu) {
  for (const int dim : {2, 3}) {
    const int order = dim == 2 ? 2 : 1;
    if (!test::has_order(dim, order)) continue;
    for (const auto& mesh : test::mesh_cases(dim)) {
      const Problem problem = problem_on(mesh, order);
      for (const Precision precision : {Precision::full_double, Precision::mixed}) {
        SolverOptions options;
        options.precision = precision;
        options.random_load = 1;
        options.rtol = 1e-10;
        const auto [expected, on_cpu] = solve_on(DeviceChoice::cpu, problem, options);
        const auto [actual, on_gpu] = solve_on(DeviceChoice::cuda, problem, options);
        const std::string what = std::to_string(dim) + "d " + mesh.name + ", " + on_gpu.precision;
        EXPECT_TRUE(on_gpu.converged) << what << ": " << on_gpu.reason;
        EXPECT_NEAR(on_gpu.iterations, on_cpu.iterations, precision == Precision::mixed ? 1 : 0) << what;
        EXPECT_LE(difference(expected, actual), 1e-8) << what;
      }
    }
  }
}

TEST_F(CudaSolve, EveryMethodAndLocalSolver) {
  if (!test::has_order(2, 2)) GTEST_SKIP() << "the order is not in this build";
  const Problem problem = test::paper(2, 2, 4);
  for (const Method method : {Method::gmres, Method::fmg, Method::vcycle}) {
    for (const LocalSolverKind local :
         {LocalSolverKind::direct, LocalSolverKind::chebyshev, LocalSolverKind::cg, LocalSolverKind::dense}) {
      SolverOptions options;
      options.method = method;
      options.multigrid.local_solver = local;
      const auto [expected, on_cpu] = solve_on(DeviceChoice::cpu, problem, options);
      const auto [actual, on_gpu] = solve_on(DeviceChoice::cuda, problem, options);
      EXPECT_EQ(on_gpu.iterations, on_cpu.iterations) << static_cast<int>(method) << ' ' << static_cast<int>(local);
      EXPECT_LE(difference(expected, actual), method == Method::fmg ? 1e-5 : 1e-6);
    }
  }
}

TEST_F(CudaSolve, PredictsItsMemory) {
  if (!test::has_order(3, 2)) GTEST_SKIP() << "the order is not in this build";
  const Problem problem = test::paper(3, 2, 5);
  for (const Method method : {Method::gmres, Method::fmg}) {
    SolverOptions options;
    options.method = method;
    options.device = DeviceChoice::cuda;
    const auto needed = static_cast<double>(estimate(problem, options).bytes_needed);
    const auto used = static_cast<double>(solve(problem, options).report.memory_bytes);
    constexpr double tables = 16e6;  // of the local solvers, whatever the number of cells
    EXPECT_LE(used, needed + tables);
    EXPECT_GE(used, 0.6 * needed);
  }
}

TEST_F(CudaSolve, IsDeterministic) {
  if (!test::has_order(3, 1)) GTEST_SKIP() << "the order is not in this build";
  SolverOptions options;
  options.random_load = 3;
  const Problem problem = test::paper(3, 1, 3);
  const Solution first = solve_on(DeviceChoice::cuda, problem, options).solution;
  const Solution second = solve_on(DeviceChoice::cuda, problem, options).solution;
  EXPECT_TRUE(std::equal(first.coefficients().begin(), first.coefficients().end(), second.coefficients().begin()));
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
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace solenoid
