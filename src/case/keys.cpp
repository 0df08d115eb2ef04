#include "case/keys.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "case/expression.hpp"
#include "case/image_keys.hpp"
#include "case/permeability_keys.hpp"
#include "problem/affine_map.hpp"
#include "problem/validate.hpp"
#include "solenoid/arrays.hpp"
#include "solenoid/cellwise.hpp"
#include "solenoid/solution.hpp"

namespace solenoid {
namespace {

constexpr std::string_view expressions = "a list of {dim} expressions or numbers";

std::array<int, 3> integers(const Value& value, std::array<int, 3> result) {
  const auto entries = value.components();
  for (std::size_t a = 0; a < entries.size(); ++a) result[a] = entries[a].integer();
  return result;
}

Point point(const Value& value, Point result) {
  const auto entries = value.components();
  for (std::size_t a = 0; a < entries.size(); ++a) result[a] = entries[a].number();
  return result;
}

bool stokes_only(const Value& value) {
  value.require_equation(EquationKind::stokes);
  return value.boolean();
}

/// Keys of two tables as those of one.
template <class Target, std::size_t m, std::size_t n>
constexpr auto joined(const Key<Target> (&first)[m], const Key<Target> (&second)[n]) {
  std::array<Key<Target>, m + n> keys;
  std::copy(std::begin(first), std::end(first), keys.begin());
  std::copy(std::begin(second), std::end(second), keys.begin() + m);
  return keys;
}

// ---- [mesh]

constexpr Key<IndexBox> hole_keys[] = {
    {{"lower", "a list of {dim} integers", "required", "first coarse box of the hole in each direction, from 0"},
     [](const Value& v, IndexBox& hole) { hole.lower = integers(v, hole.lower); }},
    {{"upper", "a list of {dim} integers", "required", "first coarse box after the hole in each direction"},
     [](const Value& v, IndexBox& hole) { hole.upper = integers(v, hole.upper); }},
};

constexpr Key<Mesh> refine_key = {{"refine", "an integer", "0", "uniform refinements: each cuts every cell into 2^dim"},
                                  [](const Value& v, Mesh& mesh) { mesh.refine = v.integer(); }};

constexpr Key<Mesh> image_key = {
    {"image", "a table {file = \"...\", ...} or {generate = \"...\", ...}", "",
     "an image: a coarse box for each voxel, solid ones are holes; voxels are 1 wide in x"},
    read_image_key};

constexpr Key<Mesh> mesh_keys[] = {
    {{"cells", "a list of 2 or 3 integers", "required",
      "coarse boxes per direction; its length is the dimension. With `image` its voxels are the coarse boxes"},
     [](const Value& v, Mesh& mesh) {
       const auto count = v.list().size();
       v.require(count == 2 || count == 3);
       v.document().dim = mesh.dim = static_cast<int>(count);
       mesh.cells = integers(v, mesh.cells);
     }},
    {{"lower", "a list of {dim} numbers", "[0, 0, 0]", "lower corner of the bounding box"},
     [](const Value& v, Mesh& mesh) { mesh.lower = point(v, mesh.lower); }},
    {{"upper", "a list of {dim} numbers", "[1, 1, 1]", "upper corner of the bounding box"},
     [](const Value& v, Mesh& mesh) { mesh.upper = point(v, mesh.upper); }},
    {{"origin", "a list of {dim} numbers", "", "with `edges`, in place of `lower`: where they begin; zeros by default"},
     [](const Value& v, Mesh& mesh) { mesh.lower = point(v, mesh.lower); }},
    {{"edges", "a list of {dim} lists of {dim} numbers", "",
      "in place of `upper`: cells are parallelepipeds, and these are the edges of the domain; right-handed"},
     [](const Value& v, Mesh& mesh) {
       const auto edges = v.components();
       mesh.edges.emplace();
       for (std::size_t a = 0; a < edges.size(); ++a) (*mesh.edges)[a] = point(edges[a], {});
     }},
    refine_key,
    {{"holes", "a list of tables {lower = [...], upper = [...]}", "[]",
      "boxes removed from the domain, in coarse boxes; they may overlap"},
     [](const Value& v, Mesh& mesh) {
       for (const Value& entry : v.list()) entry.table<IndexBox>(hole_keys, mesh.holes.emplace_back());
     }},
    image_key,
};

void refuse_with_image(const Value& v, Mesh& /*mesh*/) {
  v.fail("the image says what the domain is: leave either this key or `image` out");
}

/// Of a mesh with an image.
constexpr Key<Mesh> image_mesh_keys[] = {
    image_key,
    refine_key,
    {{"cells", "", "", ""}, refuse_with_image},
    {{"lower", "", "", ""}, refuse_with_image},
    {{"upper", "", "", ""}, refuse_with_image},
    {{"origin", "", "", ""}, refuse_with_image},
    {{"edges", "", "", ""}, refuse_with_image},
    {{"holes", "", "", ""}, refuse_with_image},
};

void read_mesh(const Value& value, Mesh& mesh) {
  if (value.has("image")) {
    value.table<Mesh>(image_mesh_keys, mesh);
  } else {
    value.table<Mesh>(mesh_keys, mesh);  // names unknown keys first
    const bool sheared = value.has("edges");
    if (sheared && (value.has("lower") || value.has("upper"))) {
      value.fail("`edges` say what the domain is, from `origin`: leave `lower` and `upper` out");
    }
    if (!sheared && value.has("origin")) value.fail("`origin` is where `edges` begin: add them, or use `lower`");
  }
}

// ---- [time]

constexpr Key<VectorField> initial_file_keys[] = {
    {{"file", "the name of a file", "required", "a solution, as `solenoid solve --save` writes it"},
     [](const Value& v, VectorField& initial) { initial = load_solution(v.text()).velocity_field(); }},
};

constexpr Key<March> time_keys[] = {
    // The end comes first: time_option_keys() are the others.
    {{"end", "a number > 0", "required", "time at which the flow ends; it begins at 0"},
     [](const Value& v, March& march) {
       march.end = v.number();
       v.require(march.end > 0.0 && std::isfinite(march.end));
     }},
    {{"step", "a number > 0", "", "length of steps; with `cfl` the longest one"},
     [](const Value& v, March& march) {
       march.options.step = v.number();
       v.require(march.options.step > 0.0 && std::isfinite(march.options.step));
     }},
    {{"cfl", "a number > 0", "",
      "lengths of steps from the flow: C of dt = C / (omega_k R), R the largest sum_a |u_a| / h_a; if there is no "
      "`step` 0.5 with `sbdf3`, otherwise 0.8 of what is stable without viscosity"},
     [](const Value& v, March& march) {
       march.options.cfl = v.number();
       v.require(march.options.cfl > 0.0 && std::isfinite(march.options.cfl));
     }},
    {{"scheme", "\"sbdf1\", \"sbdf2\", \"sbdf3\", \"sbdf4\", \"bdf2/ext3\", \"ars233\" or \"ars443\"", "\"sbdf3\"",
      "BDF for what is linear, with extrapolated convection, the number is the order; or Runge-Kutta schemes of "
      "order 3 with 3 and 4 solves a step"},
     [](const Value& v, March& march) { march.options.scheme = v.choice<TimeScheme>(); }},
    {{"flow_rate", "a list of {dim} numbers", "",
      "what flows through a section of the domain normal to each periodic direction, volumes per time (0 in others); a "
      "gradient of the pressure holds it"},
     [](const Value& v, March& march) { march.options.flow_rate = point(v, {}); }},
    {{"steady", "a number > 0", "",
      "the flow ends early once it is steady: a step changes the velocity by less than this, relative, in L2, per unit "
      "of time; if it does not until `end`, it has not converged"},
     [](const Value& v, March& march) {
       march.options.steady = v.number();
       v.require(march.options.steady > 0.0 && std::isfinite(march.options.steady));
     }},
    {{"initial", "a list of {dim} expressions or numbers, or {file = \"...\"}", "[0, 0, 0]",
      "velocity at the beginning; it is made divergence-free"},
     [](const Value& v, March& march) {
       if (v.is_table()) {
         v.table<VectorField>(initial_file_keys, march.options.initial);
       } else {
         march.options.initial = v.vector_field();
       }
     }},
};

March read_time(const Value& value) {
  March march;
  // Expressions of the problem may depend on it from here on, and so may the initial velocity, at time 0.
  value.document().parameters["t"] = 0.0;
  value.table<March>(time_keys, march);
  return march;
}

// ---- [element], [physics]

constexpr Key<Problem> element_keys[] = {
    {{"order", "an integer or \"mac\"", "2",
      "k of the element RT_k x Q_k, with Poisson of Q_k; `solenoid info` lists those of a build; \"mac\" is order 0 "
      "with "
      "a diagonal mass matrix, the marker-and-cell scheme"},
     [](const Value& v, Problem& problem) {
       problem.lumped = v.is("mac");
       problem.order = problem.lumped ? 0 : v.integer();
     }},
};

/// The name of a file with an array, relative to the folder of the case file.
void read_array_name(const Value& v, FieldFile& from) {
  v.require(!v.text().empty());
  from.file = std::filesystem::path(v.document().name).parent_path() / v.text();
}

constexpr Key<FieldFile> dataset_key = {{"dataset", "the name of a dataset", "", "in an HDF5 file"},
                                        [](const Value& v, FieldFile& from) { from.dataset = v.text(); }};

constexpr Key<FieldFile> cellwise_keys[] = {
    {{"file", "the name of a file", "required",
      "an array [z, y, x], in 2D [y, x], of numbers for cells, coarse boxes or points: `.npy`, `.h5`, `.hdf5` or "
      "`.hdf`; relative to the folder of the case file"},
     read_array_name},
    dataset_key,
    {{"points", "an integer from 1 to 16", "1",
      "1: numbers for each cell, or each coarse box; m: values at m Gauss points per direction in every cell, between "
      "which there is a polynomial"},
     [](const Value& v, FieldFile& from) { from.points = v.integer(); }},
};

constexpr Key<FieldFile> force_file_keys[] = {
    {{"file", "the name of a file", "required",
      "an array [component, z, y, x], in 2D [component, y, x]; of one component [z, y, x] or [y, x]; files as of "
      "`viscosity`"},
     read_array_name},
    dataset_key,
    {{"points", "an integer from 1 to 16", "1",
      "1: numbers for each cell, or each coarse box; m: values at m Gauss points per direction in every cell, between "
      "which the force is a polynomial"},
     [](const Value& v, FieldFile& from) { from.points = v.integer(); }},
};

/// What `read` makes of an array in a file.
template <class Read>
auto read_array(const Value& value, std::span<const Key<FieldFile>> keys, const Read& read) {
  FieldFile from;
  value.table<FieldFile>(keys, from);
  try {
    return read(from);
  } catch (const InputError& error) {
    value.fail(error.what());
  }
}

/// A coefficient that is one number for all cells, or a field.
void read_coefficient(const Value& value, const Mesh& mesh, double& number, std::optional<ScalarField>& field) {
  if (value.is_table()) {
    field = read_array(value, cellwise_keys, [&](const FieldFile& from) { return read_scalar_field(mesh, from); });
    return;
  }
  ScalarField all = value.field();
  if (const auto constant = all.constant()) {
    number = *constant;
  } else {
    field = std::move(all);
  }
}

ScalarField read_force_component(const Value& value, const Mesh& mesh) {
  if (!value.is_table()) return value.field();
  ScalarField component =
      read_array(value, force_file_keys, [&](const FieldFile& from) { return read_scalar_field(mesh, from); });
  component.set_label(value.where());
  return component;
}

/// Expressions, numbers and arrays; with Poisson's equation a single component.
VectorField read_force(const Value& value, const Mesh& mesh) {
  if (value.document().equation == EquationKind::poisson) return {read_force_component(value, mesh)};
  VectorField force;
  if (value.is_table()) {
    force = read_array(value, force_file_keys, [&](const FieldFile& from) { return read_field(mesh, from); });
    for (std::size_t c = 0; c < force.size(); ++c) force[c].set_label(fmt::format("{}[{}]", value.where(), c));
    return force;
  }
  const auto entries = value.components();
  for (std::size_t c = 0; c < entries.size(); ++c) force[c] = read_force_component(entries[c], mesh);
  return force;
}

constexpr Key<Problem> physics_keys[] = {
    // The equation comes first: other keys depend on it.
    {{"equation", "\"stokes\" or \"poisson\"", "\"stokes\"",
      "alpha u - nu Laplace u + grad p = f with div u = 0, or without p"},
     [](const Value& v, Problem& problem) { v.document().equation = problem.equation = v.choice<EquationKind>(); }},
    {{"viscosity", "a number > 0, an expression, or a table {file = \"...\"} with an array", "1.0",
      "nu; of one that varies each cell has the mean, or see `viscosity_points`"},
     [](const Value& v, Problem& problem) {
       read_coefficient(v, problem.mesh, problem.viscosity, problem.varying_viscosity);
     }},
    {{"mass", "a number >= 0, an expression, or a table {file = \"...\"}", "0.0", "alpha, in the same way"},
     [](const Value& v, Problem& problem) { read_coefficient(v, problem.mesh, problem.mass, problem.varying_mass); }},
    {{"viscosity_cap", "a list of 2 numbers > 0 that ascend", "",
      "a viscosity that varies counts as these where it is smaller or larger"},
     [](const Value& v, Problem& problem) {
       const auto ends = v.list();
       v.require(ends.size() == 2);
       problem.viscosity_cap = {ends[0].number(), ends[1].number()};
     }},
    {{"viscosity_points", "\"cell\" or \"gauss\"", "\"cell\"",
      "where a viscosity that varies is taken: means of cells, or at Gauss points"},
     [](const Value& v, Problem& problem) { problem.viscosity_points = v.choice<ViscosityPlaces>(); }},
    {{"form", "\"gradient\" or \"stress\"", "",
      "the viscous term: - div(nu grad u), or - div(2 nu eps(u)); if it is not given, stress where the viscosity "
      "varies, otherwise gradient"},
     [](const Value& v, Problem& problem) {
       v.require_equation(EquationKind::stokes);
       problem.form = v.choice<ViscousForm>();
     }},
    {{"convection", "true or false", "false", "with the term div(u (x) u); of a flow in time"},
     [](const Value& v, Problem& problem) { problem.convection = stokes_only(v); }},
    {{"force", "a list of {dim} expressions or numbers, with Poisson a single one; or tables {file = \"...\"}",
      "[0, 0, 0]", "f; a table in place of an entry, or of all of them, names an array"},
     [](const Value& v, Problem& problem) { problem.force = read_force(v, problem.mesh); }},
};

// ---- [[region]]

/// A region while its keys are read.
struct RegionDraft {
  Region region;
  std::optional<Point> lower;
  std::optional<Point> upper;
};

constexpr Key<RegionDraft> part_keys[] = {
    {{"inside", "an expression", "", "the region is where it is not 0, such as `\"x^2 + y^2 < 1\"`"},
     [](const Value& v, RegionDraft& draft) { draft.region.inside = v.field(); }},
    {{"lower", "a list of {dim} numbers", "", "lower corner of a region that is a box, instead of `inside`"},
     [](const Value& v, RegionDraft& draft) { draft.lower = point(v, {}); }},
    {{"upper", "a list of {dim} numbers", "", "upper corner of the box"},
     [](const Value& v, RegionDraft& draft) { draft.upper = point(v, {}); }},
    {{"viscosity", "an expression or a number > 0", "", "nu there"},
     [](const Value& v, RegionDraft& draft) { draft.region.viscosity = v.field(); }},
    {{"mass", "an expression or a number >= 0", "", "alpha there"},
     [](const Value& v, RegionDraft& draft) { draft.region.mass = v.field(); }},
    {{"force", "a list of {dim} expressions or numbers, with Poisson a single one", "", "f there"},
     [](const Value& v, RegionDraft& draft) {
       draft.region.force = v.document().equation == EquationKind::poisson ? VectorField{v.field()} : v.vector_field();
     }},
};

Region read_region(const Value& value) {
  RegionDraft draft;
  value.table<RegionDraft>(part_keys, draft);
  const auto& [region, lower, upper] = draft;
  if (value.has("inside") == (lower || upper) || lower.has_value() != upper.has_value()) {
    value.fail("expected either `inside`, or `lower` and `upper`");
  }
  if (!region.viscosity && !region.mass && !region.force) value.fail("expected `viscosity`, `mass` or `force`");
  if (lower) {
    draft.region.inside = ScalarField([low = *lower, high = *upper, dim = value.dim()](const Point& x) {
      for (int a = 0; a < dim; ++a) {
        if (x[a] < low[a] || x[a] > high[a]) return 0.0;
      }
      return 1.0;
    });
  }
  return draft.region;
}

// ---- [boundary]

/// A side, a part of one or a hole while its keys are read: which conditions they name.
struct SideDraft {
  Side side;
  int number = 0;  ///< of the side or the hole
  ScalarField where;
  std::vector<std::string_view> conditions;
  bool no_outflow = false;  ///< the side says that it is none

