#include "mesh/grid.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <numeric>
#include <utility>

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

std::int64_t index(const std::array<int, 3>& extent, const std::array<int, 3>& at) {
  return at[0] + extent[0] * (at[1] + std::int64_t{extent[1]} * at[2]);
}

/// visit(i) for the cells of a row in the order of their numbers: even i, then odd i.
template <class Visit>
void for_row(int extent, Visit&& visit) {
  for (int first = 0; first < 2; ++first) {
    for (int i = first; i < extent; i += 2) visit(i);
  }
}

/// Directions of rows, of the rows of a plane, and of planes (Grid). Rows along another direction than x are not
/// shorter, unless they are long enough for two blocks of records. `ended`: directions along which there should be no
/// rows.
std::array<int, 3> numbering_of(int dim, const std::array<int, 3>& extent, const std::array<bool, 3>& ended) {
  for (int a = 0; a < dim; ++a) {
    if (ended[a] || extent[a] < std::min(extent[0], 2 * interleave)) continue;
    return a == 0 ? std::array{0, 1, 2} : a == 1 ? std::array{1, 0, 2} : std::array{2, 0, 1};
  }
  return {0, 1, 2};
}

}  // namespace

Grid::Grid(const Mesh& mesh, const Boundary& boundary, bool boundary_hats, std::shared_ptr<const Partition> partition)
    : dim_(mesh.dim), boundary_hats_(boundary_hats), partition_(std::move(partition)), metric_(Metric::of(mesh)) {
  std::array<int, 3> shift{};
  for (int a = 0; a < dim_; ++a) {
    shift[a] = mesh.refine;
    extent_[a] = metric_.extent(a);
    periodic_[a] = boundary.sides[2 * a].kind == SideKind::periodic;
  }
  copy_extent_ = extent_;
  std::array<bool, 3> ended{};
  for (int side = 0; side < 2 * dim_; ++side) {
    SideFaces& faces = side_faces_[side];
    const SideKinds kinds(mesh, boundary, side);
    for (int a = 0; a < dim_ && !kinds.uniform(); ++a) faces.extent[a] = a == side / 2 ? 1 : extent_[a];
    faces.faces.clear();
    faces.for_places([&](std::array<std::int32_t, 3> at) {
      for (int a = 0; a < dim_; ++a) at[a] >>= shift[a];
      faces.faces.push_back(face_of(kinds.at(at)));
    });
    if (faces.has(Face::slip) || faces.has(Face::outflow)) ended[side / 2] = true;
  }
  for (int i = 0; i <= std::ssize(boundary.single_holes); ++i) {
    hole_faces_.push_back(face_of(hole_side(boundary, i).kind));
  }
  whole_numbering_ = numbering_of(dim_, extent_, ended);
  for (int a = 0; a < dim_; ++a) ended[a] = ended[a] || owned_box().extent(a) < extent_[a];
  numbering_ = numbering_of(dim_, extent_, ended);

  Parts parts = parts_of(mesh, boundary);
  parts_ = parts.count;
  boxes_ = std::make_shared<const Boxes>(Boxes{mesh.cells, shift, std::move(parts.of_box)});
  find_cells();
}

int Grid::box_of(int a, int i) const {
  const int ratio = (boxes_->extent[a] << boxes_->shift[a]) / extent_[a];  // to the finest lattice
  return (i * ratio) >> boxes_->shift[a];
}

void Grid::find_cells() {
  number_cells();
  find_parts();
  connect();
}

LatticeBox Grid::owned_box() const {
  return partition_ == nullptr ? LatticeBox{{}, extent_} : partition_->box(partition_->communicator().rank(), extent_);
}

template <class Visit>
void Grid::SideFaces::for_places(const Visit& visit) const {
  for (std::int32_t z = 0; z < extent[2]; ++z) {
    for (std::int32_t y = 0; y < extent[1]; ++y) {
      for (std::int32_t x = 0; x < extent[0]; ++x) visit(std::array{x, y, z});
    }
  }
}

