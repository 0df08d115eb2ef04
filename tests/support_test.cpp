// The table of what goes together: what it refuses is refused in its words, and every two choices that it does not
// refuse are solved together, on every engine of this machine.
#include "problem/support.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "problem/names.hpp"
#include "problem/orders.hpp"
#include "problem/validate.hpp"
#include "solenoid/solver.hpp"
#include "solenoid/time_stepper.hpp"

namespace solenoid {
namespace {

/// A choice on every axis, the order among them.
using Row = std::map<std::string, std::string>;

template <class Choice>
Choice choice(const std::string& name) {
  for (const auto& [word, value] : Names<Choice>::all) {
    if (word == name) return value;
  }
  throw InputError("no such name: " + name);
}

/// A few more unknowns than are always solved directly.
Problem problem_of(const Row& row) {
  Problem problem;
  problem.equation = choice<EquationKind>(row.at("equation"));
  problem.order = std::stoi(row.at("order"));
  problem.viscosity = 0.5;
  problem.mass = row.at("reaction") == "yes" ? 30.0 : 0.0;
  if (row.at("reaction") == "varying") {
    problem.varying_mass = ScalarField([](const Point& x) { return x[0] < 0.5 ? 30.0 : 0.0; });
  }
  if (row.at("viscosity") != "constant") {
    problem.varying_viscosity = ScalarField([](const Point& x) { return x[1] < 0.5 ? 0.5 : 2.0; });
    problem.form = row.at("viscosity") == "stress" ? ViscousForm::stress : ViscousForm::gradient;
  }
  problem.viscosity_points = choice<ViscosityPlaces>(row.at("viscosity_points"));
  problem.convection = row.at("convection") == "yes";
  Mesh& mesh = problem.mesh;
  mesh.dim = std::stoi(row.at("dimension"));
  for (int a = 0; a < mesh.dim; ++a) mesh.cells[a] = 2;
  const bool poisson = problem.equation == EquationKind::poisson;
  const double wanted = 1500.0;
  double unknowns = std::pow(4.0 * (problem.order + 1), mesh.dim) * (poisson ? 1.0 : mesh.dim + 1.0);
  for (mesh.refine = 1; unknowns < wanted; ++mesh.refine) unknowns *= std::pow(2.0, mesh.dim);
  if (row.at("mesh") == "holes") mesh.holes.push_back({{1, 1, mesh.dim - 2}, {2, 2, mesh.dim - 1}});
  if (row.at("mesh") == "flat") mesh.upper[0] = 4.0;
  if (row.at("mesh") == "sheared") mesh.edges = {Point{1, 0, 0}, Point{0.4, 0.9, 0}, Point{0.2, 0.1, 0.9}};
  const auto side = choice<SideKind>(row.at("boundary"));
  problem.boundary.sides[1].kind = side;
  if (side == SideKind::periodic) problem.boundary.sides[0].kind = side;
  problem.boundary.holes.kind = choice<SideKind>(row.at("holes"));
  problem.force[0] = ScalarField([](const Point& x) { return std::cos(3.0 * x[0] + x[1]) + x[2]; });
  if (!poisson) problem.force[1] = ScalarField([](const Point& x) { return std::sin(2.0 * x[0]) * x[1] + x[2]; });
  return problem;
}

SolverOptions options_of(const Row& row) {
  SolverOptions options;
  options.method = choice<Method>(row.at("method"));
  options.side = choice<PreconditionerSide>(row.at("side"));
  options.precision = choice<Precision>(row.at("precision"));
  options.device = choice<DeviceChoice>(row.at("device"));
  options.max_iterations = 100;
  MultigridOptions& multigrid = options.multigrid;
  multigrid.smoother = choice<SmootherKind>(row.at("smoother"));
  multigrid.colour_order = choice<ColourOrder>(row.at("colour_order"));
  multigrid.patch = choice<PatchProblem>(row.at("patch"));
  multigrid.local_solver = choice<LocalSolverKind>(row.at("local_solver"));
  multigrid.all_levels = true;
  return options;
}

/// The axes of the table and the orders of this build, as far as they are small; the device is the given one.
std::vector<std::pair<std::string, std::vector<std::string>>> axes_on(DeviceChoice device) {
  std::vector<std::pair<std::string, std::vector<std::string>>> axes;
  for (const Axis& axis : support_axes()) {
    axes.emplace_back(axis.name, std::vector<std::string>(axis.values.begin(), axis.values.end()));
    if (axis.name == "device") axes.back().second = {std::string(name_of(device))};
  }
  std::set<std::string> orders;
  for (const EquationKind equation : {EquationKind::stokes, EquationKind::poisson}) {
    for (const int dim : {2, 3}) {
      for (const int order : orders_for(device, dim, equation)) {
        if (order <= 3) orders.insert(std::to_string(order));
      }
    }
  }
  axes.emplace_back("order", std::vector<std::string>(orders.begin(), orders.end()));
  return axes;
}

/// Whether the build has the order, once the row says for what.
bool order_exists(const Row& row) {
  const auto value = [&](const char* axis) { return row.contains(axis) ? row.at(axis) : std::string(); };
  const std::string order = value("order");
  if (order.empty()) return true;
  for (const EquationKind equation : {EquationKind::stokes, EquationKind::poisson}) {
    if (!value("equation").empty() && name_of(equation) != value("equation")) continue;
    for (const int dim : {2, 3}) {
      if (!value("dimension").empty() && std::to_string(dim) != value("dimension")) continue;
      const auto orders = orders_for(choice<DeviceChoice>(value("device")), dim, equation);
      if (std::find(orders.begin(), orders.end(), std::stoi(order)) != orders.end()) return true;
    }
  }
  return false;
}

std::vector<Decision> decisions_of(const Row& row) {
  std::vector<Decision> result;
  for (const auto& [axis, value] : row) result.push_back({axis, value, axis});
  return result;
}

bool allowed(const Row& row) { return refusal(decisions_of(row)).rule == nullptr && order_exists(row); }

using Pair = std::array<std::pair<std::string, std::string>, 2>;

/// Rows in which every two choices that go together do so at least once.
class Pairs {
 public:
  explicit Pairs(DeviceChoice device) : axes_(axes_on(device)), device_(name_of(device)) {
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        for (const auto& first : axes_[i].second) {
          for (const auto& second : axes_[j].second) {
            const Pair pair{std::pair{axes_[i].first, first}, std::pair{axes_[j].first, second}};
            // Two choices may each go with what the other does not go with: slip sides and local problems of Poisson's.
            Row row{{"device", device_}};
            row[pair[0].first] = pair[0].second;
            row[pair[1].first] = pair[1].second;
            if (row.at("device") == device_ && allowed(row) && complete(row)) missing_.insert(pair);
          }
        }
      }
    }
  }

