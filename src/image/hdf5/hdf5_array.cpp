#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "base/hdf5.hpp"
#include "image/array_file.hpp"
#include "solenoid/error.hpp"

namespace solenoid {
namespace {

using hdf5::expect;
using hdf5::Failure;
using hdf5::Handle;
using hdf5::Session;

hid_t memory_type(NumberType type) {
  switch (type) {
    case NumberType::int8: return H5T_NATIVE_INT8;
    case NumberType::uint8: return H5T_NATIVE_UINT8;
    case NumberType::int16: return H5T_NATIVE_INT16;
    case NumberType::uint16: return H5T_NATIVE_UINT16;
    case NumberType::int32: return H5T_NATIVE_INT32;
    case NumberType::uint32: return H5T_NATIVE_UINT32;
    case NumberType::int64: return H5T_NATIVE_INT64;
    case NumberType::uint64: return H5T_NATIVE_UINT64;
    case NumberType::float32: return H5T_NATIVE_FLOAT;
    case NumberType::float64: break;
  }
  return H5T_NATIVE_DOUBLE;
}

/// Whatever the order of its bytes: the library turns them.
NumberType type_of(hid_t dataset) {
  const Handle type(H5Dget_type(dataset), H5Tclose, "it has no type");
  const std::size_t size = H5Tget_size(type);
  const H5T_class_t kind = H5Tget_class(type);
  const bool is_signed = kind == H5T_INTEGER && H5Tget_sign(type) == H5T_SGN_2;
  if (kind == H5T_FLOAT && size == 4) return NumberType::float32;
  if (kind == H5T_FLOAT && size == 8) return NumberType::float64;
  if (kind == H5T_INTEGER && size == 1) return is_signed ? NumberType::int8 : NumberType::uint8;
  if (kind == H5T_INTEGER && size == 2) return is_signed ? NumberType::int16 : NumberType::uint16;
  if (kind == H5T_INTEGER && size == 4) return is_signed ? NumberType::int32 : NumberType::uint32;
  if (kind == H5T_INTEGER && size == 8) return is_signed ? NumberType::int64 : NumberType::uint64;
  throw InputError("expected integers of 1, 2, 4 or 8 bytes, or floating-point numbers of 4 or 8");
}

std::vector<std::string> names_in(hid_t file) {
  std::vector<std::string> names;
  const auto add = [](hid_t, const char* name, const H5L_info_t*, void* all) -> herr_t {
    static_cast<std::vector<std::string>*>(all)->emplace_back(name);
    return static_cast<std::vector<std::string>*>(all)->size() < 16 ? 0 : 1;
  };
  H5Literate(file, H5_INDEX_NAME, H5_ITER_INC, nullptr, add, &names);
  return names;
}

/// Handles, closed while nobody else uses the library.
struct Open {
  Handle file;
  Handle dataset;
};

}  // namespace

ArrayFile open_hdf5(const std::filesystem::path& file, const std::string& dataset) try {
  const Session session;
  Handle opened(H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose, "it is no HDF5 file");
  const hid_t found = dataset.empty() ? hid_t{-1} : H5Dopen2(opened, dataset.c_str(), H5P_DEFAULT);
  if (found < 0) {
    throw InputError(
        fmt::format("{}: expected the name of a dataset; the file has {}",
                    dataset.empty() ? "no dataset is named" : fmt::format("it has no dataset '{}'", dataset),
                    fmt::join(names_in(opened), ", ")));
  }
  Handle array(found, H5Dclose, "no dataset");
  ArrayFile result;
  result.type = type_of(array);
  const Handle space(H5Dget_space(array), H5Sclose, "its dataset has no shape");
  const int rank = H5Sget_simple_extent_ndims(space);
  if (rank < 1 || rank > 3) throw InputError(fmt::format("its dataset has {} indices: expected 2 or 3", rank));
  std::vector<hsize_t> shape(rank);
  expect(H5Sget_simple_extent_dims(space, shape.data(), nullptr), "its dataset has no shape");
  result.extent.assign(shape.rbegin(), shape.rend());
  // Last: what closes them needs a session of its own.
  const std::shared_ptr<const Open> open(new Open{std::move(opened), std::move(array)}, [](const Open* closed) {
    const Session closing;
    delete closed;
  });
  result.read = [open, shape, type = result.type](std::int64_t first, std::int64_t count, void* numbers) {
    try {
      const Session reading;
      std::vector<hsize_t> start(shape.size(), 0);
      std::vector<hsize_t> size = shape;
      start[0] = static_cast<hsize_t>(first);
      size[0] = static_cast<hsize_t>(count);
      const Handle in_file(H5Dget_space(open->dataset), H5Sclose, "no space");
      expect(H5Sselect_hyperslab(in_file, H5S_SELECT_SET, start.data(), nullptr, size.data(), nullptr), "no slab");
      const Handle in_memory(H5Screate_simple(static_cast<int>(size.size()), size.data(), nullptr), H5Sclose,
                             "no space");
      expect(H5Dread(open->dataset, memory_type(type), in_memory, in_file, H5P_DEFAULT, numbers), "no numbers");
    } catch (const Failure&) {
      throw InputError("its dataset could not be read");
    }
  };
  return result;
} catch (const Failure& failure) {
  throw InputError(failure.what());
}

}  // namespace solenoid
