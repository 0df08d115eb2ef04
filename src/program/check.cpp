#include <fmt/format.h>

#include "program/commands.hpp"

namespace solenoid::program {
namespace {

std::string in_gigabytes(std::int64_t bytes) { return fmt::format("{:.3f} GB", static_cast<double>(bytes) * 1e-9); }

int check_case(const CaseArguments& arguments) {
  const Case what = arguments.read();
  const Problem& problem = what.problem;
  const Mesh& mesh = problem.mesh;
  const Estimate need = estimate(problem, what.solver);
  const bool fits = need.bytes_needed <= need.bytes_available;

  fmt::print("{}: valid\n", arguments.file.string());
  fmt::print("{:<10} RT_{} x Q_{} in {}D\n", "element", problem.order, problem.order, mesh.dim);
  fmt::print("{:<10} {} coarse boxes, refined {} times{}\n", "mesh",
             fmt::join(mesh.cells.begin(), mesh.cells.begin() + mesh.dim, " x "), mesh.refine,
             mesh.holes.empty() ? "" : fmt::format(", {} holes", mesh.holes.size()));
  fmt::print("{:<10} {}\n", "unknowns", need.dofs);
  fmt::print("{:<10} about {} of {} available\n", "memory", in_gigabytes(need.bytes_needed),
             in_gigabytes(need.bytes_available));
  if (fits) return solved;
  fmt::print(stderr, "solenoid: the memory does not suffice; {}\n",
             need.largest_refine < 0 ? "no refinement fits"
                                     : fmt::format("the largest refinement that fits is {}", need.largest_refine));
  return resource_failure;
}

}  // namespace

Command add_check(CLI::App& app) {
  const auto arguments = std::make_shared<CaseArguments>();
  arguments->add_to(app);
  return [arguments] { return check_case(*arguments); };
}

}  // namespace solenoid::program
