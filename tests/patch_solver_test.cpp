/// \file
/// Local solvers of random kinds of patches: eigenpairs, inverse Schur complements, and what mirror images share.

#include "level/patch_solver.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include "base/exchange.hpp"
#include "engine/tables.hpp"

namespace solenoid {
namespace {

constexpr Point h{0.5, 0.4, 0.3};
const Coefficients coefficients{.viscosity = 0.7, .reaction = 1.3};

/// `cut`: Poisson's equation alone has patches with cut ends.
PatchEnds random_ends(std::mt19937& random, bool cut) {
  PatchEnds ends;
  for (int end = 0; end < 2; ++end) {
    ends.weight[end] = static_cast<int>(random() % 3);
    ends.face[end] = random() % 4 == 0 ? PatchEnds::mixed : ends.weight[end];
    if (ends.weight[end] > 0) continue;
    ends.hat[end] = random() % 2 == 0;
    ends.cut[end] = cut && !ends.hat[end] && random() % 2 == 0;
  }
  return ends;
}

PatchKind random_kind(std::mt19937& random, int dim, bool cut = false) {
  PatchKind kind{};
  for (int a = 0; a < dim; ++a) kind[a] = random_ends(random, cut);
  return kind;
}

/// From the other end in a random choice of directions.
PatchKind random_image(std::mt19937& random, int dim, PatchKind kind) {
  for (int a = 0; a < dim; ++a) {
    if (random() % 2 == 0) kind[a] = kind[a].mirrored();
  }
  return kind;
}

double distance(const Matrix& a, const Matrix& b) { return (a - b).lpNorm<Eigen::Infinity>(); }

TEST(Exchange, InvertsIndefiniteMatricesWithAnyNumberOfThreads) {
  constexpr int size = 150;
  Matrix matrix = Matrix::Random(size, size);
  matrix = (matrix + matrix.transpose()).eval();
  Matrix inverse = matrix;
  exchange(inverse, 0, size, 3);
  fill_upper(inverse, 3);
  EXPECT_LT(distance(-inverse * matrix, Matrix::Identity(size, size)), 1e-9);
  Matrix alone = matrix;
  exchange(alone, 0, size, 1);
  fill_upper(alone, 1);
  EXPECT_TRUE(alone == inverse);
}

/// Sizes that are multiples of nothing; in some, half of the unknowns are not coupled with the other half.
TEST(Exchange, HasTheSameBitsWithAnyNumberOfThreads) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 40; ++trial) {
    const long size = 1 + static_cast<long>(random() % 330);
    Matrix matrix = Matrix::Random(size, size);
    matrix = (matrix + matrix.transpose()).eval();
    if (trial % 3 == 0) {
      matrix.topRightCorner(size / 2, size - size / 2).setZero();
      matrix.bottomLeftCorner(size - size / 2, size / 2).setZero();
    }
    matrix.diagonal().array() += (trial % 2 == 0 ? 1.0 : -1.0) * static_cast<double>(2 * size);
    Matrix alone = matrix;
    exchange(alone, 0, size, 1);
    fill_upper(alone, 1);
    EXPECT_LT(distance(-alone * matrix, Matrix::Identity(size, size)), 1e-12) << "size " << size;
    for (int threads = 2; threads <= 5; ++threads) {
      Matrix together = matrix;
      exchange(together, 0, size, threads);
      fill_upper(together, threads);
      EXPECT_TRUE(together == alone) << "size " << size << ", threads " << threads;
    }
  }
}

TEST(Exchange, LeavesWhatIsNotExchangedByFormula) {
  std::mt19937 random(8);
  for (int trial = 0; trial < 20; ++trial) {
    const long size = 2 + static_cast<long>(random() % 250);
    const long begin = static_cast<long>(random() % size);
    const long count = 1 + static_cast<long>(random() % (size - begin));
    Matrix matrix = Matrix::Random(size, size);
    matrix = (matrix + matrix.transpose()).eval();
    matrix.diagonal().array() += static_cast<double>(2 * size);
    Matrix exchanged = matrix;
    exchange(exchanged, begin, begin + count, 2);
    fill_upper(exchanged);
    const Matrix inverse = matrix.block(begin, begin, count, count).inverse();
    const Matrix solved = matrix.middleCols(begin, count) * inverse;
    Matrix expected = matrix - solved * matrix.middleRows(begin, count);
    expected.middleCols(begin, count) = solved;
    expected.middleRows(begin, count) = solved.transpose();
    expected.block(begin, begin, count, count) = -inverse;
    EXPECT_LT(distance(exchanged, expected), 1e-12 * static_cast<double>(size)) << size << ", " << begin;
  }
}

