#pragma once
/// \file
/// What the study `paper` is made of: experiments, each of rows that are measured one by one and a part of the report.

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "solenoid/solver.hpp"
#include "studies/report/page.hpp"

namespace solenoid::studies::paper {

using Json = nlohmann::ordered_json;

/// Where and how much is measured.
struct Setting {
  Engine& engine;
  DeviceChoice device;
  int threads;
  bool cuda;   ///< the engine is a GPU
  bool quick;  ///< small sizes: minutes on two cores

  /// Default options on the device.
  [[nodiscard]] SolverOptions solver() const {
    SolverOptions options;
    options.device = device;
    options.threads = threads;
    return options;
  }
};

/// What a report says of where its rows were measured.
struct Machine {
  std::string device;
  bool cuda;
  bool quick;
};

/// One row: what it is (`key`), its share of the work, and the function that measures it. The function returns the
/// row's figures, or {"left_out": reason}, or throws an InputError or ResourceError, whose message is the reason: an
/// order that the build lacks, too, is a row that says so.
struct Task {  // NOLINT(bugprone-exception-escape): moving JSON does not throw
  Json key;
  std::string label;
  double cost;
  std::function<Json()> measure;
};

/// The rows of one experiment: keys and figures in one object.
using Rows = std::vector<Json>;

struct Experiment {
  const char* name;  ///< of its rows in paper.json and of its CSV file
  std::vector<Task> (*tasks)(const Setting& setting);
  void (*present)(const Rows& rows, const Machine& machine, report::Page& page);
};

// In the order of the paper.
extern const Experiment table1;          ///< iterations in 2D
extern const Experiment iterations_3d;   ///< and in 3D, over levels
extern const Experiment convergence_3d;  ///< errors over meshes and over run time
extern const Experiment kernels;         ///< operator and smoother, the paper's variants and ours; rooflines
extern const Experiment precision;       ///< double and mixed over problem size
extern const Experiment table2;          ///< Poisson against Stokes

// --- what experiments share ------------------------------------------------------------------------------------------

/// {"left_out": reason}
Json left_out(const std::string& reason);
/// The rows that were measured.
Rows measured(const Rows& rows);
/// The rows whose `field` is `value`.
template <class Value>
Rows where(const Rows& rows, const char* field, const Value& value) {
  Rows found;
  for (const Json& row : rows) {
    if (row.contains(field) && row[field] == value) found.push_back(row);
  }
  return found;
}
/// A number of a row, or nothing.
std::optional<double> number(const Json& row, const Json::json_pointer& field);
/// A remark in the report for every reason for which rows were left out.
void remark_left_out(const Rows& rows, report::Page& page);
/// Solves; what the report of the solve says about iterations, size and time. Its solution goes to `use`.
Json solve_row(const Problem& problem, const SolverOptions& options,
               const std::function<void(const Result&, Json&)>& use = {});

}  // namespace solenoid::studies::paper
