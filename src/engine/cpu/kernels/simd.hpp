#pragma once
/// \file
/// SIMD registers whose lanes are cells or patches, and the transposition between them and records in memory.
/// Included by kernel instances only: everything lives in the namespace of the instruction set.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

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

template <class T>
struct SimdOf {
  using type [[gnu::vector_size(SOLENOID_SIMD_BYTES)]] = T;
  using unaligned [[gnu::vector_size(SOLENOID_SIMD_BYTES), gnu::aligned(sizeof(T)), gnu::may_alias]] = T;
};
/// One register of T.
template <class T>
using Simd = typename SimdOf<T>::type;
template <class T>
inline constexpr int lanes = SOLENOID_SIMD_BYTES / sizeof(T);

template <class T>
[[gnu::always_inline]] inline Simd<T> load(const T* p) {
  return *reinterpret_cast<const typename SimdOf<T>::unaligned*>(p);
}
template <class T>
[[gnu::always_inline]] inline void store(T* p, Simd<T> v) {
  *reinterpret_cast<typename SimdOf<T>::unaligned*>(p) = v;
}

/// Stores the first `count` < lanes numbers of v.
template <int count, class T>
[[gnu::always_inline]] inline void store_part(T* p, Simd<T> v) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) {
    _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << count) - 1), reinterpret_cast<__m512>(v));
  } else {
    _mm512_mask_storeu_pd(p, static_cast<__mmask8>((1u << count) - 1), reinterpret_cast<__m512d>(v));
  }
#else
  std::memcpy(p, &v, count * sizeof(T));
#endif
}

/// Interleaves halves: the butterfly of a transposition. Rows i and i + distance exchange their off-diagonal blocks of
/// `distance` lanes:  [a0 a1; b0 b1] -> [a0 b0; a1 b1].
template <int distance, class T>
[[gnu::always_inline]] inline void exchange(Simd<T>& a, Simd<T>& b) {
  const auto pick = [&]<int... i>(std::integer_sequence<int, i...>) {
    constexpr int w = lanes<T>;
    const Simd<T> low = __builtin_shufflevector(a, b, ((i / distance) % 2 == 0 ? i : i - distance + w)...);
    const Simd<T> high = __builtin_shufflevector(a, b, ((i / distance) % 2 == 0 ? i + distance : i + w)...);
    a = low;
    b = high;
  };
  pick(std::make_integer_sequence<int, lanes<T>>{});
}

template <int distance, class T>
[[gnu::always_inline]] inline void transpose_stage(Simd<T>* rows) {
  constexpr int w = lanes<T>;
#pragma GCC unroll 16
  for (int i = 0; i < w; ++i) {
    if ((i / distance) % 2 == 0) exchange<distance, T>(rows[i], rows[i + distance]);
  }
}

/// Transposes a square of lanes<T> registers in place.
template <class T>
[[gnu::always_inline]] inline void transpose(Simd<T>* rows) {
  constexpr int w = lanes<T>;
  if constexpr (w >= 16) transpose_stage<8, T>(rows);
  if constexpr (w >= 8) transpose_stage<4, T>(rows);
  if constexpr (w >= 4) transpose_stage<2, T>(rows);
  if constexpr (w >= 2) transpose_stage<1, T>(rows);
}

/// Where the lanes of a batch begin in memory: one record offset each.
template <class T>
struct Lanes {
  std::int64_t offset[lanes<T>];
};

/// lane l = base[at.offset[l] + i]
template <class T>
[[gnu::always_inline]] inline Simd<T> gather(const T* base, const Lanes<T>& at, int i) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 8) {
    const __m512i index = _mm512_loadu_si512(at.offset);
    return reinterpret_cast<Simd<T>>(_mm512_mask_i64gather_pd(_mm512_setzero_pd(), 0xff, index, base + i, 8));
  } else {
    const __m256 low = _mm512_mask_i64gather_ps(_mm256_setzero_ps(), 0xff, _mm512_loadu_si512(at.offset), base + i, 4);
    const __m256 high =
        _mm512_mask_i64gather_ps(_mm256_setzero_ps(), 0xff, _mm512_loadu_si512(at.offset + 8), base + i, 4);
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  }
#else
  Simd<T> v;
#pragma GCC unroll 16
  for (int l = 0; l < lanes<T>; ++l) v[l] = base[at.offset[l] + i];
  return v;
#endif
}

/// Left-over columns up to which gathers are cheaper than transposing one more square.
template <class T>
inline constexpr int few_columns = lanes<T> >= 16  ? 4
                                   : lanes<T> >= 8 ? 3
                                                   : 1;

/// out[i] lane l = base[at.offset[l] + i], i < count. Reads up to lanes - 1 numbers more from each record.
template <int count, class T>
[[gnu::always_inline]] inline void load_records(const T* base, const Lanes<T>& at, int shift, Simd<T>* out) {
  constexpr int w = lanes<T>;
#pragma GCC unroll 1
  for (int first = 0; first + w <= count; first += w) {
    Simd<T> rows[w];
#pragma GCC unroll 16
    for (int l = 0; l < w; ++l) rows[l] = load(base + at.offset[l] + shift + first);
    transpose<T>(rows);
#pragma GCC unroll 16
    for (int i = 0; i < w; ++i) out[first + i] = rows[i];
  }
  if constexpr (count % w != 0 && count % w <= few_columns<T>) {
    constexpr int first = count / w * w;
#pragma GCC unroll 16
    for (int i = first; i < count; ++i) out[i] = gather(base, at, shift + i);
  } else if constexpr (count % w != 0) {
    constexpr int first = count / w * w;
    Simd<T> rows[w];
#pragma GCC unroll 16
    for (int l = 0; l < w; ++l) rows[l] = load(base + at.offset[l] + shift + first);
    transpose<T>(rows);
#pragma GCC unroll 16
    for (int i = 0; i < count - first; ++i) out[first + i] = rows[i];
  }
}

template <int count, class T>
[[gnu::always_inline]] inline void store_square(T* base, const Lanes<T>& at, int shift, const Simd<T>* in, int active) {
  constexpr int w = lanes<T>;
  Simd<T> rows[w];
#pragma GCC unroll 16
  for (int i = 0; i < w; ++i) rows[i] = i < count ? in[i] : Simd<T>{};
  transpose<T>(rows);
  const auto put = [&](int l) {
    if constexpr (count == w) {
      store(base + at.offset[l] + shift, rows[l]);
    } else {
      store_part<count>(base + at.offset[l] + shift, rows[l]);
    }
  };
  if (active == w) {
#pragma GCC unroll 16
    for (int l = 0; l < w; ++l) put(l);
  } else {
#pragma GCC unroll 16
    for (int l = 0; l < w; ++l) {
      if (l < active) put(l);
    }
  }
}

/// base[at.offset[l] + i] = in[i] lane l for l < active, i < count; writes nothing else.
template <int count, class T>
[[gnu::always_inline]] inline void store_records(T* base, const Lanes<T>& at, int shift, const Simd<T>* in,
                                                 int active) {
  constexpr int w = lanes<T>;
#pragma GCC unroll 1
  for (int first = 0; first + w <= count; first += w) store_square<w>(base, at, shift + first, in + first, active);
  if constexpr (count % w != 0) {
    constexpr int first = count / w * w;
    store_square<count % w>(base, at, shift + first, in + first, active);
  }
}

}  // namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE
