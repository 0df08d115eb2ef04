#pragma once
/// \file
/// Segmented images of porous media: which voxels are solid.

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace solenoid {

/// Voxels of pore space and of solid, one bit each. An image does not change; meshes share it (Mesh::image).
class VoxelImage {
 public:
  /// `solid` is asked for the voxel at each place, by several threads. `voxel`: its size in each direction, in metres.
  /// In 2D the third entries are 1. \throws InputError unless extent and sizes are positive, or if there are too many
  VoxelImage(int dim, const std::array<int, 3>& extent, const std::function<bool(const std::array<int, 3>&)>& solid,
             const std::array<double, 3>& voxel = {1, 1, 1});
  /// From rows along x, one after the other with y faster than z, each of words_of_row(extent[0]) words: bit x % 64 of
  /// word x / 64 is 1 for a solid voxel. \throws InputError as above, and unless there are so many words
  VoxelImage(int dim, const std::array<int, 3>& extent, std::vector<std::uint64_t> rows,
             const std::array<double, 3>& voxel = {1, 1, 1});

  [[nodiscard]] int dim() const { return dim_; }
  [[nodiscard]] const std::array<int, 3>& extent() const { return extent_; }   ///< voxels per direction
  [[nodiscard]] const std::array<double, 3>& voxel() const { return voxel_; }  ///< its size in metres
  [[nodiscard]] std::int64_t size() const { return count_of(extent_); }        ///< voxels
  [[nodiscard]] std::int64_t solids() const { return solids_; }                ///< voxels that are solid
  [[nodiscard]] std::int64_t pores() const { return size() - solids_; }        ///< voxels that are not
  [[nodiscard]] double porosity() const { return static_cast<double>(pores()) / static_cast<double>(size()); }
  [[nodiscard]] std::int64_t bytes() const { return static_cast<std::int64_t>(rows_.size() * sizeof(rows_[0])); }

  [[nodiscard]] bool solid(const std::array<int, 3>& at) const {
    return (row(at[1], at[2])[at[0] / 64] >> (at[0] % 64) & 1) != 0;
  }
  [[nodiscard]] bool pore(const std::array<int, 3>& at) const { return !solid(at); }
  /// The words of a row; bits after its last voxel are 0.
  [[nodiscard]] std::span<const std::uint64_t> row(int y, int z) const {
    const std::size_t words = words_of_row(extent_[0]);
    return {&rows_[words * (y + static_cast<std::size_t>(extent_[1]) * z)], words};
  }
  static constexpr std::size_t words_of_row(int voxels) { return (static_cast<std::size_t>(voxels) + 63) / 64; }

  /// Whether so many voxels that follow each other in direction a are alike, from each multiple of that number on.
  [[nodiscard]] bool in_blocks(int a, int size) const;

  /// The voxels from `lower` to before `upper`. \throws InputError if these reach outside, or hold none
  [[nodiscard]] VoxelImage crop(const std::array<int, 3>& lower, const std::array<int, 3>& upper) const;
  /// Behind the image its mirror image, in each of these directions: it is periodic in them.
  [[nodiscard]] VoxelImage mirror(const std::array<bool, 3>& directions) const;

  bool operator==(const VoxelImage&) const = default;

 private:
  static std::int64_t count_of(const std::array<int, 3>& extent) {
    return std::int64_t{extent[0]} * extent[1] * extent[2];
  }

  int dim_;
  std::array<int, 3> extent_;
  std::array<double, 3> voxel_;
  std::vector<std::uint64_t> rows_;
  std::int64_t solids_ = 0;
};

/// What the numbers in a file mean.
struct ImageFormat {
  /// Voxels in x, y and, in 3D, z; of raw files. Other files know theirs: empty, or the same.
  std::vector<int> shape{};
  /// Type of the numbers of raw files, little endian: "int8" to "int64", "uint8" to "uint64", "float32", "float64".
  std::string dtype = "uint8";
  /// Directions: of a raw file from the one in which neighbours are neighbours in the file to the slowest, "xyz" if
  /// empty; of arrays (.npy, HDF5) those of their indices, "zyx" if empty. In 2D without z.
  std::string axes{};
  /// Pores are the voxels with one of these values, or, if there are none, those above and below thresholds.
  std::vector<double> pore{};
  std::optional<double> above{};
  std::optional<double> below{};
  std::string dataset{};                      ///< of an HDF5 file
  std::array<double, 3> voxel{1, 1, 1};       ///< size in metres
  std::array<int, 3> lower{};                 ///< first voxel that is kept in each direction,
  std::optional<std::array<int, 3>> upper{};  ///< and the first after those; nullopt: all are kept
  std::array<bool, 3> mirror{};               ///< VoxelImage::mirror, after that
};

/// Reads a raw file (numbers and nothing else), NumPy's .npy, or a dataset of an HDF5 file (.h5, .hdf5, .hdf).
/// \throws InputError if the file cannot be read, is not of the format, or has none of the pore values
VoxelImage read_image(const std::filesystem::path& file, const ImageFormat& format);

}  // namespace solenoid
