#include "mesh/places.hpp"

#include <numeric>

#include "base/parallel.hpp"

namespace solenoid {

std::array<std::int64_t, 3> places(const Grid& grid, EquationKind equation) {
  std::array<std::int64_t, 3> count{1, 1, 1};
  for (int a = 0; a < grid.dim(); ++a) count[a] = places(grid.extent()[a], grid.periodic()[a], equation);
  return count;
}

std::vector<std::int64_t> unknowns_by_place(const Grid& grid, int order, EquationKind equation) {
  const auto count = places(grid, equation);
  const int record = record_size(grid.dim(), order, equation);
  const Ranges rows{count[1] * count[2], 64};
  /// visit(row, place in the vector) for the unknowns of rows along x, in their order.
  const auto for_rows = [&](const auto& visit) {
    parallel_ranges(rows, [&](CellRange range, std::int64_t) {
      for (auto row = range.begin; row < range.end; ++row) {
        for (int x = 0; x < count[0]; ++x) {
          const std::array<int, 3> place{x, static_cast<int>(row % count[1]), static_cast<int>(row / count[1])};
          for_each_record_at(grid, order, equation, place, [&](Record r, int, int) {
            for_each_unknown_of(grid, order, equation, r,
                                [&](int i) { visit(row, record_offset(r, record) + std::int64_t{interleave} * i); });
          });
        }
      }
    });
  };
  std::vector<std::int64_t> next(rows.count + 1, 0);  // number of the first unknown of a row
  for_rows([&](std::int64_t row, std::int64_t) { ++next[row + 1]; });
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<std::int64_t> index(next.back());
  for_rows([&](std::int64_t row, std::int64_t at) { index[next[row]++] = at; });
  return index;
}

}  // namespace solenoid
