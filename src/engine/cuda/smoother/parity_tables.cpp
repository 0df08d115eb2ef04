#include "engine/cuda/smoother/parity_tables.hpp"

#include <algorithm>
#include <array>

#include "level/patch_solver.hpp"

namespace solenoid::cuda {
namespace {

/// The univariate tables of direction `d` for pressures of the given parity (parity_table_size).
template <class T>
void append_direction(const Equation& equation, const Coefficients& coefficients, const PatchDirection& d, int parity,
                      std::vector<T>& to) {
  const int n = equation.n();
  const int k = equation.order;
  const int columns = parity == 0 ? k : n;  // eigenfunctions of P of the other parity
  const int first = parity == 0 ? n : 0;
  // S_P with the middle hat in row 0.
  Matrix eigen_p = Matrix::Zero(n, n);
  eigen_p.block(1, 0, k, columns) = d.eigen_p.block(0, first, k, columns);
  if (parity == 1) eigen_p.row(0) = d.eigen_p.block(k, 0, 1, n);
  Matrix divergence = Matrix::Zero(n, n);
  divergence.leftCols(columns) = d.divergence.block(parity * n, first, n, columns);
  const auto append = [&](const auto& matrix) {
    for (long i = 0; i < matrix.rows(); ++i) {
      for (long j = 0; j < matrix.cols(); ++j) to.push_back(static_cast<T>(matrix(i, j)));
    }
    to.resize(to.size() + parity_padded(n, static_cast<int>(matrix.size())) - matrix.size(), T(0));
  };
  append(d.eigen_o.block(0, parity * n, n, n));
  append(eigen_p);
  append(divergence);
  append(Matrix(coefficients.viscosity * d.lambda_o.segment(parity * n, n)));
  Eigen::VectorXd lambda_p = Eigen::VectorXd::Ones(n);
  lambda_p.head(columns) = coefficients.viscosity * d.lambda_p.segment(first, columns) +
                           coefficients.reaction * Eigen::VectorXd::Ones(columns);
  append(lambda_p);
}

template <class T>
void append_schur(const Matrix& inverse, std::vector<T>& to) {
  if (inverse.rows() <= largest_plain_schur) {
    for (long i = 0; i < inverse.rows(); ++i) {
      for (long j = 0; j < inverse.cols(); ++j) to.push_back(static_cast<T>(inverse(i, j)));
    }
    return;
  }
  const SchurTiles tiles(static_cast<int>(inverse.rows()));
  for (int column = 0; column < tiles.columns; ++column) {
    for (int row = 0; row < tiles.rows; ++row) {
      for (int lane = 0; lane < 32; ++lane) {
        for (int i = 0; i < 4; ++i) {
          const long r = row * 16 + lane / 4 + i % 2 * 8;
          const long c = column * 8 + lane % 4 + i / 2 * 4;
          const bool inside = r < inverse.rows() && c < inverse.cols();
          to.push_back(inside ? static_cast<T>(inverse(r, c)) : T(0));
        }
      }
    }
  }
}

}  // namespace

template <class T>
ParityTables<T>::ParityTables(const Level& level, const std::vector<int>& kinds) {
  const Equation& equation = level.equation;
  const int dim = equation.dim;
  const int table_size = parity_table_size(equation.n());
  univariate.assign(static_cast<std::size_t>(dim) * parity_weights * 2 * table_size, T(0));
  struct OfKind {
    std::array<std::array<std::vector<T>, 2>, 3> univariate;
    std::vector<T> schur;
  };
  std::vector<OfKind> made(kinds.size());
  for_each_local_solver(level, kinds, LocalSolverKind::direct, [&](std::size_t i, const PatchSolver& solver) {
    for (int d = 0; d < dim; ++d) {
      for (int odd = 0; odd < 2; ++odd) {
        append_direction(equation, level.coefficients, solver.direction(d), odd, made[i].univariate[d][odd]);
      }
    }
    for (const SchurBlock& block : solver.blocks()) append_schur(*block.inverse, made[i].schur);
  });
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const PatchKind& kind = level.patches.kinds[kinds[i]];
    for (int d = 0; d < dim; ++d) {
      for (int odd = 0; odd < 2; ++odd) {
        const std::vector<T>& table = made[i].univariate[d][odd];
        std::copy(table.begin(), table.end(),
                  univariate.begin() + ((d * parity_weights + kind[d].weight[0]) * 2 + odd) * table_size);
      }
    }
    schur.insert(schur.end(), made[i].schur.begin(), made[i].schur.end());
  }
}

template struct ParityTables<float>;
template struct ParityTables<double>;

}  // namespace solenoid::cuda
