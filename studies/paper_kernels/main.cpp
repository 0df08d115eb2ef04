/// \file
/// The paper's kernels on their own:
///
///     paper_kernels check [K]                               every kernel (of one order) against the library
///     paper_kernels K MILLIONS double|single [FILE.json]    speed with so many million unknowns

#include <fmt/core.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "solenoid/error.hpp"
#include "studies/paper_kernels/paper_kernels.hpp"

namespace solenoid::paper {
namespace {

constexpr int skipped = 77;

const char* name_of(Real real) { return real == Real::single_precision ? "single" : "double"; }

int check_orders(const std::vector<int>& orders) {
  bool good = true;
  for (const int order : orders) {
    for (const Real real : {Real::double_precision, Real::single_precision}) {
      for (const Check& check : check(order, real)) {
        fmt::print("k = {}, {}, {:13} {:17} differs by {:.1e}, {:.1e} allowed{}\n", order, name_of(real), check.kernel,
                   check.stage, check.difference, check.tolerance, check.good() ? "" : ": WRONG");
        good = good && check.good();
      }
    }
  }
  return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

int measure(int order, double millions, Real real, const char* file) {
  const auto unknowns = static_cast<std::int64_t>(1e6 * millions);
  auto timings = measure_operator(order, unknowns, real);
  const auto smoother = measure_smoother(order, unknowns, real);
  timings.insert(timings.end(), smoother.begin(), smoother.end());
  auto json = nlohmann::json::array();
  for (const Timing& timing : timings) {
    fmt::print(
        "k = {}, {}, {:.1f} million, {:14} {:17} {:8.4f} ns/DoF, {:7.3f} TFLOP/s, {:6.2f} TB/s shared, {:5.2f}"
        " TB/s device\n",
        order, name_of(real), 1e-6 * static_cast<double>(timing.unknowns), timing.kernel, timing.stage,
        timing.nanoseconds_per_unknown(), 1e-12 * timing.flops / timing.seconds,
        1e-12 * timing.shared_bytes / timing.seconds, 1e-12 * timing.device_bytes / timing.seconds);
    json.push_back({{"kernel", timing.kernel},
                    {"stage", timing.stage},
                    {"order", timing.order},
                    {"precision", name_of(timing.real)},
                    {"unknowns", timing.unknowns},
                    {"seconds", timing.seconds},
                    {"ns_per_dof", timing.nanoseconds_per_unknown()},
                    {"gdof_per_s", 1e-9 * timing.unknowns_per_second()},
                    {"flops", timing.flops},
                    {"device_bytes", timing.device_bytes},
                    {"shared_bytes", timing.shared_bytes}});
  }
  if (file != nullptr) std::ofstream(file) << json.dump(1) << '\n';
  return EXIT_SUCCESS;
}

int run(int count, char** arguments) {
  if (const std::string reason = cuda_unavailable(); !reason.empty()) {
    std::cerr << "skipped: " << reason << '\n';
    return skipped;
  }
  if ((count == 2 || count == 3) && std::string(arguments[1]) == "check") {
    return check_orders(count == 2 ? orders() : std::vector{std::atoi(arguments[2])});
  }
  if (count == 4 || count == 5) {
    const std::string precision = arguments[3];
    if (precision == "double" || precision == "single") {
      return measure(std::atoi(arguments[1]), std::atof(arguments[2]),
                     precision == "single" ? Real::single_precision : Real::double_precision,
                     count == 5 ? arguments[4] : nullptr);
    }
  }
  std::cerr << "usage: paper_kernels check [K] | paper_kernels K MILLIONS double|single [FILE.json]\n";
  return 2;
}

}  // namespace
}  // namespace solenoid::paper

int main(int count, char** arguments) {
  try {
    return solenoid::paper::run(count, arguments);
  } catch (const solenoid::Error& error) {
    std::cerr << error.what() << '\n';
    return 3;
  }
}
