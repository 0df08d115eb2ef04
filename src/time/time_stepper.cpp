#include "solenoid/time_stepper.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/cuda_array.hpp"
#include "base/host_vector.hpp"
#include "engine/engine.hpp"
#include "problem/affine_map.hpp"
#include "problem/names.hpp"
#include "problem/other_coefficients.hpp"
#include "problem/regions.hpp"
#include "problem/validate.hpp"
#include "solenoid/arrays.hpp"
#include "solenoid/error.hpp"
#include "solenoid/interrupt.hpp"
#include "solution/cells_of.hpp"
#include "solution/summary.hpp"
#include "solution/transfer.hpp"
#include "solver/boundary_hats.hpp"
#include "solver/description.hpp"
#include "solver/discretisation.hpp"
#include "solver/estimate.hpp"
#include "solver/kept_tables.hpp"
#include "solver/lift_operator.hpp"
#include "solver/mass_matrix.hpp"
#include "solver/methods.hpp"
#include "solver/prepare.hpp"
#include "time/average_sums.hpp"
#include "time/driving.hpp"
#include "time/energy_alarm.hpp"
#include "time/flow_coefficients.hpp"
#include "time/flow_rate.hpp"
#include "time/runge_kutta.hpp"
#include "time/scheme.hpp"
#include "time/step_control.hpp"

namespace solenoid {
namespace {

/// What the discretisation is of at first: the projection of the initial velocity, with alpha = 1 and a viscosity that
/// is lost in rounding. It is by cell where the coefficients of the flow are.
Problem projection_of(Problem problem) {
  double h = std::numeric_limits<double>::infinity();
  for (int a = 0; a < problem.mesh.dim; ++a) {
    h = std::min(h, length_along(problem.mesh, a) / (problem.mesh.cells[a] << problem.mesh.refine));
  }
  const double viscosity = 1e-14 * h * h;
  problem.convection = false;
  if (!has_coefficients_by_cell(problem)) {
    problem.viscosity = viscosity;
    problem.mass = 1.0;
    return problem;
  }
  problem.form = form_of(problem);
  problem.viscosity_cap.reset();
  // alpha / nu is a power of two, so that local problems have it without rounding (level/patch_scale.hpp).
  problem.varying_viscosity = ScalarField(std::exp2(std::round(std::log2(viscosity))));
  problem.varying_mass = ScalarField(1.0);
  for (Region& region : problem.regions) {
    region.viscosity.reset();
    region.mass.reset();
  }
  return problem;
}

/// Jumps of the viscosity or angles of cells may slow cycles down.
bool takes_gmres(const Problem& problem) { return has_coefficients_by_cell(problem) || problem.mesh.edges; }

/// Cycles alone, or GMRES after a cycle.
SolverOptions for_steps(SolverOptions options, const Problem& problem) {
  options.method = Method::vcycle;
  if (takes_gmres(problem)) {
    options.method = Method::gmres;
    options.side = PreconditionerSide::right;
    options.restart = 0;
    options.rtol = 1e-4;  // what memory is reserved for
  }
  options.random_load = 0;
  options.exact = {};
  return options;
}

/// The last flows that a scheme wants, for its steps or to interpolate between them, and the one to come.
int states_of(TimeScheme scheme) {
  if (!is_multistep(scheme)) return order_of(scheme) + 1;
  const SchemeLengths wanted = lengths_of(scheme);
  return std::max(wanted.derivative, wanted.extrapolation) + 1;
}
/// Of these have C(u); that of the one to come takes the place of the oldest.
int explicit_states_of(TimeScheme scheme) { return is_multistep(scheme) ? lengths_of(scheme).extrapolation : 1; }

/// Of a flow rate, one for each kind of solve in a step.
int responses_of(TimeScheme scheme) {
  return is_multistep(scheme) || tableau_of(scheme).ends_with_last_stage() ? 1 : 2;
}

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
  double size = 0.0;    ///< L2 norm of the velocity
  Vector<double> flow{};
  Vector<double> convection{};
  Point gradient{};  ///< that holds the flow rate
};

/// The problem with a force that is constant in space, too.
Problem with_force(Problem problem, const Point& more) {
  if (more == Point{}) return problem;
  VectorField force = force_field(problem);
  for (int a = 0; a < problem.mesh.dim; ++a) {
    if (more[a] == 0.0) continue;
    const ScalarField before = force[a];
    if (const auto constant = before.constant()) {
      force[a] = *constant + more[a];
      continue;
    }
    const auto sum = [before, add = more[a]](std::span<const Point> points, std::span<double> values) {
      before.evaluate(points, values);
      for (double& value : values) value += add;
    };
    force[a] = ScalarField(sum, before.label());
  }
  set_force(problem, force);
  return problem;
}

/// Forces or boundary data.
bool has_load(const Problem& problem) { return !is_zero(force_field(problem)) || has_boundary_data(problem); }

/// Whether guesses have a divergence, which solves have to look at (Convergence::also).
bool guesses_have_divergence(const Problem& problem) {
  return parameters_of(problem).contains("t") && has_boundary_velocity(problem);
}

/// A flow needs the memory of such a solve, and more vectors.
struct StepNeeds {
  Problem problem;
  SolverOptions options;
  MoreVectors more;
};
StepNeeds needs_of(const Problem& problem, const TimeOptions& time, const SolverOptions& options) {
  Problem linear = problem;
  linear.convection = false;
  // The solve has b, x, which is one of the states, and a vector to work in. Where pressures or divergences are taken
  // out there are their places (a quarter of a vector).
  const int stages = number_of_solves(time.scheme) - 1;
  const int convection = problem.convection ? explicit_states_of(time.scheme) + stages : 0;
  const double of_pressure = is_multistep(time.scheme) ? 0.0 : 0.25;
  const double of_divergence = 1.25;
  const bool always_divergence = guesses_have_divergence(problem);
  const bool lacks_work = takes_gmres(problem) && options.precision == Precision::full_double;
  // A flow rate has a load and responses for each direction.
  const std::size_t held = time.flow_rate ? periodic_directions(problem).size() : 0;
  const double of_rate = static_cast<double>(held) * (1.0 + responses_of(time.scheme));
  // For the dissipation a GPU keeps a viscosity inside of cells.
  const double of_viscosity = problem.viscosity_points == ViscosityPlaces::cell
                                  ? 0.0
                                  : static_cast<double>(ViscosityPoints::in_cell(problem.mesh.dim, problem.order)) /
                                        record_size(problem.mesh.dim, problem.order);
  const double vectors = of_rate + of_viscosity + states_of(time.scheme) - 1 + stages + convection + of_pressure +
                         (always_divergence ? of_divergence : 0.0) + (has_load(problem) ? 1.0 : 0.0) +
                         (lacks_work ? 1.0 : 0.0) + (time.average_start ? AverageSums::vectors(problem.mesh.dim) : 0.0);
  return {.problem = std::move(linear),
          .options = for_steps(options, problem),
          .more = {.always = vectors, .beside_krylov = always_divergence ? 0.0 : of_divergence}};
}

/// \throws InputError, ResourceError
Prepared prepare(const Problem& problem, const TimeOptions& time, const SolverOptions& options) {
  validate(problem, time);
  const StepNeeds needs = needs_of(problem, time, options);
  validate(needs.problem);
  validate(needs.problem, needs.options);
  return prepare(projection_of(problem), needs.options,
                 [&](const Engine& engine) { return estimate(needs.problem, needs.options, needs.more, engine); });
}

}  // namespace

