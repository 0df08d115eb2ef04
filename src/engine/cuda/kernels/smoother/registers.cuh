#pragma once
/// \file
/// The parity smoother where a parity problem fits into the registers of one thread: k <= 1, and k = 2 in 3D and single
/// precision.
///
/// Steps and formulas are those of parity.cuh. What differs from lines.cuh:
///   * A thread has all lines and planes of its problem; the pressure never leaves it between gathering and writing,
///     but for the tensor cores' sake.
///   * A thread gathers lines of what lies around with all their rows. The mass matrix goes before the butterflies: it
///     turns the rows of two cells (end hats, middle hat, bubbles) into the n of the patch.
///   * Velocities that are odd in their own direction have no middle hat: one row less in everything.
///
/// The two sizes of a problem differ in three things:
///   * Storage. k <= 1: velocities of all components stay in shared memory, and writing waits once for all of them.
///     k = 2: there is room for one component; f goes to y and back (`stashed`). Corrections look at nothing around,
///     and have room for all components and for values of b that are copied while the component before is solved
///     (`staged`).
///   * Frame. k <= 1: code for each component. k = 2: all run through the same code, small enough for the instruction
///     cache (three copies of it take twice as long); the pressure in registers turns to the frame of each.
///   * Traces. k <= 1: modes across a face are as few as traces and are used as they are (`modal`). k = 2: value and
///     derivative.

#include <cuda_pipeline_primitives.h>

#include <type_traits>

#include "engine/cuda/kernels/smoother/batch.cuh"

namespace solenoid::cuda {

/// Sizes and places of a batch's fields in shared memory: velocities of all components, or of one (`stashed`), and what
/// lies around one component, traces and end hats, or values on their way (`staged`). The pressure takes the place of
/// velocities that come later, or of the latter, while they are not there. Fields come in pairs, even and odd in their
/// own direction; where memory is short the odd ones begin with row 1.
template <int dim, int order, bool corrects>
struct RegisterFields {
  static constexpr int n = order + 1;
  static constexpr int patches = 32;
  static constexpr int pairs = 1 << (dim - 1);
  static constexpr int columns = power(n, dim - 1);
  static constexpr int block = power(n, dim);
  static constexpr bool by_turns = order > 1;  // one code for all components
  static constexpr bool stashed = by_turns && !corrects;
  static constexpr bool staged = by_turns && corrects;
  static constexpr int spared = by_turns ? 1 : 0;  // rows of odd fields
  /// What is around: modes of each column, or value and derivative for each mode in the other direction.
  static constexpr bool modal = order <= 1;
  static constexpr int parts = modal ? 1 : 2;
  static constexpr int lines = modal ? columns : power(n, dim - 2);  // in a tangential direction
  static constexpr int around = (dim - 1) * parts * lines;           // of a row

  // From an even to the next even field, and from a row of an even field to that of the odd one.
  static constexpr int velocity_pair = (2 * n - spared) * columns;
  static constexpr int velocity_odd = (n - spared) * columns;
  static constexpr int around_pair = (2 * n - spared) * around + 2 * columns;
  static constexpr int around_odd = (n - spared) * around + columns;

  static constexpr __device__ int field(int parity, int pair, int odd) {
    return spared == 0 ? parity * odd : (parity >> 1) * pair + (parity & 1) * odd;
  }

  // In numbers.
  static_assert(!stashed || velocity_pair <= around_pair);  // on their way back components take that place by turns
  static constexpr int component = pairs * velocity_pair * patches;
  static constexpr int around_at = (stashed ? 1 : dim) * component;
  static constexpr int pressures = 2 * pairs * block * patches;
  static constexpr int numbers = around_at + (staged ? pressures : pairs * around_pair * patches);
  static constexpr int gathered_pressure_at = by_turns ? around_at : around_at - component;
  static_assert(block <= around_odd);
  // Values of the first component are copied while the gathered pressure is where those of others will be.
  static constexpr int staged_at(int c) { return c == 0 ? component : around_at; }
  static_assert(!staged || pressures <= (dim - 1) * component);
};

template <class T, int dim, int order, bool corrects>
struct RegisterSmoother : ParityBatch<T, dim, order, 32, 1, RegisterFields<dim, order, corrects>::numbers, corrects> {
  using Fields = RegisterFields<dim, order, corrects>;
  using Base = ParityBatch<T, dim, order, 32, 1, Fields::numbers, corrects>;
  using Base::a_of, Base::arguments, Base::b_of, Base::batch, Base::block, Base::columns, Base::extra_of, Base::group,
      Base::groups, Base::n, Base::neighbour_of, Base::parity_of, Base::patch, Base::patches, Base::place,
      Base::pointer, Base::problem, Base::problems, Base::sign, Base::times_mass, Base::transform;
  using typename Base::Arguments, typename Base::Around;
  static constexpr bool by_turns = Fields::by_turns;
  static constexpr bool stashed = Fields::stashed;
  static constexpr bool staged = Fields::staged;
  static constexpr bool modal = Fields::modal;
  static constexpr int parts = Fields::parts;
  static constexpr int around = Fields::around;
  static_assert(n <= 3);
  static constexpr const char* name = by_turns ? "registers, stashed" : "registers";

  static constexpr int gathering = (dim - 1) * Fields::lines;  // groups that gather a line of what lies around
  static constexpr int idle = groups - gathering;
  static constexpr int rounds = (block + groups - 1) / groups;

  const int turn;         // of this group where values are dealt: those come first that gather less
  unsigned mirrored = 0;  // what a mirror does to this group's values, four bits each

