#pragma once
/// \file
/// What forces on the boundary are made of at a point: the discrete equation, tested by velocities along an edge, and
/// tractions. Functions for the host and for devices. What lies beyond the dimension is zero.
///
/// Side e of a cell takes two kinds of test function. Along the edge F_e, across the side, velocities are prescribed
/// strongly, and what holds them is the row of the discrete equation for the hat of the side. With n_e = row e of F^-1,
/// of which n_e . F_e = 1, a velocity v has n_e . v along F_e, so that this force is a row for a velocity F_e there
/// times n_e. What is left of v lies in the side, and the traction t, known there point by point, does not hold the
/// part (t . F_e) n_e of it. On boxes these are the normal and the tangential components.

#include <array>

#include "mesh/face.hpp"
#include "problem/affine_map.hpp"
#include "problem/vectors.hpp"

namespace solenoid {

/// At a point.
struct FlowThere {
  Point u{};
  Matrix3 gradient{};  ///< [c][a]: du_c/dx_a
  double p = 0.0;
};

/// What a flow has in a cell besides.
struct InsideThere {
  Point change{};  ///< du/dt
  Point force{};
  double mass = 0.0;
  double viscosity = 0.0;
};

/// The same on a side.
struct SideThere {
  Face face = Face::interior;
  double penalty = 0.0;    ///< of the equation, gamma
  double viscosity = 0.0;  ///< nu, on an interior face nu_F
  Point data{};            ///< of a boundary face: the velocity or traction prescribed
  FlowThere behind{};      ///< of an interior face
};

/// What the equation has at a point for a velocity v along an edge: value v + slope . grad v.
struct Tested {
  double value = 0.0;
  Point slope{};
};

/// Of the discrete equation, for the hat on a side, a velocity along the edge across it that is 1 there, and for this
/// hat times the way from the corner of the cell along each other edge.
struct Rows {
  double hat = 0.0;
  Point way{};
};

/// Forces on a part of the boundary.
struct ForceSums {
  Point force{};
  Point torque{};
  Point pressure{};
  Point viscous{};

  constexpr void merge(const ForceSums& other) {
    add_times(force, 1.0, other.force);
    add_times(torque, 1.0, other.torque);
    add_times(pressure, 1.0, other.pressure);
    add_times(viscous, 1.0, other.viscous);
  }
};

/// An equation on the cells of a lattice.
struct TestedFlow {
  int dim = 3;
  bool stress_form = false;
  bool convection = false;
  bool linear = true;             ///< test functions vary along sides; those of lowest order are constant there
  double penalty = 0.0;           ///< gamma eta, eta: how far apart the faces of a cell are
  Point origin{};                 ///< where 0 in the coordinates of boxes is, less the point that torques are about
  std::array<Point, 3> edge{};    ///< along edges, of unit length: columns of F
  std::array<Point, 3> across{};  ///< rows of F^-1
  Point height{};                 ///< eta of cells with edges of length 1
  std::array<Point, 6> normal{};  ///< of sides, of unit length, out of the cell

  static constexpr double outward(int side) { return side % 2 == 0 ? -1.0 : 1.0; }

  /// From the point that torques are about to that with these coordinates in boxes.
  [[nodiscard]] constexpr Point lever(const Point& box) const {
    Point x = origin;
    for (int a = 0; a < dim; ++a) add_times(x, box[a], edge[a]);
    return x;
  }
  /// gamma on a side of a cell so wide across it.
  [[nodiscard]] constexpr double penalty_of(int side, double width) const {
    return penalty / (width * height[side / 2]);
  }

  [[nodiscard]] constexpr Tested inside(const Point& along, const FlowThere& here, const InsideThere& with) const {
    Point inertia{};
    for (int c = 0; c < 3; ++c) inertia[c] = with.mass * here.u[c] + with.change[c] - with.force[c];
    Tested result{dot_product(inertia, along)};
    add_times(result.slope, -here.p, along);
    add_times(result.slope, with.viscosity, strain_along(here, along));
    if (convection) add_times(result.slope, -dot_product(here.u, along), here.u);
    return result;
  }

  /// `no_jump`: the side is across the edge, where v has no jump, but its slope has.
  [[nodiscard]] constexpr Tested on(int side, const Point& along, bool no_jump, const FlowThere& here,
                                    const SideThere& with) const {
    Tested result;
    if (with.face == Face::interior) {
      Point slope = strain(here, normal[side]);
      add_times(slope, 1.0, strain(with.behind, normal[side]));
      for (int i = 0; i < 3; ++i) slope[i] *= 0.5;
      add_viscous(result, side, along, no_jump, jump(side, here.u, with.behind.u), with.viscosity, with.penalty, slope,
                  0.5);
    } else if (with.face == Face::velocity) {
      add_viscous(result, side, along, no_jump, jump(side, here.u, with.data), with.viscosity, 2.0 * with.penalty,
                  strain(here, normal[side]), 1.0);
    } else if (with.face == Face::outflow) {
      result.value -= dot_product(along, with.data);
    }
    if (convection) result.value += convected(side, along, here, with);
    return result;
  }

  /// A point of side `side`, tested along the edge across side `of`, its weight and its coordinates in [0, 1].
  constexpr void add(Rows& rows, int of, const Tested& tested, double weight, const Point& xi,
                     const Point& widths) const {
    const int e = of / 2;
    const double hat = weight * (of % 2 == 0 ? 1.0 - xi[e] : xi[e]);
    const double slope = weight * outward(of) / widths[e];
    const double sum = hat * tested.value + slope * dot_product(tested.slope, across[e]);
    rows.hat += sum;
    for (int b = 0; b < dim; ++b) {
      if (b == e) continue;
      rows.way[b] += widths[b] * (linear ? xi[b] : 0.5) * sum;
      if (linear) rows.way[b] += hat * dot_product(tested.slope, across[b]);
    }
  }

  /// The force that is known point by point, of a point on a boundary face.
  constexpr void add(ForceSums& sums, int side, const FlowThere& here, const SideThere& with, double weight,
                     const Point& arm) const {
    const Point slope = strain(here, normal[side]);
    add_times(sums.pressure, weight * here.p, normal[side]);
    add_times(sums.viscous, -with.viscosity * weight, slope);
    Point traction{};  // on the fluid, where it is known point by point
    if (with.face == Face::outflow) {
      traction = with.data;
    } else if (with.face == Face::velocity) {
      add_times(traction, with.viscosity, slope);
      add_times(traction, -2.0 * with.viscosity * with.penalty, jump(side, here.u, with.data));
      add_times(traction, -dot_product(traction, edge[side / 2]), across[side / 2]);
    }
    add_times(sums.force, -weight, traction);
    add_times(sums.torque, -weight, cross_product(arm, traction));
  }

  /// The force that rows hold, on a side of a cell with its corner there.
  constexpr void add(ForceSums& sums, int side, const Rows& rows, Point corner, const Point& widths) const {
    const int e = side / 2;
    add_times(sums.force, -rows.hat, across[e]);
    if (side % 2 == 1) corner[e] += widths[e];
    add_times(sums.torque, -rows.hat, cross_product(lever(corner), across[e]));
    for (int b = 0; b < dim; ++b) {
      if (b != e) add_times(sums.torque, -rows.way[b], cross_product(edge[b], across[e]));
    }
  }

 private:
  /// What the equation has nu times, [c][a]: du_c/dx_a, in the stress form 2 eps(u).
  [[nodiscard]] constexpr double strain(const FlowThere& here, int c, int a) const {
    return here.gradient[c][a] + (stress_form ? here.gradient[a][c] : 0.0);
  }
  /// Applied to a vector.
  [[nodiscard]] constexpr Point strain(const FlowThere& here, const Point& vector) const {
    Point result{};
    for (int c = 0; c < 3; ++c) {
      for (int a = 0; a < 3; ++a) result[c] += strain(here, c, a) * vector[a];
    }
    return result;
  }
  /// The same for all vectors: `along` times it is this times the vector.
  [[nodiscard]] constexpr Point strain_along(const FlowThere& here, const Point& along) const {
    Point result{};
    for (int c = 0; c < 3; ++c) {
      for (int a = 0; a < 3; ++a) result[a] += strain(here, c, a) * along[c];
    }
    return result;
  }
  /// u - `other` without what it has along the edge across a side, in which there are no jumps.
  [[nodiscard]] constexpr Point jump(int side, const Point& u, const Point& other) const {
    Point result = u;
    add_times(result, -1.0, other);
    add_times(result, -dot_product(across[side / 2], result), edge[side / 2]);
    return result;
  }
  /// <what v has for u - difference>, of which the equation takes a mean over the cells of the face, `part` of it.
  constexpr void add_viscous(Tested& result, int side, const Point& along, bool no_jump, const Point& difference,
                             double nu, double gamma, const Point& slope, double part) const {
    add_times(result.slope, -nu * part * dot_product(along, difference), normal[side]);
    if (stress_form) add_times(result.slope, -nu * part * dot_product(along, normal[side]), difference);
    if (!no_jump) result.value += nu * (gamma * dot_product(along, difference) - dot_product(along, slope));
  }
  /// What of the component that a vector takes leaves through a face: upwind, with that behind where the flow comes in.
  [[nodiscard]] constexpr double convected(int side, const Point& along, const FlowThere& here,
                                           const SideThere& with) const {
    const double w = dot_product(normal[side], here.u);
    double other = 0.0;
    if (with.face == Face::interior) other = dot_product(along, with.behind.u);
    if (with.face == Face::velocity) other = dot_product(along, with.data);
    return w * (w > 0.0 ? dot_product(along, here.u) : other);
  }
};

}  // namespace solenoid
