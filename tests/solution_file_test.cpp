/// \file
/// Solutions in files, and as initial guesses: every bit comes back, whatever engine it comes from; on other meshes and
/// of other orders they are interpolated.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>

#include "base/host_vector.hpp"
#include "engine/engine.hpp"
#include "engines.hpp"
#include "flows.hpp"
#include "interpolate.hpp"
#include "mesh/grid.hpp"
#include "mesh/places.hpp"
#include "solenoid/error.hpp"
#include "solenoid/linear_system.hpp"
#include "solution/transfer.hpp"
#include "solver/discretisation.hpp"
#include "solver/methods.hpp"

namespace solenoid {
namespace {

namespace fs = std::filesystem;

/// A file that is gone at the end.
class Temporary {
 public:
  explicit Temporary(const std::string& name)
      : path_(fs::temp_directory_path() / ("solenoid_" + std::to_string(getpid()) + "_" + name)) {}
  ~Temporary() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  [[nodiscard]] const fs::path& path() const { return path_; }
  [[nodiscard]] std::string bytes() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  fs::path path_;
};

struct FileCase {
  std::string name;
  Problem problem;
};

ScalarField wave(int a) {
  return ScalarField(std::function<double(const Point&)>([a](const Point& x) { return std::sin(7.0 * x[a] + a); }));
}

/// What places are like: walls, holes with faces of all kinds, domains that wrap (through holes too), parts, rows along
/// other directions than x.
std::vector<FileCase> cases() {
  std::vector<FileCase> all;
  for (const EquationKind equation : {EquationKind::stokes, EquationKind::poisson}) {
    for (const int dim : {2, 3}) {
      for (const int order : available_orders(dim, equation)) {
        const bool stokes = equation == EquationKind::stokes;
        const auto add = [&](const std::string& name, const auto& change) {
          Problem problem{.mesh = Mesh::unit(dim, 1), .order = order, .viscosity = 0.3, .equation = equation};
          problem.mesh.lower = {-1.0, 0.5, 0.0};
          problem.mesh.upper = {2.0, 1.5, 1.0};
          problem.mesh.cells = {3, 2, dim == 3 ? 2 : 1};
          for (int c = 0; c < dim; ++c) problem.force[c] = wave(dim - 1 - c);
          change(problem);
          all.push_back({std::string(stokes ? "stokes" : "poisson") + std::to_string(dim) + "D_k" +
                             std::to_string(order) + "_" + name,
                         problem});
        };
        const auto periodic = [](Problem& p, int a) {
          p.boundary.sides[2 * a].kind = p.boundary.sides[2 * a + 1].kind = SideKind::periodic;
        };
        const IndexBox hole{{1, 0, 0}, {2, 1, 1}};
        add("walls", [](Problem&) {});
        add("hole", [&](Problem& p) { p.mesh.holes = {hole}; });
        add("holeAtTheEndOfAPeriodicDirection", [&](Problem& p) {
          periodic(p, 0);
          p.mesh.holes = {{{0, 0, 0}, {1, 1, 1}}, {{2, 1, 0}, {3, 2, 1}}};
        });
        add("parts", [&](Problem& p) { p.mesh.holes = {{{1, 0, 0}, {2, 2, dim == 3 ? 2 : 1}}}; });
        add("mass", [&](Problem& p) {
          p.mass = 2.0;
          for (int a = 0; a < dim; ++a) periodic(p, a);
        });
        if (!stokes) continue;
        add("outflow", [&](Problem& p) {
          p.boundary.sides[1].kind = SideKind::outflow;
          p.boundary.sides[3].kind = SideKind::slip;
          p.boundary.holes.kind = SideKind::outflow;
          p.mesh.holes = {hole};
        });
        add("partsOfSides", [&](Problem& p) {  // boxes are 1 long in x from -1 on, and 1/2 in y and z
          p.mesh.holes = {hole, {{2, 1, 0}, {3, 2, 1}}};
          p.boundary.sides[1].kind = SideKind::outflow;
          p.boundary.single_holes = {{1, {SideKind::slip}}};
          const auto less = [](int a, double than) {
            return ScalarField([=](const Point& x) { return x[a] < than ? 1.0 : 0.0; });
          };
          p.boundary.regions = {{1, less(1, 1.0), {SideKind::velocity}},
                                {3, less(0, 1.0), {SideKind::slip}},
                                {3, less(0, 0.0), {SideKind::outflow}}};
          if (dim == 3) p.boundary.regions.push_back({4, less(1, 1.0), {SideKind::slip}});
        });
        add("inflow", [&](Problem& p) {
          p.boundary.sides[0].data[0] = wave(1);
          p.boundary.sides[1].kind = SideKind::outflow;
        });
      }
    }
  }
  return all;
}

/// Values in all that a grid stores.
Solution random_solution(const Problem& problem, std::uint64_t seed) {
  const auto grid =
      std::make_shared<const Grid>(problem.mesh, problem.boundary, problem.equation == EquationKind::stokes);
  const int dim = problem.mesh.dim;
  const int record = record_size(dim, problem.order, problem.equation);
  HostVector x = zeros(std::int64_t{grid->layout().storage()} * record);
  std::mt19937_64 bits(seed);
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  const int block = power(problem.order + 1, dim);
  for (const Record r : grid->layout().records()) {
    for (int i = 0; i < record; ++i) {
      const bool hat = grid->layout().is_cell(r) ||
                       (i / block == grid->hat_direction(r) && i % block < power(problem.order + 1, dim - 1));
      if (hat) x[record_offset(r, record) + std::int64_t{interleave} * i] = uniform(bits);
    }
  }
  return {problem, grid, std::move(x)};
}

bool same_bits(std::span<const double> a, std::span<const double> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

class SolutionFile : public testing::TestWithParam<FileCase> {
 protected:
  void SetUp() override {
    if (!solution_files_unavailable().empty()) GTEST_SKIP() << solution_files_unavailable();
  }
  [[nodiscard]] static const Problem& problem() { return GetParam().problem; }
};

TEST_P(SolutionFile, KeepsEveryBit) {
  const Solution saved = random_solution(problem(), 1);
  const Temporary file("bits.h5");
  saved.save(file.path());
  const Solution loaded = load_solution(file.path());
  EXPECT_TRUE(same_bits(loaded.coefficients(), saved.coefficients()));

  const Problem& found = loaded.problem();
  EXPECT_EQ(found.equation, problem().equation);
  EXPECT_EQ(found.order, problem().order);
  EXPECT_EQ(found.viscosity, problem().viscosity);
  EXPECT_EQ(found.mass, problem().mass);
  EXPECT_EQ(found.mesh.dim, problem().mesh.dim);
  EXPECT_EQ(found.mesh.cells, problem().mesh.cells);
  EXPECT_EQ(found.mesh.refine, problem().mesh.refine);
  EXPECT_EQ(found.mesh.holes.size(), problem().mesh.holes.size());
  for (int a = 0; a < found.mesh.dim; ++a) {
    EXPECT_EQ(found.mesh.lower[a], problem().mesh.lower[a]);
    EXPECT_EQ(found.mesh.upper[a], problem().mesh.upper[a]);
  }
  for (int side = 0; side < 2 * found.mesh.dim; ++side) {
    EXPECT_EQ(found.boundary.sides[side].kind, problem().boundary.sides[side].kind);
  }
  EXPECT_EQ(found.boundary.holes.kind, problem().boundary.holes.kind);
  for (const Record cell : saved.grid().layout().cells()) {
    for (int side = 0; side < 2 * found.mesh.dim; ++side) {
      EXPECT_EQ(loaded.grid().face(cell, side), saved.grid().face(cell, side));
    }
  }

  const Temporary again("again.h5");
  loaded.save(again.path());
  EXPECT_EQ(again.bytes(), file.bytes());
  EXPECT_FALSE(fs::exists(file.path().string() + ".partial"));
}

/// Records are numbered by rows along y instead of x if the sides in x are slip sides: the file has the same numbers.
TEST(SolutionFiles, DoNotKnowHowRecordsAreNumbered) {
  if (!solution_files_unavailable().empty()) GTEST_SKIP() << solution_files_unavailable();
  const auto orders = available_orders(2);
  if (orders.empty()) GTEST_SKIP() << "no orders in 2D";
  Problem problem{.mesh = Mesh::unit(2, 4), .order = orders.front()};
  const Solution along_x = random_solution(problem, 2);
  problem.boundary.sides[0].kind = problem.boundary.sides[1].kind = SideKind::slip;
  const Solution along_y = random_solution(problem, 2);
  ASSERT_NE(along_x.grid().numbering(), along_y.grid().numbering());
  // The values of one on the other, by places.
  HostVector moved(along_y.coefficients().size(), 0.0);
  const int record = record_size(2, problem.order);
  const auto count = places(along_x.grid(), problem.equation);
  for (int y = 0; y < count[1]; ++y) {
    for (int x = 0; x < count[0]; ++x) {
      std::vector<double> values(record);
      const auto visit = [&](const Grid& grid, const auto& move) {
        for_each_record_at(grid, problem.order, problem.equation, {x, y, 0}, [&](Record r, int first, int number) {
          for (int i = first; i < first + number; ++i) move(values[i], record_offset(r, record) + interleave * i);
        });
      };
      visit(along_x.grid(), [&](double& value, std::int64_t at) { value = along_x.coefficients()[at]; });
      visit(along_y.grid(), [&](double& value, std::int64_t at) { moved[at] = value; });
    }
  }
  EXPECT_FALSE(same_bits(moved, along_x.coefficients()));
  const Temporary first("first.h5");
  const Temporary second("second.h5");
  along_x.save(first.path());
  Solution(along_y.problem(), std::make_shared<const Grid>(along_y.grid()), moved).save(second.path());
  const std::string a = first.bytes();
  const std::string b = second.bytes();
  const std::size_t data = 17 * 17 * record * sizeof(double);  // at the end
  ASSERT_GT(std::min(a.size(), b.size()), data);
  EXPECT_EQ(a.substr(a.size() - data), b.substr(b.size() - data));
}

// Initial guesses -----------------------------------------------------------------------------------------------------

TEST_P(SolutionFile, IsTheSolutionToStartFrom) {
  const bool with_all_options = problem().order == 1;
  for (const Method method : {Method::gmres, Method::vcycle}) {
    for (const PreconditionerSide side : {PreconditionerSide::right, PreconditionerSide::left}) {
      for (const Precision precision : {Precision::mixed, Precision::full_double}) {
        const bool is_default = method == Method::gmres && side == PreconditionerSide::right;
        if (!with_all_options && (!is_default || precision != Precision::mixed)) continue;
        if (method == Method::vcycle && side == PreconditionerSide::left) continue;  // has no side
        SolverOptions options;
        options.method = method;
        options.device = DeviceChoice::cpu;
        options.threads = 1;
        options.precision = precision;
        options.max_iterations = 200;
        if (method == Method::gmres) options.side = side;
        // From the left, where the coarsest level is solved directly.
        if (const auto coarse = Hierarchy(problem(), options.multigrid).coarse;
            coarse == CoarseSolve::mac || coarse == CoarseSolve::krylov)
          options.side = PreconditionerSide::right;
        const Result first = solve(problem(), options);
        ASSERT_TRUE(first.report.converged) << first.report.reason;
        const Temporary file("start.h5");
        first.solution.save(file.path());
        const Solution loaded = load_solution(file.path());
        // What is measured anew is not what was, to the last bit, and may be above the tolerance by a rounding error.
        options.rtol *= 1.1;
        const Result second = solve(problem(), loaded, options);
        EXPECT_TRUE(second.report.converged);
        EXPECT_EQ(second.report.iterations, 0);
        EXPECT_LE(second.report.residual_history.front(), options.rtol);
        double worst = 0.0;
        double largest = 0.0;
        for (std::size_t i = 0; i < loaded.coefficients().size(); ++i) {
          worst = std::max(worst, std::abs(loaded.coefficients()[i] - second.solution.coefficients()[i]));
          largest = std::max(largest, std::abs(loaded.coefficients()[i]));
        }
        EXPECT_LE(worst, 1e-13 * largest);
        if (method == Method::vcycle) break;
      }
    }
  }
}

/// On the reference engine and on those of this machine; each starts from what any other has saved.
TEST(SolutionFiles, GoFromEngineToEngine) {
  if (!solution_files_unavailable().empty()) GTEST_SKIP() << solution_files_unavailable();
  for (const int dim : {2, 3}) {
    const auto orders = available_orders(dim);
    if (orders.empty()) continue;
    Problem problem{.mesh = Mesh::unit(dim, 2), .order = orders.front(), .mass = 1.0};
    problem.mesh.cells = {2, 1, 1};
    problem.mesh.holes = {};
    problem.force = {wave(1), wave(0), wave(1)};
    problem.boundary.sides[0].data[0] = wave(1);
    problem.boundary.sides[1].kind = SideKind::outflow;

    std::vector<std::unique_ptr<Engine>> engines;
    engines.push_back(make_reference_engine());
    for (const auto& choice : test::engines()) engines.push_back(make_engine(choice.device, 2));
    const SolverOptions options;
    /// The solution by an engine, from a start if there is one, and the iterations that it takes.
    const auto solve_by = [&](Engine& engine, const Solution* start) {
      Discretisation discretisation(problem, options, engine.dense_limits());
      Solve<double> solve(engine, discretisation.hierarchy(), options);
      Vector<double> x(engine, discretisation.room());
      Vector<double> b(engine, discretisation.room());
      discretisation.load(engine, solve.outer(), x, b);
      const Level& finest = discretisation.finest();
      if (start != nullptr) {
        const auto guess = unknowns_on(*start, finest.grid, finest.equation.order, "start");
        engine.upload(guess.data(), x.data(), guess.size() * sizeof(double));
      }
      solve.reserve();
      Convergence convergence;
      convergence.rtol = start == nullptr ? 1e-9 : 1.1e-9;
      solve.run(b.data(), x.data(), start == nullptr, convergence);
      EXPECT_TRUE(convergence.converged) << convergence.reason;
      discretisation.complete(engine, solve.outer(), x);
      return std::pair(discretisation.solution(engine, x), convergence.iterations);
    };
    for (const auto& from : engines) {
      const auto [solution, iterations] = solve_by(*from, nullptr);
      EXPECT_GT(iterations, 1);
      const Temporary file("engine.h5");
      solution.save(file.path());
      const Solution loaded = load_solution(file.path());
      for (const auto& to : engines) EXPECT_EQ(solve_by(*to, &loaded).second, 0) << to->description();
    }
  }
}

Problem box(int dim, int order, const std::array<int, 3>& cells, int refine) {
  Problem problem{.mesh = Mesh::unit(dim, refine), .order = order};
  problem.mesh.upper = {2.0, 1.0, 0.5};
  problem.mesh.cells = cells;
  for (int side = 0; side < 2 * dim; ++side) problem.boundary.sides[side].kind = SideKind::outflow;
  return problem;
}

/// Against the canonical interpolation of the same functions by quadrature: from finer and coarser meshes, from lower
/// and higher orders, and both at once in different directions. All unknowns of an outflow problem are there.
TEST(Transfer, IsTheCanonicalInterpolation) {
  for (const int dim : {2, 3}) {
    const auto flow = test::PolynomialFlow::of_order(dim, 2);
    const test::Functions velocity{[&](const Point& x) { return flow.velocity[0](x); },
                                   [&](const Point& x) { return flow.velocity[1](x); },
                                   [&](const Point& x) { return flow.velocity[2](x); }};
    const auto pressure = [&](const Point& x) { return flow.pressure(x); };
    const std::vector<std::pair<std::array<int, 3>, int>> meshes{
        {{2, 1, 1}, 0}, {{2, 1, 1}, 1}, {{1, 1, 1}, 2}, {{6, 3, 1}, 0}, {{12, 1, 2}, 0}};
    for (const auto& [from_cells, from_refine] : meshes) {
      for (const auto& [to_cells, to_refine] : meshes) {
        for (const int order : {0, 1, 2, 3}) {
          const Problem source = box(dim, 2, from_cells, from_refine);
          const Problem target = box(dim, order, to_cells, to_refine);
          bool nested = true;
          for (int a = 0; a < dim; ++a) {
            const int from = from_cells[a] << from_refine;
            const int to = to_cells[a] << to_refine;
            nested = nested && (from % to == 0 || to % from == 0);
          }
          const Solution start = test::interpolate(source, velocity, pressure, 6);
          const Solution expected = test::interpolate(target, velocity, pressure, 6);
          if (!nested) {
            EXPECT_THROW(unknowns_on(start, expected.grid(), order, "start"), InputError);
            continue;
          }
          const auto found = unknowns_on(start, expected.grid(), order, "start");
          ASSERT_EQ(found.size(), expected.coefficients().size());
          double worst = 0.0;
          for (std::size_t i = 0; i < found.size(); ++i) {
            worst = std::max(worst, std::abs(found[i] - expected.coefficients()[i]));
          }
          EXPECT_LE(worst, 1e-11) << dim << "D, order " << order;
        }
      }
    }
  }
}

/// What has no divergence has none on any other mesh and of any other order.
TEST(Transfer, KeepsVelocitiesDivergenceFree) {
  for (const int dim : {2, 3}) {
    if (!test::has_order(dim, 2) || !test::has_order(dim, 1)) GTEST_SKIP() << "orders are not in this build";
    Problem problem{.mesh = Mesh::unit(dim, 3), .order = 2};
    problem.force = {wave(1), wave(0), wave(1)};
    SolverOptions options;
    options.device = DeviceChoice::cpu;
    const Solution start = solve(problem, options).solution;
    for (const auto& [order, refine] : {std::pair{1, 2}, {2, 4}, {1, 3}, {3, 1}}) {
      Problem other = problem;
      other.order = order;
      other.mesh.refine = refine;
      const auto grid = std::make_shared<const Grid>(other.mesh, other.boundary, true);
      const Solution moved(other, grid, unknowns_on(start, *grid, order, "start"));
      EXPECT_LE(moved.divergence_max(), 1e-11) << dim << "D, order " << order << ", refined " << refine;
      EXPECT_GT(moved.max_speed(), 0.5 * start.max_speed());
    }
  }
}

/// The interpolation of a coarse solution saves iterations.
TEST(SolveFrom, ACoarserSolutionTakesFewerIterations) {
  for (const EquationKind equation : {EquationKind::stokes, EquationKind::poisson}) {
    if (!test::has_order(2, 2, equation) || !test::has_order(2, 1, equation)) GTEST_SKIP() << "not in this build";
    Problem problem{.mesh = Mesh::unit(2, 4), .order = 2, .equation = equation};
    problem.mesh.cells = {3, 3, 1};
    problem.mesh.holes = {{{1, 1, 0}, {2, 2, 1}}};
    problem.force = {wave(1), wave(0), 0.0};
    SolverOptions options;
    options.rtol = 1e-6;
    const Result from_zero = solve(problem, options);
    Problem other = problem;
    other.mesh.refine = 3;
    other.boundary.sides[0].data[0] = 0.0;
    const Result from_coarse = solve(problem, solve(other, options).solution, options);
    EXPECT_TRUE(from_coarse.report.converged);
    EXPECT_LT(from_coarse.report.iterations, from_zero.report.iterations);
    EXPECT_NEAR(from_zero.report.residual_history.front(), 1.0, 1e-15);
    if (equation == EquationKind::stokes) {
      EXPECT_LT(from_coarse.solution.divergence_max(), 1e-11);
    }
  }
}

TEST(SolveFrom, SaysWhatItCannotStartFrom) {
  const auto orders = available_orders(2);
  if (orders.empty()) GTEST_SKIP() << "no orders in 2D";
  Problem problem{.mesh = Mesh::unit(2, 2), .order = orders.front()};
  problem.mesh.cells = {2, 2, 1};
  problem.force[0] = wave(1);
  const Solution good = random_solution(problem, 1);
  const auto message = [&](const Problem& asked, const Solution& start, const SolverOptions& options = {}) {
    try {
      (void)solve(asked, start, options);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_EQ(message(problem, good), "none");
  const auto expect = [&](const std::string& part, const auto& change) {
    Problem other = problem;
    change(other);
    const std::string text = message(problem, random_solution(other, 1));
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect("solves the equation `poisson`", [](Problem& p) { p.equation = EquationKind::poisson; });
  expect("in y its domain lies from 0 to 2", [](Problem& p) { p.mesh.upper[1] = 2.0; });
  expect("it has 12 cells in x, the problem has 8", [](Problem& p) { p.mesh.cells[0] = 3; });
  expect("the holes differ", [](Problem& p) { p.mesh.holes = {{{0, 0, 0}, {1, 1, 1}}}; });
  expect("it is 3-dimensional", [](Problem& p) { p.mesh = Mesh::unit(3, 1); });
  Problem with_hole = problem;
  with_hole.mesh.holes = {{{0, 0, 0}, {1, 1, 1}}};
  EXPECT_NE(message(with_hole, good).find("the holes differ"), std::string::npos);
  SolverOptions fmg;
  fmg.method = Method::fmg;
  EXPECT_NE(message(problem, good, fmg).find("full multigrid"), std::string::npos);
  HostVector broken(good.coefficients().begin(), good.coefficients().end());
  broken[interleave * (record_size(2, problem.order) - 1)] = std::numeric_limits<double>::quiet_NaN();
  const Solution nan(problem, std::make_shared<const Grid>(good.grid()), broken);
  EXPECT_NE(message(problem, nan).find("not finite"), std::string::npos);
}

/// A right-hand side of zero has the solution zero, whatever it starts from.
TEST(SolveFrom, NoLoadGivesZero) {
  const auto orders = available_orders(2);
  if (orders.empty()) GTEST_SKIP() << "no orders in 2D";
  const Problem problem{.mesh = Mesh::unit(2, 2), .order = orders.front()};
  const Solution start = random_solution(problem, 1);
  for (const Method method : {Method::gmres, Method::vcycle}) {
    for (const PreconditionerSide side : {PreconditionerSide::right, PreconditionerSide::left}) {
      SolverOptions options;
      options.method = method;
      if (method == Method::gmres) options.side = side;
      const auto [solution, report] = solve(problem, start, options);
      EXPECT_TRUE(report.converged);
      EXPECT_EQ(solution.max_speed(), 0.0);
    }
  }
}

// Files ---------------------------------------------------------------------------------------------------------------

TEST(SolutionFiles, AreWrittenWholeOrNotAtAll) {
  if (!solution_files_unavailable().empty()) GTEST_SKIP() << solution_files_unavailable();
  const auto orders = available_orders(2);
  if (orders.empty()) GTEST_SKIP() << "no orders in 2D";
  const Solution solution = random_solution({.mesh = Mesh::unit(2, 1), .order = orders.front()}, 1);
  EXPECT_THROW(solution.save("/nowhere/flow.h5"), Error);
  EXPECT_THROW(solution.save("/dev/null"), Error);
  EXPECT_THROW(solution.save(fs::temp_directory_path()), Error);
  // No room for all of it, wherever it ends.
  const Temporary file("old.h5");
  solution.save(file.path());
  const std::string before = file.bytes();
  const auto previous = std::signal(SIGXFSZ, SIG_IGN);
  rlimit unlimited{};
  getrlimit(RLIMIT_FSIZE, &unlimited);
  for (rlim_t most = 0; most < before.size(); most += 500) {
    const rlimit limited{most, unlimited.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limited);
    EXPECT_THROW(solution.save(file.path()), Error) << most << " of " << before.size();
    setrlimit(RLIMIT_FSIZE, &unlimited);
    EXPECT_EQ(file.bytes(), before);
    EXPECT_FALSE(fs::exists(file.path().string() + ".partial"));
  }
  std::signal(SIGXFSZ, previous);
  solution.save(file.path());
  EXPECT_EQ(file.bytes(), before);
}

TEST(SolutionFiles, SayWhatIsWrong) {
  if (!solution_files_unavailable().empty()) GTEST_SKIP() << solution_files_unavailable();
  const auto message = [](const fs::path& path) {
    try {
      (void)load_solution(path);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  const Temporary file("wrong.h5");
  EXPECT_NE(message(file.path()).find("there is no such file"), std::string::npos);
  EXPECT_NE(message(fs::temp_directory_path()).find("it is not a file"), std::string::npos);
  std::ofstream(file.path()) << "";
  EXPECT_NE(message(file.path()).find("not a solution file"), std::string::npos);
  std::ofstream(file.path()) << "solenoid solution, version 2\n";
  EXPECT_NE(message(file.path()).find("of version 2"), std::string::npos);
  const auto orders = available_orders(2);
  if (orders.empty()) GTEST_SKIP() << "no orders in 2D";
  const Problem problem{.mesh = Mesh::unit(2, 1), .order = orders.front()};
  random_solution(problem, 1).save(file.path());
  EXPECT_EQ(message(file.path()), "none");
  // What the file does not hold is known to be unknown.
  try {
    (void)solve(load_solution(file.path()).problem());
    FAIL() << "solved without a force";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("has no "), std::string::npos) << error.what();
  }
  std::string bytes = file.bytes();
  std::ofstream(file.path(), std::ios::binary) << bytes.substr(0, bytes.size() / 2);
  EXPECT_NE(message(file.path()).find("was it cut off?"), std::string::npos);
}

/// An order that this build cannot solve can be read and evaluated.
TEST(SolutionFiles, AreReadOfOrdersThatTheBuildLacks) {
  if (!solution_files_unavailable().empty()) GTEST_SKIP() << solution_files_unavailable();
  constexpr int order = 11;
  ASSERT_FALSE(test::has_order(2, order));
  const Solution saved = random_solution({.mesh = Mesh::unit(2, 1), .order = order}, 1);
  const Temporary file("order.h5");
  saved.save(file.path());
  const Solution loaded = load_solution(file.path());
  const std::vector<Point> points{{0.3, 0.7, 0.0}};
  EXPECT_EQ(loaded.velocity(points), saved.velocity(points));
}

// Vectors -------------------------------------------------------------------------------------------------------------

TEST_P(SolutionFile, PackedVectorsAreUnknownsOfSolutions) {
  SolverOptions options;
  options.threads = 1;
  options.device = DeviceChoice::cpu;
  LinearSystem system(problem(), options);
  const auto b = system.make_vector();
  const auto x = system.make_vector();
  system.load(b.get());
  system.precondition(b.get(), x.get());
  const Solution solution = system.solution(x.get());
  const std::vector<double> values = solution.unknowns();
  ASSERT_EQ(std::ssize(values), system.dofs());
  system.unpack(values.data(), x.get());
  std::vector<double> packed(values.size());
  system.pack(x.get(), packed.data());
  EXPECT_TRUE(same_bits(packed, values));
  const Solution again = system.solution(x.get());
  double worst = 0.0;
  double largest = 0.0;
  for (std::size_t i = 0; i < again.coefficients().size(); ++i) {
    worst = std::max(worst, std::abs(again.coefficients()[i] - solution.coefficients()[i]));
    largest = std::max(largest, std::abs(solution.coefficients()[i]));
  }
  EXPECT_LE(worst, 1e-13 * largest);  // the mean of the pressure is taken off once more
}

std::string name_of_case(const testing::TestParamInfo<FileCase>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(All, SolutionFile, testing::ValuesIn(cases()), name_of_case);

/// Parts that differ in their data alone leave no trace: a file has kinds.
TEST(SolutionFiles, HavePartsOfOtherKindsAlone) {
  if (!solution_files_unavailable().empty()) GTEST_SKIP() << solution_files_unavailable();
  Problem problem{.mesh = Mesh::unit(2, 2), .order = 1};
  problem.mesh.cells = {3, 3, 1};
  problem.mesh.holes = {{{1, 1, 0}, {2, 2, 1}}};
  const Temporary plain("plain.h5");
  const Temporary parts("parts.h5");
  random_solution(problem, 1).save(plain.path());
  problem.boundary.regions = {{.side = 1, .where = ScalarField(1.0), .condition = {}}};
  problem.boundary.single_holes = {{.hole = 0, .condition = {}}};
  random_solution(problem, 1).save(parts.path());
  EXPECT_EQ(plain.bytes(), parts.bytes());
  problem.boundary.regions[0].condition.kind = SideKind::outflow;
  random_solution(problem, 1).save(parts.path());
  EXPECT_NE(plain.bytes(), parts.bytes());
  // What holds there is not known.
  const Problem loaded = load_solution(parts.path()).problem();
  ASSERT_EQ(loaded.boundary.regions.size(), 1U);
  EXPECT_THROW(loaded.boundary.regions[0].condition.data[0](Point{1.0, 0.5, 0.0}), InputError);
}

}  // namespace
}  // namespace solenoid