  std::vector<Row> rows() {
    std::vector<Row> rows;
    while (!missing_.empty()) {
      Row row{{"device", device_}, (*missing_.begin())[0], (*missing_.begin())[1]};
      complete(row);
      std::erase_if(missing_, [&](const Pair& p) { return has(row, p[0]) && has(row, p[1]); });
      rows.push_back(row);
    }
    return rows;
  }

 private:
  static bool has(const Row& row, const std::pair<std::string, std::string>& decision) {
    const auto found = row.find(decision.first);
    return found != row.end() && found->second == decision.second;
  }

  [[nodiscard]] std::ptrdiff_t covered(const Row& row) const {
    return std::count_if(missing_.begin(), missing_.end(),
                         [&](const Pair& p) { return has(row, p[0]) && has(row, p[1]); });
  }

  /// Chooses on the axes that are left, one after the other, what covers most missing pairs. False if nothing goes.
  bool complete(Row& row) const {
    const auto axis = std::find_if(axes_.begin(), axes_.end(), [&](const auto& a) { return !row.contains(a.first); });
    if (axis == axes_.end()) return true;
    std::vector<std::pair<std::ptrdiff_t, Row>> candidates;
    for (const auto& value : axis->second) {
      Row candidate = row;
      candidate[axis->first] = value;
      if (allowed(candidate)) candidates.emplace_back(covered(candidate), candidate);
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    for (auto& [count, candidate] : candidates) {
      if (!complete(candidate)) continue;
      row = candidate;
      return true;
    }
    return false;
  }

  std::vector<std::pair<std::string, std::vector<std::string>>> axes_;
  std::string device_;
  std::set<Pair> missing_;
};

std::string shown(const Row& row) {
  std::string text;
  for (const auto& [axis, value] : row) text += axis + " " + value + ", ";
  return text;
}

/// A step in time from a velocity that carries the flow, solved to 1e-8 as all first steps are; nothing if the solve
/// misses that.
std::optional<Solution> after_a_step(const Problem& problem, const SolverOptions& options) {
  const ScalarField begin([](const Point& x) { return std::cos(2.0 * x[1] + x[0]); });
  try {
    TimeStepper flow(problem, {.scheme = TimeScheme::sbdf1, .step = 0.02, .initial = {begin, begin, 0.0}}, options);
    flow.step();
    return flow.solution();
  } catch (const StepFailed&) {
    return {};
  }
}

double distance(const Solution& a, const Solution& b) {
  double difference = 0.0;
  double norm = 0.0;
  for (std::size_t i = 0; i < a.coefficients().size(); ++i) {
    difference += std::pow(a.coefficients()[i] - b.coefficients()[i], 2);
    norm += std::pow(b.coefficients()[i], 2);
  }
  return std::sqrt(difference / norm);
}

std::vector<DeviceChoice> devices() {
  std::vector<DeviceChoice> devices{DeviceChoice::cpu};
  if (cuda_unavailable().empty()) devices.push_back(DeviceChoice::cuda);
  return devices;
}

/// The first row that there is: what the table lists first, wherever that goes.
Row plain_row(DeviceChoice device, Row row) {
  row.emplace("device", name_of(device));
  for (const auto& [axis, values] : axes_on(device)) {
    if (row.contains(axis)) continue;
    row[axis] = values.front();
    for (const auto& value : values) {
      row[axis] = value;
      if (order_exists(row)) break;
    }
  }
  return row;
}

TEST(Support, WhatIsRefusedIsRefusedInTheWordsOfTheTable) {
  for (const Rule& rule : support_rules()) {
    for (const auto value : rule.values) {
      const auto with = rule.with_axis.empty() ? std::vector<std::string_view>{""} : rule.with_values;
      for (const auto other : with) {
        Row row{{std::string(rule.axis), std::string(value)}};
        if (!rule.with_axis.empty()) row[std::string(rule.with_axis)] = other;
        // The rule alone is broken: fused local problems are Poisson's, the stress form is not of order 0.
        if (rule.axis == "patch" && rule.with_axis != "equation") row["equation"] = "poisson";
        if (rule.with_axis == "viscosity_points") row["viscosity"] = "varying";
        const bool wants_order = rule.axis == "viscosity" || rule.axis == "mesh";
        if (wants_order && rule.with_axis != "order") row["order"] = "2";
        if (row.contains("order") && !order_exists(plain_row(DeviceChoice::cpu, row))) continue;
        row = plain_row(DeviceChoice::cpu, row);
        const Refusal expected = refusal(decisions_of(row));
        ASSERT_EQ(expected.rule, &rule) << shown(row);
        try {
          (void)solve(problem_of(row), options_of(row));
          ADD_FAILURE() << "not refused: " << shown(row);
        } catch (const InvalidEntry& error) {
          EXPECT_EQ(error.problem, expected.reason);
          if (rule.reason.find("{}") == std::string_view::npos) continue;
          EXPECT_NE(expected.reason.find(value), std::string::npos) << expected.reason;
        }
      }
    }
  }
}

TEST(Support, DecisionsAreThoseOfTheProblem) {
  for (const Row& row : Pairs(DeviceChoice::cpu).rows()) {
    auto found = decisions(problem_of(row));
    const auto others = decisions(options_of(row));
    found.insert(found.end(), others.begin(), others.end());
    for (const auto& [axis, value] : row) {
      if (value == "box") continue;
      EXPECT_TRUE(std::any_of(found.begin(), found.end(),
                              [&](const Decision& d) { return d.axis == axis && d.value == value; }))
          << axis << " " << value;
    }
  }
}

TEST(Support, EveryTwoChoicesThatGoTogetherAreSolved) {
  for (const DeviceChoice device : devices()) {
    std::map<std::string, Solution> known;
    for (const Row& row : Pairs(device).rows()) {
      SCOPED_TRACE(shown(row));
      const Problem problem = problem_of(row);
      Row key = row;
      for (const char* axis : {"method", "side", "smoother", "colour_order", "patch", "local_solver", "precision"}) {
        key.erase(axis);
      }
      SolverOptions exact;
      exact.device = DeviceChoice::cpu;
      exact.precision = Precision::full_double;
      exact.rtol = 1e-10;
      // Cycles with the additive smoother need not converge without GMRES around them; then the report says so.
      const bool flow = problem.convection;
      const bool may_diverge = (flow || row.at("method") == "vcycle") && row.at("smoother") == "additive";
      auto place = known.find(shown(key));
      if (place == known.end()) {
        place = known.emplace(shown(key), flow ? *after_a_step(problem, exact) : solve(problem, exact).solution).first;
      }
      if (flow) {
        const std::optional<Solution> solution = after_a_step(problem, options_of(row));
        EXPECT_TRUE(solution || may_diverge);
        if (!solution) continue;
        EXPECT_LT(distance(*solution, place->second), 1e-6);
        continue;
      }
      const auto [solution, report] = solve(problem, options_of(row));
      const double error = distance(solution, place->second);
      // One pass of full multigrid is near the solution; whether as near as it asks for, it says itself, and may not be
      // with a weak smoother or the lowest order.
      if (row.at("method") == "fmg") {
        const bool weak = (row.at("smoother") == "additive" || row.at("order") == "0") && !report.converged;
        EXPECT_LT(error, weak ? 0.7 : 0.1) << report.reason;
        continue;
      }
      EXPECT_TRUE(report.converged || may_diverge) << report.reason;
      EXPECT_EQ(report.converged, error < 1e-6) << error;
    }
  }
}

}  // namespace
}  // namespace solenoid
