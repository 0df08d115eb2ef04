/// \file
/// Coefficients that vary by cell: every engine that has them against the reference engine, both against flows that are
/// known, and the convergence of the cycle.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <random>

#include "engine/engine.hpp"
#include "engines.hpp"
#include "flows.hpp"
#include "kernel_bench.hpp"
#include "levels.hpp"
#include "levels_with_points.hpp"
#include "solenoid/cellwise.hpp"
#include "solenoid/error.hpp"
#include "solenoid/solver.hpp"
#include "solver/hierarchy.hpp"

namespace solenoid {
namespace {

using std::numbers::pi;
using test::Bench;
using test::expect_same;
using test::MeshCase;
using test::oracle;
using test::Results;
using test::tolerance;
using test::Values;

// Engines ------------------------------------------------------------------------------------------------------------

struct VaryingCase {
  MeshCase mesh;
  int order = 1;
  ViscousForm form = ViscousForm::stress;
  bool reaction = false;
};

std::string to_string(const VaryingCase& what) {
  return fmt::format("{}d_{}_k{}_{}{}", what.mesh.mesh.dim, what.mesh.name, what.order,
                     what.form == ViscousForm::stress ? "stress" : "gradient", what.reaction ? "_reaction" : "");
}
void PrintTo(const VaryingCase& what, std::ostream* stream) { *stream << to_string(what); }

/// Random viscosities over three decades, and reactions, of which some are zero.
Level varying_level(const VaryingCase& what, bool boundary_hats = false) {
  const Equation equation{.dim = what.mesh.mesh.dim, .order = what.order, .form = what.form};
  Grid grid(what.mesh.mesh, what.mesh.boundary, boundary_hats);
  std::mt19937_64 generator(7);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  const auto by_cell = std::make_shared<CellCoefficients>();
  for (Record cell = 0; cell < grid.layout().cells().last(); ++cell) {
    by_cell->viscosity.push_back(std::pow(10.0, 3.0 * uniform(generator) - 1.5));
    const double reaction = std::pow(10.0, 4.0 * uniform(generator) - 1.0);
    by_cell->reaction.push_back(what.reaction && uniform(generator) < 0.7 ? reaction : 0.0);
  }
  return {equation, {.by_cell = by_cell}, std::move(grid), {.no_slip_ends = true}};
}

std::vector<VaryingCase> varying_cases() {
  constexpr auto stress = ViscousForm::stress;
  constexpr auto gradient = ViscousForm::gradient;
  std::vector<VaryingCase> cases;
  for (const int dim : {2, 3}) {
    for (const auto& mesh : test::mesh_cases(dim)) {
      for (int order = 0; order <= (dim == 2 ? 3 : 1); ++order) {
        if (order > 0) cases.push_back({mesh, order, stress});
        if (order == 0 || order == 2) cases.push_back({mesh, order, gradient, order == 2});
      }
      cases.push_back({mesh, 1, stress, true});
    }
  }
  // In 3D, where the reference engine takes its time, one form on each mesh.
  bool of_stress = false;
  for (const auto& mesh : test::mesh_cases(3)) {
    if (mesh.name == "long_box") continue;
    of_stress = !of_stress;
    cases.push_back({mesh, 2, of_stress ? stress : gradient, !of_stress});
  }
  for (int order = 4; order <= 8; ++order) {
    for (const auto& mesh : test::mesh_cases(2)) {
      if (mesh.name == "odd_box" || mesh.name == "channel") cases.push_back({mesh, order, stress, order % 2 == 0});
    }
  }
  cases.push_back({{"walls", test::box({3, 3, 2})}, 3, stress});
#ifdef NDEBUG  // without optimisation the reference engine's dense factorisations take minutes
  cases.push_back({{"pair", test::box({3, 2, 2}), test::periodic({0})}, 4, stress});
  cases.push_back({{"pair", test::box({2, 2, 2})}, 5, stress, true});
#endif
  for (const auto& cells : std::vector<std::vector<int>>{{7, 40}, {33, 5}, {33, 3, 3}}) {
    cases.push_back({{fmt::format("rows_{}", cells[0]), test::box(cells)}, 1, stress});
  }
  std::erase_if(cases, [](const VaryingCase& what) { return !test::has_order(what.mesh.mesh.dim, what.order); });
  return cases;
}

class VaryingKernels : public testing::TestWithParam<VaryingCase> {
 protected:
  template <class T, class Run>
  void compare(const Level& level, const std::string& what, const Run& run) {
    constexpr bool single = sizeof(T) == sizeof(float);
    Bench<T> expected(oracle(), level, LocalSolverKind::direct);
    const Results expected_result = run(expected);
    for (const auto& choice : test::engines()) {
      Engine& engine = choice.get();
      if (!test::has_order_of(engine, level)) continue;
      std::vector<std::string> variants = engine.smoother_variants(level.equation, single);
      variants.emplace_back();
      for (const std::string& variant : variants) {
        engine.choose_smoother(variant);
        Bench<T> actual(engine, level, LocalSolverKind::direct);
        const Results actual_result = run(actual);
        for (std::size_t i = 0; i < expected_result.size(); ++i) {
          expect_same(
              level, expected_result[i], actual_result[i], 2.0 * tolerance<T>(level.equation.order),
              fmt::format("{} [{}] in {} on {} {}", what, i, single ? "float" : "double", choice.name, variant));
        }
      }
    }
  }

