#pragma once
/// \file
/// First step of the general smoother (general.cuh): what it needs comes to shared memory, then the residual of a
/// patch.

#include "engine/cuda/kernels/smoother/general_block.cuh"

namespace solenoid::cuda {

template <class T, int dim, int order>
struct GeneralResidual : GeneralBlock<T, dim, order> {
  using Base = GeneralBlock<T, dim, order>;
  using Base::n, Base::modes, Base::columns, Base::functions, Base::rows, Base::component, Base::pressures,
      Base::corners, Base::halves, Base::others, Base::roomy, Base::layout, Base::for_each, Base::for_each_from_last,
      Base::meet, Base::copy, Base::copy_all, Base::for_columns, Base::a_of, Base::b_of, Base::cell_of, Base::start_of,
      Base::row_step, Base::pressure_place, Base::pressure_cell, Base::pressure_start, Base::divergence, Base::half_of,
      Base::lower_corner;
  using typename Base::S, typename Base::Memory, typename Base::Arguments, typename Base::Column, typename Base::Line,
      typename Base::Tables;

  /// The kind of a patch and its univariate tables, to shared memory; the eigenvalues closer.
  __device__ static void load_tables(const Arguments& arguments, int kind, Memory& memory) {
    const T* const tables = arguments.tables + kind * layout.size();
    static_assert(sizeof(memory.tables) == layout.inverse_lambda_at() * sizeof(T));
    copy_all<16>(memory.tables, tables);
    copy_all<8>(memory.kind, arguments.kinds + kind);
    const T* const inverse_lambda = tables + layout.inverse_lambda_at();
    constexpr int line = 128 / sizeof(T);
    for_each((dim * component + line - 1) / line, [&](int i) { prefetch(inverse_lambda + i * line); });
    if (threadIdx.x == 0) memory.inverse_lambda = inverse_lambda;
  }

  /// The records behind the ends of a patch and above its cells.
  __device__ static void look_up(const CellTopology& topology, Memory& memory) {
    for_each_from_last((2 * dim + 2 * dim) * halves, [&](int i) {
      const int side = i / halves;
      if (side < 2 * dim) {
        const int half = i % halves;
        const std::int32_t cell = memory.cells[lower_corner(side / 2, half) | side % 2 << side / 2];
        const Face face = topology.face[side][cell];
        const std::int32_t behind = topology.neighbour[side][cell];
        memory.behind[side][half] = face == Face::interior ? behind : -1 - face_weight(face);
      } else {
        const int c = (i - 2 * dim * halves) / corners;
        const int corner = i % corners;
        memory.above[c][corner] = topology.neighbour[2 * c + 1][memory.cells[corner]];
      }
    });
  }
  /// Those above the records behind the ends.
  __device__ static void look_up_above(const CellTopology& topology, Memory& memory) {
    for_each_from_last(dim * 2 * dim * halves, [&](int i) {
      const int c = i / (2 * dim * halves);
      const int side = i / halves % (2 * dim);
      const std::int32_t behind = memory.behind[side][i % halves];
      memory.above_behind[c][side][i % halves] = behind < 0 ? behind : topology.neighbour[2 * c + 1][behind];
    });
  }

  /// A value of b on its way, to where its residual will be or just closer.
  __device__ static void fetch(T& residual, const T* b) {
    if constexpr (roomy) {
      copy(residual, b);
    } else {
      prefetch(b);
    }
  }
  /// What vectors have in the patch's cells: b, and old values if there are any.
  __device__ static void load(const Arguments& arguments, Memory& memory) {
    const T* const x = arguments.colour.x;
    for_columns([&](int c, int column) {
#pragma unroll
      for (int upper = 0; upper < 2; ++upper) {
        const std::int64_t at = S::offset(memory.cells[cell_of(c, column, upper)]) + start_of(c, column);
#pragma unroll
        for (int i = 0; i < n; ++i) {
          const int to = (upper * n + i) * columns + column;
          if (x != nullptr) copy(memory.u[c][to], x + at + i * row_step);
          fetch(memory.residual(c)[to], arguments.colour.b + at + i * row_step);
        }
      }
    });
    for_each(pressures, [&](int i) {
      const std::int64_t at = S::offset(memory.cells[pressure_cell(i)]) + pressure_start(i);
      if (x != nullptr) copy(memory.old()[i], x + at);
      copy(memory.schur[0][i], arguments.colour.b + at);
    });
  }
  /// The hats above.
  __device__ static void load_above(const Arguments& arguments, Memory& memory) {
    for_columns([&](int c, int column) {
      const std::int64_t at = S::offset(memory.above[c][cell_of(c, column, 1)]) + start_of(c, column);
      const int to = modes * columns + column;
      if (arguments.colour.x != nullptr) copy(memory.u[c][to], arguments.colour.x + at);
      fetch(memory.residual(c)[to], arguments.colour.b + at);
    });
  }

  // --- residual ------------------------------------------------------------------------------------------------------

  /// A line in the tangential direction c + 1 + tau: of row `row` of component c, of those of both cells.
  struct TangentialLine {
    int c;
    int row;
    int upper;               ///< its cell in direction c
    int i;                   ///< its row there, n + 1 each
    int t;                   ///< its direction
    int first;               ///< column it begins in
    int stride;              ///< from there on
    std::int32_t record[2];  ///< behind its ends, or -1 - weight of the face there
    int start;               ///< in those records
    int record_stride;

