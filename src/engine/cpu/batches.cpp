#include "engine/cpu/batches.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>

#include "engine/cpu/cell_shares.hpp"
#include "engine/tables.hpp"

namespace solenoid::cpu {

namespace {

/// make(colour) for all colours.
template <class Make>
void by_colour(Team& team, const Level& level, const Make& make) {
  const auto colours = std::ssize(level.patches.colours);
  team.run([&](int t) { Team::in_pieces(team.range(colours, t), 1, [&](Team::Range colour) { make(colour.begin); }); });
}

/// Patches of one kind, or another number in its place, in the order of their lower cells.
struct PatchList {
  int kind;
  std::span<const Record> lower;
};

PatchBatches::Colour batches_of(const Level& level, const std::vector<PatchList>& lists) {
  constexpr int width = interleave;
  struct NewBatch {
    Record last;  ///< lower cell
    int kind;
    std::uint32_t active;
    std::array<Record, interleave> lower;
  };
  std::vector<NewBatch> batches;
  for (const auto& [kind, lower] : lists) {
    std::vector<Record> left_over;
    const auto fill = [&] {
      NewBatch batch{left_over.back(), kind, (1U << left_over.size()) - 1, {}};
      batch.lower.fill(level.grid.layout().null());
      std::copy(left_over.begin(), left_over.end(), batch.lower.begin());
      batches.push_back(batch);
      left_over.clear();
    };
    for (std::int64_t i = 0; i < std::ssize(lower);) {
      const Record group = lower[i] / width;
      auto end = i;
      std::uint32_t active = 0;
      for (; end < std::ssize(lower) && lower[end] / width == group; ++end) active |= 1U << lower[end] % width;
      if (2 * (end - i) >= width) {
        NewBatch batch{lower[end - 1], kind, active, {}};
        for (int l = 0; l < width; ++l) {
          const Record cell = group * width + l;
          batch.lower[l] = level.grid.layout().is_cell(cell) ? cell : level.grid.layout().null();
        }
        batches.push_back(batch);
        i = end;
      }
      for (; i < end; ++i) {
        left_over.push_back(lower[i]);
        if (left_over.size() == width) fill();
      }
    }
    if (!left_over.empty()) fill();
  }
  std::sort(batches.begin(), batches.end(), [](const NewBatch& a, const NewBatch& b) { return a.last < b.last; });
  PatchBatches::Colour colour;
  for (const NewBatch& batch : batches) {
    const auto begin = std::ssize(colour.active);
    if (colour.runs.empty() || colour.runs.back().kind != batch.kind) colour.runs.push_back({batch.kind, begin, begin});
    ++colour.runs.back().end;
    colour.lower.insert(colour.lower.end(), batch.lower.begin(), batch.lower.end());
    colour.active.push_back(batch.active);
  }
  return colour;
}

struct Patch {
  Record lower;
  int kind;
};

/// Batches of the patches of a colour, in the order of their lower cells.
std::vector<HaloBatch> deal(const Level& level, const std::vector<Patch>& patches) {
  const int dim = level.equation.dim;
  std::vector<HaloBatch> batches;
  const auto put = [&](const Patch& patch, int lane) {
    HaloBatch& batch = batches.back();
    batch.lower[lane] = patch.lower;
    batch.kind[lane] = static_cast<std::int16_t>(patch.kind);
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
      HaloBatch& batch = batches.emplace_back();
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

/// Lists of places by what they are.
class SharedPlaces {
 public:
  SharedPlaces(int dim, std::int64_t most) : size_(PatchPlaces::count(dim)), most_(most) {}
  /// Number of a list, or HaloBatch::unknown where there are too many.
  std::int32_t number_of(const std::vector<LanePlaces>& list) {
    const std::uint64_t key = hash(list);
    const auto [begin, end] = numbers_.equal_range(key);
    for (auto i = begin; i != end; ++i) {
      if (std::equal(list.begin(), list.end(), places_.begin() + std::int64_t{i->second} * size_)) return i->second;
    }
    if (std::ssize(numbers_) >= most_) return HaloBatch::unknown;
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
                                     std::vector<HaloBatch>& batches) {
  const int dim = level.equation.dim;
  SharedPlaces shared(dim, std::max<std::int64_t>(64, std::ssize(batches) / 8));
  std::vector<LanePlaces> list(PatchPlaces::count(dim));
  const CellTopology topology = topology_of(level.grid);
  for (HaloBatch& batch : batches) {
    find_places(topology, batch, list.data());
    batch.places = shared.number_of(list);
  }
  return shared.take();
}

}  // namespace

PatchBatches::PatchBatches(Team& team, const Level& level, const std::vector<bool>& takes)
    : colours(level.patches.colours.size()) {
  by_colour(team, level, [&](std::int64_t c) {
    std::vector<PatchList> lists;
    for (const auto& [kind, begin, end] : level.patches.colours[c]) {
      if (takes[kind]) lists.push_back({kind, std::span(level.patches.lower_cell).subspan(begin, end - begin)});
    }
    colours[c] = batches_of(level, lists);
  });
}

PatchBatches::PatchBatches(Team& team, const Level& level, const std::vector<int>& of_patch)
    : colours(level.patches.colours.size()) {
  by_colour(team, level, [&](std::int64_t c) {
    std::map<int, std::vector<Record>> by_number;
    for (const PatchRun& run : level.patches.colours[c]) {
      for (auto i = run.begin; i < run.end; ++i) by_number[of_patch[i]].push_back(level.patches.lower_cell[i]);
    }
    std::vector<PatchList> lists;
    for (const auto& [number, lower] : by_number) lists.push_back({number, lower});
    colours[c] = batches_of(level, lists);
  });
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
    : colours(level.patches.colours.size()), places(colours.size()) {
  find_problems(level, takes);
  by_colour(team, level, [&](std::int64_t c) {
    std::vector<Patch> all;
    for (const PatchRun& run : level.patches.colours[c]) {
      if (!takes[run.kind]) continue;
      for (auto i = run.begin; i < run.end; ++i) all.push_back({level.patches.lower_cell[i], run.kind});
    }
    std::sort(all.begin(), all.end(), [](const Patch& a, const Patch& b) { return a.lower < b.lower; });
    colours[c] = deal(level, all);
    places[c] = share_places(level, find_places, colours[c]);
  });
}

void HaloBatches::find_problems(const Level& level, const std::vector<bool>& takes) {
  const auto& all = level.patches.kinds;
  std::map<PatchKind, int> problem_of;
  kinds.resize(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!takes[i]) continue;
    PatchKind problem = all[i];
    for (int t = 0; t < level.equation.dim; ++t) {
      problem[t] = all[i][t].problem();
      std::copy_n(all[i][t].weight.begin(), 2, kinds[i].weight[t]);
      std::copy_n(all[i][t].face.begin(), 2, kinds[i].face[t]);
      std::copy_n(all[i][t].hat.begin(), 2, kinds[i].hat[t]);
    }
    const auto [known, unknown] = problem_of.try_emplace(problem, static_cast<int>(problems.size()));
    if (unknown) {
      problems.push_back(static_cast<int>(i));
      splits.push_back(static_cast<std::uint8_t>(splits_by_parity(all[i], level.equation.dim)));
    }
    kinds[i].problem = known->second;
  }
}

}  // namespace solenoid::cpu
