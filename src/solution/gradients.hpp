#pragma once
/// \file
/// What the gradient of a velocity makes: each formula once.

#include <algorithm>

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

/// As Solution::flow_field() has it.
inline Point value_of(FlowField field, double viscosity, const Gradient& g) {
  switch (field) {
    case FlowField::vorticity: return vorticity_of(g);
    case FlowField::q: return {q_of(g), 0.0, 0.0};
    case FlowField::dissipation: return {viscosity * square_of(g), 0.0, 0.0};
  }
  return {};
}

}  // namespace solenoid
