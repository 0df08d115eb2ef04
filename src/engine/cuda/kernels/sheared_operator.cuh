#pragma once
/// \file
/// The operator on cells that are parallelepipeds, element by element: formulas, steps and fields are those of
/// cpu/kernels/sheared_operator.hpp.
///
/// A thread block has `cells` cells side by side and `turns` threads for each. What an element consists of is in shared
/// memory, [value][cell]; each step deals its values, columns or lines out to the threads of a cell, with barriers in
/// between. Faces are taken direction by direction.

#include <algorithm>

#include "engine/cuda/kernels/element_rows.cuh"

namespace solenoid::cuda {

/// Matrices, passed by value so that they are constants of the kernel.
template <class T, int dim, int order>
struct ShearedTables {
  static constexpr int n = order + 1;
  T metric[dim][dim];
  T flux[dim][dim];
  T mass[dim][dim];
  bool has_mass;
  T hat[n];
  T root[n + 1];
  T value[n];
  T slope[n];
  T penalty;
  T inverse_h[dim];

  ShearedTables(const CellData<T>& cell, const ShearedData<T>& data) : has_mass(data.has_mass), penalty(cell.penalty) {
    for (int a = 0; a < dim; ++a) {
      for (int b = 0; b < dim; ++b) {
        metric[a][b] = data.metric[a][b];
        flux[a][b] = data.flux[a][b];
        mass[a][b] = data.mass[a][b];
      }
      inverse_h[a] = cell.inverse_h[a];
    }
    for (int j = 0; j < n; ++j) {
      hat[j] = data.hat[j];
      value[j] = cell.value[j];
      slope[j] = cell.slope[j];
    }
    for (int j = 0; j <= n; ++j) root[j] = data.root[j];
  }
};

template <class T>
struct ShearedFields : ElementFields<T> {
  // By cell, or nullptr: then tables have them.
  const T* viscosity;
  const T* reaction;

  explicit ShearedFields(const ElementArguments<T>& from)
      : ElementFields<T>(from), viscosity(from.varying->viscosity), reaction(from.varying->reaction) {}
};

template <class T, int dim, int order, Makes makes>
struct ShearedOperator {
  using S = Shape<dim, order>;
  using Tables = ShearedTables<T, dim, order>;
  using Fields = ShearedFields<T>;
  static constexpr int n = S::n;
  static constexpr int columns = S::columns;
  static constexpr int block = S::block;
  static constexpr int lines = S::lines;
  static constexpr int cells = block <= 64 ? 16 : block <= 125 ? 8 : 4;
  static constexpr int turns = std::clamp(columns, 4, 16);
  static constexpr int threads = cells * turns;

  using Value = T[cells];
  struct Shared {
    Value flux[dim][dim][block];       ///< X, then Y, [component][direction]
    Value top[dim][dim - 1][columns];  ///< of modes k + 1 in the direction of the component, in the other directions
    Value value[dim][block];           ///< w, then what is tested by z itself
    Value value_top[dim][columns];
    Value hats[dim][2][columns];  ///< what is tested by the traces of lower and upper hats
    // On the lower and the upper face in a direction:
    Value jump[2][dim][columns];
    Value jump_top[2][dim][lines];
    Value through[2][dim][columns];  ///< flux
    Value through_top[2][dim][lines];
    Value mean[2][dim][columns];
    Value mean_top[2][dim][lines];
    std::int32_t beside[2 * dim][cells];        ///< cells beyond faces, or the null record
    std::int32_t hats_of[2 * dim][dim][cells];  ///< the records that have their upper hats
    std::int32_t above[dim][cells];             ///< those that have the cell's own
    T weight[2 * dim][cells];                   ///< face_weight
    T of_face[2 * dim][cells];                  ///< nu_F where coefficients vary by cell
    bool inside[2 * dim][cells];
    T root[cells];  ///< ElementRows::find_root
  };

