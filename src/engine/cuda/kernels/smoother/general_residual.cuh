#pragma once
/// \file
/// First step of the general smoother (general.cuh): what it needs comes to shared memory, then the residual of a
/// patch.

#include "engine/cuda/kernels/smoother/general_block.cuh"

namespace solenoid::cuda {

template <class T, int dim, int order>
struct GeneralResidual : GeneralBlock<T, dim, order> {
  using Base = GeneralBlock<T, dim, order>;
  using Base::n, Base::modes, Base::columns, Base::functions, Base::rows, Base::line_pitch, Base::row_pitch,
      Base::pressures, Base::corners, Base::halves, Base::others, Base::roomy, Base::layout, Base::threads, Base::meet,
      Base::copy, Base::copy_all, Base::a_of, Base::b_of, Base::cell_of, Base::start_of, Base::row_step, Base::place_of,
      Base::pressure_place, Base::divergence, Base::half_of, Base::lower_corner;
  using typename Base::S, typename Base::KindMemory, typename Base::Memory, typename Base::Work,
      typename Base::Arguments, typename Base::Column, typename Base::Pressure, typename Base::Value,
      typename Base::Line, typename Base::Tables;

  /// The kind of patches and its univariate tables, to shared memory; the eigenvalues closer.
  __device__ static void load_tables(const Arguments& arguments, int number, KindMemory& kind) {
    const T* const tables = arguments.tables + number * layout.size();
    static_assert(sizeof(kind.tables) == layout.inverse_lambda_at() * sizeof(T));
    copy_all<16>(kind.tables, tables);
    copy_all<8>(kind.data, arguments.kinds + number);
    const T* const inverse_lambda = tables + layout.inverse_lambda_at();
    constexpr int line = 128 / sizeof(T);
    for (int i = static_cast<int>(threadIdx.x) * line; i < dim * functions * columns; i += threads * line) {
      prefetch(inverse_lambda + i);
    }
    if (threadIdx.x == 0) kind.inverse_lambda = inverse_lambda;
  }

