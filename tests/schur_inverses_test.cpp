/// \file
/// Inverse Schur complements are found again on levels with cells of the same shape, and nowhere else.

#include <gtest/gtest.h>

#include "level/patch_solver.hpp"

namespace solenoid {
namespace {

/// A slip side at one end, an outflow side at another.
PatchKind open_kind() {
  PatchKind kind{};
  kind[0].weight = {1, 0};
  kind[1].weight = {0, 1};
  kind[1].hat = {true, false};
  return kind;
}

bool equal(const PatchSolver& a, const PatchSolver& b) {
  for (std::size_t i = 0; i < a.blocks().size(); ++i) {
    if (*a.blocks()[i].inverse != *b.blocks()[i].inverse) return false;
  }
  return a.blocks().size() == b.blocks().size();
}

constexpr Equation equation{.dim = 3, .order = 1};
constexpr Point fine{0.1, 0.15, 0.2};
constexpr Point coarse{0.2, 0.3, 0.4};

PatchSolver solver(const Coefficients& coefficients, const Point& h, SchurInverses* known = nullptr) {
  return {equation, coefficients, h, open_kind(), LocalSolverKind::direct, known};
}

TEST(SchurInverses, OfLargerCellsAreTheSameToTheLastBit) {
  const Coefficients coefficients{.viscosity = 0.7, .reaction = 0.0};
  SchurInverses inverses;
  const SchurInverses::Keep keep(inverses);
  const PatchSolver first = solver(coefficients, fine, &inverses);
  ASSERT_FALSE(inverses.find({equation, coefficients, coarse, open_kind()}).empty());
  EXPECT_TRUE(equal(first, solver(coefficients, coarse, &inverses)));
  EXPECT_TRUE(equal(first, solver(coefficients, coarse)));
}

TEST(SchurInverses, OfOtherProblemsAreNotTaken) {
  const Coefficients coefficients{.viscosity = 0.7, .reaction = 3.0};
  SchurInverses inverses;
  const SchurInverses::Keep keep(inverses);
  const PatchSolver first = solver(coefficients, fine, &inverses);
  const PatchSolver second = solver(coefficients, coarse, &inverses);
  EXPECT_FALSE(equal(first, second));
  EXPECT_TRUE(equal(second, solver(coefficients, coarse)));

  const Coefficients plain{.viscosity = 0.7, .reaction = 0.0};
  const Coefficients other{.viscosity = 0.8, .reaction = 0.0};
  solver(plain, fine, &inverses);
  Equation weaker = equation;
  weaker.relative_penalty = 0.5;
  PatchKind walls = open_kind();
  walls[2].weight = {2, 2};
  EXPECT_TRUE(inverses.find({equation, other, fine, open_kind()}).empty());
  EXPECT_TRUE(inverses.find({weaker, plain, fine, open_kind()}).empty());
  EXPECT_TRUE(inverses.find({equation, plain, {0.1, 0.1, 0.2}, open_kind()}).empty());
  EXPECT_TRUE(inverses.find({equation, plain, fine, walls}).empty());
}

TEST(SchurInverses, AreForgottenWithTheLastWhoKeepsThem) {
  const Coefficients coefficients;
  SchurInverses inverses;
  solver(coefficients, fine, &inverses);
  EXPECT_TRUE(inverses.find({equation, coefficients, fine, open_kind()}).empty());
  {
    const SchurInverses::Keep keep(inverses);
    {
      const SchurInverses::Keep another(inverses);
      solver(coefficients, fine, &inverses);
    }
    EXPECT_FALSE(inverses.find({equation, coefficients, fine, open_kind()}).empty());
  }
  EXPECT_TRUE(inverses.find({equation, coefficients, fine, open_kind()}).empty());
}

}  // namespace
}  // namespace solenoid
