#include "studies/paper/experiment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "studies/study.hpp"

namespace solenoid::studies::paper {

Json left_out(const std::string& reason) { return {{"left_out", reason}}; }

Rows measured(const Rows& rows) {
  Rows found;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(found),
               [](const Json& row) { return !row.contains("left_out"); });
  return found;
}

std::optional<double> number(const Json& row, const Json::json_pointer& field) {
  if (!row.contains(field)) return std::nullopt;
  return row[field].get<double>();
}

void remark_left_out(const Rows& rows, report::Page& page) {
  std::map<std::string, int> reasons;
  for (const Json& row : rows) {
    if (row.contains("left_out")) ++reasons[row["left_out"].get<std::string>()];
  }
  for (const auto& [reason, count] : reasons) {
    page.remark(fmt::format("Not run ({} {}): {}.", count, count == 1 ? "row" : "rows", reason));
  }
}

Json solve_row(const Problem& problem, const SolverOptions& options,
               const std::function<void(const Result&, Json&)>& use) {
  const Estimate need = estimate(problem, options);
  if (need.bytes_needed > need.bytes_available) return left_out("the memory does not suffice");
  const Result result = solve(problem, options);
  const Report& report = result.report;
  Json row = {{"dofs", report.dofs},
              {"converged", report.converged},
              {"iterations", report.iterations},
              {"fractional_iterations", report.fractional_iterations},
              {"seconds", report.time_solve}};
  if (use) use(result, row);
  return row;
}

}  // namespace solenoid::studies::paper
