#include "engine/cpu/batches.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <map>
#include <unordered_map>
#include <utility>

#include "engine/cpu/cell_shares.hpp"
#include "engine/tables.hpp"
#include "mesh/shared_records.hpp"

namespace solenoid::cpu {

namespace {

/// make(colour) for all colours.
template <class Make>
void by_colour(Team& team, const Level& level, const Make& make) {
  const auto colours = std::ssize(level.patches.colours);
  team.run([&](int t) { Team::in_pieces(team.range(colours, t), 1, [&](Team::Range colour) { make(colour.begin); }); });
}

struct Patch {
  Record lower;
  int kind;
  int number;  ///< PatchLanes::kind
};

/// The patches of a colour that have a number, in the order of their lower cells.
std::vector<Patch> patches_of(const Level& level, std::int64_t colour, const PatchBatches::Number& number) {
  std::vector<Patch> all;
  for (const PatchRun& run : level.patches.colours[colour]) {
    for (auto i = run.begin; i < run.end; ++i) {
      const int of_patch = number(run.kind, i);
      if (of_patch >= 0) all.push_back({level.patches.lower_cell[i], run.kind, of_patch});
    }
  }
  std::sort(all.begin(), all.end(), [](const Patch& a, const Patch& b) { return a.lower < b.lower; });
  return all;
}

/// Batches of the patches of a colour, in the order of their lower cells.
std::vector<PatchLanes> deal(const Level& level, const std::vector<Patch>& patches) {
  const int dim = level.equation.dim;
  std::vector<PatchLanes> batches;
  const auto put = [&](const Patch& patch, int lane) {
    PatchLanes& batch = batches.back();
    batch.lower[lane] = patch.lower;
    batch.kind[lane] = patch.number;
    batch.active = static_cast<std::uint16_t>(batch.active | 1U << lane);
    batch.last_lane = static_cast<std::uint8_t>(lane);
    const PatchKind& kind = level.patches.kinds[patch.kind];
    for (int t = 0; t < dim; ++t) {
      const bool extra = kind[t].weight != std::array{1, 1} || kind[t].face != std::array{1, 1};
      if (extra) batch.extra = static_cast<std::uint8_t>(batch.extra | 1U << t);
      if (kind[t].hat[0] || kind[t].hat[1]) batch.hats = static_cast<std::uint8_t>(batch.hats | 1U << t);
    }
  };
  int filled = interleave;  // lanes of the last batch
  for (auto patch = patches.begin(); patch != patches.end();) {
    const Record block = patch->lower / interleave;
    const auto end = std::find_if(patch, patches.end(), [&](const Patch& p) { return p.lower / interleave != block; });
    const int count = static_cast<int>(end - patch);
    const bool alone = 2 * count > interleave;  // lanes are the block's records
    if (alone || filled + count > interleave) {
      PatchLanes& batch = batches.emplace_back();
      for (int l = 0; l < interleave; ++l) {
        const Record cell = block * interleave + l;
        batch.lower[l] = alone && level.grid.layout().is_cell(cell) ? cell : level.grid.layout().null();
      }
      filled = 0;
    }
    for (; patch != end; ++patch) put(*patch, alone ? patch->lower % interleave : filled++);
    if (alone) filled = interleave;
  }
  return batches;
}

/// Batches that read ghosts go last; returns the first one.
std::int64_t sort_by_ghosts(const Grid& grid, std::vector<PatchLanes>& batches) {
  if (grid.partition() == nullptr) return std::ssize(batches);
  const LatticeBox mine = grid.owned_box();
  const int reach = grid.ghost_layers() - 1;  // of a patch with one layer inside
  const auto first = std::stable_partition(batches.begin(), batches.end(), [&](const PatchLanes& batch) {
    for (unsigned left = batch.active; left != 0; left &= left - 1) {
      if (near_ghosts(grid, mine, grid.position(batch.lower[std::countr_zero(left)]), 2, reach)) return false;
    }
    return true;
  });
  return first - batches.begin();
}

/// Lists of places by what they are.
class SharedPlaces {
 public:
  SharedPlaces(int dim, std::int64_t most) : size_(PatchPlaces::count(dim)), most_(most) {}
  /// Number of a list, or PatchLanes::unknown where there are too many.
  std::int32_t number_of(const std::vector<LanePlaces>& list) {
    const std::uint64_t key = hash(list);
    const auto [begin, end] = numbers_.equal_range(key);
    for (auto i = begin; i != end; ++i) {
      if (std::equal(list.begin(), list.end(), places_.begin() + std::int64_t{i->second} * size_)) return i->second;
    }
    if (std::ssize(numbers_) >= most_) return PatchLanes::unknown;
    const auto number = static_cast<std::int32_t>(numbers_.size());
    numbers_.emplace(key, number);
    places_.insert(places_.end(), list.begin(), list.end());
    return number;
  }
  std::vector<LanePlaces> take() { return std::move(places_); }

