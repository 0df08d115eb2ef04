/// \file
/// The reference engine against mathematics: what the Stokes operator, its patches and the transfers must satisfy.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "engine/engine.hpp"
#include "levels.hpp"

namespace solenoid {
namespace {

using reference::cell_points;
using reference::face_points;
using reference::LocalField;
using reference::Points;
using reference::Table;
using test::MeshCase;

using Values = std::vector<double>;

double dot(const Values& x, const Values& y) {
  double sum = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}
double max_norm(const Values& x) {
  double largest = 0.0;
  for (const double value : x) largest = std::max(largest, std::abs(value));
  return largest;
}

std::unique_ptr<Kernels<double>> reference_kernels(const Level& level) {
  static const auto engine = make_reference_engine();
  return engine->kernels_double(level, LocalSolverKind::direct);
}
Values applied(const Level& level, const Values& x) {
  Values y(x.size());
  reference_kernels(level)->apply(x.data(), y.data());
  return y;
}
Values residual(const Level& level, const Values& b, const Values& x) {
  Values r(x.size());
  reference_kernels(level)->residual(b.data(), x.data(), r.data());
  return r;
}
void zero_pressure(const Level& level, Values& x) {
  const std::int64_t record = level.equation.record();
  const std::int64_t first = level.equation.dim * power(level.equation.n(), level.equation.dim);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (static_cast<std::int64_t>(i) / interleave % record >= first) x[i] = 0.0;
  }
}
/// The field's value at reference coordinates xi of a cell.
double evaluate(const Level& level, const LocalField& field, Record cell, const Point& xi, const Values& x) {
  const Table table = field.tabulate({xi});
  const auto numbers = field.numbers(level.grid, cell);
  double value = 0.0;
  for (std::size_t j = 0; j < numbers.size(); ++j) value += table.value(0, static_cast<long>(j)) * x[numbers[j]];
  return value;
}

struct ReferenceCase {
  MeshCase mesh;
  int order;
};
std::string to_string(const ReferenceCase& what) {
  return std::to_string(what.mesh.mesh.dim) + "d_" + what.mesh.name + "_k" + std::to_string(what.order);
}
void PrintTo(const ReferenceCase& what, std::ostream* stream) { *stream << to_string(what); }
std::string name_of(const testing::TestParamInfo<ReferenceCase>& info) { return to_string(info.param); }
std::vector<ReferenceCase> reference_cases() {
  std::vector<ReferenceCase> cases;
  for (const auto& mesh : test::mesh_cases(2)) {
    for (const int order : {0, 1, 3}) cases.push_back({mesh, order});
  }
  for (const auto& mesh : test::mesh_cases(3)) {
    for (const int order : {0, 1}) cases.push_back({mesh, order});
  }
  return cases;
}

class Reference : public testing::TestWithParam<ReferenceCase> {
 protected:
  [[nodiscard]] Level level() const { return GetParam().mesh.level(GetParam().order); }
};
INSTANTIATE_TEST_SUITE_P(Meshes, Reference, testing::ValuesIn(reference_cases()), name_of);

TEST_P(Reference, OperatorIsSymmetric) {
  const Level level = this->level();
  const Values x = test::random_vector(level, 1);
  const Values y = test::random_vector(level, 2);
  const Values ax = applied(level, x);
  EXPECT_NEAR(dot(y, ax), dot(x, applied(level, y)), 1e-13 * std::sqrt(dot(ax, ax) * dot(y, y)));
}

TEST_P(Reference, OperatorWritesUnknownsOnly) {
  const Level level = GetParam().mesh.level(GetParam().order, {}, true);
  const Values y = applied(level, test::random_vector(level, 3, true));
  const auto unknown = reference::unknowns(level);
  EXPECT_EQ(std::count(unknown.begin(), unknown.end(), true), level.dofs());
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (!unknown[i]) {
      EXPECT_EQ(y[i], 0.0) << "at " << i;
    }
  }
}

TEST_P(Reference, VelocityFormIsPositive) {
  const Level level = this->level();
  auto kernels = reference_kernels(level);
  for (int seed = 0; seed < 5; ++seed) {
    Values x = test::random_vector(level, seed);
    zero_pressure(level, x);
    kernels->project(x.data());
    EXPECT_GT(dot(x, applied(level, x)), 1e-3 * dot(x, x));
  }
}

