#include "engine/cpu/point_viscosity.hpp"

#include "engine/tables.hpp"
#include "level/upper_hats.hpp"
#include "mesh/record.hpp"

namespace solenoid::cpu {
namespace {

auto kernel_of(const Level& level) {
  const PointsTable& table = points_table(level.equation.dim, level.equation.order);
  return level.is_sheared() ? table.add_viscosity_sheared : table.add_viscosity;
}

}  // namespace

PointViscosityTerm::PointViscosityTerm(Team& team, const Level& level)
    : team_(team),
      level_(level),
      kernel_(kernel_of(level)),
      tables_(make_viscosity_tables(level)),
      upper_(zeros(whole_blocks(level.grid.layout().near_cells().size()) * level.equation.dim *
                   power(level.equation.n(), level.equation.dim - 1))) {}

std::shared_ptr<const HostPointWeights> PointViscosityTerm::weights(
    const std::shared_ptr<const HostPointWeights>& now) const {
  return weights_of(level_, now, [](Unset<float> weights) { return weights; });
}

void PointViscosityTerm::add(const HostPointWeights& weights, double sign, const double* x, double* y) {
  const VectorLayout& layout = level_.grid.layout();
  team_.run([&](int t) {
    Team::in_pieces(team_.range(layout.near_cells().size(), t, interleave), 64 * interleave, [&](Team::Range piece) {
      kernel_({&tables_, level_.equation.form == ViscousForm::stress, weights.weights.data(), topology_of(level_.grid),
               static_cast<Record>(piece.begin), static_cast<Record>(piece.end), sign, x, y, upper_.data()});
    });
  });
  team_.run([&](int t) {
    const auto range = team_.range(layout.records().size(), t);
    add_upper_hats(level_, {static_cast<Record>(range.begin), static_cast<Record>(range.end)}, upper_.data(), y);
  });
}

}  // namespace solenoid::cpu