  void add(SideKind kind, EquationKind equation = EquationKind::stokes) {
    side.kind = kind;
    const std::string_view name = name_of(kind, equation);
    if (std::find(conditions.begin(), conditions.end(), name) == conditions.end()) conditions.push_back(name);
  }
};

constexpr Key<SideDraft> condition_keys[] = {
    {{"velocity", expressions, "", "u on the side; zero is no-slip"},
     [](const Value& v, SideDraft& draft) {
       v.require_equation(EquationKind::stokes);
       draft.add(SideKind::velocity);
       draft.side.data = v.vector_field();
     }},
    {{"value", "an expression or a number", "", "Poisson's u on the side"},
     [](const Value& v, SideDraft& draft) {
       v.require_equation(EquationKind::poisson);
       draft.add(SideKind::velocity, EquationKind::poisson);
       draft.side.data[0] = v.field();
     }},
    {{"slip", "true or false", "false", "no flow through, no shear stress"},
     [](const Value& v, SideDraft& draft) {
       if (v.boolean()) draft.add(SideKind::slip);
     }},
    {{"outflow", "true or false", "false", "nu du/dn - p n = 0"},
     [](const Value& v, SideDraft& draft) {
       if (v.boolean()) {
         draft.add(SideKind::outflow);
       } else {
         draft.no_outflow = true;
       }
     }},
    // After `outflow`, which it may contradict.
    {{"traction", expressions, "[0, 0, 0]", "nu du/dn - p n on an outflow side; makes the side one"},
     [](const Value& v, SideDraft& draft) {
       v.require_equation(EquationKind::stokes);
       if (draft.no_outflow) v.fail("makes the side an outflow side, which `outflow = false` contradicts: keep one");
       draft.add(SideKind::outflow);
       draft.side.data = v.vector_field();
     }},
};

constexpr Key<SideDraft> periodic_keys[] = {
    {{"periodic", "true or false", "false", "wraps to the opposite side, which need not be given too; not for `holes`"},
     [](const Value& v, SideDraft& draft) {
       if (v.boolean()) draft.add(SideKind::periodic);
     }},
};

constexpr Key<SideDraft> region_keys[] = {
    {{"on", "the name of a side, such as \"xmin\"", "required", "the side"},
     [](const Value& v, SideDraft& draft) {
       draft.number = static_cast<int>(v.place_among({side_names.begin(), side_names.begin() + 2 * v.dim()}));
     }},
    {{"where", "an expression", "required", "the condition holds where it is not 0, such as `\"y < 0.5\"`"},
     [](const Value& v, SideDraft& draft) { draft.where = v.field(); }},
};

constexpr Key<SideDraft> single_hole_keys[] = {
    {{"index", "an integer", "required", "the place of the hole in the list `holes` of [mesh], from 0"},
     [](const Value& v, SideDraft& draft) { draft.number = v.integer(); }},
};

constexpr auto side_keys = joined(condition_keys, periodic_keys);
constexpr auto side_region_keys = joined(region_keys, condition_keys);
constexpr auto hole_side_keys = joined(single_hole_keys, condition_keys);

/// A side, a part of one or a hole with one condition.
SideDraft read_condition(const Value& value, std::span<const Key<SideDraft>> keys) {
  SideDraft draft;
  value.table<SideDraft>(keys, draft);
  if (draft.conditions.empty()) {
    const bool periodic =
        std::any_of(keys.begin(), keys.end(), [](const auto& key) { return key.info.name == "periodic"; });
    const bool stokes = value.document().equation == EquationKind::stokes;
    value.fail(stokes ? fmt::format("expected one of `velocity`, `slip`, `outflow`{}",
                                    periodic ? ", `traction` and `periodic`" : " and `traction`")
                      : fmt::format("expected `value`{}", periodic ? " or `periodic`" : ""));
  }
  if (draft.conditions.size() > 1) {
    value.fail(fmt::format("the conditions {} contradict each other: keep one", fmt::join(draft.conditions, " and ")));
  }
  return draft;
}

template <int side>
void read_box_side(const Value& value, Boundary& boundary) {
  if (side / 2 >= value.dim())
    value.fail(fmt::format("the mesh has {} dimensions, so there is no such side", value.dim()));
  boundary.sides[side] = read_condition(value, side_keys).side;
}

constexpr std::string_view side_type = "a table such as {velocity = [...]}, {slip = true} or {value = ...}";

constexpr Key<Boundary> boundary_keys[] = {
    {{side_names[0], side_type, "{velocity = [0, 0, 0]}", "lower side in x"}, read_box_side<0>},
    {{side_names[1], side_type, "{velocity = [0, 0, 0]}", "upper side in x"}, read_box_side<1>},
    {{side_names[2], side_type, "{velocity = [0, 0, 0]}", "lower side in y"}, read_box_side<2>},
    {{side_names[3], side_type, "{velocity = [0, 0, 0]}", "upper side in y"}, read_box_side<3>},
    {{side_names[4], side_type, "{velocity = [0, 0, 0]}", "lower side in z"}, read_box_side<4>},
    {{side_names[5], side_type, "{velocity = [0, 0, 0]}", "upper side in z"}, read_box_side<5>},
    {{"holes", side_type, "{velocity = [0, 0, 0]}", "the sides of all holes"},
     [](const Value& v, Boundary& boundary) { boundary.holes = read_condition(v, side_keys).side; }},
};

void read_boundary(const Value& value, Boundary& boundary) {
  value.table<Boundary>(boundary_keys, boundary);
  for (int side = 0; side < 2 * value.dim(); ++side) {
    Side& opposite = boundary.sides[side ^ 1];
    if (boundary.sides[side].kind == SideKind::periodic && !value.has(side_names[side ^ 1])) {
      opposite.kind = SideKind::periodic;
    }
  }
}

// ---- [solver]

constexpr Key<SolverOptions> solver_keys[] = {
    // The preset comes first: single settings override it.
    {{"preset", "\"default\" or \"paper\"", "\"default\"",
      "`side`, `colour_order` and `patch` together; `paper`: left, lexicographic, galerkin, and one V-cycle through "
      "all "
      "levels with one penalty for every order; single settings override it"},
     [](const Value& v, SolverOptions& options) { options.apply(v.choice<Preset>()); }},
    {{"method", "\"gmres\", \"fmg\" or \"vcycle\"", "\"gmres\"",
      "GMRES preconditioned by a V-cycle, full multigrid, or V-cycles alone"},
     [](const Value& v, SolverOptions& options) { options.method = v.choice<Method>(); }},
    {{"rtol", expected::rtol, "1e-8", "stop at this residual, relative to the right-hand side; not used by `fmg`"},
     [](const Value& v, SolverOptions& options) { options.rtol = v.number(); }},
    {{"max_iterations", expected::max_iterations, "50",
      "give up after so many iterations; 200 by default where coefficients vary by cell"},
     [](const Value& v, SolverOptions& options) { options.max_iterations = v.integer(); }},
    {{"restart", expected::restart, "0", "restart length of GMRES; 0: no restarts"},
     [](const Value& v, SolverOptions& options) { options.restart = v.integer(); }},
    {{"cycles", expected::cycles, "1", "V-cycles on each level of full multigrid; two for an accurate pressure"},
     [](const Value& v, SolverOptions& options) { options.cycles = v.integer(); }},
    {{"side", "\"right\" or \"left\"", "\"right\"",
      "of the preconditioner; `right` measures the true residual, `left` needs a coarsest level that is solved "
      "directly"},
     [](const Value& v, SolverOptions& options) { options.side = v.choice<PreconditionerSide>(); }},
    {{"smoother", "\"multiplicative\" or \"additive\"", "\"multiplicative\"", "how vertex patches are combined"},
     [](const Value& v, SolverOptions& options) { options.multigrid.smoother = v.choice<SmootherKind>(); }},
    {{"damping", expected::damping, "0", "of the additive smoother; 0 chooses 0.9 / 2^dim"},
     [](const Value& v, SolverOptions& options) { options.multigrid.damping = v.number(); }},
    {{"colour_order", "\"diagonal\" or \"lexicographic\"", "\"diagonal\"", "order of the colours in a smoothing step"},
     [](const Value& v, SolverOptions& options) { options.multigrid.colour_order = v.choice<ColourOrder>(); }},
    {{"patch", "\"symmetric\", \"galerkin\" or \"fused\"", "\"symmetric\"",
      "local problem: no-slip on both ends where a patch touches a wall, the exact diagonal block, or (Poisson) the "
      "paper's fused one"},
     [](const Value& v, SolverOptions& options) { options.multigrid.patch = v.choice<PatchProblem>(); }},
    {{"local_solver", "\"direct\", \"chebyshev\", \"cg\" or \"dense\"", "\"direct\"",
      "how local problems are solved; with Poisson `direct` only"},
     [](const Value& v, SolverOptions& options) { options.multigrid.local_solver = v.choice<LocalSolverKind>(); }},
};

// ---- [exact], [[probe]], [output]

constexpr Key<Exact> exact_keys[] = {
    {{"velocity", expressions, "", "exact velocity: its L2 error is reported"},
     [](const Value& v, Exact& exact) {
       v.require_equation(EquationKind::stokes);
       exact.velocity = v.vector_field();
     }},
    {{"pressure", "an expression or a number", "",
      "exact pressure: its L2 error is reported, after removing the mean unless there is an outflow side"},
     [](const Value& v, Exact& exact) {
       v.require_equation(EquationKind::stokes);
       exact.pressure = v.field();
     }},
    {{"value", "an expression or a number", "", "exact u of Poisson's equation: its L2 error is reported"},
     [](const Value& v, Exact& exact) {
       v.require_equation(EquationKind::poisson);
       exact.value = v.field();
     }},
};

/// \throws InputError unless coordinate a of a point lies in the box of the mesh; on a mesh with edges that is how far
/// along edge a it lies.
void require_inside(const Value& value, const Mesh& mesh, int a, double x) {
  if (mesh.edges) {
    const double length = length_along(mesh, a);
    if (x >= 0.0 && x <= length) return;
    value.fail(fmt::format("{} along edge {} lies outside the mesh, which is {} long there", x, "xyz"[a], length));
  }
  if (x >= mesh.lower[a] && x <= mesh.upper[a]) return;
  value.fail(fmt::format("{} = {} lies outside the mesh, which goes from {} to {}", "xyz"[a], x, mesh.lower[a],
                         mesh.upper[a]));
}

Point point_inside(const Value& value, const Mesh& mesh) {
  const Point result = point(value, {});
  if (mesh.edges) {
    const Point along = AffineMap(mesh.dim, mesh.lower, *mesh.edges).pulled_back(result);
    for (int a = 0; a < mesh.dim; ++a) {
      const double length = length_along(mesh, a);
      if (along[a] >= -1e-12 * length && along[a] <= (1.0 + 1e-12) * length) continue;
      value.fail(fmt::format("the point lies outside the mesh: at {:.6g} of its edge {}, which is from 0 to 1",
                             along[a] / length, a));
    }
    return result;
  }
  for (int a = 0; a < value.dim(); ++a) require_inside(value, mesh, a, result[a]);
  return result;
}

/// What is read, and the box that it must lie in.
template <class Target>
struct InBox {
  const Mesh& mesh;
  Target target{};
};

constexpr Key<InBox<Point>> probe_keys[] = {
    {{"point", "a list of {dim} numbers", "required", "where velocity and pressure, or Poisson's u, are reported"},
     [](const Value& v, InBox<Point>& probe) { probe.target = point_inside(v, probe.mesh); }},
};

constexpr std::string_view axis_type = "\"x\", \"y\" or \"z\"";

int axis(const Value& value) {
  const std::string name = value.text();
  const auto number = name.size() == 1 ? std::string_view("xyz").find(name) : std::string_view::npos;
  value.require(number != std::string_view::npos);
  if (static_cast<int>(number) >= value.dim()) {
    value.fail(fmt::format("the mesh has {} dimensions, so there is no {}", value.dim(), name));
  }
  return static_cast<int>(number);
}

double position(const Value& value, const Mesh& mesh, int axis) {
  const double result = value.number();
  require_inside(value, mesh, axis, result);
  return result;
}

std::string file_name(const Value& value, std::string_view extension) {
  const std::filesystem::path file(value.text());
  value.require(!file.empty() && file.filename() == file && file.extension() == extension);
  return file.string();
}

constexpr Key<InBox<Plane>> flux_keys[] = {
    {{"axis", axis_type, "required", "direction that the flux is counted in, normal to the plane"},
     [](const Value& v, InBox<Plane>& flux) { flux.target.axis = axis(v); }},
    {{"position", "a number", "required",
      "coordinate of the plane in that direction; with `edges` how far along that edge it lies"},
     [](const Value& v, InBox<Plane>& flux) { flux.target.position = position(v, flux.mesh, flux.target.axis); }},
};

constexpr std::string_view csv_type = "a file name that ends in .csv, without folders";

constexpr Key<InBox<Samples>> line_keys[] = {
    {{"file", csv_type, "required", "table of points and values"},
     [](const Value& v, InBox<Samples>& line) { line.target.file = file_name(v, ".csv"); }},
    {{"from", "a list of {dim} numbers", "required", "first point"},
     [](const Value& v, InBox<Samples>& line) { line.target.origin = point_inside(v, line.mesh); }},
    {{"to", "a list of {dim} numbers", "required", "last point"},
     [](const Value& v, InBox<Samples>& line) {
       const Point end = point_inside(v, line.mesh);
       for (int a = 0; a < 3; ++a) line.target.edges[0][a] = end[a] - line.target.origin[a];
     }},
    {{"points", "an integer from 2 to 1000000", "101", "how many, both ends included"},
     [](const Value& v, InBox<Samples>& line) {
       line.target.count[0] = v.integer();
       v.require(line.target.count[0] >= 2 && line.target.count[0] <= 1'000'000);
     }},
};

/// A plane of samples while its keys are read.
struct SampledPlane {
  const Mesh& mesh;
  std::string file{};
  int axis = 2;
  std::optional<double> position{};
  std::array<int, 2> count{101, 101};

