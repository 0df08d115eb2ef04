#pragma once
/// \file
/// The parity smoother for k <= 1: a parity problem fits into the registers of one thread.
///
/// Steps, formulas and shared memory are those of parity.cuh. What differs:
///   * A thread gathers one value of the 2^dim cells, and one column of what lies around: its modes in the tangential
///     direction are as few as traces, so they are used as they are. The mass matrix goes before the butterflies: it
///     turns what comes from five rows (bubble and end hat of two cells, middle hat) into the three of the patch.
///   * Velocities that are odd in their own direction have no middle hat: one row less in everything.
///   * The pressure of a problem never leaves the registers of its thread between gathering and writing.
///   * Writing waits once, for all components.

#include <type_traits>

#include "engine/cuda/kernels/smoother/batch.cuh"
#include "engine/cuda/kernels/tensor_tiles.cuh"

namespace solenoid::cuda {

/// Sizes and places of a batch's fields in shared memory: velocities of all components, traces and end hats of one. The
/// pressure takes the place of the last velocity while it is gathered, and of its thread's traces at the end.
template <int dim, int order>
struct RegisterFields {
  static constexpr int n = order + 1;
  static constexpr int patches = 32;
  static constexpr int problems = 1 << dim;
  static constexpr int columns = power(n, dim - 1);
  static constexpr int block = power(n, dim);
  static constexpr int around = (dim - 1) * columns;  // traces of a row: [tangential direction][column]
  static constexpr int trace_field = n * around;
  static_assert(block <= trace_field);

  // In numbers.
  static constexpr int traces_at = dim * problems * block * patches;
  static constexpr int ends_at = traces_at + problems * trace_field * patches;
  static constexpr int numbers = ends_at + problems * columns * patches;
};

template <class T, int dim, int order>
struct RegisterSmoother : ParityBatch<T, dim, order, 32, 1, RegisterFields<dim, order>::numbers> {
  using Fields = RegisterFields<dim, order>;
  using Base = ParityBatch<T, dim, order, 32, 1, Fields::numbers>;
  using Base::a_of, Base::apply_along, Base::arguments, Base::b_of, Base::batch, Base::block, Base::columns,
      Base::extra_of, Base::group, Base::n, Base::neighbour_of, Base::others, Base::parity_of, Base::patch,
      Base::patches, Base::place, Base::problem, Base::problems, Base::sign, Base::to_patch, Base::transform;
  using typename Base::Around;
  static constexpr int around = Fields::around;
  static constexpr int trace_field = Fields::trace_field;
  static_assert(n <= 2);

  using Base::Base;

  __device__ T* velocity(int c, int parity) const {
    return this->shared + (c * problems + parity) * (block * patches) + patch;
  }
  __device__ T* traces(int parity) const {
    return this->shared + Fields::traces_at + parity * (trace_field * patches) + patch;
  }
  __device__ T* ends(int parity) const { return this->shared + Fields::ends_at + parity * (columns * patches) + patch; }
  static __device__ T load(const T* from, std::uint32_t place, int at) {
    return __ldg(Base::pointer(from, place) + at);
  }

  /// Of what is read once: other things should stay in the caches.
  static __device__ T load_once(const T* from, std::uint32_t place) { return __ldcs(Base::pointer(from, place)); }

  // --- tables --------------------------------------------------------------------------------------------------------

  /// parity_table_size(n) numbers.
  struct alignas(order == 1 ? 16 : sizeof(T)) Table {
    T eigen_o[n][n];
    T eigen_p[n][n];
    T divergence[n][n];
    T lambda_o[n];
    T lambda_p[n];
  };
  static_assert(sizeof(Table) == parity_table_size(n) * sizeof(T));
  __device__ const Table& table(int d) const { return *reinterpret_cast<const Table*>(this->tables(d)); }

  // --- gather --------------------------------------------------------------------------------------------------------

