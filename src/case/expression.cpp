#include <fmt/format.h>
#include <muParser.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <memory>
#include <numbers>
#include <span>
#include <string_view>
#include <vector>

#include "case/expression.hpp"
#include "case/formula.hpp"
#include "case/nearest.hpp"
#include "problem/label.hpp"
#include "solenoid/error.hpp"
#include "solenoid/field.hpp"

namespace solenoid {
namespace {

constexpr std::array<const char*, 3> coordinate_names{"x", "y", "z"};

/// Position of an assignment ("=" but not "==", "<=", ">=", "!="), which muParser would carry out on our coordinates.
std::size_t find_assignment(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '=') continue;
    if (i + 1 < text.size() && text[i + 1] == '=') {
      ++i;
    } else if (i == 0 || std::string_view("<>!").find(text[i - 1]) == std::string_view::npos) {
      return i;
    }
  }
  return std::string_view::npos;
}

/// Parses an expression; errors name its label and the position.
class Reader {
 public:
  Reader(const std::string& text, int dim, const std::string& label, const Parameters& parameters)
      : text_(text), dim_(dim), label_(label), parameters_(parameters) {
    try {
      for (auto& [name, value] : parameters_) {
        if (const std::string reason = why_no_parameter(name); !reason.empty()) {
          throw InputError(fmt::format("{}`{}` cannot be a parameter: {}", prefix(label), name, reason));
        }
        parser_.DefineVar(name, &value);
      }
      for (int a = 0; a < dim; ++a) parser_.DefineVar(coordinate_names[a], &point_[a]);
      parser_.DefineConst("pi", std::numbers::pi);
      parser_.DefineConst("e", std::numbers::e);
      parser_.SetExpr(text);
      if (const auto position = find_assignment(text); position != std::string_view::npos) {
        fail("`=` is not allowed (`==` compares)", position);
      }
      if (const auto position = text.find("**"); position != std::string::npos) {
        fail("`**` is not an operator: a power is written with `^`, as x^2", position);
      }
      parser_.Eval();  // muParser parses at the first evaluation
      if (parser_.GetNumResults() != 1) fail("one value expected, not a list", text.find(','));
    } catch (const mu::ParserError& error) {
      fail(error);
    }
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  /// Whether the value depends on nothing.
  [[nodiscard]] bool constant() const { return parser_.GetUsedVar().empty(); }
  /// The value of a constant.
  [[nodiscard]] double value() const { return parser_.Eval(); }
  /// The parameters that it depends on, and its formula with these in the order of their names.
  [[nodiscard]] Parameters used_parameters() const {
    Parameters used;
    for (const auto& [name, place] : parser_.GetUsedVar()) {
      if (const auto found = parameters_.find(name); found != parameters_.end()) used.insert(*found);
    }
    return used;
  }
  [[nodiscard]] Formula formula() const {
    std::vector<const double*> places;
    for (const auto& [name, value] : used_parameters()) places.push_back(&parameters_.at(name));
    return {parser_, point_, places};
  }

 private:
  [[noreturn]] void fail(const std::string& problem, std::size_t position) const {
    constexpr std::size_t shown = 30;  // characters around the position
    const std::size_t begin = position > shown ? position - shown : 0;
    const std::string excerpt =
        (begin > 0 ? "..." : "") + text_.substr(begin, 2 * shown) + (begin + 2 * shown < text_.size() ? "..." : "");
    throw InputError(
        fmt::format("{}{}, at position {} of the expression \"{}\"", prefix(label_), problem, position + 1, excerpt));
  }

  [[noreturn]] void fail(const mu::ParserError& error) const {
    const auto position = static_cast<std::size_t>(std::max(0, static_cast<int>(error.GetPos())));
    switch (error.GetCode()) {
      case mu::ecEMPTY_EXPRESSION: fail("expected an expression or a number, got nothing", 0);
      case mu::ecUNASSIGNABLE_TOKEN: {
        const std::string name = leading_name(error.GetToken());
        if (name.empty()) fail(fmt::format("unexpected `{}`", error.GetToken()), position);
        if (parser_.GetFunDef().contains(name)) {
          fail(fmt::format("the function `{}` needs parentheses: `{}(...)`", name, name), position);
        }
        fail(fmt::format("unknown name `{}`{}", name, suggestion(name, known_names())), position);
      }
      case mu::ecUNEXPECTED_EOF: fail("the expression ends too early", text_.size());
      default: {
        std::string message = error.GetMsg();
        if (!message.empty() && message.back() == '.') message.pop_back();
        fail(message, std::min(position, text_.size()));
      }
    }
  }

  /// The identifier that a token begins with: muParser reports the whole rest of the expression.
  static std::string leading_name(const std::string& token) {
    std::size_t length = 0;
    const auto part_of_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
    while (length < token.size() && part_of_name(token[length])) ++length;
    return token.substr(0, length);
  }

  [[nodiscard]] std::vector<std::string_view> known_names() const {
    std::vector<std::string_view> names(coordinate_names.begin(), coordinate_names.begin() + dim_);
    names.insert(names.end(), {"pi", "e"});
    for (const auto& [name, value] : parameters_) names.push_back(name);
    for (const auto& [name, function] : parser_.GetFunDef()) names.push_back(name);
    return names;
  }

  mu::Parser parser_;
  Point point_{};
  std::string text_;
  int dim_;
  std::string label_;
  Parameters parameters_;
};

}  // namespace

