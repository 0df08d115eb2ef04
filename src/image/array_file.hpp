#pragma once
/// \file
/// Files with an array of numbers, read piece by piece.

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "solenoid/image.hpp"

namespace solenoid {

enum class NumberType { int8, uint8, int16, uint16, int32, uint32, int64, uint64, float32, float64 };

inline constexpr std::array<std::pair<std::string_view, NumberType>, 10> number_types{
    {{"int8", NumberType::int8},
     {"uint8", NumberType::uint8},
     {"int16", NumberType::int16},
     {"uint16", NumberType::uint16},
     {"int32", NumberType::int32},
     {"uint32", NumberType::uint32},
     {"int64", NumberType::int64},
     {"uint64", NumberType::uint64},
     {"float32", NumberType::float32},
     {"float64", NumberType::float64}}};

/// Returns visit(a number of the type).
template <class Visit>
decltype(auto) with_number(NumberType type, const Visit& visit) {
  switch (type) {
    case NumberType::int8: return visit(std::int8_t{});
    case NumberType::uint8: return visit(std::uint8_t{});
    case NumberType::int16: return visit(std::int16_t{});
    case NumberType::uint16: return visit(std::uint16_t{});
    case NumberType::int32: return visit(std::int32_t{});
    case NumberType::uint32: return visit(std::uint32_t{});
    case NumberType::int64: return visit(std::int64_t{});
    case NumberType::uint64: return visit(std::uint64_t{});
    case NumberType::float32: return visit(float{});
    case NumberType::float64: break;
  }
  return visit(double{});
}

inline std::int64_t size_of(NumberType type) {
  return with_number(type, [](auto number) { return static_cast<std::int64_t>(sizeof(number)); });
}

/// An array whose indices are counted from the fastest, in which neighbours are neighbours in the file, to the slowest.
struct ArrayFile {
  NumberType type = NumberType::uint8;
  std::vector<std::int64_t> extent;  ///< [index]
  bool fastest_last = true;          ///< of the indices as people write them, a[i, j, k]
  /// Reads the numbers with slowest index from `first` on, so many of these. \throws InputError
  std::function<void(std::int64_t first, std::int64_t count, void* numbers)> read;
};

/// Numbers and nothing else. \throws InputError if there are others than so many
ArrayFile open_raw(const std::filesystem::path& file, NumberType type, const std::vector<std::int64_t>& extent);
ArrayFile open_npy(const std::filesystem::path& file);
/// \throws InputError, in builds without HDF5 in any case
ArrayFile open_hdf5(const std::filesystem::path& file, const std::string& dataset);

/// By the ending of a file's name.
bool is_npy(const std::filesystem::path& file);
bool is_hdf5(const std::filesystem::path& file);

/// One of these two by the ending of its name, in the order of C: its last index is the fastest. \throws InputError
/// also for other endings, for a dataset of a .npy file, and for an array without numbers
ArrayFile open_array(const std::filesystem::path& file, const std::string& dataset);
/// All numbers of an array.
std::vector<double> read_all(const ArrayFile& array);

/// The directions of the indices of an image's array as people write them, a[i, j, k]; "": zyx, yx.
std::string axes_of_array(const std::filesystem::path& file, const ImageFormat& format);

/// What the header of a .npy file says.
struct NpyHeader {
  NumberType type = NumberType::uint8;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
  std::int64_t bytes = 0;  ///< of the header, up to the numbers
};

/// \throws InputError unless the text begins with a header of version 1, 2 or 3 that tells of numbers in little endian.
NpyHeader parse_npy_header(std::string_view text);

/// Longest header of a .npy file that is read.
inline constexpr std::int64_t longest_npy_header = 1 << 16;

}  // namespace solenoid
