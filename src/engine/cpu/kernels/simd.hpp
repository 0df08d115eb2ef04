#pragma once
/// \file
/// SIMD arithmetic whose lanes are cells or patches, and how the lanes reach records in memory.
/// Included by kernel instances only: everything lives in the namespace of the instruction set.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "engine/cpu/kernels/table.hpp"
#include "mesh/record.hpp"

#ifndef SOLENOID_SIMD_NAMESPACE
#error "kernel instances define SOLENOID_SIMD_NAMESPACE"
#endif

#if defined(__AVX512F__)
#include <immintrin.h>
#define SOLENOID_SIMD_BYTES 64
#elif defined(__AVX__)
#define SOLENOID_SIMD_BYTES 32
#else
#define SOLENOID_SIMD_BYTES 16
#endif

namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE {

/// Lanes of a batch: the records that lie side by side in memory, on every machine.
inline constexpr int width = interleave;

/// One value of each record of a batch: as many registers as that takes.
template <class T>
struct alignas(SOLENOID_SIMD_BYTES) Simd {
  using Register [[gnu::vector_size(SOLENOID_SIMD_BYTES)]] = T;
  using Unaligned [[gnu::vector_size(SOLENOID_SIMD_BYTES), gnu::aligned(sizeof(T)), gnu::may_alias]] = T;
  using Lane [[gnu::may_alias]] = T;  ///< of a register in memory
  /// Lanes of a register, for permutations.
  using Indices [[gnu::vector_size(SOLENOID_SIMD_BYTES)]] =
      std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  static constexpr int lanes = SOLENOID_SIMD_BYTES / sizeof(T);  ///< of a register
  static constexpr int parts = width / lanes;

  Register part[parts];

  [[gnu::always_inline]] T operator[](int lane) const { return part[lane / lanes][lane % lanes]; }
  [[gnu::always_inline]] void set(int lane, T value) { part[lane / lanes][lane % lanes] = value; }

  [[gnu::always_inline]] Simd& operator+=(const Simd& b) {
#pragma GCC unroll 8
    for (int i = 0; i < parts; ++i) part[i] += b.part[i];
    return *this;
  }
  [[gnu::always_inline]] Simd& operator-=(const Simd& b) {
#pragma GCC unroll 8
    for (int i = 0; i < parts; ++i) part[i] -= b.part[i];
    return *this;
  }
  [[gnu::always_inline]] Simd& operator*=(const Simd& b) {
#pragma GCC unroll 8
    for (int i = 0; i < parts; ++i) part[i] *= b.part[i];
    return *this;
  }
  [[gnu::always_inline]] Simd& operator/=(const Simd& b) {
#pragma GCC unroll 8
    for (int i = 0; i < parts; ++i) part[i] /= b.part[i];
    return *this;
  }
  [[gnu::always_inline]] Simd& operator*=(T b) {
#pragma GCC unroll 8
    for (int i = 0; i < parts; ++i) part[i] *= b;
    return *this;
  }
  [[gnu::always_inline]] friend Simd operator+(Simd a, const Simd& b) { return a += b; }
  [[gnu::always_inline]] friend Simd operator-(Simd a, const Simd& b) { return a -= b; }
  [[gnu::always_inline]] friend Simd operator*(Simd a, const Simd& b) { return a *= b; }
  [[gnu::always_inline]] friend Simd operator/(Simd a, const Simd& b) { return a /= b; }
  [[gnu::always_inline]] friend Simd operator*(T a, Simd b) { return b *= a; }
  [[gnu::always_inline]] friend Simd operator*(Simd a, T b) { return a *= b; }
  [[gnu::always_inline]] friend Simd operator/(Simd a, T b) { return a *= T(1) / b; }
  [[gnu::always_inline]] friend Simd operator-(Simd a) { return a *= T(-1); }
};

/// a > b ? yes : no, lane by lane
template <class T>
[[gnu::always_inline]] inline Simd<T> select_greater(const Simd<T>& a, const Simd<T>& b, const Simd<T>& yes,
                                                     const Simd<T>& no) {
  Simd<T> result;
#pragma GCC unroll 8
  for (int i = 0; i < Simd<T>::parts; ++i) result.part[i] = a.part[i] > b.part[i] ? yes.part[i] : no.part[i];
  return result;
}

template <class T>
[[gnu::always_inline]] inline Simd<T> load(const T* p) {
  using S = Simd<T>;
  S v;
#pragma GCC unroll 8
  for (int i = 0; i < S::parts; ++i) v.part[i] = *reinterpret_cast<const typename S::Unaligned*>(p + i * S::lanes);
  return v;
}
template <class T>
[[gnu::always_inline]] inline void store(T* p, const Simd<T>& v) {
  using S = Simd<T>;
#pragma GCC unroll 8
  for (int i = 0; i < S::parts; ++i) *reinterpret_cast<typename S::Unaligned*>(p + i * S::lanes) = v.part[i];
}

/// Stores whole cache lines without fetching them first; p is aligned to a register.
template <class T>
[[gnu::always_inline]] inline void stream(T* p, const Simd<T>& v) {
#if defined(__AVX512F__)
  using S = Simd<T>;
#pragma GCC unroll 8
  for (int i = 0; i < S::parts; ++i) {
    if constexpr (sizeof(T) == 4) {
      _mm512_stream_ps(p + i * S::lanes, reinterpret_cast<__m512>(v.part[i]));
    } else {
      _mm512_stream_pd(p + i * S::lanes, reinterpret_cast<__m512d>(v.part[i]));
    }
  }
#else
  store(p, v);
#endif
}

/// Rows of a symmetric matrix of `size` times x, which all rows share each load of. X: one register of lanes, or all.
template <int rows, class T, class X>
[[gnu::always_inline]] inline void multiply_rows(int size, const T* m, const X* x, X* y) {
  X sum[rows]{};
  for (int j = 0; j < size; ++j) {
    const X value = x[j];
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) sum[r] += m[j * size + r] * value;
  }
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) y[r] = sum[r];
}