  const Tables& tables;
  const Fields& fields;
  Shared& shared;
  const ElementRows<T, dim, order, makes> own_rows;
  const int slot = static_cast<int>(threadIdx.x);
  const int turn = static_cast<int>(threadIdx.y);  // of the cell's threads

  __device__ ShearedOperator(const Tables& tables_, const Fields& fields_, Shared& shared_)
      : tables(tables_), fields(fields_), shared(shared_), own_rows(fields_) {}

  /// visit(i) for this thread's share of `count` items, and a barrier.
  template <class Visit>
  __device__ void step(int count, const Visit& visit) const {
#pragma unroll 1
    for (int i = turn; i < count; i += turns) visit(i);
    __syncthreads();
  }

  static constexpr __device__ int along(int a) { return a == 0 ? 1 : a == 1 ? n : n * n; }
  /// The direction that is neither (3D).
  static constexpr __device__ int third(int a, int b) { return 3 - a - b; }
  /// Stride of a direction in what has one value for each column in direction c.
  static constexpr __device__ int across(int c, int a) { return a == (c + 1) % dim ? 1 : n; }
  /// Place in a field of the first mode of a column in direction c.
  static constexpr __device__ int column_start(int c, int column) {
    return column % n * along((c + 1) % dim) + (dim == 3 ? column / n * along((c + 2) % dim) : 0);
  }

  __device__ const T* component(std::int32_t record, int c) const {
    return fields.x + S::offset(record) + c * block * interleave;
  }
  static __device__ T get(const T* values, int i) { return __ldg(values + i * interleave); }

  // --- lines ---------------------------------------------------------------------------------------------------------

  /// Of P to derivative (degree k) and value (degree k + 1) from the functions in.
  __device__ void from_p(const T (&in)[n + 1], T (&derivative)[n], T (&value)[n + 1]) const {
    derivative[0] = in[n] - in[0];
#pragma unroll
    for (int j = 1; j < n; ++j) derivative[j] = in[j];
    value[0] = T(0.5) * (in[n] + in[0]) - tables.hat[0] * derivative[1];
#pragma unroll
    for (int j = 1; j <= n; ++j) {
      value[j] = tables.hat[j - 1] * derivative[j - 1];
      if (j + 1 < n) value[j] -= tables.hat[j] * derivative[j + 1];
    }
  }
  /// Its transpose.
  __device__ void to_p(const T (&derivative)[n], const T (&value)[n + 1], T (&out)[n + 1]) const {
    const T slope = tables.hat[0] * value[1] + derivative[0];
    out[0] = T(0.5) * value[0] - slope;
    out[n] = T(0.5) * value[0] + slope;
#pragma unroll
    for (int j = 1; j < n; ++j) {
      out[j] = derivative[j] + tables.hat[j] * value[j + 1] - tables.hat[j - 1] * value[j - 1];
    }
  }
  /// Mode i of the derivative of O along a line of this stride.
  __device__ T derivative(const Value* field, int i, int stride) const {
    const int mode = i / stride % n;
    T sum{};
#pragma unroll 1
    for (int j = mode + 1; j < n; j += 2) sum += tables.root[j] * field[i + (j - mode) * stride][slot];
    return T(2) * tables.root[mode] * sum;
  }
  /// Of its transpose.
  __device__ T transposed(const Value* field, int i, int stride) const {
    const int mode = i / stride % n;
    T sum{};
#pragma unroll 1
    for (int j = mode - 1; j >= 0; j -= 2) sum += tables.root[j] * field[i + (j - mode) * stride][slot];
    return T(2) * tables.root[mode] * sum;
  }
  /// The line of a field += the traces of modes j times what is given on the lower and on the upper face.
  __device__ void add_traces(const T (&trace)[n], T lower, T upper, Value* line, int stride) const {
    const T of[2] = {upper + lower, upper - lower};
#pragma unroll
    for (int j = 0; j < n; ++j) line[j * stride][slot] += trace[j] * of[j % 2];
  }

  // --- the cell ------------------------------------------------------------------------------------------------------

  __device__ void look_around() const {
    const CellTopology& topology = fields.topology;
    const std::int32_t cell = own_rows.cell;
    step(2 * dim, [&](int side) {
      const Face face = topology.face[side][cell];
      const std::int32_t behind = topology.neighbour[side][cell];
      const std::int32_t beside = face == Face::interior ? behind : topology.null;
      shared.beside[side][slot] = beside;
      shared.weight[side][slot] = static_cast<T>(face_weight(face));
      shared.inside[side][slot] = face == Face::interior;
      if (fields.viscosity != nullptr) {
        const T nu = fields.viscosity[cell];
        shared.of_face[side][slot] = face == Face::interior ? T(2) / (T(1) / nu + T(1) / fields.viscosity[beside]) : nu;
      }
      for (int c = 0; c < dim; ++c) shared.hats_of[side][c][slot] = topology.neighbour[2 * c + 1][beside];
      if (side % 2 == 1) shared.above[side / 2][slot] = behind;
      if (side == 0) shared.root[slot] = own_rows.find_root();
    });
  }

  /// w_c and d_c w_c
  __device__ void take_components() const {
    step(dim * columns, [&](int i) {
      const int c = i / columns;
      const int column = i % columns;
      const T* const own = component(own_rows.cell, c);
      T in[n + 1];
      T slope[n];
      T value[n + 1];
#pragma unroll
      for (int j = 0; j < n; ++j) in[j] = get(own, j * columns + column);
      in[n] = get(component(shared.above[c][slot], c), column);
      from_p(in, slope, value);
      const int start = column_start(c, column);
#pragma unroll
      for (int j = 0; j < n; ++j) {
        shared.flux[c][c][start + j * along(c)][slot] = slope[j];
        shared.value[c][start + j * along(c)][slot] = value[j];
      }
      shared.value_top[c][column][slot] = value[n];
      shared.hats[c][0][column][slot] = shared.hats[c][1][column][slot] = T(0);
    });
  }
  /// y_p = -sum_c B_c u_c, and derivatives in other directions.
  __device__ void differentiate() const {
    const bool wanted = own_rows.are_wanted();
#pragma unroll 1
    for (int i = turn; i < block && wanted; i += turns) {
      T sum{};
#pragma unroll
      for (int c = 0; c < dim; ++c) sum += tables.inverse_h[c] * shared.flux[c][c][i][slot];
      own_rows.store_pressure(i, shared.root[slot], own_rows.fetch_pressure(i), -sum);
    }
#pragma unroll
    for (int c = 0; c < dim; ++c) {
#pragma unroll
      for (int tau = 1; tau < dim; ++tau) {
        const int a = (c + tau) % dim;
#pragma unroll 1
        for (int i = turn; i < block; i += turns) {
          shared.flux[c][a][i][slot] = derivative(shared.value[c], i, along(a));
        }
#pragma unroll 1
        for (int i = turn; i < columns; i += turns) {
          shared.top[c][tau - 1][i][slot] = derivative(shared.value_top[c], i, across(c, a));
        }
      }
    }
    __syncthreads();
  }
  /// Y = nu / J g X G, less the pressure; the mass term.
  __device__ void mix() const {
    const T* const pressure = component(own_rows.cell, dim);
    const bool vary = fields.viscosity != nullptr;
    const T viscosity = vary ? fields.viscosity[own_rows.cell] : T(1);
    const T reaction = vary ? fields.reaction[own_rows.cell] : T(1);
#pragma unroll 1
    for (int i = turn; i < block; i += turns) {
      T x[dim][dim];
      T half[dim][dim];
      unrolled<dim, dim>([&](int c, int a) { x[c][a] = shared.flux[c][a][i][slot]; });
      unrolled<dim, dim>([&](int c, int b) {
        half[c][b] = T(0);
#pragma unroll
        for (int a = 0; a < dim; ++a) half[c][b] += tables.flux[a][b] * x[c][a];
        half[c][b] *= viscosity;
      });
      const T p = get(pressure, i);
      unrolled<dim, dim>([&](int c, int b) {
        T sum = c == b ? -(tables.inverse_h[c] * p) : T(0);
#pragma unroll
        for (int other = 0; other < dim; ++other) sum += tables.metric[c][other] * half[other][b];
        shared.flux[c][b][i][slot] = sum;
      });
      T value[dim];
#pragma unroll
      for (int c = 0; c < dim; ++c) value[c] = shared.value[c][i][slot];
#pragma unroll
      for (int c = 0; c < dim; ++c) {
        T sum{};
        if (tables.has_mass) {
#pragma unroll
          for (int other = 0; other < dim; ++other) sum += tables.mass[c][other] * value[other];
        }
        shared.value[c][i][slot] = reaction * sum;
      }
    }
    // There is no d_c of degree k + 1, neither in X nor of test functions.
#pragma unroll
    for (int c = 0; c < dim; ++c) {
      const int a = (c + 1) % dim;
#pragma unroll 1
      for (int i = turn; i < columns; i += turns) {
        const T first = viscosity * (tables.metric[c][c] * shared.top[c][0][i][slot]);
        if constexpr (dim == 2) {
          shared.top[c][0][i][slot] = tables.flux[a][a] * first;
        } else {
          const int b = (c + 2) % dim;
          const T second = viscosity * (tables.metric[c][c] * shared.top[c][1][i][slot]);
          shared.top[c][0][i][slot] = tables.flux[a][a] * first + tables.flux[b][a] * second;
          shared.top[c][1][i][slot] = tables.flux[a][b] * first + tables.flux[b][b] * second;
        }
        T& value = shared.value_top[c][i][slot];
        value = tables.has_mass ? reaction * (tables.mass[c][c] * value) : T(0);
      }
    }
    __syncthreads();
  }
  /// sum_{b != c} (d_b z_c, Y_cb), in `value`
  __device__ void test_components() const {
#pragma unroll
    for (int c = 0; c < dim; ++c) {
#pragma unroll 1
      for (int i = turn; i < block; i += turns) {
        T sum{};
#pragma unroll
        for (int tau = 1; tau < dim; ++tau) {
          const int b = (c + tau) % dim;
          sum += transposed(shared.flux[c][b], i, along(b));
        }
        shared.value[c][i][slot] += sum;
      }
#pragma unroll 1
      for (int i = turn; i < columns; i += turns) {
        T sum{};
#pragma unroll
        for (int tau = 1; tau < dim; ++tau) {
          sum += transposed(shared.top[c][tau - 1], i, across(c, (c + tau) % dim));
        }
        shared.value_top[c][i][slot] += sum;
      }
    }
  }
  __device__ void put_components() const {
    if (!own_rows.are_wanted()) return;
#pragma unroll 1
    for (int i = turn; i < dim * columns; i += turns) {
      const int c = i / columns;
      const int column = i % columns;
      const int start = column_start(c, column);
      T b[n];
      own_rows.fetch(c, column, b);
      T slope[n];
      T value[n + 1];
      T y[n + 1];
#pragma unroll
      for (int j = 0; j < n; ++j) {
        slope[j] = shared.flux[c][c][start + j * along(c)][slot];
        value[j] = shared.value[c][start + j * along(c)][slot];
      }
      value[n] = shared.value_top[c][column][slot];
      to_p(slope, value, y);
      y[0] += shared.hats[c][0][column][slot];
      y[n] += shared.hats[c][1][column][slot];
      own_rows.store(c, column, own_rows.fixes_lower(c), own_rows.taker(c), T(1) / shared.root[slot], b, y);
    }
  }

