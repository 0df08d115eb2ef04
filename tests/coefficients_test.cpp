/// \file
/// Coefficients that change: a cycle that is handed other tables is that which is made for these coefficients, bit for
/// bit.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "engines.hpp"
#include "flows.hpp"
#include "levels.hpp"
#include "solenoid/error.hpp"
#include "solver/discretisation.hpp"
#include "solver/hierarchy.hpp"
#include "solver/multigrid/cycle.hpp"
#include "solver/multigrid/preconditioner.hpp"

namespace solenoid {
namespace {

const Coefficients no_reaction{.viscosity = 0.7, .reaction = 0.0};
const Coefficients weak_reaction{.viscosity = 0.7, .reaction = 1.3};
const Coefficients strong_reaction{.viscosity = 0.02, .reaction = 40.0};

struct NamedEngine {
  std::string name;
  std::unique_ptr<Engine> engine;
};
std::vector<NamedEngine> all_engines() {
  std::vector<NamedEngine> all;
  all.push_back({"reference", make_reference_engine()});
  for (const auto& choice : test::engines()) all.push_back({choice.name, make_engine(choice.device, 2)});
  return all;
}

/// A hierarchy with the cycle on it, recorded.
template <class T>
class HierarchyWithCycle {
 public:
  HierarchyWithCycle(Engine& engine, Problem problem, const Coefficients& coefficients, const MultigridOptions& options)
      : engine_(engine),
        hierarchy_(with(std::move(problem), coefficients), options, engine.dense_limits()),
        cycle_(engine, hierarchy_, options) {
    cycle_.record(hierarchy_.size() - 1);
  }

  [[nodiscard]] Hierarchy& hierarchy() { return hierarchy_; }
  [[nodiscard]] Cycle<T>& cycle() { return cycle_; }

  /// What a cycle makes of a random right-hand side.
  std::vector<T> result() {
    const std::vector<double> load = test::random_vector(hierarchy_.finest(), 3);
    const std::vector<T> b(load.begin(), load.end());
    engine_.upload(b.data(), cycle_.right_hand_side(), b.size() * sizeof(T));
    std::vector<T> x(b.size());
    engine_.download(cycle_.run(), x.data(), x.size() * sizeof(T));
    return x;
  }

 private:
  static Problem with(Problem problem, const Coefficients& coefficients) {
    problem.viscosity = coefficients.viscosity;
    problem.mass = coefficients.reaction;
    return problem;
  }

