#include "solver/multigrid/mac_correction.hpp"

#include <cmath>

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
    grid_ = grid_.coarsen(*pairs);
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

/// Element by element; the mass matrix of the hats is lumped, as in the classical scheme.
void MacCorrection::assemble(const std::vector<Constant>& constants, const Grid& fine) {
  // The scheme's penalty is 1/h, the level's (k+1)(k+2)/h. With 1/h the correction overshoots what changes from cell to
  // cell, so far at k = 1 that the inner iteration stalls; 2/h takes the fewest iterations at all k >= 1.
  const double penalty = equation_.order == 0 ? 1.0 : 2.0;
  std::vector<Eigen::Triplet<double>> entries;
  const auto add = [&](int row, int column, double value) {
    if (row != none && column != none) entries.emplace_back(row, column, value);
  };
  const Point h = grid_.metric().uniform_width();
  for (const Record cell : grid_.layout().cells()) {
    if (equation_.kind == EquationKind::poisson) {
      add(cell, cell, coefficients_.reaction);
      for (int side = 0; side < 2 * equation_.dim; ++side) {
        const double jump = penalty * coefficients_.viscosity / (h[side / 2] * h[side / 2]);
        const Face face = grid_.face(cell, side);
        add(cell, cell, jump * face_weight(face));
        if (face == Face::interior) add(cell, grid_.neighbour(cell, side), -jump);
      }
    }
    for (int c = 0; c < equation_.velocities(); ++c) {
      const std::array<int, 2> hats{hat(cell, c), hat(grid_.neighbour(cell, 2 * c + 1), c)};
      const double stiffness = coefficients_.viscosity / (h[c] * h[c]);
      for (int end = 0; end < 2; ++end) {
        const int own = hats[end];
        add(own, own, stiffness + 0.5 * coefficients_.reaction);
        add(own, hats[1 - end], -stiffness);
        for (int side = 0; side < 2 * equation_.dim; ++side) {
          const int a = side / 2;
          if (a == c) continue;
          const double shear = 0.5 * penalty * coefficients_.viscosity / (h[a] * h[a]);
          const Face face = grid_.face(cell, side);
          add(own, own, shear * face_weight(face));
          if (face != Face::interior) continue;
          const Record beside = grid_.neighbour(cell, side);
          add(own, hat(end == 0 ? beside : grid_.neighbour(beside, 2 * c + 1), c), -shear);
        }
        const double divergence = (end == 0 ? 1.0 : -1.0) / h[c];  // -(q, div u)
        add(own, pressure_ + cell, divergence);
        add(pressure_ + cell, own, divergence);
      }
    }
  }
  // Constants are pinned; what they do to the result is removed by the caller.
  const double pin = coefficients_.viscosity / (h[0] * h[0]);
  for (const auto& [part, field, records, carriers] : constants) {
    const Record cell = records.empty() ? 0 : parent(fine, records.front());
    if (field < equation_.velocities()) {
      add(hat(cell, field), hat(cell, field), pin);
    } else {
      const double size = equation_.velocities() > 0 ? -1.0 / coefficients_.viscosity : pin;
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
