#pragma once
/// \file
/// The convective term by quadrature over the element's basis functions, without tensor structure.

#include "engine/convection.hpp"
#include "engine/reference/weak_form.hpp"
#include "level/level.hpp"

namespace solenoid::reference {

class ReferenceConvection final : public Convection {
 public:
  ReferenceConvection(const Level& level, ConvectiveFlux flux);

  double apply(const double* u, double* y, double* work) override;

 private:
  /// In space, by component.
  using Vectors = std::array<Eigen::VectorXd, 3>;

  /// Values of component c of a box at the points of the table of a cell or of one of its faces.
  [[nodiscard]] Eigen::VectorXd values(const Eigen::MatrixXd& table, int c, Record cell, const double* u) const;
  [[nodiscard]] Vectors velocity(const std::array<Eigen::MatrixXd, 3>& tables, Record cell, const double* u) const;
  [[nodiscard]] Eigen::VectorXd dot(const Vectors& vectors, const Point& vector) const;
  /// u_n, outward, times the area of a face over that of the box's.
  [[nodiscard]] Eigen::VectorXd through(int side, const Vectors& u) const;
  /// y += (f, v) for the functions v of component c of a box on a cell.
  void test(const Eigen::MatrixXd& table, const Eigen::VectorXd& f, int c, Record cell, double* y) const;
  /// y += <flux, v> for all functions v in space; area as in through().
  void test_on_face(int side, const Vectors& flux, Record cell, double* y) const;
  void add_inner_face(Record cell, int a, const double* u, double* y) const;
  void add_side(Record cell, int side, const double* u, double* y) const;

  const Level& level_;
  AffineMap map_;
  double upwind_;  // s
  std::vector<LocalField> fields_;
  Points inside_;
  std::array<Points, 6> on_face_;
  std::array<Table, 3> table_;                           // of a component inside
  std::array<Eigen::MatrixXd, 3> inside_values_;         // of these
  std::array<std::array<Eigen::MatrixXd, 3>, 6> trace_;  // [side][component]
};

}  // namespace solenoid::reference
