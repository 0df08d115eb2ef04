#include "solver/multigrid/mac_correction.hpp"

#include <cmath>
#include <utility>

#include "engine/mac_stencil.hpp"
#include "engine/tables.hpp"
#include "solenoid/error.hpp"

namespace solenoid {
namespace {

constexpr int none = -1;

/// Cells down to which the lattice is coarsened as long as it pairs up.
constexpr Record few_cells = 500;

/// The directions with an even number of cells.
std::array<bool, 3> next_directions(const Grid& grid) {
  std::array<bool, 3> all{};
  for (int a = 0; a < grid.dim(); ++a) all[a] = grid.extent()[a] % 2 == 0;
  return all;
}

}  // namespace

MacCorrection::MacCorrection(const Level& level)
    : equation_(level.equation), coefficients_(level.coefficients), grid_(level.grid), coarsening_(grid_.extent(), {}) {
  while (grid_.layout().cells().size() > few_cells) {
    const auto directions = next_directions(grid_);
    if (!directions[0] && !directions[1] && !directions[2]) break;
    const auto pairs = grid_.pairing(directions);
    if (!pairs) break;
    coarsening_ = coarsening_.then(*pairs);
    Grid coarser = grid_.coarsen(*pairs);
    coefficients_ = coarse_coefficients(coefficients_, grid_, *pairs, coarser);
    grid_ = std::move(coarser);
  }
  number_unknowns();
  assemble(level.constants, level.grid);
  embed(level);
}

void MacCorrection::number_unknowns() {
  hat_unknown_.assign(grid_.layout().storage(), {none, none, none});
  for (const Record r : grid_.layout().records()) {
    for (int c = 0; c < equation_.velocities(); ++c) {
      const bool cell = grid_.layout().is_cell(r);
      const bool unknown = cell ? !normal_fixed(grid_.face(r, 2 * c)) : c == grid_.hat_direction(r);
      if (unknown) hat_unknown_[r][c] = size_++;
    }
  }
  pressure_ = size_;
  size_ += grid_.layout().cells().size();
}

void MacCorrection::assemble(const std::vector<Constant>& constants, const Grid& fine) {
  // The scheme's penalty is 1/h, the level's (k+1)(k+2)/h. With 1/h the correction overshoots what changes from cell to
  // cell, so far at k = 1 that the inner iteration stalls; 2/h takes the fewest iterations at all k >= 1.
  const double penalty = equation_.order == 0 ? 1.0 : 2.0;
  const MacStencil<double> stencil(grid_, coefficients_, coefficients_.reaction, {penalty, 2.0 * penalty});
  const PatchWeights& weights = equation_.weights;
  const CellTopology topology = topology_of(grid_);
  const CellCoefficients* const by_cell = coefficients_.by_cell.get();
  std::vector<Eigen::Triplet<double>> entries;
  const auto add = [&](int row, int column, double value) {
    if (row != none && column != none) entries.emplace_back(row, column, value);
  };
  for (int c = 0; c < equation_.velocities(); ++c) {
    MacStencil<double> of_component = stencil;
    of_component.half_reaction *= weights.mass[c];
    for (int a = 0; a < equation_.dim; ++a) {
      for (double* factor : {&of_component.jump[a], &of_component.shear[a], &of_component.wall_shear[a]}) {
        *factor *= weights.viscous[c][a];
      }
    }
    std::vector<double> reaction = by_cell == nullptr ? std::vector<double>() : by_cell->reaction;
    for (double& alpha : reaction) alpha *= weights.mass[c];
    for (const Record r : grid_.layout().records()) {
      const int own = hat(r, c);
      if (own == none) continue;
      const auto add_diagonal = [&](double value) { add(own, own, value); };
      const auto add_beside = [&](Record record, double value) { add(own, hat(record, c), value); };
      if (by_cell == nullptr) {
        of_component.for_row(topology, r, c, add_diagonal, add_beside);
      } else {
        const CoefficientsOfCells<double> cells{by_cell->viscosity.data(), reaction.data()};
        of_component.for_row(topology, r, c, cells, add_diagonal, add_beside);
      }
    }
  }
  for (const Record cell : grid_.layout().cells()) {
    const int row = pressure_ + cell;
    if (equation_.kind == EquationKind::poisson) {
      stencil.for_cell(
          topology, cell, [&](double value) { add(row, row, value); },
          [&](Record other, double value) { add(row, pressure_ + other, value); });
    }
    for (int c = 0; c < equation_.velocities(); ++c) {
      for (int end = 0; end < 2; ++end) {
        const int face = hat(end == 0 ? cell : grid_.neighbour(cell, 2 * c + 1), c);
        const double divergence = (end == 0 ? 1.0 : -1.0) * stencil.inverse_h[c];  // -(q, div u)
        add(face, row, divergence);
        add(row, face, divergence);
      }
    }
  }
  // Constants are pinned; what they do to the result is removed by the caller.
  for (const auto& [part, field, records, carriers] : constants) {
    const Record cell = records.empty() ? 0 : parent(fine, records.front());
    const double factor = by_cell == nullptr ? 1.0 : by_cell->viscosity[cell];
    const double pin = factor * stencil.jump[0];
    if (field < equation_.velocities()) {
      add(hat(cell, field), hat(cell, field), pin);
    } else {
      const double size = equation_.velocities() > 0 ? -1.0 / (factor * coefficients_.viscosity) : pin;
      add(pressure_ + cell, pressure_ + cell, size);
    }
  }
  Eigen::SparseMatrix<double> matrix(size_, size_);
  matrix.setFromTriplets(entries.begin(), entries.end());
  factors_.compute(matrix);
  if (factors_.info() != Eigen::Success) {
    throw ResourceError("the lowest-order system of the coarsest level could not be factorised: " +
                        factors_.lastErrorMessage() + "; use fewer coarse boxes in [mesh] cells and more refinements");
  }
}

Record MacCorrection::parent(const Grid& fine, Record cell) const {
  std::array<int, 3> position = fine.position(cell);
  for (int a = 0; a < 3; ++a) position[a] = coarsening_.parent(a, position[a]);
  return grid_.at(position);
}

void MacCorrection::embed(const Level& level) {
  const Grid& fine = level.grid;
  const int block = power(level.equation.n(), equation_.dim);
  for (const Record cell : fine.layout().cells()) {
    const Record coarse = parent(fine, cell);
    const auto& position = grid_.position(coarse);
    std::array<double, 3> children{};
    double scale = 1.0;  // functions carry 1 / sqrt(h) in every direction
    for (int a = 0; a < 3; ++a) {
      children[a] = coarsening_.children(a, position[a]);
      scale *= std::sqrt(1.0 / children[a]);
    }
    for (int c = 0; c < equation_.velocities(); ++c) {
      const Record above = grid_.neighbour(coarse, 2 * c + 1);
      const int child = fine.position(cell)[c] - coarsening_.first_child(c, position[c]);
      const double upper = child / children[c];
      const auto put = [&](std::int64_t row, double weight_above) {
        if (hat(coarse, c) != none && weight_above < 1.0) {
          embedding_.push_back({row, hat(coarse, c), scale * (1.0 - weight_above)});
        }
        if (hat(above, c) != none && weight_above > 0.0)
          embedding_.push_back({row, hat(above, c), scale * weight_above});
      };
      if (!normal_fixed(fine.face(cell, 2 * c))) put(level.index(cell, c * block), upper);
      const Record next = fine.neighbour(cell, 2 * c + 1);
      if (fine.layout().is_hat(next)) put(level.index(next, c * block), 1.0);
    }
    embedding_.push_back(
        {level.index(cell, equation_.velocities() * block), pressure_ + static_cast<int>(coarse), scale});
  }
}

void MacCorrection::apply(const std::vector<double>& r, std::vector<double>& x) const {
  Eigen::VectorXd load = Eigen::VectorXd::Zero(size_);
  for (const Entry& entry : embedding_) load[entry.column] += entry.weight * r[entry.row];
  const Eigen::VectorXd solution = factors_.solve(load);
  x.assign(r.size(), 0.0);
  for (const Entry& entry : embedding_) x[entry.row] += entry.weight * solution[entry.column];
}

}  // namespace solenoid
