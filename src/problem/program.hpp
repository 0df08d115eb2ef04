#pragma once
/// \file
/// A function of space as a short program, for all who evaluate it at many points: case/formula.hpp on arrays, the cuda
/// engine in its loads.

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace solenoid {

class ScalarField;

struct Program {
  enum class Op : std::uint8_t {
    constant,
    coordinate,
    less_equal,
    greater_equal,
    not_equal,
    equal,
    less,
    greater,
    add,
    subtract,
    multiply,
    divide,
    power,
    both,
    either,
    select,  ///< a != 0 ? b : c
    call_one,
    call_two,
  };
  /// What is called; `other`: something that only Formula knows.
  enum class Function : std::uint8_t {
    other,
    sin,
    cos,
    tan,
    asin,
    acos,
    atan,
    sinh,
    cosh,
    tanh,
    asinh,
    acosh,
    atanh,
    exp,
    log,
    log2,
    log10,
    sqrt,
    abs,
    rint,
    sign,
    plus,
    minus,
    atan2,
    min,
    max,
  };
  struct Instruction {
    Op op = Op::constant;
    Function function = Function::other;
    std::array<int, 3> operand{-1, -1, -1};  ///< instructions before it
    double value = 0.0;                      ///< of a constant
    int axes = 0;                            ///< bit a: depends on coordinate a; of a coordinate: which one it is
  };

  std::vector<Instruction> instructions;  ///< the last one is the result
};

/// Of a number, an expression, or pieces of these; nullopt for a function of the caller.
std::optional<Program> program_of(const ScalarField& field);

}  // namespace solenoid
