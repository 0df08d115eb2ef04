#include "case/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "solenoid/error.hpp"

namespace solenoid {
namespace {

constexpr std::string_view option = "--set ";

/// Part of a path: a key and, where its value is a list, the place of an entry in that, and so on.
struct Step {
  std::string key;
  std::vector<std::size_t> places;
};

/// One setting and what is wrong with it.
class Setting {
 public:
  explicit Setting(const std::string& text) : source_(std::string(option) + text) {
    const auto equal = text.find('=');
    if (equal == std::string::npos) fail("expected KEY=VALUE, as mesh.refine=5");
    read_path(trimmed(text.substr(0, equal)));
    read_value(trimmed(text.substr(equal + 1)));
  }

  void apply(toml::table& document) {
    toml::table* table = &document;
    std::string path;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const auto& [key, places] = steps_[i];
      path += (path.empty() ? "" : ".") + key;
      const bool last = i + 1 == steps_.size();
      if (last && places.empty()) {
        const toml::key name(key, toml::source_region{{1, 1}, {1, 1}, std::make_shared<const std::string>(source_)});
        return value_->visit([&](auto& value) { table->insert_or_assign(name, std::move(value)); });
      }
      if (places.empty() && !table->contains(key)) table->insert(key, toml::table());
      toml::node* node = table->get(key);
      for (std::size_t j = 0; j < places.size(); ++j) {
        toml::array* list = node == nullptr ? nullptr : node->as_array();
        if (list == nullptr) fail(fmt::format("the case has no list `{}`; give the whole list", path));
        if (places[j] >= list->size()) {
          fail(fmt::format("the list `{}` has {} {}, counted from 0; to add some give the whole list", path,
                           list->size(), list->size() == 1 ? "entry" : "entries"));
        }
        if (last && j + 1 == places.size()) {
          const auto place = list->cbegin() + static_cast<int>(places[j]);
          return value_->visit([&](auto& value) { list->replace(place, std::move(value)); });
        }
        node = list->get(places[j]);
        path += fmt::format("[{}]", places[j]);
      }
      table = node->as_table();
      if (table == nullptr) fail(fmt::format("`{}` is no table, and so has no `{}`", path, steps_[i + 1].key));
    }
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const { throw InputError(source_ + ": " + problem); }

  static std::string trimmed(const std::string& text) {
    const auto begin = text.find_first_not_of(" \t");
    return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
  }

  void read_path(std::string_view path) {
    for (;;) {
      const auto dot = path.find('.');
      read_step(path.substr(0, dot));
      if (dot == std::string_view::npos) return;
      path.remove_prefix(dot + 1);
    }
  }

  void read_step(std::string_view text) {
    Step& step = steps_.emplace_back();
    step.key = text.substr(0, text.find('['));
    const bool plain = std::all_of(step.key.begin(), step.key.end(),
                                   [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; });
    if (step.key.empty() || !plain)
      fail("expected keys with dots between them and places in brackets, as probe[0].point");
    for (text.remove_prefix(step.key.size()); !text.empty();) {
      std::size_t& place = step.places.emplace_back();
      const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), place);
      if (text[0] != '[' || error != std::errc() || end == text.data() + text.size() || *end != ']') {
        fail(fmt::format("expected the place of an entry of `{}`, as {}[0]", step.key, step.key));
      }
      text.remove_prefix(end + 1 - text.data());
    }
  }

  void read_value(const std::string& text) {
    try {
      holder_ = toml::parse("value = " + text, source_);
    } catch (const toml::parse_error&) {
      fail(fmt::format(
          "`{}` is no value of TOML, such as 5, 0.1, true, [1, 2], {{slip = true}} or \"text\" with its quotes", text));
    }
    if (holder_.size() != 1) fail("expected one value");
    value_ = holder_.get("value");
  }

  std::string source_;
  std::vector<Step> steps_;
  toml::table holder_;
  toml::node* value_ = nullptr;
};

}  // namespace

void apply_setting(const std::string& setting, toml::table& document) { Setting(setting).apply(document); }

std::string at_source(const toml::source_region& source) {
  if (source.path != nullptr && source.path->starts_with(option)) return ", " + *source.path;
  return source.begin.line > 0 ? fmt::format(", line {}", source.begin.line) : "";
}

}  // namespace solenoid
