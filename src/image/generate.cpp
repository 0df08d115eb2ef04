#include "image/generate.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <string_view>
#include <vector>

#include "base/available_memory.hpp"
#include "base/unset.hpp"
#include "image/rows.hpp"
#include "solenoid/error.hpp"

namespace solenoid {
namespace {

using std::numbers::pi;

/// As many as coarse boxes of a mesh.
constexpr int most_made = 1 << 30;

using Spot = std::array<double, 3>;

// Random numbers ------------------------------------------------------------------------------------------------------

/// SplitMix64's output for a counter: numbers do not depend on which were asked for before.
std::uint64_t random_bits(std::uint64_t seed, std::uint64_t counter) {
  const auto mixed = [](std::uint64_t bits) {
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9U;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebU;
    return bits ^ (bits >> 31);
  };
  constexpr std::uint64_t golden = 0x9e3779b97f4a7c15U;
  return mixed(mixed(seed + golden) + golden * (counter + 1));
}

/// From 0 to before 1.
double random_number(std::uint64_t seed, std::uint64_t counter) {
  return static_cast<double>(random_bits(seed, counter) >> 11) * 0x1p-53;
}

// Bodies --------------------------------------------------------------------------------------------------------------

/// All points of a segment and those nearer to it than the radius; a sphere if the segment is a point.
struct Body {
  Spot middle{};
  Spot half{};  ///< from there to an end
};

double volume_of(const Generator& what) {
  const double length = what.pattern == Pattern::fibres ? what.length : 0.0;
  const double r = what.radius;
  return what.dim == 2 ? pi * r * r + 2.0 * r * length : pi * r * r * (4.0 / 3.0 * r + length);
}

Body random_body(const Generator& what, std::uint64_t number) {
  constexpr std::uint64_t numbers_each = 8;
  const auto random = [&](int i) { return random_number(what.seed, numbers_each * number + i); };
  Body body;
  for (int a = 0; a < what.dim; ++a) body.middle[a] = what.extent[a] * random(a);
  if (what.pattern != Pattern::fibres) return body;
  const double angle = 2.0 * pi * random(3);
  const double up = what.dim == 3 ? 2.0 * random(4) - 1.0 : 0.0;
  const double across = std::sqrt(1.0 - up * up);
  body.half = {0.5 * what.length * across * std::cos(angle), 0.5 * what.length * across * std::sin(angle),
               0.5 * what.length * up};
  return body;
}

/// Those of the first `count` spheres that touch none of those before them.
std::vector<Body> apart(const Generator& what, std::int64_t count) {
  // In a cell of the lattice of lists there are few: their middles are 2 r apart.
  std::array<int, 3> cells{1, 1, 1};
  for (int a = 0; a < what.dim; ++a) {
    cells[a] = std::max(1, static_cast<int>(what.extent[a] / std::max(2.0 * what.radius, 1.0)));
  }
  const auto cell_of = [&](int a, double x) {
    return std::clamp(static_cast<int>(x * cells[a] / what.extent[a]), 0, cells[a] - 1);
  };
  std::vector<std::vector<std::int32_t>> lists(std::int64_t{cells[0]} * cells[1] * cells[2]);
  const auto list = [&](const std::array<int, 3>& at) -> std::vector<std::int32_t>& {
    return lists[at[0] + cells[0] * (at[1] + std::int64_t{cells[1]} * at[2])];
  };
  std::vector<Body> bodies;
  const auto touches = [&](const Body& body, const Body& other) {
    double square = 0.0;
    for (int a = 0; a < what.dim; ++a) {
      const double away = std::abs(body.middle[a] - other.middle[a]);
      const double nearest = std::min(away, what.extent[a] - away);
      square += nearest * nearest;
    }
    return square < 4.0 * what.radius * what.radius;
  };
  const auto fits = [&](const Body& body) {
    const std::array<int, 3> steps{3, 3, what.dim == 3 ? 3 : 1};
    for (int near = 0; near < steps[0] * steps[1] * steps[2]; ++near) {
      std::array<int, 3> at{};
      for (int a = 0, rest = near; a < what.dim; rest /= steps[a++]) {
        at[a] = (cell_of(a, body.middle[a]) + rest % 3 - 1 + cells[a]) % cells[a];
      }
      for (const std::int32_t other : list(at)) {
        if (touches(body, bodies[other])) return false;
      }
    }
    return true;
  };
  for (std::int64_t i = 0, tries = 0; std::ssize(bodies) < count && tries < 50 * count + 1000; ++i, ++tries) {
    if (i % 4096 == 0) check_interrupt();
    const Body body = random_body(what, i);
    if (!fits(body)) continue;
    std::array<int, 3> at{};
    for (int a = 0; a < what.dim; ++a) at[a] = cell_of(a, body.middle[a]);
    list(at).push_back(static_cast<std::int32_t>(bodies.size()));
    bodies.push_back(body);
  }
  return bodies;
}

/// [voxel]: the first body that its middle is in, or the number of bodies.
class Covered {
 public:
  Covered(const Generator& what, const std::vector<Body>& bodies, int threads)
      : what_(what), bodies_(bodies), first_(std::int64_t{what.extent[0]} * what.extent[1] * what.extent[2]) {
    const int last = what.dim - 1;
    const Ranges slabs{what.extent[last], 4};
    // Bodies by the slabs that they reach into.
    std::vector<std::vector<std::int32_t>> in_slab(slabs.number());
    for (std::int32_t i = 0; i < std::ssize(bodies); ++i) {
      const auto [begin, end] = reach(bodies[i], last);
      if (end - begin >= what.extent[last]) {
        for (auto& list : in_slab) list.push_back(i);
        continue;
      }
      for (int x = begin; x < end; ++x) {
        auto& list = in_slab[wrapped(x, last) / slabs.size];
        if (list.empty() || list.back() != i) list.push_back(i);
      }
    }
    parallel_ranges(
        slabs,
        [&](CellRange range, std::int64_t slab) {
          const std::int64_t of_layer = std::ssize(first_) / what.extent[last];
          std::fill(first_.begin() + range.begin * of_layer, first_.begin() + range.end * of_layer,
                    static_cast<std::int32_t>(bodies.size()));
          for (const std::int32_t i : in_slab[slab]) cover(i, range);
        },
        threads);
  }

