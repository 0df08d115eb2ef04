#include "engine/distributed/sweep.hpp"

#include <algorithm>
#include <cstddef>

#include "base/parallel.hpp"

namespace solenoid::distributed {
namespace {

bool is_interior(const PatchKind& kind, int dim) {
  return std::all_of(kind.begin(), kind.begin() + dim, [](const PatchEnds& ends) {
    return ends.face == std::array{1, 1} && ends.weight == std::array{1, 1};
  });
}

/// Those of [0, count) for which wanted(i), in their order.
template <class Predicate>
std::vector<std::int64_t> select(std::int64_t count, const Predicate& wanted) {
  const Ranges ranges{count};
  std::vector<std::vector<std::int64_t>> of_ranges(ranges.number());
  parallel_ranges(ranges, [&](CellRange range, std::int64_t number) {
    for (auto i = range.begin; i < range.end; ++i) {
      if (wanted(i)) of_ranges[number].push_back(i);
    }
  });
  std::vector<std::int64_t> all;
  for (const auto& some : of_ranges) all.insert(all.end(), some.begin(), some.end());
  return all;
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

/// What a rank has at its cuts: all that the making of a sweep looks at, however large the level is.
class Sweep::Cuts {
 public:
  Cuts(const Level& level, const ExchangePlan& plan)
      : level(level),
        plan(plan),
        layout_(level.grid.layout()),
        ghost_cells_(layout_.cells().last() - layout_.owned_cells().last()),
        ghosts_(ghost_cells_ + layout_.hats().last() - layout_.owned_hats().last()) {
    const Grid& grid = level.grid;
    const LatticeBox mine = grid.owned_box();
    for (const auto& runs : level.patches.colours) {
      auto& of_colour = patches_.emplace_back();
      for (const PatchRun& run : runs) {
        const Record* const lower_cell = level.patches.lower_cell.data() + run.begin;
        const auto found = select(run.end - run.begin, [&](std::int64_t i) {
          return near_ghosts(grid, mine, grid.position(lower_cell[i]), 2, 1);
        });
        for (const std::int64_t i : found) of_colour.push_back({&level.patches.kinds[run.kind], lower_cell[i]});
      }
    }
    cells_ = select(layout_.owned_cells().size(), [&](std::int64_t cell) {
      return near_ghosts(grid, mine, grid.position(static_cast<Record>(cell)), 1, 2);
    });
  }

  struct Patch {
    const PatchKind* kind;
    Record lower;
  };
  /// Patches of a colour that read or change ghosts.
  [[nodiscard]] const std::vector<Patch>& patches(int colour) const { return patches_[colour]; }
  /// Owned cells whose rows, or those of the hats below them, read ghosts.
  [[nodiscard]] const std::vector<std::int64_t>& cells() const { return cells_; }

  /// For each ghost: cells, then hats, then one for all that is no ghost, which is never stale and never asked for.
  [[nodiscard]] Classes of_ghosts() const { return Classes(ghosts_ + 1, 0); }
  [[nodiscard]] std::size_t place(Record record) const {
    if (layout_.is_cell(record)) return layout_.is_owned(record) ? ghosts_ : record - layout_.owned_cells().last();
    const bool ghost = layout_.is_hat(record) && !layout_.is_owned(record);
    return ghost ? ghost_cells_ + record - layout_.owned_hats().last() : ghosts_;
  }
  [[nodiscard]] RecordRange ghost_cells() const { return {layout_.owned_cells().last(), layout_.cells().last()}; }
  [[nodiscard]] RecordRange ghost_hats() const { return {layout_.owned_hats().last(), layout_.hats().last()}; }

  const Level& level;
  const ExchangePlan& plan;

 private:
  const VectorLayout& layout_;
  std::size_t ghost_cells_;
  std::size_t ghosts_;
  std::vector<std::vector<Patch>> patches_;  // [colour]
  std::vector<std::int64_t> cells_;
};

Sweep::Sweep(const Level& level, const ExchangePlan& plan)
    : colours_(static_cast<int>(level.patches.colours.size())), classes_(value_classes(level.equation)) {
  const Cuts cuts(level, plan);
  std::vector<Classes> reads;
  for (int colour = 0; colour < colours_; ++colour) reads.push_back(read_by_colour(cuts, colour));
  Classes residual = read_by_residual(cuts);
  std::transform(residual.begin(), residual.end(), reads[0].begin(), residual.begin(),
                 [](std::uint32_t a, std::uint32_t b) { return a | b; });

  // State 0: fresh; then after each colour; after the residual's message; after each colour again.
  Classes stale = cuts.of_ghosts();
  const Classes nothing = stale;
  for (int step = 0; step < 2; ++step) {
    for (int colour = 0; colour < colours_; ++colour) {
      keep(cuts, stale);
      bring(cuts, colour == 0 ? nothing : reads[colour], stale);
      smooth(cuts, colour, stale);
    }
    if (step == 0) {
      keep(cuts, stale);
      bring(cuts, residual, stale);
    }
  }
}

/// Classes of ghosts that patches of a colour read.
Sweep::Classes Sweep::read_by_colour(const Cuts& cuts, int colour) const {
  const Grid& grid = cuts.level.grid;
  const int dim = grid.dim();
  const Bits bits{dim};
  Classes of_ghosts = cuts.of_ghosts();
  const auto reads = [&](Record record) -> std::uint32_t& { return of_ghosts[cuts.place(record)]; };
  const auto behind = [&](Record record, int direction, bool up) {
    return grid.neighbour(record, 2 * direction + (up ? 1 : 0));
  };
  for (const auto& [kind, lower] : cuts.patches(colour)) {
    const bool interior = is_interior(*kind, dim);
    const auto cells = patch_cells(grid, lower);
    for (int o = 0; o < 1 << dim; ++o) {
      const Record cell = cells[o];
      reads(cell) |= bits.pressure();            // what of it is not a mean serves to cancel rounding
      if (!interior) reads(cell) |= bits.all();  // at walls and open sides old values of the patch, too
      for (int c = 0; c < dim; ++c) {
        const bool upper = (o >> c & 1) != 0;
        if (!upper) reads(cell) |= bits.hats(c);
        if (upper) reads(behind(cell, c, true)) |= bits.hats(c);
        for (int t = 0; t < dim; ++t) {
          if (t == c) continue;
          const Record beside = behind(cell, t, (o >> t & 1) != 0);
          reads(beside) |= bits.hats(c) | bits.rest(c);
          reads(behind(beside, c, true)) |= bits.hats(c);  // beside a hole that of no other cell
        }
      }
    }
  }
  return of_ghosts;
}

/// Of the rows of owned cells, and of the hats below them, which restriction reads.
Sweep::Classes Sweep::read_by_residual(const Cuts& cuts) const {
  const Grid& grid = cuts.level.grid;
  const int dim = grid.dim();
  const Bits bits{dim};
  Classes of_ghosts = cuts.of_ghosts();
  const auto reads = [&](Record record) -> std::uint32_t& { return of_ghosts[cuts.place(record)]; };
  const auto hats_of = [&](Record cell, int c) {
    for (const Record here : {cell, grid.neighbour(cell, 2 * c)}) {
      reads(here) |= bits.hats(c) | bits.rest(c) | bits.pressure();
      for (int t = 0; t < dim; ++t) {
        if (t == c) continue;
        for (int side = 2 * t; side < 2 * t + 2; ++side) {
          const Record beside = grid.neighbour(here, side);
          reads(beside) |= bits.hats(c) | bits.rest(c);
          reads(grid.neighbour(beside, 2 * c + 1)) |= bits.hats(c);
        }
      }
    }
    reads(grid.neighbour(cell, 2 * c + 1)) |= bits.hats(c);
  };
  for (const std::int64_t place : cuts.cells()) {
    const auto cell = static_cast<Record>(place);
    for (int c = 0; c < dim; ++c) {
      hats_of(cell, c);
      const Record below = grid.neighbour(cell, 2 * c);
      if (grid.layout().is_cell(below) && !grid.layout().is_owned(below)) hats_of(below, c);
    }
  }
  for (const Record hat : grid.layout().owned_hats()) {
    hats_of(grid.neighbour(hat, 2 * grid.hat_direction(hat)), grid.hat_direction(hat));
  }
  return of_ghosts;
}

/// Ghosts in patches of this rank are known, others have changed.
void Sweep::smooth(const Cuts& cuts, int colour, Classes& stale) const {
  const Grid& grid = cuts.level.grid;
  const int dim = grid.dim();
  const Bits bits{dim};
  std::vector<char> covered(stale.size(), 0);
  for (const auto& [kind, lower] : cuts.patches(colour)) {
    const auto cells = patch_cells(grid, lower);
    for (int o = 0; o < 1 << dim; ++o) {
      covered[cuts.place(cells[o])] = 1;
      std::uint32_t made = bits.pressure();
      for (int c = 0; c < dim; ++c) {
        const bool upper = (o >> c & 1) != 0;
        made |= bits.rest(c) | (upper || (*kind)[c].hat[0] ? bits.hats(c) : 0U);
        const Record above = grid.neighbour(cells[o], 2 * c + 1);
        if (!upper || !grid.layout().is_hat(above)) continue;
        covered[cuts.place(above)] = 1;
        if ((*kind)[c].hat[1]) stale[cuts.place(above)] &= ~bits.hats(c);
      }
      stale[cuts.place(cells[o])] &= ~made;
    }
  }
  for (const Record cell : cuts.ghost_cells()) {
    if (covered[cuts.place(cell)] == 0) stale[cuts.place(cell)] = bits.all();
  }
  for (const Record hat : cuts.ghost_hats()) {
    if (covered[cuts.place(hat)] == 0) stale[cuts.place(hat)] = bits.hats(grid.hat_direction(hat));
  }
}

void Sweep::bring(const Cuts& cuts, const Classes& needed, Classes& stale) {
  const ExchangePlan& plan = cuts.plan;
  // Who needs something says so, once: a word of bits for each ghost.
  const Communicator& ranks = cuts.level.grid.partition()->communicator();
  Message message;
  std::vector<Classes> asks;
  std::vector<Classes> asked;
  std::vector<Communicator::Message> sends;
  std::vector<Communicator::Message> receives;
  for (const auto& neighbour : plan.neighbours) {
    Classes& mine = asks.emplace_back();
    for (const Record r : neighbour.receives) {
      const std::size_t ghost = cuts.place(r);
      mine.push_back(stale[ghost] & needed[ghost]);
      stale[ghost] &= ~needed[ghost];
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

void Sweep::keep(const Cuts& cuts, const Classes& stale) {
  auto& words = stale_.emplace_back();
  for (const auto& neighbour : cuts.plan.neighbours) {
    for (const Record r : neighbour.receives) words.push_back(stale[cuts.place(r)]);
  }
}

}  // namespace solenoid::distributed
