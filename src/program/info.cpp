#include <fmt/format.h>

#include "build_info.hpp"
#include "engine/engine.hpp"
#include "program/commands.hpp"
#include "solenoid/version.hpp"

namespace solenoid::program {
namespace {

int print_info() {
  const auto row = [](const char* name, const std::string& value) { fmt::print("{:<12} {}\n", name, value); };
  row("version", version);
  row("commit", build_info::commit);
  row("compiler", build_info::compiler);
  row("build type", build_info::build_type);
  row("orders 2D", fmt::format("{}", fmt::join(available_orders(2), ", ")));
  row("orders 3D", fmt::format("{}", fmt::join(available_orders(3), ", ")));
  row("CPU targets", build_info::cpu_targets);
  row("CUDA build", *build_info::cuda_build == '\0' ? "none" : build_info::cuda_build);
  row("devices", make_cpu_engine()->description());
  const std::string reason = cuda_unavailable();
  row("", reason.empty() ? make_cuda_engine()->description() : "no cuda: " + reason);
  return solved;
}

}  // namespace

Command add_info(CLI::App&) { return print_info; }

}  // namespace solenoid::program
