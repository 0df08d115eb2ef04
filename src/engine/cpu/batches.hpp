#pragma once
/// \file
/// Patches as the SIMD smoother takes them.

#include <cstdint>
#include <vector>

#include "engine/cpu/kernels/table.hpp"
#include "engine/cpu/team.hpp"
#include "level/level.hpp"

namespace solenoid::cpu {

/// Patches in batches of one per lane. Where enough lower cells of a block of records are patches of a kind, the
/// lanes are the block, so that records are read as they lie; the others, as those along walls, fill batches in
/// order. All kinds of a colour advance through the mesh together: what one brings into the caches others find there.
struct PatchBatches {
  /// Of the kinds with takes[kind].
  PatchBatches(Team& team, const Level& level, const std::vector<bool>& takes);
  /// Of all patches, by numbers in place of kinds: of_patch[i] is that of Patches::lower_cell[i].
  PatchBatches(Team& team, const Level& level, const std::vector<int>& of_patch);

  struct Colour {
    std::vector<PatchRun> runs;         ///< of batches of one kind
    std::vector<Record> lower;          ///< [batch][lane]: lower cell of a patch
    std::vector<std::uint32_t> active;  ///< [batch]: bit l: lane l is a patch
  };
  std::vector<Colour> colours;
};

/// The kinds of patches that the smoother without old values takes, [kind]: those whose faces are the same all over
/// each end.
std::vector<bool> halo_kinds(const Level& level);

/// Patches as that smoother takes them, whatever their kinds: one block of records after the other, short rows
/// together.
struct HaloBatches {
  using FindPlaces = decltype(KernelTable<float>::find_places);
  /// Of the kinds with takes[kind].
  HaloBatches(Team& team, const Level& level, const std::vector<bool>& takes, FindPlaces find_places);

  std::vector<HaloKind> kinds;                  ///< [kind]
  std::vector<int> problems;                    ///< a kind with each local problem
  std::vector<std::uint8_t> splits;             ///< [problem]: by parity
  std::vector<std::vector<HaloBatch>> colours;  ///< [colour]: its batches
  std::vector<std::vector<LanePlaces>> places;  ///< [colour][HaloBatch::places][PatchPlaces]

 private:
  void find_problems(const Level& level, const std::vector<bool>& takes);
};

}  // namespace solenoid::cpu
