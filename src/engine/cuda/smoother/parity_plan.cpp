#include "engine/cuda/smoother/parity_plan.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/parallel.hpp"
#include "mesh/shared_records.hpp"

namespace solenoid::cuda {
namespace {

std::int32_t weights_of(const PatchKind& kind, int dim) {
  std::int32_t weights = 0;
  for (int a = 0; a < dim; ++a) weights |= kind[a].weight[0] << ParityPatch::weight_bits * a;
  return weights;
}

/// The wall at one end of a patch if there is none at the other, bit 0: lower, 1: upper end.
std::int32_t wall_of(const PatchEnds& ends) {
  if (ends.weight[0] != 2) return 0;
  return ends.face == std::array{2, 1} ? 1 : ends.face == std::array{1, 2} ? 2 : 0;
}
std::int32_t walls_of(const PatchKind& kind, int dim) {
  std::int32_t walls = 0;
  for (int a = 0; a < dim; ++a) walls |= wall_of(kind[a]) << (ParityPatch::wall_shift + 2 * a);
  return walls;
}

std::int32_t flags_of(const PatchKind& kind, int dim) {
  std::int32_t flags = 0;
  for (int a = 0; a < dim; ++a) {
    if (wall_of(kind[a]) != 0) continue;
    for (int end = 0; end < 2; ++end) {
      if (kind[a].face[end] != kind[a].weight[end]) flags |= PatchBatch::weaker_face << (2 * a + end);
      if (kind[a].face[end] == PatchEnds::mixed) flags |= PatchBatch::mixed_faces;
    }
  }
  return flags;
}

struct Entry {
  ParityPatch patch;
  std::int32_t flags;

  [[nodiscard]] std::int32_t lower() const { return patch.cells[0]; }
};

/// Cuts a colour's patches into batches. Lower cells of one interleaved block stay together where that does not leave
/// many lanes without work: then the lanes of a warp find whole sectors of memory.
std::vector<PatchBatch> cut(const std::vector<Entry>& entries, int size) {
  const int unit = std::min(size, interleave);
  std::vector<PatchBatch> batches;
  PatchBatch open{};
  const auto close = [&] {
    if (open.count > 0) batches.push_back(open);
    open = {open.begin + open.count, 0, 0, 0, 0};
  };
  for (std::size_t i = 0; i < entries.size();) {
    std::size_t end = i;
    while (end < entries.size() && entries[end].lower() / unit == entries[i].lower() / unit) ++end;
    const bool fits = open.count + static_cast<int>(end - i) <= size;
    if (!fits && 4 * open.count >= 3 * size) close();
    for (; i < end; ++i) {
      if (open.count == size) close();
      ++open.count;
      open.flags |= entries[i].flags;
    }
  }
  close();
  return batches;
}

/// Batches that read ghosts go last; returns the first one.
std::int32_t sort_by_ghosts(const Grid& grid, const std::vector<Entry>& entries, std::vector<PatchBatch>& batches) {
  if (grid.partition() == nullptr) return static_cast<std::int32_t>(batches.size());
  const LatticeBox mine = grid.owned_box();
  const auto first = std::stable_partition(batches.begin(), batches.end(), [&](const PatchBatch& batch) {
    const auto begin = entries.begin() + batch.begin;
    return std::none_of(begin, begin + batch.count, [&](const Entry& entry) {
      return near_ghosts(grid, mine, grid.position(entry.lower()), 2, 1);
    });
  });
  return static_cast<std::int32_t>(first - batches.begin());
}

/// Deals owned records outside all patches of a colour out to batches, and returns them in the order of those. A batch
/// gets those near its own cells, with which they share interleaved blocks of records, and some of the whole blocks
/// that there are.
std::vector<std::int32_t> deal(const Grid& grid, const std::vector<Entry>& entries, std::vector<PatchBatch>& batches,
                               const std::vector<Record>& records) {
  if (batches.empty() || records.empty()) return records;
  // Of the records in their blocks; others are not asked for.
  Unset<std::int32_t> batch_of(grid.layout().storage());
  std::vector<char> is_asked(batch_of.size() / interleave, 0);
  for (const Record record : records) {
    if (std::exchange(is_asked[record / interleave], 1) != 0) continue;
    std::fill_n(batch_of.begin() + record / interleave * interleave, interleave, -1);
  }
  for (std::size_t i = 0; i < batches.size(); ++i) {
    for (auto k = batches[i].begin; k < batches[i].begin + batches[i].count; ++k) {
      for (const auto cell : patch_cells(grid, entries[k].lower())) {
        if (is_asked[cell / interleave] != 0) batch_of[cell] = static_cast<std::int32_t>(i);
      }
    }
  }
  const auto nearest_batch = [&](std::int32_t record) {
    const std::int32_t begin = record / interleave * interleave;
    const std::int32_t end = std::min<std::int32_t>(begin + interleave, grid.layout().records().last());
    for (int distance = 1; distance < interleave; ++distance) {
      for (const std::int32_t near : {record - distance, record + distance}) {
        if (near >= begin && near < end && batch_of[near] >= 0) return batch_of[near];
      }
    }
    return -1;
  };
  std::vector<std::int64_t> taker;  // of each record: a batch, or, less than that, minus the number of its whole block
  std::int64_t whole_blocks = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const std::int32_t batch = nearest_batch(records[i]);
    const bool begins_block = i == 0 || records[i] / interleave != records[i - 1] / interleave;
    if (batch < 0 && begins_block) ++whole_blocks;
    taker.push_back(batch < 0 ? -whole_blocks : batch);
  }
  for (auto& i : taker) {
    if (i < 0) i = (-i - 1) * std::ssize(batches) / whole_blocks;
    ++batches[i].copy_count;
  }
  std::int32_t sum = 0;
  for (PatchBatch& batch : batches) {
    batch.copy_begin = sum;
    sum += batch.copy_count;
  }
  std::vector<std::int32_t> next;
  for (const PatchBatch& batch : batches) next.push_back(batch.copy_begin);
  std::vector<std::int32_t> dealt(records.size());
  for (std::size_t i = 0; i < records.size(); ++i) dealt[next[taker[i]]++] = records[i];
  return dealt;
}

/// The same with what is copied of ghosts: hats, by the last batch. Nobody reads ghost cells that no patch has.
std::vector<std::int32_t> deal_all(const Grid& grid, const std::vector<Entry>& entries,
                                   std::vector<PatchBatch>& batches, std::int32_t& first_with_ghosts,
                                   const Unset<Record>& records) {
  std::vector<Record> owned;
  std::vector<Record> hats;
  for (const Record record : records) {
    if (grid.layout().is_owned(record)) {
      owned.push_back(record);
    } else if (!grid.layout().is_cell(record)) {
      hats.push_back(record);
    }
  }
  std::vector<std::int32_t> dealt = deal(grid, entries, batches, owned);
  dealt.insert(dealt.end(), hats.begin(), hats.end());
  if (!hats.empty() && !batches.empty()) {
    batches.back().copy_count += static_cast<std::int32_t>(hats.size());
    first_with_ghosts = std::min(first_with_ghosts, static_cast<std::int32_t>(batches.size()) - 1);
  }
  return dealt;
}

}  // namespace

