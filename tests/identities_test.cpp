/// \file
/// What every solve satisfies, whatever the mesh: exact incompressibility, the energy balance, pressure robustness,
/// symmetry under reflections and permutations of the axes, scaling with the viscosity, the equation itself.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "element/basis.hpp"
#include "engine/engine.hpp"
#include "flows.hpp"
#include "levels.hpp"
#include "solver/load.hpp"

namespace solenoid {
namespace {

using test::Polynomial;

constexpr double rtol = 1e-12;
constexpr double viscosity = 0.7;

struct IdentityCase {
  test::MeshCase mesh;
  int order;
  Precision precision;
};
std::string to_string(const IdentityCase& what) {
  return std::to_string(what.mesh.mesh.dim) + "d_" + what.mesh.name + "_k" + std::to_string(what.order) +
         (what.precision == Precision::mixed ? "_mixed" : "_double");
}
void PrintTo(const IdentityCase& what, std::ostream* stream) { *stream << to_string(what); }
std::string name_of(const testing::TestParamInfo<IdentityCase>& info) { return to_string(info.param); }

std::vector<IdentityCase> identity_cases() {
  std::vector<IdentityCase> cases;
  bool odd = false;
  for (const int dim : {2, 3}) {
    for (auto mesh : test::mesh_cases(dim)) {
      if (mesh.name == "long_box") continue;        // no other kind of face or patch
      if (mesh.name == "two_free_parts") continue;  // the forces here push each part
      const auto& cells = mesh.mesh.cells;          // of many in 3D solves take long
      mesh.mesh.refine = dim == 3 && cells[0] * cells[1] * cells[2] > 36 ? 0 : 1;
      odd = !odd;
      for (const int order : available_orders(dim)) {
        if (order == 3 && odd) continue;  // half of the meshes
        // Higher orders in 3D only where there is something new, and without sanitizers.
        const bool new_at_order_2 = mesh.name == "channel" || mesh.name == "periodic_x";
        if (order > (dim == 2 ? 3 : new_at_order_2 && !test::sanitized ? 2 : 1)) continue;
        cases.push_back({mesh, order, order % 2 == 0 ? Precision::mixed : Precision::full_double});
      }
    }
  }
  return cases;
}

Point centre(const Mesh& mesh) {
  Point middle{};
  for (int a = 0; a < mesh.dim; ++a) middle[a] = 0.5 * (mesh.lower[a] + mesh.upper[a]);
  return middle;
}

/// `p` with the middle of the mesh as origin.
ScalarField centred(const Polynomial& p, const Mesh& mesh) {
  return std::function<double(const Point&)>([p, middle = centre(mesh)](Point x) {
    for (int a = 0; a < 3; ++a) x[a] -= middle[a];
    return p(x);
  });
}

/// Not a gradient, and without mean on a box. The degree is such that the load is integrated exactly.
VectorField stirring(const Mesh& mesh) {
  const Polynomial x{{3.0, {0, 1, 0}}, {1.0, {1, 1, 0}}, {-2.0, {0, 0, 1}}};
  const Polynomial y{{-2.0, {1, 0, 0}}, {0.5, {2, 1, 0}}, {1.0, {1, 0, 1}}};
  const Polynomial z{{1.0, {1, 0, 0}}, {-1.0, {0, 1, 1}}, {2.0, {0, 1, 0}}};
  VectorField force{centred(x, mesh), centred(y, mesh)};
  if (mesh.dim == 3) force[2] = centred(z, mesh);
  return force;
}

Solution solved(const Problem& problem, Precision precision) {
  SolverOptions options;
  options.rtol = rtol;
  options.precision = precision;
  options.threads = 1;  // small meshes; ctest runs many at a time
  auto [solution, report] = solve(problem, options);
  EXPECT_TRUE(report.converged) << report.reason << " after " << report.iterations << " iterations, residual "
                                << report.residual_history.back();
  return solution;
}

std::vector<Point> random_points(const Mesh& mesh, int count) {
  std::mt19937 generator(7);
  std::vector<Point> points(count);
  for (Point& x : points) {
    for (int a = 0; a < mesh.dim; ++a) {
      x[a] = std::uniform_real_distribution(mesh.lower[a], mesh.upper[a])(generator);
    }
  }
  return points;
}

/// max_i |a[i] - factor b[i]| over points inside the domain.
double distance(const std::vector<Point>& a, const std::vector<Point>& b, double factor = 1.0) {
  double largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (int c = 0; c < 3; ++c) {
      if (!std::isnan(a[i][c])) largest = std::max(largest, std::abs(a[i][c] - factor * b[i][c]));
    }
  }
  return largest;
}
/// The same for pressures after removing the mean of the difference, if asked to.
double distance(const std::vector<double>& a, const std::vector<double>& b, bool up_to_constant) {
  double mean = 0.0;
  int count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!std::isnan(a[i])) mean += a[i] - b[i], ++count;
  }
  mean = up_to_constant ? mean / count : 0.0;
  double largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!std::isnan(a[i])) largest = std::max(largest, std::abs(a[i] - b[i] - mean));
  }
  return largest;
}

