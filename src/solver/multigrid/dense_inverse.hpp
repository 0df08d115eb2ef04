#pragma once
/// \file
/// The operator of a small level inverted as a dense matrix.

#include <cstdint>

#include "engine/engine.hpp"

namespace solenoid {

template <class T>
struct DenseInverse {
  Vector<std::int64_t> index;  ///< places of the unknowns in vectors of the level
  Vector<T> matrix;            ///< symmetric, row by row; maps constants that the operator maps to zero to zero
};

/// The (pseudo-)inverse of a level's operator as the engine applies it, computed in double precision and rounded.
/// `kernels` are those of the level.
template <class T>
DenseInverse<T> dense_inverse(Engine& engine, Kernels<T>& kernels, LocalSolverKind local);

/// Bytes beside the inverse itself while one of `count` unknowns is computed: the matrix in double precision.
constexpr double dense_inverse_work(double count) { return 8.0 * count * count; }

/// The operator itself, dense, on the unknowns in `index`.
Vector<double> operator_matrix(Engine& engine, const Level& level, LocalSolverKind local,
                               const std::vector<std::int64_t>& index);

}  // namespace solenoid
