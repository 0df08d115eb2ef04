#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hdf5.hpp"
#include "base/new_file.hpp"
#include "base/parallel.hpp"
#include "output/image_file.hpp"
#include "solenoid/error.hpp"
#include "solenoid/output.hpp"
#include "solenoid/version.hpp"
#include "solution/voxel_means.hpp"

namespace solenoid {
namespace {

using hdf5::expect;
using hdf5::Failure;
using hdf5::Handle;

constexpr std::string_view about_images =
    "Means over voxels of a flow through an image. The attribute `axes` has the directions of the indices, of the "
    "velocity those before the last, its component x, y, z; `voxel` their sizes in metres. For a mean pressure "
    "gradient G and a viscosity mu the velocity is G / mu `velocity` (m^2), whose mean over the image is a column of "
    "the permeability, and the pressure G `pressure` (m); where a force drives the flow without the mean gradient. "
    "Where nothing flows velocities are 0 and pressures NaN.";

void write_text(hid_t object, const char* name, std::string_view value) {
  const Handle type(H5Tcopy(H5T_C_S1), H5Tclose, name);
  expect(H5Tset_size(type, value.size()), name);
  const Handle space(H5Screate(H5S_SCALAR), H5Sclose, name);
  const Handle attribute(H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose, name);
  expect(H5Awrite(attribute, type, value.data()), name);
}

void write_numbers(hid_t object, const char* name, const std::vector<double>& values) {
  const hsize_t count = values.size();
  const Handle space(H5Screate_simple(1, &count, nullptr), H5Sclose, name);
  const Handle attribute(H5Acreate2(object, name, H5T_IEEE_F64LE, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose, name);
  expect(H5Awrite(attribute, H5T_NATIVE_DOUBLE, values.data()), name);
}

/// An array that is written by its slowest index.
class Layers {
 public:
  Layers(hid_t file, const char* name, std::vector<hsize_t> shape)
      : shape_(std::move(shape)),
        space_(H5Screate_simple(static_cast<int>(shape_.size()), shape_.data(), nullptr), H5Sclose, name),
        dataset_(H5Dcreate2(file, name, H5T_IEEE_F32LE, space_, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Dclose,
                 name) {}

  void write(hsize_t index, const std::vector<float>& values) {
    std::vector<hsize_t> start(shape_.size(), 0);
    std::vector<hsize_t> count = shape_;
    start[0] = index;
    count[0] = 1;
    const Handle in_memory(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr), H5Sclose, "space");
    expect(H5Sselect_hyperslab(space_, H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr), "slab");
    expect(H5Dwrite(dataset_, H5T_NATIVE_FLOAT, in_memory, space_, H5P_DEFAULT, values.data()), "numbers");
  }

 private:
  std::vector<hsize_t> shape_;
  Handle space_;
  Handle dataset_;
};

/// `directions`: of the indices.
void write(const Solution& flow, const std::filesystem::path& file, const std::string& axes,
           const std::vector<int>& directions) {
  const hdf5::Session session;
  const Handle handle(H5Fcreate(file.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose, "create");
  const VoxelImage& image = *flow.problem().mesh.image;
  const std::size_t dim = image.dim();
  std::vector<double> voxel;
  std::vector<hsize_t> shape;
  for (const int a : directions) {
    voxel.push_back(image.voxel()[a]);
    shape.push_back(image.extent()[a]);
  }
  write_text(handle, "program", fmt::format("solenoid {}", version));
  write_text(handle, "about", about_images);
  write_text(handle, "axes", axes);
  write_numbers(handle, "voxel", voxel);
  Layers pressure(handle, "pressure", shape);
  shape.push_back(dim);
  Layers velocity(handle, "velocity", shape);

  const std::int64_t columns = dim == 3 ? static_cast<std::int64_t>(shape[2]) : 1;
  const std::int64_t in_layer = image.size() / static_cast<std::int64_t>(shape[0]);
  std::vector<float> u(in_layer * dim);
  std::vector<float> p(in_layer);
  for (hsize_t layer = 0; layer < shape[0]; ++layer) {
    parallel_for(in_layer / columns, [&] {
      return [&, means = VoxelMeans(flow)](std::int64_t row) mutable {
        for (std::int64_t column = 0; column < columns; ++column) {
          std::array<int, 3> at{};
          at[directions[0]] = static_cast<int>(layer);
          at[directions[1]] = static_cast<int>(row);
          if (dim == 3) at[directions[2]] = static_cast<int>(column);
          const std::int64_t i = row * columns + column;
          means.velocity(at, std::span(u).subspan(i * dim, dim));
          p[i] = means.pressure(at);
        }
      };
    });
    velocity.write(layer, u);
    pressure.write(layer, p);
  }
}

}  // namespace

void write_image_fields(const Solution& flow, const std::filesystem::path& file, const std::string& axes,
                        double most_bytes) {
  const VoxelMeans looks_at(flow);  // that there are such fields
  const VoxelImage& image = *flow.problem().mesh.image;
  require_size(image, file, most_bytes);
  const std::string names = std::string("xyz").substr(0, image.dim());
  const std::string said = axes.empty() ? std::string(names.rbegin(), names.rend()) : axes;
  if (!std::is_permutation(said.begin(), said.end(), names.begin(), names.end())) {
    throw InputError(fmt::format("axes: expected {}, each once, got \"{}\"", fmt::join(names, ", "), axes));
  }
  std::vector<int> directions;
  for (const char name : said) directions.push_back(static_cast<int>(names.find(name)));
  NewFile target(file);
  try {
    write(flow, target.temporary(), said, directions);
  } catch (const Failure&) {
    target.fail("write");
  }
  target.commit();
}

}  // namespace solenoid
