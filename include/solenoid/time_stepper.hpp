#pragma once
/// \file
/// Flows that change in time:
///
///     du/dt + alpha u + div(u (x) u) - nu Laplace u + grad p = f,   div u = 0,
///
/// or without the convective term where Problem::convection is not set. Viscosity and alpha may vary by cell, with
/// either form of the viscous term (problem.hpp). Force, boundary values, tractions, and coefficients that vary may be
/// expressions in the time, the parameter `t`.

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "solenoid/averages.hpp"
#include "solenoid/checkpoint.hpp"
#include "solenoid/error.hpp"
#include "solenoid/options.hpp"
#include "solenoid/problem.hpp"
#include "solenoid/solution.hpp"
#include "solenoid/solver.hpp"

namespace solenoid {

struct TimeOptions {
  TimeScheme scheme = TimeScheme::sbdf3;
  /// Length of steps; the largest one where `cfl` is given, too. 0: by `cfl` alone.
  double step = 0.0;
  /// C of dt = C / (omega_k R), where R is the largest sum_a |u_a| / h_a and omega_k what the element of order k makes
  /// of it; 0: steps of one length. Without viscosity the schemes are stable up to stable_cfl(). From rest velocities
  /// on sides, tractions and the force say how long a step may be.
  double cfl = 0.0;
  /// The flow is steady once a step changes the velocity by less than this, relative and per unit of time (StepReport::
  /// change); 0: nobody asks.
  double steady = 0.0;
  /// Volumes that flow through a section of the domain normal to each direction, per unit of time: 1 / L_a integral
  /// u_a, L_a the length of the box; in 2D per unit of depth. Periodic directions alone have them, in others they are
  /// 0. A force that is constant in space holds them, at every step to rounding, and in the initial velocity.
  std::optional<Point> flow_rate{};
  /// The velocity at t = 0, which is made divergence-free: projected, not interpolated.
  VectorField initial{};
  /// Averages are taken from this time on; nullopt: none.
  std::optional<double> average_start{};
  /// They take the flow of one step whenever so much time has passed since the last that they have, or since the start;
  /// 0: of every step.
  double average_every = 0.0;
};

/// The largest C (TimeOptions::cfl) with which a scheme is stable for order k where there is no viscosity; 0: none, or
/// none that is known.
double stable_cfl(TimeScheme scheme, int order);
/// What TimeOptions::cfl is where a case asks for neither step nor cfl: 0.5 for sbdf3, otherwise 0.8 of stable_cfl().
double default_cfl(TimeScheme scheme, int order);

/// \throws InputError if options are out of range, or do not go with the problem.
void validate(const Problem& problem, const TimeOptions& time);

/// What a flow in time would need, as that of solve() is.
Estimate estimate(const Problem& problem, const TimeOptions& time, const SolverOptions& options = {});

/// What a step did.
struct StepReport {
  int number = 0;         ///< from 1
  double time = 0.0;      ///< that was reached
  double length = 0.0;    ///< dt
  double cfl = 0.0;       ///< dt omega_k R of the velocity that was reached
  int cycles = 0;         ///< of multigrid
  double residual = 0.0;  ///< relative to that of the guess
  /// |u - u_before| / (dt |u|) in L2, where TimeOptions::steady asks for it; of a flow at rest whose data depend on the
  /// time nothing is said.
  std::optional<double> change{};
  /// What holds TimeOptions::flow_rate: the pressure falls by so much per unit of length, beside the one that solutions
  /// have; the force (per volume) that drives the flow.
  /// With Runge-Kutta schemes the mean over the step.
  Point gradient{};
};

/// Thrown by a step that does not succeed: the solve misses its tolerance, the flow is not finite, or its energy grows
/// by itself. The message says which step, and what was seen.
struct StepFailed : Error {
  StepFailed(const std::string& what, int last_sound_step) : Error(what), sound(last_sound_step) {}
  int sound;  ///< the last step before something went wrong, which may have begun before the step that failed
};

/// A flow, step by step. Each step is a solve of the scheme
///
///     c_0 M u + nu A u + B^T p = f(t) - sum_i>=1 [ c_i M u_i + w_i C(u_i) ],   B u = 0,
///
/// with the derivative c and the extrapolation w through the last steps, of any lengths; or a few of these, with c and
/// w through the beginning of the step and the stages before. Solves begin with the extrapolated flow: cycles until a
/// hundredth of the guess's residual is left, one at least. Where coefficients vary by cell the first cycle is followed
/// by GMRES. Velocities are divergence-free to rounding at every step. The first steps of multistep schemes are short,
/// and become longer by the factor 1.3, or 2^(1/4) where they follow the flow.
class TimeStepper {
 public:
  /// Method and rtol of the options play no part. Several ranks may share the flow. \throws InputError, ResourceError
  /// as solve().
  TimeStepper(const Problem& problem, const TimeOptions& time, const SolverOptions& options = {});
  /// Goes on from a checkpoint, which every rank has: with the same problem, options, build, threads and ranks to the
  /// same bits as if it had never stopped, with others to rounding. `initial` plays no part. \throws InputError if it
  /// is of another domain, or has no states.
  TimeStepper(const Problem& problem, const TimeOptions& time, const SolverOptions& options, const Checkpoint& from);
  TimeStepper(TimeStepper&&) noexcept;
  TimeStepper& operator=(TimeStepper&&) noexcept;
  TimeStepper(const TimeStepper&) = delete;
  TimeStepper& operator=(const TimeStepper&) = delete;
  ~TimeStepper();

