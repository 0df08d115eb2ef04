#include "engine/cuda/smoother/parity_tables.hpp"

#include <optional>

#include "engine/cuda/smoother/inverse_form.hpp"

namespace solenoid::cuda {
namespace {

/// The univariate tables of direction `d` for pressures of the given parity (parity_table_size), between zeros.
template <class T>
void write_direction(const Equation& equation, double viscosity, double reaction, const PatchDirection& d, int parity,
                     T* to) {
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
  const auto write = [&](const auto& matrix) {
    for (long i = 0; i < matrix.rows(); ++i) {
      for (long j = 0; j < matrix.cols(); ++j) to[i * matrix.cols() + j] = static_cast<T>(matrix(i, j));
    }
    to += parity_padded(n, static_cast<int>(matrix.size()));
  };
  write(d.eigen_o.block(0, parity * n, n, n));
  write(eigen_p);
  write(divergence);
  write(Matrix(viscosity * d.lambda_o.segment(parity * n, n)));
  Eigen::VectorXd lambda_p = Eigen::VectorXd::Ones(n);
  lambda_p.head(columns) = viscosity * d.lambda_p.segment(first, columns) + reaction * Eigen::VectorXd::Ones(columns);
  write(lambda_p);
}

}  // namespace

template <class T>
ParityTables<T>::ParityTables(const Level& level, const std::vector<ParityProblem>& problems) {
  const Equation& equation = level.equation;
  const int dim = equation.dim;
  const int table_size = parity_table_size(equation.n());
  univariate.assign(static_cast<std::size_t>(dim) * parity_weights * 2 * table_size, T(0));
  const double viscosity = level.coefficients.viscosity;
  // Otherwise what is added to sums of eigenvalues has them (ParityArguments::reaction).
  const bool alike = !level.is_sheared() && !level.has_coefficients_by_cell();
  const double in_tables = alike ? level.coefficients.reaction : 0.0;
  for (std::size_t first = 0; first < problems.size();) {
    const double reaction = problems[first].reaction;
    std::vector<int> kinds;
    for (; first < problems.size() && problems[first].reaction == reaction; ++first) {
      kinds.push_back(problems[first].kind);
    }
    std::vector<std::optional<PatchSolver>> solvers(kinds.size());
    Coefficients constant = level.coefficients;
    constant.reaction = reaction;
    constant.by_cell = nullptr;
    for_each_local_solver(level, constant, kinds, LocalSolverKind::direct, BlockInverses::elsewhere,
                          [&](std::size_t i, const PatchSolver& solver) { solvers[i] = solver; });
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      const PatchSolver& solver = *solvers[i];
      const PatchKind& kind = level.patches.kinds[kinds[i]];
      for (int d = 0; d < dim; ++d) {
        for (int odd = 0; odd < 2; ++odd) {
          T* const to = univariate.data() + ((d * parity_weights + kind[d].weight[0]) * 2 + odd) * table_size;
          write_direction(equation, viscosity, in_tables, solver.direction(d), odd, to);
        }
      }
      std::vector<std::size_t> places;
      for (const SchurBlock& block : solver.blocks()) {
        places.push_back(schur_size);
        schur_size += inverse_numbers(InverseForm::operands, block.size());
      }
      missing.push_back({solver, places});
    }
  }
}

template struct ParityTables<float>;
template struct ParityTables<double>;

}  // namespace solenoid::cuda
