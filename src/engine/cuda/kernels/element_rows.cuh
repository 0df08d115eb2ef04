#pragma once
/// \file
/// Rows that a cell has of an operator made element by element, and where they go.
///
/// A cell has the complete rows of its bubbles and pressures, and a share of the rows of hats on both of its faces.
/// Where all rows are wanted hats are zero to begin with, and shares are added: the sum of two numbers has the same
/// bits in either order. Of the patches of a colour only the hats between two cells of a patch are wanted, and each
/// cell writes its share to its own place (Colour::root).

#include "engine/cuda/kernels/elements.hpp"
#include "engine/cuda/kernels/shape.cuh"

namespace solenoid::cuda {

/// What is to be made: A x, b - A x, or the residuals of the patches of a colour.
enum class Makes { image, residual, residual_of_patches };

/// What the kernels look up.
template <class T>
struct ElementFields {
  CellTopology topology;
  RecordBlocks blocks;
  PatchesOfColour<T> patches;
  const T* x;
  const T* b;
  T* y;

  explicit ElementFields(const ElementArguments<T>& from)
      : topology(from.topology), blocks(from.blocks), patches(from.patches), x(from.x), b(from.b), y(from.y) {}
};

/// nu_p^(1/2) of a cell's patch; 0: it is in none.
template <class T>
__device__ T root_of_patch(const PatchesOfColour<T>& patches, const CellTopology& topology, int dim,
                           std::int32_t cell) {
  const std::uint8_t hats = patches.hats[cell];
  if (hats == 0) return T(0);
  std::int32_t lower = cell;
  for (int a = 0; a < dim; ++a) {
    if (is_upper(hat_of_patch(hats, a))) lower = topology.neighbour[2 * a][lower];
  }
  return patches.root[lower];
}

/// Of a thread's cell.
template <class T, int dim, int order, Makes makes>
struct ElementRows {
  using S = Shape<dim, order>;
  static constexpr int n = S::n;
  static constexpr bool with_b = makes != Makes::image;
  static constexpr bool of_patches = makes == Makes::residual_of_patches;

  const ElementFields<T>& fields;
  const std::int32_t cell;   // the null record: there is none
  const std::int64_t place;  // of its value 0
  const std::uint8_t hats;   // hats_of_patch

  __device__ explicit ElementRows(const ElementFields<T>& fields_)
      : fields(fields_),
        cell(cell_of_thread(fields_.blocks, fields_.topology, blockIdx.x)),
        place(S::offset(cell)),
        hats(of_patches ? fields_.patches.hats[cell] : 0) {}

  __device__ bool are_wanted() const { return cell < fields.topology.cells && (!of_patches || hats != 0); }
  /// What rows of pressures are multiplied with, and those of velocities divided by. Several loads that wait for each
  /// other: for one thread of a cell.
  __device__ T find_root() const {
    return of_patches ? root_of_patch(fields.patches, fields.topology, dim, cell) : T(1);
  }

  /// Whether the lower hats in direction c are no unknowns; and the record whose lower hats are the upper ones if these
  /// are, or -1.
  __device__ bool fixes_lower(int c) const { return normal_fixed(fields.topology.face[2 * c][cell]); }
  __device__ std::int32_t taker(int c) const {
    const std::int32_t above = fields.topology.neighbour[2 * c + 1][cell];
    const bool fixed = cell >= fields.topology.cells || normal_fixed(fields.topology.face[2 * c + 1][cell]);
    return fixed || above == fields.topology.null ? -1 : above;
  }

  /// What is given of a column of component c, b, before it is needed.
  __device__ void fetch(int c, int column, T (&b)[n]) const {
    if constexpr (with_b) {
      const T* const from = fields.b + place + (c * S::block + column) * interleave;
#pragma unroll
      for (int i = 0; i < n; ++i) b[i] = __ldcs(from + i * S::columns * interleave);
    }
  }
  __device__ T fetch_pressure(int mode) const {
    return with_b ? __ldcs(fields.b + place + (dim * S::block + mode) * interleave) : T(0);
  }
  static __device__ T made(T b, T y) { return with_b ? b - y : y; }