/// y = M x, M symmetric of `size`; several rows at a time share each load of x.
template <class T>
inline void multiply_block(int size, const T* m, const Simd<T>* x, Simd<T>* y) {
  constexpr int rows = 9;
  int i = 0;
  for (; i + rows <= size; i += rows) multiply_rows<rows>(size, m + i, x, y + i);
  for (; i < size; ++i) multiply_rows<1>(size, m + i, x, y + i);
}

/// A set of lanes, one bit each.
using LaneSet = std::uint32_t;
inline constexpr LaneSet all_lanes = (1U << width) - 1;

/// The lanes with condition(lane).
template <class F>
[[gnu::always_inline]] inline LaneSet lanes_where(F&& condition) {
  LaneSet set = 0;
  for (int l = 0; l < width; ++l) set |= static_cast<LaneSet>(condition(l) ? 1 : 0) << l;
  return set;
}

/// v with the lanes of `set` from p; the others are not read.
template <class T>
[[gnu::always_inline]] inline void load_lanes(LaneSet set, const T* p, Simd<T>& v) {
#if defined(__AVX512F__)
  using S = Simd<T>;
#pragma GCC unroll 8
  for (int i = 0; i < S::parts; ++i) {
    typename S::Register& part = v.part[i];
    const auto mask = set >> i * S::lanes;
    if constexpr (sizeof(T) == 4) {
      part = _mm512_mask_loadu_ps(part, static_cast<__mmask16>(mask), p + i * S::lanes);
    } else {
      part = _mm512_mask_loadu_pd(part, static_cast<__mmask8>(mask), p + i * S::lanes);
    }
  }
#else
  for (int l = 0; l < width; ++l) {
    if ((set >> l & 1) != 0) v.set(l, p[l]);
  }
#endif
}
/// Writes the lanes of `set` to p; the others are not touched.
template <class T>
[[gnu::always_inline]] inline void store_lanes(LaneSet set, T* p, const Simd<T>& v) {
#if defined(__AVX512F__)
  using S = Simd<T>;
#pragma GCC unroll 8
  for (int i = 0; i < S::parts; ++i) {
    const auto mask = set >> i * S::lanes;
    if constexpr (sizeof(T) == 4) {
      _mm512_mask_storeu_ps(p + i * S::lanes, static_cast<__mmask16>(mask), v.part[i]);
    } else {
      _mm512_mask_storeu_pd(p + i * S::lanes, static_cast<__mmask8>(mask), v.part[i]);
    }
  }
#else
  for (int l = 0; l < width; ++l) {
    if ((set >> l & 1) != 0) p[l] = v[l];
  }
#endif
}

