// Time per unknown of a step in time and of its parts, beside what the machine can do at most.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "element/moments.hpp"
#include "engine/engine.hpp"
#include "problem/names.hpp"
#include "solenoid/time_stepper.hpp"
#include "solver/hierarchy.hpp"
#include "solver/mass_matrix.hpp"
#include "studies/run.hpp"
#include "studies/study.hpp"
#include "studies/timed_solve.hpp"
#include "time/scheme.hpp"
#include "time/step_control.hpp"

namespace solenoid::studies {
namespace {

struct Options : StudyArguments {
  std::vector<double> sizes{3e6};
  TimeScheme scheme = TimeScheme::sbdf3;
};

/// Taylor-Green vortices at Re = 1600, where convection limits the steps.
Problem vortices(int dim, int order, int refine) {
  constexpr double pi = 3.14159265358979323846;
  Problem problem;
  problem.mesh = Mesh::unit(dim, refine);
  for (int a = 0; a < dim; ++a) problem.mesh.upper[a] = 2.0 * pi;
  problem.order = order;
  problem.viscosity = 1.0 / 1600.0;
  problem.convection = true;
  for (int side = 0; side < 2 * dim; ++side) problem.boundary.sides[side].kind = SideKind::periodic;
  return problem;
}

TimeOptions steps_of(TimeScheme scheme, const Problem& problem) {
  const Mesh& mesh = problem.mesh;
  const std::string third = mesh.dim == 3 ? "*cos(z)" : "";
  TimeOptions time{.scheme = scheme};
  time.initial[0] = ScalarField::expression("sin(x)*cos(y)" + third, mesh.dim);
  time.initial[1] = ScalarField::expression("-cos(x)*sin(y)" + third, mesh.dim);
  // |u_x| + |u_y| is 1 at most. Where a scheme has no limit, so small a number that a few steps stay harmless.
  const double cfl = default_cfl(scheme, problem.order) > 0.0 ? default_cfl(scheme, problem.order) : 0.05;
  const double h = mesh.upper[0] / (1 << mesh.refine);
  time.step = cfl * h / convective_frequency(problem.order);
  return time;
}

/// In the order of the table.
enum Part { convection, history, mass, residual, cycle, parts };
constexpr std::array<const char*, parts> part_names{"convection", "history", "mass", "residual", "cycle"};

struct Row {
  int order = 0;
  int refine = 0;
  double dofs = 0.0;
  double step = 0.0;                    ///< seconds
  double averaged = 0.0;                ///< seconds of one that averages take
  double cycles = 0.0;                  ///< of a step
  std::array<double, parts> seconds{};  ///< of all that a step has of them
  std::array<double, parts> bytes{};    ///< that these move at least, for each unknown

  [[nodiscard]] double rest() const {
    double rest = step;
    for (const double each : seconds) rest -= each;
    return rest;
  }
};

class StepStudy {
 public:
  explicit StepStudy(const Options& options)
      : options_(options),
        run_(options, "step", 0.0),
        engine_(make_engine(options.device, options.threads, nullptr, options.transport)) {}

  int operator()() {
    check_orders(options_.dim, options_.orders);
    run_.show("what the machine can do at most");
    copy_rate_ = engine_->measure_ceilings().memory;
    run_.print(fmt::format("device  {}", engine_->description()));
    run_.print(fmt::format("copy    {:.1f} GB/s, read and written", copy_rate_ * 1e-9));
    run_.json["dim"] = options_.dim;
    run_.json["scheme"] = name_of(options_.scheme);
    run_.json["device"] = engine_->description();
    run_.json["threads"] = engine_->threads();
    run_.json["ceilings"]["copy_bytes_per_second"] = copy_rate_;
    run_.json["rows"] = Json::array();
    run_.print(
        fmt::format("\nns per unknown of a step, {}, Taylor-Green vortices in {}D; below them the fewest bytes at the "
                    "rate of a copy; last what averages add to a step",
                    name_of(options_.scheme), options_.dim));
    run_.print(
        "order    cells      unknowns      step  cycles  convection   history      mass  residual     cycle      rest  "
        "averages");
    for (const int order : options_.orders) {
      std::vector<int> refinements;
      for (const double size : options_.sizes) refinements.push_back(refine_about(options_.dim, order, size));
      std::sort(refinements.begin(), refinements.end());
      refinements.erase(std::unique(refinements.begin(), refinements.end()), refinements.end());
      for (const int refine : refinements) {
        add(order, refine);
        if (StudyRun::interrupted()) return run_.finish(false);
      }
    }
    return run_.finish(true);
  }

