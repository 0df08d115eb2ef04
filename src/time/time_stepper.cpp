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
#include "problem/validate.hpp"
#include "solenoid/error.hpp"
#include "solenoid/interrupt.hpp"
#include "solution/transfer.hpp"
#include "solver/boundary_hats.hpp"
#include "solver/description.hpp"
#include "solver/discretisation.hpp"
#include "solver/estimate.hpp"
#include "solver/kept_tables.hpp"
#include "solver/lift_operator.hpp"
#include "solver/mass_matrix.hpp"
#include "solver/methods.hpp"
#include "time/average_sums.hpp"
#include "time/runge_kutta.hpp"
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

/// The last flows that a scheme wants, for its steps or to interpolate between them, and the one to come.
int states_of(TimeScheme scheme) {
  if (!is_multistep(scheme)) return order_of(scheme) + 1;
  const SchemeLengths wanted = lengths_of(scheme);
  return std::max(wanted.derivative, wanted.extrapolation) + 1;
}
/// Of these have C(u): all, or the last one and the one to come.
int explicit_states_of(TimeScheme scheme) { return is_multistep(scheme) ? states_of(scheme) : 2; }

std::vector<double> first(std::vector<double> values, int count) {
  values.resize(std::min<std::size_t>(count, values.size()));
  return values;
}

/// What boundary velocities are in the right-hand side of an update (StepSolve).
struct UpdateLift {
  Level level;
  LiftOperator image;

  UpdateLift(Engine& engine, const Level& all, const Level& some, const Coefficients& coefficients,
             LocalSolverKind local)
      : level(all.equation, coefficients, Grid(all.grid)), image(engine, level, some, local) {}
};

/// A flow at a time: coefficients with those of all sides, and what is explicit of it, C(u). Its pressure is that of
/// the time with multistep schemes, with Runge-Kutta schemes the mean over the step.
struct State {
  double time = 0.0;
  double length = 0.0;  ///< of the step that led to it
  Vector<double> flow;
  Vector<double> convection;
};

}  // namespace

