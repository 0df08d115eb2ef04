#include "solenoid/case.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "case/keys.hpp"
#include "case/permeability_keys.hpp"
#include "case/settings.hpp"
#include "permeability/flow_setup.hpp"
#include "problem/validate.hpp"
#include "solenoid/arrays.hpp"
#include "solenoid/solution.hpp"

namespace solenoid {
namespace {

/// ", line 12" or the setting of the value at `path`, or of the nearest table or list around it that there is.
std::string source_of(const toml::table& document, std::string path) {
  while (!path.empty()) {
    if (const auto view = toml::at_path(document, path)) return at_source(view.node()->source());
    const auto end = path.find_last_of(".[");
    path.resize(end == std::string::npos ? 0 : end);
  }
  return "";
}

void validate_checkpoints() {
  const std::string why = solution_files_unavailable();
  if (!why.empty()) throw InvalidEntry("output.checkpoint", why);
}

/// \throws InvalidEntry if there can be no files of the image's fields, or should not be.
void validate_image_files(const Case& what) {
  const OutputOptions& output = what.output;
  if (!output.vti && output.arrays.empty()) return;
  const std::string entry = output.vti ? "output.vti" : "output.arrays";
  if (!what.permeability) throw InvalidEntry(entry, "is about flows of a table [permeability], and there is none");
  if (!output.arrays.empty() && !solution_files_unavailable().empty()) {
    throw InvalidEntry("output.arrays", solution_files_unavailable());
  }
  constexpr double gigabyte = 1e9;
  const double size = static_cast<double>(image_file_bytes(*what.problem.mesh.image)) / gigabyte;
  if (size <= output.size_limit) return;
  throw InvalidEntry(entry, fmt::format("each file would have up to {:.3g} GB, and `size_limit` is {:g}: raise it if "
                                        "you want files as large as that, or look at a `crop` of the image",
                                        size, output.size_limit));
}

/// \throws InputError if there is something that has no place beside [permeability].
void refuse_beside_permeability(const toml::table& document, const std::string& name) {
  if (!document.contains("permeability")) return;
  for (const std::string& key : keys_beside_permeability()) {
    if (!toml::at_path(document, key)) continue;
    throw InputError(fmt::format(
        "{}: {}{}: has no place beside [permeability], which says what flows there are and what is measured: leave one "
        "of them out",
        name, key_label(key), source_of(document, key)));
  }
}

/// What the rest of the case says of its permeability, and its first flow as the problem.
void complete_permeability(Case& what) {
  PermeabilityOptions& options = *what.permeability;
  Problem& problem = what.problem;
  options.order = problem.order;
  options.lumped = problem.lumped;
  options.refine = problem.mesh.refine;
  const auto image = problem.mesh.image;
  validate(image, options, what.solver);
  problem = flow_problem(image, flow_setups(image->dim(), options).front(), options.drive, element_of(options));
}

Case case_of(const toml::table& document, const std::string& name) {
  Case result;
  result.name = std::filesystem::path(name).stem().string();
  refuse_beside_permeability(document, name);
  Document shared{name};
  Value(document, "", "a table", shared).table<Case>(case_keys(), result);
  result.image_axes = shared.image_axes;
  if (!toml::at_path(document, "solver.max_iterations")) {
    result.solver.max_iterations = usual_max_iterations(result.problem);
  }
  try {
    if (result.time) {
      TimeOptions& time = result.time->options;
      if (time.step == 0.0 && time.cfl == 0.0) time.cfl = default_cfl(time.scheme, result.problem.order);
      validate(result.problem, time);
      if (time.average_start && *time.average_start >= result.time->end) {
        throw InvalidEntry("average.start", fmt::format("the flow ends at {:g}: expected an earlier time, got {:g}",
                                                        result.time->end, *time.average_start));
      }
      if (time.average_start && *time.average_start + time.average_every > result.time->end) {
        throw InvalidEntry("average.every",
                           fmt::format("no flow would count between the start and the end: expected at "
                                       "most {:g}, got {:g}",
                                       result.time->end - *time.average_start, time.average_every));
      }
      validate_profile(result.problem, result.time->average_along);
      if (result.output.permeability) {
        throw InvalidEntry("output.permeability", "is that of a steady flow: leave [time] out");
      }
    } else if (result.problem.convection) {
      throw InvalidEntry("physics.convection", "a flow with convection changes in time: add a table [time]");
    } else if (result.output.every > 0.0 || result.output.checkpoint > 0.0 || !result.output.history.empty()) {
      throw InvalidEntry(result.output.every > 0.0        ? "output.every"
                         : result.output.checkpoint > 0.0 ? "output.checkpoint"
                                                          : "output.history",
                         "a steady flow has no history: add a table [time]");
    }
    if (result.permeability) complete_permeability(result);
    validate(result.problem);
    validate(result.problem, result.solver);
    if (result.output.checkpoint > 0.0) validate_checkpoints();
    if (result.output.permeability) validate_permeability(result.problem);
    for (const auto& [side, file] : result.output.normal_stresses) {
      if (result.problem.boundary.sides[side].kind != SideKind::periodic) continue;
      throw InvalidEntry("output.normal_stress",
                         fmt::format("{} is periodic: it has no stress of its own", side_names[side]));
    }
    validate_image_files(result);
  } catch (const InvalidEntry& error) {
    const std::string key = key_path(error.entry);
    throw InputError(fmt::format("{}: {}{}: {}", name, key_label(key), source_of(document, key), error.problem));
  }
  return result;
}

}  // namespace

std::vector<Point> Samples::points() const {
  const auto part = [&](int edge, int i) { return count[edge] > 1 ? static_cast<double>(i) / (count[edge] - 1) : 0.0; };
  std::vector<Point> result;
  result.reserve(static_cast<std::size_t>(count[0]) * count[1]);
  for (int j = 0; j < count[1]; ++j) {
    for (int i = 0; i < count[0]; ++i) {
      Point& x = result.emplace_back(origin);
      for (int a = 0; a < 3; ++a) x[a] += part(0, i) * edges[0][a] + part(1, j) * edges[1][a];
    }
  }
  return result;
}

Case parse_case(std::string_view text, const std::string& name, const std::vector<std::string>& settings) {
  if (text.empty()) throw InputError(name + ": is empty; a case has at least the table [mesh]");
  toml::table document;
  try {
    document = toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    const auto& position = error.source().begin;
    throw InputError(
        fmt::format("{}: not TOML, line {}, column {}: {}", name, position.line, position.column, error.description()));
  }
  for (const std::string& setting : settings) apply_setting(setting, document);
  try {
    Case result = case_of(document, name);
    result.source = {name, std::string(text), settings};
    return result;
  } catch (const InputError& error) {
    // What the file says and what is set may not go together.
    const std::string message = error.what();
    if (settings.empty() || message.find("--set") != std::string::npos) throw;
    throw InputError(fmt::format("{} (with --set {})", message, fmt::join(settings, ", --set ")));
  }
}

Case read_case(const std::filesystem::path& file, const std::vector<std::string>& settings) {
  const auto fail = [&](const std::string& reason) {
    throw InputError(fmt::format("cannot read the case file '{}': {}", file.string(), reason));
  };
  std::error_code ignored;
  const auto status = std::filesystem::status(file, ignored);
  if (status.type() == std::filesystem::file_type::not_found) fail("there is no such file");
  if (std::filesystem::is_directory(status)) fail("it is a folder");
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  if (stream) text << stream.rdbuf();
  if (errno != 0) fail(std::strerror(errno));
  return parse_case(text.str(), file.string(), settings);
}

}  // namespace solenoid
