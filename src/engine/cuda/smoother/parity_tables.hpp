#pragma once
/// \file
/// What the smoother for patches that split by parity (kernels/smoother/parity.cuh) has of a level's coefficients.

#include <compare>
#include <vector>

#include "engine/cuda/kernels/smoother/parity.hpp"
#include "engine/tables.hpp"
#include "level/level.hpp"

namespace solenoid::cuda {

/// Local problems that have Schur blocks of their own: a kind of patch (ParityPlan::kinds) with a reaction.
struct ParityProblem {
  double reaction;
  int kind;

  auto operator<=>(const ParityProblem&) const = default;
};

template <class T>
struct ParityTables {
  /// For these problems, in order; blocks have the number of their problem.
  ParityTables(const Level& level, const std::vector<ParityProblem>& problems);

  std::vector<T> univariate;             ///< ParityArguments::tables
  std::vector<MissingInverses> missing;  ///< of ParityArguments::schur, InverseForm::operands,
  std::int64_t schur_size = 0;           ///< in so many numbers
};

}  // namespace solenoid::cuda