struct TimeStepper::Data {
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
  bool changes_data;                       // force or boundary data depend on the time
  // At the time of the last solve: boundary velocities, and what they bring into the convective term.
  SparseOnDevice lift;
  SparseOnDevice inflow;
  bool has_lift = false;
  std::vector<State> states;             // the last one first; one more than the scheme wants
  int known = 1;                         // of these
  std::vector<State> stages;             // of a step, but for the last
  std::optional<PressurePart> pressure;  // where that of states is a mean
  std::unique_ptr<UpdateLift> lift_of_update;
  Vector<double> load;                  // of force and boundary data, at the time of the last solve that has them,
  std::optional<Coefficients> load_of;  // with these coefficients
  Vector<double> b;
  Vector<double> work;
  int number = 0;
  double rate = 0.0;
  std::optional<AverageSums> averages;

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
    const auto add_states = [&](std::vector<State>& where, int count, int with_convection) {
      for (int i = 0; i < count; ++i) {
        const bool is_explicit = problem.convection && i < with_convection;
        where.push_back({0.0, 0.0, vector(), is_explicit ? vector() : Vector<double>()});
      }
    };
    add_states(states, states_of(time.scheme), explicit_states_of(time.scheme));
    add_states(stages, number_of_solves(time.scheme) - 1, number_of_solves(time.scheme) - 1);
    if (!is_multistep(time.scheme)) pressure.emplace(*engine, all());
    if (from == nullptr) {
      project_initial();
    } else {
      go_on(*from);
    }
    if (time.average_start) begin_averages(from != nullptr && from->averages ? &*from->averages : nullptr);
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
  }

  /// x from x and b. From a guess that is a flow already, to a part of its residual by so many cycles at least;
  /// otherwise to a part of b.
  Convergence solve(bool from_guess, double rtol, Vector<double>& x, int least_cycles = 1) {
    Convergence convergence;
    convergence.from_guess = from_guess;
    convergence.min_iterations = from_guess ? least_cycles : 0;
    convergence.rtol = rtol;
    convergence.max_iterations = 50;
    solver->run(b.data(), x.data(), false, convergence);
    kernels().project(x.data());
    return convergence;
  }

  /// The flow of a state, a vector of the solver so far, becomes that at the time that the discretisation has. Returns
  /// the rate at which it crosses cells.
  double complete(State& state, double t, double length) {
    state.time = t;
    state.length = length;
    if (changes_data || !has_lift) {
      lift = {*engine, discretisation.lift()};
      if (convection != nullptr) inflow = {*engine, assemble_inflow(discretisation.problem(), all())};
      has_lift = true;
    }
    hats.to_all(*with_sides, state.flow.data());
    lift.add_to(*with_sides, state.flow.data());
    with_sides->bring_ghosts(all(), state.flow.data());
    if (state.convection.size() == 0) return 0.0;
    const double crossing = convection->apply(state.flow.data(), state.convection.data());
    inflow.add_to(*with_sides, state.convection.data());
    return crossing;
  }

  void project_initial() {
    set_time(0.0);
    discretisation.projection_load(*engine, kernels(), time.initial, work, b);
    const Convergence convergence = solve(false, 1e-12, states.front().flow);
    if (!convergence.converged) {
      throw Error(fmt::format("the initial velocity cannot be made divergence-free: {} after {} cycles",
                              convergence.reason, convergence.iterations));
    }
    rate = complete(states.front(), 0.0, 0.0);
    clear_pressure(*engine, *with_sides, all(), states.front().flow.data());  // it is a multiplier
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
      rate = complete(states[i], state.time, state.length);
    }
    number = from.steps;
  }

  /// `from`: what to go on with, or nullptr.
  void begin_averages(const Averages* from) {
    if (from != nullptr) {
      averages.emplace(problem, discretisation.grid_with_sides(), *from);
    } else {
      averages.emplace(problem, discretisation.grid_with_sides(), std::max(*time.average_start, states.front().time));
    }
  }

  /// The last step, or what of it comes after the start, by the flow in the middle.
  void average() {
    const double end = states.front().time;
    const double begin = std::max(states[1].time, averages->start());
    if (begin >= end) return;
    const Interruptible whole([] { return false; });
    std::vector<double> through = first(times(), order_of(time.scheme) + 1);
    // The beginning has no pressure; where those are means, none is taken from there.
    if (!pressure && states[through.size() - 1].length == 0.0) through.pop_back();
    interpolate(0.5 * (begin + end), through, work, b);
    averages->add(discretisation.downloaded(work), end - begin);
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
  /// What a solve of a step knows, the last one first: the stages that are solved, then flows at the ends of steps.
  [[nodiscard]] std::vector<const State*> known_states(int solved) const {
    std::vector<const State*> result;
    for (int i = solved - 1; i >= 0; --i) result.push_back(&stages[i]);
    for (int i = 0; i < known; ++i) result.push_back(&states[i]);
    return result;
  }
  /// Flows of so many of these.
  [[nodiscard]] std::vector<const double*> flows(std::size_t count, int solved = 0) const {
    std::vector<const double*> result;
    for (const State* state : known_states(solved)) result.push_back(state->flow.data());
    result.resize(count);
    return result;
  }
  /// The flow sum_i factors[i] u_i, over flows().
  void combine(const std::vector<double>& factors, Vector<double>& sum, int solved = 0) {
    with_sides->zero(sum.data());
    with_sides->axpys(static_cast<int>(factors.size()), factors.data(), flows(factors.size(), solved).data(), 1.0,
                      sum.data());
  }
  /// Weights at a time of the pressures of the last states, which are means over their steps, the last of which ended
  /// at `last`.
  [[nodiscard]] std::vector<double> pressure_weights(double now, double last) const {
    std::vector<double> ends{last};
    for (int i = 0; i < std::min(known, order_of(time.scheme)) && states[i].length > 0.0; ++i) {
      ends.push_back(ends.back() - states[i].length);
    }
    return mean_interpolation_weights(now, ends);
  }
  /// sum = the flow of the polynomials through the last states, whose times are these. Overwrites `spare`.
  void interpolate(double now, const std::vector<double>& times, Vector<double>& sum, Vector<double>& spare) {
    combine(interpolation_weights(now, times), sum);
    if (!pressure) return;
    combine(pressure_weights(now, times.front()), spare);
    pressure->copy(*with_sides, spare.data(), sum.data());
  }

  void make_load(double t) {
    const Coefficients now = coefficients_of(discretisation.problem());
    if (load_of == now && !changes_data) return;
    load_of.reset();
    set_time(t);
    discretisation.load(*engine, kernels(), work, load);
    hats.to_all(*with_sides, load.data());
    load_of = now;
  }

  /// The pressure that a solve begins with, where those of states are means: at its time; or the multiplier of an
  /// update, what the mean over the step will be less what stages have of it, times dt.
  void guess_pressure(const StepSolve& what, double dt, Vector<double>& flow) {
    if (what.is_update) {
      const std::vector<double>& of_stages = tableau_of(time.scheme).implicit_weights;
      std::vector<double> weights(of_stages.rbegin(), of_stages.rend());
      for (double& weight : weights) weight *= -dt;
      for (const double weight : pressure_weights(-0.5 * dt, -dt)) weights.push_back(dt * weight);
      combine(weights, work, static_cast<int>(stages.size()));
    } else {
      combine(pressure_weights(what.from_end, -dt), work);
    }
    pressure->copy(*with_sides, work.data(), flow.data());
  }

  /// A flow of the step that ends at time `end`, from the stages that are solved and the ends of steps, whose times are
  /// `before`, counted from that end. `cycles`: what a stage before took, or 0. The residuals that stages leave enter
  /// the end of the step as their forces do: what they have in common, as guesses lack the same, cancels if all take
  /// as many cycles.
  Convergence solve_for(State& next, const StepSolve& what, int solved, const std::vector<double>& before, double end,
                        int cycles) {
    const double t = end + what.from_end;
    if (what.is_update) {
      set_coefficients(coefficients_of(projection_of(problem)));
      set_time(t);
    } else {
      set_coefficients({problem.viscosity, problem.mass + what.coefficients.derivative[0]});
      make_load(t);
    }

    // What is known of the derivative; and the guess, from the ends of steps.
    std::vector<double> history(what.coefficients.derivative.begin() + 1, what.coefficients.derivative.end());
    for (double& c : history) c = -c;
    std::vector<double> guess(solved, 0.0);
    const std::vector<double> of_ends = interpolation_weights(what.from_end, first(before, order_of(time.scheme)));
    guess.insert(guess.end(), of_ends.begin(), of_ends.end());
    const std::size_t count = std::max(history.size(), guess.size());
    history.resize(count);
    guess.resize(count);
    with_sides->two_sums(static_cast<int>(count), flows(count, solved).data(), history.data(), work.data(),
                         guess.data(), next.flow.data());

    // b = load - sum_i c_i M u_i - sum_i w_i C_i
    mass.apply(work.data(), b.data());
    const std::vector<const State*> explicit_states = known_states(solved);
    const std::vector<double>& extrapolation = what.coefficients.extrapolation;
    std::vector<double> factors;
    std::vector<const double*> explicit_parts;
    const auto add_part = [&](double factor, const Vector<double>& part) {
      factors.push_back(factor);
      explicit_parts.push_back(part.data());
    };
    if (!what.is_update) add_part(1.0, load);
    for (std::size_t i = 0; convection != nullptr && i < extrapolation.size(); ++i) {
      add_part(-extrapolation[i], explicit_states[i]->convection);
    }
    with_sides->axpys(static_cast<int>(factors.size()), factors.data(), explicit_parts.data(), 1.0, b.data());
    hats.to_some(*with_sides, b.data());
    if (what.is_update && discretisation.lifted()) {
      if (lift_of_update == nullptr) {
        lift_of_update =
            std::make_unique<UpdateLift>(*engine, all(), discretisation.finest(),
                                         coefficients_of(discretisation.problem()), options.multigrid.local_solver);
      }
      lift_of_update->image.apply(discretisation.lift(), work.data(), next.flow.data());
      kernels().axpy(-1.0, next.flow.data(), b.data());
      combine(guess, next.flow, solved);
    }
    if (pressure) guess_pressure(what, -before.front(), next.flow);
    hats.to_some(*with_sides, next.flow.data());

    // The first steps have no pressure to begin with.
    Convergence convergence;
    if (number < order_of(time.scheme)) {
      convergence = solve(false, 1e-8, next.flow);
    } else if (cycles == 0 || what.is_update) {
      convergence = solve(true, 0.01, next.flow);
    } else {
      convergence = solve(true, 0.1, next.flow, cycles);
    }
    if (!convergence.converged) {
      throw Error(fmt::format("step {} from t = {:g} by {:g}: {} after {} cycles", number + 1, states.front().time,
                              -before.front(), convergence.reason, convergence.iterations));
    }
    return convergence;
  }

  /// The pressure of the flow to come becomes the mean over the step, of those of all its solves.
  void take_mean_pressure(double dt) {
    std::vector<const double*> solved;
    for (const State& stage : stages) solved.push_back(stage.flow.data());
    State& next = states.back();
    solved.push_back(next.flow.data());
    const std::vector<double> weights = mean_pressure_weights(tableau_of(time.scheme), dt);
    with_sides->zero(work.data());
    with_sides->axpys(static_cast<int>(weights.size()), weights.data(), solved.data(), 1.0, work.data());
    pressure->copy(*with_sides, work.data(), next.flow.data());
  }

  StepReport step() {
    const double dt = control.next(states.front().length, rate);
    const double t = states.front().time + dt;
    const std::vector<double> before = times_before(dt);
    const std::vector<StepSolve> solves = solves_of(time.scheme, before);
    known = std::min(known, static_cast<int>(states.size()) - 1);  // the oldest one gives way, also if this fails
    StepReport report{number + 1, t, dt};
    double crossing = 0.0;
    int of_stage = 0;
    for (std::size_t i = 0; i < solves.size(); ++i) {
      const bool is_last = i + 1 == solves.size();
      State& next = is_last ? states.back() : stages[i];
      const Convergence convergence = solve_for(next, solves[i], static_cast<int>(i), before, t, of_stage);
      of_stage = convergence.iterations;
      report.cycles += convergence.iterations;
      report.residual = std::max(report.residual, convergence.history.back());
      if (is_last && next.convection.size() == 0) {  // an older flow's is wanted no more
        std::swap(next.convection, states[explicit_states_of(time.scheme) - 1].convection);
      }
      crossing = complete(next, t + solves[i].from_end, dt);
      if (!std::isfinite(crossing)) {
        throw Error(fmt::format("step {} to t = {:g}: the flow is not finite", number + 1, t));
      }
    }
    if (pressure) take_mean_pressure(dt);
    rate = crossing;
    std::rotate(states.begin(), states.end() - 1, states.end());
    ++known;
    ++number;
    report.cfl = control.cfl(dt, rate);
    if (averages) average();
    return report;
  }
};

Estimate estimate(const Problem& problem, const TimeOptions& time, const SolverOptions& options) {
  Problem linear = problem;
  linear.convection = false;
  // The solve has b and x, one of the states. Here are stages, the load and a combination of flows, places of pressures
  // (a quarter of a vector) and, with convection, what cells have of their upper hats (a quarter at most).
  const int stages = number_of_solves(time.scheme) - 1;
  const int convection = problem.convection ? explicit_states_of(time.scheme) + stages : 0;
  const double vectors = 1.25 + states_of(time.scheme) + stages + convection + (problem.convection ? 0.25 : 0.0) +
                         (time.average_start ? AverageSums::vectors(problem.mesh.dim) : 0.0);
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
  if (time.average_start) check_range("average.start", *time.average_start);
  if (time.step == 0.0 && time.cfl == 0.0) fail("step", "expected a length of steps, or `cfl`");
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
  while (this->time() < time - 1e-12 * std::abs(time)) step();
}

double TimeStepper::time() const { return data_->states.front().time; }
int TimeStepper::steps() const { return data_->number; }
std::int64_t TimeStepper::dofs() const { return data_->discretisation.finest().dofs(); }

Report TimeStepper::report() const {
  Report report;
  describe(*data_->engine, data_->discretisation, data_->options, report);
  report.steps = steps();
  report.end_time = time();
  return report;
}

