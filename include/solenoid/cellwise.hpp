#pragma once
/// \file
/// Fields that are given by arrays of one number for each cell.

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "solenoid/field.hpp"
#include "solenoid/mesh.hpp"

namespace solenoid {

/// The field that is values[i + nx (j + ny k)] in cell (i, j, k), counted from the lower corner of the bounding box of
/// a mesh, or along its edges; in 2D nz = 1. `extent`: the numbers nx, ny and nz, of the cells of the mesh, of its
/// coarse boxes, or of any uniform refinement in between. What the array has in holes is not looked at. Between cells
/// it is that of the upper one. `label` names it in messages. \throws InputError unless there are so many values and
/// the cells are such
ScalarField cellwise(const Mesh& mesh, const std::array<std::int64_t, 3>& extent, std::vector<double> values,
                     const std::string& label = "");

/// The same from an array [z, y, x] in 2D [y, x], of any type of number: NumPy's .npy, or a dataset of an HDF5 file
/// (.h5, .hdf5, .hdf). \throws InputError also if the file cannot be read
ScalarField read_cellwise(const Mesh& mesh, const std::filesystem::path& file, const std::string& dataset = "",
                          const std::string& label = "");

}  // namespace solenoid
