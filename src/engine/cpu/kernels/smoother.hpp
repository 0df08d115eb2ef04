#pragma once
/// \file
/// The vertex-patch smoother with the true residual. Lanes are patches of one colour.
///
/// Residuals need no matrices of local problems, so that a batch has patches of any: of a row of cells, those at its
/// ends too. What most lanes have is solved at once; the others' residuals wait until there are enough with their
/// problem. So records are read as they lie.
///
/// Arrays of a patch, N = 2n: velocity component c as [e][i_b][i_a] with the 2n + 1 functions e of P slowest (end hat,
/// bubbles, middle hat, bubbles, end hat; only first..last are unknowns), a = c + 1, b = c + 2 (mod dim), i = n (upper
/// cell) + mode; pressure as [i_z][i_y][i_x]. In the eigenbasis the same with eigenfunctions for functions,
/// e counted from 0. Poisson's u takes the place of the pressure.

#include <array>

#include "engine/cpu/kernels/operator.hpp"
#include "engine/cpu/kernels/waiting_residuals.hpp"

namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE {

template <class T, EquationKind equation, int dim, int order>
struct PatchArrays {
  static constexpr int n = order + 1;
  static constexpr int modes = 2 * n;
  static constexpr int columns = power(modes, dim - 1);
  static constexpr int pressures = power(modes, dim);
  using V = Simd<T>;

  static constexpr int residual_size = dim * (modes + 1) * columns + pressures;

  // Residual, then correction:
  V velocity[dim][(modes + 1) * columns];
  V pressure[pressures];
  V schur[4][pressures];  ///< right-hand side and work space of the Schur complement solvers
};

template <class T, int dim, int order>
struct PatchArrays<T, EquationKind::poisson, dim, order> {
  static constexpr int residual_size = power(2 * (order + 1), dim);

  Simd<T> pressure[residual_size];
};

/// Where things are in the arrays of a patch, its residual, and writing.
template <class T, EquationKind equation, int dim, int order>
struct PatchBatch {
  static constexpr int n = order + 1;
  static constexpr int modes = 2 * n;
  static constexpr int columns = power(modes, dim - 1);
  static constexpr int pressures = power(modes, dim);
  static constexpr int corners = 1 << dim;
  static constexpr int cell_columns = power(n, dim - 1);
  static constexpr int block = power(n, dim);
  static constexpr int velocities = velocity_components(equation, dim);
  static constexpr int record = record_size(dim, order, equation);
  using V = Simd<T>;
  using Arrays = PatchArrays<T, equation, dim, order>;
  using Cells = CellBatch<dim, record>;

  static constexpr int a_of(int c) { return (c + 1) % dim; }
  static constexpr int b_of(int c) { return (c + 2) % dim; }
  static constexpr int pressure_stride_of(int a) { return power(modes, a); }

  /// Position in a patch array of value 0 of component c of the cell `bits`.
  static constexpr int velocity_start(int c, int bits) {
    return (n * (bits >> c & 1)) * columns + n * (bits >> a_of(c) & 1) +
           (dim == 3 ? modes * n * (bits >> b_of(c) & 1) : 0);
  }
  static constexpr int pressure_start(int bits) {
    int position = 0;
    for (int a = 0; a < dim; ++a) position += n * (bits >> a & 1) * pressure_stride_of(a);
    return position;
  }
  /// Distance of value i (record order, upper hats last) from there.
  static constexpr auto velocity_offset = [] {
    std::array<std::int16_t, block + cell_columns> offset{};
    for (int i = 0; i < block + cell_columns; ++i) {
      offset[i] = static_cast<std::int16_t>(i / cell_columns * columns + i % n + i % cell_columns / n * modes);
    }
    return offset;
  }();
  static constexpr auto pressure_offset = [] {
    std::array<std::int16_t, block> offset{};
    for (int i = 0; i < block; ++i) {
      for (int a = 0, rest = i; a < dim; ++a, rest /= n) {
        offset[i] = static_cast<std::int16_t>(offset[i] + rest % n * pressure_stride_of(a));
      }
    }
    return offset;
  }();

  using Places = Lanes<record>;

  /// The cells of a batch of patches, one patch per lane. Lanes that are no patch hold whatever lies there: they are
  /// worked on and not written.
  struct Batch {
    std::int32_t cells[corners][width];
    std::int32_t next[corners];  ///< cells of a patch of the next batch
    const PatchLanes* lanes;
    LaneSet cut[dim][2];  ///< lanes whose end in a direction is cut, or that have no patch (Poisson's equation)
  };

  static Batch make_batch(const SmoothArguments<T>& arguments, const PatchLanes& lanes, const PatchLanes& next) {
    Batch batch;
    batch.lanes = &lanes;
    if constexpr (equation == EquationKind::poisson) find_cuts(arguments, batch);
    std::copy_n(lanes.lower, width, batch.cells[0]);
    batch.next[0] = next.lower[next.last_lane];
    for (int bits = 1; bits < corners; ++bits) {
      const int a = bits >= 4 ? 2 : bits >= 2 ? 1 : 0;
      look_up(arguments.topology.neighbour[2 * a + 1], batch.cells[bits - (1 << a)], batch.cells[bits]);
      batch.next[bits] = arguments.topology.neighbour[2 * a + 1][batch.next[bits - (1 << a)]];
    }
    return batch;
  }

  static void find_cuts(const SmoothArguments<T>& arguments, Batch& batch) {
    const PatchLanes& lanes = *batch.lanes;
    LaneSet cut[dim][2]{};
    for (LaneSet left = lanes.active; left != 0;) {
      const std::int32_t kind = lanes.kind[std::countr_zero(left)];
      const LaneSet same = left & lanes_equal<1>(lanes.kind, kind);
      left &= ~same;
      for (int a = 0; a < dim; ++a) {
        for (int end = 0; end < 2; ++end) cut[a][end] |= arguments.problems[kind].cut[a][end] ? same : 0;
      }
    }
    for (int a = 0; a < dim; ++a) {
      for (int end = 0; end < 2; ++end) {
        batch.cut[a][end] = cut[a][end] == 0 ? 0 : cut[a][end] | (all_lanes & ~lanes.active);
      }
    }
  }

  // --- residual ------------------------------------------------------------------------------------------------------

  /// The patch rows of b - A x.
  static void residual(const SmoothArguments<T>& arguments, const Batch& batch, Arrays& work) {
    for (const std::int32_t next : batch.next) {
      for (int side = 0; side < 2 * dim; ++side) __builtin_prefetch(arguments.topology.neighbour[side] + next);
    }
    // Upper cells first: a cell subtracts from the hats of the next ones, which have b by then.
    for (int bits = corners - 1; bits >= 0; --bits) {
      Cells cells(arguments.topology, batch.cells[bits]);
      V* pressure = gather(arguments, batch, cells, bits, work);
      if (arguments.x == nullptr) continue;

      Ahead<T, dim, order> ahead = ahead_of(arguments, batch, bits);
      if constexpr (equation == EquationKind::stokes) {
        alignas(SOLENOID_SIMD_BYTES) T scratch[block * interleave];
        const T* p = cells.own.template view<block>(arguments.x, dim * block, scratch);
        V q[block]{};
        subtract_element<0>(arguments, cells, bits, p, ahead, q, work);
        subtract_element<1>(arguments, cells, bits, p, ahead, q, work);
        if constexpr (dim == 3) subtract_element<2>(arguments, cells, bits, p, ahead, q, work);
        for (int i = 0; i < block; ++i) pressure[pressure_offset[i]] += q[i];
      } else {
        for (int a = 0; a < dim; ++a) {
          const int end = bits >> a & 1;
          cells.cut(2 * a + end, batch.cut[a][end]);
        }
        V image[block];
        PoissonOperator<T, dim, order>::run(*arguments.cell, cells, arguments.x, ahead, image);
        for (int i = 0; i < block; ++i) pressure[pressure_offset[i]] -= image[i];
      }
    }
  }

  /// b on a cell; returns where its pressures are.
  [[gnu::always_inline]] static V* gather(const SmoothArguments<T>& arguments, const Batch& batch, const Cells& cells,
                                          int bits, Arrays& work) {
    if constexpr (equation == EquationKind::stokes) {
      gather_component<0>(arguments, batch, cells, bits, work);
      gather_component<1>(arguments, batch, cells, bits, work);
      if constexpr (dim == 3) gather_component<2>(arguments, batch, cells, bits, work);
    }
    alignas(SOLENOID_SIMD_BYTES) T scratch[block * interleave];
    const T* g = cells.own.template view<block>(arguments.b, velocities * block, scratch);
    V* pressure = work.pressure + pressure_start(bits);
    for (int i = 0; i < block; ++i) pressure[pressure_offset[i]] = load(g + i * interleave);
    return pressure;
  }
  /// What the next batch reads of a cell, and where this one writes.
  static Ahead<T, dim, order> ahead_of(const SmoothArguments<T>& arguments, const Batch& batch, int bits) {
    const std::int64_t next = record_offset(batch.next[bits] / width * width, record);
    Ahead<T, dim, order> ahead;
    ahead.add(arguments.x + next);
    ahead.add(arguments.b + next);
    ahead.add(arguments.y + record_offset(batch.cells[bits][0] / width * width, record));
    return ahead;
  }
  /// An element's rows of a component from the residual, those of its upper hats, too.
  static void subtract(int c, int bits, const V* own, const V* upper, Arrays& work) {
    V* velocity = work.velocity[c] + velocity_start(c, bits);
    for (int i = 0; i < block; ++i) velocity[velocity_offset[i]] -= own[i];
    for (int i = 0; i < cell_columns; ++i) velocity[velocity_offset[block + i]] -= upper[i];
  }

  template <int c>
  static void subtract_element(const SmoothArguments<T>& arguments, const Cells& cells, int bits, const T* p,
                               Ahead<T, dim, order>& ahead, V* q, Arrays& work) {
    V own[block];
    V upper[cell_columns];
    ComponentOperator<T, dim, order, c>::run(*arguments.cell, cells, arguments.x, p, ahead, own, upper, q);
    subtract(c, bits, own, upper, work);
  }

  /// b on the patch; the rows of end hats that are no unknowns are never used.
  template <int c>
  static void gather_component(const SmoothArguments<T>& arguments, const Batch& batch, const Cells& cells, int bits,
                               Arrays& work) {
    alignas(SOLENOID_SIMD_BYTES) T scratch[block * interleave];
    const T* b = cells.own.template view<block>(arguments.b, c * block, scratch);
    V* velocity = work.velocity[c] + velocity_start(c, bits);
    for (int i = 0; i < block; ++i) velocity[velocity_offset[i]] = load(b + i * interleave);
    if ((bits >> c & 1) == 0) return;
    V hats[cell_columns]{};
    if ((batch.lanes->hats >> c & 1) != 0) {
      cells.behind[2 * c + 1].template load_values<cell_columns>(arguments.b, c * block, hats);
    }
    for (int i = 0; i < cell_columns; ++i) velocity[velocity_offset[block + i]] = hats[i];
  }

  // --- writing -------------------------------------------------------------------------------------------------------

  /// Whether the records of patches that are written have been written before, by a batch in which they waited.
  enum class Turn : std::uint8_t { first, second };

  /// y = x + correction on all records of the batch, or y += damping * correction. There are corrections of patches of
  /// a problem, in the lanes `solved`; the others wait, and have none yet.
  template <Turn turn>
  static void write(const SmoothArguments<T>& arguments, const PatchData<T>& patch, const Batch& batch, LaneSet solved,
                    const Arrays& work) {
    for (int bits = 0; bits < corners; ++bits) {
      const Places places(batch.cells[bits], arguments.topology.null);
      V correction[record]{};
      if (solved != 0) {
        if constexpr (velocities > 0) write_velocity(arguments, patch, batch, solved, work, bits, correction);
        const V* pressure = work.pressure + pressure_start(bits);
        for (int i = 0; i < block; ++i) correction[velocities * block + i] = pressure[pressure_offset[i]];
        if (solved != batch.lanes->active) keep_lanes(solved, record, correction);
      }
      update<record, turn>(arguments, places, 0, correction, batch.lanes->active);
    }
  }

  /// Zero in all other lanes.
  static void keep_lanes(LaneSet lanes, int count, V* values) {
    V keep;
    for (int l = 0; l < width; ++l) keep.set(l, (lanes >> l & 1) != 0 ? T(1) : T(0));
    for (int i = 0; i < count; ++i) values[i] = select_greater(keep, V{}, values[i], V{});
  }

  /// Gathers the correction of the velocity on a cell, and updates free end hats.
  static void write_velocity(const SmoothArguments<T>& arguments, const PatchData<T>& patch, const Batch& batch,
                             LaneSet solved, const Arrays& work, int bits, V* correction) {
    for (int c = 0; c < velocities; ++c) {
      const bool upper = (bits >> c & 1) != 0;
      const V* velocity = work.velocity[c] + velocity_start(c, bits);
      for (int i = upper || patch.hat[c][0] ? 0 : cell_columns; i < block; ++i) {
        correction[c * block + i] = velocity[velocity_offset[i]];
      }
      if (!upper || !patch.hat[c][1]) continue;
      std::int32_t behind[width];
      look_up(arguments.topology.neighbour[2 * c + 1], batch.cells[bits], behind);
      V hats[cell_columns];
      for (int i = 0; i < cell_columns; ++i) hats[i] = velocity[velocity_offset[block + i]];
      update<cell_columns, Turn::first>(arguments, Places(behind, arguments.topology.null), c * block, hats, solved);
    }
  }

  template <int count, Turn turn>
  static void update(const SmoothArguments<T>& arguments, const Places& places, int first, V* correction,
                     LaneSet active) {
    if (arguments.add) {
      for (int i = 0; i < count; ++i) correction[i] *= arguments.damping;
    }
    if (arguments.add || turn == Turn::second) {
      places.template write<true>(count, arguments.y, first, correction, active);
      return;
    }
    if (arguments.x != nullptr) {
      alignas(SOLENOID_SIMD_BYTES) T scratch[count * interleave];
      const T* x = places.template view<count>(arguments.x, first, scratch);
      for (int i = 0; i < count; ++i) correction[i] += load(x + i * interleave);
    }
    places.template write<false>(count, arguments.y, first, correction, active);
  }

  // --- batches -------------------------------------------------------------------------------------------------------

  using Waiting = WaitingResiduals<T, Arrays>;

  static std::int64_t workspace_bytes(int problems) {
    return static_cast<std::int64_t>(sizeof(Arrays)) + Waiting::bytes(problems);
  }

  /// The local solve of a problem, residuals to corrections.
  static void solve_local(const SmoothArguments<T>& arguments, int problem, Arrays& work) {
    arguments.solve[arguments.splits[problem]]({arguments.problems + problem, arguments.local, &work});
  }

  /// residual(batch, work) puts the residual into `work`, solve(problem, batch, work) makes corrections of it.
  template <class Residual, class Solve>
  static void smooth(const SmoothArguments<T>& arguments, const Residual& residual, const Solve& solve) {
    Arrays& work = *static_cast<Arrays*>(arguments.workspace);
    Waiting waiting(static_cast<std::byte*>(arguments.workspace) + sizeof(Arrays), arguments.problem_count);
    if (arguments.begin == arguments.first) waiting.clear();
    const auto solve_waiting = [&](int problem) {
      const PatchLanes lanes = waiting.take(problem, arguments.topology.null, work);
      const Batch batch = make_batch(arguments, lanes, lanes);
      solve(problem, batch, work);
      write<Turn::second>(arguments, arguments.problems[problem], batch, lanes.active, work);
    };
    for (std::int64_t index = arguments.begin; index < arguments.end; ++index) {
      const PatchLanes& lanes = arguments.batches[index];
      const Batch batch = make_batch(arguments, lanes, arguments.batches[std::min(index + 1, arguments.last - 1)]);
      while (waiting.free() < width) solve_waiting(waiting.longest().problem);
      residual(batch, work);
      const LaneSet now = solved_at_once(lanes);
      const LaneSet later = lanes.active & ~now;
      waiting.put(lanes, later, work);
      const int problem = now == 0 ? 0 : lanes.kind[std::countr_zero(now)];
      if (now != 0) solve(problem, batch, work);
      write<Turn::first>(arguments, arguments.problems[problem], batch, now, work);
      if (later == 0) continue;
      for (auto queue = waiting.longest(); queue.length >= width; queue = waiting.longest()) {
        solve_waiting(queue.problem);
      }
    }
    if (arguments.end != arguments.last) return;
    while (!waiting.empty()) solve_waiting(waiting.longest().problem);
  }

  /// The patches of the problem that most have, if these are enough.
  static LaneSet solved_at_once(const PatchLanes& lanes) {
    for (LaneSet left = lanes.active; left != 0;) {
      const std::int32_t kind = lanes.kind[std::countr_zero(left)];
      const LaneSet same = left & lanes_equal<1>(lanes.kind, kind);
      if (2 * std::popcount(same) > width) return same;
      left &= ~same;
    }
    return 0;
  }
};

/// The smoother on boxes with constant coefficients.
template <class T, EquationKind equation, int dim, int order>
void smooth_patches(const SmoothArguments<T>& arguments) {
  using Patches = PatchBatch<T, equation, dim, order>;
  using Batch = typename Patches::Batch;
  using Arrays = typename Patches::Arrays;
  Patches::smooth(
      arguments, [&](const Batch& batch, Arrays& work) { Patches::residual(arguments, batch, work); },
      [&](int problem, const Batch& /*batch*/, Arrays& work) { Patches::solve_local(arguments, problem, work); });
}

}  // namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE
