/// \file
/// Inverse Schur blocks that are made on a GPU against those of the host.

#include <gtest/gtest.h>

#include <algorithm>
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

class InversesOnADevice : public testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = cuda_unavailable();
    if (!reason.empty()) GTEST_SKIP() << "no inverses are made on a GPU: " << reason;
    engine_ = make_cuda_engine();
  }

  /// Of all kinds of patches of a level: within `bound` of the largest entry of the host's inverse.
  template <class T>
  void expect_those_of_the_host(const Level& level, InverseForm form, double bound) {
    std::vector<int> kinds(level.patches.kinds.size());
    std::iota(kinds.begin(), kinds.end(), 0);
    const Point h = level.grid.metric().uniform_width();
    std::vector<MissingInverses> missing;
    std::size_t size = 0;
    for (const int i : kinds) {
      const PatchSolver solver(level.equation, level.coefficients, h, level.patches.kinds[i]);
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

    for_each_local_solver(level, kinds, LocalSolverKind::direct, BlockInverses::here,
                          [&](std::size_t i, const PatchSolver& solver) {
                            for (std::size_t block = 0; block < solver.blocks().size(); ++block) {
                              const Matrix& inverse = *solver.blocks()[block].inverse;
                              const T* const mine = made.data() + missing[i].places[block];
                              const double difference = largest_difference(inverse, form, mine);
                              EXPECT_LE(difference, bound * inverse.cwiseAbs().maxCoeff()) << "block " << block;
                            }
                          });
  }

 private:
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

/// alpha h^2 / nu from 0 to 1e8, with h about 1.
TEST_F(InversesOnADevice, OfEveryMesh) {
  for (const int dim : {2, 3}) {
    for (test::MeshCase mesh : test::mesh_cases(dim)) {
      for (int order = 0; order <= (dim == 2 ? 5 : 2); ++order) {
        for (const double reaction : {0.0, 1.0, 1e4, 1e8}) {
          mesh.mass = reaction;
          const Level level = mesh.level(order);
          SCOPED_TRACE(mesh.name + " k = " + std::to_string(order) + " alpha = " + std::to_string(reaction));
          expect_those_of_the_host<double>(level, InverseForm::padded_rows, 1e-9);
          expect_those_of_the_host<double>(level, InverseForm::operands, 1e-9);
          expect_those_of_the_host<float>(level, InverseForm::operands, 2e-7);
        }
      }
    }
  }
}

/// Blocks of many tiles, several groups of them, and blocks that share a group with smaller ones.
TEST_F(InversesOnADevice, OfHighOrders) {
  constexpr auto slip = SideKind::slip;
  for (const int order : {3, 4, 6}) {
    for (const auto& boundary : {Boundary{}, test::sides({{0, slip}}), test::sides({{1, slip}, {2, slip}})}) {
      for (const double reaction : {0.0, 1e3, 1e8}) {
        const Level level({.dim = 3, .order = order}, {.viscosity = 1.3, .reaction = reaction},
                          Grid(test::box({3, 4, 3}), boundary, false), {});
        SCOPED_TRACE("k = " + std::to_string(order) + " alpha = " + std::to_string(reaction));
        expect_those_of_the_host<double>(level, InverseForm::padded_rows, 1e-8);
        expect_those_of_the_host<float>(level, InverseForm::operands, 2e-7);
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
