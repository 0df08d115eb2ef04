#include <fmt/format.h>
#include <muParser.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <memory>
#include <mutex>
#include <numbers>
#include <span>
#include <string_view>
#include <vector>

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

/// One muParser with variables of its own: serves one thread at a time.
class Evaluator {
 public:
  Evaluator(const std::string& text, int dim, const std::string& label) : text_(text), dim_(dim), label_(label) {
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
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  double operator()(const Point& point) {
    point_ = point;
    return parser_.Eval();
  }
  /// Whether the value depends on the point.
  bool constant() { return parser_.GetUsedVar().empty(); }

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

/// Evaluators of one expression, one for each thread that evaluates it at a time. muParser's own bulk mode is not used:
/// it saves little and starts OpenMP threads inside ours.
class EvaluatorPool {
 public:
  EvaluatorPool(std::unique_ptr<Evaluator> first, std::string text, int dim) : text_(std::move(text)), dim_(dim) {
    idle_.push_back(std::move(first));
  }

  void evaluate(std::span<const Point> points, std::span<double> values) {
    auto evaluator = take();
    for (std::size_t i = 0; i < points.size(); ++i) values[i] = (*evaluator)(points[i]);
    const std::lock_guard lock(guard_);
    idle_.push_back(std::move(evaluator));
  }

 private:
  std::unique_ptr<Evaluator> take() {
    const std::lock_guard lock(guard_);
    if (idle_.empty()) return std::make_unique<Evaluator>(text_, dim_, "");
    auto evaluator = std::move(idle_.back());
    idle_.pop_back();
    return evaluator;
  }

  std::string text_;
  int dim_;
  std::mutex guard_;
  std::vector<std::unique_ptr<Evaluator>> idle_;
};

}  // namespace

ScalarField::ScalarField(double value) : constant_(value) {}

ScalarField::ScalarField(std::function<double(const Point&)> f) {
  if (!f) throw InputError("a field needs a function, got an empty one");
  bulk_ = [f = std::move(f)](std::span<const Point> points, std::span<double> values) {
    for (std::size_t i = 0; i < points.size(); ++i) values[i] = f(points[i]);
  };
}

ScalarField::ScalarField(Bulk f, std::string label) : bulk_(std::move(f)), label_(std::move(label)) {
  if (!bulk_) throw InputError(prefix(label_) + "a field needs a function, got an empty one");
}

ScalarField ScalarField::expression(const std::string& text, int dim, std::string label) {
  auto evaluator = std::make_unique<Evaluator>(text, dim, label);
  if (evaluator->constant()) {
    const double value = (*evaluator)({});
    if (!std::isfinite(value)) throw InputError(fmt::format("{}\"{}\" is {}", prefix(label), text, value));
    ScalarField field(value);
    field.set_label(std::move(label));
    return field;
  }
  auto pool = std::make_shared<EvaluatorPool>(std::move(evaluator), text, dim);
  return {[pool](std::span<const Point> points, std::span<double> values) { pool->evaluate(points, values); },
          std::move(label)};
}

void ScalarField::evaluate(std::span<const Point> points, std::span<double> values) const {
  if (bulk_) {
    bulk_(points, values);
  } else {
    std::fill(values.begin(), values.end(), constant_);
  }
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    const auto& [x, y, z] = points[i];
    throw InputError(
        fmt::format("{}the value is {} at the point ({:.6g}, {:.6g}, {:.6g}); it must be finite everywhere",
                    prefix(label_), values[i], x, y, z));
  }
}

double ScalarField::operator()(const Point& point) const {
  double value = 0.0;
  evaluate({&point, 1}, {&value, 1});
  return value;
}

}  // namespace solenoid
