#pragma once
/// \file
/// The operator on cells that are parallelepipeds, element by element: formulas are those of
/// cpu/kernels/sheared_operator.hpp.
///
/// A thread block has `cells` cells side by side, the lanes of a warp, and for each of them a thread for every column,
/// so that all threads of a warp do the same. What an element consists of is in shared memory, [value][cell]. In the
/// cell a thread has the modes of a line in x: what acts along x happens in its registers, what acts along y and z
/// reads from other lines. On the faces in a direction, one direction after the other, it has one mode of the face.
/// Barriers part the steps:
///
///   1. take_components: w_c and d_c w_c from hats and bubbles.
///   2. mix: all derivatives X, Y = nu / J g X G, the row of the pressure; stores Y_cb for b = y, z.
///      In the stress form X_bc nu / J more in Y_cb.
///   3. test_components: the transposed derivatives of these.
///   4. For the faces in each direction e: take_faces, jumps, means and fluxes of a component that jumps (a thread for
///      each line along it) and of the normal one; mix_faces, numerical fluxes; test_faces.
///   5. put_components: back to hats and bubbles.
///
/// Shared memory of a cell, numbers, 3D: 6 n^3 for w and what is tested, 3 n^2 for their modes of degree k + 1, and
/// 18 n^2 + 12 n for faces in the place of 4 n^3 + 6 n^2 for Y: 387 for k = 2. Limits (k = 2, single precision, H100):
/// 300 instructions an unknown, of which half are arithmetic, 2.6 of 4 per cycle; barriers and loads of first-level
/// caches with 36 warps on a multiprocessor.

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
  T turned[dim][dim];
  T inverse[dim][dim];
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
        turned[a][b] = data.turned[a][b];
        inverse[a][b] = data.inverse[a][b];
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

template <class T, int dim, int order, Makes makes, bool stress>
struct ShearedOperator {
  using S = Shape<dim, order>;
  using Tables = ShearedTables<T, dim, order>;
  using Fields = ShearedFields<T>;
  static constexpr int n = S::n;
  static constexpr int columns = S::columns;
  static constexpr int block = S::block;
  static constexpr int lines = S::lines;
  static constexpr int ends = 2;           // of a cell in a direction
  static constexpr int jumping = dim - 1;  // components that jump on a face
  static constexpr int across_x = dim == 3 ? 4 : 1;
  static constexpr int turns = columns;

  /// Numbers of a cell in shared memory; as many cells, at most those of a warp, as leave room for a few thread blocks.
  static constexpr int numbers_of_faces = ends * ((2 * dim + jumping) * columns + 3 * jumping * lines);
  static constexpr int numbers_of_fluxes = across_x * block + dim * jumping * columns;
  static constexpr int numbers = 2 * dim * block + dim * columns + std::max(numbers_of_faces, numbers_of_fluxes);
  /// In double precision more cells in fewer blocks: warps whose lanes have different lines wait for each other.
  static constexpr std::size_t enough = sizeof(T) == sizeof(float) ? 60 << 10 : 112 << 10;
  static constexpr int cells_that_fit() {
    int cells = 32;
    while (cells > 4 && cells * numbers * sizeof(T) > enough) cells /= 2;
    return cells;
  }
  static constexpr int cells = cells_that_fit();
  static constexpr int threads = cells * turns;

  using Value = T[cells];
  /// Of the faces in a direction e: [end], then of component e + r; r = 0 does not jump.
  struct Faces {
    Value jump[ends][dim][columns];  ///< then what is tested with means
    Value jump_top[ends][jumping][lines];
    Value through[ends][dim][columns];  ///< flux
    Value through_top[ends][jumping][lines];
    Value mean[ends][dim][columns];
    Value mean_top[ends][jumping][lines];
  };
  struct Fluxes {
    Value across[across_x][block];     ///< Y_cb, number_of(c, b)
    Value top[dim][jumping][columns];  ///< of modes k + 1 in the direction of the component, in direction c + 1 + [.]
  };
  struct Shared {
    Value value[dim][block];  ///< w, then what is tested by z itself
    Value top[dim][columns];  ///< of modes k + 1 in the direction of the component
    Value along[dim][block];  ///< d_c w_c, then Y_cc
    union {
      Fluxes flux;
      Faces face;
    };
    // Places of records in x, of their value 0:
    std::uint32_t beside[2 * dim][cells];        ///< cells beyond faces, or the null record
    std::uint32_t hats_of[2 * dim][dim][cells];  ///< the records that have their upper hats
    std::uint32_t above[dim][cells];             ///< those that have the cell's own
    T weight[2 * dim][cells];                    ///< face_weight
    T of_face[2 * dim][cells];                   ///< nu_F where coefficients vary by cell
    bool inside[2 * dim][cells];
    T root[cells];  ///< ElementRows::find_root
  };

  const Tables& tables;
  const Fields& fields;
  Shared& shared;
  const ElementRows<T, dim, order, makes> own_rows;
  const int slot = static_cast<int>(threadIdx.x);
  const int turn = static_cast<int>(threadIdx.y);  // of the cell's threads: a line in x, a column of a face
  /// What is tested by z itself, of this thread's line in x and its column of modes k + 1: from mix to test_components.
  T tested[dim][n];
  T tested_top[dim];
  T hats[dim][ends]{};  ///< what is tested by the traces of lower and upper hats, of this thread's columns

  __device__ ShearedOperator(const Tables& tables_, const Fields& fields_, Shared& shared_)
      : tables(tables_), fields(fields_), shared(shared_), own_rows(fields_) {}

  static constexpr __device__ int along(int a) { return a == 0 ? 1 : a == 1 ? n : n * n; }
  /// Place in a field of the first mode of a column in direction c.
  static constexpr __device__ int column_start(int c, int column) {
    return column % n * along((c + 1) % dim) + (dim == 3 ? column / n * along((c + 2) % dim) : 0);
  }
  /// This thread's mode in the first or the second of the directions of lines and columns.
  __device__ int mode(int which) const { return which == 0 ? turn % n : turn / n; }
  static constexpr __device__ int stride(int which) { return which == 0 ? 1 : n; }
  /// Where Y_cb is, b > 0 and b != c.
  static constexpr __device__ int number_of(int c, int b) { return c == 0 ? b - 1 : c + 1; }

  /// Vectors hold less than 2^32 numbers.
  static __device__ std::uint32_t place(std::int32_t record) { return static_cast<std::uint32_t>(S::offset(record)); }
  __device__ std::uint32_t own_place() const { return static_cast<std::uint32_t>(own_rows.place); }
  __device__ const T* component(std::uint32_t place, int c) const {
    return fields.x + (place + static_cast<std::uint32_t>(c * block * interleave));
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
  /// The derivative of O takes from modes above, its transpose from those below, of the other parity. visit(way to the
  /// other mode, factor), for a mode that is known at run time.
  template <class Visit>
  __device__ void for_modes_above(int mode, const Visit& visit) const {
    const T own = T(2) * tables.root[mode];
#pragma unroll 1
    for (int j = mode + 1; j < n; j += 2) visit(j - mode, own * tables.root[j]);
  }
  template <class Visit>
  __device__ void for_modes_below(int mode, const Visit& visit) const {
    const T own = T(2) * tables.root[mode];
#pragma unroll 1
    for (int j = mode - 1; j >= 0; j -= 2) visit(j - mode, own * tables.root[j]);
  }
  /// Mode m of the derivative of a line, and of its transpose.
  __device__ T derivative(const T (&line)[n], int m) const {
    T sum{};
#pragma unroll
    for (int j = m + 1; j < n; j += 2) sum += tables.root[j] * line[j];
    return T(2) * tables.root[m] * sum;
  }
  __device__ T transposed(const T (&line)[n], int m) const {
    T sum{};
#pragma unroll
    for (int j = m - 1; j >= 0; j -= 2) sum += tables.root[j] * line[j];
    return T(2) * tables.root[m] * sum;
  }
  /// The line += the traces of modes j times what is given on the lower and on the upper face.
  static __device__ void add_traces(const T (&trace)[n], T lower, T upper, T (&line)[n]) {
    const T of[2] = {upper + lower, upper - lower};
#pragma unroll
    for (int j = 0; j < n; ++j) line[j] += trace[j] * of[j % 2];
  }

  // --- the cell ------------------------------------------------------------------------------------------------------

  __device__ void look_around() const {
    const CellTopology& topology = fields.topology;
    const std::int32_t cell = own_rows.cell;
#pragma unroll 1
    for (int side = turn; side < 2 * dim; side += turns) {
      const Face face = topology.face[side][cell];
      const std::int32_t behind = topology.neighbour[side][cell];
      const std::int32_t beside = face == Face::interior ? behind : topology.null;
      shared.beside[side][slot] = place(beside);
      shared.weight[side][slot] = static_cast<T>(face_weight(face));
      shared.inside[side][slot] = face == Face::interior;
      if (fields.viscosity != nullptr) {
        const T nu = fields.viscosity[cell];
        shared.of_face[side][slot] = face == Face::interior ? T(2) / (T(1) / nu + T(1) / fields.viscosity[beside]) : nu;
      }
      for (int c = 0; c < dim; ++c) {
        shared.hats_of[side][c][slot] = place(topology.neighbour[2 * c + 1][beside]);
      }
      if (side % 2 == 1) shared.above[side / 2][slot] = place(behind);
      if (side == 0) shared.root[slot] = own_rows.find_root();
    }
  }

  /// w_c and d_c w_c
  __device__ void take_components() const {
#pragma unroll
    for (int c = 0; c < dim; ++c) {
      const T* const own = component(own_place(), c);
      T in[n + 1];
      T slope[n];
      T value[n + 1];
#pragma unroll
      for (int j = 0; j < n; ++j) in[j] = get(own, j * columns + turn);
      in[n] = get(component(shared.above[c][slot], c), turn);
      from_p(in, slope, value);
      const int start = column_start(c, turn);
#pragma unroll
      for (int j = 0; j < n; ++j) {
        shared.along[c][start + j * along(c)][slot] = slope[j];
        shared.value[c][start + j * along(c)][slot] = value[j];
      }
      shared.top[c][turn][slot] = value[n];
    }
  }

  /// y_p = -sum_c B_c u_c; Y = nu / J g X G, less the pressure; the mass term.
  __device__ void mix() {
    const T* const pressure = component(own_place(), dim);
    const bool vary = fields.viscosity != nullptr;
    const T viscosity = vary ? fields.viscosity[own_rows.cell] : T(1);
    const T reaction = vary ? fields.reaction[own_rows.cell] : T(1);
    const bool wanted = own_rows.are_wanted();
    const int first = turn * n;

    T across[across_x][n]{};  // d_b w_c, b = y, z
#pragma unroll
    for (int b = 1; b < dim; ++b) {
      for_modes_above(mode(b - 1), [&](int way, T factor) {
        const int at = first + way * along(b);
#pragma unroll
        for (int c = 0; c < dim; ++c) {
          if (c == b) continue;
#pragma unroll
          for (int i = 0; i < n; ++i) across[number_of(c, b)][i] += factor * shared.value[c][at + i][slot];
        }
      });
    }
    T line[dim][n];  // w_c
#pragma unroll
    for (int c = 0; c < dim; ++c) {
#pragma unroll
      for (int i = 0; i < n; ++i) line[c][i] = c > 0 || tables.has_mass ? shared.value[c][first + i][slot] : T(0);
    }
    T along_x[dim][n];  // Y_cx
#pragma unroll
    for (int i = 0; i < n; ++i) {
      T x[dim][dim];
      unrolled<dim, dim>([&](int c, int a) {
        x[c][a] = c == a   ? shared.along[c][first + i][slot]
                  : a == 0 ? derivative(line[c], i)
                           : across[number_of(c, a)][i];
      });
      if (wanted) {
        T sum{};
#pragma unroll
        for (int c = 0; c < dim; ++c) sum += tables.inverse_h[c] * x[c][c];
        own_rows.store_pressure(first + i, shared.root[slot], own_rows.fetch_pressure(first + i), -sum);
      }
      const T p = get(pressure, first + i);
#pragma unroll
      for (int b = 0; b < dim; ++b) {
        T half[dim];
#pragma unroll
        for (int c = 0; c < dim; ++c) {
          half[c] = T(0);
#pragma unroll
          for (int a = 0; a < dim; ++a) half[c] += tables.flux[a][b] * x[c][a];
          half[c] *= viscosity;
        }
#pragma unroll
        for (int c = 0; c < dim; ++c) {
          T sum = c == b ? -(tables.inverse_h[c] * p) : T(0);
#pragma unroll
          for (int other = 0; other < dim; ++other) sum += tables.metric[c][other] * half[other];
          if constexpr (stress) sum += viscosity * (tables.turned[c][b] * x[b][c]);
          if (c == b) {
            shared.along[c][first + i][slot] = sum;
          } else if (b == 0) {
            along_x[c][i] = sum;
          } else {
            shared.flux.across[number_of(c, b)][first + i][slot] = sum;
          }
        }
      }
    }
#pragma unroll
    for (int c = 0; c < dim; ++c) {
#pragma unroll
      for (int i = 0; i < n; ++i) {
        T sum{};
        if (tables.has_mass) {
#pragma unroll
          for (int other = 0; other < dim; ++other) sum += tables.mass[c][other] * line[other][i];
          sum *= reaction;
        }
        tested[c][i] = c == 0 ? sum : sum + transposed(along_x[c], i);
      }
    }

    // There is no d_c of degree k + 1, neither in X nor of test functions.
    T slope[dim][jumping]{};
#pragma unroll
    for (int which = 0; which < jumping; ++which) {
      for_modes_above(mode(which), [&](int way, T factor) {
#pragma unroll
        for (int c = 0; c < dim; ++c) {
          slope[c][which] += factor * shared.top[c][turn + way * stride(which)][slot];
        }
      });
    }
#pragma unroll
    for (int c = 0; c < dim; ++c) {
      const T factor = viscosity * tables.metric[c][c];
#pragma unroll
      for (int which = 0; which < jumping; ++which) {
        T sum{};
#pragma unroll
        for (int other = 0; other < jumping; ++other) {
          sum += tables.flux[(c + 1 + other) % dim][(c + 1 + which) % dim] * slope[c][other];
        }
        shared.flux.top[c][which][turn][slot] = factor * sum;
      }
      tested_top[c] = tables.has_mass ? reaction * (tables.mass[c][c] * shared.top[c][turn][slot]) : T(0);
    }
  }

  /// sum_{b != c} (d_b z_c, Y_cb), in `value`
  __device__ void test_components() {
    const int first = turn * n;
#pragma unroll
    for (int b = 1; b < dim; ++b) {
      for_modes_below(mode(b - 1), [&](int way, T factor) {
        const int at = first + way * along(b);
#pragma unroll
        for (int c = 0; c < dim; ++c) {
          if (c == b) continue;
#pragma unroll
          for (int i = 0; i < n; ++i) tested[c][i] += factor * shared.flux.across[number_of(c, b)][at + i][slot];
        }
      });
    }
#pragma unroll
    for (int which = 0; which < jumping; ++which) {
      for_modes_below(mode(which), [&](int way, T factor) {
#pragma unroll
        for (int c = 0; c < dim; ++c) {
          tested_top[c] += factor * shared.flux.top[c][which][turn + way * stride(which)][slot];
        }
      });
    }
#pragma unroll
    for (int c = 0; c < dim; ++c) {
#pragma unroll
      for (int i = 0; i < n; ++i) shared.value[c][first + i][slot] = tested[c][i];
      shared.top[c][turn][slot] = tested_top[c];
    }
  }

  __device__ void put_components() const {
    if (!own_rows.are_wanted()) return;
#pragma unroll
    for (int c = 0; c < dim; ++c) {
      const int start = column_start(c, turn);
      T b[n];
      own_rows.fetch(c, turn, b);
      T slope[n];
      T value[n + 1];
      T y[n + 1];
#pragma unroll
      for (int j = 0; j < n; ++j) {
        slope[j] = shared.along[c][start + j * along(c)][slot];
        value[j] = shared.value[c][start + j * along(c)][slot];
      }
      value[n] = shared.top[c][turn][slot];
      to_p(slope, value, y);
      y[0] += hats[c][0];
      y[n] += hats[c][1];
      own_rows.store(c, turn, own_rows.fixes_lower(c), own_rows.taker(c), T(1) / shared.root[slot], b, y);
    }
  }

  // --- faces ---------------------------------------------------------------------------------------------------------
  // Columns of a face count modes in direction e + 1 first, then those in e + 2.

  /// Jump, mean and flux of component e + r, r > 0, of a mode t in the third direction, on both faces.
  template <int r>
  __device__ void take_jumping(int e, int t) const {
    const int c = (e + r) % dim;
    // Of modes in direction e, among those of a column of the component; and on the face.
    constexpr int step = r == dim - 1 ? 1 : n;
    constexpr int along_c = stride(r - 1);
    constexpr int beside_c = r == 1 ? n : 1;
    const int start = (step == 1 ? t * n : t) * interleave;
    const T weight[2] = {shared.weight[2 * e][slot], shared.weight[2 * e + 1][slot]};
    const T* const rows[3] = {component(shared.beside[2 * e][slot], c) + start, component(own_place(), c) + start,
                              component(shared.beside[2 * e + 1][slot], c) + start};
    const T* const hats[3] = {component(shared.hats_of[2 * e][c][slot], c) + start,
                              component(shared.above[c][slot], c) + start,
                              component(shared.hats_of[2 * e + 1][c][slot], c) + start};
    T jump[2][n + 1];
    T mean[2][n + 1];
    T slope[2][n + 1];
#pragma unroll
    for (int i = 0; i <= n; ++i) {
      const int row = i < n ? i * columns : 0;
      const auto& from = i < n ? rows : hats;
      T value[2]{};  // of even and odd modes on the upper face
      T own_slope[2]{};
      T below_value{};
      T below_slope{};
      T above_value{};
      T above_slope{};
#pragma unroll
      for (int j = 0; j < n; ++j) {
        const int at = row + j * step;
        const T down = get(from[0], at);
        const T own = get(from[1], at);
        const T up = j % 2 == 0 ? get(from[2], at) : -get(from[2], at);
        value[j % 2] += tables.value[j] * own;
        own_slope[j % 2] += tables.slope[j] * own;
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
    Faces& face = shared.face;
    const T normal = tables.flux[e][e];
    const T tangential = tables.flux[c][e];
#pragma unroll
    for (int end = 0; end < ends; ++end) {
      T derivative[n];
      T value[n + 1];
      T through[n + 1];
      from_p(jump[end], derivative, value);
#pragma unroll
      for (int j = 0; j < n; ++j) face.jump[end][r][j * along_c + t * beside_c][slot] = value[j];
      face.jump_top[end][r - 1][t][slot] = value[n];
      from_p(slope[end], derivative, value);
#pragma unroll
      for (int j = 0; j <= n; ++j) through[j] = normal * value[j];
      from_p(mean[end], derivative, value);
#pragma unroll
      for (int j = 0; j < n; ++j) {
        face.mean[end][r][j * along_c + t * beside_c][slot] = value[j];
        face.through[end][r][j * along_c + t * beside_c][slot] = through[j] + tangential * derivative[j];
      }
      face.mean_top[end][r - 1][t][slot] = value[n];
      face.through_top[end][r - 1][t][slot] = through[n];
    }
  }

  /// Mean and flux of component e, whose trace is that of hats, on both faces.
  __device__ void take_normal(int e, int column) const {
    const auto at = [&](std::uint32_t place) { return component(place, e) + column * interleave; };
    const T* const own = at(own_place());
    const T* const below = at(shared.beside[2 * e][slot]);
    const T* const above = at(shared.beside[2 * e + 1][slot]);
    // The cell below has the own lower hats as its upper ones.
    const T hats[4] = {__ldg(below), __ldg(own), __ldg(at(shared.above[e][slot])),
                       __ldg(at(shared.hats_of[2 * e + 1][e][slot]))};
    // Slopes: of even and odd bubbles.
    T even = tables.value[0] * (hats[2] - hats[1]);
    T odd{};
    T beside[ends] = {tables.value[0] * (hats[1] - hats[0]), tables.value[0] * (hats[3] - __ldg(above))};
#pragma unroll
    for (int j = 1; j < n; ++j) {
      (j % 2 == 0 ? even : odd) += tables.value[j] * get(own, j * columns);
      beside[0] += tables.value[j] * get(below, j * columns);
      beside[1] += (j % 2 == 0 ? tables.value[j] : -tables.value[j]) * get(above, j * columns);
    }
#pragma unroll
    for (int end = 0; end < ends; ++end) {
      const int side = 2 * e + end;
      const T weight = T(0.5) * shared.weight[side][slot];
      const T inside = shared.inside[side][slot] ? T(1) : T(0);
      const T slope = (end == 0 ? even - odd : even + odd) + inside * beside[end];
      shared.face.through[end][0][column][slot] = tables.flux[e][e] * (weight * slope);
      shared.face.mean[end][0][column][slot] = weight * (hats[1 + end] * (T(1) + inside));
    }
  }

  /// The first threads of a cell have the components that jump, the others the normal one.
  __device__ void take_faces(int e) const {
    constexpr int takers = jumping * lines;
    constexpr int first = takers < turns ? takers : 0;
    if (turn < lines) {
      take_jumping<1>(e, turn);
    } else if (turn < takers) {
      if constexpr (dim == 3) take_jumping<2>(e, turn - lines);
    }
#pragma unroll 1
    for (int i = turn - first; i >= 0 && i < columns; i += turns - first) take_normal(e, i);
  }

  __device__ T viscosity_of_face(int side) const {
    return fields.viscosity == nullptr ? T(1) : shared.of_face[side][slot];
  }
  /// From jumps to -Q / 2, of component e too, and from fluxes to F_ce with the sign of test functions in [z]; where
  /// coefficients vary both times nu_F.
  __device__ void mix_faces(int e) const {
    Faces& face = shared.face;
    const T penalty = T(2) * tables.penalty * tables.flux[e][e];  // of Q / 2
    // Along its own direction derivatives of a component that jumps are there already.
    T slope[ends][dim][jumping]{};
#pragma unroll
    for (int which = 0; which < jumping; ++which) {
      for_modes_above(mode(which), [&](int way, T factor) {
        const int at = turn + way * stride(which);
#pragma unroll
        for (int r = 0; r < dim; ++r) {
          if (r == which + 1) continue;
#pragma unroll
          for (int end = 0; end < ends; ++end) slope[end][r][which] += factor * face.mean[end][r][at][slot];
        }
      });
    }
#pragma unroll
    for (int end = 0; end < ends; ++end) {
      const T viscosity = viscosity_of_face(2 * e + end);
      const T sign = end == 0 ? T(1) : T(-1);
      T jump_of[dim];
      T through_of[dim];
#pragma unroll
      for (int r = 0; r < dim; ++r) {
        jump_of[r] = r == 0 ? T(0) : face.jump[end][r][turn][slot];
        through_of[r] = face.through[end][r][turn][slot];
#pragma unroll
        for (int which = 0; which < jumping; ++which) {
          const int a = (e + 1 + which) % dim;
          if (r != which + 1) through_of[r] += tables.flux[a][e] * slope[end][r][which];
          // In F_ae, which is g times this.
          if constexpr (stress) {
            through_of[r] += (tables.inverse[(e + r) % dim][a] * tables.turned[a][e]) * slope[end][0][which];
          }
        }
      }
#pragma unroll
      for (int r = 0; r < dim; ++r) {
        T jump{};
        T through{};
#pragma unroll
        for (int other = 0; other < dim; ++other) {
          const T metric = tables.metric[(e + r) % dim][(e + other) % dim];
          if (other > 0) jump += metric * jump_of[other];
          through += metric * through_of[other];
        }
        jump *= T(-0.5);
        face.jump[end][r][turn][slot] = viscosity * jump;
        face.through[end][r][turn][slot] = viscosity * (sign * (through + penalty * jump));
      }
    }
    // Modes k + 1 in the direction of a component that jumps.
    if (turn < jumping * lines) {
      const int r = turn < lines ? 1 : 2;
      const int t = turn < lines ? turn : turn - lines;
      const int c = (e + r) % dim;
      const T metric = tables.metric[c][c];
      T top[ends] = {face.through_top[0][r - 1][t][slot], face.through_top[1][r - 1][t][slot]};
      if constexpr (dim == 3) {
        const T mixed = tables.flux[3 - e - c][e];
        for_modes_above(t, [&](int way, T factor) {
#pragma unroll
          for (int end = 0; end < ends; ++end) {
            top[end] += mixed * (factor * face.mean_top[end][r - 1][t + way][slot]);
          }
        });
      }
#pragma unroll
      for (int end = 0; end < ends; ++end) {
        const T sign = end == 0 ? T(1) : T(-1);
        const T jump = (T(-0.5) * metric) * face.jump_top[end][r - 1][t][slot];
        const T viscosity = viscosity_of_face(2 * e + end);
        face.jump_top[end][r - 1][t][slot] = viscosity * jump;
        face.through_top[end][r - 1][t][slot] = viscosity * (sign * (metric * top[end] + penalty * jump));
      }
    }
  }

  /// What a column across both faces gives to all components.
  __device__ void test_faces(int e) {
    const Faces& face = shared.face;
    const T normal = tables.flux[e][e];
    T below[ends][dim][jumping]{};  // transposed derivatives
#pragma unroll
    for (int which = 0; which < jumping; ++which) {
      for_modes_below(mode(which), [&](int way, T factor) {
        const int at = turn + way * stride(which);
#pragma unroll
        for (int r = 0; r < dim; ++r) {
          if (r == which + 1 && !stress) continue;
#pragma unroll
          for (int end = 0; end < ends; ++end) below[end][r][which] += factor * face.jump[end][r][at][slot];
        }
      });
    }
    const int start = column_start(e, turn);
    const int step = along(e);
#pragma unroll
    for (int r = 0; r < dim; ++r) {
      const int c = (e + r) % dim;
      const T jump[ends] = {face.jump[0][r][turn][slot], face.jump[1][r][turn][slot]};
      T tests[ends]{};
#pragma unroll
      for (int which = 0; which < jumping; ++which) {
        if (r == which + 1) continue;
        const T factor = tables.flux[e][(e + 1 + which) % dim];
#pragma unroll
        for (int end = 0; end < ends; ++end) tests[end] += factor * below[end][r][which];
      }
      const T lifted = tables.flux[e][c];
      update(shared.along[c] + start, step,
             [&](T(&line)[n]) { add_traces(tables.value, lifted * jump[0], lifted * jump[1], line); });
      if (r == 0) {
        if constexpr (stress) add_turned(e, below, tests);
#pragma unroll
        for (int a = 0; a < dim; ++a) {  // e is known at run time only
#pragma unroll
          for (int end = 0; end < ends; ++end) hats[a][end] += a == e ? tests[end] : T(0);
        }
        continue;
      }
#pragma unroll
      for (int end = 0; end < ends; ++end) tests[end] += face.through[end][r][turn][slot];
      update(shared.value[c] + start, step, [&](T(&line)[n]) {
        add_traces(tables.value, tests[0], tests[1], line);
        add_traces(tables.slope, -normal * jump[0], normal * jump[1], line);
      });
    }
    if (turn < jumping * lines) {
      const int r = turn < lines ? 1 : 2;
      const int t = turn < lines ? turn : turn - lines;
      const int c = (e + r) % dim;
      T tests[ends] = {face.through_top[0][r - 1][t][slot], face.through_top[1][r - 1][t][slot]};
      if constexpr (dim == 3) {
        const T mixed = tables.flux[e][3 - e - c];
        for_modes_below(t, [&](int way, T factor) {
#pragma unroll
          for (int end = 0; end < ends; ++end) {
            tests[end] += mixed * (factor * face.jump_top[end][r - 1][t + way][slot]);
          }
        });
      }
      const T jump[ends] = {face.jump_top[0][r - 1][t][slot], face.jump_top[1][r - 1][t][slot]};
      const bool closest = r == dim - 1;  // modes in direction e, among those of a column of the component
      update(shared.top[c] + (closest ? t * n : t), closest ? 1 : n, [&](T(&line)[n]) {
        add_traces(tables.value, tests[0], tests[1], line);
        add_traces(tables.slope, -normal * jump[0], normal * jump[1], line);
      });
    }
  }
  /// In the stress form: the jumps, of which Q is g times, by the derivatives of component e in their directions.
  __device__ void add_turned(int e, const T (&below)[ends][dim][jumping], T (&tests)[ends]) const {
#pragma unroll
    for (int which = 0; which < jumping; ++which) {
      const int b = (e + 1 + which) % dim;
#pragma unroll
      for (int r = 0; r < dim; ++r) {
        const T factor = tables.inverse[b][(e + r) % dim] * tables.turned[b][e];
#pragma unroll
        for (int end = 0; end < ends; ++end) tests[end] += factor * below[end][r][which];
      }
    }
  }
  /// What `change` makes of a line in shared memory.
  template <class Change>
  __device__ void update(Value* from, int step, const Change& change) const {
    T line[n];
#pragma unroll
    for (int j = 0; j < n; ++j) line[j] = from[j * step][slot];
    change(line);
#pragma unroll
    for (int j = 0; j < n; ++j) from[j * step][slot] = line[j];
  }

  __device__ void apply() {
    look_around();
    wait_for_earlier_kernels();
    __syncthreads();
    take_components();
    __syncthreads();
    mix();
    __syncthreads();
    test_components();
#pragma unroll 1
    for (int e = 0; e < dim; ++e) {
      __syncthreads();
      take_faces(e);
      __syncthreads();
      mix_faces(e);
      __syncthreads();
      test_faces(e);
    }
    __syncthreads();
    put_components();
  }
};

/// Thread blocks on a multiprocessor, which bound registers: as many as have room, with at most 37 warps.
template <class Operator>
constexpr int sheared_blocks() {
  const int fitting = static_cast<int>((226 << 10) / (sizeof(typename Operator::Shared) + (1 << 10)));
  return std::clamp(std::min(fitting, 1184 / Operator::threads), 1, 8);
}

template <class Operator>
__global__ void __launch_bounds__(Operator::threads, sheared_blocks<Operator>())
    apply_sheared_cells(const __grid_constant__ typename Operator::Tables tables,
                        const __grid_constant__ typename Operator::Fields fields) {
  extern __shared__ __align__(16) unsigned char memory[];
  Operator(tables, fields, *reinterpret_cast<typename Operator::Shared*>(memory)).apply();
}

template <class T, int dim, int order>
void apply_sheared(const ElementArguments<T>& arguments, Stream stream) {
  // There is no order 0 on such cells.
  if constexpr (order > 0) {
    const ShearedTables<T, dim, order> tables(*arguments.cell, *arguments.sheared);
    const auto start = [&]<bool stress, Makes makes>() {
      using Operator = ShearedOperator<T, dim, order, makes, stress>;
      static_assert(sizeof(typename Operator::Shared) <= most_shared_bytes);
      constexpr const char* name = makes == Makes::image ? "apply, sheared" : "residual, sheared";
      launch(name, apply_sheared_cells<Operator>, blocks_for(arguments.blocks.count * interleave, Operator::cells),
             dim3(Operator::cells, Operator::turns), sizeof(typename Operator::Shared), stream, tables,
             ShearedFields<T>(arguments));
    };
    apply_elements<T, dim, order>(arguments, stream, [&]<Makes makes>() {
      arguments.sheared->stress ? start.template operator()<true, makes>() : start.template operator()<false, makes>();
    });
  }
}

}  // namespace solenoid::cuda
