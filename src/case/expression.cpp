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

#include "case/formula.hpp"
#include "case/nearest.hpp"
#include "solenoid/error.hpp"
#include "solenoid/field.hpp"

namespace solenoid {
namespace {

constexpr std::array<const char*, 3> coordinate_names{"x", "y", "z"};

/// "[physics] force[0]: " or nothing.
std::string prefix(const std::string& label) { return label.empty() ? "" : label + ": "; }

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
  Reader(const std::string& text, int dim, const std::string& label) : text_(text), dim_(dim), label_(label) {
    try {
      for (int a = 0; a < dim; ++a) parser_.DefineVar(coordinate_names[a], &point_[a]);
      parser_.DefineConst("pi", std::numbers::pi);
      parser_.DefineConst("e", std::numbers::e);
      parser_.SetExpr(text);
      if (const auto position = find_assignment(text); position != std::string_view::npos) {
        fail("`=` is not allowed (`==` compares)", position);
      }
      parser_.Eval();  // muParser parses at the first evaluation
      if (parser_.GetNumResults() != 1) fail("one value expected, not a list", text.find(','));
    } catch (const mu::ParserError& error) {
      fail(error);
    }
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  /// Whether the value does not depend on the point.
  [[nodiscard]] bool constant() const { return parser_.GetUsedVar().empty(); }
  /// The value of a constant.
  [[nodiscard]] double value() const { return parser_.Eval(); }
  [[nodiscard]] Formula formula() const { return {parser_, point_}; }

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
    for (const auto& [name, function] : parser_.GetFunDef()) names.push_back(name);
    return names;
  }

  mu::Parser parser_;
  Point point_{};
  std::string text_;
  int dim_;
  std::string label_;
};

/// \throws InputError with point_of(i) for the first value i that is not finite.
template <class PointOf>
void require_finite(std::span<const double> values, const std::string& label, const PointOf& point_of) {
  const auto finite = [](double value) { return std::isfinite(value); };
  const auto count = std::count_if(values.begin(), values.end(), finite);  // no early exit: vectorised
  if (count == std::ssize(values)) return;
  const auto i = static_cast<std::size_t>(std::find_if_not(values.begin(), values.end(), finite) - values.begin());
  const auto& [x, y, z] = point_of(i);
  throw InputError(fmt::format("{}the value is {} at the point ({:.6g}, {:.6g}, {:.6g}); it must be finite everywhere",
                               prefix(label), values[i], x, y, z));
}

}  // namespace

ScalarField::ScalarField(double value) : constant_(value) {}

ScalarField::ScalarField(std::function<double(const Point&)> f) {
  if (!f) throw InputError("a field needs a function, got an empty one");
  bulk_ = [f = std::move(f)](std::span<const Point> points, std::span<double> values) {
    for (std::size_t i = 0; i < points.size(); ++i) values[i] = f(points[i]);
  };
}

ScalarField::ScalarField(Bulk f, std::string label) : ScalarField(std::move(f), {}, std::move(label)) {}

ScalarField::ScalarField(Bulk f, OnGrid on_grid, std::string label)
    : bulk_(std::move(f)), on_grid_(std::move(on_grid)), label_(std::move(label)) {
  if (!bulk_) throw InputError(prefix(label_) + "a field needs a function, got an empty one");
}

ScalarField ScalarField::expression(const std::string& text, int dim, std::string label) {
  const Reader reader(text, dim, label);
  if (reader.constant()) {
    const double value = reader.value();
    if (!std::isfinite(value)) throw InputError(fmt::format("{}\"{}\" is {}", prefix(label), text, value));
    ScalarField field(value);
    field.set_label(std::move(label));
    return field;
  }
  const auto formula = std::make_shared<const Formula>(reader.formula());
  return {[formula](std::span<const Point> points, std::span<double> values) { formula->evaluate(points, values); },
          [formula](const Axes& axes, std::span<double> values) { formula->evaluate(axes, values); }, std::move(label)};
}

void ScalarField::evaluate(std::span<const Point> points, std::span<double> values) const {
  if (bulk_) {
    bulk_(points, values);
  } else {
    std::fill(values.begin(), values.end(), constant_);
  }
  require_finite(values.first(points.size()), label_, [&](std::size_t i) { return points[i]; });
}

void ScalarField::evaluate(const Axes& axes, std::span<double> values) const {
  const auto& [x, y, z] = axes;
  const auto point = [&x = x, &y = y, &z = z](std::size_t i) {
    return Point{x[i % x.size()], y[i / x.size() % y.size()], z[i / x.size() / y.size()]};
  };
  values = values.first(x.size() * y.size() * z.size());
  if (on_grid_) {
    on_grid_(axes, values);
  } else if (bulk_) {
    std::vector<Point> points(values.size());
    for (std::size_t i = 0; i < points.size(); ++i) points[i] = point(i);
    bulk_(points, values);
  } else {
    std::fill(values.begin(), values.end(), constant_);
  }
  require_finite(values, label_, point);
}

double ScalarField::operator()(const Point& point) const {
  double value = 0.0;
  evaluate({&point, 1}, {&value, 1});
  return value;
}

}  // namespace solenoid
