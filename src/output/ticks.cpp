#include "output/ticks.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace solenoid {

namespace {

constexpr double slack = 1e-9;  // of rounding, in steps

// floor(log10(x)), and the exponent itself for powers of ten.
int decimal_exponent(double x) { return static_cast<int>(std::floor(std::log10(x) + slack)); }

std::string formatted(const char* format, int digits, double value) {
  std::array<char, 400> text{};  // the longest number has 309 digits before the point
  std::snprintf(text.data(), text.size(), format, std::clamp(digits, 0, 17), value);
  return text.data();
}

std::string without_zeros(std::string number) {
  if (number.find('.') == std::string::npos) return number;
  number.erase(number.find_last_not_of('0') + 1);
  if (number.back() == '.') number.pop_back();
  return number;
}

}  // namespace

double nice_step(double range, int count) {
  const double raw = range / count;
  const double power = std::pow(10.0, decimal_exponent(raw));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (raw <= factor * power * (1 + slack)) return factor * power;
  }
  return 10.0 * power;
}

std::vector<double> multiples(double step, double low, double high) {
  constexpr int most = 100;
  std::vector<double> found;
  const double first = std::ceil(low / step - slack);
  for (int i = 0; i < most && (first + i) * step <= high + slack * step; ++i) {
    found.push_back((first + i) * step + 0.0);  // + 0.0: no -0
  }
  return found;
}

std::string number_label(double value, double resolution, double largest) {
  const int last = decimal_exponent(resolution);  // the power of ten of the last digit
  if (largest >= 1e-3 && largest < 1e5) {
    const std::string text = without_zeros(formatted("%.*f", -last, value));
    return text == "-0" ? "0" : text;
  }
  if (std::abs(value) < 0.5 * resolution) return "0";
  const std::string text = formatted("%.*e", decimal_exponent(std::abs(value)) - last, value);
  const std::size_t e = text.find('e');
  return without_zeros(text.substr(0, e)) + "e" + std::to_string(std::stoi(text.substr(e + 1)));
}

}  // namespace solenoid
