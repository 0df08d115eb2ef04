#pragma once
/// \file
/// A discrete velocity and pressure, or the solution of Poisson's equation, with what people ask of them.

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "solenoid/integrals.hpp"
#include "solenoid/problem.hpp"

namespace solenoid {

class Grid;
struct HostVector;
struct CellCoefficients;
struct Coefficients;

using Gradient = std::array<std::array<double, 3>, 3>;  ///< [component][direction]
/// Of a FlowField at a point: a scalar first; a vorticity has three numbers, in 2D the last of these alone is not 0; a
/// tensor those of xx, yy, zz, xy, yz, xz, in the order of ParaView.
using FieldValue = std::array<double, 6>;

/// Force and torque on a side of the bounding box or on a hole: what the flow does to the body outside the fluid.
///
/// The stress is that of the equation: in the stress form sigma = 2 nu eps(u) - p I, in the gradient form
/// nu grad u - p I, nu that of each cell. The force is the integral of - sigma n, n out of the fluid. On walls that do
/// not move, and on holes that move as a whole without turning, both forms have the same force and torque, if the
/// viscosity is the same along the wall. Without an outflow side p, and with it the force on a side, is that of a
/// pressure with mean zero; on a hole inside of the domain a constant pressure has no force.
///
/// `force` and `torque` are made of the rows of the discrete equation that boundary conditions have replaced (normal
/// component) and of the discrete stress, sigma n less 2 gamma nu (u - g) (tangential ones). So all forces together are
/// the integral of f - alpha u, to the residual of the solve (of a flow in time f - alpha u - du/dt, less the momentum
/// that leaves through sides), and they are more accurate than a stress at points. In the stress form torques balance
/// in the same way. Which part is pressure and which is friction, only the stress at points can tell:
/// `sampled_pressure` and `sampled_viscous` are integrals of p_h n and of - (sigma_h + p_h I) n, and their sum is not
/// quite `force`.
struct BoundaryForce {
  std::string name;  ///< "xmin", "holes[0]"
  Point force{};
  Point torque{};  ///< integral of - (x - about) x sigma n; in 2D the last entry
  Point sampled_pressure{};
  Point sampled_viscous{};
};

/// u_h and p_h with point evaluation and integrals. Cheap to copy (shares its coefficients). With Poisson's equation
/// there is the scalar u_h alone: value() and value_error(); what asks for a velocity throws an InputError.
class Solution {
 public:
  /// Coefficients in record layout (docs/method.md: one record of (dim+1)(k+1)^dim numbers per cell, with Poisson's
  /// equation (k+1)^dim, the records interleaved by 16) on `grid`, which stores the normal unknowns of all upper
  /// boundary faces if there is a velocity. `integrals` of the velocity, and the numbers for cells that nu and alpha
  /// are, if they are known: others are computed when they are asked for.
  Solution(Problem problem, std::shared_ptr<const Grid> grid, HostVector coefficients,
           const std::optional<FlowIntegrals>& integrals = {}, std::shared_ptr<const CellCoefficients> by_cell = {});

  [[nodiscard]] const Problem& problem() const { return problem_; }
  [[nodiscard]] const Grid& grid() const { return *grid_; }
  [[nodiscard]] std::span<const double> coefficients() const;
  /// The unknowns among the coefficients: all but prescribed normal velocities and padding. They come in the order in
  /// which LinearSystem::pack() puts those of a vector (docs/method.md, "Vectors").
  [[nodiscard]] std::vector<double> unknowns() const;

  /// nu and alpha: numbers, or those of each cell of the grid.
  [[nodiscard]] Coefficients equation_coefficients() const;

  /// Cell that holds the point (of several, one), or -1 outside the domain.
  [[nodiscard]] std::int64_t find_cell(const Point& point) const;
  /// Values at points. Outside the domain they are NaN. Tangential velocity on a face is that of one of its cells.
  [[nodiscard]] std::vector<Point> velocity(std::span<const Point> points) const;
  [[nodiscard]] std::vector<double> pressure(std::span<const Point> points) const;
  [[nodiscard]] std::vector<double> value(std::span<const Point> points) const;  ///< of Poisson's u
  [[nodiscard]] std::vector<Gradient> velocity_gradient(std::span<const Point> points) const;
  /// What else there is.
  [[nodiscard]] std::vector<FieldValue> flow_field(FlowField field, std::span<const Point> points) const;

  /// The solution as data of other problems, on any mesh: a force, boundary values, something to measure errors
  /// against. Evaluated outside the domain they throw an InputError. They hold the coefficients, but not the
  /// problem.
  [[nodiscard]] VectorField velocity_field() const;
  [[nodiscard]] ScalarField pressure_field() const;
  [[nodiscard]] ScalarField value_field() const;  ///< Poisson's u

  /// Values in one cell at tensor points: reference coordinates `xi[a]` in [0, 1] per direction a,
  /// point (i, j, l) at index i + nx (j + ny l). `u` has dim entries per point, component fastest. With Poisson's
  /// equation `u` is left empty and its values are in `p`.
  void evaluate_cell(std::int64_t cell, const std::array<std::vector<double>, 3>& xi, std::vector<double>& u,
                     std::vector<double>& p) const;
  /// du_c/dx_a at the same points: `g` has dim * dim entries per point, index c * dim + a fastest.
  void evaluate_cell_gradient(std::int64_t cell, const std::array<std::vector<double>, 3>& xi,
                              std::vector<double>& g) const;

