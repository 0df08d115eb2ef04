#include "solver/lift.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <memory>
#include <string>

#include "base/parallel.hpp"
#include "problem/validate.hpp"
#include "solver/strip_integrals.hpp"

namespace solenoid {
namespace {

/// visit(place) for the hats of a record in direction c.
template <class Visit>
void for_hats(const Level& level, Record r, int c, const Visit& visit) {
  const int columns = power(level.equation.n(), level.equation.dim - 1);
  const int first = c * power(level.equation.n(), level.equation.dim);
  for (int i = 0; i < columns; ++i) visit(level.index(r, first + i));
}

/// Through the sides of a cell, or of a part of the domain: out of it, and the sum of sizes.
struct Flux {
  double net = 0.0;
  double total = 0.0;
};
struct CellFlux {
  Record cell;
  Flux flux;
};
/// Of the parts without an outflow side, where what flows in must flow out; others have none. \throws InvalidEntry if
/// it does not.
std::vector<Flux> fluxes_of_parts(const Grid& grid, const std::vector<std::vector<CellFlux>>& of_blocks) {
  std::vector<Flux> fluxes(grid.parts());
  for (const auto& block : of_blocks) {
    for (const auto& [cell, flux] : block) {
      if (!grid.layout().owned_cells().contains(cell)) continue;
      fluxes[grid.part(cell)].net += flux.net;
      fluxes[grid.part(cell)].total += flux.total;
    }
  }
  std::vector<double> sums;
  for (const auto& [net, total] : fluxes) sums.insert(sums.end(), {net, total});
  grid.add_up<double>(sums);
  for (std::size_t part = 0; part < fluxes.size(); ++part) fluxes[part] = {sums[2 * part], sums[2 * part + 1]};
  constexpr double tolerance = 1e-6;
  for (int part = 0; part < grid.parts(); ++part) {
    auto& [net, total] = fluxes[part];
    if (grid.has_face(part, Face::outflow)) net = 0.0;
    if (std::abs(net) <= tolerance * total) continue;
    std::string where = grid.parts() == 1 ? "the domain" : fmt::format("part {} of the domain", part + 1);
    const RecordRange cells = grid.layout().cells();
    Record first = 0;
    while (grid.parts() > 1 && first < cells.last() && grid.part(first) != part) ++first;
    if (grid.parts() > 1 && first < cells.last()) {
      Point centre = grid.corner(first);
      for (int a = 0; a < 3; ++a) centre[a] += 0.5 * grid.widths(first)[a];
      if (grid.metric().map() != nullptr) centre = grid.metric().map()->at(centre);
      where = fmt::format("the part of the domain around [{:.6g}]",
                          fmt::join(centre.begin(), centre.begin() + grid.dim(), ", "));
    }
    throw InvalidEntry("boundary",
                       fmt::format("the prescribed velocities do not balance: the net flux out of {} is {:.6e}, of "
                                   "{:.6e} through all sides. Without an outflow side it must be zero: correct the "
                                   "velocities, make one side outflow, or refine the mesh if it is too coarse for them",
                                   where, net, total));
  }
  return fluxes;
}

}  // namespace

SparseVector boundary_lift(const Problem& problem, const Level& lift) {
  const Grid& grid = lift.grid;
  const int dim = lift.equation.dim;
  const int block = power(lift.equation.n(), dim);
  struct LiftedFace {
    Record cell;
    bool upper;
    std::size_t first;  // of its coefficients, mode 0
  };
  struct OfBlock {
    SparseVector hats;
    std::vector<LiftedFace> faces;
  };
  const std::int64_t blocks = whole_blocks(grid.layout().near_cells().size()) / interleave;
  std::vector<std::unique_ptr<OfBlock>> of_blocks(blocks);
  std::vector<std::vector<CellFlux>> fluxes_of_blocks(blocks);
  // More points than for loads: what the fluxes of smooth data lack of balance is an error of this rule.
  const int points = lift.equation.n() + 5;
  for_blocks(problem, lift, points, [&](StripIntegrals& integrals, CellRange cells) {
    std::array<Flux, interleave> fluxes;
    auto& mine = of_blocks[cells.begin / interleave];
    integrals.for_normal_coefficients(cells, [&](Record cell, int side, const std::vector<double>& coefficients) {
      if (mine == nullptr) mine = std::make_unique<OfBlock>();
      const int a = side / 2;
      const Record owner = side % 2 == 0 ? cell : grid.neighbour(cell, side);
      mine->faces.push_back({cell, side % 2 == 1, mine->hats.places.size()});
      for (std::size_t i = 0; i < coefficients.size(); ++i) {
        mine->hats.add(lift.index(owner, a * block + static_cast<int>(i)), coefficients[i]);
      }
      // Mode 0 carries the flux: coefficient / sqrt(h_a) * sqrt(area).
      const Point widths = grid.widths(cell);
      double area = 1.0;
      for (int t = 0; t < dim; ++t) area *= t == a ? 1.0 : widths[t];
      const double outward = (side % 2 == 0 ? -1.0 : 1.0) * coefficients[0] * std::sqrt(area / widths[a]);
      Flux& flux = fluxes[cell - cells.begin];
      flux.net += outward;
      flux.total += std::abs(outward);
    });
    for (auto cell = static_cast<Record>(cells.begin); cell < cells.end; ++cell) {
      const Flux& flux = fluxes[cell - cells.begin];
      if (flux.total != 0.0) fluxes_of_blocks[cells.begin / interleave].push_back({cell, flux});
    }
  });
  const std::vector<Flux> fluxes = fluxes_of_parts(grid, fluxes_of_blocks);
  SparseVector hats;
  for (const auto& mine : of_blocks) {
    if (mine == nullptr) continue;
    // What is left is taken off in proportion, so that there is a velocity whose divergence is zero to rounding.
    for (const auto& [cell, upper, first] : mine->faces) {
      const auto& [net, total] = fluxes[grid.part(cell)];
      if (net == 0.0) continue;
      double& mode = mine->hats.values[first];
      const bool outward = (mode > 0.0) == upper;
      mode *= 1.0 - (outward ? net : -net) / total;
    }
    hats.places.insert(hats.places.end(), mine->hats.places.begin(), mine->hats.places.end());
    hats.values.insert(hats.values.end(), mine->hats.values.begin(), mine->hats.values.end());
  }
  return hats;
}

SharedHats shared_hats(const Level& all, const Level& some) {
  SharedHats hats;
  if (some.equation.velocities() == 0) return hats;
  for (const Record r : some.grid.layout().owned_hats()) {
    const int c = some.grid.hat_direction(r);
    const Record same = all.grid.neighbour(some.grid.neighbour(r, 2 * c), 2 * c + 1);
    for_hats(all, same, c, [&](std::int64_t place) { hats.all.push_back(place); });
    for_hats(some, r, c, [&](std::int64_t place) { hats.some.push_back(place); });
  }
  return hats;
}

std::vector<std::int64_t> boundary_hats(const Level& all) {
  const Grid& grid = all.grid;
  const Ranges cells{grid.layout().owned_cells().size(), 1 << 14};
  std::vector<std::vector<std::int64_t>> of_cells(cells.number());
  parallel_ranges(cells, [&](CellRange range, std::int64_t number) {
    for (auto cell = static_cast<Record>(range.begin); cell < range.end; ++cell) {
      for (int c = 0; c < all.equation.velocities(); ++c) {
        if (!normal_fixed(grid.face(cell, 2 * c))) continue;
        for_hats(all, cell, c, [&](std::int64_t place) { of_cells[number].push_back(place); });
      }
    }
  });
  std::vector<std::int64_t> places;
  for (const auto& some : of_cells) places.insert(places.end(), some.begin(), some.end());
  const std::vector<std::int64_t> others = hat_only(all);
  places.insert(places.end(), others.begin(), others.end());
  return places;
}

std::vector<std::int64_t> hat_only(const Level& level) {
  std::vector<std::int64_t> places;
  if (level.equation.velocities() == 0) return places;
  for (const Record r : level.grid.layout().hats()) {
    for_hats(level, r, level.grid.hat_direction(r), [&](std::int64_t place) { places.push_back(place); });
  }
  return places;
}

}  // namespace solenoid
