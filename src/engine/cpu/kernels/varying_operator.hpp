#pragma once
/// \file
/// The operator where coefficients vary by cell, element by element. Lanes are cells.
///
/// In the gradient form component c of the velocity has on a cell K
///
///     y_c = nu_K L^P_c u_c + M^P_c (alpha_K + sum_a (nu_K V_a + faces)) u_c - B_c^T p,
///
/// V the stiffness of O, and on a face across a between the traces u1 below and u2 above it
///
///     nu_F (gamma [u] - {u'}) [v] - nu_F {v'} [u],    nu_F = 2 nu_1 nu_2 / (nu_1 + nu_2),
///
/// one-sided with twice the weight where velocities are prescribed (E of level/patches.hpp, times nu_F and the weight).
/// The stress form has 2 L^P, and couples components inside a cell:
///
///     y_c += nu_K X_c^T X_a u_a - sum_s s nu_s (hat_c(s) psi_c(s)^T) X_a u_a
///                               - sum_s s nu_s X_c^T (psi_a(s) hat_a(s)^T) u_a,        X_ij = (psi_i', b_j),
///
/// over the lower (s = -1) and upper (s = 1) faces across c and across a; u_a is one hat on faces across a, so that no
/// neighbour is needed. X is -1 on the diagonal of bubbles, and of hats psi_i(1) - delta_i0 and delta_i0 - psi_i(0).

#include "engine/cpu/kernels/operator.hpp"
#include "engine/cpu/kernels/varying_table.hpp"

namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE {

/// The coefficients of a batch of cells.
template <class T, int dim>
struct LaneCoefficients {
  using V = Simd<T>;

  V viscosity;
  V reaction;
  V weight[2 *
           dim];     ///< nu_F of faces, doubled where velocities are prescribed, none on slip and outflow faces, [side]
  V shear[2 * dim];  ///< the same, not doubled: of what couples components

  template <class Batch>
  LaneCoefficients(const VaryingData<T>& data, const std::int32_t* cells, const Batch& batch) {
    T nu[width];
    T alpha[width];
    look_up(data.viscosity, cells, nu);
    look_up(data.reaction, cells, alpha);
    for (int l = 0; l < width; ++l) {
      viscosity.set(l, nu[l]);
      reaction.set(l, alpha[l]);
    }
    for (int side = 0; side < 2 * dim; ++side) {
      T of_face[width];
      for (int l = 0; l < width; ++l) of_face[l] = data.viscosity[batch.beside(side, l)];
      for (int l = 0; l < width; ++l) of_face[l] = T(2) / (T(1) / nu[l] + T(1) / of_face[l]);
      T factor[width];  // of weight
      std::fill_n(factor, width, T(1));
      for (int l = 0; l < width && batch.boundary[side]; ++l) {
        const Face face = batch.face(side, l);
        if (face == Face::interior) continue;
        of_face[l] = face == Face::velocity ? nu[l] : T(0);
        factor[l] = T(2);
      }
      for (int l = 0; l < width; ++l) {
        shear[side].set(l, of_face[l]);
        weight[side].set(l, factor[l] * of_face[l]);
      }
    }
  }
};

/// On the velocity component c of a batch of cells.
template <class T, int dim, int order, int c>
struct VaryingComponent : ComponentOperator<T, dim, order, c> {
  using Base = ComponentOperator<T, dim, order, c>;
  using Base::block;
  using Base::columns;
  using Base::get;
  using Base::n;
  using Base::rows;
  using typename Base::Batch;
  using typename Base::R;
  using typename Base::Rows;
  using typename Base::Tangential;
  using typename Base::V;
  using Lane = LaneCoefficients<T, dim>;
  template <int t>
  using RowsOf = typename TangentialOperator<T, dim, order, t>::Rows;

  /// As ComponentOperator::run. Compiled once for all who call it.
  [[gnu::noinline]] static void run(const CellData<T>& cell, const VaryingData<T>& data, const Lane& lanes,
                                    const Batch& batch, const T* x, const T* p, Ahead<T, dim, order>& ahead, V* own,
                                    V* upper, V* q) {
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
      add_tangential<1, true>(cell, data, lanes, along_a, u, part, ahead, w);
      if constexpr (dim == 3) add_tangential<n, false>(cell, data, lanes, along_b, u, part, ahead, w);
      Base::add_mass_and_gradient(cell, u, p + lane, lane, part, w, own, upper, q);
      add_stiffness(cell, data, lanes, u, part, own, upper);
    }
    if (!data.stress) return;
    couple<a>(cell, lanes, batch, x, own, upper);
    if constexpr (dim == 3) couple<b>(cell, lanes, batch, x, own, upper);
  }

 private:
  /// w = (alpha + nu V + faces across t) u, or w += (nu V + faces across t) u, on one register of lanes; t has stride
  /// `stride` inside a row.
  template <int stride, bool first>
  [[gnu::always_inline]] static void add_tangential(const CellData<T>& cell, const VaryingData<T>& data,
                                                    const Lane& lanes, const Tangential& to, const Rows& u, int part,
                                                    Ahead<T, dim, order>& ahead, R* w) {
    constexpr int fetched = Base::record / (Base::directions * V::parts);
    const int lane = part * V::lanes;
    const int t = to.direction;
    const T scale = cell.inverse_h[t] * cell.inverse_h[t];
    const R nu = scale * lanes.viscosity.part[part];
    const R below_face = scale * lanes.weight[2 * t].part[part];
    const R above_face = scale * lanes.weight[2 * t + 1].part[part];
    const R alpha = lanes.reaction.part[part];
    for (int piece = 0; piece < 2; ++piece) {
      for (int line = 0; line < Base::piece_size(piece) / n; ++line) {
#pragma GCC unroll 16
        for (int i = 0; i < (fetched + Base::lines - 1) / Base::lines; ++i) ahead.fetch();
        const int start = line / stride * stride * n + line % stride;
        R own[n];
        // Traces: of the cell's even and odd modes on its upper face, of its neighbours on the shared faces; slopes
        // point up.
        R even_value{};
        R even_slope{};
        R odd_value{};
        R odd_slope{};
        R below_value{};
        R below_slope{};
        R above_value{};
        R above_slope{};
#pragma GCC unroll 16
        for (int j = 0; j < n; ++j) {
          own[j] = get(u.piece[piece] + lane, start + j * stride);
          const R below = get(to.below.piece[piece] + lane, start + j * stride);
          const R above = T(odd_sign(j)) * get(to.above.piece[piece] + lane, start + j * stride);
          (j % 2 == 0 ? even_value : odd_value) += cell.value[j] * own[j];
          (j % 2 == 0 ? even_slope : odd_slope) += cell.slope[j] * own[j];
          below_value += cell.value[j] * below;
          below_slope += cell.slope[j] * below;
          above_value += cell.value[j] * above;
          above_slope -= cell.slope[j] * above;
        }
        const R jump_above = (even_value + odd_value) - above_value;
        const R jump_below = below_value - (even_value - odd_value);
        const R mean_above = T(0.5) * ((even_slope + odd_slope) + above_slope);
        const R mean_below = T(0.5) * (below_slope + (odd_slope - even_slope));
        // Of test functions on the upper and on the lower face,
        const R upper_value = above_face * (cell.penalty * jump_above - mean_above);
        const R lower_value = -(below_face * (cell.penalty * jump_below - mean_below));
        const R upper_slope = T(-0.5) * (above_face * jump_above);
        const R lower_slope = T(-0.5) * (below_face * jump_below);
        // and of even and odd ones.
        const R value_of[2] = {upper_value + lower_value, upper_value - lower_value};
        const R slope_of[2] = {upper_slope - lower_slope, upper_slope + lower_slope};
#pragma GCC unroll 16
        for (int j = 0; j < n; ++j) {
          R& out = w[piece * block + start + j * stride];
          R stiffness{};
#pragma GCC unroll 16
          for (int i = j % 2; i < n; i += 2) stiffness += data.volume[j][i] * own[i];
          const R sum = nu * stiffness + cell.value[j] * value_of[j % 2] + cell.slope[j] * slope_of[j % 2];
          out = sum + (first ? alpha * own[j] : out);
        }
      }
    }
  }

  /// The stiffness of P.
  [[gnu::always_inline]] static void add_stiffness(const CellData<T>& cell, const VaryingData<T>& data,
                                                   const Lane& lanes, const Rows& u, int part, V* own, V* upper) {
    const int lane = part * V::lanes;
    const T scale = (data.stress ? T(2) : T(1)) * cell.inverse_h[c] * cell.inverse_h[c];
    const R nu = scale * lanes.viscosity.part[part];
    for (int column = 0; column < columns; ++column) {
      const R flux = nu * (get(u.piece[1] + lane, column) - get(u.piece[0] + lane, column));
      own[column].part[part] -= flux;
      upper[column].part[part] += flux;
    }
    for (int i = columns; i < block; ++i) own[i].part[part] += nu * get(u.piece[0] + lane, i);
  }

  /// Place among the columns of component `of` of the modes i in direction t and r in the third one.
  template <int of, int t>
  static constexpr int column_of(int i, int r) {
    return t == (of + 1) % dim ? i + n * r : r + n * i;
  }

  /// What component t adds in the stress form.
  template <int t>
  static void couple(const CellData<T>& cell, const Lane& lanes, const Batch& batch, const T* x, V* own, V* upper) {
    using Other = TangentialOperator<T, dim, order, t>;
    typename Other::Scratch scratch;
    const typename Other::Rows u = Other::view(
        batch.own, [&]() -> const auto& { return batch.behind[2 * t + 1]; }, x, scratch);
    const T scale = cell.inverse_h[c] * cell.inverse_h[t];
    for (int part = 0; part < V::parts; ++part) {
      const int lane = part * V::lanes;
      const R nu = scale * lanes.viscosity.part[part];
      const R at_upper = nu - scale * lanes.shear[2 * t + 1].part[part];
      const R at_lower = nu - scale * lanes.shear[2 * t].part[part];
      const R upper_face = scale * lanes.shear[2 * c + 1].part[part];
      const R lower_face = scale * lanes.shear[2 * c].part[part];
      for (int r = 0; r < columns / n; ++r) {
        for (int i = 0; i < n; ++i) {  // mode of O in direction t
          const T value = cell.value[i];
          const T sign = i % 2 == 0 ? T(1) : T(-1);
          // Over the modes j of O in direction c: X_t u without and with coefficients.
          R first{};
          R upper_sum{};
          R lower_sum{};
#pragma GCC unroll 16
          for (int j = 0; j < n; ++j) {
            const int column = column_of<t, c>(j, r);
            const R high = get(u.piece[1] + lane, column);
            const R low = get(u.piece[0] + lane, column);
            const R inner = i == 0 ? high - low : get(u.piece[0] + lane, i * columns + column);
            const R plain = value * (high - sign * low) - inner;
            const R weighted = value * (at_upper * high - sign * (at_lower * low)) - nu * inner;
            upper_sum += cell.value[j] * (weighted - upper_face * plain);
            lower_sum += (j % 2 == 0 ? cell.value[j] : -cell.value[j]) * (weighted - lower_face * plain);
            if (j == 0) {
              first = weighted;
            } else {
              own[j * columns + column_of<c, t>(i, r)].part[part] -= weighted;
            }
          }
          own[column_of<c, t>(i, r)].part[part] += first - lower_sum;
          upper[column_of<c, t>(i, r)].part[part] += upper_sum - first;
        }
      }
    }
  }
};

