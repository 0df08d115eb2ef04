#include "case/formula.hpp"

#include <muParser.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace solenoid {
namespace {

/// An array of values on those axes of a grid that it depends on.
struct Operand {
  const double* data = nullptr;
  int axes = 0;

  [[nodiscard]] bool along(int a) const { return (axes >> a & 1) != 0; }
};

/// The extents of a grid; the first axis is the fastest.
using Extent = std::array<std::int64_t, 3>;

/// A row of an operand: a number for each point, or one for all.
struct Row {
  const double* data;
  bool varies;
};

/// row(count, result, rows of the operands) for all rows of the result; where operands are as long as it or single
/// numbers, the whole is one row.
template <std::size_t operands, class F>
void for_rows(const Extent& grid, int axes, double* result, const std::array<Operand, operands>& operand, F&& row) {
  Extent extent{1, 1, 1};
  for (int a = 0; a < 3; ++a) {
    if ((axes >> a & 1) != 0) extent[a] = grid[a];
  }
  std::array<Row, operands> rows{};
  const auto whole = [&](const Operand& o) { return o.axes == axes || o.axes == 0; };
  if (std::all_of(operand.begin(), operand.end(), whole)) {
    for (std::size_t i = 0; i < operands; ++i) rows[i] = {operand[i].data, operand[i].axes != 0};
    return row(extent[0] * extent[1] * extent[2], result, rows);
  }
  for (std::int64_t k = 0; k < extent[2]; ++k) {
    for (std::int64_t j = 0; j < extent[1]; ++j) {
      for (std::size_t i = 0; i < operands; ++i) {
        const Operand& o = operand[i];
        const std::int64_t line = o.along(0) ? grid[0] : 1;
        const std::int64_t plane = o.along(1) ? line * grid[1] : line;
        rows[i] = {o.data + (o.along(1) ? j * line : 0) + (o.along(2) ? k * plane : 0), o.along(0)};
      }
      row(extent[0], result, rows);
      result += extent[0];
    }
  }
}

/// result = f(a, b) for every point.
template <class F>
void binary(const Extent& grid, int axes, double* result, const std::array<Operand, 2>& operands, F f) {
  for_rows(grid, axes, result, operands, [f](std::int64_t count, double* __restrict r, const std::array<Row, 2>& rows) {
    const double* __restrict a = rows[0].data;
    const double* __restrict b = rows[1].data;
    if (rows[0].varies && rows[1].varies) {
      for (std::int64_t i = 0; i < count; ++i) r[i] = f(a[i], b[i]);
    } else if (rows[0].varies) {
      for (std::int64_t i = 0; i < count; ++i) r[i] = f(a[i], *b);
    } else if (rows[1].varies) {
      for (std::int64_t i = 0; i < count; ++i) r[i] = f(*a, b[i]);
    } else {
      std::fill_n(r, count, f(*a, *b));
    }
  });
}

using RawFunction = decltype(mu::SToken{}.Fun.cb._pRawFun);

/// What muParser calls for a sign before x; nullptr if it calls nothing.
RawFunction sign_function(const char* text) {
  mu::Parser parser;
  double x = 0.0;
  parser.DefineVar("x", &x);
  parser.SetExpr(text);
  parser.Eval();
  const mu::ParserByteCode& code = parser.GetByteCode();
  const auto* const end = code.GetBase() + code.GetSize();
  const auto* const found =
      std::find_if(code.GetBase(), end, [](const auto& token) { return token.Cmd == mu::cmFUNC; });
  return found == end ? nullptr : found->Fun.cb._pRawFun;
}

/// Which function of muParser's an instruction calls. (Its `log` is `ln`.)
Program::Function function_at(const mu::Parser& parser, const mu::SToken& token) {
  using F = Program::Function;
  constexpr std::array<std::pair<const char*, F>, 21> names{{
      {"sin", F::sin},     {"cos", F::cos},     {"tan", F::tan},   {"asin", F::asin}, {"acos", F::acos},
      {"atan", F::atan},   {"sinh", F::sinh},   {"cosh", F::cosh}, {"tanh", F::tanh}, {"asinh", F::asinh},
      {"acosh", F::acosh}, {"atanh", F::atanh}, {"exp", F::exp},   {"ln", F::log},    {"log2", F::log2},
      {"log10", F::log10}, {"sqrt", F::sqrt},   {"abs", F::abs},   {"rint", F::rint}, {"sign", F::sign},
      {"atan2", F::atan2},
  }};
  static const RawFunction plus = sign_function("+x");
  static const RawFunction minus = sign_function("-x");
  if (token.Fun.cb._pRawFun == plus) return F::plus;
  if (token.Fun.cb._pRawFun == minus) return F::minus;
  const auto& known = parser.GetFunDef();
  for (const auto& [name, function] : names) {
    const auto found = known.find(name);
    if (found != known.end() && found->second.GetAddr() == reinterpret_cast<void*>(token.Fun.cb._pRawFun)) {
      return function;
    }
  }
  return F::other;
}

}  // namespace

bool Formula::Node::same_as(const Node& other) const {
  return op == other.op && operand == other.operand && one == other.one && two == other.two &&
         parameter == other.parameter &&
         std::bit_cast<std::uint64_t>(value) == std::bit_cast<std::uint64_t>(other.value) &&
         (op != Op::coordinate || axes == other.axes);
}

int Formula::add(Node node) {
  for (const int i : node.operand) {
    if (i >= 0) node.axes |= nodes_[i].axes;
  }
  const auto known = std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& n) { return n.same_as(node); });
  if (known != nodes_.end()) return static_cast<int>(known - nodes_.begin());
  nodes_.push_back(node);
  return static_cast<int>(nodes_.size()) - 1;
}

int Formula::add_power(int base, int exponent) {
  const int square = add(Op::multiply, base, base);
  return exponent == 2 ? square : exponent == 3 ? add(Op::multiply, square, base) : add(Op::multiply, square, square);
}

Formula Formula::at(std::span<const double> parameters) const {
  Formula other = *this;
  for (Node& node : other.nodes_) {
    if (node.parameter >= 0) node.value = parameters[node.parameter];
  }
  return other;
}

Formula::Formula(const mu::Parser& parser, const Point& variables, std::span<const double* const> parameters) {
  const mu::ParserByteCode& code = parser.GetByteCode();
  std::vector<int> stack;
  const auto pop = [&] {
    const int top = stack.back();
    stack.pop_back();
    return top;
  };
  const auto variable = [&](const mu::SToken& token) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (token.Val.ptr != parameters[i]) continue;
      Node node{{.value = *parameters[i]}};
      node.parameter = static_cast<int>(i);
      return add(node);
    }
    return add_coordinate(static_cast<int>(token.Val.ptr - variables.data()));
  };
  const auto binary = [&](Op op) {
    const int b = pop();
    const int a = pop();
    stack.push_back(add(op, a, b));
  };
  const auto call = [&](const mu::SToken& token) {
    const auto function = token.Fun.cb._pRawFun;
    if (token.Fun.argc == 1) {
      stack.push_back(add(Node{{.op = Op::call_one, .function = function_at(parser, token), .operand = {pop(), -1, -1}},
                               reinterpret_cast<One>(function)}));
    } else if (token.Fun.argc == 2) {
      const int b = pop();
      const int a = pop();
      stack.push_back(add(Node{{.op = Op::call_two, .function = function_at(parser, token), .operand = {a, b, -1}},
                               nullptr,
                               reinterpret_cast<Two>(function)}));
    } else {  // of any number of arguments
      const auto is = [&](const char* name) {
        const auto& known = parser.GetFunDef();
        const auto found = known.find(name);
        return found != known.end() && found->second.GetAddr() == reinterpret_cast<void*>(function);
      };
      const int count = -token.Fun.argc;
      const bool sum = is("sum") || is("avg");
      if (count < 1 || !(sum || is("min") || is("max"))) throw std::logic_error("a function of muParser is not known");
      const Two smaller = [](double a, double b) { return std::min(a, b); };
      const Two larger = [](double a, double b) { return std::max(a, b); };
      const std::vector<int> arguments(stack.end() - count, stack.end());
      stack.resize(stack.size() - count);
      int result = arguments[0];
      for (int i = 1; i < count; ++i) {
        const std::array<int, 3> operands{result, arguments[i], -1};
        const auto which = is("min") ? Program::Function::min : Program::Function::max;
        result = sum ? add(Op::add, result, arguments[i])
                     : add(Node{{.op = Op::call_two, .function = which, .operand = operands},
                                nullptr,
                                is("min") ? smaller : larger});
      }
      stack.push_back(is("avg") ? add(Op::divide, result, add_constant(count)) : result);
    }
  };
  for (std::size_t i = 0; i < code.GetSize(); ++i) {
    const mu::SToken& token = code.GetBase()[i];
    switch (token.Cmd) {
      case mu::cmLE: binary(Op::less_equal); break;
      case mu::cmGE: binary(Op::greater_equal); break;
      case mu::cmNEQ: binary(Op::not_equal); break;
      case mu::cmEQ: binary(Op::equal); break;
      case mu::cmLT: binary(Op::less); break;
      case mu::cmGT: binary(Op::greater); break;
      case mu::cmADD: binary(Op::add); break;
      case mu::cmSUB: binary(Op::subtract); break;
      case mu::cmMUL: binary(Op::multiply); break;
      case mu::cmDIV: binary(Op::divide); break;
      case mu::cmLAND: binary(Op::both); break;
      case mu::cmLOR: binary(Op::either); break;
      case mu::cmPOW: {
        const Node& exponent = nodes_[stack.back()];
        const double value = exponent.op == Op::constant && exponent.parameter < 0 ? exponent.value : 0.0;
        if (value == 2.0 || value == 3.0 || value == 4.0) {
          pop();
          stack.push_back(add_power(pop(), static_cast<int>(value)));
        } else {
          binary(Op::power);
        }
        break;
      }
      case mu::cmVAR: stack.push_back(variable(token)); break;
      case mu::cmVAL: stack.push_back(add_constant(token.Val.data2)); break;
      case mu::cmVARPOW2: stack.push_back(add_power(variable(token), 2)); break;
      case mu::cmVARPOW3: stack.push_back(add_power(variable(token), 3)); break;
      case mu::cmVARPOW4: stack.push_back(add_power(variable(token), 4)); break;
      case mu::cmVARMUL: {  // x * data + data2
        int value = variable(token);
        if (token.Val.data != 1.0) value = add(Op::multiply, value, add_constant(token.Val.data));
        if (token.Val.data2 != 0.0) value = add(Op::add, value, add_constant(token.Val.data2));
        stack.push_back(value);
        break;
      }
      case mu::cmFUNC: call(token); break;
      case mu::cmIF:
      case mu::cmELSE: break;  // both branches are computed, ENDIF selects
      case mu::cmENDIF: {
        const int otherwise = pop();
        const int then = pop();
        stack.push_back(add(Op::select, pop(), then, otherwise));
        break;
      }
      case mu::cmEND: break;
      default: throw std::logic_error("an instruction of muParser is not known");
    }
  }
  assign_slots();
}

