#include "solenoid/permeability.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "base/agreement.hpp"
#include "base/new_file.hpp"
#include "build_info.hpp"
#include "mesh/grid.hpp"
#include "output/result_json.hpp"
#include "program/commands.hpp"
#include "program/launch.hpp"
#include "program/march.hpp"
#include "program/progress.hpp"
#include "solenoid/error.hpp"
#include "solenoid/interrupt.hpp"
#include "solenoid/output.hpp"

namespace solenoid::program {
namespace {

namespace fs = std::filesystem;

struct PermeabilityArguments {
  CaseArguments problem;
  fs::path json;
  fs::path output;
  fs::path save;
  bool quiet = false;
  bool verbose = false;

  [[nodiscard]] bool json_to_stdout() const { return json == "-"; }
  /// Of the result; empty if none is asked for.
  [[nodiscard]] fs::path result_file() const {
    if (json_to_stdout()) return {};
    return json.empty() && !output.empty() ? output / "result.json" : json;
  }
};

char name_of_direction(int direction) { return "xyz"[direction]; }

/// "flow.png" of the flow along x: "flow_x.png".
fs::path along(const fs::path& file, int direction) {
  return folder_of(file) /
         fmt::format("{}_{}{}", file.stem().string(), name_of_direction(direction), file.extension().string());
}

bool asks_for_files(const OutputOptions& output) {
  return output.vtu || output.vti || !output.arrays.empty() || !output.picture.empty() || !output.speeds.empty();
}

/// The files that are asked for of each flow; returns their names. A flow is whole.
std::vector<fs::path> write_flow(const PermeabilityArguments& arguments, const Case& what, int direction,
                                 const Solution& flow) {
  std::vector<fs::path> written;
  const auto target = [&](const fs::path& file) {
    fs::create_directories(folder_of(file));
    return written.emplace_back(along(file, direction));
  };
  if (!arguments.save.empty()) flow.save(target(arguments.save));
  if (arguments.output.empty()) return written;
  const OutputOptions& asked = what.output;
  if (!asked.picture.empty()) {
    const auto pictures = write_pictures(what, flow, target(arguments.output / asked.picture));
    written.insert(written.end(), pictures.begin() + 1, pictures.end());
  }
  if (!asked.speeds.empty()) write_speeds(flow, target(arguments.output / asked.speeds));
  if (asked.vtu) write_vtu(flow, target(arguments.output / (what.name + ".vtu")), asked.subdivide, asked.fields);
  // Their sizes were looked at when the case was read.
  constexpr double any = std::numeric_limits<double>::infinity();
  if (asked.vti) write_vti(flow, target(arguments.output / (what.name + ".vti")), any);
  if (!asked.arrays.empty()) {
    write_image_fields(flow, target(arguments.output / asked.arrays), what.image_axes, any);
  }
  return written;
}

void print_row(std::string_view name, const std::string& value) { fmt::print("{:<17} {}\n", name, value); }

std::string element_name(const DiscretePermeability& value) {
  return (value.lumped ? "marker and cell" : fmt::format("RT_{} x Q_{}", value.order, value.order)) +
         (value.refine > 0 ? fmt::format(", refined {}x", value.refine) : "");
}

void print_pores(const Permeability& result) {
  print_row("porosity", fmt::format("{:.4f}", result.porosity));
  for (const PoresAlong& pores : result.pores) {
    const std::string text = pores.percolates
                                 ? fmt::format("{:.4f} of the image in pores that percolate, {:.1f} % of them throats",
                                               pores.porosity, 100.0 * pores.throats)
                                 : "no pore percolates: nothing flows";
    print_row(fmt::format("along {}", name_of_direction(pores.direction)), text);
  }
}

/// A row for each component that is known, a column for each element.
void print_tensor(const Permeability& result) {
  std::vector<const DiscretePermeability*> values{&result.value};
  for (const auto* other : {&result.mac, &result.finer}) {
    if (*other) values.push_back(&**other);
  }
  std::string heading;
  for (const auto* value : values) heading += fmt::format("{:<34}", element_name(*value));
  print_row("permeability", heading.substr(0, heading.find_last_not_of(' ') + 1));
  for (int i = 0; i < result.dim; ++i) {
    for (int j = result.value.asymmetry ? i : 0; j < result.dim; ++j) {
      if (!result.value.tensor[i][j]) continue;
      std::string row;
      for (const auto* value : values) {
        const double entry = *value->tensor[i][j];
        row += fmt::format("{:<34}", fmt::format("{:.5g} m^2 = {:.5g} darcy", entry, entry / darcy));
      }
      print_row(fmt::format("  {}{}", name_of_direction(i), name_of_direction(j)),
                row.substr(0, row.find_last_not_of(' ') + 1));
    }
  }
  if (result.principal) {
    for (std::size_t i = 0; i < result.principal->values.size(); ++i) {
      const Point& axis = result.principal->axes[i];
      print_row(i == 0 ? "principal" : "", fmt::format("{:.5g} m^2 along ({:.4f})", result.principal->values[i],
                                                       fmt::join(axis.begin(), axis.begin() + result.dim, ", ")));
    }
    print_row("asymmetry", fmt::format("{:.1e}", *result.value.asymmetry));
  }
  if (result.error) print_row("error, estimated", fmt::format("{:.2g} %", 100.0 * *result.error));
}

void print_flows(const DiscretePermeability& value) {
  if (value.flows.empty()) return;
  print_row(element_name(value), fmt::format("{} unknowns, set-up {:.3f} s, {:.0f} MB", value.dofs, value.time_setup,
                                             static_cast<double>(value.memory_bytes) * 1e-6));
  for (const PermeabilityFlow& flow : value.flows) {
    print_row(fmt::format("  along {}", name_of_direction(flow.direction)),
              fmt::format("{} iterations, residual {:.1e}, {:.3f} s, fluxes equal to {:.1e}{}", flow.iterations,
                          flow.residual, flow.time_solve, flow.flux_deviation,
                          flow.converged ? "" : ", not converged: " + flow.reason));
  }
}

void print_table(const Permeability& result, const std::vector<fs::path>& files) {
  if (!result.device.empty()) print_row("device", result.device);
  print_pores(result);
  print_tensor(result);
  print_flows(result.value);
  if (result.mac) print_flows(*result.mac);
  if (result.finer) print_flows(*result.finer);
  for (const auto& file : files) print_row(&file == files.data() ? "written" : "", file.string());
}

std::vector<fs::path> of_all_ranks(const Communicator& ranks, const std::vector<fs::path>& mine) {
  std::string names;
  for (const fs::path& file : mine) names += file.string() + '\n';
  std::vector<fs::path> all;
  for (const std::string& of_rank : ranks.texts(names)) {
    std::istringstream lines(of_rank);
    for (std::string name; std::getline(lines, name);) all.emplace_back(name);
  }
  return all;
}

/// The case, once it is known that its results can be written.
Case read(const PermeabilityArguments& arguments) {
  Case what = arguments.problem.read();
  if (!what.permeability) {
    throw InputError(
        fmt::format("{}: has no table [permeability]: add one, or use `solenoid solve`", arguments.problem.name()));
  }
  if (!arguments.output.empty()) check_writable(arguments.output);
  const fs::path result_file = arguments.result_file();
  if (!result_file.empty()) check_target("the result file", result_file);
  if (!arguments.save.empty()) {
    if (const std::string why = solution_files_unavailable(); !why.empty()) {
      throw InputError(fmt::format("--save: {}", why));
    }
    for (int direction = 0; direction < what.problem.mesh.dim; ++direction) {
      check_target("the solution", along(arguments.save, direction));
    }
  }
  return what;
}

int compute(const PermeabilityArguments& arguments) {
  const auto ranks = launched_ranks();
  const bool first = ranks == nullptr || ranks->rank() == 0;
  Case what;
  in_agreement(ranks.get(), [&] {
    if (ranks != nullptr && arguments.problem.from_stdin()) {
      throw InputError("stdin: several ranks have no common stdin: name a file");
    }
    what = read(arguments);
  });
  if (ranks != nullptr) {
    check_same(*ranks, what, build_info::commit);
    warn_of_binding(*ranks, what.solver.threads, arguments.quiet);
  }

  ProgressDisplay display(arguments.quiet || !first ? ProgressDisplay::Lines::none
                          : arguments.verbose       ? ProgressDisplay::Lines::all
                                                    : ProgressDisplay::Lines::stages);
  SolverOptions solver = what.solver;
  solver.communicator = ranks;
  solver.progress = [&](const Progress& progress) { display.show(progress); };
  PermeabilityOptions options = *what.permeability;
  std::vector<fs::path> files;
  options.visit = [&](int direction, const Solution& flow) {
    const std::optional<Solution> whole = flow.gathered();
    in_agreement(flow.grid().communicator(), [&] {
      if (!whole) return;
      const auto written = write_flow(arguments, what, direction, *whole);
      files.insert(files.end(), written.begin(), written.end());
    });
  };
  caught_interrupt();  // from here on
  const Interruptible scope(caught_interrupt);
  const Permeability result = permeability(what.problem.mesh.image, options, solver);
  display.finish();
  const ExitCode code = result.converged() ? ExitCode::solved : not_converged;
  if (ranks != nullptr) {
    files = of_all_ranks(*ranks, files);
    if (!first) return code;
  }

  const fs::path result_file = arguments.result_file();
  const std::string json = result_json(what, result);
  if (!result_file.empty()) {
    fs::create_directories(folder_of(result_file));
    NewFile target(result_file);
    target.stream() << json;
    target.commit();
    files.insert(files.begin(), result_file);
  }
  if (arguments.json_to_stdout()) {
    fmt::print("{}", json);
    if (std::fflush(stdout) != 0) throw Error("cannot write the result to stdout: is it closed, or the disk full?");
  } else if (!arguments.quiet) {
    print_table(result, files);
    if (asks_for_files(what.output) && arguments.output.empty()) {
      fmt::print("The case asks for files: add --output FOLDER to have them written.\n");
    }
  }
  return code;
}

}  // namespace

Command add_permeability(const CommandOptions& line) {
  const auto arguments = std::make_shared<PermeabilityArguments>();
  arguments->problem.add_to(line);
  line.add("--json", arguments->json, "write the result to this file; -: to stdout, in place of the table")
      .type("FILE");
  line.add("-o,--output", arguments->output,
           "write result.json and the files that the case asks for, one of each flow, to this folder")
      .type("DIR");
  line.add("--save", arguments->save,
           "write each flow to a file of this name (HDF5), FILE_x.h5 that along x, for Python")
      .type("FILE.h5");
  const Option quiet =
      line.add_flag("-q,--quiet", arguments->quiet, "print nothing but errors, and the result of --json -");
  line.add_flag("--verbose", arguments->verbose, "print a line for every step of the work, on stderr").excludes(quiet);
  return [arguments] { return compute(*arguments); };
}

}  // namespace solenoid::program
