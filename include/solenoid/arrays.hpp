#pragma once
/// \file
/// Arrays over the cells of a mesh: how other programs, of a temperature or of species for example, give data to a flow
/// and get its velocity.
///
/// Points are m Gauss points per direction in every cell, m = 1: the middles of cells. Along a direction they are
/// numbered one cell after the other, i = m cell + q, so that all of them are a lattice. An array has a number for each
/// component at each point, in the order of C with the axes (x, y, z, component), in 2D (x, y, component): that of the
/// point (i, j, k) lies at
///
///     ((i n_y + j) n_z + k) components + component.
///
/// Places in holes count: what an array has there plays no part. Arrays are those of the whole mesh, on each of several
/// ranks too.

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "solenoid/field.hpp"
#include "solenoid/image.hpp"
#include "solenoid/mesh.hpp"
#include "solenoid/solution.hpp"

namespace solenoid {

/// The points of an array.
struct ArrayPoints {
  Mesh mesh;
  int points = 1;  ///< m, from 1 to 16
  int side = -1;   ///< -1: in cells; 2a, 2a + 1: on the faces of the lower, the upper side of the bounding box in
                   ///< direction a, which are one point wide in direction a
};

/// Coordinates per direction; in 2D z is 0 alone. On a mesh with edges: how far along each edge, from where they begin.
/// \throws InputError if there are no such points.
std::array<std::vector<double>, 3> axes_of(const ArrayPoints& at);

/// The points in space, in the order of an array. \throws InputError if there are no such points.
std::vector<Point> points_of(const ArrayPoints& at);

/// Numbers in an array of so many components. \throws InputError if there are no such points.
std::size_t array_size(const ArrayPoints& at, int components);

/// The vector field that is in each cell, or on each face, the polynomial of degree m - 1 in each direction through the
/// values of an array of dim components: constant in cells for m = 1. As force it is integrated exactly for m <= k + 3,
/// as velocity on a side for m <= k + 4. `label` names it in messages. \throws InputError if the number of values is
/// another, or there are no such points; where the field is evaluated if a value in the domain is not finite.
VectorField field_of(const ArrayPoints& at, std::vector<double> values, const std::string& label);

/// An array in the memory of the CUDA device, in the same order. Flows on that device read it where it is, and all work
/// on the device is waited for before. It has to stay what it is as long as the field is in use; `owner` is what keeps
/// it.
struct DeviceArray {
  const double* data = nullptr;
  std::size_t size = 0;
  std::shared_ptr<const void> owner{};
};
VectorField field_of(const ArrayPoints& at, const DeviceArray& values, const std::string& label);

/// The same of an array of one component.
ScalarField scalar_field_of(const ArrayPoints& at, std::vector<double> values, const std::string& label);

/// The same in the order that files of images have, x fastest: axes (z, y, x), in 2D (y, x), a number for each point.
ScalarField scalar_field_of_file(const ArrayPoints& at, const std::vector<double>& values, const std::string& label);

/// An array of any type of number in a file, NumPy's .npy or a dataset of an HDF5 file (.h5, .hdf5, .hdf), in the order
/// of C with the axes (z, y, x), in 2D (y, x), as files of images have it; of a vector field (component, z, y, x).
struct FieldFile {
  std::filesystem::path file;
  std::string dataset{};  ///< of an HDF5 file
  int points = 1;  ///< m > 1: values at m Gauss points per direction in every cell; 1: a number for each cell, each
                   ///< coarse box or a refinement in between (cellwise.hpp)
};

/// The field in each cell, as field_of() or cellwise() make it of these values, with dim components, or with one.
/// \throws InputError if the file cannot be read, or has an array of another shape.
VectorField read_field(const Mesh& mesh, const FieldFile& from);
ScalarField read_scalar_field(const Mesh& mesh, const FieldFile& from);

/// The velocity at m points per direction of all cells, an array of dim components; NaN in holes. Of several ranks all
/// ask, and get the same. \throws InputError for Poisson's equation, or if there are no such points.
std::vector<double> velocity_at(const Solution& solution, int points = 1);

/// In the same way the pressure, or Poisson's u; and du_c/dx_a, dim * dim components, that of c and a at c dim + a.
std::vector<double> pressure_at(const Solution& solution, int points = 1);
std::vector<double> gradient_at(const Solution& solution, int points = 1);
/// And what else a flow has: a scalar; a vorticity, of one component in 2D and three in 3D; a tensor, dim * dim
/// components as those of the gradient. \throws InputError for Poisson's equation
std::vector<double> field_at(const Solution& solution, FlowField field, int points = 1);
/// How many components that has.
int field_components(FlowField field, int dim);
/// On a side of the bounding box that is not periodic: n . (2 nu eps(u) - p I) n at the points {mesh, points, side}, an
/// array of one component. Pulled outwards it is positive; less its mean, divided by what a height weighs, it is the
/// topography that the flow holds up.
std::vector<double> normal_stress_at(const Solution& solution, int side, int points = 1);

/// For each direction a the fluxes through the faces of cells across it, volumes per unit of time (in 2D per unit of
/// depth), on boxes the integrals of u_a: an array of one component, of one more in direction a than there are cells.
/// Faces between two places that are not in the domain have 0. A face has one normal velocity, and what flows out of a
/// cell is zero to rounding: with F = face_fluxes(),
///
///     sum_a F_a[upper face] - F_a[lower face] = integral of div u = 0.
///
/// Of several ranks all ask, and get the same. \throws InputError for Poisson's equation.
std::array<std::vector<double>, 3> face_fluxes(const Solution& solution);
/// Numbers in that of direction a.
std::int64_t face_flux_count(const Mesh& mesh, int a);

/// The same, added up over each plane of faces across an axis, the lowest first: cells along the axis, and one more.
/// \throws InputError as face_fluxes.
std::vector<double> plane_fluxes(const Solution& solution, int axis);

/// A flow through an image: for each voxel the means of velocity and pressure over it, as arrays of all voxels in the
/// order above. They are those of a flow as permeability() drives it, with lengths in metres instead of voxels:
///
///     u = G / mu velocity,   p = G pressure   for a mean pressure gradient G and a viscosity mu,
///
/// so that the mean of `velocity` over the image, in square metres, is a column of K. Where a force drives the flow
/// `pressure`, in metres, is what there is besides the mean gradient.
struct ImageFields {
  std::vector<float> velocity;  ///< dim components; 0 in solid, and in pores that nothing flows through
  std::vector<float> pressure;  ///< NaN there
};

/// \throws InputError for Poisson's equation, a mesh that is no image, or the part of one of several ranks.
ImageFields image_fields(const Solution& flow);
/// What they take in a file before they are compressed, with three components of the velocity, and a byte that says
/// whether the voxel is a pore.
std::int64_t image_file_bytes(const VoxelImage& image);

}  // namespace solenoid
