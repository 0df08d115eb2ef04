// Time per unknown of the parts of a solve, beside what the machine can do at most.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "engine/cpu/ceilings.hpp"
#include "engine/engine.hpp"
#include "program/study.hpp"
#include "program/study_run.hpp"
#include "solver/hierarchy.hpp"
#include "solver/load.hpp"
#include "solver/multigrid.hpp"
#include "study/manufactured.hpp"

namespace solenoid::program {
namespace {

struct Options : StudyArguments {
  std::vector<double> sizes{3e6};
};

/// Time of work(), which waits until it is done: the median of at least ten runs, after one that does not count.
template <class Work>
double median_seconds(Work work) {
  using Clock = std::chrono::steady_clock;
  constexpr std::size_t fewest_runs = 10;
  constexpr double enough = 0.4;  // seconds in all
  work();
  std::vector<double> times;
  double sum = 0.0;
  while (times.size() < fewest_runs || sum < enough) {
    const auto start = Clock::now();
    work();
    times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    sum += times.back();
  }
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

struct Parts {
  double dofs = 0.0;
  // seconds
  double operator_double = 0.0;
  double operator_float = 0.0;
  double smoothing = 0.0;
  double vcycle = 0.0;
  double copy_bytes_per_second = 0.0;  ///< of a vector, by the engine: read and written
};

/// Times the kernels on the finest level of a problem.
Parts measure_parts(Engine& engine, const Problem& problem) {
  const MultigridOptions options;
  const Hierarchy hierarchy(problem, options);
  const Level& level = hierarchy.finest();
  Parts parts;
  parts.dofs = static_cast<double>(level.dofs());
  Multigrid<float> multigrid(engine, hierarchy, options);
  Kernels<float>& kernels = multigrid.kernels();
  Vector<float> b(engine, level.size());
  Vector<float> x(engine, level.size());
  Vector<float> y(engine, level.size());
  {
    const auto kernels_double = make_kernels<double>(engine, level, options.local_solver);
    Vector<double> wide(engine, level.size());
    Vector<double> image(engine, level.size());
    wide.upload(random_vector(level, 1).data());
    const double copy = median_seconds([&] {
      kernels_double->copy(wide.data(), image.data());
      engine.synchronise();
    });
    parts.copy_bytes_per_second = 2.0 * sizeof(double) * static_cast<double>(level.size()) / copy;
    parts.operator_double = median_seconds([&] {
      kernels_double->apply(wide.data(), image.data());
      engine.synchronise();
    });
    kernels.from_double(wide.data(), b.data());
    kernels.from_double(image.data(), x.data());
  }
  parts.operator_float = median_seconds([&] {
    kernels.apply(b.data(), y.data());
    engine.synchronise();
  });
  parts.smoothing = median_seconds([&] {
    multigrid.smooth(hierarchy.size() - 1, b.data(), x.data(), y.data(), x.data());
    engine.synchronise();
  });
  kernels.copy(b.data(), multigrid.right_hand_side());
  multigrid.record(hierarchy.size() - 1);
  parts.vcycle = median_seconds([&] {
    multigrid.cycle();
    engine.synchronise();
  });
  return parts;
}

class ThroughputStudy {
 public:
  explicit ThroughputStudy(const Options& options)
      : options_(options), run_(options, "throughput", 0.0), engine_(make_engine(options.device, options.threads)) {}

  int operator()() {
    check_orders(options_.dim, options_.orders);
    ceilings();
    run_.json["rows"] = Json::array();
    run_.print(fmt::format("\nns per unknown, {}D; mixed: cycles in fp32, the rest in fp64; solve: GMRES to {:.0e}\n",
                           options_.dim, rtol));
    run_.print("                             operator      smoothing   V-cycle  full multigrid     solve");
    run_.print(
        "order    cells    unknowns     fp64     fp32      fp32      fp32           mixed     mixed  iterations");
    for (const int order : options_.orders) {
      int last = -1;
      for (const double size : options_.sizes) {
        const int refine = nearest_refine(order, size);
        if (StudyRun::interrupted()) return run_.finish(false);
        if (refine != last) add(order, refine);
        last = refine;
      }
    }
    ratios();
    return run_.finish(converged_);
  }

 private:
  static constexpr double rtol = 1e-6;

  struct Row {
    int order = 0;
    int refine = 0;
    Parts parts;
    Report fmg;
    Report solve;
  };

  void ceilings() {
    run_.print(fmt::format("device  {}", engine_->description()));
    run_.json["dim"] = options_.dim;
    run_.json["device"] = engine_->description();
    run_.json["threads"] = engine_->threads();
    if (!on_cpu()) return;  // a device's copy rate is measured with each row
    run_.show("memory bandwidth");
    copy_ = measure_copy(engine_->threads(), engine_->bytes_available());
    run_.show("floating-point rate");
    const double fma_float = measure_fma<float>(engine_->threads());
    const double fma_double = measure_fma<double>(engine_->threads());
    run_.print(fmt::format("copy    {:.1f} GB/s, read and written ({:.1f} GB)", copy_.bytes_per_second * 1e-9,
                           static_cast<double>(copy_.bytes) * 1e-9));
    run_.print(fmt::format("FMA     {:.0f} GFLOP/s fp32, {:.0f} GFLOP/s fp64", fma_float * 1e-9, fma_double * 1e-9));
    run_.json["ceilings"] = {{"copy_bytes_per_second", copy_.bytes_per_second},
                             {"copy_bytes", copy_.bytes},
                             {"fma_fp32_per_second", fma_float},
                             {"fma_fp64_per_second", fma_double}};
  }

  /// The refinement whose number of unknowns is nearest, by ratio.
  [[nodiscard]] int nearest_refine(int order, double size) const {
    const double levels = std::log2(size / unknowns_about(options_.dim, order, 0)) / options_.dim;
    return std::max(1, static_cast<int>(std::lround(levels)));
  }

  void add(int order, int refine) {
    const Problem problem = manufactured_problem(ManufacturedKind::gaussian, options_.dim, order, refine);
    const auto cells = cells_text(options_.dim, refine);
    const auto label = fmt::format("RT_{}, {} cells", order, cells);
    SolverOptions options;
    options.rtol = rtol;
    options.device = options_.device;
    options.threads = options_.threads;
    // The solves first: they find out whether the memory suffices.
    const auto solve = best_solve(label, problem, options);
    options.method = Method::fmg;
    const auto fmg = solve ? best_solve(label, problem, options) : std::nullopt;
    if (!solve || !fmg || StudyRun::interrupted()) return;
    run_.show(label + ": kernels");
    const Row row{order, refine, measure_parts(*engine_, problem), *fmg, *solve};
    converged_ = converged_ && solve->converged && fmg->converged;
    const auto ns = [&](double seconds) { return seconds / row.parts.dofs * 1e9; };
    run_.print(fmt::format("RT_{:<3} {:>7}  {:>10}  {:7.4f}  {:7.4f}  {:8.4f}  {:8.4f}  {:14.3f}  {:8.3f}  {:>10}",
                           order, cells, solve->dofs, ns(row.parts.operator_double), ns(row.parts.operator_float),
                           ns(row.parts.smoothing), ns(row.parts.vcycle), ns(fmg->time_solve), ns(solve->time_solve),
                           solve->iterations));
    run_.json["rows"].push_back({{"order", order},
                                 {"refine", refine},
                                 {"dofs", solve->dofs},
                                 {"iterations", solve->iterations},
                                 {"copy_bytes_per_second", row.parts.copy_bytes_per_second},
                                 {"ns_per_dof",
                                  {{"operator_fp64", ns(row.parts.operator_double)},
                                   {"operator_fp32", ns(row.parts.operator_float)},
                                   {"smoothing_step_fp32", ns(row.parts.smoothing)},
                                   {"vcycle_fp32", ns(row.parts.vcycle)},
                                   {"full_multigrid_mixed", ns(fmg->time_solve)},
                                   {"solve_mixed", ns(solve->time_solve)}}},
                                 {"ratios",
                                  {{"operator_fp64_of_copy_bound", copy_bound(row)},
                                   {"smoothing_step_in_operators", smoothing_in_operators(row)},
                                   {"full_multigrid_dofs_per_second_per_core", per_core(row, row.fmg)},
                                   {"solve_dofs_per_second_per_core", per_core(row, row.solve)}}}});
    rows_.push_back(row);
  }

  /// The report of the fastest of two solves.
  std::optional<Report> best_solve(const std::string& label, const Problem& problem, const SolverOptions& options) {
    std::optional<Report> best;
    for (int i = 0; i < 2; ++i) {
      const auto result = run_.solve(label, problem, options);
      if (!result) return std::nullopt;
      if (!best || result->report.time_solve < best->time_solve) best = result->report;
    }
    return best;
  }

  /// Speed of the operator over that of reading and writing one vector of doubles.
  [[nodiscard]] double copy_bound(const Row& row) const {
    constexpr double bytes_per_dof = 16.0;
    const double rate = on_cpu() ? copy_.bytes_per_second : row.parts.copy_bytes_per_second;
    return bytes_per_dof * row.parts.dofs / rate / row.parts.operator_double;
  }
  [[nodiscard]] bool on_cpu() const { return engine_->description().starts_with("cpu"); }
  static double smoothing_in_operators(const Row& row) { return row.parts.smoothing / row.parts.operator_double; }
  [[nodiscard]] double per_core(const Row& row, const Report& report) const {
    return row.parts.dofs / report.time_solve / engine_->threads();
  }

  void ratios() {
    run_.print("\n                 operator fp64        smoothing step        full multigrid                 solve");
    run_.print("order    cells   of copy bound   in fp64 operators  million DoF/s/core   million DoF/s/core");
    for (const Row& row : rows_) {
      run_.print(fmt::format("RT_{:<3} {:>7}  {:14.2f}  {:18.1f}  {:18.2f}  {:19.2f}", row.order,
                             cells_text(options_.dim, row.refine), copy_bound(row), smoothing_in_operators(row),
                             per_core(row, row.fmg) * 1e-6, per_core(row, row.solve) * 1e-6));
    }
  }

  const Options& options_;
  StudyRun run_;
  std::unique_ptr<Engine> engine_;
  CopyRate copy_;
  std::vector<Row> rows_;
  bool converged_ = true;
};

}  // namespace

Command add_throughput(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  options->dim = 3;
  options->orders = {1, 2, 3};
  options->add_to(app, "3", "1..3");
  app.add_option("--sizes", options->sizes, "numbers of unknowns, as 1e6,3e6; the nearest refinements are taken")
      ->delimiter(',')
      ->check(CLI::Range(1.0, 1e12))
      ->capture_default_str();
  return [options] { return ThroughputStudy(*options)(); };
}

}  // namespace solenoid::program
