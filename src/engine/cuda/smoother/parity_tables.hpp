#pragma once
/// \file
/// What the smoother for patches that split by parity (kernels/smoother/parity.cuh) has of a level's coefficients.

#include <vector>

#include "engine/cuda/kernels/smoother/parity.hpp"
#include "engine/tables.hpp"
#include "level/level.hpp"

namespace solenoid::cuda {

template <class T>
struct ParityTables {
  /// For these kinds of patch, which have different Schur blocks (ParityPlan::kinds).
  ParityTables(const Level& level, const std::vector<int>& kinds);

  std::vector<T> univariate;             ///< ParityArguments::tables
  std::vector<MissingInverses> missing;  ///< of ParityArguments::schur, InverseForm::operands,
  std::int64_t schur_size = 0;           ///< in so many numbers
};

}  // namespace solenoid::cuda
