#pragma once
/// \file
/// The flow rate that a flow in time has, held by a gradient of the pressure.

#include <Eigen/Dense>

#include <functional>
#include <optional>
#include <vector>

#include "engine/engine.hpp"
#include "level/level.hpp"
#include "solver/boundary_hats.hpp"

namespace solenoid {

/// In each periodic direction a the volume that flows through a section of the domain normal to it,
///
///     q_a(u) = 1 / L_a integral u_a,
///
/// L_a the length of the box, is held at a value. What holds it is a force of its own, g, constant in space, which a
/// step finds: with v_b the velocity that the step makes of the unit force e_b alone, the response, u + sum_b lambda_b
/// v_b has the flow rates Q where
///
///     sum_b q_a(v_b) lambda_b = Q_a - q_a(u),
///
/// a system that is symmetric and positive definite. Responses depend on the coefficients of a step alone.
///
/// Where cells are parallelepipeds sections are parallel to the other edges, and row n_a of F^-1
/// (problem/affine_map.hpp) stands for e_a in both: such a force pushes along edge a alone.
class FlowRate {
 public:
  /// x = the unknowns of the flow with the load b, for the coefficients that hold now; both vectors are of the solver.
  using Solve = std::function<void(Vector<double>& b, Vector<double>& x)>;

  /// `all`: the level with all boundary hats, of which are `kernels`, `hats` and the flows here; they must outlive
  /// this. `kept`: of how many coefficients responses are kept.
  FlowRate(Engine& engine, const Problem& problem, const Point& wanted, const Level& all, Kernels<double>& kernels,
           BoundaryHats& hats, int kept);

  /// b += (gradient, v)
  void add_load(const Point& gradient, double* b);
  /// Gives a flow the rates that are wanted; returns the force that does, sum_a lambda_a n_a. `prescribed`: the
  /// integral of the part of the flow that sides prescribe, the hats that are no unknowns. \throws InvalidEntry if
  /// nothing can flow in a direction.
  Point correct(const Coefficients& coefficients, const Solve& solve, const Point& prescribed, Vector<double>& b,
                double* flow);

 private:
  struct Direction {
    int axis;
    double length;
    double wanted;
    Point across;         ///< n_a
    Point edge;           ///< n_b . edge = 1 for b = a, otherwise 0
    Vector<double> load;  ///< (n_a, v), of all v that are unknowns
  };
  /// Of a solve with these coefficients.
  struct Responses {
    std::optional<Coefficients> coefficients;
    std::vector<Vector<double>> flows;  ///< [direction]: v_a and its pressure
    Eigen::MatrixXd matrix;             ///< q_a(v_b)
  };

  const Responses& respond(const Coefficients& coefficients, const Solve& solve, Vector<double>& b);
  /// q_a, for each direction, of all that is unknown.
  [[nodiscard]] std::vector<double> rates(const double* flow);

  const Grid& grid_;
  Kernels<double>& kernels_;
  BoundaryHats& hats_;
  double volume_;
  std::vector<Direction> directions_;
  std::vector<Responses> responses_;  ///< the last ones that were used first
};

}  // namespace solenoid