struct TimeStepper::Data {
  static constexpr double from_nothing = 1e-8;         // of the load is left, where there is no guess
  static constexpr double rounding_of_cycles = 1e-10;  // in single precision, of one step

  Problem problem;
  TimeOptions time;
  SolverOptions options;
  StepControl control;
  std::unique_ptr<Engine> engine;
  Discretisation discretisation;
  std::unique_ptr<LinearSolver> solver;
  KeptTables kept;
  FlowCoefficients coefficients;
  Coefficients of_projections;
  std::unique_ptr<Kernels<double>> with_sides;  // kernels of vectors with the hats of all sides
  BoundaryHats hats;
  MassMatrix mass;
  std::unique_ptr<Convection> convection;  // or nullptr
  std::optional<FlowRate> flow_rate;
  bool changes_data;                 // force or boundary data depend on the time; coefficients see to themselves
  bool sets_sides = false;           // boundary data have been set between steps
  std::set<std::string> set;         // Checkpoint::set of this flow,
  std::set<std::string> missing;     // and of that which it goes on from, as far as they have not been set again
  std::optional<Checkpoint> origin;  // which that is, until all have been
  // At the time of the last solve: boundary velocities, and what they bring into the convective term.
  std::optional<SparseOnDevice> lift;  // nothing where no rank has any
  SparseOnDevice inflow;
  Point prescribed{};  // flow_of_sides(), where a flow rate is held
  bool knows_lift = false;
  std::vector<State> states;             // the last one first; one more than the scheme wants
  int known = 1;                         // of these
  std::vector<State> stages;             // of a step, but for the last
  std::optional<PressurePart> pressure;  // where that of states is a mean
  /// Of residuals, where it is looked at.
  struct Divergence {
    PressurePart places;
    Vector<double> values;
  };
  std::optional<Divergence> divergence;
  std::unique_ptr<UpdateLift> lift_of_update;
  Vector<double> load;  // of force and boundary data at the time of the last solve, empty if there are none;
  std::optional<Coefficients> load_of;  // with these coefficients
  Vector<double> b;                     // of a solve; then what is explicit of the flow that it comes to
  int number = 0;
  EnergyAlarm alarm;
  double rate = 0.0;
  std::optional<AverageSums> averages;
  std::optional<double> change;           // StepReport::change
  std::vector<Record> records_of_forces;  // once they are asked for

