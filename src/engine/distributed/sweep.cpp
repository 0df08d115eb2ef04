#include "engine/distributed/sweep.hpp"

#include <algorithm>
#include <cstddef>

namespace solenoid::distributed {
namespace {

bool is_interior(const PatchKind& kind, int dim) {
  return std::all_of(kind.begin(), kind.begin() + dim, [](const PatchEnds& ends) {
    return ends.face == std::array{1, 1} && ends.weight == std::array{1, 1};
  });
}

/// Whether ghosts lie within `reach` cells of the block of cells from `first` to `first` + `size` - 1 in each
/// direction.
bool near_ghosts(const Grid& grid, const LatticeBox& mine, const std::array<std::int32_t, 3>& first, int size,
                 int reach) {
  for (int a = 0; a < grid.dim(); ++a) {
    if (mine.extent(a) == grid.extent()[a]) continue;  // there are none
    if (first[a] - reach < mine.lower[a] || first[a] + size - 1 + reach >= mine.upper[a]) return true;
  }
  return false;
}

/// visit(run, lower cell) for the patches of a colour that read or change ghosts.
template <class Visit>
void for_patches_at_cuts(const Level& level, int colour, const Visit& visit) {
  const LatticeBox mine = level.grid.owned_box();
  for (const PatchRun& run : level.patches.colours[colour]) {
    for (auto i = run.begin; i < run.end; ++i) {
      const Record lower = level.patches.lower_cell[i];
      if (near_ghosts(level.grid, mine, level.grid.position(lower), 2, 1)) visit(run, lower);
    }
  }
}

/// Names of classes as bits.
struct Bits {
  int dim;

