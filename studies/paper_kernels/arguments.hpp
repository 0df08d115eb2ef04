#pragma once
/// \file
/// What the paper's kernels are given, and how the host starts them.

#include <cstdint>

#include "studies/paper_kernels/paper_kernels.hpp"

namespace solenoid::paper {

enum class Stage : int { padding, basic, shared_memory, conflict_free };
enum class Local : int { direct, schur, conflict_free };

/// The paper's index storage: of every cell the first unknown of each entity. Those of a face follow each other as
/// [b][a], those inside as [component c][bubble of c][b][a], pressures as [z][y][x], where a = c + 1, b = c + 2 (mod
/// 3).
enum Entity {
  lower_face,
  upper_face,
  interior = 6,
  pressure = 7,
  entities = 8
};  // of direction c: 2 c + lower_face, ..

/// Vertex patches, one per block.
struct Patches {
  const std::int32_t* first;  ///< [cell][entity]
  const std::int32_t* cells;  ///< [patch][8], bit d set: upper cell in direction d
  const std::uint8_t* kind;   ///< [patch], bit 2 d: the lower end in direction d is a wall, bit 2 d + 1: the upper one
  int count;
};
inline constexpr int line_kinds = 4;    ///< of patches in one direction
inline constexpr int patch_kinds = 64;  ///< 27 of them in a cube of more than two cells per direction

/// y += factor A x
template <class T>
struct OperatorArguments {
  Patches patches;
  const T* matrices;  ///< OperatorMatrices of the line kinds; unused where these are in constant memory
  const T* x;
  T* y;
  T factor;
};

/// x += R^T A_j^+ R r on every patch
template <class T>
struct SolverArguments {
  Patches patches;
  const T* matrices;  ///< SolverMatrices of the line kinds
  const T* inverse;   ///< direct: dense inverses, symmetric
  std::uint8_t inverse_of[patch_kinds];
  const T* r;
  T* x;
  int iterations;
  T tolerance;  ///< of the residual of CG, relative
};

/// Of one patch.
struct Counts {
  double flops = 0.0;
  double device_bytes = 0.0;
  double shared_bytes = 0.0;
};

/// Kernels of one order and precision. Univariate matrices follow each other in the order of operator_matrices() and
/// solver_matrices(), row-major, in operator kernels with padding as larger ones with zeros.
template <class T>
struct Kernels {
  /// Of the padding and the basic kernel, of all line kinds.
  void (*set_constants)(const T* padded, const T* exact);
  void (*apply)(Stage stage, const OperatorArguments<T>& arguments);
  Counts (*count_apply)(Stage stage);

  void (*solve)(Local local, const SolverArguments<T>& arguments);
  Counts (*count_solve)(Local local, int iterations);
  /// r_i = 1 in patch i for unknown i of a patch; and inverse[i][j] = x_j in patch i.
  void (*unit_loads)(const Patches& patches, T* r);
  void (*collect_inverse)(const Patches& patches, const T* x, T* inverse);
};

template <class T, int order>
void add_operator(Kernels<T>& kernels);
template <class T, int order>
void add_solver(Kernels<T>& kernels);

/// Values between -1 and 1.
template <class T>
void fill_noise(std::int64_t count, T* x);

}  // namespace solenoid::paper
