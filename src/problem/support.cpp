#include "problem/support.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "problem/affine_map.hpp"
#include "problem/names.hpp"

namespace solenoid {
namespace {

template <class Choice>
std::vector<std::string_view> all() {
  std::vector<std::string_view> names;
  for (const auto& [name, value] : Names<Choice>::all) names.push_back(name);
  return names;
}

/// `automatic` is not a device of its own.
std::vector<std::string_view> devices() { return {name_of(DeviceChoice::cpu), name_of(DeviceChoice::cuda)}; }

const Axis axes[] = {
    {"equation", "what is solved", all<EquationKind>()},
    {"dimension", "of space", {"2", "3"}},
    {"mesh",
     "a box, one with holes, cells that are longer in some directions, or cells that are parallelepipeds",
     {"box", "holes", "flat", "sheared"}},
    {"boundary", "what is prescribed on a side of the box", all<SideKind>()},
    {"holes", "what is prescribed on the sides of holes", all<SideKind>()},
    {"reaction", "whether the term alpha u is there, or varies by cell", {"no", "yes", "varying"}},
    {"viscosity", "a number, by cell in the gradient form, or the stress form", {"constant", "varying", "stress"}},
    {"viscosity_points", "where a viscosity that varies is taken", all<ViscosityPlaces>()},
    {"convection", "whether the flow carries itself: of flows in time", {"no", "yes"}},
    {"method", "the iteration", all<Method>()},
    {"side", "of the preconditioner in GMRES", all<PreconditionerSide>()},
    {"smoother", "how patches are combined", all<SmootherKind>()},
    {"colour_order", "order of the colours in a smoothing step", all<ColourOrder>()},
    {"patch", "the local problem", all<PatchProblem>()},
    {"local_solver", "how local problems are solved", all<LocalSolverKind>()},
    {"precision", "of the multigrid cycle", all<Precision>()},
    {"device", "the engine", devices()},
};

const Rule rules[] = {
    {"convection",
     {"yes"},
     "equation",
     {"poisson"},
     "the solution of Poisson's equation has no velocity that carries it"},
    {"boundary",
     {"slip", "outflow"},
     "equation",
     {"poisson"},
     "is a {} side, but Poisson's equation has prescribed and periodic values only"},
    {"holes",
     {"slip", "outflow"},
     "equation",
     {"poisson"},
     "is a {} side, but Poisson's equation has prescribed and periodic values only"},
    {"holes", {"periodic"}, "", {}, "holes cannot be {}"},
    {"viscosity",
     {"stress"},
     "order",
     {"0"},
     "\"{}\", which is the form where the viscosity varies unless another is named, needs an order of at least 1: use "
     "form = \"gradient\", or a higher order"},
    {"viscosity", {"varying", "stress"}, "equation", {"poisson"}, "\"{}\" is for Stokes' equation"},
    {"viscosity_points",
     {"gauss"},
     "viscosity",
     {"constant"},
     "\"{}\" is for a viscosity that varies, and here it is a number: leave it out"},
    {"viscosity",
     {"varying", "stress"},
     "method",
     {"fmg"},
     "\"{}\" goes with gmres and vcycle, not with full multigrid"},
    {"viscosity",
     {"varying", "stress"},
     "patch",
     {"galerkin"},
     "\"{}\" has local problems of its own: leave `patch` out"},
    {"reaction", {"varying"}, "equation", {"poisson"}, "\"{}\" is for Stokes' equation"},
    {"reaction", {"varying"}, "method", {"fmg"}, "\"{}\" goes with gmres and vcycle, not with full multigrid"},
    {"reaction", {"varying"}, "patch", {"galerkin"}, "\"{}\" has local problems of its own: leave `patch` out"},
    {"mesh", {"sheared"}, "equation", {"poisson"}, "cells that are parallelepipeds are for Stokes' equation"},
    {"mesh",
     {"sheared"},
     "order",
     {"0"},
     "cells that are parallelepipeds need an order of at least 1: with order 0 the scheme is not consistent there"},
    {"patch", {"fused"}, "equation", {"stokes"}, "\"{}\" is for Poisson's equation only"},
    {"patch",
     {"fused"},
     "order",
     {"0"},
     "\"{}\" needs an order of at least 1: its corrections vanish on patch boundaries"},
    {"local_solver",
     {"chebyshev", "cg", "dense"},
     "equation",
     {"poisson"},
     "is \"{}\", but local problems of Poisson's equation are always solved by fast diagonalisation: leave it out"},
};

bool contains(const std::vector<std::string_view>& values, std::string_view value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

/// Whether a direction has cells that are a quarter longer than those of another.
bool flat(const Mesh& mesh) {
  std::array<double, 3> size{};
  for (int a = 0; a < mesh.dim; ++a) size[a] = length_along(mesh, a) / mesh.cells[a];
  const auto [shortest, longest] = std::minmax_element(size.begin(), size.begin() + mesh.dim);
  return *longest > 1.25 * *shortest;
}

template <class Choice>
Decision decision(std::string_view axis, Choice choice) {
  return {axis, std::string(name_of(choice)), std::string(axis)};
}

}  // namespace

std::span<const Axis> support_axes() { return axes; }
std::span<const Rule> support_rules() { return rules; }

std::vector<Decision> decisions(const Problem& problem) {
  const Mesh& mesh = problem.mesh;
  std::vector<Decision> result{
      decision("equation", problem.equation),
      {"dimension", std::to_string(mesh.dim), "mesh.cells"},
      {"order", std::to_string(problem.order), "order"},
      {"reaction",
       mass_varies(problem)  ? "varying"
       : problem.mass == 0.0 ? "no"
                             : "yes",
       "mass"},
      form_of(problem) == ViscousForm::stress
          ? Decision{"viscosity", "stress", problem.form ? "form" : "viscosity"}
          : Decision{"viscosity", viscosity_varies(problem) ? "varying" : "constant", "viscosity"},
      decision("viscosity_points", problem.viscosity_points),
      {"convection", problem.convection ? "yes" : "no", "convection"},
  };
  for (int side = 0; side < 2 * mesh.dim; ++side) {
    result.push_back({"boundary", std::string(name_of(problem.boundary.sides[side].kind)),
                      fmt::format("boundary.{}", side_names[side])});
  }
  result.push_back({"holes", std::string(name_of(problem.boundary.holes.kind)), "boundary.holes"});
  const auto& [sides, holes, regions, single_holes] = problem.boundary;
  for (std::size_t i = 0; i < regions.size(); ++i) {
    result.push_back({"boundary", std::string(name_of(regions[i].condition.kind)), fmt::format("side[{}]", i)});
  }
  for (std::size_t i = 0; i < single_holes.size(); ++i) {
    result.push_back({"holes", std::string(name_of(single_holes[i].condition.kind)), fmt::format("hole[{}]", i)});
  }
  if (!mesh.holes.empty()) result.push_back({"mesh", "holes", "mesh.holes"});
  if (flat(mesh)) result.push_back({"mesh", "flat", mesh.edges ? "mesh.edges" : "mesh.upper"});
  if (mesh.edges) result.push_back({"mesh", "sheared", "mesh.edges"});
  return result;
}

std::vector<Decision> decisions(const SolverOptions& options) {
  const MultigridOptions& multigrid = options.multigrid;
  return {
      decision("method", options.method),       decision("side", options.side),
      decision("smoother", multigrid.smoother), decision("colour_order", multigrid.colour_order),
      decision("patch", multigrid.patch),       decision("local_solver", multigrid.local_solver),
      decision("precision", options.precision), decision("device", options.device),
  };
}

Refusal refusal(std::span<const Decision> decisions) {
  const auto chosen = [&](std::string_view axis, const std::vector<std::string_view>& values) {
    return std::find_if(decisions.begin(), decisions.end(), [&](const Decision& decision) {
      return decision.axis == axis && contains(values, decision.value);
    });
  };
  for (const Rule& rule : rules) {
    const auto refused = chosen(rule.axis, rule.values);
    if (refused == decisions.end()) continue;
    if (!rule.with_axis.empty() && chosen(rule.with_axis, rule.with_values) == decisions.end()) continue;
    return {&rule, refused->entry, fmt::format(fmt::runtime(rule.reason), refused->value)};
  }
  return {};
}

}  // namespace solenoid
