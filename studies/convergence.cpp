// Errors against a known solution, and the order with which they fall under refinement.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "studies/manufactured.hpp"
#include "studies/run.hpp"
#include "studies/study.hpp"

namespace solenoid::studies {
namespace {

constexpr auto kind = ManufacturedKind::trigonometric;
/// Errors below this are no longer those of the discretisation alone: the solver's tolerance and rounding show.
constexpr double rounding = 1e-9;
/// Unknowns up to which a default study refines.
constexpr double enough_unknowns = 5e5;
/// How far below k + 1 an observed order may be.
constexpr double tolerance = 0.2;

struct Options : StudyArguments {
  EquationKind equation = EquationKind::stokes;
  std::vector<int> refinements;
};

struct Row {
  int refine = 0;
  double velocity_error = 0.0;
  double pressure_error = 0.0;
  double value_error = 0.0;
  double divergence = 0.0;
};

/// The errors of an equation by name.
struct ErrorOf {
  const char* name;
  double Row::*value;
};
std::vector<ErrorOf> errors_of(EquationKind equation) {
  if (equation == EquationKind::poisson) return {{"value", &Row::value_error}};
  return {{"velocity", &Row::velocity_error}, {"pressure", &Row::pressure_error}};
}

/// Relative tolerance of the solver: the residual cannot fall below rounding of the largest terms in it.
double tolerance_of_solve(int order, int refine) {
  constexpr double smallest = 1e-12;
  const double inverse_h = std::ldexp(order + 1.0, refine);
  return std::max(smallest, std::numeric_limits<double>::epsilon() * inverse_h * inverse_h);
}

double observed_order(double coarse, double fine, int refinements) { return std::log2(coarse / fine) / refinements; }

class ConvergenceStudy {
 public:
  explicit ConvergenceStudy(const Options& options)
      : options_(options), errors_(errors_of(options.equation)), run_(options, "convergence", total(options)) {}

  int operator()() {
    const auto dims = dimensions(options_);
    for (const int dim : dims) check_orders(dim, orders(options_, dim), options_.equation);
    run_.json["rows"] = Json::array();
    run_.json["orders"] = Json::array();
    run_.print(poisson() ? "L2 errors of prod_a cos(pi x_a), expected order: k + 1"
                         : "L2 errors on the problem of deal.II's step-104, expected order: k + 1");
    bool good = true;
    for (const int dim : dims) {
      std::string line = fmt::format("\n{}D     {:>7}  {:>9}", dim, "cells", "unknowns");
      for (const ErrorOf& error : errors_) line += fmt::format("  {:>10}  {:>5}", error.name, "order");
      if (!poisson()) line += fmt::format("  {:>10}", "divergence");
      run_.print(line + fmt::format("  {:>7}", "seconds"));
      for (const int order : orders(options_, dim)) {
        good = study(dim, order) && good;
        if (StudyRun::interrupted()) return run_.finish(false);
      }
    }
    if (!poisson()) run_.print(fmt::format("\nLargest divergence: {:.1e} (of |u|/h).", largest_divergence_));
    run_.print(
        good ? fmt::format("All orders are k + 1 (at least k + {:.1f} between the last two meshes above rounding).",
                           1.0 - tolerance)
             : fmt::format("Not as expected: {}.", fmt::join(failures_, ", ")));
    return run_.finish(good);
  }

 private:
  static std::vector<int> dimensions(const Options& options) {
    return options.dim == 0 ? std::vector{2, 3} : std::vector{options.dim};
  }
  static std::vector<int> orders(const Options& options, int dim) {
    if (!options.orders.empty()) return options.orders;
    return dim == 2 ? std::vector{0, 1, 2, 3, 4, 5} : std::vector{0, 1, 2, 3};
  }
  static std::vector<int> refinements(const Options& options, int dim, int order) {
    if (!options.refinements.empty()) return options.refinements;
    std::vector<int> list;
    for (int refine = 1; unknowns_about(dim, order, refine, options.equation) <= enough_unknowns; ++refine) {
      list.push_back(refine);
    }
    return list;
  }
  static double total(const Options& options) {
    double sum = 0.0;
    for (const int dim : dimensions(options)) {
      for (const int order : orders(options, dim)) {
        for (const int refine : refinements(options, dim, order)) {
          sum += unknowns_about(dim, order, refine, options.equation);
        }
      }
    }
    return sum;
  }

  [[nodiscard]] bool poisson() const { return options_.equation == EquationKind::poisson; }
  [[nodiscard]] std::string element(int order) const { return element_name(options_.equation, order); }

  /// True if an error on the last mesh is that of rounding: then there is no need of finer ones.
  [[nodiscard]] bool exact(const std::vector<Row>& rows) const {
    return !rows.empty() && std::any_of(errors_.begin(), errors_.end(),
                                        [&](const ErrorOf& error) { return rows.back().*error.value < rounding; });
  }

  /// One element on its meshes. True if all errors fall as they should.
  bool study(int dim, int order) {
    std::vector<Row> rows;
    bool converged = true;
    for (const int refine : refinements(options_, dim, order)) {
      if (exact(rows)) {
        run_.done(unknowns_about(dim, order, refine, options_.equation));
        continue;
      }
      SolverOptions options;
      options.rtol = tolerance_of_solve(order, refine);
      options.device = options_.device;
      options.threads = options_.threads;
      const auto label = fmt::format("{}D {}, {} cells", dim, element(order), cells_text(dim, refine));
      const Problem problem =
          poisson() ? manufactured_poisson(dim, order, refine) : manufactured_problem(kind, dim, order, refine);
      const auto result = run_.solve(label, problem, options);
      if (StudyRun::interrupted()) return false;
      if (!result) continue;
      run_.show(label + ": errors");
      add(dim, order, refine, *result, rows);
      if (!result->report.converged) {
        converged = false;
        failures_.push_back(label + " did not converge");
      }
    }
    return judge(dim, order, rows) && converged;
  }

  void add(int dim, int order, int refine, const Result& result, std::vector<Row>& rows) {
    const Manufactured exact(kind, dim);
    const Solution& solution = result.solution;
    const Report& report = result.report;
    Row row{refine};
    if (poisson()) {
      row.value_error = solution.value_error(exact.pressure);
    } else {
      row.velocity_error = solution.velocity_error(exact.velocity);
      row.pressure_error = solution.pressure_error(exact.pressure);
      row.divergence = solution.divergence_max();
    }
    largest_divergence_ = std::max(largest_divergence_, row.divergence);
    Json json = {{"dim", dim},
                 {"order", order},
                 {"refine", refine},
                 {"dofs", report.dofs},
                 {"converged", report.converged},
                 {"iterations", report.iterations}};
    std::string line = fmt::format("{:<6} {:>7}  {:>9}", element(order), cells_text(dim, refine), report.dofs);
    for (const auto& [name, error] : errors_) {
      const std::string rate =
          rows.empty()
              ? ""
              : fmt::format("{:.2f}", observed_order(rows.back().*error, row.*error, refine - rows.back().refine));
      line += fmt::format("  {:10.3e}  {:>5}", row.*error, rate);
      json["error"][fmt::format("{}_l2", name)] = row.*error;
    }
    if (!poisson()) {
      line += fmt::format("  {:10.1e}", row.divergence);
      json["divergence_max"] = row.divergence;
    }
    run_.print(line + fmt::format("  {:7.2f}{}", report.time_setup + report.time_solve,
                                  report.converged ? "" : "  " + report.reason));
    run_.json["rows"].push_back(json);
    rows.push_back(row);
  }

  /// Judges an element by all errors.
  bool judge(int dim, int order, const std::vector<Row>& rows) {
    Json entry = {{"dim", dim}, {"order", order}, {"expected", order + 1}};
    bool good = true;
    if (rows.size() < 2 && !exact(rows)) {
      good = false;
      failures_.push_back(fmt::format("no orders of {}D {}, which take two meshes", dim, element(order)));
    }
    for (const auto& [name, error] : errors_) good = judge(name, error, rows, entry) && good;
    run_.json["orders"].push_back(entry);
    return good;
  }

  /// Judges the last two meshes on which an error is above rounding.
  bool judge(const char* name, double Row::*error, const std::vector<Row>& rows, Json& entry) {
    const auto end = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.*error < rounding; });
    if (end - rows.begin() < 2) return true;
    const Row& fine = *(end - 1);
    const Row& coarse = *(end - 2);
    const double observed = observed_order(coarse.*error, fine.*error, fine.refine - coarse.refine);
    entry[name] = observed;
    if (observed >= entry["expected"].get<double>() - tolerance) return true;
    failures_.push_back(fmt::format("{} of {}D {} {:.2f}", name, entry["dim"].get<int>(),
                                    element(entry["order"].get<int>()), observed));
    return false;
  }

  const Options& options_;
  std::vector<ErrorOf> errors_;
  StudyRun run_;
  double largest_divergence_ = 0.0;
  std::vector<std::string> failures_;
};

}  // namespace

Command add_convergence(const CommandOptions& line) {
  const auto options = std::make_shared<Options>();
  options->add_to(line, "2 and 3", "0..5 in 2D, 0..3 in 3D");
  add_choice(line, "--equation", options->equation, "what is solved");
  add_list(line, "--refine", options->refinements, 0, 19,
           "refinements of the one-cell mesh (default: from 1 to half a million unknowns)");
  return [options] { return ConvergenceStudy(*options)(); };
}

}  // namespace solenoid::studies
