#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "build_info.hpp"
#include "case/keys.hpp"
#include "engine/engine.hpp"
#include "program/commands.hpp"
#include "solenoid/version.hpp"

namespace solenoid::program {
namespace {

void row(const char* name, const std::string& value) { fmt::print("{:<12} {}\n", name, value); }

std::string orders(int dim, EquationKind equation) {
  return fmt::format("{}", fmt::join(available_orders(dim, equation), ", "));
}

int print_build() {
  row("version", version);
  row("licence", "Apache-2.0");
  row("commit", build_info::commit);
  row("compiler", build_info::compiler);
  row("build type", build_info::build_type);
  row("library", build_info::library);
  row("orders 2D", orders(2, EquationKind::stokes));
  row("orders 3D", orders(3, EquationKind::stokes));
  row("Poisson 2D", orders(2, EquationKind::poisson));
  row("Poisson 3D", orders(3, EquationKind::poisson));
  row("CPU targets", build_info::cpu_targets);
  row("CUDA build", *build_info::cuda_build == '\0' ? "none" : build_info::cuda_build);
  row("devices", make_cpu_engine()->description());
  const std::string reason = cuda_unavailable();
  row("", reason.empty() ? make_cuda_engine()->description() : "no cuda: " + reason);
  const char* title = "built with";
  for (const auto& [name, found, licence] : build_info::dependencies) {
    row(title, fmt::format("{} {} ({})", name, found, licence));
    title = "";
  }
  return solved;
}

/// Tables and keys of the case file as JSON: the reference in docs/case-file.md is made of it.
int print_keys() {
  using Json = nlohmann::ordered_json;
  Json sections = Json::array();
  for (const Section& section : case_sections()) {
    Json keys = Json::array();
    for (const KeyInfo& key : section.keys) {
      keys.push_back({{"name", key.name},
                      {"type", std::regex_replace(std::string(key.type), std::regex("\\{dim\\}"), "dim")},
                      {"default", key.fallback},
                      {"meaning", key.meaning}});
    }
    sections.push_back({{"name", section.name}, {"meaning", section.meaning}, {"keys", keys}});
  }
  fmt::print("{}\n", sections.dump(2));
  return solved;
}

}  // namespace

Command add_info(CLI::App& app) {
  const auto keys = std::make_shared<bool>(false);
  app.add_flag("--keys", *keys, "instead, all keys of case files as JSON");
  return [keys] { return *keys ? print_keys() : print_build(); };
}

}  // namespace solenoid::program
