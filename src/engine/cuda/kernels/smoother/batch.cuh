#pragma once
/// \file
/// What the kernels of the parity smoother (parity.cuh) share: a batch of patches, where their cells and the cells
/// around them lie, univariate tables, sums and differences of the cells of a patch.

#include "engine/cuda/kernels/shape.cuh"
#include "engine/cuda/kernels/smoother/schur.cuh"
#include "engine/cuda/kernels/smoother/uncovered.cuh"

namespace solenoid::cuda {

/// `corrects`: b is a residual between the scalings of patches, and what is solved for a correction of x
/// (Colour::root).
///
/// Shared memory of a team: `field_numbers` numbers of whoever works on the batch, univariate tables, places of cells,
/// extra weights, places of records that no patch covers.
template <class T, int dim, int order, int patches_, int teams_, int field_numbers, bool corrects>
struct ParityBatch : Places<record_size(dim, order)> {
  using Addresses = Places<record_size(dim, order)>;
  using Addresses::offset, Addresses::pointer, Addresses::record_at;
  static constexpr int n = order + 1;
  using Real = T;
  static constexpr int patches = patches_;
  static constexpr int teams = teams_;
  static constexpr int problems = 1 << dim;
  static constexpr int workers = 32 / patches;
  static constexpr int threads = 32 * problems;  // of a team
  static constexpr int block_threads = teams * threads;
  static constexpr int groups = threads / patches;  // of threads with one thread for each patch
  static constexpr int columns = power(n, dim - 1);
  static constexpr int others = power(n, dim - 2);
  static constexpr int block = power(n, dim);
  using Arguments = ParityParameters<T, dim, order>;
  static constexpr int copied_records = teams == 1 ? patches : 32;  // at a time, of those that no patch covers
  using Uncovered = UncoveredRecords<T, dim, order, block_threads, copied_records>;
  static constexpr int table_size = parity_table_size(n);

  // Slots of cells: those of the patch, their neighbours [direction][corner], and the cells above neighbours
  // [component][tangential direction][end][other], whose hats are the upper hats of the neighbours.
  static constexpr int neighbour_slot = problems;
  static constexpr int above_slot = neighbour_slot + dim * problems;
  static constexpr int above_count = (dim - 1) * problems / 2;  // of one component
  static constexpr int slots = above_slot + dim * above_count;

  // In numbers of type T; places and extra weights behind.
  static constexpr int tables_at = field_numbers;
  static constexpr int table_numbers = dim * parity_weights * 2 * table_size;
  static constexpr int numbers = tables_at + table_numbers;
  static constexpr int extra_at = numbers * static_cast<int>(sizeof(T)) + slots * patches * 4;  // in bytes
  static constexpr int copied_at = (extra_at + dim * problems * patches + 3) / 4 * 4;
  static constexpr int copied_bytes = teams == 1 ? Uncovered::shared_bytes : 0;
  static constexpr int team_bytes = (copied_at + copied_bytes + 15) / 16 * 16;
  static constexpr int team_numbers = team_bytes / static_cast<int>(sizeof(T));
  static constexpr int shared_bytes = teams * team_bytes;

  const Arguments& arguments;
  const PatchBatch batch;
  const int team;     // of this warp
  T* const shared;    // this team's
  const int patch;    // lane's patch
  const int worker;   // which of the lanes of this patch in the warp
  const int problem;  // of this warp
  const int group;    // which of the threads of this patch
  const ParityPatch& entry;
  const std::int32_t kind;
  const T patch_reaction;  // of corrections

  __device__ ParityBatch(const Arguments& arguments_, T* shared_)
      : arguments(arguments_),
        batch(arguments_.batches[arguments_.block()]),
        team(teams == 1 ? 0 : __shfl_sync(~0U, threadIdx.x / threads, 0)),
        shared(shared_ + team * team_numbers),
        patch(threadIdx.x % patches),
        worker(threadIdx.x % 32 / patches),
        problem(__shfl_sync(~0U, threadIdx.x % threads / 32, 0)),
        group(problem * workers + worker),
        entry(arguments_.patches[batch.begin + min(patch, batch.count - 1)]),
        kind(entry.kind),
        patch_reaction(corrects && arguments.problem != nullptr ? arguments.reaction_of_problem[schur_number()]
                                                                : T(1)) {}

