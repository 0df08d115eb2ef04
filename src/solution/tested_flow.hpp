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

/// At a point; or at one point of each of many cells, T being that many numbers.
template <class T>
struct FlowThereOf {
  Vector3<T> u{};
  Vector3<Vector3<T>> gradient{};  ///< [c][a]: du_c/dx_a
  T p{};
};
using FlowThere = FlowThereOf<double>;

/// What a flow has in a cell besides.
template <class T>
struct InsideThereOf {
  Vector3<T> change{};  ///< du/dt
  Vector3<T> force{};
  T mass{};
  T viscosity{};
};
using InsideThere = InsideThereOf<double>;

/// The same on a side, of the same kind in all cells.
template <class T>
struct SideThereOf {
  Face face = Face::interior;
  T penalty{};              ///< of the equation, gamma
  T viscosity{};            ///< nu, on an interior face nu_F
  Vector3<T> data{};        ///< of a boundary face: the velocity or traction prescribed
  FlowThereOf<T> behind{};  ///< of an interior face
};
using SideThere = SideThereOf<double>;

/// What the equation has at a point for a velocity v along an edge: value v + slope . grad v.
template <class T>
struct TestedOf {
  T value{};
  Vector3<T> slope{};
};
using Tested = TestedOf<double>;

/// Of the discrete equation, for the hat on a side, a velocity along the edge across it that is 1 there, and for this
/// hat times the way from the corner of the cell along each other edge.
template <class T>
struct RowsOf {
  T hat{};
  Vector3<T> way{};
};
using Rows = RowsOf<double>;

/// Forces on a part of the boundary.
template <class T>
struct ForceSumsOf {
  Vector3<T> force{};
  Vector3<T> torque{};
  Vector3<T> pressure{};
  Vector3<T> viscous{};

  constexpr void merge(const ForceSumsOf& other) {
    add_times(force, 1.0, other.force);
    add_times(torque, 1.0, other.torque);
    add_times(pressure, 1.0, other.pressure);
    add_times(viscous, 1.0, other.viscous);
  }
};
using ForceSums = ForceSumsOf<double>;

/// Components of a velocity, a bit each: of which values are read, and of which slopes.
struct ReadComponents {
  int values = 0;
  int slopes = 0;

  [[nodiscard]] constexpr bool has(int c) const { return ((values | slopes) >> c & 1) != 0; }
  [[nodiscard]] constexpr bool has_slopes(int c) const { return (slopes >> c & 1) != 0; }
};

constexpr double where_positive(double number, double yes, double no) { return number > 0.0 ? yes : no; }

/// An equation on the cells of a lattice.
struct TestedFlow {
  int dim = 3;
  bool boxes = true;  ///< cells are such
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

  static constexpr ReadComponents all{7, 7};

  // What is read of a flow where the row of side `of` is tested: on boxes little more than the component across it.
  [[nodiscard]] constexpr ReadComponents read_inside(int of) const {
    const int across = 1 << of / 2;
    return boxes ? ReadComponents{convection ? 7 : across, stress_form ? 7 : across} : all;
  }
  [[nodiscard]] constexpr ReadComponents read_of_change(int of) const { return {boxes ? 1 << of / 2 : 7, 0}; }
  [[nodiscard]] constexpr ReadComponents read_on(int side, int of) const {
    if (side == of) return all;  // for the force that is known point by point
    ReadComponents read = read_behind(side, of);
    if (convection && counts(side, of)) read.values |= 1 << side / 2;
    return read;
  }
  [[nodiscard]] constexpr ReadComponents read_behind(int side, int of) const {
    const bool has_jump = side / 2 != of / 2;
    if (!boxes) return {7, has_jump ? 7 : 0};
    if (!counts(side, of)) return {};
    const int across = 1 << of / 2;
    return {across, across | (stress_form ? 1 << side / 2 : 0)};
  }
  /// Whether there is anything on a side for the row of side `of`: on boxes its hat is zero on the opposite one, and so
  /// is what its slope is tested with.
  [[nodiscard]] constexpr bool counts(int side, int of) const { return !boxes || side / 2 != of / 2 || side == of; }

  /// From the point that torques are about to that with these coordinates in boxes.
  template <class T>
  [[nodiscard]] constexpr Vector3<T> lever(const Vector3<T>& box) const {
    Vector3<T> x{};
    for (int i = 0; i < 3; ++i) x[i] += origin[i];
    for (int a = 0; a < dim; ++a) add_times(x, box[a], edge[a]);
    return x;
  }
  /// gamma on a side of a cell so wide across it.
  template <class T>
  [[nodiscard]] constexpr T penalty_of(int side, const T& width) const {
    return penalty / (width * height[side / 2]);
  }

  template <class T>
  [[nodiscard]] constexpr TestedOf<T> inside(const Point& along, const FlowThereOf<T>& here,
                                             const InsideThereOf<T>& with) const {
    Vector3<T> inertia{};
    for (int c = 0; c < 3; ++c) inertia[c] = with.mass * here.u[c] + with.change[c] - with.force[c];
    TestedOf<T> result{dot_product(inertia, along)};
    add_times(result.slope, -here.p, along);
    add_times(result.slope, with.viscosity, strain_along(here, along));
    if (convection) add_times(result.slope, -dot_product(here.u, along), here.u);
    return result;
  }

  /// `no_jump`: the side is across the edge, where v has no jump, but its slope has.
  template <class T>
  [[nodiscard]] constexpr TestedOf<T> on(int side, const Point& along, bool no_jump, const FlowThereOf<T>& here,
                                         const SideThereOf<T>& with) const {
    TestedOf<T> result;
    if (with.face == Face::interior) {
      Vector3<T> slope = strain(here, normal[side]);
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
  template <class T>
  constexpr void add(RowsOf<T>& rows, int of, const TestedOf<T>& tested, const T& weight, const Point& xi,
                     const Vector3<T>& widths) const {
    const int e = of / 2;
    const T hat = weight * (of % 2 == 0 ? 1.0 - xi[e] : xi[e]);
    const T slope = weight * outward(of) / widths[e];
    const T sum = hat * tested.value + slope * dot_product(tested.slope, across[e]);
    rows.hat += sum;
    for (int b = 0; b < dim; ++b) {
      if (b == e) continue;
      rows.way[b] += widths[b] * (linear ? xi[b] : 0.5) * sum;
      if (linear) rows.way[b] += hat * dot_product(tested.slope, across[b]);
    }
  }

  /// The force that is known point by point, of a point on a boundary face.
  template <class T>
  constexpr void add(ForceSumsOf<T>& sums, int side, const FlowThereOf<T>& here, const SideThereOf<T>& with,
                     const T& weight, const Vector3<T>& arm) const {
    const Vector3<T> slope = strain(here, normal[side]);
    add_times(sums.pressure, weight * here.p, normal[side]);
    add_times(sums.viscous, -with.viscosity * weight, slope);
    Vector3<T> traction{};  // on the fluid, where it is known point by point
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
  template <class T>
  [[nodiscard]] constexpr T strain(const FlowThereOf<T>& here, int c, int a) const {
    return stress_form ? here.gradient[c][a] + here.gradient[a][c] : here.gradient[c][a];
  }
  /// Applied to a vector.
  template <class T>
  [[nodiscard]] constexpr Vector3<T> strain(const FlowThereOf<T>& here, const Point& vector) const {
    Vector3<T> result{};
    for (int c = 0; c < 3; ++c) {
      for (int a = 0; a < 3; ++a) result[c] += strain(here, c, a) * vector[a];
    }
    return result;
  }
  /// The same for all vectors: `along` times it is this times the vector.
  template <class T>
  [[nodiscard]] constexpr Vector3<T> strain_along(const FlowThereOf<T>& here, const Point& along) const {
    Vector3<T> result{};
    for (int c = 0; c < 3; ++c) {
      for (int a = 0; a < 3; ++a) result[a] += strain(here, c, a) * along[c];
    }
    return result;
  }
  /// u - `other` without what it has along the edge across a side, in which there are no jumps.
  template <class T>
  [[nodiscard]] constexpr Vector3<T> jump(int side, const Vector3<T>& u, const Vector3<T>& other) const {
    Vector3<T> result = u;
    add_times(result, -1.0, other);
    add_times(result, -dot_product(across[side / 2], result), edge[side / 2]);
    return result;
  }
  /// <what v has for u - difference>, of which the equation takes a mean over the cells of the face, `part` of it.
  template <class T>
  constexpr void add_viscous(TestedOf<T>& result, int side, const Point& along, bool no_jump,
                             const Vector3<T>& difference, const T& nu, const T& gamma, const Vector3<T>& slope,
                             double part) const {
    add_times(result.slope, -nu * part * dot_product(along, difference), normal[side]);
    if (stress_form) add_times(result.slope, -nu * part * dot_product(along, normal[side]), difference);
    if (!no_jump) result.value += nu * (gamma * dot_product(along, difference) - dot_product(along, slope));
  }
  /// What of the component that a vector takes leaves through a face: upwind, with that behind where the flow comes in.
  template <class T>
  [[nodiscard]] constexpr T convected(int side, const Point& along, const FlowThereOf<T>& here,
                                      const SideThereOf<T>& with) const {
    const T w = dot_product(normal[side], here.u);
    T other{};
    if (with.face == Face::interior) other = dot_product(along, with.behind.u);
    if (with.face == Face::velocity) other = dot_product(along, with.data);
    return w * where_positive(w, dot_product(along, here.u), other);
  }
};

}  // namespace solenoid
