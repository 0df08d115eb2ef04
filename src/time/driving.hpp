#pragma once
/// \file
/// How fast its data may make a flow that is at rest.

#include <array>
#include <vector>

#include "problem/affine_map.hpp"
#include "solenoid/problem.hpp"

namespace solenoid {

/// What moves a flow: velocities on sides, force, traction. They are looked at at a few points, so that what they say
/// is a scale: good for the first step, after which the flow itself says how long steps may be.
class Driving {
 public:
  explicit Driving(const Problem& problem);

  /// The longest dt from time t on in which data alone carry the flow across cells no further than a step may: dt (V +
  /// dt A) = reach, where V is the largest sum_a |g_a| / h_a of velocities g on sides, along edges, and A that of the
  /// force, and of tractions in the first cell, |traction| / h, as accelerations; both at t + dt. Data that depend on
  /// the time are looked at at times t + 4^i h^2 / nu, with the largest nu, and the last one that is not too late is
  /// returned. Infinite where nothing moves the flow.
  [[nodiscard]] double longest_step(double t, double reach) const;

 private:
  struct Rates {
    double velocity = 0.0;      ///< V
    double acceleration = 0.0;  ///< A
  };
  [[nodiscard]] Rates rates_of(const Problem& problem) const;

  struct Face {
    int side = 0;
    int hole = -1;  ///< the number of its condition, or -1: on a side of the bounding box
    bool open = false;
    bool operator<(const Face& other) const;
  };
  struct FacePoints {
    Face face;
    std::vector<Point> points;
  };

  Problem problem_;
  bool changes_;
  double viscosity_;  ///< the largest, at the points in cells
  AffineMap map_;
  Point widths_{};             ///< of the finest cells
  std::vector<Point> inside_;  ///< points in cells
  std::vector<FacePoints> faces_;
};

}  // namespace solenoid