void Grid::number_cells() {
  const int along = numbering_[0];
  const int across = numbering_[1];
  const int planes = numbering_[2];
  // Known places, and how far from the box that is owned; all places of a direction that wraps if that is nearly all.
  const LatticeBox mine = owned_box();
  std::array<std::vector<int>, 3> away;
  std::array<std::vector<int>, 3> box;  // that the places are in
  for (int a = 0; a < 3; ++a) {
    first_[a] = mine.lower[a];
    known_[a] = mine.extent(a);
    const int beyond = partition_ == nullptr ? 0 : Partition::layers;
    if (known_[a] == extent_[a] || (periodic_[a] && known_[a] + 2 * beyond >= extent_[a])) {
      first_[a] = 0;
      known_[a] = extent_[a];
    } else if (periodic_[a]) {
      first_[a] = (mine.lower[a] - beyond + extent_[a]) % extent_[a];
      known_[a] += 2 * beyond;
    } else {
      first_[a] = std::max(0, mine.lower[a] - beyond);
      known_[a] = std::min(extent_[a], mine.upper[a] + beyond) - first_[a];
    }
    for (int i = 0; i < known_[a]; ++i) {
      const int at = (first_[a] + i) % extent_[a];
      int distance = std::numeric_limits<int>::max();
      for (const int image : {at, at - extent_[a], at + extent_[a]}) {
        if (image != at && !periodic_[a]) continue;
        distance = std::min(distance, std::max({mine.lower[a] - image, image - mine.upper[a] + 1, 0}));
      }
      away[a].push_back(distance);
      box[a].push_back(box_of(a, at));
    }
  }
  // Owned cells, ghosts next to them, and the others: groups one after the other.
  constexpr int groups = Partition::layers + 1;
  const Ranges rows{std::int64_t{known_[across]} * known_[planes], 64};
  /// visit(row, part, group and position of i in it)
  const auto for_rows = [&](const auto& visit) {
    parallel_ranges(rows, [&](CellRange range, std::int64_t) {
      for (auto row = range.begin; row < range.end; ++row) {
        const auto j = static_cast<int>(row % known_[across]);
        const auto k = static_cast<int>(row / known_[across]);
        const int nearest = std::max(away[across][j], away[planes][k]);
        const auto part = [&](int i) {
          std::array<int, 3> at{};
          at[along] = box[along][i];
          at[across] = box[across][j];
          at[planes] = box[planes][k];
          return boxes_->part[index(boxes_->extent, at)];
        };
        visit(
            row, part, [&](int i) { return std::max(nearest, away[along][i]); },
            [&](int i) {
              std::array<std::int32_t, 3> position;
              position[along] = (first_[along] + i) % extent_[along];
              position[across] = (first_[across] + j) % extent_[across];
              position[planes] = (first_[planes] + k) % extent_[planes];
              return position;
            });
      }
    });
  };
  std::vector<Record> first(groups * rows.count + 1, 0);  // [group][row]: number of the first cell
  for_rows([&](std::int64_t row, const auto& part, const auto& group, const auto& /*at*/) {
    std::array<Record, groups> count{};
    for (int i = 0; i < known_[along]; ++i) count[group(i)] += part(i) >= 0 ? 1 : 0;
    for (int g = 0; g < groups; ++g) first[g * rows.count + row + 1] = count[g];
  });
  std::partial_sum(first.begin(), first.end(), first.begin());
  lattice_.resize(rows.count * known_[along]);
  position_.resize(first.back());
  for_rows([&](std::int64_t row, const auto& part, const auto& group, const auto& at) {
    std::array<Record, groups> next{};
    for (int g = 0; g < groups; ++g) next[g] = first[g * rows.count + row];
    for_row(known_[along], [&](int i) {
      const std::array<std::int32_t, 3> position = at(i);
      const Record there = part(i);
      lattice_[place(position)] = there < 0 ? there : next[group(i)];
      if (there >= 0) position_[next[group(i)]++] = position;
    });
  });
  const Record owned = first[rows.count];
  const Record near = first[2 * rows.count] - owned;
  layout_ = VectorLayout({owned, 0}, {first.back() - owned, 0}, near);
}

std::int64_t Grid::place(const std::array<std::int32_t, 3>& position) const {
  std::array<int, 3> i{};
  for (int a = 0; a < dim_; ++a) {
    i[a] = position[a] - first_[a];
    if (i[a] < 0) i[a] += extent_[a];
    if (i[a] >= known_[a]) return -1;
  }
  return index(known_, i);
}

Record Grid::at(std::array<int, 3> position) const {
  for (int a = 0; a < dim_; ++a) {
    if (periodic_[a]) position[a] = (position[a] + extent_[a]) % extent_[a];
    if (position[a] < 0 || position[a] >= extent_[a]) return -1;
  }
  const std::int64_t here = place({position[0], position[1], position[2]});
  return here < 0 ? -1 : std::max<Record>(-1, lattice_[here]);
}

