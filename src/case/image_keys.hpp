#pragma once
/// \file
/// The key `image` of [mesh].

#include <vector>

#include "case/value.hpp"
#include "solenoid/mesh.hpp"

namespace solenoid {

/// Reads or makes the image and gives the mesh a coarse box for each voxel.
void read_image_key(const Value& value, Mesh& mesh);

/// Keys of an image that is read, and of one that is made.
std::vector<KeyInfo> image_file_infos();
std::vector<KeyInfo> image_pattern_infos();

}  // namespace solenoid
