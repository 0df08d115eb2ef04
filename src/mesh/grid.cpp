#include "mesh/grid.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
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
    const int beyond = partition_ == nullptr ? 0 : ghost_layers();
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
  constexpr int groups = std::max(Partition::layers, Partition::sheared_layers) + 1;
  const Ranges rows{std::int64_t{known_[across]} * known_[planes], 64};
  struct Row {
    std::int64_t number;
    const std::int32_t* part;  // of the boxes along it
    std::int64_t place;        // of its first cell in the lattice
    int nearest;
    std::array<std::int32_t, 3> position;
  };
  const auto strides = [](const std::array<int, 3>& extent) {
    return std::array<std::int64_t, 3>{1, extent[0], std::int64_t{extent[0]} * extent[1]};
  };
  const auto of_box = strides(boxes_->extent);
  const auto of_place = strides(known_);
  const auto for_rows = [&](const auto& visit) {
    parallel_ranges(rows, [&](CellRange range, std::int64_t) {
      for (auto row = range.begin; row < range.end; ++row) {
        const auto j = static_cast<int>(row % known_[across]);
        const auto k = static_cast<int>(row / known_[across]);
        Row here{row,
                 &boxes_->part[of_box[across] * box[across][j] + of_box[planes] * box[planes][k]],
                 of_place[across] * j + of_place[planes] * k,
                 std::max(away[across][j], away[planes][k]),
                 {}};
        here.position[across] = (first_[across] + j) % extent_[across];
        here.position[planes] = (first_[planes] + k) % extent_[planes];
        visit(here);
      }
    });
  };
  const auto part = [&](const Row& row, int i) { return row.part[of_box[along] * box[along][i]]; };
  const auto group = [&](const Row& row, int i) { return std::max(row.nearest, away[along][i]); };
  std::vector<Record> first(groups * rows.count + 1, 0);  // [group][row]: number of the first cell
  for_rows([&](const Row& row) {
    std::array<Record, groups> count{};
    for (int i = 0; i < known_[along]; ++i) count[group(row, i)] += part(row, i) >= 0 ? 1 : 0;
    for (int g = 0; g < groups; ++g) first[g * rows.count + row.number + 1] = count[g];
  });
  std::partial_sum(first.begin(), first.end(), first.begin());
  auto cells = std::make_shared<Cells>();
  cells->lattice.resize(rows.count * known_[along]);
  cells->position.resize(first.back());
  for_rows([&](Row row) {
    std::array<Record, groups> next{};
    for (int g = 0; g < groups; ++g) next[g] = first[g * rows.count + row.number];
    for_row(known_[along], [&](int i) {
      Record& there = cells->lattice[row.place + of_place[along] * i];
      there = part(row, i);
      if (there < 0) return;
      there = next[group(row, i)]++;
      row.position[along] = (first_[along] + i) % extent_[along];
      cells->position[there] = row.position;
    });
  });
  const Record owned = first[rows.count];
  const Record near = first[2 * rows.count] - owned;
  layout_ = VectorLayout({owned, 0}, {first.back() - owned, 0}, near);
  find_parts(*cells);
  cells_ = std::move(cells);
}

void Grid::find_parts(Cells& cells) const {
  if (parts_ == 1) return;
  cells.part.resize(cells.position.size());
  parallel_ranges({std::ssize(cells.part)}, [&](CellRange range, std::int64_t) {
    for (auto cell = range.begin; cell < range.end; ++cell) cells.part[cell] = part_at(cells.position[cell]);
  });
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
  return here < 0 ? -1 : std::max<Record>(-1, cells_->lattice[here]);
}

inline Record Grid::at_place(const std::array<std::int32_t, 3>& position) const {
  const std::int64_t here = place(position);
  if (here >= 0) return cells_->lattice[here];
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
  std::array<std::int32_t, 3> position = cells_->position[cell];
  position[a] += side % 2 == 0 ? -1 : 1;
  if (periodic_[a]) position[a] = (position[a] + extent_[a]) % extent_[a];
  if (position[a] < 0 || position[a] >= extent_[a]) return -1;
  const Record there = at_place(position);
  return there == unknown ? -1 : -1 - there;
}