  // --- faces ---------------------------------------------------------------------------------------------------------

  /// Jump, mean and flux of a component c != e, of a mode t in the third direction, on both faces.
  __device__ void take_jumping(int e, int c, int t) const {
    const int stride = across(c, e);
    const int start = t / stride * stride * n + t % stride;
    T jump[2][n + 1];
    T mean[2][n + 1];
    T slope[2][n + 1];
    const T weight[2] = {shared.weight[2 * e][slot], shared.weight[2 * e + 1][slot]};
    const T* const own = component(own_rows.cell, c) + start * interleave;
    const T* const lower = component(shared.beside[2 * e][slot], c) + start * interleave;
    const T* const upper = component(shared.beside[2 * e + 1][slot], c) + start * interleave;
    const T* const own_hats = component(shared.above[c][slot], c) + start * interleave;
    const T* const lower_hats = component(shared.hats_of[2 * e][c][slot], c) + start * interleave;
    const T* const upper_hats = component(shared.hats_of[2 * e + 1][c][slot], c) + start * interleave;
#pragma unroll
    for (int i = 0; i <= n; ++i) {
      const int row = i < n ? i * columns : 0;
      T value[2]{};  // of even and odd modes on the upper face
      T own_slope[2]{};
      T below_value{};
      T below_slope{};
      T above_value{};
      T above_slope{};
#pragma unroll
      for (int j = 0; j < n; ++j) {
        const int at = row + j * stride;
        const T u = get(i < n ? own : own_hats, at);
        const T down = get(i < n ? lower : lower_hats, at);
        const T up = j % 2 == 0 ? get(i < n ? upper : upper_hats, at) : -get(i < n ? upper : upper_hats, at);
        value[j % 2] += tables.value[j] * u;
        own_slope[j % 2] += tables.slope[j] * u;
        below_value += tables.value[j] * down;
        below_slope += tables.slope[j] * down;
        above_value += tables.value[j] * up;
        above_slope -= tables.slope[j] * up;
      }
      const T lower_value = value[0] - value[1];
      const T upper_value = value[0] + value[1];
      jump[0][i] = weight[0] * (below_value - lower_value);
      jump[1][i] = weight[1] * (upper_value - above_value);
      mean[0][i] = weight[0] * (T(0.5) * (below_value + lower_value));
      mean[1][i] = weight[1] * (T(0.5) * (upper_value + above_value));
      slope[0][i] = weight[0] * (T(0.5) * (below_slope + (own_slope[1] - own_slope[0])));
      slope[1][i] = weight[1] * (T(0.5) * ((own_slope[0] + own_slope[1]) + above_slope));
    }
    const int mode = across(e, c);  // strides on the face
    const int other = dim == 3 ? across(e, third(e, c)) : 0;
#pragma unroll
    for (int end = 0; end < 2; ++end) {
      T along_c[n];
      T value[n + 1];
      T through[n + 1];
      from_p(jump[end], along_c, value);
#pragma unroll
      for (int j = 0; j < n; ++j) shared.jump[end][c][j * mode + t * other][slot] = value[j];
      shared.jump_top[end][c][t][slot] = value[n];
      from_p(slope[end], along_c, value);
#pragma unroll
      for (int j = 0; j <= n; ++j) through[j] = tables.flux[e][e] * value[j];
      from_p(mean[end], along_c, value);
#pragma unroll
      for (int j = 0; j < n; ++j) {
        shared.mean[end][c][j * mode + t * other][slot] = value[j];
        shared.through[end][c][j * mode + t * other][slot] = through[j] + tables.flux[c][e] * along_c[j];
      }
      shared.mean_top[end][c][t][slot] = value[n];
      shared.through_top[end][c][t][slot] = through[n];
    }
  }