  __device__ RegisterSmoother(const Arguments& arguments_, T* shared_)
      : Base(arguments_, shared_), turn((group + idle) % groups) {
#pragma unroll
    for (int round = 0; round < rounds; ++round) mirrored |= changing(round * groups + turn) << 4 * round;
  }

  // --- fields --------------------------------------------------------------------------------------------------------

  /// Row r begins at r * columns, with or without a row 0.
  __device__ T* velocity(int c, int parity) const { return velocity_in(stashed ? 0 : c * Fields::component, parity); }
  /// Where component c goes on its way back; if there is room for one, by turns, so that one can be written while the
  /// next is stored.
  __device__ T* modes(int c, int parity) const {
    return stashed ? velocity_in(c == 1 ? Fields::around_at : 0, parity) : velocity(c, parity);
  }
  __device__ T* velocity_in(int at, int parity) const {
    return this->shared + at + Fields::field(parity, Fields::velocity_pair, Fields::velocity_odd) * patches + patch;
  }
  /// Row r begins at r * around; end hats are behind the rows.
  __device__ T* surroundings(int parity) const {
    return this->shared + Fields::around_at + Fields::field(parity, Fields::around_pair, Fields::around_odd) * patches +
           patch;
  }
  __device__ T* gathered_pressure(int parity) const {
    return this->shared + Fields::gathered_pressure_at + parity * block * patches + patch;
  }
  /// Pressure of a problem, where nobody but its thread looked for what lies around the last component.
  __device__ T* pressure(int of_problem) const {
    if constexpr (staged) return gathered_pressure(of_problem);
    const int parity = parity_of(dim - 1, of_problem);
    return surroundings(parity) + (parity & 1) * Fields::spared * around * patches;
  }
  /// to_patch(i, c), in fewer instructions where c is no constant.
  static __device__ int corner(int c, int i) {
    return (i & 1) * (1 << c) + (i >> 1 & 1) * (1 << a_of(c)) + (i >> 2) * (1 << b_of(c));
  }
  static __device__ T load(const T* from, std::uint32_t place, int at) { return load_old(pointer(from, place) + at); }

  // --- tables --------------------------------------------------------------------------------------------------------

  /// parity_table_size(n) numbers.
  static constexpr int vector_alignment = (n < 3 ? n : 4) * sizeof(T);
  static constexpr int square_alignment = n == 2 ? 16 : vector_alignment;
  struct alignas(square_alignment) Square {
    T of[n][n];
  };
  struct alignas(vector_alignment) Vector {
    T of[n];
  };
  struct Table {
    Square eigen_o;
    Square eigen_p;
    Square divergence;
    Vector lambda_o;
    Vector lambda_p;
  };
  static_assert(sizeof(Table) == parity_table_size(n) * sizeof(T));
  __device__ const Table& table(int d) const { return *reinterpret_cast<const Table*>(this->tables(d)); }

  // --- values of b ---------------------------------------------------------------------------------------------------

  /// Bits 0, 1, 2: value i, as a mode of the pressure, changes its sign if mirrored in x, y, z; bits 0 and 1 also: as a
  /// mode of a velocity in tangential directions; bit 3: in its own (bubble j is even about its cell for odd j).
  static __device__ unsigned changing(int i) {
    return (i % n == 1 ? 1U : 0U) | (i / n % n == 1 ? 2U : 0U) | (i / (n * n) == 1 ? 4U : 0U) |
           (n > 2 && i / columns == 2 ? 8U : 0U);
  }
  struct Signs {
    T of[3];
  };
  __device__ T sign_of(int round, int bit) const { return sign((mirrored >> (4 * round + bit) & 1) != 0); }
  __device__ Signs pressure_signs(int round) const { return {sign_of(round, 0), sign_of(round, 1), sign_of(round, 2)}; }
  __device__ Signs velocity_signs(int round) const {
    return {n > 2 ? sign_of(round, 3) : T(1), sign_of(round, 0), sign_of(round, 1)};
  }

  /// visit(round, at) for this group's values, or those that are hats: at + turn.
  template <int count, class F>
  __device__ void for_values(F&& visit) const {
#pragma unroll
    for (int at = 0; at < count; at += groups) {
      if (at + groups <= count || at + turn < count) visit(at / groups, at);
    }
  }
  struct Values {
    T of[rounds][problems];
  };
  /// This group's first value of a component, or of the pressure (c = dim), in all cells of the patch.
  template <class U>
  struct Cells {
    U* of[problems];
    __device__ Cells(const RegisterSmoother& all, U* vector, int c) {
      U* const first = vector + (c * block + all.turn) * interleave;
#pragma unroll
      for (int i = 0; i < problems; ++i) of[i] = pointer(first, all.place(c == dim ? i : corner(c, i)));
    }
  };

  __device__ void spread_pressure(Values& values) const {
    for_values<block>([&](int round, int at) {
      auto& v = values.of[round];
      Base::butterfly(pressure_signs(round).of, v);
#pragma unroll
      for (int i = 0; i < problems; ++i) gathered_pressure(i)[(at + turn) * patches] = v[i];
    });
  }
  __device__ void take_pressure(T (&p)[block]) const {
#pragma unroll
    for (int i = 0; i < block; ++i) p[i] = -gathered_pressure(problem)[i * patches];
  }

