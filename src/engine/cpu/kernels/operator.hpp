#pragma once
/// \file
/// The operator, element by element. Lanes are cells.
///
///     y_c = nu (L^P_c + M^P_c (L^O_a + L^O_b)) u_c + alpha M^P_c u_c - B_c^T p,     y_p = -sum_c B_c u_c
///
/// A cell knows k + 2 functions of P: the hat on its lower face, k bubbles and the hat on its upper face, which the
/// next cell owns. It computes w = nu (L^O_a + L^O_b) u + alpha u on all of them (k + 2 columns), multiplies by the
/// cell's own mass matrix and has the complete rows of its bubbles, and its share of both hats. The share of the upper
/// hat is the *carry*: it is put where the next cell will find it, into that cell's hats of y, before that cell is
/// finished. Traffic: x once, y once (16 bytes per unknown in double), neighbours from the caches.

#include "engine/cpu/kernels/simd.hpp"
#include "engine/cpu/kernels/table.hpp"
#include "mesh/record.hpp"

namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE {

/// True if the mass matrix of P couples functions i and j of a cell (0 and n are hats).
constexpr bool mass_couples(int n, int i, int j) {
  const bool hat_i = i == 0 || i == n;
  const bool hat_j = j == 0 || j == n;
  if (hat_i && hat_j) return true;
  if (hat_i) return j <= 2;
  if (hat_j) return i <= 2;
  const int distance = i > j ? i - j : j - i;
  return distance == 0 || distance == 2;
}

constexpr int odd_sign(int j) { return j % 2 == 0 ? 1 : -1; }

/// The operator on the velocity component c of a batch of cells.
template <class T, int dim, int order, int c>
struct ComponentOperator {
  static constexpr int n = order + 1;
  static constexpr int columns = power(n, dim - 1);  // tangential modes
  static constexpr int rows = n + 1;
  static constexpr int record = record_size(dim, order);
  static constexpr int block = power(n, dim);
  using V = Simd<T>;

  /// w += nu L^O_t u on all rows, t the direction with stride `stride` inside a row.
  template <int stride>
  [[gnu::always_inline]] static void add_tangential(const CellData<T>& cell, const CellTopology& topology,
                                                    const std::int32_t* cells, int t, const T* x, const V* u, V* w) {
    V below[rows * columns];
    V above[rows * columns];
    load_neighbour(topology, cells, 2 * t, x, below);
    load_neighbour(topology, cells, 2 * t + 1, x, above);
    for (int line = 0; line < rows * columns / n; ++line) {
      const int start = line / stride * stride * n + line % stride;
      const V* own = u + start;
      // Coefficients of the test trace (value) and of the test derivative (slope) on the upper and lower face.
      V value_hi{};
      V value_lo{};
      V slope_hi{};
      V slope_lo{};
#pragma GCC unroll 16
      for (int j = 0; j < n; ++j) {
        value_lo += cell.trace_value[t][0][j] * below[start + j * stride];
        slope_lo += cell.trace_slope[t][0][j] * below[start + j * stride];
        value_hi += cell.trace_value[t][1][j] * above[start + j * stride];
        slope_hi += cell.trace_slope[t][1][j] * above[start + j * stride];
      }
      const V value_even = value_hi + value_lo;
      const V value_odd = value_hi - value_lo;
      const V slope_even = slope_hi + slope_lo;
      const V slope_odd = slope_hi - slope_lo;
#pragma GCC unroll 16
      for (int j = 0; j < n; ++j) {
        V sum = cell.value[j] * (j % 2 == 0 ? value_even : value_odd) +
                cell.slope[j] * (j % 2 == 0 ? slope_even : slope_odd);
#pragma GCC unroll 16
        for (int i = j % 2; i < n; i += 2) sum += cell.own[t][j][i] * own[i * stride];
        w[start + j * stride] += sum;
      }
    }
    for (int upper = 0; upper < 2; ++upper) {
      V extra{};
      bool any = false;
      for (int l = 0; l < lanes<T>; ++l) {
        const int weight = face_weight(topology.face[2 * t + upper][cells[l]]);
        extra[l] = static_cast<T>(weight - 1);
        any = any || weight != 1;
      }
      if (any) add_boundary_face<stride>(cell, t, upper, extra, u, w);
    }
  }

  /// w += extra nu E(u, .) on the lower or upper face in direction t: what a boundary face has over an interior one.
  template <int stride>
  static void add_boundary_face(const CellData<T>& cell, int t, int upper, V extra, const V* u, V* w) {
    const T factor = cell.viscosity * cell.inverse_h[t] * cell.inverse_h[t];
    const T sign = upper == 1 ? T(1) : T(-1);  // of odd modes
    for (int line = 0; line < rows * columns / n; ++line) {
      const int start = line / stride * stride * n + line % stride;
      V v{};
      V d{};
      for (int j = 0; j < n; ++j) {
        const V mode = (j % 2 == 0 ? T(1) : sign) * u[start + j * stride];
        v += cell.value[j] * mode;
        d += cell.slope[j] * mode;
      }
      const V value = factor * extra * (cell.penalty * v - T(0.5) * d);
      const V slope = factor * extra * T(-0.5) * v;
      for (int j = 0; j < n; ++j) {
        w[start + j * stride] += (j % 2 == 0 ? T(1) : sign) * (cell.value[j] * value + cell.slope[j] * slope);
      }
    }
  }

  /// The rows (lower hat, bubbles, upper hat) of component c of the cells behind face `side`.
  [[gnu::always_inline]] static void load_neighbour(const CellTopology& topology, const std::int32_t* cells, int side,
                                                    const T* x, V* out) {
    Lanes<T> at;
    Lanes<T> at_hat;
    for (int l = 0; l < lanes<T>; ++l) {
      const std::int32_t other = topology.neighbour[side][cells[l]];
      at.offset[l] = static_cast<std::int64_t>(other) * record;
      at_hat.offset[l] = static_cast<std::int64_t>(topology.neighbour[2 * c + 1][other]) * record;
    }
    load_records<block>(x, at, c * block, out);
    load_records<columns>(x, at_hat, c * block, out + block);
  }

  /// y: all rows of the element's velocity; q += B_c u in the pressure block.
  static void run(const CellData<T>& cell, const CellTopology& topology, const std::int32_t* cells, const T* x,
                  const V* p, V* y, V* q) {
    constexpr int a = (c + 1) % dim;
    constexpr int b = dim == 3 ? (c + 2) % dim : a;
    V u[rows * columns];
    V w[rows * columns];
    Lanes<T> at;
    Lanes<T> at_hat;
    for (int l = 0; l < lanes<T>; ++l) {
      at.offset[l] = static_cast<std::int64_t>(cells[l]) * record;
      at_hat.offset[l] = static_cast<std::int64_t>(topology.neighbour[2 * c + 1][cells[l]]) * record;
    }
    load_records<block>(x, at, c * block, u);
    load_records<columns>(x, at_hat, c * block, u + block);
    for (int i = 0; i < rows * columns; ++i) w[i] = cell.alpha * u[i];
    add_tangential<1>(cell, topology, cells, a, x, u, w);
    if constexpr (dim == 3) add_tangential<n>(cell, topology, cells, b, x, u, w);

    const T stiffness = cell.viscosity * cell.inverse_h[c] * cell.inverse_h[c];
    const T gradient = cell.inverse_h[c];
    constexpr int stride_c = pressure_stride(order, c);
    for (int column = 0; column < columns; ++column) {
      const int base = column % n * pressure_stride(order, a) + (dim == 3 ? column / n * pressure_stride(order, b) : 0);
      const V difference = u[n * columns + column] - u[column];
#pragma GCC unroll 16
      for (int i = 0; i < rows; ++i) {
        V sum{};
#pragma GCC unroll 16
        for (int j = 0; j < rows; ++j) {
          if (mass_couples(n, i, j)) sum += cell.mass[i][j] * w[j * columns + column];
        }
        if (i == 0) {
          sum += gradient * p[base] - stiffness * difference;
        } else if (i == n) {
          sum += stiffness * difference - gradient * p[base];
        } else {
          sum += stiffness * u[i * columns + column] - gradient * p[base + i * stride_c];
        }
        y[i * columns + column] = sum;
      }
      q[base] += gradient * difference;
#pragma GCC unroll 16
      for (int i = 1; i < n; ++i) q[base + i * stride_c] += gradient * u[i * columns + column];
    }
  }
};

template <class T, int dim, int order>
struct Operator {
  static constexpr int n = order + 1;
  static constexpr int columns = power(n, dim - 1);
  static constexpr int block = power(n, dim);
  static constexpr int record = record_size(dim, order);
  using V = Simd<T>;

  /// The carry of component c from `cells` (only lanes with a target get it), as the value of y.
  static void store_carry(const std::int32_t* target, const V* carry, int c, T* y, int active) {
    T spill[columns * lanes<T>];
    Lanes<T> at;
    for (int l = 0; l < lanes<T>; ++l) at.offset[l] = l * columns;
    store_records<columns>(spill, at, 0, carry, lanes<T>);
    for (int l = 0; l < active; ++l) {
      if (target[l] < 0) continue;
      T* to = y + static_cast<std::int64_t>(target[l]) * record + c * block;
      std::memcpy(to, spill + l * columns, columns * sizeof(T));
    }
  }

  template <int c>
  static void carry_from_outside(const ApplyArguments<T>& arguments) {
    for (std::int64_t first = 0; first < arguments.carry_count[c]; first += lanes<T>) {
      const int active = static_cast<int>(std::min<std::int64_t>(lanes<T>, arguments.carry_count[c] - first));
      std::int32_t cells[lanes<T>];
      std::int32_t target[lanes<T>];
      for (int l = 0; l < lanes<T>; ++l) {
        cells[l] = arguments.carry[c][first + (l < active ? l : 0)];
        target[l] = arguments.topology.neighbour[2 * c + 1][cells[l]];
      }
      V p[block];
      V y[(n + 1) * columns];
      V q[block];
      load_pressure(cells, arguments.x, p);
      for (int i = 0; i < block; ++i) q[i] = V{};
      ComponentOperator<T, dim, order, c>::run(*arguments.cell, arguments.topology, cells, arguments.x, p, y, q);
      store_carry(target, y + block, c, arguments.y, active);
    }
  }

  static void load_pressure(const std::int32_t* cells, const T* x, V* p) {
    Lanes<T> at;
    for (int l = 0; l < lanes<T>; ++l) at.offset[l] = static_cast<std::int64_t>(cells[l]) * record;
    load_records<block>(x, at, dim * block, p);
  }

  template <int c>
  [[gnu::always_inline]] static void component(const ApplyArguments<T>& arguments, const std::int32_t* cells,
                                               int active, const V* p, V* y, V* q) {
    const auto& topology = arguments.topology;
    ComponentOperator<T, dim, order, c>::run(*arguments.cell, topology, cells, arguments.x, p, y, q);
    // The carry goes to cells that come later in this range; others get it from their own range's carry list.
    std::int32_t target[lanes<T>];
    std::int32_t hat_only[lanes<T>];
    bool any_hat_only = false;
    for (int l = 0; l < lanes<T>; ++l) {
      const std::int32_t next = topology.neighbour[2 * c + 1][cells[l]];
      target[l] = next < topology.cells && next > cells[l] && next < arguments.end ? next : -1;
      hat_only[l] = next >= topology.cells && next < topology.records ? next : -1;
      any_hat_only = any_hat_only || hat_only[l] >= 0;
    }
    V* carry = y + block;
    store_carry(target, carry, c, arguments.y, active);
    if (any_hat_only) finish_hat_only(arguments, cells, hat_only, carry, c, active);

    // Complete the lower hats: what the cell below carried, nothing on prescribed faces.
    Lanes<T> at;
    V carried[columns];
    V has_below{};
    V free{};
    for (int l = 0; l < lanes<T>; ++l) {
      at.offset[l] = static_cast<std::int64_t>(cells[l]) * record;
      has_below[l] = topology.face[2 * c][cells[l]] == Face::interior ? T(1) : T(0);
      free[l] = normal_fixed(topology.face[2 * c][cells[l]]) ? T(0) : T(1);
    }
    load_records<columns>(arguments.y, at, c * block, carried);
    for (int i = 0; i < columns; ++i) y[i] = free * (y[i] + (has_below != T(0) ? carried[i] : V{}));
  }

  /// Rows of hat-only records: complete at once, since there is no cell above. Zero where the velocity is prescribed.
  static void finish_hat_only(const ApplyArguments<T>& arguments, const std::int32_t* cells,
                              const std::int32_t* hat_only, const V* carry, int c, int active) {
    for (int l = 0; l < active; ++l) {
      if (hat_only[l] < 0) continue;
      const bool fixed = normal_fixed(arguments.topology.face[2 * c + 1][cells[l]]);
      const std::int64_t offset = static_cast<std::int64_t>(hat_only[l]) * record + c * block;
      for (int i = 0; i < columns; ++i) {
        const T value = fixed ? T(0) : carry[i][l];
        arguments.y[offset + i] = arguments.b == nullptr ? value : (fixed ? T(0) : arguments.b[offset + i] - value);
      }
    }
  }

  static void apply(const ApplyArguments<T>& arguments) {
    carry_from_outside<0>(arguments);
    carry_from_outside<1>(arguments);
    if constexpr (dim == 3) carry_from_outside<2>(arguments);
    for (std::int32_t first = arguments.begin; first < arguments.end; first += lanes<T>) {
      const int active = std::min<int>(lanes<T>, arguments.end - first);
      std::int32_t cells[lanes<T>];
      for (int l = 0; l < lanes<T>; ++l) cells[l] = first + (l < active ? l : 0);
      V p[block];
      V q[block];
      V out[record + columns];  // each component's carry lies where the next component begins
      load_pressure(cells, arguments.x, p);
      for (int i = 0; i < block; ++i) q[i] = V{};
      component<0>(arguments, cells, active, p, out, q);
      component<1>(arguments, cells, active, p, out + block, q);
      if constexpr (dim == 3) component<2>(arguments, cells, active, p, out + 2 * block, q);
      for (int i = 0; i < block; ++i) out[dim * block + i] = -q[i];
      Lanes<T> at;
      for (int l = 0; l < lanes<T>; ++l) at.offset[l] = static_cast<std::int64_t>(cells[l]) * record;
      if (arguments.b != nullptr) {
        V b[record];
        load_records<record>(arguments.b, at, 0, b);
        for (int i = 0; i < record; ++i) out[i] = b[i] - out[i];
      }
      store_records<record>(arguments.y, at, 0, out, active);
    }
  }
};

}  // namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE
