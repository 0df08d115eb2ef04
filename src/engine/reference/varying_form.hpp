#pragma once
/// \file
/// The weak form where coefficients vary by cell, on one cell and across one face, by Gauss quadrature over all
/// velocity functions of a cell at once:
///
///     sum_K nu_K (grad u, grad v) or 2 nu_K (eps(u), eps(v)), + alpha_K (u, v)
///     + sum_F nu_F <gamma [u] - S(u), [v]> - nu_F <S(v), [u]>,    nu_F = 2 nu_1 nu_2 / (nu_1 + nu_2),
///     S_c(u) = {d_a u_c}, in the stress form {d_a u_c + d_c u_a},
///
/// where a face has the normal direction a and only components c that are not a jump; {} is the plain mean. On faces
/// with prescribed velocity the same from one side, with the penalty doubled; on slip and outflow faces nothing.

#include <Eigen/Dense>
#include <array>
#include <vector>

#include "engine/reference/weak_form.hpp"
#include "level/level.hpp"

namespace solenoid::reference {

/// Values and derivatives of all components of a cell's functions: a row per point, a column per function.
struct VectorTable {
  std::array<Eigen::MatrixXd, 3> value;                      ///< [component]
  std::array<std::array<Eigen::MatrixXd, 3>, 3> derivative;  ///< [direction][component]

  VectorTable() = default;
  VectorTable(const std::vector<LocalField>& fields, const std::vector<Point>& points);
};

class VaryingForm {
 public:
  VaryingForm(const Equation& equation, const Point& h);

  /// Places in a vector of all velocity functions of a cell, component by component.
  [[nodiscard]] std::vector<std::int64_t> numbers(const Grid& grid, Record cell) const;
  // With nu = 1 or alpha = 1:
  /// of the functions of a cell,
  [[nodiscard]] const Eigen::MatrixXd& viscous() const { return viscous_; }
  [[nodiscard]] const Eigen::MatrixXd& mass() const { return mass_; }
  /// on a face between two cells with normal direction a: the functions of the lower cell, then those of the upper one,
  [[nodiscard]] const Eigen::MatrixXd& face(int a) const { return face_[a]; }
  /// on a face of a cell with prescribed velocity.
  [[nodiscard]] const Eigen::MatrixXd& wall(int side) const { return wall_[side]; }

  // The same with a viscosity at the k + 2 Gauss points per direction, x fastest.
  [[nodiscard]] Eigen::MatrixXd viscous(const Eigen::VectorXd& nu) const;
  [[nodiscard]] Eigen::MatrixXd face(int a, const Eigen::VectorXd& nu) const;
  [[nodiscard]] Eigen::MatrixXd wall(int side, const Eigen::VectorXd& nu) const;

 private:
  [[nodiscard]] Eigen::MatrixXd traction(const VectorTable& trace, int a, int c) const;

  Equation equation_;
  int dim_;
  bool stress_;
  Point h_;
  std::vector<LocalField> fields_;
  Points inside_;
  VectorTable u_;  // inside
  std::array<Points, 6> on_face_;
  std::array<VectorTable, 6> trace_;
  Eigen::MatrixXd viscous_;
  Eigen::MatrixXd mass_;
  std::array<Eigen::MatrixXd, 3> face_;
  std::array<Eigen::MatrixXd, 6> wall_;
};

/// y += A_u x, the velocity block with the coefficients of a level: of cells, or with the viscosity at points.
void apply_varying(const VaryingForm& form, const Level& level, bool at_points, const Eigen::VectorXd& x,
                   Eigen::VectorXd& y);

}  // namespace solenoid::reference