void Formula::assign_slots() {
  std::vector<std::size_t> last_use(nodes_.size());
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    for (const int operand : nodes_[i].operand) {
      if (operand >= 0) last_use[operand] = i;
    }
  }
  std::vector<int> free;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    Node& node = nodes_[i];
    if (node.op == Op::constant || node.op == Op::coordinate) continue;
    if (free.empty()) free.push_back(slots_++);
    node.slot = free.back();
    free.pop_back();
    for (std::size_t j = 0; j < node.operand.size(); ++j) {
      const int operand = node.operand[j];
      const bool again = std::find(node.operand.begin(), node.operand.begin() + j, operand) != node.operand.begin() + j;
      if (operand < 0 || again || last_use[operand] != i) continue;
      const Op op = nodes_[operand].op;
      if (op != Op::constant && op != Op::coordinate) free.push_back(nodes_[operand].slot);
    }
  }
}

void Formula::evaluate(std::span<const Point> points, std::span<double> values) const {
  constexpr std::size_t block = 256;
  std::array<std::array<double, block>, 3> coordinates;
  for (std::size_t begin = 0; begin < points.size(); begin += block) {
    const std::size_t count = std::min(block, points.size() - begin);
    for (std::size_t i = 0; i < count; ++i) {
      for (int a = 0; a < 3; ++a) coordinates[a][i] = points[begin + i][a];
    }
    const auto along = [&](int a) { return std::span<const double>(coordinates[a].data(), count); };
    run({along(0), along(1), along(2)}, true, values.subspan(begin, count));
  }
}

