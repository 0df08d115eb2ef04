#include "solver/mac/block_factorisation.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace solenoid {
namespace {

/// Of the inexact inverses A~ and S~.
constexpr SparseMultigridOptions of_velocity{.merge = Merge::block, .steps = 2, .k_cycle = false};
constexpr SparseMultigridOptions of_scalar{.merge = Merge::connected, .steps = 5, .k_cycle = true};

}  // namespace

template <class T>
BlockFactorisation<T>::BlockFactorisation(Engine& engine, Kernels<T>& kernels)
    : engine_(engine), kernels_(kernels), sparse_(make_sparse_kernels<T>(engine)) {
  const Level& level = kernels.level();
  const std::unique_ptr<SparseAssembly> assembly = engine.make_assembly();
  if (level.equation.kind == EquationKind::stokes) {
    make_stokes(level, *assembly);
    return;
  }
  MacNodes cells = assembly->cells(level);
  scalar_.emplace(engine_, *assembly, *sparse_, kernels_, cells.rows, assembly->scalar_matrix(level, cells), of_scalar);
  cells_ = field(cells);
}

template <class T>
void BlockFactorisation<T>::make_stokes(const Level& level, SparseAssembly& assembly) {
  MacScheme scheme = assembly.scheme(level);
  work_ = vector(scheme.faces.rows.count());
  other_ = vector(scheme.faces.rows.count());
  velocity_.emplace(engine_, assembly, *sparse_, kernels_, scheme.faces.rows,
                    assembly.velocity_matrix(level, scheme, level.coefficients.reaction), of_velocity);
  const Vector<double> w = weights(scheme, level, assembly);
  weight_ = Vector<T>(engine_, w.size());
  assembly.convert(w.size(), w.data(), weight_.data());
  scalar_.emplace(engine_, assembly, *sparse_, kernels_, scheme.cells.rows, assembly.pressure_matrix(scheme, w.data()),
                  of_scalar);
  make_incidence(scheme, assembly);
  faces_ = field(scheme.faces);
  cells_ = field(scheme.cells);
}

template <class T>
typename BlockFactorisation<T>::Field BlockFactorisation<T>::field(MacNodes& nodes) {
  return {std::move(nodes.index), vector(nodes.rows.count()), vector(nodes.rows.count())};
}

template <class T>
void BlockFactorisation<T>::make_incidence(MacScheme& scheme, SparseAssembly& assembly) {
  incidence_.faces = scheme.faces.rows.count();
  incidence_.cells = scheme.cells.rows.count();
  incidence_.dim = scheme.faces.rows.fields;
  for (int end = 0; end < 2; ++end) {
    cell_of_face_[end] = std::move(scheme.cell_of_face[end]);
    incidence_.cell_of_face[end] = cell_of_face_[end].data();
  }
  for (int side = 0; side < 2 * incidence_.dim; ++side) {
    face_of_cell_[side] = std::move(scheme.face_of_cell[side]);
    incidence_.face_of_cell[side] = face_of_cell_[side].data();
  }
  inverse_width_ = Vector<T>(engine_, scheme.inverse_width.size());
  assembly.convert(inverse_width_.size(), scheme.inverse_width.data(), inverse_width_.data());
  incidence_.inverse_width = inverse_width_.data();
}

/// W = A^-1 1 to two digits, but not below a thousandth of what the diagonal alone says. Where A maps constants to zero
/// some reaction makes up for it, that of a wall as far away as the domain is long.
template <class T>
Vector<double> BlockFactorisation<T>::weights(const MacScheme& scheme, const Level& level, SparseAssembly& assembly) {
  SparseMultigrid<T>* solver = &*velocity_;
  std::optional<SparseMultigrid<T>> shifted;
  const SparseRows& faces = scheme.faces.rows;
  bool singular = false;
  double longest = 0.0;
  for (int c = 0; c < level.equation.velocities(); ++c) {
    singular = singular || level.has_constant(c);
    longest = std::max(longest, level.grid.extent()[c] * level.grid.metric().uniform_width()[c]);
  }
  if (singular) {
    const double reaction = level.coefficients.reaction + level.coefficients.viscosity / (longest * longest);
    shifted.emplace(engine_, assembly, *sparse_, kernels_, faces, assembly.velocity_matrix(level, scheme, reaction),
                    of_velocity);
    solver = &*shifted;
  }
  const std::int64_t size = solver->matrix().storage();
  Vector<double> values(engine_, size);
  assembly.ones(faces, values.data());
  Vector<T> w(engine_, size);
  Vector<T> rest(engine_, size);
  Vector<T> step(engine_, size);
  assembly.convert(size, values.data(), rest.data());
  const double norm = sparse_->dot(size, rest.data(), rest.data());
  constexpr double tolerance = 1e-2;
  constexpr int most_rounds = 20;
  for (int round = 0; round < most_rounds; ++round) {
    solver->solve(rest.data(), step.data());
    sparse_->axpy(size, T(1), step.data(), w.data());
    sparse_->multiply(solver->matrix(), step.data(), work_.data());
    sparse_->axpy(size, T(-1), work_.data(), rest.data());
    if (sparse_->dot(size, rest.data(), rest.data()) <= tolerance * tolerance * norm) break;
  }
  Vector<double> diagonal(engine_, size);
  assembly.convert(size, w.data(), values.data());
  assembly.convert(size, solver->matrix().diagonal, diagonal.data());
  constexpr double floor = 1e-3;
  assembly.bound_below(faces, floor, diagonal.data(), values.data());
  return values;
}

template <class T>
void BlockFactorisation<T>::correct(const T* r, T* x) {
  const auto load = [&](Field& field) {
    kernels_.gather(field.index.size(), field.index.data(), r, field.load.data());
  };
  const auto add = [&](Field& field) {
    kernels_.scatter_add(field.index.size(), field.index.data(), field.value.data(), x);
  };
  load(cells_);
  if (!velocity_) {
    scalar_->solve(cells_.load.data(), cells_.value.data());
    add(cells_);
    return;
  }
  load(faces_);
  T* const u = faces_.value.data();
  T* const p = cells_.value.data();
  T* const g = cells_.load.data();
  velocity_->solve(faces_.load.data(), u);
  // A u - B^T p = r_u and - B u = r_p, so that B A^-1 B^T p = - r_p - B A^-1 r_u.
  sparse_->divergence_defect(incidence_, g, u, g);
  scalar_->solve(g, p);
  sparse_->gradient(incidence_, weight_.data(), p, work_.data());
  sparse_->multiply(velocity_->matrix(), work_.data(), other_.data());
  sparse_->divergence(incidence_, weight_.data(), other_.data(), g);
  scalar_->solve(g, p);
  add(cells_);
  add(faces_);
  T* const force = faces_.load.data();
  sparse_->gradient(incidence_, nullptr, p, force);
  velocity_->solve(force, u);
  add(faces_);
}

template class BlockFactorisation<float>;
template class BlockFactorisation<double>;

}  // namespace solenoid