    static constexpr int count = dim * rows * others;
    __device__ TangentialLine(const Memory& memory, int tau, int k)
        : c(k / (rows * others)),
          row(k / others % rows),
          upper(row / (n + 1)),
          i(row % (n + 1)),
          t(tau == 0 ? a_of(c) : b_of(c)),
          first(k % others * (tau == 0 ? modes : 1)),
          stride(tau == 0 ? 1 : modes),
          start(start_of(c, first) + i % n * row_step),
          record_stride((tau == 0 ? 1 : n) * interleave) {
      const auto& records = i < n ? memory.behind : memory.above_behind[c];
      const int half = half_of(t, cell_of(c, first, upper));
      for (int end = 0; end < 2; ++end) record[end] = records[2 * t + end][half];
    }
    /// Its first value behind an end, or anything that is there where nothing is.
    __device__ const T* beyond(const T* x, int end) const {
      return x + S::offset(record[end] < 0 ? 0 : record[end]) + start;
    }
  };
  /// What lies behind the ends of lines on its way to the caches.
  __device__ static void fetch_beyond(const Arguments& arguments, int tau, const Memory& memory) {
    for_each(TangentialLine::count, [&](int k) {
      const TangentialLine line(memory, tau, k);
#pragma unroll
      for (int end = 0; end < 2; ++end) {
#pragma unroll
        for (int m = 0; m < n; ++m) prefetch(line.beyond(arguments.colour.x, end) + m * line.record_stride);
      }
    });
  }
  /// w += nu L^O u in the tangential direction c + 1 + tau; the first of them adds to alpha u.
  __device__ static void apply_laplacian(const Tables& tables, const Arguments& arguments, int tau, Memory& memory) {
    for_each(TangentialLine::count, [&](int k) {
      const TangentialLine line(memory, tau, k);
      T beyond[2][n];
#pragma unroll
      for (int end = 0; end < 2; ++end) {
#pragma unroll
        for (int m = 0; m < n; ++m) {
          beyond[end][m] = __ldg(line.beyond(arguments.colour.x, end) + m * line.record_stride);
        }
      }
      const T* const u = memory.u[line.c] + (line.upper * n + line.i) * columns + line.first;
      T* const w = memory.w[line.c] + line.row * columns + line.first;
      const int stride = line.stride;
      const auto own = [&](int half) { return [=](int m) { return u[(half * n + m) * stride]; }; };
      const auto behind = [&](int end) {
        return line.record[end] < 0 ? Line::reflected(tables, end, -1 - line.record[end], own(end))
                                    : Line::trace(tables, 1 - end, [&](int m) { return beyond[end][m]; });
      };
      const auto store = [&](int half) {
        return [=, &tables, &arguments, &line](int j, T image) {
          const int at = (half * n + j) * stride;
          w[at] = (tau == 0 ? arguments.alpha * u[at] : w[at]) + tables.factor[line.t] * image;
        };
      };
      Line::apply(tables, own(0), behind(0), Line::trace(tables, 0, own(1)), store(0));
      Line::apply(tables, own(1), Line::trace(tables, 1, own(0)), behind(1), store(1));
    });
  }

  /// r = b - A x of the patch, by functions of P, and in the pressure.
  __device__ static void residual(const Tables& tables, const Arguments& arguments, Memory& memory) {
    const bool with_x = arguments.colour.x != nullptr;
    if (with_x && dim == 3) fetch_beyond(arguments, 1, memory);
#pragma unroll 1
    for (int tau = 0; tau < dim - 1 && with_x; ++tau) {
      apply_laplacian(tables, arguments, tau, memory);
      meet();
    }
    for_columns([&](int c, int column) {
      T* const residual = memory.residual(c) + column;
      T r[functions];
      if constexpr (roomy) {
#pragma unroll
        for (int e = 0; e < functions; ++e) r[e] = residual[e * columns];
      } else {
        const Column at(memory, c, column);
#pragma unroll
        for (int e = 0; e < functions; ++e) r[e] = __ldg(arguments.colour.b + at[e]);
      }
      if (with_x) {
#pragma unroll
        for (int upper = 0; upper < 2; ++upper) {
          const T* const u = memory.u[c] + upper * n * columns + column;
          T* const flux = memory.flux(c) + upper * n * columns + column;
          const T* const w = memory.w[c] + upper * (n + 1) * columns + column;
          const T* const p = memory.old() + pressure_place(c, upper * n, column);
          const int p_step = pressure_place(c, 1, 0);
          const T jump = u[n * columns] - u[0];
#pragma unroll
          for (int j = 0; j <= n; ++j) {
            const T of_j = w[j * columns];
#pragma unroll
            for (int i = 0; i <= n; ++i) {
              if (mass_couples(n, i, j)) r[upper * n + i] -= tables.mass[i][j] * of_j;
            }
          }
          // Stiffness and divergence are the identity on bubbles; hats have the slopes -1 and 1.
          const T end = tables.factor[c] * jump - tables.inverse_h[c] * p[0];
          r[upper * n] += end;
          r[upper * n + n] -= end;
          flux[0] = tables.inverse_h[c] * jump;
#pragma unroll
          for (int i = 1; i < n; ++i) {
            const T bubble = u[i * columns];
            r[upper * n + i] -= tables.factor[c] * bubble - tables.inverse_h[c] * p[i * p_step];
            flux[i * columns] = tables.inverse_h[c] * bubble;
          }
        }
      }
#pragma unroll
      for (int e = 0; e < functions; ++e) residual[e * columns] = r[e];
    });
    meet();
    for_each(pressures, [&](int i) {
      memory.pressure[i] = with_x ? memory.schur[0][i] + divergence(memory, i) : memory.schur[0][i];
    });
    meet();
  }
};

}  // namespace solenoid::cuda
