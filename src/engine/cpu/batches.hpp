#pragma once
/// \file
/// Patches as the SIMD smoother takes them.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/cpu/kernels/table.hpp"
#include "engine/cpu/team.hpp"
#include "level/level.hpp"

namespace solenoid::cpu {

/// Which batches: those with a patch that reads ghosts, as they are worked on once these have come, the others, or all.
enum class Reads { ghosts, no_ghosts, anything };

/// Patches in batches of one per lane, whatever their kinds: where enough lower cells of a block of records are
/// patches, the lanes are the block, so that records are read as they lie; short rows share batches. In the order of
/// lower cells, those that read ghosts after all others.
struct PatchBatches {
  /// Of patches with a number(kind, i) of at least 0, which is their PatchLanes::kind: i counts Patches::lower_cell.
  using Number = std::function<int(int kind, std::int64_t i)>;
  PatchBatches(Team& team, const Level& level, const Number& number);

  [[nodiscard]] std::span<const PatchLanes> of(int colour, Reads what) const;

  std::vector<std::vector<PatchLanes>> colours;
  std::vector<std::int64_t> first_with_ghosts;  ///< [colour]: of the batches that read ghosts
};

/// Of each kind the first one with the same local problem.
std::vector<int> first_with_problem(const Level& level);

/// The kinds of patches that the smoother without old values takes, [kind]: those whose faces are the same all over
/// each end.
std::vector<bool> halo_kinds(const Level& level);

/// Patches as that smoother takes them.
struct HaloBatches : PatchBatches {
  using FindPlaces = decltype(KernelTable<float>::find_places);
  /// Of the kinds with takes[kind].
  HaloBatches(Team& team, const Level& level, const std::vector<bool>& takes, FindPlaces find_places);

  std::vector<HaloKind> kinds;                  ///< [kind]
  std::vector<int> problems;                    ///< a kind with each local problem
  std::vector<std::uint8_t> splits;             ///< [problem]: by parity
  std::vector<std::vector<LanePlaces>> places;  ///< [colour][PatchLanes::places][PatchPlaces]

 private:
  void find_problems(const Level& level, const std::vector<bool>& takes);
};

}  // namespace solenoid::cpu
