#include "mesh/grid.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>

#include "base/parallel.hpp"
#include "problem/parts.hpp"
#include "problem/regions.hpp"

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
std::int64_t index(const std::array<int, 3>& extent, const std::array<std::int32_t, 3>& position) {
  return index(extent, position[0], position[1], position[2]);
}

/// visit(i) for the cells of a row in the order of their numbers: even i, then odd i.
template <class Visit>
void for_row(int extent, Visit&& visit) {
  for (int first = 0; first < 2; ++first) {
    for (int i = first; i < extent; i += 2) visit(i);
  }
}

/// Directions of rows, of the rows of a plane, and of planes (Grid). Rows along another direction than x are not
/// shorter, unless they are long enough for two blocks of records. `open`: sides that should not end rows.
std::array<int, 3> numbering_of(int dim, const std::array<int, 3>& extent, const std::array<bool, 6>& open) {
  for (int a = 0; a < dim; ++a) {
    if (open[2 * a] || open[2 * a + 1] || extent[a] < std::min(extent[0], 2 * interleave)) continue;
    return a == 0 ? std::array{0, 1, 2} : a == 1 ? std::array{1, 0, 2} : std::array{2, 0, 1};
  }
  return {0, 1, 2};
}

}  // namespace

Grid::Grid(const Mesh& mesh, const Boundary& boundary, bool boundary_hats)
    : dim_(mesh.dim), boundary_hats_(boundary_hats) {
  std::array<int, 3> shift{};
  Point width{};
  for (int a = 0; a < dim_; ++a) {
    shift[a] = mesh.refine;
    extent_[a] = mesh.cells[a] << mesh.refine;
    width[a] = (mesh.upper[a] - mesh.lower[a]) / extent_[a];
    periodic_[a] = boundary.sides[2 * a].kind == SideKind::periodic;
  }
  copy_extent_ = extent_;
  metric_ = Metric::uniform(dim_, mesh.lower, width, extent_);
  std::array<bool, 6> open{};
  for (int side = 0; side < 2 * dim_; ++side) {
    SideFaces& faces = side_faces_[side];
    const SideKinds kinds(mesh, boundary, side);
    for (int a = 0; a < dim_ && !kinds.uniform(); ++a) faces.extent[a] = a == side / 2 ? 1 : extent_[a];
    faces.faces.clear();
    faces.for_places([&](std::array<std::int32_t, 3> at) {
      for (int a = 0; a < dim_; ++a) at[a] >>= shift[a];
      faces.faces.push_back(face_of(kinds.at(at)));
    });
    open[side] = faces.has(Face::slip) || faces.has(Face::outflow);
  }
  for (int i = 0; i <= std::ssize(boundary.single_holes); ++i) {
    hole_faces_.push_back(face_of(hole_side(boundary, i).kind));
  }
  numbering_ = numbering_of(dim_, extent_, open);

  const Parts parts = parts_of(mesh, boundary);
  parts_ = parts.count;
  const auto part_at = [&](int x, int y, int z) {
    return parts.of_box[number_of_box(mesh, {x >> shift[0], y >> shift[1], z >> shift[2]})];
  };
  number_cells([&](const auto& at) { return part_at(at[0], at[1], at[2]); });
  find_parts([&](const auto& at) { return part_at(at[0], at[1], at[2]); });
  connect();
}

template <class Visit>
void Grid::SideFaces::for_places(const Visit& visit) const {
  for (std::int32_t z = 0; z < extent[2]; ++z) {
    for (std::int32_t y = 0; y < extent[1]; ++y) {
      for (std::int32_t x = 0; x < extent[0]; ++x) visit(std::array{x, y, z});
    }
  }
}

