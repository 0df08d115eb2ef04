#include "case/value.hpp"

#include <cmath>
#include <limits>
#include <sstream>

#include "case/keys.hpp"
#include "case/settings.hpp"

namespace solenoid {
namespace {

/// A value as it may stand in a file, on one line and not too long.
std::string shown(const toml::node& node) {
  std::ostringstream stream;
  node.visit([&](const auto& concrete) { stream << toml::toml_formatter(concrete, toml::format_flags::none); });
  std::string line;
  for (const char c : stream.str()) {
    const bool space = c == '\n' || c == ' ' || c == '\t';
    if (!space) {
      line += c;
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
  }
  constexpr std::size_t longest = 60;
  return line.size() > longest ? line.substr(0, longest) + "..." : line;
}

}  // namespace

double Value::number() const {
  require(node_->is_number());
  const double value = node_->value<double>().value_or(std::nan(""));
  require(std::isfinite(value));
  return value;
}

int Value::integer() const {
  require(node_->is_integer());
  const auto value = node_->value<std::int64_t>().value_or(0);
  require(value >= std::numeric_limits<int>::min() && value <= std::numeric_limits<int>::max());
  return static_cast<int>(value);
}

bool Value::boolean() const {
  require(node_->is_boolean());
  return *node_->value<bool>();
}

std::string Value::text() const {
  require(node_->is_string());
  return *node_->value<std::string>();
}

std::size_t Value::place_among(const std::vector<std::string_view>& valid) const {
  const std::string word = text();
  const auto found = std::find(valid.begin(), valid.end(), word);
  if (found == valid.end()) fail_type(suggestion(word, valid));
  return static_cast<std::size_t>(found - valid.begin());
}

std::vector<Value> Value::list() const {
  const toml::array* array = node_->as_array();
  if (array == nullptr) fail_type();
  std::vector<Value> entries;
  for (const auto& node : *array) {
    entries.emplace_back(node, fmt::format("{}[{}]", path_, entries.size()), type_, *document_);
  }
  return entries;
}

std::vector<Value> Value::components() const {
  auto entries = list();
  require(static_cast<int>(entries.size()) == dim());
  return entries;
}

std::vector<std::pair<std::string, Value>> Value::entries(std::string_view type) const {
  const toml::table* table = node_->as_table();
  if (table == nullptr) fail_type();
  std::vector<std::pair<std::string, Value>> entries;
  for (const auto& [key, node] : *table) {
    entries.emplace_back(key.str(), Value(node, fmt::format("{}.{}", path_, key.str()), type, *document_));
  }
  return entries;
}

ScalarField Value::field() const {
  if (!node_->is_string()) {
    ScalarField field(number());
    field.set_label(where());
    return field;
  }
  return ScalarField::expression(text(), dim(), where(), document_->parameters);
}

VectorField Value::vector_field() const {
  VectorField result;
  const auto entries = components();
  for (std::size_t c = 0; c < entries.size(); ++c) result[c] = entries[c].field();
  return result;
}

bool Value::has(std::string_view name) const {
  const toml::table* table = node_->as_table();
  return table != nullptr && table->contains(name);
}

void Value::require(bool condition) const {
  if (!condition) fail_type();
}

void Value::require_equation(EquationKind equation) const {
  if (document_->equation == equation) return;
  fail(equation == EquationKind::stokes
           ? "is for the Stokes equations, and `equation` in [physics] is \"poisson\""
           : "is for Poisson's equation, which `equation = \"poisson\"` in [physics] asks for");
}

void Value::fail(const std::string& problem) const { throw InputError(where() + ": " + problem); }

void Value::fail_type(const std::string& hint) const {
  fail(fmt::format("expected {}, got {}{}", expanded(type_), shown(*node_), hint));
}

void Value::fail_unknown(const toml::key& key, const std::vector<std::string_view>& valid) const {
  const std::string line = at_source(key.source());
  if (path_.empty()) {
    const auto node = node_->as_table()->find(key.str());
    const bool table = node->second.is_table() || node->second.is_array_of_tables();
    std::string hint = suggestion(key.str(), valid);
    for (const Section& section : case_sections()) {
      for (const KeyInfo& info : section.keys) {
        if (!table && info.name == key.str()) hint = fmt::format(": it belongs in [{}]", section.name);
      }
    }
    throw InputError(
        fmt::format("{}: unknown {} `{}`{}{}", document_->name, table ? "table" : "key", key.str(), line, hint));
  }
  throw InputError(fmt::format("{}: unknown key `{}` in {}{}{}", document_->name, key.str(), key_label(path_), line,
                               suggestion(key.str(), valid)));
}

void Value::fail_missing(const KeyInfo& info) const {
  if (path_.empty()) {
    throw InputError(
        fmt::format("{}: the table [{}] is missing: expected {}", document_->name, info.name, info.meaning));
  }
  fail(fmt::format("the key `{}` is missing: expected {} ({})", info.name, expanded(info.type), info.meaning));
}

std::string Value::expanded(std::string_view type) const {
  std::string result(type);
  constexpr std::string_view placeholder = "{dim}";
  if (const auto position = result.find(placeholder); position != std::string::npos) {
    result.replace(position, placeholder.size(), dim() > 0 ? std::to_string(dim()) : "dim");
  }
  return result;
}

Value Value::member(const toml::node& node, const KeyInfo& info) const {
  return {node, path_.empty() ? std::string(info.name) : fmt::format("{}.{}", path_, info.name), info.type, *document_};
}

std::string Value::where() const {
  return fmt::format("{}: {}{}", document_->name, key_label(path_), at_source(node_->source()));
}

}  // namespace solenoid