  /// `from`: what to go on from, or nullptr.
  Data(const Problem& problem_, const TimeOptions& time_, const SolverOptions& options_, const Checkpoint* from)
      : Data(problem_, time_, options_, from, prepare(problem_, time_, options_)) {}
  Data(const Problem& problem_, const TimeOptions& time_, const SolverOptions& options_, const Checkpoint* from,
       Prepared prepared)
      : problem(problem_),
        time(time_),
        options(for_steps(options_, problem)),
        control(time, problem.order),
        engine(std::move(prepared.engine)),
        discretisation(std::move(prepared.discretisation)),
        solver(make_solver(*engine, discretisation.hierarchy(), options)),
        coefficients(problem, discretisation.finest()),
        of_projections(discretisation.finest().coefficients),
        with_sides(make_kernels<double>(*engine, all(), options.multigrid.local_solver)),
        hats(*engine, all(), discretisation.finest()),
        mass(*engine, all(), options.multigrid.local_solver),
        changes_data(parameters_of(discretisation.problem()).contains("t")),
        b(vector()) {
    solver->reserve(discretisation.room());
    if (problem.convection) convection = engine->make_convection(all(), ConvectiveFlux::upwind);
    const auto add_states = [&](std::vector<State>& where, int count, int with_convection) {
      for (int i = 0; i < count; ++i) {
        const bool is_explicit = problem.convection && i < with_convection;
        where.push_back({.flow = vector(), .convection = is_explicit ? vector() : Vector<double>()});
      }
    };
    add_states(states, states_of(time.scheme), explicit_states_of(time.scheme));
    add_states(stages, number_of_solves(time.scheme) - 1, number_of_solves(time.scheme) - 1);
    if (!is_multistep(time.scheme)) pressure.emplace(*engine, all());
    if (time.flow_rate) {
      flow_rate.emplace(*engine, problem, *time.flow_rate, all(), *with_sides, hats, responses_of(time.scheme));
    }
    if (from == nullptr) {
      project_initial();
    } else {
      set = missing = {from->set.begin(), from->set.end()};
      if (!missing.empty()) origin = *from;
      go_on(*from);
    }
    if (time.average_start) begin_averages(from != nullptr && from->averages ? &*from->averages : nullptr);
    alarm.after(number, energy_of(states.front()), [] { return 0.0; });
  }

  [[nodiscard]] const Level& all() const { return discretisation.level_with_sides(); }
  [[nodiscard]] bool on_gpu() const { return engine->stream() != nullptr; }
  /// To an array of others in the memory of the device.
  void copy_out(const std::vector<double>& values, double* array) const {
    if (on_gpu()) {
      copy_to_cuda(array, values.data(), values.size() * sizeof(double));
    } else {
      std::ranges::copy(values, array);
    }
  }
  /// What makes arrays of the flow on the device, or nullptr where the host has to.
  [[nodiscard]] Integrator* array_maker() {
    return on_gpu() && all().grid.partition() == nullptr ? discretisation.integrator(*engine) : nullptr;
  }
  [[nodiscard]] bool by_cell() const { return all().has_coefficients_by_cell(); }
  [[nodiscard]] Vector<double> vector() const { return {*engine, discretisation.room()}; }
  Kernels<double>& kernels() { return solver->outer(); }
  /// Between solves; they overwrite it.
  Vector<double>& work() { return solver->work(); }

  void set_time(double t) {
    if (changes_data) discretisation.set_parameters({{"t", t}});
  }

  /// Those that solves have now.
  [[nodiscard]] const Coefficients& solved() const { return discretisation.finest().coefficients; }
  void set_coefficients(const Coefficients& now) {
    if (are_same(now, solved(), all().grid)) return;
    kept.change(discretisation, solver->preconditioner(), now);
  }

  /// x from x and the load. From a guess that is a flow already, to a part of its residual by so many cycles at least;
  /// otherwise to a part of the load.
  Convergence solve(bool from_guess, double rtol, const Vector<double>& load, Vector<double>& x, int least_cycles = 1) {
    return run(criterion(load, from_guess, rtol, least_cycles), load, x);
  }
  Convergence criterion(const Vector<double>& load, bool from_guess, double rtol, int least_cycles = 1) {
    Convergence convergence;
    convergence.from_guess = from_guess;
    convergence.min_iterations = from_guess ? least_cycles : 0;
    convergence.rtol = rtol;
    const bool guess_has_some = (changes_data || sets_sides) && discretisation.lifted();
    if (guess_has_some || is_by_krylov(discretisation.hierarchy().coarse)) {
      const bool is_exact = guess_has_some || options.precision == Precision::full_double;
      convergence.also = conservation(load, is_exact ? Convergence::rounding : rounding_of_cycles);
    }
    return convergence;
  }
  /// By as many cycles as solves of the problem may take, or as the criterion has if that is more.
  Convergence run(Convergence convergence, const Vector<double>& load, Vector<double>& x) {
    convergence.max_iterations = std::max(convergence.max_iterations, usual_max_iterations(problem));
    convergence.cycle_first = true;  // of GMRES
    solver->run(load.data(), x.data(), false, convergence);
    kernels().project(x.data());
    return convergence;
  }

  /// Says of residuals whether there is `rounding` alone in their rows of pressures, which are the divergence (in L2):
  /// next to a velocity as large as that before the step, that on sides, or what the load alone would make in the step,
  /// which pressures may take back. Guesses have a divergence where what flows through sides changes, and cycles leave
  /// one where they do not solve their coarsest level to rounding; next to rows of momentum, which have c_0 M u, it is
  /// not seen.
  std::function<bool(const double*)> conservation(const Vector<double>& load, double rounding) {
    if (!divergence) divergence.emplace(Divergence{{*engine, all()}, vector()});
    std::array sums{0.0};
    for (const double value : discretisation.lift().values) sums[0] += value * value;
    all().grid.add_up<double>(sums);
    const double made = with_sides->l2_norm(load.data()) / largest_reaction(solved(), all().grid);
    const Point h = all().grid.metric().uniform_width();
    const double narrowest = *std::min_element(h.begin(), h.begin() + problem.mesh.dim);
    const double least = rounding * std::max({states.front().size, std::sqrt(sums[0]), made}) / narrowest;
    return [this, least](const double* residual) {
      double* values = divergence->values.data();
      divergence->places.copy(*with_sides, residual, values);
      return std::sqrt(with_sides->dot(values, values)) <= least;
    };
  }