  template <class T>
  void apply_and_residual(bool boundary_hats) {
    const Level level = varying_level(GetParam(), boundary_hats);
    const Values b = test::random_vector(level, 1);
    const Values x = test::random_vector(level, 2, boundary_hats);
    compare<T>(level, "apply, residual", [&](Bench<T>& bench) { return test::apply_and_residual(bench, x, b); });
  }

  template <class T>
  void smoothers() {
    const Level level = varying_level(GetParam());
    const Values x = test::random_vector(level, 3);
    const Values b = test::random_vector(level, 4);
    const int colours = static_cast<int>(level.patches.colours.size());
    ASSERT_GT(colours, 0);
    compare<T>(level, "smooth, all colours: from zero, with old values, added",
               [&](Bench<T>& bench) { return test::smooth_each_colour(bench, colours, x, b); });
  }
};

TEST_P(VaryingKernels, ApplyTheOperator) {
  for (const bool boundary_hats : {false, true}) {
    apply_and_residual<float>(boundary_hats);
    apply_and_residual<double>(boundary_hats);
  }
}

TEST_P(VaryingKernels, Smooth) {
  smoothers<float>();
  smoothers<double>();
}

/// With the same numbers everywhere and the gradient form it is the operator of constant coefficients.
TEST_P(VaryingKernels, AreThoseOfConstantCoefficientsWhereTheyAreTheSame) {
  if (GetParam().form != ViscousForm::gradient) GTEST_SKIP();
  const Level constant = GetParam().mesh.level(GetParam().order);
  Level level = varying_level(GetParam());
  const auto cells = static_cast<std::size_t>(level.grid.layout().cells().size());
  level.coefficients.by_cell = std::make_shared<const CellCoefficients>(
      CellCoefficients{std::vector<double>(cells, constant.coefficients.viscosity),
                       std::vector<double>(cells, constant.coefficients.reaction)});
  const Values x = test::random_vector(level, 2);
  std::vector<Engine*> engines{&oracle()};
  for (const auto& choice : test::engines()) engines.push_back(&choice.get());
  for (Engine* engine : engines) {
    if (!test::has_order_of(*engine, level)) continue;
    Bench<double> expected(*engine, constant, LocalSolverKind::direct);
    Bench<double> actual(*engine, level, LocalSolverKind::direct);
    const auto image = [&](Bench<double>& bench) {
      const auto vx = bench.vector(x);
      auto y = bench.output();
      bench->apply(vx.data(), y.data());
      return bench.values(y);
    };
    expect_same(level, image(expected), image(actual), 1e-13 * (level.equation.order + 1), engine->description());
  }
}

/// Kernels that are handed other coefficients are those of a level that had them from the first, to the last bit.
TEST_P(VaryingKernels, TakeOtherCoefficients) {
  Level level = varying_level(GetParam());
  const auto first = level.coefficients.by_cell;
  CellCoefficients others = *first;
  std::reverse(others.viscosity.begin(), others.viscosity.end());
  std::reverse(others.reaction.begin(), others.reaction.end());
  const Values x = test::random_vector(level, 2);
  const Values b = test::random_vector(level, 3);
  const auto results = [&](Bench<double>& bench) {
    const auto vx = bench.vector(x);
    const auto vb = bench.vector(b);
    auto image = bench.output();
    auto smoothed = bench.output();
    bench->apply(vx.data(), image.data());
    bench->smooth(0, vb.data(), vx.data(), smoothed.data());
    return Results{bench.values(image), bench.values(smoothed)};
  };
  for (const auto& choice : test::engines()) {
    if (!test::has_order_of(choice.get(), level)) continue;
    level.coefficients.by_cell = first;
    Bench<double> replaced(choice.get(), level, LocalSolverKind::direct);
    replaced->prepare_smoother(false);
    const Results before = results(replaced);
    Coefficients coefficients = level.coefficients;
    coefficients.by_cell = std::make_shared<const CellCoefficients>(others);
    level.set_coefficients(coefficients);
    const auto old = replaced->use_tables(replaced->make_tables());
    Bench<double> made(choice.get(), level, LocalSolverKind::direct);
    EXPECT_EQ(results(replaced), results(made)) << choice.name;
    replaced->use_tables(old);
    EXPECT_EQ(results(replaced), before) << choice.name;
  }
}

/// The viscosity at points: random over a decade in each cell.
TEST_P(VaryingKernels, ApplyTheOperatorOfPoints) {
  for (const bool boundary_hats : {false, true}) {
    if (boundary_hats && GetParam().order > 1) continue;  // the oracle makes new matrices for every cell and face
    test::expect_operator_of_points(test::with_points(varying_level(GetParam(), boundary_hats)), boundary_hats);
  }
}

/// Where it is constant in cells it is that of the means.
TEST_P(VaryingKernels, ThatIsConstantInCellsIsThatOfTheMeans) {
  if (GetParam().reaction) GTEST_SKIP();
  test::expect_operator_of_means(test::with_points(varying_level(GetParam()), 1.0));
}

INSTANTIATE_TEST_SUITE_P(Meshes, VaryingKernels, testing::ValuesIn(varying_cases()),
                         [](const auto& test) { return to_string(test.param); });

// Known flows --------------------------------------------------------------------------------------------------------

SolverOptions on_cpu(double rtol = 1e-12) {
  SolverOptions options = test::on_cpu(rtol);
  options.max_iterations = 200;
  return options;
}

/// A viscosity that differs from cell to cell.
ScalarField patchwork(const Mesh& mesh, double contrast) {
  std::mt19937_64 generator(3);
  std::uniform_real_distribution<double> uniform(0.0, std::log(contrast));
  return test::each_cell(mesh, [&] { return std::exp(uniform(generator)); });
}

using Function = std::function<double(const Point&)>;

double sum_of(const std::optional<double>& a, const std::optional<double>& b) { return a.value() + b.value(); }

/// Nothing is sheared, whatever the viscosity: exact in the stress form, in no other.
TEST(VaryingViscosity, LeavesARigidRotationAlone) {
  for (const int dim : {2, 3}) {
    for (const int order : {1, 2, 3}) {
      if (!test::has_order(dim, order) || (dim == 3 && order == 3)) continue;
      Problem problem{.mesh = Mesh::unit(dim, dim == 2 ? 3 : 2), .order = order};
      problem.varying_viscosity = patchwork(problem.mesh, 10.0);
      const VectorField rotation{ScalarField([](const Point& x) { return x[2] - x[1]; }),
                                 ScalarField([](const Point& x) { return x[0] - 2.0 * x[2]; }),
                                 ScalarField([](const Point& x) { return 2.0 * x[1] - x[0]; })};
      const VectorField in_plane{ScalarField([](const Point& x) { return -x[1]; }),
                                 ScalarField([](const Point& x) { return x[0]; })};
      const VectorField& velocity = dim == 2 ? in_plane : rotation;
      for (int side = 0; side < 2 * dim; ++side) problem.boundary.sides[side].data = velocity;
      SolverOptions options = on_cpu();
      options.exact.velocity = velocity;
      options.exact.pressure = ScalarField(0.0);
      const Report stress = solve(problem, options).report;
      EXPECT_TRUE(stress.converged) << dim << "D, k = " << order << ": " << stress.reason;
      EXPECT_LE(sum_of(stress.errors.velocity, stress.errors.pressure), 1e-9) << dim << "D, k = " << order;
      problem.form = ViscousForm::gradient;
      EXPECT_GE(sum_of(solve(problem, options).report.errors.velocity, {0.0}), 1e-4) << dim << "D, k = " << order;
    }
  }
}

/// Layers of other viscosities between walls, of which one moves: the shear stress is the same in all of them.
TEST(VaryingViscosity, HasLayeredCouetteFlow) {
  constexpr std::array nu{1.0, 50.0, 0.2, 8.0};
  double compliance = 0.0;
  for (const double value : nu) compliance += 0.25 / value;
  const auto profile = [=](double y) {
    double u = 0.0;
    for (int layer = 0; layer < 4; ++layer) u += std::clamp(y - 0.25 * layer, 0.0, 0.25) / nu[layer];
    return u / compliance;
  };
  for (const int dim : {2, 3}) {
    for (const int order : {0, 1, 2}) {
      if (!test::has_order(dim, order) || (dim == 3 && order == 2)) continue;
      for (const ViscousForm form : {ViscousForm::gradient, ViscousForm::stress}) {
        if (order == 0 && form == ViscousForm::stress) continue;
        Problem problem{.mesh = Mesh::unit(dim, 3), .order = order};
        problem.varying_viscosity =
            ScalarField([=](const Point& x) { return nu.at(static_cast<std::size_t>(std::min(4.0 * x[1], 3.5))); });
        problem.form = form;
        problem.boundary = test::periodic(dim == 2 ? std::vector{0} : std::vector{0, 2});
        problem.boundary.sides[3].data[0] = 1.0;
        SolverOptions options = on_cpu();
        const VectorField velocity{ScalarField([=](const Point& x) { return profile(x[1]); })};
        options.exact.velocity = velocity;
        options.exact.pressure = ScalarField(0.0);
        const Report report = solve(problem, options).report;
        const std::string what = fmt::format("{}D, k = {}, {}", dim, order, static_cast<int>(form));
        EXPECT_TRUE(report.converged) << what << ": " << report.reason;
        if (order == 0) continue;  // a mean over cells is no exact profile
        EXPECT_LE(sum_of(report.errors.velocity, report.errors.pressure), 1e-9) << what;
      }
    }
  }
}

/// SolCx: viscosity 1 and c on either side of x = 1/2, slip sides, f = (0, sin(pi y) cos(pi x)). With u = U(x) cos(pi
/// y) and v = -U'(x) / pi sin(pi y) on each side U is a sum of exp(+-pi x), x exp(+-pi x) and -sin(pi x) / (4 pi^2 nu);
/// velocities and stresses are continuous.
class SolCx {
 public:
  explicit SolCx(double contrast) : nu_{1.0, contrast} {
    Eigen::Matrix<double, 8, 8> a = Eigen::Matrix<double, 8, 8>::Zero();
    Eigen::Matrix<double, 8, 1> b = Eigen::Matrix<double, 8, 1>::Zero();
    int row = 0;
    // factor times derivative d at x on a side
    const auto add = [&](int side, double x, int d, double factor) {
      for (int i = 0; i < 4; ++i) a(row, 4 * side + i) += factor * homogeneous(i, x, d);
      b(row) -= factor * particular(side, x, d);
    };
    const auto next = [&] {  // rows of one size
      const double size = a.row(row).cwiseAbs().maxCoeff();
      a.row(row) /= size;
      b(row++) /= size;
    };
    for (int side = 0; side < 2; ++side) {
      for (const int d : {0, 2}) {
        add(side, side, d, 1.0);
        next();
      }
    }
    for (const int d : {0, 1}) {
      for (int side = 0; side < 2; ++side) add(side, 0.5, d, sign(side));
      next();
    }
    for (int side = 0; side < 2; ++side) {  // shear stress
      add(side, 0.5, 0, sign(side) * nu_[side] * pi * pi);
      add(side, 0.5, 2, sign(side) * nu_[side]);
    }
    next();
    for (int side = 0; side < 2; ++side) {  // normal stress
      add(side, 0.5, 1, sign(side) * nu_[side] * 3.0);
      add(side, 0.5, 3, -sign(side) * nu_[side] / (pi * pi));
    }
    next();
    coefficients_ = a.fullPivLu().solve(b);
  }

