#pragma once
/// \file
/// Patches as the SIMD smoother takes them.

#include <cstdint>
#include <vector>

#include "level/level.hpp"

namespace solenoid::cpu {

/// Patches in batches of one per lane. Where enough lower cells of a block of records are patches of a kind, the
/// lanes are the block, so that records are read as they lie; the others, as those along walls, fill batches in
/// order. All kinds of a colour advance through the mesh together: what one brings into the caches others find there.
struct PatchBatches {
  explicit PatchBatches(const Level& level);

  std::vector<std::vector<PatchRun>> colours;  ///< [colour]: runs of batches of one kind
  std::vector<Record> lower;                   ///< [batch][lane]: lower cell of a patch
  std::vector<std::uint32_t> active;           ///< [batch]: bit l: lane l is a patch
};

}  // namespace solenoid::cpu