TEST(Exchange, OfSomeUnknownsSolvesForThese) {
  constexpr int size = 100;
  constexpr int begin = 20;
  constexpr int end = 95;
  Matrix matrix = Matrix::Random(size, size);
  matrix = (matrix + matrix.transpose()).eval();
  Matrix exchanged = matrix;
  exchange(exchanged, begin, end);
  fill_upper(exchanged);
  const Eigen::VectorXd x = Eigen::VectorXd::Random(size);
  const Eigen::VectorXd b = matrix * x;
  Eigen::VectorXd x_exchanged = x;
  Eigen::VectorXd b_exchanged = b;
  x_exchanged.segment(begin, end - begin) = b.segment(begin, end - begin);
  b_exchanged.segment(begin, end - begin) = -x.segment(begin, end - begin);
  EXPECT_LT(distance(exchanged * x_exchanged, b_exchanged), 1e-9);
}

/// Of mirrored directions as well, whose eigenpairs are images of others.
TEST(PatchSolver, EigenpairsAreThoseOfThePatch) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    const int order = trial % 4;
    const PatchKind kind = random_kind(random, 2, true);
    const PatchSolver solver({.dim = 2, .order = order}, coefficients, h, kind, LocalSolverKind::cg);
    const CellMatrices cell(order);
    const PatchMatrices patch(cell);
    for (int a = 0; a < 2; ++a) {
      const PatchDirection& d = solver.direction(a);
      const PatchEnds& ends = kind[a];
      const int np = d.last - d.first + 1;
      EXPECT_EQ(d.first, ends.hat[0] ? 0 : 1);
      EXPECT_EQ(d.last, ends.hat[1] ? 2 * order + 2 : 2 * order + 1);
      const auto block = [&](const Matrix& m) { return m.block(d.first, d.first, np, np); };
      EXPECT_LT(distance(d.eigen_p.transpose() * block(patch.mass_p) * d.eigen_p, Matrix::Identity(np, np)), 1e-10);
      const Matrix lambda_p = d.lambda_p.asDiagonal();
      EXPECT_LT(distance(d.eigen_p.transpose() * block(patch.stiffness_p) * d.eigen_p / (h[a] * h[a]), lambda_p),
                1e-10 * (1.0 + lambda_p.norm()));
      const Matrix c = d.eigen_o.transpose() * patch.divergence.middleCols(d.first, np) * d.eigen_p / h[a];
      EXPECT_LT(distance(c, d.divergence), 1e-10 * (1.0 + c.norm()));
      for (int i = 0; i < 2 * (order + 1); ++i) {
        const Eigen::VectorXd v = d.eigen_o.col(i);
        for (int end = 0; end < 2; ++end) {  // functions that vanish at cut ends, or are none
          if (!ends.cut[end]) continue;
          double trace = 0.0;
          for (int j = 0; j <= order; ++j) {
            trace += (end == 0 && j % 2 == 1 ? -1.0 : 1.0) * cell.value[j] * v[end * (order + 1) + j];
          }
          EXPECT_LT(std::abs(trace), 1e-10);
        }
        if (std::isinf(d.lambda_o[i])) {
          EXPECT_EQ(v.norm(), 0.0);
          continue;
        }
        const Matrix laplace = patch.laplace_o(ends.weight[0], ends.weight[1]) / (h[a] * h[a]);
        EXPECT_NEAR(v.norm(), 1.0, 1e-10);
        EXPECT_NEAR(v.dot(laplace * v), d.lambda_o[i], 1e-10 * laplace.norm());
        if (!ends.cut[0] && !ends.cut[1]) {
          EXPECT_LT((laplace * v - d.lambda_o[i] * v).norm(), 1e-10 * laplace.norm());
        }
      }
    }
  }
}

/// S of all eigenfunctions, blocks or not.
Matrix whole_schur(const PatchSolver& solver, int dim, int modes) {
  const int size = dim == 2 ? modes * modes : modes * modes * modes;
  Matrix s = Matrix::Zero(size, size);
  const std::array<int, 3> stride{1, modes, modes * modes};
  for (int c = 0; c < dim; ++c) {
    const PatchDirection& d = solver.direction(c);
    const int a = (c + 1) % dim;
    const int b = (c + 2) % 3;
    for (int ib = 0; ib < (dim == 3 ? modes : 1); ++ib) {
      for (int ia = 0; ia < modes; ++ia) {
        const int base = ia * stride[a] + (dim == 3 ? ib * stride[b] : 0);
        for (long e = 0; e < d.lambda_p.size(); ++e) {
          const double weight = solver.inverse_lambda(c)[(e * (dim == 3 ? modes : 1) + ib) * modes + ia];
          for (int i = 0; i < modes; ++i) {
            for (int j = 0; j < modes; ++j) {
              s(base + i * stride[c], base + j * stride[c]) += weight * d.divergence(i, e) * d.divergence(j, e);
            }
          }
        }
      }
    }
  }
  return s;
}