 private:
  void add(int order, int refine) {
    Row row{.order = order, .refine = refine};
    const Problem problem = vortices(options_.dim, order, refine);
    const TimeOptions time = steps_of(options_.scheme, problem);
    TimeOptions averaged = time;
    averaged.average_start = 0.0;
    const auto label = fmt::format("RT_{}, {} cells", order, cells_text(options_.dim, refine));
    const Estimate need = estimate(problem, averaged, run_.solver_options());
    if (need.bytes_needed > need.bytes_available) {
      run_.print(label + ": left out, it does not fit into the memory");
      return;
    }
    run_.show(label + ": steps");
    row.averaged = time_steps(problem, averaged, row);
    row.step = time_steps(problem, time, row);
    run_.show(label + ": parts");
    time_parts(problem, time, row);
    print(row);
  }

  /// Steps of full length, which have their tables.
  static void time_steps_of(TimeStepper& flow, double length, std::vector<double>& seconds, int& cycles) {
    constexpr int fewest = 10;
    constexpr double enough = 1.0;
    double sum = 0.0;
    for (int full = 0; std::ssize(seconds) < fewest || sum < enough;) {
      StepReport report;
      const double spent = seconds_of([&] { report = flow.step(); });
      if (report.length < length || ++full <= 2) continue;
      seconds.push_back(spent);
      sum += spent;
      cycles += report.cycles;
    }
  }
  /// Seconds of a step.
  double time_steps(const Problem& problem, const TimeOptions& time, Row& row) {
    TimeStepper flow(problem, time, run_.solver_options());
    row.dofs = static_cast<double>(flow.dofs());
    std::vector<double> seconds;
    int cycles = 0;
    time_steps_of(flow, time.step, seconds, cycles);
    row.cycles = static_cast<double>(cycles) / static_cast<double>(seconds.size());
    const auto middle = seconds.begin() + std::ssize(seconds) / 2;
    std::nth_element(seconds.begin(), middle, seconds.end());
    return *middle;
  }

  /// Each alone, on vectors of the size that a step has.
  void time_parts(Problem problem, const TimeOptions& time, Row& row) {
    std::vector<double> times;
    for (int i = 1; i <= 6; ++i) times.push_back(-i * time.step);
    const std::vector<StepSolve> solves = solves_of(time.scheme, times);
    problem.mass = solves.front().coefficients.derivative[0];
    problem.convection = false;
    SolverOptions options = run_.solver_options();
    options.method = Method::vcycle;
    const Hierarchy hierarchy(problem, options.multigrid, engine_->dense_limits(), {});
    const Level& level = hierarchy.finest();
    TimedSolve<float> timed(*engine_, hierarchy, problem, options);
    const auto kernels = make_kernels<double>(*engine_, level, options.multigrid.local_solver);
    MassMatrix mass_matrix(*engine_, level, options.multigrid.local_solver);
    const auto convective = engine_->make_convection(level, ConvectiveFlux::upwind);
    std::array<Vector<double>, 3> x;
    for (Vector<double>& each : x) each = Vector<double>(*engine_, level.size());
    Problem load = problem;
    load.force = time.initial;
    Discretisation::assemble(*engine_, level, *kernels, load, x[0].data());

    const auto number = static_cast<double>(solves.size());
    const auto measure = [&](Part part, double count, double vectors, const auto& work) {
      row.seconds[part] = count * timed.seconds(Pace::rested, work);
      row.bytes[part] = count * vectors * sizeof(double);
    };
    measure(convection, number, 2.0, [&] { convective->apply(x[0].data(), x[1].data(), x[2].data()); });
    measure(mass, number, 2.0, [&] { mass_matrix.apply(x[0].data(), x[1].data()); });
    measure(residual, row.cycles + number, 3.0, [&] { kernels->residual(x[0].data(), x[1].data(), x[2].data()); });
    row.seconds[cycle] = row.cycles * timed.cycle_seconds();
    row.bytes[cycle] = row.cycles * vcycle_vectors(options_.dim) * sizeof(float);

    // Sums of as many vectors as those of the step.
    std::size_t most = 0;
    for (const StepSolve& solve : solves)
      most = std::max({most, solve.coefficients.derivative.size() - 1, solve.coefficients.extrapolation.size() + 1});
    const std::vector<double> factors(most, 0.125);
    std::vector<Vector<double>> operands;
    std::vector<const double*> vectors;
    for (std::size_t i = 0; i < most; ++i) {
      operands.emplace_back(*engine_, level.size());
      kernels->copy(x[0].data(), operands.back().data());
      vectors.push_back(operands.back().data());
    }
    double least = 0.0;
    for (const StepSolve& solve : solves) {
      const auto flows = static_cast<double>(solve.coefficients.derivative.size() - 1);
      const auto forces = static_cast<double>(solve.coefficients.extrapolation.size() + 1);
      least += flows + forces + 3.0;  // read once, two sums written, one of them read
    }
    measure(history, 1.0, least, [&] {
      for (const StepSolve& solve : solves) {
        const std::size_t flows = solve.coefficients.derivative.size() - 1;
        kernels->two_sums(static_cast<int>(flows), vectors.data(), factors.data(), x[1].data(), factors.data(),
                          x[2].data());
        const std::size_t forces = solve.coefficients.extrapolation.size() + 1;
        kernels->axpys(static_cast<int>(forces), factors.data(), vectors.data(), 1.0, x[1].data());
      }
    });
  }

