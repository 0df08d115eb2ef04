#include "engine/reference/small_system.hpp"

#include <algorithm>

namespace solenoid::reference {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using Kind = SmallShape::Kind;
using Numbers = std::vector<std::int64_t>;

}  // namespace

bool SmallSystem::is_inside(int cell, int side) const {
  if (side / 2 != shape_.direction) return false;
  const bool upper = side % 2 == 1;
  switch (shape_.kind) {
    case Kind::pair: return upper == (cell == 0);
    case Kind::ring: return true;
    case Kind::lower_outflow: return !upper;
    case Kind::upper_outflow: return upper;
    case Kind::cell: return false;
  }
  return false;
}

int SmallSystem::weight(int side) const {
  const bool outflow = shape_.kind == Kind::lower_outflow || shape_.kind == Kind::upper_outflow;
  return outflow && is_inside(0, side) ? 0 : 2;
}

std::vector<Numbers> SmallSystem::numbers(const Grid& grid, const SmallRecords& patch, const LocalField& field) const {
  std::vector<Numbers> numbers;
  const int c = field.parallel();
  for (int cell = 0; cell < (shape_.kind == Kind::pair ? 2 : 1); ++cell) {
    numbers.push_back(field.numbers(grid, patch[cell]));
    for (std::size_t j = 0; j < field.functions().size() && c >= 0; ++j) {
      const auto& function = field.functions()[j];
      const bool lower_hat = function.index[c] == 0;
      if ((lower_hat || function.upper_hat) && !is_inside(cell, 2 * c + (lower_hat ? 0 : 1))) numbers[cell][j] = -1;
    }
  }
  return numbers;
}

Numbers SmallSystem::unknowns(const Grid& grid, const SmallRecords& patch) const {
  Numbers unknowns;
  for (const LocalField& field : form_.fields()) {
    for (const Numbers& of_cell : numbers(grid, patch, field)) {
      for (const std::int64_t number : of_cell) {
        // The hats between two cells, or of a cell that is its own neighbour, are seen twice.
        const bool known = std::find(unknowns.begin(), unknowns.end(), number) != unknowns.end();
        if (number >= 0 && !known) unknowns.push_back(number);
      }
    }
  }
  return unknowns;
}

SmallSystem::SmallSystem(const WeakForm& form, const Grid& grid, const SmallShape& shape, const SmallRecords& example)
    : form_(form), shape_(shape) {
  const Numbers all = unknowns(grid, example);
  const auto count = static_cast<Eigen::Index>(all.size());
  MatrixXd matrix = MatrixXd::Zero(count, count);
  const auto add = [&](const MatrixXd& local, const Numbers& rows, const Numbers& columns) {
    for (std::size_t j = 0; j < columns.size(); ++j) {
      for (std::size_t i = 0; i < rows.size(); ++i) {
        if (rows[i] < 0 || columns[j] < 0) continue;
        const auto place = [&](std::int64_t number) { return std::find(all.begin(), all.end(), number) - all.begin(); };
        matrix(place(rows[i]), place(columns[j])) += local(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j));
      }
    }
  };
  const auto pressures = form.has_pressure() ? numbers(grid, example, form.pressure()) : std::vector<Numbers>{};
  for (int c = 0; c < form.components(); ++c) {
    const auto here = numbers(grid, example, form.fields()[c]);
    for (std::size_t cell = 0; cell < here.size(); ++cell) {
      add(form.cell(c), here[cell], here[cell]);
      if (form.has_pressure()) {
        add(-form.divergence(c), pressures[cell], here[cell]);
        add(-form.divergence(c).transpose(), here[cell], pressures[cell]);
      }
      for (int side = 0; side < 2 * grid.dim(); ++side) {
        if (side / 2 == form.fields()[c].parallel()) continue;
        const bool between = shape.kind == Kind::pair && is_inside(static_cast<int>(cell), side);
        if (!between) add(weight(side) * form.end(side, c), here[cell], here[cell]);
        if (between && cell == 0) {
          Numbers both = here[0];
          both.insert(both.end(), here[1].begin(), here[1].end());
          add(form.face(side / 2, c), both, both);
        }
      }
    }
  }
  constant_ = VectorXd::Zero(count);
  if (form.has_pressure() && weight(2 * shape.direction) + weight(2 * shape.direction + 1) == 4) {
    for (const Numbers& of_cell : pressures) {
      constant_[std::find(all.begin(), all.end(), of_cell[0]) - all.begin()] = 1.0;
    }
    constant_.normalize();
  }
  matrix_.compute(matrix + constant_ * constant_.transpose());
}

void SmallSystem::solve_add(const Grid& grid, const SmallRecords& patch, const VectorXd& residual,
                            VectorXd& correction) const {
  const Numbers places = unknowns(grid, patch);
  VectorXd values(static_cast<Eigen::Index>(places.size()));
  for (std::size_t i = 0; i < places.size(); ++i) values[static_cast<Eigen::Index>(i)] = residual[places[i]];
  values -= constant_ * constant_.dot(values);
  values = matrix_.solve(values);
  for (std::size_t i = 0; i < places.size(); ++i) correction[places[i]] += values[static_cast<Eigen::Index>(i)];
}

}  // namespace solenoid::reference
