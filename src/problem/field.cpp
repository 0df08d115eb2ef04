#include "solenoid/field.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "problem/label.hpp"
#include "problem/program.hpp"
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

std::size_t count_of(const Axes& axes) { return axes[0].size() * axes[1].size() * axes[2].size(); }

Point point_of(const Axes& axes, std::size_t i) {
  const auto& [x, y, z] = axes;
  return {x[i % x.size()], y[i / x.size() % y.size()], z[i / x.size() / y.size()]};
}

std::vector<Point> points_of(const Axes& axes) {
  std::vector<Point> points(count_of(axes));
  for (std::size_t i = 0; i < points.size(); ++i) points[i] = point_of(axes, i);
  return points;
}

/// Appends instructions, and returns the place of their result.
int append(const Program& program, Program& to) {
  const auto offset = static_cast<int>(to.instructions.size());
  for (Program::Instruction instruction : program.instructions) {
    for (int& operand : instruction.operand) operand += operand < 0 ? 0 : offset;
    to.instructions.push_back(instruction);
  }
  return static_cast<int>(to.instructions.size()) - 1;
}

/// Of a field of pieces, if all of them have one.
std::shared_ptr<const Program> joined_program(const ScalarField& elsewhere,
                                              const std::vector<ScalarField::Piece>& pieces) {
  const auto first = program_of(elsewhere);
  if (!first) return nullptr;
  auto joined = std::make_shared<Program>(*first);
  int result = static_cast<int>(joined->instructions.size()) - 1;
  for (const auto& [where, field] : pieces) {
    const auto inside = program_of(where);
    const auto there = program_of(field);
    if (!inside || !there) return nullptr;
    Program::Instruction select{.op = Program::Op::select};
    select.operand = {append(*inside, *joined), append(*there, *joined), result};
    for (const int operand : select.operand) select.axes |= joined->instructions[operand].axes;
    joined->instructions.push_back(select);
    result = static_cast<int>(joined->instructions.size()) - 1;
  }
  return joined;
}

/// Values of pieces at points, those of the last one that a point is in.
void evaluate_pieces(const ScalarField& elsewhere, const std::vector<ScalarField::Piece>& pieces,
                     std::span<const Point> points, std::span<double> values) {
  std::vector<std::size_t> left(points.size());  // points whose piece is not known yet
  std::iota(left.begin(), left.end(), std::size_t{0});
  std::vector<Point> at;
  std::vector<double> found;
  const auto evaluate = [&](const ScalarField& field, const std::vector<std::size_t>& places) {
    at.clear();
    for (const std::size_t i : places) at.push_back(points[i]);
    found.resize(at.size());
    field.evaluate(at, found);
  };
  const auto set = [&](const ScalarField& field, const std::vector<std::size_t>& places) {
    evaluate(field, places);
    for (std::size_t i = 0; i < places.size(); ++i) values[places[i]] = found[i];
  };
  for (auto piece = pieces.rbegin(); piece != pieces.rend() && !left.empty(); ++piece) {
    evaluate(piece->where, left);
    std::vector<std::size_t> inside;
    std::vector<std::size_t> outside;
    for (std::size_t i = 0; i < left.size(); ++i) (found[i] != 0.0 ? inside : outside).push_back(left[i]);
    if (!inside.empty()) set(piece->field, inside);
    left = std::move(outside);
  }
  if (!left.empty()) set(elsewhere, left);
}

/// The field that all points of a grid take their values from, or nullptr where several do.
const ScalarField* field_of_all(const ScalarField& elsewhere, const std::vector<ScalarField::Piece>& pieces,
                                const Axes& axes) {
  std::vector<double> inside(count_of(axes));
  for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
    piece->where.evaluate(axes, inside);
    const auto zeros = std::count(inside.begin(), inside.end(), 0.0);
    if (zeros == 0) return &piece->field;
    if (zeros < std::ssize(inside)) return nullptr;
  }
  return &elsewhere;
}

}  // namespace

std::optional<Program> program_of(const ScalarField& field) {
  if (const auto constant = field.constant()) return Program{{{.value = *constant}}};
  return field.program() == nullptr ? std::nullopt : std::optional(*field.program());
}

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

ScalarField::ScalarField(Bulk f, OnGrid on_grid, std::shared_ptr<const PointArray> array, int component,
                         std::string label)
    : ScalarField(std::move(f), std::move(on_grid), std::move(label)) {
  array_ = std::move(array);
  component_ = component;
}

ScalarField ScalarField::piecewise(ScalarField elsewhere, std::vector<Piece> pieces) {
  if (pieces.empty()) return elsewhere;
  auto program = joined_program(elsewhere, pieces);
  const auto all =
      std::make_shared<const std::pair<ScalarField, std::vector<Piece>>>(std::move(elsewhere), std::move(pieces));
  const auto at_points = [all](std::span<const Point> points, std::span<double> values) {
    evaluate_pieces(all->first, all->second, points, values);
  };
  const auto on_grid = [all](const Axes& axes, std::span<double> values) {
    if (const ScalarField* const field = field_of_all(all->first, all->second, axes)) {
      return field->evaluate(axes, values);
    }
    evaluate_pieces(all->first, all->second, points_of(axes), values);
  };
  ScalarField result(at_points, on_grid, all->first.label());
  result.program_ = std::move(program);
  return result;
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
  values = values.first(count_of(axes));
  if (on_grid_) {
    on_grid_(axes, values);
  } else if (bulk_) {
    bulk_(points_of(axes), values);
  } else {
    std::fill(values.begin(), values.end(), constant_);
  }
  require_finite(values, label_, [&](std::size_t i) { return point_of(axes, i); });
}

double ScalarField::operator()(const Point& point) const {
  double value = 0.0;
  evaluate({&point, 1}, {&value, 1});
  return value;
}

}  // namespace solenoid