template <class What>
void Grid::number_cells(const What& what) {
  const int along = numbering_[0];
  const int across = numbering_[1];
  const int planes = numbering_[2];
  const Ranges rows{std::int64_t{extent_[across]} * extent_[planes], 64};
  /// visit(row, position of i in it)
  const auto for_rows = [&](const auto& visit) {
    parallel_ranges(rows, [&](CellRange range, std::int64_t) {
      for (auto row = range.begin; row < range.end; ++row) {
        visit(row, [&](int i) {
          std::array<std::int32_t, 3> position;
          position[along] = i;
          position[across] = static_cast<std::int32_t>(row % extent_[across]);
          position[planes] = static_cast<std::int32_t>(row / extent_[across]);
          return position;
        });
      }
    });
  };
  std::vector<Record> first(rows.count + 1, 0);  // number of the first cell of a row
  for_rows([&](std::int64_t row, const auto& at) {
    Record count = 0;
    for (int i = 0; i < extent_[along]; ++i) count += what(at(i)) >= 0 ? 1 : 0;
    first[row + 1] = count;
  });
  std::partial_sum(first.begin(), first.end(), first.begin());
  lattice_.resize(rows.count * extent_[along]);
  position_.resize(first.back());
  for_rows([&](std::int64_t row, const auto& at) {
    Record next = first[row];
    for_row(extent_[along], [&](int i) {
      const std::array<std::int32_t, 3> position = at(i);
      const Record there = what(position);
      lattice_[index(extent_, position)] = there < 0 ? there : next;
      if (there >= 0) position_[next++] = position;
    });
  });
}

Record Grid::at(std::array<int, 3> position) const {
  for (int a = 0; a < dim_; ++a) {
    if (periodic_[a]) position[a] = (position[a] + extent_[a]) % extent_[a];
    if (position[a] < 0 || position[a] >= extent_[a]) return -1;
  }
  return std::max<Record>(-1, lattice_[index(extent_, position)]);
}

inline Grid::Behind Grid::behind(const std::array<std::int32_t, 3>& position, int side) const {
  const int a = side / 2;
  const int step = side % 2 == 0 ? -1 : 1;
  const bool is_copied = extent_[a] != copy_extent_[a];
  const int place = (is_copied ? position[a] % copy_extent_[a] : position[a]) + step;
  const bool leaves = place < 0 || place == copy_extent_[a];
  if (leaves && !periodic_[a]) {
    std::array<std::int32_t, 3> first = position;  // of all copies
    for (int t = 0; t < dim_; ++t) first[t] %= copy_extent_[t];
    return {-1, side_faces_[side].at(first)};
  }
  const std::int64_t stride = a == 0 ? 1 : a == 1 ? extent_[0] : std::int64_t{extent_[0]} * extent_[1];
  const std::int64_t there = index(extent_, position) + stride * (leaves ? step - step * copy_extent_[a] : step);
  const Record other = lattice_[there];
  return {other, other >= 0 ? Face::interior : hole_faces_[-1 - other]};
}

int Grid::hole(Record cell, int side) const {
  const int a = side / 2;
  std::array<int, 3> position = position_[cell];
  position[a] += side % 2 == 0 ? -1 : 1;
  if (periodic_[a]) position[a] = (position[a] + extent_[a]) % extent_[a];
  if (position[a] < 0 || position[a] >= extent_[a]) return -1;
  return -1 - lattice_[index(extent_, position)];
}

void Grid::connect() {
  const auto cells = static_cast<Record>(position_.size());
  const Ranges ranges{cells};
  const int sides = 2 * dim_;
  // Hat-only records are numbered in the order of the cells below: those of a range follow those of the ranges before.
  std::vector<FaceCount> counts(ranges.number(), FaceCount{});
  parallel_ranges(ranges, [&](CellRange range, std::int64_t i) {
    FaceCount count{};
    for (auto cell = static_cast<Record>(range.begin); cell < range.end; ++cell) {
      const auto& at = position_[cell];
      for (int side = 0; side < sides; ++side) ++count[side][static_cast<std::size_t>(behind(at, side).face)];
    }
    counts[i] = count;
  });
  face_count_ = {};
  std::vector<Record> first_hat(ranges.number());
  Record hats = 0;
  for (std::int64_t i = 0; i < ranges.number(); ++i) {
    first_hat[i] = cells + hats;
    for (int side = 0; side < sides; ++side) {
      for (const Face face : {Face::interior, Face::velocity, Face::slip, Face::outflow}) {
        const std::int64_t count = counts[i][side][static_cast<std::size_t>(face)];
        face_count_[side][static_cast<std::size_t>(face)] += count;
        if (side % 2 == 1 && stores_hat(face)) hats += static_cast<Record>(count);
      }
    }
  }

  layout_ = VectorLayout({cells, hats});
  hat_direction_.assign(hats, 0);
  for (int side = 0; side < 6; ++side) {
    neighbour_[side].resize(layout_.null() + 1);
    face_[side].resize(layout_.null() + 1);
    std::fill(neighbour_[side].begin() + cells, neighbour_[side].end(), layout_.null());
    std::fill(face_[side].begin() + cells, face_[side].end(), Face::interior);
  }
  parallel_ranges(ranges, [&](CellRange range, std::int64_t i) {
    Record next_hat = first_hat[i];
    for (auto cell = static_cast<Record>(range.begin); cell < range.end; ++cell) {
      const auto& at = position_[cell];
      for (int side = 0; side < 6; ++side) {
        const auto [other, face] = side < sides ? behind(at, side) : Behind{-1, Face::interior};
        face_[side][cell] = face;
        neighbour_[side][cell] = other >= 0 ? other : layout_.null();
        if (side % 2 == 0 || !stores_hat(face)) continue;
        neighbour_[side][cell] = next_hat;
        neighbour_[side - 1][next_hat] = cell;
        hat_direction_[next_hat++ - cells] = static_cast<std::uint8_t>(side / 2);
      }
    }
  });
  if (parts_ > 1) find_faces_of_parts();
}