  /// The records behind the ends of a patch and above its cells.
  __device__ static void look_up(const CellTopology& topology, const Work& work) {
    work.for_each_from_last((2 * dim + 2 * dim) * halves, [&](Memory& memory, int i) {
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
  __device__ static void look_up_above(const CellTopology& topology, const Work& work) {
    work.for_each_from_last(dim * 2 * dim * halves, [&](Memory& memory, int i) {
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
  __device__ static void load(const Arguments& arguments, const Work& work) {
    const T* const x = arguments.colour.x;
    const T* const b = arguments.colour.b;
    work.for_values([&](Memory& memory, int corner, int i) {
      const Value value(corner, i);
      const std::int64_t at = S::offset(memory.cells[corner]) + i * interleave;
      if (value.is_velocity()) {
        if (x != nullptr) copy(memory.u[value.c][value.in_component()], x + at);
        fetch(memory.residual(value.c)[value.in_component()], b + at);
      } else {
        if (x != nullptr) copy(memory.old()[value.place], x + at);
        copy(memory.schur[value.place], b + at);
      }
    });
  }
  /// The hats above.
  __device__ static void load_above(const Arguments& arguments, const Work& work) {
    work.for_columns([&](Memory& memory, int c, int column) {
      const std::int64_t at = S::offset(memory.above[c][cell_of(c, column, 1)]) + start_of(c, column);
      const int to = modes * row_pitch + place_of(column);
      if (arguments.colour.x != nullptr) copy(memory.u[c][to], arguments.colour.x + at);
      fetch(memory.residual(c)[to], arguments.colour.b + at);
    });
  }

  // --- residual ------------------------------------------------------------------------------------------------------

  /// A line in the tangential direction c + 1 + tau: of row `row` of component c, of those of both cells. Lines that
  /// cross cells which are neighbours in x follow each other.
  struct TangentialLine {
    int c;
    int upper;  ///< its cell in direction c
    int i;      ///< its row there, n + 1 each
    int row;
    int t;                   ///< its direction
    int stride;              ///< in the arrays of a patch
    int record_stride;       ///< in records
    int first;               ///< column it begins in
    int place;               ///< of that column
    int start;               ///< in the records behind its ends
    std::int32_t record[2];  ///< these, or -1 - weight of the face there

    static constexpr int count = dim * rows * others;
    __device__ TangentialLine(const Memory& memory, int tau, int k)
        : c(k / (rows * others)),
          upper(dim == 2 || c == 0 ? k % 2 : k / 2 % 2),
          i(dim == 2 ? k / 2 % (n + 1) : k / (4 * n) % (n + 1)),
          row(upper * (n + 1) + i),
          t(tau == 0 ? a_of(c) : b_of(c)),
          stride(tau == 0 ? 1 : line_pitch),
          record_stride((tau == 0 ? 1 : n) * interleave) {
      const int other = dim == 2 ? 0 : k / 4 % n + n * (c == 0 ? k / 2 % 2 : k % 2);
      first = other * (tau == 0 ? modes : 1);
      place = other * (tau == 0 ? line_pitch : 1);
      start = start_of(c, first) + i % n * row_step;
      const auto& records = i < n ? memory.behind : memory.above_behind[c];
      const int half = half_of(t, cell_of(c, first, upper));
      for (int end = 0; end < 2; ++end) record[end] = records[2 * t + end][half];
    }
    /// Its first value behind an end, or anything that is there where nothing is.
    __device__ const T* beyond(const T* x, int end) const {
      return x + S::offset(record[end] < 0 ? 0 : record[end]) + start;
    }
  };
  /// w += nu L^O u in the tangential direction c + 1 + tau; the first of them adds to alpha u.
  __device__ static void apply_laplacian(const Tables& tables, const Arguments& arguments, int tau, const Work& work) {
    work.for_each(TangentialLine::count, [&](Memory& memory, int k) {
      const TangentialLine line(memory, tau, k);
      T beyond[2][n];
#pragma unroll
      for (int end = 0; end < 2; ++end) {
#pragma unroll
        for (int m = 0; m < n; ++m) {
          beyond[end][m] = __ldg(line.beyond(arguments.colour.x, end) + m * line.record_stride);
        }
      }
      const T* const u = memory.u[line.c] + (line.upper * n + line.i) * row_pitch + line.place;
      T* const w = memory.w[line.c] + line.row * row_pitch + line.place;
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

  /// r = b - A x of the patch, by functions of P, and in the pressure; or b, if it is that already (Colour::root).
  __device__ static void residual(const Tables& tables, const Arguments& arguments, const Work& work) {
    const bool is_residual = arguments.colour.root != nullptr;
    const bool with_x = !is_residual && arguments.colour.x != nullptr;
#pragma unroll 1
    for (int tau = 0; tau < dim - 1 && with_x; ++tau) {
      apply_laplacian(tables, arguments, tau, work);
      meet();
    }
    work.for_columns([&](Memory& memory, int c, int column) {
      const int place = place_of(column);
      T* const residual = memory.residual(c) + place;
      T r[functions];
      if constexpr (roomy) {
#pragma unroll
        for (int e = 0; e < functions; ++e) r[e] = residual[e * row_pitch];
      } else {
        const Column at(memory, c, column);
#pragma unroll
        for (int e = 0; e < functions; ++e) r[e] = __ldg(arguments.colour.b + at[e]);
      }
      if (is_residual && work.memory.kind.data.first[c] > 0) r[n] += r[0];  // the share of the lower cell
      if (with_x) {
#pragma unroll
        for (int upper = 0; upper < 2; ++upper) {
          const T* const u = memory.u[c] + upper * n * row_pitch + place;
          T* const flux = memory.flux(c) + upper * n * row_pitch + place;
          const T* const w = memory.w[c] + upper * (n + 1) * row_pitch + place;
          const T* const p = memory.old() + pressure_place(c, upper * n, column);
          const int p_step = pressure_place(c, 1, 0);
          const T jump = u[n * row_pitch] - u[0];
#pragma unroll
          for (int j = 0; j <= n; ++j) {
            const T of_j = w[j * row_pitch];
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
            const T bubble = u[i * row_pitch];
            r[upper * n + i] -= tables.factor[c] * bubble - tables.inverse_h[c] * p[i * p_step];
            flux[i * row_pitch] = tables.inverse_h[c] * bubble;
          }
        }
      }
#pragma unroll
      for (int e = 0; e < functions; ++e) residual[e * row_pitch] = r[e];
    });
    meet();
    work.for_each(pressures, [&](Memory& memory, int i) {
      const Pressure p(i);
      const T b = memory.schur[p.place()];
      memory.pressure[p.place()] = with_x ? b + divergence(memory, p) : b;
    });
    meet();
  }
};

}  // namespace solenoid::cuda
