#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <span>

#include "engine/engine.hpp"
#include "image/connectivity.hpp"
#include "level/patch_scale.hpp"
#include "permeability/flow_setup.hpp"
#include "problem/other_coefficients.hpp"
#include "problem/regions.hpp"
#include "program/angles.hpp"
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

std::string names_of(const std::array<bool, 3>& directions) {
  std::vector<std::string_view> names;
  for (int a = 0; a < 3; ++a) {
    if (directions[a]) names.push_back(std::string_view("xyz").substr(a, 1));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

/// Which flows there can be in an image that is periodic in some directions.
void print_pores(const VoxelImage& image, const std::array<bool, 3>& periodic) {
  const Connectivity pores(image, periodic);
  const std::array<bool, 3> percolates = pores.percolates();
  fmt::print("{:<10} {:.4f}, of pores that percolate {:.4f}\n", "porosity", image.porosity(),
             static_cast<double>(pores.flowing(percolates)) / static_cast<double>(image.size()));
  fmt::print("{:<10} {} of pores\n", "components", pores.components().size());
  fmt::print("{:<10} {}\n", "percolates",
             names_of(percolates).empty() ? "in no direction" : "in " + names_of(percolates));
  fmt::print("{:<10} {:.1f} % of the pore voxels, in runs of 1 or 2\n", "throats",
             100.0 * static_cast<double>(throat_voxels(image, periodic)) / static_cast<double>(image.pores()));
}

/// What an image says of the flows that there can be in it.
void print_image(const Case& what) {
  const VoxelImage& image = *what.problem.mesh.image;
  const int dim = image.dim();
  fmt::print("{:<10} {} of {:g} m\n", "voxels", fmt::join(image.extent().begin(), image.extent().begin() + dim, " x "),
             fmt::join(image.voxel().begin(), image.voxel().begin() + dim, " x "));
  if (!what.permeability) {
    std::array<bool, 3> periodic{};
    for (const int a : periodic_directions(what.problem)) periodic[a] = true;
    return print_pores(image, periodic);
  }
  for (const FlowSetup& setup : flow_setups(dim, *what.permeability)) {
    std::array<bool, 3> flows{};
    for (const int direction : setup.directions) flows[direction] = true;
    fmt::print("{:<10} along {}\n", "flow", names_of(flows));
    print_pores(image, setup.periodic);
  }
}

/// The problem that needs most memory. Of flows through an image that with most pores.
Problem largest_problem(const Case& what) {
  if (!what.permeability) return what.problem;
  const VoxelImage& image = *what.problem.mesh.image;
  const PermeabilityOptions& options = *what.permeability;
  const FlowElement element =
      options.error == ErrorCheck::none ? element_of(options) : finer_element(image.dim(), options);
  Problem largest = what.problem;
  std::int64_t most = 0;
  for (const FlowSetup& setup : flow_setups(image.dim(), options)) {
    std::array<bool, 3> flows{};
    for (const int direction : setup.directions) flows[direction] = true;
    const auto flowing = std::make_shared<const VoxelImage>(keep_flowing(image, flows, setup.periodic));
    if (flowing->pores() <= most) continue;
    most = flowing->pores();
    largest = flow_problem(flowing, setup, options.drive, element);
  }
  return largest;
}

/// Unknowns up to which the problem is discretised: seconds.
constexpr std::int64_t few_unknowns = 10'000'000;

/// \throws InputError for what only the discrete problem shows: fields that are not finite, velocities or a force out
/// of balance, unknowns that the smoother does not reach. Returns how the viscosity varies, if it does.
std::optional<Contrast> discretise(Case what) {
  what.solver.communicator = nullptr;
  if (what.time) {  // a step of length 1: what is steady need not be possible
    const auto more = [mass = mass_field(what.problem)](std::span<const Point> points, std::span<double> values) {
      mass.evaluate(points, values);
      for (double& value : values) value += 1.0;
    };
    what.problem =
        with_mass(what.problem, has_coefficients_by_cell(what.problem) ? ScalarField(ScalarField::Bulk(more), "mass")
                                                                       : ScalarField(what.problem.mass + 1.0));
    what.problem.convection = false;
  }
  const auto engine = make_engine(DeviceChoice::cpu, what.solver.threads);
  Discretisation discretisation(what.problem, what.solver, engine->dense_limits());
  const auto kernels = make_kernels<double>(*engine, discretisation.finest(), LocalSolverKind::direct);
  Vector<double> work(*engine, discretisation.room());
  Vector<double> load(*engine, discretisation.room());
  discretisation.load(*engine, *kernels, work, load);
  if (!discretisation.finest().has_coefficients_by_cell()) return {};
  return contrast_of(discretisation.finest());
}

void print_contrast(const Contrast& contrast) {
  constexpr double hard = 1e3;
  fmt::print("{:<10} largest over smallest {:.3g}, in a patch {:.3g}{}\n", "viscosity", contrast.all,
             contrast.in_patches,
             contrast.in_patches <= hard ? ""
                                         : ": the solve may take many iterations if that is so in many places; "
                                           "`viscosity_cap` limits it, jumps on faces of coarse cells do no harm");
}

int check_case(const CaseArguments& arguments) {
  Case what = arguments.read();
  what.solver.communicator = launched_ranks();
  const int ranks = what.solver.communicator == nullptr ? 1 : what.solver.communicator->size();
  const Problem problem = largest_problem(what);
  const Mesh& mesh = problem.mesh;
  const Estimate need = what.time           ? estimate(problem, what.time->options, what.solver)
                        : what.permeability ? estimate_flow(problem, what.solver)
                                            : estimate(problem, what.solver);
  const bool fits = need.bytes_needed <= need.bytes_available;

  const bool is_small = need.dofs <= few_unknowns;
  const std::optional<Contrast> contrast = is_small ? discretise(what) : std::nullopt;

  fmt::print("{}: {}\n", arguments.name(), fits ? "valid" : "does not fit into memory");
  const std::string element =
      problem.equation == EquationKind::poisson
          ? fmt::format("Q_{}, discontinuous", problem.order)
          : fmt::format("RT_{} x Q_{}{}", problem.order, problem.order, problem.lumped ? ", marker and cell" : "");
  fmt::print("{:<10} {} in {}D\n", "element", element, mesh.dim);
  fmt::print("{:<10} {} coarse boxes, refined {}{}\n", "mesh",
             fmt::join(mesh.cells.begin(), mesh.cells.begin() + mesh.dim, " x "), count_text(mesh.refine, "time"),
             mesh.holes.empty() ? "" : ", " + count_text(static_cast<std::int64_t>(mesh.holes.size()), "hole"));
  if (mesh.edges) fmt::print("{:<10} {}\n", "cells", angles_of(mesh));
  if (mesh.image != nullptr) print_image(what);
  if (contrast) print_contrast(*contrast);
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