  /// The integral of the velocity that sides prescribe, `lift`.
  Point flow_of_sides() {
    if (!lift) return {};
    with_sides->zero(work().data());
    lift->add_to(*with_sides, work().data());
    with_sides->bring_ghosts(all(), work().data());
    return discretisation.integrals(*engine, work()).velocity;
  }

  /// The L2 norm of a velocity; where cells are parallelepipeds its components are not orthogonal. Uses `b`.
  double size_of(const Vector<double>& flow) {
    if (!all().is_sheared()) return with_sides->l2_norm(flow.data());
    mass.apply(flow.data(), b.data());
    return std::sqrt(with_sides->dot(flow.data(), b.data()));
  }

  /// What of a flow is missing, by the gradient that is added to that of the state.
  void hold_flow_rate(State& state) {
    // Nothing of a state is in its criterion: it is kept, and has to be the same after a restart.
    const auto response = [this](Vector<double>& load, Vector<double>& x) {
      Convergence criterion;
      criterion.rtol = from_nothing;
      const Convergence convergence = run(std::move(criterion), load, x);
      if (convergence.converged) return;
      throw StepFailed(fmt::format("step {}: the flow rate cannot be held: {} after {} cycles", number + 1,
                                   convergence.reason, convergence.iterations),
                       number);
    };
    const Point more = flow_rate->correct(solved(), response, prescribed, b, state.flow.data());
    for (int a = 0; a < 3; ++a) state.gradient[a] += more[a];
  }

  /// The flow of a state, a vector of the solver so far, becomes that at the time that the discretisation has.
  /// `is_new`: it does not have the flow rate yet.
  void complete(State& state, double t, double length, bool is_new) {
    state.time = t;
    state.length = length;
    if (changes_data || !knows_lift) {
      lift.reset();
      if (discretisation.lifted()) lift.emplace(*engine, discretisation.lift());
      if (convection != nullptr) inflow = {*engine, assemble_inflow(discretisation.problem(), all())};
      if (flow_rate) prescribed = flow_of_sides();
      knows_lift = true;
    }
    hats.to_all(*with_sides, state.flow.data());
    if (lift) lift->add_to(*with_sides, state.flow.data());
    with_sides->bring_ghosts(all(), state.flow.data());
    if (flow_rate && is_new) hold_flow_rate(state);
    state.size = size_of(state.flow);
  }
  /// What is explicit of a state that complete() has just seen to. Returns the rate at which its flow crosses cells.
  double convect(const State& state, Vector<double>& result) {
    if (convection == nullptr) return 0.0;
    const double crossing = convection->apply(state.flow.data(), result.data(), work().data());
    inflow.add_to(*with_sides, result.data());
    return crossing;
  }

  void project_initial() {
    set_time(0.0);
    discretisation.projection_load(*engine, kernels(), time.initial, work(), b);
    // There is no viscosity in a projection: where a mesh cannot be coarsened, cycles leave up to 0.7 of a residual.
    Convergence from_load = criterion(b, false, 1e-12);
    from_load.max_iterations = 200;
    const Convergence convergence = run(std::move(from_load), b, states.front().flow);
    if (!convergence.converged) {
      throw StepFailed(fmt::format("the initial velocity cannot be made divergence-free: {} after {} cycles",
                                   convergence.reason, convergence.iterations),
                       0);
    }
    complete(states.front(), 0.0, 0.0, true);
    rate = convect(states.front(), states.front().convection);
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
      complete(states[i], state.time, state.length, false);
      if (i < explicit_states_of(time.scheme)) rate = convect(states[i], states[i].convection);
      states[i].gradient = state.gradient;
    }
    number = from.steps;
    change = last_change();
  }

  /// `from`: what to go on with, or nullptr.
  void begin_averages(const Averages* from) {
    if (from != nullptr) {
      averages.emplace(*engine, discretisation, *with_sides, problem, *from);
    } else {
      const double start = std::max(*time.average_start, states.front().time);
      averages.emplace(*engine, discretisation, *with_sides, problem, start);
    }
  }

  /// The last step, or what of it comes after the start, by the flow in the middle; or all time since the last flow
  /// that counts, or the start, once it is long enough.
  void average() {
    const double end = states.front().time;
    const double begin = std::max(states[1].time, averages->start());
    if (begin >= end) return;
    double length = end - begin;
    if (time.average_every > 0.0) {
      constexpr double rounding = 1e-9;
      length = end - averages->end();
      if (length < (1.0 - rounding) * time.average_every) return;
    }
    const Interruptible whole([] { return false; });
    std::vector<double> through = interpolation_times();
    // The beginning has no pressure; where those are means, none is taken from there.
    if (!pressure && states[through.size() - 1].length == 0.0) through.pop_back();
    const double middle = 0.5 * (begin + end);
    interpolate(middle, through, work(), b);
    averages->add(work(), length, coefficients.at(middle));
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
    std::vector<double> of_flow = interpolation_weights(now, times);
    if (!pressure) return combine(of_flow, sum);
    std::vector<double> of_pressure = pressure_weights(now, times.front());
    const std::size_t count = std::max(of_flow.size(), of_pressure.size());
    of_flow.resize(count);
    of_pressure.resize(count);
    with_sides->two_sums(static_cast<int>(count), flows(count).data(), of_flow.data(), sum.data(), of_pressure.data(),
                         spare.data());
    pressure->copy(*with_sides, spare.data(), sum.data());
  }

  /// Of the states that those between them are interpolated from.
  [[nodiscard]] std::vector<double> interpolation_times() const { return first(times(), order_of(time.scheme) + 1); }

  /// The flow at a time, with its acceleration if that is asked for, of what make(problem, vector, whether it is the
  /// flow itself) brings to the host.
  template <class Make>
  Solution solution(double now, const std::vector<double>& times, bool with_acceleration, const Make& make) {
    const Problem problem_now = with_force(problem_at(now), gradient_at(now, times));
    const bool as_it_is = now == times.front() && !pressure;
    if (!as_it_is) interpolate(now, times, work(), b);
    Solution flow = make(problem_now, as_it_is ? states.front().flow : work(), true);
    flow.set_acceleration({});
    if (!with_acceleration || times.size() == 1) return flow;
    combine(differentiation_weights(now, times), work());
    flow.set_acceleration(make(problem_now, work(), false));
    return flow;
  }
  /// The flow now, with these records alone.
  Solution solution_in(const std::vector<Record>& records, bool with_acceleration) {
    const auto make = [&](const Problem& problem_now, const Vector<double>& flow, bool) {
      const Coefficients& now = coefficients.at(states.front().time);
      return discretisation.solution_of(problem_now, now, *engine, *with_sides, flow, records);
    };
    return solution(states.front().time, interpolation_times(), with_acceleration, make);
  }

  /// TimeStepper::forces() where the flow is in the memory of the host, or the engine sees to them.
  [[nodiscard]] std::optional<std::vector<BoundaryForce>> engine_forces(const Point& about) {
    const std::vector<double> known_times = interpolation_times();
    if (known_times.size() == 1) return {};
    const double now = known_times.front();
    const Problem problem_now = with_force(problem_at(now), gradient_at(now, known_times));
    if (pressure) interpolate(now, known_times, work(), b);
    const Vector<double>& flow = pressure ? work() : states.front().flow;
    SumOfFlows acceleration{differentiation_weights(now, known_times), {}};
    if (!on_gpu()) {  // the host makes what it reads of it
      acceleration.flows = flows(acceleration.factors.size(), 0);
    } else {
      Vector<double>& sum = pressure ? b : work();
      combine(acceleration.factors, sum);
      acceleration = {{1.0}, {sum.data()}};
    }
    return discretisation.engine_forces(*engine, {problem_now, coefficients.at(now), flow.data(), acceleration, about});
  }

  [[nodiscard]] std::optional<double> last_change() {
    if (time.steady == 0.0 || known < 2) return {};
    const double size = states[0].size;
    if (size == 0.0 && changes_data) return {};
    combine({1.0, -1.0}, work());
    const double difference = size_of(work());
    return difference == 0.0 ? 0.0 : difference / (states[0].length * size);
  }

  /// As combine().
  [[nodiscard]] Point combined_gradient(const std::vector<double>& factors, int solved = 0) const {
    const std::vector<const State*> known_flows = known_states(solved);
    Point sum{};
    for (std::size_t i = 0; i < factors.size(); ++i) {
      for (int a = 0; a < 3; ++a) sum[a] += factors[i] * known_flows[i]->gradient[a];
    }
    return sum;
  }
  /// As interpolate(): gradients are treated as pressures.
  [[nodiscard]] Point gradient_at(double now, const std::vector<double>& times) const {
    return combined_gradient(pressure ? pressure_weights(now, times.front()) : interpolation_weights(now, times));
  }

  void make_load(double t) {
    const Coefficients& now = solved();
    if (!changes_data && load_of && are_same(*load_of, now, all().grid)) return;
    load_of.reset();
    set_time(t);
    if (has_load(discretisation.problem())) {
      if (load.size() == 0) load = vector();
      discretisation.load(*engine, kernels(), work(), load);
      hats.to_all(*with_sides, load.data());
    } else {
      load = {};
    }
    load_of = now;
  }

  /// What the pressure that a solve begins with is of those of known_states(), where those of states are means: that at
  /// its time; or the multiplier of an update, what the mean over the step will be less what stages have of it, times
  /// dt.
  [[nodiscard]] std::vector<double> guess_of_pressure(const StepSolve& what, double dt, int solved) const {
    std::vector<double> weights(solved, 0.0);
    double of_means = 1.0;
    if (what.is_update) {
      const std::vector<double>& of_stages = tableau_of(time.scheme).implicit_weights;
      weights.assign(of_stages.rbegin(), of_stages.rend());
      for (double& weight : weights) weight *= -dt;
      of_means = dt;
    }
    for (const double weight : pressure_weights(what.is_update ? -0.5 * dt : what.from_end, -dt)) {
      weights.push_back(of_means * weight);
    }
    return weights;
  }

  /// A flow of the step that ends at time `end`, from the stages that are solved and the ends of steps, whose times are
  /// `before`, counted from that end. `cycles`: what a stage before took, or 0. The residuals that stages leave enter
  /// the end of the step as their forces do: what they have in common, as guesses lack the same, cancels if all take
  /// as many cycles.
  Convergence solve_for(State& next, const StepSolve& what, int solved, const std::vector<double>& before, double end,
                        int cycles) {
    const double t = end + what.from_end;
    if (what.is_update) {
      set_coefficients(of_projections);
      set_time(t);
    } else {
      set_coefficients(coefficients.with_derivative(t, what.coefficients.derivative[0]));
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
    with_sides->two_sums(static_cast<int>(count), flows(count, solved).data(), history.data(), work().data(),
                         guess.data(), next.flow.data());

    // b = load - sum_i c_i M u_i - sum_i w_i C_i
    mass.apply(work().data(), b.data());
    const std::vector<const State*> explicit_states = known_states(solved);
    const std::vector<double>& extrapolation = what.coefficients.extrapolation;
    std::vector<double> factors;
    std::vector<const double*> explicit_parts;
    const auto add_part = [&](double factor, const Vector<double>& part) {
      factors.push_back(factor);
      explicit_parts.push_back(part.data());
    };
    if (!what.is_update && load.size() > 0) add_part(1.0, load);
    for (std::size_t i = 0; convection != nullptr && i < extrapolation.size(); ++i) {
      add_part(-extrapolation[i], explicit_states[i]->convection);
    }
    with_sides->axpys(static_cast<int>(factors.size()), factors.data(), explicit_parts.data(), 1.0, b.data());
    // The first steps have no pressure to begin with, and no gradient.
    const bool has_guess = number >= order_of(time.scheme);
    const std::vector<double> of_pressure =
        pressure ? guess_of_pressure(what, -before.front(), solved) : std::vector<double>(guess);
    next.gradient = has_guess ? combined_gradient(of_pressure, solved) : Point{};
    if (flow_rate) flow_rate->add_load(next.gradient, b.data());
    hats.to_some(*with_sides, b.data());
    if (what.is_update && discretisation.lifted()) {
      if (lift_of_update == nullptr) {
        lift_of_update = std::make_unique<UpdateLift>(*engine, all(), discretisation.finest(), of_projections,
                                                      options.multigrid.local_solver);
      }
      lift_of_update->image.apply(discretisation.lift(), work().data(), next.flow.data());
      kernels().axpy(-1.0, next.flow.data(), b.data());
      combine(guess, next.flow, solved);
    }
    if (pressure) {
      combine(of_pressure, work(), solved);
      pressure->copy(*with_sides, work().data(), next.flow.data());
    }
    hats.to_some(*with_sides, next.flow.data());

    Convergence convergence;
    if (!has_guess) {
      convergence = solve(false, from_nothing, b, next.flow);
    } else if (cycles == 0 || what.is_update || takes_gmres(problem)) {  // what GMRES leaves has nothing in common
      convergence = solve(true, 0.01, b, next.flow);
    } else {
      convergence = solve(true, 0.1, b, next.flow, cycles);
    }
    if (!convergence.converged) {
      fail(
          end, -before.front(),
          fmt::format("the solve misses its tolerance: {} after {} cycles", convergence.reason, convergence.iterations),
          number);
    }
    return convergence;
  }

  /// Pressure and gradient of the flow to come become the means over the step, of those of all its solves.
  void take_mean_pressure(double dt) {
    std::vector<const double*> solved;
    for (const State& stage : stages) solved.push_back(stage.flow.data());
    State& next = states.back();
    solved.push_back(next.flow.data());
    const std::vector<double> weights = mean_pressure_weights(tableau_of(time.scheme), dt);
    with_sides->zero(work().data());
    with_sides->axpys(static_cast<int>(weights.size()), weights.data(), solved.data(), 1.0, work().data());
    pressure->copy(*with_sides, work().data(), next.flow.data());
    Point mean{};
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const Point& of_solve = i < stages.size() ? stages[i].gradient : next.gradient;
      for (int a = 0; a < 3; ++a) mean[a] += weights[i] * of_solve[a];
    }
    next.gradient = mean;
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

  /// Of the step of dt to time t, which did not succeed. \throws StepFailed
  [[noreturn]] void fail(double t, double dt, const std::string& what, int sound) const {
    throw StepFailed(fmt::format("step {} to t = {:g} by {:g}: {}", number + 1, t, dt, what), sound);
  }

  /// Of the flow that a step of dt has come to, which is the last state yet, with C(u) in b; `last`: the solve that
  /// made it.
  std::optional<EnergyAlarm::Growth> unexplained_growth(const StepSolve& last, double dt) {
    if (convection == nullptr) return {};
    const State& next = states.back();
    return alarm.after(number + 1, energy_of(next), [&] {
      // Convection as it is, less that of the step: as extrapolated, or with the weights of stages.
      std::vector<double> factors{1.0};
      std::vector<const double*> parts{b.data()};
      const auto subtract = [&](const std::vector<double>& weights, const auto& of) {
        for (std::size_t i = 0; i < weights.size(); ++i) {
          factors.push_back(-weights[i]);
          parts.push_back(of(i).data());
        }
      };
      if (is_multistep(time.scheme)) {
        subtract(
            last.coefficients.extrapolation, [&](std::size_t i) -> const auto& { return states[i].convection; });
      } else {
        subtract(
            tableau_of(time.scheme).forward_weights, [&](std::size_t i) -> const auto& {
              return i == 0 ? states.front().convection : i <= stages.size() ? stages[i - 1].convection : b;
            });
      }
      std::vector<double> powers(parts.size());
      with_sides->dots(static_cast<int>(parts.size()), parts.data(), next.flow.data(), powers.data());
      return dt * std::inner_product(factors.begin(), factors.end(), powers.begin(), 0.0);
    });
  }

  /// Other data, those of this name, from now on.
  void set_data(const std::string& name, const Problem& with_data) {
    problem = with_data;
    discretisation.set_data(projection_of(problem));
    changes_data = parameters_of(discretisation.problem()).contains("t");
    knows_lift = false;
    has_set(name);
  }
  /// Other coefficients, those of this name, from now on.
  void set_coefficients_of_flow(const std::string& name, const Problem& with_others) {
    validate(with_others);
    coefficients.set(with_others, states.front().time);
    problem = with_others;
    has_set(name);
  }
  void has_set(const std::string& name) {
    set.insert(name);
    missing.erase(name);
    load_of.reset();
    change.reset();  // it says nothing of a step with other data
    make_history();
  }
  /// Of a checkpoint, once its data are there.
  void make_history() {
    if (!origin || !missing.empty()) return;
    go_on(*origin);
    origin.reset();
  }

  /// The problem as it is at a time.
  [[nodiscard]] Problem problem_at(double t) const {
    return changes_data || coefficients.change() ? with_parameters(problem, {{"t", t}}) : problem;
  }

  [[nodiscard]] double next_step() const { return control.next(states.front().length, rate, longest_from_rest()); }

  StepReport step() {
    if (!missing.empty()) {
      throw InputError(fmt::format(
          "the flow goes on from a checkpoint, before which {} had been set between steps: set it again, as "
          "checkpoints do not have such data",
          fmt::join(missing, ", ")));
    }
    make_history();
    const double dt = next_step();
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
      complete(next, t + solves[i].from_end, dt, true);
      crossing = convect(next, is_last ? b : next.convection);
      if (!std::isfinite(next.size) || !std::isfinite(crossing)) fail(t, dt, "the flow is not finite", number);
    }
    if (const auto growth = unexplained_growth(solves.back(), dt)) {
      const double energy = energy_of(states.back());
      fail(t, dt,
           fmt::format("the kinetic energy has grown from {:.3g} after step {} to {:.3g}, {:.0f} % of it from the "
                       "extrapolation of convection and not from forces and sides: the step is too long, with C = "
                       "{:.2g}; give a shorter one, or `cfl`",
                       growth->before, growth->step, energy, 100.0 * growth->made / (energy - growth->before),
                       control.cfl(dt, crossing)),
           growth->step);
    }
    if (pressure) take_mean_pressure(dt);
    rate = crossing;
    if (convection != nullptr) {  // what the last step has that is explicit is wanted no more
      std::swap(states.back().convection, b);
      std::swap(b, states[explicit_states_of(time.scheme) - 1].convection);
    }
    std::rotate(states.begin(), states.end() - 1, states.end());
    ++known;
    ++number;
    change = last_change();
    report.cfl = control.cfl(dt, rate);
    if (averages) average();
    report.change = change;
    report.gradient = states.front().gradient;
    return report;
  }
};

