#include "problem/affine_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "problem/vectors.hpp"
#include "solenoid/error.hpp"

namespace solenoid {

AffineMap::AffineMap(int dim, const Point& origin, const std::array<Point, 3>& edges) : dim_(dim), origin_(origin) {
  for (int a = 0; a < dim; ++a) {
    const double length = std::sqrt(dot_product(edges[a], edges[a]));
    for (int i = 0; i < 3; ++i) direction_[a][i] = edges[a][i] / length;
  }
  jacobian_ = dot_product(direction_[0], cross_product(direction_[1], direction_[2]));
  constexpr double least = 1e-6;
  if (!(jacobian_ > least)) {
    throw InputError(fmt::format(
        "the determinant of the edges of cells, each of length 1, is {:.3g}, expected a positive one: edges that are "
        "not in one {}, numbered so that they are right-handed",
        jacobian_, dim == 3 ? "plane" : "line"));
  }
  for (int a = 0; a < 3; ++a) {
    const Point row = cross_product(direction_[(a + 1) % 3], direction_[(a + 2) % 3]);
    for (int i = 0; i < 3; ++i) inverse_[a][i] = row[i] / jacobian_;
  }
  for (int a = 0; a < 3; ++a) {
    for (int b = 0; b < 3; ++b) {
      metric_[a][b] = a == b ? 1.0 : dot_product(direction_[a], direction_[b]);
      cometric_[a][b] = dot_product(inverse_[a], inverse_[b]);
    }
  }
}

double AffineMap::sine() const {
  double least = 1.0;
  for (int a = 0; a < dim_; ++a) least = std::min(least, height(a, 1.0));
  return least;
}

Point AffineMap::at(const Point& xi) const {
  Point x = origin_;
  for (int a = 0; a < dim_; ++a) {
    for (int i = 0; i < 3; ++i) x[i] += direction_[a][i] * xi[a];
  }
  return x;
}

Point AffineMap::pulled_back(const Point& x) const {
  Point xi{};
  for (int a = 0; a < dim_; ++a) {
    for (int i = 0; i < 3; ++i) xi[a] += inverse_[a][i] * (x[i] - origin_[i]);
  }
  return xi;
}

Point AffineMap::velocity(const Point& w) const {
  Point u{};
  for (int a = 0; a < dim_; ++a) {
    for (int i = 0; i < 3; ++i) u[i] += direction_[a][i] * w[a] / jacobian_;
  }
  return u;
}

Point AffineMap::flux(const Point& u) const {
  Point w{};
  for (int a = 0; a < dim_; ++a) w[a] = jacobian_ * dot_product(inverse_[a], u);
  return w;
}

Point AffineMap::force(const Point& f) const {
  Point result{};
  for (int a = 0; a < dim_; ++a) result[a] = dot_product(direction_[a], f);
  return result;
}

double length_along(const Mesh& mesh, int a) {
  if (!mesh.edges) return mesh.upper[a] - mesh.lower[a];
  const Point& edge = (*mesh.edges)[a];
  return std::sqrt(dot_product(edge, edge));
}

Point along_edges(const Mesh& mesh, const Point& vector) {
  return mesh.edges ? AffineMap(mesh.dim, {}, *mesh.edges).pulled_back(vector) : vector;
}

double AffineMap::height(int a, double h) const { return h / std::sqrt(cometric_[a][a]); }

Point AffineMap::heights(const Point& h) const {
  Point eta{};
  for (int a = 0; a < dim_; ++a) eta[a] = height(a, h[a]);
  return eta;
}

}  // namespace solenoid