void Formula::evaluate(const Axes& axes, std::span<double> values) const { run(axes, false, values); }

void Formula::run(const Axes& coordinates, bool scattered, std::span<double> values) const {
  const auto length = [&](int a) { return static_cast<std::int64_t>(coordinates[a].size()); };
  const Extent grid{length(0), scattered ? 1 : length(1), scattered ? 1 : length(2)};
  const auto axes_of = [&](const Node& node) { return scattered ? (node.axes == 0 ? 0 : 1) : node.axes; };
  // An odd number of cache lines, so that slots do not compete for the same sets of the cache.
  const std::size_t stride = (values.size() + 7) / 16 * 16 + 8;
  thread_local std::vector<double> memory;
  if (memory.size() < slots_ * stride) memory.resize(slots_ * stride);
  const auto operand = [&](int i) -> Operand {
    const Node& node = nodes_[i];
    switch (node.op) {
      case Op::constant: return {&node.value, 0};
      case Op::coordinate:
        return {coordinates[std::countr_zero(static_cast<unsigned>(node.axes))].data(), axes_of(node)};
      default: return {&memory[node.slot * stride], axes_of(node)};
    }
  };
  for (const Node& node : nodes_) {
    if (node.op == Op::constant || node.op == Op::coordinate) continue;
    const int axes = axes_of(node);
    double* const result = &memory[node.slot * stride];
    const auto [first, second, third] = node.operand;
    const auto two = [&, &first = first, &second = second](auto f) {
      binary(grid, axes, result, {operand(first), operand(second)}, f);
    };
    switch (node.op) {
      case Op::less_equal: two([](double a, double b) { return a <= b ? 1.0 : 0.0; }); break;
      case Op::greater_equal: two([](double a, double b) { return a >= b ? 1.0 : 0.0; }); break;
      case Op::not_equal: two([](double a, double b) { return a != b ? 1.0 : 0.0; }); break;
      case Op::equal: two([](double a, double b) { return a == b ? 1.0 : 0.0; }); break;
      case Op::less: two([](double a, double b) { return a < b ? 1.0 : 0.0; }); break;
      case Op::greater: two([](double a, double b) { return a > b ? 1.0 : 0.0; }); break;
      case Op::add: two([](double a, double b) { return a + b; }); break;
      case Op::subtract: two([](double a, double b) { return a - b; }); break;
      case Op::multiply: two([](double a, double b) { return a * b; }); break;
      case Op::divide: two([](double a, double b) { return a / b; }); break;
      case Op::power: two([](double a, double b) { return std::pow(a, b); }); break;
      case Op::both: two([](double a, double b) { return a != 0.0 && b != 0.0 ? 1.0 : 0.0; }); break;
      case Op::either: two([](double a, double b) { return a != 0.0 || b != 0.0 ? 1.0 : 0.0; }); break;
      case Op::call_two: two(node.two); break;
      case Op::call_one:
        for_rows<1>(grid, axes, result, {operand(first)}, [&](auto count, double* r, const auto& rows) {
          std::transform(rows[0].data, rows[0].data + count, r, node.one);
        });
        break;
      case Op::select:
        for_rows<3>(grid, axes, result, {operand(first), operand(second), operand(third)},
                    [](auto count, double* r, const auto& rows) {
                      const auto at = [&](const Row& row, auto i) { return row.data[row.varies ? i : 0]; };
                      for (std::int64_t i = 0; i < count; ++i) r[i] = at(rows[at(rows[0], i) != 0.0 ? 1 : 2], i);
                    });
        break;
      case Op::constant:
      case Op::coordinate: break;
    }
  }
  for_rows<1>(grid, scattered ? 1 : 7, values.data(), {operand(static_cast<int>(nodes_.size()) - 1)},
              [](auto count, double* r, const auto& rows) {
                if (rows[0].varies) {
                  std::copy_n(rows[0].data, count, r);
                } else {
                  std::fill_n(r, count, *rows[0].data);
                }
              });
}

}  // namespace solenoid
