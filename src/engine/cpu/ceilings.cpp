#include "engine/cpu/ceilings.hpp"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstring>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "base/caches.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace solenoid {
namespace {

constexpr int runs = 8;

/// The shortest of several times that all threads need for work(thread). Each thread prepares first.
template <class Prepare, class Work>
double best_seconds(int threads, Prepare prepare, Work work) {
  using Clock = std::chrono::steady_clock;
  double best = std::numeric_limits<double>::infinity();
  std::barrier together(threads);
  const auto run = [&](int thread) {
    prepare(thread);
    for (int i = 0; i < runs; ++i) {
      together.arrive_and_wait();
      const auto start = Clock::now();
      work(thread);
      together.arrive_and_wait();
      if (thread == 0) best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
    }
  };
  std::vector<std::jthread> others;
  for (int thread = 1; thread < threads; ++thread) others.emplace_back(run, thread);
  run(0);
  others.clear();  // joins
  return best;
}

/// One cache line at a time, past the cache. Bytes: a multiple of 64, pointers aligned to 64.
using Copy = void (*)(const char* from, char* to, std::int64_t bytes);

void copy_plain(const char* from, char* to, std::int64_t bytes) { std::memcpy(to, from, bytes); }

#if defined(__x86_64__)
__attribute__((target("avx512f"))) void copy_512(const char* from, char* to, std::int64_t bytes) {
  for (std::int64_t i = 0; i < bytes; i += 64) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i), _mm512_load_si512(from + i));
  }
  _mm_sfence();
}

__attribute__((target("avx"))) void copy_256(const char* from, char* to, std::int64_t bytes) {
  for (std::int64_t i = 0; i < bytes; i += 32) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i),
                        _mm256_load_si256(reinterpret_cast<const __m256i*>(from + i)));
  }
  _mm_sfence();
}
#endif

Copy best_copy() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") != 0) return copy_512;
  if (__builtin_cpu_supports("avx") != 0) return copy_256;
#endif
  return copy_plain;
}

/// Chains of x <- a x + b, as many as keep the units busy (latency times units) and fit into 16 registers.
constexpr int chains = 12;
constexpr std::int64_t fma_steps = 2'000'000;

/// Every lane of every chain does fma_steps steps. The result keeps the compiler from leaving the work out.
template <class T, int bytes>
[[gnu::always_inline]] inline T run_chains(T a, T b) {
  using Lanes [[gnu::vector_size(bytes)]] = T;
  Lanes x[chains];
  const Lanes scale = Lanes{} + a;
  const Lanes shift = Lanes{} + b;
  for (int i = 0; i < chains; ++i) x[i] = Lanes{} + static_cast<T>(i);
  for (std::int64_t step = 0; step < fma_steps; ++step) {
    for (auto& chain : x) chain = chain * scale + shift;
  }
  T sum = 0;
  for (const auto& chain : x) {
    for (std::size_t lane = 0; lane < bytes / sizeof(T); ++lane) sum += chain[lane];
  }
  return sum;
}

template <class T>
struct Fma {
  T (*run)(T a, T b);
  int bytes;  // of a register
};

template <class T>
T fma_128(T a, T b) {
  return run_chains<T, 16>(a, b);
}
#if defined(__x86_64__)
template <class T>
__attribute__((target("avx512f"))) T fma_512(T a, T b) {
  return run_chains<T, 64>(a, b);
}
template <class T>
__attribute__((target("avx2,fma"))) T fma_256(T a, T b) {
  return run_chains<T, 32>(a, b);
}
#endif

template <class T>
Fma<T> best_fma() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") != 0) return {fma_512<T>, 64};
  if (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0) return {fma_256<T>, 32};
#endif
  return {fma_128<T>, 16};
}

}  // namespace

CopyRate measure_copy(int threads, std::int64_t available) {
  constexpr std::int64_t line = 64;
  constexpr std::int64_t enough = 1'000'000'000;
  const std::int64_t bytes = std::min(std::max(enough, 4 * cache_bytes(3)), available / 4);
  const std::int64_t share = std::max(line, bytes / (2 * threads) / line * line);  // of a thread, in each array
  struct Release {
    void operator()(char* memory) const { ::operator delete[](memory, std::align_val_t{line}); }
  };
  const auto allocate = [&] {
    return std::unique_ptr<char[], Release>(new (std::align_val_t{line}) char[share * threads]);
  };
  const auto from = allocate();
  const auto to = allocate();
  const Copy copy = best_copy();
  const double seconds = best_seconds(
      threads,
      [&](int thread) {  // pages near the thread
        std::memset(&from[thread * share], 1, share);
        std::memset(&to[thread * share], 1, share);
      },
      [&](int thread) { copy(&from[thread * share], &to[thread * share], share); });
  const std::int64_t moved = 2 * share * threads;
  return {moved, static_cast<double>(moved) / seconds};
}

template <class T>
double measure_fma(int threads) {
  const Fma<T> fma = best_fma<T>();
  std::vector<T> result(threads);
  volatile T a = 0.5;  // unknown to the compiler, and x stays finite
  volatile T b = 1.0;
  const double seconds = best_seconds(
      threads, [](int) {}, [&](int thread) { result[thread] = fma.run(a, b); });
  constexpr double flops = 2.0;
  return flops * chains * (static_cast<double>(fma.bytes) / sizeof(T)) * fma_steps * threads / seconds;
}

template double measure_fma<float>(int threads);
template double measure_fma<double>(int threads);

}  // namespace solenoid
