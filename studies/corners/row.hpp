#pragma once
/// \file
/// What the study `corners` measures, and what it is compared with: the main path.

#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "problem/names.hpp"
#include "solver/hierarchy.hpp"
#include "studies/corners/setting.hpp"

namespace solenoid {

template <>
struct Names<CoarseSolve> {
  static constexpr std::array<std::pair<std::string_view, CoarseSolve>, 4> all{{{"patch", CoarseSolve::patch},
                                                                                {"dense", CoarseSolve::dense},
                                                                                {"mac", CoarseSolve::mac},
                                                                                {"krylov", CoarseSolve::krylov}}};
};

namespace studies::corners {

/// The times of a row.
enum Figure { smoothing_step, cycle, iteration, solve, set_up, figures };
constexpr std::array<const char*, figures> figure_names{"smoothing_step", "cycle", "iteration", "solve", "set_up"};

/// What was measured of a case, or why nothing was.
struct Row {
  Case what;
  std::string left_out{};  ///< the reason; empty: measured
  std::int64_t dofs = 0;
  int levels = 0;
  std::int64_t coarsest_dofs = 0;
  CoarseSolve coarsest = CoarseSolve::dense;
  int iterations = 0;
  bool converged = false;
  std::array<double, figures> seconds{};

  [[nodiscard]] double ns(Figure figure) const { return 1e9 * seconds[figure] / static_cast<double>(dofs); }
};

/// "smoother additive, patch galerkin"
std::string changes_text(const Case& what);
/// "order 2, 1e+06: smoother additive, patch galerkin"
std::string label(const Case& what);

/// How long the main path takes per unknown, of the same order and precision: between the sizes that were measured as a
/// power of the number of unknowns, beyond them as at the nearest.
class MainPath {
 public:
  explicit MainPath(const std::vector<Row>& rows);

  /// Nothing if there is no row of that order and precision.
  [[nodiscard]] std::optional<double> ns(Figure figure, int order, Precision precision, double dofs) const;

 private:
  std::map<std::pair<int, Precision>, std::map<double, std::array<double, figures>>> ns_;
};

/// The times of a row per unknown, relative to those of the main path. Nothing of rows that were left out.
std::optional<std::array<double, figures>> over_main_path(const Row& row, const MainPath& main);

/// How many times the main path's time is too much.
constexpr double most_over_main_path = 2.0;

/// The figures for which the ratio is too large, of those that there are bars for: all but the whole solve, in which
/// iterations count.
std::vector<Figure> above_bars(const std::array<double, figures>& over_main_path);

/// Whether the bars hold for a row: on a GPU, for more than a million unknowns and a coarsest problem that a dense
/// inverse may solve, except where something is slow on purpose.
bool bars_hold(const Row& row, bool gpu);

/// What a row says in the JSON file, to four digits, its ratios to the main path and what is above the bars included;
/// and back.
nlohmann::ordered_json to_json(const Row& row, const MainPath& main, bool gpu);
/// \throws InputError if a field is missing, or if it names a change that there is not.
Row row_of(const nlohmann::ordered_json& json);

}  // namespace studies::corners
}  // namespace solenoid