/// Integrals over cells and faces by Gauss quadrature, from values and gradients in the cells alone.
class Integrals {
 public:
  explicit Integrals(const Solution& solution)
      : solution_(solution), grid_(solution.grid()), dim_(grid_.dim()), rule_(gauss(solution.problem().order + 2)) {}

  /// a(u, u): the Laplacian with its interior-penalty terms, and the mass term.
  double energy() {
    const Problem& problem = solution_.problem();
    double sum = 0.0;
    for (const Record cell : grid_.layout().owned_cells()) {
      const Trace volume = trace(cell, -1, 0.0);
      for (std::size_t q = 0; q < volume.weights.size(); ++q) {
        double density = 0.0;
        for (int c = 0; c < dim_; ++c) {
          density += problem.mass * volume.u[q * dim_ + c] * volume.u[q * dim_ + c];
          for (int a = 0; a < dim_; ++a) density += problem.viscosity * std::pow(volume.slope(q, c, a, dim_), 2);
        }
        sum += volume.weights[q] * density;
      }
      for (int side = 0; side < 2 * dim_; ++side) sum += problem.viscosity * face_energy(cell, side);
    }
    return sum;
  }

  /// (f, u)
  double power(const VectorField& force) {
    double sum = 0.0;
    for (const Record cell : grid_.layout().owned_cells()) {
      const Trace volume = trace(cell, -1, 0.0);
      for (std::size_t q = 0; q < volume.weights.size(); ++q) {
        for (int c = 0; c < dim_; ++c) sum += volume.weights[q] * force[c](volume.points[q]) * volume.u[q * dim_ + c];
      }
    }
    return sum;
  }

 private:
  struct Trace {
    std::vector<Point> points;
    std::vector<double> weights;
    std::vector<double> u;
    std::vector<double> gradient;
    [[nodiscard]] double slope(std::size_t q, int c, int a, int dim) const { return gradient[(q * dim + c) * dim + a]; }
  };

  /// The cell, or its section x_normal = at in reference coordinates.
  Trace trace(Record cell, int normal, double at) {
    std::array<std::vector<double>, 3> xi{};
    Trace result;
    result.points = {grid_.corner(cell)};
    result.weights = {1.0};
    for (int a = 0; a < 3; ++a) {
      const bool section = a == normal || a >= dim_;
      xi[a] = section ? std::vector<double>{at} : rule_.points;
      const double h = a < dim_ ? grid_.widths(cell)[a] : 0.0;
      std::vector<Point> points;
      std::vector<double> weights;
      for (std::size_t i = 0; i < xi[a].size(); ++i) {
        for (std::size_t j = 0; j < result.points.size(); ++j) {
          points.push_back(result.points[j]);
          points.back()[a] += h * xi[a][i];
          weights.push_back(result.weights[j] * (section ? 1.0 : h * rule_.weights[i]));
        }
      }
      result.points = std::move(points);
      result.weights = std::move(weights);
    }
    std::vector<double> pressure;
    solution_.evaluate_cell(cell, xi, result.u, pressure);
    solution_.evaluate_cell_gradient(cell, xi, result.gradient);
    return result;
  }

  /// gamma [u]^2 - 2 {du/dn} [u] on the upper faces between cells, 2 gamma u^2 - 2 du/dn u where velocity is given.
  double face_energy(Record cell, int side) {
    const int a = side / 2;
    const Face face = grid_.face(cell, side);
    if (face != Face::velocity && (face != Face::interior || side % 2 == 0)) return 0.0;
    const int k = solution_.problem().order;
    const double gamma = (k == 0 ? 1.0 : (k + 1.0) * (k + 2.0)) / grid_.widths(cell)[a];
    const Trace inner = trace(cell, a, side % 2);
    const Trace outer = face == Face::interior ? trace(grid_.neighbour(cell, side), a, 0.0) : Trace();
    double sum = 0.0;
    for (std::size_t q = 0; q < inner.weights.size(); ++q) {
      for (int c = 0; c < dim_; ++c) {
        if (c == a) continue;
        double jump = inner.u[q * dim_ + c];
        double slope = (side % 2 == 0 ? -1.0 : 1.0) * inner.slope(q, c, a, dim_);
        double weight = 2.0 * gamma;
        if (face == Face::interior) {
          jump -= outer.u[q * dim_ + c];
          slope = 0.5 * (slope + outer.slope(q, c, a, dim_));
          weight = gamma;
        }
        sum += inner.weights[q] * (weight * jump * jump - 2.0 * slope * jump);
      }
    }
    return sum;
  }

