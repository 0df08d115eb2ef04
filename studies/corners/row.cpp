#include "studies/corners/row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "solenoid/error.hpp"

namespace solenoid::studies::corners {
namespace {

Precision precision_of(const Case& what) { return setting_of(what.changes).solver.precision; }

std::size_t index_of(const std::string& what, const std::string& value) {
  const auto& changes = all_changes();
  const auto found = std::find_if(changes.begin(), changes.end(),
                                  [&](const Change& change) { return change.what == what && change.value == value; });
  if (found == changes.end()) throw InputError(fmt::format("there is no change of `{}` to '{}'", what, value));
  return found - changes.begin();
}

/// To four digits: more were not measured.
double rounded(double value) { return std::stod(fmt::format("{:.3e}", value)); }

CoarseSolve coarse_solve(const std::string& word) {
  for (const auto& [name, value] : Names<CoarseSolve>::all) {
    if (name == word) return value;
  }
  throw InputError(fmt::format("there is no coarse solve '{}'", word));
}

}  // namespace

std::string changes_text(const Case& what) {
  std::vector<std::string> changes;
  for (const std::size_t i : what.changes) {
    changes.push_back(fmt::format("{} {}", all_changes()[i].what, all_changes()[i].value));
  }
  return fmt::format("{}", fmt::join(changes, ", "));
}

std::string label(const Case& what) {
  return fmt::format("order {}, {:.2g}: {}", what.order, what.unknowns,
                     what.changes.empty() ? "main path" : changes_text(what));
}

MainPath::MainPath(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    if (!row.left_out.empty() || !on_main_path(row.what.changes)) continue;
    auto& times = ns_[{row.what.order, precision_of(row.what)}][static_cast<double>(row.dofs)];
    for (int figure = 0; figure < figures; ++figure) times[figure] = row.ns(static_cast<Figure>(figure));
  }
}

std::optional<double> MainPath::ns(Figure figure, int order, Precision precision, double dofs) const {
  const auto found = ns_.find({order, precision});
  if (found == ns_.end()) return std::nullopt;
  const auto& times = found->second;
  const auto above = times.lower_bound(dofs);
  if (above == times.end()) return std::prev(above)->second[figure];
  if (above == times.begin()) return above->second[figure];
  const auto below = std::prev(above);
  const double part = std::log(dofs / below->first) / std::log(above->first / below->first);
  return below->second[figure] * std::pow(above->second[figure] / below->second[figure], part);
}

std::optional<std::array<double, figures>> over_main_path(const Row& row, const MainPath& main) {
  if (!row.left_out.empty()) return std::nullopt;
  std::array<double, figures> ratios{};
  for (int i = 0; i < figures; ++i) {
    const auto figure = static_cast<Figure>(i);
    const auto ns = main.ns(figure, row.what.order, precision_of(row.what), static_cast<double>(row.dofs));
    if (!ns) return std::nullopt;
    ratios[i] = row.ns(figure) / *ns;
  }
  return ratios;
}

std::vector<Figure> above_bars(const std::array<double, figures>& over_main_path) {
  std::vector<Figure> above;
  for (const Figure figure : {smoothing_step, cycle, iteration, set_up}) {
    if (over_main_path[figure] > most_over_main_path) above.push_back(figure);
  }
  return above;
}

bool bars_hold(const Row& row, bool gpu) {
  constexpr std::int64_t enough = 1'000'000;
  constexpr std::int64_t largest_inverse = 8192;
  return gpu && row.left_out.empty() && row.dofs > enough && row.coarsest_dofs <= largest_inverse &&
         std::none_of(row.what.changes.begin(), row.what.changes.end(),
                      [](std::size_t i) { return slow_on_purpose(all_changes()[i]); });
}

nlohmann::ordered_json to_json(const Row& row, const MainPath& main, bool gpu) {
  nlohmann::ordered_json json = {{"order", row.what.order}, {"unknowns", row.what.unknowns}};
  json["changes"] = nlohmann::ordered_json::object();
  bool on_purpose = false;
  for (const std::size_t i : row.what.changes) {
    const Change& change = all_changes()[i];
    json["changes"][change.what] = change.value;
    on_purpose = on_purpose || slow_on_purpose(change);
  }
  if (!row.left_out.empty()) {
    json["left_out"] = row.left_out;
    return json;
  }
  json["slow_on_purpose"] = on_purpose;
  json["dofs"] = row.dofs;
  json["levels"] = row.levels;
  json["coarsest"] = {{"dofs", row.coarsest_dofs}, {"solve", name_of(row.coarsest)}};
  json["iterations"] = row.iterations;
  json["converged"] = row.converged;
  for (int figure = 0; figure < figures; ++figure) json["seconds"][figure_names[figure]] = rounded(row.seconds[figure]);
  if (const auto ratios = over_main_path(row, main)) {
    for (int figure = 0; figure < figures; ++figure)
      json["over_main_path"][figure_names[figure]] = rounded((*ratios)[figure]);
    json["above_bars"] = nlohmann::ordered_json::array();
    for (const Figure figure : above_bars(*ratios)) json["above_bars"].push_back(figure_names[figure]);
  }
  json["bars_hold"] = bars_hold(row, gpu);
  return json;
}

Row row_of(const nlohmann::ordered_json& json) {
  try {
    Row row;
    row.what.order = json.at("order");
    row.what.unknowns = json.at("unknowns");
    for (const auto& [what, value] : json.at("changes").items()) row.what.changes.push_back(index_of(what, value));
    std::sort(row.what.changes.begin(), row.what.changes.end());
    if (json.contains("left_out")) {
      row.left_out = json.at("left_out");
      return row;
    }
    row.dofs = json.at("dofs");
    row.levels = json.at("levels");
    row.coarsest_dofs = json.at("coarsest").at("dofs");
    row.coarsest = coarse_solve(json.at("coarsest").at("solve"));
    row.iterations = json.at("iterations");
    row.converged = json.at("converged");
    for (int figure = 0; figure < figures; ++figure) row.seconds[figure] = json.at("seconds").at(figure_names[figure]);
    return row;
  } catch (const nlohmann::json::exception& error) {
    throw InputError(fmt::format("not a row of this study: {}", error.what()));
  }
}

}  // namespace solenoid::studies::corners
