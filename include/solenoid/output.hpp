#pragma once
/// \file
/// Files for people: results, VTU, pictures. Every file is written under a temporary name and renamed.

#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "solenoid/averages.hpp"
#include "solenoid/case.hpp"
#include "solenoid/solution.hpp"
#include "solenoid/solver.hpp"

namespace solenoid {

/// VTK unstructured grid, appended zlib-compressed binary. `subdivide` = 0: one Lagrange cell of degree k + 1 per cell,
/// which holds u_h and p_h (or Poisson's u_h) exactly; otherwise subdivide^dim linear cells each. \throws InputError
/// if it is negative, Error if the file cannot be written. Of several ranks each writes the cells of its own, to FILE
/// less its ending and `_RANK.vtu`, and the first one FILE, whose ending is .pvtu and which names them all: once they
/// are there. One that has all cells may have such a FILE, too.
/// `fields`: point data besides velocity and pressure, evaluated at the points of the file: exact for what is linear in
/// the flow, interpolated for what is not. Tensors have xx, yy, zz, xy, yz, xz.
void write_vtu(const Solution& solution, const std::filesystem::path& file, int subdivide = 0,
               std::span<const FlowField> fields = {});
/// The mean flow as above, `reynolds_stress` (xx, yy, zz, xy, yz, xz, as ParaView has symmetric tensors) and
/// `dissipation`, those of Averages.
void write_vtu(const Averages& averages, const std::filesystem::path& file, int subdivide = 0);

/// Images are large, and so are their files: beyond this size in bytes (image_file_bytes) they are to be asked for.
inline constexpr double large_image_file = 1e9;

/// The fields of an image (ImageFields) as VTK image data, appended zlib-compressed binary: cell data `velocity`,
/// `pressure` and `pore`, 1 where the flow is solved for. Lengths are metres. \throws InputError as image_fields(),
/// or if it would have more than `most_bytes`; Error if the file cannot be written.
void write_vti(const Solution& flow, const std::filesystem::path& file, double most_bytes = large_image_file);
/// The same as an HDF5 file: datasets `velocity` and `pressure`. `axes`: the directions of their indices, each once,
/// "zyx" or "xyz" for example; "" for those, or in 2D for "yx". The component of the velocity is the last index.
/// \throws InputError if this build has no HDF5, too.
void write_image_fields(const Solution& flow, const std::filesystem::path& file, const std::string& axes = "",
                        double most_bytes = large_image_file);

/// PNG of the speed on the domain (2D) or its middle slice z = const (3D) with streamlines of the velocity in the
/// plane; of Poisson's u without streamlines. Axes have coordinates, and the colour bar the ends of its scale. \throws
/// InputError if the solution is the part of one of several ranks.
/// `field`: that one in place of the speed, no tensor, in 3D of the vorticity the z component, of the viscosity its
/// logarithm to base 10; without streamlines. `scale`: the
/// values at the ends of the colours, the same for all pictures of a series; by default those of the picture.
/// \throws InputError unless they ascend.
void write_picture(const Solution& solution, const std::filesystem::path& file,
                   const std::optional<FlowField>& field = {}, const std::optional<Scale>& scale = {});

/// Values at points as a table, comma-separated with a line of names: x, y, z, u_x, u_y, u_z, p, those that there are,
/// with Poisson's equation x, y, z, u. Numbers have all their digits; values outside the domain are nan. \throws
/// InputError if the solution is the part of one of several ranks.
void write_csv(const Solution& solution, std::span<const Point> points, const std::filesystem::path& file);

/// How speeds are distributed over the domain, as such a table: `speed`, in multiples of the mean speed, and `density`,
/// the share of the domain with such speeds per unit of `speed`. Speeds are those in the middles of cells, in 100
/// classes of equal width. \throws InputError for Poisson's equation, or if the solution is the part of one of several
/// ranks.
void write_speeds(const Solution& solution, const std::filesystem::path& file);

/// The normal stress in the middles of a side's faces (normal_stress_at) as such a table: x, y, z and `normal_stress`.
/// \throws InputError also if the solution is the part of one of several ranks.
void write_normal_stress(const Solution& solution, int side, const std::filesystem::path& file);

/// A profile as such a table: coordinates across, u_x, u_y, u_z, p, the stresses r_xx, r_xy, ... and the dissipation.
void write_csv(const Profile& profile, int dim, const std::filesystem::path& file);

/// The result file (JSON) of a finished solve of `what`.
void write_result(const Case& what, const Result& result, const std::filesystem::path& file);

}  // namespace solenoid
