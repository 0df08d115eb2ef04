#pragma once
/// \file
/// Cells that are parallelepipeds, all translates of one: x = origin + F xi, where cells are boxes in xi. Columns of F
/// are unit vectors along edges, so that lengths along edges are those of xi. With
///
///     g = F^T F,    G = g^-1,    J = det F > 0
///
/// velocities are those of the boxes by Piola's map, u = F w / J, which keeps fluxes through faces: div u = div w / J.

#include <array>

#include "solenoid/mesh.hpp"

namespace solenoid {

using Matrix3 = std::array<std::array<double, 3>, 3>;

class AffineMap {
 public:
  /// Edges of any length. \throws InputError unless their determinant is positive, far from rounding.
  AffineMap(int dim, const Point& origin, const std::array<Point, 3>& edges);
  /// x = xi, for boxes, which are parallelepipeds too.
  static AffineMap identity(int dim) { return {dim, {}, {Point{1, 0, 0}, Point{0, 1, 0}, Point{0, 0, 1}}}; }

  [[nodiscard]] int dim() const { return dim_; }
  [[nodiscard]] double jacobian() const { return jacobian_; }                  ///< J
  [[nodiscard]] const Matrix3& metric() const { return metric_; }              ///< g, [row][column]
  [[nodiscard]] const Matrix3& inverse_metric() const { return cometric_; }    ///< G
  [[nodiscard]] const Matrix3& inverse() const { return inverse_; }            ///< F^-1
  [[nodiscard]] const Point& direction(int a) const { return direction_[a]; }  ///< column a of F
  /// Sine of the smallest angle between an edge and the plane (in 2D: the line) of the others; 1 for boxes.
  [[nodiscard]] double sine() const;

  /// x and xi.
  [[nodiscard]] Point at(const Point& xi) const;
  [[nodiscard]] Point pulled_back(const Point& x) const;
  /// Between vectors that are velocities: F w / J and J F^-1 u.
  [[nodiscard]] Point velocity(const Point& w) const;
  [[nodiscard]] Point flux(const Point& u) const;
  /// F^T f: of vectors that are forces.
  [[nodiscard]] Point force(const Point& f) const;

  /// eta_a = h / sqrt(G_aa): how far apart the faces across a of cells are that have edges of length h along a.
  [[nodiscard]] double height(int a, double h) const;
  [[nodiscard]] Point heights(const Point& h) const;

 private:
  int dim_;
  Point origin_;
  std::array<Point, 3> direction_{Point{1, 0, 0}, Point{0, 1, 0}, Point{0, 0, 1}};
  double jacobian_ = 1.0;
  Matrix3 inverse_{};  // F^-1
  Matrix3 metric_{};
  Matrix3 cometric_{};
};

/// Of a mesh: how long it is along its edges of a direction.
double length_along(const Mesh& mesh, int a);

/// A vector as the sum of vectors along the edges of a mesh: their lengths.
Point along_edges(const Mesh& mesh, const Point& vector);

}  // namespace solenoid