template <class PartAt>
void Grid::find_parts(const PartAt& part_at) {
  if (parts_ == 1) return;
  part_.resize(position_.size());
  parallel_ranges({std::ssize(position_)}, [&](CellRange range, std::int64_t) {
    for (auto cell = range.begin; cell < range.end; ++cell) part_[cell] = part_at(position_[cell]);
  });
}

void Grid::find_faces_of_parts() {
  part_faces_.assign(parts_, 0);
  parallel_ranges({layout_.cells().size()}, [&](CellRange range, std::int64_t) {
    for (auto cell = static_cast<Record>(range.begin); cell < range.end; ++cell) {
      std::uint32_t faces = 0;
      for (int side = 0; side < 2 * dim_; ++side) faces |= 1U << (4 * side + static_cast<int>(face_[side][cell]));
      const std::atomic_ref<std::uint32_t> known(part_faces_[part_[cell]]);
      if ((faces & ~known.load(std::memory_order_relaxed)) != 0) known.fetch_or(faces, std::memory_order_relaxed);
    }
  });
}

std::optional<Coarsening> Grid::pairing(const std::array<bool, 3>& directions) const {
  for (int a = 0; a < dim_; ++a) {
    if (directions[a] && extent_[a] % 2 != 0) return {};
  }
  Coarsening pairs(extent_, directions);
  const auto first_of = [&](int a, int i) { return pairs.first_child(a, pairs.parent(a, i)); };
  std::atomic<bool> uniform{true};
  parallel_ranges({std::int64_t{extent_[1]} * extent_[2], 64}, [&](CellRange range, std::int64_t) {
    for (auto row = range.begin; row < range.end && uniform; ++row) {
      const int y = static_cast<int>(row % extent_[1]);
      const int z = static_cast<int>(row / extent_[1]);
      const Record* here = &lattice_[index(extent_, 0, y, z)];
      const Record* first = &lattice_[index(extent_, 0, first_of(1, y), first_of(2, z))];
      for (int x = 0; x < extent_[0]; ++x) {
        const Record other = first[first_of(0, x)];
        if ((here[x] >= 0) != (other >= 0)) uniform = false;
        if (here[x] < 0 && other < 0 && hole_faces_[-1 - here[x]] != hole_faces_[-1 - other]) uniform = false;
      }
    }
  });
  for (int side = 0; side < 2 * dim_; ++side) uniform = uniform && side_pairs_up(side, pairs);
  if (!uniform) return {};
  return pairs;
}

bool Grid::side_pairs_up(int side, const Coarsening& pairs) const {
  bool result = true;
  side_faces_[side].for_places([&](const std::array<std::int32_t, 3>& at) {
    std::array<std::int32_t, 3> first{};
    for (int a = 0; a < dim_; ++a) first[a] = pairs.first_child(a, pairs.parent(a, at[a]));
    if (side_faces_[side].at(at) != side_faces_[side].at(first)) result = false;
  });
  return result;
}

