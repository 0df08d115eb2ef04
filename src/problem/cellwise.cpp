#include "solenoid/cellwise.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "image/array_file.hpp"
#include "problem/affine_map.hpp"
#include "problem/label.hpp"
#include "solenoid/error.hpp"

namespace solenoid {
namespace {

/// "4 x 8", as an array of a mesh with these cells is written.
std::string product(const std::array<std::int64_t, 3>& extent, int dim) {
  return fmt::format("{}", fmt::join(extent.begin(), extent.begin() + dim, " x "));
}

void check_extent(const Mesh& mesh, const std::array<std::int64_t, 3>& extent, const std::string& label) {
  std::array<std::int64_t, 3> cells{1, 1, 1};
  for (int a = 0; a < mesh.dim; ++a) cells[a] = mesh.cells[a];
  const std::string boxes = product(cells, mesh.dim);
  for (int refine = 0; refine <= mesh.refine; ++refine) {
    if (extent == cells) return;
    if (refine == mesh.refine) break;
    for (int a = 0; a < mesh.dim; ++a) cells[a] *= 2;
  }
  throw InputError(fmt::format(
      "{}the array has {} numbers in {}, expected one for each cell of the mesh, {}, or for each coarse box, {}{}",
      prefix(label), product(extent, mesh.dim), mesh.dim == 2 ? "x and y" : "x, y and z", product(cells, mesh.dim),
      boxes, mesh.refine > 1 ? ", or a refinement in between" : ""));
}

}  // namespace

ScalarField cellwise(const Mesh& mesh, const std::array<std::int64_t, 3>& extent, std::vector<double> values,
                     const std::string& label) {
  check_extent(mesh, extent, label);
  if (std::ssize(values) != extent[0] * extent[1] * extent[2]) {
    throw InputError(
        fmt::format("{}there are {} numbers for {} cells", prefix(label), values.size(), product(extent, mesh.dim)));
  }
  const auto shared = std::make_shared<const std::vector<double>>(std::move(values));
  Point lower = mesh.lower;
  Point length{};
  for (int a = 0; a < mesh.dim; ++a) length[a] = length_along(mesh, a);
  std::shared_ptr<const AffineMap> map;
  if (mesh.edges) {
    map = std::make_shared<const AffineMap>(mesh.dim, mesh.lower, *mesh.edges);
    lower = {};
  }
  return {
      [shared, extent, dim = mesh.dim, lower, length, map](std::span<const Point> points, std::span<double> result) {
        for (std::size_t i = 0; i < points.size(); ++i) {
          const Point x = map == nullptr ? points[i] : map->pulled_back(points[i]);
          std::int64_t place = 0;
          for (int a = dim - 1; a >= 0; --a) {
            const auto count = static_cast<double>(extent[a]);
            const double at = std::floor((x[a] - lower[a]) / length[a] * count);
            place = place * extent[a] + static_cast<std::int64_t>(std::clamp(at, 0.0, count - 1.0));
          }
          result[i] = (*shared)[place];
        }
      },
      label};
}

ScalarField read_cellwise(const Mesh& mesh, const std::filesystem::path& file, const std::string& dataset,
                          const std::string& label) {
  try {
    const ArrayFile array = open_array(file, dataset);
    if (std::ssize(array.extent) != mesh.dim) {
      throw InputError(
          fmt::format("the array has {} indices, and the mesh {} dimensions", array.extent.size(), mesh.dim));
    }
    std::array<std::int64_t, 3> extent{1, 1, 1};
    std::copy(array.extent.begin(), array.extent.end(), extent.begin());
    check_extent(mesh, extent, "");
    return cellwise(mesh, extent, read_all(array), label);
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}{}: {}", prefix(label), file.string(), error.what()));
  }
}

}  // namespace solenoid
