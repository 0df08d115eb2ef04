#include "solenoid/image.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "base/available_memory.hpp"
#include "image/rows.hpp"
#include "solenoid/error.hpp"

namespace solenoid {
namespace {

/// Far beyond any mesh, so that sizes in bytes are safe.
constexpr std::int64_t most_places = std::int64_t{1} << 40;

std::vector<std::uint64_t> rows_from(int dim, const std::array<int, 3>& extent,
                                     const std::function<bool(const std::array<int, 3>&)>& solid) {
  validate_extent(dim, extent);
  return make_rows_of(extent, [&](int x, int y, int z) { return solid({x, y, z}); });
}

}  // namespace

void validate_extent(int dim, const std::array<int, 3>& extent) {
  if (dim != 2 && dim != 3) throw InputError(fmt::format("an image has 2 or 3 dimensions, got {}", dim));
  std::int64_t rows = 1;
  for (int a = 2; a >= 0; --a) {
    if (extent[a] < 1 || (a >= dim && extent[a] != 1)) {
      throw InputError(
          fmt::format("an image has at least one voxel in each direction, got {}", fmt::join(extent, " x ")));
    }
    const auto places = a == 0 ? static_cast<std::int64_t>(64 * VoxelImage::words_of_row(extent[0])) : extent[a];
    if (places > most_places / rows) {
      throw InputError(fmt::format("an image has at most {} voxels, got {}", most_places, fmt::join(extent, " x ")));
    }
    rows *= places;
  }
}

std::vector<std::uint64_t> no_rows(const std::array<int, 3>& extent) {
  const std::size_t words = VoxelImage::words_of_row(extent[0]) * static_cast<std::size_t>(extent[1]) * extent[2];
  const auto bytes = static_cast<std::int64_t>(words * sizeof(std::uint64_t));
  if (const std::int64_t available = available_memory(); bytes > available) {
    throw ResourceError(fmt::format("not enough memory: an image of {} voxels needs {:.2f} GB, {:.2f} GB are available",
                                    fmt::join(extent, " x "), static_cast<double>(bytes) * 1e-9,
                                    static_cast<double>(available) * 1e-9));
  }
  return std::vector<std::uint64_t>(words);
}

VoxelImage::VoxelImage(int dim, const std::array<int, 3>& extent,
                       const std::function<bool(const std::array<int, 3>&)>& solid, const std::array<double, 3>& voxel)
    : VoxelImage(dim, extent, rows_from(dim, extent, solid), voxel) {}

VoxelImage::VoxelImage(int dim, const std::array<int, 3>& extent, std::vector<std::uint64_t> rows,
                       const std::array<double, 3>& voxel)
    : dim_(dim), extent_(extent), voxel_(voxel), rows_(std::move(rows)) {
  validate_extent(dim, extent);
  for (int a = 0; a < dim; ++a) {
    if (!(voxel[a] > 0.0) || !std::isfinite(voxel[a])) {
      throw InputError(fmt::format("the size of a voxel must be positive and finite, got {}", voxel[a]));
    }
  }
  const std::size_t words = words_of_row(extent[0]);
  const std::int64_t count = std::int64_t{extent[1]} * extent[2];
  if (rows_.size() != words * static_cast<std::size_t>(count)) {
    throw InputError(fmt::format("an image of {} voxels has {} rows of {} words, got {} words",
                                 fmt::join(extent, " x "), count, words, rows_.size()));
  }
  const std::uint64_t last = ~std::uint64_t{0} >> (64 * words - static_cast<std::size_t>(extent[0]));
  std::atomic<std::int64_t> solids{0};
  parallel_ranges({count, 256}, [&](CellRange range, std::int64_t) {
    std::int64_t here = 0;
    for (auto row = range.begin; row < range.end; ++row) {
      std::uint64_t* const of_row = &rows_[words * static_cast<std::size_t>(row)];
      of_row[words - 1] &= last;
      for (std::size_t i = 0; i < words; ++i) here += std::popcount(of_row[i]);
    }
    solids += here;
  });
  solids_ = solids;
}

bool VoxelImage::in_blocks(int a, int size) const {
  std::array<int, 3> at{};
  for (at[2] = 0; at[2] < extent_[2]; ++at[2]) {
    for (at[1] = 0; at[1] < extent_[1]; ++at[1]) {
      for (at[0] = 0; at[0] < extent_[0]; ++at[0]) {
        auto first = at;
        first[a] = at[a] / size * size;
        if (solid(at) != solid(first)) return false;
      }
    }
  }
  return true;
}

VoxelImage VoxelImage::crop(const std::array<int, 3>& lower, const std::array<int, 3>& upper) const {
  std::array<int, 3> extent{1, 1, 1};
  std::array<int, 3> first{};
  for (int a = 0; a < dim_; ++a) {
    if (lower[a] < 0 || lower[a] >= upper[a] || upper[a] > extent_[a]) {
      throw InputError(fmt::format("the voxels from {} to before {} in {} are none of the image, which has {} there",
                                   lower[a], upper[a], "xyz"[a], extent_[a]));
    }
    first[a] = lower[a];
    extent[a] = upper[a] - lower[a];
  }
  return {dim_, extent,
          make_rows_of(extent,
                       [&](int x, int y, int z) {
                         return solid({first[0] + x, first[1] + y, first[2] + z});
                       }),
          voxel_};
}

VoxelImage VoxelImage::mirror(const std::array<bool, 3>& directions) const {
  std::array<int, 3> extent = extent_;
  for (int a = 0; a < dim_; ++a) {
    if (!directions[a]) continue;
    if (extent[a] > std::numeric_limits<int>::max() / 2) throw InputError("an image that large cannot be mirrored");
    extent[a] *= 2;
  }
  validate_extent(dim_, extent);
  const auto folded = [&](int a, int i) { return i < extent_[a] ? i : extent[a] - 1 - i; };
  return {dim_, extent,
          make_rows_of(extent,
                       [&](int x, int y, int z) {
                         return solid({folded(0, x), folded(1, y), folded(2, z)});
                       }),
          voxel_};
}

}  // namespace solenoid
