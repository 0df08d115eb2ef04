#include "case/permeability_keys.hpp"

#include "permeability/names.hpp"

namespace solenoid {
namespace {

constexpr Key<PermeabilityOptions> permeability_keys[] = {
    {{"directions", "a list of \"x\", \"y\" and \"z\"", "[\"x\", \"y\", \"z\"]", "directions of flows"},
     [](const Value& v, PermeabilityOptions& options) {
       options.directions = {};
       for (const Value& entry : v.list()) {
         const std::size_t direction = entry.place_among({"x", "y", "z"});
         if (static_cast<int>(direction) >= v.dim()) {
           entry.fail(fmt::format("the image has {} dimensions, so there is no {}", v.dim(), entry.text()));
         }
         options.directions.at(direction) = true;
       }
       v.require(!v.list().empty());
     }},
    {{"sides", "\"wall\" or \"periodic\"", "\"wall\"",
      "those that flow does not go through: no-slip, or the image repeats itself; `periodic` with a force: the full "
      "tensor"},
     [](const Value& v, PermeabilityOptions& options) { options.sides = v.choice<SidesAcross>(); }},
    {{"drive", "\"force\" or \"pressure\"", "\"force\"",
      "a force along the flow, periodic in its direction, or a pressure drop between open ends"},
     [](const Value& v, PermeabilityOptions& options) { options.drive = v.choice<Drive>(); }},
    {{"mac", "true or false", "true",
      "beside orders >= 1 the permeability by the marker-and-cell scheme, if the build has order 0"},
     [](const Value& v, PermeabilityOptions& options) { options.mac = v.boolean(); }},
    {{"error", "\"none\", \"order\" or \"refinement\"", "\"none\"",
      "an estimate of the error of the discretisation: solve again with the next order of this build, or refined once "
      "more"},
     [](const Value& v, PermeabilityOptions& options) { options.error = v.choice<ErrorCheck>(); }},
};

}  // namespace

PermeabilityOptions read_permeability(const Value& value) {
  PermeabilityOptions options;
  value.table<PermeabilityOptions>(permeability_keys, options);
  return options;
}

std::vector<KeyInfo> permeability_infos() { return infos(permeability_keys); }

std::vector<std::string> keys_beside_permeability() {
  return {"physics",        "boundary",
          "region",         "output.normal_stress",
          "side",           "hole",
          "time",           "average",
          "exact",          "probe",
          "output.forces",  "output.torques_about",
          "output.energy",  "output.permeability",
          "output.every",   "output.checkpoint",
          "output.history", "output.flux",
          "output.line",    "output.plane"};
}

}  // namespace solenoid
