#include "problem/parts.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "base/interrupt.hpp"
#include "problem/regions.hpp"

namespace solenoid {
namespace {

constexpr std::int32_t unvisited = std::numeric_limits<std::int32_t>::min();

/// The coarse boxes as a lattice, x fastest.
class Lattice {
 public:
  Lattice(const Mesh& mesh, const Boundary& boundary) {
    for (int a = 0; a < mesh.dim; ++a) {
      extent_[a] = mesh.cells[a];
      periodic_[a] = boundary.sides[2 * a].kind == SideKind::periodic;
    }
  }

  [[nodiscard]] std::int64_t size() const { return std::int64_t{extent_[0]} * extent_[1] * extent_[2]; }
  [[nodiscard]] std::int64_t index(const std::array<int, 3>& p) const {
    return p[0] + extent_[0] * (p[1] + std::int64_t{extent_[1]} * p[2]);
  }

  /// visit(neighbour) for the boxes behind the faces of box i.
  template <class Visit>
  void for_neighbours(std::int64_t i, const Visit& visit) const {
    const std::int64_t row = i / extent_[0];
    const std::array<int, 3> here{static_cast<int>(i % extent_[0]), static_cast<int>(row % extent_[1]),
                                  static_cast<int>(row / extent_[1])};
    for (int side = 0; side < 6; ++side) {
      auto other = here;
      const int a = side / 2;
      other[a] += side % 2 == 0 ? -1 : 1;
      if (periodic_[a]) other[a] = (other[a] + extent_[a]) % extent_[a];
      if (other[a] >= 0 && other[a] < extent_[a]) visit(index(other));
    }
  }

 private:
  std::array<int, 3> extent_{1, 1, 1};
  std::array<bool, 3> periodic_{};
};

}  // namespace

std::vector<std::int32_t> holes_of_boxes(const Mesh& mesh) {
  const int layers = mesh.dim == 3 ? mesh.cells[2] : 1;
  std::vector<std::int32_t> holes(number_of_box(mesh, {0, 0, layers}), -1);
  for (std::size_t i = 0; i < mesh.holes.size(); ++i) {
    IndexBox box = mesh.holes[i];
    if (mesh.dim == 2) box.lower[2] = 0, box.upper[2] = 1;
    for (int z = box.lower[2]; z < box.upper[2]; ++z) {
      for (int y = box.lower[1]; y < box.upper[1]; ++y) {
        const auto row = holes.begin() + number_of_box(mesh, {0, y, z});
        std::fill(row + box.lower[0], row + box.upper[0], static_cast<std::int32_t>(i));
      }
    }
  }
  return holes;
}

Parts parts_of(const Mesh& mesh, const Boundary& boundary) {
  const Lattice lattice(mesh, boundary);
  if (mesh.holes.empty()) return {1, std::vector<std::int32_t>(lattice.size(), 0)};
  Parts parts{0, std::vector<std::int32_t>(lattice.size(), unvisited)};
  const std::vector<int> sides = hole_sides(mesh, boundary);
  const std::vector<std::int32_t> holes = holes_of_boxes(mesh);
  for (std::size_t box = 0; box < holes.size(); ++box) {
    if (holes[box] >= 0) parts.of_box[box] = -1 - sides[holes[box]];
  }
  std::vector<std::int64_t> front;
  for (std::int64_t first = 0; first < lattice.size(); ++first) {
    if (parts.of_box[first] != unvisited) continue;
    const std::int32_t part = parts.count++;
    const auto visit = [&](std::int64_t box) {
      if (parts.of_box[box] != unvisited) return;
      parts.of_box[box] = part;
      front.push_back(box);
    };
    visit(first);
    while (!front.empty()) {
      check_interrupt();
      const std::int64_t here = front.back();
      front.pop_back();
      lattice.for_neighbours(here, visit);
    }
  }
  return parts;
}

}  // namespace solenoid
