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
  if (level.equation.kind == EquationKind::stokes) {
    make_stokes(level);
    return;
  }
  MacScheme::Nodes cells = cells_as_nodes(level);
  cells_ = field(cells);
  SparseRows matrix = scalar_matrix(level, cells.order);
  scalar_.emplace(engine_, *sparse_, kernels_, std::move(matrix), std::move(cells.places), cells.lattice, of_scalar);
}

template <class T>
void BlockFactorisation<T>::make_stokes(const Level& level) {
  const MacScheme scheme(level);
  faces_ = field(scheme.faces());
  cells_ = field(scheme.cells());
  make_incidence(scheme);
  work_ = vector(scheme.faces().rows());
  other_ = vector(scheme.faces().rows());
  velocity_.emplace(engine_, *sparse_, kernels_, scheme.velocity_matrix(), scheme.faces().places,
                    scheme.faces().lattice, of_velocity);
  const std::vector<T> w = weights(scheme, level);
  weight_ = on_device(engine_, w);
  scalar_.emplace(engine_, *sparse_, kernels_, scheme.pressure_matrix(w), scheme.cells().places, scheme.cells().lattice,
                  of_scalar);
}

template <class T>
typename BlockFactorisation<T>::Field BlockFactorisation<T>::field(const MacScheme::Nodes& nodes) {
  return {on_device(engine_, nodes.index), vector(nodes.rows()), vector(nodes.rows())};
}

template <class T>
void BlockFactorisation<T>::make_incidence(const MacScheme& scheme) {
  incidence_.faces = scheme.faces().rows();
  incidence_.cells = scheme.cells().rows();
  incidence_.dim = scheme.dim();
  for (int end = 0; end < 2; ++end) {
    cell_of_face_[end] = on_device(engine_, scheme.cell_of_face()[end]);
    incidence_.cell_of_face[end] = cell_of_face_[end].data();
  }
  for (int side = 0; side < 2 * scheme.dim(); ++side) {
    face_of_cell_[side] = on_device(engine_, scheme.face_of_cell()[side]);
    incidence_.face_of_cell[side] = face_of_cell_[side].data();
  }
  const auto& width = scheme.inverse_width();
  inverse_width_ = on_device(engine_, std::vector<T>(width.begin(), width.end()));
  incidence_.inverse_width = inverse_width_.data();
}

/// W = A^-1 1 to two digits, but not below a thousandth of what the diagonal alone says. Where A maps constants to zero
/// some reaction makes up for it, that of a wall as far away as the domain is long.
template <class T>
std::vector<T> BlockFactorisation<T>::weights(const MacScheme& scheme, const Level& level) {
  SparseMultigrid<T>* solver = &*velocity_;
  std::optional<SparseMultigrid<T>> shifted;
  const MacScheme::Nodes& faces = scheme.faces();
  bool singular = false;
  double longest = 0.0;
  for (int c = 0; c < level.equation.velocities(); ++c) {
    singular = singular || level.has_constant(c);
    longest = std::max(longest, level.grid.extent()[c] * level.grid.metric().uniform_width()[c]);
  }
  if (singular) {
    const double reaction = level.coefficients.viscosity / (longest * longest);
    shifted.emplace(engine_, *sparse_, kernels_, scheme.velocity_matrix(reaction), faces.places, faces.lattice,
                    of_velocity);
    solver = &*shifted;
  }
  const std::int64_t size = solver->matrix().storage();
  std::vector<T> ones(size, T(0));
  for (const std::int32_t row : faces.order.row) ones[row] = T(1);
  Vector<T> w(engine_, size);
  Vector<T> rest = on_device(engine_, ones);
  Vector<T> step(engine_, size);
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
  std::vector<T> values(size);
  w.download(values.data());
  std::vector<T> diagonal(size);
  engine_.download(solver->matrix().diagonal, diagonal.data(), size * sizeof(T));
  constexpr double floor = 1e-3;
  for (const std::int32_t row : faces.order.row) {
    values[row] = std::max(values[row], static_cast<T>(floor / diagonal[row]));
  }
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