std::string why_no_parameter(const std::string& name) {
  if (std::find(coordinate_names.begin(), coordinate_names.end(), name) != coordinate_names.end()) {
    return "it is a coordinate";
  }
  if (name == "pi" || name == "e") return "it is a number that expressions know";
  const auto is_letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  const auto part_of_name = [&](char c) { return is_letter(c) || std::isdigit(static_cast<unsigned char>(c)) != 0; };
  if (name.empty() || !is_letter(name[0]) || !std::all_of(name.begin(), name.end(), part_of_name)) {
    return "a name has letters, digits and `_`, and begins with no digit";
  }
  if (mu::Parser().GetFunDef().contains(name)) return "it is a function";
  return "";
}

ScalarField ScalarField::expression(const std::string& text, int dim, std::string label, const Parameters& parameters) {
  const Reader reader(text, dim, label, parameters);
  if (reader.constant()) {
    const double value = reader.value();
    if (!std::isfinite(value)) throw InputError(fmt::format("{}\"{}\" is {}", prefix(label), text, value));
    ScalarField field(value);
    field.set_label(std::move(label));
    return field;
  }
  return of(reader.formula(), reader.used_parameters(), std::move(label));
}

ScalarField ScalarField::of(Formula parsed, Parameters parameters, std::string label) {
  const auto formula = std::make_shared<const Formula>(std::move(parsed));
  ScalarField field;
  if (formula->varies()) {
    field = {[formula](std::span<const Point> points, std::span<double> values) { formula->evaluate(points, values); },
             [formula](const Axes& axes, std::span<double> values) { formula->evaluate(axes, values); }, ""};
    field.program_ = std::make_shared<const Program>(formula->program());
  } else {
    const Point anywhere{};
    formula->evaluate({&anywhere, 1}, {&field.constant_, 1});
    if (!std::isfinite(field.constant_)) {
      std::vector<std::string> at;
      for (const auto& [name, value] : parameters) at.push_back(fmt::format("{} = {}", name, value));
      throw InputError(fmt::format("{}the value is {} where {}", prefix(label), field.constant_, fmt::join(at, ", ")));
    }
  }
  if (!parameters.empty()) field.formula_ = formula;
  field.parameters_ = std::move(parameters);
  field.label_ = std::move(label);
  return field;
}

ScalarField ScalarField::at(const Parameters& values) const {
  Parameters changed = parameters_;
  for (auto& [name, value] : changed) {
    if (const auto found = values.find(name); found != values.end()) value = found->second;
  }
  if (changed == parameters_) return *this;
  std::vector<double> numbers;
  for (const auto& [name, value] : changed) numbers.push_back(value);
  return of(formula_->at(numbers), std::move(changed), label_);
}

}  // namespace solenoid