TEST_P(Reference, ConstantsAreInTheKernelAndAreRemoved) {
  const Level level = this->level();
  auto kernels = reference_kernels(level);
  const Values x = test::random_vector(level, 4);
  Values projected = x;
  kernels->project(projected.data());
  const Values ax = applied(level, x);
  const Values difference = residual(level, ax, projected);
  EXPECT_LT(max_norm(difference), 1e-12 * max_norm(ax));
  Values again = projected;
  kernels->project(again.data());
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(again[i], projected[i], 1e-14);

  // What was removed: functions that are constant in space, on each part of the domain, if and only if the level says
  // so.
  const reference::WeakForm form(level.equation, level.coefficients, level.grid.metric().uniform_width());
  Values removed(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) removed[i] = x[i] - projected[i];
  for (int f = 0; f <= level.equation.dim; ++f) {
    const LocalField& field = form.fields()[f];
    std::map<int, double> of_part;
    for (const Record cell : level.grid.layout().cells()) {
      const double value = evaluate(level, field, cell, {0.3, 0.2, 0.4}, removed);
      const int part = level.grid.part(cell);
      if (of_part.emplace(part, value).second) {
        const bool constant = std::any_of(level.constants.begin(), level.constants.end(), [&](const Constant& c) {
          const auto& records = c.records;
          return c.field == f && (records.empty() || std::find(records.begin(), records.end(), cell) != records.end());
        });
        EXPECT_EQ(std::abs(value) > 1e-8, constant) << "field " << f << ", part " << part;
      }
      EXPECT_NEAR(evaluate(level, field, cell, {0.7, 0.1, 0.9}, removed), of_part[part], 1e-13);
    }
  }
}

TEST_P(Reference, TransfersEmbedAndAreTransposed) {
  Level fine = this->level();
  for (const Coarsening& pairs : test::coarsenings(fine.grid)) {
    fine.coarsening = pairs;
    const Level coarse(fine.equation, fine.coefficients, fine.grid.coarsen(pairs), {});
    auto kernels = reference_kernels(fine);
    const Values x = test::random_vector(coarse, 5);
    const Values y = test::random_vector(fine, 6);
    Values px(fine.size());
    kernels->prolong_add(coarse, x.data(), px.data());
    Values pty(coarse.size(), 1.0);
    kernels->restrict_to(coarse, y.data(), pty.data());
    const auto coarse_unknown = reference::unknowns(coarse);
    const auto fine_unknown = reference::unknowns(fine);
    for (std::size_t i = 0; i < pty.size(); ++i) EXPECT_TRUE(coarse_unknown[i] || pty[i] == 0.0);
    for (std::size_t i = 0; i < px.size(); ++i) EXPECT_TRUE(fine_unknown[i] || px[i] == 0.0);
    EXPECT_NEAR(dot(y, px), dot(pty, x), 1e-12 * std::sqrt(dot(y, y) * dot(px, px)));

    const reference::WeakForm fine_form(fine.equation, fine.coefficients, fine.grid.metric().uniform_width());
    const reference::WeakForm coarse_form(fine.equation, fine.coefficients, coarse.grid.metric().uniform_width());
    std::mt19937 generator(7);
    std::uniform_real_distribution<double> distribution(0.0, 1.0);
    for (const Record cell : fine.grid.layout().cells()) {
      const Point xi{distribution(generator), distribution(generator), distribution(generator)};
      auto parent = fine.grid.position(cell);
      Point coarse_xi = xi;
      for (int a = 0; a < fine.equation.dim; ++a) {
        if (!pairs.merges(a)) continue;
        coarse_xi[a] = 0.5 * (xi[a] + parent[a] % 2);
        parent[a] /= 2;
      }
      for (int f = 0; f <= fine.equation.dim; ++f) {
        EXPECT_NEAR(evaluate(fine, fine_form.fields()[f], cell, xi, px),
                    evaluate(coarse, coarse_form.fields()[f], coarse.grid.at(parent), coarse_xi, x), 1e-11)
            << "field " << f << " cell " << cell;
      }
    }
  }
}

