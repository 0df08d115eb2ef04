#pragma once
/// \file
/// Kernels of the part of a level that a rank has, against those of the whole level.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "parts_of_levels.hpp"

namespace solenoid::on_ranks {

/// With all kinds of sides and holes. One order has all meshes, which takes long.
inline bool is_one_of_few(const test::MeshCase& what) {
  constexpr std::array names{"outflow_corner",  "channel",      "window",
                             "different_holes", "periodic_odd", "poisson_odd_box"};
  return std::find(names.begin(), names.end(), what.name) != names.end();
}

template <class T>
class KernelComparison {
 public:
  KernelComparison(const Levels& levels, LocalSolverKind local)
      : levels_(levels),
        whole_(make_kernels<T>(on_one(), levels.whole, local)),
        part_(make_kernels<T>(on_all(), levels.part, local)) {}

  [[nodiscard]] Kernels<T>& whole() { return *whole_; }
  [[nodiscard]] Kernels<T>& part() { return *part_; }

  /// Both make a vector of these ones: work(kernels, inputs, output).
  template <class Work>
  void same(const std::string& what, const std::vector<Values>& inputs, const Work& work) {
    const auto run = [&](Engine& engine, Kernels<T>& kernels, const Level& level, const auto& input) {
      std::vector<Vector<T>> vectors;
      for (const Values& values : inputs) vectors.push_back(on<T>(engine, input(values)));
      Vector<T> output(engine, level.size());
      work(kernels, vectors, output.data());
      return from(output);
    };
    const Values expected = run(on_one(), *whole_, levels_.whole, [](const Values& x) { return x; });
    const Values got = run(on_all(), *part_, levels_.part, [&](const Values& x) { return levels_.part_of(x); });
    const double difference = levels_.difference(got, expected);
    expect_everywhere(difference <= tolerance, fmt::format("{}: {}", what, difference));
  }
  void same_number(const std::string& what, double expected, double got) {
    expect_everywhere(std::abs(got - expected) <= tolerance * (1.0 + std::abs(expected)),
                      fmt::format("{}: {} and {}", what, got, expected));
  }

 private:
  static constexpr double tolerance = sizeof(T) == 4 ? 2e-4 : 1e-10;
  const Levels& levels_;
  std::unique_ptr<Kernels<T>> whole_;
  std::unique_ptr<Kernels<T>> part_;
};

template <class T>
void compare_kernels(const Levels& levels, LocalSolverKind local) {
  KernelComparison<T> both(levels, local);
  const Values x = test::random_vector(levels.whole, 1);
  const Values b = test::random_vector(levels.whole, 2);
  both.same("apply", {x}, [](auto& kernels, auto& v, T* y) { kernels.apply(v[0].data(), y); });
  both.same("residual", {b, x}, [](auto& kernels, auto& v, T* y) { kernels.residual(v[0].data(), v[1].data(), y); });
  both.same("project", {x}, [](auto& kernels, auto& v, T* y) {
    kernels.copy(v[0].data(), y);
    kernels.project(y);
  });
  const auto vectors = [&](Engine& engine, auto&& input) {
    return std::array{on<T>(engine, input(x)), on<T>(engine, input(b))};
  };
  const auto mine = vectors(on_all(), [&](const Values& v) { return levels.part_of(v); });
  const auto all = vectors(on_one(), [](const Values& v) { return v; });
  both.same_number("dot", both.whole().dot(all[0].data(), all[1].data()),
                   both.part().dot(mine[0].data(), mine[1].data()));
  both.same_number("norm", both.whole().l2_norm(all[0].data()), both.part().l2_norm(mine[0].data()));

  ASSERT_EQ(levels.part.patches.colours.size(), levels.whole.patches.colours.size());
  EXPECT_EQ(levels.part.patches.cover_everything, levels.whole.patches.cover_everything);
  EXPECT_EQ(levels.part.dofs(), levels.whole.dofs());
  for (int colour = 0; colour < std::ssize(levels.whole.patches.colours); ++colour) {
    both.same(fmt::format("colour {}", colour), {b, x},
              [&](auto& kernels, auto& v, T* y) { kernels.smooth(colour, v[0].data(), v[1].data(), y); });
    both.same(fmt::format("colour {} from zero", colour), {b},
              [&](auto& kernels, auto& v, T* y) { kernels.smooth(colour, v[0].data(), nullptr, y); });
    both.same(fmt::format("colour {}, additive", colour), {b, x},
              [&](auto& kernels, auto& v, T* y) { kernels.smooth_add(colour, v[0].data(), v[1].data(), y, T(0.3)); });
  }
  if (!levels.whole.has_viscosity_points() || sizeof(T) == 4) return;
  both.whole().take_points();
  both.part().take_points();
  both.same("apply at points", {x}, [](auto& kernels, auto& v, T* y) { kernels.apply(v[0].data(), y); });
  both.same("residual at points", {b, x},
            [](auto& kernels, auto& v, T* y) { kernels.residual(v[0].data(), v[1].data(), y); });
}

}  // namespace solenoid::on_ranks
