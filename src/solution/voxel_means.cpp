#include "solution/voxel_means.hpp"

#include <cmath>
#include <limits>

#include "base/parallel.hpp"
#include "element/basis.hpp"
#include "problem/validate.hpp"
#include "solenoid/arrays.hpp"
#include "solenoid/error.hpp"
#include "solenoid/image.hpp"
#include "solution/joined.hpp"

namespace solenoid {
namespace {

const VoxelImage& image_of(const Solution& flow) {
  require_velocity(flow.problem());
  require_whole(flow.grid(), "fields of an image");
  const auto& image = flow.problem().mesh.image;
  if (image == nullptr) throw InputError("fields of an image are those of a flow through one: its mesh has no image");
  return *image;
}

}  // namespace

VoxelMeans::VoxelMeans(const Solution& flow)
    : grid_(flow.grid()),
      cells_(1 << flow.problem().mesh.refine),
      area_(std::pow(image_of(flow).voxel()[0], 2)),
      length_(image_of(flow).voxel()[0]),
      evaluator_(flow) {
  // Exact for the degree k + 1 of the velocity along itself.
  const Quadrature rule = gauss((flow.problem().order + 1) / 2 + 1);
  evaluator_.set_points({rule.points, rule.points, rule.points});
  weights_ = {std::pow(cells_, -grid_.dim())};
  for (int a = 0; a < grid_.dim(); ++a) {
    std::vector<double> next;
    for (const double slow : rule.weights) {
      for (const double weight : weights_) next.push_back(slow * weight);
    }
    weights_ = std::move(next);
  }
  values_.resize(weights_.size() * grid_.dim());
}

Record VoxelMeans::first_cell(const std::array<int, 3>& at) const {
  return grid_.at({at[0] * cells_, at[1] * cells_, at[2] * cells_});
}

template <class Visit>
void VoxelMeans::for_cells(const std::array<int, 3>& at, const Visit& visit) const {
  for (int k = 0; k < (grid_.dim() == 3 ? cells_ : 1); ++k) {
    for (int j = 0; j < cells_; ++j) {
      for (int i = 0; i < cells_; ++i) visit(grid_.at({at[0] * cells_ + i, at[1] * cells_ + j, at[2] * cells_ + k}));
    }
  }
}

void VoxelMeans::velocity(const std::array<int, 3>& at, std::span<float> velocity) {
  Point mean{};
  const std::size_t dim = grid_.dim();
  if (pore(at)) {
    for_cells(at, [&](Record cell) {
      evaluator_.velocity(cell, values_.data());
      for (std::size_t q = 0; q < weights_.size(); ++q) {
        for (std::size_t c = 0; c < dim; ++c) mean[c] += weights_[q] * values_[q * dim + c];
      }
    });
  }
  for (std::size_t c = 0; c < velocity.size(); ++c) velocity[c] = static_cast<float>(area_ * mean[c]);
}

float VoxelMeans::pressure(const std::array<int, 3>& at) {
  if (!pore(at)) return std::numeric_limits<float>::quiet_NaN();
  double mean = 0.0;
  for_cells(at, [&](Record cell) {
    evaluator_.pressure(cell, values_.data());
    for (std::size_t q = 0; q < weights_.size(); ++q) mean += weights_[q] * values_[q];
  });
  return static_cast<float>(length_ * mean);
}

std::int64_t image_file_bytes(const VoxelImage& image) {
  constexpr std::int64_t of_voxel = 4 * sizeof(float) + 1;
  return of_voxel * image.size();
}

ImageFields image_fields(const Solution& flow) {
  const VoxelImage& image = image_of(flow);
  const auto& [nx, ny, nz] = image.extent();
  const std::size_t dim = image.dim();
  ImageFields fields;
  fields.velocity.resize(image.size() * dim);
  fields.pressure.resize(image.size());
  parallel_for(std::int64_t{nx} * ny, [&, ny = ny, nz = nz] {
    return [&, ny, nz, means = VoxelMeans(flow)](std::int64_t row) mutable {
      for (int z = 0; z < nz; ++z) {
        const std::array<int, 3> at{static_cast<int>(row / ny), static_cast<int>(row % ny), z};
        const std::size_t voxel = row * nz + z;
        means.velocity(at, std::span(fields.velocity).subspan(voxel * dim, dim));
        fields.pressure[voxel] = means.pressure(at);
      }
    };
  });
  return fields;
}

}  // namespace solenoid