Estimate estimate(const Problem& problem, const TimeOptions& time, const SolverOptions& options) {
  const StepNeeds needs = needs_of(problem, time, options);
  return estimate(needs.problem, needs.options, needs.more);
}

TimeStepper::TimeStepper(const Problem& problem, const TimeOptions& time, const SolverOptions& options)
    : data_(std::make_unique<Data>(problem, time, options, nullptr)) {}
TimeStepper::TimeStepper(const Problem& problem, const TimeOptions& time, const SolverOptions& options,
                         const Checkpoint& from)
    : data_(std::make_unique<Data>(problem, time, options, &from)) {}
TimeStepper::TimeStepper(TimeStepper&&) noexcept = default;
TimeStepper& TimeStepper::operator=(TimeStepper&&) noexcept = default;
TimeStepper::~TimeStepper() = default;

void TimeStepper::set_force(const VectorField& force) {
  Problem changed = data_->problem;
  solenoid::set_force(changed, force);
  data_->set_data("force", changed);
}

void TimeStepper::set_boundary(int side, const VectorField& data) {
  const int sides = 2 * data_->problem.mesh.dim;
  if (side < 0 || side >= sides) throw InputError(fmt::format("side: expected 0 to {}, got {}", sides - 1, side));
  Problem changed = data_->problem;
  Side& condition = changed.boundary.sides[side];
  if (condition.kind != SideKind::velocity && condition.kind != SideKind::outflow) {
    throw InputError(fmt::format("{}: nothing is prescribed on a side of the kind {}; expected velocity or outflow",
                                 side_names[side], name_of(condition.kind)));
  }
  condition.data = data;
  data_->sets_sides = true;
  data_->set_data(std::string(side_names[side]), changed);
}

