/// \file
/// Solving, and what is asked of solutions.

#include <nanobind/stl/array.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <filesystem>

#include "binding.hpp"
#include "build_info.hpp"
#include "mesh/grid.hpp"
#include "output/result_json.hpp"
#include "problem/names.hpp"
#include "solenoid/arrays.hpp"
#include "solenoid/error.hpp"
#include "solenoid/output.hpp"
#include "solution/joined.hpp"

namespace solenoid::python {
namespace {

/// `progress` is called between stages and iterations, unless it is None; `start` is an initial guess, or nullptr.
Solved solve_case(const Case& what, const nb::dict& options, const nb::object& progress, const Solved* start,
                  const Ranks* ranks) {
  Case run = what;
  run.solver = options_of(run.solver, options, ranks);
  if (ranks != nullptr) released([&] { check_same(*ranks->communicator, run, build_info::commit); });
  Case done = run;
  std::exception_ptr raised;
  if (!progress.is_none()) {
    run.solver.progress = [&](const Progress& now) {
      const nb::gil_scoped_acquire gil;
      try {
        progress(now.stage, now.fraction, now.text);
      } catch (const nb::python_error&) {
        if (ranks == nullptr) throw;
        raised = std::current_exception();  // others would wait for this rank: all end together
      }
    };
  }
  auto [solution, report] = released(
      [&] {
        Result result =
            start == nullptr ? solve(run.problem, run.solver) : solve(run.problem, start->solution, run.solver);
        if (ranks != nullptr && ranks->communicator->any(raised != nullptr)) throw Interrupted("interrupted");
        return result;
      },
      raised);
  return {std::move(done), std::move(solution), std::move(report)};
}

/// All cells, on the first rank.
std::optional<Solved> gathered(const Solved& s) {
  std::optional<Solution> whole = released([&] { return s.solution.gathered(); });
  if (!whole) return {};
  return Solved{s.what, std::move(*whole), s.report};
}

std::string result_text(const Solved& s) {
  const Measures measures = released([&] { return measure(s.what, s.solution); });
  return result_json(s.what, *s.report, &measures);
}

std::size_t dim_of(const Solved& s) { return static_cast<std::size_t>(s.solution.grid().dim()); }

/// \throws InputError with the names that there are.
FlowField field_named(const std::string& name) {
  std::string known;
  for (const auto& [valid, field] : Names<FlowField>::all) {
    if (valid == name) return field;
    known += (known.empty() ? "" : ", ") + std::string(valid);
  }
  throw InputError("field: expected one of " + known + ", got '" + name + "'");
}

}  // namespace

void bind_solution(nb::module_& m) {
  m.def("solve", &solve_case, nb::arg("case"), nb::arg("options"), nb::arg("progress").none(), nb::arg("start").none(),
        nb::arg("ranks").none());
  m.def("load", [](const std::filesystem::path& file) {
    return without_report(released([&] { return load_solution(file); }));
  });
  m.def(
      "interpolate",
      [](const Problem& problem, const std::vector<ScalarField>& velocity, const ScalarField& scalar) {
        return without_report(released([&] {
          return problem.equation == EquationKind::poisson ? interpolate(problem, scalar)
                                                           : interpolate(problem, vector_field(velocity), scalar);
        }));
      },
      nb::arg("problem"), nb::arg("velocity"), nb::arg("scalar"));

  nb::class_<Solved> solved(m, "Solution");
  bind_places(solved, [](const Solved& s) -> const Solution& { return s.solution; });
  solved.def_prop_ro("problem", [](const Solved& s) { return s.solution.problem(); })
      .def_prop_ro("has_report", [](const Solved& s) { return s.report.has_value(); })
      .def_prop_ro("converged", [](const Solved& s) { return s.report->converged; })
      .def_prop_ro("reason", [](const Solved& s) { return s.report->reason; })
      .def_prop_ro("iterations", [](const Solved& s) { return s.report->iterations; })
      .def_prop_ro("residual_history", [](const Solved& s) { return s.report->residual_history; })
      .def_prop_ro("dofs", [](const Solved& s) { return s.report->dofs; })
      .def_prop_ro("device", [](const Solved& s) { return s.report->device; })
      .def_prop_ro("time_solve", [](const Solved& s) { return s.report->time_solve; })
      .def_prop_ro("cells", [](const Solved& s) { return s.solution.grid().layout().owned_cells().size(); })
      .def_prop_ro("extent",
                   [](const Solved& s) {
                     const auto& extent = s.solution.grid().extent();
                     return std::vector<int>(extent.begin(), extent.begin() + s.solution.grid().dim());
                   })
      .def("require_whole", [](const Solved& s, const std::string& what) { require_whole(s.solution.grid(), what); })
      .def_prop_ro("is_part", [](const Solved& s) { return s.solution.grid().partition() != nullptr; })
      .def("gathered", &gathered)
      .def("report_json", [](const Solved& s) { return result_json(s.what, *s.report, nullptr); })
      .def("result_json", &result_text)
      .def("velocity_field",
           [](const Solved& s) {
             const VectorField field = s.solution.velocity_field();
             return std::vector<ScalarField>(field.begin(), field.begin() + s.solution.grid().dim());
           })
      .def("value_field", [](const Solved& s) { return s.solution.value_field(); })
      .def("unknowns", [](const Solved& s) { return scalars(released([&] { return s.solution.unknowns(); })); })
      .def("save", [](const Solved& s, const std::filesystem::path& file) { released([&] { s.solution.save(file); }); })
      .def("value",
           [](const Solved& s, const Points& points) {
             return scalars(released([&] { return s.solution.value(points_of(points)); }));
           })
      .def("gradient",
           [](const Solved& s, const Points& points) {
             return gradients(released([&] { return s.solution.velocity_gradient(points_of(points)); }), dim_of(s));
           })
      .def("flow_field",
           [](const Solved& s, const std::string& name, const Points& points) {
             return rows(released([&] { return s.solution.flow_field(field_named(name), points_of(points)); }), 6);
           })
      .def("velocity_at", [](const Solved& s,
                             int points) { return scalars(released([&] { return velocity_at(s.solution, points); })); })
      .def("pressure_at", [](const Solved& s,
                             int points) { return scalars(released([&] { return pressure_at(s.solution, points); })); })
      .def("gradient_at", [](const Solved& s,
                             int points) { return scalars(released([&] { return gradient_at(s.solution, points); })); })
      .def("field_at",
           [](const Solved& s, const std::string& name, int points) {
             return scalars(released([&] { return field_at(s.solution, field_named(name), points); }));
           })
      .def("normal_stress_at",
           [](const Solved& s, int side, int points) {
             return scalars(released([&] { return normal_stress_at(s.solution, side, points); }));
           })
      .def("face_fluxes",
           [](const Solved& s) {
             auto fluxes = released([&] { return face_fluxes(s.solution); });
             nb::list result;
             for (std::size_t a = 0; a < dim_of(s); ++a) result.append(scalars(std::move(fluxes[a])));
             return result;
           })
      .def("image_fields",
           [](const Solved& s) {
             ImageFields fields = released([&] { return image_fields(s.solution); });
             const auto velocity = fields.velocity.size();
             const auto pressure = fields.pressure.size();
             return nb::make_tuple(nb::cast(numpy_array(std::move(fields.velocity), {velocity})),
                                   nb::cast(numpy_array(std::move(fields.pressure), {pressure})));
           })
      .def("mean_velocity",
           [](const Solved& s) { return vector_of(released([&] { return s.solution.mean_velocity(); }), dim_of(s)); })
      .def("permeability",
           [](const Solved& s) { return vector_of(released([&] { return s.solution.permeability(); }), dim_of(s)); })
      .def("kinetic_energy", [](const Solved& s) { return released([&] { return s.solution.kinetic_energy(); }); })
      .def("dissipation", [](const Solved& s) { return released([&] { return s.solution.dissipation(); }); })
      .def("enstrophy", [](const Solved& s) { return released([&] { return s.solution.enstrophy(); }); })
      .def("divergence_max", [](const Solved& s) { return released([&] { return s.solution.divergence_max(); }); })
      .def("max_speed", [](const Solved& s) { return released([&] { return s.solution.max_speed(); }); })
      .def("velocity_error",
           [](const Solved& s, const std::vector<ScalarField>& exact) {
             return released([&] { return s.solution.velocity_error(vector_field(exact)); });
           })
      .def("pressure_error",
           [](const Solved& s, const ScalarField& exact) {
             return released([&] { return s.solution.pressure_error(exact); });
           })
      .def("value_error",
           [](const Solved& s, const ScalarField& exact) {
             return released([&] { return s.solution.value_error(exact); });
           })
      .def("write_vtu",
           [](const Solved& s, const std::filesystem::path& file, int subdivide,
              const std::vector<std::string>& fields) {
             std::vector<FlowField> shown;
             for (const std::string& name : fields) shown.push_back(field_named(name));
             released([&] { write_vtu(s.solution, file, subdivide, shown); });
           })
      .def("write_vti", [](const Solved& s, const std::filesystem::path& file,
                           double most_bytes) { released([&] { write_vti(s.solution, file, most_bytes); }); })
      .def("write_csv",
           [](const Solved& s, const Points& points, const std::filesystem::path& file) {
             released([&] { write_csv(s.solution, points_of(points), file); });
           })
      .def(
          "write_picture",
          [](const Solved& s, const std::filesystem::path& file, const std::optional<std::string>& field,
             const std::optional<Scale>& scale) {
            const auto shown = field ? std::optional(field_named(*field)) : std::nullopt;
            released([&] { write_picture(s.solution, file, shown, scale); });
          },
          nb::arg("file"), nb::arg("field").none(), nb::arg("scale").none());
}

}  // namespace solenoid::python
