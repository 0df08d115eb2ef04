/// \file
/// Inverse Schur blocks that are made on a GPU against those of the host.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

#include "engine/cuda/smoother/device_inverses.hpp"
#include "engine/engine.hpp"
#include "levels.hpp"

namespace solenoid {
namespace {

using cuda::InverseForm;

/// The reaction alpha with which alpha h^2 / nu is `ratio` for the largest width h of cells.
double reaction_of(double ratio, double viscosity, const Grid& grid) {
  const Point widths = grid.metric().uniform_width();
  const double h = *std::max_element(widths.begin(), widths.end());
  return ratio * viscosity / (h * h);
}

/// Of an entry, relative to the largest: inverses of either side differ by rounding in double precision times the
/// condition of S, and are rounded to T once. The condition grows with the reaction and the order: to 4.5e3 here.
template <class T>
constexpr double largest_error() {
  constexpr double condition = 5e3;
  constexpr double factor = 10.0;
  constexpr double once = sizeof(T) < sizeof(double) ? std::numeric_limits<T>::epsilon() / 2.0 : 0.0;
  return once + factor * condition * std::numeric_limits<double>::epsilon();
}

class InversesOnADevice : public testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = cuda_unavailable();
    if (!reason.empty()) GTEST_SKIP() << "no inverses are made on a GPU: " << reason;
    engine_ = make_cuda_engine();
  }

  /// In all forms and precisions.
  void expect_those_of_the_host(const Level& level) {
    std::vector<int> kinds(level.patches.kinds.size());
    std::iota(kinds.begin(), kinds.end(), 0);
    std::vector<SchurInverses::Blocks> host(kinds.size());
    for_each_local_solver(level, kinds, LocalSolverKind::direct, BlockInverses::here,
                          [&](std::size_t i, const PatchSolver& solver) { host[i] = solver.inverses(); });
    for (const InverseForm form : {InverseForm::padded_rows, InverseForm::operands}) {
      SCOPED_TRACE(form == InverseForm::padded_rows ? "padded rows" : "operands");
      expect_all<double>(level, host, form);
      expect_all<float>(level, host, form);
    }
  }

 private:
  /// Of all kinds of patches of a level.
  template <class T>
  void expect_all(const Level& level, const std::vector<SchurInverses::Blocks>& host, InverseForm form) {
    const Point h = level.grid.metric().uniform_width();
    std::vector<MissingInverses> missing;
    std::size_t size = 0;
    for (const PatchKind& kind : level.patches.kinds) {
      const PatchSolver solver(level.equation, level.coefficients, h, kind);
      std::vector<std::size_t> places;
      for (const SchurBlock& block : solver.blocks()) {
        places.push_back(size);
        size += cuda::inverse_numbers(form, block.size());
      }
      missing.push_back({solver, places});
    }
    Vector<T> tables(*engine_, static_cast<std::int64_t>(size));
    cuda::make_inverses(*engine_, missing, form, tables.data(), static_cast<cuda::Stream>(engine_->stream()));
    std::vector<T> made(size);
    tables.download(made.data());

    for (std::size_t i = 0; i < host.size(); ++i) {
      for (std::size_t block = 0; block < host[i].size(); ++block) {
        const Matrix& inverse = *host[i][block];
        const double difference = largest_difference(inverse, form, made.data() + missing[i].places[block]);
        EXPECT_LE(difference, largest_error<T>() * inverse.cwiseAbs().maxCoeff())
            << "kind " << i << ", block " << block;
      }
    }
  }

  template <class T>
  static double largest_difference(const Matrix& inverse, InverseForm form, const T* made) {
    const auto size = static_cast<int>(inverse.rows());
    double largest = 0.0;
    for (int place = 0; place < cuda::inverse_numbers(form, size); ++place) {
      const auto [row, column] = cuda::inverse_entry(form, size, place);
      const double expected = row < size && column < size ? inverse(row, column) : 0.0;
      largest = std::max(largest, std::abs(made[place] - expected));
    }
    return largest;
  }

  std::unique_ptr<Engine> engine_;
};

/// alpha h^2 / nu from 0 to 1e8.
TEST_F(InversesOnADevice, OfEveryMesh) {
  for (const int dim : {2, 3}) {
    for (test::MeshCase mesh : test::mesh_cases(dim)) {
      for (int order = 0; order <= (dim == 2 ? 5 : 2); ++order) {
        for (const double ratio : {0.0, 1.0, 1e4, 1e8}) {
          mesh.mass = 0.0;
          const Level plain = mesh.level(order);
          mesh.mass = reaction_of(ratio, plain.coefficients.viscosity, plain.grid);
          SCOPED_TRACE(mesh.name + " k = " + std::to_string(order) + " alpha h^2 / nu = " + std::to_string(ratio));
          expect_those_of_the_host(mesh.level(order));
        }
      }
    }
  }
}

/// Blocks of many tiles, several groups of them, and blocks that share a group with smaller ones.
TEST_F(InversesOnADevice, OfHighOrders) {
  constexpr auto slip = SideKind::slip;
  constexpr double viscosity = 1.3;
  for (const int order : {3, 4, 6}) {
    for (const auto& boundary : {Boundary{}, test::sides({{0, slip}}), test::sides({{1, slip}, {2, slip}})}) {
      for (const double ratio : {0.0, 1e4, 1e8}) {
        const Grid grid(test::box({3, 4, 3}), boundary, false);
        const double reaction = reaction_of(ratio, viscosity, grid);
        const Level level({.dim = 3, .order = order}, {.viscosity = viscosity, .reaction = reaction}, grid, {});
        SCOPED_TRACE("k = " + std::to_string(order) + " alpha h^2 / nu = " + std::to_string(ratio));
        expect_those_of_the_host(level);
      }
    }
  }
}

TEST(InverseForms, HaveEveryEntryOnce) {
  for (const InverseForm form : {InverseForm::padded_rows, InverseForm::operands}) {
    for (const int size : {1, 2, 4, 8, 9, 16, 18, 27, 64, 100, 125}) {
      std::vector<int> found(static_cast<std::size_t>(size) * size, 0);
      for (int place = 0; place < cuda::inverse_numbers(form, size); ++place) {
        const auto [row, column] = cuda::inverse_entry(form, size, place);
        if (row < size && column < size) ++found[row * size + column];
      }
      EXPECT_EQ(std::count(found.begin(), found.end(), 1), std::ssize(found)) << size;
    }
  }
}

}  // namespace
}  // namespace solenoid