  /// Mean and flux of component e, whose trace is that of hats.
  __device__ void take_normal(int e, int end, int column) const {
    const int side = 2 * e + end;
    const T* const own = component(own_rows.cell, e) + column * interleave;
    const T* const own_hats = component(shared.above[e][slot], e) + column * interleave;
    const T* const beside = component(shared.beside[side][slot], e) + column * interleave;
    // The cell below has the own lower hats as its upper ones.
    const T* const beside_hats = end == 0 ? own : component(shared.hats_of[side][e][slot], e) + column * interleave;
    const auto slope_at = [&](const T* rows, const T* hats, bool upper) {
      T sum = tables.value[0] * (__ldg(hats) - __ldg(rows));
#pragma unroll
      for (int j = 1; j < n; ++j) {
        const T bubble = tables.value[j] * get(rows, j * columns);
        sum += upper || j % 2 == 0 ? bubble : -bubble;
      }
      return sum;
    };
    const T weight = shared.weight[side][slot];
    const T inside = shared.inside[side][slot] ? T(1) : T(0);
    const T slope = slope_at(own, own_hats, end == 1) + inside * slope_at(beside, beside_hats, end == 0);
    shared.through[end][e][column][slot] = (T(0.5) * tables.flux[e][e]) * (weight * slope);
    shared.mean[end][e][column][slot] = T(0.5) * (weight * (__ldg(end == 0 ? own : own_hats) * (T(1) + inside)));
  }