/// With a right-hand side that lives on one patch, no other patch of its colour does anything: the local problem is the
/// exact diagonal block (galerkin), so that the residual vanishes on the patch's unknowns.
TEST_P(Reference, OnePatchIsSolvedExactly) {
  const Level level = GetParam().mesh.level(GetParam().order, {.problem = PatchProblem::galerkin});
  auto kernels = reference_kernels(level);
  const auto uniform = [](const PatchKind& kind) {
    return std::none_of(kind.begin(), kind.end(), [](const PatchEnds& ends) {
      return ends.face[0] == PatchEnds::mixed || ends.face[1] == PatchEnds::mixed;
    });
  };
  const int record = level.equation.record();
  const int pressure = level.equation.dim * power(level.equation.n(), level.equation.dim);
  const int corners = 1 << level.equation.dim;
  for (std::size_t colour = 0; colour < level.patches.colours.size(); ++colour) {
    for (const PatchRun& run : level.patches.colours[colour]) {
      // A patch that is its own neighbour across a ring of two cells is no diagonal block with these ends.
      const bool ring = [&] {
        for (int a = 0; a < level.equation.dim; ++a) {
          if (level.grid.periodic()[a] && level.grid.extent()[a] == 2) return true;
        }
        return false;
      }();
      const PatchKind& kind = level.patches.kinds[run.kind];
      if (!uniform(kind) || ring) continue;
      const auto cells = patch_cells(level.grid, level.patches.lower_cell[run.begin]);
      const Values random = test::random_vector(level, 8);
      Values b(random.size(), 0.0);
      double mean = 0.0;
      for (int bits = 0; bits < corners; ++bits) {
        for (int i = 0; i < record; ++i) b[level.index(cells[bits], i)] = random[level.index(cells[bits], i)];
        mean += b[level.index(cells[bits], pressure)] / corners;
      }
      for (int bits = 0; bits < corners; ++bits) b[level.index(cells[bits], pressure)] -= mean;
      Values x(b.size());
      kernels->smooth(static_cast<int>(colour), b.data(), nullptr, x.data());
      const Values r = residual(level, b, x);
      double largest = 0.0;
      std::int64_t solved = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        if (x[i] == 0.0) continue;
        largest = std::max(largest, std::abs(r[i]));
        ++solved;
      }
      EXPECT_LT(largest, 1e-10 * std::max(1.0, max_norm(x)));

      std::int64_t expected = std::int64_t{corners} * record;
      for (int a = 0; a < level.equation.dim; ++a) {
        const int hats = corners / 2 * power(level.equation.n(), level.equation.dim - 1);
        expected += hats * ((kind[a].hat[0] ? 1 : 0) + (kind[a].hat[1] ? 1 : 0) - 1);
      }
      EXPECT_EQ(solved, expected);
    }
  }
}

TEST_P(Reference, SmoothersAgreeWithTheirDefinition) {
  const Level level = this->level();
  auto kernels = reference_kernels(level);
  const Values b = test::random_vector(level, 9);
  const Values x = test::random_vector(level, 10);
  const Values r = residual(level, b, x);
  for (std::size_t colour = 0; colour < level.patches.colours.size(); ++colour) {
    Values y(x.size());
    Values from_residual(x.size());
    Values added = x;
    kernels->smooth(static_cast<int>(colour), b.data(), x.data(), y.data());
    kernels->smooth(static_cast<int>(colour), r.data(), nullptr, from_residual.data());
    kernels->smooth_add(static_cast<int>(colour), b.data(), x.data(), added.data(), 0.25);
    for (std::size_t i = 0; i < x.size(); ++i) {
      EXPECT_NEAR(y[i], x[i] + from_residual[i], 1e-14 * (1.0 + std::abs(from_residual[i])));
      EXPECT_NEAR(added[i], x[i] + 0.25 * from_residual[i], 1e-14 * (1.0 + std::abs(from_residual[i])));
    }
  }
}

/// A polynomial solution inside the element's space.
struct Polynomial {
  std::function<double(int c, const Point&)> velocity;
  std::function<double(int c, int a, const Point&)> gradient;  // du_c/dx_a
  std::function<double(int c, const Point&)> laplacian;
  std::function<double(const Point&)> pressure;
  std::function<double(int c, const Point&)> pressure_gradient;
};