  [[nodiscard]] VectorField velocity() const {
    return {ScalarField([*this](const Point& x) { return of(x[0], 0) * std::cos(pi * x[1]); }),
            ScalarField([*this](const Point& x) { return -of(x[0], 1) / pi * std::sin(pi * x[1]); })};
  }
  [[nodiscard]] ScalarField pressure() const {
    return ScalarField([*this](const Point& x) {
      const double nu = nu_[side_of(x[0])];
      const double p = nu / (pi * pi) * (of(x[0], 3) - pi * pi * of(x[0], 1)) - std::cos(pi * x[0]) / pi;
      return p * std::cos(pi * x[1]);
    });
  }
  [[nodiscard]] Problem problem(int order, int refine) const {
    Problem problem{.mesh = Mesh::unit(2, refine), .order = order};
    problem.varying_viscosity = ScalarField([nu = nu_](const Point& x) { return nu[side_of(x[0])]; });
    problem.force[1] = ScalarField([](const Point& x) { return std::sin(pi * x[1]) * std::cos(pi * x[0]); });
    problem.boundary =
        test::sides({{0, SideKind::slip}, {1, SideKind::slip}, {2, SideKind::slip}, {3, SideKind::slip}});
    return problem;
  }

 private:
  static int side_of(double x) { return x < 0.5 ? 0 : 1; }
  static double sign(int side) { return side == 0 ? 1.0 : -1.0; }
  static double homogeneous(int i, double x, int d) {
    const double k = i % 2 == 0 ? pi : -pi;
    if (i < 2) return std::pow(k, d) * std::exp(k * x);
    return (x * std::pow(k, d) + d * std::pow(k, d - 1)) * std::exp(k * x);
  }
  [[nodiscard]] double particular(int side, double x, int d) const {
    return -std::pow(pi, d) * std::sin(pi * x + 0.5 * pi * d) / (4.0 * pi * pi * nu_[side]);
  }
  [[nodiscard]] double of(double x, int d) const {
    const int side = side_of(x);
    double sum = particular(side, x, d);
    for (int i = 0; i < 4; ++i) sum += coefficients_[4 * side + i] * homogeneous(i, x, d);
    return sum;
  }

