/// \file
/// The marker-and-cell scheme and its solver: matrices against the weak form, sparse kernels against dense algebra,
/// permeabilities that are known, iterations.

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <random>
#include <utility>

#include "engines.hpp"
#include "flows.hpp"
#include "gtest/gtest.h"
#include "levels.hpp"
#include "random_cases.hpp"
#include "solenoid/image.hpp"
#include "solenoid/linear_system.hpp"
#include "solenoid/solver.hpp"
#include "solenoid/time_stepper.hpp"
#include "solve_on.hpp"
#include "solver/mac/block_factorisation.hpp"
#include "solver/mac/pairs.hpp"

namespace solenoid {
namespace {

using test::MeshCase;

Level lumped_level(const MeshCase& what) {
  const Equation equation{.dim = what.mesh.dim, .order = 0, .kind = what.equation, .lumped = true};
  return {equation, {.viscosity = 0.7, .reaction = what.mass}, Grid(what.mesh, what.boundary), PatchRules{}};
}

template <class T>
std::vector<T> values(const Vector<T>& vector) {
  std::vector<T> values(vector.size());
  vector.download(values.data());
  return values;
}

Eigen::MatrixXd dense(Engine& engine, const SparseRows& rows, const AssembledMatrix& sparse) {
  const HostMatrix host(engine, rows, sparse);
  Eigen::MatrixXd matrix = Eigen::MatrixXd::Zero(host.rows, host.rows);
  for (std::int32_t i = 0; i < host.rows; ++i) {
    matrix(i, i) = host.diagonal[i];
    host.for_row(i, [&](std::int32_t column, double value) { matrix(i, column) += value; });
  }
  return matrix;
}

std::vector<std::int32_t> nodes(const SparseRows& rows) {
  std::vector<std::int32_t> nodes;
  const std::vector<NodePlace> places = values(rows.place);
  for (std::int32_t i = 0; i < rows.count(); ++i) {
    if (places[i].field >= 0) nodes.push_back(i);
  }
  EXPECT_EQ(std::ssize(nodes), rows.nodes);
  return nodes;
}

std::vector<MeshCase> all_cases() {
  std::vector<MeshCase> cases;
  for (const int dim : {2, 3}) {
    for (MeshCase what : test::mesh_cases(dim)) {
      what.name += dim == 2 ? "_2d" : "_3d";
      cases.push_back(what);
    }
  }
  return cases;
}

/// Voxels of size 1, periodic but for walls where `walls` says so.
Problem voxels(const std::array<int, 3>& extent, int dim, const std::array<bool, 3>& walls, int order, bool lumped) {
  Problem problem;
  problem.mesh.dim = dim;
  for (int a = 0; a < dim; ++a) {
    problem.mesh.cells[a] = extent[a];
    problem.mesh.upper[a] = extent[a];
    const SideKind kind = walls[a] ? SideKind::velocity : SideKind::periodic;
    problem.boundary.sides[2 * a].kind = problem.boundary.sides[2 * a + 1].kind = kind;
  }
  problem.order = order;
  problem.lumped = lumped;
  problem.force[0] = ScalarField(1.0);
  return problem;
}

class Scheme : public testing::TestWithParam<MeshCase> {};
INSTANTIATE_TEST_SUITE_P(Meshes, Scheme, testing::ValuesIn(all_cases()),
                         [](const auto& info) { return info.param.name; });

/// E^T A E, A the lowest-order operator with a lumped mass matrix as the reference engine has it.
TEST_P(Scheme, IsTheLowestOrderElementWithLumpedMass) {
  if (GetParam().name == "long_box_3d") GTEST_SKIP() << "takes long";
  const Level level = lumped_level(GetParam());
  const reference::ReferenceLevel oracle(level);
  for (const auto& choice : test::engines()) {
    SCOPED_TRACE(choice.name);
    const auto assembly = choice.get().make_assembly();
    const MacScheme scheme = assembly->scheme(level);
    const AssembledMatrix matrix = assembly->velocity_matrix(level, scheme, level.coefficients.reaction);
    const Eigen::MatrixXd a = dense(choice.get(), scheme.faces.rows, matrix);
    EXPECT_LE((a - a.transpose()).norm(), 1e-14 * a.norm());
    const std::vector<std::int32_t> faces = nodes(scheme.faces.rows);
    const std::vector<std::int32_t> cells = nodes(scheme.cells.rows);
    const auto index_of_face = values(scheme.faces.index);
    const auto index_of_cell = values(scheme.cells.index);
    const auto inverse_width = values(scheme.inverse_width);
    std::vector<std::vector<std::int32_t>> face_of_cell;
    for (int side = 0; side < 2 * level.equation.dim; ++side) face_of_cell.push_back(values(scheme.face_of_cell[side]));
    for (const std::int32_t row : faces) {
      Eigen::VectorXd unit = Eigen::VectorXd::Zero(level.size());
      unit[index_of_face[row]] = 1.0;
      const Eigen::VectorXd image = oracle.apply(unit);
      for (const std::int32_t i : faces) ASSERT_NEAR(image[index_of_face[i]], a(i, row), 1e-12 * a.norm());
      for (const std::int32_t i : cells) {
        double divergence = 0.0;
        for (int side = 0; side < 2 * level.equation.dim; ++side) {
          if (face_of_cell[side][i] != row) continue;
          divergence += (side % 2 == 0 ? -1.0 : 1.0) * inverse_width[row];
        }
        ASSERT_NEAR(image[index_of_cell[i]], -divergence, 1e-12 * a.norm());
      }
    }
    EXPECT_EQ(std::ssize(faces) + std::ssize(cells), level.dofs());
  }
}

TEST_P(Scheme, PressureMatrixIsDivergenceTimesWeightsTimesGradient) {
  const Level level = lumped_level(GetParam());
  for (const auto& choice : test::engines()) {
    SCOPED_TRACE(choice.name);
    const auto assembly = choice.get().make_assembly();
    const MacScheme scheme = assembly->scheme(level);
    std::mt19937 random(1);
    std::uniform_real_distribution<double> positive(0.5, 2.0);
    std::vector<double> w(scheme.faces.rows.storage(), 0.0);
    for (const std::int32_t row : nodes(scheme.faces.rows)) w[row] = positive(random);
    const auto inverse_width = values(scheme.inverse_width);
    Eigen::MatrixXd b = Eigen::MatrixXd::Zero(scheme.cells.rows.count(), scheme.faces.rows.count());
    for (int end = 0; end < 2; ++end) {
      const auto cell_of_face = values(scheme.cell_of_face[end]);
      for (std::int32_t face = 0; face < scheme.faces.rows.count(); ++face) {
        const std::int32_t cell = cell_of_face[face];
        if (cell < b.rows()) b(cell, face) += (end == 0 ? 1.0 : -1.0) * inverse_width[face];
      }
    }
    const Eigen::VectorXd weights = Eigen::Map<const Eigen::VectorXd>(w.data(), b.cols());
    const Eigen::MatrixXd expected = b * weights.asDiagonal() * b.transpose();
    const AssembledMatrix matrix = assembly->pressure_matrix(scheme, on_device(choice.get(), w).data());
    EXPECT_LE((dense(choice.get(), scheme.cells.rows, matrix) - expected).norm(), 1e-14 * expected.norm());
  }
}

/// The least row of every set of rows that strong entries connect inside a block: by search, in the order of rows.
std::vector<std::int32_t> parts_of_blocks(const HostMatrix& matrix, const std::vector<NodePlace>& places,
                                          const NodeLattice& lattice, Merge merge) {
  const NodeLattice coarse = lattice.coarse();
  const auto block = [&](std::int32_t row) {
    std::array<int, 4> at{places[row].field};
    for (int a = 0; a < 3; ++a) {
      const int place = places[row].at[a];
      at[a + 1] = lattice.periodic[a] ? place * coarse.extent[a] / lattice.extent[a] : place / 2;
    }
    return at;
  };
  std::vector<double> largest(matrix.rows, 0.0);
  for (const std::int32_t row : matrix.nodes) {
    matrix.for_row(row, [&](std::int32_t, double v) { largest[row] = std::max(largest[row], std::abs(v)); });
  }
  std::vector<std::int32_t> root(matrix.rows, -1);
  for (const std::int32_t first : matrix.nodes) {
    if (root[first] >= 0 || largest[first] == 0.0) continue;
    std::vector<std::int32_t> front{first};
    root[first] = first;
    const auto join = [&](std::int32_t row) {
      if (root[row] >= 0 || largest[row] == 0.0 || block(row) != block(first)) return;
      root[row] = first;
      front.push_back(row);
    };
    while (!front.empty()) {
      const std::int32_t here = front.back();
      front.pop_back();
      if (merge == Merge::block) {
        for (const std::int32_t other : matrix.nodes) join(other);
      } else {
        matrix.for_row(here, [&](std::int32_t column, double v) {
          if (std::abs(v) >= 0.25 * std::min(largest[here], largest[column])) join(column);
        });
      }
    }
  }
  return root;
}

/// Blocks and their parts, Galerkin products, colours, and what children and parents say.
TEST_P(Scheme, CoarsensByAggregates) {
  const Level level = lumped_level(GetParam());
  for (const auto& choice : test::engines()) {
    SCOPED_TRACE(choice.name);
    Engine& engine = choice.get();
    const auto assembly = engine.make_assembly();
    for (const Merge merge : {Merge::block, Merge::connected}) {
      const bool velocities = merge == Merge::block;
      MacScheme scheme = assembly->scheme(level);
      // Weights over a wide range: some entries are weak.
      std::mt19937 random(3);
      std::uniform_real_distribution<double> exponent(-3.0, 3.0);
      std::vector<double> w(scheme.faces.rows.storage());
      for (double& one : w) one = std::exp(exponent(random));
      const Vector<double> weight = on_device(engine, w);
      AssembledMatrix fine = velocities ? assembly->velocity_matrix(level, scheme, level.coefficients.reaction)
                                        : assembly->pressure_matrix(scheme, weight.data());
      SparseRows rows = std::move(velocities ? scheme.faces.rows : scheme.cells.rows);
      for (int step = 0; step < 4; ++step) {
        const HostMatrix host(engine, rows, fine);
        const auto colour = [&](std::int32_t row) {
          return std::upper_bound(rows.colour_begin.begin(), rows.colour_begin.begin() + rows.colours, row) -
                 rows.colour_begin.begin();
        };
        for (const std::int32_t row : host.nodes) {
          host.for_row(row, [&](std::int32_t column, double) {
            EXPECT_NE(colour(row), colour(column)) << "rows " << row << " and " << column;
          });
        }
        const bool paired = !velocities && step >= 2;
        const Aggregation aggregation =
            paired ? *aggregate_pairs(engine, rows, fine) : assembly->aggregate(rows, fine, merge);
        const auto root = values(aggregation.root);
        if (!paired && rows.count() > 0) {
          EXPECT_EQ(root, parts_of_blocks(host, values(rows.place), rows.lattice, merge)) << "step " << step;
        }
        const std::int32_t last = step % 2 == 0 ? rows.colour_begin[rows.colours - 1] : rows.count();
        Coarsened coarse = assembly->coarsen(rows, fine, aggregation, last);
        const std::int32_t coarse_rows = coarse.rows.count();
        const auto parent = values(coarse.parent);
        Eigen::MatrixXd p = Eigen::MatrixXd::Zero(rows.count(), coarse_rows);
        for (const std::int32_t i : host.nodes) {
          EXPECT_EQ(parent[i] < coarse_rows, root[i] >= 0);
          if (root[i] >= 0) {
            EXPECT_EQ(parent[i], parent[root[i]]);
          }
          if (parent[i] < coarse_rows) p(i, parent[i]) = 1.0;
        }
        const Eigen::MatrixXd before = dense(engine, rows, fine);
        const Eigen::MatrixXd expected = p.transpose() * before * p;
        const Eigen::MatrixXd actual = dense(engine, coarse.rows, coarse.matrix);
        EXPECT_LE((actual - expected).norm(), 1e-13 * std::max(1.0, before.norm()));
        Eigen::MatrixXd children = Eigen::MatrixXd::Zero(rows.count(), coarse_rows);
        const auto child_begin = values(coarse.child_begin);
        const auto child = values(coarse.child);
        for (std::int32_t i = 0; i < coarse_rows; ++i) {
          for (std::int32_t c = child_begin[i]; c < child_begin[i + 1]; ++c) children(child[c], i) += 1.0;
        }
        EXPECT_EQ(children.topRows(last), p.topRows(last));
        EXPECT_EQ(children.bottomRows(rows.count() - last).norm(), 0.0);
        if (coarse.rows.nodes < 2) break;
        fine = std::move(coarse.matrix);
        rows = std::move(coarse.rows);
      }
    }
  }
}

/// What SparseMultigrid asks of the kernels, for the matrix of a level below the finest, by the matrix on the host.
/// Large enough for what engines do differently with few rows and with many.
template <class T>
void equals_the_matrix_on_the_host(Engine& engine, int extent) {
  constexpr T damping(0.7);
  const double tolerance = std::is_same_v<T, float> ? 2e-6 : 1e-14;
  const Problem problem = voxels({extent, extent, extent - 3}, 3, {true, false, true}, 0, true);
  const Equation equation{.dim = 3, .order = 0, .lumped = true};
  const Level level(equation, {.viscosity = 0.7}, Grid(problem.mesh, problem.boundary), PatchRules{});
  const auto assembly = engine.make_assembly();
  const auto kernels = make_sparse_kernels<T>(engine);
  const MacScheme scheme = assembly->scheme(level);
  std::mt19937 random(7);
  std::uniform_real_distribution<double> positive(0.1, 2.0);
  std::normal_distribution<double> normal;
  std::vector<double> w(scheme.faces.rows.storage());
  for (double& one : w) one = positive(random);
  const AssembledMatrix finest = assembly->pressure_matrix(scheme, on_device(engine, w).data());
  const auto coarsened = [&](const SparseRows& rows, const AssembledMatrix& matrix) {
    return assembly->coarsen(rows, matrix, assembly->aggregate(rows, matrix, Merge::connected), rows.count());
  };
  Coarsened fine = coarsened(scheme.cells.rows, finest);
  const HostMatrix exact(engine, fine.rows, fine.matrix);
  const std::int32_t rows = exact.rows;
  Vector<std::uint16_t> value(engine, fine.matrix.value.size());
  assembly->round_entries(fine.rows, fine.matrix, value.data());
  // The entries are rounded, and row sums stay.
  HostMatrix host(engine, fine.rows, fine.matrix);
  const std::vector<std::uint16_t> bits = values(value);
  for (std::size_t e = 0; e < host.value.size(); ++e) {
    host.value[e] = std::bit_cast<float>(static_cast<std::uint32_t>(bits[e]) << 16);
    ASSERT_LE(std::abs(host.value[e] - exact.value[e]), std::abs(exact.value[e]) / 256);
  }
  for (const std::int32_t i : host.nodes) {
    double sum = host.diagonal[i] - exact.diagonal[i];
    host.for_row(i, [&](std::int32_t, double entry) { sum += entry; });
    exact.for_row(i, [&](std::int32_t, double entry) { sum -= entry; });
    ASSERT_NEAR(sum, 0.0, 1e-13 * exact.diagonal[i]);
  }
  const auto converted = [&](const Vector<double>& numbers) {
    Vector<T> result(engine, numbers.size());
    assembly->convert(numbers.size(), numbers.data(), result.data());
    return result;
  };
  Vector<double> inverse(engine, fine.rows.storage());
  assembly->invert(fine.rows.storage(), fine.matrix.diagonal.data(), inverse.data());
  const Vector<T> diagonal = converted(fine.matrix.diagonal);
  const Vector<T> inverse_diagonal = converted(inverse);
  const SparseMatrix<T> a{.rows = rows,
                          .colours = fine.rows.colours,
                          .colour_begin = fine.rows.colour_begin,
                          .begin = fine.matrix.begin.data(),
                          .column = fine.matrix.column.data(),
                          .value = value.data(),
                          .diagonal = diagonal.data(),
                          .inverse_diagonal = inverse_diagonal.data(),
                          .solved_from = rows,
                          .solved_to = 0};

  const auto drawn = [&](const std::vector<std::int32_t>& where, std::int64_t size) {
    Eigen::VectorXd x = Eigen::VectorXd::Zero(size);
    for (const std::int32_t i : where) x[i] = static_cast<T>(normal(random));
    return x;
  };
  const auto put = [&](const Eigen::VectorXd& x) { return on_device(engine, std::vector<T>(x.begin(), x.end())); };
  const auto room = [&] { return put(drawn(host.nodes, a.storage())); };
  const auto near = [&](const Vector<T>& actual, const Eigen::VectorXd& expected, const char* what) {
    const std::vector<T> numbers = values(actual);
    double error = 0.0;
    for (Eigen::Index i = 0; i < expected.size(); ++i) error += std::pow(numbers[i] - expected[i], 2);
    EXPECT_LE(std::sqrt(error), tolerance * expected.norm()) << what;
  };
  const auto product = [&](const Eigen::VectorXd& x) {
    Eigen::VectorXd y = Eigen::VectorXd::Zero(a.storage());
    for (const std::int32_t i : host.nodes) {
      y[i] = host.diagonal[i] * x[i];
      host.for_row(i, [&](std::int32_t column, double entry) { y[i] += entry * x[column]; });
    }
    return y;
  };
  const auto smoothed = [&](const Eigen::VectorXd& b, const Eigen::VectorXd& x) {
    Eigen::VectorXd y = b - product(x);
    for (const std::int32_t i : host.nodes) y[i] = host.diagonal[i] > 0.0 ? damping * y[i] / host.diagonal[i] : 0.0;
    return Eigen::VectorXd(x + y);
  };
  const Eigen::VectorXd zero = Eigen::VectorXd::Zero(a.storage());
  const Eigen::VectorXd b = drawn(host.nodes, a.storage());
  const Eigen::VectorXd x = drawn(host.nodes, a.storage());
  const Eigen::VectorXd r = x + drawn(host.nodes, a.storage());  // no cancellation in x . r
  const Vector<T> load = put(b);
  const Vector<T> start = put(x);
  Vector<T> y = room();
  kernels->multiply(a, start.data(), y.data());
  near(y, product(x), "multiply");
  kernels->residual(a, load.data(), start.data(), y.data());
  near(y, b - product(x), "residual");
  kernels->jacobi(a, damping, load.data(), start.data(), y.data());
  near(y, smoothed(b, x), "jacobi");
  kernels->jacobi_twice_from_zero(a, damping, load.data(), y.data());
  near(y, smoothed(b, smoothed(b, zero)), "jacobi_twice_from_zero");

  Vector<T> relaxed = put(x);
  Eigen::VectorXd in_turn = x;
  for (int colour = 0; colour < a.colours; ++colour) {
    kernels->relax(a, colour, load.data(), relaxed.data());
    const Eigen::VectorXd left = b - product(in_turn);
    for (std::int32_t i = a.colour_begin[colour]; i < a.colour_begin[colour + 1]; ++i) {
      if (host.diagonal[i] > 0.0) in_turn[i] += left[i] / host.diagonal[i];
    }
  }
  near(relaxed, in_turn, "relax");

  Vector<T> d = put(x);
  Vector<T> a_d = room();
  Vector<T> curvature = Vector<T>(engine, Directions<T>::most);
  Vector<T> rest = room();
  Vector<T> moved = room();
  Directions<T> directions;
  directions.count = 1;
  directions.d[0] = d.data();
  directions.a_d[0] = a_d.data();
  directions.curvature = curvature.data();
  const Vector<T> residual = put(r);
  kernels->multiply_sums(a, directions, residual.data());
  near(a_d, product(x), "multiply_sums");
  kernels->advance(a, directions, residual.data(), rest.data(), true, moved.data());
  const double alpha = x.dot(r) / x.dot(product(x));
  near(moved, alpha * x, "x of advance");
  near(rest, r - alpha * product(x), "rest of advance");
  EXPECT_NEAR(static_cast<double>(values(curvature)[0]), x.dot(product(x)), 10 * tolerance * x.dot(product(x)));
}

TEST(Mac, SparseKernelsEqualTheMatrixOnTheHost) {
  for (const auto& choice : test::engines()) {
    SCOPED_TRACE(choice.name);
    for (const int extent : {9, 50, 90}) {
      equals_the_matrix_on_the_host<float>(choice.get(), extent);
      equals_the_matrix_on_the_host<double>(choice.get(), extent);
    }
  }
}

/// All engines make the same aggregates.
TEST(Mac, EnginesMakeTheSameAggregates) {
  Problem problem = voxels({9, 8, 7}, 3, {true, false, true}, 0, true);
  std::mt19937 random(5);
  for (int box = 0; box < 9 * 8 * 7; ++box) {
    const std::array<int, 3> at{box % 9, box / 9 % 8, box / 72};
    if (random() % 10 < 3) problem.mesh.holes.push_back({at, {at[0] + 1, at[1] + 1, at[2] + 1}});
  }
  const Equation equation{.dim = 3, .order = 0, .lumped = true};
  const Level level(equation, {.viscosity = 0.7}, Grid(problem.mesh, problem.boundary), PatchRules{});
  const auto reference = make_reference_engine();
  const auto roots = [&](Engine& engine) {
    const auto assembly = engine.make_assembly();
    const MacScheme scheme = assembly->scheme(level);
    std::vector<double> w(scheme.faces.rows.storage());
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = 1.0 + static_cast<double>(i * i % 17);
    const AssembledMatrix matrix = assembly->pressure_matrix(scheme, on_device(engine, w).data());
    const Aggregation aggregation = assembly->aggregate(scheme.cells.rows, matrix, Merge::connected);
    return std::pair{values(aggregation.root), aggregation.layers};
  };
  for (const auto& choice : test::engines()) EXPECT_EQ(roots(choice.get()), roots(*reference)) << choice.name;
}

/// Conjugate gradients with multigrid: each solve divides the error, in the norm of the matrix, by some factor; all
/// engines do the same.
template <class T>
void solves(Engine& engine, const MeshCase& what) {
  const Level level = lumped_level(what);
  const auto assembly = engine.make_assembly();
  const MacScheme scheme = assembly->scheme(level);
  const auto sparse = make_sparse_kernels<T>(engine);
  const auto kernels = make_kernels<T>(engine, level, LocalSolverKind::direct);
  Vector<double> ones(engine, scheme.faces.rows.storage());
  assembly->ones(scheme.faces.rows, ones.data());
  for (const Merge merge : {Merge::block, Merge::connected}) {
    const bool velocities = merge == Merge::block;
    const SparseRows& rows = velocities ? scheme.faces.rows : scheme.cells.rows;
    AssembledMatrix sparse_matrix = velocities ? assembly->velocity_matrix(level, scheme, level.coefficients.reaction)
                                               : assembly->pressure_matrix(scheme, ones.data());
    const Eigen::MatrixXd matrix = dense(engine, rows, sparse_matrix);
    SparseMultigrid<T> multigrid(engine, *assembly, *sparse, *kernels, rows, std::move(sparse_matrix),
                                 {merge, velocities ? 2 : 3, !velocities});
    std::mt19937 random(2);
    std::normal_distribution<double> normal;
    Eigen::VectorXd exact = Eigen::VectorXd::Zero(matrix.rows());
    for (const std::int32_t row : nodes(rows)) exact[row] = normal(random);
    const Eigen::VectorXd load = matrix * exact;
    std::vector<T> b(multigrid.matrix().storage(), T(0));
    for (Eigen::Index i = 0; i < load.size(); ++i) b[i] = static_cast<T>(load[i]);
    const Vector<T> on_engine = on_device(engine, b);
    Vector<T> x(engine, multigrid.matrix().storage());
    multigrid.solve(on_engine.data(), x.data());
    x.download(b.data());
    Eigen::VectorXd error = exact;
    for (Eigen::Index i = 0; i < load.size(); ++i) error[i] -= b[i];
    const double before = exact.dot(matrix * exact);
    EXPECT_LE(error.dot(matrix * error), 0.02 * before) << (velocities ? "velocity" : "pressure");
  }
}

TEST_P(Scheme, IsSolvedByMultigrid) {
  for (const auto& choice : test::engines()) {
    SCOPED_TRACE(choice.name);
    solves<float>(choice.get(), GetParam());
    solves<double>(choice.get(), GetParam());
  }
  solves<double>(*make_reference_engine(), GetParam());
}

// Flows --------------------------------------------------------------------------------------------------------------

/// K_xx of plane channels of w voxels is w^2 / 12 (1 + 2 / w^2), of square ducts .03514425 w^2 times what differences
/// make of it (by how much was computed independently: ../VOXELS).
TEST(Mac, PermeabilitiesOfChannelsAndDucts) {
  for (const int w : {1, 2, 3, 4}) {
    const Result channel = solve(voxels({4, w, 1}, 2, {false, true, false}, 0, true), {.rtol = 1e-12});
    EXPECT_TRUE(channel.report.converged);
    EXPECT_NEAR(channel.solution.mean_velocity()[0] * 12.0 / (w * w), 1.0 + 2.0 / (w * w), 1e-10) << w;
  }
  const std::vector<std::pair<int, double>> ducts{{1, 2.56}, {2, 0.78}, {3, 0.38}, {4, 0.22}, {8, 0.06}};
  for (const auto& [w, excess] : ducts) {
    const Result duct = solve(voxels({4, w, w}, 3, {false, true, true}, 0, true), {.rtol = 1e-12});
    EXPECT_TRUE(duct.report.converged);
    EXPECT_NEAR(duct.solution.mean_velocity()[0] / (0.03514425 * w * w) - 1.0, excess, 0.006) << w;
  }
}

/// Overlapping spheres (discs) of a radius, until so much of the box is left.
Problem spheres(int n, int dim, double radius, double porosity, int order, bool lumped, int refine) {
  Problem problem = voxels({n, n, dim == 3 ? n : 1}, dim, {false, true, true}, order, lumped);
  problem.mesh.refine = refine;
  const std::array<int, 3> extent{n, n, dim == 3 ? n : 1};
  std::vector<bool> solid(static_cast<std::size_t>(extent[0]) * extent[1] * extent[2]);
  std::mt19937 random(1);
  std::uniform_real_distribution<double> place(0.0, n);
  const auto count = static_cast<double>(solid.size());
  for (double pores = count; pores > porosity * count;) {
    const Point centre{place(random), place(random), dim == 3 ? place(random) : 0.5};
    for (std::size_t i = 0; i < solid.size(); ++i) {
      const std::array<int, 3> at{static_cast<int>(i) % n, static_cast<int>(i) / n % n, static_cast<int>(i) / n / n};
      double square = 0.0;
      for (int a = 0; a < dim; ++a) {
        const double distance = std::abs(at[a] + 0.5 - centre[a]);
        square += std::pow(std::min(distance, n - distance), 2.0);
      }
      if (square >= radius * radius || solid[i]) continue;
      solid[i] = true;
      pores -= 1.0;
    }
  }
  for (std::size_t i = 0; i < solid.size(); ++i) {
    const std::array<int, 3> at{static_cast<int>(i) % n, static_cast<int>(i) / n % n, static_cast<int>(i) / n / n};
    if (solid[i]) problem.mesh.holes.push_back({at, {at[0] + 1, at[1] + 1, at[2] + 1}});
  }
  return problem;
}

/// Files and flows in time know the scheme.
TEST(Mac, IsSavedAndMarched) {
  Problem problem = voxels({6, 4, 1}, 2, {false, true, false}, 0, true);
  const Result result = solve(problem, {.rtol = 1e-12});
  if (solution_files_unavailable().empty()) {
    const auto file = std::filesystem::temp_directory_path() / "solenoid_mac_test.h5";
    result.solution.save(file);
    EXPECT_TRUE(load_solution(file).problem().lumped);
    std::filesystem::remove(file);
  }
  // A channel flow that starts from rest becomes the steady one.
  TimeOptions time;
  time.step = 0.5;
  TimeStepper stepper(problem, time, {});
  stepper.advance(40.0);
  EXPECT_NEAR(stepper.solution().mean_velocity()[0], result.solution.mean_velocity()[0], 1e-5);
}

TEST(Mac, IterationsDoNotGrow) {
  struct Case {
    int dim, n;
    double radius, porosity;
    int most;
  };
  for (const auto& [dim, n, radius, porosity, most] : {Case{2, 32, 4, 0.7, 10},
                                                       {2, 64, 4, 0.7, 11},
                                                       {2, 128, 4, 0.7, 11},
                                                       {2, 32, 4, 0.45, 9},
                                                       {2, 64, 4, 0.45, 10},
                                                       {2, 128, 4, 0.45, 11},
                                                       {3, 16, 3, 0.4, 9},
                                                       {3, 32, 3, 0.4, 10}}) {
    for (const Precision precision : {Precision::mixed, Precision::full_double}) {
      const Result result = solve(spheres(n, dim, radius, porosity, 0, true, 0), {.precision = precision});
      EXPECT_TRUE(result.report.converged);
      EXPECT_LE(result.report.iterations, most) << dim << "D, n = " << n << ", porosity " << porosity;
      EXPECT_LE(result.solution.divergence_max(), 1e-6);
    }
  }
}

/// The result does not depend on what was solved before, nor on other coefficients in between.
TEST(Mac, DoesTheSameAgain) {
  for (const bool lumped : {true, false}) {
    for (const int refine : {0, 1}) {
      Problem problem = spheres(16, 2, 3.0, 0.6, lumped ? 0 : test::has_order(2, 2) ? 2 : 1, lumped, refine);
      problem.mass = 2.0;
      LinearSystem system(problem);
      LinearSystem other(problem);
      const auto r = system.make_vector();
      const auto z = system.make_vector();
      const auto again = system.make_vector();
      system.load(r.get());
      const auto bits = [&](const double* x) {
        std::vector<double> values(system.size());
        system.download(x, values);
        return values;
      };
      system.precondition(r.get(), z.get());
      system.precondition(z.get(), again.get());
      system.precondition(r.get(), again.get());
      EXPECT_EQ(bits(z.get()), bits(again.get())) << "after another one";
      other.precondition(r.get(), again.get());
      EXPECT_EQ(bits(z.get()), bits(again.get())) << "by another system";
      system.set_reaction(50.0);
      system.precondition(r.get(), again.get());
      system.set_reaction(2.0);
      system.precondition(r.get(), again.get());
      EXPECT_EQ(bits(z.get()), bits(again.get())) << "after other coefficients";
    }
  }
}

/// Small images drawn at random, with every kind of side, reaction, all orders and the scheme itself: engines agree
/// with the reference to what a solve to 1e-11 leaves. SOLENOID_RANDOM_CASES (40) is their number.
TEST(Mac, RandomImagesEqualTheReference) {
  const auto reference = make_reference_engine();
  const int count = test::setting("SOLENOID_RANDOM_CASES", test::sanitized ? 8 : 40);
  int solved = 0;
  int by_mac = 0;
  for (int seed = 1; seed <= count; ++seed) {
    std::mt19937 random(seed);
    const auto draw = [&](int below) { return static_cast<int>(random() % below); };
    const int dim = 2 + draw(2);
    Problem problem = voxels({4 + draw(dim == 2 ? 8 : 3), 3 + draw(dim == 2 ? 8 : 3), dim == 2 ? 1 : 2 + draw(3)}, dim,
                             {draw(2) == 0, draw(2) == 0, draw(2) == 0}, 0, true);
    const int order = draw(3);
    if (order > 0 && test::has_order(dim, order)) problem.order = order, problem.lumped = false;
    problem.mesh.upper[1] *= draw(2) == 0 ? 1.0 : 1.6;
    problem.mass = draw(3) == 0 ? 5.0 : 0.0;
    for (int side = 0; side < 2 * dim; ++side) {
      constexpr std::array kinds{SideKind::velocity, SideKind::slip, SideKind::outflow};
      SideKind& kind = problem.boundary.sides[side].kind;
      if (kind != SideKind::periodic) kind = kinds[draw(3)];
    }
    problem.force[dim - 1] = ScalarField::expression("sin(x) + y*y", dim);
    const auto& cells = problem.mesh.cells;
    problem.mesh.image = std::make_shared<const VoxelImage>(
        dim, std::array{cells[0], cells[1], cells[2]}, [&](const std::array<int, 3>& at) {
          const unsigned mixed =
              (seed * 2654435761U) ^ (at[0] * 40503U + at[1] * 30011U + at[2] * 20011U) * 2246822519U;
          return (mixed >> 13) % 10 < 3;
        });
    SCOPED_TRACE(
        fmt::format("seed {}, {}D, order {}, {} x {} x {}", seed, dim, problem.order, cells[0], cells[1], cells[2]));
    const SolverOptions options{.rtol = 1e-11, .precision = Precision::full_double};
    try {
      Discretisation discretisation(problem, options, DenseLimits{});
      const auto expected = test::solve_on<double>(*reference, discretisation, options);
      for (const auto& choice : test::engines()) {
        if (!test::has_order_of(choice.get(), discretisation.finest())) continue;
        const auto actual = test::solve_on<double>(choice.get(), discretisation, options);
        EXPECT_TRUE(expected.convergence.converged && actual.convergence.converged) << expected.convergence.reason;
        EXPECT_LE(std::abs(actual.convergence.iterations - expected.convergence.iterations), 1);
        const std::int64_t size = discretisation.finest().size();
        Eigen::VectorXd x(size);
        Eigen::VectorXd y(size);
        reference->download(expected.x.data(), x.data(), size * sizeof(double));
        choice.get().download(actual.x.data(), y.data(), size * sizeof(double));
        EXPECT_LE((x - y).norm(), 1e-7 * x.norm());
      }
      ++solved;
      by_mac += discretisation.hierarchy().coarse == CoarseSolve::mac ? 1 : 0;
    } catch (const InputError&) {  // no pores, or a force that nothing balances
    }
  }
  EXPECT_GE(solved, count / 2);
  EXPECT_GE(by_mac, count / 8) << "of " << solved;
}

}  // namespace
}  // namespace solenoid
