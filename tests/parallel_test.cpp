/// \file
/// Threads that take the same steps.

#include "base/parallel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/parallel_sort.hpp"
#include "engine/cpu/team.hpp"

namespace solenoid {
namespace {

TEST(Parallel, Sorts) {
  std::mt19937 random(1);
  for (const int count : {0, 1, 2, 1 << 14, (1 << 14) + 1, 100'003, 1 << 17}) {
    std::vector<std::uint32_t> values(count);
    for (auto& value : values) value = random() % 50'000;
    std::vector<std::uint32_t> expected = values;
    std::sort(expected.begin(), expected.end());
    parallel_sort(values);
    EXPECT_EQ(values, expected) << count;
  }
}

TEST(Team, TakesEachRangeOnceInEveryStep) {
  constexpr int steps = 200;
  for (int threads = 1; threads <= 5; ++threads) {
    for (const std::int64_t count : {0, 1, 7, 100}) {
      std::vector<int> taken(count, 0);
      std::vector<int> sums;  // of all steps before
      parallel_team(threads, [&](Team& team) {
        for (int step = 0; step < steps; ++step) {
          team.share({count, 3}, [&](const CellRange& range, std::int64_t i) {
            EXPECT_EQ(range.begin, 3 * i);
            for (std::int64_t j = range.begin; j < range.end; ++j) ++taken[j];
          });
          team.once([&] { sums.push_back(std::accumulate(taken.begin(), taken.end(), 0)); });
        }
      });
      ASSERT_EQ(sums.size(), steps);
      for (int step = 0; step < steps; ++step) EXPECT_EQ(sums[step], (step + 1) * count);
      EXPECT_EQ(taken, std::vector<int>(count, steps));
    }
  }
}

/// Of a step and of what a thread does by itself; no other thread waits for ever, and no later step does anything.
#if defined(__x86_64__)
/// Subnormal numbers take a hundred times as long as others.
TEST(CpuTeam, HasZeroForSubnormals) {
  const volatile float small = 1e-30F;
  const volatile float subnormal = 1e-40F;
  const volatile float least = 1.2e-38F;
  for (const int threads : {1, 3}) {
    cpu::Team team(threads);
    std::vector<float> results(3 * threads, 1.0F);
    team.run([&](int t) {
      results[3 * t] = small * 1e-10F;
      results[3 * t + 1] = subnormal * 1e10F;
      results[3 * t + 2] = least * 2.0F;
    });
    for (int t = 0; t < threads; ++t) {
      EXPECT_EQ(results[3 * t], 0.0F);
      EXPECT_EQ(results[3 * t + 1], 0.0F);
      EXPECT_EQ(results[3 * t + 2], 2.4e-38F);
    }
    EXPECT_GT(small * 1e-10F, 0.0F);  // whoever asks for the work has them as before
  }
}
#endif

TEST(Team, RethrowsTheFirstException) {
  for (int threads = 1; threads <= 5; ++threads) {
    for (const bool in_step : {true, false}) {
      std::atomic<int> later{0};
      std::atomic<int> number{0};
      std::string what;
      try {
        parallel_team(threads, [&](Team& team) {
          const bool throws = number++ == 0;
          team.share({20, 1}, [&](const CellRange&, std::int64_t i) {
            if (in_step && i == 5) throw std::runtime_error("in a step");
          });
          if (!in_step && throws) throw std::runtime_error("between steps");
          team.once([] {});
          team.share({20, 1}, [&](const CellRange&, std::int64_t) { ++later; });
          team.once([] { throw std::logic_error("never reached"); });
        });
      } catch (const std::exception& error) {
        what = error.what();
      }
      EXPECT_EQ(what, in_step ? "in a step" : "between steps");
      EXPECT_EQ(later, 0);
    }
  }
}

// Ending early -----------------------------------------------------------------------------------------------------

/// The threads that share the work end too, in what each of them is at, and no piece is begun after.
TEST(Interruption, EndsAllThreads) {
  for (int threads = 1; threads <= 4; ++threads) {
    std::atomic<bool> stop{false};
    std::atomic<int> begun{0};
    const auto piece = [&](std::int64_t i) {
      ++begun;
      if (i == 2) stop = true;
      const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (i >= 2 && std::chrono::steady_clock::now() < give_up) check_interrupt();
    };
    const Interruptible scope([&] { return stop.load(); });
    EXPECT_THROW(parallel_for(
                     1000, [&] { return piece; }, threads),
                 Interrupted);
    EXPECT_LE(begun, 2 + threads);
    begun = 0;
    const auto steps = [&](Team& team) {
      for (int step = 0; step < 10; ++step) team.share({100, 1}, [&](const CellRange&, std::int64_t) { ++begun; });
    };
    EXPECT_THROW(parallel_team(threads, steps), Interrupted);
    EXPECT_EQ(begun, 0);
  }
}

/// The thread that is asked has nothing left to do, and waits for one that has.
TEST(Interruption, ReachesThreadsThatAreWaitedFor) {
  std::atomic<bool> stop{false};
  std::atomic<bool> other{false};
  const auto here = std::this_thread::get_id();
  const Interruptible scope([&] {
    EXPECT_EQ(std::this_thread::get_id(), here);
    return stop.load();
  });
  EXPECT_THROW(parallel_for(
                   2,
                   [&] {
                     return [&](std::int64_t) {
                       if (std::this_thread::get_id() == here) {
                         while (!other) std::this_thread::yield();
                         return;
                       }
                       other = true;
                       std::this_thread::sleep_for(std::chrono::milliseconds(100));
                       stop = true;
                       const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
                       while (std::chrono::steady_clock::now() < give_up) check_interrupt();
                     };
                   },
                   2),
               Interrupted);
}

}  // namespace
}  // namespace solenoid
