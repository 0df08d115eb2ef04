#pragma once
/// \file
/// What ranks found on their parts of a domain, joined: the same on all of them. Collective.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/agreement.hpp"
#include "base/parallel.hpp"
#include "base/statistics.hpp"
#include "mesh/grid.hpp"
#include "solenoid/integrals.hpp"

namespace solenoid {

/// \throws InputError if a grid has the cells of one of several ranks only; `what` needs all.
void require_whole(const Grid& grid, const std::string& what);

FlowIntegrals joined(const FlowIntegrals& mine, const Communicator& ranks);
void join(std::span<Variance> variances, const Communicator& ranks);

/// reduce_cells() of the owned cells, not joined yet. If one rank throws, all do.
template <class Partial, class MakeWorker>
Partial reduce_owned_cells(const Grid& grid, const MakeWorker& make_worker) {
  Partial mine;
  in_agreement(grid.communicator(),
               [&] { mine = reduce_cells<Partial>(grid.layout().owned_cells().size(), make_worker); });
  return mine;
}

/// Of a cell, x fastest.
inline std::int64_t lattice_place(const Grid& grid, Record cell) {
  const auto& [x, y, z] = grid.position(cell);
  return x + grid.extent()[0] * (y + std::int64_t{grid.extent()[1]} * z);
}
/// Numbers of the cells of a grid, of all ranks, at their places in the lattice, x fastest; 0 where there is no cell.
std::vector<double> on_lattice(const Grid& grid, std::span<const double> of_cells);

/// On a grid that may have a partition.
inline FlowIntegrals joined(const FlowIntegrals& mine, const Grid& grid) {
  return grid.partition() == nullptr ? mine : joined(mine, grid.partition()->communicator());
}
inline void join(std::span<Variance> variances, const Grid& grid) {
  if (grid.partition() != nullptr) join(variances, grid.partition()->communicator());
}
inline double added_up(double mine, const Grid& grid) {
  grid.add_up(std::span(&mine, 1));
  return mine;
}

}  // namespace solenoid