void TimeStepper::set_reaction(const ScalarField& mass) {
  data_->set_coefficients_of_flow("mass", with_mass(data_->problem, mass));
}
void TimeStepper::set_viscosity(const ScalarField& viscosity) {
  data_->set_coefficients_of_flow("viscosity", with_viscosity(data_->problem, viscosity));
}

double TimeStepper::next_step() const { return data_->next_step(); }

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

FlowSummary TimeStepper::summary() const {
  Discretisation& discretisation = data_->discretisation;
  const Vector<double>& flow = data_->states.front().flow;
  const FlowIntegrals all = discretisation.integrals(*data_->engine, flow);
  FlowSummary summary = summary_of(all, data_->problem.viscosity, discretisation.finest().grid);
  if (data_->by_cell()) {
    summary.dissipation =
        discretisation.dissipation(*data_->engine, data_->problem_at(time()), data_->coefficients.at(time()), flow);
  }
  return summary;
}

std::vector<double> TimeStepper::velocity_at(int points) const {
  Engine& engine = *data_->engine;
  Integrator* const device = data_->array_maker();
  if (device == nullptr) return solenoid::velocity_at(solution(), points);
  Vector<double> values(engine, array_size({data_->problem.mesh, points}, data_->problem.mesh.dim));
  device->velocity_at(points, data_->states.front().flow.data(), values.data());
  std::vector<double> host(values.size());
  values.download(host.data());
  return host;
}