/// The lanes whose record, or block of `divisor` records, is `value`.
template <int divisor>
inline LaneSet lanes_equal(const std::int32_t* records, std::int32_t value) {
#if defined(__AVX512F__)
  constexpr int shift = std::countr_zero(static_cast<unsigned>(divisor));
  const __m512i blocks = _mm512_maskz_srai_epi32(all_lanes, _mm512_loadu_si512(records), shift);
  return _mm512_cmpeq_epi32_mask(blocks, _mm512_set1_epi32(value));
#else
  return lanes_where([&](int l) { return records[l] / divisor == value; });
#endif
}

/// The records follow each other.
inline bool in_line(const std::int32_t* records) {
#if defined(__AVX512F__)
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i expected = _mm512_add_epi32(_mm512_set1_epi32(records[0]), lane);
  return _mm512_cmpneq_epi32_mask(_mm512_loadu_si512(records), expected) == 0;
#else
  std::int32_t out_of_line = 0;
  for (int l = 0; l < width; ++l) out_of_line |= records[l] - records[0] - l;
  return out_of_line == 0;
#endif
}

/// out[lane] = table[records[lane]]
template <class S>
inline void look_up(const S* table, const std::int32_t* records, S* out) {
  if (in_line(records)) {
    std::copy_n(table + records[0], width, out);
  } else {
    for (int l = 0; l < width; ++l) out[l] = table[records[l]];
  }
}

/// Where the records of lanes lie.
inline Runs find_runs(const std::int32_t* records, std::int32_t null) {
  // Lanes of a run have the same block and the same distance between lane and place in the block.
  std::int32_t run_of[width];
  for (int l = 0; l < width; ++l) run_of[l] = records[l] / width * (4 * width) + records[l] % width - l;
  LaneSet left = lanes_where([&](int l) { return records[l] != null; });
  Runs runs{{records[0], 0}, {0, 0}};
  for (int i = 0; i < 2 && left != 0; ++i) {
    const int lane = std::countr_zero(left);
    const LaneSet lanes = left & lanes_where([&](int l) { return run_of[l] == run_of[lane]; });
    runs.record[i] = records[lane];
    runs.lanes[i] = static_cast<std::uint16_t>(lanes);
    left &= ~lanes;
  }
  return left == 0 ? runs : Runs{{records[0], Runs::none}, {0, 0}};
}

/// One record per lane, and the fastest way to reach them: a whole block of records is loaded as it is; up to two
/// *runs* of consecutive records, as neighbours along x are, take a masked load each; anything else goes lane by lane.
/// The null record stands for "nothing there": zero when read, never written.
template <int record>
class Lanes {
 public:
  Lanes() = default;
  explicit Lanes(const Runs& runs) { take(runs); }
  Lanes(const std::int32_t* records, std::int32_t null) {
    const std::int32_t first = records[0];
    if (first % width == 0 && in_line(records)) {  // most often
      kind_ = Kind::whole;
      run_[0] = {record_offset(first, record), all_lanes};
      return;
    }
    const Runs runs = find_runs(records, null);
    if (!runs.scattered()) {
      take(runs);
      return;
    }
    kind_ = Kind::scattered;
    std::copy_n(records, width, records_);
    exists_ = lanes_where([&](int l) { return records[l] != null; });
  }

  /// True if the lanes are a block of records, in order.
  [[nodiscard]] bool whole() const { return kind_ == Kind::whole; }