 private:
  /// Few lists have the same places of whole blocks.
  static std::uint64_t hash(const std::vector<LanePlaces>& list) {
    std::uint64_t sum = 0;
    for (const LanePlaces& lanes : list) {
      const std::uint64_t blocks = std::uint64_t(std::uint32_t(lanes.block[0])) << 32 | std::uint32_t(lanes.block[1]);
      sum = (sum ^ blocks ^ lanes.exists ^ std::uint64_t(std::uint32_t(lanes.place[0])) << 16) * 0x9e3779b97f4a7c15;
      sum ^= sum >> 29;
    }
    return sum;
  }

  int size_;
  std::int64_t most_;
  std::unordered_multimap<std::uint64_t, std::int32_t> numbers_;
  std::vector<LanePlaces> places_;
};

/// Tells batches their places. Most share those of others: lists are kept for an eighth of them, and for 64 on levels
/// with few, so that memory is bounded on any mesh.
std::vector<LanePlaces> share_places(const Level& level, HaloBatches::FindPlaces find_places,
                                     std::vector<PatchLanes>& batches) {
  const int dim = level.equation.dim;
  SharedPlaces shared(dim, std::max<std::int64_t>(64, std::ssize(batches) / 8));
  std::vector<LanePlaces> list(PatchPlaces::count(dim));
  const CellTopology topology = topology_of(level.grid);
  for (PatchLanes& batch : batches) {
    find_places(topology, batch, list.data());
    batch.places = shared.number_of(list);
  }
  return shared.take();
}

}  // namespace

PatchBatches::PatchBatches(Team& team, const Level& level, const Number& number)
    : colours(level.patches.colours.size()), first_with_ghosts(colours.size()) {
  by_colour(team, level, [&](std::int64_t c) {
    colours[c] = deal(level, patches_of(level, c, number));
    first_with_ghosts[c] = sort_by_ghosts(level.grid, colours[c]);
  });
}

std::span<const PatchLanes> PatchBatches::of(int colour, Reads what) const {
  const std::span<const PatchLanes> all(colours[colour]);
  const std::int64_t first = first_with_ghosts[colour];
  return what == Reads::anything ? all : what == Reads::ghosts ? all.subspan(first) : all.first(first);
}

std::vector<int> first_with_problem(const Level& level) {
  std::map<PatchKind, int> first;
  std::vector<int> result;
  for (PatchKind kind : level.patches.kinds) {
    for (PatchEnds& ends : kind) ends = ends.problem();
    result.push_back(first.try_emplace(kind, static_cast<int>(result.size())).first->second);
  }
  return result;
}

std::vector<bool> halo_kinds(const Level& level) {
  const int dim = level.equation.dim;
  std::vector<bool> takes;
  for (const PatchKind& kind : level.patches.kinds) {
    takes.push_back(std::all_of(kind.begin(), kind.begin() + dim, [](const PatchEnds& ends) {
      return ends.face[0] != PatchEnds::mixed && ends.face[1] != PatchEnds::mixed;
    }));
  }
  return takes;
}

HaloBatches::HaloBatches(Team& team, const Level& level, const std::vector<bool>& takes, FindPlaces find_places)
    : PatchBatches(team, level, [&](int kind, std::int64_t /*i*/) { return takes[kind] ? kind : -1; }),
      places(colours.size()) {
  find_problems(level, takes);
  by_colour(team, level, [&](std::int64_t c) { places[c] = share_places(level, find_places, colours[c]); });
}

void HaloBatches::find_problems(const Level& level, const std::vector<bool>& takes) {
  const auto& all = level.patches.kinds;
  const std::vector<int> first = first_with_problem(level);
  kinds.resize(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!takes[i]) continue;
    for (int t = 0; t < level.equation.dim; ++t) {
      std::copy_n(all[i][t].weight.begin(), 2, kinds[i].weight[t]);
      std::copy_n(all[i][t].face.begin(), 2, kinds[i].face[t]);
      std::copy_n(all[i][t].hat.begin(), 2, kinds[i].hat[t]);
    }
    const auto same = [&](int problem) { return first[problem] == first[i]; };
    const auto known = std::find_if(problems.begin(), problems.end(), same);
    kinds[i].problem = static_cast<int>(known - problems.begin());
    if (known != problems.end()) continue;
    problems.push_back(static_cast<int>(i));
    splits.push_back(static_cast<std::uint8_t>(splits_by_parity(all[i], level.equation.dim)));
  }
}

}  // namespace solenoid::cpu
