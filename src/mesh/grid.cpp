#include "mesh/grid.hpp"

#include <algorithm>

namespace solenoid {
namespace {

Face face_of(SideKind kind) {
  switch (kind) {
    case SideKind::slip: return Face::slip;
    case SideKind::outflow: return Face::outflow;
    case SideKind::periodic: return Face::interior;
    case SideKind::velocity: break;
  }
  return Face::velocity;
}

std::int64_t index(const std::array<int, 3>& extent, int x, int y, int z) {
  return x + extent[0] * (y + static_cast<std::int64_t>(extent[1]) * z);
}

bool inside(const IndexBox& box, const std::array<int, 3>& position) {
  for (int a = 0; a < 3; ++a) {
    if (position[a] < box.lower[a] || position[a] >= box.upper[a]) return false;
  }
  return true;
}

/// visit(x) for the cells of a row in the order of their numbers: even x, then odd x.
template <class Visit>
void for_row(int extent, Visit&& visit) {
  for (int first = 0; first < 2; ++first) {
    for (int x = first; x < extent; x += 2) visit(x);
  }
}

}  // namespace

Grid::Grid(const Mesh& mesh, const Boundary& boundary, bool boundary_hats)
    : dim_(mesh.dim), boundary_hats_(boundary_hats), origin_(mesh.lower), hole_face_(face_of(boundary.holes.kind)) {
  std::array<int, 3> shift{};
  for (int a = 0; a < dim_; ++a) {
    shift[a] = mesh.refine;
    extent_[a] = mesh.cells[a] << mesh.refine;
    size_[a] = (mesh.upper[a] - mesh.lower[a]) / extent_[a];
    periodic_[a] = boundary.sides[2 * a].kind == SideKind::periodic;
  }
  for (int side = 0; side < 2 * dim_; ++side) side_faces_[side] = face_of(boundary.sides[side].kind);

  lattice_.assign(static_cast<std::size_t>(extent_[0]) * extent_[1] * extent_[2], -1);
  for (int z = 0; z < extent_[2]; ++z) {
    for (int y = 0; y < extent_[1]; ++y) {
      for_row(extent_[0], [&](int x) {
        const std::array<int, 3> coarse{x >> shift[0], y >> shift[1], z >> shift[2]};
        const bool hole = std::any_of(mesh.holes.begin(), mesh.holes.end(), [&](IndexBox box) {
          if (dim_ == 2) box.lower[2] = 0, box.upper[2] = 1;
          return inside(box, coarse);
        });
        if (hole) return;
        lattice_[index(extent_, x, y, z)] = static_cast<Record>(position_.size());
        position_.push_back({x, y, z});
      });
    }
  }
  connect();
}

Grid::Record Grid::at(std::array<int, 3> position) const {
  for (int a = 0; a < dim_; ++a) {
    if (periodic_[a]) position[a] = (position[a] + extent_[a]) % extent_[a];
    if (position[a] < 0 || position[a] >= extent_[a]) return -1;
  }
  return lattice_[index(extent_, position[0], position[1], position[2])];
}

void Grid::connect() {
  constexpr Record nothing = -1;  // until the number of the null record is known
  const Record count = cells();
  for (int side = 0; side < 6; ++side) {
    const int a = side / 2;
    neighbour_[side].assign(count, nothing);
    face_[side].assign(count, Face::slip);  // third direction of a 2D grid: never asked for
    if (a >= dim_) continue;
    for (Record cell = 0; cell < count; ++cell) {
      std::array<int, 3> position = position_[cell];
      position[a] += side % 2 == 0 ? -1 : 1;
      const Record other = at(position);
      neighbour_[side][cell] = other;
      const bool at_side = position[a] < 0 || position[a] >= extent_[a];
      face_[side][cell] = other >= 0 ? Face::interior : at_side && !periodic_[a] ? side_faces_[side] : hole_face_;
    }
  }
  // Hat-only records: the normal unknowns of upper boundary faces that are stored.
  for (Record cell = 0; cell < count; ++cell) {
    for (int a = 0; a < dim_; ++a) {
      const int side = 2 * a + 1;
      const Face face = face_[side][cell];
      if (face == Face::interior || !(boundary_hats_ || face == Face::outflow)) continue;
      neighbour_[side][cell] = static_cast<Record>(neighbour_[side].size());
      for (auto& behind : neighbour_) behind.push_back(nothing);
      neighbour_[2 * a].back() = cell;
      hat_direction_.push_back(static_cast<std::uint8_t>(a));
    }
  }
  for (auto& behind : neighbour_) {
    behind.resize(null() + 1, nothing);
    std::replace(behind.begin(), behind.end(), nothing, null());
  }
  for (auto& faces : face_) faces.resize(null() + 1, Face::interior);
}

bool Grid::can_coarsen(const std::array<bool, 3>& directions) const {
  std::array<int, 3> shift{};
  for (int a = 0; a < dim_; ++a) {
    shift[a] = directions[a] ? 1 : 0;
    if (directions[a] && extent_[a] % 2 != 0) return false;
  }
  for (int z = 0; z < extent_[2]; ++z) {
    for (int y = 0; y < extent_[1]; ++y) {
      for (int x = 0; x < extent_[0]; ++x) {
        const bool here = lattice_[index(extent_, x, y, z)] >= 0;
        const int cx = x >> shift[0] << shift[0];
        const int cy = y >> shift[1] << shift[1];
        const int cz = z >> shift[2] << shift[2];
        if (here != (lattice_[index(extent_, cx, cy, cz)] >= 0)) return false;
      }
    }
  }
  return true;
}

Grid Grid::coarsen(const std::array<bool, 3>& directions) const {
  Grid coarse = *this;
  std::array<int, 3> shift{};
  for (int a = 0; a < dim_; ++a) {
    if (!directions[a]) continue;
    shift[a] = 1;
    coarse.extent_[a] = extent_[a] / 2;
    coarse.size_[a] = 2 * size_[a];
  }
  coarse.position_.clear();
  coarse.hat_direction_.clear();
  coarse.lattice_.assign(static_cast<std::size_t>(coarse.extent_[0]) * coarse.extent_[1] * coarse.extent_[2], -1);
  for (int z = 0; z < coarse.extent_[2]; ++z) {
    for (int y = 0; y < coarse.extent_[1]; ++y) {
      for_row(coarse.extent_[0], [&](int x) {
        if (lattice_[index(extent_, x << shift[0], y << shift[1], z << shift[2])] < 0) return;
        coarse.lattice_[index(coarse.extent_, x, y, z)] = coarse.cells();
        coarse.position_.push_back({x, y, z});
      });
    }
  }
  coarse.connect();
  return coarse;
}

Face Grid::hat_face(Record record) const {
  const int a = hat_direction(record);
  return face_[2 * a + 1][neighbour_[2 * a][record]];
}

Point Grid::corner(Record cell) const {
  Point corner{};
  for (int a = 0; a < dim_; ++a) corner[a] = origin_[a] + size_[a] * position_[cell][a];
  return corner;
}

bool Grid::has_face(Face kind) const {
  return std::any_of(face_.begin(), face_.begin() + 2 * dim_,
                     [&](const auto& faces) { return std::find(faces.begin(), faces.end(), kind) != faces.end(); });
}

std::int64_t Grid::bytes() const {
  std::size_t sum = lattice_.size() * sizeof(lattice_[0]) + position_.size() * sizeof(position_[0]);
  for (int side = 0; side < 6; ++side) {
    sum += neighbour_[side].size() * sizeof(Record) + face_[side].size() * sizeof(Face);
  }
  return static_cast<std::int64_t>(sum);
}

}  // namespace solenoid
