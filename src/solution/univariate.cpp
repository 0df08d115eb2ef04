#include "solution/univariate.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace solenoid {
namespace {

/// With inner = 1: rows are what lies side by side.
template <int Columns>
void contract_vectors(const double* __restrict matrix, int rows, int outer, const double* __restrict in,
                      double* __restrict out) {
  constexpr int most = 16;
  std::array<double, static_cast<std::size_t>(most) * Columns> columns;
  for (int first = 0; first < rows; first += most) {
    const int some = std::min(most, rows - first);
    for (int j = 0; j < some; ++j) {
      for (int m = 0; m < Columns; ++m) columns[m * most + j] = matrix[(first + j) * Columns + m];
    }
    for (int o = 0; o < outer; ++o) {
      const double* x = in + o * Columns;
      double* y = out + o * rows + first;
      for (int j = 0; j < some; ++j) {
        double sum = columns[j] * x[0];
        for (int m = 1; m < Columns; ++m) sum += columns[m * most + j] * x[m];
        y[j] = sum;
      }
    }
  }
}

/// Sums of a length known at compile time are several times faster.
template <int Columns>
void contract_fixed(const double* __restrict matrix, int rows, int inner, int outer, const double* __restrict in,
                    double* __restrict out) {
  if (inner == 1 && outer > 1) return contract_vectors<Columns>(matrix, rows, outer, in, out);
  for (int o = 0; o < outer; ++o, in += Columns * inner) {
    for (int j = 0; j < rows; ++j, out += inner) {
      const double* row = matrix + j * Columns;
      for (int i = 0; i < inner; ++i) {
        double sum = row[0] * in[i];
        for (int m = 1; m < Columns; ++m) sum += row[m] * in[m * inner + i];
        out[i] = sum;
      }
    }
  }
}

void contract_any(const double* matrix, int rows, int columns, int inner, int outer, const double* in, double* out) {
  for (int o = 0; o < outer; ++o, in += columns * inner) {
    for (int j = 0; j < rows; ++j, out += inner) {
      for (int i = 0; i < inner; ++i) {
        double sum = 0.0;
        for (int m = 0; m < columns; ++m) sum += matrix[j * columns + m] * in[m * inner + i];
        out[i] = sum;
      }
    }
  }
}

/// [columns - 1]
template <std::size_t... Index>
constexpr auto contraction_table(std::index_sequence<Index...>) {
  return std::array{&contract_fixed<static_cast<int>(Index) + 1>...};
}
constexpr int most_columns = 16;
constexpr auto contractions = contraction_table(std::make_index_sequence<most_columns>());

}  // namespace

void contract(const double* matrix, int rows, int columns, int inner, int outer, const double* in, double* out) {
  if (columns > most_columns) return contract_any(matrix, rows, columns, inner, outer, in, out);
  contractions[columns - 1](matrix, rows, inner, outer, in, out);
}

}  // namespace solenoid
