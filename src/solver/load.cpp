#include "solver/load.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/parallel.hpp"
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

/// What integrate(integrals, cells, records, upper) makes of the blocks whose faces have boundary data.
template <class Integrate>
SparseVector near_boundary(const Problem& problem, const Level& level, int points, const Integrate& integrate) {
  using Entry = std::pair<std::int64_t, double>;
  const Grid& grid = level.grid;
  const int block = power(level.equation.n(), level.equation.dim);
  const int columns = power(level.equation.n(), level.equation.dim - 1);
  const int velocities = level.equation.velocities();
  const int record = level.equation.record();
  std::vector<std::vector<Entry>> of_blocks(whole_blocks(grid.layout().near_cells().size()) / interleave);
  for_blocks(problem, level, points, [&](StripIntegrals& integrals, CellRange cells) {
    if (!integrals.has_boundary_data(cells)) return;
    std::vector<double> records(std::size_t{interleave} * record);
    std::vector<double> upper(std::size_t{interleave} * velocities * columns);
    integrate(integrals, cells, records.data(), upper.data());
    std::vector<Entry>& entries = of_blocks[cells.begin / interleave];
    const auto enter = [&](Record r, int i, double value) {
      const bool hat = i < velocities * block && i % block < columns;
      if (value == 0.0 || (hat && normal_fixed(face_of_hats(grid, r, i / block)))) return;
      entries.emplace_back(level.index(r, i), value);
    };
    for (auto cell = static_cast<Record>(cells.begin); cell < cells.end; ++cell) {
      const Record lane = cell % interleave;
      for (int i = 0; i < record; ++i) enter(cell, i, records[i * interleave + lane]);
      for (int c = 0; c < velocities; ++c) {
        const Record above = grid.neighbour(cell, 2 * c + 1);
        if (above == grid.layout().null()) continue;
        for (int i = 0; i < columns; ++i) enter(above, c * block + i, upper[(c * columns + i) * interleave + lane]);
      }
    }
  });
  std::vector<Entry> entries;
  for (const auto& some : of_blocks) entries.insert(entries.end(), some.begin(), some.end());
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.first < b.first; });
  SparseVector load;
  for (const auto& [place, value] : entries) {
    if (!load.places.empty() && load.places.back() == place) {
      load.values.back() += value;
    } else {
      load.add(place, value);
    }
  }
  return load;
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
