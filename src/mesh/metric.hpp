#pragma once
/// \file
/// How wide the cells of a lattice are and where its planes lie.

#include <array>
#include <memory>
#include <vector>

#include "mesh/coarsening.hpp"
#include "problem/affine_map.hpp"
#include "solenoid/problem.hpp"

namespace solenoid {

/// Widths of a tensor-product lattice per direction and index. In directions beyond its dimension there is one cell of
/// width 0.
///
/// Grids, loads, evaluation, norms and files take widths cell by cell. What is made for cells of one size (matrices of
/// kernels and of patches, which directions are coarsened) asks for uniform_width(). Meshes are uniform today.
///
/// Cells may be parallelepipeds: then this is the lattice of boxes that a map makes them of, widths are lengths of
/// edges.
class Metric {
 public:
  Metric() = default;
  /// Cells of these widths, the first of which begins at `lower`.
  Metric(const Point& lower, std::array<std::vector<double>, 3> widths);
  /// Cells of one size. (Planes lie at lower + i width, to one rounding.)
  static Metric uniform(int dim, const Point& lower, const Point& width, const std::array<int, 3>& extent);
  /// Of the finest lattice of a mesh.
  static Metric of(const Mesh& mesh);

  [[nodiscard]] int extent(int a) const { return static_cast<int>(axes_[a].width.size()); }
  /// Of cells with lattice index i in direction a.
  [[nodiscard]] double width(int a, int i) const { return axes_[a].width[i]; }
  /// The coordinate of the plane below cells with lattice index i; i = extent(a): of the last plane.
  [[nodiscard]] double plane(int a, int i) const { return axes_[a].plane[i]; }
  /// Lattice index of the cell that holds coordinate x, plus how far across that cell it lies in [0, 1): the inverse of
  /// plane(). Beyond the first and last plane cells go on with the width of those there.
  [[nodiscard]] double lattice_coordinate(int a, double x) const;
  /// Of all cells and the first `dim` directions.
  [[nodiscard]] double smallest_width(int dim) const;

  /// The size of all cells. \throws std::logic_error if there is no such thing
  [[nodiscard]] Point uniform_width() const;

  /// What makes cells of boxes; nullptr: they are boxes.
  [[nodiscard]] const AffineMap* map() const { return map_.get(); }

  /// Of the coarser lattice: widths of cells that become one are added up, planes that stay stay where they are.
  [[nodiscard]] Metric coarsen(const Coarsening& coarsening) const;
  /// So many of this lattice behind each other in direction a.
  [[nodiscard]] Metric repeat(int a, int count) const;

 private:
  struct Axis {
    std::vector<double> width;
    std::vector<double> plane;
    std::vector<int> run;  ///< [cell]: the first of the cells of one width that it is among

    Axis() : width{0.0}, plane{0.0, 0.0}, run{0} {}
    Axis(double lower, std::vector<double> widths);
    void find_runs();
  };
  std::array<Axis, 3> axes_;
  std::shared_ptr<const AffineMap> map_;
};

}  // namespace solenoid
