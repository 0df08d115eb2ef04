#pragma once
/// \file
/// Set-up of the smoother for patches that split by parity (kernels/smoother/parity.cuh): the batches of a level.

#include <vector>

#include "base/unset.hpp"
#include "engine/cuda/kernels/smoother/parity.hpp"
#include "level/level.hpp"

namespace solenoid::cuda {

/// The kernel counts places in 32 bits: a solve with larger vectors takes more than 170 GB of device memory.
inline bool parity_plan_fits(std::int64_t level_size) { return level_size < std::int64_t{1} << 32; }

/// Needs parity_plan_fits(level.size()).
struct ParityPlan {
  /// For a kernel that takes `batch` patches at a time.
  ParityPlan(const Level& level, int batch);

  std::vector<int> kinds;                            ///< by number of Schur blocks: a kind of patch that has them
  std::vector<std::int32_t> schur_number;            ///< [kind]: of its blocks, or -1: it does not split
  Unset<ParityPatch> patches;                        ///< of all colours, in the order of cells in each colour
  std::vector<std::vector<PatchBatch>> colours;      ///< batches of each colour, those that read ghosts last
  std::vector<std::int32_t> first_with_ghosts;       ///< [colour]: the first of those
  std::vector<std::vector<std::int32_t>> uncovered;  ///< records that are copied in a colour, in the order of batches
  std::vector<char> covered;                         ///< [kind]: it splits by parity, so that its patches are here
};

}  // namespace solenoid::cuda
