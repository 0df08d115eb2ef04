#include "mesh/metric.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace solenoid {

/// Within a run of equal widths planes are counted from its beginning, so that roundings do not add up.
Metric::Axis::Axis(double lower, std::vector<double> widths) : width(std::move(widths)), plane{lower} {
  find_runs();
  for (std::size_t i = 0; i < width.size(); ++i) {
    const int begin = run[i];
    plane.push_back(plane[begin] + width[i] * static_cast<double>(static_cast<int>(i) + 1 - begin));
  }
}

void Metric::Axis::find_runs() {
  run.clear();
  for (std::size_t i = 0; i < width.size(); ++i) {
    run.push_back(i > 0 && width[i] == width[i - 1] ? run[i - 1] : static_cast<int>(i));
  }
}

Metric::Metric(const Point& lower, std::array<std::vector<double>, 3> widths) {
  for (int a = 0; a < 3; ++a) {
    if (!widths[a].empty()) axes_[a] = Axis(lower[a], std::move(widths[a]));
  }
}

Metric Metric::uniform(int dim, const Point& lower, const Point& width, const std::array<int, 3>& extent) {
  std::array<std::vector<double>, 3> widths;
  for (int a = 0; a < dim; ++a) widths[a].assign(extent[a], width[a]);
  return {lower, std::move(widths)};
}

Metric Metric::of(const Mesh& mesh) {
  std::array<int, 3> extent{1, 1, 1};
  Point width{};
  for (int a = 0; a < mesh.dim; ++a) {
    extent[a] = mesh.cells[a] << mesh.refine;
    width[a] = length_along(mesh, a) / extent[a];
  }
  if (mesh.edges) {
    Metric metric = uniform(mesh.dim, {}, width, extent);
    metric.map_ = std::make_shared<const AffineMap>(mesh.dim, mesh.lower, *mesh.edges);
    return metric;
  }
  return uniform(mesh.dim, mesh.lower, width, extent);
}

double Metric::lattice_coordinate(int a, double x) const {
  const Axis& axis = axes_[a];
  const auto above = std::upper_bound(axis.plane.begin() + 1, axis.plane.end() - 1, x);
  const int run = axis.run[above - axis.plane.begin() - 1];
  return run + (x - axis.plane[run]) / axis.width[run];
}

double Metric::smallest_width(int dim) const {
  double smallest = axes_[0].width[0];
  for (int a = 0; a < dim; ++a) {
    smallest = std::min(smallest, *std::min_element(axes_[a].width.begin(), axes_[a].width.end()));
  }
  return smallest;
}

Point Metric::uniform_width() const {
  Point size{};
  for (int a = 0; a < 3; ++a) {
    if (axes_[a].run.back() != 0) throw std::logic_error("a lattice of cells of one width was expected");
    size[a] = axes_[a].width[0];
  }
  return size;
}

Metric Metric::coarsen(const Coarsening& coarsening) const {
  Metric coarse;
  coarse.map_ = map_;
  for (int a = 0; a < 3; ++a) {
    Axis& axis = coarse.axes_[a];
    axis.width.clear();
    axis.plane = {axes_[a].plane[0]};
    for (int i = 0; i < coarsening.coarse_extent(a); ++i) {
      const int begin = coarsening.first_child(a, i);
      const int end = begin + coarsening.children(a, i);
      double width = 0.0;
      for (int child = begin; child < end; ++child) width += axes_[a].width[child];
      axis.width.push_back(width);
      axis.plane.push_back(axes_[a].plane[end]);
    }
    axis.find_runs();
  }
  return coarse;
}

Metric Metric::repeat(int a, int count) const {
  Metric all = *this;
  const Axis& one = axes_[a];
  std::vector<double> widths;
  for (int i = 0; i < count; ++i) widths.insert(widths.end(), one.width.begin(), one.width.end());
  all.axes_[a] = Axis(one.plane[0], std::move(widths));
  return all;
}

}  // namespace solenoid
