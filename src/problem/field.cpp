#include "solenoid/field.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "problem/label.hpp"
#include "solenoid/error.hpp"

namespace solenoid {
namespace {

/// \throws InputError with point_of(i) for the first value i that is not finite.
template <class PointOf>
void require_finite(std::span<const double> values, const std::string& label, const PointOf& point_of) {
  const auto finite = [](double value) { return std::isfinite(value); };
  const auto count = std::count_if(values.begin(), values.end(), finite);  // no early exit: vectorised
  if (count == std::ssize(values)) return;
  const auto i = static_cast<std::size_t>(std::find_if_not(values.begin(), values.end(), finite) - values.begin());
  const auto& [x, y, z] = point_of(i);
  throw InputError(fmt::format("{}the value is {} at the point ({:.6g}, {:.6g}, {:.6g}); it must be finite everywhere",
                               prefix(label), std::isnan(values[i]) ? std::abs(values[i]) : values[i], x, y, z));
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
