#include "solution/joined.hpp"

#include <array>
#include <cmath>
#include <vector>

#include "solenoid/error.hpp"

namespace solenoid {

void require_whole(const Grid& grid, const std::string& what) {
  if (grid.partition() == nullptr) return;
  throw InputError(what + ": the solution is the part of one of several ranks: take the one that gathered() returns");
}

std::vector<double> on_lattice(const Grid& grid, std::span<const double> of_cells) {
  const auto& [nx, ny, nz] = grid.extent();
  std::vector<double> values(std::size_t{1} * nx * ny * nz, 0.0);
  for (const Record cell : grid.layout().owned_cells()) values[lattice_place(grid, cell)] = of_cells[cell];
  grid.add_up<double>(values);
  return values;
}

FlowIntegrals joined(const FlowIntegrals& mine, const Communicator& ranks) {
  FlowIntegrals all = mine;
  std::array sums{mine.velocity[0],     mine.velocity[1],     mine.velocity[2],
                  mine.velocity_square, mine.gradient_square, mine.vorticity_square};
  ranks.sum(sums);
  all.velocity = {sums[0], sums[1], sums[2]};
  all.velocity_square = sums[3];
  all.gradient_square = sums[4];
  all.vorticity_square = sums[5];
  // The maximum of numbers among which one is none is not defined.
  std::array largest{mine.max_speed, mine.max_divergence};
  std::array broken{std::isnan(mine.max_speed) ? 1.0 : 0.0, std::isnan(mine.max_divergence) ? 1.0 : 0.0};
  for (std::size_t i = 0; i < largest.size(); ++i) largest[i] = broken[i] > 0.0 ? 0.0 : largest[i];
  ranks.maximum(largest);
  ranks.maximum(broken);
  for (std::size_t i = 0; i < largest.size(); ++i) largest[i] = broken[i] > 0.0 ? std::nan("") : largest[i];
  all.max_speed = largest[0];
  all.max_divergence = largest[1];
  return all;
}

/// By two sums: means first, then squares about them.
void join(std::span<Variance> variances, const Communicator& ranks) {
  std::vector<double> sums;
  for (const Variance& of : variances) sums.insert(sums.end(), {of.measure, of.measure * of.mean});
  ranks.sum(sums);
  std::vector<double> squares;
  for (std::size_t i = 0; i < variances.size(); ++i) {
    Variance& of = variances[i];
    const double mean = sums[2 * i] == 0.0 ? 0.0 : sums[2 * i + 1] / sums[2 * i];
    squares.push_back(of.square + of.measure * (of.mean - mean) * (of.mean - mean));
    of.measure = sums[2 * i];
    of.mean = mean;
  }
  ranks.sum(squares);
  for (std::size_t i = 0; i < variances.size(); ++i) variances[i].square = squares[i];
}

}  // namespace solenoid
