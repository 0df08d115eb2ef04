/// \file
/// Fields, problems, cases and options.

#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <thread>
#include <tuple>
#include <unordered_map>

#include "binding.hpp"
#include "case/keys.hpp"
#include "case/permeability_keys.hpp"
#include "problem/names.hpp"
#include "problem/parts.hpp"
#include "problem/validate.hpp"
#include "solenoid/arrays.hpp"
#include "solenoid/cellwise.hpp"
#include "solenoid/error.hpp"
#include "solenoid/image.hpp"

namespace solenoid::python {
namespace {

// Fields -------------------------------------------------------------------------------------------------------------

/// A Python function: array of points (n, dim) -> array of values (n, components), double precision and C order. Its
/// components are asked for one after the other at the same points, so a thread's last values are kept. All that is in
/// here is done with Python's lock held.
class PointFunction {
 public:
  PointFunction(nb::callable function, int dim, int components)
      : function_(std::move(function)), dim_(dim), components_(components) {}

  void evaluate(std::span<const Point> points, int component, std::span<double> values) {
    const nb::gil_scoped_acquire gil;
    auto& last = last_[std::this_thread::get_id()];
    if (last.points.size() != points.size() ||
        std::memcmp(last.points.data(), points.data(), points.size_bytes()) != 0) {
      Evaluation fresh{{points.begin(), points.end()}, call(points)};
      if (last_.size() > most_threads) last_.clear();  // of threads that are gone
      last_[std::this_thread::get_id()] = std::move(fresh);
    }
    const auto& result = last_[std::this_thread::get_id()].values;
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = result[i * components_ + component];
  }

 private:
  struct Evaluation {
    std::vector<Point> points;
    std::vector<double> values;
  };
  static constexpr std::size_t most_threads = 256;

  [[nodiscard]] std::vector<double> call(std::span<const Point> points) const {
    std::vector<double> coordinates;
    coordinates.reserve(points.size() * dim_);
    for (const Point& point : points) coordinates.insert(coordinates.end(), point.begin(), point.begin() + dim_);
    const nb::object result =
        function_(nb::cast(numpy_array(std::move(coordinates), {points.size(), static_cast<std::size_t>(dim_)})));
    using Values = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
    const auto values = nb::cast<Values>(result);
    return {values.data(), values.data() + values.size()};
  }

  nb::callable function_;
  int dim_;
  int components_;
  std::unordered_map<std::thread::id, Evaluation> last_;
};

std::vector<ScalarField> function_fields(nb::callable function, int dim, int components,
                                         const std::vector<std::string>& labels) {
  // Fields are copied and destroyed on any thread, so that they share what holds Python objects.
  const std::shared_ptr<PointFunction> shared(new PointFunction(std::move(function), dim, components),
                                              [](PointFunction* f) {
                                                if (!nb::is_alive()) return;
                                                const nb::gil_scoped_acquire gil;
                                                delete f;
                                              });
  std::vector<ScalarField> fields;
  for (int c = 0; c < components; ++c) {
    fields.emplace_back(
        [shared, c](std::span<const Point> points, std::span<double> values) { shared->evaluate(points, c, values); },
        labels[c]);
  }
  return fields;
}

ScalarField constant(double value, std::string label) {
  ScalarField field(value);
  field.set_label(std::move(label));
  return field;
}

// Problems -----------------------------------------------------------------------------------------------------------

template <class Choice>
Choice choice(std::string_view word) {
  for (const auto& [name, value] : Names<Choice>::all) {
    if (name == word) return value;
  }
  throw InputError(fmt::format("unknown name '{}'", word));
}

template <class T>
std::array<T, 3> triple(const std::vector<T>& values, std::array<T, 3> result) {
  for (std::size_t a = 0; a < values.size(); ++a) result.at(a) = values[a];
  return result;
}

template <class T>
std::vector<T> entries(const std::array<T, 3>& values, int dim) {
  return {values.begin(), values.begin() + dim};
}

using IntegerBox = std::pair<std::vector<int>, std::vector<int>>;
using NamedSide = std::pair<std::string, std::vector<ScalarField>>;

using NamedRegion = std::tuple<int, ScalarField, NamedSide>;  // side, where, condition
using NamedHole = std::pair<int, NamedSide>;                  // place in `holes`, condition

Side side_of(const NamedSide& side) { return {choice<SideKind>(side.first), vector_field(side.second)}; }

/// Of an array [x, y, z], or [x, y], that is true in solid.
Image make_image(const nb::ndarray<const bool, nb::c_contig, nb::device::cpu>& solid,
                 const std::vector<double>& voxel) {
  const auto dim = static_cast<int>(solid.ndim());
  if (dim != 2 && dim != 3) throw InputError(fmt::format("expected an array with 2 or 3 axes, got {}", dim));
  std::array<int, 3> extent{1, 1, 1};
  for (int a = 0; a < dim; ++a) {
    if (solid.shape(a) > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
      throw InputError("the array is too large");
    }
    extent[a] = static_cast<int>(solid.shape(a));
  }
  const bool* const values = solid.data();
  const auto solid_at = [&](const std::array<int, 3>& at) {
    return values[at[2] + extent[2] * (at[1] + std::int64_t{extent[1]} * at[0])];
  };
  return {std::make_shared<const VoxelImage>(dim, extent, solid_at, triple(voxel, {1, 1, 1}))};
}

/// A vector for each direction, of cells that are parallelepipeds.
using Edges = std::optional<std::vector<std::vector<double>>>;

Mesh make_mesh(const std::vector<double>& lower, const std::vector<double>& upper, const std::vector<int>& cells,
               int refine, const std::vector<IntegerBox>& holes, const std::optional<Image>& image,
               const Edges& edges) {
  Mesh mesh;
  mesh.dim = static_cast<int>(cells.size());
  mesh.lower = triple(lower, mesh.lower);
  mesh.upper = triple(upper, mesh.upper);
  mesh.cells = triple(cells, mesh.cells);
  mesh.refine = refine;
  for (const auto& [first, end] : holes) mesh.holes.push_back({triple(first, {0, 0, 0}), triple(end, {1, 1, 1})});
  if (image) mesh.image = image->voxels;
  if (edges) {
    mesh.edges.emplace();
    for (std::size_t a = 0; a < edges->size(); ++a) mesh.edges->at(a) = triple((*edges)[a], Point{});
  }
  return mesh;
}

using OptionalField = std::optional<ScalarField>;
/// Where it is, viscosity, mass, force.
using CoefficientRegion =
    std::tuple<ScalarField, OptionalField, OptionalField, std::optional<std::vector<ScalarField>>>;

/// A coefficient that is a number, or a field.
void set_coefficient(const ScalarField& given, double& number, OptionalField& field) {
  if (const auto constant = given.constant(); constant && given.parameters().empty()) {
    number = *constant;
  } else {
    field = given;
  }
}

Problem make_problem(const std::string& equation, const std::vector<double>& lower, const std::vector<double>& upper,
                     const std::vector<int>& cells, int refine, const std::vector<IntegerBox>& holes,
                     const std::optional<Image>& image, const Edges& edges, int order, bool lumped,
                     const ScalarField& viscosity, const ScalarField& mass,
                     const std::vector<CoefficientRegion>& coefficients,
                     const std::optional<std::array<double, 2>>& viscosity_cap, const std::string& viscosity_points,
                     const std::optional<std::string>& form, bool convection, const std::vector<ScalarField>& force,
                     const std::vector<NamedSide>& sides, const NamedSide& holes_side,
                     const std::vector<NamedRegion>& regions, const std::vector<NamedHole>& single_holes) {
  Problem problem;
  problem.equation = choice<EquationKind>(equation);
  problem.mesh = make_mesh(lower, upper, cells, refine, holes, image, edges);
  problem.order = order;
  problem.lumped = lumped;
  set_coefficient(viscosity, problem.viscosity, problem.varying_viscosity);
  set_coefficient(mass, problem.mass, problem.varying_mass);
  for (const auto& [inside, viscosity_there, mass_there, force_there] : coefficients) {
    Region& region = problem.regions.emplace_back(Region{inside, viscosity_there, mass_there});
    if (force_there) region.force = vector_field(*force_there);
  }
  problem.viscosity_cap = viscosity_cap;
  problem.viscosity_points = choice<ViscosityPlaces>(viscosity_points);
  if (form) problem.form = choice<ViscousForm>(*form);
  problem.convection = convection;
  problem.force = vector_field(force);
  for (std::size_t s = 0; s < sides.size(); ++s) problem.boundary.sides.at(s) = side_of(sides[s]);
  problem.boundary.holes = side_of(holes_side);
  for (const auto& [side, where, condition] : regions) {
    problem.boundary.regions.push_back({side, where, side_of(condition)});
  }
  for (const auto& [hole, condition] : single_holes) {
    problem.boundary.single_holes.push_back({hole, side_of(condition)});
  }
  validate(problem);
  return problem;
}

/// The components that a field of the problem has: one for each direction, with Poisson's equation one.
std::vector<ScalarField> components(const Problem& problem, const VectorField& field) {
  return entries(field, problem.equation == EquationKind::poisson ? 1 : problem.mesh.dim);
}

NamedSide named(const Problem& problem, const Side& side) {
  return {std::string(name_of(side.kind, EquationKind::stokes)), components(problem, side.data)};
}

/// {side: (kind, data)}, as make_problem takes them.
nb::dict conditions_of(const Problem& problem) {
  nb::dict conditions;
  const auto add = [&](std::string_view name, const Side& side) {
    conditions[std::string(name).c_str()] = named(problem, side);
  };
  for (int s = 0; s < 2 * problem.mesh.dim; ++s) add(side_names[s], problem.boundary.sides[s]);
  add("holes", problem.boundary.holes);
  return conditions;
}

/// [(side, where, (kind, data))] and [(index, (kind, data))], as make_problem takes them.
std::vector<NamedRegion> regions_of(const Problem& problem) {
  std::vector<NamedRegion> regions;
  for (const auto& [side, where, condition] : problem.boundary.regions) {
    regions.emplace_back(side, where, named(problem, condition));
  }
  return regions;
}
std::vector<NamedHole> single_holes_of(const Problem& problem) {
  std::vector<NamedHole> holes;
  for (const auto& [hole, condition] : problem.boundary.single_holes) {
    holes.emplace_back(hole, named(problem, condition));
  }
  return holes;
}

/// Of a Mesh in Python: lower, upper, cells, refine, holes, image, edges.
using MeshParts = std::tuple<std::vector<double>, std::vector<double>, std::vector<int>, int, std::vector<IntegerBox>,
                             std::optional<Image>, Edges>;
ArrayPoints array_points(const MeshParts& mesh, int points, int side) {
  return {std::apply(make_mesh, mesh), points, side};
}

using Values = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
std::vector<ScalarField> array_field(const MeshParts& mesh, int points, int side, const Values& values,
                                     const std::string& label) {
  const ArrayPoints at = array_points(mesh, points, side);
  return entries(field_of(at, {values.data(), values.data() + values.size()}, label), at.mesh.dim);
}

/// Of an array in the memory of a GPU that begins at an address, and which `owner` keeps.
std::vector<ScalarField> device_array_field(const MeshParts& mesh, int points, int side, std::uintptr_t address,
                                            const nb::object& owner, const std::string& label) {
  const ArrayPoints at = array_points(mesh, points, side);
  const std::shared_ptr<const nb::object> kept(new nb::object(owner), [](const nb::object* object) {
    if (!nb::is_alive()) return;
    const nb::gil_scoped_acquire gil;
    delete object;
  });
  const DeviceArray array{reinterpret_cast<const double*>(address), array_size(at, at.mesh.dim), kept};
  return entries(field_of(at, array, label), at.mesh.dim);
}

/// From an array [z, y, x], in 2D [y, x]: of numbers for cells, or of m times as many along each axis: at points.
ScalarField coefficient_field(const MeshParts& parts, const Values& values, const std::string& label) {
  const Mesh mesh = std::apply(make_mesh, parts);
  if (static_cast<int>(values.ndim()) != mesh.dim) {
    throw InputError(
        fmt::format("{}: the array has {} indices, and the mesh {} dimensions", label, values.ndim(), mesh.dim));
  }
  std::array<std::int64_t, 3> extent{1, 1, 1};
  for (int a = 0; a < mesh.dim; ++a) extent[a] = static_cast<std::int64_t>(values.shape(mesh.dim - 1 - a));
  std::vector<double> numbers(values.data(), values.data() + values.size());
  const std::int64_t m = extent[0] / (std::int64_t{mesh.cells[0]} << mesh.refine);
  bool at_points = m > 1;
  for (int a = 0; a < mesh.dim; ++a) {
    at_points = at_points && extent[a] == m * (std::int64_t{mesh.cells[a]} << mesh.refine);
  }
  if (!at_points) return cellwise(mesh, extent, std::move(numbers), label);
  return scalar_field_of_file({mesh, static_cast<int>(m)}, numbers, label);
}

nb::list holes_of(const Mesh& mesh) {
  nb::list result;
  for (const IndexBox& hole : mesh.holes) {
    result.append(nb::make_tuple(entries(hole.lower, mesh.dim), entries(hole.upper, mesh.dim)));
  }
  return result;
}

// Options ------------------------------------------------------------------------------------------------------------

/// What the command line has beside the case file.
constexpr Key<SolverOptions> command_line_keys[] = {
    {{"device", "\"auto\", \"cpu\" or \"cuda\"", "\"auto\"", "where to solve"},
     [](const Value& v, SolverOptions& options) { options.device = v.choice<DeviceChoice>(); }},
    {{"precision", "\"mixed\" or \"double\"", "\"mixed\"", "of the multigrid cycle"},
     [](const Value& v, SolverOptions& options) { options.precision = v.choice<Precision>(); }},
    {{"threads", "an integer >= 0", "0", "CPU threads; 0: all cores"},
     [](const Value& v, SolverOptions& options) { options.threads = v.integer(); }},
    {{"transport", "\"auto\", \"nccl\" or \"staged\"", "\"auto\"", "of messages between ranks with GPUs"},
     [](const Value& v, SolverOptions& options) { options.transport = v.choice<TransportChoice>(); }},
};

toml::table table_of(const nb::dict& options) {
  toml::table table;
  for (const auto& [key, value] : options) {
    const auto name = nb::cast<std::string>(key);
    if (nb::isinstance<nb::bool_>(value)) {
      table.insert(name, nb::cast<bool>(value));
    } else if (PyIndex_Check(value.ptr()) != 0) {  // numpy's integers too
      table.insert(name, nb::cast<std::int64_t>(nb::int_(value)));
    } else if (nb::isinstance<nb::str>(value)) {
      table.insert(name, nb::cast<std::string>(value));
    } else if (nb::isinstance<nb::list>(value)) {
      toml::array entries;
      for (const nb::handle entry : nb::cast<nb::list>(value)) {
        if (nb::isinstance<nb::str>(entry)) {
          entries.push_back(nb::cast<std::string>(entry));
        } else {
          entries.push_back(nb::cast<double>(entry));
        }
      }
      table.insert(name, std::move(entries));
    } else if (PyNumber_Check(value.ptr()) != 0) {
      table.insert(name, nb::cast<double>(nb::float_(value)));
    } else {
      throw InputError(fmt::format("options: {} is neither a number nor a text: {}", name, nb::repr(value).c_str()));
    }
  }
  return table;
}

}  // namespace

VectorField vector_field(const std::vector<ScalarField>& components) {
  VectorField field;
  for (std::size_t c = 0; c < components.size(); ++c) field.at(c) = components[c];
  return field;
}

TimeOptions time_options_of(March base, const nb::dict& options, const Problem& problem) {
  const toml::table table = table_of(options);
  Document document{"options"};
  document.dim = problem.mesh.dim;
  Value(table, "time", "a table", document).table<March>(time_option_keys(), base);
  TimeOptions& time = base.options;
  if (time.step == 0.0 && time.cfl == 0.0) time.cfl = default_cfl(time.scheme, problem.order);
  return time;
}

PermeabilityOptions permeability_options_of(const nb::dict& options, int dim) {
  const toml::table table = table_of(options);
  Document document{"options"};
  document.dim = dim;
  return read_permeability(Value(table, "permeability", "a table", document));
}

SolverOptions options_of(SolverOptions base, const nb::dict& options, const Ranks* ranks) {
  const toml::table table = table_of(options);
  const auto in_case = solver_option_keys();
  std::vector<Key<SolverOptions>> keys(in_case.begin(), in_case.end());
  keys.insert(keys.end(), std::begin(command_line_keys), std::end(command_line_keys));
  Document document{"options"};
  Value(table, "solver", "a table", document).table<SolverOptions>(keys, base);
  if (ranks != nullptr) base.communicator = ranks->communicator;
  return base;
}

void bind_problem(nb::module_& m) {
  nb::class_<ScalarField>(m, "Field")
      .def_prop_ro("label", &ScalarField::label)
      .def("labelled",
           [](ScalarField field, std::string label) {
             field.set_label(std::move(label));
             return field;
           })
      .def("at", &ScalarField::at, nb::arg("parameters"))
      .def_prop_ro("parameters", &ScalarField::parameters)
      .def_prop_ro("is_zero", &ScalarField::is_zero);
  m.def("constant", &constant, nb::arg("value"), nb::arg("label"));
  m.def("expression", &ScalarField::expression, nb::arg("text"), nb::arg("dim"), nb::arg("label"),
        nb::arg("parameters") = Parameters());
  m.def("function", &function_fields, nb::arg("function"), nb::arg("dim"), nb::arg("components"), nb::arg("labels"));

  nb::class_<Image>(m, "Image")
      .def_prop_ro("extent", [](const Image& i) { return entries(i.voxels->extent(), i.voxels->dim()); })
      .def_prop_ro("voxel", [](const Image& i) { return entries(i.voxels->voxel(), i.voxels->dim()); })
      .def_prop_ro("porosity", [](const Image& i) { return i.voxels->porosity(); })
      .def_prop_ro("pores", [](const Image& i) { return i.voxels->pores(); })
      .def(
          "__eq__",
          [](const Image& one, const Image& other) {
            return one.voxels == other.voxels || *one.voxels == *other.voxels;
          },
          nb::is_operator())
      .def("__hash__", [](const Image& i) { return i.voxels->solids(); });
  m.def("make_image", &make_image, nb::arg("solid"), nb::arg("voxel"));

  nb::class_<Problem>(m, "Problem")
      .def_prop_ro("equation", [](const Problem& p) { return std::string(name_of(p.equation)); })
      .def_prop_ro("dim", [](const Problem& p) { return p.mesh.dim; })
      .def_prop_ro("lower", [](const Problem& p) { return entries(p.mesh.lower, p.mesh.dim); })
      .def_prop_ro("upper", [](const Problem& p) { return entries(p.mesh.upper, p.mesh.dim); })
      .def_prop_ro("edges",
                   [](const Problem& p) -> Edges {
                     if (!p.mesh.edges) return {};
                     std::vector<std::vector<double>> edges;
                     for (int a = 0; a < p.mesh.dim; ++a) edges.push_back(entries((*p.mesh.edges)[a], p.mesh.dim));
                     return edges;
                   })
      .def_prop_ro("cells", [](const Problem& p) { return entries(p.mesh.cells, p.mesh.dim); })
      .def_prop_ro("refine", [](const Problem& p) { return p.mesh.refine; })
      .def_prop_ro("holes", [](const Problem& p) { return holes_of(p.mesh); })
      .def_prop_ro(
          "image",
          [](const Problem& p) { return p.mesh.image == nullptr ? std::nullopt : std::optional(Image{p.mesh.image}); })
      .def_ro("order", &Problem::order)
      .def_ro("lumped", &Problem::lumped)
      .def_ro("viscosity", &Problem::viscosity)
      .def_ro("mass", &Problem::mass)
      .def_ro("varying_viscosity", &Problem::varying_viscosity)
      .def_ro("varying_mass", &Problem::varying_mass)
      .def_prop_ro("coefficients",
                   [](const Problem& p) {
                     std::vector<CoefficientRegion> regions;
                     for (const Region& region : p.regions) {
                       std::optional<std::vector<ScalarField>> force;
                       if (region.force) force = components(p, *region.force);
                       regions.emplace_back(region.inside, region.viscosity, region.mass, std::move(force));
                     }
                     return regions;
                   })
      .def_ro("viscosity_cap", &Problem::viscosity_cap)
      .def_prop_ro("viscosity_points", [](const Problem& p) { return std::string(name_of(p.viscosity_points)); })
      .def_prop_ro("form_given",
                   [](const Problem& p) -> std::optional<std::string> {
                     if (!p.form) return {};
                     return std::string(name_of(*p.form));
                   })
      .def_prop_ro("form", [](const Problem& p) { return std::string(name_of(form_of(p))); })
      .def_prop_ro("by_cell", &has_coefficients_by_cell)
      .def_ro("convection", &Problem::convection)
      .def_prop_ro("parameters", &parameters_of)
      .def_prop_ro("force", [](const Problem& p) { return components(p, p.force); })
      .def_prop_ro("conditions", &conditions_of)
      .def_prop_ro("regions", &regions_of)
      .def_prop_ro("single_holes", &single_holes_of)
      .def_prop_ro("sides", [](const Problem& p) {
        nb::dict sides;
        for (int s = 0; s < 2 * p.mesh.dim; ++s) {
          sides[std::string(side_names[s]).c_str()] = std::string(name_of(p.boundary.sides[s].kind, p.equation));
        }
        if (hole_count(p.mesh) > 0) sides["holes"] = std::string(name_of(p.boundary.holes.kind, p.equation));
        for (std::size_t i = 0; i < p.boundary.regions.size(); ++i) {
          sides[fmt::format("side[{}]", i).c_str()] =
              std::string(name_of(p.boundary.regions[i].condition.kind, p.equation));
        }
        for (std::size_t i = 0; i < p.boundary.single_holes.size(); ++i) {
          sides[fmt::format("hole[{}]", i).c_str()] =
              std::string(name_of(p.boundary.single_holes[i].condition.kind, p.equation));
        }
        return sides;
      });
  m.def(
      "validate_mesh",
      [](const std::vector<double>& lower, const std::vector<double>& upper, const std::vector<int>& cells, int refine,
         const std::vector<IntegerBox>& holes, const std::optional<Image>& image,
         const Edges& edges) { validate(make_mesh(lower, upper, cells, refine, holes, image, edges)); },
      nb::arg("lower"), nb::arg("upper"), nb::arg("cells"), nb::arg("refine"), nb::arg("holes"),
      nb::arg("image").none(), nb::arg("edges").none());
  m.def(
      "array_points",
      [](const MeshParts& mesh, int points, int side) {
        return rows(points_of(array_points(mesh, points, side)), static_cast<int>(std::get<2>(mesh).size()));
      },
      nb::arg("mesh"), nb::arg("points"), nb::arg("side"));
  m.def("device_array_field", &device_array_field);
  m.def("array_field", &array_field, nb::arg("mesh"), nb::arg("points"), nb::arg("side"), nb::arg("values"),
        nb::arg("label"));
  m.def("coefficient_field", &coefficient_field, nb::arg("mesh"), nb::arg("values"), nb::arg("label"));
  m.def("make_problem", &make_problem, nb::kw_only(), nb::arg("equation"), nb::arg("lower"), nb::arg("upper"),
        nb::arg("cells"), nb::arg("refine"), nb::arg("holes"), nb::arg("image").none(), nb::arg("edges").none(),
        nb::arg("order"), nb::arg("lumped"), nb::arg("viscosity"), nb::arg("mass"), nb::arg("coefficients"),
        nb::arg("viscosity_cap").none(), nb::arg("viscosity_points"), nb::arg("form").none(), nb::arg("convection"),
        nb::arg("force"), nb::arg("sides"), nb::arg("holes_side"), nb::arg("regions"), nb::arg("single_holes"));
  m.def(
      "estimate",
      [](const Problem& problem, const nb::dict& options, const Ranks* ranks) {
        const SolverOptions solver = options_of({}, options, ranks);
        const Estimate need = released([&] { return estimate(problem, solver); });
        nb::dict result;
        result["dofs"] = need.dofs;
        result["bytes_needed"] = need.bytes_needed;
        result["bytes_available"] = need.bytes_available;
        result["largest_refine"] = need.largest_refine;
        return result;
      },
      nb::arg("problem"), nb::arg("options"), nb::arg("ranks").none());

  nb::class_<Case>(m, "Case")
      .def_ro("name", &Case::name)
      .def_ro("problem", &Case::problem)
      .def_prop_ro("probes",
                   [](const Case& c) {
                     std::vector<std::vector<double>> points;
                     for (const Point& probe : c.probes) points.push_back(entries(probe, c.problem.mesh.dim));
                     return points;
                   })
      .def_prop_ro("exact_velocity",
                   [](const Case& c) -> std::optional<std::vector<ScalarField>> {
                     if (!c.exact.velocity) return {};
                     return std::vector<ScalarField>(c.exact.velocity->begin(),
                                                     c.exact.velocity->begin() + c.problem.mesh.dim);
                   })
      .def_prop_ro("exact_pressure", [](const Case& c) { return c.exact.pressure; })
      .def_prop_ro("exact_value", [](const Case& c) { return c.exact.value; })
      .def_prop_ro("is_permeability", [](const Case& c) { return c.permeability.has_value(); })
      .def_prop_ro("end", [](const Case& c) { return c.time ? std::optional(c.time->end) : std::nullopt; });
  m.def(
      "read_case", [](const std::filesystem::path& file) { return read_case(file); }, nb::arg("file"));
  m.def("make_case", &case_of, nb::arg("problem"));
}

}  // namespace solenoid::python
