#include "case/image_keys.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "image/array_file.hpp"
#include "image/generate.hpp"
#include "solenoid/error.hpp"
#include "solenoid/image.hpp"

namespace solenoid {

template <>
struct Names<Pattern> {
  static constexpr std::array<std::pair<std::string_view, Pattern>, 7> all{{{"spheres", Pattern::spheres},
                                                                            {"grains", Pattern::grains},
                                                                            {"fibres", Pattern::fibres},
                                                                            {"blobs", Pattern::blobs},
                                                                            {"array", Pattern::array},
                                                                            {"channel", Pattern::channel},
                                                                            {"duct", Pattern::duct}}};
};

namespace {

/// An image in a file while its keys are read.
struct ImageFile {
  std::filesystem::path name;
  ImageFormat format;
  int dim = 0;  ///< that lists have so far; 0: there was none
};

/// The entries of a list with one for each direction.
std::vector<Value> directions(const Value& value, int& dim) {
  auto entries = value.list();
  const auto count = static_cast<int>(entries.size());
  value.require(count == 2 || count == 3);
  if (dim != 0 && dim != count) value.fail(fmt::format("has {} entries, and other lists of the image {}", count, dim));
  dim = count;
  return entries;
}

std::vector<int> shape(const Value& value, int& dim) {
  std::vector<int> result;
  for (const Value& entry : directions(value, dim)) {
    result.push_back(entry.integer());
    entry.require(result.back() >= 1);
  }
  return result;
}

std::array<int, 3> corner(const Value& value, int& dim, std::array<int, 3> result) {
  const auto entries = directions(value, dim);
  for (std::size_t a = 0; a < entries.size(); ++a) result[a] = entries[a].integer();
  return result;
}

/// One number for all directions, or one for each.
std::array<double, 3> voxel(const Value& value, int& dim) {
  std::array<double, 3> result{1, 1, 1};
  if (value.is_list()) {
    const auto entries = directions(value, dim);
    for (std::size_t a = 0; a < entries.size(); ++a) result[a] = entries[a].number();
  } else {
    result.fill(value.number());
  }
  for (const double size : result) value.require(size > 0.0);
  return result;
}

constexpr Key<ImageFormat> threshold_keys[] = {
    {{"below", "a number", "", "pores are voxels with a smaller value"},
     [](const Value& v, ImageFormat& format) { format.below = v.number(); }},
    {{"above", "a number", "", "pores are voxels with a larger value"},
     [](const Value& v, ImageFormat& format) { format.above = v.number(); }},
};

constexpr Key<ImageFile> crop_keys[] = {
    {{"lower", "a list of 2 or 3 integers", "required", "first voxel in each direction, from 0"},
     [](const Value& v, ImageFile& image) {
       image.format.lower = corner(v, image.dim, {0, 0, 0});
     }},
    {{"upper", "a list of 2 or 3 integers", "required", "first voxel after them in each direction"},
     [](const Value& v, ImageFile& image) {
       image.format.upper = corner(v, image.dim, {1, 1, 1});
     }},
};

constexpr KeyInfo voxel_info{"voxel", "a number > 0, or a list of one for each direction", "1",
                             "size of a voxel in metres"};

constexpr Key<ImageFile> file_keys[] = {
    {{"file", "the name of a file", "required",
      "raw numbers, or a `.npy`, `.h5`, `.hdf5` or `.hdf` file; relative to the folder of the case file"},
     [](const Value& v, ImageFile& image) {
       v.require(!v.text().empty());
       image.name = std::filesystem::path(v.document().name).parent_path() / v.text();
     }},
    {{"shape", "a list of 2 or 3 integers >= 1", "", "voxels in x, y and z; raw files need it"},
     [](const Value& v, ImageFile& image) { image.format.shape = shape(v, image.dim); }},
    {{"dtype", "the name of a type, such as \"uint8\", \"int16\" or \"float32\"", "\"uint8\"",
      "of the numbers in a raw file, little endian"},
     [](const Value& v, ImageFile& image) {
       std::vector<std::string_view> names;
       for (const auto& [name, type] : number_types) names.push_back(name);
       image.format.dtype = names[v.place_among(names)];
     }},
    {{"axes", "the names of the directions, each once", "",
      "raw: from the fastest to the slowest, `\"xyz\"` by default; other files: of the indices of the array, `\"zyx\"` "
      "by default"},
     [](const Value& v, ImageFile& image) { image.format.axes = v.text(); }},
    {{"dataset", "the name of a dataset", "", "in an HDF5 file"},
     [](const Value& v, ImageFile& image) { image.format.dataset = v.text(); }},
    {{"pore", "a list of numbers", "", "values of the voxels that are pores; all others are solid"},
     [](const Value& v, ImageFile& image) {
       for (const Value& entry : v.list()) image.format.pore.push_back(entry.number());
       v.require(!image.format.pore.empty());
     }},
    {{"threshold", "a table {below = ...}, {above = ...} or both", "", "in place of `pore`"},
     [](const Value& v, ImageFile& image) { v.table<ImageFormat>(threshold_keys, image.format); }},
    {{"crop", "a table {lower = [...], upper = [...]}", "", "the voxels that are kept"},
     [](const Value& v, ImageFile& image) { v.table<ImageFile>(crop_keys, image); }},
    {{"mirror", "a list of directions, such as [\"x\"]", "[]",
      "behind the image its mirror image: it is periodic then, and twice as long"},
     [](const Value& v, ImageFile& image) {
       for (const Value& entry : v.list()) image.format.mirror.at(entry.place_among({"x", "y", "z"})) = true;
     }},
    {voxel_info, [](const Value& v, ImageFile& image) { image.format.voxel = voxel(v, image.dim); }},
};

constexpr Key<Generator> pattern_keys[] = {
    {{"generate", "\"spheres\", \"grains\", \"fibres\", \"blobs\", \"array\", \"channel\" or \"duct\"", "required",
      "solid spheres that do not overlap, or may; cylinders with round ends that may; smoothed noise above a "
      "threshold; "
      "a sphere in each cell of a lattice; pores between walls across y, or y and z. Spheres are discs in 2D"},
     [](const Value& v, Generator& what) { what.pattern = v.choice<Pattern>(); }},
    {{"shape", "a list of 2 or 3 integers >= 1", "required", "voxels in x, y and z"},
     [](const Value& v, Generator& what) {
       what.dim = 0;
       const std::vector<int> extent = shape(v, what.dim);
       what.extent = {1, 1, 1};
       std::copy(extent.begin(), extent.end(), what.extent.begin());
     }},
    {{"porosity", "a number > 0 and < 1", "0.5", "share of pores; not of `channel` and `duct`"},
     [](const Value& v, Generator& what) { what.porosity = v.number(); }},
    {{"radius", "a number >= 0.5", "8", "of spheres, grains and fibres, in voxels"},
     [](const Value& v, Generator& what) { what.radius = v.number(); }},
    {{"length", "a number >= 0", "32", "of fibres without their ends, in voxels"},
     [](const Value& v, Generator& what) { what.length = v.number(); }},
    {{"feature", "a number > 0", "8",
      "size of blobs: standard deviation of the Gaussian that smooths the noise, in voxels"},
     [](const Value& v, Generator& what) { what.feature = v.number(); }},
    {{"period", "an integer >= 1", "", "of `array`, in voxels; by default the image has one sphere along x"},
     [](const Value& v, Generator& what) {
       what.period = v.integer();
       v.require(what.period >= 1);
     }},
    {{"width", "an integer >= 1", "", "of `channel` and `duct`, in voxels; by default walls are one voxel thick"},
     [](const Value& v, Generator& what) {
       what.width = v.integer();
       v.require(what.width >= 1);
     }},
    {{"seed", "an integer", "1", "another number makes another image"},
     [](const Value& v, Generator& what) { what.seed = static_cast<std::uint64_t>(v.integer()); }},
    {voxel_info, [](const Value& v, Generator& what) { what.voxel = voxel(v, what.dim); }},
};

/// What image() makes; its errors belong to the value.
template <class Image>
std::shared_ptr<const VoxelImage> made_for(const Value& value, const Image& image) {
  try {
    return std::make_shared<const VoxelImage>(image());
  } catch (const InputError& error) {
    value.fail(error.what());
  }
}

}  // namespace

void read_image_key(const Value& value, Mesh& mesh) {
  std::shared_ptr<const VoxelImage> image;
  if (value.has("generate")) {
    Generator what;
    value.table<Generator>(pattern_keys, what);
    image = made_for(value, [&] { return generate_image(what); });
  } else {
    ImageFile file;
    value.table<ImageFile>(file_keys, file);
    image = made_for(value, [&] { return read_image(file.name, file.format); });
    value.document().image_axes = axes_of_array(file.name, file.format);
    if (file.dim != 0 && file.dim != image->dim()) {
      value.fail(fmt::format("its lists have {} entries, and the image has {} dimensions", file.dim, image->dim()));
    }
  }
  mesh = Mesh::of(std::move(image), mesh.refine);
  value.document().dim = mesh.dim;
}

std::vector<KeyInfo> image_file_infos() { return infos(file_keys); }
std::vector<KeyInfo> image_pattern_infos() { return infos(pattern_keys); }

}  // namespace solenoid
