#pragma once
/// \file
/// The marker-and-cell scheme as a stencil: what the velocity on a face is coupled to. An element of order 0 with a
/// lumped mass matrix is this scheme, and its sparse matrices (engine/assembly.hpp) are made of it.

#include <algorithm>
#include <cstdint>

#include "base/anywhere.hpp"
#include "engine/kernel_data.hpp"
#include "level/level.hpp"

namespace solenoid {

/// Whether the operator itself is the scheme.
inline bool is_mac(const Equation& equation) { return equation.lumped && equation.kind == EquationKind::stokes; }

/// Weights of differences across a velocity, between neighbours and between one and what is prescribed at a wall;
/// those along it have weight 1.
struct MacWeights {
  double interior;
  double wall;

  /// 1 and 2 for the element itself; 1.5 and 6 make of it a correction for elements of higher order (../VOXELS.md).
  explicit MacWeights(const Equation& equation)
      : MacWeights(equation.order == 0 ? MacWeights(1.0, 2.0) : MacWeights(1.5, 6.0)) {}
  MacWeights(double interior_, double wall_) : interior(interior_), wall(wall_) {}
};

/// Coefficients of cells in a stencil: those that it has. `factor` is of its viscosity.
template <class T>
struct OneCoefficient {
  T half_reaction_;

  SOLENOID_ANYWHERE T half_reaction(std::int32_t /*cell*/) const { return half_reaction_; }
  SOLENOID_ANYWHERE T factor(std::int32_t /*cell*/) const { return T(1); }
  SOLENOID_ANYWHERE T factor(std::int32_t /*cell*/, std::int32_t /*beside*/) const { return T(1); }
};

/// The same where they vary, in a stencil of viscosity 1: on faces between two cells nu_F = 2 nu_1 nu_2 / (nu_1 +
/// nu_2).
template <class T>
struct CoefficientsOfCells {
  const T* viscosity;
  const T* reaction;

  SOLENOID_ANYWHERE T half_reaction(std::int32_t cell) const { return T(0.5) * reaction[cell]; }
  SOLENOID_ANYWHERE T factor(std::int32_t cell) const { return viscosity[cell]; }
  SOLENOID_ANYWHERE T factor(std::int32_t cell, std::int32_t beside) const {
    return T(2) / (T(1) / viscosity[cell] + T(1) / viscosity[beside]);
  }
};

/// nu/h^2 times second differences and a reaction.
template <class T>
struct MacStencil {
  int dim;
  T jump[3];  ///< nu / h^2
  T half_reaction;
  T shear[3];       ///< of half a face between neighbours,
  T wall_shear[3];  ///< and at a wall
  T inverse_h[3];   ///< 1 / h times the coupling of velocities and pressures

  MacStencil() = default;
  explicit MacStencil(const Level& level) : MacStencil(level, level.coefficients.reaction) {}
  MacStencil(const Level& level, double reaction)
      : MacStencil(level.grid, level.coefficients, reaction, MacWeights(level.equation)) {}
  MacStencil(const Grid& grid, const Coefficients& coefficients, double reaction, const MacWeights& weights)
      : dim(grid.dim()), jump{}, half_reaction(static_cast<T>(0.5 * reaction)), shear{}, wall_shear{}, inverse_h{} {
    const Point h = grid.metric().uniform_width();
    for (int a = 0; a < dim; ++a) {
      const double of_a = coefficients.viscosity / (h[a] * h[a]);
      jump[a] = static_cast<T>(of_a);
      shear[a] = static_cast<T>(0.5 * weights.interior * of_a);
      wall_shear[a] = static_cast<T>(0.5 * weights.wall * of_a);
      inverse_h[a] = static_cast<T>(coefficients.coupling / h[a]);
    }
  }

  /// The row of the velocity of component c on the lower face of a cell, or of a hat-only record: add_diagonal(value)
  /// and add(record, value) for values on the lower faces of others, which may be prescribed or the null record's.
  template <class AddDiagonal, class Add>
  SOLENOID_ANYWHERE void for_row(const CellTopology& topology, std::int32_t record, int c,
                                 const AddDiagonal& add_diagonal, const Add& add) const {
    for_row(topology, record, c, OneCoefficient<T>{half_reaction}, add_diagonal, add);
  }
  /// With these coefficients of cells.
  template <class CellCoefficients, class AddDiagonal, class Add>
  SOLENOID_ANYWHERE void for_row(const CellTopology& topology, std::int32_t record, int c,
                                 const CellCoefficients& coefficients, const AddDiagonal& add_diagonal,
                                 const Add& add) const {
    // What each of the two cells of the face adds, that below it (0) and that above.
    for (int end = 0; end < 2; ++end) {
      const std::int32_t cell = end == 0 ? topology.neighbour[2 * c][record] : record;
      if (cell >= topology.cells) continue;
      const auto face_across = [&](std::int32_t of) { return end == 0 ? of : topology.neighbour[2 * c + 1][of]; };
      const auto same_face = [&](std::int32_t of) { return end == 0 ? topology.neighbour[2 * c + 1][of] : of; };
      const T along = coefficients.factor(cell) * jump[c];
      add_diagonal(along + coefficients.half_reaction(cell));
      add(face_across(cell), -along);
      for (int side = 0; side < 2 * dim; ++side) {
        const int a = side / 2;
        if (a == c) continue;
        const Face face = topology.face[side][cell];
        if (face == Face::velocity) add_diagonal(coefficients.factor(cell) * wall_shear[a]);
        if (face != Face::interior) continue;
        const std::int32_t beside = topology.neighbour[side][cell];
        const T across = coefficients.factor(cell, beside) * shear[a];
        add_diagonal(across);
        add(same_face(beside), -across);
      }
    }
  }

  /// The row of a cell in Poisson's equation: one value a cell.
  template <class AddDiagonal, class Add>
  SOLENOID_ANYWHERE void for_cell(const CellTopology& topology, std::int32_t cell, const AddDiagonal& add_diagonal,
                                  const Add& add) const {
    add_diagonal(2 * half_reaction);
    for (int side = 0; side < 2 * dim; ++side) {
      const int a = side / 2;
      const Face face = topology.face[side][cell];
      if (face == Face::velocity) add_diagonal(2 * wall_shear[a]);
      if (face != Face::interior) continue;
      add_diagonal(2 * shear[a]);
      add(topology.neighbour[side][cell], -2 * shear[a]);
    }
  }
};

}  // namespace solenoid
