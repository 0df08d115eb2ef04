#pragma once
/// \file
/// Quadrature points of cells, and fields at them: plain data.

#include <cstdint>

#include "engine/cuda/kernels/arguments.hpp"
#include "problem/program.hpp"

namespace solenoid::cuda {

/// Where the cells of a level are. Pointers are to device memory.
struct CellPlaces {
  const std::int32_t (*position)[3];  ///< [cell]: lattice coordinates
  const double* plane[3];             ///< [lattice coordinate]: where a cell begins
  const double* width[3];             ///< how wide it is
};

/// A place in the block's memory, and the coordinates (bit a) that the values there depend on.
struct PointOperand {
  std::uint16_t at;
  std::uint16_t axes;
};

struct alignas(4) PointInstruction {
  Program::Op op;
  Program::Function function;
  std::uint16_t operands;
  PointOperand result;
  PointOperand operand[3];
};

/// A component of an array at Gauss points of cells (problem/point_array.hpp). Pointers are to device memory.
struct ArrayField {
  const double* values;   ///< of this component, or nullptr: the field is a program
  const double* factors;  ///< [point of a rule][point of the array], of values along a direction
  int points;             ///< of a cell in each direction
  int components;
  int count[3];  ///< of points along each direction, in all
};

/// A field, as a program for the points of a block's cells, or as an array.
struct PointField {
  const PointInstruction* instructions;
  const double* constants;  ///< go to the first free number of the memory
  int partial;
  int count;
  int constant_count;
  PointOperand result;
  bool zero;
  ArrayField array;
};

}  // namespace solenoid::cuda
