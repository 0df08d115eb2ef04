#pragma once
/// \file
/// Patches by classes of parity (kernels/halo_smoother.hpp): their arrays, how these belong to cells, and a place to
/// wait.

#include "engine/cpu/kernels/blocks.hpp"

namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE {

/// Right-hand sides of patches, then, where their local problem splits, new values. Of the old pressure sums and
/// differences, not halves of them. Of hats on the ends the right-hand side where they are unknowns. R: a
/// register of lanes.
template <class R, int dim, int order>
struct HaloFields {
  static constexpr int n = order + 1;
  static constexpr int classes = 1 << dim;

  R velocity[dim][classes][power(n, dim)];
  R pressure[classes][power(n, dim)];
  R old_pressure[classes][power(n, dim)];
  R hats[dim][classes][power(n, dim - 1)];
};

/// What is kept of the patches of a local problem until there are enough to fill what it is solved in.
template <class T, int dim, int order>
class WaitingPatches {
 public:
  using V = Simd<T>;
  using R = typename V::Register;
  using Fields = HaloFields<R, dim, order>;

  void clear() { count_ = 0; }
  [[nodiscard]] int count() const { return count_; }

  /// Patches `lanes` of a register. Fewer than `width` wait before.
  void add(LaneSet lanes, const std::int32_t* lower, const Fields& fields) {
    typename V::Indices at{};
    int many = 0;
    for (; lanes != 0; lanes &= lanes - 1) {
      const int lane = std::countr_zero(lanes);
      at[many] = lane;
      lower_[count_ + many++] = lower[lane];
    }
    const R* const from = reinterpret_cast<const R*>(&fields);
    for (int i = 0; i < size; ++i) {
      *reinterpret_cast<typename V::Unaligned*>(fields_[i].lane + count_) = __builtin_shuffle(from[i], at);
    }
    count_ += many;
  }
  /// Takes the last of them away, `most` at most, and returns how many. Their places are [count(), count() + most).
  int take(int most) {
    const int many = std::min(most, count_);
    count_ -= many;
    return many;
  }
  /// Lower cells of patches that were taken, `most` records: null behind the last one.
  void lower_cells(int many, int most, std::int32_t null, std::int32_t* lower) const {
    std::fill(std::copy_n(lower_ + count_, many, lower), lower + most, null);
  }
  /// Register `part` of what was taken.
  void fields(int part, Fields& fields) const {
    R* const to = reinterpret_cast<R*>(&fields);
    const int first = count_ + part * V::lanes;
    for (int i = 0; i < size; ++i) to[i] = *reinterpret_cast<const typename V::Unaligned*>(fields_[i].lane + first);
  }

 private:
  static constexpr int size = sizeof(Fields) / sizeof(R);
  struct Lanes {
    T lane[2 * width];
  };

  int count_;
  std::int32_t lower_[2 * width];
  Lanes fields_[size];
};

/// Bits 1 and 2 (0 to 2 of a pressure): directions in which the mirror image of a value has the other sign. There sums
/// and differences change places.
template <int n>
constexpr int flip_of_column(int column) {
  return (column % n % 2) << 1 | (column / n % 2) << 2;
}
template <int n>
constexpr int flip_of_pressure(int value) {
  return value % n % 2 | (value / n % n % 2) << 1 | (value / (n * n) % 2) << 2;
}

/// Sums and differences in all directions, or (`upper`) of upper cells in the direction of bit 0, odd places, in the
/// others.
template <int dim, bool upper = false, class R>
[[gnu::always_inline]] inline void butterfly(R (&v)[1 << dim]) {
  constexpr int first = upper ? 1 : 0;
#pragma GCC unroll 3
  for (int d = first; d < dim; ++d) {
#pragma GCC unroll 8
    for (int i = first; i < 1 << dim; i += 1 + first) {
      if ((i >> d & 1) != 0) continue;
      const R lower_value = v[i];
      const R upper_value = v[i | 1 << d];
      v[i] = lower_value + upper_value;
      v[i | 1 << d] = lower_value - upper_value;
    }
  }
}

/// From the frame of component c (bit 0: c, bit 1: c + 1, bit 2: c + 2) to directions.
template <int dim>
constexpr int to_directions(int bits, int c) {
  return (bits << c | bits >> (dim - c)) & ((1 << dim) - 1);
}

/// Cells of the patches with the lower cells `lower`.
template <int dim>
inline void find_patch_cells(const CellTopology& topology, const std::int32_t* lower,
                             std::int32_t (&cells)[1 << dim][width]) {
  std::copy_n(lower, width, cells[0]);
  for (int bits = 1; bits < 1 << dim; ++bits) {
    const int a = bits >= 4 ? 2 : bits >= 2 ? 1 : 0;
    look_up(topology.neighbour[2 * a + 1], cells[bits - (1 << a)], cells[bits]);
  }
}

/// All PatchPlaces of a batch.
template <int dim>
void find_patch_places(const CellTopology& topology, const PatchLanes& batch, LanePlaces* places) {
  constexpr int classes = 1 << dim;
  const std::int32_t base = batch.lower[0] / width;
  std::int32_t cells[classes][width];
  find_patch_cells<dim>(topology, batch.lower, cells);
  for (int bits = 0; bits < classes; ++bits) {
    places[PatchPlaces::own(bits)] = find_places(cells[bits], topology.null, base);
    for (int t = 0; t < dim; ++t) {
      std::int32_t records[width];
      look_up(topology.neighbour[2 * t + (bits >> t & 1)], cells[bits], records);
      places[PatchPlaces::beyond(dim, t, bits)] = find_places(records, topology.null, base);
      for (int tau = 0; tau < dim - 1; ++tau) {
        const int c = (t - 1 - tau + dim) % dim;
        if ((bits >> c & 1) == 0) continue;
        std::int32_t upper[width];
        look_up(topology.neighbour[2 * c + 1], records, upper);
        places[PatchPlaces::above(dim, c, tau, bits)] = find_places(upper, topology.null, base);
      }
    }
  }
}

}  // namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE
