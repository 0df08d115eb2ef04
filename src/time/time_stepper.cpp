#include "solenoid/time_stepper.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/host_vector.hpp"
#include "engine/engine.hpp"
#include "problem/regions.hpp"
#include "problem/validate.hpp"
#include "solenoid/error.hpp"
#include "solution/transfer.hpp"
#include "solver/boundary_hats.hpp"
#include "solver/description.hpp"
#include "solver/discretisation.hpp"
#include "solver/estimate.hpp"
#include "solver/kept_tables.hpp"
#include "solver/mass_matrix.hpp"
#include "solver/methods.hpp"
#include "time/driving.hpp"
#include "time/energy_alarm.hpp"
#include "time/flow_rate.hpp"
#include "time/scheme.hpp"
#include "time/step_control.hpp"

namespace solenoid {
namespace {

/// What the discretisation is of at first: the projection of the initial velocity, with alpha = 1 and a viscosity that
/// is lost in rounding.
Problem projection_of(Problem problem) {
  double h = std::numeric_limits<double>::infinity();
  for (int a = 0; a < problem.mesh.dim; ++a) {
    h = std::min(h, (problem.mesh.upper[a] - problem.mesh.lower[a]) / (problem.mesh.cells[a] << problem.mesh.refine));
  }
  problem.viscosity = 1e-14 * h * h;
  problem.mass = 1.0;
  problem.convection = false;
  return problem;
}

SolverOptions for_steps(SolverOptions options) {
  options.method = Method::vcycle;
  options.random_load = 0;
  options.exact = {};
  return options;
}

/// \throws InputError, ResourceError
const TimeOptions& checked(const Problem& problem, const TimeOptions& time, const SolverOptions& options) {
  validate(problem, time);
  require_memory(estimate(problem, time, options));
  return time;
}

/// The last flows that a scheme wants, and the one to come.
int states_of(TimeScheme scheme) {
  const SchemeLengths wanted = lengths_of(scheme);
  return std::max(wanted.derivative, wanted.extrapolation) + 1;
}

std::vector<double> first(std::vector<double> values, int count) {
  values.resize(std::min<std::size_t>(count, values.size()));
  return values;
}

/// A flow at a time: coefficients with those of all sides, and what is explicit of it, C(u).
struct State {
  double time = 0.0;
  double length = 0.0;  ///< of the step that led to it
  double size = 0.0;    ///< L2 norm of the velocity
  Vector<double> flow{};
  Vector<double> convection{};
  Point gradient{};  ///< that holds the flow rate
};

/// The problem with a force that is constant in space, too.
Problem with_force(Problem problem, const Point& more) {
  for (int a = 0; a < problem.mesh.dim; ++a) {
    if (more[a] == 0.0) continue;
    const ScalarField before = problem.force[a];
    if (const auto constant = before.constant()) {
      problem.force[a] = *constant + more[a];
      continue;
    }
    const auto sum = [before, add = more[a]](std::span<const Point> points, std::span<double> values) {
      before.evaluate(points, values);
      for (double& value : values) value += add;
    };
    problem.force[a] = ScalarField(sum, before.label());
  }
  return problem;
}

}  // namespace

struct TimeStepper::Data {
  static constexpr double from_nothing = 1e-8;  // of the load is left, where there is no guess

  Problem problem;
  TimeOptions time;
  SolverOptions options;
  StepControl control;
  std::unique_ptr<Engine> engine;
  Discretisation discretisation;
  std::unique_ptr<LinearSolver> solver;
  KeptTables kept;
  std::unique_ptr<Kernels<double>> with_sides;  // kernels of vectors with the hats of all sides
  BoundaryHats hats;
  MassMatrix mass;
  std::unique_ptr<Convection> convection;  // or nullptr
  std::optional<FlowRate> flow_rate;
  bool changes_data;  // force or boundary data depend on the time
  // At the time of the last step: boundary velocities, and what they bring into the convective term.
  SparseOnDevice lift;
  SparseOnDevice inflow;
  Point prescribed{};  // flow_of_sides(), where a flow rate is held
  bool has_lift = false;
  std::vector<State> states;  // the last one first; one more than the scheme wants
  int known = 1;              // of these
  Vector<double> load;        // of force and boundary data, with the coefficients and at the time of the last step
  bool load_is_current = false;
  Vector<double> b;
  Vector<double> work;
  int number = 0;
  EnergyAlarm alarm;
  double rate = 0.0;
  std::optional<double> change;  // StepReport::change

  /// `from`: what to go on from, or nullptr.
  Data(const Problem& problem_, const TimeOptions& time_, const SolverOptions& options_, const Checkpoint* from)
      : problem(problem_),
        time(checked(problem, time_, options_)),
        options(for_steps(options_)),
        control(time, problem.order),
        engine(make_engine(options.device, options.threads, options.communicator, options.transport)),
        discretisation(projection_of(problem), options, engine->dense_limits()),
        solver(make_solver(*engine, discretisation.hierarchy(), options)),
        with_sides(make_kernels<double>(*engine, all(), options.multigrid.local_solver)),
        hats(*engine, all(), discretisation.finest()),
        mass(*engine, all(), options.multigrid.local_solver),
        changes_data(parameters_of(problem).contains("t")),
        load(vector()),
        b(vector()),
        work(vector()) {
    solver->reserve();
    if (problem.convection) convection = engine->make_convection(all(), ConvectiveFlux::upwind);
    for (int i = 0; i < states_of(time.scheme); ++i) {
      states.push_back({.flow = vector(), .convection = problem.convection ? vector() : Vector<double>()});
    }
    if (time.flow_rate) flow_rate.emplace(*engine, problem, *time.flow_rate, all(), *with_sides, hats);
    if (from == nullptr) {
      project_initial();
    } else {
      go_on(*from);
    }
    alarm.after(number, energy_of(states.front()), [] { return 0.0; });
  }

  [[nodiscard]] const Level& all() const { return discretisation.level_with_sides(); }
  [[nodiscard]] Vector<double> vector() const { return {*engine, discretisation.room()}; }
  Kernels<double>& kernels() { return solver->outer(); }

  void set_time(double t) {
    if (changes_data) discretisation.set_parameters({{"t", t}});
  }

  void set_coefficients(const Coefficients& now) {
    if (now == coefficients_of(discretisation.problem())) return;
    kept.change(discretisation, solver->preconditioner(), now);
    load_is_current = false;
  }

  /// x from x and the load. From a guess that is a flow already, to a part of its residual; otherwise to a part of the
  /// load.
  Convergence solve(bool from_guess, double rtol, const Vector<double>& load, Vector<double>& x) {
    Convergence convergence;
    convergence.from_guess = from_guess;
    convergence.rtol = rtol;
    convergence.max_iterations = 50;
    solver->run(load.data(), x.data(), false, convergence);
    kernels().project(x.data());
    return convergence;
  }

  /// The integral of the velocity that sides prescribe, `lift`.
  Point flow_of_sides() {
    if (!discretisation.lifted()) return {};
    with_sides->zero(work.data());
    lift.add_to(*with_sides, work.data());
    with_sides->bring_ghosts(all(), work.data());
    return discretisation.integrals(*engine, work).velocity;
  }

  /// What of a flow is missing, by the gradient that is added to that of the state.
  void hold_flow_rate(State& state) {
    const auto response = [this](Vector<double>& load, Vector<double>& x) {
      const Convergence convergence = solve(false, from_nothing, load, x);
      if (convergence.converged) return;
      throw StepFailed(fmt::format("step {}: the flow rate cannot be held: {} after {} cycles", number + 1,
                                   convergence.reason, convergence.iterations),
                       number);
    };
    const Point more =
        flow_rate->correct(coefficients_of(discretisation.problem()), response, prescribed, b, state.flow.data());
    for (int a = 0; a < 3; ++a) state.gradient[a] += more[a];
  }

  /// The flow of a state, a vector of the solver so far, becomes that at the time that the discretisation has. Returns
  /// the rate at which it crosses cells. `is_new`: it does not have the flow rate yet.
  double complete(State& state, double t, double length, bool is_new) {
    state.time = t;
    state.length = length;
    if (changes_data || !has_lift) {
      lift = {*engine, discretisation.lift()};
      if (convection != nullptr) inflow = {*engine, assemble_inflow(discretisation.problem(), all())};
      if (flow_rate) prescribed = flow_of_sides();
      has_lift = true;
    }
    hats.to_all(*with_sides, state.flow.data());
    lift.add_to(*with_sides, state.flow.data());
    with_sides->bring_ghosts(all(), state.flow.data());
    if (flow_rate && is_new) hold_flow_rate(state);
    state.size = with_sides->l2_norm(state.flow.data());
    if (convection == nullptr) return 0.0;
    const double crossing = convection->apply(state.flow.data(), state.convection.data());
    inflow.add_to(*with_sides, state.convection.data());
    return crossing;
  }

  void project_initial() {
    set_time(0.0);
    discretisation.projection_load(*engine, kernels(), time.initial, work, b);
    const Convergence convergence = solve(false, 1e-12, b, states.front().flow);
    if (!convergence.converged) {
      throw StepFailed(fmt::format("the initial velocity cannot be made divergence-free: {} after {} cycles",
                                   convergence.reason, convergence.iterations),
                       0);
    }
    rate = complete(states.front(), 0.0, 0.0, true);
    clear_pressure(*engine, *with_sides, all(), states.front().flow.data());  // it is a multiplier
    states.front().gradient = {};                                             // as is this
  }

  /// The states are made as the steps made them, so that they are the same to the last bit.
  void go_on(const Checkpoint& from) {
    if (from.states.empty()) throw InputError("the checkpoint has no states to go on from");
    known = static_cast<int>(std::min(from.states.size(), states.size()));
    for (int i = known - 1; i >= 0; --i) {
      const Checkpoint::State& state = from.states[i];
      set_time(state.time);
      const HostVector unknowns = unknowns_on(state.flow, discretisation.finest().grid, problem.order, "checkpoint");
      engine->upload(unknowns.data(), states[i].flow.data(), unknowns.size() * sizeof(double));
      rate = complete(states[i], state.time, state.length, false);
      states[i].gradient = state.gradient;
    }
    number = from.steps;
    change = last_change();
  }

  /// Times of the known states.
  [[nodiscard]] std::vector<double> times() const {
    std::vector<double> result;
    for (int i = 0; i < known; ++i) result.push_back(states[i].time);
    return result;
  }
  /// The same, less that of a step of dt: sums of lengths, so that steps of one length have the same coefficients to
  /// the last bit.
  [[nodiscard]] std::vector<double> times_before(double dt) const {
    std::vector<double> result{-dt};
    for (int i = 0; i + 1 < known; ++i) result.push_back(result.back() - states[i].length);
    return result;
  }
  /// The flow sum_i factors[i] u_i, over the last states.
  void combine(const std::vector<double>& factors, Vector<double>& sum) {
    with_sides->zero(sum.data());
    const auto flows = last_flows(factors.size());
    with_sides->axpys(static_cast<int>(factors.size()), factors.data(), flows.data(), 1.0, sum.data());
  }
  [[nodiscard]] std::vector<const double*> last_flows(std::size_t count) const {
    std::vector<const double*> flows;
    for (std::size_t i = 0; i < count; ++i) flows.push_back(states[i].flow.data());
    return flows;
  }

  [[nodiscard]] std::optional<double> last_change() {
    if (time.steady == 0.0 || known < 2) return {};
    const double size = states[0].size;
    if (size == 0.0 && changes_data) return {};
    combine({1.0, -1.0}, work);
    const double difference = with_sides->l2_norm(work.data());
    return difference == 0.0 ? 0.0 : difference / (states[0].length * size);
  }

  [[nodiscard]] Point combined_gradient(const std::vector<double>& factors) const {
    Point sum{};
    for (std::size_t i = 0; i < factors.size(); ++i) {
      for (int a = 0; a < 3; ++a) sum[a] += factors[i] * states[i].gradient[a];
    }
    return sum;
  }

  void make_load(double t) {
    if (load_is_current && !changes_data) return;
    set_time(t);
    discretisation.load(*engine, kernels(), work, load);
    hats.to_all(*with_sides, load.data());
    load_is_current = true;
  }

  /// At the beginning, and from rest, data say how long a step may be.
  [[nodiscard]] double longest_from_rest() const {
    const State& last = states.front();
    if (!control.follows_flow() || convection == nullptr || (last.length > 0.0 && rate > 0.0)) {
      return StepControl::unlimited;
    }
    return Driving(problem).longest_step(last.time, control.reach());
  }

  static double energy_of(const State& state) { return 0.5 * state.size * state.size; }

  /// Of the flow that a step of dt has come to, which is the last state yet.
  std::optional<EnergyAlarm::Growth> unexplained_growth(const StepCoefficients& scheme, double dt) {
    if (convection == nullptr) return {};
    const State& next = states.back();
    return alarm.after(number + 1, energy_of(next), [&] {
      std::vector<const double*> parts{next.convection.data()};
      for (std::size_t i = 0; i < scheme.extrapolation.size(); ++i) parts.push_back(states[i].convection.data());
      std::vector<double> powers(parts.size());
      with_sides->dots(static_cast<int>(parts.size()), parts.data(), next.flow.data(), powers.data());
      double power = powers[0];
      for (std::size_t i = 1; i < powers.size(); ++i) power -= scheme.extrapolation[i - 1] * powers[i];
      return power * dt;
    });
  }

  StepReport step() {
    const double dt = control.next(states.front().length, rate, longest_from_rest());
    const double t = states.front().time + dt;
    const std::vector<double> before = times_before(dt);
    const StepCoefficients scheme = step_coefficients(time.scheme, 0.0, before);
    set_coefficients({problem.viscosity, problem.mass + scheme.derivative[0]});
    make_load(t);

    // What is known of the derivative; and the guess, which takes the place of the oldest state.
    known = std::min(known, static_cast<int>(states.size()) - 1);  // also if this fails
    State& next = states.back();
    std::vector<double> history(scheme.derivative.begin() + 1, scheme.derivative.end());
    for (double& c : history) c = -c;
    std::vector<double> guess = interpolation_weights(0.0, first(before, lengths_of(time.scheme).derivative));
    const std::size_t count = std::max(history.size(), guess.size());
    history.resize(count);
    guess.resize(count);
    with_sides->two_sums(static_cast<int>(count), last_flows(count).data(), history.data(), work.data(), guess.data(),
                         next.flow.data());
    hats.to_some(*with_sides, next.flow.data());

    // b = load - sum_i c_i M u_i - sum_i w_i C_i
    mass.apply(work.data(), b.data());
    std::vector<double> factors{1.0};
    std::vector<const double*> explicit_parts{load.data()};
    for (std::size_t i = 0; convection != nullptr && i < scheme.extrapolation.size(); ++i) {
      factors.push_back(-scheme.extrapolation[i]);
      explicit_parts.push_back(states[i].convection.data());
    }
    with_sides->axpys(static_cast<int>(factors.size()), factors.data(), explicit_parts.data(), 1.0, b.data());

    // The first steps have no pressure to begin with, and no gradient.
    const bool has_guess = number >= lengths_of(time.scheme).derivative;
    next.gradient = has_guess ? combined_gradient(guess) : Point{};
    if (flow_rate) flow_rate->add_load(next.gradient, b.data());
    hats.to_some(*with_sides, b.data());
    const Convergence convergence =
        has_guess ? solve(true, 0.01, b, next.flow) : solve(false, from_nothing, b, next.flow);
    const auto fail = [&](const std::string& what, int sound) {
      throw StepFailed(fmt::format("step {} to t = {:g} by {:g}: {}", number + 1, t, dt, what), sound);
    };
    if (!convergence.converged) {
      fail(
          fmt::format("the solve misses its tolerance: {} after {} cycles", convergence.reason, convergence.iterations),
          number);
    }
    const double crossing = complete(next, t, dt, true);
    if (!std::isfinite(next.size) || !std::isfinite(crossing)) fail("the flow is not finite", number);
    if (const auto growth = unexplained_growth(scheme, dt)) {
      fail(fmt::format("the kinetic energy has grown from {:.3g} after step {} to {:.3g}, {:.0f} % of it from the "
                       "extrapolation of convection and not from forces and sides: the step is too long, with C = "
                       "{:.2g}; give a shorter one, or `cfl`",
                       growth->before, growth->step, energy_of(next),
                       100.0 * growth->made / (energy_of(next) - growth->before), control.cfl(dt, crossing)),
           growth->step);
    }
    rate = crossing;
    std::rotate(states.begin(), states.end() - 1, states.end());
    ++known;
    ++number;
    change = last_change();
    return {number,
            t,
            dt,
            control.cfl(dt, rate),
            convergence.iterations,
            convergence.history.back(),
            change,
            states.front().gradient};
  }
};

Estimate estimate(const Problem& problem, const TimeOptions& time, const SolverOptions& options) {
  Problem linear = problem;
  linear.convection = false;
  // The solve has b and x, one of the states. Here are the load and a combination of flows, places of pressures (a
  // quarter of a vector) and, with convection, what cells have of their upper hats (a quarter at most).
  // The flow rate has a load and a response for each direction.
  const std::size_t held = time.flow_rate ? periodic_directions(problem).size() : 0;
  const double vectors = 1.25 + 2.0 * static_cast<double>(held) +
                         states_of(time.scheme) * (problem.convection ? 2.0 : 1.0) + (problem.convection ? 0.25 : 0.0);
  return estimate(linear, for_steps(options), vectors);
}

void validate(const Problem& problem, const TimeOptions& time) {
  const auto fail = [](const char* entry, const std::string& what) { throw InvalidEntry(entry, what); };
  if (problem.equation != EquationKind::stokes) fail("equation", "only flows change in time");
  const auto check_range = [&](const char* entry, double value) {
    if (!(value >= 0.0) || !std::isfinite(value)) fail(entry, fmt::format("expected a number >= 0, got {}", value));
  };
  check_range("step", time.step);
  check_range("cfl", time.cfl);
  check_range("steady", time.steady);
  if (time.step == 0.0 && time.cfl == 0.0) fail("step", "expected a length of steps, or `cfl`");
  for (int a = 0; time.flow_rate && a < 3; ++a) {
    const double rate = (*time.flow_rate)[a];
    if (!std::isfinite(rate)) fail("flow_rate", fmt::format("expected finite numbers, got {}", rate));
    if (rate == 0.0 || (a < problem.mesh.dim && problem.boundary.sides[2 * a].kind == SideKind::periodic)) continue;
    fail("flow_rate", fmt::format("direction {} is not periodic: there sides say how much flows; expected 0, got {:g}",
                                  "xyz"[a], rate));
  }
  if (time.flow_rate && periodic_directions(problem).empty()) {
    fail("flow_rate", "no direction is periodic, so that sides say how much flows: leave it out");
  }
  if (!problem.convection && time.step == 0.0) {
    fail("cfl", "nothing limits the steps of a flow without convection: give `step`");
  }
}

TimeStepper::TimeStepper(const Problem& problem, const TimeOptions& time, const SolverOptions& options)
    : data_(std::make_unique<Data>(problem, time, options, nullptr)) {}
TimeStepper::TimeStepper(const Problem& problem, const TimeOptions& time, const SolverOptions& options,
                         const Checkpoint& from)
    : data_(std::make_unique<Data>(problem, time, options, &from)) {}
TimeStepper::TimeStepper(TimeStepper&&) noexcept = default;
TimeStepper& TimeStepper::operator=(TimeStepper&&) noexcept = default;
TimeStepper::~TimeStepper() = default;

StepReport TimeStepper::step() { return data_->step(); }

void TimeStepper::advance(double time) {
  // A time that rounding alone keeps from being reached is reached.
  while (this->time() < time - 1e-12 * std::abs(time) && !steady()) step();
}

bool TimeStepper::steady() const {
  const double wanted = data_->time.steady;
  return wanted > 0.0 && data_->change && *data_->change <= wanted;
}

double TimeStepper::time() const { return data_->states.front().time; }
int TimeStepper::steps() const { return data_->number; }
std::int64_t TimeStepper::dofs() const { return data_->discretisation.finest().dofs(); }

Report TimeStepper::report() const {
  Report report;
  describe(*data_->engine, data_->discretisation, data_->options, report);
  report.steps = steps();
  report.end_time = time();
  if (data_->time.steady > 0.0) {
    report.steady = steady();
    report.change = data_->change;
  }
  return report;
}

Solution TimeStepper::solution() const { return solution(time()); }

Solution TimeStepper::solution(double time) const {
  const std::vector<double> times = first(data_->times(), lengths_of(data_->time.scheme).derivative + 1);
  const double slack = 1e-12 * std::abs(time);
  if (time > times.front() + slack || time < times.back() - slack) {
    throw InputError(fmt::format("there is no flow at t = {:g}: the last steps went from {:g} to {:g}", time,
                                 times.back(), times.front()));
  }
  Problem problem = data_->problem;
  if (data_->changes_data) problem = with_parameters(problem, {{"t", time}});
  const bool is_last = std::abs(time - times.front()) <= slack;
  problem = with_force(std::move(problem), is_last ? data_->states.front().gradient
                                                   : data_->combined_gradient(interpolation_weights(time, times)));
  const auto through_last = [&](const std::vector<double>& weights) {
    data_->combine(weights, data_->work);
    return data_->discretisation.solution_of(problem, data_->work);
  };
  Solution flow = is_last ? data_->discretisation.solution_of(problem, data_->states.front().flow)
                          : through_last(interpolation_weights(time, times));
  if (times.size() > 1) {
    flow.set_acceleration(through_last(differentiation_weights(time, times)));
  } else {
    flow.set_acceleration({});
  }
  return flow;
}

std::optional<Checkpoint> TimeStepper::checkpoint() const {
  Checkpoint checkpoint{.steps = data_->number};
  for (int i = 0; i < data_->known; ++i) {
    const State& state = data_->states[i];
    auto flow = data_->discretisation.solution_of(data_->problem, state.flow).gathered();
    if (flow) checkpoint.states.push_back({state.time, state.length, std::move(*flow), state.gradient});
  }
  if (checkpoint.states.empty()) return {};
  return checkpoint;
}

}  // namespace solenoid