void Grid::connect() {
  const Record cells = layout_.cells().size();
  const Record owned = layout_.owned_cells().size();
  const Ranges ranges{cells};
  const int sides = 2 * dim_;
  hat_direction_.clear();
  auto connections = std::make_shared<Connections>();
  auto& [neighbour, face] = *connections;
  for (int side = 0; side < 6; ++side) {
    neighbour[side].resize(layout_.null() + 1);
    face[side].resize(layout_.null() + 1);
    std::fill(neighbour[side].begin() + cells, neighbour[side].end(), layout_.null());
    std::fill(face[side].begin() + cells, face[side].end(), Face::interior);
  }
  std::vector<FaceCount> counts(ranges.number());  // [range]: of owned cells
  parallel_ranges(ranges, [&](CellRange range, std::int64_t i) {
    for (auto cell = static_cast<Record>(range.begin); cell < range.end; ++cell) {
      const auto& at = cells_->position[cell];
      for (int side = 0; side < 6; ++side) {
        const auto there = side < sides ? behind(at, side) : Behind{-1, Face::interior};
        face[side][cell] = there.face;
        neighbour[side][cell] = there.cell >= 0 ? there.cell : layout_.null();
        if (side < sides && cell < owned) ++counts[i][side][static_cast<std::size_t>(there.face)];
      }
    }
  });
  connections_ = std::move(connections);
  face_count_ = {};
  for (const FaceCount& count : counts) {
    for (int side = 0; side < sides; ++side) {
      std::transform(count[side].begin(), count[side].end(), face_count_[side].begin(), face_count_[side].begin(),
                     std::plus());
    }
  }
  cell_count_ = owned;
  if (partition_ != nullptr) {
    std::vector<std::int64_t> numbers{cell_count_};
    for (const auto& of_side : face_count_) numbers.insert(numbers.end(), of_side.begin(), of_side.end());
    add_up<std::int64_t>(numbers);
    cell_count_ = numbers[0];
    for (int side = 0; side < 6; ++side) std::copy_n(&numbers[1 + 4 * side], 4, face_count_[side].begin());
  }
  if (parts_ > 1) find_faces_of_parts();
  store_hats();
}

bool Grid::stores_hat(Record cell, int side) const {
  const Face kind = face(cell, side);
  if (kind == Face::outflow || kind == Face::interior || !boundary_hats_) return kind == Face::outflow;
  const int condition = hole(cell, side);
  return condition < 0 || hole_rests_.empty() || !hole_rests_[condition];
}

void Grid::store_hats() {
  // Hat-only records are numbered in the order of the cells below, those of owned cells first.
  const Record cells = layout_.cells().size();
  const Record owned = layout_.owned_cells().size();
  const Ranges ranges{cells};
  const auto for_hats = [&](const auto& visit) {
    parallel_ranges(ranges, [&](CellRange range, std::int64_t i) {
      for (auto cell = static_cast<Record>(range.begin); cell < range.end; ++cell) {
        for (int side = 1; side < 2 * dim_; side += 2) {
          if (stores_hat(cell, side)) visit(i, cell, side);
        }
      }
    });
  };
  std::vector<Record> first(ranges.number() + 1, 0);  // [range]
  std::vector<Record> of_ghosts(ranges.number(), 0);
  for_hats([&](std::int64_t i, Record cell, int /*side*/) {
    ++first[i + 1];
    if (cell >= owned) ++of_ghosts[i];
  });
  std::partial_sum(first.begin(), first.end(), first.begin());
  if (first.back() == 0) return;
  const Record ghosts = std::accumulate(of_ghosts.begin(), of_ghosts.end(), Record{0});
  const Record before = layout_.null();
  layout_ = VectorLayout({owned, first.back() - ghosts}, {cells - owned, ghosts}, layout_.near_cells().size() - owned);
  const Record null = layout_.null();
  auto connections = std::make_shared<Connections>();
  auto& [neighbours, faces] = *connections;
  for (int side = 0; side < 6; ++side) {
    neighbours[side].resize(null + 1);
    faces[side].resize(null + 1);
    parallel_ranges({null + 1}, [&](CellRange range, std::int64_t) {
      for (auto r = static_cast<Record>(range.begin); r < range.end; ++r) {
        neighbours[side][r] = r < cells && neighbour(r, side) != before ? neighbour(r, side) : null;
        faces[side][r] = r < cells ? face(r, side) : Face::interior;
      }
    });
  }
  hat_direction_.assign(first.back(), 0);
  for_hats([&](std::int64_t i, Record cell, int side) {
    const Record hat = cells + first[i]++;
    neighbours[side][cell] = hat;
    neighbours[side - 1][hat] = cell;
    hat_direction_[hat - cells] = static_cast<std::uint8_t>(side / 2);
  });
  connections_ = std::move(connections);
}