  /// Signs of the mirror images of a column's modes.
  static __device__ T fast_sign(int column) { return sign(column % n != 0); }
  static __device__ T slow_sign(int column) { return sign(column / n != 0); }

  __device__ void fetch_pressure(T (&v)[problems]) const {
    if (group >= block) return;
    const T* b = arguments.b + (dim * block + group) * interleave;
#pragma unroll
    for (int i = 0; i < problems; ++i) v[i] = load_once(b, place(i));
  }
  __device__ void spread_pressure(T (&v)[problems]) const {
    if (group >= block) return;
    const T signs[3]{sign(group % n != 0), sign(group / n % n != 0), sign(group / (n * n) != 0)};
    Base::butterfly(signs, v);
#pragma unroll
    for (int i = 0; i < problems; ++i) velocity(dim - 1, i)[group * patches] = v[i];
  }

  /// Value `group` of component c of b: of all cells, or, if it is a hat, of the upper ones.
  template <int c>
  __device__ void fetch_velocity(T (&v)[problems]) const {
    if (group >= block) return;
    const T* b = arguments.b + (c * block + group) * interleave;
#pragma unroll
    for (int i = 1; i < problems; i += 2) v[i] = load_once(b, place(to_patch(i, c)));
    if (group < columns) return;
#pragma unroll
    for (int i = 0; i < problems; i += 2) v[i] = load_once(b, place(to_patch(i, c)));
  }
  template <int c>
  __device__ void spread_velocity(T (&v)[problems]) const {
    if (group >= block) return;
    const T signs[3]{T(1), fast_sign(group % columns), slow_sign(group % columns)};
    if (group < columns) {  // in even velocities only
      T hats[problems / 2];
#pragma unroll
      for (int i = 0; i < problems / 2; ++i) hats[i] = v[2 * i + 1];
      Base::butterfly({signs[1], signs[2], T(1)}, hats);
#pragma unroll
      for (int i = 0; i < problems / 2; ++i) velocity(c, 2 * i)[group * patches] = hats[i];
    } else {
      Base::butterfly(signs, v);
#pragma unroll
      for (int i = 0; i < problems; ++i) velocity(c, i)[group * patches] = v[i];
    }
  }

  /// Hats of component c at its ends.
  template <int c>
  __device__ void gather_ends() const {
    if (group >= columns) return;
    const T* x = arguments.x + (c * block + group) * interleave;
    T v[problems];
#pragma unroll
    for (int i = 0; i < problems; ++i) {
      const int corner = to_patch(i, c);
      v[i] = load(x, place(i % 2 == 0 ? corner : neighbour_of(c, corner)), 0);
    }
    Base::butterfly({this->open_above(c), fast_sign(group), slow_sign(group)}, v);
#pragma unroll
    for (int i = 0; i < problems; ++i) ends(i)[group * patches] = v[i];
  }

