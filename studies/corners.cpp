// What changes of problem and solver cost over the main path: no slow corner may hide.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "engine/engine.hpp"
#include "solenoid/error.hpp"
#include "studies/corners/row.hpp"
#include "studies/run.hpp"
#include "studies/timed_solve.hpp"

namespace solenoid::studies {
namespace {

using namespace corners;

struct Options : StudyArguments {
  std::vector<double> sizes{1e4, 1e5, 1e6, 1e7};
  int pairs = 200;
  std::uint64_t seed = 1;
  double time = 0.0;
};

class CornersStudy {
 public:
  explicit CornersStudy(const Options& options)
      : options_(options), run_(options, "corners", 0.0), engine_(make_engine(options.device, options.threads)) {
    std::sort(options_.sizes.begin(), options_.sizes.end());
  }

  int operator()() {
    choose_orders();
    run_.json["device"] = engine_->description();
    run_.json["threads"] = engine_->threads();
    take_up();
    run_.print(fmt::format("device  {}", engine_->description()));

    const auto supported = [this](const Setting& setting, int order) { return this->supported(setting, order); };
    const auto main_cases = main_path(options_.orders, options_.sizes);
    const auto singles = single_changes(options_.orders, options_.sizes, supported);
    const auto pairs = drawn_pairs(options_.pairs, options_.seed, options_.orders, options_.sizes, supported);
    run_.expect(static_cast<double>(main_cases.size() + singles.size() + pairs.size()));

    run_.print("\nThe main path, ns per unknown; each of another precision, too");
    print_head("");
    bool complete = measure_all(main_cases);
    run_.print(
        "\nTimes per unknown over those of the main path of the same order, precision and size; iterations as they "
        "are");
    print_head("  changes");
    complete = complete && measure_all(singles) && measure_all(pairs);
    store();
    if (!complete && !StudyRun::interrupted()) run_.print("\nThe time is up: the same command goes on from here.");
    return run_.finish(print_above(), complete);
  }

 private:
  [[nodiscard]] bool gpu() const { return engine_->stream() != nullptr; }

  /// Those of 1 to 4 that the engine has for the main path, unless others are asked for.
  void choose_orders() {
    if (!options_.orders.empty()) {
      check_orders(3, options_.orders);
      return;
    }
    for (int order = 1; order <= 4; ++order) {
      if (supported(Setting{}, order)) options_.orders.push_back(order);
    }
    if (options_.orders.empty()) throw InputError("this build has none of the orders 1 to 4 in 3D: name --orders");
  }

  /// Whether library and engine take it.
  bool supported(const Setting& setting, int order) {
    if (!valid(setting, order)) return false;
    const auto [known, unknown] = engine_has_.try_emplace({setting.dim, order, setting.equation});
    if (unknown) {
      Setting plain;
      plain.dim = setting.dim;
      plain.equation = setting.equation;
      const Hierarchy hierarchy(plain.problem(order, 1), {});
      try {
        make_kernels<float>(*engine_, hierarchy.finest(), LocalSolverKind::direct);
        known->second = true;
      } catch (const InputError&) {
        known->second = false;
      }
    }
    return known->second;
  }

  void take_up() {
    const auto earlier =
        earlier_run(options_.json, "--json", run_.json, {"study", "solenoid", "commit", "device", "threads"}, "rows");
    if (!earlier) return;
    run_.json["date"] = (*earlier)["date"];
    for (const Json& row : (*earlier)["rows"]) rows_.push_back(row_of(row));
  }

  void store() {
    const MainPath main(rows_);
    run_.json["rows"] = Json::array();
    for (const Row& row : rows_) run_.json["rows"].push_back(to_json(row, main, gpu()));
    run_.save();
  }

  /// Whether there was time for all of them.
  bool measure_all(const std::vector<Case>& cases) {
    for (const Case& what : cases) {
      const bool known = std::any_of(rows_.begin(), rows_.end(), [&](const Row& row) { return row.what == what; });
      if (!known) {
        if (StudyRun::interrupted() || (options_.time > 0.0 && elapsed() > options_.time)) return false;
        run_.show(label(what));
        Row row = measure(what);
        print_row(row);
        rows_.push_back(std::move(row));
        store();
      }
      run_.done(1.0);
    }
    return true;
  }

  [[nodiscard]] double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  Row measure(const Case& what) {
    Row row{.what = what};
    Setting setting = setting_of(what.changes);
    setting.solver.device = options_.device;
    setting.solver.threads = options_.threads;
    const Problem problem = setting.problem(what.order, setting.refine_for(what.order, what.unknowns));
    try {
      const Estimate need = estimate(problem, setting.solver);
      const double operands = 16.0 * static_cast<double>(need.dofs);  // of the parts, beside the solve
      if (static_cast<double>(need.bytes_needed) + operands > static_cast<double>(need.bytes_available)) {
        row.left_out = "it does not fit into the memory";
      } else if (setting.solver.precision == Precision::mixed) {
        measure<float>(problem, setting.solver, row);
      } else {
        measure<double>(problem, setting.solver, row);
      }
    } catch (const InputError& error) {
      row.left_out = error.what();
    } catch (const ResourceError& error) {
      row.left_out = error.what();
    }
    return row;
  }

