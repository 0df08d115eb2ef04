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

class VaryingForm {
 public:
  VaryingForm(const Equation& equation, const Point& h);

  /// Places in a vector of all velocity functions of a cell, component by component.
  [[nodiscard]] std::vector<std::int64_t> numbers(const Grid& grid, Record cell) const;
  /// With nu = 1 or alpha = 1, of the functions of a cell.
  [[nodiscard]] const Eigen::MatrixXd& viscous() const { return viscous_; }
  [[nodiscard]] const Eigen::MatrixXd& mass() const { return mass_; }
  /// With nu_F = 1 on a face between two cells with normal direction a: the functions of the lower cell, then those of
  /// the upper one.
  [[nodiscard]] const Eigen::MatrixXd& face(int a) const { return face_[a]; }
  /// With nu = 1 on a face of a cell with prescribed velocity.
  [[nodiscard]] const Eigen::MatrixXd& wall(int side) const { return wall_[side]; }

 private:
  std::vector<LocalField> fields_;
  Eigen::MatrixXd viscous_;
  Eigen::MatrixXd mass_;
  std::array<Eigen::MatrixXd, 3> face_;
  std::array<Eigen::MatrixXd, 6> wall_;
};

/// y += A_u x, the velocity block with the coefficients of a level.
void apply_varying(const VaryingForm& form, const Level& level, const Eigen::VectorXd& x, Eigen::VectorXd& y);

}  // namespace solenoid::reference
