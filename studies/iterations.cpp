// Iteration counts of GMRES with the multigrid V-cycle, over orders and mesh levels.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "studies/manufactured.hpp"
#include "studies/paper/published.hpp"
#include "studies/run.hpp"
#include "studies/study.hpp"

namespace solenoid {

namespace studies {
enum class RightHandSide { problem, random, both };
}  // namespace studies

template <>
struct Names<studies::RightHandSide> {
  static constexpr std::array<std::pair<std::string_view, studies::RightHandSide>, 3> all{
      {{"problem", studies::RightHandSide::problem},
       {"random", studies::RightHandSide::random},
       {"both", studies::RightHandSide::both}}};
};

namespace studies {
namespace {

/// NaN where the paper's Table 1 has no entry.
double paper_value(int order, int level) {
  return published::table1_schur.at(order, level).value_or(std::numeric_limits<double>::quiet_NaN());
}

/// How far an entry may be from the paper's, which is rounded to 0.1.
double paper_tolerance(int order) { return order == 8 ? 0.2 : 0.1; }

struct Options : StudyArguments {
  Preset preset = Preset::standard;
  std::vector<int> levels;
  double rtol = published::Table1::rtol;
  RightHandSide rhs = RightHandSide::both;
  Precision precision = Precision::mixed;
};

struct Row {
  int order = 0;
  int level = 0;
  bool random = false;
  Report report;

  [[nodiscard]] double paper() const {
    return random ? std::numeric_limits<double>::quiet_NaN() : paper_value(order, level);
  }
  [[nodiscard]] double difference() const { return report.fractional_iterations - paper(); }
};

class IterationStudy {
 public:
  explicit IterationStudy(const Options& options)
      : options_(options), run_(options, "iterations", total(options)), compares_(compares(options)) {}

  int operator()() {
    check_orders(options_.dim, options_.orders);
    run_.json["preset"] = name_of(options_.preset);
    run_.json["dim"] = options_.dim;
    run_.json["precision"] = name_of(options_.precision);
    run_.json["rtol"] = options_.rtol;
    run_.json["rows"] = Json::array();
    run_.print(fmt::format(
        "GMRES iterations to {:.0e}, preset {}, {} precision, {}D{}; L levels: 2^(L-1) cells per direction",
        options_.rtol, name_of(options_.preset), name_of(options_.precision), options_.dim, run_.ranks_text()));
    run_.print(fmt::format("order   L  {:>7}  {:>10}  load     iterations  fractional{}  seconds", "cells", "unknowns",
                           compares_ ? "  paper  difference" : ""));
    for (const int order : options_.orders) {
      for (const int level : options_.levels) {
        for (const bool random : {false, true}) {
          if (options_.rhs == (random ? RightHandSide::problem : RightHandSide::random)) continue;
          if (StudyRun::interrupted()) return run_.finish(false);
          add(order, level, random);
        }
      }
    }
    const bool converged =
        !rows_.empty() && std::all_of(rows_.begin(), rows_.end(), [](const Row& row) { return row.report.converged; });
    summarise(false);
    summarise(true);
    const bool as_paper = !compares_ || compare_with_paper();
    return run_.finish(converged && as_paper);
  }

 private:
  static double total(const Options& options) {
    double sum = 0.0;
    for (const int order : options.orders) {
      for (const int level : options.levels) sum += unknowns_about(options.dim, order, level - 1);
    }
    return options.rhs == RightHandSide::both ? 2 * sum : sum;
  }

  static bool compares(const Options& options) {
    return options.preset == Preset::paper && options.dim == 2 && options.rtol == published::Table1::rtol &&
           options.rhs != RightHandSide::random;
  }

  void add(int order, int level, bool random) {
    SolverOptions options = run_.solver_options();
    options.apply(options_.preset);
    options.rtol = options_.rtol;
    options.precision = options_.precision;
    options.random_load = random ? 1 : 0;
    const int refine = level - 1;
    const auto cells = cells_text(options_.dim, refine);
    const auto result =
        run_.solve(fmt::format("RT_{}, {} cells", order, cells),
                   manufactured_problem(ManufacturedKind::gaussian, options_.dim, order, refine), options);
    if (!result) return;
    const Row row{order, level, random, result->report};
    const Report& report = row.report;
    std::string paper;
    if (compares_) {
      paper = std::isnan(row.paper()) ? fmt::format("  {:>5}  {:>10}", "-", "-")
                                      : fmt::format("  {:5.1f}  {:+10.2f}", row.paper(), row.difference());
    }
    run_.print(fmt::format("RT_{:<3} {:>2}  {:>7}  {:>10}  {:<7}  {:>10}  {:>10.2f}{}  {:7.2f}{}", order, level, cells,
                           report.dofs, random ? "random" : "problem", report.iterations, report.fractional_iterations,
                           paper, report.time_setup + report.time_solve, report.converged ? "" : "  " + report.reason));
    Json entry = {{"order", order},
                  {"level", level},
                  {"refine", refine},
                  {"dofs", report.dofs},
                  {"load", random ? "random" : "problem"},
                  {"converged", report.converged},
                  {"iterations", report.iterations},
                  {"fractional_iterations", report.fractional_iterations},
                  {"time", {{"setup", report.time_setup}, {"solve", report.time_solve}}}};
    if (compares_ && !std::isnan(row.paper())) {
      entry["paper"] = row.paper();
      entry["difference"] = row.difference();
    }
    run_.json["rows"].push_back(entry);
    rows_.push_back(row);
  }

