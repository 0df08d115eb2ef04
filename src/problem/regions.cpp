#include "problem/regions.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "problem/affine_map.hpp"
#include "problem/names.hpp"
#include "problem/parts.hpp"
#include "problem/validate.hpp"

namespace solenoid {
namespace {

constexpr int no_region = -1;
constexpr int no_face = -2;

/// Of cells, on one side: as many are looked at one by one.
constexpr std::int64_t most_faces = std::int64_t{1} << 26;

/// The last region of a side that holds each point, or no_region.
std::vector<int> owners(const Boundary& boundary, int side, std::span<const Point> points) {
  std::vector<int> owner(points.size(), no_region);
  std::vector<double> inside(points.size());
  for (int i = 0; i < std::ssize(boundary.regions); ++i) {
    const SideRegion& region = boundary.regions[i];
    if (region.side != side) continue;
    region.where.evaluate(points, inside);
    for (std::size_t k = 0; k < points.size(); ++k) {
      if (inside[k] != 0.0) owner[k] = i;
    }
  }
  return owner;
}

const Side& side_or_region(const Boundary& boundary, int side, int owner) {
  return owner == no_region ? boundary.sides[side] : boundary.regions[owner].condition;
}

bool has_regions(const Boundary& boundary, int side) {
  return std::any_of(boundary.regions.begin(), boundary.regions.end(),
                     [&](const SideRegion& region) { return region.side == side; });
}

/// Regions of a side that are of another kind than the rest.
bool has_other_kinds(const Boundary& boundary, int side) {
  return std::any_of(boundary.regions.begin(), boundary.regions.end(), [&](const SideRegion& region) {
    return region.side == side && region.condition.kind != boundary.sides[side].kind;
  });
}

/// The faces of the finest cells on a side.
class FineFaces {
 public:
  FineFaces(const Mesh& mesh, int side) : mesh_(mesh), normal_(side / 2), upper_(side % 2 == 1) {
    for (int a = 0; a < mesh.dim; ++a) {
      extent_[a] = a == normal_ ? 1 : std::int64_t{mesh.cells[a]} << mesh.refine;
      length_[a] = length_along(mesh, a);
      width_[a] = length_[a] / static_cast<double>(std::int64_t{mesh.cells[a]} << mesh.refine);
    }
    if (mesh.edges) map_.emplace(mesh.dim, mesh.lower, *mesh.edges);
  }

  [[nodiscard]] std::int64_t size() const { return extent_[0] * extent_[1] * extent_[2]; }
  [[nodiscard]] std::array<std::int64_t, 3> position(std::int64_t face) const {
    return {face % extent_[0], face / extent_[0] % extent_[1], face / extent_[0] / extent_[1]};
  }
  [[nodiscard]] std::int64_t index(const std::array<std::int64_t, 3>& at) const {
    return at[0] + extent_[0] * (at[1] + extent_[1] * at[2]);
  }
  /// The coarse box behind which the face lies.
  [[nodiscard]] std::array<int, 3> box(std::int64_t face) const {
    std::array<int, 3> result{};
    const auto at = position(face);
    for (int a = 0; a < mesh_.dim; ++a) {
      result[a] = a == normal_ ? (upper_ ? mesh_.cells[a] - 1 : 0) : static_cast<int>(at[a] >> mesh_.refine);
    }
    return result;
  }
  /// Points of a face: its centre, and one near each corner.
  [[nodiscard]] int points_each() const { return mesh_.dim == 2 ? 3 : 5; }
  [[nodiscard]] Point point(std::int64_t face, int number) const {
    constexpr double margin = 1e-6;  // more than rounding
    const auto at = position(face);
    Point result{};
    int bit = 0;
    for (int a = 0; a < mesh_.dim; ++a) {
      if (a == normal_) {
        result[a] = upper_ ? upper_plane(a) : place(a, 0.0);
        continue;
      }
      const double across = number == 0 ? 0.5 : ((number - 1) >> bit & 1) == 0 ? margin : 1.0 - margin;
      ++bit;
      result[a] = place(a, width_[a] * (static_cast<double>(at[a]) + across));
    }
    return map_ ? map_->at(result) : result;
  }
  /// "0.25 wide in y and 0.5 wide in z" for so many cells.
  [[nodiscard]] std::string widths(int cells) const {
    std::vector<std::string> all;
    for (int a = 0; a < mesh_.dim; ++a) {
      if (a != normal_) all.push_back(fmt::format("{:.6g} wide in {}", width_[a] * cells, "xyz"[a]));
    }
    return fmt::format("{}", fmt::join(all, " and "));
  }