ParityPlan::ParityPlan(const Level& level, int batch) {
  const int dim = level.equation.dim;
  const Patches& all = level.patches;
  std::vector<std::int32_t> known;  // weights of the Schur blocks so far
  schur_number.assign(all.kinds.size(), -1);
  for (std::size_t i = 0; i < all.kinds.size(); ++i) {
    const PatchKind& kind = all.kinds[i];
    covered.push_back(splits_by_parity(kind, dim) ? 1 : 0);
    if (covered[i] == 0) continue;
    const std::int32_t weights = weights_of(kind, dim);
    const auto found = std::find(known.begin(), known.end(), weights);
    schur_number[i] = static_cast<std::int32_t>(found - known.begin());
    if (found != known.end()) continue;
    known.push_back(weights);
    kinds.push_back(static_cast<int>(i));
  }
  const auto colour_count = static_cast<std::int64_t>(all.colours.size());
  std::vector<std::int64_t> first(1, 0);  // patch of a colour, and their number
  for (const auto& runs : all.colours) {
    first.push_back(first.back());
    for (const PatchRun& run : runs) first.back() += covered[run.kind] != 0 ? run.end - run.begin : 0;
  }
  patches.resize(first.back());
  colours.resize(colour_count);
  first_with_ghosts.resize(colour_count);
  uncovered.resize(colour_count);
  parallel_for(colour_count, [&] {
    return [&](std::int64_t colour) {
      std::vector<Entry> mine;
      mine.reserve(first[colour + 1] - first[colour]);
      for (const PatchRun& run : all.colours[colour]) {
        if (covered[run.kind] == 0) continue;
        const PatchKind& kind = all.kinds[run.kind];
        const std::int32_t word =
            weights_of(kind, dim) | walls_of(kind, dim) | schur_number[run.kind] << ParityPatch::schur_shift;
        const std::int32_t flags = flags_of(kind, dim);
        for (auto i = run.begin; i < run.end; ++i) {
          const Record lower = all.lower_cell[i];
          const Record y = level.grid.neighbour(lower, 3);
          const Record z = dim == 3 ? level.grid.neighbour(lower, 5) : lower;
          const Record yz = dim == 3 ? level.grid.neighbour(y, 5) : y;
          mine.push_back({{{lower, y, z, yz}, word}, flags});
        }
      }
      std::sort(mine.begin(), mine.end(), [](const Entry& a, const Entry& b) { return a.lower() < b.lower(); });
      colours[colour] = cut(mine, batch);
      first_with_ghosts[colour] = sort_by_ghosts(level.grid, mine, colours[colour]);
      uncovered[colour] = deal_all(level.grid, mine, colours[colour], first_with_ghosts[colour], all.uncovered[colour]);
      for (PatchBatch& cut_batch : colours[colour]) cut_batch.begin += static_cast<std::int32_t>(first[colour]);
      std::transform(mine.begin(), mine.end(), patches.begin() + first[colour],
                     [](const Entry& entry) { return entry.patch; });
    };
  });
}

}  // namespace solenoid::cuda
