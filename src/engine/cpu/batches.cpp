#include "engine/cpu/batches.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/interrupt.hpp"

namespace solenoid::cpu {

PatchBatches::PatchBatches(const Level& level) {
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

}  // namespace solenoid::cpu
