#pragma once
/// \file
/// The values of a grid by where they are in space, however its records are numbered: the order of vectors that leave
/// the library, and of solution files.
///
/// A place is a position of the lattice; with a velocity there is one more place in each direction that does not wrap,
/// since the hats on upper sides lie there. Places are counted in x first, then y, then z. At a place with a cell are
/// the values of the cell's record, in its order (mesh/record.hpp). At any other, beyond an upper side or in a hole,
/// are the hats on the lower faces of that place that have a cell below, where they have in a record.

#include <array>
#include <cstdint>
#include <vector>

#include "base/threads.hpp"
#include "base/unset.hpp"
#include "mesh/grid.hpp"
#include "mesh/record.hpp"

namespace solenoid {

/// visit(i) for the unknowns among the values i of a record: all values of cells and hats on outflow sides, but not the
/// normal unknowns that are prescribed, and the unused values of hat-only records.
template <class Visit>
void for_each_unknown_of(const Grid& grid, int order, EquationKind equation, Record r, Visit visit) {
  const int dim = grid.dim();
  const int block = power(order + 1, dim);
  const int columns = power(order + 1, dim - 1);
  const bool cell = grid.layout().is_cell(r);
  for (int i = 0; i < record_size(dim, order, equation); ++i) {
    const int c = i / block;
    const bool hat = c < velocity_components(equation, dim) && i % block < columns;
    const bool unknown = cell ? !(hat && normal_fixed(grid.face(r, 2 * c)))
                              : hat && c == grid.hat_direction(r) && !normal_fixed(grid.hat_face(r));
    if (unknown) visit(i);
  }
}

/// How many places there are in a direction of so many cells, which wraps or not; per direction of a grid.
constexpr std::int64_t places(std::int64_t cells, bool wraps, EquationKind equation) {
  return cells + (equation == EquationKind::stokes && !wraps ? 1 : 0);
}
std::array<std::int64_t, 3> places(const Grid& grid, EquationKind equation);

/// visit(record, first, count) for the records that values of a place lie in: values first to first + count - 1 of the
/// place are those of the record. Other values of a place are zero.
template <class Visit>
void for_each_record_at(const Grid& grid, int order, EquationKind equation, const std::array<int, 3>& place,
                        Visit visit) {
  const int dim = grid.dim();
  if (const Record cell = grid.at(place); cell >= 0) return visit(cell, 0, record_size(dim, order, equation));
  for (int c = 0; c < velocity_components(equation, dim); ++c) {
    std::array<int, 3> below = place;
    --below[c];
    const Record cell = grid.at(below);
    if (cell < 0) continue;
    const Record hats = grid.neighbour(cell, 2 * c + 1);
    if (grid.layout().is_hat(hats)) visit(hats, c * power(order + 1, dim), power(order + 1, dim - 1));
  }
}

/// The unknowns of a grid, of several ranks those that this one owns, one after the other in the order of their places.
/// The grid must outlive it.
class UnknownsByPlace {
 public:
  UnknownsByPlace(const Grid& grid, int order, EquationKind equation);

  [[nodiscard]] std::int64_t size() const { return first_.back(); }
  /// values[i] = x[index()[i]] for all unknowns, and back, in memory of the host: all of a vector of the grid is read,
  /// or written but for what is no unknown.
  void pack(const double* x, double* values, int threads = cores()) const;
  void unpack(const double* values, double* x, int threads = cores()) const;
  /// Where they lie in a vector.
  [[nodiscard]] std::vector<std::int64_t> index() const;

 private:
  /// move(place in the vector, number of the unknown) for all unknowns, from several threads.
  template <class Move>
  void for_each(Move move, int threads = cores()) const;

  const Grid& grid_;
  int order_;
  EquationKind equation_;
  Unset<Record> records_;      // that have unknowns, in the order of their places
  Unset<std::int64_t> first_;  // number of the first unknown of each, and of all of them
};

}  // namespace solenoid