  /// A column of component c: y[i], the hat on the upper face last. factor: 1 / root.
  __device__ void store(int c, int column, bool lower_fixed, std::int32_t takes, T factor, const T (&b)[n],
                        const T (&y)[n + 1]) const {
    const int at = (c * S::block + column) * interleave;
    T* const to = fields.y + place + at;
#pragma unroll
    for (int i = 1; i < n; ++i) __stcs(to + i * S::columns * interleave, factor * made(b[i], y[i]));
    const std::int64_t above = S::offset(takes) + at;
    if constexpr (of_patches) {
      const HatOfPatch what = hat_of_patch(hats, c);
      if (what == HatOfPatch::share) {
        __stcs(to, -(factor * y[n]));
        return;
      }
      const T lower = factor * made(b[0], y[0]);
      if (what == HatOfPatch::joined) {
        atomicAdd(to, lower);
      } else {
        __stcs(to, lower);
      }
      if (what == HatOfPatch::open) {
        atomicAdd(fields.y + above, -(factor * y[n]));
      } else if (takes >= fields.topology.cells) {
        __stcs(fields.y + above, factor * made(fields.b[above], y[n]));
      }
    } else {
      if (!lower_fixed) atomicAdd(to, made(b[0], y[0]));
      if (takes >= 0) atomicAdd(fields.y + above, with_b ? -y[n] : y[n]);
    }
  }
  /// Row `mode` of the pressure.
  __device__ void store_pressure(int mode, T root, T b, T y) const {
    __stcs(fields.y + place + (dim * S::block + mode) * interleave, root * made(b, y));
  }
};

/// Hats, before cells add their shares: zero, or what b has of those in hat-only records. A thread for each record and
/// value of a row.
template <class T, int dim, int order>
__global__ void begin_hats(const __grid_constant__ ElementFields<T> fields) {
  using S = Shape<dim, order>;
  const CellTopology& topology = fields.topology;
  const std::int64_t row = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / interleave;
  const auto record = static_cast<std::int32_t>(row / S::columns * interleave + threadIdx.x % interleave);
  const auto column = static_cast<int>(row % S::columns);
  wait_for_earlier_kernels();
  if (record >= topology.records) return;
  if (record < topology.cells) {
#pragma unroll
    for (int c = 0; c < dim; ++c) fields.y[S::offset(record) + (c * S::block + column) * interleave] = T(0);
    return;
  }
  const int c = direction_of_hats(topology, record);
  const std::int64_t at = S::offset(record) + (c * S::block + column) * interleave;
  const bool fixed = normal_fixed(topology.face[2 * c + 1][topology.neighbour[2 * c][record]]);
  fields.y[at] = fixed || fields.b == nullptr ? T(0) : fields.b[at];
}

/// start.operator()<makes>() for what is to be made, once hats are zero.
template <class T, int dim, int order, class Start>
void apply_elements(const ElementArguments<T>& arguments, Stream stream, const Start& start) {
  const bool of_patches = arguments.patches.root != nullptr;
  if (!of_patches || arguments.patches.joined) {
    constexpr int threads = 128;
    const std::int64_t hats = whole_blocks(arguments.topology.records) * Shape<dim, order>::columns;
    launch("hats of the operator", begin_hats<T, dim, order>, blocks_for(hats, std::int64_t{threads}), threads, 0,
           stream, ElementFields<T>(arguments));
  }
  if (of_patches) {
    start.template operator()<Makes::residual_of_patches>();
  } else if (arguments.b != nullptr) {
    start.template operator()<Makes::residual>();
  } else {
    start.template operator()<Makes::image>();
  }
}

}  // namespace solenoid::cuda
