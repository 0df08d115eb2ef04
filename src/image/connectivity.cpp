#include "image/connectivity.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "base/parallel.hpp"
#include "image/rows.hpp"
#include "solenoid/error.hpp"

namespace solenoid {
namespace {

/// How often a way goes around in each direction.
using Turns = std::array<std::int32_t, 3>;

Turns operator+(const Turns& a, const Turns& b) { return {a[0] + b[0], a[1] + b[1], a[2] + b[2]}; }
Turns operator-(const Turns& a, const Turns& b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }

/// Sets of runs, each of which knows how often the way to it from the first of its set goes around. The first run of a
/// set stands for it, so that nothing depends on the order in which sets are joined.
class RunSets {
 public:
  explicit RunSets(std::int64_t count) : parent_(count), turns_(count) {
    parallel_ranges({count}, [&](CellRange range, std::int64_t) {
      std::iota(parent_.begin() + range.begin, parent_.begin() + range.end, static_cast<std::int32_t>(range.begin));
      std::fill(turns_.begin() + range.begin, turns_.begin() + range.end, Turns{});
    });
  }

  [[nodiscard]] std::int32_t parent(std::int64_t run) const { return parent_[run]; }

  /// A set, and the turns of the way from its first run to this one.
  std::pair<std::int32_t, Turns> find(std::int32_t run) {
    Turns turns{};
    while (parent_[run] != run) {
      const std::int32_t parent = parent_[run];
      turns_[run] = turns_[run] + turns_[parent];  // the first run has none
      parent_[run] = parent_[parent];
      turns = turns + turns_[run];
      run = parent_[run];
    }
    return {run, turns};
  }

  /// `across`: the turns of the step from one run to the other. Where they are one set already the closed way through
  /// both goes around as often as is returned.
  Turns join(std::int32_t from, std::int32_t to, const Turns& across) {
    const auto [first, to_from] = find(from);
    const auto [second, to_to] = find(to);
    const Turns difference = to_from + across - to_to;  // from the first run of `from` to the first run of `to`
    if (first == second) return difference;
    if (first < second) {
      parent_[second] = first;
      turns_[second] = difference;
    } else {
      parent_[first] = second;
      turns_[first] = Turns{} - difference;
    }
    return {};
  }

 private:
  Unset<std::int32_t> parent_;
  Unset<Turns> turns_;  // from the parent
};

/// visit(begin, end) for the runs of pore voxels in a row.
template <class Visit>
void for_runs_of(std::span<const std::uint64_t> row, int voxels, const Visit& visit) {
  /// The first place from `x` on where the bit is as asked for, or `voxels`.
  const auto next = [&](int x, bool solid) {
    while (x < voxels) {
      const std::uint64_t word = (solid ? row[x / 64] : ~row[x / 64]) >> (x % 64);
      if (word != 0) return std::min(voxels, x + std::countr_zero(word));
      x = x / 64 * 64 + 64;
    }
    return voxels;
  };
  for (int begin = next(0, false); begin < voxels;) {
    const int end = next(begin, true);
    visit(begin, end);
    begin = next(end, false);
  }
}

bool flows(const PoreComponent& component, const std::array<bool, 3>& directions) {
  for (int a = 0; a < 3; ++a) {
    if (directions[a] && component.percolates[a]) return true;
  }
  return false;
}

/// Pore voxels as bits, moved along x: bit x is that of voxel x + by.
void move_pores(std::span<const std::uint64_t> row, int voxels, int by, bool periodic, std::uint64_t* moved) {
  const auto words = static_cast<int>(row.size());
  const auto pores = [&](int i) {
    if (i < 0 || i >= words) return std::uint64_t{0};
    const int after = 64 * words - voxels;
    return ~row[i] & (i == words - 1 ? ~std::uint64_t{0} >> after : ~std::uint64_t{0});
  };
  for (int i = 0; i < words; ++i) {
    moved[i] = by == 0  ? pores(i)
               : by > 0 ? pores(i) >> by | pores(i + 1) << (64 - by)
                        : pores(i) << -by | pores(i - 1) >> (64 + by);
  }
  if (!periodic) return;
  for (int step = 0; step < std::abs(by); ++step) {
    const int to = by > 0 ? voxels - 1 - step : step;
    if (to < 0 || to >= voxels) continue;
    const int from = ((to + by) % voxels + voxels) % voxels;
    const std::uint64_t bit = pores(from / 64) >> (from % 64) & 1;
    moved[to / 64] = (moved[to / 64] & ~(std::uint64_t{1} << (to % 64))) | bit << (to % 64);
  }
}

}  // namespace

Connectivity::Connectivity(const VoxelImage& image, const std::array<bool, 3>& periodic) : image_(&image) {
  find_runs();
  connect(periodic);
}

void Connectivity::find_runs() {
  const auto& extent = image_->extent();
  const std::int64_t rows = std::int64_t{extent[1]} * extent[2];
  const auto row = [&](std::int64_t i) {
    return image_->row(static_cast<int>(i % extent[1]), static_cast<int>(i / extent[1]));
  };
  first_run_.assign(rows + 1, 0);
  parallel_ranges({rows, 256}, [&](CellRange range, std::int64_t) {
    for (auto i = range.begin; i < range.end; ++i) {
      for_runs_of(row(i), extent[0], [&](int, int) { ++first_run_[i + 1]; });
    }
  });
  std::partial_sum(first_run_.begin(), first_run_.end(), first_run_.begin());
  if (first_run_.back() > std::numeric_limits<std::int32_t>::max()) {
    throw InputError("the pores of an image that large cannot be told apart");
  }
  runs_.resize(first_run_.back());
  parallel_ranges({rows, 256}, [&](CellRange range, std::int64_t) {
    for (auto i = range.begin; i < range.end; ++i) {
      std::int64_t next = first_run_[i];
      for_runs_of(row(i), extent[0], [&](int begin, int end) { runs_[next++] = {begin, end}; });
    }
  });
}

void Connectivity::connect(const std::array<bool, 3>& periodic) {
  const auto& extent = image_->extent();
  const int dim = image_->dim();
  RunSets sets(std::ssize(runs_));
  using Directions = std::array<bool, 3>;
  /// Closed ways that go around: a run of theirs, and in which directions.
  using Windings = std::vector<std::pair<std::int32_t, Directions>>;
  const auto join = [&](std::int32_t from, std::int32_t to, const Turns& across, Windings& found) {
    const Turns turns = sets.join(from, to, across);
    if (turns != Turns{}) found.push_back({from, {turns[0] != 0, turns[1] != 0, turns[2] != 0}});
  };
  const auto join_rows = [&](std::int64_t from, std::int64_t to, const Turns& across, Windings& found) {
    std::int64_t i = first_run_[from];
    std::int64_t j = first_run_[to];
    while (i < first_run_[from + 1] && j < first_run_[to + 1]) {
      if (std::max(runs_[i].begin, runs_[j].begin) < std::min(runs_[i].end, runs_[j].end)) {
        join(static_cast<std::int32_t>(i), static_cast<std::int32_t>(j), across, found);
      }
      // Both may end at once.
      runs_[i].end < runs_[j].end ? ++i : ++j;
    }
  };
  const auto row = [&](int y, int z) { return y + std::int64_t{extent[1]} * z; };
  /// What is connected in layers of the last direction: no thread looks at another one's.
  const int last = dim - 1;
  const auto in_layers = [&](int begin, int end, Windings& found) {
    const std::array<int, 3> lower{0, last == 1 ? begin : 0, last == 2 ? begin : 0};
    const std::array<int, 3> upper{0, last == 1 ? end : extent[1], last == 2 ? end : extent[2]};
    for (int z = lower[2]; z < upper[2]; ++z) {
      for (int y = lower[1]; y < upper[1]; ++y) {
        const std::int64_t here = row(y, z);
        const std::int64_t first = first_run_[here];
        const std::int64_t end_of_row = first_run_[here + 1];
        if (periodic[0] && first < end_of_row && runs_[first].begin == 0 && runs_[end_of_row - 1].end == extent[0]) {
          join(static_cast<std::int32_t>(end_of_row - 1), static_cast<std::int32_t>(first), {1, 0, 0}, found);
        }
        if (y + 1 < upper[1]) join_rows(here, row(y + 1, z), {}, found);
        if (last == 2 && periodic[1] && y + 1 == extent[1]) join_rows(here, row(0, z), {0, 1, 0}, found);
        if (z + 1 < upper[2]) join_rows(here, row(y, z + 1), {}, found);
      }
    }
  };
  const Ranges slabs{extent[last], 16};
  std::vector<Windings> found(slabs.number());
  parallel_ranges(slabs, [&](CellRange range, std::int64_t i) {
    in_layers(static_cast<int>(range.begin), static_cast<int>(range.end), found[i]);
  });
  Windings between;
  const auto join_layers = [&](int below, int above, const Turns& across) {
    for (int y = 0; y < (last == 2 ? extent[1] : 1); ++y) {
      last == 2 ? join_rows(row(y, below), row(y, above), across, between)
                : join_rows(row(below, 0), row(above, 0), across, between);
    }
  };
  for (std::int64_t i = 1; i < slabs.number(); ++i) {
    check_interrupt();
    const auto above = static_cast<int>(slabs[i].begin);
    join_layers(above - 1, above, {});
  }
  if (periodic[last]) {
    Turns around{};
    around[last] = 1;
    join_layers(extent[last] - 1, 0, around);
  }
  found.push_back(std::move(between));

  // A parent comes before its children.
  component_.resize(runs_.size());
  for (std::int64_t i = 0; i < std::ssize(runs_); ++i) {
    const std::int32_t parent = sets.parent(i);
    if (parent == i) components_.emplace_back();
    component_[i] = parent == i ? static_cast<std::int32_t>(components_.size() - 1) : component_[parent];
    components_[component_[i]].voxels += runs_[i].end - runs_[i].begin;
  }
  for (const Windings& windings : found) {
    for (const auto& [run, directions] : windings) {
      auto& percolates = components_[component_[run]].percolates;
      for (int a = 0; a < dim; ++a) percolates[a] = percolates[a] || directions[a];
    }
  }
  for (int a = 0; a < dim; ++a) {
    if (periodic[a]) continue;
    std::vector<bool> at_lower(components_.size());
    for (const int end : {0, extent[a] - 1}) {
      for (std::int64_t i = 0; i < std::ssize(first_run_) - 1; ++i) {
        if ((a == 1 && i % extent[1] != end) || (a == 2 && i / extent[1] != end)) continue;
        for (auto run = first_run_[i]; run < first_run_[i + 1]; ++run) {
          if (a == 0 && (end < runs_[run].begin || end >= runs_[run].end)) continue;
          if (end == 0) at_lower[component_[run]] = true;
          if (end == extent[a] - 1 && at_lower[component_[run]]) components_[component_[run]].percolates[a] = true;
        }
      }
    }
  }
}

std::array<bool, 3> Connectivity::percolates() const {
  std::array<bool, 3> result{};
  for (const PoreComponent& component : components_) {
    for (int a = 0; a < 3; ++a) result[a] = result[a] || component.percolates[a];
  }
  return result;
}

std::int64_t Connectivity::flowing(const std::array<bool, 3>& directions) const {
  std::int64_t sum = 0;
  for (const PoreComponent& component : components_) sum += flows(component, directions) ? component.voxels : 0;
  return sum;
}

Unset<std::int32_t> Connectivity::of_voxels() const {
  const auto& extent = image_->extent();
  Unset<std::int32_t> result(image_->size());
  parallel_ranges({std::ssize(first_run_) - 1, 256}, [&](CellRange range, std::int64_t) {
    for (auto row = range.begin; row < range.end; ++row) {
      const auto voxels = result.begin() + row * extent[0];
      std::fill(voxels, voxels + extent[0], -1);
      for (auto run = first_run_[row]; run < first_run_[row + 1]; ++run) {
        std::fill(voxels + runs_[run].begin, voxels + runs_[run].end, component_[run]);
      }
    }
  });
  return result;
}

VoxelImage Connectivity::keep_flowing(const std::array<bool, 3>& directions) const {
  const auto& extent = image_->extent();
  std::vector<char> kept(components_.size());
  std::transform(components_.begin(), components_.end(), kept.begin(),
                 [&](const PoreComponent& component) { return flows(component, directions) ? 1 : 0; });
  return {image_->dim(), extent,
          make_rows(extent,
                    [&](std::uint64_t* words, int y, int z) {
                      std::ranges::copy(image_->row(y, z), words);
                      const std::int64_t row = y + std::int64_t{extent[1]} * z;
                      for (auto run = first_run_[row]; run < first_run_[row + 1]; ++run) {
                        if (kept[component_[run]] == 0) fill_voxels(words, runs_[run].begin, runs_[run].end);
                      }
                    }),
          image_->voxel()};
}

VoxelImage keep_flowing(const VoxelImage& image, const std::array<bool, 3>& directions,
                        const std::array<bool, 3>& periodic) {
  return Connectivity(image, periodic).keep_flowing(directions);
}

std::int64_t throat_voxels(const VoxelImage& image, const std::array<bool, 3>& periodic) {
  const auto& extent = image.extent();
  const std::size_t words = VoxelImage::words_of_row(extent[0]);
  std::atomic<std::int64_t> total{0};
  parallel_for(std::int64_t{extent[1]} * extent[2], [&] {
    // Pores of the row, and those that lie so many voxels before and behind them in a direction.
    std::array<std::vector<std::uint64_t>, 5> near;
    near.fill(std::vector<std::uint64_t>(words));
    return [&, near, throats = std::vector<std::uint64_t>(words)](std::int64_t row) mutable {
      const std::array<int, 3> at{0, static_cast<int>(row % extent[1]), static_cast<int>(row / extent[1])};
      std::ranges::fill(throats, 0);
      for (int a = 0; a < image.dim(); ++a) {
        for (int by = -2; by <= 2; ++by) {
          std::array<int, 3> there = at;
          if (a > 0) {
            there[a] += by;
            if (periodic[a]) there[a] = ((there[a] % extent[a]) + extent[a]) % extent[a];
          }
          auto& pores = near[by + 2];
          if (there[a] < 0 || there[a] >= extent[a]) {
            std::ranges::fill(pores, 0);
          } else {
            move_pores(image.row(there[1], there[2]), extent[0], a == 0 ? by : 0, periodic[0], pores.data());
          }
        }
        for (std::size_t i = 0; i < words; ++i) {
          const auto& [before2, before, here, behind, behind2] = near;
          throats[i] |= here[i] & ((~before[i] & ~behind[i]) | (~before[i] & behind[i] & ~behind2[i]) |
                                   (~behind[i] & before[i] & ~before2[i]));
        }
      }
      std::int64_t count = 0;
      for (const std::uint64_t word : throats) count += std::popcount(word);
      total += count;
    };
  });
  return total;
}

}  // namespace solenoid