  void print(const Row& row) {
    const auto ns = [&](double seconds) { return seconds / row.dofs * 1e9; };
    std::string times = fmt::format("RT_{:<3} {:>8}  {:>12.0f}  {:8.4f}  {:6.2f}", row.order,
                                    cells_text(options_.dim, row.refine), row.dofs, ns(row.step), row.cycles);
    std::string floors = fmt::format("{:47}", "");
    Json entry{{"order", row.order},
               {"refine", row.refine},
               {"dofs", static_cast<std::int64_t>(row.dofs)},
               {"cycles", row.cycles}};
    entry["ns_per_dof"]["step"] = ns(row.step);
    for (int part = 0; part < parts; ++part) {
      const double floor = row.bytes[part] / copy_rate_ * 1e9;
      const int width = part == convection ? 10 : 8;
      times += fmt::format("  {:{}.4f}", ns(row.seconds[part]), width);
      floors += fmt::format("  {:{}.4f}", floor, width);
      entry["ns_per_dof"][part_names[part]] = ns(row.seconds[part]);
      entry["floor_ns_per_dof"][part_names[part]] = floor;
    }
    const double averages = ns(row.averaged - row.step);
    const double floor = averages_vectors(options_.dim) * sizeof(double) / copy_rate_ * 1e9;
    entry["ns_per_dof"]["rest"] = ns(row.rest());
    entry["ns_per_dof"]["averages"] = averages;
    entry["floor_ns_per_dof"]["averages"] = floor;
    run_.print(times + fmt::format("  {:8.4f}  {:8.4f}", ns(row.rest()), averages));
    run_.print(floors + fmt::format("  {:8}  {:8.4f}", "", floor));
    run_.json["rows"].push_back(std::move(entry));
  }

  /// Read and written: the flow, its mean, moments.
  static double averages_vectors(int dim) { return 3.0 + 2.0 * flow_moments(dim) / (dim + 1); }

  const Options& options_;
  StudyRun run_;
  std::unique_ptr<Engine> engine_;
  double copy_rate_ = 0.0;
};

}  // namespace

Command add_step(const CommandOptions& line) {
  const auto options = std::make_shared<Options>();
  options->dim = 3;
  options->orders = {1, 2, 3};
  options->add_to(line, "3", "1..3");
  line.add("--sizes", options->sizes, "numbers of unknowns, as 1e6,3e6; the nearest refinements are taken")
      .from(1, 1e12)
      .shows_default();
  add_choice(line, "--scheme", options->scheme, "of the steps");
  return [options] { return StepStudy(*options)(); };
}

}  // namespace solenoid::studies
