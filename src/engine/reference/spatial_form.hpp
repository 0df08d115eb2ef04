#pragma once
/// \file
/// The weak form where coefficients vary or cells are parallelepipeds, by Gauss quadrature over all velocity functions
/// of a cell at once: on the cell as it lies in space, with basis functions u = F w / J, their gradients there and its
/// normals,
///
///     nu (grad u, grad v) + alpha (u, v) - (p, div v) - (q, div u)
///     + sum_F nu_F (<gamma [u] - {d_n u}, [v]> - <{d_n v}, [u]>),    gamma = (k+1)(k+2) / height,
///
/// in the stress form with 2 eps(u) for grad u and 2 eps(u) n for d_n u; nu_F the harmonic mean of both sides where the
/// viscosity varies, point by point where it does inside of cells; on faces with prescribed velocity the same from one
/// side, with the penalty doubled and without the jump of what is normal to the face, which is imposed strongly; on
/// slip and outflow faces nothing.

#include <Eigen/Dense>
#include <array>
#include <cstdint>
#include <vector>

#include "engine/reference/weak_form.hpp"
#include "level/level.hpp"
#include "problem/affine_map.hpp"

namespace solenoid::reference {

/// Values and gradients in space of all velocity functions of a cell: a row per point, a column per function.
struct SpatialTable {
  std::array<Eigen::MatrixXd, 3> value;                    ///< [component]
  std::array<std::array<Eigen::MatrixXd, 3>, 3> gradient;  ///< [direction][component]

  SpatialTable() = default;
  SpatialTable(const std::vector<LocalField>& fields, int dim, const Eigen::Matrix3d& f,
               const std::vector<Point>& points);
};

class SpatialForm {
 public:
  /// `coupling`: Coefficients::coupling.
  SpatialForm(const Equation& equation, double coupling, const AffineMap& map, const Point& h);

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

  // The same times columns of coefficients u, with a viscosity at the k + 2 Gauss points per direction, x fastest.
  [[nodiscard]] Eigen::MatrixXd viscous(const Eigen::VectorXd& nu, const Eigen::MatrixXd& u) const;
  [[nodiscard]] Eigen::MatrixXd face(int a, const Eigen::VectorXd& nu, const Eigen::MatrixXd& u) const;
  [[nodiscard]] Eigen::MatrixXd wall(int side, const Eigen::VectorXd& nu, const Eigen::MatrixXd& u) const;

 private:
  /// Component i of d_n u or, in the stress form, of 2 eps(u) n, for the normal in the direction of a.
  [[nodiscard]] Eigen::MatrixXd traction(const SpatialTable& trace, int a, int i) const;

  Equation equation_;
  int dim_;
  std::vector<LocalField> fields_;
  Points inside_;
  SpatialTable u_;  // inside
  std::array<Points, 3> on_face_;
  std::array<Eigen::Vector3d, 3> normal_;  // of faces across a, from the lower to the upper cell
  std::array<double, 3> gamma_{};
  std::array<SpatialTable, 6> trace_;
  std::array<std::array<Eigen::MatrixXd, 3>, 6> traction_;  // [side][component]
  Eigen::MatrixXd viscous_;
  Eigen::MatrixXd mass_;
  Eigen::MatrixXd divergence_;
  std::array<Eigen::MatrixXd, 3> face_;
  std::array<Eigen::MatrixXd, 6> wall_;
};

/// y += A x but for what is prescribed, with the coefficients of a level, their viscosity at points if `at_points`.
void apply_spatial(const SpatialForm& form, const Level& level, bool at_points, const Eigen::VectorXd& x,
                   Eigen::VectorXd& y);

}  // namespace solenoid::reference
