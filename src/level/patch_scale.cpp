#include "level/patch_scale.hpp"

#include <algorithm>
#include <cmath>

#include "base/parallel.hpp"
#include "level/patch_viscosity.hpp"

namespace solenoid {
namespace {

/// A power of 2^(1/2) that is not less, and at least a thousandth of what viscosity makes of a cell; or zero.
double rounded_up(double reaction, double width) {
  if (reaction == 0.0) return 0.0;
  const double least = 1e-3 / (width * width);
  return std::exp2(0.5 * std::ceil(2.0 * std::log2(std::max(reaction, least))));
}

/// In the stress form: ends of a patch whose faces are all outflow faces.
int open_ends(const Level& level, const std::array<Record, 8>& patch) {
  int open = 0;
  for (int side = 0; side < 2 * level.equation.dim && level.equation.form == ViscousForm::stress; ++side) {
    bool outflow = true;
    for (int bits = 0; bits < 1 << level.equation.dim; ++bits) {
      if ((bits >> side / 2 & 1) == side % 2) outflow = outflow && level.grid.face(patch[bits], side) == Face::outflow;
    }
    open += outflow ? 1 : 0;
  }
  return open;
}

}  // namespace

Contrast contrast_of(const Level& level) {
  const std::vector<double>& viscosity = level.coefficients.by_cell->viscosity;
  if (viscosity.empty()) return {};
  const auto [smallest, largest] = std::minmax_element(viscosity.begin(), viscosity.end());
  Contrast contrast{.all = *largest / *smallest};
  for (const Record lower : level.patches.lower_cell) {
    const auto cells = patch_cells(level.grid, lower);
    double least = viscosity[lower];
    double most = viscosity[lower];
    for (int bits = 0; bits < 1 << level.equation.dim; ++bits) {
      least = std::min(least, viscosity[cells[bits]]);
      most = std::max(most, viscosity[cells[bits]]);
    }
    contrast.in_patches = std::max(contrast.in_patches, most / least);
  }
  return contrast;
}

PatchScale patch_scale(const Level& level, Record lower) {
  const CellCoefficients& coefficients = *level.coefficients.by_cell;
  const int cells = 1 << level.equation.dim;
  const auto patch = patch_cells(level.grid, lower);
  double sum = 0.0;
  double largest = 0.0;
  double reaction = 0.0;
  for (int bits = 0; bits < cells; ++bits) {
    const double viscosity = coefficients.viscosity[patch[bits]];
    sum += viscosity;
    largest = std::max(largest, viscosity);
    reaction += coefficients.reaction[patch[bits]];
  }
  PatchScale scale;
  scale.viscosity = patch_viscosity(sum / cells, largest, open_ends(level, patch));
  const Point& h = level.grid.metric().uniform_width();
  scale.reaction =
      rounded_up(reaction / cells / scale.viscosity, *std::max_element(h.begin(), h.begin() + level.equation.dim));
  return scale;
}

std::vector<PatchScale> patch_scales(const Level& level) {
  const auto& lower_cell = level.patches.lower_cell;
  std::vector<PatchScale> scales(lower_cell.size());
  if (!level.has_coefficients_by_cell()) return scales;
  parallel_ranges({std::ssize(scales)}, [&](CellRange range, std::int64_t) {
    for (auto i = range.begin; i < range.end; ++i) scales[i] = patch_scale(level, lower_cell[i]);
  });
  return scales;
}

}  // namespace solenoid
