#pragma once
/// \file
/// Of discrete fields on the cells of a level: integrals of what they differ from given ones by, velocities at points,
/// fluxes through faces: plain data and functions that launch kernels. One kernel serves all orders: what it does per
/// point is little beside the traffic of a solve. (What a history has of a flow, each step:
/// kernels/flow_integrals.cuh.)

#include <cstdint>

#include "engine/cuda/kernels/points.hpp"
#include "engine/flow_data.hpp"
#include "mesh/record.hpp"

namespace solenoid::cuda {

/// A thread block has `cells` cells side by side in a block of records. Its memory, in doubles, arrays with the cell as
/// the fastest index:
///   rule         [point], then [point]: points and weights in [0, 1]
///   functions    [O, P][point][n + 1] at the points, for h = 1
///   weights      [q_z][q_y][q_x] for a cell of size 1
///   coordinates  [direction][point][cell]
///   volume       [cell]
///   first, second: a tensor of coefficients while its directions become points one after the other
///   third, fourth: [q_z][q_y][q_x][cell]: a given field, and what its program keeps
struct IntegralMemory {
  int dim = 0;
  int n = 0;
  int points = 0;  ///< in each direction
  int cells = 0;

  constexpr IntegralMemory() = default;
  constexpr IntegralMemory(int dim_, int n_, int points_) : dim(dim_), n(n_), points(points_), cells(interleave) {
    while (cells > 1 && room() > most_values) cells /= 2;
  }
  [[nodiscard]] constexpr int cell_points() const { return power(points, dim); }
  [[nodiscard]] constexpr int value_count() const { return cells * cell_points(); }
  /// Of values, or of what there is on the way from functions to points.
  [[nodiscard]] constexpr int room() const { return cells * power(points > n ? points : n + 1, dim); }

  [[nodiscard]] constexpr int weight_at() const { return points; }
  [[nodiscard]] constexpr int function_at(bool continuous) const {
    return 2 * points + (continuous ? points * (n + 1) : 0);
  }
  [[nodiscard]] constexpr int table_size() const { return 2 * points + 2 * points * (n + 1); }
  [[nodiscard]] constexpr int weights_at() const { return table_size(); }
  [[nodiscard]] constexpr int coordinates_at() const { return weights_at() + cell_points(); }
  [[nodiscard]] constexpr int volume_at() const { return coordinates_at() + dim * points * cells; }
  [[nodiscard]] constexpr int first_at() const { return volume_at() + cells; }
  [[nodiscard]] constexpr int second_at() const { return first_at() + room(); }
  [[nodiscard]] constexpr int third_at() const { return second_at() + room(); }
  [[nodiscard]] constexpr int fourth_at() const { return third_at() + room(); }
  [[nodiscard]] constexpr int numbers() const { return fourth_at() + room(); }

 private:
  static constexpr int most_values = 2048;
};

/// A field with the coefficients x on the cells of a level. Pointers are to device memory.
struct DiscreteField {
  IntegralMemory memory;
  const double* tables;          ///< rule and functions
  CellPlaces places;             ///< of the cells
  const std::int32_t* upper[3];  ///< [direction][cell]: record with the upper hats; of a flow
  std::int32_t cells;
  int velocities;  ///< components
  const double* x;
};

/// What is integrated of e, the difference between a field and what it should be, less `shift`.
struct DifferenceArguments {
  DiscreteField field;
  PointField exact[3];
  int component;  ///< the first; velocities stands for the scalar field
  int components;
  double shift;
  const std::int32_t* part;  ///< [cell], or nullptr where it does not matter
  std::int32_t of_part;      ///< only cells of this one count
  int numbers;               ///< of a block's memory
  int* not_finite;           ///< set to 1 if a value of the given field is not finite
};
struct DifferencePartial {
  double measure;
  double sum;
  double square;
};

/// An array over places of a lattice, [x][y][z].
struct LatticeArray {
  double* values;
  int count[3];  ///< of places along each direction
};

/// Values of the velocity at the points of the field's rule, an array of dim components; NaN where there are no cells.
void velocity_at(const DiscreteField& field, const CellMap& map, const LatticeArray& array, int blocks, Stream stream);
/// Fluxes through the faces of cells across direction a, an array of one more in this direction than there are cells;
/// 0 where there are no cells.
void face_fluxes(const DiscreteField& field, int a, const LatticeArray& array, Stream stream);

/// Partial sums of each of `blocks` thread blocks, which share the cells in a way that depends on nothing else.
void integrate_difference(const DifferenceArguments& arguments, int blocks, DifferencePartial* partials, Stream stream);

}  // namespace solenoid::cuda