  [[nodiscard]] std::uint32_t hats(int c) const { return 1U << c; }
  [[nodiscard]] std::uint32_t rest(int c) const { return 1U << (dim + c); }
  [[nodiscard]] std::uint32_t pressure() const { return 1U << 2 * dim; }
  [[nodiscard]] std::uint32_t all() const { return (1U << (2 * dim + 1)) - 1; }
};

}  // namespace

std::vector<ValueClass> value_classes(const Equation& equation) {
  const int block = power(equation.n(), equation.dim);
  const int columns = power(equation.n(), equation.dim - 1);
  const int velocities = equation.velocities();
  std::vector<ValueClass> classes;
  for (int c = 0; c < velocities; ++c) classes.push_back({c * block, c * block + columns});
  for (int c = 0; c < velocities; ++c) classes.push_back({c * block + columns, (c + 1) * block});
  classes.push_back({velocities * block, equation.record()});
  return classes;
}

std::optional<int> Sweep::after_colour(int state, int colour) const {
  // After the last colour of the first step the residual comes.
  const int next = state < colours_ ? state : state == colours_ ? -1 : state - colours_ - 1;
  if (next != colour) return {};
  return state + 1;
}

Sweep::Sweep(const Level& level, const ExchangePlan& plan)
    : colours_(static_cast<int>(level.patches.colours.size())), classes_(value_classes(level.equation)) {
  std::vector<Classes> reads;
  for (int colour = 0; colour < colours_; ++colour) reads.push_back(read_by_colour(level, colour));
  Classes residual = read_by_residual(level);
  std::transform(residual.begin(), residual.end(), reads[0].begin(), residual.begin(),
                 [](std::uint32_t a, std::uint32_t b) { return a | b; });

  // State 0: fresh; then after each colour; after the residual's message; after each colour again.
  Classes stale(level.grid.layout().records().size(), 0);
  const Classes nothing = stale;
  for (int step = 0; step < 2; ++step) {
    for (int colour = 0; colour < colours_; ++colour) {
      keep(plan, stale);
      bring(level, plan, colour == 0 ? nothing : reads[colour], stale);
      smooth(level, colour, stale);
    }
    if (step == 0) {
      keep(plan, stale);
      bring(level, plan, residual, stale);
    }
  }
}

/// Classes of ghosts that patches of a colour read.
Sweep::Classes Sweep::read_by_colour(const Level& level, int colour) const {
  const Grid& grid = level.grid;
  const int dim = grid.dim();
  const Bits bits{dim};
  Classes reads(grid.layout().null() + 1, 0);
  const auto behind = [&](Record record, int direction, bool up) {
    return grid.neighbour(record, 2 * direction + (up ? 1 : 0));
  };
  for_patches_at_cuts(level, colour, [&](const PatchRun& run, Record lower) {
    const bool interior = is_interior(level.patches.kinds[run.kind], dim);
    const auto cells = patch_cells(grid, lower);
    for (int o = 0; o < 1 << dim; ++o) {
      const Record cell = cells[o];
      reads[cell] |= bits.pressure();            // what of it is not a mean serves to cancel rounding
      if (!interior) reads[cell] |= bits.all();  // at walls and open sides old values of the patch, too
      for (int c = 0; c < dim; ++c) {
        const bool upper = (o >> c & 1) != 0;
        if (!upper) reads[cell] |= bits.hats(c);
        if (upper) reads[behind(cell, c, true)] |= bits.hats(c);
        for (int t = 0; t < dim; ++t) {
          if (t == c) continue;
          const Record beside = behind(cell, t, (o >> t & 1) != 0);
          reads[beside] |= bits.hats(c) | bits.rest(c);
          reads[behind(beside, c, true)] |= bits.hats(c);  // beside a hole that of no other cell
        }
      }
    }
  });
  reads.resize(grid.layout().records().size());
  return reads;
}

/// Of the rows of owned cells, and of the hats below them, which restriction reads.
Sweep::Classes Sweep::read_by_residual(const Level& level) const {
  const Grid& grid = level.grid;
  const int dim = grid.dim();
  const Bits bits{dim};
  Classes reads(grid.layout().null() + 1, 0);
  const auto hats_of = [&](Record cell, int c) {
    for (const Record here : {cell, grid.neighbour(cell, 2 * c)}) {
      reads[here] |= bits.hats(c) | bits.rest(c) | bits.pressure();
      for (int t = 0; t < dim; ++t) {
        if (t == c) continue;
        for (int side = 2 * t; side < 2 * t + 2; ++side) {
          const Record beside = grid.neighbour(here, side);
          reads[beside] |= bits.hats(c) | bits.rest(c);
          reads[grid.neighbour(beside, 2 * c + 1)] |= bits.hats(c);
        }
      }
    }
    reads[grid.neighbour(cell, 2 * c + 1)] |= bits.hats(c);
  };
  const LatticeBox mine = grid.owned_box();
  for (const Record cell : grid.layout().owned_cells()) {
    if (!near_ghosts(grid, mine, grid.position(cell), 1, 2)) continue;
    for (int c = 0; c < dim; ++c) {
      hats_of(cell, c);
      const Record below = grid.neighbour(cell, 2 * c);
      if (grid.layout().is_cell(below) && !grid.layout().is_owned(below)) hats_of(below, c);
    }
  }
  for (const Record hat : grid.layout().owned_hats()) {
    hats_of(grid.neighbour(hat, 2 * grid.hat_direction(hat)), grid.hat_direction(hat));
  }
  reads.resize(grid.layout().records().size());
  return reads;
}

/// Ghosts in patches of this rank are known, others have changed.
void Sweep::smooth(const Level& level, int colour, Classes& stale) const {
  const Grid& grid = level.grid;
  const int dim = grid.dim();
  const Bits bits{dim};
  std::vector<char> covered(grid.layout().records().size(), 0);
  for_patches_at_cuts(level, colour, [&](const PatchRun& run, Record lower) {
    const PatchKind& kind = level.patches.kinds[run.kind];
    const auto cells = patch_cells(grid, lower);
    for (int o = 0; o < 1 << dim; ++o) {
      covered[cells[o]] = 1;
      std::uint32_t made = bits.pressure();
      for (int c = 0; c < dim; ++c) {
        const bool upper = (o >> c & 1) != 0;
        made |= bits.rest(c) | (upper || kind[c].hat[0] ? bits.hats(c) : 0U);
        const Record above = grid.neighbour(cells[o], 2 * c + 1);
        if (!upper || !grid.layout().is_hat(above)) continue;
        covered[above] = 1;
        if (kind[c].hat[1]) stale[above] &= ~bits.hats(c);
      }
      stale[cells[o]] &= ~made;
    }
  });
  const VectorLayout& layout = grid.layout();
  for (const Record cell : RecordRange(layout.owned_cells().last(), layout.cells().last())) {
    if (covered[cell] == 0) stale[cell] = bits.all();
  }
  for (const Record hat : RecordRange(layout.owned_hats().last(), layout.hats().last())) {
    if (covered[hat] == 0) stale[hat] = bits.hats(grid.hat_direction(hat));
  }
}

void Sweep::bring(const Level& level, const ExchangePlan& plan, const Classes& needed, Classes& stale) {
  // Who needs something says so, once: a word of bits for each ghost.
  const Communicator& ranks = level.grid.partition()->communicator();
  Message message;
  std::vector<Classes> asks;
  std::vector<Classes> asked;
  std::vector<Communicator::Message> sends;
  std::vector<Communicator::Message> receives;
  for (const auto& neighbour : plan.neighbours) {
    Classes& mine = asks.emplace_back();
    for (const Record r : neighbour.receives) {
      mine.push_back(stale[r] & needed[r]);
      stale[r] &= ~needed[r];
    }
    asked.emplace_back(neighbour.sends.size(), 0);
  }
  for (std::size_t n = 0; n < plan.neighbours.size(); ++n) {
    const auto bytes_of = [&](Classes& words) {
      return Communicator::Message{plan.neighbours[n].rank, reinterpret_cast<std::byte*>(words.data()),
                                   words.size() * sizeof(std::uint32_t)};
    };
    sends.push_back(bytes_of(asks[n]));
    receives.push_back(bytes_of(asked[n]));
  }
  ranks.exchange(sends, receives);
  const auto by_class = [&](const Classes& words) {
    OfClasses lists(classes_.size());
    for (std::size_t j = 0; j < words.size(); ++j) {
      for (std::size_t k = 0; k < lists.size(); ++k) {
        const bool empty = classes_[k].first == classes_[k].last;
        if (!empty && (words[j] >> k & 1) != 0) lists[k].push_back(static_cast<std::int32_t>(j));
      }
    }
    return lists;
  };
  for (std::size_t n = 0; n < plan.neighbours.size(); ++n) {
    message.sends.push_back(by_class(asked[n]));
    message.receives.push_back(by_class(asks[n]));
  }
  messages_.push_back(std::move(message));
}

void Sweep::keep(const ExchangePlan& plan, const Classes& stale) {
  auto& words = stale_.emplace_back();
  for (const auto& neighbour : plan.neighbours) {
    for (const Record r : neighbour.receives) words.push_back(stale[r]);
  }
}

}  // namespace solenoid::distributed
