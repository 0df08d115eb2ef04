#include "engine/cpu/batches.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>

#include "base/interrupt.hpp"

namespace solenoid::cpu {

PatchBatches::PatchBatches(const Level& level, const std::vector<bool>& takes) {
  constexpr int width = interleave;
  struct NewBatch {
    Record last;  ///< lower cell
    int kind;
    std::uint32_t active;
    std::array<Record, interleave> lower;
  };
  const auto& patches = level.patches;
  for (const auto& runs : patches.colours) {
    check_interrupt();
    std::vector<NewBatch> batches;
    for (const PatchRun& run : runs) {
      if (!takes[run.kind]) continue;
      std::vector<Record> left_over;
      const auto fill = [&] {
        NewBatch batch{left_over.back(), run.kind, (1U << left_over.size()) - 1, {}};
        batch.lower.fill(level.grid.layout().null());
        std::copy(left_over.begin(), left_over.end(), batch.lower.begin());
        batches.push_back(batch);
        left_over.clear();
      };
      for (auto i = run.begin; i < run.end;) {
        const Record group = patches.lower_cell[i] / width;
        auto end = i;
        std::uint32_t active = 0;
        for (; end < run.end && patches.lower_cell[end] / width == group; ++end) {
          active |= 1U << patches.lower_cell[end] % width;
        }
        if (2 * (end - i) >= width) {
          NewBatch batch{patches.lower_cell[end - 1], run.kind, active, {}};
          for (int l = 0; l < width; ++l) {
            const Record cell = group * width + l;
            batch.lower[l] = level.grid.layout().is_cell(cell) ? cell : level.grid.layout().null();
          }
          batches.push_back(batch);
          i = end;
        }
        for (; i < end; ++i) {
          left_over.push_back(patches.lower_cell[i]);
          if (left_over.size() == width) fill();
        }
      }
      if (!left_over.empty()) fill();
    }
    std::sort(batches.begin(), batches.end(), [](const NewBatch& a, const NewBatch& b) { return a.last < b.last; });
    auto& colour = colours.emplace_back();
    for (const NewBatch& batch : batches) {
      const auto begin = std::ssize(active);
      if (colour.empty() || colour.back().kind != batch.kind) colour.push_back({batch.kind, begin, begin});
      ++colour.back().end;
      lower.insert(lower.end(), batch.lower.begin(), batch.lower.end());
      active.push_back(batch.active);
    }
  }
}

std::vector<bool> halo_kinds(const Level& level) {
  const int dim = level.equation.dim;
  std::vector<bool> takes;
  for (const PatchKind& kind : level.patches.kinds) {
    const bool clear = std::all_of(kind.begin(), kind.begin() + dim, [](const PatchEnds& ends) {
      return ends.face[0] != PatchEnds::mixed && ends.face[1] != PatchEnds::mixed;
    });
    takes.push_back(clear && splits_by_parity(kind, dim));
  }
  return takes;
}

HaloBatches::HaloBatches(const Level& level, const std::vector<bool>& takes) {
  find_problems(level, takes);
  for (const auto& runs : level.patches.colours) {
    check_interrupt();
    std::vector<Patch> all;
    for (const PatchRun& run : runs) {
      if (!takes[run.kind]) continue;
      for (auto i = run.begin; i < run.end; ++i) all.push_back({level.patches.lower_cell[i], run.kind});
    }
    std::sort(all.begin(), all.end(), [](const Patch& a, const Patch& b) { return a.lower < b.lower; });
    const std::int64_t begin = std::ssize(batches);
    deal(level, all);
    colours.push_back({begin, std::ssize(batches)});
  }
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
    }
    const auto [known, unknown] = problem_of.try_emplace(problem, static_cast<int>(problems.size()));
    if (unknown) problems.push_back(static_cast<int>(i));
    kinds[i].problem = known->second;
  }
}

void HaloBatches::deal(const Level& level, const std::vector<Patch>& patches) {
  const int dim = level.equation.dim;
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
}

}  // namespace solenoid::cpu
