#pragma once
/// \file
/// What loads on the device (load.cuh) exchange with the engine: plain data.

#include "engine/cuda/kernels/points.hpp"
#include "mesh/record.hpp"

namespace solenoid::cuda {

/// A thread block has `cells` cells side by side in a block of records. Its memory, in doubles, arrays with the cell as
/// the fastest index:
///   coordinates  [direction][point][cell]
///   scale        [cell]: sqrt(h_x h_y h_z), of weights times functions
///   values       [q_z][q_y][q_x][cell] of a component, then what is left of it while the directions are summed up
///   free         what programs keep, then as much again as values
struct LoadMemory {
  int dim;
  int n;
  int cells;

  constexpr LoadMemory(int dim_, int n_) : dim(dim_), n(n_), cells(interleave) {
    while (2 * value_count() <= enough_values) cells *= 2;
    while (value_count() > most_values) cells /= 2;
  }
  /// Gauss points in each direction.
  [[nodiscard]] constexpr int points() const { return n + 1; }
  [[nodiscard]] constexpr int coordinates_at() const { return 0; }
  [[nodiscard]] constexpr int scale_at() const { return coordinates_at() + dim * points() * cells; }
  [[nodiscard]] constexpr int values_at() const { return scale_at() + cells; }
  [[nodiscard]] constexpr int value_count() const { return cells * power(points(), dim); }
  [[nodiscard]] constexpr int free_at() const { return values_at() + value_count(); }
  /// Without programs.
  [[nodiscard]] constexpr int least() const { return free_at() + value_count(); }

 private:
  static constexpr int enough_values = 1024;  // to keep a block's threads busy
  static constexpr int most_values = 2048;
};

/// The rule in [0, 1], and test functions at its points times its weights, for h = 1.
struct LoadTables {
  double point[max_n + 1];
  double legendre[max_n][max_n + 1];
  double continuous[max_n + 1][max_n + 1];  ///< P
};

/// Pointers are to device memory.
struct LoadArguments {
  CellTopology topology;
  CellPlaces places;
  LoadTables tables;
  PointField component[3];  ///< of f
  int numbers;              ///< of a block's memory
  double* b;
  int* not_finite;  ///< set to 1 if a value of f is not finite
};

}  // namespace solenoid::cuda
