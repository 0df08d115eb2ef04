#pragma once
/// \file
/// One level of the multigrid hierarchy: its grid, its equation with coefficients, its patches. Host data, shared
/// by all engines.

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "level/coefficients.hpp"
#include "level/patch_weights.hpp"
#include "level/patches.hpp"
#include "level/small_patches.hpp"
#include "mesh/grid.hpp"
#include "mesh/places.hpp"
#include "mesh/record.hpp"

namespace solenoid {

/// The discrete equation on a level but for its coefficients: the same on all levels of a solve but for the penalty.
struct Equation {
  int dim = 3;
  int order = 2;
  EquationKind kind = EquationKind::stokes;
  double relative_penalty = 1.0;  ///< less on coarse levels: MultigridOptions::coarse_penalty
  bool lumped = false;            ///< with order 0: Problem::lumped
  /// Of the viscous term. The stress form goes with coefficients by cell alone (Coefficients::by_cell).
  ViscousForm form = ViscousForm::gradient;
  PatchWeights weights{};  ///< of the local problems of a level; a Level finds them

  [[nodiscard]] int n() const { return order + 1; }
  [[nodiscard]] int record() const { return record_size(dim, order, kind); }
  /// Velocity components; the scalar field is that after them.
  [[nodiscard]] int velocities() const { return velocity_components(kind, dim); }
  /// Interior-penalty weight gamma for cells of size h normal to the face; 1/h for k = 0 (marker and cell).
  [[nodiscard]] double penalty(double h) const {
    return relative_penalty * (order == 0 ? 1.0 : (order + 1.0) * (order + 2.0)) / h;
  }
};

/// A function that the operator maps to zero: a velocity component, the pressure or Poisson's u that is constant on a
/// part of the domain and zero elsewhere.
struct Constant {
  int part = 0;   ///< Grid::part
  int field = 0;  ///< a velocity component, or after those the scalar field
  /// That carry it. Where the domain is one part only, empty: all cells and, of a velocity, hat-only records of its
  /// direction.
  std::vector<Record> records;
  std::int64_t carriers = 0;  ///< records of all ranks that carry it

  bool operator==(const Constant&) const = default;
};

class SchurInverses;

struct Level {
  Level(const Equation& equation, const Coefficients& coefficients, Grid grid, const PatchRules& rules);
  /// Without patches: for a level on which nothing is smoothed.
  Level(const Equation& equation, const Coefficients& coefficients, Grid grid);

  Equation equation;
  Coefficients coefficients;  ///< of kernels and tables that are made from now on
  Grid grid;
  Patches patches;
  SmallPatches small_patches;
  std::vector<Constant> constants;  ///< one at most for each field and part of the domain
  /// Which cells become one on the next coarser level.
  Coarsening coarsening;
  std::shared_ptr<SchurInverses> schur_inverses;  ///< the same on all levels of a hierarchy

  [[nodiscard]] bool has_coefficients_by_cell() const { return coefficients.by_cell != nullptr; }
  [[nodiscard]] bool has_viscosity_points() const {
    return has_coefficients_by_cell() && coefficients.by_cell->points != nullptr;
  }
  /// Cells are parallelepipeds (Metric::map).
  [[nodiscard]] bool is_sheared() const { return grid.metric().map() != nullptr; }
  /// Either of these: the operator is made element by element, and local problems are near the exact ones only.
  [[nodiscard]] bool goes_by_elements() const { return has_coefficients_by_cell() || is_sheared(); }
  /// Whether the stress form leaves a rotation of a part of the domain free, on which nothing else acts: the operator
  /// is singular then. Collective where ranks share the grid, as constructors and set_coefficients() are.
  [[nodiscard]] bool has_free_rotation() const;
  /// For those who know constant coefficients and the gradient form alone. \throws std::logic_error for others.
  void require_constant_coefficients() const;
  /// For those who know cells that are boxes alone. \throws std::logic_error for others.
  void require_boxes() const;
  /// Kernels that there are have others once they are handed tables (Kernels::make_tables). \throws InputError if the
  /// operator would map other functions to zero (`constants`, rotations): a reaction that comes or goes may take a new
  /// hierarchy; or if they vary and these do not, or the other way round. Nothing is changed then.
  void set_coefficients(const Coefficients& coefficients);

  /// Numbers in a vector of this level, padding and the null record included.
  [[nodiscard]] std::int64_t size() const { return std::int64_t{grid.layout().storage()} * equation.record(); }
  /// Place of value i of a record in a vector of this level.
  [[nodiscard]] std::int64_t index(std::int64_t record, int i) const {
    return record_offset(record, equation.record()) + std::int64_t{interleave} * i;
  }
  /// True if there is a constant of a field, on some part of the domain.
  [[nodiscard]] bool has_constant(int field) const;
  /// Degrees of freedom: unknowns that are solved for, of all ranks.
  [[nodiscard]] std::int64_t dofs() const;

  /// visit(index) for the index in a vector of every owned unknown: all values of cells and hats on outflow sides, but
  /// not the normal unknowns that are prescribed, the unused values of hat-only records and the null record.
  template <class Visit>
  void for_each_unknown(Visit visit) const {
    for (const RecordRange records : {grid.layout().owned_cells(), grid.layout().owned_hats()}) {
      for (const Record r : records) for_each_unknown_of(r, [&](int i) { visit(index(r, i)); });
    }
  }
  /// visit(i) for the unknowns among the values i of a record.
  template <class Visit>
  void for_each_unknown_of(Record record, Visit visit) const {
    solenoid::for_each_unknown_of(grid, equation.order, equation.kind, record, visit);
  }
};

}  // namespace solenoid