  const Solution& solution_;
  const Grid& grid_;
  int dim_;
  Quadrature rule_;
};

class Identity : public testing::TestWithParam<IdentityCase> {
 protected:
  [[nodiscard]] Problem problem() const {
    const auto& [mesh, order, precision] = GetParam();
    return {.mesh = mesh.mesh,
            .order = order,
            .viscosity = viscosity,
            .mass = mesh.mass,
            .force = stirring(mesh.mesh),
            .boundary = mesh.boundary};
  }
  [[nodiscard]] Solution solved(const Problem& problem) const {
    return solenoid::solved(problem, GetParam().precision);
  }
  [[nodiscard]] bool has_outflow() const {
    const auto all = conditions(problem());
    return std::any_of(all.begin(), all.end(), [](const Side& side) { return side.kind == SideKind::outflow; });
  }
};
INSTANTIATE_TEST_SUITE_P(Meshes, Identity, testing::ValuesIn(identity_cases()), name_of);

TEST_P(Identity, EquationDivergenceAndEnergy) {
  const Problem problem = this->problem();
  const Solution solution = solved(problem);
  EXPECT_LE(solution.divergence_max(), 1e-11);

  // The reference engine's operator, on all that the solution stores.
  const auto& [mesh, order, precision] = GetParam();
  const Level level = mesh.level(order, {}, true);
  const auto engine = make_reference_engine();
  const auto kernels = engine->kernels_double(level, LocalSolverKind::direct);
  const HostVector load = assemble_load(problem, level);
  std::vector<double> image(load.size());
  kernels->apply(solution.coefficients().data(), image.data());
  double residual = 0.0;
  double norm = 0.0;
  for (std::size_t i = 0; i < load.size(); ++i) {
    residual += std::pow(load[i] - image[i], 2);
    norm += std::pow(load[i], 2);
  }
  EXPECT_LE(std::sqrt(residual / norm), 2.0 * rtol);

  Integrals integrals(solution);
  const double energy = integrals.energy();
  EXPECT_NEAR(energy, integrals.power(problem.force), 1e-9 * energy);
}

TEST_P(Identity, GradientForcesOnlyChangeThePressure) {
  Problem problem = this->problem();
  const std::vector<int> hole_conditions = hole_sides(problem.mesh, problem.boundary);
  if (std::any_of(hole_conditions.begin(), hole_conditions.end(),
                  [&](int i) { return hole_side(problem.boundary, i).kind == SideKind::outflow; })) {
    GTEST_SKIP() << "the traction that balances phi depends on which side of a hole it acts on";
  }
  const Solution solution = solved(problem);
  // phi continues across periodic sides.
  const Mesh& mesh = problem.mesh;
  std::array<Polynomial, 3> factors;
  for (int a = 0; a < mesh.dim; ++a) {
    const bool periodic = problem.boundary.sides[2 * a].kind == SideKind::periodic;
    std::array<int, 3> linear{};
    std::array<int, 3> square{};
    linear[a] = 1;
    square[a] = 2;
    factors[a] = {{1.0, {}}, {periodic ? 0.0 : 1.0, linear}, {1.5, square}};
  }
  const auto product = [&mesh](const std::array<Polynomial, 3>& f) {
    return std::function<double(const Point&)>([f, dim = mesh.dim, middle = centre(mesh)](Point x) {
      for (int a = 0; a < 3; ++a) x[a] -= middle[a];
      return f[0](x) * f[1](x) * (dim == 3 ? f[2](x) : 1.0);
    });
  };
  const auto phi = product(factors);
  for (int c = 0; c < mesh.dim; ++c) {
    auto derived = factors;
    derived[c] = factors[c].derivative(c);
    problem.force[c] = std::function<double(const Point&)>(
        [f = problem.force[c], gradient = product(derived)](const Point& x) { return f(x) + gradient(x); });
  }
  const auto balance = [&](int side, Side& outflow) {
    if (outflow.kind != SideKind::outflow) return;
    outflow.data[side / 2] = std::function<double(const Point&)>(
        [phi, sign = side % 2 == 0 ? 1.0 : -1.0](const Point& x) { return sign * phi(x); });
  };
  for (int side = 0; side < 2 * mesh.dim; ++side) balance(side, problem.boundary.sides[side]);
  for (SideRegion& region : problem.boundary.regions) balance(region.side, region.condition);
  const Solution pushed = solved(problem);
  const auto points = random_points(mesh, 200);
  EXPECT_LE(distance(pushed.velocity(points), solution.velocity(points)), 1e-8 * solution.max_speed());
}

