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
  /// Values of component c at the points of the table of a cell or of one of its faces.
  [[nodiscard]] Eigen::VectorXd values(const Eigen::MatrixXd& table, int c, Record cell, const double* u) const;
  /// y += (f, v) for the functions v of component c on a cell.
  void test(const Eigen::MatrixXd& table, const Eigen::VectorXd& f, int c, Record cell, double* y) const;
  void add_inner_face(Record cell, int a, const double* u, double* y) const;
  void add_side(Record cell, int side, const double* u, double* y) const;

  const Level& level_;
  double upwind_;  // s
  std::vector<LocalField> fields_;
  Points inside_;
  std::array<Points, 6> on_face_;
  std::array<Table, 3> table_;                           // of a component inside
  std::array<std::array<Eigen::MatrixXd, 3>, 6> trace_;  // [side][component]
};

}  // namespace solenoid::reference
