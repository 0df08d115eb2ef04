/// \file
/// Every compiled variant of the smoother against the reference engine, chosen by name instead of by the size of the
/// level: over meshes with every kind of side, orders and precisions, one colour at a time.

#include <gtest/gtest.h>

#include <algorithm>

#include "engines.hpp"
#include "kernel_bench.hpp"
#include "levels.hpp"
#include "solenoid/error.hpp"
#include "solenoid/solver.hpp"

namespace solenoid {
namespace {

using test::Bench;
using test::MeshCase;
using test::Values;

struct VariantCase {
  MeshCase mesh;
  int order;
  PatchRules rules{};
};

std::string name_of(const testing::TestParamInfo<VariantCase>& info) {
  const auto& [mesh, order, rules] = info.param;
  return std::to_string(mesh.mesh.dim) + "d_" + mesh.name + "_k" + std::to_string(order) +
         (rules.problem == PatchProblem::galerkin ? "_galerkin" : "");
}

/// Cells that are long in the other directions.
MeshCase flat(MeshCase what, int direction, double ratio = 0.05) {
  what.name = "flat_" + what.name;
  what.mesh.upper[direction] =
      what.mesh.lower[direction] + ratio * (what.mesh.upper[direction] - what.mesh.lower[direction]);
  return what;
}

std::vector<VariantCase> variant_cases() {
  constexpr auto slip = SideKind::slip;
  constexpr auto outflow = SideKind::outflow;
  using test::box;
  using test::periodic;
  using test::sides;
  const PatchRules paper{.problem = PatchProblem::galerkin, .colour_order = ColourOrder::lexicographic};
  std::vector<VariantCase> cases;
  for (const int dim : {2, 3}) {
    for (const auto& mesh : test::mesh_cases(dim)) {
      for (int order = 0; order <= (dim == 2 ? 4 : 2); ++order) cases.push_back({mesh, order});
      cases.push_back({mesh, 1, paper});
      if (mesh.name == "hole" || mesh.name == "channel") {
        for (int order = 0; order <= (dim == 2 ? 4 : 2); ++order) cases.push_back({flat(mesh, 1), order});
      }
    }
  }
  // More patches of a colour than the largest batch has, and batches that are not full: behind walls, at holes, beside
  // sides whose patches go elsewhere.
  const std::vector<MeshCase> batches_2d{
      {"batches", box({75, 6})},
      {"batches_hole", box({75, 6}, {{{30, 2, 0}, {34, 4, 1}}, {{60, 3, 0}, {61, 4, 1}}}), periodic({0}), 1.3},
      {"batches_open", box({71, 6}, {{{10, 2, 0}, {13, 4, 1}}}, 0), sides({{1, outflow}, {2, slip}}, slip)},
  };
  const std::vector<MeshCase> batches_3d{
      {"batches", box({23, 6, 4})},
      {"batches_hole", box({23, 6, 4}, {{{7, 2, 1}, {9, 3, 3}}, {{15, 1, 0}, {16, 3, 2}}}), {}, 1.3},
      {"batches_open", box({23, 6, 4}, {{{7, 2, 1}, {9, 3, 3}}}), sides({{1, outflow}, {2, slip}, {4, slip}})},
  };
  for (const auto& mesh : batches_2d) {
    for (int order = 0; order <= 8; ++order) cases.push_back({mesh, order});
  }
  for (const auto& mesh : batches_3d) {
    for (int order = 0; order <= 2; ++order) cases.push_back({mesh, order});
  }
  // High orders with few kinds of patch: the reference engine takes its time.
  for (int order = 3; order <= 5; ++order) {
    cases.push_back({{"periodic_batches", box({10, 4, 4}), periodic({0, 1, 2}), 1.3}, order});
    cases.push_back({{"wall", box({9, 3, 2}), periodic({0, 2})}, order});
    if (order > 4) continue;
    cases.push_back({{"pair", box({3, 2, 2})}, order});
    cases.push_back({flat({"pair", box({3, 2, 2})}, 2, 0.15), order});
    cases.push_back({{"open_pair", box({3, 2, 2}), sides({{1, outflow}, {2, slip}})}, order});
    cases.push_back({{"hole", box({4, 4, 2}, {{{1, 1, 0}, {2, 2, 1}}}), periodic({0, 1, 2})}, order});
  }
  std::erase_if(cases, [](const VariantCase& what) {
    const auto orders = available_orders(what.mesh.mesh.dim, what.mesh.equation);
    return std::find(orders.begin(), orders.end(), what.order) == orders.end();
  });
  return cases;
}

class SmootherVariants : public testing::TestWithParam<VariantCase> {
 protected:
  /// New values of all colours, from old values and from zero. Old values are not changed between colours.
  template <class T>
  static test::Results smooth(Bench<T>& bench, const Level& level, const Values& b, const Values& x) {
    const auto vb = bench.vector(b);
    const auto vx = bench.vector(x);
    test::Results results;
    for (int colour = 0; colour < static_cast<int>(level.patches.colours.size()); ++colour) {
      auto y = bench.output();
      bench->smooth(colour, vb.data(), vx.data(), y.data());
      results.push_back(bench.values(y));
      auto from_zero = bench.output();
      bench->smooth(colour, vb.data(), nullptr, from_zero.data());
      results.push_back(bench.values(from_zero));
    }
    return results;
  }

  template <class T>
  static void compare(Engine& engine, const Level& level, const Values& b, const Values& x,
                      const test::Results& expected) {
    for (const std::string& variant : engine.smoother_variants(level.equation, sizeof(T) == sizeof(float))) {
      engine.choose_smoother(variant);
      Bench<T> bench(engine, level, LocalSolverKind::direct);
      const test::Results actual = smooth(bench, level, b, x);
      engine.choose_smoother({});
      for (std::size_t i = 0; i < expected.size(); ++i) {
        test::expect_same(level, expected[i], actual[i], test::tolerance<T>(level.equation.order),
                          variant + (sizeof(T) == sizeof(float) ? ", float" : ", double") + ", colour " +
                              std::to_string(i / 2) + (i % 2 == 0 ? ", old values" : ", from zero"));
      }
    }
  }
};

TEST_P(SmootherVariants, AgreeWithTheReference) {
  const Level level = GetParam().mesh.level(GetParam().order, GetParam().rules);
  std::vector<Engine*> engines;
  for (const auto& choice : test::engines()) {
    try {
      if (!choice.get().smoother_variants(level.equation, true).empty()) engines.push_back(&choice.get());
    } catch (const InputError&) {  // the engine has fewer orders than others
    }
  }
  if (engines.empty()) GTEST_SKIP() << "no engine of this machine has variants for this order";
  const Values b = test::random_vector(level, 21);
  const Values x = test::random_vector(level, 22);
  Bench<double> reference(test::oracle(), level, LocalSolverKind::direct);
  const test::Results expected = smooth(reference, level, b, x);
  for (Engine* engine : engines) {
    compare<float>(*engine, level, b, x, expected);
    compare<double>(*engine, level, b, x, expected);
  }
}
INSTANTIATE_TEST_SUITE_P(Cases, SmootherVariants, testing::ValuesIn(variant_cases()), name_of);

}  // namespace
}  // namespace solenoid
