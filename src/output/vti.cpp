#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string>

#include "base/new_file.hpp"
#include "output/image_file.hpp"
#include "output/vtk_file.hpp"
#include "solenoid/arrays.hpp"
#include "solenoid/error.hpp"
#include "solenoid/output.hpp"
#include "solution/voxel_means.hpp"

namespace solenoid {
namespace {

/// Where the voxel with a number is, x fastest.
std::array<int, 3> place(const std::array<int, 3>& extent, std::int64_t voxel) {
  return {static_cast<int>(voxel % extent[0]), static_cast<int>(voxel / extent[0] % extent[1]),
          static_cast<int>(voxel / extent[0] / extent[1])};
}

}  // namespace

void require_size(const VoxelImage& image, const std::filesystem::path& file, double most_bytes) {
  const auto bytes = static_cast<double>(image_file_bytes(image));
  if (bytes <= most_bytes) return;
  throw InputError(fmt::format(
      "'{}' would have {:.3g} GB, before it is compressed, and {:.3g} GB is the limit: raise it if you want this",
      file.string(), bytes * 1e-9, most_bytes * 1e-9));
}

void write_vti(const Solution& flow, const std::filesystem::path& file, double most_bytes) {
  const VoxelMeans looks_at(flow);  // that there are such fields
  const VoxelImage& image = *flow.problem().mesh.image;
  require_size(image, file, most_bytes);
  const auto extent = image.extent();
  const std::string points = fmt::format("0 {} 0 {} 0 {}", extent[0], extent[1], image.dim() == 3 ? extent[2] : 0);
  NewFile output(file);
  VtkWriter vtk(output, image.size());
  vtk.text(vtk_head("ImageData"));
  vtk.text(fmt::format("<ImageData WholeExtent=\"{}\" Origin=\"0 0 0\" Spacing=\"{}\">\n<Piece Extent=\"{}\">\n",
                       points, fmt::join(image.voxel(), " "), points));
  vtk.text("<CellData Vectors=\"velocity\" Scalars=\"pressure\">\n");
  vtk.declare("Float32", "velocity", 3);
  vtk.declare("Float32", "pressure", 1);
  vtk.declare("UInt8", "pore", 1);
  vtk.text("</CellData>\n</Piece>\n</ImageData>\n");
  vtk.begin_appendix();
  vtk.array<float>(3, [&] {
    return [&, means = VoxelMeans(flow)](std::int64_t voxel, float* values) mutable {
      means.velocity(place(extent, voxel), std::span(values, 3));
    };
  });
  vtk.array<float>(1, [&] {
    return [&, means = VoxelMeans(flow)](std::int64_t voxel, float* values) mutable {
      *values = means.pressure(place(extent, voxel));
    };
  });
  vtk.array<std::uint8_t>(1, [&] {
    return [&](std::int64_t voxel, std::uint8_t* values) { *values = looks_at.pore(place(extent, voxel)) ? 1 : 0; };
  });
  vtk.text("\n</AppendedData>\n</VTKFile>\n");
  output.commit();
}

}  // namespace solenoid
