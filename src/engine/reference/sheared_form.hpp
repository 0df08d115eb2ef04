#pragma once
/// \file
/// The weak form on cells that are parallelepipeds, by Gauss quadrature over all velocity functions of a cell at once:
/// on the cell as it lies in space, with basis functions u = F w / J, their gradients there and its normals,
///
///     nu (grad u, grad v) + alpha (u, v) - (p, div v) - (q, div u)
///     + sum_F nu_F (<gamma [u] - {d_n u}, [v]> - <{d_n v}, [u]>),    gamma = (k+1)(k+2) / height,
///
/// in the stress form with 2 eps(u) for grad u and 2 eps(u) n for d_n u; nu_F the harmonic mean of both sides where
/// coefficients vary by cell; on faces with prescribed velocity the same from one side, with the penalty doubled and
/// without the jump of what is normal to the face, which is imposed strongly; on slip and outflow faces nothing.

#include <Eigen/Dense>
#include <array>
#include <cstdint>
#include <vector>

#include "engine/reference/weak_form.hpp"
#include "problem/affine_map.hpp"

namespace solenoid::reference {

class ShearedForm {
 public:
  /// `coupling`: Coefficients::coupling.
  ShearedForm(const Equation& equation, double coupling, const AffineMap& map, const Point& h);

  /// Places in a vector of all velocity functions of a cell, component by component, and of its pressures.
  [[nodiscard]] std::vector<std::int64_t> velocities(const Grid& grid, Record cell) const;
  [[nodiscard]] std::vector<std::int64_t> pressures(const Grid& grid, Record cell) const;
  // With nu = 1 or alpha = 1:
  [[nodiscard]] const Eigen::MatrixXd& viscous() const { return viscous_; }
  [[nodiscard]] const Eigen::MatrixXd& mass() const { return mass_; }
  /// (q, div u), times the coupling: a row per pressure function.
  [[nodiscard]] const Eigen::MatrixXd& divergence() const { return divergence_; }
  /// On a face between two cells across a: the functions of the lower cell, then those of the upper one.
  [[nodiscard]] const Eigen::MatrixXd& face(int a) const { return face_[a]; }
  /// On a face of a cell with prescribed velocity.
  [[nodiscard]] const Eigen::MatrixXd& wall(int side) const { return wall_[side]; }

 private:
  std::vector<LocalField> fields_;
  Eigen::MatrixXd viscous_;
  Eigen::MatrixXd mass_;
  Eigen::MatrixXd divergence_;
  std::array<Eigen::MatrixXd, 3> face_;
  std::array<Eigen::MatrixXd, 6> wall_;
};

/// y += A x but for what is prescribed, with the coefficients of a level
void apply_sheared(const ShearedForm& form, const Level& level, const Eigen::VectorXd& x, Eigen::VectorXd& y);

}  // namespace solenoid::reference