  /// Component c of what lies beyond an end of the patch in a tangential direction: one column of the cells beside the
  /// lower and the upper cell. Row 0 is the middle hat as each of the two sees it, 1..k are bubbles, n is the end hat.
  struct Beside {
    T row[2][n + 1];
  };
  template <int c>
  __device__ void gather_traces() const {
    if (group >= around) return;
    const int tau = group / columns;
    const int column = group % columns;
    const int t = tau == 0 ? a_of(c) : b_of(c);
    const int other = tau == 0 ? b_of(c) : a_of(c);
    const T mode_sign = tau == 0 ? fast_sign(column) : slow_sign(column);
    const T other_sign = tau == 0 ? slow_sign(column) : fast_sign(column);
    const T* x = arguments.x + (c * block + column) * interleave;
    constexpr int corners = problems / 2;  // bit 0: end in direction t, bit 1: the other direction
    constexpr int bubble = columns * interleave;
    const auto corner_of = [&](int i) { return (i & 1) << t | (dim == 3 ? (i >> 1) << other : 0); };
    Beside beside[corners];
#pragma unroll
    for (int i = 0; i < corners; ++i) {
      auto& row = beside[i].row;
      const std::uint32_t lower = place(neighbour_of(t, corner_of(i)));
      const std::uint32_t upper = place(neighbour_of(t, corner_of(i) | 1 << c));
      row[0][n] = load(x, lower, 0);
      row[0][0] = row[1][0] = load(x, upper, 0);
#pragma unroll
      for (int j = 1; j < n; ++j) {
        row[0][j] = load(x, lower, j * bubble);
        row[1][j] = load(x, upper, j * bubble);
      }
      row[1][n] = load(x, place(Base::above_of(c, tau, i & 1, i >> 1)), 0);
    }
    if ((batch.flags & PatchBatch::mixed_faces) != 0) {
#pragma unroll
      for (int i = 0; i < corners; ++i) {
        const std::int32_t lower = Base::record_at(place(neighbour_of(t, corner_of(i))));
        beside[i].row[0][0] = load(x, Base::offset(arguments.neighbour[2 * c + 1][lower]), 0);
      }
    }
    // (A_pp - A~) x_p: the same for the patch's own modes at an end where the local matrix has more weight.
#pragma unroll
    for (int end = 0; end < 2; ++end) {
      if ((batch.flags & PatchBatch::weaker_face << (2 * t + end)) == 0) continue;
#pragma unroll
      for (int i = end; i < corners; i += 2) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int corner = corner_of(i) | half << c;
          const T extra = mode_sign * static_cast<T>(extra_of(t, corner));
          auto& row = beside[i].row[half];
          row[0] += extra * load(x, place(corner_of(i) | 1 << c), 0);
#pragma unroll
          for (int j = 1; j < n; ++j) row[j] += extra * load(x, place(corner), j * bubble);
          row[n] += (half == 0 ? extra : extra * this->open_above(c)) *
                    load(x, place(half == 0 ? corner : neighbour_of(c, corner)), 0);
        }
      }
    }
    T even[n][corners];
    T odd[n][corners];  // row 0 is not there
#pragma unroll
    for (int i = 0; i < corners; ++i) {
      T sum[n + 1];
      T difference[n + 1];
#pragma unroll
      for (int r = 0; r <= n; ++r) {
        sum[r] = beside[i].row[0][r] + beside[i].row[1][r];
        difference[r] = beside[i].row[0][r] - beside[i].row[1][r];
      }
#pragma unroll
      for (int r = 0; r < n; ++r) {
        even[r][i] = times_mass(r, sum);
        odd[r][i] = times_mass(r, difference);
      }
    }
    T* to = traces(0) + (tau * columns + column) * patches;
    const int end_field = (tau == 0 ? 2 : 4) * trace_field * patches;
    const int other_field = (tau == 0 ? 4 : 2) * trace_field * patches;
    const int walls = this->walls(t);
#pragma unroll
    for (int r = 0; r < n; ++r) {
      Base::butterfly({mode_sign, other_sign, T(1)}, even[r]);
      if (r > 0) Base::butterfly({mode_sign, other_sign, T(1)}, odd[r]);
      if (walls != 0) {
        Base::template join_ends<0>(walls, even[r]);
        if (r > 0) Base::template join_ends<0>(walls, odd[r]);
      }
#pragma unroll
      for (int i = 0; i < corners; ++i) {
        T* const at = to + (i & 1) * end_field + (i >> 1) * other_field + r * around * patches;
        at[0] = even[r][i];
        if (r > 0) at[trace_field * patches] = odd[r][i];
      }
    }
  }
  /// Row r of the mass matrix of P times rows of traces. Seen from the lower cell of the patch the middle hat is its
  /// upper hat n, the end hat its lower hat 0.
  __device__ T times_mass(int r, const T (&w)[n + 1]) const {
    const int i = r == 0 ? n : r;
    T sum = arguments.mass[i][n] * w[0] + arguments.mass[i][0] * w[n];
#pragma unroll
    for (int j = 1; j < n; ++j) sum += arguments.mass[i][j] * w[j];
    return sum;
  }

  // --- solve ---------------------------------------------------------------------------------------------------------

  static constexpr __device__ int stride_of(int a) { return a == 0 ? 1 : a == 1 ? n : n * n; }
  /// Place of pressure mode i along c, on line l, in the order x, y, z.
  static constexpr __device__ int pressure_at(int c, int i, int l) {
    return i * stride_of(c) + l % n * stride_of(a_of(c)) + (dim == 3 ? l / n * stride_of(b_of(c)) : 0);
  }
  static __device__ T tangential_lambda(const Table& fast, const Table& slow, int l) {
    return dim == 3 ? fast.lambda_o[l % n] + slow.lambda_o[l / n] : fast.lambda_o[l];
  }

  /// f = A^-1 b in the eigenbasis, to shared memory; rhs -= C f. `first`: of the velocity's rows; `functions`: of its
  /// eigenfunctions.
  template <int c, bool even>
  __device__ void forward_velocity(T (&rhs)[block]) const {
    constexpr int first = even ? 0 : 1;
    constexpr int functions = n - first;
    const bool with_x = arguments.x != nullptr;
    const int parity = parity_of(c, problem);
    T* f = velocity(c, parity);
    T row[n][columns];
#pragma unroll
    for (int r = first; r < n; ++r) {
#pragma unroll
      for (int i = 0; i < columns; ++i) row[r][i] = f[(r * columns + i) * patches];
    }
    T hats[columns];
    const Table fast = table(a_of(c));
    const Table slow = table(b_of(c));
    if (with_x) {
      const T* from = traces(parity);
#pragma unroll
      for (int r = first; r < n; ++r) {
#pragma unroll
        for (int m = 0; m < columns; ++m) {
          const T beside_a = from[(r * around + m) * patches];
#pragma unroll
          for (int j = 0; j < n; ++j) row[r][m - m % n + j] -= arguments.beside[a_of(c)][j][m % n] * beside_a;
          if constexpr (dim == 3) {
            const T beside_b = from[(r * around + columns + m) * patches];
#pragma unroll
            for (int j = 0; j < n; ++j) row[r][m % n + j * n] -= arguments.beside[b_of(c)][j][m / n] * beside_b;
          }
        }
      }
      const T* from_ends = ends(parity);
#pragma unroll
      for (int i = 0; i < columns; ++i) hats[i] = from_ends[i * patches];
      transform<true>(fast.eigen_o, slow.eigen_o, hats);
    } else {
#pragma unroll
      for (int i = 0; i < columns; ++i) hats[i] = T(0);
    }
#pragma unroll
    for (int r = first; r < n; ++r) transform<true>(fast.eigen_o, slow.eigen_o, row[r]);
    const Table along = table(c);
#pragma unroll
    for (int l = 0; l < columns; ++l) {
      const T lambda = tangential_lambda(fast, slow, l);
      const T weighted = hats[l] * (lambda + arguments.alpha);
      const T flux = arguments.inverse_h[c] * hats[l];
      T u[functions > 0 ? functions : 1]{};
#pragma unroll
      for (int r = first; r < n; ++r) {
        T residual = row[r][l] - arguments.mass[0][r == 0 ? n : r] * weighted;
        if (r == 0) residual -= arguments.end_stiffness[c] * hats[l];
#pragma unroll
        for (int e = 0; e < functions; ++e) u[e] += along.eigen_p[r][e] * residual;
      }
#pragma unroll
      for (int e = 0; e < functions; ++e) {
        u[e] *= Base::reciprocal(along.lambda_p[e] + lambda);
        f[(e * columns + l) * patches] = u[e];
      }
#pragma unroll
      for (int i = 0; i < n; ++i) {
        T& to = rhs[pressure_at(c, i, l)];
        to += along.eigen_o[0][i] * flux;  // the pressure that is 1 in the lowest mode
#pragma unroll
        for (int e = 0; e < functions; ++e) to -= along.divergence[i][e] * u[e];
      }
    }
  }

  /// f + A^-1 C^T p, back to modes.
  template <int c, bool even>
  __device__ void backward_velocity(const T (&p)[block]) const {
    constexpr int first = even ? 0 : 1;
    constexpr int functions = n - first;
    T* f = velocity(c, parity_of(c, problem));
    T row[n][columns];
    const Table fast = table(a_of(c));
    const Table slow = table(b_of(c));
    {
      const Table along = table(c);
#pragma unroll
      for (int l = 0; l < columns; ++l) {
        const T lambda = tangential_lambda(fast, slow, l);
        T u[functions > 0 ? functions : 1];
#pragma unroll
        for (int e = 0; e < functions; ++e) {
          T sum{};
#pragma unroll
          for (int i = 0; i < n; ++i) sum += along.divergence[i][e] * p[pressure_at(c, i, l)];
          u[e] = f[(e * columns + l) * patches] + sum * Base::reciprocal(along.lambda_p[e] + lambda);
        }
#pragma unroll
        for (int r = first; r < n; ++r) {
          row[r][l] = T(0);
#pragma unroll
          for (int e = 0; e < functions; ++e) row[r][l] += along.eigen_p[r][e] * u[e];
        }
      }
    }
#pragma unroll
    for (int r = first; r < n; ++r) {
      transform<false>(fast.eigen_o, slow.eigen_o, row[r]);
#pragma unroll
      for (int i = 0; i < columns; ++i) f[(r * columns + i) * patches] = row[r][i];
    }
  }

  template <bool transposed>
  __device__ void transform_pressure(T (&p)[block]) const {
    apply_along<transposed, 0>(table(0).eigen_o, p);
    apply_along<transposed, 1>(table(1).eigen_o, p);
    if constexpr (dim == 3) apply_along<transposed, 2>(table(2).eigen_o, p);
  }
  /// p <- S^+ p
  __device__ void solve_schur(T (&p)[block]) const {
    const int number = this->kind >> ParityPatch::schur_shift;
    const T* inverse = arguments.schur + (number * problems + problem) * (block * block);
    T rhs[block];
#pragma unroll
    for (int i = 0; i < block; ++i) {
      rhs[i] = p[i];
      p[i] = T(0);
    }
    constexpr int together = block % 4 == 0 ? 4 : 1;
#pragma unroll
    for (int at = 0; at < block * block; at += together) {
      T four[together];
      if constexpr (together == 4) {
        load_four(inverse + at, four);
      } else {
        four[0] = __ldg(inverse + at);
      }
#pragma unroll
      for (int k = 0; k < together; ++k) p[(at + k) / block] += four[k] * rhs[(at + k) % block];
    }
  }

  // --- write ---------------------------------------------------------------------------------------------------------

  template <int c>
  __device__ void write_velocity(const T (&hats)[problems / 2]) const {
    if (group >= block) return;
    T* y = arguments.y + (c * block + group) * interleave;
    const T signs[3]{T(1), fast_sign(group % columns), slow_sign(group % columns)};
    if (group < columns) {
      T v[problems / 2];
#pragma unroll
      for (int i = 0; i < problems / 2; ++i) v[i] = velocity(c, 2 * i)[group * patches];
      Base::unbutterfly({signs[1], signs[2], T(1)}, v);
#pragma unroll
      for (int i = 0; i < problems / 2; ++i) {
        __stcs(Base::pointer(y, place(to_patch(2 * i, c))), hats[i]);  // on the lower end: as they were
        __stcs(Base::pointer(y, place(to_patch(2 * i + 1, c))), v[i]);
      }
    } else {
      T v[problems];
#pragma unroll
      for (int i = 0; i < problems; ++i) v[i] = velocity(c, i)[group * patches];
      Base::unbutterfly(signs, v);
#pragma unroll
      for (int i = 0; i < problems; ++i) __stcs(Base::pointer(y, place(to_patch(i, c))), v[i]);
    }
  }
  /// The hats of component c that the patch does not change.
  template <int c>
  __device__ void fetch_hats(T (&hats)[problems / 2]) const {
    if (group >= columns) return;
    const T* x = arguments.x + (c * block + group) * interleave;
#pragma unroll
    for (int i = 0; i < problems / 2; ++i) {
      hats[i] = arguments.x != nullptr ? load(x, place(to_patch(2 * i, c)), 0) : T(0);
    }
  }
  __device__ void write_pressure() const {
    if (group >= block) return;
    T mean{};
    if (group == 0 && arguments.x != nullptr) {
#pragma unroll
      for (int i = 0; i < problems; ++i) mean += load(arguments.x, place(i), dim * block * interleave);
      mean *= T(1) / T(problems);
    }
    T v[problems];
#pragma unroll
    for (int i = 0; i < problems; ++i) v[i] = traces(parity_of(dim - 1, i))[group * patches];
    Base::unbutterfly({sign(group % n != 0), sign(group / n % n != 0), sign(group / (n * n) != 0)}, v);
    T* y = arguments.y + (dim * block + group) * interleave;
#pragma unroll
    for (int i = 0; i < problems; ++i) __stcs(Base::pointer(y, place(i)), v[i] + mean);
  }

  // --- all together --------------------------------------------------------------------------------------------------

  /// visit(std::integral_constant<int, c>()) for the components in order.
  template <class F>
  static __device__ void for_each_component(F&& visit) {
    visit(std::integral_constant<int, 0>());
    visit(std::integral_constant<int, 1>());
    if constexpr (dim == 3) visit(std::integral_constant<int, 2>());
  }

  __device__ void smooth() const {
    const bool with_x = arguments.x != nullptr;
    Around cells;
    T p[block];
    T v[problems];
    this->find_cells(cells);
    fetch_pressure(v);
    if (with_x) this->find_cells_above(cells);
    spread_pressure(v);
    fetch_velocity<0>(v);
    if (with_x) this->keep_places(cells);
    __syncthreads();
    for_each_component([&]<int c>(std::integral_constant<int, c>) {
      spread_velocity<c>(v);
      if (with_x) {
        gather_ends<c>();
        gather_traces<c>();
      }
      __syncthreads();
      if constexpr (c + 1 < dim) fetch_velocity<c + 1>(v);  // on its way while this component is solved
      if constexpr (c == 0) {
#pragma unroll
        for (int i = 0; i < block; ++i) p[i] = -velocity(dim - 1, problem)[i * patches];
        transform_pressure<true>(p);
      }
      if ((problem >> c & 1) != 0) {
        forward_velocity<c, true>(p);
      } else {
        forward_velocity<c, false>(p);
      }
      if constexpr (c + 1 < dim) __syncthreads();
    });
    solve_schur(p);
    for_each_component([&]<int c>(std::integral_constant<int, c>) {
      if ((problem >> c & 1) != 0) {
        backward_velocity<c, true>(p);
      } else {
        backward_velocity<c, false>(p);
      }
    });
    transform_pressure<false>(p);
#pragma unroll
    for (int i = 0; i < block; ++i) traces(parity_of(dim - 1, problem))[i * patches] = p[i];
    T hats[dim][problems / 2];
    for_each_component([&]<int c>(std::integral_constant<int, c>) { fetch_hats<c>(hats[c]); });
    typename Base::Copied copied;
    this->fetch_copied(copied);
    __syncthreads();
    for_each_component([&]<int c>(std::integral_constant<int, c>) { write_velocity<c>(hats[c]); });
    write_pressure();
    this->store_copied(copied);
  }
};

}  // namespace solenoid::cuda
