#pragma once
/// \file
/// The permeability of images of porous media. Darcy's law u = -K/nu grad p says how fast a viscous flow creeps through
/// their pores; K is an area:
///
///     K_ij = nu <u_i> V^2,   -nu Laplace u + grad p = e_j,   div u = 0   in the pores,  u = 0 on solid,
///
/// <u_i> is the mean over the whole image, solid included, and V the size of a voxel in x, the unit of length of a mesh
/// of voxels (Mesh::of).

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "solenoid/image.hpp"
#include "solenoid/options.hpp"
#include "solenoid/problem.hpp"
#include "solenoid/solution.hpp"

namespace solenoid {

/// The sides of an image that flow does not go through.
enum class SidesAcross {
  wall,     ///< no-slip
  periodic  ///< the image repeats itself
};
enum class Drive {
  force,    ///< a force of 1 along the flow, periodic in its direction
  pressure  ///< a pressure drop of 1 per unit of length between the ends, which are open
};
/// What a result is compared with, for an estimate of its error.
enum class ErrorCheck {
  none,
  order,      ///< the next higher order of this build
  refinement  ///< the same order on cells of half the size
};

struct PermeabilityOptions {
  std::array<bool, 3> directions{true, true, true};  ///< of flows; in 2D the last one plays no part
  SidesAcross sides = SidesAcross::wall;
  Drive drive = Drive::force;
  int order = 2;        ///< k of RT_k x Q_k
  bool lumped = false;  ///< with order 0: the marker-and-cell scheme (Problem::lumped)
  int refine = 0;       ///< each voxel is cut into 2^(refine dim) cells
  /// Beside orders >= 1 that of the marker-and-cell scheme, if the build has order 0: with k = 1 the two mostly enclose
  /// the value.
  bool mac = true;
  ErrorCheck error = ErrorCheck::none;
  /// Called with each flow of the element that is asked for, for pictures and files. Lengths are voxels in x. Of
  /// several ranks by that which has the flow, or with `refine` by all with their parts.
  std::function<void(int direction, const Solution& flow)> visit{};
};

/// The flow along a direction as it was solved for.
struct PermeabilityFlow {
  int direction = 0;
  bool converged = false;
  std::string reason;
  int iterations = 0;
  double residual = 0.0;  ///< relative
  /// What flows through a plane of cells across the flow is the same for all: the largest difference to the mean of
  /// all planes, relative to it.
  double flux_deviation = 0.0;
  double time_solve = 0.0;  ///< seconds
};

/// A permeability as one discretisation has it.
struct DiscretePermeability {
  int order = 0;
  bool lumped = false;
  int refine = 0;
  std::int64_t dofs = 0;  ///< of the largest system
  /// [i][j] in square metres: component i of the flow that is driven along j; none where it is not known. With all
  /// sides periodic and all directions it is a whole tensor, of which this is the symmetric part,
  std::array<std::array<std::optional<double>, 3>, 3> tensor{};
  std::optional<double> asymmetry;      ///< and this |K - K^T| / |K| as it was computed (Frobenius norms)
  std::vector<PermeabilityFlow> flows;  ///< those that were solved for: nothing flows where no pore percolates
  double time_setup = 0.0;              ///< seconds
  std::int64_t memory_bytes = 0;        ///< of the largest system at its peak

  [[nodiscard]] bool converged() const;
};

/// What the pores of an image let through in a direction, with the sides that the flow along it has.
struct PoresAlong {
  int direction = 0;
  bool percolates = false;      ///< whether something can flow
  std::int64_t components = 0;  ///< of pores that are connected through faces
  double porosity = 0.0;        ///< voxels of pores that are solved in, relative to all voxels
  double throats = 0.0;         ///< share of those in runs of one or two voxels: there low orders are coarse
};

/// Of the symmetric tensor, in descending order; in 2D there are two.
struct PrincipalPermeabilities {
  std::vector<double> values;  ///< square metres
  std::vector<Point> axes;     ///< unit vectors
};

struct Permeability {
  int dim = 3;
  double porosity = 0.0;                             ///< share of pores, of closed ones too
  std::vector<PoresAlong> pores;                     ///< of each direction that was asked for
  DiscretePermeability value;                        ///< by the element that was asked for
  std::optional<DiscretePermeability> mac;           ///< PermeabilityOptions::mac
  std::optional<DiscretePermeability> finer;         ///< PermeabilityOptions::error
  std::optional<double> error;                       ///< |K - K_finer| / |K_finer|, Frobenius norms
  std::optional<PrincipalPermeabilities> principal;  ///< of a whole tensor
  std::string device;                                ///< empty if nothing percolates: nothing was solved then

  [[nodiscard]] bool converged() const;  ///< of all flows
};

/// Square metres of a darcy.
inline constexpr double darcy = 9.869233e-13;

/// Pores that nothing can flow through are filled before. With all sides periodic flows along all directions share
/// their set-up. Several ranks (SolverOptions::communicator; all call this and get the same) share the cells of what is
/// refined; of what is not each rank solves for whole flows, along directions of its own. GMRES is restarted after six
/// iterations, if SolverOptions::restart is 0. \throws InputError if options are out of range or do not go with the
/// image, ResourceError if device or memory do not suffice, Interrupted. A flow that does not converge is a result that
/// says so.
Permeability permeability(const std::shared_ptr<const VoxelImage>& image, const PermeabilityOptions& options = {},
                          const SolverOptions& solver = {});

}  // namespace solenoid
