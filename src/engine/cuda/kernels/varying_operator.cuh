#pragma once
/// \file
/// The operator where coefficients vary by cell, element by element.
///
/// In the gradient form component c of the velocity has on a cell K
///
///     y_c = nu_K L^P_c u_c + M^P_c w_c - B_c^T p,     w_c = (alpha_K + sum_a (nu_K V_a + faces)) u_c,
///
/// V the stiffness of O; faces and the stress form are those of cpu/kernels/varying_operator.hpp, term by term. A cell
/// knows n + 1 functions of P: the hat on its lower face, bubbles, and the hat on its upper face, which is the next
/// cell's.
///
/// A thread block has `cells` cells side by side, and n + 1 threads for each of them. For one component after the other
/// these have, with barriers in between,
///   1. a row: w on a plane of tangential modes, to shared memory;
///   2. the columns of one mode in direction a = c + 1: mass matrix, stiffness, gradient; in the stress form what u_a
///      gives to that mode, of all modes along c;
///   3. in 3D and the stress form, where rows are in shared memory by then, adds what u_b gives to a mode in direction
///      b = c + 2.

#include "engine/cuda/kernels/element_rows.cuh"

namespace solenoid::cuda {

/// Matrices, passed by value so that they are constants of the kernel.
template <class T, int dim, int order>
struct VaryingTables {
  static constexpr int n = order + 1;
  T mass[n + 1][n + 1];
  T volume[n][n];
  T value[n];
  T slope[n];
  T penalty;
  T inverse_h[dim];
  T stiffness;  ///< factor of L^P: 2 in the stress form

  VaryingTables(const CellData<T>& cell, const VaryingData<T>& varying)
      : penalty(cell.penalty), stiffness(varying.stress ? T(2) : T(1)) {
    for (int i = 0; i <= n; ++i) {
      for (int j = 0; j <= n; ++j) mass[i][j] = cell.mass[i][j];
    }
    for (int j = 0; j < n; ++j) {
      value[j] = cell.value[j];
      slope[j] = cell.slope[j];
      for (int i = 0; i < n; ++i) volume[j][i] = varying.volume[j][i];
    }
    for (int a = 0; a < dim; ++a) inverse_h[a] = cell.inverse_h[a];
  }
};

template <class T>
struct VaryingFields : ElementFields<T> {
  const T* viscosity;
  const T* reaction;

  explicit VaryingFields(const ElementArguments<T>& from)
      : ElementFields<T>(from), viscosity(from.varying->viscosity), reaction(from.varying->reaction) {}
};

template <class T, int dim, int order, Makes makes>
struct VaryingOperator {
  using S = Shape<dim, order>;
  using Tables = VaryingTables<T, dim, order>;
  using Fields = VaryingFields<T>;
  static constexpr int n = S::n;
  static constexpr int columns = S::columns;
  static constexpr int block = S::block;
  static constexpr int lines = S::lines;
  static constexpr int rows = n + 1;
  static constexpr int cells = block <= 9 ? 64 : block <= 64 ? 32 : 16;  // of a thread block
  static constexpr int threads = cells * rows;

  struct Shared {
    T w[rows][columns][cells];
    T viscosity[cells];
    T reaction[cells];
    T weight[2 * dim]
            [cells];  ///< nu_F of faces, doubled where velocities are prescribed, none on slip and outflow faces
    T shear[2 * dim][cells];              ///< the same, not doubled: of what couples components
    std::int32_t beside[2 * dim][cells];  ///< cells beyond faces, or the null record
    std::int32_t above[dim][cells];       ///< the records that have the upper hats
    std::int32_t takes[dim][cells];       ///< the same if these are unknowns, or -1
    bool fixed[dim][cells];               ///< lower hats are no unknowns
    T root[cells];                        ///< ElementRows::find_root
  };