void Grid::find_faces_of_parts() {
  part_faces_.assign(parts_, 0);
  parallel_ranges({layout_.owned_cells().size()}, [&](CellRange range, std::int64_t) {
    for (auto cell = static_cast<Record>(range.begin); cell < range.end; ++cell) {
      std::uint32_t faces = 0;
      for (int side = 0; side < 2 * dim_; ++side) faces |= 1U << (4 * side + static_cast<int>(face(cell, side)));
      const std::atomic_ref<std::uint32_t> known(part_faces_[cells_->part[cell]]);
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
      const Record* const here = &cells_->lattice[row * known_[0]];
      std::array<std::int32_t, 3> first{0, first_of(1, at[1]), first_of(2, at[2])};
      for (int x = 0; x < known_[0]; ++x) {
        first[0] = first_of(0, (first_[0] + x) % extent_[0]);
        const std::int64_t there = place(first);
        if (there < 0) continue;  // another rank sees to it
        const Record other = cells_->lattice[there];
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
  coarse.hole_rests_ = hole_rests_;
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

Grid Grid::with_boundary_hats(std::vector<bool> resting) const {
  Grid all = *this;
  all.boundary_hats_ = true;
  all.hole_rests_ = std::move(resting);
  all.store_hats();
  return all;
}

Grid Grid::copies(int count) const {
  Grid all = *this;
  const int last = dim_ - 1;
  const Record cells = layout_.cells().size();
  all.extent_[last] *= count;
  all.known_[last] *= count;
  all.metric_ = metric_.repeat(last, count);
  const Cells& one = *cells_;
  auto several = std::make_shared<Cells>();
  several->lattice.resize(count * one.lattice.size());
  several->position.resize(count * one.position.size());
  parallel_ranges({count, 1}, [&](CellRange range, std::int64_t) {
    for (auto copy = static_cast<Record>(range.begin); copy < range.end; ++copy) {
      std::transform(one.lattice.begin(), one.lattice.end(), several->lattice.begin() + copy * std::ssize(one.lattice),
                     [&](Record cell) { return cell < 0 ? cell : cell + copy * cells; });
      std::transform(one.position.begin(), one.position.end(),
                     several->position.begin() + copy * std::ssize(one.position), [&](auto position) {
                       position[last] += copy * extent_[last];
                       return position;
                     });
    }
  });
  all.cells_ = std::move(several);
  all.parts_ = 1;
  all.layout_ = VectorLayout({count * cells, 0});
  all.connect();
  return all;
}

Face Grid::hat_face(Record record) const {
  const int a = hat_direction(record);
  return face(neighbour(record, 2 * a), 2 * a + 1);
}

Point Grid::corner(Record cell) const {
  const auto& [x, y, z] = cells_->position[cell];
  return {metric_.plane(0, x), metric_.plane(1, y), metric_.plane(2, z)};
}

Point Grid::widths(Record cell) const {
  const auto& [x, y, z] = cells_->position[cell];
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
  const auto& [lattice, position, part] = *cells_;
  std::size_t sum =
      part.size() * sizeof(part[0]) + lattice.size() * sizeof(lattice[0]) + position.size() * sizeof(position[0]);
  for (int side = 0; side < 6; ++side) {
    sum += connections_->neighbour[side].size() * sizeof(Record) + connections_->face[side].size() * sizeof(Face);
  }
  return static_cast<std::int64_t>(sum);
}

}  // namespace solenoid
