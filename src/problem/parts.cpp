#include "problem/parts.hpp"

#include <algorithm>
#include <array>

#include "base/parallel.hpp"
#include "image/connectivity.hpp"
#include "image/rows.hpp"
#include "problem/regions.hpp"

namespace solenoid {
namespace {

/// visit(y, z) for the rows of a hole.
template <class Visit>
void for_rows_of(const Mesh& mesh, const IndexBox& hole, const Visit& visit) {
  for (int z = mesh.dim == 3 ? hole.lower[2] : 0; z < (mesh.dim == 3 ? hole.upper[2] : 1); ++z) {
    for (int y = hole.lower[1]; y < hole.upper[1]; ++y) visit(y, z);
  }
}

}  // namespace

int hole_count(const Mesh& mesh) {
  if (mesh.image != nullptr) return mesh.image->solids() > 0 ? 1 : 0;
  return static_cast<int>(mesh.holes.size());
}

std::shared_ptr<const VoxelImage> image_of(const Mesh& mesh) {
  if (mesh.image != nullptr) return mesh.image;
  std::array<int, 3> extent{1, 1, 1};
  std::copy_n(mesh.cells.begin(), mesh.dim, extent.begin());
  std::vector<std::uint64_t> rows = no_rows(extent);
  const std::size_t words = VoxelImage::words_of_row(extent[0]);
  for (const IndexBox& hole : mesh.holes) {
    for_rows_of(mesh, hole, [&](int y, int z) {
      std::uint64_t* const row = &rows[words * (y + static_cast<std::size_t>(extent[1]) * z)];
      fill_voxels(row, hole.lower[0], hole.upper[0]);
    });
  }
  return std::make_shared<const VoxelImage>(mesh.dim, extent, std::move(rows));
}

std::vector<std::int32_t> holes_of_boxes(const Mesh& mesh) {
  const int layers = mesh.dim == 3 ? mesh.cells[2] : 1;
  std::vector<std::int32_t> holes(number_of_box(mesh, {0, 0, layers}), -1);
  if (mesh.image != nullptr) {
    parallel_ranges({std::ssize(holes)}, [&](CellRange range, std::int64_t) {
      for (auto box = range.begin; box < range.end; ++box) {
        const std::int64_t row = box / mesh.cells[0];
        if (mesh.image->solid({static_cast<int>(box % mesh.cells[0]), static_cast<int>(row % mesh.cells[1]),
                               static_cast<int>(row / mesh.cells[1])})) {
          holes[box] = 0;
        }
      }
    });
  }
  for (std::size_t i = 0; i < mesh.holes.size(); ++i) {
    for_rows_of(mesh, mesh.holes[i], [&](int y, int z) {
      const auto row = holes.begin() + number_of_box(mesh, {0, y, z});
      std::fill(row + mesh.holes[i].lower[0], row + mesh.holes[i].upper[0], static_cast<std::int32_t>(i));
    });
  }
  return holes;
}

Parts parts_of(const Mesh& mesh, const Boundary& boundary) {
  if (hole_count(mesh) == 0) {
    const std::int64_t boxes = number_of_box(mesh, {0, 0, mesh.dim == 3 ? mesh.cells[2] : 1});
    return {1, Unset<std::int32_t>(boxes, 0)};
  }
  std::array<bool, 3> periodic{};
  for (int a = 0; a < mesh.dim; ++a) periodic[a] = boundary.sides[2 * a].kind == SideKind::periodic;
  const std::shared_ptr<const VoxelImage> image = image_of(mesh);
  const Connectivity pores(*image, periodic);
  Parts parts{static_cast<int>(pores.components().size()), pores.of_voxels()};
  if (boundary.single_holes.empty()) return parts;  // all have the condition 0
  const std::vector<int> sides = hole_sides(mesh, boundary);
  const std::vector<std::int32_t> holes = holes_of_boxes(mesh);
  for (std::size_t box = 0; box < holes.size(); ++box) {
    if (holes[box] >= 0) parts.of_box[box] = -1 - sides[holes[box]];
  }
  return parts;
}

}  // namespace solenoid
