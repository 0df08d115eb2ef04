#pragma once
/// \file
/// The coarse boxes of a mesh and integrals over them, as plainly as possible.

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "element/basis.hpp"
#include "mesh/record.hpp"
#include "problem/affine_map.hpp"
#include "problem/names.hpp"
#include "problem/vectors.hpp"
#include "solenoid/solution.hpp"

namespace solenoid::test {

/// The coarse boxes of a mesh, by plain search.
class Boxes {
 public:
  explicit Boxes(const Problem& problem) : mesh_(problem.mesh), boundary_(problem.boundary) {
    if (mesh_.edges) map_.emplace(mesh_.dim, mesh_.lower, *mesh_.edges);
  }

  /// The last hole in which a box lies, or -1.
  [[nodiscard]] int hole(const std::array<int, 3>& box) const {
    for (std::size_t i = mesh_.holes.size(); i-- > 0;) {
      bool inside = true;
      for (int a = 0; a < mesh_.dim; ++a) {
        inside = inside && mesh_.holes[i].lower[a] <= box[a] && box[a] < mesh_.holes[i].upper[a];
      }
      if (inside) return static_cast<int>(i);
    }
    return -1;
  }
  /// visit(box) for those that are there.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (int z = 0; z < (mesh_.dim == 3 ? mesh_.cells[2] : 1); ++z) {
      for (int y = 0; y < mesh_.cells[1]; ++y) {
        for (int x = 0; x < mesh_.cells[0]; ++x) {
          if (hole({x, y, z}) < 0) visit(std::array{x, y, z});
        }
      }
    }
  }
  /// What ends a box in a direction: "xmin" or "holes[0]"; nothing where another box follows.
  [[nodiscard]] std::string behind(std::array<int, 3> box, int side) const {
    const int a = side / 2;
    const int count = mesh_.cells[a];
    box[a] += side % 2 == 0 ? -1 : 1;
    if (box[a] < 0 || box[a] == count) {
      if (boundary_.sides[side].kind != SideKind::periodic) return std::string(side_names[side]);
      box[a] = (box[a] + count) % count;
    }
    return hole(box) < 0 ? "" : "holes[" + std::to_string(hole(box)) + "]";
  }
  [[nodiscard]] Point at(const std::array<int, 3>& box, const Point& xi) const {
    Point x{};
    for (int a = 0; a < mesh_.dim; ++a) x[a] = (map_ ? 0.0 : mesh_.lower[a]) + width(a) * (box[a] + xi[a]);
    return map_ ? map_->at(x) : x;
  }
  /// visit(x, weight) for the points of a rule in a box, or on its side.
  template <class Visit>
  void integrate(const std::array<int, 3>& box, int side, const Visit& visit) const {
    const int count = 12;
    const Quadrature rule = gauss(count);
    for (int i = 0; i < power(count, mesh_.dim); ++i) {
      Point xi{};
      double weight = stretch(side);
      bool once = true;
      for (int a = 0, rest = i; a < mesh_.dim; ++a, rest /= count) {
        if (side >= 0 && a == side / 2) {
          once = once && rest % count == 0;
          xi[a] = side % 2;
        } else {
          xi[a] = rule.points[rest % count];
          weight *= rule.weights[rest % count] * width(a);
        }
      }
      if (once) visit(at(box, xi), weight);
    }
  }

  /// Of unit length, out of boxes.
  [[nodiscard]] Point normal(int side) const {
    Point result{};
    result[side / 2] = 1.0;
    if (map_) result = map_->inverse()[side / 2];
    const double length = std::sqrt(dot_product(result, result));
    for (double& x : result) x *= (side % 2 == 0 ? -1.0 : 1.0) / length;
    return result;
  }

 private:
  [[nodiscard]] double width(int a) const { return length_along(mesh_, a) / mesh_.cells[a]; }
  /// How much larger a box is, or a side of it, than the product of its widths.
  [[nodiscard]] double stretch(int side) const {
    if (!map_) return 1.0;
    return map_->jacobian() * (side < 0 ? 1.0 : std::sqrt(map_->inverse_metric()[side / 2][side / 2]));
  }

  const Mesh& mesh_;
  const Boundary& boundary_;
  std::optional<AffineMap> map_;
};

/// Forces of known tractions nu du/dn - p n on the fluid, by quadrature; traction(box, side) gives that on a side of a
/// box.
template <class Traction>
std::map<std::string, BoundaryForce> exact_forces(const Problem& problem, const Point& about,
                                                  const Traction& traction) {
  std::map<std::string, BoundaryForce> result;
  const Boxes boxes(problem);
  boxes.for_each([&](const std::array<int, 3>& box) {
    for (int side = 0; side < 2 * problem.mesh.dim; ++side) {
      const std::string name = boxes.behind(box, side);
      if (name.empty()) continue;
      BoundaryForce& sum = result[name];
      const auto field = traction(box, side);
      boxes.integrate(box, side, [&](const Point& x, double weight) {
        Point lever{};
        Point t{};
        for (int a = 0; a < problem.mesh.dim; ++a) {
          lever[a] = x[a] - about[a];
          t[a] = field[a](x);
        }
        const Point torque = cross_product(lever, t);
        for (int c = 0; c < 3; ++c) {
          sum.force[c] -= weight * t[c];
          sum.torque[c] -= weight * torque[c];
        }
      });
    }
  });
  return result;
}

}  // namespace solenoid::test