  const Tables& tables;
  const Fields& fields;
  Shared& shared;
  const ElementRows<T, dim, order, makes> own_rows;
  const int slot = static_cast<int>(threadIdx.x);
  const int turn = static_cast<int>(threadIdx.y);  // of the cell's threads
  const std::int32_t cell;
  const std::int64_t place;  // of its value 0

  __device__ VaryingOperator(const Tables& tables_, const Fields& fields_, Shared& shared_)
      : tables(tables_),
        fields(fields_),
        shared(shared_),
        own_rows(fields_),
        cell(own_rows.cell),
        place(own_rows.place) {}

  __device__ void look_around() const {
    const CellTopology& topology = fields.topology;
    const T nu = fields.viscosity[cell];
    if (turn == 0) {
      shared.viscosity[slot] = nu;
      shared.reaction[slot] = fields.reaction[cell];
    }
    if (turn == n) shared.root[slot] = own_rows.find_root();  // who has the fewest sides
#pragma unroll 1
    for (int side = turn; side < 2 * dim; side += rows) {
      const Face face = topology.face[side][cell];
      const std::int32_t beside = topology.neighbour[side][cell];
      const bool interior = face == Face::interior;
      const T shear = interior                 ? T(2) / (T(1) / nu + T(1) / fields.viscosity[beside])
                      : face == Face::velocity ? nu
                                               : T(0);
      shared.shear[side][slot] = shear;
      shared.weight[side][slot] = interior ? shear : T(2) * shear;
      shared.beside[side][slot] = interior ? beside : topology.null;
      if (side % 2 == 0) {
        shared.fixed[side / 2][slot] = own_rows.fixes_lower(side / 2);
      } else {
        shared.above[side / 2][slot] = beside;
        shared.takes[side / 2][slot] = own_rows.taker(side / 2);
      }
    }
  }

  // --- 1: w ----------------------------------------------------------------------------------------------------------