inline Record Grid::at_place(const std::array<std::int32_t, 3>& position) const {
  const std::int64_t here = place(position);
  if (here >= 0) return lattice_[here];
  const std::int32_t part = part_at(position);
  return part < 0 ? part : unknown;
}

std::int32_t Grid::part_at(const std::array<std::int32_t, 3>& position) const {
  const auto& [x, y, z] = position;
  return boxes_->part[index(boxes_->extent, {box_of(0, x), box_of(1, y), box_of(2, z)})];
}

inline Grid::Behind Grid::behind(const std::array<std::int32_t, 3>& position, int side) const {
  const int a = side / 2;
  const int step = side % 2 == 0 ? -1 : 1;
  const bool is_copied = extent_[a] != copy_extent_[a];
  const int at = (is_copied ? position[a] % copy_extent_[a] : position[a]) + step;
  const bool leaves = at < 0 || at == copy_extent_[a];
  if (leaves && !periodic_[a]) {
    std::array<std::int32_t, 3> first = position;  // of all copies
    for (int t = 0; t < dim_; ++t) first[t] %= copy_extent_[t];
    return {-1, side_faces_[side].at(first)};
  }
  std::array<std::int32_t, 3> next = position;
  next[a] += leaves ? step - step * copy_extent_[a] : step;
  const Record other = at_place(next);
  return {other == unknown ? -1 : other, other >= 0 ? Face::interior : hole_faces_[-1 - other]};
}

int Grid::hole(Record cell, int side) const {
  const int a = side / 2;
  std::array<std::int32_t, 3> position = position_[cell];
  position[a] += side % 2 == 0 ? -1 : 1;
  if (periodic_[a]) position[a] = (position[a] + extent_[a]) % extent_[a];
  if (position[a] < 0 || position[a] >= extent_[a]) return -1;
  const Record there = at_place(position);
  return there == unknown ? -1 : -1 - there;
}

