#pragma once
/// \file
/// What the study `corners` solves: the main path, which most people take, with one or two things changed.

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "solenoid/solver.hpp"

namespace solenoid::studies::corners {

/// A problem but for its order and refinement, and how it is solved. As it is made, the main path: Stokes on the unit
/// cube with walls, default options.
struct Setting {
  int dim = 3;
  EquationKind equation = EquationKind::stokes;
  double mass = 0.0;
  ViscousForm form = ViscousForm::gradient;
  ViscosityPlaces viscosity = ViscosityPlaces::cell;  ///< one number; at Gauss points one that varies
  std::array<int, 3> boxes{1, 1, 1};                  ///< coarse boxes per direction, cubes unless stretched
  std::vector<IndexBox> holes{};                      ///< among them
  Point stretch{1.0, 1.0, 1.0};                       ///< of boxes
  std::array<SideKind, 6> sides{};                    ///< the first kind: walls
  SideKind hole_side{};
  SolverOptions solver{};

  /// In 2D the third direction is left out.
  [[nodiscard]] Problem problem(int order, int refine) const;
  /// The refinement, at least 1, whose number of unknowns is nearest by ratio.
  [[nodiscard]] int refine_for(int order, double unknowns) const;
};

/// Something other than on the main path.
struct Change {
  std::string what;   ///< the key of a case file where there is one: "smoother"
  std::string value;  ///< "additive"
  std::function<void(Setting&)> apply;
};

/// All that are made, one value of each choice of a case file among them, in the order in which they are applied.
const std::vector<Change>& all_changes();

/// Indices of changes, ascending.
using Changes = std::vector<std::size_t>;

/// The main path with these changes.
Setting setting_of(const Changes& changes);

/// A method of the paper, kept to compare with: how fast it is, is not what it is for.
bool slow_on_purpose(const Change& change);

/// A setting of a certain size.
struct Case {
  Changes changes;
  int order = 0;
  double unknowns = 0.0;  ///< asked for: the mesh nearest to it is taken

  bool operator==(const Case&) const = default;
};

/// Whether a case can be solved at all.
using Supported = std::function<bool(const Setting& setting, int order)>;

/// Whether the library takes the problem and its options together, whatever the engine.
bool valid(const Setting& setting, int order);

/// Whether nothing is changed but the precision, in which the main path is what it is compared with.
bool on_main_path(const Changes& changes);
/// The main path in every precision, on all meshes from one coarser than the smallest size to the largest.
std::vector<Case> main_path(const std::vector<int>& orders, const std::vector<double>& sizes);
/// All other single changes that are supported, for every order and size.
std::vector<Case> single_changes(const std::vector<int>& orders, const std::vector<double>& sizes,
                                 const Supported& supported);
/// `count` different cases (or as many as can be found) with two changes of different things each. The same for the
/// same seed.
std::vector<Case> drawn_pairs(int count, std::uint64_t seed, const std::vector<int>& orders,
                              const std::vector<double>& sizes, const Supported& supported);

}  // namespace solenoid::studies::corners
