#pragma once
/// \file
/// Reading a TOML document by tables of keys, with errors that name file, key, line and what was expected.

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "case/nearest.hpp"
#include "problem/names.hpp"
#include "solenoid/field.hpp"

namespace solenoid {

/// What people need to know about a key. "{dim}" in `type` stands for the number of dimensions.
struct KeyInfo {
  std::string_view name;
  std::string_view type;
  std::string_view fallback;  ///< default in TOML, "required" or "" for none
  std::string_view meaning;
};

class Value;

/// A key and how it is read. Keys are read in the order of their table, not of the file.
template <class Target>
struct Key {
  KeyInfo info;
  void (*read)(const Value& value, Target& target);
};

/// Of a table of keys.
template <class Keys>
std::vector<KeyInfo> infos(const Keys& keys) {
  std::vector<KeyInfo> result;
  for (const auto& key : keys) result.push_back(key.info);
  return result;
}

/// What all values of a file share.
struct Document {
  std::string name;  ///< of the file
  int dim = 0;       ///< known once `cells` has been read
  EquationKind equation = EquationKind::stokes;
  Parameters parameters{};   ///< of all expressions
  std::string image_axes{};  ///< Case::image_axes
};

/// A value of the document and the key it belongs to.
class Value {
 public:
  Value(const toml::node& node, std::string path, std::string_view type, Document& document)
      : node_(&node), path_(std::move(path)), type_(type), document_(&document) {}

  [[nodiscard]] Document& document() const { return *document_; }
  [[nodiscard]] int dim() const { return document_->dim; }

  [[nodiscard]] double number() const;
  [[nodiscard]] int integer() const;
  [[nodiscard]] bool boolean() const;
  [[nodiscard]] std::string text() const;
  /// The place of a text among valid ones.
  [[nodiscard]] std::size_t place_among(const std::vector<std::string_view>& valid) const;
  /// The entries of a list; each has the type of the list in its messages.
  [[nodiscard]] std::vector<Value> list() const;
  /// The entries of a list of one entry per direction.
  [[nodiscard]] std::vector<Value> components() const;
  /// The entries of a table of any names; `type` is what each is expected to be.
  [[nodiscard]] std::vector<std::pair<std::string, Value>> entries(std::string_view type) const;
  /// An expression or a number.
  [[nodiscard]] ScalarField field() const;
  [[nodiscard]] VectorField vector_field() const;
  template <class Choice>
  [[nodiscard]] Choice choice() const;
  /// Reads a table by its keys. \throws InputError for unknown and missing ones.
  template <class Target>
  void table(std::type_identity_t<std::span<const Key<Target>>> keys, Target& target) const;
  [[nodiscard]] bool is_table() const { return node_->is_table(); }
  [[nodiscard]] bool is_list() const { return node_->is_array(); }
  /// Whether it is this text.
  [[nodiscard]] bool is(std::string_view text) const { return node_->value<std::string_view>() == text; }
  /// Whether the value is a table with this key.
  [[nodiscard]] bool has(std::string_view name) const;

  /// The key, as messages name it.
  [[nodiscard]] std::string where() const;
  /// \throws InputError "expected (the type), got (the value)" unless the condition holds.
  void require(bool condition) const;
  [[noreturn]] void fail(const std::string& problem) const;
  /// \throws InputError if the key does not belong to the equation of the case.
  void require_equation(EquationKind equation) const;

 private:
  [[noreturn]] void fail_type(const std::string& hint = "") const;
  [[noreturn]] void fail_unknown(const toml::key& key, const std::vector<std::string_view>& valid) const;
  [[noreturn]] void fail_missing(const KeyInfo& info) const;
  [[nodiscard]] std::string expanded(std::string_view type) const;
  [[nodiscard]] Value member(const toml::node& node, const KeyInfo& info) const;

  const toml::node* node_;
  std::string path_;
  std::string_view type_;
  Document* document_;
};

template <class Choice>
Choice Value::choice() const {
  std::vector<std::string_view> valid;
  for (const auto& [name, value] : Names<Choice>::all) valid.push_back(name);
  return Names<Choice>::all[place_among(valid)].second;
}

template <class Target>
void Value::table(std::type_identity_t<std::span<const Key<Target>>> keys, Target& target) const {
  const toml::table* table = node_->as_table();
  if (table == nullptr) fail_type();
  std::vector<std::string_view> valid;
  for (const auto& key : keys) valid.push_back(key.info.name);
  for (const auto& [key, node] : *table) {
    if (std::find(valid.begin(), valid.end(), key.str()) == valid.end()) fail_unknown(key, valid);
  }
  for (const auto& [info, read] : keys) {
    if (const toml::node* node = table->get(info.name)) {
      read(member(*node, info), target);
    } else if (info.fallback == "required") {
      fail_missing(info);
    }
  }
}

}  // namespace solenoid
