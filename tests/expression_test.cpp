#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
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
  const ScalarField callable([](const Point&) { return std::numeric_limits<double>::quiet_NaN(); });
  EXPECT_THROW((void)callable(points[0]), InputError);
  EXPECT_THROW((void)ScalarField(INFINITY)(points[0]), InputError);
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
  EXPECT_FALSE(callable.is_zero());
  EXPECT_THROW(ScalarField(std::function<double(const Point&)>{}), InputError);
}

}  // namespace
}  // namespace solenoid