void TimeStepper::velocity_at(int points, double* values) const {
  (void)array_size({data_->problem.mesh, points}, data_->problem.mesh.dim);  // throws for points that there are not
  if (Integrator* const device = data_->array_maker()) {
    return device->velocity_at(points, data_->states.front().flow.data(), values);
  }
  data_->copy_out(solenoid::velocity_at(solution(), points), values);
}

std::array<std::vector<double>, 3> TimeStepper::face_fluxes() const {
  Engine& engine = *data_->engine;
  Integrator* const device = data_->array_maker();
  if (device == nullptr) return solenoid::face_fluxes(solution());
  std::array<Vector<double>, 3> fluxes;
  std::array<double*, 3> pointers{};
  for (int a = 0; a < data_->problem.mesh.dim; ++a) {
    fluxes[a] = {engine, face_flux_count(data_->problem.mesh, a)};
    pointers[a] = fluxes[a].data();
  }
  device->face_fluxes(data_->states.front().flow.data(), pointers);
  std::array<std::vector<double>, 3> host;
  for (int a = 0; a < data_->problem.mesh.dim; ++a) {
    host[a].resize(fluxes[a].size());
    fluxes[a].download(host[a].data());
  }
  return host;
}

void TimeStepper::face_fluxes(const std::array<double*, 3>& fluxes) const {
  if (Integrator* const device = data_->array_maker()) {
    return device->face_fluxes(data_->states.front().flow.data(), fluxes);
  }
  const auto host = solenoid::face_fluxes(solution());
  for (int a = 0; a < data_->problem.mesh.dim; ++a) data_->copy_out(host[a], fluxes[a]);
}

bool TimeStepper::on_gpu() const { return data_->on_gpu(); }

Solution TimeStepper::solution() const { return solution(time()); }

Solution TimeStepper::solution(double time) const {
  const std::vector<double> times = data_->interpolation_times();
  const double slack = 1e-12 * std::abs(time);
  if (time > times.front() + slack || time < times.back() - slack) {
    throw InputError(fmt::format("there is no flow at t = {:g}: the last steps went from {:g} to {:g}", time,
                                 times.back(), times.front()));
  }
  if (std::abs(time - times.front()) <= slack) time = times.front();
  return data_->solution(time, times, true, [&](const Problem& problem, const Vector<double>& flow, bool integrate) {
    Discretisation& discretisation = data_->discretisation;
    const auto integrals = integrate ? discretisation.engine_integrals(*data_->engine, flow) : std::nullopt;
    return discretisation.solution_of(problem, data_->coefficients.at(time), flow, integrals);
  });
}

std::vector<Point> TimeStepper::velocity(std::span<const Point> points) const {
  const Grid& grid = data_->all().grid;
  return data_->solution_in(records_of_cells(grid, cells_of_points(grid, points)), false).velocity(points);
}
std::vector<double> TimeStepper::pressure(std::span<const Point> points) const {
  const Grid& grid = data_->all().grid;
  return data_->solution_in(records_of_cells(grid, cells_of_points(grid, points)), false).pressure(points);
}
double TimeStepper::flux(int axis, double position) const {
  const Grid& grid = data_->all().grid;
  std::vector<Record> cells;
  for (const auto& [cell, xi] : cells_of_plane(grid, axis, position)) cells.push_back(cell);
  return data_->solution_in(records_of_cells(grid, cells), false).flux(axis, position);
}
std::vector<BoundaryForce> TimeStepper::forces(const Point& about) const {
  if (auto forces = data_->engine_forces(about)) return *std::move(forces);
  std::vector<Record>& records = data_->records_of_forces;
  const Grid& grid = data_->all().grid;
  if (records.empty()) records = records_of_cells(grid, cells_of_forces(grid));
  return data_->solution_in(records, true).forces(about);
}
bool TimeStepper::has_forces() const { return data_->times().size() > 1; }

std::optional<Averages> TimeStepper::averages() const {
  return data_->averages ? data_->averages->averages() : std::nullopt;
}

std::optional<Checkpoint> TimeStepper::checkpoint() const {
  Checkpoint checkpoint{.steps = data_->number, .set = {data_->set.begin(), data_->set.end()}};
  if (const auto averages = this->averages()) checkpoint.averages = averages->gathered();
  for (int i = 0; i < data_->known; ++i) {
    const State& state = data_->states[i];
    const Coefficients& coefficients = data_->coefficients.at(time());
    auto flow = data_->discretisation.solution_of(data_->problem, coefficients, state.flow).gathered();
    if (flow) checkpoint.states.push_back({state.time, state.length, std::move(*flow), state.gradient});
  }
  if (checkpoint.states.empty()) return {};
  return checkpoint;
}

}  // namespace solenoid