 private:
  /// What lies so far along the edges of a direction.
  [[nodiscard]] double place(int a, double distance) const { return map_ ? distance : mesh_.lower[a] + distance; }

  [[nodiscard]] double upper_plane(int a) const { return map_ ? length_[a] : mesh_.upper[a]; }

  const Mesh& mesh_;
  std::optional<AffineMap> map_;
  int normal_;
  bool upper_;
  std::array<std::int64_t, 3> extent_{1, 1, 1};
  Point length_{};
  Point width_{};
};

std::string entry_of(int region, std::string_view key) { return fmt::format("side[{}].{}", region, key); }

std::string shown(const Point& x, int dim) {
  return fmt::format("({:.6g})", fmt::join(x.begin(), x.begin() + dim, ", "));
}

/// The region of each face of a side, no_region or no_face. \throws InvalidEntry if a region is not whole faces, or
/// none.
std::vector<int> survey(const Problem& problem, int side, const FineFaces& faces) {
  const Boundary& boundary = problem.boundary;
  const Mesh& mesh = problem.mesh;
  const std::shared_ptr<const VoxelImage> image = image_of(mesh);
  const auto exists = [&](std::int64_t face) { return image->pore(faces.box(face)); };
  const int each = faces.points_each();
  std::vector<int> owner(faces.size(), no_face);
  std::vector<char> found(boundary.regions.size(), 0);
  constexpr std::int64_t together = 1024;
  for (std::int64_t begin = 0; begin < faces.size(); begin += together) {
    std::vector<std::int64_t> chosen;
    std::vector<Point> points;
    for (auto face = begin; face < std::min(begin + together, faces.size()); ++face) {
      if (!exists(face)) continue;
      owner[face] = no_region;
      chosen.push_back(face);
      for (int i = 0; i < each; ++i) points.push_back(faces.point(face, i));
    }
    std::vector<double> inside(points.size());
    for (int r = 0; r < std::ssize(boundary.regions); ++r) {
      if (boundary.regions[r].side != side) continue;
      boundary.regions[r].where.evaluate(points, inside);
      for (std::size_t k = 0; k < chosen.size(); ++k) {
        const double* const of_face = &inside[k * each];
        const auto number = std::count_if(of_face, of_face + each, [](double value) { return value != 0.0; });
        if (number != 0 && number != each) {
          throw InvalidEntry(
              entry_of(r, "where"),
              fmt::format("ends within the face of a cell, around the point {}: it must hold on whole faces of cells, "
                          "which are {}, or on none of a face",
                          shown(faces.point(chosen[k], 0), mesh.dim), faces.widths(1)));
        }
        if (number == 0) continue;
        owner[chosen[k]] = r;
        found[r] = 1;
      }
    }
  }
  for (int r = 0; r < std::ssize(boundary.regions); ++r) {
    if (boundary.regions[r].side == side && found[r] == 0) {
      throw InvalidEntry(entry_of(r, "where"), fmt::format("holds on no face of the side {}", side_names[side]));
    }
  }
  return owner;
}

/// A face whose kind is not that of the first face in its block of 2^level faces per direction.
std::optional<std::int64_t> change_of_kind(const Boundary& boundary, int side, const FineFaces& faces,
                                           const std::vector<int>& owner, int level) {
  const auto kind = [&](std::int64_t face) { return side_or_region(boundary, side, owner[face]).kind; };
  for (std::int64_t face = 0; face < faces.size(); ++face) {
    if (owner[face] == no_face) continue;
    auto first = faces.position(face);
    for (std::int64_t& i : first) i = i >> level << level;
    if (kind(face) != kind(faces.index(first))) return face;
  }
  return {};
}

/// \throws InvalidEntry if kinds change within the face of a coarse box, where coarse levels could not follow.
void validate_kinds(const Problem& problem, int side, const FineFaces& faces, const std::vector<int>& owner) {
  const Mesh& mesh = problem.mesh;
  const auto change = change_of_kind(problem.boundary, side, faces, owner, mesh.refine);
  if (!change) return;
  int level = mesh.refine;
  while (change_of_kind(problem.boundary, side, faces, owner, level)) --level;
  // With one refinement at least every face is in some vertex patch.
  const int refine = std::max(level, 1);
  std::vector<std::int64_t> cells;
  for (int a = 0; a < mesh.dim; ++a) cells.push_back(std::int64_t{mesh.cells[a]} << (mesh.refine - level));
  auto first = faces.position(*change);
  for (std::int64_t& i : first) i = i >> mesh.refine << mesh.refine;
  int region = owner[*change];
  if (side_or_region(problem.boundary, side, region).kind == problem.boundary.sides[side].kind) {
    region = owner[faces.index(first)];
  }
  const auto name = [&](SideKind kind) { return name_of(kind, problem.equation); };
  throw InvalidEntry(
      entry_of(region, "where"),
      fmt::format("ends within the face of a coarse box, around the point {}. Where the condition is of another kind "
                  "(here {} on a side that is {}) it must hold on whole faces of coarse boxes, which are {}: "
                  "with cells = [{}] and refine = {} {} and it does{}",
                  shown(faces.point(*change, 0), mesh.dim), name(problem.boundary.regions[region].condition.kind),
                  name(problem.boundary.sides[side].kind), faces.widths(1 << mesh.refine), fmt::join(cells, ", "),
                  refine, level == refine ? "the mesh is the same" : "the mesh is finer",
                  mesh.holes.empty() ? "" : " (`holes` count coarse boxes too)"));
}

}  // namespace

SideKinds::SideKinds(const Mesh& mesh, const Boundary& boundary, int side) : kinds_{boundary.sides[side].kind} {
  if (!has_other_kinds(boundary, side)) return;
  const FineFaces faces(mesh, side);
  for (int a = 0; a < mesh.dim; ++a) boxes_[a] = a == side / 2 ? 1 : mesh.cells[a];
  std::vector<Point> points;  // one for each box, on the first of its faces
  for (std::int64_t z = 0; z < boxes_[2]; ++z) {
    for (std::int64_t y = 0; y < boxes_[1]; ++y) {
      for (std::int64_t x = 0; x < boxes_[0]; ++x) {
        points.push_back(faces.point(faces.index({x << mesh.refine, y << mesh.refine, z << mesh.refine}), 0));
      }
    }
  }
  kinds_.clear();
  for (const int owner : owners(boundary, side, points)) {
    kinds_.push_back(side_or_region(boundary, side, owner).kind);
  }
}

bool SideKinds::in_blocks(int a, int size) const {
  std::array<int, 3> box{};
  for (box[2] = 0; box[2] < boxes_[2]; ++box[2]) {
    for (box[1] = 0; box[1] < boxes_[1]; ++box[1]) {
      for (box[0] = 0; box[0] < boxes_[0]; ++box[0]) {
        auto first = box;
        first[a] = box[a] / size * size;
        if (at(box) != at(first)) return false;
      }
    }
  }
  return true;
}

VectorField data_on(const Boundary& boundary, int side) {
  if (!has_regions(boundary, side)) return boundary.sides[side].data;
  VectorField result;
  for (int c = 0; c < 3; ++c) {
    bool zero = boundary.sides[side].data[c].is_zero();
    for (const SideRegion& region : boundary.regions) {
      zero = zero && (region.side != side || region.condition.data[c].is_zero());
    }
    if (zero) continue;
    // Each field is evaluated where it holds: it may be undefined elsewhere.
    const auto pick = [boundary, side, c](std::span<const Point> points, std::span<double> values) {
      const std::vector<int> owner = owners(boundary, side, points);
      for (int i = no_region; i < std::ssize(boundary.regions); ++i) {
        std::vector<std::size_t> places;
        std::vector<Point> inside;
        for (std::size_t k = 0; k < points.size(); ++k) {
          if (owner[k] != i) continue;
          places.push_back(k);
          inside.push_back(points[k]);
        }
        if (places.empty()) continue;
        std::vector<double> found(places.size());
        side_or_region(boundary, side, i).data[c].evaluate(inside, found);
        for (std::size_t k = 0; k < places.size(); ++k) values[places[k]] = found[k];
      }
    };
    result[c] = ScalarField(pick, boundary.sides[side].data[c].label());
  }
  return result;
}

const Side& hole_side(const Boundary& boundary, int number) {
  return number == 0 ? boundary.holes : boundary.single_holes[number - 1].condition;
}

std::vector<int> hole_sides(const Mesh& mesh, const Boundary& boundary) {
  std::vector<int> numbers(hole_count(mesh), 0);
  for (std::size_t i = 0; i < boundary.single_holes.size(); ++i) {
    numbers.at(boundary.single_holes[i].hole) = static_cast<int>(i) + 1;
  }
  return numbers;
}

Boundary without_data(Boundary boundary) {
  for (Side& side : boundary.sides) side.data = {};
  boundary.holes.data = {};
  for (SideRegion& region : boundary.regions) region.condition.data = {};
  for (HoleSide& hole : boundary.single_holes) hole.condition.data = {};
  return boundary;
}

std::vector<int> periodic_directions(const Problem& problem) {
  std::vector<int> directions;
  for (int a = 0; a < problem.mesh.dim; ++a) {
    if (problem.boundary.sides[2 * a].kind == SideKind::periodic) directions.push_back(a);
  }
  return directions;
}

std::vector<Side> conditions(const Problem& problem) {
  const Boundary& boundary = problem.boundary;
  std::vector<Side> all(boundary.sides.begin(), boundary.sides.begin() + 2 * problem.mesh.dim);
  all.push_back(boundary.holes);
  for (const SideRegion& region : boundary.regions) all.push_back(region.condition);
  for (const HoleSide& hole : boundary.single_holes) all.push_back(hole.condition);
  return all;
}

void validate_single_holes(const Problem& problem) {
  const std::vector<HoleSide>& holes = problem.boundary.single_holes;
  const auto there = std::ssize(problem.mesh.holes);
  for (std::size_t i = 0; i < holes.size(); ++i) {
    const auto entry = fmt::format("hole[{}].index", i);
    if (holes[i].hole < 0 || holes[i].hole >= there) {
      throw InvalidEntry(entry, problem.mesh.image != nullptr
                                    ? std::string("the solid of an image has one condition, `holes` in [boundary]")
                                : there == 0 ? std::string("the mesh has no holes")
                                             : fmt::format("there is no hole {}: expected a place in the {} `holes` of "
                                                           "the mesh, from 0 to {}",
                                                           holes[i].hole, there, there - 1));
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (holes[j].hole != holes[i].hole) continue;
      throw InvalidEntry(entry, fmt::format("hole {} has a condition already, from hole[{}]", holes[i].hole, j));
    }
  }
}

void validate_regions(const Problem& problem) {
  const Boundary& boundary = problem.boundary;
  for (int r = 0; r < std::ssize(boundary.regions); ++r) {
    const SideRegion& region = boundary.regions[r];
    if (region.side < 0 || region.side >= 2 * problem.mesh.dim) {
      throw InvalidEntry(entry_of(r, "on"), fmt::format("there is no side {} in {}D", region.side, problem.mesh.dim));
    }
    if (boundary.sides[region.side].kind == SideKind::periodic) {
      throw InvalidEntry(entry_of(r, "on"),
                         fmt::format("{} is periodic: there is no boundary to be divided", side_names[region.side]));
    }
    if (region.condition.kind == SideKind::periodic) {
      throw InvalidEntry(entry_of(r, "on"), "whole sides are periodic, not parts of them");
    }
  }
  for (int side = 0; side < 2 * problem.mesh.dim; ++side) {
    if (!has_regions(boundary, side)) continue;
    const FineFaces faces(problem.mesh, side);
    if (faces.size() > most_faces) {
      const auto first = std::find_if(boundary.regions.begin(), boundary.regions.end(),
                                      [&](const SideRegion& region) { return region.side == side; });
      throw InvalidEntry(entry_of(static_cast<int>(first - boundary.regions.begin()), "on"),
                         fmt::format("{} has {} faces of cells; sides of up to {} can be divided", side_names[side],
                                     faces.size(), most_faces));
    }
    const std::vector<int> owner = survey(problem, side, faces);
    if (has_other_kinds(boundary, side)) validate_kinds(problem, side, faces, owner);
  }
}

std::vector<std::string> bodies(const Problem& problem) {
  std::vector<std::string> names;
  for (int side = 0; side < 2 * problem.mesh.dim; ++side) {
    if (problem.boundary.sides[side].kind != SideKind::periodic) names.emplace_back(side_names[side]);
  }
  for (int i = 0; i < hole_count(problem.mesh); ++i) names.push_back(fmt::format("holes[{}]", i));
  return names;
}

}  // namespace solenoid
