#include "mesh/shared_records.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace solenoid {
namespace {

using Position = std::array<int, 3>;

/// Places of `owner` that lie in the layers around `reader`, sorted.
std::vector<Position> ghosts_of(const Grid& grid, const LatticeBox& owner, const LatticeBox& reader) {
  std::array<std::vector<int>, 3> along;
  for (int a = 0; a < 3; ++a) {
    const int extent = grid.extent()[a];
    const int beyond = a < grid.dim() ? grid.ghost_layers() : 0;
    for (int i = owner.lower[a]; i < owner.upper[a]; ++i) {
      for (const int image : {i, i - extent, i + extent}) {
        if (image != i && !grid.periodic()[a]) continue;
        if (image < reader.lower[a] - beyond || image >= reader.upper[a] + beyond) continue;
        along[a].push_back(i);
        break;
      }
    }
  }
  std::vector<Position> places;
  for (const int z : along[2]) {
    for (const int y : along[1]) {
      for (const int x : along[0]) places.push_back({x, y, z});
    }
  }
  return places;
}

/// The cells at these places, then the hat-only records above them.
std::vector<Record> records_at(const Grid& grid, const std::vector<Position>& places) {
  std::vector<Record> records;
  std::vector<Record> hats;
  for (const Position& place : places) {
    const Record cell = grid.at(place);
    if (cell < 0) continue;
    records.push_back(cell);
    for (int a = 0; a < grid.dim(); ++a) {
      const Record above = grid.neighbour(cell, 2 * a + 1);
      if (grid.layout().is_hat(above)) hats.push_back(above);
    }
  }
  records.insert(records.end(), hats.begin(), hats.end());
  return records;
}

std::vector<Position> places_in(const LatticeBox& box) {
  std::vector<Position> places;
  for (int z = box.lower[2]; z < box.upper[2]; ++z) {
    for (int y = box.lower[1]; y < box.upper[1]; ++y) {
      for (int x = box.lower[0]; x < box.upper[0]; ++x) places.push_back({x, y, z});
    }
  }
  return places;
}

}  // namespace

bool near_ghosts(const Grid& grid, const LatticeBox& mine, const std::array<std::int32_t, 3>& first, int size,
                 int reach) {
  for (int a = 0; a < grid.dim(); ++a) {
    if (mine.extent(a) == grid.extent()[a]) continue;  // there are none
    const bool round = grid.periodic()[a];
    if ((round || mine.lower[a] > 0) && first[a] - reach < mine.lower[a]) return true;
    if ((round || mine.upper[a] < grid.extent()[a]) && first[a] + size - 1 + reach >= mine.upper[a]) return true;
  }
  return false;
}

std::vector<Record> records_in(const Grid& grid, const LatticeBox& box) { return records_at(grid, places_in(box)); }

ExchangePlan::ExchangePlan(const Grid& grid) {
  const Partition& partition = *grid.partition();
  const Communicator& ranks = partition.communicator();
  const LatticeBox mine = grid.owned_box();
  for (int rank = 0; rank < ranks.size(); ++rank) {
    if (rank == ranks.rank()) continue;
    const LatticeBox other = partition.box(rank, grid.extent());
    Neighbour neighbour{rank, records_at(grid, ghosts_of(grid, mine, other)),
                        records_at(grid, ghosts_of(grid, other, mine))};
    if (!neighbour.sends.empty() || !neighbour.receives.empty()) neighbours.push_back(std::move(neighbour));
  }
}

GatherPlan::GatherPlan(const Grid& distributed, const Grid& whole) {
  const Partition& partition = *distributed.partition();
  const Communicator& ranks = partition.communicator();
  mine = records_in(distributed, distributed.owned_box());
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const auto records = records_in(whole, partition.box(rank, whole.extent()));
    counts.push_back(records.size());
    all.insert(all.end(), records.begin(), records.end());
  }
  std::vector<Position> places;
  for (const Record cell : distributed.layout().cells()) {
    const auto& [x, y, z] = distributed.position(cell);
    places.push_back({x, y, z});
  }
  known = records_at(distributed, places);
  same = records_at(whole, places);
}

}  // namespace solenoid