  __device__ T viscosity_of_face(int side) const {
    return fields.viscosity == nullptr ? T(1) : shared.of_face[side][slot];
  }
  /// From jumps to -Q / 2, of component e too, and from fluxes to F_ce with the sign of test functions in [z]; where
  /// coefficients vary both times nu_F.
  __device__ void mix_face(int e, int end, int i) const {
    const T viscosity = viscosity_of_face(2 * e + end);
    const T sign = end == 0 ? T(1) : T(-1);
    const T penalty = T(2) * tables.penalty * tables.flux[e][e];  // of Q / 2
    T jump_of[dim];
    T through_of[dim];
#pragma unroll
    for (int c = 0; c < dim; ++c) {
      jump_of[c] = c == e ? T(0) : shared.jump[end][c][i][slot];
      through_of[c] = shared.through[end][c][i][slot];
#pragma unroll
      for (int a = 0; a < dim; ++a) {
        // Along c derivatives of a component that jumps are there already.
        if (a == e || a == c) continue;
        through_of[c] += tables.flux[a][e] * derivative(shared.mean[end][c], i, across(e, a));
      }
    }
#pragma unroll
    for (int c = 0; c < dim; ++c) {
      T jump{};
      T through{};
#pragma unroll
      for (int other = 0; other < dim; ++other) {
        jump += tables.metric[c][other] * jump_of[other];
        through += tables.metric[c][other] * through_of[other];
      }
      jump *= T(-0.5);
      shared.jump[end][c][i][slot] = viscosity * jump;
      shared.through[end][c][i][slot] = viscosity * (sign * (through + penalty * jump));
    }
  }
  __device__ void mix_face_top(int e, int c, int end, int t) const {
    const T sign = end == 0 ? T(1) : T(-1);
    const T penalty = T(2) * tables.penalty * tables.flux[e][e];
    T through = shared.through_top[end][c][t][slot];
    if constexpr (dim == 3) through += tables.flux[third(e, c)][e] * derivative(shared.mean_top[end][c], t, 1);
    const T jump = (T(-0.5) * tables.metric[c][c]) * shared.jump_top[end][c][t][slot];
    const T viscosity = viscosity_of_face(2 * e + end);
    shared.jump_top[end][c][t][slot] = viscosity * jump;
    shared.through_top[end][c][t][slot] = viscosity * (sign * (tables.metric[c][c] * through + penalty * jump));
  }

