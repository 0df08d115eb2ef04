#pragma once
/// \file
/// Programs of fields (problem/program.hpp) as a thread block carries them out on all quadrature points of its cells.
///
/// Everything lies in the block's memory, as doubles. A value that depends on some coordinates is there once for each
/// combination of theirs: an array [q_z][q_y][q_x][cell] without the directions that it does not depend on; a constant
/// is there once. First come the instructions that do not depend on all directions, with a barrier after each; the
/// others follow without one: a thread does all of them for its points.

#include <optional>
#include <vector>

#include "engine/cuda/kernels/load.hpp"
#include "problem/program.hpp"
#include "solenoid/field.hpp"

namespace solenoid::cuda {

/// Where programs find their arguments, and how much room there is.
struct PointMemory {
  int dim;
  int points;          ///< of the rule, in a direction
  int cells;           ///< of a block
  int coordinates_at;  ///< [direction][point][cell]
  int free_at;         ///< the first number that nobody else has
  int most;            ///< numbers in all

  /// Of an array that depends on these coordinates.
  [[nodiscard]] int size(int axes) const {
    int count = cells;
    for (int a = 0; a < dim; ++a) count *= (axes >> a & 1) != 0 ? points : 1;
    return axes == 0 ? 1 : count;
  }
};

struct PointProgram {
  std::vector<double> constants;  ///< for PointMemory::free_at and on
  std::vector<PointInstruction> instructions;
  int partial = 0;  ///< of the instructions: do not depend on all directions
  PointOperand result{};
  int end = 0;  ///< the first number of the memory that is not in use
};

/// nullopt if the memory does not do, or if the program calls what no device has.
std::optional<PointProgram> compile(const Program& program, const PointMemory& memory);

}  // namespace solenoid::cuda
