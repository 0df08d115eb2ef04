#pragma once
/// \file
/// The right-hand side: force, boundary data and traction by quadrature.

#include <cstdint>
#include <vector>

#include "base/host_vector.hpp"
#include "engine/engine.hpp"
#include "level/level.hpp"
#include "solenoid/problem.hpp"

namespace solenoid {

/// (f, v) + sum over velocity faces nu (2 gamma g v - g dv/dn) for tangential v + sum over outflow faces (traction, v),
/// for every basis function v of the level's grid, by k + 2 Gauss points per direction and `more`. Poisson's u is
/// tangential to all faces. Size: level.size().
/// \throws InputError where an expression is not finite.
HostVector assemble_load(const Problem& problem, const Level& level, int more = 0);

/// Numbers at some places of a vector, each place once; the vector is zero elsewhere.
struct SparseVector {
  std::vector<std::int64_t> places;
  std::vector<double> values;

  void add(std::int64_t place, double value) {
    places.push_back(place);
    values.push_back(value);
  }
};

/// The same in the memory of an engine.
class SparseOnDevice {
 public:
  SparseOnDevice() = default;
  SparseOnDevice(Engine& engine, const SparseVector& what)
      : places_(on_device(engine, what.places)), values_(on_device(engine, what.values)) {}

  /// x += this
  void add_to(Kernels<double>& kernels, double* x) const {
    kernels.scatter_add(values_.size(), places_.data(), values_.data(), x);
  }

 private:
  Vector<std::int64_t> places_;
  Vector<double> values_;
};

/// What assemble_load has of the boundary data: not zero near the boundary alone.
SparseVector assemble_boundary_load(const Problem& problem, const Level& level);

/// sum over velocity faces <min(g_n, 0) g, v> for tangential v, n outward: what flows in with a prescribed velocity
/// (engine/convection.hpp). Not zero near the boundary alone.
SparseVector assemble_inflow(const Problem& problem, const Level& level);

/// True if some side or hole has a velocity, or with Poisson's equation a value, that is not the constant zero.
bool has_boundary_values(const Problem& problem);
/// The same, or an outflow side or hole that has traction.
bool has_boundary_data(const Problem& problem);
/// True if some boundary velocity is not the constant zero: it has to be lifted. Poisson's boundary values have not.
bool has_boundary_velocity(const Problem& problem);

/// A random right-hand side: uniform in [-1, 1) on every owned unknown. What an unknown has depends on the seed and on
/// where it lies, not on threads, ranks and the order of records.
HostVector random_vector(const Level& level, std::uint64_t seed);

}  // namespace solenoid