  // Data that others compute, in a program that couples the flow to something else: numbers, expressions, in the time
  // too, functions, or arrays (field_of() in arrays.hpp), from now on. Multistep schemes take the force, tractions and
  // velocities on sides at the end of a step: data of that time, which next_step() tells before, keep their order. With
  // data from the beginning of a step, or with Runge-Kutta schemes, whose stages have all the same, the flow follows
  // them to first order. Solution::forces() takes those that there are when the solution is asked for: before others
  // are set for the next step. Of several ranks all call these, with the same data.

  /// Another force.
  void set_force(const VectorField& force);
  /// Other velocities, or on an outflow side another traction, on a side of Boundary::sides; regions of the side keep
  /// theirs. \throws InputError if there is no such side, or nothing to prescribe there. Velocities that do not
  /// balance, where they must, are an InputError of the next step.
  void set_boundary(int side, const VectorField& data);
  /// Another alpha, or another viscosity: a number, or a field where coefficients vary by cell, as
  /// LinearSystem::set_reaction() and set_viscosity() take them. \throws InputError as these; nothing is changed then.
  void set_reaction(const ScalarField& mass);
  void set_viscosity(const ScalarField& viscosity);
  /// How long the next step is to be. \throws InputError if nothing limits it.
  [[nodiscard]] double next_step() const;

  /// One step. \throws StepFailed if it does not succeed; InputError if nothing limits its length, as of a flow that is
  /// at rest for ever, where data are not finite, or as long as data of a checkpoint (Checkpoint::set) have not been
  /// set again. The state is that before it then.
  StepReport step();
  /// Steps until a time is reached or passed, or the flow is steady.
  void advance(double time);
  /// Whether the last step has changed the velocity by less than TimeOptions::steady, if that is asked for.
  [[nodiscard]] bool steady() const;

  [[nodiscard]] double time() const;
  [[nodiscard]] int steps() const;
  [[nodiscard]] std::int64_t dofs() const;
  /// What is known but for times and errors: sizes, device, ranks, memory, steps. Of several ranks all call this.
  [[nodiscard]] Report report() const;
  /// The flow at time() as a whole, without a copy of it to the host unless coefficients vary by cell. Of several ranks
  /// all call this.
  [[nodiscard]] FlowSummary summary() const;
  /// The flow at time(). There is no pressure before the first step. With Runge-Kutta schemes it is that of the last
  /// three steps' means, so that it is of first and second order after the first two steps. Of several ranks all call
  /// this, and the next.
  [[nodiscard]] Solution solution() const;
  /// The flow at a time between the last steps, interpolated with the order of the scheme. \throws InputError for a
  /// time that is not there.
  [[nodiscard]] Solution solution(double time) const;
  /// What solution() has at places, by copies of the cells there alone: values at points, outside of the domain NaN,
  /// the flux through a plane, and forces, which a GPU integrates itself unless the viscosity is given at Gauss points.
  /// Of several ranks all call these.
  [[nodiscard]] std::vector<Point> velocity(std::span<const Point> points) const;
  [[nodiscard]] std::vector<double> pressure(std::span<const Point> points) const;
  [[nodiscard]] double flux(int axis, double position) const;
  /// \throws InputError before the first step.
  [[nodiscard]] std::vector<BoundaryForce> forces(const Point& about = {}) const;
  [[nodiscard]] bool has_forces() const;  ///< whether there was one
  /// velocity_at() and face_fluxes() of arrays.hpp for the flow at time(). A GPU makes them, unless cells are sheared
  /// or shared by ranks; only they are copied to the host then, not the flow.
  [[nodiscard]] std::vector<double> velocity_at(int points = 1) const;
  [[nodiscard]] std::array<std::vector<double>, 3> face_fluxes() const;
  /// The same to arrays in the memory of the device: on processors to that of the host. Nothing is copied on a GPU,
  /// unless cells are sheared or shared by ranks.
  void velocity_at(int points, double* values) const;
  void face_fluxes(const std::array<double*, 3>& fluxes) const;
  /// Whether that is the memory of a GPU.
  [[nodiscard]] bool on_gpu() const;
  /// Averages from TimeOptions::average_start to time(), or to the last flow that counts, or nothing as long as none
  /// does. Those of a checkpoint go on from when they began; a checkpoint without has them begin at its time at the
  /// earliest. Of several ranks each has its part.
  [[nodiscard]] std::optional<Averages> averages() const;
  /// What a TimeStepper goes on from. Of several ranks all call this, and the first one gets it.
  [[nodiscard]] std::optional<Checkpoint> checkpoint() const;

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

}  // namespace solenoid
