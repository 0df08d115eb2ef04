#pragma once
/// \file
/// Vertex patches: which there are, their colours, and the kind of local problem that each of them has.

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <vector>

#include "base/unset.hpp"
#include "mesh/grid.hpp"
#include "solenoid/choices.hpp"

namespace solenoid {

/// The univariate local problem in one direction of a patch, at its lower and upper end.
struct PatchEnds {
  static constexpr int mixed = -1;

  std::array<int, 2> weight{1, 1};        ///< weight s of the face form E of the local matrix: 0, 1 or 2 (face_weight)
  std::array<int, 2> face{1, 1};          ///< weight of the faces that are really there, or `mixed` if they differ
  std::array<bool, 2> hat{false, false};  ///< the normal unknown at this end belongs to the patch (outflow)
  /// Corrections vanish at this end, and what lies behind it is ignored: the residual is that of the patch alone, with
  /// weight 0 (PatchProblem::fused, unless the patch has a mixed end).
  std::array<bool, 2> cut{false, false};

  /// Seen from the other end.
  [[nodiscard]] PatchEnds mirrored() const {
    return {{weight[1], weight[0]}, {face[1], face[0]}, {hat[1], hat[0]}, {cut[1], cut[0]}};
  }
  /// The local problem alone, whatever faces are there.
  [[nodiscard]] PatchEnds problem() const { return {weight, weight, hat, cut}; }
  /// The same for two local problems that are each other's mirror images: one of them.
  [[nodiscard]] PatchEnds problem_or_image() const { return std::min(problem(), problem().mirrored()); }

  /// The local problem is symmetric under reflection, so that its functions are even or odd.
  [[nodiscard]] bool symmetric() const { return problem() == problem().mirrored(); }
  /// There are kernels that make use of it.
  [[nodiscard]] bool splits_by_parity() const { return symmetric() && !hat[0]; }

  auto operator<=>(const PatchEnds&) const = default;
};

/// The kind of a patch: its ends in each direction.
using PatchKind = std::array<PatchEnds, 3>;

/// All directions do, so that the local problem falls into 2^dim independent ones.
inline bool splits_by_parity(const PatchKind& kind, int dim) {
  return std::all_of(kind.begin(), kind.begin() + dim, [](const PatchEnds& ends) { return ends.splits_by_parity(); });
}

struct PatchRules {
  PatchProblem problem = PatchProblem::symmetric;
  ColourOrder colour_order = ColourOrder::diagonal;
  /// Of symmetric ones: no-slip on every end but those on slip and outflow sides, whose matrix bounds those of
  /// coefficients that vary (level/patch_scale.hpp).
  bool no_slip_ends = false;
};

/// Patches of one colour and kind: `patches[begin..end)`.
struct PatchRun {
  int kind = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// All patches of a level: the 2^dim cells around each interior vertex. A patch is named by its lower cell; its other
/// cells are that cell's upper neighbours. Patches of one colour share no cell. With a partition these are the patches
/// with an owned cell, others have them, too; colours are those of all ranks, and whether everything is covered is said
/// of all.
struct Patches {
  Patches() = default;
  Patches(const Grid& grid, const PatchRules& rules);

  std::vector<PatchKind> kinds;
  Unset<Record> lower_cell;                    ///< sorted by colour (in smoothing order), then kind
  std::vector<std::vector<PatchRun>> colours;  ///< runs of each colour, colours in smoothing order
  std::vector<Unset<Record>> uncovered;        ///< records in no patch of a colour

  /// True if every cell, and every normal unknown between two cells, belongs to some patch.
  bool cover_everything = false;

  [[nodiscard]] std::int64_t bytes() const;

 private:
  /// Where the patches stand in the order of colours and kinds.
  struct Slots {
    Unset<std::int32_t> of;    ///< [lower cell]: colour * number of kinds + kind, or -1 if there is no patch
    std::vector<int> colours;  ///< those that have patches
  };
  Slots sort(const Grid& grid, const PatchRules& rules);
  void cover(const Grid& grid, const Slots& slots);
};

/// Colour in a direction of what consists of a cell and its upper neighbour there: the parity of that cell; what closes
/// an odd periodic ring is a third.
int colour_along(const Grid& grid, Record lower, int a);

/// The cells of a patch, index bit a set: upper cell in direction a.
std::array<Record, 8> patch_cells(const Grid& grid, Record lower);

}  // namespace solenoid
