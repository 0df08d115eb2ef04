#include <fmt/format.h>

#include <cstdio>

#include "engine/engine.hpp"
#include "image/connectivity.hpp"
#include "problem/regions.hpp"
#include "program/commands.hpp"
#include "solver/discretisation.hpp"

namespace solenoid::program {
namespace {

std::string size_text(std::int64_t bytes) {
  constexpr double gigabyte = 1e9;
  const auto size = static_cast<double>(bytes);
  return size < gigabyte ? fmt::format("{:.0f} MB", size * 1e-6) : fmt::format("{:.1f} GB", size / gigabyte);
}

std::string count_text(std::int64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

/// What an image says of the flows that there can be in it.
void print_image(const Problem& problem) {
  const VoxelImage& image = *problem.mesh.image;
  const int dim = image.dim();
  std::array<bool, 3> periodic{};
  for (const int a : periodic_directions(problem)) periodic[a] = true;
  const Connectivity pores(image, periodic);
  const std::array<bool, 3> percolates = pores.percolates();
  std::vector<std::string_view> directions;
  for (int a = 0; a < dim; ++a) {
    if (percolates[a]) directions.push_back(std::string_view("xyz").substr(a, 1));
  }
  const auto voxels = static_cast<double>(image.size());
  fmt::print("{:<10} {} of {:g} m\n", "voxels", fmt::join(image.extent().begin(), image.extent().begin() + dim, " x "),
             fmt::join(image.voxel().begin(), image.voxel().begin() + dim, " x "));
  fmt::print("{:<10} {:.4f}, of pores that percolate {:.4f}\n", "porosity", image.porosity(),
             static_cast<double>(pores.flowing(percolates)) / voxels);
  fmt::print("{:<10} {} of pores\n", "components", pores.components().size());
  fmt::print("{:<10} {}\n", "percolates",
             directions.empty() ? "in no direction" : fmt::format("in {}", fmt::join(directions, ", ")));
  fmt::print("{:<10} {:.1f} % of the pore voxels, in runs of 1 or 2\n", "throats",
             100.0 * static_cast<double>(throat_voxels(image, periodic)) / static_cast<double>(image.pores()));
}

/// Unknowns up to which the problem is discretised: seconds.
constexpr std::int64_t few_unknowns = 10'000'000;

/// \throws InputError for what only the discrete problem shows: fields that are not finite, velocities or a force out
/// of balance, unknowns that the smoother does not reach.
void discretise(Case what) {
  what.solver.communicator = nullptr;
  if (what.time) {  // a step of length 1: what is steady need not be possible
    what.problem.mass += 1.0;
    what.problem.convection = false;
  }
  const auto engine = make_engine(DeviceChoice::cpu, what.solver.threads);
  Discretisation discretisation(what.problem, what.solver, engine->dense_limits());
  const auto kernels = make_kernels<double>(*engine, discretisation.finest(), LocalSolverKind::direct);
  Vector<double> work(*engine, discretisation.room());
  Vector<double> load(*engine, discretisation.room());
  discretisation.load(*engine, *kernels, work, load);
}

int check_case(const CaseArguments& arguments) {
  Case what = arguments.read();
  what.solver.communicator = launched_ranks();
  const int ranks = what.solver.communicator == nullptr ? 1 : what.solver.communicator->size();
  const Problem& problem = what.problem;
  const Mesh& mesh = problem.mesh;
  const Estimate need = what.time ? estimate(problem, what.time->options, what.solver) : estimate(problem, what.solver);
  const bool fits = need.bytes_needed <= need.bytes_available;

  const bool is_small = need.dofs <= few_unknowns;
  if (is_small) discretise(what);

  fmt::print("{}: {}\n", arguments.name(), fits ? "valid" : "does not fit into memory");
  const std::string element = problem.equation == EquationKind::poisson
                                  ? fmt::format("Q_{}, discontinuous", problem.order)
                                  : fmt::format("RT_{} x Q_{}", problem.order, problem.order);
  fmt::print("{:<10} {} in {}D\n", "element", element, mesh.dim);
  fmt::print("{:<10} {} coarse boxes, refined {}{}\n", "mesh",
             fmt::join(mesh.cells.begin(), mesh.cells.begin() + mesh.dim, " x "), count_text(mesh.refine, "time"),
             mesh.holes.empty() ? "" : ", " + count_text(static_cast<std::int64_t>(mesh.holes.size()), "hole"));
  if (mesh.image != nullptr) print_image(problem);
  fmt::print("{:<10} {}\n", "unknowns", need.dofs);
  fmt::print("{:<10} about {} of {} available{}\n", "memory", size_text(need.bytes_needed),
             size_text(need.bytes_available), ranks == 1 ? "" : fmt::format(", on each of {} ranks", ranks));
  if (!is_small) {
    fmt::print(
        "{:<10} finite fields, balance of velocities and force: more than {} million unknowns, solve checks them\n",
        "unchecked", few_unknowns / 1'000'000);
  }
  if (fits) return solved;
  std::fflush(stdout);
  fmt::print(stderr, "solenoid: the memory does not suffice; {}\n",
             need.largest_refine < 0 ? "no refinement fits"
                                     : fmt::format("the largest refinement that fits is {}", need.largest_refine));
  return resource_failure;
}

}  // namespace

Command add_check(const CommandOptions& line) {
  const auto arguments = std::make_shared<CaseArguments>();
  arguments->add_to(line);
  return [arguments] { return check_case(*arguments); };
}

}  // namespace solenoid::program