  [[nodiscard]] Samples samples() const {
    Samples result{file, mesh.lower, {}, count};
    if (mesh.edges) {
      int along = 0;
      for (int a = 0; a < mesh.dim; ++a) {
        const Point& edge = (*mesh.edges)[a];
        if (a != axis) result.edges[along++] = edge;
        for (int i = 0; i < 3 && a == axis; ++i) result.origin[i] += 0.5 * edge[i];
      }
      return result;
    }
    if (mesh.dim == 3) result.origin[axis] = position.value_or(0.5 * (mesh.lower[axis] + mesh.upper[axis]));
    int edge = 0;
    for (int a = 0; a < mesh.dim; ++a) {
      if (a != axis) result.edges[edge++][a] = mesh.upper[a] - mesh.lower[a];
    }
    return result;
  }
};

void require_slices(const Value& value) {
  if (value.dim() == 2) value.fail("is for meshes in 3D: in 2D the plane is the domain");
}

constexpr Key<SampledPlane> plane_keys[] = {
    {{"file", csv_type, "required", "table of points and values"},
     [](const Value& v, SampledPlane& plane) { plane.file = file_name(v, ".csv"); }},
    {{"axis", axis_type, "\"z\"", "3D: direction normal to the plane"},
     [](const Value& v, SampledPlane& plane) {
       require_slices(v);
       plane.axis = axis(v);
     }},
    {{"position", "a number", "", "3D: coordinate of the plane in that direction; in the middle if not given"},
     [](const Value& v, SampledPlane& plane) {
       require_slices(v);
       if (plane.mesh.edges) v.fail("the plane lies in the middle of a mesh with `edges`: leave it out");
       plane.position = position(v, plane.mesh, plane.axis);
     }},
    {{"points", "a list of 2 integers from 2 to 10000", "[101, 101]",
      "how many in the other two directions, from end to end of the bounding box, or of the domain along `edges`"},
     [](const Value& v, SampledPlane& plane) {
       const auto entries = v.list();
       v.require(entries.size() == 2);
       for (int i = 0; i < 2; ++i) {
         plane.count[i] = entries[i].integer();
         entries[i].require(plane.count[i] >= 2 && plane.count[i] <= 10'000);
       }
     }},
};

constexpr Key<March> average_keys[] = {
    {{"start", "a number >= 0", "required", "time from which on the flow is averaged"},
     [](const Value& v, March& march) {
       march.options.average_start = v.number();
       v.require(v.number() >= 0.0 && std::isfinite(v.number()));
     }},
    {{"every", "a number >= 0", "0", "time between flows that count; 0: each step does"},
     [](const Value& v, March& march) {
       march.options.average_every = v.number();
       v.require(v.number() >= 0.0 && std::isfinite(v.number()));
     }},
    {{"along", "a list of periodic directions, such as [\"x\", \"z\"]", "[]",
      "directions to average along as well, for a profile across the others"},
     [](const Value& v, March& march) {
       for (const Value& entry : v.list()) march.average_along.at(axis(entry)) = true;
     }},
};

using OutputDraft = InBox<OutputOptions>;
using Scales = std::map<std::optional<FlowField>, Scale>;

void read_scale(const Value& value, Scales& scales, std::optional<FlowField> field) {
  const auto ends = value.list();
  value.require(ends.size() == 2);
  const Scale scale{ends[0].number(), ends[1].number()};
  value.require(scale[0] < scale[1] && std::isfinite(scale[1] - scale[0]));
  scales[field] = scale;
}

constexpr std::string_view scale_type = "a list of 2 numbers that ascend";

constexpr Key<Scales> scale_keys[] = {
    {{"speed", scale_type, "", "of pictures of the speed"},
     [](const Value& v, Scales& scales) { read_scale(v, scales, {}); }},
    {{"vorticity", scale_type, "", "of those of the vorticity"},
     [](const Value& v, Scales& scales) { read_scale(v, scales, FlowField::vorticity); }},
    {{"q", scale_type, "", "of those of Q"},
     [](const Value& v, Scales& scales) { read_scale(v, scales, FlowField::q); }},
    {{"dissipation", scale_type, "", "of those of the dissipation"},
     [](const Value& v, Scales& scales) { read_scale(v, scales, FlowField::dissipation); }},
    {{"strain_rate_invariant", scale_type, "", "of those of the strain rate"},
     [](const Value& v, Scales& scales) { read_scale(v, scales, FlowField::strain_rate_invariant); }},
    {{"viscosity", scale_type, "", "of those of the viscosity: of its logarithm to base 10"},
     [](const Value& v, Scales& scales) { read_scale(v, scales, FlowField::viscosity); }},
    {{"mass", scale_type, "", "of those of the mass term"},
     [](const Value& v, Scales& scales) { read_scale(v, scales, FlowField::mass); }},
};

/// Files for sides by their names.
void read_normal_stress(const Value& value, OutputDraft& output) {
  value.require_equation(EquationKind::stokes);
  for (const auto& [name, file] : value.entries("a file name that ends in .csv, without folders")) {
    const auto sides = std::span(side_names).first(static_cast<std::size_t>(2) * value.dim());
    const auto side = std::find(sides.begin(), sides.end(), name);
    if (side == sides.end()) file.fail("is no side of the bounding box");
    output.target.normal_stresses[static_cast<int>(side - sides.begin())] = file_name(file, ".csv");
  }
}

constexpr Key<OutputDraft> output_keys[] = {
    {{"vtu", "true or false", "false", "a VTU file for ParaView: one Lagrange cell of degree k + 1 per cell, exact"},
     [](const Value& v, OutputDraft& output) { output.target.vtu = v.boolean(); }},
    {{"subdivide", "an integer from 0 to 32", "0",
      "> 0: that many linear cells per cell and direction in the VTU file"},
     [](const Value& v, OutputDraft& output) {
       output.target.subdivide = v.integer();
       v.require(output.target.subdivide >= 0 && output.target.subdivide <= 32);
     }},
    {{"picture", "a file name that ends in .png, without folders", "\"\"", "a picture of the speed, or of Poisson's u"},
     [](const Value& v, OutputDraft& output) {
       if (!v.text().empty()) output.target.picture = file_name(v, ".png");
     }},
    {{"fields",
      "a list of \"vorticity\", \"q\", \"dissipation\", \"strain_rate\", \"strain_rate_invariant\", \"stress\", "
      "\"viscosity\" and \"mass\"",
      "[]", "in VTU files, too, and a picture of each that is no tensor beside that of the speed"},
     [](const Value& v, OutputDraft& output) {
       v.require_equation(EquationKind::stokes);
       for (const Value& entry : v.list()) {
         const auto field = entry.choice<FlowField>();
         auto& fields = output.target.fields;
         if (std::find(fields.begin(), fields.end(), field) == fields.end()) fields.push_back(field);
       }
     }},
    {{"scale", "a table such as {speed = [0, 1.5], vorticity = [-5, 5]}", "{}",
      "values at the ends of the colours of pictures, the same in a series; by default each picture has its own"},
     [](const Value& v, OutputDraft& output) {
       v.require_equation(EquationKind::stokes);
       v.table<Scales>(scale_keys, output.target.scales);
     }},
    {{"forces", "true or false", "false", "force and torque on every side and hole"},
     [](const Value& v, OutputDraft& output) { output.target.forces = stokes_only(v); }},
    {{"torques_about", "a list of {dim} numbers", "[0, 0, 0]", "the point that torques are about"},
     [](const Value& v, OutputDraft& output) {
       v.require_equation(EquationKind::stokes);
       output.target.torques_about = point(v, {});
     }},
    {{"energy", "true or false", "false", "kinetic energy and dissipation"},
     [](const Value& v, OutputDraft& output) { output.target.energy = stokes_only(v); }},
    {{"permeability", "true or false", "false", "of a periodic sample that a constant force drives a flow through"},
     [](const Value& v, OutputDraft& output) { output.target.permeability = stokes_only(v); }},
    {{"every", "a number > 0", "", "time between VTU files and pictures of a flow in time; else at the end alone"},
     [](const Value& v, OutputDraft& output) {
       output.target.every = v.number();
       v.require(output.target.every > 0.0 && std::isfinite(output.target.every));
     }},
    {{"checkpoint", "a number > 0", "",
      "time between checkpoints of a flow in time, from which `solenoid restart` goes on; the last two are kept"},
     [](const Value& v, OutputDraft& output) {
       output.target.checkpoint = v.number();
       v.require(output.target.checkpoint > 0.0 && std::isfinite(output.target.checkpoint));
     }},
    {{"history", csv_type, "\"\"", "a line for each step of a flow in time"},
     [](const Value& v, OutputDraft& output) {
       if (!v.text().empty()) output.target.history = file_name(v, ".csv");
     }},
    {{"normal_stress", "a table such as {ymax = \"topography.csv\"}", "{}",
      "n . (2 nu eps(u) - p) n in the middles of a side's faces"},
     read_normal_stress},
    {{"speeds", csv_type, "\"\"", "how speeds are distributed over the domain"},
     [](const Value& v, OutputDraft& output) {
       v.require_equation(EquationKind::stokes);
       if (!v.text().empty()) output.target.speeds = file_name(v, ".csv");
     }},
    {{"vti", "true or false", "false",
      "of a permeability: velocity and pressure of each voxel as a VTI file for ParaView, in metres"},
     [](const Value& v, OutputDraft& output) { output.target.vti = v.boolean(); }},
    {{"arrays", "a file name that ends in .h5, without folders", "\"\"",
      "the same as arrays of an HDF5 file, whose indices are those of the image's array"},
     [](const Value& v, OutputDraft& output) {
       if (!v.text().empty()) output.target.arrays = file_name(v, ".h5");
     }},
    {{"size_limit", "a number > 0", "1", "of these files, in GB: larger ones are refused before anything is solved"},
     [](const Value& v, OutputDraft& output) {
       output.target.size_limit = v.number();
       v.require(output.target.size_limit > 0.0);
     }},
    {{"flux", "tables [[output.flux]]", "", "planes through which the flux is reported"},
     [](const Value& v, OutputDraft& output) {
       v.require_equation(EquationKind::stokes);
       for (const Value& entry : v.list()) {
         InBox<Plane> flux{output.mesh};
         entry.table<InBox<Plane>>(flux_keys, flux);
         output.target.fluxes.push_back(flux.target);
       }
     }},
    {{"line", "tables [[output.line]]", "", "lines along which the solution is written to a CSV file"},
     [](const Value& v, OutputDraft& output) {
       for (const Value& entry : v.list()) {
         InBox<Samples> line{output.mesh};
         entry.table<InBox<Samples>>(line_keys, line);
         output.target.samples.push_back(line.target);
       }
     }},
    {{"plane", "tables [[output.plane]]", "", "planes on which the solution is written to a CSV file"},
     [](const Value& v, OutputDraft& output) {
       for (const Value& entry : v.list()) {
         SampledPlane plane{output.mesh};
         entry.table<SampledPlane>(plane_keys, plane);
         output.target.samples.push_back(plane.samples());
       }
     }},
};

// ---- [parameters]

constexpr KeyInfo parameter_info{"NAME", "a number, or an expression without coordinates", "",
                                 "what NAME means in all expressions of the file"};

Parameters read_parameters(const Value& value) {
  Parameters parameters;
  for (const auto& [name, entry] : value.entries(parameter_info.type)) {
    if (const std::string reason = why_no_parameter(name); !reason.empty())
      entry.fail("cannot be a parameter: " + reason);
    if (name == "t") entry.fail("cannot be a parameter: it is kept for the time");
    parameters[name] = entry.field().constant().value();
  }
  return parameters;
}

constexpr Key<Case> top_keys[] = {
    // Parameters come first: all expressions may have them.
    {{"parameters", "a table", "", "numbers that expressions know by their names"},
     [](const Value& v, Case&) { v.document().parameters = read_parameters(v); }},
    {{"mesh", "a table", "required", "the domain: a box of equal coarse boxes, some removed, all refined"},
     [](const Value& v, Case& c) { read_mesh(v, c.problem.mesh); }},
    // The time comes before all that may depend on it.
    {{"time", "a table", "", "a flow that changes in time; expressions may depend on `t`"},
     [](const Value& v, Case& c) { c.time = read_time(v); }},
    {{"element", "a table", "", "the discretisation"},
     [](const Value& v, Case& c) { v.table<Problem>(element_keys, c.problem); }},
    {{"physics", "a table", "", "the equation: alpha u - nu Laplace u + grad p = f, div u = 0"},
     [](const Value& v, Case& c) { v.table<Problem>(physics_keys, c.problem); }},
    {{"region", "tables [[region]]", "",
      "other coefficients, or another force, in a part of the domain; where two overlap, the later one holds"},
     [](const Value& v, Case& c) {
       for (const Value& entry : v.list()) c.problem.regions.push_back(read_region(entry));
     }},
    {{"boundary", "a table", "", "conditions on the sides of the bounding box and on holes; default: no-slip"},
     [](const Value& v, Case& c) { read_boundary(v, c.problem.boundary); }},
    {{"side", "tables [[side]]", "", "another condition on a part of a side"},
     [](const Value& v, Case& c) {
       for (const Value& entry : v.list()) {
         SideDraft draft = read_condition(entry, side_region_keys);
         c.problem.boundary.regions.push_back({draft.number, std::move(draft.where), std::move(draft.side)});
       }
     }},
    {{"hole", "tables [[hole]]", "", "another condition on the sides of one hole"},
     [](const Value& v, Case& c) {
       for (const Value& entry : v.list()) {
         SideDraft draft = read_condition(entry, hole_side_keys);
         c.problem.boundary.single_holes.push_back({draft.number, std::move(draft.side)});
       }
     }},
    {{"permeability", "a table", "", "that of the image in [mesh], by `solenoid permeability`"},
     [](const Value& v, Case& c) {
       if (c.problem.mesh.image == nullptr) v.fail("is that of an image: add `image` to [mesh]");
       c.permeability = read_permeability(v);
     }},
    {{"solver", "a table", "", "how the discrete system is solved"},
     [](const Value& v, Case& c) { v.table<SolverOptions>(solver_keys, c.solver); }},
    {{"exact", "a table", "", "a known solution, to measure errors against"},
     [](const Value& v, Case& c) { v.table<Exact>(exact_keys, c.exact); }},
    {{"probe", "tables [[probe]]", "", "points at which the solution is reported"},
     [](const Value& v, Case& c) {
       for (const Value& entry : v.list()) {
         InBox<Point> probe{c.problem.mesh};
         entry.table<InBox<Point>>(probe_keys, probe);
         c.probes.push_back(probe.target);
       }
     }},
    {{"average", "a table", "", "averages of a flow in time"},
     [](const Value& v, Case& c) {
       if (!c.time) v.fail("a steady flow is its own average: add a table [time]");
       v.table<March>(average_keys, *c.time);
     }},
    {{"output", "a table", "", "what is measured, and files for people, written to the folder given by --output"},
     [](const Value& v, Case& c) {
       OutputDraft draft{c.problem.mesh};
       v.table<OutputDraft>(output_keys, draft);
       c.output = std::move(draft.target);
     }},
};

std::vector<Section> make_sections() {
  std::vector<Section> sections;
  const auto add = [&](std::string_view name, std::vector<KeyInfo> keys) {
    const auto* top = std::find_if(std::begin(top_keys), std::end(top_keys),
                                   [&](const Key<Case>& key) { return key.info.name == name; });
    sections.push_back({name, top->info.meaning, std::move(keys)});
  };
  add("mesh", infos(mesh_keys));
  sections.push_back({"mesh.holes", "an entry of the list `holes`", infos(hole_keys)});
  sections.push_back({"mesh.image", "an image in a file", image_file_infos()});
  sections.push_back({"mesh.image.generate", "an image made of a few numbers", image_pattern_infos()});
  add("parameters", {parameter_info});
  add("time", infos(time_keys));
  add("element", infos(element_keys));
  add("physics", infos(physics_keys));
  sections.push_back({"physics.viscosity", "a coefficient in a file, `mass` too", infos(cellwise_keys)});
  sections.push_back({"physics.force", "a force, or one component of it, in a file", infos(force_file_keys)});
  add("region", infos(part_keys));
  add("boundary", infos(boundary_keys));
  sections.push_back({"boundary.SIDE", "one side", infos(side_keys)});
  add("side", infos(side_region_keys));
  add("hole", infos(hole_side_keys));
  add("permeability", permeability_infos());
  add("solver", infos(solver_keys));
  add("exact", infos(exact_keys));
  add("probe", infos(probe_keys));
  add("average", infos(average_keys));
  add("output", infos(output_keys));
  sections.push_back({"output.scale", "ends of the colours of pictures", infos(scale_keys)});
  sections.push_back({"output.flux", "a plane through which the flux is reported", infos(flux_keys)});
  sections.push_back({"output.line", "points on a line, written to a CSV file", infos(line_keys)});
  sections.push_back({"output.plane", "points on a plane, written to a CSV file", infos(plane_keys)});
  return sections;
}

}  // namespace

std::span<const Key<Case>> case_keys() { return top_keys; }
std::span<const Key<SolverOptions>> solver_option_keys() { return solver_keys; }
std::span<const Key<March>> time_option_keys() { return std::span(time_keys).subspan(1); }

std::string key_path(const std::string& entry) {
  if (entry.find('.') != std::string::npos) return entry;
  const std::string name = entry.substr(0, entry.find('['));
  for (const Section& section : case_sections()) {
    if (section.name == name && name != entry) return entry;  // "side[0]", a table [[side]]
    if (section.name.find('.') != std::string_view::npos) continue;
    for (const KeyInfo& key : section.keys) {
      if (key.name == name) return fmt::format("{}.{}", section.name, entry);
    }
  }
  return entry;
}

std::string key_label(const std::string& path) {
  const auto dot = path.find('.');
  if (dot == std::string::npos) return fmt::format("[{}]", path);
  return fmt::format("[{}] {}", path.substr(0, dot), path.substr(dot + 1));
}

const std::vector<Section>& case_sections() {
  static const std::vector<Section> sections = make_sections();
  return sections;
}

}  // namespace solenoid
