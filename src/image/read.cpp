#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "base/unset.hpp"
#include "image/array_file.hpp"
#include "image/rows.hpp"
#include "solenoid/error.hpp"
#include "solenoid/image.hpp"

namespace solenoid {
namespace {

/// Bytes that are read at a time, and at least one layer.
constexpr std::int64_t bytes_at_a_time = 1 << 26;

/// Which voxels are pores, and which of the values that were asked for there are.
class PoreValues {
 public:
  explicit PoreValues(const ImageFormat& format)
      : values_(format.pore),
        above_(format.above.value_or(-std::numeric_limits<double>::infinity())),
        below_(format.below.value_or(std::numeric_limits<double>::infinity())) {
    const bool threshold = format.above || format.below;
    if (values_.empty() && !threshold) throw InputError("`pore` or `threshold` has to say which voxels are pores");
    if (!values_.empty() && threshold) throw InputError("either `pore` or `threshold` says which voxels are pores");
    if (values_.size() > most) {
      throw InputError(fmt::format("`pore` has {} values: expected at most {}, or `threshold`", values_.size(), most));
    }
  }

  /// Sets the bits of the voxels that are solid.
  template <class Number>
  void read_row(const Number* numbers, std::int64_t count, std::uint64_t* row) {
    std::uint64_t found = 0;
    bool undefined = false;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto value = static_cast<double>(numbers[i]);
      undefined = undefined || std::isnan(value);
      bool pore = values_.empty() && value > above_ && value < below_;
      for (std::size_t k = 0; k < values_.size(); ++k) {
        if (value != values_[k]) continue;
        pore = true;
        found |= std::uint64_t{1} << k;
      }
      row[i / 64] |= std::uint64_t{pore ? 0U : 1U} << (i % 64);
    }
    if (undefined) undefined_ = true;
    found_ |= found;
  }

  [[nodiscard]] bool undefined() const { return undefined_; }
  /// The first value that no voxel has.
  [[nodiscard]] std::optional<double> missing() const {
    const auto first = static_cast<std::size_t>(std::countr_one(found_.load()));
    if (first >= values_.size()) return {};
    return values_[first];
  }

 private:
  static constexpr std::size_t most = 64;  // bits

