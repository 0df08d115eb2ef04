#pragma once
/// \file
/// A parsed expression as a short program over arrays, so that evaluation costs little more than its arithmetic.

#include <array>
#include <span>
#include <vector>

#include "problem/program.hpp"
#include "solenoid/field.hpp"

namespace mu {
class Parser;
}

namespace solenoid {

/// Instructions work on arrays of values, subexpressions that occur repeatedly are computed once, and on a tensor grid
/// every subexpression is computed for the coordinates that it depends on only. Values agree with muParser's to a few
/// roundings. Evaluation is safe from several threads at a time.
class Formula {
 public:
  /// Translates what `parser` has parsed; `variables` are where its x, y and z lie, `parameters` its others.
  Formula(const mu::Parser& parser, const Point& variables, std::span<const double* const> parameters);
  /// The same with other values of the parameters.
  [[nodiscard]] Formula at(std::span<const double> parameters) const;

  void evaluate(std::span<const Point> points, std::span<double> values) const;
  /// values[i + nx (j + ny k)] = f(x[i], y[j], z[k]).
  void evaluate(const Axes& axes, std::span<double> values) const;
  [[nodiscard]] Program program() const { return {{nodes_.begin(), nodes_.end()}}; }
  /// Whether the values depend on the point.
  [[nodiscard]] bool varies() const { return nodes_.back().axes != 0; }

 private:
  using Op = Program::Op;
  using One = double (*)(double);
  using Two = double (*)(double, double);
  struct Node : Program::Instruction {
    One one = nullptr;
    Two two = nullptr;
    int parameter = -1;  ///< which one a constant is the value of
    int slot = 0;        ///< where its values are kept; given to other nodes when they are no longer needed

    [[nodiscard]] bool same_as(const Node& other) const;
  };

  int add(Node node);
  int add(Op op, int a, int b = -1, int c = -1) { return add(Node{{.op = op, .operand = {a, b, c}}}); }
  int add_constant(double value) { return add(Node{{.value = value}}); }
  int add_coordinate(int a) { return add(Node{{.op = Op::coordinate, .axes = 1 << a}}); }
  int add_power(int base, int exponent);
  void assign_slots();
  /// `scattered`: the coordinates are those of points, all along axis 0, instead of a grid's.
  void run(const Axes& coordinates, bool scattered, std::span<double> values) const;

  std::vector<Node> nodes_;  // the last one is the result
  int slots_ = 0;
};

}  // namespace solenoid
