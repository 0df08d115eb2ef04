#include "solver/load.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/parallel.hpp"
#include "base/parallel_sort.hpp"
#include "element/convection_points.hpp"
#include "level/upper_hats.hpp"
#include "mesh/places.hpp"
#include "problem/regions.hpp"
#include "solver/strip_integrals.hpp"

namespace solenoid {
namespace {

/// Where the values of a record are (mesh/places.hpp): the same on all ranks.
std::array<std::int32_t, 3> place_of(const Grid& grid, Record r) {
  if (grid.layout().is_cell(r)) return grid.position(r);
  const int direction = grid.hat_direction(r);
  std::array<std::int32_t, 3> place = grid.position(grid.neighbour(r, 2 * direction));
  ++place[direction];
  return place;
}

/// Every bit depends on all bits: of consecutive multiples of `golden` these are random numbers, SplitMix64.
constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;
constexpr std::uint64_t mixed(std::uint64_t bits) {
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
  return bits ^ bits >> 31;
}

using Entry = std::pair<std::int64_t, double>;

/// Entries of a block of records: those of its own, by place, and of hats above it in other blocks.
struct BlockEntries {
  std::vector<Entry> own;
  std::vector<Entry> above;
};

/// Their sum. The own places of all blocks, one after the other, ascend: few entries are left to be sorted.
SparseVector sum_of(const std::vector<BlockEntries>& blocks) {
  std::size_t count = 0;
  std::vector<Entry> above;
  for (const BlockEntries& block : blocks) {
    count += block.own.size() + block.above.size();
    above.insert(above.end(), block.above.begin(), block.above.end());
  }
  parallel_sort(above);
  SparseVector sum;
  sum.places.reserve(count);
  sum.values.reserve(count);
  const auto add = [&](const Entry& entry) {
    if (!sum.places.empty() && sum.places.back() == entry.first) {
      sum.values.back() += entry.second;
    } else {
      sum.add(entry.first, entry.second);
    }
  };
  auto next = above.begin();
  for (const BlockEntries& block : blocks) {
    for (const Entry& entry : block.own) {
      while (next != above.end() && next->first < entry.first) add(*next++);
      add(entry);
    }
  }
  std::for_each(next, above.end(), add);
  return sum;
}

/// What integrate(integrals, cells, records, upper) makes of the blocks whose faces have boundary data.
template <class Integrate>
SparseVector near_boundary(const Problem& problem, const Level& level, int points, const Integrate& integrate) {
  const Grid& grid = level.grid;
  const int block = power(level.equation.n(), level.equation.dim);
  const int columns = power(level.equation.n(), level.equation.dim - 1);
  const int velocities = level.equation.velocities();
  const int record = level.equation.record();
  std::vector<BlockEntries> of_blocks(whole_blocks(grid.layout().near_cells().size()) / interleave);
  for_blocks(problem, level, points, [&](StripIntegrals& integrals, CellRange cells) {
    if (!integrals.has_boundary_data(cells)) return;
    std::vector<double> records(std::size_t{interleave} * record);
    std::vector<double> upper(std::size_t{interleave} * velocities * columns);
    integrate(integrals, cells, records.data(), upper.data());
    const auto enter = [&](Record r, int i, double value, std::vector<Entry>& entries) {
      const bool hat = i < velocities * block && i % block < columns;
      if (value == 0.0 || (hat && normal_fixed(face_of_hats(grid, r, i / block)))) return;
      entries.emplace_back(level.index(r, i), value);
    };
    auto& [own, above] = of_blocks[cells.begin / interleave];
    for (auto cell = static_cast<Record>(cells.begin); cell < cells.end; ++cell) {
      for (int c = 0; c < velocities; ++c) {
        const Record r = grid.neighbour(cell, 2 * c + 1);
        if (r == grid.layout().null()) continue;
        const bool here = cells.begin <= r && r < cells.end;
        for (int i = 0; i < columns; ++i) {
          const double value = upper[(c * columns + i) * interleave + cell % interleave];
          if (here) {
            records[(c * block + i) * interleave + r % interleave] += value;
          } else {
            enter(r, c * block + i, value, above);
          }
        }
      }
    }
    for (int i = 0; i < record; ++i) {
      for (auto cell = static_cast<Record>(cells.begin); cell < cells.end; ++cell) {
        enter(cell, i, records[i * interleave + cell % interleave], own);
      }
    }
  });
  return sum_of(of_blocks);
}

}  // namespace

HostVector assemble_load(const Problem& problem, const Level& level, int more) {
  const Grid& grid = level.grid;
  const int dim = level.equation.dim;
  const int columns = power(level.equation.n(), dim - 1);
  const int velocities = level.equation.velocities();
  HostVector load = zeros(level.size());
  // Shares of upper hats, kept apart so that every record has one writer.
  HostVector upper = zeros(whole_blocks(grid.layout().near_cells().size()) * velocities * columns);
  for_blocks(problem, level, level.equation.n() + 1 + more, [&](StripIntegrals& integrals, CellRange cells) {
    integrals.of_block(cells, &load[level.index(cells.begin, 0)],
                       upper.data() + record_offset(cells.begin, velocities * columns));
  });
  if (velocities == 0) return load;
  parallel_ranges({grid.layout().records().size()}, [&](CellRange records, std::int64_t) {
    add_upper_hats(level, {static_cast<Record>(records.begin), static_cast<Record>(records.end)}, upper.data(),
                   load.data());
  });
  return load;
}

SparseVector assemble_boundary_load(const Problem& problem, const Level& level) {
  Problem boundary = problem;
  set_force(boundary, {});
  return near_boundary(boundary, level, level.equation.n() + 1,
                       [](StripIntegrals& integrals, CellRange cells, double* records, double* upper) {
                         integrals.of_block(cells, records, upper);
                       });
}

SparseVector assemble_inflow(const Problem& problem, const Level& level) {
  if (!has_boundary_velocity(problem)) return {};
  return near_boundary(problem, level, convection_points(level.equation.order),
                       [](StripIntegrals& integrals, CellRange cells, double* records, double* upper) {
                         integrals.inflow_of_block(cells, records, upper);
                       });
}

bool has_boundary_values(const Problem& problem) {
  const std::vector<Side> all = conditions(problem);
  return std::any_of(all.begin(), all.end(),
                     [](const Side& side) { return side.kind == SideKind::velocity && !is_zero(side.data); });
}

bool has_boundary_data(const Problem& problem) {
  const std::vector<Side> all = conditions(problem);
  return std::any_of(all.begin(), all.end(), [](const Side& side) { return !is_zero(side.data); });
}

bool has_boundary_velocity(const Problem& problem) {
  return problem.equation == EquationKind::stokes && has_boundary_values(problem);
}

HostVector random_vector(const Level& level, std::uint64_t seed) {
  const Grid& grid = level.grid;
  const auto count = places(grid, level.equation.kind);
  const std::uint64_t start = mixed(seed);
  HostVector values = zeros(level.size());
  parallel_ranges({grid.layout().records().size()}, [&](CellRange records, std::int64_t) {
    for (auto r = static_cast<Record>(records.begin); r < records.end; ++r) {
      if (!grid.layout().is_owned(r)) continue;
      const auto [x, y, z] = place_of(grid, r);
      const std::int64_t first = (x + count[0] * (y + count[1] * z)) * level.equation.record();
      level.for_each_unknown_of(r, [&](int i) {
        const std::uint64_t bits = mixed(start + golden * static_cast<std::uint64_t>(first + i));
        values[level.index(r, i)] = std::ldexp(static_cast<double>(bits >> 11), -52) - 1.0;
      });
    }
  });
  return values;
}

}  // namespace solenoid