void Grid::connect() {
  const auto cells = static_cast<Record>(position_.size());
  const Record owned = layout_.owned_cells().size();
  const Ranges ranges{cells};
  const int sides = 2 * dim_;
  // Hat-only records are numbered in the order of the cells below: those of a range follow those of the ranges before.
  std::vector<std::array<FaceCount, 2>> counts(ranges.number());  // [range]: of owned cells, of ghosts
  parallel_ranges(ranges, [&](CellRange range, std::int64_t i) {
    std::array<FaceCount, 2> count{};
    for (auto cell = static_cast<Record>(range.begin); cell < range.end; ++cell) {
      const auto& at = position_[cell];
      FaceCount& mine = count[cell < owned ? 0 : 1];
      for (int side = 0; side < sides; ++side) ++mine[side][static_cast<std::size_t>(behind(at, side).face)];
    }
    counts[i] = count;
  });
  face_count_ = {};
  std::vector<Record> first_hat(ranges.number());
  std::array<Record, 2> hats_of{};
  for (std::int64_t i = 0; i < ranges.number(); ++i) {
    first_hat[i] = cells + hats_of[0] + hats_of[1];
    for (int side = 0; side < sides; ++side) {
      for (const Face face : {Face::interior, Face::velocity, Face::slip, Face::outflow}) {
        const auto kind = static_cast<std::size_t>(face);
        face_count_[side][kind] += counts[i][0][side][kind];
        if (side % 2 == 0 || !stores_hat(face)) continue;
        for (int ghosts = 0; ghosts < 2; ++ghosts) {
          hats_of[ghosts] += static_cast<Record>(counts[i][ghosts][side][kind]);
        }
      }
    }
  }
  const Record hats = hats_of[0] + hats_of[1];
  cell_count_ = owned;
  if (partition_ != nullptr) {
    std::vector<std::int64_t> numbers{cell_count_};
    for (const auto& of_side : face_count_) numbers.insert(numbers.end(), of_side.begin(), of_side.end());
    add_up<std::int64_t>(numbers);
    cell_count_ = numbers[0];
    for (int side = 0; side < 6; ++side) std::copy_n(&numbers[1 + 4 * side], 4, face_count_[side].begin());
  }

  layout_ = VectorLayout({owned, hats_of[0]}, {cells - owned, hats_of[1]}, layout_.near_cells().size() - owned);
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

void Grid::find_parts() {
  if (parts_ == 1) return;
  part_.resize(position_.size());
  parallel_ranges({std::ssize(position_)}, [&](CellRange range, std::int64_t) {
    for (auto cell = range.begin; cell < range.end; ++cell) part_[cell] = part_at(position_[cell]);
  });
}

void Grid::find_faces_of_parts() {
  part_faces_.assign(parts_, 0);
  parallel_ranges({layout_.owned_cells().size()}, [&](CellRange range, std::int64_t) {
    for (auto cell = static_cast<Record>(range.begin); cell < range.end; ++cell) {
      std::uint32_t faces = 0;
      for (int side = 0; side < 2 * dim_; ++side) faces |= 1U << (4 * side + static_cast<int>(face_[side][cell]));
      const std::atomic_ref<std::uint32_t> known(part_faces_[part_[cell]]);
      if ((faces & ~known.load(std::memory_order_relaxed)) != 0) known.fetch_or(faces, std::memory_order_relaxed);
    }
  });
  if (partition_ != nullptr) partition_->communicator().any_bits(part_faces_);
}

std::optional<Coarsening> Grid::pairing(const std::array<bool, 3>& directions) const {
  for (int a = 0; a < dim_; ++a) {
    if (directions[a] && extent_[a] % 2 != 0) return {};
  }
  Coarsening pairs(extent_, directions);
  const auto first_of = [&](int a, int i) { return pairs.first_child(a, pairs.parent(a, i)); };
  std::atomic<bool> uniform{true};
  parallel_ranges({std::int64_t{known_[1]} * known_[2], 64}, [&](CellRange range, std::int64_t) {
    for (auto row = range.begin; row < range.end && uniform; ++row) {
      std::array<std::int32_t, 3> at{0, static_cast<std::int32_t>((first_[1] + row % known_[1]) % extent_[1]),
                                     static_cast<std::int32_t>((first_[2] + row / known_[1]) % extent_[2])};
      const Record* const here = &lattice_[row * known_[0]];
      std::array<std::int32_t, 3> first{0, first_of(1, at[1]), first_of(2, at[2])};
      for (int x = 0; x < known_[0]; ++x) {
        first[0] = first_of(0, (first_[0] + x) % extent_[0]);
        const std::int64_t there = place(first);
        if (there < 0) continue;  // another rank sees to it
        const Record other = lattice_[there];
        if ((here[x] >= 0) != (other >= 0)) uniform = false;
        if (here[x] < 0 && other < 0 && hole_faces_[-1 - here[x]] != hole_faces_[-1 - other]) uniform = false;
      }
    }
  });
  for (int side = 0; side < 2 * dim_; ++side) uniform = uniform && side_pairs_up(side, pairs);
  if (partition_ != nullptr) uniform = partition_->communicator().all(uniform);
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

Grid Grid::coarsen(const Coarsening& coarsening, std::shared_ptr<const Partition> partition) const {
  Grid coarse;
  coarse.dim_ = dim_;
  coarse.boundary_hats_ = boundary_hats_;
  coarse.partition_ = std::move(partition);
  coarse.boxes_ = boxes_;
  coarse.metric_ = metric_.coarsen(coarsening);
  coarse.periodic_ = periodic_;
  for (int side = 0; side < 2 * dim_; ++side) coarse.side_faces_[side] = coarsen_side(side, coarsening);
  coarse.hole_faces_ = hole_faces_;
  for (int a = 0; a < 3; ++a) coarse.extent_[a] = coarsening.coarse_extent(a);
  coarse.copy_extent_ = coarse.extent_;
  coarse.whole_numbering_ = whole_numbering_;
  coarse.numbering_ = coarse.partition_ == nullptr ? whole_numbering_ : numbering_;
  // Cells that become one are all of one part, and all there.
  coarse.parts_ = parts_;
  coarse.find_cells();
  return coarse;
}

Grid Grid::whole() const {
  if (partition_ == nullptr) return *this;
  Grid all = *this;
  all.partition_ = nullptr;
  all.numbering_ = whole_numbering_;
  all.find_cells();
  return all;
}

Grid Grid::copies(int count) const {
  Grid all = *this;
  const int last = dim_ - 1;
  const auto cells = static_cast<Record>(position_.size());
  all.extent_[last] *= count;
  all.known_[last] *= count;
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
  all.layout_ = VectorLayout({count * cells, 0});
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
