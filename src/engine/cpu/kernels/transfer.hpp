#pragma once
/// \file
/// Embedding of the coarse space into the fine one, and its transpose. Lanes are coarse cells.
///
/// Tangential directions and pressure: a coarse mode is a combination of the modes of each child. Own direction: the
/// fine hat on the middle face is the coarse function there, half of either coarse hat plus the bubbles. In directions
/// that are not coarsened a cell is its own child. Poisson's u is embedded as a pressure is.

#include "engine/cpu/kernels/simd.hpp"
#include "engine/cpu/kernels/table.hpp"
#include "mesh/record.hpp"

namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE {

template <class T, EquationKind equation, int dim, int order>
struct Transfer {
  static constexpr int n = order + 1;
  static constexpr int block = power(n, dim);
  static constexpr int columns = power(n, dim - 1);
  static constexpr int velocities = velocity_components(equation, dim);
  static constexpr int record = record_size(dim, order, equation);
  static constexpr int corners = 1 << dim;
  using V = Simd<T>;

  using Places = Lanes<record>;

  /// A batch of coarse cells, the null record in lanes without one.
  static void batch_from(const TransferArguments<T>& arguments, std::int32_t first, std::int32_t* cells) {
    for (int l = 0; l < width; ++l) cells[l] = first + l < arguments.end ? first + l : arguments.coarse.null;
  }
  /// Their children `bits`.
  static Places children_of(const TransferArguments<T>& arguments, const std::int32_t* cells, int bits) {
    std::int32_t children[width];
    for (int l = 0; l < width; ++l) {
      children[l] = cells[l] < arguments.coarse.cells ? arguments.children[cells[l] * std::int64_t(corners) + bits]
                                                      : arguments.fine_null;
    }
    return Places(children, arguments.fine_null);
  }

  static bool exists(const TransferArguments<T>& arguments, int bits) {
    for (int a = 0; a < dim; ++a) {
      if ((bits >> a & 1) != 0 && !arguments.refined[a]) return false;
    }
    return true;
  }

  /// Lines of length n with the given stride in an array of `values` values: y = E x (or E^T x).
  template <bool transposed>
  [[gnu::always_inline]] static void tangential(const T (*embed)[max_n], const V* x, V* y, int values, int stride) {
    for (int line = 0; line < values / n; ++line) {
      const int start = line / stride * stride * n + line % stride;
#pragma GCC unroll 16
      for (int i = 0; i < n; ++i) {
        V sum{};
#pragma GCC unroll 16
        for (int j = 0; j < n; ++j) sum += (transposed ? embed[j][i] : embed[i][j]) * x[start + j * stride];
        y[start + i * stride] = sum;
      }
    }
  }

  /// Tangential embedding of `values` velocity values (rows of n^(dim-1)) of component c into child `bits`, in place.
  template <bool transposed>
  static void tangential_velocity(const TransferArguments<T>& arguments, int c, int bits, V* x, int values) {
    V y[(n + 1) * columns];
    for (int turn = 1; turn < dim; ++turn) {
      const int a = (c + turn) % dim;
      if (!arguments.refined[a]) continue;
      tangential<transposed>(arguments.cell->embed_o[bits >> a & 1], x, y, values, power(n, turn - 1));
      for (int i = 0; i < values; ++i) x[i] = y[i];
    }
  }
  template <bool transposed>
  static void embed_pressure(const TransferArguments<T>& arguments, int bits, V* x) {
    V y[block];
    for (int a = 0; a < dim; ++a) {
      if (!arguments.refined[a]) continue;
      tangential<transposed>(arguments.cell->embed_o[bits >> a & 1], x, y, block, power(n, a));
      for (int i = 0; i < block; ++i) x[i] = y[i];
    }
  }

  static void prolong_add(const TransferArguments<T>& arguments) {
    for (std::int32_t first = arguments.begin; first < arguments.end; first += width) {
      std::int32_t cells[width];
      batch_from(arguments, first, cells);
      V coarse[record];
      V upper[dim][columns];
      Places(cells, arguments.coarse.null).template load_values<record>(arguments.from, 0, coarse);
      for (int c = 0; c < velocities; ++c) {
        std::int32_t above[width];
        for (int l = 0; l < width; ++l) above[l] = arguments.coarse.neighbour[2 * c + 1][cells[l]];
        Places(above, arguments.coarse.null).template load_values<columns>(arguments.from, c * block, upper[c]);
      }
      for (int bits = 0; bits < corners; ++bits) {
        if (!exists(arguments, bits)) continue;
        V fine[record];
        for (int c = 0; c < velocities; ++c) {
          V own[block];
          embed_own(arguments, c, bits >> c & 1, coarse + c * block, upper[c], own);
          tangential_velocity<false>(arguments, c, bits, own, block);
          for (int i = 0; i < block; ++i) fine[c * block + i] = own[i];
        }
        V* p = fine + velocities * block;
        for (int i = 0; i < block; ++i) p[i] = coarse[velocities * block + i];
        embed_pressure<false>(arguments, bits, p);
        children_of(arguments, cells, bits).template write<true>(record, arguments.to, 0, fine);
      }
    }
  }

  /// Own direction: lower hat and bubbles of a child from hats and bubbles of the coarse cell.
  static void embed_own(const TransferArguments<T>& arguments, int c, int child, const V* coarse, const V* upper,
                        V* fine) {
    if (!arguments.refined[c]) {
      for (int i = 0; i < block; ++i) fine[i] = coarse[i];
      return;
    }
    const auto& embed = arguments.cell->embed_p[child];
    for (int column = 0; column < columns; ++column) {
      for (int i = 0; i < n; ++i) {
        V sum = embed[i][n] * upper[column];
#pragma GCC unroll 16
        for (int j = 0; j < n; ++j) sum += embed[i][j] * coarse[j * columns + column];
        fine[i * columns + column] = sum;
      }
    }
  }

  static void restrict_to(const TransferArguments<T>& arguments) {
    for (std::int32_t first = arguments.begin; first < arguments.end; first += width) {
      std::int32_t cells[width];
      batch_from(arguments, first, cells);
      V coarse[record]{};
      for (int bits = 0; bits < corners; ++bits) {
        if (!exists(arguments, bits)) continue;
        V fine[record];
        children_of(arguments, cells, bits).template load_values<record>(arguments.from, 0, fine);
        for (int c = 0; c < velocities; ++c) {
          V* own = fine + c * block;
          tangential_velocity<true>(arguments, c, bits, own, block);
          for (int i = 0; i < n; ++i) {  // fine function i feeds the coarse functions 0..k of this cell
            if (!arguments.refined[c]) {
              for (int column = 0; column < columns; ++column) {
                coarse[c * block + i * columns + column] += own[i * columns + column];
              }
              continue;
            }
            for (int j = 0; j < n; ++j) {
              const T weight = arguments.cell->embed_p[bits >> c & 1][i][j];
              for (int column = 0; column < columns; ++column) {
                coarse[c * block + j * columns + column] += weight * own[i * columns + column];
              }
            }
          }
          if ((bits >> c & 1) != 0) add_from_below(arguments, c, bits, cells, coarse + c * block);
        }
        V* p = fine + velocities * block;
        embed_pressure<true>(arguments, bits, p);
        for (int i = 0; i < block; ++i) coarse[velocities * block + i] += p[i];
      }
      for (int c = 0; c < velocities; ++c) {
        alignas(SOLENOID_SIMD_BYTES) T free[width];
        for (int l = 0; l < width; ++l) free[l] = normal_fixed(arguments.coarse.face[2 * c][cells[l]]) ? T(0) : T(1);
        for (int i = 0; i < columns; ++i) coarse[c * block + i] *= load(free);
      }
      Places(cells, arguments.coarse.null).template write<false>(record, arguments.to, 0, coarse);
    }
  }

  /// The middle hats of the coarse cell below in direction c feed this cell's lower hat.
  static void add_from_below(const TransferArguments<T>& arguments, int c, int bits, const std::int32_t* cells,
                             V* hats) {
    std::int32_t below[width];
    for (int l = 0; l < width; ++l) below[l] = arguments.coarse.neighbour[2 * c][cells[l]];
    V fine[columns];
    children_of(arguments, below, bits).template load_values<columns>(arguments.from, c * block, fine);
    tangential_velocity<true>(arguments, c, bits, fine, columns);
    const T weight = arguments.cell->embed_p[1][0][n];
    for (int i = 0; i < columns; ++i) hats[i] += weight * fine[i];
  }
};

}  // namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE
