#pragma once
/// \file
/// The rows of an image while it is made.

#include <array>
#include <cstdint>
#include <vector>

#include "base/parallel.hpp"
#include "solenoid/image.hpp"

namespace solenoid {

/// \throws InputError unless there can be an image of so many voxels.
void validate_extent(int dim, const std::array<int, 3>& extent);

/// The words of an image that is all pore; its extent must be valid. \throws ResourceError if there is no room for
/// them.
std::vector<std::uint64_t> no_rows(const std::array<int, 3>& extent);

/// Makes the voxels of a row from `begin` to before `end` solid.
inline void fill_voxels(std::uint64_t* row, int begin, int end) {
  for (int x = begin; x < end; ++x) row[x / 64] |= std::uint64_t{1} << (x % 64);
}

/// Calls fill(words of the row, y, z) for every row, on all cores; words are 0 before.
template <class Fill>
std::vector<std::uint64_t> make_rows(const std::array<int, 3>& extent, const Fill& fill) {
  const std::size_t words = VoxelImage::words_of_row(extent[0]);
  const std::int64_t count = std::int64_t{extent[1]} * extent[2];
  std::vector<std::uint64_t> rows = no_rows(extent);
  parallel_ranges({count, 64}, [&](CellRange range, std::int64_t) {
    for (auto row = range.begin; row < range.end; ++row) {
      fill(&rows[words * static_cast<std::size_t>(row)], static_cast<int>(row % extent[1]),
           static_cast<int>(row / extent[1]));
    }
  });
  return rows;
}

/// The same from solid(x, y, z).
template <class Solid>
std::vector<std::uint64_t> make_rows_of(const std::array<int, 3>& extent, const Solid& solid) {
  return make_rows(extent, [&](std::uint64_t* row, int y, int z) {
    for (int x = 0; x < extent[0]; ++x) row[x / 64] |= std::uint64_t{solid(x, y, z) ? 1U : 0U} << (x % 64);
  });
}

}  // namespace solenoid