  /// Values of component c, or of the pressure: of all cells, or, if they are hats, of the upper ones.
  __device__ void fetch(int c, Values& values) const {
    const Cells<const T> b(*this, arguments.b, c);
    for_values<block>([&](int round, int at) {
      auto& v = values.of[round];
#pragma unroll
      for (int i = 1; i < problems; i += 2) v[i] = __ldcs(b.of[i] + at * interleave);
      if (c < dim && at + turn < columns) {
        if constexpr (corrects) {
#pragma unroll
          for (int i = 1; i < problems; i += 2) v[i] += __ldcs(b.of[i - 1] + at * interleave);  // shares of lower cells
        }
        return;
      }
#pragma unroll
      for (int i = 0; i < problems; i += 2) v[i] = __ldcs(b.of[i] + at * interleave);
    });
  }
  /// This thread's place for values of component c that are copied there: [value][cell][thread].
  __device__ T* staged_values(int c) const {
    return this->shared + Fields::staged_at(c) + turn * problems * patches + patch;
  }
  /// Begins to copy component c of b there.
  __device__ void stage(int c) const {
    const Cells<const T> b(*this, arguments.b, c);
    T* const to = staged_values(c);
    for_values<block>([&](int, int at) {
#pragma unroll
      for (int i = 0; i < problems; ++i) {
        __pipeline_memcpy_async(to + (at * problems + i) * patches, b.of[i] + at * interleave, sizeof(T));
      }
    });
    __pipeline_commit();
  }
  /// What has been copied.
  __device__ void take_staged(int c, int at, T (&v)[problems]) const {
    const T* const from = staged_values(c) + at * problems * patches;
#pragma unroll
    for (int i = 0; i < problems; ++i) v[i] = from[i * patches];
    if (at + turn < columns) {
#pragma unroll
      for (int i = 1; i < problems; i += 2) v[i] += v[i - 1];  // shares of lower cells
    }
  }
  __device__ void spread_staged(int c) const {
    __pipeline_wait_prior(0);
    spread_velocity(c, [&](int, int at, T(&v)[problems]) { take_staged(c, at, v); });
  }
  __device__ void spread_velocity(int c, Values& values) const {
    if (this->keeps_pressure()) {
      const T* cell[problems];
#pragma unroll
      for (int i = 0; i < problems; ++i) {
        cell[i] = pointer(arguments.x + dim * block * interleave, place(corner(c, i)));
      }
      for_values<block>([&](int round, int at) { this->add_old_gradient(c, at + turn, cell, values.of[round]); });
    }
    spread_velocity(c, [&](int round, int, T(&v)[problems]) {
#pragma unroll
      for (int i = 0; i < problems; ++i) v[i] = values.of[round][i];
    });
  }
  /// take(round, at, v): values of all cells.
  template <class F>
  __device__ void spread_velocity(int c, F&& take) const {
    for_values<block>([&](int round, int at) {
      T v[problems];
      take(round, at, v);
      const Signs signs = velocity_signs(round);
      T* const to = velocity(c, 0) + (at + turn) * patches;
      if (at + turn < columns) {  // in even velocities only
        T hats[problems / 2];
#pragma unroll
        for (int i = 0; i < problems / 2; ++i) hats[i] = v[2 * i + 1];
        Base::butterfly({signs.of[1], signs.of[2], T(1)}, hats);
#pragma unroll
        for (int i = 0; i < problems / 2; ++i) to[i * Fields::velocity_pair * patches] = hats[i];
      } else {
        Base::butterfly(signs.of, v);
#pragma unroll
        for (int i = 0; i < problems; ++i) {
          to[(i / 2 * Fields::velocity_pair + i % 2 * Fields::velocity_odd) * patches] = v[i];
        }
      }
    });
  }

  // --- what lies around ----------------------------------------------------------------------------------------------
  // Load, mass matrix, even and odd parts, corrections, store.

  /// Hats of component c at its ends, by the groups that gather no lines, or by all.
  __device__ void gather_ends(int c) const {
    constexpr int step = idle > 0 ? idle : groups;
    const int first = group - (groups - step);
    if (first < 0 || (step > columns && first >= columns)) return;
    const T* x[problems];
#pragma unroll
    for (int i = 0; i < problems; ++i) {
      const int cell = corner(c, i);
      x[i] = pointer(arguments.x + (c * block + first) * interleave, place(i % 2 == 0 ? cell : neighbour_of(c, cell)));
    }
    T v[(columns + step - 1) / step][problems];
    const auto for_columns = [&](auto&& visit) {
#pragma unroll
      for (int at = 0; at < columns; at += step) {
        if (at + step <= columns || at + first < columns) visit(at, v[at / step]);
      }
    };
    for_columns([&](int at, T(&hats)[problems]) {
#pragma unroll
      for (int i = 0; i < problems; ++i) hats[i] = load_old(x[i] + at * interleave);
    });
    const T upper = this->open_above(c);
    for_columns([&](int at, T(&hats)[problems]) {
      const int column = at + first;
      Base::butterfly({upper, sign(column % n == 1), sign(column / n == 1)}, hats);
#pragma unroll
      for (int i = 0; i < problems; ++i) surroundings(i)[(n * around + column) * patches] = hats[i];
    });
  }

  /// Coefficients of test trace and derivative, or a mode.
  struct Trace {
    T of[parts];
  };
  /// At one corner beyond the ends of the patch, of the rows of the lower and of the upper cell: row 0 is the middle
  /// hat as each of the two sees it, bubbles, n is the end hat.
  struct Beside {
    Trace row[2][n + 1];
  };
  /// For all corners beyond the ends. Bit 0: end, bit 1: the other tangential direction.
  static constexpr int corners = problems / 2;
  struct Split {
    T even[parts][n][corners];
    T odd[parts][n][corners];  // row 0 is not there
  };

