#pragma once
/// \file
/// Small patches: cells and pairs of cells for the unknowns that no vertex patch has.
///
/// An image in which each coarse box is one voxel, a channel that is one cell wide or a single row of cells have faces
/// around which there are not 2^dim cells, and cells that belong to no vertex patch. Pairs have the normal unknowns on
/// such faces, single cells those on outflow faces and what is left.

#include <array>
#include <cstdint>
#include <vector>

#include "level/patches.hpp"
#include "mesh/grid.hpp"

namespace solenoid {

/// What a small patch consists of: all values of its cells, but of the normal unknowns only those on the faces named
/// here. All other normal unknowns are zero at its ends, and traces are penalised there as on walls: where there is a
/// cell behind an end the local matrix is stronger than the exact block, which is safe.
struct SmallShape {
  enum class Kind : std::uint8_t {
    pair,           ///< two neighbours in a direction, and the face between them
    ring,           ///< a cell that is its own neighbour in a periodic direction, and the face there
    lower_outflow,  ///< a cell and its lower face in a direction, on which nothing is imposed
    upper_outflow,  ///< a cell and its upper face, the same
    cell,           ///< a cell alone
  };
  Kind kind = Kind::cell;
  int direction = 0;

  auto operator<=>(const SmallShape&) const = default;
};

/// Records with the unknowns of a small patch: its cell, or the lower one of a pair, then the upper one or that with
/// the normal unknowns of an upper outflow face; otherwise the null record.
using SmallRecords = std::array<Record, 2>;

/// Small patches of one shape that share no unknown.
struct SmallGroup {
  int shape = 0;
  std::vector<SmallRecords> patches;
};

/// The small patches of a level, which are smoothed after the colours of vertex patches: pairs across all faces that
/// are inside no vertex patch, cells at all outflow faces of which none has the normal unknowns, and cells that are in
/// nothing of this. None where vertex patches cover everything, nor with a partition: such levels are whole.
struct SmallPatches {
  SmallPatches() = default;
  SmallPatches(const Grid& grid, const Patches& patches);

  std::vector<SmallShape> shapes;
  std::vector<SmallGroup> groups;  ///< in the order of smoothing
};

}  // namespace solenoid
