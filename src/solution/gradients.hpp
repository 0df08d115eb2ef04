#pragma once
/// \file
/// What the gradient of a velocity makes: each formula once.

#include <algorithm>
#include <array>
#include <cmath>

#include "solenoid/solution.hpp"

namespace solenoid {

/// From du_c/dx_a at index c * dim + a, as CellEvaluator::gradient() has it.
inline Gradient gradient_of(int dim, const double* g) {
  Gradient result{};
  for (int c = 0; c < dim; ++c) std::copy_n(g + c * dim, dim, result[c].begin());
  return result;
}

inline double square_of(const Gradient& g) {
  double sum = 0.0;
  for (const auto& row : g) {
    for (const double value : row) sum += value * value;
  }
  return sum;
}

inline Point vorticity_of(const Gradient& g) { return {g[2][1] - g[1][2], g[0][2] - g[2][0], g[1][0] - g[0][1]}; }

/// (|W|^2 - |S|^2) / 2 = - 1/2 sum_ca g_ca g_ac
inline double q_of(const Gradient& g) {
  double sum = 0.0;
  for (int c = 0; c < 3; ++c) {
    for (int a = 0; a < 3; ++a) sum += g[c][a] * g[a][c];
  }
  return -0.5 * sum;
}

/// eps(u) = (grad u + grad u^T) / 2
inline Gradient strain_rate_of(const Gradient& g) {
  Gradient strain{};
  for (int c = 0; c < 3; ++c) {
    for (int a = 0; a < 3; ++a) strain[c][a] = 0.5 * (g[c][a] + g[a][c]);
  }
  return strain;
}

/// The power per volume that viscosity takes.
inline double dissipation_of(ViscousForm form, double viscosity, const Gradient& g) {
  return form == ViscousForm::stress ? 2.0 * viscosity * square_of(strain_rate_of(g)) : viscosity * square_of(g);
}

/// A flow at a point.
struct FlowAtPoint {
  Gradient gradient{};
  double pressure = 0.0;
  double viscosity = 1.0;
  double mass = 0.0;
  ViscousForm form = ViscousForm::gradient;
};

inline bool is_tensor(FlowField field) { return field == FlowField::strain_rate || field == FlowField::stress; }

/// The numbers of a field at a point: of a vector three, in 2D the last one alone, of a tensor those of symmetric_of().
struct FieldParts {
  int first;
  int count;
};
inline FieldParts parts_of(FlowField field, int dim) {
  if (field == FlowField::vorticity) return dim == 3 ? FieldParts{0, 3} : FieldParts{2, 1};
  return {0, is_tensor(field) ? 6 : 1};
}

/// xx, yy, zz, xy, yz, xz
inline constexpr std::array<std::array<int, 2>, 6> symmetric_entries{{{0, 0}, {1, 1}, {2, 2}, {0, 1}, {1, 2}, {0, 2}}};
inline FieldValue symmetric_of(const Gradient& tensor) {
  FieldValue value{};
  for (std::size_t i = 0; i < value.size(); ++i) value[i] = tensor[symmetric_entries[i][0]][symmetric_entries[i][1]];
  return value;
}

/// 2 nu eps(u) - p I
inline Gradient stress_of(const FlowAtPoint& at) {
  Gradient stress = strain_rate_of(at.gradient);
  for (int c = 0; c < 3; ++c) {
    for (double& entry : stress[c]) entry *= 2.0 * at.viscosity;
    stress[c][c] -= at.pressure;
  }
  return stress;
}

/// As Solution::flow_field() has it.
inline FieldValue value_of(FlowField field, const FlowAtPoint& at) {
  switch (field) {
    case FlowField::vorticity: {
      const Point w = vorticity_of(at.gradient);
      return {w[0], w[1], w[2]};
    }
    case FlowField::q: return {q_of(at.gradient)};
    case FlowField::dissipation: return {dissipation_of(at.form, at.viscosity, at.gradient)};
    case FlowField::strain_rate: return symmetric_of(strain_rate_of(at.gradient));
    case FlowField::strain_rate_invariant: return {std::sqrt(0.5 * square_of(strain_rate_of(at.gradient)))};
    case FlowField::stress: return symmetric_of(stress_of(at));
    case FlowField::viscosity: return {at.viscosity};
    case FlowField::mass: return {at.mass};
  }
  return {};
}

}  // namespace solenoid
