#pragma once
/// \file
/// Averages of a flow over a time, and along directions in which it repeats itself.

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "solenoid/solution.hpp"

namespace solenoid {

/// Averages along directions, at coordinates in those that are left.
struct Profile {
  std::vector<int> across;  ///< directions that are left
  /// A row for each place that has a cell. They are at Gauss points, k + 1 of a cell and direction, the first of
  /// `across` fastest.
  struct Row {
    Point at{};         ///< 0 in directions of the average
    Point velocity{};   ///< U
    double pressure{};  ///< P
    Gradient stress{};  ///< mean of (u_c - U_c) (u_d - U_d), U the mean of this row
    double dissipation{};
  };
  std::vector<Row> rows;
};

/// What a TimeStepper has averaged: with <.> the mean over the time from `start` on, `length` long,
///
///     U = <u>,  P = <p>,  R_cd = <(u_c - U_c) (u_d - U_d)>,  <nu |grad u|^2>.
///
/// Each step counts with the flow at its middle, interpolated with the order of the scheme, and with its length; with
/// TimeOptions::average_every some steps do, with the time since the one before. U is divergence-free to rounding. R
/// and the dissipation are projected to Q_k in L2, by k + 2 Gauss points a direction, so that their integrals over
/// cells are those of the discrete flow; a steady flow has R = 0 to rounding.
struct Averages {
  double start = 0.0;
  double length = 0.0;
  Solution flow;                   ///< U and P
  std::vector<Solution> stresses;  ///< R_xx, R_xy, R_yy, in 3D R_xx, R_xy, R_xz, R_yy, R_yz, R_zz: each has a value()
  Solution dissipation;            ///< nu |grad u|^2: has a value()

  /// Which of `stresses` is R_cd.
  static std::size_t stress_index(int dim, int c, int d);
  /// R at points; outside the domain it is NaN.
  [[nodiscard]] std::vector<Gradient> stress(std::span<const Point> points) const;
  /// Averages along the directions a with along[a] as well. The stress of a row is that about the mean of the row: it
  /// has what the mean flow itself varies along the directions. Where a hole ends the domain along a direction, the
  /// average is that of what is left. \throws InputError if such a direction is not periodic.
  [[nodiscard]] Profile profile(const std::array<bool, 3>& along) const;

  /// As Solution::gathered().
  [[nodiscard]] std::optional<Averages> gathered() const;
};

}  // namespace solenoid