std::vector<Point> in_space(const Level& level, Record cell, const Points& points) {
  std::vector<Point> in_space = points.position;
  const Point corner = level.grid.corner(cell);
  for (Point& x : in_space) {
    for (int a = 0; a < level.equation.dim; ++a) x[a] = corner[a] + level.grid.metric().uniform_width()[a] * x[a];
  }
  return in_space;
}
Eigen::VectorXd sample(const std::vector<Point>& points, const std::function<double(const Point&)>& f) {
  Eigen::VectorXd values(static_cast<long>(points.size()));
  for (std::size_t q = 0; q < points.size(); ++q) values[static_cast<long>(q)] = f(points[q]);
  return values;
}

/// max |b - A x| over the unknowns for the interpolant x and the load b with all boundary terms, relative to max |b|.
double consistency_error(const Level& level, const Polynomial& exact) {
  const Grid& grid = level.grid;
  const int dim = level.equation.dim;
  const Point h = grid.metric().uniform_width();
  const double nu = level.coefficients.viscosity;
  const int count = level.equation.order + 4;
  const Points inside = cell_points(dim, h, gauss(count));
  Values x(level.size(), 0.0);
  Values b(level.size(), 0.0);
  for (const Record cell : grid.layout().cells()) {
    const auto points = in_space(level, cell, inside);
    for (int f = 0; f <= dim; ++f) {
      const LocalField field(level.equation, h, f);
      const auto numbers = field.numbers(grid, cell);
      const Table table = field.tabulate(inside.position);
      const Eigen::MatrixXd weighted = table.value.transpose() * inside.weight.asDiagonal();
      const Eigen::VectorXd values =
          sample(points, [&](const Point& p) { return f < dim ? exact.velocity(f, p) : exact.pressure(p); });
      const Eigen::VectorXd coefficients = (weighted * table.value).llt().solve(weighted * values);
      for (std::size_t j = 0; j < numbers.size(); ++j) x[numbers[j]] = coefficients[static_cast<long>(j)];
      if (f == dim) continue;

      Eigen::VectorXd load = weighted * sample(points, [&](const Point& p) {
                               return level.coefficients.reaction * exact.velocity(f, p) - nu * exact.laplacian(f, p) +
                                      exact.pressure_gradient(f, p);
                             });
      for (int side = 0; side < 2 * dim; ++side) {
        const int a = side / 2;
        const double n = side % 2 == 0 ? -1.0 : 1.0;
        const Points on_face = face_points(dim, h, gauss(count), side);
        const Table trace = field.tabulate(on_face.position);
        const auto face_in_space = in_space(level, cell, on_face);
        if (grid.face(cell, side) == Face::velocity && a != f) {
          const Eigen::VectorXd g = sample(face_in_space, [&](const Point& p) { return exact.velocity(f, p); });
          load += nu * (2.0 * level.equation.penalty(h[a]) * trace.value - n * trace.derivative[a]).transpose() *
                  on_face.weight.cwiseProduct(g);
        } else if (grid.face(cell, side) == Face::outflow) {
          const Eigen::VectorXd traction = sample(face_in_space, [&](const Point& p) {
            return n * (nu * exact.gradient(f, a, p) - (a == f ? exact.pressure(p) : 0.0));
          });
          load += trace.value.transpose() * on_face.weight.cwiseProduct(traction);
        }
      }
      for (std::size_t j = 0; j < numbers.size(); ++j) b[numbers[j]] += load[static_cast<long>(j)];
    }
  }
  const auto unknown = reference::unknowns(level);
  const Values ax = applied(level, x);
  double error = 0.0;
  double scale = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    scale = std::max(scale, std::abs(b[i]));
    if (unknown[i]) error = std::max(error, std::abs(b[i] - ax[i]));
  }
  return error / scale;
}

/// u = (x^2 y + y^2 + z^2, x^2 - x y^2, x y), p = x y + z; in 2D without the last component, z = 0.
Polynomial swirl(int dim) {
  return {
      [](int c, const Point& p) {
        const auto& [x, y, z] = p;
        return c == 0 ? x * x * y + y * y + z * z : c == 1 ? x * x - x * y * y : x * y;
      },
      [](int c, int a, const Point& p) {
        const auto& [x, y, z] = p;
        const double gradient[3][3] = {
            {2 * x * y, x * x + 2 * y, 2 * z}, {2 * x - y * y, -2 * x * y, 0.0}, {y, x, 0.0}};
        return gradient[c][a];
      },
      [dim](int c, const Point& p) { return c == 0   ? 2 * p[1] + 2 * (dim - 1)
                                            : c == 1 ? 2 - 2 * p[0]
                                                     : 0.0; },
      [](const Point& p) { return p[0] * p[1] + p[2]; },
      [](int c, const Point& p) { return c == 0   ? p[1]
                                         : c == 1 ? p[0]
                                                  : 1.0; },
  };
}