/// The blocks of the inverse of S where they belong.
Matrix whole_inverse(const PatchSolver& solver, int modes, long size) {
  Matrix inverse = Matrix::Zero(size, size);
  for (const SchurBlock& block : solver.blocks()) {
    std::vector<int> places;
    block.for_each(modes, [&](int at) { places.push_back(at); });
    inverse(places, places) = *block.inverse;
  }
  return inverse;
}

/// An inverse of S but for the constant.
void expect_inverse(const PatchSolver& solver, int dim, int order) {
  const int modes = 2 * (order + 1);
  const Matrix s = whole_schur(solver, dim, modes);
  const Matrix inverse = whole_inverse(solver, modes, s.rows());
  Matrix identity = Matrix::Identity(s.rows(), s.cols());
  if (solver.constant().size() > 0) identity -= solver.constant() * solver.constant().transpose();
  EXPECT_LT(distance(s * inverse, identity), 1e-14 * s.norm() * inverse.norm());
  EXPECT_TRUE(inverse == inverse.transpose());
}

TEST(PatchSolver, InversesAreThoseOfTheSchurComplement) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 60; ++trial) {
    const int dim = 2 + trial % 2;
    const int order = trial / 2 % 3;
    const PatchKind kind = random_kind(random, dim);
    const PatchSolver solver({.dim = dim, .order = order}, coefficients, h, kind, LocalSolverKind::direct);
    expect_inverse(solver, dim, order);
  }
}

TEST(PatchSolver, MirrorImagesShareInverses) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 30; ++trial) {
    const PatchKind kind = random_kind(random, 3);
    const Equation equation{.dim = 3, .order = 1};
    SchurInverses inverses;
    const SchurInverses::Keep keep(inverses);
    const PatchKind image = random_image(random, 3, kind);
    const PatchSolver first(equation, coefficients, h, kind, LocalSolverKind::direct, &inverses);
    const PatchSolver second(equation, coefficients, h, image, LocalSolverKind::direct, &inverses);
    EXPECT_EQ(first.inverses(), second.inverses());
    const PatchSolver alone(equation, coefficients, h, image, LocalSolverKind::direct);
    for (std::size_t i = 0; i < alone.blocks().size(); ++i) {
      EXPECT_TRUE(*alone.blocks()[i].inverse == *first.blocks()[i].inverse);
    }
  }
}

/// A cube with slip sides all round: blocks of 512 unknowns, on all cores, and less.
TEST(PatchSolver, OfALevelHaveTheBitsOfThoseMadeAlone) {
  constexpr int order = 3;
  Boundary boundary;
  for (Side& side : boundary.sides) side.kind = SideKind::slip;
  const Level level({.dim = 3, .order = order}, coefficients,
                    Grid({.dim = 3, .refine = 2, .holes = {}}, boundary, false), {});
  std::vector<int> kinds(level.patches.kinds.size());
  std::iota(kinds.begin(), kinds.end(), 0);
  ASSERT_EQ(kinds.size(), 27U);
  std::vector<std::optional<PatchSolver>> solvers(kinds.size());
  for_each_local_solver(level, kinds, LocalSolverKind::direct, BlockInverses::here,
                        [&](std::size_t i, const PatchSolver& solver) { solvers[i] = solver; });
  std::set<const Matrix*> distinct;
  for (const int i : kinds) {
    const PatchSolver alone(level.equation, coefficients, level.grid.metric().uniform_width(), level.patches.kinds[i],
                            LocalSolverKind::direct);
    ASSERT_EQ(alone.blocks().size(), solvers[i]->blocks().size());
    for (std::size_t block = 0; block < alone.blocks().size(); ++block) {
      const auto& inverse = solvers[i]->blocks()[block].inverse;
      EXPECT_TRUE(*alone.blocks()[block].inverse == *inverse);
      distinct.insert(inverse.get());
    }
  }
  EXPECT_EQ(distinct.size(), 1U + 3 * 2 + 3 * 4 + 8);  // corner, edges, faces, inside
  expect_inverse(*solvers[0], 3, order);

  const PatchTables<float> tables(level, kinds, LocalSolverKind::direct, false);
  std::set<const float*> places;
  for (const int i : kinds) {
    const PatchData<float> data = tables.data(i, tables.values().data());
    for (int block = 0; block < data.block_count; ++block) {
      places.insert(data.block_inverse[block]);
      const Matrix& inverse = *solvers[i]->blocks()[block].inverse;
      for (long i = 0; i < inverse.size(); ++i) {
        ASSERT_EQ(data.block_inverse[block][i], static_cast<float>(inverse.data()[i]));
      }
    }
  }
  EXPECT_EQ(places.size(), distinct.size());
}

}  // namespace
}  // namespace solenoid