  /// How many of the bodies, in their order, make the porosity that is asked for, or nearly so.
  [[nodiscard]] std::int32_t bodies_for(double porosity, int threads) const {
    std::vector<std::int64_t> covered_first(bodies_.size() + 1);
    parallel_ranges(
        {std::ssize(first_), 1 << 18},
        [&](CellRange range, std::int64_t) {
          for (auto i = range.begin; i < range.end;) {
            const std::int32_t body = first_[i];
            const auto begin = i;
            while (i < range.end && first_[i] == body) ++i;
            std::atomic_ref(covered_first[body]).fetch_add(i - begin, std::memory_order_relaxed);
          }
        },
        threads);
    const double wanted = (1.0 - porosity) * static_cast<double>(first_.size());
    std::int64_t solid = 0;
    for (std::int32_t i = 0; i < std::ssize(bodies_); ++i) {
      const auto with = static_cast<double>(solid + covered_first[i]);
      if (with >= wanted) return with - wanted <= wanted - static_cast<double>(solid) ? i + 1 : i;
      solid += covered_first[i];
    }
    return -1;
  }

  [[nodiscard]] VoxelImage image(std::int32_t bodies) const {
    const auto& extent = what_.extent;
    return {
        what_.dim, extent,
        make_rows_of(extent, [&](int x, int y,
                                 int z) { return first_[x + extent[0] * (y + std::int64_t{extent[1]} * z)] < bodies; }),
        what_.voxel};
  }

 private:
  [[nodiscard]] int wrapped(int x, int a) const { return ((x % what_.extent[a]) + what_.extent[a]) % what_.extent[a]; }
  /// Voxels that may have their middles in a body, from the first to before the last, in a direction.
  [[nodiscard]] std::pair<int, int> reach(const Body& body, int a) const {
    if (a >= what_.dim) return {0, 1};
    const double far = std::abs(body.half[a]) + what_.radius;
    return {static_cast<int>(std::floor(body.middle[a] - far)), static_cast<int>(std::ceil(body.middle[a] + far)) + 1};
  }
  [[nodiscard]] bool holds(const Body& body, const std::array<int, 3>& voxel) const {
    Spot away{};
    double along = 0.0;
    double length = 0.0;
    for (int a = 0; a < what_.dim; ++a) {
      away[a] = voxel[a] + 0.5 - body.middle[a];
      along += away[a] * body.half[a];
      length += body.half[a] * body.half[a];
    }
    const double nearest = length > 0.0 ? std::clamp(along / length, -1.0, 1.0) : 0.0;
    double square = 0.0;
    for (int a = 0; a < what_.dim; ++a) {
      const double rest = away[a] - nearest * body.half[a];
      square += rest * rest;
    }
    return square < what_.radius * what_.radius;
  }
  void cover(std::int32_t number, CellRange layers) {
    check_interrupt();
    const Body& body = bodies_[number];
    const int last = what_.dim - 1;
    std::array<std::pair<int, int>, 3> box;
    for (int a = 0; a < 3; ++a) box[a] = reach(body, a);
    std::array<int, 3> at{};
    for (at[2] = box[2].first; at[2] < box[2].second; ++at[2]) {
      const int z = wrapped(at[2], 2);
      if (last == 2 && (z < layers.begin || z >= layers.end)) continue;
      for (at[1] = box[1].first; at[1] < box[1].second; ++at[1]) {
        const int y = wrapped(at[1], 1);
        if (last == 1 && (y < layers.begin || y >= layers.end)) continue;
        std::int32_t* const row = &first_[what_.extent[0] * (y + std::int64_t{what_.extent[1]} * z)];
        int x = wrapped(box[0].first, 0);
        for (at[0] = box[0].first; at[0] < box[0].second; ++at[0]) {
          if (row[x] > number && holds(body, at)) row[x] = number;
          if (++x == what_.extent[0]) x = 0;
        }
      }
    }
  }

  const Generator& what_;
  const std::vector<Body>& bodies_;
  Unset<std::int32_t> first_;
};

VoxelImage of_bodies(const Generator& what, int threads) {
  const bool overlap = what.pattern != Pattern::spheres;
  const double voxels = static_cast<double>(what.extent[0]) * what.extent[1] * what.extent[2];
  const double each = volume_of(what) / voxels;
  // Bodies that overlap leave exp(-their volumes).
  const double volumes = overlap ? -std::log(what.porosity) : 1.0 - what.porosity;
  double wanted = volumes / each;
  wanted += 8.0 * std::sqrt(wanted) + 8.0;  // chance, and bodies of a few voxels
  constexpr double most = 1e9;
  if (!(wanted < most)) throw InputError("that needs too many bodies: expected a larger `radius`");
  const auto count = static_cast<std::int64_t>(wanted);
  std::vector<Body> bodies;
  if (overlap) {
    bodies.resize(count);
    parallel_ranges(
        {count},
        [&](CellRange range, std::int64_t) {
          for (auto i = range.begin; i < range.end; ++i) bodies[i] = random_body(what, i);
        },
        threads);
  } else {
    bodies = apart(what, count);
  }
  const Covered covered(what, bodies, threads);
  const std::int32_t needed = covered.bodies_for(what.porosity, threads);
  if (needed >= 0) return covered.image(needed);
  const double reached = covered.image(static_cast<std::int32_t>(bodies.size())).porosity();
  throw InputError(
      fmt::format("at random places with radius {} a porosity of {:.3} is reached, {} was asked for: "
                  "expected a larger one{}",
                  what.radius, reached, what.porosity, overlap ? "" : ", or `grains`, which may overlap"));
}

// Blobs ---------------------------------------------------------------------------------------------------------------

/// Weights of a Gaussian at whole distances, from 0 on.
std::vector<float> gaussian(double deviation) {
  const int reach = static_cast<int>(std::ceil(3.0 * deviation));
  std::vector<double> weights(reach + 1);
  double sum = 0.0;
  for (int i = 0; i <= reach; ++i) {
    weights[i] = std::exp(-0.5 * i * i / (deviation * deviation));
    sum += i == 0 ? weights[i] : 2.0 * weights[i];
  }
  std::vector<float> result;
  for (const double weight : weights) result.push_back(static_cast<float>(weight / sum));
  return result;
}

/// to[i] += weight (from[i])
void add_row(float* to, const float* from, float weight, int count) {
  for (int i = 0; i < count; ++i) to[i] += weight * from[i];
}

void smooth_row(float* row, int count, const std::vector<float>& weights, std::vector<float>& padded) {
  const int reach = static_cast<int>(weights.size()) - 1;
  padded.resize(count + 2 * reach);
  for (int i = 0; i < count + 2 * reach; ++i) padded[i] = row[(i - reach % count + count) % count];
  std::fill(row, row + count, 0.0F);
  for (int k = -reach; k <= reach; ++k) add_row(row, &padded[reach + k], weights[std::abs(k)], count);
}

/// Smooths across rows along x, in direction a, planes of x and a on all cores.
void smooth_across(Unset<float>& field, const std::array<int, 3>& extent, int a, const std::vector<float>& weights,
                   int threads) {
  const int reach = static_cast<int>(weights.size()) - 1;
  const int other = 3 - a;
  const std::int64_t stride = a == 1 ? extent[0] : std::int64_t{extent[0]} * extent[1];
  const std::int64_t stride_of_other = a == 1 ? std::int64_t{extent[0]} * extent[1] : extent[0];
  // Pieces of rows that stay in the cache.
  constexpr int piece = 256;
  const std::int64_t pieces = (extent[0] + piece - 1) / piece;
  parallel_for(
      pieces * extent[other],
      [&] {
        return [&, old = std::vector<float>(std::size_t{piece} * extent[a])](std::int64_t number) mutable {
          const auto begin = static_cast<int>(number % pieces) * piece;
          const int count = std::min(piece, extent[0] - begin);
          float* const first = &field[begin + number / pieces * stride_of_other];
          for (int i = 0; i < extent[a]; ++i) std::copy_n(first + i * stride, count, &old[std::size_t{piece} * i]);
          for (int i = 0; i < extent[a]; ++i) {
            float* const row = first + i * stride;
            std::fill(row, row + count, 0.0F);
            for (int k = -reach; k <= reach; ++k) {
              const int from = ((i + k) % extent[a] + extent[a]) % extent[a];
              add_row(row, &old[std::size_t{piece} * from], weights[std::abs(k)], count);
            }
          }
        };
      },
      threads);
}

VoxelImage blobs(const Generator& what, int threads) {
  const auto& extent = what.extent;
  const std::vector<float> weights = gaussian(what.feature);
  Unset<float> field(std::int64_t{extent[0]} * extent[1] * extent[2]);
  parallel_for(
      std::int64_t{extent[1]} * extent[2],
      [&] {
        return [&, padded = std::vector<float>()](std::int64_t row) mutable {
          float* const values = &field[row * extent[0]];
          for (int x = 0; x < extent[0]; ++x) {
            values[x] = static_cast<float>(random_number(what.seed, row * extent[0] + x) - 0.5);
          }
          smooth_row(values, extent[0], weights, padded);
        };
      },
      threads);
  for (int a = 1; a < what.dim; ++a) smooth_across(field, extent, a, weights, threads);
  const auto pores = std::clamp<std::int64_t>(std::llround(what.porosity * static_cast<double>(field.size())), 1,
                                              std::ssize(field) - 1);
  Unset<float> sorted = field;
  std::nth_element(sorted.begin(), sorted.begin() + pores, sorted.end());
  const float threshold = sorted[pores];
  return {what.dim, extent,
          make_rows_of(extent,
                       [&](int x, int y, int z) {
                         return field[x + extent[0] * (y + std::int64_t{extent[1]} * z)] >= threshold;
                       }),
          what.voxel};
}

// Regular images ------------------------------------------------------------------------------------------------------

VoxelImage array(const Generator& what) {
  const int period = what.period == 0 ? what.extent[0] : what.period;
  for (int a = 0; a < what.dim; ++a) {
    if (period < 1 || what.extent[a] % period != 0) {
      throw InputError(fmt::format("`shape` is {}: expected multiples of `period`, {}",
                                   fmt::join(what.extent.begin(), what.extent.begin() + what.dim, " x "), period));
    }
  }
  const double solid = 1.0 - what.porosity;
  const double relative = what.dim == 2 ? std::sqrt(solid / pi) : std::cbrt(0.75 * solid / pi);
  constexpr double touching = 0.5 + 1e-3;
  if (relative > touching) {
    throw InputError(
        fmt::format("`porosity` is {}: spheres that touch each other leave {:.4}, discs {:.4}; expected "
                    "no less",
                    what.porosity, 1.0 - pi / 6.0, 1.0 - pi / 4.0));
  }
  const double square = relative * period * relative * period;
  return {what.dim, what.extent,
          make_rows_of(what.extent,
                       [&](int x, int y, int z) {
                         double away = 0.0;
                         const std::array<int, 3> at{x, y, z};
                         for (int a = 0; a < what.dim; ++a) {
                           const double from_middle = at[a] % period + 0.5 - 0.5 * period;
                           away += from_middle * from_middle;
                         }
                         return away < square;
                       }),
          what.voxel};
}

VoxelImage channel(const Generator& what) {
  const int walls = what.pattern == Pattern::duct ? 2 : 1;
  if (walls >= what.dim) throw InputError("a duct has 3 dimensions: expected \"channel\"");
  std::array<int, 3> width = what.extent;
  for (int a = 1; a <= walls; ++a) {
    width[a] = what.width == 0 ? what.extent[a] - 1 : what.width;
    if (width[a] < 1 || width[a] >= what.extent[a]) {
      throw InputError(fmt::format("`width` is {}: expected 1 to {}, for there is a wall across {}", width[a],
                                   what.extent[a] - 1, "xyz"[a]));
    }
  }
  return {what.dim, what.extent,
          make_rows_of(what.extent, [&](int, int y, int z) { return y >= width[1] || z >= width[2]; }), what.voxel};
}

void require_range(bool in_range, std::string_view key, std::string_view expected, double value) {
  if (!in_range) throw InputError(fmt::format("`{}` is {}: expected {}", key, value, expected));
}

}  // namespace

VoxelImage generate_image(const Generator& what, int threads) {
  validate_extent(what.dim, what.extent);
  const double voxels = static_cast<double>(what.extent[0]) * what.extent[1] * what.extent[2];
  if (voxels > most_made) {
    throw InputError(fmt::format("`shape` is {}: expected at most {} voxels",
                                 fmt::join(what.extent.begin(), what.extent.begin() + what.dim, " x "), most_made));
  }
  const bool regular = what.pattern == Pattern::channel || what.pattern == Pattern::duct;
  if (regular) return channel(what);
  require_range(what.porosity > 0.0 && what.porosity < 1.0, "porosity", "a number > 0 and < 1", what.porosity);
  if (what.pattern == Pattern::array) return array(what);
  // Numbers of voxels while there is no image yet.
  const double bytes = 8.0 * voxels;
  if (const auto available = static_cast<double>(available_memory()); bytes > available) {
    throw ResourceError(
        fmt::format("not enough memory: making an image of {} voxels needs {:.2f} GB, {:.2f} GB are "
                    "available",
                    fmt::join(what.extent, " x "), bytes * 1e-9, available * 1e-9));
  }
  const double longest = *std::max_element(what.extent.begin(), what.extent.end());
  if (what.pattern == Pattern::blobs) {
    require_range(what.feature > 0.0 && what.feature <= longest, "feature", "a number > 0, not larger than the image",
                  what.feature);
    return blobs(what, threads);
  }
  require_range(what.radius >= 0.5 && what.radius <= longest, "radius", "a number >= 0.5, not larger than the image",
                what.radius);
  require_range(what.length >= 0.0 && what.length <= 16.0 * longest, "length",
                "a number >= 0, at most 16 times the image", what.length);
  return of_bodies(what, threads);
}

}  // namespace solenoid