Solution TimeStepper::solution() const { return solution(time()); }

Solution TimeStepper::solution(double time) const {
  const std::vector<double> times = first(data_->times(), order_of(data_->time.scheme) + 1);
  const double slack = 1e-12 * std::abs(time);
  if (time > times.front() + slack || time < times.back() - slack) {
    throw InputError(fmt::format("there is no flow at t = {:g}: the last steps went from {:g} to {:g}", time,
                                 times.back(), times.front()));
  }
  Problem problem = data_->problem;
  if (data_->changes_data) problem = with_parameters(problem, {{"t", time}});
  if (std::abs(time - times.front()) <= slack) time = times.front();
  Vector<double>& work = data_->work;
  data_->interpolate(time, times, work, data_->b);
  Solution flow = data_->discretisation.solution_of(problem, work);
  if (times.size() > 1) {
    data_->combine(differentiation_weights(time, times), work);
    flow.set_acceleration(data_->discretisation.solution_of(problem, work));
  } else {
    flow.set_acceleration({});
  }
  return flow;
}

std::optional<Averages> TimeStepper::averages() const {
  return data_->averages ? data_->averages->averages() : std::nullopt;
}

std::optional<Checkpoint> TimeStepper::checkpoint() const {
  Checkpoint checkpoint{.steps = data_->number};
  if (const auto averages = this->averages()) checkpoint.averages = averages->gathered();
  for (int i = 0; i < data_->known; ++i) {
    const State& state = data_->states[i];
    auto flow = data_->discretisation.solution_of(data_->problem, state.flow).gathered();
    if (flow) checkpoint.states.push_back({state.time, state.length, std::move(*flow)});
  }
  if (checkpoint.states.empty()) return {};
  return checkpoint;
}

}  // namespace solenoid
