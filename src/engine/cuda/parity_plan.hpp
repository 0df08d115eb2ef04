#pragma once
/// \file
/// Set-up of the smoother for patches that split by parity (kernels/smoother.cuh): tables and batches of a level.

#include <vector>

#include "engine/cuda/kernels/parity.hpp"
#include "level/level.hpp"
#include "level/patch_solver.hpp"

namespace solenoid::cuda {

/// The kernel counts places in 32 bits: a solve with larger vectors takes more than 170 GB of device memory.
inline bool parity_plan_fits(std::int64_t level_size) { return level_size < std::int64_t{1} << 32; }

/// A colour's uncovered records in an order in which equal shares for all batches bring those that share a block with
/// records of patches about when those patches are: then the memory system joins what is read and written.
std::vector<std::int32_t> copy_order(const std::vector<std::int32_t>& records);

/// Needs parity_plan_fits(level.size()).
template <class T>
struct ParityPlan {
  /// For a kernel that takes `batch` patches at a time.
  ParityPlan(const Level& level, int batch);

  std::vector<T> tables;  ///< ParityArguments::tables and schur
  std::vector<T> schur;
  std::vector<ParityPatch> patches;              ///< of all colours, in the order of cells in each colour
  std::vector<std::vector<PatchBatch>> colours;  ///< batches of each colour
  std::vector<char> covered;                     ///< [kind]: it splits by parity, so that its patches are here
};

}  // namespace solenoid::cuda
