#include "problem/validate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>
#include <vector>

#include "base/threads.hpp"
#include "problem/affine_map.hpp"
#include "problem/names.hpp"
#include "problem/parts.hpp"
#include "problem/regions.hpp"
#include "problem/support.hpp"
#include "problem/vectors.hpp"
#include "solenoid/options.hpp"
#include "solenoid/problem.hpp"

namespace solenoid {
namespace {

// What lattice coordinates (int) and sizes in bytes (64 bits) can hold, far beyond any memory.
constexpr int largest_refine = 20;
constexpr std::int64_t largest_extent = std::int64_t{1} << 30;
constexpr std::int64_t most_coarse_boxes = std::int64_t{1} << 26;
constexpr std::int64_t most_voxels = std::int64_t{1} << 30;
constexpr std::int64_t most_cells = std::int64_t{1} << 40;

std::string braces(const std::array<int, 3>& values, int dim) {
  return fmt::format("[{}]", fmt::join(values.begin(), values.begin() + dim, ", "));
}

void validate_box(const Mesh& mesh) {
  if (mesh.dim != 2 && mesh.dim != 3) {
    throw InvalidEntry("mesh.cells", fmt::format("the dimension must be 2 or 3, got {}", mesh.dim));
  }
  if (mesh.refine < 0 || mesh.refine > largest_refine) {
    throw InvalidEntry("mesh.refine", fmt::format("must be from 0 to {}, got {}", largest_refine, mesh.refine));
  }
  std::int64_t boxes = 1;
  for (int a = 0; a < mesh.dim; ++a) {
    if (mesh.cells[a] < 1) {
      throw InvalidEntry("mesh.cells",
                         fmt::format("every entry must be at least 1, got {}", braces(mesh.cells, mesh.dim)));
    }
    if (std::int64_t{mesh.cells[a]} << mesh.refine > largest_extent) {
      throw InvalidEntry("mesh.refine", fmt::format("{} coarse boxes refined {} times exceed {} cells in one direction",
                                                    mesh.cells[a], mesh.refine, largest_extent));
    }
    boxes *= mesh.cells[a];
    if (mesh.image != nullptr && boxes > most_voxels) {
      throw InvalidEntry("mesh.image", fmt::format("at most {} voxels are possible, got {}: crop the image",
                                                   most_voxels, braces(mesh.cells, mesh.dim)));
    }
    if (mesh.image == nullptr && boxes > most_coarse_boxes) {
      throw InvalidEntry("mesh.cells",
                         fmt::format("at most {} coarse boxes are possible, got {}: use fewer and a larger refine",
                                     most_coarse_boxes, braces(mesh.cells, mesh.dim)));
    }
    if (boxes > most_cells >> (mesh.dim * mesh.refine)) {
      throw InvalidEntry("mesh.refine", fmt::format("{} coarse boxes refined {} times exceed {} cells", boxes,
                                                    mesh.refine, most_cells));
    }
    if (!std::isfinite(mesh.lower[a])) throw InvalidEntry("mesh.lower", "must be finite");
    if (mesh.edges) continue;
    if (!std::isfinite(mesh.upper[a])) throw InvalidEntry("mesh.upper", "must be finite");
    const double length = mesh.upper[a] - mesh.lower[a];
    if (!(length > 0.0) || !std::isfinite(length)) {
      throw InvalidEntry("mesh.upper", fmt::format("must be larger than `lower` in every direction, got {} to {} in {}",
                                                   mesh.lower[a], mesh.upper[a], "xyz"[a]));
    }
  }
}

double degrees(double sine) { return std::asin(sine) * 180.0 / std::numbers::pi; }

/// Cells that are parallelepipeds.
void validate_edges(const Mesh& mesh) {
  if (!mesh.edges) return;
  constexpr double least_sine = 0.1;
  if (mesh.image != nullptr) throw InvalidEntry("mesh.image", "voxels are boxes: leave `edges` out");
  for (int a = 0; a < mesh.dim; ++a) {
    const double length = length_along(mesh, a);
    if (!(length > 0.0) || !std::isfinite(length)) {
      throw InvalidEntry(fmt::format("mesh.edges[{}]", a), "must be a finite vector that is not zero");
    }
    if (mesh.dim == 2 && (*mesh.edges)[a][2] != 0.0) {
      throw InvalidEntry(fmt::format("mesh.edges[{}]", a), "must lie in the plane: two numbers in 2D");
    }
  }
  double sine = 0.0;
  try {
    sine = AffineMap(mesh.dim, mesh.lower, *mesh.edges).sine();
  } catch (const InputError& error) {
    throw InvalidEntry("mesh.edges", error.what());
  }
  if (sine < least_sine) {
    throw InvalidEntry("mesh.edges", fmt::format("the smallest angle between an edge and the others is {:.3g} degrees, "
                                                 "expected {:.2g} at least",
                                                 degrees(sine), degrees(least_sine)));
  }
}

void validate_hole_boxes(const Mesh& mesh) {
  for (std::size_t i = 0; i < mesh.holes.size(); ++i) {
    const auto& [lower, upper] = mesh.holes[i];
    const auto path = fmt::format("mesh.holes[{}]", i);
    for (int a = 0; a < mesh.dim; ++a) {
      if (lower[a] >= upper[a]) {
        throw InvalidEntry(
            path, fmt::format("is empty in {}: `upper` is exclusive and must be larger than `lower`, got {} to {}",
                              "xyz"[a], braces(lower, mesh.dim), braces(upper, mesh.dim)));
      }
      if (lower[a] < 0 || upper[a] > mesh.cells[a]) {
        throw InvalidEntry(path,
                           fmt::format("{} to {} reaches outside the mesh of {} coarse boxes", braces(lower, mesh.dim),
                                       braces(upper, mesh.dim), braces(mesh.cells, mesh.dim)));
      }
    }
  }
}

void validate_image(const Mesh& mesh) {
  if (mesh.image == nullptr) return;
  if (!mesh.holes.empty()) throw InvalidEntry("mesh.holes", "an image says what is solid: leave the holes out");
  if (mesh.image->dim() != mesh.dim ||
      !std::equal(mesh.cells.begin(), mesh.cells.begin() + mesh.dim, mesh.image->extent().begin())) {
    throw InvalidEntry("mesh.cells",
                       fmt::format("every voxel of an image is a coarse box: expected {}, got {}",
                                   braces(mesh.image->extent(), mesh.image->dim()), braces(mesh.cells, mesh.dim)));
  }
}

/// What the holes leave of the domain.
void validate_rest(const Mesh& mesh) {
  if (hole_count(mesh) == 0 || image_of(mesh)->pores() > 0) return;
  throw mesh.image != nullptr ? InvalidEntry("mesh.image", "no voxel is a pore")
                              : InvalidEntry("mesh.holes", "the holes leave nothing of the domain");
}

void validate_boundary(const Problem& problem) {
  const auto& sides = problem.boundary.sides;
  for (int a = 0; a < problem.mesh.dim; ++a) {
    const bool lower = sides[2 * a].kind == SideKind::periodic;
    if (lower == (sides[2 * a + 1].kind == SideKind::periodic)) continue;
    const int periodic = lower ? 2 * a : 2 * a + 1;
    const int other = lower ? 2 * a + 1 : 2 * a;
    throw InvalidEntry(
        fmt::format("boundary.{}", side_names[other]),
        fmt::format("is a {} side, but {} is periodic: both sides of a direction must be periodic, or none",
                    name_of(sides[other].kind, problem.equation), side_names[periodic]));
  }
}

/// \throws InvalidEntry if decisions do not go together.
void validate_support(std::span<const Decision> decisions) {
  const Refusal found = refusal(decisions);
  if (found.rule != nullptr) throw InvalidEntry(found.entry, found.reason);
}

/// \throws InvalidEntry unless the value of an option is what is expected.
template <class T>
void expect(bool in_range, std::string_view entry, std::string_view what, T value) {
  if (!in_range) throw InvalidEntry(std::string(entry), fmt::format("expected {}, got {}", what, value));
}

/// But for their values, which are looked at when they become numbers by cell.
void validate_coefficients(const Problem& problem) {
  if (problem.viscosity_cap) {
    const auto& [least, most] = *problem.viscosity_cap;
    if (!(least > 0.0) || !(most >= least) || !std::isfinite(most)) {
      throw InvalidEntry(
          "viscosity_cap",
          fmt::format("must be two finite numbers that ascend and are positive, got [{}, {}]", least, most));
    }
    if (!viscosity_varies(problem)) {
      throw InvalidEntry("viscosity_cap", "bounds a viscosity that varies, and here it is a number: leave it out");
    }
  }
  if (problem.viscosity_points == ViscosityPlaces::gauss && !viscosity_varies(problem)) {
    throw InvalidEntry("viscosity_points",
                       "\"gauss\" is for a viscosity that varies, and here it is a number: leave it out");
  }
  if (problem.lumped && has_coefficients_by_cell(problem)) {
    throw InvalidEntry("order", "the marker-and-cell scheme has constant coefficients and the gradient form: use 0");
  }
}

}  // namespace

InvalidEntry::InvalidEntry(std::string entry_path, const std::string& what_is_wrong)
    : InputError(entry_path + ": " + what_is_wrong), entry(std::move(entry_path)), problem(what_is_wrong) {}

void validate(const Mesh& mesh) {
  validate_box(mesh);
  validate_edges(mesh);
  validate_hole_boxes(mesh);
  validate_image(mesh);
}

void validate(const Problem& problem) {
  validate(problem.mesh);
  const int dim = problem.mesh.dim;
  const auto orders = available_orders(dim, problem.equation);
  if (std::find(orders.begin(), orders.end(), problem.order) == orders.end()) {
    throw InvalidEntry("order", fmt::format("order {} in {}D is not part of this build; it has {}", problem.order, dim,
                                            orders.empty() ? "none" : fmt::format("{}", fmt::join(orders, ", "))));
  }
  if (problem.lumped && (problem.order != 0 || problem.equation != EquationKind::stokes)) {
    throw InvalidEntry("order", "the marker-and-cell scheme is of order 0, for Stokes' equation");
  }
  validate_but_for_order(problem);
}

void validate_but_for_order(const Problem& problem) {
  validate(problem.mesh);
  if (!(problem.viscosity > 0.0) || !std::isfinite(problem.viscosity)) {
    throw InvalidEntry("viscosity", fmt::format("must be positive and finite, got {}", problem.viscosity));
  }
  if (!(problem.mass >= 0.0) || !std::isfinite(problem.mass)) {
    throw InvalidEntry("mass", fmt::format("must be zero or positive, and finite, got {}", problem.mass));
  }
  validate_coefficients(problem);
  validate_support(decisions(problem));
  validate_boundary(problem);
  validate_single_holes(problem);
  validate_rest(problem.mesh);
  validate_regions(problem);
}

void validate_profile(const Problem& problem, const std::array<bool, 3>& along) {
  for (int a = 0; a < 3; ++a) {
    if (!along[a] || (a < problem.mesh.dim && problem.boundary.sides[2 * a].kind == SideKind::periodic)) continue;
    throw InvalidEntry("average.along",
                       fmt::format("averages are along periodic directions, and {} is none", "xyz"[a]));
  }
}

void validate_permeability(const Problem& problem) {
  constexpr std::string_view of_permeability = "a permeability is that of a flow";
  if (problem.equation == EquationKind::poisson) {
    throw InvalidEntry("equation", "the solution of Poisson's equation has no permeability");
  }
  if (has_coefficients_by_cell(problem)) {
    throw InvalidEntry(mass_varies(problem) ? "mass" : "viscosity",
                       fmt::format("{} with one viscosity, in the gradient form", of_permeability));
  }
  if (problem.mass != 0.0) {
    throw InvalidEntry("mass", fmt::format("{} without mass term, got {}", of_permeability, problem.mass));
  }
  const auto require_at_rest = [&](const Side& side, const std::string& entry) {
    const bool moves = side.kind == SideKind::velocity && !is_zero(side.data);
    if (!moves && side.kind != SideKind::outflow) return;
    throw InvalidEntry(entry, fmt::format("{} between sides that are periodic, slip, or do not move", of_permeability));
  };
  Point force{};
  for (int a = 0; a < problem.mesh.dim; ++a) {
    for (const int side : {2 * a, 2 * a + 1}) {
      require_at_rest(problem.boundary.sides[side], fmt::format("boundary.{}", side_names[side]));
    }
    const std::optional<double> component = force_field(problem)[a].constant();
    if (!component) {
      throw InvalidEntry(fmt::format("force[{}]", a),
                         fmt::format("{} that a constant force drives: give a number", of_permeability));
    }
    force[a] = *component;
  }
  const double size = std::sqrt(dot_product(force, force));
  if (size == 0.0) throw InvalidEntry("force", fmt::format("{} that a force drives, and it is zero", of_permeability));
  const Point along = along_edges(problem.mesh, force);
  for (int a = 0; a < problem.mesh.dim; ++a) {
    if (std::abs(along[a]) <= 1e-12 * size || problem.boundary.sides[2 * a].kind == SideKind::periodic) continue;
    throw InvalidEntry(
        problem.mesh.edges ? "force" : fmt::format("force[{}]", a),
        fmt::format("{} that a force drives in periodic directions, and {} is not", of_permeability, "xyz"[a]));
  }
  if (hole_count(problem.mesh) > 0) require_at_rest(problem.boundary.holes, "boundary.holes");
  for (std::size_t i = 0; i < problem.boundary.regions.size(); ++i) {
    require_at_rest(problem.boundary.regions[i].condition, fmt::format("side[{}]", i));
  }
  for (std::size_t i = 0; i < problem.boundary.single_holes.size(); ++i) {
    require_at_rest(problem.boundary.single_holes[i].condition, fmt::format("hole[{}]", i));
  }
}

void require_velocity(const Problem& problem) {
  if (problem.equation == EquationKind::poisson) throw InputError("the solution of Poisson's equation has no velocity");
}

void validate(const Problem& problem, const SolverOptions& options) {
  const MultigridOptions& multigrid = options.multigrid;
  expect(options.rtol > 0.0 && options.rtol < 1.0, "rtol", expected::rtol, options.rtol);
  expect(options.max_iterations >= 1, "max_iterations", expected::max_iterations, options.max_iterations);
  expect(options.restart >= 0, "restart", expected::restart, options.restart);
  expect(options.cycles >= 1, "cycles", expected::cycles, options.cycles);
  expect(multigrid.damping >= 0.0 && multigrid.damping <= 1.0, "damping", expected::damping, multigrid.damping);
  expect(multigrid.cycle_index >= 0 && multigrid.cycle_index <= 2, "cycle_index", expected::cycle_index,
         multigrid.cycle_index);
  expect(multigrid.coarse_penalty >= 0.0 && std::isfinite(multigrid.coarse_penalty), "coarse_penalty",
         expected::coarse_penalty, multigrid.coarse_penalty);
  threads_for(options.threads);
  std::vector<Decision> all = decisions(problem);
  const std::vector<Decision> others = decisions(options);
  all.insert(all.end(), others.begin(), others.end());
  validate_support(all);
}

}  // namespace solenoid
