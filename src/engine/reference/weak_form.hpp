#pragma once
/// \file
/// The weak form on one cell and across one face, by Gauss quadrature over the element's basis functions.
///
/// No tensor structure is used: every matrix is a sum over quadrature points of products of basis functions. All cells
/// of a grid have the same size, so that one set of local matrices serves them all.

#include <Eigen/Dense>
#include <array>
#include <vector>

#include "element/basis.hpp"
#include "level/level.hpp"

namespace solenoid::reference {

/// Points in a cell's reference coordinates ([0, 1] per direction) with physical weights (volume or area).
struct Points {
  std::vector<Point> position;
  Eigen::VectorXd weight;
};
/// Tensor points of a cell of size h, by a rule for each direction.
Points cell_points(int dim, const Point& h, const Quadrature& rule);
/// The same on its face `side` (2a lower, 2a + 1 upper face of direction a).
Points face_points(int dim, const Point& h, const Quadrature& rule, int side);

/// sum over points of weight f g: a row per function of f, a column per function of g.
Eigen::MatrixXd integrate(const Eigen::MatrixXd& f, const Points& points, const Eigen::MatrixXd& g);

/// Two matrices of the same points side by side.
Eigen::MatrixXd beside(const Eigen::MatrixXd& left, const Eigen::MatrixXd& right);

/// Values at places of a vector, and x += values there. A place may occur twice (both hats of a cell that is its own
/// neighbour): then both values are added.
Eigen::VectorXd gather(const Eigen::VectorXd& x, const std::vector<std::int64_t>& places);
void scatter_add(const Eigen::VectorXd& values, const std::vector<std::int64_t>& places, Eigen::VectorXd& x);

/// Values and physical derivatives of basis functions: a row per point, a column per function.
struct Table {
  Eigen::MatrixXd value;
  std::array<Eigen::MatrixXd, 3> derivative;
};

/// One scalar field of the element on one cell: a velocity component c, or the scalar field after them (the pressure,
/// or Poisson's u).
/// Its functions are those of the cell's own record and, for the velocity, the upper hats, which are the lower hats of
/// the record behind the upper face of direction c.
class LocalField {
 public:
  struct Function {
    std::array<int, 3> index{};  ///< number of the univariate function in each direction
    bool upper_hat = false;      ///< lies in the record behind the upper face of direction c
    int offset = 0;              ///< place in its record
  };

  LocalField(const Equation& equation, const Point& h, int component);

  /// The direction in which a velocity component is in P; -1 for the other field.
  [[nodiscard]] int parallel() const { return parallel_; }
  [[nodiscard]] const std::vector<Function>& functions() const { return functions_; }
  [[nodiscard]] Table tabulate(const std::vector<Point>& points) const;
  /// Where the functions of `cell` are in a vector.
  [[nodiscard]] std::vector<std::int64_t> numbers(const Grid& grid, Record cell) const;

 private:
  int dim_;
  int order_;
  int record_;
  int parallel_;
  Point h_;
  std::vector<Function> functions_;
};

/// The bilinear forms of the Stokes problem, coefficients included; on cells that are parallelepipeds those of local
/// problems (Equation::weights). c and a are component and direction;
/// Poisson's u takes the place of component 0 and has no parallel direction.
class WeakForm {
 public:
  WeakForm(const Equation& equation, const Coefficients& coefficients, const Point& h);

  /// Velocity components, then the pressure; or Poisson's u.
  [[nodiscard]] const std::vector<LocalField>& fields() const { return fields_; }
  [[nodiscard]] bool has_pressure() const { return fields_.size() > 1; }
  [[nodiscard]] const LocalField& pressure() const { return fields_.back(); }
  /// Fields with viscous terms.
  [[nodiscard]] int components() const { return static_cast<int>(has_pressure() ? fields_.size() - 1 : 1); }

  /// nu (grad u, grad v) + alpha (u, v) on a cell.
  [[nodiscard]] const Eigen::MatrixXd& cell(int c) const { return cell_[c]; }
  /// (q, du/dx_c) on a cell: a row per pressure function, a column per velocity function.
  [[nodiscard]] const Eigen::MatrixXd& divergence(int c) const { return divergence_[c]; }
  /// nu times the interior-penalty terms gamma [u][v] - {du/dn}[v] - [u]{dv/dn} on a face between two cells, normal
  /// direction a not parallel: the functions of the lower cell, then those of the upper cell.
  [[nodiscard]] const Eigen::MatrixXd& face(int a, int c) const { return face_[a][c]; }
  /// nu times E(u, v) = gamma u v - 1/2 du/dn v - 1/2 u dv/dn on face `side` of a cell, n outward, side / 2 not
  /// parallel.
  [[nodiscard]] const Eigen::MatrixXd& end(int side, int c) const { return end_[side][c]; }
  /// Values of field 0 at points of face `side`: a row per point, a column per function.
  [[nodiscard]] const Eigen::MatrixXd& trace(int side) const { return trace_[side]; }

 private:
  std::vector<LocalField> fields_;
  std::array<Eigen::MatrixXd, 3> cell_;
  std::array<Eigen::MatrixXd, 3> divergence_;
  std::array<std::array<Eigen::MatrixXd, 3>, 3> face_;
  std::array<std::array<Eigen::MatrixXd, 3>, 6> end_;
  std::array<Eigen::MatrixXd, 6> trace_;
};

/// Coefficients on a fine cell of the functions of the coarse cell around it: L2 projection, which is the identity on
/// the coarse functions. The fine cell is upper half of the coarse one in the directions of `upper`, lower half or the
/// same in the others; `coarsened` says in which directions it is a half.
Eigen::MatrixXd embedding(const Equation& equation, const Point& fine_h, int component,
                          const std::array<bool, 3>& coarsened, const std::array<bool, 3>& upper);

}  // namespace solenoid::reference
