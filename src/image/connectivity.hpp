#pragma once
/// \file
/// Which pores of an image are connected, and which of them something can flow through.

#include <array>
#include <cstdint>
#include <vector>

#include "base/unset.hpp"
#include "solenoid/image.hpp"

namespace solenoid {

/// Pore voxels that are connected through faces.
struct PoreComponent {
  std::int64_t voxels = 0;
  /// In a periodic direction: some closed way in it goes around, so that something can flow for ever. In others: it
  /// touches both ends.
  std::array<bool, 3> percolates{};
};

/// The components of the pore space of an image; directions in which it is periodic connect its ends.
class Connectivity {
 public:
  Connectivity(const VoxelImage& image, const std::array<bool, 3>& periodic);

  /// In the order of their first voxels.
  [[nodiscard]] const std::vector<PoreComponent>& components() const { return components_; }
  /// Whether something can flow through some component in a direction.
  [[nodiscard]] std::array<bool, 3> percolates() const;
  /// Voxels of the components that percolate in one of these directions.
  [[nodiscard]] std::int64_t flowing(const std::array<bool, 3>& directions) const;
  /// [voxel], x fastest: the number of its component, -1 in solid.
  [[nodiscard]] Unset<std::int32_t> of_voxels() const;
  /// The image without the other pores.
  [[nodiscard]] VoxelImage keep_flowing(const std::array<bool, 3>& directions) const;

 private:
  /// Pore voxels that follow each other along x.
  struct Run {
    std::int32_t begin;
    std::int32_t end;
  };

  void find_runs();
  void connect(const std::array<bool, 3>& periodic);

  const VoxelImage* image_;
  std::vector<std::int64_t> first_run_;  // [row], and one more
  Unset<Run> runs_;
  Unset<std::int32_t> component_;  // [run]
  std::vector<PoreComponent> components_;
};

/// The image with solid in place of all pores that are closed: of components that percolate in none of `directions`.
VoxelImage keep_flowing(const VoxelImage& image, const std::array<bool, 3>& directions,
                        const std::array<bool, 3>& periodic);

/// Pore voxels in runs of one or two between solid (or ends that are not periodic) in some direction: in such throats
/// the flow is resolved by the order of the element alone.
std::int64_t throat_voxels(const VoxelImage& image, const std::array<bool, 3>& periodic);

}  // namespace solenoid
