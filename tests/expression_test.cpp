#include <fmt/format.h>
#include <gtest/gtest.h>
#include <muParser.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "solenoid/error.hpp"
#include "solenoid/field.hpp"

namespace solenoid {
namespace {

std::string message(const std::string& text, int dim = 3) {
  try {
    ScalarField::expression(text, dim, "[physics] force[0]");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

void expect_contains(const std::string& text, const std::vector<std::string>& parts) {
  for (const auto& part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
}

TEST(Expression, ValuesAtPoints) {
  const Point p{0.3, -0.7, 1.9};
  const auto [x, y, z] = p;
  const auto value = [&](const char* text) { return ScalarField::expression(text, 3)(p); };
  EXPECT_DOUBLE_EQ(value("sin(pi*x)*y"), std::sin(std::numbers::pi * x) * y);
  EXPECT_DOUBLE_EQ(value("e^z - log10(z) + ln(z)"), std::pow(std::numbers::e, z) - std::log10(z) + std::log(z));
  EXPECT_DOUBLE_EQ(value("-x^2"), -x * x);
  EXPECT_DOUBLE_EQ(value("2^3^2"), 512.0);
  EXPECT_DOUBLE_EQ(value("max(x, y, z) - min(x, y) + abs(y)"), z - y - y);
  EXPECT_DOUBLE_EQ(value("sqrt(z)*exp(-x)*cos(y)/tanh(z)"), std::sqrt(z) * std::exp(-x) * std::cos(y) / std::tanh(z));
  EXPECT_DOUBLE_EQ(value("x < y ? 1 : 2"), 2.0);
  EXPECT_DOUBLE_EQ(value("1e-3*z"), 1.9e-3);
  EXPECT_DOUBLE_EQ(value("x\n + y"), x + y);
}

TEST(Expression, ConstantsAreRecognised) {
  EXPECT_TRUE(ScalarField::expression("0", 2).is_zero());
  EXPECT_TRUE(ScalarField::expression("2 - 2.0", 2).is_zero());
  EXPECT_FALSE(ScalarField::expression("pi", 2).is_zero());
  EXPECT_FALSE(ScalarField::expression("0*x", 2).is_zero());
  EXPECT_TRUE(is_zero(VectorField{}));
}

TEST(Expression, ErrorsNamePositionTextAndLabel) {
  expect_contains(message("sin(pi*x"), {"[physics] force[0]", "sin(pi*x", "position 9"});
  expect_contains(message("2*sni(x)"),
                  {"[physics] force[0]", "unknown name `sni`", "position 3", "did you mean `sin`"});
  expect_contains(message("x + w"), {"unknown name `w`", "position 5"});
  expect_contains(message("x + z", 2), {"unknown name `z`", "`x`, `y`, `pi`"});
  expect_contains(message("sin x"), {"the function `sin` needs parentheses: `sin(...)`", "position 1"});
  expect_contains(message(""), {"[physics] force[0]", "nothing"});
  expect_contains(message("x = 3"), {"`=`", "position 3"});
  expect_contains(message("x, y"), {"one value", "position 2"});
  expect_contains(message("x +* y"), {"[physics] force[0]", "position"});
  expect_contains(message("1/0"), {"[physics] force[0]", "inf"});
  EXPECT_EQ(message("x >= 0 && y != 1 || z == 2 ? 1 : 0"), "no error");
}

TEST(Expression, ValuesThatAreNotFiniteNameFieldAndPoint) {
  const auto field = ScalarField::expression("1/(x - 0.5)", 2, "[exact] pressure");
  const std::vector<Point> points{{0.25, 0.0, 0.0}, {0.5, 0.125, 0.0}};
  std::vector<double> values(2);
  try {
    field.evaluate(points, values);
    FAIL() << "no error";
  } catch (const InputError& error) {
    expect_contains(error.what(), {"[exact] pressure", "inf", "(0.5, 0.125, 0)"});
  }
  try {
    const std::vector<double> x{0.25, 0.5};
    const std::vector<double> y{0.125, 0.25};
    const std::vector<double> z{0.0};
    std::vector<double> on_grid(4);
    field.evaluate(Axes{x, y, z}, on_grid);
    FAIL() << "no error";
  } catch (const InputError& error) {
    expect_contains(error.what(), {"[exact] pressure", "inf", "(0.5, 0.125, 0)"});
  }
  const ScalarField callable([](const Point&) { return std::numeric_limits<double>::quiet_NaN(); });
  EXPECT_THROW((void)callable(points[0]), InputError);
  EXPECT_THROW((void)ScalarField(INFINITY)(points[0]), InputError);
}

/// A random expression in x, y, z, whose values and derivatives are moderate.
std::string random_expression(std::mt19937& engine, int depth) {
  const auto pick = [&](int count) { return std::uniform_int_distribution<int>(0, count - 1)(engine); };
  const auto next = [&] { return random_expression(engine, depth - 1); };
  if (depth == 0) {
    constexpr std::array<const char*, 8> leaves{"x", "y", "z", "pi*x", "2*y + 1", "0.7", "e", "z^2"};
    return fmt::format("({})", leaves[pick(leaves.size())]);
  }
  switch (pick(20)) {
    case 0:
    case 1:
    case 2: return fmt::format("({} + {})", next(), next());
    case 3:
    case 4: return fmt::format("({} - {})", next(), next());
    case 5:
    case 6: return fmt::format("sin({})*{}", next(), next());
    case 7: return fmt::format("({}/(1.5 + cos({})))", next(), next());
    case 8: return fmt::format("tanh({})^{}", next(), 2 + pick(4));
    case 9: return fmt::format("exp(-abs({}))^0.4", next());
    case 10: return fmt::format("(-sqrt(abs({})))", next());
    case 11: return fmt::format("atan2({}, 3 + sin({}))", next(), next());
    case 12: return fmt::format("max({}, {}, {})", next(), next(), next());
    case 13: return fmt::format("min({}, {})", next(), next());
    case 14: return fmt::format("sum({}, {}, {})", next(), next(), next());
    case 15: return fmt::format("avg({}, {})", next(), next());
    case 16: return fmt::format("({} < {} ? {} : {})", next(), next(), next(), next());
    case 17: return fmt::format("({} >= 0.3 && {} != 0.2 ? {} : {})", next(), next(), next(), next());
    case 18: return fmt::format("(x > 0.4 || {} <= 0.5)*{}", next(), next());
    default: return fmt::format("ln(2 + abs({}))", next());
  }
}

TEST(Expression, AgreesWithMuParserOnPointsAndGrids) {
  std::mt19937 engine(1);
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  const auto random_numbers = [&](std::size_t count) {
    std::vector<double> numbers(count);
    for (double& number : numbers) number = uniform(engine);
    return numbers;
  };
  for (int round = 0; round < 500; ++round) {
    const std::string text = random_expression(engine, 1 + round % 5);
    const auto field = ScalarField::expression(text, 3);
    Point at{};
    mu::Parser parser;
    parser.DefineVar("x", &at[0]);
    parser.DefineVar("y", &at[1]);
    parser.DefineVar("z", &at[2]);
    parser.DefineConst("pi", std::numbers::pi);
    parser.DefineConst("e", std::numbers::e);
    parser.SetExpr(text);
    const std::array<std::vector<double>, 3> axes{random_numbers(13), random_numbers(5), random_numbers(4 + round % 2)};
    std::vector<Point> points;
    for (const double z : axes[2]) {
      for (const double y : axes[1]) {
        for (const double x : axes[0]) points.push_back({x, y, z});
      }
    }
    std::vector<double> on_points(points.size());
    std::vector<double> on_grid(points.size());
    field.evaluate(points, on_points);
    field.evaluate(Axes{axes[0], axes[1], axes[2]}, on_grid);
    for (std::size_t i = 0; i < points.size(); ++i) {
      at = points[i];
      const double expected = parser.Eval();
      ASSERT_NEAR(on_points[i], expected, 1e-14 * std::max(1.0, std::abs(expected))) << text;
      ASSERT_EQ(on_grid[i], on_points[i]) << text;
    }
  }
}

/// Random expressions with parameters: at any values those of the expression that has numbers in their place.
TEST(Expression, HasParameters) {
  std::mt19937 engine(2);
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  const std::vector<Point> points{{0.3, -0.2, 0.9}, {-0.7, 0.1, 0.4}, {0.5, 0.6, -0.8}};
  const auto values = [&](const ScalarField& field) {
    std::vector<double> result(points.size());
    field.evaluate(points, result);
    return result;
  };
  int varied = 0;
  for (int round = 0; round < 200; ++round) {
    const std::string text = fmt::format("{} + t^2*({}) - omega^t*{}*t", random_expression(engine, round % 4),
                                         random_expression(engine, round % 3), round % 2 == 0 ? "y" : "2");
    const auto field = ScalarField::expression(text, 3, "f", {{"t", 0.5}, {"omega", 2.0}, {"unused", 1.0}});
    EXPECT_EQ(field.parameters(), (Parameters{{"omega", 2.0}, {"t", 0.5}}));
    const Parameters other{{"t", uniform(engine)}, {"omega", 1.5 + uniform(engine)}, {"unknown", 3.0}};
    const ScalarField changed = field.at(other);
    EXPECT_EQ(changed.label(), "f");
    EXPECT_EQ(changed.parameters(), (Parameters{{"omega", other.at("omega")}, {"t", other.at("t")}}));
    const std::string numbers = fmt::format("(t = {:.17g}, omega = {:.17g})", other.at("t"), other.at("omega"));
    const auto found = values(changed);
    const auto there_and_back = values(changed.at({{"t", 0.5}}).at({{"omega", 2.0}}));
    EXPECT_EQ(there_and_back, values(field)) << text << numbers;
    for (std::size_t i = 0; i < points.size(); ++i) {
      Point at = points[i];
      mu::Parser parser;
      constexpr std::array<const char*, 3> names{"x", "y", "z"};
      for (int a = 0; a < 3; ++a) parser.DefineVar(names[a], &at[a]);
      for (const auto& [name, value] : other) parser.DefineConst(name, value);
      parser.DefineConst("pi", std::numbers::pi);
      parser.DefineConst("e", std::numbers::e);
      parser.SetExpr(text);
      const double expected = parser.Eval();
      EXPECT_NEAR(found[i], expected, 1e-13 * std::max(1.0, std::abs(expected))) << text << numbers;
    }
    varied += found == values(field) ? 0 : 1;
  }
  EXPECT_GT(varied, 190);
}

TEST(Expression, OfParametersAloneIsANumber) {
  const auto field = ScalarField::expression("1/t - 2", 2, "[physics] force[0]", {{"t", 0.5}});
  EXPECT_TRUE(field.is_zero());
  EXPECT_EQ(field.program(), nullptr);
  EXPECT_EQ(field.at({{"t", 0.25}}).constant(), 2.0);
  EXPECT_FALSE(ScalarField::expression("x*t", 2, "", {{"t", 0.0}}).constant().has_value());
  EXPECT_EQ(ScalarField(3.0).at({{"t", 1.0}}).constant(), 3.0);
  try {
    (void)field.at({{"t", 0.0}});
    FAIL() << "no error";
  } catch (const InputError& error) {
    expect_contains(error.what(), {"[physics] force[0]", "inf", "t = 0"});
  }
}

TEST(Expression, NamesOfParameters) {
  const auto refused = [](const std::string& name) {
    try {
      ScalarField::expression("x", 2, "f", {{name, 1.0}});
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  for (const char* name : {"t", "omega", "_a1", "Re"}) EXPECT_EQ(refused(name), "no error");
  expect_contains(refused("z"), {"f", "`z`", "coordinate"});
  expect_contains(refused("pi"), {"number"});
  expect_contains(refused("sin"), {"function"});
  for (const char* name : {"", "1a", "a-b", "a b"}) expect_contains(refused(name), {"letters"});
  try {
    ScalarField::expression("x*omga", 2, "", {{"omega", 1.0}});
    FAIL() << "no error";
  } catch (const InputError& error) {
    expect_contains(error.what(), {"unknown name `omga`", "did you mean `omega`"});
  }
}

TEST(Expression, ThreadsDoNotDisturbEachOther) {
  const auto field = ScalarField::expression("sin(x)*exp(y) + x^3", 2);
  std::vector<int> wrong(8, 0);
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < wrong.size(); ++t) {
      threads.emplace_back([&field, &wrong, t] {
        std::vector<Point> points(100);
        std::vector<double> values(points.size());
        for (int round = 0; round < 200; ++round) {
          for (std::size_t i = 0; i < points.size(); ++i) points[i] = {0.01 * i + 0.1 * t, 0.001 * round, 0.0};
          field.evaluate(points, values);
          for (std::size_t i = 0; i < points.size(); ++i) {
            const auto [x, y, z] = points[i];
            if (std::abs(values[i] - (std::sin(x) * std::exp(y) + x * x * x)) > 1e-12) ++wrong[t];
          }
        }
      });
    }
  }
  for (const int count : wrong) EXPECT_EQ(count, 0);
}

TEST(Field, ConstantsAndCallables) {
  const ScalarField constant = 2.5;
  const ScalarField callable([](const Point& p) { return p[0] + 2 * p[1]; });
  const ScalarField bulk(
      [](std::span<const Point> points, std::span<double> values) {
        for (std::size_t i = 0; i < points.size(); ++i) values[i] = points[i][2];
      },
      "height");
  const Point p{1, 2, 3};
  EXPECT_EQ(constant(p), 2.5);
  EXPECT_EQ(callable(p), 5.0);
  EXPECT_EQ(bulk(p), 3.0);
  EXPECT_EQ(bulk.label(), "height");
  const std::vector<double> x{1, 2};
  const std::vector<double> y{3, 4, 5};
  const std::vector<double> z{6, 7};
  std::vector<double> values(12);
  callable.evaluate(Axes{x, y, z}, values);
  EXPECT_EQ(values, (std::vector<double>{7, 8, 9, 10, 11, 12, 7, 8, 9, 10, 11, 12}));
  bulk.evaluate(Axes{x, y, z}, values);
  EXPECT_EQ(values, (std::vector<double>{6, 6, 6, 6, 6, 6, 7, 7, 7, 7, 7, 7}));
  constant.evaluate(Axes{x, y, z}, values);
  EXPECT_EQ(values, std::vector<double>(12, 2.5));
  EXPECT_FALSE(callable.is_zero());
  EXPECT_THROW(ScalarField(std::function<double(const Point&)>{}), InputError);
}

}  // namespace
}  // namespace solenoid
