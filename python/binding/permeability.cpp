/// \file
/// Permeabilities of images.

#include "solenoid/permeability.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <string>
#include <vector>

#include "binding.hpp"

namespace solenoid::python {
namespace {

/// With the dimension, which its tensor has.
struct Discrete {
  DiscretePermeability value;
  int dim;
};

std::optional<Discrete> discrete(const std::optional<DiscretePermeability>& value, int dim) {
  return value ? std::optional(Discrete{*value, dim}) : std::nullopt;
}

/// (dim, dim), NaN where nothing is known.
NumpyArray<double> tensor(const Discrete& of) {
  const auto dim = static_cast<std::size_t>(of.dim);
  std::vector<double> values;
  for (std::size_t i = 0; i < dim; ++i) {
    for (std::size_t j = 0; j < dim; ++j) {
      values.push_back(of.value.tensor.at(i).at(j).value_or(std::numeric_limits<double>::quiet_NaN()));
    }
  }
  return numpy_array(std::move(values), {dim, dim});
}

std::string direction_of(int direction) { return {"xyz"[direction]}; }

/// `visit(direction, flow)` and `progress` are called unless they are None.
Permeability compute(const Image& image, int order, bool lumped, int refine, const nb::dict& options,
                     const nb::dict& solver_options, const nb::object& visit, const nb::object& progress) {
  PermeabilityOptions asked = permeability_options_of(options, image.voxels->dim());
  asked.order = order;
  asked.lumped = lumped;
  asked.refine = refine;
  if (!visit.is_none()) {
    asked.visit = [&](int direction, const Solution& flow) {
      const nb::gil_scoped_acquire gil;
      visit(direction_of(direction), without_report(flow));
    };
  }
  SolverOptions solver = options_of({}, solver_options, nullptr);
  if (!progress.is_none()) {
    solver.progress = [&](const Progress& now) {
      const nb::gil_scoped_acquire gil;
      progress(now.stage, now.fraction, now.text);
    };
  }
  return released([&] { return permeability(image.voxels, asked, solver); });
}

}  // namespace

void bind_permeability(nb::module_& m) {
  nb::class_<PermeabilityFlow>(m, "PermeabilityFlow")
      .def_prop_ro("direction", [](const PermeabilityFlow& f) { return direction_of(f.direction); })
      .def_ro("converged", &PermeabilityFlow::converged)
      .def_ro("reason", &PermeabilityFlow::reason)
      .def_ro("iterations", &PermeabilityFlow::iterations)
      .def_ro("residual", &PermeabilityFlow::residual)
      .def_ro("flux_deviation", &PermeabilityFlow::flux_deviation)
      .def_ro("time", &PermeabilityFlow::time_solve);
  nb::class_<PoresAlong>(m, "PoresAlong")
      .def_prop_ro("direction", [](const PoresAlong& p) { return direction_of(p.direction); })
      .def_ro("percolates", &PoresAlong::percolates)
      .def_ro("components", &PoresAlong::components)
      .def_ro("porosity", &PoresAlong::porosity)
      .def_ro("throats", &PoresAlong::throats);
  nb::class_<Discrete>(m, "DiscretePermeability")
      .def_prop_ro("order", [](const Discrete& d) { return d.value.order; })
      .def_prop_ro("lumped", [](const Discrete& d) { return d.value.lumped; })
      .def_prop_ro("refine", [](const Discrete& d) { return d.value.refine; })
      .def_prop_ro("dofs", [](const Discrete& d) { return d.value.dofs; })
      .def_prop_ro("tensor", &tensor, nb::rv_policy::move)
      .def_prop_ro("asymmetry", [](const Discrete& d) { return d.value.asymmetry; })
      .def_prop_ro("converged", [](const Discrete& d) { return d.value.converged(); })
      .def_prop_ro("flows", [](const Discrete& d) { return d.value.flows; })
      .def_prop_ro("time_setup", [](const Discrete& d) { return d.value.time_setup; })
      .def_prop_ro("memory_bytes", [](const Discrete& d) { return d.value.memory_bytes; });
  nb::class_<Permeability>(m, "Permeability")
      .def_ro("porosity", &Permeability::porosity)
      .def_ro("pores", &Permeability::pores)
      .def_prop_ro("value",
                   [](const Permeability& p) {
                     return Discrete{p.value, p.dim};
                   })
      .def_prop_ro("mac", [](const Permeability& p) { return discrete(p.mac, p.dim); })
      .def_prop_ro("finer", [](const Permeability& p) { return discrete(p.finer, p.dim); })
      .def_ro("error", &Permeability::error)
      .def_prop_ro(
          "principal_values",
          [](const Permeability& p) { return p.principal ? std::optional(p.principal->values) : std::nullopt; })
      .def_prop_ro(
          "principal_axes",
          [](const Permeability& p) -> std::optional<NumpyArray<double>> {
            if (!p.principal) return {};
            return rows(p.principal->axes, static_cast<std::size_t>(p.dim));
          },
          nb::rv_policy::move)
      .def_ro("device", &Permeability::device)
      .def_prop_ro("converged", &Permeability::converged);
  m.def("permeability", &compute, nb::arg("image"), nb::arg("order"), nb::arg("lumped"), nb::arg("refine"),
        nb::arg("options"), nb::arg("solver"), nb::arg("visit").none(), nb::arg("progress").none());
}

}  // namespace solenoid::python
