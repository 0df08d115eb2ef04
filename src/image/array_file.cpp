#include "image/array_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <limits>
#include <memory>

#include "solenoid/error.hpp"

namespace solenoid {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers in files are little endian");

/// Bytes of so many numbers; the largest number if that cannot be said.
std::int64_t bytes_of(NumberType type, const std::vector<std::int64_t>& extent) {
  std::int64_t bytes = size_of(type);
  for (const std::int64_t count : extent) {
    if (count != 0 && bytes > std::numeric_limits<std::int64_t>::max() / count) {
      return std::numeric_limits<std::int64_t>::max();
    }
    bytes *= count;
  }
  return bytes;
}

std::string_view name_of(NumberType type) {
  return std::find_if(number_types.begin(), number_types.end(), [&](const auto& named) { return named.second == type; })
      ->first;
}

/// A file of numbers that begin after so many bytes. Its size is checked before anything is allocated.
ArrayFile open(std::ifstream stream, std::int64_t begin, std::int64_t size, NumberType type,
               const std::vector<std::int64_t>& extent) {
  if (const std::int64_t expected = bytes_of(type, extent); size - begin != expected) {
    throw InputError(fmt::format(
        "it has {} bytes{}, but {} numbers of type {} are {}: expected the shape and the type "
        "that it was written with, and the whole file",
        size - begin, begin > 0 ? " after its header" : "", fmt::join(extent, " x "), name_of(type), expected));
  }
  const auto shared = std::make_shared<std::ifstream>(std::move(stream));
  const std::int64_t bytes_of_slowest = extent.empty() || extent.back() == 0 ? 0 : (size - begin) / extent.back();
  return {type, extent, true, [=](std::int64_t first, std::int64_t count, void* numbers) {
            shared->seekg(begin + first * bytes_of_slowest);
            shared->read(static_cast<char*>(numbers), count * bytes_of_slowest);
            if (!*shared) throw InputError("it could not be read to its end");
          }};
}

std::pair<std::ifstream, std::int64_t> open_stream(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw InputError("it cannot be opened");
  return {std::move(stream), static_cast<std::int64_t>(std::filesystem::file_size(file))};
}

}  // namespace

ArrayFile open_raw(const std::filesystem::path& file, NumberType type, const std::vector<std::int64_t>& extent) {
  auto [stream, size] = open_stream(file);
  return open(std::move(stream), 0, size, type, extent);
}

bool is_npy(const std::filesystem::path& file) { return file.extension() == ".npy"; }

bool is_hdf5(const std::filesystem::path& file) {
  const auto extension = file.extension();
  return extension == ".h5" || extension == ".hdf5" || extension == ".hdf";
}

ArrayFile open_npy(const std::filesystem::path& file) {
  auto [stream, size] = open_stream(file);
  std::string text(std::min(size, longest_npy_header), '\0');
  if (!stream.read(text.data(), std::ssize(text))) throw InputError("it cannot be read");
  NpyHeader header = parse_npy_header(text);
  if (!header.fortran_order) std::reverse(header.shape.begin(), header.shape.end());
  ArrayFile result = open(std::move(stream), header.bytes, size, header.type, header.shape);
  result.fastest_last = !header.fortran_order;
  return result;
}

ArrayFile open_array(const std::filesystem::path& file, const std::string& dataset) {
  if (!is_npy(file) && !is_hdf5(file)) {
    throw InputError("expected an array in a file that ends in .npy, .h5, .hdf5 or .hdf");
  }
  if (is_npy(file) && !dataset.empty()) throw InputError("a .npy file has no datasets: leave `dataset` out");
  ArrayFile array = is_npy(file) ? open_npy(file) : open_hdf5(file, dataset);
  if (!array.fastest_last) {
    throw InputError("the array is in Fortran order: expected one in C order, whose last index is that of x");
  }
  if (std::count(array.extent.begin(), array.extent.end(), 0) > 0) {
    throw InputError("the array is empty");
  }
  return array;
}

std::vector<double> read_all(const ArrayFile& array) {
  std::int64_t count = 1;
  for (const std::int64_t along : array.extent) count *= along;
  std::vector<double> values(count);
  with_number(array.type, [&](auto number) {
    std::vector<decltype(number)> numbers(values.size());
    array.read(0, array.extent.back(), numbers.data());
    std::copy(numbers.begin(), numbers.end(), values.begin());
  });
  return values;
}

}  // namespace solenoid
