#pragma once
/// \file
/// Hats that two cells share (level/upper_hats.hpp), on the device.

#include "engine/cuda/kernels/arguments.hpp"

namespace solenoid::cuda {

struct UpperHats {
  CellTopology topology;
  int dim;
  int order;
  std::int32_t cells;   ///< that have an upper share: the first ones
  const double* upper;  ///< dim n^(dim-1) numbers for each of them, interleaved
  double* y;
};

struct Hats {
  CellTopology topology;
  int dim;
  int order;
  double* y;
};

/// Hats of all records become zero, and all else in those that have nothing but hats.
void clear_hats(const Hats& hats, Stream stream);

/// Adds to the hats of all records what the cells below have of them; zero where they are prescribed.
void add_upper_hats(const UpperHats& hats, Stream stream);

}  // namespace solenoid::cuda