  /// Where value `first` of the lanes lies, value first + i at + i * interleave, i < count: in the vector itself if it
  /// can be, otherwise in `scratch`, count * interleave numbers.
  template <int count, class T>
  [[gnu::always_inline]] const T* view(const T* vector, int first, T* scratch) const {
    const T* from = vector + interleave * static_cast<std::int64_t>(first);
    if (kind_ == Kind::whole || kind_ == Kind::none) return from + run_[0].offset;
    copy(count, from, scratch);
    return scratch;
  }

  /// out[i] = value first + i of the lanes, i < count.
  template <int count, class T>
  [[gnu::always_inline]] void load_values(const T* vector, int first, Simd<T>* out) const {
    alignas(SOLENOID_SIMD_BYTES) T scratch[count * interleave];
    const T* from = view<count>(vector, first, scratch);
    for (int i = 0; i < count; ++i) out[i] = load(from + i * interleave);
  }

  /// Value first + i of the lanes in `active` = in[i], or += in[i]; i < count.
  template <bool add, class T>
  void write(int count, T* vector, int first, const Simd<T>* in, LaneSet active = all_lanes) const {
    T* to = vector + interleave * static_cast<std::int64_t>(first);
    switch (kind_) {
      case Kind::none: return;
      case Kind::whole:
        if (active != all_lanes) return write_run<add>(count, to, in, {run_[0].offset, active});
        for (int i = 0; i < count; ++i) {
          T* at = to + run_[0].offset + i * interleave;
          store(at, add ? load(at) + in[i] : in[i]);
        }
        return;
      case Kind::runs:
        for (const Run& run : run_) write_run<add>(count, to, in, {run.offset, run.lanes & active});
        return;
      case Kind::scattered: break;
    }
    for (int l = 0; l < width; ++l) {
      if ((active & exists_ & 1U << l) == 0) continue;
      T* at = to + record_offset(records_[l], record);
      for (int i = 0; i < count; ++i) at[i * interleave] = add ? at[i * interleave] + in[i][l] : in[i][l];
    }
  }

 private:
  enum class Kind : std::uint8_t { none, whole, runs, scattered };
  /// Lanes whose records lie side by side: lane l at offset + l.
  struct Run {
    std::int64_t offset;
    LaneSet lanes;
  };

  void take(const Runs& runs) {
    const bool block = runs.lanes[0] == all_lanes && runs.record[0] % width == 0;
    kind_ = runs.lanes[0] == 0 ? Kind::none : block ? Kind::whole : Kind::runs;
    for (int i = 0; i < 2; ++i) {
      const int lane = runs.lanes[i] == 0 ? 0 : std::countr_zero(runs.lanes[i]);
      run_[i] = {record_offset(runs.record[i], record) - lane, runs.lanes[i]};
    }
  }

  template <class T>
  void copy(int count, const T* from, T* out) const {
    if (kind_ == Kind::runs) {
      for (int i = 0; i < count; ++i) {
        Simd<T> v{};
        load_lanes(run_[0].lanes, from + run_[0].offset + i * interleave, v);
        load_lanes(run_[1].lanes, from + run_[1].offset + i * interleave, v);
        store(out + i * interleave, v);
      }
      return;
    }
    for (int l = 0; l < width; ++l) {
      const T* at = from + record_offset(records_[l], record);
      for (int i = 0; i < count; ++i) out[i * interleave + l] = at[i * interleave];
    }
  }

  template <bool add, class T>
  static void write_run(int count, T* to, const Simd<T>* in, const Run& run) {
    if (run.lanes == 0) return;
    for (int i = 0; i < count; ++i) {
      T* at = to + run.offset + i * interleave;
      Simd<T> v{};
      if (add) load_lanes(run.lanes, at, v);
      store_lanes(run.lanes, at, add ? v + in[i] : in[i]);
    }
  }

  Kind kind_ = Kind::none;
  Run run_[2]{};
  // if scattered:
  LaneSet exists_ = all_lanes;  // lanes with a record
  std::int32_t records_[width];
};

}  // namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE
