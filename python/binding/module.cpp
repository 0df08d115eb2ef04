/// \file
/// The extension module solenoid._core.

#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "binding.hpp"
#include "build_info.hpp"
#include "engine/engine.hpp"
#include "solenoid/error.hpp"
#include "solenoid/version.hpp"

namespace solenoid::python {
namespace {

nb::dict info() {
  nb::dict result;
  result["version"] = version;
  result["commit"] = build_info::commit;
  result["compiler"] = build_info::compiler;
  result["build_type"] = build_info::build_type;
  nb::dict orders;
  orders["2D"] = available_orders(2);
  orders["3D"] = available_orders(3);
  result["orders"] = orders;
  nb::dict poisson;
  poisson["2D"] = available_orders(2, EquationKind::poisson);
  poisson["3D"] = available_orders(3, EquationKind::poisson);
  result["poisson_orders"] = poisson;
  result["cpu_targets"] = build_info::cpu_targets;
  result["cuda_build"] = build_info::cuda_build;
  const std::string reason = cuda_unavailable();
  nb::list devices;
  devices.append(make_cpu_engine()->description());
  if (reason.empty()) devices.append(make_cuda_engine()->description());
  result["devices"] = devices;
  result["no_cuda"] = reason;
  nb::list libraries;
  for (const auto& [name, found, licence] : build_info::dependencies) {
    libraries.append(fmt::format("{} {} ({})", name, found, licence));
  }
  libraries.append(
      fmt::format("nanobind {}.{}.{} (BSD-3-Clause)", NB_VERSION_MAJOR, NB_VERSION_MINOR, NB_VERSION_PATCH));
  result["built_with"] = libraries;
  return result;
}

NB_MODULE(_core, m) {
  m.doc() = "The compiled part of the package solenoid.";
  // Python cannot look through a field at the function it holds, nor from there at the globals of a script: at the end
  // of a program some objects are still there, which is nothing to warn of.
  nb::set_leak_warnings(false);
  m.attr("version") = version;
  nb::exception<InputError>(m, "InputError", PyExc_ValueError);
  nb::exception<ResourceError>(m, "ResourceError", PyExc_RuntimeError);
  m.def("info", &info);
  bind_ranks(m);
  bind_problem(m);
  bind_solution(m);
  bind_linear_system(m);
  bind_flow(m);
  bind_permeability(m);
}

}  // namespace
}  // namespace solenoid::python
