// Times of several ranks, to be started by mpirun with each number of them: efficiencies are quotients of its results.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "engine/ceilings.hpp"
#include "problem/names.hpp"
#include "solver/discretisation.hpp"
#include "solver/methods.hpp"
#include "solver/multigrid/cycle.hpp"
#include "studies/manufactured.hpp"
#include "studies/run.hpp"
#include "studies/study.hpp"
#include "studies/timing.hpp"

namespace solenoid::studies {
namespace {

struct Options : StudyArguments {
  std::vector<double> boxes{1, 1, 1};
  int refine = 5;
  int runs = 10;
};

class ScalingStudy {
 public:
  explicit ScalingStudy(const Options& options)
      : options_(options), run_(options, "scaling", 0.0), ranks_(run_.ranks().get()), solver_(run_.solver_options()) {}

  int operator()() {
    check_orders(options_.dim, options_.orders);
    if (std::ssize(options_.boxes) != options_.dim) {
      throw InputError(fmt::format("--boxes: expected {} numbers, got {}", options_.dim, options_.boxes.size()));
    }
    const auto engine = make_engine(solver_.device, solver_.threads, solver_.communicator, solver_.transport);
    const int ranks = ranks_ == nullptr ? 1 : ranks_->size();
    run_.json["dim"] = options_.dim;
    run_.json["boxes"] = options_.boxes;
    run_.json["refine"] = options_.refine;
    run_.json["ranks"] = ranks;
    run_.json["transport"] = engine->transport();
    run_.json["engine"] = engine->description();
    run_.json["rows"] = Json::array();
    run_.print(fmt::format("{} rank{}{}, {}; medians of {} runs\n", ranks, ranks == 1 ? "" : "s",
                           ranks == 1 ? "" : fmt::format(", messages: {}", engine->transport()), engine->description(),
                           options_.runs));
    run_.print(
        "                            ms: set-up  V-cycle  full multigrid    GMRES  iterations   bytes/  velocity");
    run_.print("order      unknowns                              (1 cycle)       (1e-8)             unknown  error");
    for (const int order : options_.orders) study(*engine, order);
    return run_.finish(true);
  }

 private:
  void study(Engine& engine, int order) {
    Problem problem = manufactured_problem(kind, options_.dim, order, options_.refine);
    for (int a = 0; a < options_.dim; ++a) {
      problem.mesh.cells[a] = static_cast<int>(options_.boxes[a]);
      problem.mesh.upper[a] = options_.boxes[a];
    }
    const auto start = std::chrono::steady_clock::now();
    Discretisation discretisation(problem, solver_, engine.dense_limits());
    const Level& finest = discretisation.finest();
    Vector<double> x(engine, discretisation.room());
    Vector<double> b(engine, discretisation.room());
    double cycle = 0.0;
    double gmres = 0.0;
    double set_up = 0.0;
    int iterations = 0;
    std::vector<KernelUse> outside;
    {
      solver_.method = Method::gmres;
      Solve<float> solve(engine, discretisation.hierarchy(), solver_);
      discretisation.load(engine, solve.outer(), x, b);
      solve.reserve();
      engine.synchronise();
      set_up = largest(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
      solve.cycle().kernels().from_double(b.data(), solve.cycle().right_hand_side());
      cycle = median(engine, [&] { solve.cycle().run(); });
      gmres = median(engine, [&] { iterations = run(solve, b, x).iterations; });
      outside = engine.profile([&] { run(solve, b, x); });  // cycles are recorded
    }
    const std::vector<KernelUse> kernels = engine.profile([&] {
      Cycle<float> alone(engine, discretisation.hierarchy(), solver_.multigrid);
      for (int i = 0; i < 3; ++i) alone.run();
    });
    double full = 0.0;
    double error = 0.0;
    {
      solver_.method = Method::fmg;
      Solve<float> solve(engine, discretisation.hierarchy(), solver_);
      solve.reserve();
      full = median(engine, [&] { run(solve, b, x); });
      discretisation.complete(engine, solve.outer(), x);
    }
    error = discretisation.errors(engine, x, Manufactured(kind, options_.dim).exact()).velocity.value_or(std::nan(""));
    const auto dofs = static_cast<double>(finest.dofs());
    const double bytes = sum(static_cast<double>(engine.bytes_peak()));
    run_.print(fmt::format("RT_{:<3} {:>13}           {:9.1f} {:8.3f} {:15.3f} {:8.3f} {:11} {:8.1f}  {:.2e}", order,
                           finest.dofs(), 1e3 * set_up, 1e3 * cycle, 1e3 * full, 1e3 * gmres, iterations, bytes / dofs,
                           error));
    run_.json["rows"].push_back(
        {{"order", order},
         {"dofs", finest.dofs()},
         {"iterations", iterations},
         {"bytes_per_dof", bytes / dofs},
         {"error", {{"velocity_l2", error}}},
         {"seconds", {{"set_up", set_up}, {"v_cycle", cycle}, {"full_multigrid", full}, {"gmres", gmres}}},
         {"kernels_of_cycles", list_of(kernels)},
         {"kernels_of_gmres", list_of(outside)}});
  }

  static Json list_of(const std::vector<KernelUse>& kernels) {
    Json all = Json::array();
    for (const KernelUse& kernel : kernels) {
      all.push_back({{"name", kernel.name},
                     {"launches", kernel.launches},
                     {"seconds", kernel.seconds},
                     {"all_seconds", kernel.all_seconds}});
    }
    return all;
  }

  Convergence run(Solve<float>& solve, const Vector<double>& b, Vector<double>& x) {
    solve.outer().zero(x.data());
    Convergence convergence;
    convergence.rtol = solver_.rtol;
    convergence.max_iterations = solver_.max_iterations;
    solve.run(b.data(), x.data(), true, convergence);
    solve.outer().project(x.data());
    return convergence;
  }

  /// Of runs that all ranks begin together; each takes as long as the slowest rank.
  template <class Work>
  double median(Engine& engine, const Work& work) {
    std::vector<double> times;
    for (int i = 0; i <= options_.runs; ++i) {
      engine.synchronise();
      const auto work_and_wait = [&] {
        work();
        engine.synchronise();
      };
      const double seconds = seconds_of(work_and_wait, ranks_);
      if (i > 0) times.push_back(seconds);  // the first one warms up
    }
    return median_of(std::move(times));
  }
  double largest(double mine) const {
    if (ranks_ != nullptr) ranks_->maximum(std::span(&mine, 1));
    return mine;
  }
  double sum(double mine) const {
    if (ranks_ != nullptr) ranks_->sum(std::span(&mine, 1));
    return mine;
  }

  static constexpr auto kind = ManufacturedKind::trigonometric;
  const Options& options_;
  StudyRun run_;
  const Communicator* ranks_;
  SolverOptions solver_;
};

}  // namespace

Command add_scaling(const CommandOptions& line) {
  const auto options = std::make_shared<Options>();
  options->dim = 3;
  options->orders = {2};
  options->add_to(line, "3", "2");
  line.add("--boxes", options->boxes, "coarse boxes per direction").from(1, 1000).type("N,N,N");
  line.add("--refine", options->refine, "times that boxes are refined").from(1, 20).type("N");
  line.add("--runs", options->runs, "runs that a time is the median of").from(1, 1000).type("N");
  options->add_transport_to(line);
  return [options] { return ScalingStudy(*options)(); };
}

}  // namespace solenoid::studies