  /// What a group gathers: of component c, one line (a mode in the other direction) or one column of the cells beside
  /// the ends of the patch in tangential direction t.
  struct Line {
    const RegisterSmoother& all;
    const int c;
    const int tau = all.group / Fields::lines;
    const int number = all.group % Fields::lines;
    const int t = tau == 0 ? a_of(c) : b_of(c);
    const int other = tau == 0 ? b_of(c) : a_of(c);
    // Of its mirror images.
    const T end_sign = modal ? sign((tau == 0 ? number % n : number / n) == 1) : T(1);
    const T other_sign = sign((!modal ? number : tau == 0 ? number / n : number % n) == 1);
    const T* modes[modal ? 1 : n];
    T value[modal ? 1 : n];
    T slope[modal ? 1 : n];

    __device__ Line(const RegisterSmoother& all_, int c_) : all(all_), c(c_) {
      const int first = modal || tau != 0 ? number : number * n;
#pragma unroll
      for (int j = 0; j < (modal ? 1 : n); ++j) {
        modes[j] = all.arguments.x + (c * block + first + (tau == 0 ? j : j * n)) * interleave;
        value[j] = all.arguments.trace_value[t][j];
        slope[j] = all.arguments.trace_slope[t][j];
      }
    }
    __device__ int corner_of(int i) const { return (i & 1) << t | (dim == 3 ? (i >> 1) << other : 0); }
    /// Of row r of a cell that lies, or looks as if it lay, below (side = 1) or above (-1).
    __device__ Trace trace(T side, std::uint32_t cell, int r) const {
      const int at = r * columns * interleave;
      if constexpr (modal) return {load(modes[0], cell, at)};
      Trace sum{};
#pragma unroll
      for (int j = 0; j < n; ++j) {
        const T mode = load(modes[j], cell, at);
        sum.of[0] += (j % 2 == 1 ? side * value[j] : value[j]) * mode;
        sum.of[parts - 1] += (j % 2 == 1 ? side * slope[j] : slope[j]) * mode;
      }
      return sum;
    }
    /// Of a lower cell, the upper one and the one after it, which gives its end hat.
    __device__ Beside traces(T side, std::uint32_t lower, std::uint32_t upper, std::uint32_t after) const {
      Beside beside;
      auto& row = beside.row;
      row[0][n] = trace(side, lower, 0);
      row[0][0] = row[1][0] = trace(side, upper, 0);
#pragma unroll
      for (int r = 1; r < n; ++r) {
        row[0][r] = trace(side, lower, r);
        row[1][r] = trace(side, upper, r);
      }
      row[1][n] = trace(side, after, 0);
      return beside;
    }
    __device__ Beside beyond(int i) const {
      const std::uint32_t after = all.place(Base::above_of(c, tau, i & 1, i >> 1));
      return traces(sign((i & 1) != 0), beside(i, 0), beside(i, 1), after);
    }
    /// Place of the cell beside the lower or the upper cell.
    __device__ std::uint32_t beside(int i, int half) const {
      return all.place(neighbour_of(t, corner_of(i) | half << c));
    }
    /// The middle hat beside the lower cell, which may not be that beside the upper one.
    __device__ Trace middle_hat(int i) const {
      const std::int32_t lower = Base::record_at(beside(i, 0));
      return trace(sign((i & 1) != 0), Base::offset(all.arguments.topology.neighbour[2 * c + 1][lower]), 0);
    }
    /// (A_pp - A~) x_p: the same for the patch's own modes at an end where the local matrix has more weight. To the
    /// lower face a cell's own modes look like those of a cell above, and the other way round.
    __device__ Beside own(int i) const {
      const int lower = corner_of(i);
      Beside beside = traces(sign((i & 1) == 0), all.place(lower), all.place(lower | 1 << c),
                             all.place(neighbour_of(c, lower | 1 << c)));
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const T extra = end_sign * static_cast<T>(all.extra_of(t, lower | half << c));
#pragma unroll
        for (int r = 0; r <= n; ++r) {
#pragma unroll
          for (int q = 0; q < parts; ++q) {
            beside.row[half][r].of[q] *= half == 1 && r == n ? extra * all.open_above(c) : extra;
          }
        }
      }
      return beside;
    }
    /// store(to, value) for what the rows give times the mass matrix, `to` for all corners.
    template <class F>
    __device__ void multiply_by_mass(const Beside& beside, Split& split, F&& store) const {
#pragma unroll
      for (int q = 0; q < parts; ++q) {
        T sum[n + 1];
        T difference[n + 1];
#pragma unroll
        for (int r = 0; r <= n; ++r) {
          const T upper = r == 2 && r < n ? -beside.row[1][r].of[q] : beside.row[1][r].of[q];
          sum[r] = beside.row[0][r].of[q] + upper;
          difference[r] = beside.row[0][r].of[q] - upper;
        }
#pragma unroll
        for (int r = 0; r < n; ++r) {
          store(split.even[q][r], all.times_mass(r, sum));
          if (r > 0) store(split.odd[q][r], all.times_mass(r, difference));
        }
      }
    }
    /// Butterflies that join the ends where one is a wall: the same as join_ends afterwards, without a branch.
    __device__ void butterfly(T (&v)[corners]) const {
      const int walls = all.walls(t);
      const T upper_sign = sign(walls == 0) * end_sign;
      const T odd_sign = sign((walls & 1) != 0);
#pragma unroll
      for (int i = 0; i < corners; i += 2) {
        const T lower = v[i];
        const T upper = v[i + 1];
        v[i] = lower + end_sign * upper;
        v[i + 1] = lower + upper_sign * upper;
      }
      v[1] *= odd_sign;
      if constexpr (dim == 3) {
        const T even_end = v[2];
        const T odd_end = v[3];
        v[2] = v[0] - other_sign * even_end;
        v[0] += other_sign * even_end;
        v[3] = v[1] - odd_sign * other_sign * odd_end;
        v[1] += odd_sign * other_sign * odd_end;
      }
    }
  };

  /// What the cells beside the ends of the patch in a tangential direction give to the residual of component c.
  __device__ void gather_traces(int c) const {
    if (group >= gathering) return;
    const Line line(*this, c);
    Split split;
    const auto multiply_by_mass = [&](int i, const Beside& beside) {
      line.multiply_by_mass(beside, split, [&](T(&to)[corners], T from) { to[i] = from; });
    };
    if constexpr (modal) {
      Beside beside[corners];
#pragma unroll
      for (int i = 0; i < corners; ++i) beside[i] = line.beyond(i);
      correct(line, beside);
#pragma unroll
      for (int i = 0; i < corners; ++i) multiply_by_mass(i, beside[i]);
    } else {
#pragma unroll
      for (int i = 0; i < corners; ++i) multiply_by_mass(i, line.beyond(i));
    }
    unrolled<parts, n>([&](int q, int r) {
      line.butterfly(split.even[q][r]);
      if (r > 0) line.butterfly(split.odd[q][r]);
    });
    if constexpr (!modal) correct(line, split);
    store(line, split);
  }
  /// Corrections for a few patches, of rows.
  __device__ void correct(const Line& line, Beside (&beside)[corners]) const {
    if ((batch.flags & PatchBatch::mixed_faces) != 0) {
#pragma unroll
      for (int i = 0; i < corners; ++i) beside[i].row[0][0] = line.middle_hat(i);
    }
#pragma unroll
    for (int end = 0; end < 2; ++end) {
      if ((batch.flags & PatchBatch::weaker_face << (2 * line.t + end)) == 0) continue;
#pragma unroll
      for (int i = end; i < corners; i += 2) {
        const Beside own = line.own(i);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
#pragma unroll
          for (int r = 0; r <= n; ++r) beside[i].row[half][r].of[0] += own.row[half][r].of[0];
        }
      }
    }
  }
  /// The same for what the butterflies made. One code for all corners: there is no room for more.
  __device__ void correct(const Line& line, Split& split) const {
    const auto add = [&](int i, const Beside& beside) {
      const T end_factor = sign((i & 1) != 0);
      const T lower_factor = (i >> 1) != 0 ? line.other_sign : T(1);
      const T upper_factor = (i >> 1) != 0 ? -line.other_sign : T(1);
      line.multiply_by_mass(beside, split, [&](T(&to)[corners], T from) {
        to[0] += lower_factor * from;
        to[1] += lower_factor * end_factor * from;
        to[2] += upper_factor * from;
        to[3] += upper_factor * end_factor * from;
      });
    };
    if ((batch.flags & PatchBatch::weaker_faces) != 0) {
      unsigned ends = 0;  // mostly one or none
#pragma unroll
      for (int i = 0; i < corners; ++i) {
        const int lower = line.corner_of(i);
        if (extra_of(line.t, lower) != 0 || extra_of(line.t, lower | 1 << line.c) != 0) ends |= 1U << (i & 1);
      }
      for (; ends != 0; ends &= ends - 1) {
#pragma unroll 1
        for (int i = __ffs(static_cast<int>(ends)) - 1; i < corners; i += 2) add(i, line.own(i));
      }
    }
    if ((batch.flags & PatchBatch::mixed_faces) != 0) {
#pragma unroll 1
      for (int i = 0; i < corners; ++i) {
        const Trace taken = line.trace(sign((i & 1) != 0), line.beside(i, 1), 0);
        const Trace right = line.middle_hat(i);
        Beside beside{};
#pragma unroll
        for (int q = 0; q < parts; ++q) beside.row[0][0].of[q] = right.of[q] - taken.of[q];
        add(i, beside);
      }
    }
  }
  __device__ void store(const Line& line, const Split& split) const {
    const int end_pair = (line.tau == 0 ? 1 : 2) * Fields::around_pair * patches;
    const int other_pair = (line.tau == 0 ? 2 : 1) * Fields::around_pair * patches;
    T* const to = surroundings(0) + (line.tau * parts * Fields::lines + line.number) * patches;
    unrolled<parts, n>([&](int q, int r) {
#pragma unroll
      for (int i = 0; i < corners; ++i) {
        T* const at = to + (i & 1) * end_pair + (i >> 1) * other_pair + (r * around + q * Fields::lines) * patches;
        at[0] = split.even[q][r][i];
        if (r > 0) at[Fields::around_odd * patches] = split.odd[q][r][i];
      }
    });
  }

  // --- solve ---------------------------------------------------------------------------------------------------------

  /// True if this thread's velocity of component c is even in its own direction.
  __device__ bool is_even(int c) const { return (problem >> c & 1) != 0; }
  /// visit(std::bool_constant<is_even(c)>())
  template <class F>
  __device__ void by_parity(int c, F&& visit) const {
    if (is_even(c)) {
      visit(std::true_type());
    } else {
      visit(std::false_type());
    }
  }
  static constexpr __device__ int stride_of(int a) { return a == 0 ? 1 : a == 1 ? n : n * n; }
  /// Mode i of the pressure along c, on line l. In the frame of c, if the pressure turns to it.
  static constexpr __device__ int pressure_at(int c, int i, int l) {
    if (by_turns) return i + l * n;
    return i * stride_of(c) + l % n * stride_of(a_of(c)) + (dim == 3 ? l / n * stride_of(b_of(c)) : 0);
  }
  /// The pressure in the frame of a component to that of the next, or back.
  template <bool back>
  static __device__ void rotate(T (&p)[block]) {
    T from[block];
#pragma unroll
    for (int i = 0; i < block; ++i) from[i] = p[i];
    unrolled<columns, n>(
        [&](int l, int i) { p[back ? i + l * n : l + i * columns] = from[back ? l + i * columns : i + l * n]; });
  }
  /// Where this thread keeps f of component c until it is needed again: where the velocity is, or in the cell of y that
  /// has its problem's number.
  __device__ T* stash(int c) const {
    if constexpr (stashed) return pointer(arguments.y + c * block * interleave, place(problem));
    const int parity = parity_of(c, problem);
    return velocity(c, parity) + (parity & 1) * Fields::spared * columns * patches;  // from its first row on
  }
  static constexpr int stash_stride = stashed ? interleave : patches;

  /// Subtracts from the rows of component c what the traces give; the first row may not be there.
  template <int first>
  __device__ void subtract_traces(int c, const T* from, T (&row)[n][columns]) const {
#pragma unroll
    for (int r = first; r < n; ++r) {
#pragma unroll
      for (int m = 0; m < parts * Fields::lines; ++m) {
        const int o = m % n;
        const T beside_a = from[(r * around + m) * patches];
        if constexpr (modal) {
#pragma unroll
          for (int j = 0; j < n; ++j) row[r][m - o + j] -= arguments.beside[a_of(c)][j][o] * beside_a;
        }
        if constexpr (dim == 3) {
          const T beside_b = from[(r * around + parts * Fields::lines + m) * patches];
#pragma unroll
          for (int j = 0; j < n; ++j) {
            if constexpr (modal) {
              row[r][o + j * n] -= arguments.beside[b_of(c)][j][m / n] * beside_b;
            } else {
              const T test = m < n ? arguments.value[j] : arguments.slope[j];
              row[r][o * n + j] -= test * beside_a;
              row[r][o + j * n] -= test * beside_b;
            }
          }
        }
      }
    }
  }

  /// f = A^-1 b in the eigenbasis, kept; rhs -= C f. `first`: of the velocity's rows; `functions`: of its
  /// eigenfunctions.
  template <bool even>
  __device__ void forward_velocity(int c, T (&rhs)[block]) const {
    constexpr int first = even ? 0 : 1;
    const int parity = parity_of(c, problem);
    const T* const b = velocity(c, parity);
    T row[n][columns];
#pragma unroll
    for (int r = first; r < n; ++r) {
#pragma unroll
      for (int i = 0; i < columns; ++i) row[r][i] = b[(r * columns + i) * patches];
    }
    T hats[columns]{};
    const Square fast = table(a_of(c)).eigen_o;
    const Square slow = table(b_of(c)).eigen_o;
    if (this->looks_around()) {
      const T* const from = surroundings(parity);
      subtract_traces<first>(c, from, row);
#pragma unroll
      for (int i = 0; i < columns; ++i) hats[i] = from[(n * around + i) * patches];
      transform<true>(fast.of, slow.of, hats);
    }
#pragma unroll
    for (int r = first; r < n; ++r) transform<true>(fast.of, slow.of, row[r]);
    forward_lines<even>(c, row, hats, rhs);
  }
  /// Sums of the tangential eigenvalues of lines along c.
  struct TangentialLambda {
    const RegisterSmoother& all;
    const int c;
    const Vector fast;
    const Vector slow;
    __device__ TangentialLambda(const RegisterSmoother& all_, int c_)
        : all(all_), c(c_), fast(all_.table(a_of(c_)).lambda_o), slow(all_.table(b_of(c_)).lambda_o) {}
    __device__ T operator[](int l) const {
      return all.tangential_sum(c, fast.of[l % n], dim == 3 ? slow.of[l / n] : T(0));
    }
  };
  template <bool even>
  __device__ void forward_lines(int c, const T (&row)[n][columns], const T (&hats)[columns], T (&rhs)[block]) const {
    constexpr int first = even ? 0 : 1;
    constexpr int functions = n - first;
    const TangentialLambda tangential(*this, c);
    const Table& along = table(c);
    const Square eigen = along.eigen_p;
    const Square divergence = along.divergence;
    const Square eigen_o = along.eigen_o;
    const Vector lambda_p = along.lambda_p;
    T* const f = stash(c);
#pragma unroll
    for (int l = 0; l < columns; ++l) {
      const T lambda = tangential[l];
      const T weighted = hats[l] * (lambda + arguments.alpha);
      const T flux = arguments.inverse_h[c] * hats[l];
      T u[functions > 0 ? functions : 1]{};
#pragma unroll
      for (int r = first; r < n; ++r) {
        T residual = row[r][l] - arguments.mass[0][r == 0 ? n : r] * weighted;
        if (r == 0) residual -= arguments.end_stiffness[c] * hats[l];
#pragma unroll
        for (int e = 0; e < functions; ++e) u[e] += eigen.of[r][e] * residual;
      }
#pragma unroll
      for (int e = 0; e < functions; ++e) {
        u[e] *= Base::reciprocal(this->own_lambda(c, lambda_p.of[e]) + lambda);
        f[(e * columns + l) * stash_stride] = u[e];
      }
#pragma unroll
      for (int i = 0; i < n; ++i) {
        T& to = rhs[pressure_at(c, i, l)];
        to += eigen_o.of[0][i] * flux;  // the pressure that is 1 in the lowest mode
#pragma unroll
        for (int e = 0; e < functions; ++e) to -= divergence.of[i][e] * u[e];
      }
    }
  }

  struct Solution {
    T of[n][columns];
  };
  /// f of component c.
  __device__ void fetch_solution(int c, bool even, Solution& f) const {
    const T* const from = stash(c);
#pragma unroll
    for (int e = 0; e < n; ++e) {
      if (e == n - 1 && !even) continue;
#pragma unroll
      for (int l = 0; l < columns; ++l) f.of[e][l] = from[(e * columns + l) * stash_stride];
    }
  }
  /// f + A^-1 C^T p, to modes.
  template <bool even>
  __device__ void backward_velocity(int c, const T (&p)[block], const Solution& f) const {
    constexpr int first = even ? 0 : 1;
    constexpr int functions = n - first;
    T row[n][columns];
    {
      const TangentialLambda tangential(*this, c);
      const Table& along = table(c);
      const Square eigen = along.eigen_p;
      const Square divergence = along.divergence;
      const Vector lambda_p = along.lambda_p;
#pragma unroll
      for (int l = 0; l < columns; ++l) {
        const T lambda = tangential[l];
        T u[functions > 0 ? functions : 1];
#pragma unroll
        for (int e = 0; e < functions; ++e) {
          T sum{};
#pragma unroll
          for (int i = 0; i < n; ++i) sum += divergence.of[i][e] * p[pressure_at(c, i, l)];
          u[e] = f.of[e][l] + sum * Base::reciprocal(this->own_lambda(c, lambda_p.of[e]) + lambda);
        }
#pragma unroll
        for (int r = first; r < n; ++r) {
          row[r][l] = T(0);
#pragma unroll
          for (int e = 0; e < functions; ++e) row[r][l] += eigen.of[r][e] * u[e];
        }
      }
    }
    const Square fast = table(a_of(c)).eigen_o;
    const Square slow = table(b_of(c)).eigen_o;
    T* const to = modes(c, parity_of(c, problem));
#pragma unroll
    for (int r = first; r < n; ++r) {
      transform<false>(fast.of, slow.of, row[r]);
#pragma unroll
      for (int i = 0; i < columns; ++i) to[(r * columns + i) * patches] = row[r][i];
    }
  }

  template <bool transposed>
  __device__ void transform_pressure(T (&p)[block]) const {
    const Square x = table(0).eigen_o;
    const Square y = table(1).eigen_o;
    apply_along<transposed, 1>(x.of, p);
    apply_along<transposed, n>(y.of, p);
    if constexpr (dim == 3) {
      const Square z = table(2).eigen_o;
      apply_along<transposed, n * n>(z.of, p);
    }
  }
  __device__ void put_pressure(const T (&p)[block]) const {
    T* const to = pressure(problem);
#pragma unroll
    for (int i = 0; i < block; ++i) to[i * patches] = p[i];
  }
  /// p <- S^+ p
  __device__ void solve_schur(T (&p)[block]) const {
    if constexpr (block <= largest_plain_schur) {
      this->schur().solve_in_registers(p);
    } else {
      put_pressure(p);
      __syncwarp();
      const T* const from = pressure(problem);
      this->schur().solve_tiles(pressure(problem) - patch, [](int i) { return i; });
#pragma unroll
      for (int i = 0; i < block; ++i) p[i] = from[i * patches];
    }
  }

  // --- write ---------------------------------------------------------------------------------------------------------

  /// What is there of this group's values of a component: hats on the lower end, which the patch does not change, or
  /// all that are corrected.
  static constexpr int old_values = corrects ? block : columns;
  struct Old {
    T of[(old_values + groups - 1) / groups][corrects ? problems : problems / 2];

    __device__ T lower_hat(int round, int i) const { return of[round][corrects ? 2 * i : i]; }
    __device__ T corrected(int round, int i, T factor, T solved) const {
      if constexpr (corrects) {
        return of[round][i] + factor * solved;
      } else {
        return solved;
      }
    }
  };
  __device__ void fetch_old(int c, Old& old) const {
    const Cells<const T> x(*this, arguments.x, c);
    constexpr int step = corrects ? 1 : 2;
    for_values<old_values>([&](int round, int at) {
#pragma unroll
      for (int i = 0; i < problems; i += step) {
        old.of[round][i / step] = this->old_value(x.of[i] + at * interleave);
      }
    });
  }
  __device__ void write_velocity(int c, const Old& old, T root) const {
    const Cells<T> y(*this, arguments.y, c);
    const T factor = Base::reciprocal(root);
    for_values<block>([&](int round, int at) {
      const T* const from = modes(c, 0) + (at + turn) * patches;
      const Signs signs = velocity_signs(round);
      if (at + turn < columns) {
        T v[problems / 2];
#pragma unroll
        for (int i = 0; i < problems / 2; ++i) v[i] = from[i * Fields::velocity_pair * patches];
        Base::unbutterfly({signs.of[1], signs.of[2], T(1)}, v);
#pragma unroll
        for (int i = 0; i < problems / 2; ++i) {
          const int old_round = at < columns ? round : 0;
          __stcs(y.of[2 * i] + at * interleave, old.lower_hat(old_round, i));
          __stcs(y.of[2 * i + 1] + at * interleave, old.corrected(old_round, 2 * i + 1, factor, v[i]));
        }
      } else {
        T v[problems];
#pragma unroll
        for (int i = 0; i < problems; ++i) {
          v[i] = from[(i / 2 * Fields::velocity_pair + i % 2 * Fields::velocity_odd) * patches];
        }
        Base::unbutterfly(signs.of, v);
#pragma unroll
        for (int i = 0; i < problems; ++i) {
          __stcs(y.of[i] + at * interleave, old.corrected(corrects ? round : 0, i, factor, v[i]));
        }
      }
    });
  }
  __device__ void write_pressure(const Old& old, T root) const {
    const T mean = turn == 0 ? this->old_mean_pressure() : T(0);
    const Cells<const T> x(*this, arguments.x, dim);
    const Cells<T> y(*this, arguments.y, dim);
    for_values<block>([&](int round, int at) {
      T v[problems];
#pragma unroll
      for (int i = 0; i < problems; ++i) v[i] = pressure(i)[(at + turn) * patches];
      Base::unbutterfly(pressure_signs(round).of, v);
      if (this->keeps_pressure()) {
#pragma unroll
        for (int i = 0; i < problems; ++i) v[i] += load_old(x.of[i] + at * interleave);
      }
#pragma unroll
      for (int i = 0; i < problems; ++i) {
        const T solved = at == 0 ? v[i] + mean : v[i];
        __stcs(y.of[i] + at * interleave, old.corrected(corrects ? round : 0, i, root, solved));
      }
    });
  }

  // --- all together --------------------------------------------------------------------------------------------------

  __device__ void smooth() const {
    const bool with_x = this->looks_around();
    Around cells;
    Values values;
    T p[block];
    this->find_cells(cells);
    if constexpr (staged) stage(0);
    fetch(dim, values);
    if (with_x) this->find_cells_above(cells);
    spread_pressure(values);
    if (with_x) this->keep_places(cells);
    if constexpr (!staged) fetch(0, values);
    __syncthreads();
    if constexpr (staged) {
      forward_staged(p);
      backward_in_place(p);
    } else if constexpr (stashed) {
      forward_by_turns(values, p);
      backward_by_turns(p);
    } else {
      forward_at_once(values, p);
      backward_at_once(p);
    }
    transform_pressure<false>(p);
    put_pressure(p);
    typename Base::Uncovered::Copied copied;
    Base::Uncovered::fetch(arguments, this->copied_places(), copied);
    if constexpr (stashed) {
      __syncthreads();
      write_pressure({}, T(1));
    } else {
      write_all();
    }
    Base::Uncovered::store(arguments, this->copied_places(), copied);
  }
  __device__ void gather(int c, Values& values) const {
    spread_velocity(c, values);
    if (this->looks_around()) {
      gather_ends(c);
      gather_traces(c);
    }
    __syncthreads();
  }

  /// Code for each component.
  template <class F>
  static __device__ void for_each_component(F&& visit) {
    visit(0);
    visit(1);
    if constexpr (dim == 3) visit(2);
  }
  __device__ void forward_at_once(Values& values, T (&p)[block]) const {
    for_each_component([&](int c) {
      gather(c, values);
      if (c + 1 < dim) fetch(c + 1, values);  // on its way while this component is solved
      if (c == 0) {
        take_pressure(p);
        transform_pressure<true>(p);
      }
      by_parity(c, [&]<bool even>(std::bool_constant<even>) { forward_velocity<even>(c, p); });
      if (c + 1 < dim) __syncthreads();
    });
  }
  __device__ void backward_at_once(T (&p)[block]) const {
    solve_schur(p);
    for_each_component([&](int c) { backward(c, p); });
  }
  __device__ void backward(int c, const T (&p)[block]) const {
    by_parity(c, [&]<bool even>(std::bool_constant<even>) {
      Solution f;
      fetch_solution(c, even, f);
      backward_velocity<even>(c, p, f);
    });
  }
  /// Where all components are there. Old values of all of them are on their way before the barrier, or, if they are
  /// many, those of the next one, the pressure last, while one is written.
  __device__ void write_all() const {
    const T root = this->root();
    constexpr int fields = corrects ? dim + 1 : dim;
    constexpr int ahead = by_turns ? 1 : fields;
    Old old[dim + 1];
#pragma unroll
    for (int c = 0; c < ahead; ++c) fetch_old(c, old[c]);
    __syncthreads();
#pragma unroll
    for (int c = 0; c < dim; ++c) {
      if (c + ahead < fields) fetch_old(c + ahead, old[c + ahead]);
      write_velocity(c, old[c], root);
    }
    write_pressure(old[dim], root);
  }

  /// One code for all components.
  __device__ void forward_by_turns(Values& values, T (&p)[block]) const {
    take_pressure(p);
    __syncthreads();
    transform_pressure<true>(p);
#pragma unroll 1
    for (int c = 0; c < dim; ++c) {
      gather(c, values);
      by_parity(c, [&]<bool even>(std::bool_constant<even>) { forward_velocity<even>(c, p); });
      rotate<false>(p);
      if (c + 1 == dim) break;
      fetch(c + 1, values);  // on its way while others are waited for
      __syncthreads();
    }
  }
  __device__ void backward_by_turns(T (&p)[block]) const {
    Solution f;  // on its way while others are written
    fetch_solution(dim - 1, is_even(dim - 1), f);
    solve_schur(p);
#pragma unroll 1
    for (int c = dim - 1; c >= 0; --c) {
      rotate<true>(p);
      by_parity(c, [&]<bool even>(std::bool_constant<even>) { backward_velocity<even>(c, p, f); });
      if (c > 0) fetch_solution(c - 1, is_even(c - 1), f);
      Old old{};
      fetch_old(c, old);
      __syncthreads();
      write_velocity(c, old, T(1));
    }
  }

  /// The same with a place for each component. A barrier each is for values of all cells alone.
  __device__ void forward_staged(T (&p)[block]) const {
    take_pressure(p);
    transform_pressure<true>(p);
#pragma unroll 1
    for (int c = 0; c < dim; ++c) {
      spread_staged(c);
      __syncthreads();
      if (c + 1 < dim) stage(c + 1);
      by_parity(c, [&]<bool even>(std::bool_constant<even>) { forward_velocity<even>(c, p); });
      rotate<false>(p);
    }
  }
  __device__ void backward_in_place(T (&p)[block]) const {
    solve_schur(p);
#pragma unroll 1
    for (int c = dim - 1; c >= 0; --c) {
      rotate<true>(p);
      backward(c, p);
    }
  }
};

}  // namespace solenoid::cuda