  /// The rows with a load, in the shape of the paper's table; its values beside them where they are compared.
  void summarise(bool random) {
    if (std::none_of(rows_.begin(), rows_.end(), [&](const Row& row) { return row.random == random; })) return;
    const bool beside = compares_ && !random;
    run_.print(fmt::format("\nFractional iterations, {}{}:", random ? "random load" : "load of the paper's problem",
                           beside ? " (in brackets: the paper's Table 1, Schur complement)" : ""));
    std::string head = "  L";
    std::string last = "max";
    for (const int order : options_.orders) {
      head += fmt::format("{:>12}", fmt::format("RT_{}", order));
      double largest = 0.0;
      for (const Row& row : rows_) {
        if (row.order != order || row.random != random) continue;
        // std::max() passes over a difference that is NaN.
        largest = std::max(largest, beside ? std::abs(row.difference()) : row.report.fractional_iterations);
      }
      last += fmt::format("{:12.2f}", largest);
    }
    run_.print(head);
    for (const int level : options_.levels) {
      std::string line = fmt::format("{:>3}", level);
      for (const int order : options_.orders) line += table_entry(order, level, random, beside);
      run_.print(line);
    }
    run_.print(last + (beside ? "  largest difference" : ""));
  }

  [[nodiscard]] std::string table_entry(int order, int level, bool random, bool beside) const {
    const auto row = std::find_if(rows_.begin(), rows_.end(), [&](const Row& candidate) {
      return candidate.order == order && candidate.level == level && candidate.random == random;
    });
    if (row == rows_.end()) return fmt::format("{:>12}", "-");
    const double iterations = row->report.fractional_iterations;
    if (!beside || std::isnan(row->paper())) return fmt::format("{:12.2f}", iterations);
    return fmt::format("  {:4.2f} ({:3.1f})", iterations, row->paper());
  }

  /// True if every entry that the paper has too is as close to it as it should be.
  bool compare_with_paper() {
    int compared = 0;
    std::vector<std::string> outside;
    Json largest = Json::object();
    for (const Row& row : rows_) {
      if (std::isnan(row.paper())) continue;
      const double difference = std::abs(row.difference());
      const auto order = std::to_string(row.order);
      largest[order] = std::max(difference, largest.value(order, 0.0));
      ++compared;
      if (difference <= paper_tolerance(row.order)) continue;
      outside.push_back(fmt::format("RT_{}, L = {}: {:.2f} against {:.1f}", row.order, row.level,
                                    row.report.fractional_iterations, row.paper()));
    }
    run_.json["paper"] = {
        {"source", "Multigrid methods for the Stokes problem on GPU systems, Table 1, Schur complement"},
        {"compared", compared},
        {"outside", outside.size()},
        {"largest_difference", largest}};
    run_.print(outside.empty() ? fmt::format("\nAll {} entries are within 0.1 of the paper (RT_8: 0.2).", compared)
                               : fmt::format("\n{} of {} entries are within 0.1 of the paper (RT_8: 0.2); not: {}.",
                                             compared - outside.size(), compared, fmt::join(outside, "; ")));
    return outside.empty();
  }

  const Options& options_;
  StudyRun run_;
  bool compares_;
  std::vector<Row> rows_;
};

}  // namespace

Command add_iterations(const CommandOptions& line) {
  const auto options = std::make_shared<Options>();
  add_choice(line, "--preset", options->preset, "paper: the method of the paper");
  options->add_to(line, "3, with --preset paper 2", "1..3, in 2D 1..5, with --preset paper 3..8");
  options->add_transport_to(line);
  add_list(line, "--levels", options->levels, 1, 20,
           "mesh levels L, of 2^(L-1) cells per direction (default: 3..6, in 2D 3..9)");
  line.add("--rtol", options->rtol, "relative tolerance").from(1e-14, 0.5).shows_default();
  const Option rhs = add_choice(line, "--rhs", options->rhs,
                                "load: of the paper's problem, random (default: both, with --preset paper problem)")
                         .shows("");
  // Left preconditioning in single precision stalls near 1e-8.
  const Option precision =
      add_choice(line, "--precision", options->precision,
                 "of the cycle; residuals are always double (default: mixed, with --preset paper double)")
          .shows("");
  return [=] {
    const bool paper = options->preset == Preset::paper;
    if (options->dim == 0) options->dim = paper ? 2 : 3;
    const bool plane = options->dim == 2;
    if (options->orders.empty()) {
      options->orders = plane && paper ? std::vector{3, 4, 5, 6, 7, 8}
                        : plane        ? std::vector{1, 2, 3, 4, 5}
                                       : std::vector{1, 2, 3};
    }
    if (options->levels.empty()) options->levels = plane ? std::vector{3, 4, 5, 6, 7, 8, 9} : std::vector{3, 4, 5, 6};
    if (paper && !rhs.given()) options->rhs = RightHandSide::problem;
    if (paper && !precision.given()) options->precision = Precision::full_double;
    return IterationStudy(*options)();
  };
}

}  // namespace studies
}  // namespace solenoid
