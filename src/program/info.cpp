#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "build_info.hpp"
#include "case/keys.hpp"
#include "engine/engine.hpp"
#include "problem/orders.hpp"
#include "problem/support.hpp"
#include "program/commands.hpp"
#include "solenoid/version.hpp"

namespace solenoid::program {
namespace {

void row(std::string_view name, const std::string& value) { fmt::print("{:<12} {}\n", name, value); }

std::string orders(DeviceChoice device, int dim, EquationKind equation) {
  const std::vector<int> orders = orders_for(device, dim, equation);
  return orders.empty() ? "none" : fmt::format("{}", fmt::join(orders, ", "));
}

std::string orders(int dim, EquationKind equation) { return orders(DeviceChoice::cpu, dim, equation); }

template <class Visit>
void for_each_order_list(Visit visit) {
  for (const DeviceChoice device : {DeviceChoice::cpu, DeviceChoice::cuda}) {
    for (const EquationKind equation : {EquationKind::stokes, EquationKind::poisson}) {
      for (const int dim : {2, 3}) visit(device, equation, dim);
    }
  }
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

/// What print_build() says, for programs.
int print_build_json() {
  using Json = nlohmann::ordered_json;
  const std::string reason = cuda_unavailable();
  Json orders = Json::object();
  for (const EquationKind equation : {EquationKind::stokes, EquationKind::poisson}) {
    for (const int dim : {2, 3}) {
      orders[std::string(name_of(equation))][fmt::format("{}D", dim)] = orders_for(DeviceChoice::cpu, dim, equation);
    }
  }
  Json devices = Json::array({make_cpu_engine()->description()});
  if (reason.empty()) devices.push_back(make_cuda_engine()->description());
  Json dependencies = Json::array();
  for (const auto& [name, found, licence] : build_info::dependencies) {
    dependencies.push_back({{"name", name}, {"version", found}, {"licence", licence}});
  }
  const Json build = {{"version", version},
                      {"licence", "Apache-2.0"},
                      {"commit", build_info::commit},
                      {"compiler", build_info::compiler},
                      {"build_type", build_info::build_type},
                      {"library", build_info::library},
                      {"orders", orders},
                      {"cpu_targets", build_info::cpu_targets},
                      {"cuda_build", *build_info::cuda_build == '\0' ? Json() : Json(build_info::cuda_build)},
                      {"devices", devices},
                      {"no_cuda", reason.empty() ? Json() : Json(reason)},
                      {"dependencies", dependencies}};
  fmt::print("{}\n", build.dump(2));
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

/// What goes together, as JSON: docs/support.md is made of it.
int print_support_json() {
  using Json = nlohmann::ordered_json;
  Json axes = Json::array();
  for (const Axis& axis : support_axes()) {
    axes.push_back({{"name", axis.name}, {"meaning", axis.meaning}, {"values", axis.values}});
  }
  Json rules = Json::array();
  for (const Rule& rule : support_rules()) {
    Json with = nullptr;
    if (!rule.with_axis.empty()) with = {{"axis", rule.with_axis}, {"values", rule.with_values}};
    rules.push_back({{"axis", rule.axis}, {"values", rule.values}, {"with", with}, {"reason", rule.reason}});
  }
  Json orders = Json::array();
  for_each_order_list([&](DeviceChoice device, EquationKind equation, int dim) {
    orders.push_back({{"device", name_of(device)},
                      {"equation", name_of(equation)},
                      {"dimension", std::to_string(dim)},
                      {"orders", orders_for(device, dim, equation)}});
  });
  fmt::print("{}\n", Json({{"axes", axes}, {"refused", rules}, {"orders", orders}}).dump(2));
  return solved;
}

int print_support() {
  for (const Axis& axis : support_axes()) row(axis.name, fmt::format("{}", fmt::join(axis.values, ", ")));
  fmt::print("\nAll of these go with each other, but for\n");
  for (const Rule& rule : support_rules()) {
    const std::string with =
        rule.with_axis.empty() ? "" : fmt::format(" with {} {}", rule.with_axis, fmt::join(rule.with_values, ", "));
    fmt::print("  {} {}{}: {}\n", rule.axis, fmt::join(rule.values, ", "), with,
               fmt::format(fmt::runtime(rule.reason), fmt::join(rule.values, " or ")));
  }
  fmt::print("\nOrders of this build\n");
  for_each_order_list([](DeviceChoice device, EquationKind equation, int dim) {
    fmt::print("  {} {}D on {}: {}\n", name_of(equation), dim, name_of(device), orders(device, dim, equation));
  });
  return solved;
}

}  // namespace

Command add_info(const CommandOptions& line) {
  struct Choice {
    bool keys = false;
    bool support = false;
    bool json = false;
  };
  const auto choice = std::make_shared<Choice>();
  const Option keys = line.add_flag("--keys", choice->keys, "instead, all keys of case files as JSON");
  const Option support = line.add_flag("--support", choice->support, "instead, what goes together and what does not");
  support.excludes(keys);
  line.add_flag("--json", choice->json, "as JSON");
  return [choice] {
    if (choice->keys) return print_keys();
    if (choice->support) return choice->json ? print_support_json() : print_support();
    return choice->json ? print_build_json() : print_build();
  };
}

}  // namespace solenoid::program