Grid::SideFaces Grid::coarsen_side(int side, const Coarsening& coarsening) const {
  const SideFaces& fine = side_faces_[side];
  if (fine.faces.size() == 1) return fine;
  SideFaces coarse{fine.extent, {}};
  for (int a = 0; a < dim_; ++a) {
    if (a != side / 2) coarse.extent[a] = coarsening.coarse_extent(a);
  }
  coarse.for_places([&](std::array<std::int32_t, 3> at) {
    for (int a = 0; a < dim_; ++a) at[a] = coarsening.first_child(a, at[a]);
    coarse.faces.push_back(fine.at(at));
  });
  return coarse;
}

Grid Grid::coarsen(const Coarsening& coarsening) const {
  Grid coarse;
  coarse.dim_ = dim_;
  coarse.boundary_hats_ = boundary_hats_;
  coarse.metric_ = metric_.coarsen(coarsening);
  coarse.periodic_ = periodic_;
  for (int side = 0; side < 2 * dim_; ++side) coarse.side_faces_[side] = coarsen_side(side, coarsening);
  coarse.hole_faces_ = hole_faces_;
  for (int a = 0; a < 3; ++a) coarse.extent_[a] = coarsening.coarse_extent(a);
  coarse.copy_extent_ = coarse.extent_;
  coarse.numbering_ = numbering_;
  const auto child = [&](const std::array<std::int32_t, 3>& at) {
    return lattice_[index(extent_, coarsening.first_child(0, at[0]), coarsening.first_child(1, at[1]),
                          coarsening.first_child(2, at[2]))];
  };
  coarse.number_cells(child);
  // Cells that become one are all of one part, and all there.
  coarse.parts_ = parts_;
  coarse.find_parts([&](const auto& at) { return part_[child(at)]; });
  coarse.connect();
  return coarse;
}

Grid Grid::copies(int count) const {
  Grid all = *this;
  const int last = dim_ - 1;
  const auto cells = static_cast<Record>(position_.size());
  all.extent_[last] *= count;
  all.metric_ = metric_.repeat(last, count);
  all.lattice_.resize(count * lattice_.size());
  all.position_.resize(count * position_.size());
  parallel_ranges({count, 1}, [&](CellRange range, std::int64_t) {
    for (auto copy = static_cast<Record>(range.begin); copy < range.end; ++copy) {
      std::transform(lattice_.begin(), lattice_.end(), all.lattice_.begin() + copy * std::ssize(lattice_),
                     [&](Record cell) { return cell < 0 ? cell : cell + copy * cells; });
      std::transform(position_.begin(), position_.end(), all.position_.begin() + copy * std::ssize(position_),
                     [&](auto position) {
                       position[last] += copy * extent_[last];
                       return position;
                     });
    }
  });
  all.parts_ = 1;
  all.part_.clear();
  all.connect();
  return all;
}

Face Grid::hat_face(Record record) const {
  const int a = hat_direction(record);
  return face_[2 * a + 1][neighbour_[2 * a][record]];
}

Point Grid::corner(Record cell) const {
  const auto& [x, y, z] = position_[cell];
  return {metric_.plane(0, x), metric_.plane(1, y), metric_.plane(2, z)};
}

Point Grid::widths(Record cell) const {
  const auto& [x, y, z] = position_[cell];
  return {metric_.width(0, x), metric_.width(1, y), metric_.width(2, z)};
}

bool Grid::has_face(int part, int side, Face kind) const {
  if (parts_ == 1) return count_faces(side, kind) > 0;
  return (part_faces_[part] >> (4 * side + static_cast<int>(kind)) & 1) != 0;
}

bool Grid::has_face(int part, Face kind) const {
  for (int side = 0; side < 2 * dim_; ++side) {
    if (has_face(part, side, kind)) return true;
  }
  return false;
}

std::int64_t Grid::bytes() const {
  std::size_t sum =
      part_.size() * sizeof(part_[0]) + lattice_.size() * sizeof(lattice_[0]) + position_.size() * sizeof(position_[0]);
  for (int side = 0; side < 6; ++side) {
    sum += neighbour_[side].size() * sizeof(Record) + face_[side].size() * sizeof(Face);
  }
  return static_cast<std::int64_t>(sum);
}

}  // namespace solenoid
