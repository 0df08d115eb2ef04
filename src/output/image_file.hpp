#pragma once
/// \file
/// Files of the fields of images.

#include <filesystem>

#include "solenoid/image.hpp"

namespace solenoid {

/// \throws InputError if the file of an image's fields would have more bytes.
void require_size(const VoxelImage& image, const std::filesystem::path& file, double most_bytes);

}  // namespace solenoid
