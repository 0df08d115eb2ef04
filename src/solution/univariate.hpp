#pragma once
/// \file
/// Matrices of univariate functions, and tensors times them.

#include <cstddef>
#include <vector>

namespace solenoid {

/// Row-major.
struct UnivariateMatrix {
  int rows = 0;
  int columns = 0;
  std::vector<double> values{};

  static UnivariateMatrix zero(int rows, int columns) {
    return {rows, columns, std::vector<double>(static_cast<std::size_t>(rows) * columns, 0.0)};
  }
  double& operator()(int i, int j) { return values[static_cast<std::size_t>(i) * columns + j]; }
};

/// out(o, row, i) = sum over columns of matrix(row, column) in(o, column, i), i < inner fastest; `in` has a whole
/// number of such slices.
inline void contract(const UnivariateMatrix& matrix, int inner, const std::vector<double>& in,
                     std::vector<double>& out) {
  const std::size_t outer = in.size() / (static_cast<std::size_t>(inner) * matrix.columns);
  out.assign(outer * matrix.rows * inner, 0.0);
  for (std::size_t o = 0; o < outer; ++o) {
    for (int row = 0; row < matrix.rows; ++row) {
      double* to = &out[(o * matrix.rows + row) * inner];
      for (int column = 0; column < matrix.columns; ++column) {
        const double factor = matrix.values[static_cast<std::size_t>(row) * matrix.columns + column];
        const double* from = &in[(o * matrix.columns + column) * inner];
        for (int i = 0; i < inner; ++i) to[i] += factor * from[i];
      }
    }
  }
}

}  // namespace solenoid