  /// w += (nu V + faces) u along the lines of a plane of modes. below, above: the same plane of the cells beyond.
  template <int of>
  __device__ void add_tangential(int t, const T* below, const T* above, const T (&u)[lines][n],
                                 T (&w)[lines][n]) const {
    const auto slow = [](int line, int m) { return of == 0 ? line : m; };
    const auto fast = [](int line, int m) { return of == 0 ? m : line; };
    const T scale = tables.inverse_h[t] * tables.inverse_h[t];
    const T nu = scale * shared.viscosity[slot];
    const T below_face = scale * shared.weight[2 * t][slot];
    const T above_face = scale * shared.weight[2 * t + 1][slot];
#pragma unroll
    for (int line = 0; line < lines; ++line) {
      // Traces: of the cell's even and odd modes on its upper face, of its neighbours on the shared faces; slopes point
      // up.
      T value[2]{};
      T slope[2]{};
      T below_value{};
      T below_slope{};
      T above_value{};
      T above_slope{};
#pragma unroll
      for (int m = 0; m < n; ++m) {
        const int at = (slow(line, m) * n + fast(line, m)) * interleave;
        const T own = u[slow(line, m)][fast(line, m)];
        const T lower = __ldg(below + at);
        const T upper = m % 2 == 0 ? __ldg(above + at) : -__ldg(above + at);
        value[m % 2] += tables.value[m] * own;
        slope[m % 2] += tables.slope[m] * own;
        below_value += tables.value[m] * lower;
        below_slope += tables.slope[m] * lower;
        above_value += tables.value[m] * upper;
        above_slope -= tables.slope[m] * upper;
      }
      const T jump_above = (value[0] + value[1]) - above_value;
      const T jump_below = below_value - (value[0] - value[1]);
      const T mean_above = T(0.5) * ((slope[0] + slope[1]) + above_slope);
      const T mean_below = T(0.5) * (below_slope + (slope[1] - slope[0]));
      // Of test functions on the upper and on the lower face,
      const T upper_value = above_face * (tables.penalty * jump_above - mean_above);
      const T lower_value = -(below_face * (tables.penalty * jump_below - mean_below));
      const T upper_slope = T(-0.5) * (above_face * jump_above);
      const T lower_slope = T(-0.5) * (below_face * jump_below);
      // and of even and odd ones.
      const T value_of[2] = {upper_value + lower_value, upper_value - lower_value};
      const T slope_of[2] = {upper_slope - lower_slope, upper_slope + lower_slope};
#pragma unroll
      for (int j = 0; j < n; ++j) {
        T stiffness{};
#pragma unroll
        for (int i = j % 2; i < n; i += 2) stiffness += tables.volume[j][i] * u[slow(line, i)][fast(line, i)];
        w[slow(line, j)][fast(line, j)] +=
            nu * stiffness + (tables.value[j] * value_of[j % 2] + tables.slope[j] * slope_of[j % 2]);
      }
    }
  }
  /// On the thread's row of component c.
  __device__ void make_w(int c) const {
    const bool hat = turn == n;
    const T* const x = fields.x + (c * block + (hat ? 0 : turn * columns)) * interleave;
    const auto row_of = [&](std::int32_t record) {
      return x + S::offset(hat ? fields.topology.neighbour[2 * c + 1][record] : record);
    };
    const T* const own = x + S::offset(hat ? shared.above[c][slot] : cell);
    const T reaction = shared.reaction[slot];
    T u[lines][n];
    T w[lines][n];
    unrolled<lines, n>([&](int s, int f) {
      u[s][f] = __ldg(own + (s * n + f) * interleave);
      w[s][f] = reaction * u[s][f];
    });
    const int a = (c + 1) % dim;
    add_tangential<0>(a, row_of(shared.beside[2 * a][slot]), row_of(shared.beside[2 * a + 1][slot]), u, w);
    if constexpr (dim == 3) {
      const int b = (c + 2) % dim;
      add_tangential<1>(b, row_of(shared.beside[2 * b][slot]), row_of(shared.beside[2 * b + 1][slot]), u, w);
    }
    unrolled<lines, n>([&](int s, int f) { shared.w[turn][s * n + f][slot] = w[s][f]; });
  }

  // --- 2: columns ----------------------------------------------------------------------------------------------------

  /// Column of component `of` with mode m in direction t, and mode r in the other one.
  __device__ static int column_of(int of, int t, int m, int r) { return (of + 1) % dim == t ? m + n * r : r + n * m; }

  /// A column of component c: y[i], the hat on the upper face last.
  __device__ void multiply(int c, int column, int f, int s, T (&y)[rows]) const {
#pragma unroll
    for (T& value : y) value = T(0);
#pragma unroll
    for (int j = 0; j <= n; ++j) {
      const T w = shared.w[j][column][slot];
#pragma unroll
      for (int i = 0; i <= n; ++i) {
        if (mass_couples(n, i, j)) y[i] += tables.mass[i][j] * w;
      }
    }
    const T* const u = fields.x + place + (c * block + column) * interleave;
    const T* const upper = fields.x + S::offset(shared.above[c][slot]) + (c * block + column) * interleave;
    const int first = f * S::pressure_stride((c + 1) % dim) + s * S::pressure_stride((c + 2) % dim);
    const T* const p = fields.x + place + (dim * block + first) * interleave;
    const int step = S::pressure_stride(c) * interleave;
    const T h = tables.inverse_h[c];
    const T nu = tables.stiffness * h * h * shared.viscosity[slot];
    const T end = nu * (__ldg(upper) - __ldg(u)) - h * __ldg(p);
    y[0] -= end;
    y[n] += end;
#pragma unroll
    for (int i = 1; i < n; ++i) y[i] += nu * __ldg(u + i * columns * interleave) - h * __ldg(p + i * step);
  }