  /// What a column across both faces gives to component c.
  __device__ void test_column(int e, int c, int i) const {
    const T jump[2] = {shared.jump[0][c][i][slot], shared.jump[1][c][i][slot]};
    const int start = column_start(e, i);
    const T lifted = tables.flux[e][c];
    add_traces(tables.value, lifted * jump[0], lifted * jump[1], shared.flux[c][c] + start, along(e));
    if (c == e) {
#pragma unroll
      for (int end = 0; end < 2; ++end) {
        T sum{};
#pragma unroll
        for (int b = 0; b < dim; ++b) {
          if (b != e) sum += tables.flux[e][b] * transposed(shared.jump[end][e], i, across(e, b));
        }
        shared.hats[e][end][i][slot] += sum;
      }
      return;
    }
    T through[2] = {shared.through[0][c][i][slot], shared.through[1][c][i][slot]};
    if constexpr (dim == 3) {
      const int t = third(e, c);
#pragma unroll
      for (int end = 0; end < 2; ++end) {
        through[end] += tables.flux[e][t] * transposed(shared.jump[end][c], i, across(e, t));
      }
    }
    const T factor = tables.flux[e][e];
    add_traces(tables.value, through[0], through[1], shared.value[c] + start, along(e));
    add_traces(tables.slope, -factor * jump[0], factor * jump[1], shared.value[c] + start, along(e));
  }
  __device__ void test_column_top(int e, int c, int i) const {
    T through[2] = {shared.through_top[0][c][i][slot], shared.through_top[1][c][i][slot]};
    if constexpr (dim == 3) {
#pragma unroll
      for (int end = 0; end < 2; ++end) {
        through[end] += tables.flux[e][third(e, c)] * transposed(shared.jump_top[end][c], i, 1);
      }
    }
    const T factor = tables.flux[e][e];
    const int stride = across(c, e);
    Value* const line = shared.value_top[c] + (stride == 1 ? i * n : i);
    add_traces(tables.value, through[0], through[1], line, stride);
    add_traces(tables.slope, -factor * shared.jump_top[0][c][i][slot], factor * shared.jump_top[1][c][i][slot], line,
               stride);
  }

  __device__ void add_faces(int e) const {
    constexpr int jumping = (dim - 1) * lines;
    step(jumping + 2 * columns, [&](int i) {
      if (i < jumping) {
        take_jumping(e, (e + 1 + i / lines) % dim, i % lines);
      } else {
        take_normal(e, (i - jumping) / columns, (i - jumping) % columns);
      }
    });
    step(2 * columns + 2 * jumping, [&](int i) {
      if (i < 2 * columns) {
        mix_face(e, i / columns, i % columns);
      } else {
        const int j = (i - 2 * columns) / 2;
        mix_face_top(e, (e + 1 + j / lines) % dim, i % 2, j % lines);
      }
    });
    step(dim * columns + jumping, [&](int i) {
      if (i < dim * columns) {
        test_column(e, i / columns, i % columns);
      } else {
        const int j = i - dim * columns;
        test_column_top(e, (e + 1 + j / lines) % dim, j % lines);
      }
    });
  }

  __device__ void apply() const {
    look_around();
    wait_for_earlier_kernels();
    take_components();
    differentiate();
    mix();
    test_components();
#pragma unroll 1
    for (int e = 0; e < dim; ++e) add_faces(e);
    put_components();
  }
};

template <Makes makes, class T, int dim, int order>
__global__ void __launch_bounds__(ShearedOperator<T, dim, order, makes>::threads)
    apply_sheared_cells(const __grid_constant__ ShearedTables<T, dim, order> tables,
                        const __grid_constant__ ShearedFields<T> fields) {
  using O = ShearedOperator<T, dim, order, makes>;
  extern __shared__ __align__(16) unsigned char memory[];
  O(tables, fields, *reinterpret_cast<typename O::Shared*>(memory)).apply();
}

template <class T, int dim, int order>
void apply_sheared(const ElementArguments<T>& arguments, Stream stream) {
  // There is no order 0 on such cells.
  if constexpr (order > 0) {
    const ShearedTables<T, dim, order> tables(*arguments.cell, *arguments.sheared);
    apply_elements<T, dim, order>(arguments, stream, [&]<Makes makes>() {
      using O = ShearedOperator<T, dim, order, makes>;
      static_assert(sizeof(typename O::Shared) <= most_shared_bytes);
      constexpr const char* name = makes == Makes::image ? "apply, sheared" : "residual, sheared";
      launch(name, apply_sheared_cells<makes, T, dim, order>, blocks_for(arguments.blocks.count * interleave, O::cells),
             dim3(O::cells, O::turns), sizeof(typename O::Shared), stream, tables, ShearedFields<T>(arguments));
    });
  }
}

}  // namespace solenoid::cuda
