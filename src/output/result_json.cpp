#include "output/result_json.hpp"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/new_file.hpp"
#include "permeability/names.hpp"
#include "problem/names.hpp"
#include "problem/parts.hpp"
#include "solenoid/error.hpp"

namespace solenoid {
namespace {

using Json = nlohmann::ordered_json;

/// JSON has no NaN and no infinity: what is not a number is null.
Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
Json finite(const std::optional<double>& value) { return value ? finite(*value) : Json(nullptr); }

template <class Entries>
Json list(const Entries& entries, std::size_t count) {
  Json result = Json::array();
  for (std::size_t i = 0; i < count; ++i) result.push_back(finite(entries[i]));
  return result;
}

Json integer_list(const std::array<int, 3>& entries, int dim) {
  return std::vector<int>(entries.begin(), entries.begin() + dim);
}

Json holes(const Mesh& mesh) {
  Json result = Json::array();
  for (const IndexBox& hole : mesh.holes) {
    result.push_back({{"lower", integer_list(hole.lower, mesh.dim)}, {"upper", integer_list(hole.upper, mesh.dim)}});
  }
  return result;
}

/// Side kinds by name, as in the case file.
Json boundary(const Problem& problem) {
  Json result = Json::object();
  for (int side = 0; side < 2 * problem.mesh.dim; ++side) {
    result[std::string(side_names[side])] = name_of(problem.boundary.sides[side].kind, problem.equation);
  }
  if (hole_count(problem.mesh) > 0) result["holes"] = name_of(problem.boundary.holes.kind, problem.equation);
  for (const SideRegion& region : problem.boundary.regions) {
    result["side"].push_back(
        {{"on", side_names[region.side]}, {"kind", name_of(region.condition.kind, problem.equation)}});
  }
  for (const HoleSide& hole : problem.boundary.single_holes) {
    result["hole"].push_back({{"index", hole.hole}, {"kind", name_of(hole.condition.kind, problem.equation)}});
  }
  return result;
}

Json directions(const std::array<bool, 3>& wanted, int dim) {
  Json result = Json::array();
  for (int a = 0; a < dim; ++a) {
    if (wanted[a]) result.push_back(std::string(1, "xyz"[a]));
  }
  return result;
}

Json settings(const Case& what, int threads) {
  const Problem& problem = what.problem;
  const Mesh& mesh = problem.mesh;
  const SolverOptions& options = what.solver;
  const MultigridOptions& multigrid = options.multigrid;
  Json result;
  result["case"] = what.name;
  result["mesh"] = {{"lower", list(mesh.lower, mesh.dim)},
                    {"upper", list(mesh.upper, mesh.dim)},
                    {"cells", integer_list(mesh.cells, mesh.dim)},
                    {"refine", mesh.refine},
                    {"holes", holes(mesh)}};
  if (mesh.edges) {
    Json& in_file = result["mesh"];
    in_file.erase("lower");
    in_file.erase("upper");
    in_file["origin"] = list(mesh.lower, mesh.dim);
    for (int a = 0; a < mesh.dim; ++a) in_file["edges"].push_back(list((*mesh.edges)[a], mesh.dim));
  }
  if (mesh.image != nullptr) {
    result["mesh"]["image"] = {{"voxel", list(mesh.image->voxel(), mesh.dim)}, {"porosity", mesh.image->porosity()}};
  }
  result["element"] = {{"order", problem.order}};
  const auto coefficient = [](bool varies, double value) { return varies ? Json("varying") : Json(value); };
  result["physics"] = {{"equation", name_of(problem.equation)},
                       {"viscosity", coefficient(viscosity_varies(problem), problem.viscosity)},
                       {"mass", coefficient(mass_varies(problem), problem.mass)}};
  if (has_coefficients_by_cell(problem)) result["physics"]["form"] = name_of(form_of(problem));
  if (viscosity_varies(problem)) result["physics"]["viscosity_points"] = name_of(problem.viscosity_points);
  if (problem.viscosity_cap) result["physics"]["viscosity_cap"] = *problem.viscosity_cap;
  if (what.time) {
    const auto& [time, end, along] = *what.time;
    result["physics"]["convection"] = problem.convection;
    result["time"] = {{"end", end}, {"step", time.step}, {"cfl", time.cfl}, {"scheme", name_of(time.scheme)}};
    if (time.flow_rate) result["time"]["flow_rate"] = list(*time.flow_rate, mesh.dim);
    if (time.steady > 0.0) result["time"]["steady"] = time.steady;
    if (time.average_start) {
      result["average"] = {{"start", *time.average_start}, {"along", directions(along, mesh.dim)}};
      if (time.average_every > 0.0) result["average"]["every"] = time.average_every;
    }
  }
  if (what.permeability) {
    const PermeabilityOptions& asked = *what.permeability;
    result["permeability"] = {{"directions", directions(asked.directions, mesh.dim)},
                              {"sides", name_of(asked.sides)},
                              {"drive", name_of(asked.drive)},
                              {"mac", asked.mac},
                              {"error", name_of(asked.error)}};
  } else {
    result["boundary"] = boundary(problem);
  }
  result["solver"] = {{"method", name_of(options.method)},
                      {"rtol", options.rtol},
                      {"max_iterations", options.max_iterations},
                      {"restart", options.restart},
                      {"cycles", options.cycles},
                      {"side", name_of(options.side)},
                      {"smoother", name_of(multigrid.smoother)},
                      {"damping", multigrid.damping},
                      {"colour_order", name_of(multigrid.colour_order)},
                      {"patch", name_of(multigrid.patch)},
                      {"local_solver", name_of(multigrid.local_solver)},
                      {"cycle_index", multigrid.cycle_index},
                      {"coarse_penalty", multigrid.coarse_penalty},
                      {"all_levels", multigrid.all_levels}};
  if (options.random_load != 0) result["solver"]["random_load"] = options.random_load;
  result["device"] = name_of(options.device);
  result["precision"] = name_of(options.precision);
  result["threads"] = threads;
  return result;
}

Json probes(const Case& what, const Measures& measures) {
  const auto dim = static_cast<std::size_t>(what.problem.mesh.dim);
  Json result = Json::array();
  for (std::size_t i = 0; i < what.probes.size(); ++i) {
    Json& probe = result.emplace_back();
    probe["point"] = list(what.probes[i], dim);
    if (what.problem.equation == EquationKind::poisson) {
      probe["value"] = finite(measures.probe_pressure[i]);
    } else {
      probe["velocity"] = list(measures.probe_velocity[i], dim);
      probe["pressure"] = finite(measures.probe_pressure[i]);
    }
  }
  return result;
}

/// In 2D a torque is a number.
Json torque(const Point& value, int dim) { return dim == 2 ? finite(value[2]) : list(value, 3); }

Json forces(const Measures& measures, int dim) {
  Json result = Json::array();
  for (const BoundaryForce& force : measures.forces) {
    result.push_back({{"on", force.name},
                      {"force", list(force.force, dim)},
                      {"torque", torque(force.torque, dim)},
                      {"sampled_pressure", list(force.sampled_pressure, dim)},
                      {"sampled_viscous", list(force.sampled_viscous, dim)}});
  }
  return result;
}

Json fluxes(const Case& what, const Measures& measures) {
  Json result = Json::array();
  for (std::size_t i = 0; i < what.output.fluxes.size(); ++i) {
    const auto& [axis, position] = what.output.fluxes[i];
    result.push_back(
        {{"axis", std::string(1, "xyz"[axis])}, {"position", position}, {"flux", finite(measures.fluxes[i])}});
  }
  return result;
}

/// Adds what is measured on the solution, and what else the case asks for.
void add_measures(const Case& what, const Measures& measures, Json& json) {
  const int dim = what.problem.mesh.dim;
  if (what.problem.equation == EquationKind::poisson) {
    json["error"] = {{"value_l2", finite(measures.errors.value)}};
  } else {
    json["error"] = {{"velocity_l2", finite(measures.errors.velocity)},
                     {"pressure_l2", finite(measures.errors.pressure)}};
    json["divergence_max"] = finite(measures.divergence_max);
  }
  json["probes"] = probes(what, measures);
  if (what.output.forces) json["forces"] = forces(measures, dim);
  if (!what.output.fluxes.empty()) json["fluxes"] = fluxes(what, measures);
  if (measures.kinetic_energy) json["kinetic_energy"] = finite(measures.kinetic_energy);
  if (measures.dissipation) json["dissipation"] = finite(measures.dissipation);
  if (measures.permeability) json["permeability"] = list(*measures.permeability, dim);
}

using Tensor = decltype(DiscretePermeability::tensor);

/// A row for each component, null where nothing is known; in units of `unit` square metres.
Json tensor(const Tensor& values, int dim, double unit = 1.0) {
  Json rows = Json::array();
  for (int i = 0; i < dim; ++i) {
    Json& row = rows.emplace_back(Json::array());
    for (int j = 0; j < dim; ++j) row.push_back(values[i][j] ? finite(*values[i][j] / unit) : Json(nullptr));
  }
  return rows;
}

Json discrete(const DiscretePermeability& value, int dim) {
  Json result;
  if (value.lumped) {
    result["order"] = "mac";
  } else {
    result["order"] = value.order;
  }
  result["refine"] = value.refine;
  result["permeability"] = tensor(value.tensor, dim);
  result["asymmetry"] = finite(value.asymmetry);
  result["converged"] = value.converged();
  result["flows"] = Json::array();
  for (const PermeabilityFlow& flow : value.flows) {
    result["flows"].push_back({{"direction", std::string(1, "xyz"[flow.direction])},
                               {"converged", flow.converged},
                               {"reason", flow.reason},
                               {"iterations", flow.iterations},
                               {"residual", finite(flow.residual)},
                               {"flux_deviation", finite(flow.flux_deviation)},
                               {"time", finite(flow.time_solve)}});
  }
  result["dofs"] = value.dofs;
  result["time_setup"] = finite(value.time_setup);
  result["memory_bytes"] = value.memory_bytes;
  return result;
}

std::string text_of(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n'; }

}  // namespace

Measures measure(const Case& what, const Solution& solution, const std::optional<Errors>& errors) {
  Measures measures;
  measures.probe_pressure = solution.pressure(what.probes);
  measures.errors = errors ? *errors : solution.errors(what.exact);
  if (solution.problem().equation == EquationKind::poisson) return measures;
  measures.divergence_max = solution.divergence_max();
  measures.probe_velocity = solution.velocity(what.probes);
  const OutputOptions& asked = what.output;
  if (asked.forces && solution.has_forces()) measures.forces = solution.forces(asked.torques_about);
  for (const auto& [axis, position] : asked.fluxes) measures.fluxes.push_back(solution.flux(axis, position));
  if (asked.energy) {
    measures.kinetic_energy = solution.kinetic_energy();
    measures.dissipation = solution.dissipation();
  }
  if (asked.permeability) measures.permeability = solution.permeability();
  return measures;
}

std::string result_json(const Case& what, const Report& report, const Measures* measures) {
  Json json;
  json["converged"] = report.converged;
  json["reason"] = report.reason;
  json["iterations"] = report.iterations;
  json["fractional_iterations"] = finite(report.fractional_iterations);
  json["residual_history"] = list(report.residual_history, report.residual_history.size());
  if (what.time) {
    json["steps"] = report.steps;
    json["end_time"] = report.end_time;
    if (report.steady) {
      json["steady"] = *report.steady;
      json["change"] = finite(report.change);
    }
  }
  json["dofs"] = report.dofs;
  json["cells"] = report.cells;
  json["levels"] = report.levels;
  json["device"] = report.device;
  json["precision"] = report.precision;
  if (report.error_estimate) {
    const bool poisson = what.problem.equation == EquationKind::poisson;
    json["error_estimate"] = {{poisson ? "value_l2" : "velocity_l2", finite(report.error_estimate->total)},
                              {"algebraic", finite(report.error_estimate->algebraic)}};
  }
  if (measures != nullptr) add_measures(what, *measures, json);
  json["time"] = {{"setup", finite(report.time_setup)}, {"solve", finite(report.time_solve)}};
  json["memory_bytes"] = report.memory_bytes;
  json["ranks"] = report.ranks;
  if (report.ranks > 1) {
    json["transport"] = report.transport;
    json["rank_cells"] = report.rank_cells;
    json["rank_memory_bytes"] = report.rank_memory_bytes;
  }
  json["settings"] = settings(what, report.threads);

  return text_of(json);
}

std::string result_json(const Case& what, const Permeability& result) {
  const int dim = result.dim;
  Json json;
  json["converged"] = result.converged();
  json["permeability"] = tensor(result.value.tensor, dim);
  json["permeability_darcy"] = tensor(result.value.tensor, dim, darcy);
  if (result.principal) {
    Json& principal = json["principal"] = {{"values", result.principal->values}, {"axes", Json::array()}};
    for (const Point& axis : result.principal->axes) principal["axes"].push_back(list(axis, dim));
  }
  if (result.error) json["error"] = finite(*result.error);
  json["porosity"] = result.porosity;
  json["pores"] = Json::array();
  for (const PoresAlong& pores : result.pores) {
    json["pores"].push_back({{"direction", std::string(1, "xyz"[pores.direction])},
                             {"percolates", pores.percolates},
                             {"porosity", pores.porosity},
                             {"components", pores.components},
                             {"throats", pores.throats}});
  }
  json["element"] = discrete(result.value, dim);
  if (result.mac) json["mac"] = discrete(*result.mac, dim);
  if (result.finer) json["finer"] = discrete(*result.finer, dim);
  json["device"] = result.device;
  json["settings"] = settings(what, what.solver.threads);
  return text_of(json);
}

void check_same(const Communicator& ranks, const Case& what, std::string_view build) {
  const std::string mine = fmt::format("{} {}", build, result_json(what, {}, nullptr));
  const auto texts = ranks.texts(fmt::format("{}", std::hash<std::string>()(mine)));
  for (std::size_t rank = 1; rank < texts.size(); ++rank) {
    if (texts[rank] == texts[0]) continue;
    throw InputError(fmt::format("rank {} has another case, other options or another build than rank 0", rank));
  }
}

void write_result(const Case& what, const Report& report, const Measures& measures, const std::filesystem::path& file) {
  NewFile target(file);
  target.stream() << result_json(what, report, &measures);
  target.commit();
}

void write_result(const Case& what, const Result& result, const std::filesystem::path& file) {
  write_result(what, result.report, measure(what, result.solution), file);
}

}  // namespace solenoid
