#pragma once
/// \file
/// The parity smoother for k = 2 in 3D: a parity problem fits into the registers of one thread.
///
/// Steps and formulas are those of parity.cuh. What differs from the smoother for any order:
///   * A thread has all lines and planes of its problem, so that between gathering and writing only f leaves it, to y
///     and back, and the right-hand side of the Schur complement, for the tensor cores' sake.
///   * A thread gathers lines of what lies around with all their rows. The mass matrix goes before the butterflies: it
///     turns the seven rows of two cells (end hats, middle hat, bubbles) into the three of the patch.
///   * Velocities that are odd in their own direction have no middle hat: a third less of everything.
///   * All components run through the same code, small enough for the instruction cache: the pressure in registers
///     turns to the frame of each. (Three copies of it take twice as long.)

#include <type_traits>

#include "engine/cuda/kernels/smoother/batch.cuh"

namespace solenoid::cuda {

/// Sizes and places of a batch's fields in shared memory: velocities of one component, and what lies around it, traces
/// and end hats, where the pressure is while nothing else is there. Fields come in pairs, even and odd in their own
/// direction; the odd ones begin with row 1.
struct QuadraticFields {
  static constexpr int n = 3;
  static constexpr int patches = 32;
  static constexpr int columns = n * n;
  static constexpr int block = n * n * n;
  static constexpr int around = 2 * 2 * n;  // traces of a row: [direction][value, derivative][other mode]
  static constexpr int velocity_pair = 2 * block - columns;
  static constexpr int velocity_odd = block - columns;  // from a row of the even to that of the odd field
  static constexpr int around_pair = (2 * n - 1) * around + 2 * columns;
  static constexpr int around_odd = (n - 1) * around + columns;

  // In numbers.
  static constexpr int around_at = 4 * velocity_pair * patches;
  static constexpr int numbers = around_at + 4 * around_pair * patches;
};

template <class T>
struct QuadraticSmoother : ParityBatch<T, 3, 2, 32, 1, QuadraticFields::numbers> {
  using Fields = QuadraticFields;
  using Base = ParityBatch<T, 3, 2, 32, 1, Fields::numbers>;
  using Base::a_of, Base::apply_along, Base::arguments, Base::b_of, Base::batch, Base::block, Base::columns,
      Base::extra_of, Base::group, Base::groups, Base::n, Base::neighbour_of, Base::parity_of, Base::patch,
      Base::patches, Base::place, Base::pointer, Base::problem, Base::problems, Base::sign, Base::transform;
  using typename Base::Arguments, typename Base::Around;
  static constexpr int dim = 3;
  static constexpr int around = Fields::around;

  static constexpr int lines = 2 * n;          // of what lies around, one for each of so many groups
  static constexpr int idle = groups - lines;  // groups that gather end hats meanwhile
  static constexpr int rounds = (block + groups - 1) / groups;

  const int turn;         // of this group where values are dealt: those come first that gather less
  unsigned mirrored = 0;  // what a mirror does to this group's values, four bits each

  __device__ QuadraticSmoother(const Arguments& arguments_, T* shared_)
      : Base(arguments_, shared_), turn((group + idle) % groups) {
#pragma unroll
    for (int round = 0; round < rounds; ++round) mirrored |= changing(round * groups + turn) << 4 * round;
  }

  // --- fields --------------------------------------------------------------------------------------------------------

  /// Row r begins at r * columns, with or without a row 0.
  __device__ T* velocity(int parity) const { return velocity_in(0, parity); }
  /// Where component c goes on its way back: by turns, so that one can be written while the next is stored.
  __device__ T* modes(int c, int parity) const { return velocity_in(c == 1 ? Fields::around_at : 0, parity); }
  __device__ T* velocity_in(int at, int parity) const {
    const int pairs = (parity >> 1) * Fields::velocity_pair + (parity & 1) * Fields::velocity_odd;
    return this->shared + at + pairs * patches + patch;
  }
  /// Row r begins at r * around; end hats are behind the rows.
  __device__ T* surroundings(int parity) const {
    const int pairs = (parity >> 1) * Fields::around_pair + (parity & 1) * Fields::around_odd;
    return this->shared + Fields::around_at + pairs * patches + patch;
  }
  /// Pressure of a problem, where nobody but its thread looked for what lies around the last component.
  __device__ T* pressure(int of_problem) const {
    const int parity = parity_of(dim - 1, of_problem);
    return surroundings(parity) + (parity & 1) * around * patches;
  }
  /// Corner i in the frame of component c as the patch numbers them.
  static __device__ int corner(int c, int i) {
    return (i & 1) * (1 << c) + (i >> 1 & 1) * (1 << a_of(c)) + (i >> 2) * (1 << b_of(c));
  }