  template <class S>
  void measure(const Problem& problem, const SolverOptions& solver, Row& row) {
    std::unique_ptr<Hierarchy> hierarchy;
    std::unique_ptr<TimedSolve<S>> timed;
    // The first time kernels may have to be loaded, too; of the others the shortest counts.
    constexpr int times = 4;
    constexpr double too_long_to_repeat = 1.0;
    for (int time = 0; time < times; ++time) {
      timed.reset();
      hierarchy.reset();
      const double seconds = seconds_of([&] {
        hierarchy = std::make_unique<Hierarchy>(problem, solver.multigrid, engine_->dense_limits());
        timed = std::make_unique<TimedSolve<S>>(*engine_, *hierarchy, problem, solver);
        engine_->synchronise();
      });
      row.seconds[set_up] = time < 2 ? seconds : std::min(row.seconds[set_up], seconds);
      if (seconds > too_long_to_repeat) break;
    }
    row.dofs = hierarchy->finest().dofs();
    row.levels = hierarchy->size();
    row.coarsest_dofs = hierarchy->levels.front()->dofs();
    row.coarsest = hierarchy->coarse;

    constexpr double long_enough = 0.06;  // seconds of a part
    timed->limit(long_enough);
    row.seconds[corners::solve] = timed->solve_seconds();
    const Convergence& convergence = timed->convergence();
    row.iterations = convergence.iterations;
    row.converged = convergence.converged;
    row.seconds[iteration] = row.seconds[corners::solve] / std::max(1, row.iterations);
    row.seconds[smoothing_step] = timed->smoothing_step_seconds(Pace::at_once);
    row.seconds[cycle] = timed->cycle_seconds(Pace::at_once);
  }

  // --- tables --------------------------------------------------------------------------------------------------------

  void print_head(const char* changes) {
    run_.print(fmt::format("k  {:>9}  {:>7} {:<6} {:>10} {:>8} {:>9} {:>8} {:>8}  iterations{}", "unknowns", "coarsest",
                           "", "smoothing", "cycle", "iteration", "solve", "set-up", changes));
  }

  void print_row(const Row& row) {
    if (!row.left_out.empty()) return run_.print(fmt::format("{}: left out, {}", label(row.what), row.left_out));
    const bool main = on_main_path(row.what.changes);
    const auto ratios = over_main_path(row, MainPath(rows_));
    std::string times;
    for (const Figure figure : {smoothing_step, cycle, iteration, corners::solve, set_up}) {
      const int width = figure == smoothing_step ? 10 : figure == iteration ? 9 : 8;
      times += main || ratios ? fmt::format(" {:{}.3g}", main ? row.ns(figure) : (*ratios)[figure], width)
                              : fmt::format(" {:>{}}", "-", width);
    }
    const bool above = !main && ratios && !above_bars(*ratios).empty();
    run_.print(fmt::format("{}  {:>9}  {:>7} {:<6}{}  {:>8}{}  {}{}", row.what.order, row.dofs, row.coarsest_dofs,
                           name_of(row.coarsest), times, row.iterations, row.converged ? "  " : " !",
                           changes_text(row.what),
                           !above                  ? ""
                           : bars_hold(row, gpu()) ? "   ABOVE"
                           : on_purpose(row.what)  ? "   (slow on purpose)"
                                                   : "   (slow)"));
  }

  static bool on_purpose(const Case& what) {
    return std::any_of(what.changes.begin(), what.changes.end(),
                       [](std::size_t i) { return slow_on_purpose(all_changes()[i]); });
  }

  /// The rows that are above a bar. Whether there are none.
  bool print_above() {
    const MainPath main(rows_);
    int slow = 0;
    int deliberate = 0;
    std::vector<std::string> above;
    for (const Row& row : rows_) {
      const auto ratios = over_main_path(row, main);
      if (!ratios || above_bars(*ratios).empty()) continue;
      if (bars_hold(row, gpu())) {
        std::vector<std::string> names;
        for (const Figure figure : above_bars(*ratios)) {
          names.push_back(fmt::format("{} {:.2f}", figure_names[figure], (*ratios)[figure]));
        }
        above.push_back(fmt::format("{}: {}", label(row.what), fmt::join(names, ", ")));
      } else {
        ++(on_purpose(row.what) ? deliberate : slow);
      }
    }
    run_.print(fmt::format(
        "\n{} rows; more than {} times the main path where there is no bar: {} rows, and {} with what is slow on "
        "purpose (the paper's methods)",
        rows_.size(), most_over_main_path, slow, deliberate));
    if (gpu()) run_.print(above.empty() ? "No row is above the bars." : "Above the bars:");
    for (const std::string& line : above) run_.print("  " + line);
    return above.empty();
  }

  Options options_;
  StudyRun run_;
  std::unique_ptr<Engine> engine_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::vector<Row> rows_;
  std::map<std::tuple<int, int, EquationKind>, bool> engine_has_;
};

}  // namespace

Command add_corners(const CommandOptions& line) {
  const auto options = std::make_shared<Options>();
  add_list(line, "--orders", options->orders, 0, 99, "k of RT_k x Q_k, as 1,2,3 or 1..3 (default: 1..4)");
  line.add("--sizes", options->sizes, "numbers of unknowns, as 1e5,1e6; the nearest refinements are taken")
      .from(1, 1e12)
      .shows_default();
  line.add("--pairs", options->pairs, "how many pairs of changes to draw").from(0, 100000).shows_default();
  line.add("--seed", options->seed, "of the draw").shows_default();
  add_choice(line, "--device", options->device, "where to solve");
  add_threads(line, options->threads);
  line.add("--time", options->time, "seconds after which no more is begun (default: until all is done)")
      .from(0)
      .shows("");
  line.add("--json", options->json, "write all numbers to this file, and go on from what an earlier run wrote there")
      .type("FILE");
  return [options] { return CornersStudy(*options)(); };
}

}  // namespace solenoid::studies