  /// y += what u_t gives to the column of component c with mode i in direction t and r in the other one.
  __device__ void couple(int c, int t, int i, int r, T (&y)[rows]) const {
    const T* const u = fields.x + place + t * block * interleave;
    const T* const upper = fields.x + S::offset(shared.above[t][slot]) + t * block * interleave;
    const T scale = tables.inverse_h[c] * tables.inverse_h[t];
    const T nu = scale * shared.viscosity[slot];
    const T at_upper = nu - scale * shared.shear[2 * t + 1][slot];
    const T at_lower = nu - scale * shared.shear[2 * t][slot];
    const T upper_face = scale * shared.shear[2 * c + 1][slot];
    const T lower_face = scale * shared.shear[2 * c][slot];
    const T value = tables.value[i];
    const T sign = i % 2 == 0 ? T(1) : T(-1);
#pragma unroll
    for (int j = 0; j < n; ++j) {
      // X_t u without and with coefficients.
      const int at = column_of(t, c, j, r) * interleave;
      const T high = __ldg(upper + at);
      const T low = __ldg(u + at);
      const T inner = i == 0 ? high - low : __ldg(u + at + i * columns * interleave);
      const T plain = value * (high - sign * low) - inner;
      const T weighted = value * (at_upper * high - sign * (at_lower * low)) - nu * inner;
      y[n] += tables.value[j] * (weighted - upper_face * plain);
      y[0] -= (j % 2 == 0 ? tables.value[j] : -tables.value[j]) * (weighted - lower_face * plain);
      if (j == 0) {
        y[0] += weighted;
        y[n] -= weighted;
      } else {
        y[j] -= weighted;
      }
    }
  }

  /// y_p = -sum_c B_c u_c on the plane of the thread's last index.
  __device__ void divergence(T root) const {
    const T* const u = fields.x + place;
    const T* above[dim];
#pragma unroll
    for (int c = 0; c < dim; ++c) above[c] = fields.x + S::offset(shared.above[c][slot]) + c * block * interleave;
    const auto mode = [&](int i1, int i0) { return i0 + n * ((dim == 3 ? i1 : turn) + n * (dim == 3 ? turn : 0)); };
    T b[lines][n];
    unrolled<lines, n>([&](int i1, int i0) { b[i1][i0] = own_rows.fetch_pressure(mode(i1, i0)); });
    T sum[lines][n];
    unrolled<lines, n>([&](int i1, int i0) {
      const int index[3] = {i0, dim == 3 ? i1 : turn, dim == 3 ? turn : 0};
      sum[i1][i0] = T(0);
#pragma unroll
      for (int c = 0; c < dim; ++c) {
        const int column = index[(c + 1) % dim] + (dim == 3 ? n * index[(c + 2) % 3] : 0);
        T of_c = __ldg(u + (c * block + index[c] * columns + column) * interleave);
        if (index[c] == 0) of_c = __ldg(above[c] + column * interleave) - of_c;
        sum[i1][i0] += tables.inverse_h[c] * of_c;
      }
    });
    unrolled<lines, n>([&](int i1, int i0) { own_rows.store_pressure(mode(i1, i0), root, b[i1][i0], -sum[i1][i0]); });
  }

  /// In the stress form in 3D rows of a column are kept where its w was, which nobody else reads.
  template <bool stress>
  static constexpr bool by_way_of_shared = dim == 3 && stress;
  /// Columns that are multiplied at once: where all of them would take too many registers, one after the other.
  static constexpr int at_once = n * n * sizeof(T) > 100 ? 1 : lines;

