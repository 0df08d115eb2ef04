/// \file
/// Small patches: which there are on voxel images, their local solver against the operator of the reference engine, and
/// the engines of this machine against that.

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <algorithm>
#include <random>
#include <set>

#include "engine/engine.hpp"
#include "engines.hpp"
#include "kernel_bench.hpp"
#include "level/small_solver.hpp"
#include "levels.hpp"
#include "solenoid/solver.hpp"
#include "solver/multigrid/smoothing.hpp"

namespace solenoid {
namespace {

using Kind = SmallShape::Kind;
using test::Bench;
using test::MeshCase;
using test::oracle;
using test::Values;

/// Some of the cells of a small box, with any sides that go together.
MeshCase random_image(std::mt19937& random, int dim, EquationKind equation = EquationKind::stokes) {
  const auto draw = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
  std::vector<int> cells;
  for (int a = 0; a < dim; ++a) cells.push_back(draw(1, dim == 2 ? 7 : 4));
  const std::array<int, 3> extent{cells[0], cells[1], dim == 3 ? cells[2] : 1};
  std::vector<IndexBox> holes;
  const double porosity = 0.1 * draw(3, 9);
  const int kept = draw(0, extent[0] * extent[1] * extent[2] - 1);
  for (int i = 0; i < extent[0] * extent[1] * extent[2]; ++i) {
    if (i == kept || std::generate_canonical<double, 32>(random) < porosity) continue;
    const int x = i % extent[0];
    const int y = i / extent[0] % extent[1];
    const int z = i / extent[0] / extent[1];
    holes.push_back({{x, y, z}, {x + 1, y + 1, z + 1}});
  }
  MeshCase image{"image", test::box(cells, holes), {}, draw(0, 1) * 1.3, equation};
  if (draw(0, 3) == 0) image.mesh.upper[1] = image.mesh.lower[1] + 4.0 * cells[1];  // stretched
  const bool poisson = equation == EquationKind::poisson;
  for (int a = 0; a < dim; ++a) {
    const bool ends = draw(0, 2) > 0;
    for (int side = 2 * a; side < 2 * a + 2; ++side) {
      constexpr std::array kinds{SideKind::velocity, SideKind::slip, SideKind::outflow};
      image.boundary.sides[side].kind = ends ? kinds[poisson ? 0 : draw(0, 2)] : SideKind::periodic;
    }
  }
  return image;
}

std::string description(const MeshCase& what) {
  std::string text = std::to_string(what.mesh.dim) + "D, " + std::to_string(what.mesh.holes.size()) + " holes, cells";
  for (int a = 0; a < what.mesh.dim; ++a) text += " " + std::to_string(what.mesh.cells[a]);
  for (int side = 0; side < 2 * what.mesh.dim; ++side) {
    text += ", side " + std::to_string(static_cast<int>(what.boundary.sides[side].kind));
  }
  return text;
}

/// Calls visit(image, how to find it again) for random images in 2D and 3D, with either equation.
template <class Visit>
void for_images(int count, const Visit& visit) {
  for (const int dim : {2, 3}) {
    for (const EquationKind equation : {EquationKind::stokes, EquationKind::poisson}) {
      std::mt19937 random(17);
      for (int i = 0; i < count; ++i) {
        const MeshCase image = random_image(random, dim, equation);
        visit(image, "image " + std::to_string(i) + ", " + description(image));
      }
    }
  }
}

/// Where the unknowns of a small patch are in a vector.
std::vector<std::int64_t> places(const Level& level, const SmallShape& shape, const SmallRecords& patch) {
  std::vector<std::int64_t> places;
  for (const auto& [record, value] : small_unknowns(level.equation, shape)) {
    places.push_back(level.index(patch[record], value));
  }
  return places;
}

/// Places of the unknowns that vertex patches have.
std::set<std::int64_t> of_vertex_patches(const Level& level) {
  const Equation& equation = level.equation;
  const int dim = equation.dim;
  const int hats = power(equation.n(), dim - 1);
  const int block = power(equation.n(), dim);
  std::set<std::int64_t> places;
  for (const auto& colour : level.patches.colours) {
    for (const PatchRun& run : colour) {
      const PatchKind& kind = level.patches.kinds[run.kind];
      for (auto i = run.begin; i < run.end; ++i) {
        const auto cells = patch_cells(level.grid, level.patches.lower_cell[i]);
        for (int bits = 0; bits < 1 << dim; ++bits) {
          for (int value = 0; value < equation.record(); ++value) {
            const int c = value / block;
            const bool lower_hat = c < equation.velocities() && value % block < hats;
            if (!lower_hat || (bits >> c & 1) != 0 || kind[c].hat[0]) places.insert(level.index(cells[bits], value));
          }
          for (int c = 0; c < equation.velocities(); ++c) {
            const Record above = level.grid.neighbour(cells[bits], 2 * c + 1);
            for (int i_hat = 0; i_hat < hats && (bits >> c & 1) != 0 && kind[c].hat[1]; ++i_hat) {
              places.insert(level.index(above, c * block + i_hat));
            }
          }
        }
      }
    }
  }
  return places;
}

TEST(SmallPatches, HaveAllUnknownsThatVertexPatchesLack) {
  int with_small_patches = 0;
  for_images(100, [&](const MeshCase& image, const std::string& what) {
    SCOPED_TRACE(what);
    const Level level = image.level(1);
    const auto unknown = reference::unknowns(level);
    const std::set<std::int64_t> by_vertices = of_vertex_patches(level);
    std::set<std::int64_t> missing;
    for (std::int64_t i = 0; i < level.size(); ++i) {
      if (unknown[i] && by_vertices.count(i) == 0) missing.insert(i);
    }
    EXPECT_EQ(level.small_patches.groups.empty(), level.patches.cover_everything);
    // With Poisson's equation there may be faces in no vertex patch between cells that are.
    if (image.equation == EquationKind::stokes) {
      EXPECT_EQ(level.patches.cover_everything, missing.empty());
    }
    with_small_patches += missing.empty() ? 0 : 1;
    const std::set<std::int64_t> needed = missing;
    for (const auto& [shape, patches] : level.small_patches.groups) {
      std::set<std::int64_t> of_group;
      for (const SmallRecords& patch : patches) {
        bool needs = image.equation == EquationKind::poisson;
        for (const std::int64_t i : places(level, level.small_patches.shapes[shape], patch)) {
          ASSERT_TRUE(unknown[i]);
          ASSERT_TRUE(of_group.insert(i).second) << "patches of a group share an unknown";
          missing.erase(i);
          needs = needs || needed.count(i) > 0;
        }
        EXPECT_TRUE(needs) << "a patch that vertex patches cover";
      }
    }
    EXPECT_TRUE(missing.empty()) << missing.size() << " unknowns are in no patch";
  });
  EXPECT_GT(with_small_patches, 100);
}

TEST(SmallPatches, AreInColours) {
  const auto sizes = [](const MeshCase& mesh) {
    std::vector<std::size_t> sizes;
    const Level level = mesh.level(1);
    for (const SmallGroup& group : level.small_patches.groups) sizes.push_back(group.patches.size());
    return sizes;
  };
  using Sizes = std::vector<std::size_t>;
  EXPECT_EQ(sizes({"row", test::box({6, 1})}), (Sizes{3, 2}));
  EXPECT_EQ(sizes({"column", test::box({1, 1, 5})}), (Sizes{2, 2}));
  EXPECT_EQ(sizes({"even ring", test::box({4, 1}), test::periodic({0})}), (Sizes{2, 2}));
  EXPECT_EQ(sizes({"odd ring", test::box({5, 1}), test::periodic({0})}), (Sizes{2, 2, 1}));
  EXPECT_EQ(sizes({"own neighbour", test::box({1, 1}), test::periodic({0, 1})}), (Sizes{1, 1}));
  EXPECT_EQ(sizes({"corner", test::box({1, 1}), test::sides({{0, SideKind::outflow}, {3, SideKind::outflow}})}),
            (Sizes{1, 1}));
  EXPECT_EQ(sizes({"alone", test::box({1, 1, 1})}), (Sizes{1}));
  EXPECT_EQ(sizes({"whole", test::box({2, 2})}), Sizes{});
}

/// A level that is one patch of a shape, whose ends are what the local solver takes them for.
MeshCase lone(int dim, const SmallShape& shape, EquationKind equation) {
  std::vector<int> cells(dim, 1);
  if (shape.kind == Kind::pair) cells[shape.direction] = 2;
  MeshCase mesh{"lone", test::box(cells), {}, 1.3, equation};
  if (shape.kind == Kind::lower_outflow) mesh.boundary = test::sides({{2 * shape.direction, SideKind::outflow}});
  if (shape.kind == Kind::upper_outflow) mesh.boundary = test::sides({{2 * shape.direction + 1, SideKind::outflow}});
  return mesh;
}

std::vector<SmallShape> lone_shapes(int dim, EquationKind equation) {
  std::vector<SmallShape> shapes{{Kind::cell, 0}};
  for (int a = 0; a < dim; ++a) {
    shapes.push_back({Kind::pair, a});
    if (equation == EquationKind::poisson) continue;
    shapes.push_back({Kind::lower_outflow, a});
    shapes.push_back({Kind::upper_outflow, a});
  }
  return shapes;
}

void expect_inverse(const Level& level, const SmallShape& shape) {
  ASSERT_EQ(level.small_patches.shapes, std::vector{shape});
  ASSERT_EQ(level.small_patches.groups.size(), 1U);
  const auto at = places(level, shape, level.small_patches.groups[0].patches.at(0));
  const auto size = static_cast<Eigen::Index>(at.size());
  ASSERT_EQ(size, level.dofs());
  Bench<double> bench(oracle(), level, LocalSolverKind::direct);
  Eigen::MatrixXd matrix(size, size);
  for (Eigen::Index j = 0; j < size; ++j) {
    Values unit(level.size(), 0.0);
    unit[at[j]] = 1.0;
    const auto x = bench.vector(unit);
    auto y = bench.output();
    bench->apply(x.data(), y.data());
    const Values column = bench.values(y);
    for (Eigen::Index i = 0; i < size; ++i) matrix(i, j) = column[at[i]];
  }
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen(matrix);
  const double zero = 1e-10 * eigen.eigenvalues().cwiseAbs().maxCoeff();
  const Eigen::VectorXd inverses =
      eigen.eigenvalues().unaryExpr([=](double value) { return std::abs(value) <= zero ? 0.0 : 1.0 / value; });
  const Eigen::MatrixXd expected = eigen.eigenvectors() * inverses.asDiagonal() * eigen.eigenvectors().transpose();
  const Matrix actual = small_inverse(level.equation, level.coefficients, level.grid.metric().uniform_width(), shape);
  EXPECT_LE((actual - expected).norm(), 1e-11 * std::max(expected.norm(), 1e-300)) << size << " unknowns";
  EXPECT_EQ((actual - actual.transpose()).norm(), 0.0);
}

TEST(SmallSolver, InvertsTheOperatorOfALonePatch) {
  for (const int dim : {2, 3}) {
    for (const EquationKind equation : {EquationKind::stokes, EquationKind::poisson}) {
      for (const SmallShape& shape : lone_shapes(dim, equation)) {
        for (int order = 0; order <= (dim == 2 ? 3 : 2); ++order) {
          SCOPED_TRACE(std::to_string(dim) + "D, kind " + std::to_string(static_cast<int>(shape.kind)) +
                       " in direction " + std::to_string(shape.direction) + ", order " + std::to_string(order));
          Level level = lone(dim, shape, equation).level(order);
          expect_inverse(level, shape);
          level.coefficients = {.viscosity = 0.02, .reaction = 0.0, .coupling = 3.0};
          expect_inverse(level, shape);
        }
      }
    }
  }
}

/// A cell that is its own neighbour: the operator has no walls there, so that it is weaker than the local matrix in the
/// components along them and the same in the others.
TEST(SmallSolver, OfACellThatIsItsOwnNeighbourHasItsHats) {
  for (int order = 0; order <= 3; ++order) {
    const Level level = MeshCase{"ring", test::box({1, 1}), test::periodic({0})}.level(order);
    const SmallShape ring{Kind::ring, 0};
    ASSERT_EQ(level.small_patches.shapes, std::vector{ring});
    const auto at = places(level, ring, level.small_patches.groups[0].patches.at(0));
    // Constant in the direction of the ring: the residual of a correction for a force on the hats is what it was.
    Bench<double> bench(oracle(), level, LocalSolverKind::direct);
    const Matrix inverse = small_inverse(level.equation, level.coefficients, level.grid.metric().uniform_width(), ring);
    Values x(level.size(), 0.0);
    for (std::size_t i = 0; i < at.size(); ++i) x[at[i]] = inverse(static_cast<long>(i), 0);
    const auto vx = bench.vector(x);
    auto y = bench.output();
    bench->apply(vx.data(), y.data());
    const Values result = bench.values(y);
    for (std::size_t i = 0; i < at.size(); ++i) {
      EXPECT_NEAR(result[at[i]], i == 0 ? 1.0 : 0.0, 1e-12) << "order " << order << ", unknown " << i;
    }
  }
}

template <class T>
void expect_same_as_reference(Engine& engine, const Level& level, const std::string& what) {
  const Values r = test::random_vector(level, 1);
  const Values x = test::random_vector(level, 2);
  const auto smoothed = [&](Engine& by) {
    Bench<T> bench(by, level, LocalSolverKind::direct);
    const auto vr = bench.vector(r);
    test::Results results;
    for (int group = 0; group < static_cast<int>(level.small_patches.groups.size()); ++group) {
      auto vx = bench.vector(x);
      bench->smooth_small(group, vr.data(), vx.data(), T(0.7));
      results.push_back(bench.values(vx));
      // With the residual of x for a load, which is needed at the unknowns of the patches alone.
      vx = bench.vector(x);
      auto residual = bench.output();
      bench->residual_for_small(group, vr.data(), vx.data(), residual.data());
      bench->smooth_small(group, residual.data(), vx.data(), T(0.7));
      results.push_back(bench.values(vx));
    }
    return results;
  };
  const test::Results expected = smoothed(oracle());
  const test::Results actual = smoothed(engine);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    test::expect_same(level, expected[i], actual[i], test::tolerance<T>(level.equation.order),
                      what + ", order " + std::to_string(level.equation.order) + ", group " + std::to_string(i / 2) +
                          (i % 2 == 0 ? "" : " with its residual") +
                          (sizeof(T) == sizeof(float) ? " in float" : " in double"));
  }
}

TEST(SmallPatches, OfAllEnginesAreThoseOfTheReference) {
  for (const auto& engine : test::engines()) {
    SCOPED_TRACE(engine.name);
    const auto compare = [&](const MeshCase& mesh, const std::string& what) {
      for (const int order : available_orders(mesh.mesh.dim, mesh.equation)) {
        if (order > (mesh.mesh.dim == 2 ? 4 : 2)) continue;
        const Level level = mesh.level(order);
        if (!test::has_order_of(engine.get(), level)) continue;
        expect_same_as_reference<double>(engine.get(), level, what);
        expect_same_as_reference<float>(engine.get(), level, what);
      }
    };
    for_images(20, compare);
    // Many patches of a shape, the last batch not full; an odd ring; sides that are partly open.
    compare({"rows", test::box({1, 75}), test::periodic({1}), 1e3}, "rows");
    compare({"rows", test::box({1, 70, 1}), test::sides({{3, SideKind::outflow}})}, "rows");
    for (const int dim : {2, 3}) {
      for (const MeshCase& mesh : test::mesh_cases(dim)) compare(mesh, mesh.name);
    }
  }
}

/// Pairs and cells with walls around them, apart from each other.
MeshCase islands(int dim) {
  std::vector<int> cells{8, 3};
  std::vector<IndexBox> holes{{{2, 0, 0}, {3, 3, 1}}, {{5, 0, 0}, {6, 3, 1}}, {{7, 0, 0}, {8, 3, 1}},
                              {{0, 1, 0}, {2, 2, 1}}, {{3, 1, 0}, {5, 2, 1}}, {{6, 1, 0}, {7, 2, 1}}};
  if (dim == 3) cells.push_back(1);
  return {"islands", test::box(cells, holes)};
}

TEST(SmallPatches, WithWallsAroundThemAreSolvedFor) {
  for (const auto& engine : test::engines()) {
    for (const int dim : {2, 3}) {
      for (const int order : available_orders(dim)) {
        if (order > 2) continue;
        const Level level = islands(dim).level(order);
        if (!test::has_order_of(engine.get(), level)) continue;
        SCOPED_TRACE(engine.name + ", " + std::to_string(dim) + "D, order " + std::to_string(order));
        ASSERT_EQ(level.small_patches.groups.size(), 3U);  // pairs in x of both colours, cells
        Bench<double> bench(engine.get(), level, LocalSolverKind::direct);
        auto b = bench.vector(test::random_vector(level, 5));
        bench->project(b.data());
        auto x = bench.vector(Values(level.size(), 0.0));
        auto r = bench.output();
        for (int group = 0; group < 3; ++group) {
          bench->residual(b.data(), x.data(), r.data());
          bench->smooth_small(group, r.data(), x.data(), 1.0);
          bench->residual(b.data(), x.data(), r.data());
          const Values left = bench.values(r);
          const auto& [shape, patches] = level.small_patches.groups[group];
          for (const SmallRecords& patch : patches) {
            for (const std::int64_t i : places(level, level.small_patches.shapes[shape], patch)) {
              ASSERT_NEAR(left[i], 0.0, 1e-11);
            }
          }
        }
      }
    }
  }
}

template <class T>
double norm(Bench<T>& bench, const Vector<T>& x) {
  return std::sqrt(bench->dot(x.data(), x.data()));
}

/// Where no way through cells leads around something that is in no patch: flows along such ways are for coarser levels.
TEST(SmallPatches, MakeSmoothingStepsConverge) {
  const auto outflow = test::sides({{1, SideKind::outflow}});
  const std::vector<MeshCase> meshes{
      {"row", test::box({5, 1})},
      {"row_with_outflow", test::box({4, 1}), outflow},
      {"own_neighbour", test::box({1, 1}), test::periodic({0})},
      {"neck", test::box({6, 3}, {{{2, 0, 0}, {4, 1, 1}}, {{2, 2, 0}, {4, 3, 1}}}), outflow},
      {"neck_3d", test::box({5, 2, 2}, {{{2, 0, 0}, {3, 2, 1}}, {{2, 1, 1}, {3, 2, 2}}})},
      {"poisson_row", test::box({5, 1}), {}, 0.0, EquationKind::poisson},
  };
  for (const auto& engine : test::engines()) {
    for (const MeshCase& mesh : meshes) {
      for (const SmootherKind smoother : {SmootherKind::multiplicative, SmootherKind::additive}) {
        for (const int order : available_orders(mesh.mesh.dim, mesh.equation)) {
          const Level level = mesh.level(order);
          if (order > 4 - mesh.mesh.dim || !test::has_order_of(engine.get(), level)) continue;
          SCOPED_TRACE(engine.name + ", " + mesh.name + ", order " + std::to_string(order));
          ASSERT_FALSE(level.small_patches.groups.empty());
          MultigridOptions options;
          options.smoother = smoother;
          Bench<double> bench(engine.get(), level, LocalSolverKind::direct);
          auto b = bench.vector(test::random_vector(level, 6));
          bench->project(b.data());
          Vector<double> first(engine.get(), level.size());
          Vector<double> other(engine.get(), level.size());
          auto r = bench.output();
          double* x = nullptr;
          for (int step = 0; step < 600; ++step) {
            double* const free = x == first.data() ? other.data() : first.data();
            x = smoothing_step(*bench.operator->(), options, b.data(), x, free, x == nullptr ? other.data() : x);
          }
          bench->residual(b.data(), x, r.data());
          EXPECT_LE(norm(bench, r), 1e-2 * norm(bench, b));
        }
      }
    }
  }
}

TEST(SmallPatches, FollowCoefficients) {
  for (const auto& engine : test::engines()) {
    const int order = available_orders(2).front();
    Level level = MeshCase{"row", test::box({4, 1}), {}, 1.3}.level(order);
    const Values r = test::random_vector(level, 1);
    Bench<double> bench(engine.get(), level, LocalSolverKind::direct);
    const auto smoothed = [&](Bench<double>& by) {
      const auto vr = by.vector(r);
      auto x = by.vector(Values(level.size(), 0.0));
      by->smooth_small(0, vr.data(), x.data(), 1.0);
      return by.values(x);
    };
    bench->prepare_smoother(false);
    const Values before = smoothed(bench);
    level.set_coefficients({.viscosity = 0.01, .reaction = 40.0});
    auto kept = bench->use_tables(bench->make_tables());
    const Values after = smoothed(bench);
    EXPECT_NE(before, after);
    Bench<double> made_since(engine.get(), level, LocalSolverKind::direct);
    EXPECT_EQ(after, smoothed(made_since));
    bench->use_tables(kept);
    EXPECT_EQ(before, smoothed(bench));
  }
}

}  // namespace
}  // namespace solenoid
