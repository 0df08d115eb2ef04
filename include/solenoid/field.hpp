#pragma once
/// \file
/// Scalar and vector fields given by users: constants, callables or expressions.

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "solenoid/mesh.hpp"

namespace solenoid {

class Formula;
class PointArray;
struct Program;

/// Names that stand for numbers in expressions, such as the time `t`, and their values.
using Parameters = std::map<std::string, double>;

/// The coordinates of a tensor grid: its points are (x[i], y[j], z[k]).
using Axes = std::array<std::span<const double>, 3>;

/// A real function of space, evaluated at many points in one call. Evaluation is safe from several threads at a time.
class ScalarField {
 public:
  /// values[i] = f(points[i]); must be callable from several threads at a time.
  using Bulk = std::function<void(std::span<const Point> points, std::span<double> values)>;
  /// The same on a tensor grid: values[i + nx (j + ny k)] = f(x[i], y[j], z[k]).
  using OnGrid = std::function<void(const Axes& axes, std::span<double> values)>;

  /// The constant `value`.
  ScalarField(double value = 0.0);  // NOLINT(google-explicit-constructor): a number is a field
  /// A callable double(const Point&).
  ScalarField(std::function<double(const Point&)> f);  // NOLINT(google-explicit-constructor)
  /// A bulk callable; `label` names it in error messages.
  ScalarField(Bulk f, std::string label);
  /// A bulk callable that has a faster way on grids.
  ScalarField(Bulk f, OnGrid on_grid, std::string label);
  /// The same, which is component `component` of an array.
  ScalarField(Bulk f, OnGrid on_grid, std::shared_ptr<const PointArray> array, int component, std::string label);
  /// An expression in x, y, z and parameters (muParser syntax; `pi` and `e` are known), for example "sin(pi*x)*y".
  /// `label` names it in error messages, for example "[physics] force[0]".
  /// \throws InputError with the position of a syntax error.
  static ScalarField expression(const std::string& text, int dim, std::string label = "",
                                const Parameters& parameters = {});
  /// A field, and where: where that is not 0.
  struct Piece;
  /// The field of the last piece that a point is in, and `elsewhere` in none. Fields are evaluated only where they
  /// count. What they have of parameters is as it is now: at() changes nothing.
  static ScalarField piecewise(ScalarField elsewhere, std::vector<Piece> pieces);
  /// The same expression with other values of those of its parameters that are in `values`, and of no others; a number
  /// or a function of the caller as it is. Nothing is parsed again. \throws InputError if it is the same everywhere and
  /// not finite.
  [[nodiscard]] ScalarField at(const Parameters& values) const;
  /// The parameters that an expression depends on, with the values that they have.
  [[nodiscard]] const Parameters& parameters() const { return parameters_; }

  /// Evaluates at all points. \throws InputError that names the field and the point where a value is not finite.
  void evaluate(std::span<const Point> points, std::span<double> values) const;
  /// Evaluates on a tensor grid. For expressions this is faster than point by point: what depends on one coordinate is
  /// computed once for each of its values.
  void evaluate(const Axes& axes, std::span<double> values) const;
  double operator()(const Point& point) const;

  /// True for the constant zero: lets callers skip work.
  [[nodiscard]] bool is_zero() const { return constant() == 0.0; }
  /// The value of a field that was given as a number.
  [[nodiscard]] std::optional<double> constant() const { return bulk_ ? std::nullopt : std::optional(constant_); }
  /// What an expression in space was compiled to, for engines that evaluate it themselves; nullptr for numbers and
  /// functions of the caller.
  [[nodiscard]] const Program* program() const { return program_.get(); }
  /// The array at Gauss points that this is a component of, for engines that evaluate it themselves; or nullptr.
  [[nodiscard]] const std::shared_ptr<const PointArray>& array() const { return array_; }
  [[nodiscard]] int component() const { return component_; }
  [[nodiscard]] const std::string& label() const { return label_; }
  void set_label(std::string label) { label_ = std::move(label); }

 private:
  static ScalarField of(Formula formula, Parameters parameters, std::string label);

  double constant_ = 0.0;
  Bulk bulk_;
  OnGrid on_grid_;  ///< or empty: then a grid is evaluated as points
  std::shared_ptr<const Program> program_;
  std::shared_ptr<const Formula> formula_;  ///< of an expression with parameters
  std::shared_ptr<const PointArray> array_;
  int component_ = 0;
  Parameters parameters_;
  std::string label_;
};

struct ScalarField::Piece {
  ScalarField where;
  ScalarField field;
};

/// Components in x, y, z; in 2D the last one is unused.
using VectorField = std::array<ScalarField, 3>;

[[nodiscard]] inline bool is_zero(const VectorField& f) { return f[0].is_zero() && f[1].is_zero() && f[2].is_zero(); }

}  // namespace solenoid