  /// What a thread's columns have of w and of the component in direction a.
  __device__ void make_rows(int c) const {
#pragma unroll(at_once)
    for (int r = 0; r < lines; ++r) {
      const int column = turn + n * r;
      T y[rows];
      multiply(c, column, turn, r, y);
      couple(c, (c + 1) % dim, turn, r, y);
#pragma unroll
      for (int i = 0; i <= n; ++i) shared.w[i][column][slot] = y[i];
    }
  }
  /// What the component in direction b gives to columns, of which the thread has a mode in that direction.
  __device__ void add_coupled(int c) const {
#pragma unroll(at_once)
    for (int r = 0; r < lines; ++r) {
      const int column = r + n * turn;
      T more[rows]{};
      couple(c, (c + 2) % dim, turn, r, more);
#pragma unroll
      for (int i = 0; i <= n; ++i) shared.w[i][column][slot] += more[i];
    }
  }
  __device__ void fetch(int c, T (&b)[lines][n]) const {
#pragma unroll
    for (int r = 0; r < lines; ++r) own_rows.fetch(c, turn + n * r, b[r]);
  }
  __device__ void store(int c, int r, T factor, const T (&b)[n], const T (&y)[rows]) const {
    own_rows.store(c, turn + n * r, shared.fixed[c][slot], shared.takes[c][slot], factor, b, y);
  }

  template <bool stress>
  __device__ void apply() const {
    look_around();
    wait_for_earlier_kernels();
    __syncthreads();
    const bool works = turn < n && own_rows.are_wanted();
    const T root = shared.root[slot];
    const T factor = T(1) / root;
    if (works) divergence(root);
#pragma unroll 1
    for (int c = 0; c < dim; ++c) {
      T b[lines][n];
      if (works && !by_way_of_shared<stress>) fetch(c, b);
      make_w(c);
      __syncthreads();
      if constexpr (by_way_of_shared<stress>) {
        if (works) make_rows(c);
        __syncthreads();
        if (works) {
          fetch(c, b);
          add_coupled(c);
        }
        __syncthreads();
        if (works) {
#pragma unroll
          for (int r = 0; r < lines; ++r) {
            T y[rows];
#pragma unroll
            for (int i = 0; i <= n; ++i) y[i] = shared.w[i][turn + n * r][slot];
            store(c, r, factor, b[r], y);
          }
        }
      } else if (works) {
        T y[lines][rows];
#pragma unroll
        for (int r = 0; r < lines; ++r) {
          multiply(c, turn + n * r, turn, r, y[r]);
          if constexpr (stress) couple(c, (c + 1) % dim, turn, r, y[r]);
        }
#pragma unroll
        for (int r = 0; r < lines; ++r) store(c, r, factor, b[r], y[r]);
      }
      if (c + 1 < dim) __syncthreads();
    }
  }
};

template <Makes makes, bool stress, class T, int dim, int order>
__global__ void __launch_bounds__(VaryingOperator<T, dim, order, makes>::threads)
    apply_varying_cells(const __grid_constant__ VaryingTables<T, dim, order> tables,
                        const __grid_constant__ VaryingFields<T> fields) {
  using O = VaryingOperator<T, dim, order, makes>;
  extern __shared__ __align__(16) unsigned char memory[];
  O(tables, fields, *reinterpret_cast<typename O::Shared*>(memory)).template apply<stress>();
}

template <class T, int dim, int order>
void apply_varying(const ElementArguments<T>& arguments, Stream stream) {
  const VaryingTables<T, dim, order> tables(*arguments.cell, *arguments.varying);
  const VaryingFields<T> fields(arguments);
  const auto start = [&]<Makes makes, bool stress>() {
    using O = VaryingOperator<T, dim, order, makes>;
    constexpr const char* name = makes == Makes::image ? "apply, by cell" : "residual, by cell";
    launch(name, apply_varying_cells<makes, stress, T, dim, order>,
           blocks_for(arguments.blocks.count * interleave, O::cells), dim3(O::cells, O::rows),
           sizeof(typename O::Shared), stream, tables, fields);
  };
  apply_elements<T, dim, order>(arguments, stream, [&]<Makes makes>() {
    // Order 0 has the gradient form alone.
    if constexpr (order > 0) {
      if (arguments.varying->stress) return start.template operator()<makes, true>();
    }
    start.template operator()<makes, false>();
  });
}

}  // namespace solenoid::cuda
