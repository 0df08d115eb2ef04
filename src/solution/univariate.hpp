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

/// out(o, row, i) = sum over columns of matrix(row, column) in(o, column, i), i < inner fastest, o < outer; the matrix
/// row-major.
void contract(const double* matrix, int rows, int columns, int inner, int outer, const double* in, double* out);

/// The same; `in` has a whole number of such slices.
inline void contract(const UnivariateMatrix& matrix, int inner, const std::vector<double>& in,
                     std::vector<double>& out) {
  const int outer = static_cast<int>(in.size()) / (inner * matrix.columns);
  out.resize(static_cast<std::size_t>(outer) * matrix.rows * inner);
  contract(matrix.values.data(), matrix.rows, matrix.columns, inner, outer, in.data(), out.data());
}

}  // namespace solenoid
