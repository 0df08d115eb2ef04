#pragma once
/// \file
/// The operator on cells that are parallelepipeds (problem/affine_map.hpp), element by element. Lanes are cells.
///
/// All derivatives of all components count, in fluxes: with [w] the jump across a face from its lower to its upper cell
/// and {} the mean of both,
///
///     X_ca = d_a w_c,    Y = nu / J g X G,    Q_c = sum_{c' != e} g_cc' [w_c'] on faces across e,
///     F_ce = {Y_ce} - nu gamma' Q_c,          gamma' = G_ee (k+1)(k+2) / (J h_e),
///     result:  sum_b (d_b z_c, Y_cb) - sum_{e != c} <[z_c], F_ce> - nu / J sum_{e, b} G_eb <{d_b z_c}, Q_c> + mass -
///     B^T p.
///
/// In the stress form grad u has its transpose beside it, of which lengths and angles do not matter, tr (grad u grad v)
/// = J^-2 sum_ab d_a w_b d_b z_a: X_bc nu / J more in Y_cb, and on faces, where d_c w_e is continuous, {d_c w_e} nu / J
/// in F_ce and -nu / J sum_{c != e} <{d_c z_e}, [w_c]> in the result. Where coefficients vary by cell nu and alpha are
/// those of the cell, and on faces nu_F, in F_ce with Y / nu. Component e does not jump across e. Sides with prescribed
/// velocity are faces with nothing behind them and twice the weight, slip and outflow sides have none.
///
/// Fields of a cell are Legendre coefficients: those of degree k in all directions, pressure layout, and of component c
/// apart from these the mode k + 1 in direction c (`top`), where products with other components see nothing.

#include <optional>

#include "engine/cpu/kernels/operator.hpp"
#include "engine/cpu/kernels/sheared_table.hpp"
#include "engine/cpu/kernels/varying_operator.hpp"

namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE {

template <class T, int dim, int order>
struct ShearedElement {
  static constexpr int n = order + 1;
  static constexpr int lines = power(n, dim - 2);    // modes in all directions but two
  static constexpr int columns = power(n, dim - 1);  // and but one
  static constexpr int block = power(n, dim);
  static constexpr int record = record_size(dim, order);
  using V = Simd<T>;
  using R = typename V::Register;
  using Batch = CellBatch<dim, record>;
  using Places = typename Batch::Places;
  using Lane = LaneCoefficients<T, dim>;

  /// lanes: coefficients that vary by cell, or nullptr. out: the rows of velocities without upper hats, and B u; upper:
  /// the rows of upper hats.
  [[gnu::noinline]] static void run(const CellData<T>& cell, const ShearedData<T>& data, const Lane* lanes,
                                    const CellTopology& topology, const std::int32_t* cells, const Batch& batch,
                                    const T* x, Ahead<T, dim, order>& ahead, V* out, V (*upper)[columns]) {
    const Views views(topology, cells, batch, x);
    const FaceFactors faces(batch);
    Work work;
    for (int part = 0; part < V::parts; ++part) {
      for (int c = 0; c < dim; ++c) take_component(data, views, part, c, work);
      take_divergence(cell, part, work, out + dim * block);
      for (int c = 0; c < dim; ++c) differentiate_component(data, c, work);
      mix(data, work);
      if (lanes != nullptr) scale_flux(lanes->viscosity.part[part], work);
      subtract_pressure(cell, views.pressure + part * V::lanes, work);
      if (data.has_mass) mix_mass(data, work);
      if (data.has_mass && lanes != nullptr) scale_value(lanes->reaction.part[part], work);
      for (int c = 0; c < dim; ++c) test_component(data, c, work);
      for (int e = 0; e < dim; ++e) add_faces(cell, data, lanes, views, faces, part, e, ahead, work);
      for (int c = 0; c < dim; ++c) put_component(data, part, c, work, out + c * block, upper[c]);
    }
  }

 private:
  struct Rows {
    const T* own;   ///< value i of the component at own + i * interleave
    const T* hats;  ///< upper ones
  };

  /// Values of a batch and of the cells around it.
  struct Views {
    Rows own[dim];
    Rows beside[dim][2 * dim];  // [component][side]
    const T* pressure;

    Views(const CellTopology& topology, const std::int32_t* cells, const Batch& batch, const T* x) {
      pressure = batch.own.template view<block>(x, dim * block, pressure_scratch);
      for (int c = 0; c < dim; ++c) {
        own[c] = view(batch.own, batch.behind[2 * c + 1], x, c, own_scratch[c]);
        for (int side = 0; side < 2 * dim; ++side) {
          T* scratch = beside_scratch[c][side];
          if (side / 2 != c) {
            beside[c][side] = view(batch.behind[side], batch.hats_behind(side, c), x, c, scratch);
          } else if (side % 2 == 0) {
            beside[c][side] = {batch.behind[side].template view<block>(x, c * block, scratch), own[c].own};
          } else {
            std::int32_t next[width];
            std::int32_t beyond[width];
            look_up(topology.neighbour[side], cells, next);
            look_up(topology.neighbour[side], next, beyond);
            beside[c][side] = view(batch.behind[side], Places(beyond, topology.null), x, c, scratch);
          }
        }
      }
    }

   private:
    static Rows view(const Places& places, const Places& above, const T* x, int c, T* scratch) {
      return {places.template view<block>(x, c * block, scratch),
              above.template view<columns>(x, c * block, scratch + block * interleave)};
    }

    static constexpr int room = (block + columns) * interleave;
    alignas(SOLENOID_SIMD_BYTES) T pressure_scratch[block * interleave];
    alignas(SOLENOID_SIMD_BYTES) T own_scratch[dim][room];
    alignas(SOLENOID_SIMD_BYTES) T beside_scratch[dim][2 * dim][room];
  };

  /// How faces count: see face_weight; 1 where there is a cell behind a face.
  struct FaceFactors {
    V weight[2 * dim];
    V inside[2 * dim];
    bool boundary[2 * dim];

    explicit FaceFactors(const Batch& batch) {
      for (int side = 0; side < 2 * dim; ++side) {
        boundary[side] = batch.boundary[side];
        if (!boundary[side]) continue;
        for (int l = 0; l < width; ++l) {
          const Face face = batch.face(side, l);
          weight[side].set(l, static_cast<T>(face_weight(face)));
          inside[side].set(l, face == Face::interior ? T(1) : T(0));
        }
      }
    }
  };

  /// One register of lanes of what an element consists of.
  struct Work {
    R flux[dim][dim][block];   // X, then Y, [component][direction]
    R top[dim][dim][columns];  // the same of modes k + 1 in the direction of the component
    R value[dim][block];       // w, then what is tested by z itself
    R value_top[dim][columns];
    R hats[dim][2][columns];  // what is tested by the traces of lower and upper hats
  };

  static constexpr int along(int a) { return power(n, a); }  // stride of direction a in a field
  /// The direction that is neither (3D).
  static constexpr int third(int a, int b) { return 3 - a - b; }
  /// Stride of a direction in what has one value for each column in direction c.
  static constexpr int across(int c, int a) { return a == (c + 1) % dim ? 1 : n; }
  /// Place in a field of the first mode of a column in direction c.
  static constexpr int column_start(int c, int column) {
    return column % n * along((c + 1) % dim) + (dim == 3 ? column / n * along((c + 2) % dim) : 0);
  }
  [[gnu::always_inline]] static R get(const T* values, int i) {
    return *reinterpret_cast<const typename V::Unaligned*>(values + i * interleave);
  }

  // Lines -------------------------------------------------------------------------------------------------------------

  /// Of P to derivative (degree k) and value (degree k + 1) from the functions in.
  [[gnu::always_inline]] static void from_p(const ShearedData<T>& data, const R* in, R* derivative, R* value) {
    derivative[0] = in[n] - in[0];
#pragma GCC unroll 16
    for (int j = 1; j < n; ++j) derivative[j] = in[j];
    value[0] = T(0.5) * (in[n] + in[0]) - data.hat[0] * derivative[1];
#pragma GCC unroll 16
    for (int j = 1; j <= n; ++j) {
      value[j] = data.hat[j - 1] * derivative[j - 1];
      if (j + 1 < n) value[j] -= data.hat[j] * derivative[j + 1];
    }
  }
  /// Its transpose.
  [[gnu::always_inline]] static void to_p(const ShearedData<T>& data, const R* derivative, const R* value, R* out) {
    const R slope = data.hat[0] * value[1] + derivative[0];
    out[0] = T(0.5) * value[0] - slope;
    out[n] = T(0.5) * value[0] + slope;
#pragma GCC unroll 16
    for (int j = 1; j < n; ++j) {
      out[j] = derivative[j] + data.hat[j] * value[j + 1] - data.hat[j - 1] * value[j - 1];
    }
  }
  /// factor times the derivative of O, set or added.
  template <bool add>
  [[gnu::always_inline]] static void differentiate(const ShearedData<T>& data, T factor, const R* in, R* out,
                                                   int stride) {
    R sum[2]{};  // of modes above, by parity
#pragma GCC unroll 16
    for (int j = n - 1; j >= 0; --j) {
      const R result = (factor * data.root[j]) * sum[1 - j % 2];
      out[j * stride] = add ? out[j * stride] + result : result;
      if (j > 0) sum[j % 2] += (T(2) * data.root[j]) * in[j * stride];
    }
  }
  /// out += factor times its transpose.
  [[gnu::always_inline]] static void add_transposed(const ShearedData<T>& data, T factor, const R* in, R* out,
                                                    int stride) {
    R sum[2]{};  // of modes below, by parity
#pragma GCC unroll 16
    for (int j = 0; j < n; ++j) {
      if (j > 0) out[j * stride] += (T(2) * factor * data.root[j]) * sum[1 - j % 2];
      if (j + 1 < n) sum[j % 2] += data.root[j] * in[j * stride];
    }
  }
  /// visit(stride) for one of the two strides of what has a value for each column; the compiler knows it.
  template <class Visit>
  [[gnu::always_inline]] static void with_stride(int stride, const Visit& visit) {
    if (dim == 2 || stride == 1) {
      visit(std::integral_constant<int, 1>());
    } else {
      visit(std::integral_constant<int, n>());
    }
  }
  /// visit(place of mode 0, stride) for the lines of one stride among `count` values; the compiler knows the stride.
  template <class Visit>
  [[gnu::always_inline]] static void for_lines(int count, int stride, const Visit& visit) {
    const auto of_stride = [&](auto known) {
      for (int start = 0; start < count; start += known * n) {
        for (int i = 0; i < known; ++i) visit(start + i, known);
      }
    };
    if (stride == 1) return of_stride(std::integral_constant<int, 1>());
    if (dim == 2 || stride == n) return of_stride(std::integral_constant<int, n>());
    of_stride(std::integral_constant<int, n * n>());
  }
  [[gnu::noinline]] static void differentiate_field(const ShearedData<T>& data, const R* in, R* out, int count,
                                                    int stride) {
    for_lines(count, stride, [&](int at, auto s) { differentiate<false>(data, T(1), in + at, out + at, s); });
  }
  [[gnu::noinline]] static void add_derivative(const ShearedData<T>& data, T factor, const R* in, R* out, int count,
                                               int stride) {
    for_lines(count, stride, [&](int at, auto s) { differentiate<true>(data, factor, in + at, out + at, s); });
  }
  [[gnu::noinline]] static void add_field_transposed(const ShearedData<T>& data, T factor, const R* in, R* out,
                                                     int count, int stride) {
    for_lines(count, stride, [&](int at, auto s) { add_transposed(data, factor, in + at, out + at, s); });
  }
  /// out += the traces of modes j times what is given on the lower and on the upper face.
  [[gnu::always_inline]] static void add_traces(const T* trace, const R& lower, const R& upper, R* out, int stride) {
    const R of[2] = {upper + lower, upper - lower};
#pragma GCC unroll 16
    for (int j = 0; j < n; ++j) out[j * stride] += trace[j] * of[j % 2];
  }

  // The cell ----------------------------------------------------------------------------------------------------------

  /// w_c and d_c w_c
  [[gnu::noinline]] static void take_component(const ShearedData<T>& data, const Views& views, int part, int c,
                                               Work& work) {
    const Rows& rows = views.own[c];
    const int lane = part * V::lanes;
    const int stride = along(c);
    for (int column = 0; column < columns; ++column) {
      R in[n + 1];
      R derivative[n];
      R value[n + 1];
#pragma GCC unroll 16
      for (int j = 0; j < n; ++j) in[j] = get(rows.own + lane, j * columns + column);
      in[n] = get(rows.hats + lane, column);
      from_p(data, in, derivative, value);
      const int start = column_start(c, column);
#pragma GCC unroll 16
      for (int j = 0; j < n; ++j) {
        work.flux[c][c][start + j * stride] = derivative[j];
        work.value[c][start + j * stride] = value[j];
      }
      work.value_top[c][column] = value[n];
    }
    for (R& hat : work.hats[c][0]) hat = R{};
    for (R& hat : work.hats[c][1]) hat = R{};
  }

  static void take_divergence(const CellData<T>& cell, int part, const Work& work, V* q) {
    for (int i = 0; i < block; ++i) {
      R sum = cell.inverse_h[0] * work.flux[0][0][i];
      for (int c = 1; c < dim; ++c) sum += cell.inverse_h[c] * work.flux[c][c][i];
      q[i].part[part] = sum;
    }
  }

  static void differentiate_component(const ShearedData<T>& data, int c, Work& work) {
    for (int a = 0; a < dim; ++a) {
      if (a == c) continue;
      differentiate_field(data, work.value[c], work.flux[c][a], block, along(a));
      differentiate_field(data, work.value_top[c], work.top[c][a], columns, across(c, a));
    }
  }

  /// Y = nu / J g X G
  [[gnu::noinline]] static void mix(const ShearedData<T>& data, Work& work) {
    for (int i = 0; i < block; ++i) {
      R half[dim][dim];
      R x[dim][dim];
#pragma GCC unroll 4
      for (int c = 0; c < dim; ++c) {
#pragma GCC unroll 4
        for (int b = 0; b < dim; ++b) {
          R sum = data.flux[0][b] * work.flux[c][0][i];
#pragma GCC unroll 4
          for (int a = 1; a < dim; ++a) sum += data.flux[a][b] * work.flux[c][a][i];
          half[c][b] = sum;
        }
      }
#pragma GCC unroll 4
      for (int c = 0; c < dim; ++c) {
#pragma GCC unroll 4
        for (int b = 0; b < dim; ++b) {
          R sum = data.metric[c][0] * half[0][b];
#pragma GCC unroll 4
          for (int other = 1; other < dim; ++other) sum += data.metric[c][other] * half[other][b];
          x[c][b] = work.flux[c][b][i];
          work.flux[c][b][i] = sum;
        }
      }
      if (!data.stress) continue;
#pragma GCC unroll 4
      for (int c = 0; c < dim; ++c) {
#pragma GCC unroll 4
        for (int b = 0; b < dim; ++b) work.flux[c][b][i] += data.turned[c][b] * x[b][c];
      }
    }
    for (int c = 0; c < dim; ++c) {  // there is no d_c of this degree, neither in X nor of test functions
      for (int i = 0; i < columns; ++i) {
        const int a = (c + 1) % dim;
        const R first = data.metric[c][c] * work.top[c][a][i];
        if constexpr (dim == 2) {
          work.top[c][a][i] = data.flux[a][a] * first;
        } else {
          const int b = (c + 2) % dim;
          const R second = data.metric[c][c] * work.top[c][b][i];
          work.top[c][a][i] = data.flux[a][a] * first + data.flux[b][a] * second;
          work.top[c][b][i] = data.flux[a][b] * first + data.flux[b][b] * second;
        }
      }
    }
  }

  /// Y of nu = 1 becomes that of the cell.
  static void scale_flux(const R& viscosity, Work& work) {
    for (int c = 0; c < dim; ++c) {
      for (int a = 0; a < dim; ++a) {
        for (R& flux : work.flux[c][a]) flux *= viscosity;
        if (a == c) continue;
        for (R& flux : work.top[c][a]) flux *= viscosity;
      }
    }
  }
  /// And the mass term of alpha = 1.
  static void scale_value(const R& reaction, Work& work) {
    for (int c = 0; c < dim; ++c) {
      for (R& value : work.value[c]) value *= reaction;
      for (R& value : work.value_top[c]) value *= reaction;
    }
  }

  static void subtract_pressure(const CellData<T>& cell, const T* p, Work& work) {
    for (int i = 0; i < block; ++i) {
      const R pressure = get(p, i);
      for (int c = 0; c < dim; ++c) work.flux[c][c][i] -= cell.inverse_h[c] * pressure;
    }
  }

  static void mix_mass(const ShearedData<T>& data, Work& work) {
    for (int i = 0; i < block; ++i) {
      R value[dim];
      for (int c = 0; c < dim; ++c) value[c] = work.value[c][i];
      for (int c = 0; c < dim; ++c) {
        R sum = data.mass[c][0] * value[0];
        for (int other = 1; other < dim; ++other) sum += data.mass[c][other] * value[other];
        work.value[c][i] = sum;
      }
    }
    for (int c = 0; c < dim; ++c) {
      for (R& value : work.value_top[c]) value = data.mass[c][c] * value;
    }
  }

  /// sum_{b != c} (d_b z_c, Y_cb), in `value`
  static void test_component(const ShearedData<T>& data, int c, Work& work) {
    if (!data.has_mass) {
      for (R& value : work.value[c]) value = R{};
      for (R& value : work.value_top[c]) value = R{};
    }
    for (int b = 0; b < dim; ++b) {
      if (b == c) continue;
      add_field_transposed(data, T(1), work.flux[c][b], work.value[c], block, along(b));
      add_field_transposed(data, T(1), work.top[c][b], work.value_top[c], columns, across(c, b));
    }
  }

  /// The rows of component c.
  [[gnu::noinline]] static void put_component(const ShearedData<T>& data, int part, int c, const Work& work, V* own,
                                              V* upper) {
    const int stride = along(c);
    for (int column = 0; column < columns; ++column) {
      const int start = column_start(c, column);
      R derivative[n];
      R value[n + 1];
      R result[n + 1];
#pragma GCC unroll 16
      for (int j = 0; j < n; ++j) {
        derivative[j] = work.flux[c][c][start + j * stride];
        value[j] = work.value[c][start + j * stride];
      }
      value[n] = work.value_top[c][column];
      to_p(data, derivative, value, result);
      own[column].part[part] = result[0] + work.hats[c][0][column];
#pragma GCC unroll 16
      for (int j = 1; j < n; ++j) own[j * columns + column].part[part] = result[j];
      upper[column].part[part] = result[n] + work.hats[c][1][column];
    }
  }

  // Faces -------------------------------------------------------------------------------------------------------------

  /// What lies on the lower and on the upper face in a direction, of a component that jumps: a value for each of its
  /// functions in its own direction and each mode in the third one, the latter faster.
  struct Traces {
    R jump[2][(n + 1) * lines];
    R mean[2][(n + 1) * lines];
    R slope[2][(n + 1) * lines];  // the mean derivative across the face
  };

  /// On faces: fields of degree k in both directions, that of the first one after the face's own being faster, and the
  /// `top` of a component.
  struct FaceFields {
    R jump[dim][columns];
    R jump_top[dim][lines];
    R flux[dim][columns];  // sum_a G_ae {X_ca}
    R flux_top[dim][lines];
  };

  [[gnu::noinline]] static void take_traces(const CellData<T>& cell, const Views& views, int part, int e, int c,
                                            Ahead<T, dim, order>& ahead, Traces& traces) {
    const int lane = part * V::lanes;
    const auto take = [&](const Rows& own, const Rows& below, const Rows& above, auto stride) {
      take_traces<stride>(cell, own.own + lane, below.own + lane, above.own + lane, n * lines, 0, ahead, traces);
      take_traces<stride>(cell, own.hats + lane, below.hats + lane, above.hats + lane, lines, n * lines, ahead, traces);
    };
    with_stride(across(c, e),
                [&](auto stride) { take(views.own[c], views.beside[c][2 * e], views.beside[c][2 * e + 1], stride); });
  }
  /// Of `count` lines, from `place` on.
  template <int stride>
  [[gnu::always_inline]] static void take_traces(const CellData<T>& cell, const T* mine, const T* lower, const T* upper,
                                                 int count, int place, Ahead<T, dim, order>& ahead, Traces& traces) {
    constexpr int turns = dim * (dim - 1) * (n + 1) * lines * V::parts;  // of all components and faces
    for (int line = 0; line < count; ++line, ++place) {
#pragma GCC unroll 16
      for (int i = 0; i < (record + turns - 1) / turns; ++i) ahead.fetch();
      const int start = line / stride * stride * n + line % stride;
      R value[2]{};  // of even and odd modes on the upper face
      R slope[2]{};
      R below_value{};
      R below_slope{};
      R above_value{};
      R above_slope{};
#pragma GCC unroll 16
      for (int j = 0; j < n; ++j) {
        const R u = get(mine, start + j * stride);
        const R down = get(lower, start + j * stride);
        const R up = T(odd_sign(j)) * get(upper, start + j * stride);
        value[j % 2] += cell.value[j] * u;
        slope[j % 2] += cell.slope[j] * u;
        below_value += cell.value[j] * down;
        below_slope += cell.slope[j] * down;
        above_value += cell.value[j] * up;
        above_slope -= cell.slope[j] * up;
      }
      const R lower_value = value[0] - value[1];
      const R upper_value = value[0] + value[1];
      traces.jump[0][place] = below_value - lower_value;
      traces.jump[1][place] = upper_value - above_value;
      traces.mean[0][place] = T(0.5) * (below_value + lower_value);
      traces.mean[1][place] = T(0.5) * (upper_value + above_value);
      traces.slope[0][place] = T(0.5) * (below_slope + (slope[1] - slope[0]));
      traces.slope[1][place] = T(0.5) * ((slope[0] + slope[1]) + above_slope);
    }
  }

  /// The jump and the flux of a component c != e on one face.
  static void take_jumping(const ShearedData<T>& data, const Traces& traces, int end, int e, int c, FaceFields& face) {
    with_stride(across(e, c), [&](auto mode) { take_jumping<mode>(data, traces, end, e, c, face); });
  }
  /// mode: stride of direction c on the face
  template <int mode>
  [[gnu::always_inline]] static void take_jumping(const ShearedData<T>& data, const Traces& traces, int end, int e,
                                                  int c, FaceFields& face) {
    constexpr int other = dim == 2 ? 0 : mode == 1 ? n : 1;
    R mean[columns];
    R mean_top[lines];
    for (int t = 0; t < lines; ++t) {
      R in[n + 1];
      R derivative[n];
      R value[n + 1];
      const auto take = [&](const R* functions) {
#pragma GCC unroll 16
        for (int j = 0; j <= n; ++j) in[j] = functions[j * lines + t];
        from_p(data, in, derivative, value);
      };
      const auto put = [&](R* field, R* top) {
#pragma GCC unroll 16
        for (int j = 0; j < n; ++j) field[j * mode + t * other] = value[j];
        top[t] = value[n];
      };
      take(traces.jump[end]);
      put(face.jump[c], face.jump_top[c]);
      take(traces.mean[end]);
      put(mean, mean_top);
      R of_mean[n];
#pragma GCC unroll 16
      for (int j = 0; j < n; ++j) of_mean[j] = data.flux[c][e] * derivative[j];
      take(traces.slope[end]);
#pragma GCC unroll 16
      for (int j = 0; j <= n; ++j) value[j] *= data.flux[e][e];
#pragma GCC unroll 16
      for (int j = 0; j < n; ++j) value[j] += of_mean[j];
      put(face.flux[c], face.flux_top[c]);
    }
    if constexpr (dim == 3) {
      const T factor = data.flux[third(e, c)][e];
      add_derivative(data, factor, mean, face.flux[c], columns, other);
      add_derivative(data, factor, mean_top, face.flux_top[c], lines, 1);
    }
  }

  /// The flux of component e, whose trace is that of hats.
  static void take_normal(const CellData<T>& cell, const ShearedData<T>& data, const Views& views,
                          const FaceFactors& factors, int part, int end, int e, FaceFields& face) {
    const int lane = part * V::lanes;
    const int side = 2 * e + end;
    const Rows& own = views.own[e];
    const Rows& beside = views.beside[e][side];
    const T* hats = (end == 0 ? own.own : own.hats) + lane;
    R mean[columns];
    const bool boundary = factors.boundary[side];
    const R inside = boundary ? factors.inside[side].part[part] : R{} + T(1);
    const R weight = boundary ? factors.weight[side].part[part] : R{} + T(1);
    for (int column = 0; column < columns; ++column) {
      const auto slope_at = [&](const Rows& rows, bool upper) {
        R sum = cell.value[0] * (get(rows.hats + lane, column) - get(rows.own + lane, column));
#pragma GCC unroll 16
        for (int j = 1; j < n; ++j) {
          sum += (upper ? cell.value[j] : T(odd_sign(j)) * cell.value[j]) * get(rows.own + lane, j * columns + column);
        }
        return sum;
      };
      const R slope = slope_at(own, end == 1) + inside * slope_at(beside, end == 0);
      face.flux[e][column] = (T(0.5) * data.flux[e][e]) * (weight * slope);
      mean[column] = T(0.5) * (weight * (get(hats, column) * (T(1) + inside)));
    }
    for (int a = 0; a < dim; ++a) {
      if (a == e) continue;
      add_derivative(data, data.flux[a][e], mean, face.flux[e], columns, across(e, a));
      if (!data.stress) continue;
      // In F_ae, which is g times this.
      for (int c = 0; c < dim; ++c) {
        add_derivative(data, data.inverse[c][a] * data.turned[a][e], mean, face.flux[c], columns, across(e, a));
      }
    }
  }

  [[gnu::noinline]] static void add_faces(const CellData<T>& cell, const ShearedData<T>& data, const Lane* lanes,
                                          const Views& views, const FaceFactors& factors, int part, int e,
                                          Ahead<T, dim, order>& ahead, Work& work) {
    FaceFields face[2];
    for (int c = 0; c < dim; ++c) {
      if (c == e) continue;
      Traces traces;
      take_traces(cell, views, part, e, c, ahead, traces);
      for (int end = 0; end < 2; ++end) {
        if (factors.boundary[2 * e + end]) {
          const R weight = factors.weight[2 * e + end].part[part];
          for (auto* values : {traces.jump[end], traces.mean[end], traces.slope[end]}) {
            for (int i = 0; i < (n + 1) * lines; ++i) values[i] *= weight;
          }
        }
        take_jumping(data, traces, end, e, c, face[end]);
      }
    }
    for (int end = 0; end < 2; ++end) {
      take_normal(cell, data, views, factors, part, end, e, face[end]);
      mix_face(cell, data, e, end == 0 ? T(1) : T(-1), face[end]);
      if (lanes != nullptr) scale_face(lanes->shear[2 * e + end].part[part], face[end]);
    }
    // Now jumps are -Q / 2, and fluxes F with the sign of test functions in [z].
    for (int c = 0; c < dim; ++c) {
      if (c != e) {
        test_jumping(cell, data, e, c, face, work);
        continue;
      }
      for (int end = 0; end < 2; ++end) {
        for (int b = 0; b < dim; ++b) {
          if (b == e) continue;
          add_field_transposed(data, data.flux[e][b], face[end].jump[e], work.hats[e][end], columns, across(e, b));
          if (!data.stress) continue;
          // The jump of component b, of which Q is g times.
          for (int a = 0; a < dim; ++a) {
            add_field_transposed(data, data.inverse[b][a] * data.turned[b][e], face[end].jump[a], work.hats[e][end],
                                 columns, across(e, b));
          }
        }
      }
      lift(cell, data.flux[e][e], e, face[0].jump[e], face[1].jump[e], work.flux[e][e]);
    }
  }

  /// From jumps to -Q / 2, of component e too, and from sum_a G_ae {X_ca} to sign times F_ce.
  [[gnu::noinline]] static void mix_face(const CellData<T>& cell, const ShearedData<T>& data, int e, T sign,
                                         FaceFields& face) {
    const T penalty = T(2) * cell.penalty * data.flux[e][e];  // of Q / 2
    const auto row = [&](int c, int i, const R(*fields)[columns], bool all) {
      R sum{};
#pragma GCC unroll 4
      for (int other = 0; other < dim; ++other) {
        if (all || other != e) sum += data.metric[c][other] * fields[other][i];
      }
      return sum;
    };
    for (int i = 0; i < columns; ++i) {
      R jump[dim];
      R flux[dim];
#pragma GCC unroll 4
      for (int c = 0; c < dim; ++c) {
        jump[c] = T(-0.5) * row(c, i, face.jump, false);
        flux[c] = sign * (row(c, i, face.flux, true) + penalty * jump[c]);
      }
#pragma GCC unroll 4
      for (int c = 0; c < dim; ++c) {
        face.jump[c][i] = jump[c];
        face.flux[c][i] = flux[c];
      }
    }
    for (int c = 0; c < dim; ++c) {
      if (c == e) continue;
      for (int i = 0; i < lines; ++i) {
        const R jump = (T(-0.5) * data.metric[c][c]) * face.jump_top[c][i];
        face.flux_top[c][i] = sign * (data.metric[c][c] * face.flux_top[c][i] + penalty * jump);
        face.jump_top[c][i] = jump;
      }
    }
  }

  /// Both of nu_F = 1 become those of the face.
  static void scale_face(const R& viscosity, FaceFields& face) {
    for (int c = 0; c < dim; ++c) {
      for (auto* fields : {face.jump[c], face.flux[c]}) {
        for (int i = 0; i < columns; ++i) fields[i] *= viscosity;
      }
      for (auto* fields : {face.jump_top[c], face.flux_top[c]}) {
        for (int i = 0; i < lines; ++i) fields[i] *= viscosity;
      }
    }
  }

  /// Y += factor times what traces of modes in direction e test.
  static void lift(const CellData<T>& cell, T factor, int e, const R* lower, const R* upper, R* field) {
    for (int i = 0; i < columns; ++i) {
      add_traces(cell.value, factor * lower[i], factor * upper[i], field + column_start(e, i), along(e));
    }
  }

  [[gnu::noinline]] static void test_jumping(const CellData<T>& cell, const ShearedData<T>& data, int e, int c,
                                             FaceFields (&face)[2], Work& work) {
    lift(cell, data.flux[e][c], e, face[0].jump[c], face[1].jump[c], work.flux[c][c]);
    if constexpr (dim == 3) {
      const int t = third(e, c);
      for (FaceFields& of_end : face) {
        add_field_transposed(data, data.flux[e][t], of_end.jump[c], of_end.flux[c], columns, across(e, t));
        add_field_transposed(data, data.flux[e][t], of_end.jump_top[c], of_end.flux_top[c], lines, 1);
      }
    }
    const T factor = data.flux[e][e];
    const auto test = [&](const R* jump[2], const R* flux[2], int i, R* out, int stride) {
      add_traces(cell.value, flux[0][i], flux[1][i], out, stride);
      add_traces(cell.slope, -factor * jump[0][i], factor * jump[1][i], out, stride);
    };
    const R* jump[2] = {face[0].jump[c], face[1].jump[c]};
    const R* flux[2] = {face[0].flux[c], face[1].flux[c]};
    for (int i = 0; i < columns; ++i) test(jump, flux, i, work.value[c] + column_start(e, i), along(e));
    const R* jump_top[2] = {face[0].jump_top[c], face[1].jump_top[c]};
    const R* flux_top[2] = {face[0].flux_top[c], face[1].flux_top[c]};
    const int stride = across(c, e);
    for (int i = 0; i < lines; ++i) {
      test(jump_top, flux_top, i, work.value_top[c] + (stride == 1 ? i * n : i), stride);
    }
  }
};

template <class T, int dim, int order>
struct ShearedOperator {
  using Constant = Operator<T, EquationKind::stokes, dim, order>;
  using Element = ShearedElement<T, dim, order>;
  static constexpr int columns = Constant::columns;
  static constexpr int block = Constant::block;
  static constexpr int record = Constant::record;
  using V = Simd<T>;
  using Batch = CellBatch<dim, record>;
  using Lane = LaneCoefficients<T, dim>;

  /// Shares of upper hats for this range from cells outside of it.
  static void carry_from_outside(const ShearedData<T>& data, const VaryingData<T>* varying,
                                 const ApplyArguments<T>& arguments, int c) {
    for (std::int64_t first = 0; first < arguments.carry_count[c]; first += width) {
      std::int32_t cells[width];
      for (int l = 0; l < width; ++l) {
        cells[l] = first + l < arguments.carry_count[c] ? arguments.carry[c][first + l] : arguments.topology.null;
      }
      const Batch batch(arguments.topology, cells);
      V out[record];
      V upper[dim][columns];
      Ahead<T, dim, order> nothing;
      std::optional<Lane> lanes;
      if (varying != nullptr) lanes.emplace(*varying, cells, batch);
      Element::run(*arguments.cell, data, lanes ? &*lanes : nullptr, arguments.topology, cells, batch, arguments.x,
                   nothing, out, upper);
      batch.behind[2 * c + 1].template write<false>(columns, arguments.y, c * block, upper[c]);
    }
  }

  static void apply(const ShearedData<T>& data, const VaryingData<T>* varying, const ApplyArguments<T>& arguments) {
    for (int c = 0; c < dim; ++c) carry_from_outside(data, varying, arguments, c);
    for (std::int64_t turn = 0; turn < arguments.block_count; ++turn) {
      const CellBlock& block_of_cells = arguments.blocks[turn];
      const Batch batch(arguments.topology, arguments.end, block_of_cells);
      std::int32_t cells[width];
      Batch::cells_of(arguments.topology, arguments.end, block_of_cells, cells);
      V out[record];
      V upper[dim][columns];
      Ahead<T, dim, order> ahead = Constant::ahead_of(arguments, turn + Constant::distance);
      std::optional<Lane> lanes;
      if (varying != nullptr) lanes.emplace(*varying, cells, batch);
      Element::run(*arguments.cell, data, lanes ? &*lanes : nullptr, arguments.topology, cells, batch, arguments.x,
                   ahead, out, upper);
      for (int i = dim * block; i < record; ++i) out[i] = -out[i];
      for (int c = 0; c < dim; ++c) Constant::take_shares(arguments, block_of_cells, batch, c, out + c * block);
      Constant::finish(arguments, block_of_cells, batch, out, upper);
    }
  }
};

}  // namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE
