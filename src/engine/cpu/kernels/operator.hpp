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
/// finished; a next cell that comes earlier in order (above a cell at odd x) has it added to its finished hats
/// (CellBlock). Traffic: x once, y once (16 bytes per unknown in double), neighbours from the caches.
///
/// Poisson's operator is w alone, of a field that is O in all directions:  y = nu sum_a L^O_a u + alpha u.

#include <algorithm>

#include "engine/cpu/kernels/simd.hpp"
#include "engine/cpu/kernels/table.hpp"
#include "mesh/record.hpp"

namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE {

constexpr int odd_sign(int j) { return j % 2 == 0 ? 1 : -1; }

/// A batch of cells, one per lane (the null record in lanes without one), and what lies around them. `record`: numbers
/// in a record.
template <int dim, int record>
class CellBatch {
 public:
  using Places = Lanes<record>;

  /// Any cells.
  CellBatch(const CellTopology& topology, const std::int32_t* cells) : own(cells, topology.null), topology_(topology) {
    std::copy_n(cells, width, cell_);
    for (int side = 0; side < 2 * dim; ++side) {
      look_up(topology.neighbour[side], cell_, beside_[side]);
      behind[side] = Places(beside_[side], topology.null);
      boundary[side] = has_boundary(topology, beside_[side]);
    }
  }
  /// A block of cells of a range that ends with `end`.
  CellBatch(const CellTopology& topology, std::int32_t end, const CellBlock& block)
      : own(block.own), topology_(topology), block_(&block) {
    cells_of(topology, end, block, cell_);
    for (int side = 0; side < 2 * dim; ++side) {
      boundary[side] = (block.boundary >> side & 1) != 0;
      if (!block.behind[side].scattered()) {
        behind[side] = Places(block.behind[side]);
      } else {
        std::int32_t beside[width];
        look_up(topology.neighbour[side], cell_, beside);
        behind[side] = Places(beside, topology.null);
      }
    }
  }
  /// The cells of a block of a range that ends with `end`: in lanes without one the null record.
  static void cells_of(const CellTopology& topology, std::int32_t end, const CellBlock& block, std::int32_t* cells) {
    for (int l = 0; l < width; ++l) cells[l] = block.first + l < end ? block.first + l : topology.null;
  }
  /// Tells a block with its first cell what there is around it.
  static void locate(const CellTopology& topology, std::int32_t end, CellBlock& block) {
    std::int32_t cells[width];
    cells_of(topology, end, block, cells);
    block.own = find_runs(cells, topology.null);
    block.boundary = 0;
    for (int side = 0; side < 2 * dim; ++side) {
      std::int32_t beside[width];
      look_up(topology.neighbour[side], cells, beside);
      block.behind[side] = find_runs(beside, topology.null);
      block.boundary |= has_boundary(topology, beside) ? 1 << side : 0;
      for (int i = 0; i < dim - 1; ++i) {
        std::int32_t upper[width];
        look_up(topology.neighbour[2 * ((side / 2 + 1 + i) % dim) + 1], beside, upper);
        block.hats[side][i] = find_runs(upper, topology.null);
      }
    }
  }

  /// Where the upper hats in direction c of the records behind a face lie: in the records behind them.
  [[nodiscard]] Places hats_behind(int side, int c) const {
    const std::int32_t* beside = beside_[side];
    std::int32_t found[width];
    if (block_ != nullptr) {
      const Runs& runs = block_->hats[side][(c - side / 2 - 1 + dim) % dim];
      if (!runs.scattered()) return Places(runs);
      look_up(topology_.neighbour[side], cell_, found);
      beside = found;
    }
    std::int32_t upper[width];
    look_up(topology_.neighbour[2 * c + 1], beside, upper);
    return Places(upper, topology_.null);
  }
  /// From now on there is nothing behind a face of the lanes, and no terms on it: as on a slip side. Of any cells.
  void cut(int side, LaneSet lanes) {
    if (lanes == 0) return;
    boundary[side] = true;
    cut_[side] |= lanes;
    const LaneSet left = lanes_where([&](int l) { return beside_[side][l] < topology_.cells; }) & ~lanes;
    if (left == 0) {
      behind[side] = Places(Runs{{topology_.null, 0}, {0, 0}});
      return;
    }
    for (int l = 0; l < width; ++l) {
      if ((left >> l & 1) == 0) beside_[side][l] = topology_.null;
    }
    behind[side] = Places(beside_[side], topology_.null);
  }
  [[nodiscard]] Face face(int side, int lane) const {
    return (cut_[side] >> lane & 1) != 0 ? Face::slip : topology_.face[side][cell_[lane]];
  }
  /// The record behind a face.
  [[nodiscard]] std::int32_t beside(int side, int lane) const { return topology_.neighbour[side][cell_[lane]]; }

  Places own;
  Places behind[2 * dim];  ///< records behind the faces, [side]
  bool boundary[2 * dim];  ///< some lane has a boundary face there

 private:
  static bool has_boundary(const CellTopology& topology, const std::int32_t* beside) {
    bool boundary = false;
    for (int l = 0; l < width; ++l) boundary |= beside[l] >= topology.cells;
    return boundary;
  }
  const CellTopology& topology_;
  const CellBlock* block_ = nullptr;
  LaneSet cut_[2 * dim]{};
  std::int32_t cell_[width];
  std::int32_t beside_[2 * dim][width];  // records behind the faces, without a block
};

/// Blocks of records that will be needed soon, fetched into the caches while something else is computed: the hardware
/// does not see through the order in which kernels read.
template <class T, int dim, int order>
class Ahead {
 public:
  /// A block of a vector, or only its hats.
  void add(const T* records) { streams_[count_++] = {records, block}; }
  void add_hats(const T* records) { streams_[count_++] = {records, power(order + 1, dim - 1)}; }
  /// The next value of each block.
  [[gnu::always_inline]] void fetch() {
    for (int s = 0; s < count_; ++s) {
      if (value_ % block < streams_[s].of_component) fetch(streams_[s].records + value_ * interleave);
    }
    ++value_;
  }

 private:
  static constexpr int block = power(order + 1, dim);
  struct Stream {
    const T* records;
    int of_component;  // values that are wanted
  };

  [[gnu::always_inline]] static void fetch(const T* at) {
    for (int i = 0; i < interleave; i += 64 / static_cast<int>(sizeof(T))) __builtin_prefetch(at + i);
  }

  Stream streams_[3];
  int count_ = 0;
  int value_ = 0;
};

/// nu L^O + alpha on a field of a batch of cells, in the directions in which it is O, one register of lanes after the
/// other. The field is the velocity component c or, if c = dim, Poisson's u.
template <class T, int dim, int order, int c>
struct TangentialOperator {
  static constexpr bool velocity = c < dim;
  static constexpr int n = order + 1;
  static constexpr int columns = power(n, dim - 1);  // modes in all directions but one
  static constexpr int block = power(n, dim);
  static constexpr int hats = velocity ? columns : 0;  // upper ones
  static constexpr int lines = (block + hats) / n;     // in one direction
  static constexpr int record = record_size(dim, order, velocity ? EquationKind::stokes : EquationKind::poisson);
  static constexpr int directions = velocity ? dim * (dim - 1) : dim;  // of all fields of a record
  using V = Simd<T>;
  using R = typename V::Register;
  using Batch = CellBatch<dim, record>;
  /// A coefficient of all lines: in a register where these suffice for all of them, in memory otherwise.
  using Factor = std::conditional_t<SOLENOID_SIMD_BYTES == 64 && n <= 3, R, T>;

  /// Values of the field on a cell: those of its record, and a component's upper hats. Value i of a piece lies at
  /// piece + i * interleave.
  struct Rows {
    const T* piece[2];
  };
  static constexpr int piece_size(int piece) { return piece == 0 ? block : hats; }
  struct alignas(SOLENOID_SIMD_BYTES) Scratch {
    T values[(block + hats) * interleave];
  };
  using Places = typename Batch::Places;
  /// Of the cells `own`, for a component with the upper hats in the records `upper()`.
  template <class Upper>
  [[gnu::always_inline]] static Rows view(const Places& own, const Upper& upper, const T* x, Scratch& scratch) {
    if constexpr (velocity) {
      return {{own.template view<block>(x, c * block, scratch.values),
               upper().template view<columns>(x, c * block, scratch.values + block * interleave)}};
    } else {
      return {{own.template view<block>(x, 0, scratch.values), nullptr}};
    }
  }
  [[gnu::always_inline]] static R get(const T* values, int i) {
    return *reinterpret_cast<const typename V::Unaligned*>(values + i * interleave);
  }

  /// A direction in which the field is O, and its neighbours there.
  struct Tangential {
    int direction;
    Rows below;
    Rows above;
    Scratch scratch[2];

    Tangential(const Batch& batch, int t, const T* x) : direction(t) {
      below = view(
          batch.behind[2 * t], [&] { return batch.hats_behind(2 * t, c); }, x, scratch[0]);
      above = view(
          batch.behind[2 * t + 1], [&] { return batch.hats_behind(2 * t + 1, c); }, x, scratch[1]);
    }
  };

  /// w = alpha u + nu L^O_t u, or w += nu L^O_t u, on all rows of the lanes from `lane` on; t is the direction with
  /// stride `stride` inside a row.
  template <int stride, bool first>
  [[gnu::always_inline]] static void add_tangential(const CellData<T>& cell, const Batch& batch, const Tangential& to,
                                                    const Rows& u, int lane, Ahead<T, dim, order>& ahead, R* w) {
    constexpr int fetched = record / (directions * V::parts);
    const int t = to.direction;
    const T alpha = cell.alpha;
    Factor below[n][n];
    Factor mine[n][n];
#pragma GCC unroll 16
    for (int j = 0; j < n; ++j) {
#pragma GCC unroll 16
      for (int i = 0; i < n; ++i) {
        below[j][i] = Factor{} + cell.below[t][j][i];
        mine[j][i] = Factor{} + cell.own[t][j][i];
      }
    }
    for (int piece = 0; piece < 2; ++piece) {
      for (int line = 0; line < piece_size(piece) / n; ++line) {
#pragma GCC unroll 16
        for (int i = 0; i < (fetched + lines - 1) / lines; ++i) ahead.fetch();
        const int start = line / stride * stride * n + line % stride;
        R own[n];
        R even[n];  // of the neighbours' modes about the cell's centre
        R odd[n];
#pragma GCC unroll 16
        for (int j = 0; j < n; ++j) {
          const R lower = get(to.below.piece[piece] + lane, start + j * stride);
          const R upper = get(to.above.piece[piece] + lane, start + j * stride);
          own[j] = get(u.piece[piece] + lane, start + j * stride);
          even[j] = lower + upper;
          odd[j] = lower - upper;
        }
#pragma GCC unroll 16
        for (int j = 0; j < n; ++j) {
          R& out = w[piece * block + start + j * stride];
          R sum = first ? alpha * own[j] : out;
#pragma GCC unroll 16
          for (int i = 0; i < n; ++i) sum += below[j][i] * ((i + j) % 2 == 0 ? even[i] : odd[i]);
#pragma GCC unroll 16
          for (int i = j % 2; i < n; i += 2) sum += mine[j][i] * own[i];
          out = sum;
        }
      }
    }
    for (int upper = 0; upper < 2; ++upper) {
      if (!batch.boundary[2 * t + upper]) continue;
      R extra{};
      for (int l = 0; l < V::lanes; ++l) {
        extra[l] = static_cast<T>(face_weight(batch.face(2 * t + upper, lane + l)) - 1);
      }
      add_boundary_face<stride>(cell, t, upper, extra, u, lane, w);
    }
  }

  /// w += extra nu E(u, .) on the lower or upper face in direction t: what a boundary face has over an interior one.
  template <int stride>
  static void add_boundary_face(const CellData<T>& cell, int t, int upper, const R& extra, const Rows& u, int lane,
                                R* w) {
    const T factor = cell.viscosity * cell.inverse_h[t] * cell.inverse_h[t];
    const T sign = upper == 1 ? T(1) : T(-1);  // of odd modes
    for (int piece = 0; piece < 2; ++piece) {
      for (int line = 0; line < piece_size(piece) / n; ++line) {
        const int start = line / stride * stride * n + line % stride;
        R v{};
        R d{};
        for (int j = 0; j < n; ++j) {
          const R mode = (j % 2 == 0 ? T(1) : sign) * get(u.piece[piece] + lane, start + j * stride);
          v += cell.value[j] * mode;
          d += cell.slope[j] * mode;
        }
        const R value = factor * extra * (cell.penalty * v - T(0.5) * d);
        const R slope = factor * extra * T(-0.5) * v;
        for (int j = 0; j < n; ++j) {
          w[piece * block + start + j * stride] +=
              (j % 2 == 0 ? T(1) : sign) * (cell.value[j] * value + cell.slope[j] * slope);
        }
      }
    }
  }
};

/// Poisson's operator on a batch of cells.
template <class T, int dim, int order>
struct PoissonOperator : TangentialOperator<T, dim, order, dim> {
  using Base = TangentialOperator<T, dim, order, dim>;
  using Base::block;
  using Base::n;
  using typename Base::Batch;
  using typename Base::R;
  using typename Base::Rows;
  using typename Base::Tangential;
  using typename Base::V;

  /// out = A x on the cells. The records `ahead` are fetched.
  static void run(const CellData<T>& cell, const Batch& batch, const T* x, Ahead<T, dim, order>& ahead, V* out) {
    typename Base::Scratch scratch;
    const Rows u = Base::view(batch.own, nullptr, x, scratch);
    const Tangential along_x(batch, 0, x);
    const Tangential along_y(batch, 1, x);
    const Tangential along_z(batch, dim - 1, x);
    for (int part = 0; part < V::parts; ++part) {
      const int lane = part * V::lanes;
      R w[block];
      Base::template add_tangential<1, true>(cell, batch, along_x, u, lane, ahead, w);
      Base::template add_tangential<n, false>(cell, batch, along_y, u, lane, ahead, w);
      if constexpr (dim == 3) Base::template add_tangential<n * n, false>(cell, batch, along_z, u, lane, ahead, w);
      for (int i = 0; i < block; ++i) out[i].part[part] = w[i];
    }
  }
};

/// The operator on the velocity component c of a batch of cells.
template <class T, int dim, int order, int c>
struct ComponentOperator : TangentialOperator<T, dim, order, c> {
  using Base = TangentialOperator<T, dim, order, c>;
  using Base::block;
  using Base::columns;
  using Base::get;
  using Base::n;
  using typename Base::Batch;
  using typename Base::R;
  using typename Base::Rows;
  using typename Base::Tangential;
  using typename Base::V;
  static constexpr int rows = n + 1;

  /// own, upper: rows 0..k and k + 1 of the element's velocity; q += B_c u in the pressure block. p: the pressure
  /// block of the cells, value i at p + i * interleave. A third (half in 2D) of the records `ahead` is fetched.
  static void run(const CellData<T>& cell, const Batch& batch, const T* x, const T* p, Ahead<T, dim, order>& ahead,
                  V* own, V* upper, V* q) {
    constexpr int a = (c + 1) % dim;
    constexpr int b = dim == 3 ? (c + 2) % dim : a;
    typename Base::Scratch scratch;
    const Rows u = Base::view(
        batch.own, [&]() -> const auto& { return batch.behind[2 * c + 1]; }, x, scratch);
    const Tangential along_a(batch, a, x);
    const Tangential along_b(batch, b, x);
    for (int part = 0; part < V::parts; ++part) {
      const int lane = part * V::lanes;
      R w[rows * columns];
      Base::template add_tangential<1, true>(cell, batch, along_a, u, lane, ahead, w);
      if constexpr (dim == 3) Base::template add_tangential<n, false>(cell, batch, along_b, u, lane, ahead, w);
      add_mass_and_gradient(cell, u, p + lane, lane, part, w, own, upper, q);
    }
  }

  /// M^P w, the stiffness of P, the gradient of p and the divergence of u on one register of lanes.
  [[gnu::always_inline]] static void add_mass_and_gradient(const CellData<T>& cell, const Rows& u, const T* p, int lane,
                                                           int part, const R* w, V* own, V* upper, V* q) {
    constexpr int a = (c + 1) % dim;
    constexpr int b = dim == 3 ? (c + 2) % dim : a;
    const T stiffness = cell.viscosity * cell.inverse_h[c] * cell.inverse_h[c];
    const T gradient = cell.inverse_h[c];
    constexpr int stride_c = pressure_stride(order, c);
    for (int column = 0; column < columns; ++column) {
      const int base = column % n * pressure_stride(order, a) + (dim == 3 ? column / n * pressure_stride(order, b) : 0);
      const auto pressure = [&](int i) { return gradient * get(p, base + i * stride_c); };
      const auto bubble = [&](int i) { return get(u.piece[0] + lane, i * columns + column); };
      const R difference = get(u.piece[1] + lane, column) - bubble(0);
      R in[rows];
#pragma GCC unroll 16
      for (int j = 0; j < rows; ++j) in[j] = w[j * columns + column];
#pragma GCC unroll 16
      for (int i = 0; i < rows; ++i) {
        R sum{};
#pragma GCC unroll 16
        for (int j = 0; j < rows; ++j) {
          if (mass_couples(n, i, j)) sum += cell.mass[i][j] * in[j];
        }
        if (i == 0) {
          own[column].part[part] = sum + (pressure(0) - stiffness * difference);
        } else if (i == n) {
          upper[column].part[part] = sum + (stiffness * difference - pressure(0));
        } else {
          own[i * columns + column].part[part] = sum + (stiffness * bubble(i) - pressure(i));
        }
      }
      q[base].part[part] += gradient * difference;
#pragma GCC unroll 16
      for (int i = 1; i < n; ++i) q[base + i * stride_c].part[part] += gradient * bubble(i);
    }
  }
};

template <class T, EquationKind equation, int dim, int order>
struct Operator {
  static constexpr int n = order + 1;
  static constexpr int columns = power(n, dim - 1);
  static constexpr int block = power(n, dim);
  static constexpr int velocities = velocity_components(equation, dim);
  static constexpr int record = record_size(dim, order, equation);
  using V = Simd<T>;
  using Batch = CellBatch<dim, record>;

  /// Shares of upper hats for this range from cells outside of it.
  template <int c>
  static void carry_from_outside(const ApplyArguments<T>& arguments) {
    const auto& topology = arguments.topology;
    for (std::int64_t first = 0; first < arguments.carry_count[c]; first += width) {
      std::int32_t cells[width];
      for (int l = 0; l < width; ++l) {
        cells[l] = first + l < arguments.carry_count[c] ? arguments.carry[c][first + l] : topology.null;
      }
      const Batch batch(topology, cells);
      alignas(SOLENOID_SIMD_BYTES) T scratch[block * interleave];
      const T* p = batch.own.template view<block>(arguments.x, dim * block, scratch);
      V own[block];
      V upper[columns];
      V q[block]{};
      Ahead<T, dim, order> nothing;
      ComponentOperator<T, dim, order, c>::run(*arguments.cell, batch, arguments.x, p, nothing, own, upper, q);
      batch.behind[2 * c + 1].template write<false>(columns, arguments.y, c * block, upper);
    }
  }

  /// Rows of component c of the batch, lower hats complete but for shares of cells that come later.
  template <int c>
  [[gnu::always_inline]] static void component(const ApplyArguments<T>& arguments, const CellBlock& cells,
                                               const Batch& batch, const T* p, Ahead<T, dim, order>& ahead, V* own,
                                               V* upper, V* q) {
    ComponentOperator<T, dim, order, c>::run(*arguments.cell, batch, arguments.x, p, ahead, own, upper, q);
    take_shares(arguments, cells, batch, c, own);
  }

  /// Adds what cells below left in y to lower hats, which are zero where they are prescribed.
  [[gnu::always_inline]] static void take_shares(const ApplyArguments<T>& arguments, const CellBlock& cells,
                                                 const Batch& batch, int c, V* own) {
    const T* share = arguments.y + record_offset(cells.first, record) + interleave * c * block;
    for (int i = 0; i < columns; ++i) {
      V value{};
      load_lanes(cells.share_waits[c], share + i * interleave, value);
      own[i] += value;
    }
    if (!batch.boundary[2 * c]) return;
    alignas(SOLENOID_SIMD_BYTES) T free[width];
    for (int l = 0; l < width; ++l) free[l] = normal_fixed(batch.face(2 * c, l)) ? T(0) : T(1);
    for (int i = 0; i < columns; ++i) own[i] *= load(free);
  }

  /// Hands the upper hats' shares of component c to the next cells in this range: those that come later find them in
  /// their hats, to those that are finished they are added. Others get them from their own range's carry list.
  static void hand_over(const ApplyArguments<T>& arguments, const CellBlock& cells, const Batch& batch, int c,
                        V* upper) {
    const auto& places = batch.behind[2 * c + 1];
    places.template write<false>(columns, arguments.y, c * block, upper, cells.next_is_later[c]);
    if (batch.boundary[2 * c + 1]) finish_hat_only(arguments, batch, c, upper);
    if (cells.next_is_done[c] == 0) return;
    if (arguments.b != nullptr) {
      for (int i = 0; i < columns; ++i) upper[i] = -upper[i];
    }
    places.template write<true>(columns, arguments.y, c * block, upper, cells.next_is_done[c]);
  }

  /// Rows of hat-only records: complete at once, since there is no cell above. Zero where the velocity is prescribed.
  static void finish_hat_only(const ApplyArguments<T>& arguments, const Batch& batch, int c, const V* upper) {
    for (int l = 0; l < width; ++l) {
      const std::int32_t next = batch.beside(2 * c + 1, l);
      if (next < arguments.topology.cells || next >= arguments.topology.records) continue;
      const bool fixed = normal_fixed(batch.face(2 * c + 1, l));
      const std::int64_t hats = record_offset(next, record) + interleave * c * block;
      for (int i = 0; i < columns; ++i) {
        const std::int64_t at = hats + i * interleave;
        const T value = arguments.b == nullptr ? upper[i][l] : arguments.b[at] - upper[i][l];
        arguments.y[at] = fixed ? T(0) : value;
      }
    }
  }

  /// The hats are read again soon, by cells that add to them; the rest goes past the caches if they are too small.
  static void store_batch(const ApplyArguments<T>& arguments, const CellBlock& cells, const Batch& batch,
                          const V* out) {
    if (!arguments.stream || !batch.own.whole()) {
      batch.own.template write<false>(record, arguments.y, 0, out);
      return;
    }
    T* to = arguments.y + record_offset(cells.first, record);
    for (int c = 0; c <= velocities; ++c) {
      const int hats = c < velocities ? columns : 0;
      for (int i = c * block; i < c * block + hats; ++i) store(to + i * interleave, out[i]);
      for (int i = c * block + hats; i < (c + 1) * block; ++i) stream(to + i * interleave, out[i]);
    }
  }

  /// Blocks after which something is fetched; with less, much of the time is spent waiting for x, with more, other
  /// things leave the first-level cache.
  static constexpr int distance = std::max(2, (24 << 10) / (record * interleave * static_cast<int>(sizeof(T))));

  /// What nobody before a block touches: the layer after it in the last direction.
  static Ahead<T, dim, order> ahead_of(const ApplyArguments<T>& arguments, std::int64_t turn) {
    const CellBlock& block = arguments.blocks[std::min(turn, arguments.block_count - 1)];
    const std::int64_t next = record_offset(block.behind[2 * dim - 1].record[0] / width * width, record);
    Ahead<T, dim, order> ahead;
    ahead.add(arguments.x + next);
    if (velocities > 0) ahead.add_hats(arguments.y + next);
    return ahead;
  }

  /// Writes the rows of a block, A x on its cells or what they are of b - A x, and hands upper hats over.
  [[gnu::always_inline]] static void finish(const ApplyArguments<T>& arguments, const CellBlock& cells,
                                            const Batch& batch, V* out, [[maybe_unused]] V (*upper)[columns]) {
    if (arguments.b != nullptr) {
      V b[record];
      batch.own.template load_values<record>(arguments.b, 0, b);
      for (int i = 0; i < record; ++i) out[i] = b[i] - out[i];
    }
    store_batch(arguments, cells, batch, out);
    for (int c = 0; c < velocities; ++c) hand_over(arguments, cells, batch, c, upper[c]);
  }

  /// Rows of velocity and pressure; upper: the components' upper hats, to be handed over.
  static void stokes(const ApplyArguments<T>& arguments, const CellBlock& cells, const Batch& batch,
                     Ahead<T, dim, order>& ahead, V* out, V (*upper)[columns]) {
    alignas(SOLENOID_SIMD_BYTES) T scratch[block * interleave];
    const T* p = batch.own.template view<block>(arguments.x, dim * block, scratch);
    V q[block]{};
    component<0>(arguments, cells, batch, p, ahead, out, upper[0], q);
    component<1>(arguments, cells, batch, p, ahead, out + block, upper[1], q);
    if constexpr (dim == 3) component<2>(arguments, cells, batch, p, ahead, out + 2 * block, upper[2], q);
    for (int i = 0; i < block; ++i) out[dim * block + i] = -q[i];
  }

  static void apply(const ApplyArguments<T>& arguments) {
    if constexpr (equation == EquationKind::stokes) {
      carry_from_outside<0>(arguments);
      carry_from_outside<1>(arguments);
      if constexpr (dim == 3) carry_from_outside<2>(arguments);
    }
    for (std::int64_t turn = 0; turn < arguments.block_count; ++turn) {
      const CellBlock& cells = arguments.blocks[turn];
      const Batch batch(arguments.topology, arguments.end, cells);
      V out[record];
      [[maybe_unused]] V upper[dim][columns];
      Ahead<T, dim, order> ahead = ahead_of(arguments, turn + distance);
      if constexpr (equation == EquationKind::stokes) {
        stokes(arguments, cells, batch, ahead, out, upper);
      } else {
        PoissonOperator<T, dim, order>::run(*arguments.cell, batch, arguments.x, ahead, out);
      }
      finish(arguments, cells, batch, out, upper);
    }
  }
};

}  // namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE
