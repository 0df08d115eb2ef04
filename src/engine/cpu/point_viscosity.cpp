#include "engine/cpu/point_viscosity.hpp"

#include "engine/point_tables.hpp"
#include "engine/point_weights.hpp"
#include "engine/tables.hpp"
#include "level/upper_hats.hpp"
#include "mesh/record.hpp"

namespace solenoid::cpu {

PointViscosityTerm::PointViscosityTerm(Team& team, const Level& level)
    : team_(team),
      level_(level),
      kernel_(points_table(level.equation.dim, level.equation.order).add_viscosity),
      data_{make_point_tables(level.equation.order, viscosity_points(level.equation.order)),
            level.equation.penalty(1.0),
            {},
            level.equation.form == ViscousForm::stress,
            nullptr},
      upper_(zeros(whole_blocks(level.grid.layout().near_cells().size()) * level.equation.dim *
                   power(level.equation.n(), level.equation.dim - 1))) {
  for (int a = 0; a < level.equation.dim; ++a) data_.inverse_h[a] = 1.0 / level.grid.metric().uniform_width()[a];
}

void PointViscosityTerm::add(const std::vector<float>& weights, double sign, const double* x, double* y) {
  data_.weights = weights.data();
  const VectorLayout& layout = level_.grid.layout();
  team_.run([&](int t) {
    Team::in_pieces(team_.range(layout.near_cells().size(), t, interleave), 64 * interleave, [&](Team::Range piece) {
      kernel_({&data_, topology_of(level_.grid), static_cast<Record>(piece.begin), static_cast<Record>(piece.end), sign,
               x, y, upper_.data()});
    });
  });
  team_.run([&](int t) {
    const auto range = team_.range(layout.records().size(), t);
    add_upper_hats(level_, {static_cast<Record>(range.begin), static_cast<Record>(range.end)}, upper_.data(), y);
  });
}

}  // namespace solenoid::cpu