  std::array<double, 2> nu_;
  Eigen::Matrix<double, 8, 1> coefficients_;
};

/// The L2 norm of a field over the unit square by the midpoint rule, without its mean.
double norm_of(const ScalarField& field, bool without_mean = false) {
  constexpr int count = 400;
  double sum = 0.0;
  double square = 0.0;
  for (int j = 0; j < count; ++j) {
    for (int i = 0; i < count; ++i) {
      const double value = field({(i + 0.5) / count, (j + 0.5) / count, 0.0});
      sum += value;
      square += value * value;
    }
  }
  constexpr double points = 1.0 * count * count;
  return std::sqrt(square / points - (without_mean ? std::pow(sum / points, 2) : 0.0));
}

struct Relative {
  double velocity;
  double pressure;
  int iterations;
};
Relative errors_of(const SolCx& known, int order, int refine, std::optional<ViscousForm> form = {}) {
  Problem problem = known.problem(order, refine);
  problem.form = form;
  SolverOptions options = on_cpu(1e-10);
  options.exact.velocity = known.velocity();
  options.exact.pressure = known.pressure();
  const Report report = solve(problem, options).report;
  EXPECT_TRUE(report.converged) << report.reason;
  const double velocity = std::hypot(norm_of(known.velocity()[0]), norm_of(known.velocity()[1]));
  return {report.errors.velocity.value() / velocity, report.errors.pressure.value() / norm_of(known.pressure(), true),
          report.iterations};
}

/// The figures of an independent implementation.
TEST(VaryingViscosity, HasTheErrorsOfSolCx) {
  const SolCx known(1e6);
  struct Expected {
    int order;
    int refine;
    double velocity;
    double pressure;
  };
  for (const auto& [order, refine, velocity, pressure] :
       {Expected{1, 5, 9.9e-3, 1.5e-3}, Expected{2, 5, 1.1e-4, 4.7e-5}, Expected{3, 4, 1.7e-5, 2.1e-6}}) {
    if (!test::has_order(2, order)) continue;
    const Relative errors = errors_of(known, order, refine);
    fmt::print("SolCx, 1e6, k = {}, n = {}: u {:.4e}, p {:.4e}, {} iterations\n", order, 1 << refine, errors.velocity,
               errors.pressure, errors.iterations);
    EXPECT_NEAR(errors.velocity, velocity, 0.02 * velocity) << "k = " << order;
    EXPECT_NEAR(errors.pressure, pressure, 0.02 * pressure) << "k = " << order;
    const double rate = std::log2(errors_of(known, order, refine - 1).velocity / errors.velocity);
    EXPECT_NEAR(rate, order + 1.0, 0.25) << "k = " << order;
  }
  if (test::has_order(2, 4)) {  // that one has no figures of it
    const double rate = std::log2(errors_of(known, 4, 3).velocity / errors_of(known, 4, 4).velocity);
    EXPECT_NEAR(rate, 5.0, 0.25);
  }
  if (!test::has_order(2, 2)) return;
  EXPECT_GT(errors_of(SolCx(10.0), 2, 4, ViscousForm::gradient).velocity, 0.1);
}

// Convergence --------------------------------------------------------------------------------------------------------

/// Iterations to 1e-8 with walls on all sides.
int iterations_of(Problem problem, Precision precision = Precision::full_double) {
  SolverOptions options = on_cpu(1e-8);
  options.precision = precision;
  const Report report = solve(problem, options).report;
  EXPECT_TRUE(report.converged) << report.reason;
  return report.iterations;
}

/// A jump on faces, exp(x), a disc that is stiff or weak: figures of an independent implementation and a tenth. (That
/// of discs is of other discs.)
TEST(VaryingViscosity, TakesFewIterations) {
  const auto is_inside = [](const Point& x) { return std::hypot(x[0] - 0.5, x[1] - 0.5) < 0.2; };
  struct Expected {
    int order;
    double contrast;
    int jump;
    int exponential;
    int stiff;
    int weak;
  };
  for (const auto& [order, contrast, jump, exponential, stiff, weak] :
       {Expected{1, 1e2, 15, 14, 35, 23}, Expected{1, 1e6, 15, 16, 69, 20}, Expected{2, 1e2, 7, 9, 34, 19},
        Expected{2, 1e6, 7, 15, 67, 18}, Expected{3, 1e4, 6, 14, 52, 22}}) {
    if (!test::has_order(2, order)) continue;
    const auto take = [&, order = order](const Function& viscosity, int most, const char* what) {
      Problem problem{.mesh = Mesh::unit(2, 5), .order = order};
      problem.varying_viscosity = ScalarField(viscosity);
      problem.force[1] =
          ScalarField(std::string_view(what) == "jump" || std::string_view(what) == "exp"
                          ? Function([](const Point& x) { return std::sin(pi * x[1]) * std::cos(pi * x[0]); })
                          : Function([=](const Point& x) { return is_inside(x) ? -1.0 : 0.0; }));
      EXPECT_LE(iterations_of(problem), most) << what << ", k = " << order << ", contrast " << contrast;
      // Rigid motions of a stiff disc are hardly told from deformations in single precision.
      EXPECT_LE(iterations_of(problem, Precision::mixed), 1.3 * most + 1.0) << what << ", mixed, k = " << order;
    };
    const double c = contrast;
    take([=](const Point& x) { return x[0] < 0.5 ? 1.0 : c; }, jump, "jump");
    take([=](const Point& x) { return std::pow(c, x[0]); }, exponential, "exp");
    take([=](const Point& x) { return is_inside(x) ? c : 1.0; }, stiff, "stiff disc");
    take([=](const Point& x) { return is_inside(x) ? 1.0 / c : 1.0; }, weak, "weak disc");
  }
}

/// Random viscosities and reactions, in 2D and 3D, with walls and a side that is open.
TEST(VaryingViscosity, IsTheSameOnAllEngines) {
  for (const int dim : {2, 3}) {
    for (const int order : {1, 2}) {
      if (!test::has_order(dim, order)) continue;
      for (const bool reaction : {false, true}) {
        const int refine = dim == 2 ? 5 : order == 1 ? 3 : 2;
        Problem problem{.mesh = Mesh::unit(dim, refine), .order = order};
        problem.boundary = test::sides({{1, SideKind::outflow}, {2, SideKind::slip}});
        problem.varying_viscosity =
            ScalarField([](const Point& x) { return std::exp(3.0 * std::sin(5.0 * x[0] * x[1])); });
        if (reaction)
          problem.varying_mass = ScalarField([](const Point& x) { return x[1] < 0.5 ? 0.0 : 200.0 * x[0]; });
        problem.force[1] = ScalarField([](const Point& x) { return std::sin(pi * x[1]) * std::cos(pi * x[0]); });
        for (const Precision precision : {Precision::full_double, Precision::mixed}) {
          SolverOptions options = on_cpu(1e-9);
          options.precision = precision;
          const std::string what = fmt::format("{}D, k = {}{}{}", dim, order, reaction ? ", reaction" : "",
                                               precision == Precision::mixed ? ", mixed" : "");
          const auto [on_the_cpu, expected] = solve(problem, options);
          EXPECT_TRUE(expected.converged) << what << ": " << expected.reason;
          EXPECT_LE(on_the_cpu.divergence_max(), 1e-8) << what;
          for (const auto& choice : test::engines()) {
            if (choice.device == DeviceChoice::cpu) continue;
            options.device = choice.device;
            const auto [solution, report] = solve(problem, options);
            EXPECT_TRUE(report.converged) << what << " on " << choice.name << ": " << report.reason;
            // Fewer where the coarsest level is larger.
            EXPECT_LE(report.iterations, expected.iterations + (precision == Precision::mixed ? 1 : 0))
                << what << " on " << choice.name;
            EXPECT_LE(solution.divergence_max(), 1e-8) << what << " on " << choice.name;
          }
        }
      }
    }
  }
}

/// The stress form at outflow sides, where the viscosity is largest.
TEST(VaryingViscosity, TakesFewIterationsAtOutflow) {
  for (const int dim : {2, 3}) {
    for (const int order : {1, 2, 3}) {
      if (!test::has_order(dim, order) || (dim == 3 && order == 3)) continue;
      for (const int open_sides : {1, 2}) {
        Problem problem{.mesh = Mesh::unit(dim, dim == 2 ? 4 : 3), .order = order};
        problem.varying_viscosity = ScalarField::expression("exp(5*x*y)", dim);
        problem.force = {ScalarField::expression("sin(5*y)", dim), ScalarField::expression("x", dim), 0.0};
        for (int a = 0; a < open_sides; ++a) problem.boundary.sides[2 * a + 1].kind = SideKind::outflow;
        const Result result = solve(problem, on_cpu(1e-8));
        EXPECT_TRUE(result.report.converged);
        EXPECT_LE(result.report.iterations, 17) << dim << "D, k = " << order << ", " << open_sides;
      }
    }
  }
}

/// Seven boxes are coarsened to themselves, which no vertex patch covers, before anything is inverted.
TEST(VaryingViscosity, CoarsestLevelsAreSmallWhereTheyCanBe) {
  if (!test::has_order(3, 2)) GTEST_SKIP() << "order 2 is not in this build";
  Problem problem{.mesh = Mesh::unit(3, 2), .order = 2};
  problem.mesh.cells = {2, 2, 2};
  problem.mesh.holes.push_back({{0, 0, 0}, {1, 1, 1}});
  Problem sheared = problem;
  problem.varying_viscosity = ScalarField::expression("1 + x", 3);
  sheared.mesh.edges = {Point{1, 0, 0}, Point{0.5, 0.9, 0}, Point{0.3, 0.2, 0.9}};
  for (const Problem& each : {problem, sheared}) {
    const Hierarchy hierarchy(each, {});
    EXPECT_EQ(hierarchy.coarse, CoarseSolve::dense);
    EXPECT_EQ(hierarchy.levels.front()->grid.layout().cells().size(), 7U);
  }
}

/// GMRES with the smoother and a marker-and-cell scheme takes the place of a dense inverse: meshes of many coarse
/// boxes.
TEST(VaryingViscosity, SolvesLargeCoarsestLevels) {
  const struct {
    int dim;
    int order;
    std::array<int, 3> cells;
    int refine;
    const char* viscosity;
    int most;
  } cases[] = {
      {2, 3, {19, 17, 1}, 0, "exp(6*x*y)", 5},
      {2, 1, {41, 43, 1}, 1, "x+y < 1 ? 1 : 100", 32},
      {3, 2, {5, 5, 5}, 1, "exp(4*x*y)", 11},
  };
  for (const auto& [dim, order, cells, refine, viscosity, most] : cases) {
    if (!test::has_order(dim, order)) continue;
    Problem problem{.mesh = Mesh::unit(dim, refine), .order = order};
    problem.mesh.cells = cells;
    problem.varying_viscosity = ScalarField::expression(viscosity, dim);
    problem.force = {ScalarField::expression("sin(5*y)", dim), ScalarField::expression("x", dim), 0.0};
    problem.boundary.sides[1].kind = SideKind::outflow;
    for (const Precision precision : {Precision::full_double, Precision::mixed}) {
      if (dim == 3 && precision == Precision::full_double) continue;  // takes long
      SolverOptions options = on_cpu(1e-8);
      options.precision = precision;
      const Result result = solve(problem, options);
      EXPECT_TRUE(result.report.converged);
      EXPECT_LE(result.report.iterations, most) << order;
    }
    SolverOptions left = on_cpu(1e-8);
    left.side = PreconditionerSide::left;
    EXPECT_THROW((void)solve(problem, left), InputError) << "the coarsest level is small";
  }
}

/// A mass term that jumps by orders of magnitude does not take many more.
TEST(VaryingMass, TakesFewIterations) {
  if (!test::has_order(2, 1)) GTEST_SKIP();
  for (const double alpha_h2 : {0.1, 10.0, 1000.0}) {
    Problem problem{.mesh = Mesh::unit(2, 5), .order = 1};
    problem.varying_mass = ScalarField([=](const Point& x) { return x[0] < 0.5 ? 0.0 : alpha_h2 * 1024.0; });
    problem.force[1] = ScalarField([](const Point& x) { return std::sin(pi * x[1]) * std::cos(pi * x[0]); });
    EXPECT_EQ(form_of(problem), ViscousForm::gradient);
    EXPECT_LE(iterations_of(problem), 16) << alpha_h2;
  }
}

// What is refused ----------------------------------------------------------------------------------------------------

void expect_refused(const Problem& problem, const std::string& what, SolverOptions options = on_cpu()) {
  try {
    solve(problem, options);
    FAIL() << "expected: " << what;
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
  }
}

TEST(VaryingViscosity, RefusesWhatIsNotThere) {
  if (!test::has_order(2, 1)) GTEST_SKIP();
  Problem problem{.mesh = Mesh::unit(2, 2), .order = 1};
  problem.varying_viscosity = ScalarField([](const Point& x) { return 0.3 - x[0]; });
  expect_refused(problem, "must be positive everywhere");
  problem.varying_viscosity = ScalarField([](const Point& x) { return 1.0 / (x[0] < 0.5 ? 0.0 : 1.0); });
  expect_refused(problem, "must be finite");
  problem.varying_viscosity = ScalarField([](const Point& x) { return 1.0 + x[0]; });
  SolverOptions options = on_cpu();
  options.method = Method::fmg;
  expect_refused(problem, "not with full multigrid", options);
  Problem other = problem;
  other.varying_mass = ScalarField([](const Point& x) { return x[0] - 0.5; });
  expect_refused(other, "mass: must be zero or positive everywhere");
  other = problem;
  other.viscosity_cap = {2.0, 1.0};
  expect_refused(other, "viscosity_cap");
  if (test::has_order(2, 0)) {
    other = problem;
    other.order = 0;
    expect_refused(other, "needs an order of at least 1");
  }
  other = problem;
  for (Side& side : other.boundary.sides) side.kind = SideKind::outflow;
  expect_refused(other, "nothing holds rotations");
  other.form = ViscousForm::gradient;
  EXPECT_NO_THROW(solve(other, on_cpu(1e-4)));
}

TEST(Cellwise, ChecksTheSizeOfArrays) {
  Mesh mesh = Mesh::unit(2, 2);
  mesh.cells = {3, 2, 1};
  for (const std::array<std::int64_t, 3>& extent : {std::array<std::int64_t, 3>{3, 2, 1}, {6, 4, 1}, {12, 8, 1}}) {
    std::vector<double> values(extent[0] * extent[1]);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1.0 + static_cast<double>(i);
    const ScalarField field = cellwise(mesh, extent, values);
    EXPECT_EQ(field({0.01, 0.01, 0.0}), 1.0);
    EXPECT_EQ(field({0.99, 0.01, 0.0}), static_cast<double>(extent[0]));
    EXPECT_EQ(field({0.01, 0.99, 0.0}), static_cast<double>(1 + extent[0] * (extent[1] - 1)));
  }
  EXPECT_THROW(cellwise(mesh, {4, 2, 1}, std::vector<double>(8)), InputError);
  EXPECT_THROW(cellwise(mesh, {24, 16, 1}, std::vector<double>(384)), InputError);
  EXPECT_THROW(cellwise(mesh, {3, 2, 1}, std::vector<double>(7)), InputError);
}

/// Regions, of which later ones hold, are the same as a field with their values; a cap limits them.
TEST(VaryingViscosity, KnowsRegionsAndCaps) {
  Problem problem{.mesh = Mesh::unit(2, 2), .order = 1};
  problem.viscosity = 3.0;
  problem.regions.push_back(
      {.inside = ScalarField([](const Point& x) { return x[0] < 0.5 ? 1.0 : 0.0; }), .viscosity = ScalarField(1e4)});
  problem.regions.push_back({.inside = ScalarField([](const Point& x) { return x[1] < 0.25 ? 1.0 : 0.0; }),
                             .viscosity = ScalarField(0.1),
                             .mass = ScalarField(2.0)});
  problem.viscosity_cap = {1.0, 100.0};
  const Grid grid(problem.mesh, problem.boundary);
  const auto by_cell = coefficients_of(problem, grid).by_cell;
  for (const Record cell : grid.layout().cells()) {
    const Point x = grid.corner(cell);
    EXPECT_EQ(by_cell->viscosity[cell], x[1] < 0.25 ? 1.0 : x[0] < 0.5 ? 100.0 : 3.0);
    EXPECT_EQ(by_cell->reaction[cell], x[1] < 0.25 ? 2.0 : 0.0);
  }
}

}  // namespace
}  // namespace solenoid