TEST_P(Identity, DoublingTheViscosityHalvesTheVelocity) {
  Problem problem = this->problem();
  const Solution solution = solved(problem);
  problem.viscosity *= 2.0;
  problem.mass *= 2.0;
  const Solution slow = solved(problem);
  const auto points = random_points(problem.mesh, 200);
  EXPECT_LE(distance(solution.velocity(points), slow.velocity(points), 2.0), 1e-9 * solution.max_speed());
  const auto pressure = solution.pressure(points);
  const double size = distance(pressure, std::vector<double>(pressure.size()), false);
  EXPECT_LE(distance(pressure, slow.pressure(points), !has_outflow()), 1e-9 * (1.0 + size));
}

/// New direction a is direction `from[a]` of the original, reversed if `reversed[a]`.
struct Turn {
  std::array<int, 3> from{0, 1, 2};
  std::array<bool, 3> reversed{};

  [[nodiscard]] Point original(const Point& x, const Mesh& mesh) const {
    Point y{};
    for (int a = 0; a < mesh.dim; ++a) {
      y[from[a]] = reversed[a] ? mesh.lower[from[a]] + mesh.upper[from[a]] - x[a] : x[a];
    }
    return y;
  }
  template <class Values>
  [[nodiscard]] Values turned(const Values& values, int dim) const {
    Values result = values;
    for (int a = 0; a < dim; ++a) result[a] = values[from[a]];
    return result;
  }
  [[nodiscard]] Point turned_vector(const Point& u, int dim) const {
    Point v{};
    for (int a = 0; a < dim; ++a) v[a] = (reversed[a] ? -1.0 : 1.0) * u[from[a]];
    return v;
  }

  [[nodiscard]] Problem operator()(const Problem& problem) const {
    const Mesh& mesh = problem.mesh;
    Problem result = problem;
    result.mesh.lower = turned(mesh.lower, mesh.dim);
    result.mesh.upper = turned(mesh.upper, mesh.dim);
    result.mesh.cells = turned(mesh.cells, mesh.dim);
    for (IndexBox& hole : result.mesh.holes) {
      hole = {turned(hole.lower, mesh.dim), turned(hole.upper, mesh.dim)};
      for (int a = 0; a < mesh.dim; ++a) {
        if (!reversed[a]) continue;
        const int count = result.mesh.cells[a];
        std::tie(hole.lower[a], hole.upper[a]) = std::pair(count - hole.upper[a], count - hole.lower[a]);
      }
    }
    for (int a = 0; a < mesh.dim; ++a) {
      result.force[a] = std::function<double(const Point&)>(
          [f = problem.force[from[a]], sign = reversed[a] ? -1.0 : 1.0, turn = *this, mesh](const Point& x) {
            return sign * f(turn.original(x, mesh));
          });
      for (int upper = 0; upper < 2; ++upper) {
        const int side = 2 * from[a] + (reversed[a] ? 1 - upper : upper);
        result.boundary.sides[2 * a + upper] = problem.boundary.sides[side];
        for (std::size_t i = 0; i < problem.boundary.regions.size(); ++i) {
          if (problem.boundary.regions[i].side != side) continue;
          SideRegion& region = result.boundary.regions[i];
          region.side = 2 * a + upper;
          region.where = std::function<double(const Point&)>(
              [where = region.where, turn = *this, mesh](const Point& x) { return where(turn.original(x, mesh)); });
        }
      }
    }
    return result;
  }
};

TEST_P(Identity, TurnsWithItsAxes) {
  const Problem problem = this->problem();
  const int dim = problem.mesh.dim;
  const Solution solution = solved(problem);
  const std::vector<Turn> turns =
      dim == 2 ? std::vector<Turn>{{{0, 1, 2}, {true, false, false}}, {{1, 0, 2}, {false, true, false}}}
               : std::vector<Turn>{{{0, 1, 2}, {true, false, true}}, {{1, 2, 0}, {false, true, false}}};
  for (const Turn& turn : turns) {
    const Problem turned = turn(problem);
    const auto points = random_points(turned.mesh, 200);
    std::vector<Point> originals(points.size());
    for (std::size_t i = 0; i < points.size(); ++i) originals[i] = turn.original(points[i], problem.mesh);
    auto expected = solution.velocity(originals);
    for (Point& u : expected) u = turn.turned_vector(u, dim);
    const Solution result = solved(turned);
    EXPECT_LE(distance(expected, result.velocity(points)), 1e-9 * solution.max_speed());
    const auto pressure = solution.pressure(originals);
    EXPECT_LE(distance(pressure, result.pressure(points), !has_outflow()), 1e-9);
  }
}

}  // namespace
}  // namespace solenoid