  std::vector<double> values_;
  double above_;
  double below_;
  std::atomic<std::uint64_t> found_{0};  // bit k: the value k
  std::atomic<bool> undefined_{false};
};

/// visit(numbers, how many layers, the first of them), piece by piece.
template <class Number, class Visit>
void for_pieces(const ArrayFile& array, const Visit& visit) {
  const std::int64_t layers = array.extent.back();
  std::int64_t in_layer = 1;
  for (std::size_t i = 0; i + 1 < array.extent.size(); ++i) in_layer *= array.extent[i];
  const auto together =
      std::clamp<std::int64_t>(bytes_at_a_time / (in_layer * static_cast<std::int64_t>(sizeof(Number))), 1, layers);
  Unset<Number> numbers(together * in_layer);
  for (std::int64_t first = 0; first < layers; first += together) {
    const std::int64_t count = std::min(together, layers - first);
    array.read(first, count, numbers.data());
    visit(std::span<const Number>(numbers).first(count * in_layer), first);
  }
}

/// Values that voxels have, the least of them.
std::string values_in(const ArrayFile& array) {
  constexpr std::size_t most = 16;
  std::set<double> values;
  with_number(array.type, [&](auto number) {
    using Number = decltype(number);
    for_pieces<Number>(array, [&](std::span<const Number> numbers, std::int64_t) {
      Number last = numbers[0];
      values.insert(static_cast<double>(last));
      for (const Number value : numbers) {
        if (value == last) continue;
        last = value;
        if (values.size() > most && static_cast<double>(value) > *values.rbegin()) continue;
        values.insert(static_cast<double>(value));
        if (values.size() > most + 1) values.erase(std::prev(values.end()));
      }
    });
  });
  const bool more = values.size() > most;
  if (more) values.erase(std::prev(values.end()));
  return fmt::format("{}{}", fmt::join(values, ", "), more ? " and larger ones" : "");
}

/// The direction of each index of the array, from the fastest; as `axes` says it, or as it is meant if it says nothing.
std::vector<int> directions_of(const std::string& axes, int dim, bool raw, bool fastest_last) {
  const std::string names = std::string("xyz").substr(0, dim);
  std::string said = axes;
  if (said.empty()) said = raw ? names : std::string(names.rbegin(), names.rend());
  if (!std::is_permutation(said.begin(), said.end(), names.begin(), names.end())) {
    throw InputError(fmt::format("`axes` is \"{}\": expected {}, each once", axes, fmt::join(names, ", ")));
  }
  if (!raw && fastest_last) std::reverse(said.begin(), said.end());
  std::vector<int> directions;
  for (const char name : said) directions.push_back(static_cast<int>(names.find(name)));
  return directions;
}

int dimension_of(std::size_t indices, std::string_view what) {
  if (indices == 2 || indices == 3) return static_cast<int>(indices);
  throw InputError(fmt::format("{} has {} entries: expected 2 or 3", what, indices));
}

/// The array, and the direction of each of its indices.
std::pair<ArrayFile, std::vector<int>> open(const std::filesystem::path& file, const ImageFormat& format) {
  if (!is_hdf5(file) && !format.dataset.empty()) {
    throw InputError("`dataset` is for HDF5 files, whose names end in .h5, .hdf5 or .hdf");
  }
  if (is_npy(file) || is_hdf5(file)) {
    ArrayFile array = is_npy(file) ? open_npy(file) : open_hdf5(file, format.dataset);
    const int dim = dimension_of(array.extent.size(), "the shape of its array");
    auto directions = directions_of(format.axes, dim, false, array.fastest_last);
    for (std::size_t i = 0; !format.shape.empty() && i < directions.size(); ++i) {
      if (format.shape.size() == directions.size() && format.shape[directions[i]] == array.extent[i]) continue;
      std::vector<std::int64_t> shape(dim);
      for (int j = 0; j < dim; ++j) shape[directions[j]] = array.extent[j];
      throw InputError(fmt::format("its array has {} voxels, not {}: leave `shape` out, or change `axes`",
                                   fmt::join(shape, " x "), fmt::join(format.shape, " x ")));
    }
    return {std::move(array), std::move(directions)};
  }
  const auto type = std::find_if(number_types.begin(), number_types.end(),
                                 [&](const auto& named) { return named.first == format.dtype; });
  if (type == number_types.end()) {
    std::vector<std::string_view> names;
    for (const auto& named : number_types) names.push_back(named.first);
    throw InputError(fmt::format("`dtype` is \"{}\": expected {}", format.dtype, fmt::join(names, ", ")));
  }
  if (format.shape.empty()) throw InputError("a raw file needs `shape`, the voxels in x, y and z");
  const int dim = dimension_of(format.shape.size(), "`shape`");
  auto directions = directions_of(format.axes, dim, true, false);
  std::vector<std::int64_t> extent;
  for (const int a : directions) extent.push_back(format.shape[a]);
  if (std::any_of(extent.begin(), extent.end(), [](std::int64_t count) { return count < 1; })) {
    throw InputError(fmt::format("`shape` is {}: expected numbers >= 1", fmt::join(format.shape, " x ")));
  }
  return {open_raw(file, type->second, extent), std::move(directions)};
}

VoxelImage read(const std::filesystem::path& file, const ImageFormat& format) {
  PoreValues pores(format);
  const auto [array, directions] = open(file, format);
  const auto dim = static_cast<int>(directions.size());
  std::array<int, 3> in_file{1, 1, 1};
  std::array<int, 3> extent{1, 1, 1};
  for (int i = 0; i < dim; ++i) {
    if (array.extent[i] > std::numeric_limits<int>::max()) throw InputError("its array is too large");
    extent[directions[i]] = in_file[i] = static_cast<int>(array.extent[i]);
  }
  validate_extent(dim, in_file);
  validate_extent(dim, extent);
  const std::size_t words = VoxelImage::words_of_row(in_file[0]);
  std::vector<std::uint64_t> rows = no_rows(in_file);
  with_number(array.type, [&](auto number) {
    using Number = decltype(number);
    for_pieces<Number>(array, [&](std::span<const Number> numbers, std::int64_t first) {
      const std::int64_t rows_before = dim == 2 ? first : first * in_file[1];
      parallel_ranges({std::ssize(numbers) / in_file[0], 64}, [&](CellRange range, std::int64_t) {
        for (auto row = range.begin; row < range.end; ++row) {
          pores.read_row(&numbers[row * in_file[0]], in_file[0], &rows[words * (rows_before + row)]);
        }
      });
    });
  });
  if (pores.undefined()) throw InputError("some of its numbers are not a number (NaN)");
  if (const auto missing = pores.missing()) {
    throw InputError(fmt::format("no voxel has the pore value {}: the values are {}", *missing, values_in(array)));
  }
  VoxelImage image(dim, in_file, std::move(rows), format.voxel);
  if (image.pores() == 0) throw InputError(fmt::format("no voxel is a pore: the values are {}", values_in(array)));
  if (std::is_sorted(directions.begin(), directions.end())) return image;
  return {dim, extent,
          make_rows_of(extent,
                       [&](int x, int y, int z) {
                         const std::array<int, 3> at{x, y, z};
                         std::array<int, 3> there{};
                         for (int i = 0; i < dim; ++i) there[i] = at[directions[i]];
                         return image.solid(there);
                       }),
          format.voxel};
}

}  // namespace

std::string axes_of_array(const std::filesystem::path& file, const ImageFormat& format) {
  const std::string& said = format.axes;
  return is_npy(file) || is_hdf5(file) ? said : std::string(said.rbegin(), said.rend());
}

VoxelImage read_image(const std::filesystem::path& file, const ImageFormat& format) {
  std::error_code ignored;
  const auto status = std::filesystem::status(file, ignored);
  try {
    if (status.type() == std::filesystem::file_type::not_found) throw InputError("there is no such file");
    // Reading from a device or a pipe need not end.
    if (!std::filesystem::is_regular_file(status)) throw InputError("it is no regular file");
    VoxelImage image = read(file, format);
    if (format.upper || format.lower != std::array<int, 3>{}) {
      image = image.crop(format.lower, format.upper.value_or(image.extent()));
    }
    if (image.dim() == 2 && format.mirror[2]) throw InputError("it has no z to be mirrored in");
    return format.mirror == std::array<bool, 3>{} ? image : image.mirror(format.mirror);
  } catch (const InputError& error) {
    throw InputError(fmt::format("cannot read the image '{}': {}", file.string(), error.what()));
  }
}

}  // namespace solenoid