  // --- tables --------------------------------------------------------------------------------------------------------

  struct alignas(4 * sizeof(T)) Square {
    T of[3][3];
  };
  struct alignas(4 * sizeof(T)) Vector {
    T of[3];
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
    return (i % n == 1 ? 1U : 0U) | (i / n % n == 1 ? 2U : 0U) | (i / columns == 1 ? 4U : 0U) |
           (i / columns == 2 ? 8U : 0U);
  }
  struct Signs {
    T of[3];
  };
  __device__ T sign_of(int round, int bit) const { return sign((mirrored >> (4 * round + bit) & 1) != 0); }
  __device__ Signs pressure_signs(int round) const { return {sign_of(round, 0), sign_of(round, 1), sign_of(round, 2)}; }
  __device__ Signs velocity_signs(int round) const { return {sign_of(round, 3), sign_of(round, 0), sign_of(round, 1)}; }

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
    __device__ Cells(const QuadraticSmoother& all, U* vector, int c) {
      U* const first = vector + (c * block + all.turn) * interleave;
#pragma unroll
      for (int i = 0; i < problems; ++i) of[i] = pointer(first, all.place(c == dim ? i : corner(c, i)));
    }
  };

  __device__ void fetch_pressure(Values& values) const {
    const Cells<const T> b(*this, arguments.b, dim);
    for_values<block>([&](int round, int at) {
#pragma unroll
      for (int i = 0; i < problems; ++i) values.of[round][i] = __ldcs(b.of[i] + at * interleave);
    });
  }
  __device__ void spread_pressure(Values& values) const {
    for_values<block>([&](int round, int at) {
      auto& v = values.of[round];
      Base::butterfly(pressure_signs(round).of, v);
      T* const to = this->shared + Fields::around_at + (at + turn) * patches + patch;
#pragma unroll
      for (int i = 0; i < problems; ++i) to[i * block * patches] = v[i];
    });
  }
  __device__ void take_pressure(T (&p)[block]) const {
    const T* from = this->shared + Fields::around_at + problem * block * patches + patch;
#pragma unroll
    for (int i = 0; i < block; ++i) p[i] = -from[i * patches];
  }

  /// Values of component c: of all cells, or, if they are hats, of the upper ones.
  __device__ void fetch_velocity(int c, Values& values) const {
    const Cells<const T> b(*this, arguments.b, c);
    for_values<block>([&](int round, int at) {
      auto& v = values.of[round];
#pragma unroll
      for (int i = 1; i < problems; i += 2) v[i] = __ldcs(b.of[i] + at * interleave);
      if (at + turn < columns) return;
#pragma unroll
      for (int i = 0; i < problems; i += 2) v[i] = __ldcs(b.of[i] + at * interleave);
    });
  }
  __device__ void spread_velocity(Values& values) const {
    for_values<block>([&](int round, int at) {
      auto& v = values.of[round];
      const Signs signs = velocity_signs(round);
      T* const to = velocity(0) + (at + turn) * patches;
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

  /// Hats of component c at its ends.
  __device__ void gather_ends(int c) const {
    const int first = group - lines;
    if (first < 0) return;
    const T* x[problems];
#pragma unroll
    for (int i = 0; i < problems; ++i) {
      const int cell = corner(c, i);
      x[i] = pointer(arguments.x + (c * block + first) * interleave, place(i % 2 == 0 ? cell : neighbour_of(c, cell)));
    }
    T v[(columns + idle - 1) / idle][problems];
    const auto for_columns = [&](auto&& visit) {
#pragma unroll
      for (int at = 0; at < columns; at += idle) {
        if (at + idle <= columns || at + first < columns) visit(at, v[at / idle]);
      }
    };
    for_columns([&](int at, T(&hats)[problems]) {
#pragma unroll
      for (int i = 0; i < problems; ++i) hats[i] = __ldg(x[i] + at * interleave);
    });
    const T upper = this->open_above(c);
    for_columns([&](int at, T(&hats)[problems]) {
      const int column = at + first;
      Base::butterfly({upper, sign(column % n == 1), sign(column / n == 1)}, hats);
#pragma unroll
      for (int i = 0; i < problems; ++i) surroundings(i)[(n * around + column) * patches] = hats[i];
    });
  }

  /// Coefficients of test trace and derivative.
  struct Trace {
    T of[2];
  };
  /// At one corner beyond the ends of the patch, of the rows of the lower and of the upper cell: row 0 is the middle
  /// hat as each of the two sees it, 1 and 2 are bubbles, n is the end hat.
  struct Beside {
    Trace row[2][n + 1];
  };
  /// What the cells beside the ends of the patch in a tangential direction t give to the residual of component c: of
  /// one mode in the other direction.
  __device__ void gather_traces(int c) const {
    if (group >= lines) return;
    const int tau = group / n;
    const int other_mode = group % n;
    const int t = tau == 0 ? a_of(c) : b_of(c);
    const int other = tau == 0 ? b_of(c) : a_of(c);
    const int stride = tau == 0 ? 1 : n;
    const T* x[n];
    T value[n];
    T slope[n];
#pragma unroll
    for (int j = 0; j < n; ++j) {
      x[j] = arguments.x + (c * block + other_mode * (tau == 0 ? n : 1) + j * stride) * interleave;
      value[j] = arguments.trace_value[t][j];
      slope[j] = arguments.trace_slope[t][j];
    }
    // Of row r of a cell that lies, or looks as if it lay, below (side = 1) or above (-1).
    const auto trace = [&](T side, std::uint32_t cell, int r) {
      Trace sum{};
#pragma unroll
      for (int j = 0; j < n; ++j) {
        const T mode = __ldg(pointer(x[j], cell) + r * columns * interleave);
        sum.of[0] += (j % 2 == 1 ? side * value[j] : value[j]) * mode;
        sum.of[1] += (j % 2 == 1 ? side * slope[j] : slope[j]) * mode;
      }
      return sum;
    };
    // Of a lower cell, the upper one and the one after it, which gives its end hat.
    const auto traces = [&](T side, std::uint32_t lower, std::uint32_t upper, std::uint32_t after) {
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
    };
    constexpr int corners = problems / 2;  // bit 0: end in direction t, bit 1: the other direction
    const auto corner_of = [&](int i) { return (i & 1) << t | (i >> 1) << other; };
    T even[2][n][corners];  // [value, slope][row]
    T odd[2][n][corners];   // row 0 is not there
    // store(to, value) for what the rows give times the mass matrix, `to` for all corners.
    const auto multiply_by_mass = [&](const Beside& beside, auto&& store) {
#pragma unroll
      for (int q = 0; q < 2; ++q) {
        T sum[n + 1];
        T difference[n + 1];
#pragma unroll
        for (int r = 0; r <= n; ++r) {
          const T upper = r == 2 ? -beside.row[1][r].of[q] : beside.row[1][r].of[q];
          sum[r] = beside.row[0][r].of[q] + upper;
          difference[r] = beside.row[0][r].of[q] - upper;
        }
#pragma unroll
        for (int r = 0; r < n; ++r) {
          store(even[q][r], times_mass(r, sum));
          if (r > 0) store(odd[q][r], times_mass(r, difference));
        }
      }
    };
#pragma unroll
    for (int i = 0; i < corners; ++i) {
      const std::uint32_t lower = place(neighbour_of(t, corner_of(i)));
      const std::uint32_t upper = place(neighbour_of(t, corner_of(i) | 1 << c));
      const std::uint32_t after = place(Base::above_of(c, tau, i & 1, i >> 1));
      multiply_by_mass(traces(sign((i & 1) != 0), lower, upper, after), [&](T(&to)[corners], T from) { to[i] = from; });
    }
    const T other_sign = sign(other_mode == 1);
    // Butterflies that join the ends where one is a wall: the same as join_ends afterwards, without a branch.
    const int walls = this->walls(t);
    const T upper_sign = sign(walls == 0);
    const T odd_sign = sign((walls & 1) != 0);
    const auto split = [&](T(&v)[corners]) {
#pragma unroll
      for (int i = 0; i < corners; i += 2) {
        const T lower = v[i];
        const T upper = v[i + 1];
        v[i] = lower + upper;
        v[i + 1] = lower + upper_sign * upper;
      }
      v[1] *= odd_sign;
      const T even_end = v[2];
      const T odd_end = v[3];
      v[2] = v[0] - other_sign * even_end;
      v[0] += other_sign * even_end;
      v[3] = v[1] - odd_sign * other_sign * odd_end;
      v[1] += odd_sign * other_sign * odd_end;
    };
#pragma unroll
    for (int q = 0; q < 2; ++q) {
#pragma unroll
      for (int r = 0; r < n; ++r) {
        split(even[q][r]);
        if (r > 0) split(odd[q][r]);
      }
    }
    // Corrections for a few patches go to what the butterflies made. One code for all corners: there is no room for
    // more.
    const auto correct = [&](int i, const Beside& beside) {
      const T end_factor = sign((i & 1) != 0);
      const T lower_factor = (i >> 1) != 0 ? other_sign : T(1);
      const T upper_factor = (i >> 1) != 0 ? -other_sign : T(1);
      multiply_by_mass(beside, [&](T(&to)[corners], T from) {
        to[0] += lower_factor * from;
        to[1] += lower_factor * end_factor * from;
        to[2] += upper_factor * from;
        to[3] += upper_factor * end_factor * from;
      });
    };
    if ((batch.flags & PatchBatch::weaker_faces) != 0) {
      // (A_pp - A~) x_p: the same for the patch's own modes at an end where the local matrix has more weight, mostly
      // one or none. To the lower face a cell's own modes look like those of a cell above, and the other way round.
      unsigned ends = 0;
#pragma unroll
      for (int i = 0; i < corners; ++i) {
        if (extra_of(t, corner_of(i)) != 0 || extra_of(t, corner_of(i) | 1 << c) != 0) ends |= 1U << (i & 1);
      }
      for (; ends != 0; ends &= ends - 1) {
        const int end = __ffs(static_cast<int>(ends)) - 1;
#pragma unroll 1
        for (int i = end; i < corners; i += 2) {
          const int own = corner_of(i);
          Beside beside = traces(sign(end == 0), place(own), place(own | 1 << c), place(neighbour_of(c, own | 1 << c)));
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const T extra = extra_of(t, own | half << c);
#pragma unroll
            for (int r = 0; r <= n; ++r) {
#pragma unroll
              for (int q = 0; q < 2; ++q) {
                beside.row[half][r].of[q] *= half == 1 && r == n ? extra * this->open_above(c) : extra;
              }
            }
          }
          correct(i, beside);
        }
      }
    }
    if ((batch.flags & PatchBatch::mixed_faces) != 0) {
      // The middle hat beside the lower cell may not be that beside the upper one.
#pragma unroll 1
      for (int i = 0; i < corners; ++i) {
        const T side = sign((i & 1) != 0);
        const std::int32_t lower = Base::record_at(place(neighbour_of(t, corner_of(i))));
        const Trace taken = trace(side, place(neighbour_of(t, corner_of(i) | 1 << c)), 0);
        const Trace right = trace(side, Base::offset(arguments.neighbour[2 * c + 1][lower]), 0);
        Beside beside{};
#pragma unroll
        for (int q = 0; q < 2; ++q) beside.row[0][0].of[q] = right.of[q] - taken.of[q];
        correct(i, beside);
      }
    }
    const int end_pair = (tau == 0 ? 1 : 2) * Fields::around_pair * patches;
    const int other_pair = (tau == 0 ? 2 : 1) * Fields::around_pair * patches;
    T* const to = surroundings(0) + (tau * 2 * n + other_mode) * patches;
#pragma unroll
    for (int q = 0; q < 2; ++q) {
#pragma unroll
      for (int r = 0; r < n; ++r) {
#pragma unroll
        for (int i = 0; i < corners; ++i) {
          T* const at = to + (i & 1) * end_pair + (i >> 1) * other_pair + (r * around + q * n) * patches;
          at[0] = even[q][r][i];
          if (r > 0) at[Fields::around_odd * patches] = odd[q][r][i];
        }
      }
    }
  }
  /// Row r of the mass matrix of P times rows of traces. Seen from the lower cell of the patch the middle hat is its
  /// upper hat n, the end hat its lower hat 0; bubbles do not couple.
  __device__ T times_mass(int r, const T (&w)[n + 1]) const {
    const int i = r == 0 ? n : r;
    T sum = arguments.mass[i][n] * w[0] + arguments.mass[i][0] * w[n];
#pragma unroll
    for (int j = 1; j < n; ++j) {
      if (r == 0 || j == r) sum += arguments.mass[i][j] * w[j];
    }
    return sum;
  }

  // --- solve ---------------------------------------------------------------------------------------------------------

  /// visit(std::bool_constant<even>()): if this thread's velocity of component c is even in its own direction.
  template <class F>
  __device__ void by_parity(int c, F&& visit) const {
    if ((problem >> c & 1) != 0) {
      visit(std::true_type());
    } else {
      visit(std::false_type());
    }
  }
  /// The pressure in the frame of c to that of the next component, or back. Mode i along c of line l is [i + l * n].
  template <bool back>
  static __device__ void rotate(T (&p)[block]) {
    T from[block];
#pragma unroll
    for (int i = 0; i < block; ++i) from[i] = p[i];
#pragma unroll
    for (int l = 0; l < columns; ++l) {
#pragma unroll
      for (int i = 0; i < n; ++i) p[back ? i + l * n : l + i * columns] = from[back ? l + i * columns : i + l * n];
    }
  }
  /// Where this thread keeps f of component c until it is needed again: in the cell of y that has its problem's number.
  __device__ T* stash(int c) const { return pointer(arguments.y + c * block * interleave, place(problem)); }

  /// f = A^-1 b in the eigenbasis, to y; rhs -= C f. `first`: of the velocity's rows; `functions`: of its
  /// eigenfunctions.
  template <bool even>
  __device__ void forward_velocity(int c, T (&rhs)[block]) const {
    constexpr int first = even ? 0 : 1;
    constexpr int functions = n - first;
    const bool with_x = arguments.x != nullptr;
    const int parity = parity_of(c, problem);
    const T* const b = velocity(parity);
    T row[n][columns];
#pragma unroll
    for (int r = first; r < n; ++r) {
#pragma unroll
      for (int i = 0; i < columns; ++i) row[r][i] = b[(r * columns + i) * patches];
    }
    T hats[columns];
    const Table& fast = table(a_of(c));
    const Table& slow = table(b_of(c));
    {
      const Square fast_eigen = fast.eigen_o;
      const Square slow_eigen = slow.eigen_o;
      if (with_x) {
        const T* from = surroundings(parity);
#pragma unroll
        for (int r = first; r < n; ++r) {
#pragma unroll
          for (int q = 0; q < 2; ++q) {
#pragma unroll
            for (int o = 0; o < n; ++o) {
              const T beside_a = from[(r * around + q * n + o) * patches];
              const T beside_b = from[(r * around + (2 + q) * n + o) * patches];
#pragma unroll
              for (int j = 0; j < n; ++j) {
                const T test = q == 0 ? arguments.value[j] : arguments.slope[j];
                row[r][o * n + j] -= test * beside_a;
                row[r][o + j * n] -= test * beside_b;
              }
            }
          }
        }
#pragma unroll
        for (int i = 0; i < columns; ++i) hats[i] = from[(n * around + i) * patches];
        transform<true>(fast_eigen.of, slow_eigen.of, hats);
      } else {
#pragma unroll
        for (int i = 0; i < columns; ++i) hats[i] = T(0);
      }
#pragma unroll
      for (int r = first; r < n; ++r) transform<true>(fast_eigen.of, slow_eigen.of, row[r]);
    }
    const Vector fast_lambda = fast.lambda_o;
    const Vector slow_lambda = slow.lambda_o;
    const Table& along = table(c);
    const Square eigen = along.eigen_p;
    const Square divergence = along.divergence;
    const Square eigen_o = along.eigen_o;
    const Vector lambda_p = along.lambda_p;
    T* const f = stash(c);
#pragma unroll
    for (int l = 0; l < columns; ++l) {
      const T lambda = fast_lambda.of[l % n] + slow_lambda.of[l / n];
      const T weighted = hats[l] * (lambda + arguments.alpha);
      const T flux = arguments.inverse_h[c] * hats[l];
      T u[functions]{};
#pragma unroll
      for (int r = first; r < n; ++r) {
        T residual = row[r][l] - arguments.mass[0][r == 0 ? n : r] * weighted;
        if (r == 0) residual -= arguments.end_stiffness[c] * hats[l];
#pragma unroll
        for (int e = 0; e < functions; ++e) u[e] += eigen.of[r][e] * residual;
      }
#pragma unroll
      for (int e = 0; e < functions; ++e) {
        u[e] *= Base::reciprocal(lambda_p.of[e] + lambda);
        f[(e * columns + l) * interleave] = u[e];
      }
#pragma unroll
      for (int i = 0; i < n; ++i) {
        T& to = rhs[i + l * n];
        to += eigen_o.of[0][i] * flux;  // the pressure that is 1 in the lowest mode
#pragma unroll
        for (int e = 0; e < functions; ++e) to -= divergence.of[i][e] * u[e];
      }
    }
  }

  struct Solution {
    T of[n][columns];
  };
  /// f of component c, on its way while others are written.
  __device__ void fetch_solution(int c, Solution& f) const {
    const T* const from = stash(c);
#pragma unroll
    for (int e = 0; e < n; ++e) {
      if (e == n - 1 && (problem >> c & 1) == 0) continue;  // one less if odd
#pragma unroll
      for (int l = 0; l < columns; ++l) f.of[e][l] = from[(e * columns + l) * interleave];
    }
  }
  /// f + A^-1 C^T p, to modes.
  template <bool even>
  __device__ void backward_velocity(int c, const T (&p)[block], const Solution& f) const {
    constexpr int first = even ? 0 : 1;
    constexpr int functions = n - first;
    T row[n][columns];
    const Table& fast = table(a_of(c));
    const Table& slow = table(b_of(c));
    {
      const Vector fast_lambda = fast.lambda_o;
      const Vector slow_lambda = slow.lambda_o;
      const Table& along = table(c);
      const Square eigen = along.eigen_p;
      const Square divergence = along.divergence;
      const Vector lambda_p = along.lambda_p;
#pragma unroll
      for (int l = 0; l < columns; ++l) {
        const T lambda = fast_lambda.of[l % n] + slow_lambda.of[l / n];
        T u[functions];
#pragma unroll
        for (int e = 0; e < functions; ++e) {
          T sum{};
#pragma unroll
          for (int i = 0; i < n; ++i) sum += divergence.of[i][e] * p[i + l * n];
          u[e] = f.of[e][l] + sum * Base::reciprocal(lambda_p.of[e] + lambda);
        }
#pragma unroll
        for (int r = first; r < n; ++r) {
          row[r][l] = T(0);
#pragma unroll
          for (int e = 0; e < functions; ++e) row[r][l] += eigen.of[r][e] * u[e];
        }
      }
    }
    const Square fast_eigen = fast.eigen_o;
    const Square slow_eigen = slow.eigen_o;
    T* const to = modes(c, parity_of(c, problem));
#pragma unroll
    for (int r = first; r < n; ++r) {
      transform<false>(fast_eigen.of, slow_eigen.of, row[r]);
#pragma unroll
      for (int i = 0; i < columns; ++i) to[(r * columns + i) * patches] = row[r][i];
    }
  }

  template <bool transposed>
  __device__ void transform_pressure(T (&p)[block]) const {
    const Square x = table(0).eigen_o;
    const Square y = table(1).eigen_o;
    const Square z = table(2).eigen_o;
    apply_along<transposed, 0>(x.of, p);
    apply_along<transposed, 1>(y.of, p);
    apply_along<transposed, 2>(z.of, p);
  }
  __device__ void put_pressure(const T (&p)[block]) const {
    T* const to = pressure(problem);
#pragma unroll
    for (int i = 0; i < block; ++i) to[i * patches] = p[i];
  }
  /// p <- S^+ p
  __device__ void solve_schur(T (&p)[block]) const {
    put_pressure(p);
    __syncwarp();
    const T* const from = pressure(problem);
    this->solve_schur_tiles(pressure(problem) - patch, [](int i) { return i; });
#pragma unroll
    for (int i = 0; i < block; ++i) p[i] = from[i * patches];
  }

  // --- write ---------------------------------------------------------------------------------------------------------

  /// This group's hats of a component on the lower end, which the patch does not change.
  struct Hats {
    T of[(columns + groups - 1) / groups][problems / 2];
  };
  __device__ void fetch_hats(int c, Hats& hats) const {
    const Cells<const T> x(*this, arguments.x, c);
    for_values<columns>([&](int round, int at) {
#pragma unroll
      for (int i = 0; i < problems / 2; ++i) {
        hats.of[round][i] = arguments.x != nullptr ? __ldg(x.of[2 * i] + at * interleave) : T(0);
      }
    });
  }
  __device__ void write_velocity(int c, const Hats& hats) const {
    const Cells<T> y(*this, arguments.y, c);
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
          __stcs(y.of[2 * i] + at * interleave, hats.of[at < columns ? round : 0][i]);
          __stcs(y.of[2 * i + 1] + at * interleave, v[i]);
        }
      } else {
        T v[problems];
#pragma unroll
        for (int i = 0; i < problems; ++i) {
          v[i] = from[(i / 2 * Fields::velocity_pair + i % 2 * Fields::velocity_odd) * patches];
        }
        Base::unbutterfly(signs.of, v);
#pragma unroll
        for (int i = 0; i < problems; ++i) __stcs(y.of[i] + at * interleave, v[i]);
      }
    });
  }
  __device__ void write_pressure() const {
    T mean{};
    if (turn == 0 && arguments.x != nullptr) {
      const T* const x = arguments.x + dim * block * interleave;
#pragma unroll
      for (int i = 0; i < problems; ++i) mean += __ldg(pointer(x, place(i)));
      mean *= T(1) / T(problems);
    }
    const Cells<T> y(*this, arguments.y, dim);
    for_values<block>([&](int round, int at) {
      T v[problems];
#pragma unroll
      for (int i = 0; i < problems; ++i) v[i] = pressure(i)[(at + turn) * patches];
      Base::unbutterfly(pressure_signs(round).of, v);
#pragma unroll
      for (int i = 0; i < problems; ++i) __stcs(y.of[i] + at * interleave, at == 0 ? v[i] + mean : v[i]);
    });
  }

  // --- all together --------------------------------------------------------------------------------------------------

  __device__ void smooth() const {
    const bool with_x = arguments.x != nullptr;
    Around cells;
    Values values;
    T p[block];
    this->find_cells(cells);
    fetch_pressure(values);
    if (with_x) this->find_cells_above(cells);
    spread_pressure(values);
    if (with_x) this->keep_places(cells);
    fetch_velocity(0, values);
    __syncthreads();
    take_pressure(p);
    __syncthreads();
    transform_pressure<true>(p);
#pragma unroll 1
    for (int c = 0; c < dim; ++c) {
      spread_velocity(values);
      if (with_x) {
        gather_ends(c);
        gather_traces(c);
      }
      __syncthreads();
      by_parity(c, [&]<bool even>(std::bool_constant<even>) { forward_velocity<even>(c, p); });
      rotate<false>(p);
      if (c + 1 == dim) break;
      fetch_velocity(c + 1, values);  // on its way while others are waited for
      __syncthreads();
    }
    Solution f;
    fetch_solution(dim - 1, f);
    solve_schur(p);
#pragma unroll 1
    for (int c = dim - 1; c >= 0; --c) {
      rotate<true>(p);
      by_parity(c, [&]<bool even>(std::bool_constant<even>) { backward_velocity<even>(c, p, f); });
      if (c > 0) fetch_solution(c - 1, f);
      Hats hats;
      fetch_hats(c, hats);
      __syncthreads();
      write_velocity(c, hats);
    }
    transform_pressure<false>(p);
    put_pressure(p);
    typename Base::Copied copied;
    this->fetch_copied(copied);
    __syncthreads();
    write_pressure();
    this->store_copied(copied);
  }
};

}  // namespace solenoid::cuda
