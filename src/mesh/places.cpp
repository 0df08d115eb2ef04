#include "mesh/places.hpp"

#include "base/parallel.hpp"

namespace solenoid {
namespace {

/// Number of those that for_each_unknown_of visits.
int unknowns_of(const Grid& grid, int order, EquationKind equation, Record r) {
  const int dim = grid.dim();
  const int columns = power(order + 1, dim - 1);
  if (!grid.layout().is_cell(r)) return normal_fixed(grid.hat_face(r)) ? 0 : columns;
  int unknowns = record_size(dim, order, equation);
  for (int c = 0; c < velocity_components(equation, dim); ++c) {
    if (normal_fixed(grid.face(r, 2 * c))) unknowns -= columns;
  }
  return unknowns;
}

}  // namespace

std::array<std::int64_t, 3> places(const Grid& grid, EquationKind equation) {
  std::array<std::int64_t, 3> count{1, 1, 1};
  for (int a = 0; a < grid.dim(); ++a) count[a] = places(grid.extent()[a], grid.periodic()[a], equation);
  return count;
}

UnknownsByPlace::UnknownsByPlace(const Grid& grid, int order, EquationKind equation)
    : grid_(grid), order_(order), equation_(equation) {
  // Those that this rank owns lie in its box or, hats on upper sides, behind it.
  const LatticeBox box = grid.owned_box();
  std::array<std::int64_t, 3> count{1, 1, 1};
  for (int a = 0; a < grid.dim(); ++a) {
    count[a] = places(box.extent(a), grid.periodic()[a] && box.extent(a) == grid.extent()[a], equation);
  }
  const Ranges rows{count[1] * count[2], 64};
  /// visit(row, record, number of its unknowns) for rows along x, in the order of their places.
  const auto for_rows = [&](const auto& visit) {
    parallel_ranges(rows, [&](CellRange range, std::int64_t) {
      for (auto row = range.begin; row < range.end; ++row) {
        for (int x = 0; x < count[0]; ++x) {
          const std::array<int, 3> place{box.lower[0] + x, box.lower[1] + static_cast<int>(row % count[1]),
                                         box.lower[2] + static_cast<int>(row / count[1])};
          for_each_record_at(grid, order, equation, place, [&](Record r, int, int) {
            const int unknowns = grid.layout().is_owned(r) ? unknowns_of(grid, order, equation, r) : 0;
            if (unknowns > 0) visit(row, r, unknowns);
          });
        }
      }
    });
  };
  struct Count {
    std::int64_t records = 0;
    std::int64_t unknowns = 0;
  };
  std::vector<Count> next(rows.count + 1);  // those before a row, and of all rows
  for_rows([&](std::int64_t row, Record, int unknowns) {
    ++next[row + 1].records;
    next[row + 1].unknowns += unknowns;
  });
  for (std::int64_t row = 0; row < rows.count; ++row) {
    next[row + 1].records += next[row].records;
    next[row + 1].unknowns += next[row].unknowns;
  }
  records_.resize(next.back().records);
  first_.resize(next.back().records + 1);
  first_.back() = next.back().unknowns;
  for_rows([&](std::int64_t row, Record r, int unknowns) {
    records_[next[row].records] = r;
    first_[next[row].records++] = next[row].unknowns;
    next[row].unknowns += unknowns;
  });
}

template <class Move>
void UnknownsByPlace::for_each(Move move, int threads) const {
  const int record = record_size(grid_.dim(), order_, equation_);
  parallel_ranges(
      {std::ssize(records_), 1 << 12},
      [&](CellRange range, std::int64_t) {
        for (auto k = range.begin; k < range.end; ++k) {
          const std::int64_t at = record_offset(records_[k], record);
          std::int64_t number = first_[k];
          if (first_[k + 1] - number == record) {
            for (int i = 0; i < record; ++i) move(at + std::int64_t{interleave} * i, number + i);
          } else {
            for_each_unknown_of(grid_, order_, equation_, records_[k],
                                [&](int i) { move(at + std::int64_t{interleave} * i, number++); });
          }
        }
      },
      threads);
}

void UnknownsByPlace::pack(const double* x, double* values, int threads) const {
  for_each([=](std::int64_t at, std::int64_t number) { values[number] = x[at]; }, threads);
}

void UnknownsByPlace::unpack(const double* values, double* x, int threads) const {
  for_each([=](std::int64_t at, std::int64_t number) { x[at] = values[number]; }, threads);
}

std::vector<std::int64_t> UnknownsByPlace::index() const {
  std::vector<std::int64_t> index(size());
  for_each([&](std::int64_t at, std::int64_t number) { index[number] = at; });
  return index;
}

}  // namespace solenoid
