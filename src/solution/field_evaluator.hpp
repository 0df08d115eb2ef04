#pragma once
/// \file
/// What a flow has besides velocity and pressure, in cells.

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "level/coefficients.hpp"
#include "level/viscosity_in_cells.hpp"
#include "solution/cell_evaluator.hpp"
#include "solution/gradients.hpp"

namespace solenoid {

/// nu and alpha of the cells of a solution, and the form of the viscous term.
class CellPhysics {
 public:
  explicit CellPhysics(const Solution& solution)
      : coefficients_(solution.equation_coefficients()), form_(form_of(solution.problem())) {}

  [[nodiscard]] ViscousForm form() const { return form_; }
  /// nu at tensor points of cells.
  [[nodiscard]] ViscosityInCells viscosity_at(const TensorPoints& xi, int dim) const {
    return {coefficients_, dim, xi};
  }
  [[nodiscard]] double mass(std::int64_t cell) const {
    return coefficients_.by_cell == nullptr ? coefficients_.reaction : coefficients_.by_cell->reaction[cell];
  }

 private:
  Coefficients coefficients_;
  ViscousForm form_;
};

/// Flows at the points of one cell after the other. One object serves one thread.
class FieldEvaluator {
 public:
  explicit FieldEvaluator(const Solution& solution) : evaluator_(solution), physics_(solution) {}

  void set_points(const TensorPoints& xi) {
    evaluator_.set_points(xi, CellEvaluator::Tables::values_and_derivatives);
    viscosity_ = physics_.viscosity_at(xi, dim());
  }
  [[nodiscard]] int points() const { return evaluator_.points(); }
  [[nodiscard]] int dim() const { return evaluator_.dim(); }

  /// visit(number of a point, flow there)
  template <class Visit>
  void for_points(std::int64_t cell, const Visit& visit) {
    const std::size_t squared = static_cast<std::size_t>(dim()) * dim();
    gradient_.resize(points() * squared);
    pressure_.resize(points());
    evaluator_.gradient(cell, gradient_.data());
    evaluator_.pressure(cell, pressure_.data());
    const std::vector<double>& viscosity = viscosity_->of(static_cast<Record>(cell));
    FlowAtPoint at{.mass = physics_.mass(cell), .form = physics_.form()};
    for (std::size_t q = 0; q < pressure_.size(); ++q) {
      at.viscosity = viscosity[q];
      at.gradient = gradient_of(dim(), &gradient_[q * squared]);
      at.pressure = pressure_[q];
      visit(q, at);
    }
  }

 private:
  CellEvaluator evaluator_;
  CellPhysics physics_;
  std::optional<ViscosityInCells> viscosity_;  // at the points
  std::vector<double> gradient_;
  std::vector<double> pressure_;
};

}  // namespace solenoid