template <class T, int dim, int order>
struct VaryingOperator {
  using Constant = Operator<T, EquationKind::stokes, dim, order>;
  static constexpr int columns = Constant::columns;
  static constexpr int block = Constant::block;
  static constexpr int record = Constant::record;
  using V = Simd<T>;
  using Batch = CellBatch<dim, record>;
  using Lane = LaneCoefficients<T, dim>;

  /// Shares of upper hats for this range from cells outside of it.
  template <int c>
  static void carry_from_outside(const VaryingData<T>& data, const ApplyArguments<T>& arguments) {
    for (std::int64_t first = 0; first < arguments.carry_count[c]; first += width) {
      std::int32_t cells[width];
      for (int l = 0; l < width; ++l) {
        cells[l] = first + l < arguments.carry_count[c] ? arguments.carry[c][first + l] : arguments.topology.null;
      }
      const Batch batch(arguments.topology, cells);
      const Lane lanes(data, cells, batch);
      alignas(SOLENOID_SIMD_BYTES) T scratch[block * interleave];
      const T* p = batch.own.template view<block>(arguments.x, dim * block, scratch);
      V own[block];
      V upper[columns];
      V q[block]{};
      Ahead<T, dim, order> nothing;
      VaryingComponent<T, dim, order, c>::run(*arguments.cell, data, lanes, batch, arguments.x, p, nothing, own, upper,
                                              q);
      batch.behind[2 * c + 1].template write<false>(columns, arguments.y, c * block, upper);
    }
  }

  /// As Operator::component.
  template <int c>
  static void component(const VaryingData<T>& data, const ApplyArguments<T>& arguments, const CellBlock& cells,
                        const Lane& lanes, const Batch& batch, const T* p, Ahead<T, dim, order>& ahead, V* own,
                        V* upper, V* q) {
    VaryingComponent<T, dim, order, c>::run(*arguments.cell, data, lanes, batch, arguments.x, p, ahead, own, upper, q);
    Constant::take_shares(arguments, cells, batch, c, own);
  }

  static void apply(const VaryingData<T>& data, const ApplyArguments<T>& arguments) {
    carry_from_outside<0>(data, arguments);
    carry_from_outside<1>(data, arguments);
    if constexpr (dim == 3) carry_from_outside<2>(data, arguments);
    for (std::int64_t turn = 0; turn < arguments.block_count; ++turn) {
      const CellBlock& block_of_cells = arguments.blocks[turn];
      const Batch batch(arguments.topology, arguments.end, block_of_cells);
      std::int32_t cells[width];
      Batch::cells_of(arguments.topology, arguments.end, block_of_cells, cells);
      const Lane lanes(data, cells, batch);
      V out[record];
      V upper[dim][columns];
      Ahead<T, dim, order> ahead = Constant::ahead_of(arguments, turn + Constant::distance);
      alignas(SOLENOID_SIMD_BYTES) T scratch[block * interleave];
      const T* p = batch.own.template view<block>(arguments.x, dim * block, scratch);
      V q[block]{};
      component<0>(data, arguments, block_of_cells, lanes, batch, p, ahead, out, upper[0], q);
      component<1>(data, arguments, block_of_cells, lanes, batch, p, ahead, out + block, upper[1], q);
      if constexpr (dim == 3) {
        component<2>(data, arguments, block_of_cells, lanes, batch, p, ahead, out + 2 * block, upper[2], q);
      }
      for (int i = 0; i < block; ++i) out[dim * block + i] = -q[i];
      Constant::finish(arguments, block_of_cells, batch, out, upper);
    }
  }
};

}  // namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE
