#pragma once
/// \file
/// The operator of a small level inverted as a dense matrix.

#include <Eigen/Core>
#include <cstdint>
#include <vector>

#include "engine/engine.hpp"

namespace solenoid {

struct DenseInverse {
  std::vector<std::int64_t> index;  ///< places of the unknowns in vectors of the level
  Eigen::MatrixXd matrix;           ///< symmetric; maps constants that the operator maps to zero to zero
};

/// The (pseudo-)inverse of a level's operator as the engine applies it.
DenseInverse invert(Engine& engine, const Level& level, LocalSolverKind local);

}  // namespace solenoid
