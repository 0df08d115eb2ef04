#pragma once
/// \file
/// What operators that go element by element, where coefficients vary by cell (varying_operator.cuh) or cells are
/// parallelepipeds (sheared_operator.cuh), exchange with the engine: plain data.

#include "engine/cuda/kernels/arguments.hpp"
#include "engine/sheared_data.hpp"

namespace solenoid::cuda {

/// What the place of a lower hat of a cell has of the residuals of patches (Colour::root).
enum class HatOfPatch : std::uint8_t {
  whole,  ///< what the cell has of that hat: between the cells of a patch, where the cell below adds a share of its own
  share,  ///< of a lower cell: what it has of the hat above
  open,   ///< of a lower cell at an open side, whose lower hats are unknowns: these; its share goes to the hats above,
  joined,  ///< which are the sum of both: zero to begin with
};
/// Of a cell: those of all directions, and that it is in a patch.
constexpr std::uint8_t in_patch = 1U << 7;
constexpr std::uint8_t hats_of_patch(int direction, HatOfPatch what) {
  return static_cast<std::uint8_t>(in_patch | static_cast<unsigned>(what) << 2 * direction);
}
constexpr HatOfPatch hat_of_patch(std::uint8_t all, int direction) {
  return static_cast<HatOfPatch>(all >> 2 * direction & 3);
}
constexpr bool is_upper(HatOfPatch what) { return what == HatOfPatch::whole || what == HatOfPatch::joined; }

/// The patches of a colour. Arrays by record.
template <class T>
struct PatchesOfColour {
  const T* root;             ///< Colour::root
  const std::uint8_t* hats;  ///< hats_of_patch; 0: in no patch
  bool joined;               ///< some hats are
};

/// y = A x, or y = b - A x if b is given, on all cells and hat-only records; or T (b - A x), the residuals of the
/// patches of a colour. Pointers are to device memory unless said otherwise.
template <class T>
struct ElementArguments {
  const CellData<T>* cell;        ///< host memory
  const VaryingData<T>* varying;  ///< host memory; coefficients by cell, in place of those of `cell`
  const ShearedData<T>* sheared;  ///< host memory; of parallelepipeds
  CellTopology topology;
  RecordBlocks blocks;         ///< all cells
  PatchesOfColour<T> patches;  ///< with b; no `root`: everywhere
  const T* x;
  const T* b;
  T* y;
};

/// Start the kernels of a dimension and order.
template <class T, int dim, int order>
void apply_varying(const ElementArguments<T>& arguments, Stream stream);
template <class T, int dim, int order>
void apply_sheared(const ElementArguments<T>& arguments, Stream stream);

}  // namespace solenoid::cuda