  /// Of a flow in time: du/dt as the velocity of a solution on the same grid, or nothing where it is not known, before
  /// the first step. It is part of what forces() are made of.
  void set_acceleration(const std::optional<Solution>& acceleration);

  /// Integral of u.e_axis over the part of the plane {x_axis = position} inside the domain. On a mesh with edges: the
  /// flux, towards the end of edge `axis`, through the plane parallel to the other edges that lies `position` along
  /// this one, from where it begins. \throws InputError if there is no such axis or the position is not finite.
  [[nodiscard]] double flux(int axis, double position) const;
  /// On every side of the bounding box that is not periodic, then on every hole of the mesh, torques about the point
  /// `about`. On an outflow side it is the integral of its traction; the surface of two holes that overlap is that of
  /// the later one. \throws InputError for a flow in time before its first step.
  [[nodiscard]] std::vector<BoundaryForce> forces(const Point& about = {}) const;
  /// Whether forces() are known: not of a flow in time before its first step.
  [[nodiscard]] bool has_forces() const { return !in_time_ || acceleration_ != nullptr; }
  /// Integral of u over the domain, divided by the volume of the bounding box: the superficial velocity of a porous
  /// sample.
  [[nodiscard]] Point mean_velocity() const;
  /// K f / |f| = nu mean_velocity() / |f|, where K is the permeability tensor of the domain, in squares of lengths:
  /// with a force along an axis its column of that axis. \throws InputError unless a constant force drives the flow in
  /// periodic directions, walls do not move and there is no mass term.
  [[nodiscard]] Point permeability() const;
  /// All that the next five are made of, but for a dissipation where the viscosity varies or in the stress form. What
  /// has been computed once is kept.
  [[nodiscard]] FlowIntegrals integrals() const;
  [[nodiscard]] double kinetic_energy() const;  ///< 1/2 integral |u|^2
  [[nodiscard]] double dissipation() const;     ///< integral of FlowField::dissipation, cell by cell
  [[nodiscard]] double enstrophy() const;       ///< 1/2 integral |curl u|^2, cell by cell
  [[nodiscard]] double divergence_max() const;  ///< max |div u| over quadrature points, scaled by max |u| / h
  [[nodiscard]] double max_speed() const;       ///< max |u| over quadrature points
  /// L2 norms of the errors; the pressure's after removing the mean of the difference from each part of the domain that
  /// has no outflow side.
  [[nodiscard]] Errors errors(const Exact& exact) const;  ///< the three below, of the fields that are known
  [[nodiscard]] double velocity_error(const VectorField& exact) const;
  [[nodiscard]] double pressure_error(const ScalarField& exact) const;
  /// L2 norm of the error of Poisson's u, after removing the mean where u is known up to a constant.
  [[nodiscard]] double value_error(const ScalarField& exact) const;

  /// Of several ranks each has its part: what is asked of a solution is asked by all of them, and values at points,
  /// fluxes, forces, integrals and errors are those of all; what goes cell by cell is about the cells of this rank.
  /// gathered() has all cells, on the first rank; on others it is empty. With one rank it is the solution itself.
  [[nodiscard]] std::optional<Solution> gathered() const;

  /// Writes an HDF5 file (docs/solution-file.md), whole or not at all: problem and coefficients, but neither force nor
  /// boundary data. \throws Error if the file cannot be written, InputError if the build has no HDF5, or if
  /// it is a part.
  void save(const std::filesystem::path& file) const;

 private:
  /// Without what the problem holds: its data may be solutions, too.
  [[nodiscard]] Solution bare() const;

  struct Known;

  Problem problem_;
  std::shared_ptr<const Grid> grid_;
  std::shared_ptr<const HostVector> coefficients_;
  std::shared_ptr<Known> known_;
  bool in_time_ = false;
  std::shared_ptr<const Solution> acceleration_;  // of a flow in time, if it is known
};

/// The interpolant of a velocity and a pressure in RT_k x Q_k: normal velocities by their moments on faces, the rest by
/// moments in cells, so that div I u is the L2 projection of div u, and what is in the space is reproduced. The
/// pressure is projected. Boundary data of the problem play no part: normal velocities on its sides are those of
/// `velocity`. \throws InputError if the problem is Poisson's or not valid, or where a field is not finite.
Solution interpolate(const Problem& problem, const VectorField& velocity, const ScalarField& pressure = {});
/// The L2 projection of a function to the discontinuous Q_k of a Poisson problem.
Solution interpolate(const Problem& problem, const ScalarField& value);

/// What Solution::save() has written, by whatever engine, of any order up to 12. Force and boundary data of its problem
/// are not known: fields that throw an InputError where they are evaluated. \throws InputError if the file cannot be
/// read, is none of these, or was cut off or changed; ResourceError if memory does not suffice.
Solution load_solution(const std::filesystem::path& file);

/// Why this build cannot save and load solutions: it has no HDF5. Empty if it can.
std::string solution_files_unavailable();

}  // namespace solenoid