TEST(ReferenceConsistency, PolynomialWithVelocityAndOutflowSides) {
  constexpr auto outflow = SideKind::outflow;
  for (const double mass : {0.0, 1.3}) {
    const MeshCase flat{"", test::box({4, 4}, {{{2, 2, 0}, {4, 4, 1}}}), test::sides({{0, outflow}, {3, outflow}}),
                        mass};
    EXPECT_LT(consistency_error(flat.level(2, {}, true), swirl(2)), 1e-12);
    EXPECT_LT(consistency_error(flat.level(3, {}, true), swirl(2)), 1e-12);
  }
  for (const auto& boundary : {Boundary{}, test::sides({{1, outflow}, {2, outflow}, {4, outflow}, {5, outflow}})}) {
    const MeshCase mesh{"", test::box({3, 3, 2}, {{{1, 1, 0}, {2, 2, 1}}}), boundary, 0.5};
    EXPECT_LT(consistency_error(mesh.level(2, {}, true), swirl(3)), 1e-12);
  }
}

/// Poiseuille flow u_x = y (1 - y) between a lower wall and a slip plane of symmetry at y = 1/2, slip in z.
TEST(ReferenceConsistency, PoiseuilleWithSlipSides) {
  constexpr auto outflow = SideKind::outflow;
  constexpr auto slip = SideKind::slip;
  Polynomial flow;
  flow.velocity = [](int c, const Point& p) { return c == 0 ? p[1] * (1 - p[1]) : 0.0; };
  flow.gradient = [](int c, int a, const Point& p) { return c == 0 && a == 1 ? 1 - 2 * p[1] : 0.0; };
  flow.laplacian = [](int c, const Point&) { return c == 0 ? -2.0 : 0.0; };
  flow.pressure = [](const Point& p) { return 1.0 - 2.0 * p[0]; };
  flow.pressure_gradient = [](int c, const Point&) { return c == 0 ? -2.0 : 0.0; };
  for (const int dim : {2, 3}) {
    Mesh mesh = test::box(dim == 2 ? std::vector{3, 3} : std::vector{3, 3, 2});
    mesh.lower[1] = 0.0;
    mesh.upper[1] = 0.5;
    const MeshCase channel{"", mesh, test::sides({{0, outflow}, {1, outflow}, {3, slip}, {4, slip}, {5, slip}})};
    EXPECT_LT(consistency_error(channel.level(2), flow), 1e-12);
  }
}

/// For k = 0 the penalty 1/h makes the tangential terms second differences, with the hats' mass matrix (1/6, 2/3, 1/6).
TEST(ReferenceConsistency, StencilOfLowestOrder) {
  const MeshCase square{"", test::box({6, 6})};
  const Level level = square.level(0);
  const Grid& grid = level.grid;
  const auto at = [&](int i, int j, int value) { return level.index(grid.at({i, j, 0}), value); };
  Values x(level.size(), 0.0);
  x[at(3, 3, 0)] = 1.0;
  const Values y = applied(level, x);
  const double hx = grid.metric().uniform_width()[0];
  const double hy = grid.metric().uniform_width()[1];
  const double nu = level.coefficients.viscosity;
  EXPECT_NEAR(y[at(3, 4, 0)], -nu / (hy * hy) * 2.0 / 3.0, 1e-13);
  EXPECT_NEAR(y[at(4, 3, 0)], nu * (-1.0 / (hx * hx) + 2.0 / (hy * hy) / 6.0), 1e-13);
  EXPECT_NEAR(y[at(3, 3, 2)], 1.0 / hx, 1e-13);
  EXPECT_NEAR(y[at(2, 3, 2)], -1.0 / hx, 1e-13);
}

}  // namespace
}  // namespace solenoid
