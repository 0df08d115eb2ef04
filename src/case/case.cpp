#include "solenoid/case.hpp"

#include <fstream>
#include <sstream>

#include "case/keys.hpp"
#include "problem/validate.hpp"

namespace solenoid {
namespace {

/// ", line 12" of the value at `path`, or of the nearest table or list around it that the file gives.
std::string line_of(const toml::table& document, std::string path) {
  while (!path.empty()) {
    if (const auto view = toml::at_path(document, path))
      return fmt::format(", line {}", view.node()->source().begin.line);
    const auto end = path.find_last_of(".[");
    path.resize(end == std::string::npos ? 0 : end);
  }
  return "";
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

Case parse_case(std::string_view text, const std::string& name) {
  toml::table document;
  try {
    document = toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    const auto& position = error.source().begin;
    throw InputError(
        fmt::format("{}: not TOML, line {}, column {}: {}", name, position.line, position.column, error.description()));
  }
  Case result;
  result.name = std::filesystem::path(name).stem().string();
  Document shared{name};
  Value(document, "", "a table", shared).table<Case>(case_keys(), result);
  try {
    validate(result.problem);
    validate(result.problem, result.solver);
    if (result.output.permeability) validate_permeability(result.problem);
  } catch (const InvalidEntry& error) {
    const std::string key = key_path(error.entry);
    throw InputError(fmt::format("{}: {}{}: {}", name, key_label(key), line_of(document, key), error.problem));
  }
  return result;
}

Case read_case(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  if (std::filesystem::is_directory(file) || !stream || !(text << stream.rdbuf())) {
    const char* reason = !std::filesystem::exists(file)        ? "there is no such file"
                         : std::filesystem::is_directory(file) ? "it is a folder"
                                                               : "is it readable and not empty?";
    throw InputError(fmt::format("cannot read the case file '{}': {}", file.string(), reason));
  }
  return parse_case(text.str(), file.string());
}

}  // namespace solenoid