  Engine& engine_;
  Hierarchy hierarchy_;
  Cycle<T> cycle_;
};

/// From one to the other and back.
template <class T>
void expect_same_bits(Engine& engine, const Problem& problem, const MultigridOptions& options, const Coefficients& one,
                      const Coefficients& other, const std::string& what) {
  const std::string here = what + (sizeof(T) == sizeof(float) ? ", single" : ", double");
  HierarchyWithCycle<T> changing(engine, problem, one, options);
  const std::vector<T> expected = HierarchyWithCycle<T>(engine, problem, other, options).result();
  const std::vector<T> before = changing.result();
  EXPECT_NE(before, expected) << here << ": these coefficients make no difference";

  changing.hierarchy().set_coefficients(other);
  const auto other_tables = changing.cycle().make_tables();
  EXPECT_EQ(changing.result(), before) << here << ": tables that were made are not in use yet";
  const auto tables = changing.cycle().use_tables(other_tables);
  EXPECT_EQ(changing.result(), expected) << here;
  changing.hierarchy().set_coefficients(one);
  changing.cycle().use_tables(tables);
  EXPECT_EQ(changing.result(), before) << here << ": back again";
}

void expect_same_bits_in_both(Engine& engine, const Problem& problem, const MultigridOptions& options,
                              const Coefficients& one, const Coefficients& other, const std::string& what) {
  expect_same_bits<float>(engine, problem, options, one, other, what);
  expect_same_bits<double>(engine, problem, options, one, other, what);
}

Problem problem_on(const test::MeshCase& mesh, int order) {
  Problem problem{.mesh = mesh.mesh, .order = order, .boundary = mesh.boundary, .equation = mesh.equation};
  problem.mesh.refine += 1;
  return problem;
}

class Coefficient : public testing::TestWithParam<std::tuple<int, int>> {
 protected:
  [[nodiscard]] static int dim() { return std::get<0>(GetParam()); }
  [[nodiscard]] static int order() { return std::get<1>(GetParam()); }
  [[nodiscard]] static bool is_one_of_few(const std::string& mesh) {
    constexpr std::array names{"odd_box",         "outflow_corner", "window",
                               "different_holes", "periodic_odd",   "poisson_l_shape"};
    return std::find(names.begin(), names.end(), mesh) != names.end();
  }
  /// visit(engine, problem, name) on all meshes, for the second order and in 3D on few with all kinds of sides and
  /// holes; the reference engine, which is slow, has the smallest.
  template <class Visit>
  static void for_each_case(const Visit& visit) {
    std::vector<test::MeshCase> meshes = test::mesh_cases(dim());
    for (const auto& mesh : test::poisson_mesh_cases(dim())) meshes.push_back(mesh);
    for (const auto& [name, engine] : all_engines()) {
      for (const auto& mesh : meshes) {
        if (!test::has_order(dim(), order(), mesh.equation)) continue;
        if ((order() > 1 || dim() == 3) && !is_one_of_few(mesh.name)) continue;
        const Problem problem = problem_on(mesh, order());
        const Level level(equation_of(problem), no_reaction, Grid(problem.mesh, problem.boundary));
        if (!test::has_order_of(*engine, level)) continue;
        if (name == "reference" && (order() > 1 || level.grid.layout().cells().size() > 64)) continue;
        visit(*engine, problem, name + ", " + mesh.name);
      }
    }
  }
};

TEST_P(Coefficient, ThatAreHandedOverAreAsThoseOfTheStart) {
  MultigridOptions options;
  for_each_case([&](Engine& engine, const Problem& problem, const std::string& what) {
    for (const auto local : {LocalSolverKind::direct, LocalSolverKind::chebyshev}) {
      if (local == LocalSolverKind::chebyshev && dim() == 3 && order() > 1) continue;  // takes long
      options.local_solver = local;
      const bool direct = local == LocalSolverKind::direct;
      const std::string here = what + (direct ? ", direct" : ", chebyshev");
      // On many meshes in one precision, on few in the other, too.
      const bool both = dim() == 2 && order() > 1;
      if (both || direct) expect_same_bits<double>(engine, problem, options, weak_reaction, strong_reaction, here);
      if (both || !direct) expect_same_bits<float>(engine, problem, options, weak_reaction, strong_reaction, here);
      if (what.starts_with("reference")) break;  // it has one local solver
    }
  });
}

/// Chebyshev has a preconditioner where there is a reaction. Constants may be left out where there is none.
TEST_P(Coefficient, AReactionMayComeWhereNoConstantGoes) {
  MultigridOptions options;
  options.local_solver = LocalSolverKind::chebyshev;
  for_each_case([&](Engine& engine, const Problem& problem, const std::string& what) {
    Hierarchy hierarchy(problem, options);
    const Level& level = hierarchy.finest();
    const auto with = Level(level.equation, weak_reaction, level.grid).constants;
    if (level.constants == with) {
      expect_same_bits<float>(engine, problem, options, no_reaction, weak_reaction, what);
      return;
    }
    EXPECT_THROW(hierarchy.set_coefficients(weak_reaction), InputError) << what;
    for (const auto& each : hierarchy.levels) EXPECT_EQ(each->coefficients.reaction, 0.0) << what;
  });
}

INSTANTIATE_TEST_SUITE_P(Orders, Coefficient, testing::Combine(testing::Values(2, 3), testing::Values(1, 2)),
                         [](const auto& test) {
                           return fmt::format("In{}dOrder{}", std::get<0>(test.param), std::get<1>(test.param));
                         });

/// Every way to solve the coarsest level, every smoother, cycles that visit levels more than once.
TEST(Coefficients, ReachAllPartsOfACycle) {
  Problem unit{.mesh = Mesh::unit(2, 3), .order = 1};
  Problem boxes = problem_on({"boxes", test::box({41, 4})}, 1);
  Problem open = problem_on({"open", test::box({4, 4}), test::sides({{1, SideKind::outflow}, {3, SideKind::slip}})}, 1);
  for (Problem* problem : {&unit, &boxes, &open}) problem->order = test::has_order(2, 1) ? 1 : 2;
  for (const auto& [name, engine] : all_engines()) {
    if (name == "reference") continue;
    for (const auto& [mesh, problem] :
         {std::pair("unit", &unit), std::pair("boxes", &boxes), std::pair("open", &open)}) {
      const std::string here = name + ", " + mesh;
      MultigridOptions options;
      const auto check = [&](const std::string& what) {
        expect_same_bits_in_both(*engine, *problem, options, weak_reaction, strong_reaction, here + what);
      };
      options.cycle_index = 2;
      check(", F-cycle");
      options = {};
      options.smoother = SmootherKind::additive;
      check(", additive");
      options = {};
      options.patch = PatchProblem::galerkin;
      for (const auto local : {LocalSolverKind::direct, LocalSolverKind::cg, LocalSolverKind::dense}) {
        options.local_solver = local;
        check(fmt::format(", galerkin, local solver {}", static_cast<int>(local)));
      }
    }
    EXPECT_EQ(Hierarchy(unit, {}).coarse, CoarseSolve::patch);
    EXPECT_EQ(Hierarchy(open, {}).coarse, CoarseSolve::dense);
    EXPECT_EQ(Hierarchy(boxes, {}).coarse, CoarseSolve::mac);
  }
}

TEST(Coefficients, AreHandedOverToWhoMadeTheirTables) {
  const int order = test::has_order(2, 1) ? 1 : 2;
  const Level level = test::MeshCase{"box", test::box({4, 4})}.level(order);
  for (const auto& [name, engine] : all_engines()) {
    if (!test::has_order_of(*engine, level)) continue;
    const auto in_single = engine->kernels_float(level, LocalSolverKind::direct);
    const auto in_double = engine->kernels_double(level, LocalSolverKind::direct);
    EXPECT_THROW(in_single->use_tables(in_double->make_tables()), std::logic_error) << name;
    const auto others = engine->kernels_float(level, LocalSolverKind::direct);
    EXPECT_THROW(in_single->use_tables(others->make_tables()), std::logic_error) << name;
  }
}

/// Tables made before a smoother was prepared lack its local problems, whatever these are.
TEST(Coefficients, AreHandedOverWithTheTablesOfAllSmoothers) {
  const int order = test::has_order(2, 1) ? 1 : 2;
  test::MeshCase box{"box", test::box({4, 4})};
  for (const auto& [name, engine] : all_engines()) {
    if (name == "reference") continue;  // it has no tables of smoothers
    for (const auto equation : {EquationKind::stokes, EquationKind::poisson}) {
      box.equation = equation;
      const Level level = box.level(order);
      if (!test::has_order_of(*engine, level)) continue;
      for (const auto local : {LocalSolverKind::direct, LocalSolverKind::chebyshev}) {
        for (const bool additive : {false, true}) {
          const auto kernels = engine->kernels_float(level, local);
          kernels->prepare_smoother(!additive);
          const auto tables = kernels->make_tables();
          kernels->prepare_smoother(additive);
          EXPECT_THROW(kernels->use_tables(tables), std::logic_error) << name;
          EXPECT_NO_THROW(kernels->use_tables(kernels->make_tables())) << name;
        }
      }
    }
  }
}

/// What a solve has besides the cycle, operator in double precision and load, knows of them, too: here velocities
/// through and along sides, of which a part is lifted.
TEST(Coefficients, ReachThePreconditionerAndTheLoad) {
  if (!test::has_order(2, 2)) GTEST_SKIP() << "the order is not in this build";
  Problem problem{.mesh = Mesh::unit(2, 3), .order = 2};
  problem.viscosity = weak_reaction.viscosity;
  problem.mass = weak_reaction.reaction;
  problem.boundary.sides[0] = {.data = VectorField({1.0, 0.5, 0.0})};
  problem.boundary.sides[1].kind = SideKind::outflow;
  Problem changed = problem;
  changed.viscosity = strong_reaction.viscosity;
  changed.mass = strong_reaction.reaction;
  for (const auto& [name, engine] : all_engines()) {
    struct Solver {
      Engine& engine;
      Discretisation discretisation;
      CyclePreconditioner<float> preconditioner;
      Solver(Engine& engine_, const Problem& what)
          : engine(engine_),
            discretisation(what, {}, engine.dense_limits()),
            preconditioner(engine, discretisation.hierarchy(), {}) {}
      /// The load b, A b and M b.
      std::vector<std::vector<double>> vectors() {
        Vector<double> work(engine, discretisation.room());
        Vector<double> b(engine, discretisation.room());
        discretisation.load(engine, preconditioner.outer(), work, b);
        std::vector<std::vector<double>> all(3, std::vector<double>(discretisation.finest().size()));
        engine.download(b.data(), all[0].data(), all[0].size() * sizeof(double));
        preconditioner.outer().apply(b.data(), work.data());
        engine.download(work.data(), all[1].data(), all[1].size() * sizeof(double));
        preconditioner.apply(b.data(), work.data());
        engine.download(work.data(), all[2].data(), all[2].size() * sizeof(double));
        return all;
      }
    };
    Solver changing(*engine, problem);
    const auto before = changing.vectors();
    const auto expected = Solver(*engine, changed).vectors();
    changing.discretisation.set_coefficients(strong_reaction);
    changing.preconditioner.use_tables(changing.preconditioner.make_tables());
    const auto actual = changing.vectors();
    for (int i = 0; i < 3; ++i) {
      EXPECT_NE(before[i], expected[i]) << name << ", vector " << i;
      EXPECT_EQ(actual[i], expected[i]) << name << ", vector " << i;
    }
  }
}

/// The recorded V-cycle on seven levels gets other coefficients within a millisecond, and runs as fast as before.
TEST(Coefficients, ReachARecordedCycleWithinAMillisecond) {
  if (const std::string reason = cuda_unavailable(); !reason.empty()) GTEST_SKIP() << "no GPU: " << reason;
  const auto engine = make_cuda_engine();
  Problem problem{.mesh = Mesh::unit(3, 6), .order = 2};
  problem.mesh.upper[2] = 0.5;  // flat cells: a level more
  const MultigridOptions options;
  {
    Problem small = problem;
    small.mesh.refine = 1;
    const Level level(equation_of(small), no_reaction, Grid(small.mesh, small.boundary));
    if (!test::has_order_of(*engine, level)) GTEST_SKIP() << "the order is not in this build";
  }
  HierarchyWithCycle<float> changing(*engine, problem, weak_reaction, options);
  Cycle<float>& cycle = changing.cycle();
  EXPECT_GE(changing.hierarchy().size(), 7);
  EXPECT_EQ(cycle_index(options, changing.hierarchy().finest().equation), 1);
  const auto median_time = [&](const auto& prepare, const auto& work) {
    std::vector<double> milliseconds;
    for (int i = 0; i < 21; ++i) {
      prepare();
      engine->synchronise();
      const auto start = std::chrono::steady_clock::now();
      work(i);
      engine->synchronise();
      milliseconds.push_back(1e3 * std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    std::nth_element(milliseconds.begin(), milliseconds.begin() + 10, milliseconds.end());
    return milliseconds[10];
  };
  const auto tables = cycle.make_tables();
  changing.hierarchy().set_coefficients(strong_reaction);
  const auto start = std::chrono::steady_clock::now();
  const auto other_tables = cycle.make_tables();
  const double making = 1e3 * std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const auto nothing = [] {};
  const auto hand_over = [&](int i) { cycle.use_tables(i % 2 == 0 ? other_tables : tables); };
  const double run = median_time(nothing, [&](int) { cycle.run(); });
  const double handing_over = median_time(nothing, hand_over);
  int turn = 0;
  const double next_run = median_time([&] { hand_over(turn++); }, [&](int) { cycle.run(); });
  const double recording = median_time(nothing, [&](int) { cycle.record(changing.hierarchy().size() - 1); });
  fmt::print(
      "{} levels [ms]: handing over {:.3f}, making tables {:.1f}, recording anew {:.3f}, a cycle {:.3f}, the next "
      "one after handing over {:.3f}\n",
      changing.hierarchy().size(), handing_over, making, recording, run, next_run);
  EXPECT_LT(handing_over, 1.0);
  EXPECT_LT(next_run, run + 0.2);

  cycle.use_tables(other_tables);
  EXPECT_EQ(changing.result(), HierarchyWithCycle<float>(*engine, problem, strong_reaction, options).result());
}

}  // namespace
}  // namespace solenoid