  // --- addresses -----------------------------------------------------------------------------------------------------

  static __device__ int a_of(int c) { return c + 1 < dim ? c + 1 : c + 1 - dim; }
  static __device__ int b_of(int c) { return c + 2 < dim ? c + 2 : c + 2 - dim; }
  /// From the frame of component c (bit 0: c, bit 1: a, bit 2: b) to that of the patch (bit d: direction d).
  static __device__ int to_patch(int bits, int c) { return (bits << c | bits >> (dim - c)) & (problems - 1); }

  /// A problem's bits in the frame of component c, with the parity of the velocity.
  static constexpr __device__ int parity_of(int c, int problem) {
    return ((problem >> c | problem << (dim - c)) & (problems - 1)) ^ 1;
  }

  /// What Uncovered keeps of a batch.
  __device__ std::uint32_t* copied_places() const {
    return reinterpret_cast<std::uint32_t*>(reinterpret_cast<unsigned char*>(shared) + copied_at);
  }
  __device__ SchurBlocks<ParityBatch> schur() const { return {*this}; }
  /// Place of value 0 of the cell in a slot.
  __device__ std::uint32_t& place(int slot) const {
    return reinterpret_cast<std::uint32_t*>(shared + numbers)[slot * patches + patch];
  }
  /// Weight of the local matrix at the end of the patch less that of the face of the cell there; 0 instead of 1 where
  /// the other end is a wall (find_cells).
  __device__ std::int8_t& extra_of(int t, int corner) const {
    return reinterpret_cast<std::int8_t*>(shared)[extra_at + (t * problems + corner) * patches + patch];
  }
  static __device__ int neighbour_of(int t, int corner) { return neighbour_slot + t * problems + corner; }
  static __device__ int above_of(int c, int tau, int end, int other) {
    return above_slot + c * above_count + (tau * 2 + end) * (problems / 4) + other;
  }
  /// Tables of direction d for this lane's patch and this warp's problem.
  __device__ const T* tables(int d) const { return tables(d, problem); }
  __device__ const T* tables(int d, int of_problem) const {
    const int weight = kind >> ParityPatch::weight_bits * d & 3;
    return shared + tables_at + ((d * parity_weights + weight) * 2 + (of_problem >> d & 1)) * table_size;
  }
  static constexpr int table_p = parity_matrix_size(n);
  static constexpr int table_divergence = 2 * table_p;
  static constexpr int table_lambda_o = 3 * table_p;
  static constexpr int table_lambda_p = table_lambda_o + parity_vector_size(n);
  /// Part of a table, four numbers at a time.
  template <int size>
  static __device__ void load_table(const T* from, T (&to)[size]) {
    if constexpr (n < 3) {
#pragma unroll
      for (int i = 0; i < size; ++i) to[i] = from[i];
    } else {
      struct alignas(16) Four {
        T of[4];
      };
#pragma unroll
      for (int i = 0; i < size; i += 4) {
        const Four four = *reinterpret_cast<const Four*>(from + i);
#pragma unroll
        for (int k = 0; k < 4 && i + k < size; ++k) to[i + k] = four.of[k];
      }
    }
  }
  template <bool transposed>
  static __device__ void transform(const T (&fast)[n][n], const T (&slow)[n][n], T (&x)[columns]) {
    apply_along<transposed, 1>(fast, x);
    if constexpr (dim == 3) apply_along<transposed, n>(slow, x);
  }
  static __device__ T reciprocal(T value) {
    if constexpr (sizeof(T) == 4) {
      float result;
      asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value));
      return result;
    } else {
      return T(1) / value;
    }
  }
  static __device__ T sign(bool minus) { return minus ? T(-1) : T(1); }

  /// Even and odd parts in the direction of every bit; signs[d]: of the mirror image of the mode in that of bit d.
  template <int size>
  static __device__ void butterfly(const T (&signs)[3], T (&v)[size]) {
#pragma unroll
    for (int d = 0; 1 << d < size; ++d) {
#pragma unroll
      for (int i = 0; i < size; ++i) {
        if ((i >> d & 1) != 0) continue;
        const T lower = v[i];
        const T upper = v[i | 1 << d];
        v[i] = lower + signs[d] * upper;
        v[i | 1 << d] = lower - signs[d] * upper;
      }
    }
  }
  /// Back to the cells of the patch.
  template <int size>
  static __device__ void unbutterfly(const T (&signs)[3], T (&v)[size]) {
    const T ones[3]{T(1), T(1), T(1)};
    butterfly(ones, v);
#pragma unroll
    for (int i = 1; i < size; ++i) {
      T factor = T(1);
#pragma unroll
      for (int d = 0; 1 << d < size; ++d) factor = (i >> d & 1) != 0 ? factor * signs[d] : factor;
      v[i] *= factor;
    }
  }

  /// visit(first, g) for this group's share of `count` items: item first + g. `before`: items that were dealt before,
  /// so that the next group in turn begins.
  template <int count, int before = 0, class F>
  __device__ void for_items(F&& visit) const {
    const int g = before == 0 ? group : (group + groups - before % groups) % groups;
#pragma unroll
    for (int first = 0; first < count; first += groups) {
      if (first + groups <= count || first + g < count) visit(first, g);
    }
  }

  /// Bits of this lane's patch: its lower, its upper end in direction t is a wall, and the other one is not.
  __device__ int walls(int t) const { return kind >> (ParityPatch::wall_shift + 2 * t) & 3; }
  /// Of hats on the upper end in direction c, which are not there at a wall.
  __device__ T open_above(int c) const { return (walls(c) & 2) != 0 ? T(0) : T(1); }
  /// What lies beyond the ends of a direction (`bit`) is all of one end where the other one is a wall (find_cells):
  /// then its odd parts are the even ones with the sign of that end.
  template <int bit, int size>
  static __device__ void join_ends(int walls, T (&v)[size]) {
#pragma unroll
    for (int i = 0; i < size; ++i) {
      if ((i >> bit & 1) == 0) v[i | 1 << bit] = sign(walls == 1) * v[i];
    }
  }

  /// Row r of the mass matrix of P times rows of what lies around. Seen from the lower cell of the patch the middle hat
  /// is its upper hat n, the end hat its lower hat 0.
  __device__ T times_mass(int r, const T (&w)[n + 1]) const {
    const int i = r == 0 ? n : r;
    T sum = arguments.mass[i][n] * w[0] + arguments.mass[i][0] * w[n];
#pragma unroll
    for (int j = 1; j < n; ++j) {
      if (mass_couples(n, i, j)) sum += arguments.mass[i][j] * w[j];
    }
    return sum;
  }

  /// Where the pressure has the mode of a velocity's value i of component c, in numbers of a cell.
  static __device__ int pressure_at(int c, int i) {
    const auto stride = [](int a) { return a == 0 ? 1 : a == 1 ? n : n * n; };
    return i / columns * stride(c) + i % n * stride(a_of(c)) + (dim == 3 ? i % columns / n * stride(b_of(c)) : 0);
  }
  /// B^T p of the old pressure, added to values i of component c of b. v and p in the frame of c; p: where the pressure
  /// of the cells begins. Derivatives of bubbles are the modes of the pressure; the middle hat, which the upper cells
  /// have, sees the lowest of both cells.
  __device__ void add_old_gradient(int c, int i, const T* const (&p)[problems], T (&v)[problems]) const {
    const int at = pressure_at(c, i) * interleave;
    const T factor = arguments.inverse_h[c];
#pragma unroll
    for (int lower = 0; lower < problems; lower += 2) {
      const T below = factor * load_old(p[lower] + at);
      const T above = factor * load_old(p[lower + 1] + at);
      if (i >= columns) v[lower] += below;
      v[lower + 1] += i < columns ? below - above : above;
    }
  }
  __device__ std::int32_t schur_number() const {
    if constexpr (corrects) {
      if (arguments.problem != nullptr) return arguments.problem[entry.cells[0]];
    }
    return kind >> ParityPatch::schur_shift;
  }
  /// What lies around the patch is part of its right-hand side.
  __device__ bool looks_around() const { return !corrects && arguments.x != nullptr; }
  __device__ bool keeps_pressure() const { return !corrects && arguments.keeps_pressure; }
  /// By which corrections of velocities are divided and those of pressures multiplied. To be asked for long before.
  __device__ T root() const { return corrects ? __ldg(arguments.root + entry.cells[0]) : T(1); }
  /// lambda of eigenfunctions of component c: that of P in direction c, and the sum of those in the others.
  __device__ T own_lambda(int c, T lambda) const {
    return corrects ? arguments.eigenvalue_factor[c][0] * lambda : lambda;
  }
  __device__ T tangential_sum(int c, T fast, T slow) const {
    if constexpr (corrects) {
      const T(&factor)[3] = arguments.eigenvalue_factor[c];
      return factor[1] * fast + factor[2] * slow + arguments.reaction[c] * patch_reaction;
    } else {
      return fast + slow;
    }
  }
  /// What is at that place of x.
  __device__ T old_value(const T* x) const { return arguments.x != nullptr ? load_old(x) : T(0); }

  /// The mean of the old pressure, where it is not kept.
  __device__ T old_mean_pressure() const {
    if (!looks_around() || arguments.keeps_pressure) return T(0);
    T sum{};
#pragma unroll
    for (int i = 0; i < problems; ++i) sum += load_old(pointer(arguments.x + dim * block * interleave, place(i)));
    return sum * (T(1) / T(problems));
  }

  // --- places and tables ---------------------------------------------------------------------------------------------

  /// Cells around one corner of the patch, on their way while b is gathered.
  static constexpr int direction_step = groups / problems;
  struct Around {
    std::int32_t beside[(dim + direction_step - 1) / direction_step];
    std::int32_t above[(dim + direction_step - 1) / direction_step][dim - 1];
  };
  /// visit(i, t) for this group's directions.
  template <class F>
  __device__ void for_directions(F&& visit) const {
#pragma unroll
    for (int i = 0; i * direction_step < dim; ++i) {
      const int t = direction_step == 1 ? i : i * direction_step + group / problems;
      if (t < dim) visit(i, t);
    }
  }

  /// Where the patch ends at a wall, and not on the other side, its local matrix has the wall's weight there too: 1
  /// more than the face. What that takes from the residual is what the patch's own modes at that other end would give
  /// if they were beyond the wall. So they are looked for there.
  __device__ void find_cells(Around& around) const {
    const int corner = group % problems;
    std::int32_t cell = entry.cells[corner >> 1];
    if ((corner & 1) != 0) cell = arguments.topology.neighbour[1][cell];
    place(corner) = offset(cell);
    if (looks_around()) {
      for_directions([&](int i, int t) {
        const int end = corner >> t & 1;
        around.beside[i] = arguments.topology.neighbour[2 * t + (end ^ (walls(t) >> end & 1))][cell];
        if ((batch.flags & PatchBatch::weaker_faces) != 0) {
          const int weight = kind >> ParityPatch::weight_bits * t & 3;
          extra_of(t, corner) = walls(t) != 0 ? 0 : weight - face_weight(arguments.topology.face[2 * t + end][cell]);
        }
      });
    }
    for (int i = threadIdx.x % threads; i < table_numbers; i += threads) shared[tables_at + i] = arguments.tables[i];
    if constexpr (teams == 1) Uncovered::find(arguments, batch, copied_places());
    if constexpr (teams > 1) schur().prefetch();
    arguments.wait(teams == 1 && !arguments.followed);
    __syncthreads();
  }
  /// visit(tau, c) for the components that see direction t as tangential and whose hats lie above the cell beside.
  template <class F>
  __device__ void for_components(int t, F&& visit) const {
#pragma unroll
    for (int tau = 0; tau < dim - 1; ++tau) {
      const int c = t - 1 - tau < 0 ? t - 1 - tau + dim : t - 1 - tau;
      if ((group >> c & 1) != 0) visit(tau, c);
    }
  }
  __device__ void find_cells_above(Around& around) const {
    for_directions([&](int i, int t) {
      for_components(
          t, [&](int tau, int c) { around.above[i][tau] = arguments.topology.neighbour[2 * c + 1][around.beside[i]]; });
    });
  }
  __device__ void keep_places(const Around& around) const {
    const int corner = group % problems;
    for_directions([&](int i, int t) {
      place(neighbour_of(t, corner)) = offset(around.beside[i]);
      for_components(t, [&](int tau, int c) {
        const int o = tau == 0 ? b_of(c) : a_of(c);
        const int other = dim == 3 ? corner >> o & 1 : 0;
        place(above_of(c, tau, corner >> t & 1, other)) = offset(around.above[i][tau]);
      });
    });
  }
};

}  // namespace solenoid::cuda
