#pragma once
/// \file
/// How the smoother's lanes reach records in memory: whole blocks, two blocks, or lane by lane.

#include "engine/cpu/kernels/simd.hpp"

namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE {

/// Where records lie, counted from block `base`.
inline LanePlaces find_places(const std::int32_t* records, std::int32_t null, std::int32_t base) {
  using Kind = LanePlaces::Kind;
  LanePlaces places;
  if (records[0] % width == 0 && in_line(records)) {  // most often
    places.block[0] = places.block[1] = records[0] / width - base;
    places.exists = all_lanes;
    return places;
  }
  const LaneSet exists = all_lanes & ~lanes_equal<1>(records, null);
  places.exists = exists;
  places.kind = Kind::pair;
  const auto in_block = [&](std::int32_t block) { return exists & lanes_equal<width>(records, block); };
  const auto first_of = [&](LaneSet lanes) { return records[std::countr_zero(lanes)] / width; };
  const std::int32_t a = exists == 0 ? base : first_of(exists);
  const LaneSet in_a = in_block(a);
  const LaneSet left = exists & ~in_a;
  const std::int32_t b = left == 0 ? a : first_of(left);
  if ((left & ~in_block(b)) != 0) {
    places.kind = Kind::scattered;
    for (int l = 0; l < width; ++l) {
      if ((exists >> l & 1) != 0) places.place[l] = records[l] - base * width;
    }
    return places;
  }
  places.block[0] = a - base;
  places.block[1] = b - base;
  for (int l = 0; l < width; ++l) {
    if ((exists >> l & 1) != 0) places.place[l] = records[l] % width + (records[l] / width == a ? 0 : width);
  }
  return places;
}

/// One record per lane. Patches that follow each other along x have their cells in one block of records, in order
/// (*whole*), or in two (a *pair*): those beside them in x, and in short rows those of the next row. A pair takes two
/// loads and a permutation; anything else is copied lane by lane. The null record stands for "nothing there": zero when
/// read, never written.
template <int record>
class Blocks {
 public:
  /// Pairs are loaded and stored as they lie, where there are permutations of two registers.
  static constexpr bool permutes =
#if defined(__AVX512F__)
      true;
#else
      false;
#endif

  Blocks() = default;
  /// `places` stay where they are.
  Blocks(const LanePlaces& places, std::int32_t base) : places_(&places), base_(base) {}

  [[nodiscard]] bool pair() const { return places_->kind == Kind::pair; }
  /// First record of the block that lane l lies in.
  [[nodiscard]] std::int64_t block_of(int l) const { return record_of(l) / width * width; }

  /// Values of the lanes, to be loaded one by one.
  template <class T>
  struct Reader {
    const T* block[2];
    const std::int32_t* place;  // of lanes among those of both blocks
    LaneSet exists;
    /// Value i of a register of lanes that begins with `lane`.
    template <bool pairs>
    [[gnu::always_inline]] typename Simd<T>::Register get(int i, int lane) const {
#if defined(__AVX512F__)
      if constexpr (pairs) return of_pair(i, lane);
#endif
      return *reinterpret_cast<const typename Simd<T>::Unaligned*>(block[0] + i * interleave + lane);
    }
#if defined(__AVX512F__)
    [[gnu::always_inline]] typename Simd<T>::Register of_pair(int i, int lane) const {
      using R = typename Simd<T>::Register;
      const T* const a = block[0] + i * interleave;
      const T* const b = block[1] + i * interleave;
      if constexpr (sizeof(T) == 4) {
        return reinterpret_cast<R>(_mm512_maskz_permutex2var_ps(static_cast<__mmask16>(exists), _mm512_loadu_ps(a),
                                                                _mm512_load_si512(place), _mm512_loadu_ps(b)));
      } else {
        const __m512i at = widened(place + lane);
        const __m512d of_a = _mm512_permutex2var_pd(_mm512_loadu_pd(a), at, _mm512_loadu_pd(a + 8));
        const __m512d of_b = _mm512_permutex2var_pd(_mm512_loadu_pd(b), at, _mm512_loadu_pd(b + 8));
        const __mmask8 in_b = _mm512_test_epi64_mask(at, _mm512_set1_epi64(width));
        return reinterpret_cast<R>(
            _mm512_maskz_mov_pd(static_cast<__mmask8>(exists >> lane), _mm512_mask_mov_pd(of_a, in_b, of_b)));
      }
    }
#endif
  };
  /// Of `count` values from value `first` on; what is copied goes to `scratch`, count * interleave numbers.
  template <int count, class T>
  [[gnu::always_inline]] Reader<T> reader(const T* vector, int first, T* scratch) const {
    const T* const from = vector + interleave * static_cast<std::int64_t>(first);
    if (places_->kind == Kind::whole) return {{from + block(0), from + block(0)}, in_order, all_lanes};
    if (places_->kind == Kind::pair && permutes) {
      return {{from + block(0), from + block(1)}, places_->place, places_->exists};
    }
    copy(count, from, scratch);
    return {{scratch, scratch}, in_order, all_lanes};
  }

  /// Takes values of the lanes `active` one by one.
  template <class T>
  struct Writer {
    T* block[2];
    LaneSet lanes[2];                         // that are written, of the blocks
    alignas(64) std::int32_t lane[2][width];  // of the register, for each lane of the blocks
    bool plain;                               // the lanes are a block, and all active; or they are written by finish()
    bool in_place;

    /// Value i of the register of lanes that begins with `first`.
    [[gnu::always_inline]] void put(int i, int first, const typename Simd<T>::Register& value) const {
#if defined(__AVX512F__)
      if (!plain) return put_permuted(i, value);
#endif
      *reinterpret_cast<typename Simd<T>::Unaligned*>(block[0] + i * interleave + first) = value;
    }
#if defined(__AVX512F__)
    [[gnu::always_inline]] void put_permuted(int i, const typename Simd<T>::Register& value) const {
      for (int k = 0; k < 2; ++k) {
        T* const to = block[k] + i * interleave;
        if constexpr (sizeof(T) == 4) {
          if (lanes[k] == 0) continue;
          const __m512 moved =
              _mm512_maskz_permutexvar_ps(all_lanes, _mm512_load_si512(lane[k]), reinterpret_cast<__m512>(value));
          _mm512_mask_storeu_ps(to, static_cast<__mmask16>(lanes[k]), moved);
        } else {
          for (int part = 0; part < width; part += 8) {
            const auto mask = static_cast<__mmask8>(lanes[k] >> part);
            if (mask == 0) continue;
            const __m512d moved =
                _mm512_maskz_permutexvar_pd(0xff, widened(lane[k] + part), reinterpret_cast<__m512d>(value));
            _mm512_mask_storeu_pd(to + part, mask, moved);
          }
        }
      }
    }
#endif
  };
  /// For the lanes `active` of the register that begins with `lane`. `scratch` as for reader; finish() is called when
  /// all have been put.
  template <class T>
  [[gnu::always_inline]] Writer<T> writer(T* vector, int first, T* scratch, LaneSet active, int lane) const {
    constexpr LaneSet all = (1U << Simd<T>::lanes) - 1;
    Writer<T> writer;
    T* const to = vector + interleave * static_cast<std::int64_t>(first);
    writer.plain = true;
    writer.in_place = true;
    if (places_->kind == Kind::whole && (active >> lane & all) == all) {
      writer.block[0] = to + block(0);
      return writer;
    }
    if (!permutes || places_->kind == Kind::scattered) {
      writer.in_place = false;
      writer.block[0] = scratch;
      return writer;
    }
    writer.plain = false;
    for (int k = 0; k < 2; ++k) {
      writer.block[k] = to + block(k);
      writer.lanes[k] = 0;
    }
    const std::int32_t* const place = places_->kind == Kind::whole ? in_order : places_->place;
    for (LaneSet left = active & places_->exists; left != 0; left &= left - 1) {
      const int l = std::countr_zero(left);
      writer.lane[place[l] / width][place[l] % width] = l - lane;
      writer.lanes[place[l] / width] |= 1U << place[l] % width;
    }
    return writer;
  }
  template <int from, int to, class T>
  void finish(const Writer<T>& writer, T* vector, int first, LaneSet active) const {
    if (writer.in_place) return;
    T* const begin = vector + interleave * static_cast<std::int64_t>(first);
    for (LaneSet left = active & places_->exists; left != 0; left &= left - 1) {
      const int l = std::countr_zero(left);
      T* const at = begin + offset(l);
      for (int i = from; i < to; ++i) at[i * interleave] = writer.block[0][i * interleave + l];
    }
  }

 private:
  using Kind = LanePlaces::Kind;
#if defined(__AVX512F__)
  /// Eight numbers of twice the width.
  [[gnu::always_inline]] static __m512i widened(const std::int32_t* from) {
    return _mm512_maskz_cvtepi32_epi64(0xff, _mm256_load_si256(reinterpret_cast<const __m256i*>(from)));
  }
#endif
  alignas(64) static constexpr std::int32_t in_order[width] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

  /// Place of value 0 of the first record of a block, in a vector.
  [[nodiscard]] std::int64_t block(int k) const { return (std::int64_t{base_} + places_->block[k]) * (width * record); }
  [[nodiscard]] std::int64_t record_of(int l) const {
    const std::int64_t first = std::int64_t{base_} * width;
    const std::int32_t place = places_->place[l];
    switch (places_->kind) {
      case Kind::whole: return first + places_->block[0] * width + l;
      case Kind::pair: return first + places_->block[place / width] * width + place % width;
      case Kind::scattered: break;
    }
    return first + place;
  }
  [[nodiscard]] std::int64_t offset(int l) const { return record_offset(record_of(l), record); }

  template <class T>
  void copy(int count, const T* from, T* out) const {
    for (int l = 0; l < width; ++l) {
      if ((places_->exists >> l & 1) == 0) {
        for (int i = 0; i < count; ++i) out[i * interleave + l] = T(0);
        continue;
      }
      const T* const at = from + offset(l);
      for (int i = 0; i < count; ++i) out[i * interleave + l] = at[i * interleave];
    }
  }

  const LanePlaces* places_;
  std::int32_t base_;
};

}  // namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE
