#pragma once
/// \file
/// The local problems of vertex patches, from residuals to corrections. Lanes are patches of one kind.

#include "engine/cpu/kernels/smoother.hpp"

namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE {

/// Univariate transforms of the N modes or np functions of one direction, in place on lines of a patch array.
/// parity: eigenvectors are even (first) or odd, and only the rows of the lower cell are given; the sums and
/// differences of the two cells cost n instead of 2n multiplications per value.
template <class T, int order, bool parity>
struct LineTransform {
  static constexpr int n = order + 1;
  static constexpr int modes = 2 * n;
  using V = Simd<T>;

  /// S_O^T
  [[gnu::always_inline]] static void forward_o(const T* s, V* x, int stride) {
    if constexpr (parity) {
      V even[n];
      V odd[n];
#pragma GCC unroll 16
      for (int j = 0; j < n; ++j) {
        const V lower = x[j * stride];
        const V upper = T(odd_sign(j)) * x[(n + j) * stride];
        even[j] = lower + upper;
        odd[j] = lower - upper;
      }
      multiply_transposed<n, n>(s, even, x, stride);
      multiply_transposed<n, n>(s + n * n, odd, x + n * stride, stride);
    } else {
      V in[modes];
      for (int j = 0; j < modes; ++j) in[j] = x[j * stride];
      multiply_transposed<modes, modes>(s, in, x, stride);
    }
  }

  /// S_O
  [[gnu::always_inline]] static void backward_o(const T* s, V* x, int stride) {
    if constexpr (parity) {
      V even[n];
      V odd[n];
      multiply<n, n>(s, x, stride, even);
      multiply<n, n>(s + n * n, x + n * stride, stride, odd);
#pragma GCC unroll 16
      for (int j = 0; j < n; ++j) {
        x[j * stride] = even[j] + odd[j];
        x[(n + j) * stride] = T(odd_sign(j)) * (even[j] - odd[j]);
      }
    } else {
      V out[modes];
      multiply<modes, modes>(s, x, stride, out);
      for (int j = 0; j < modes; ++j) x[j * stride] = out[j];
    }
  }

  /// R^T: from eigenfunctions of O to those of C C^T
  [[gnu::always_inline]] static void to_pressure_modes(const T* r, V* x, int stride) {
    V in[modes];
    for (int j = 0; j < modes; ++j) in[j] = x[j * stride];
    if constexpr (parity) {
      multiply_transposed<n, n>(r, in, x, stride);
      multiply_transposed<n, n>(r + n * n, in + n, x + n * stride, stride);
    } else {
      multiply_transposed<modes, modes>(r, in, x, stride);
    }
  }

  /// R
  [[gnu::always_inline]] static void from_pressure_modes(const T* r, V* x, int stride) {
    V out[modes];
    if constexpr (parity) {
      multiply<n, n>(r, x, stride, out);
      multiply<n, n>(r + n * n, x + n * stride, stride, out + n);
    } else {
      multiply<modes, modes>(r, x, stride, out);
    }
    for (int j = 0; j < modes; ++j) x[j * stride] = out[j];
  }

  /// S_P^T on np functions, from a line to an array of np values.
  [[gnu::always_inline]] static void forward_p(const T* s, int np, const V* x, int stride, V* out) {
    if constexpr (parity) {
      V even[n];
      V odd[n];
#pragma GCC unroll 16
      for (int j = 0; j < order; ++j) {
        const V lower = x[j * stride];
        const V upper = T(odd_sign(j)) * x[(n + j) * stride];
        even[j] = lower + upper;
        odd[j] = lower - upper;
      }
      even[order] = x[order * stride];
      multiply_transposed<n, n>(s, even, out, 1);
      multiply_transposed<order, order>(s + n * n, odd, out + n, 1);
    } else {
      for (int i = 0; i < np; ++i) {
        V sum{};
        for (int j = 0; j < np; ++j) sum += s[j * np + i] * x[j * stride];
        out[i] = sum;
      }
    }
  }

  /// S_P, from an array of np values to a line.
  [[gnu::always_inline]] static void backward_p(const T* s, int np, const V* in, V* x, int stride) {
    if constexpr (parity) {
      V even[n];
      V odd[n];
      multiply<n, n>(s, in, 1, even);
      multiply<order, order>(s + n * n, in + n, 1, odd);
#pragma GCC unroll 16
      for (int j = 0; j < order; ++j) {
        x[j * stride] = even[j] + odd[j];
        x[(n + j) * stride] = T(odd_sign(j)) * (even[j] - odd[j]);
      }
      x[order * stride] = even[order];
    } else {
      for (int j = 0; j < np; ++j) {
        V sum{};
        for (int i = 0; i < np; ++i) sum += s[j * np + i] * in[i];
        x[j * stride] = sum;
      }
    }
  }

  /// y += sign C u: from np values of P to a line of N of O.
  template <int sign>
  [[gnu::always_inline]] static void add_divergence(const T* d, int np, const V* u, V* y, int stride) {
    const auto add = [](V& to, V sum) {
      if constexpr (sign > 0) {
        to += sum;
      } else {
        to -= sum;
      }
    };
    if constexpr (parity) {
#pragma GCC unroll 16
      for (int i = 0; i < n; ++i) {
        V odd{};
        V even{};
#pragma GCC unroll 16
        for (int j = 0; j < n; ++j) odd += d[i * n + j] * u[j];
#pragma GCC unroll 16
        for (int j = 0; j < order; ++j) even += d[n * n + i * order + j] * u[n + j];
        add(y[i * stride], even);
        add(y[(n + i) * stride], odd);
      }
    } else {
      for (int i = 0; i < modes; ++i) {
        V sum{};
        for (int j = 0; j < np; ++j) sum += d[i * np + j] * u[j];
        add(y[i * stride], sum);
      }
    }
  }

  /// out = C^T p: from a line of N of O to np values of P.
  [[gnu::always_inline]] static void gradient(const T* d, int np, const V* p, int stride, V* out) {
    if constexpr (parity) {
#pragma GCC unroll 16
      for (int j = 0; j < n; ++j) {
        V sum{};
#pragma GCC unroll 16
        for (int i = 0; i < n; ++i) sum += d[i * n + j] * p[(n + i) * stride];
        out[j] = sum;
      }
#pragma GCC unroll 16
      for (int j = 0; j < order; ++j) {
        V sum{};
#pragma GCC unroll 16
        for (int i = 0; i < n; ++i) sum += d[n * n + i * order + j] * p[i * stride];
        out[n + j] = sum;
      }
    } else {
      for (int j = 0; j < np; ++j) {
        V sum{};
        for (int i = 0; i < modes; ++i) sum += d[i * np + j] * p[i * stride];
        out[j] = sum;
      }
    }
  }

 private:
  /// y[i stride] = sum_j s[j][i] x[j]
  template <int rows, int cols>
  [[gnu::always_inline]] static void multiply_transposed(const T* s, const V* x, V* y, int stride) {
#pragma GCC unroll 16
    for (int i = 0; i < cols; ++i) {
      V sum{};
#pragma GCC unroll 16
      for (int j = 0; j < rows; ++j) sum += s[j * cols + i] * x[j];
      y[i * stride] = sum;
    }
  }
  /// y[j] = sum_i s[j][i] x[i stride]
  template <int rows, int cols>
  [[gnu::always_inline]] static void multiply(const T* s, const V* x, int stride, V* y) {
#pragma GCC unroll 16
    for (int j = 0; j < rows; ++j) {
      V sum{};
#pragma GCC unroll 16
      for (int i = 0; i < cols; ++i) sum += s[j * cols + i] * x[i * stride];
      y[j] = sum;
    }
  }
};

/// The local solves of patches that split by parity, or of all.
template <class T, EquationKind equation, int dim, int order, bool parity>
struct LocalSolver : PatchBatch<T, equation, dim, order> {
  using Base = PatchBatch<T, equation, dim, order>;
  using Base::n, Base::modes, Base::columns, Base::pressures, Base::a_of, Base::b_of, Base::pressure_stride_of;
  using typename Base::V, typename Base::Arrays;
  using Line = LineTransform<T, order, parity>;

  /// residual -> correction
  static void solve(const LocalArguments<T>& arguments) {
    Arrays& work = *static_cast<Arrays*>(arguments.workspace);
    const PatchData<T>& patch = *arguments.patch;
    if constexpr (equation == EquationKind::poisson) {
      forward_pressure(patch, work);
      for (int i = 0; i < pressures; ++i) work.pressure[i] *= patch.inverse_lambda[0][i];
      backward_pressure(patch, work);
    } else {
      solve_stokes(arguments, patch, work);
    }
  }

  static void forward_pressure(const PatchData<T>& patch, Arrays& work) {
    for_lines<0>([&](int start) { Line::forward_o(patch.eigen_o[0], work.pressure + start, pressure_stride_of(0)); });
    for_lines<1>([&](int start) { Line::forward_o(patch.eigen_o[1], work.pressure + start, pressure_stride_of(1)); });
    if constexpr (dim == 3) {
      for_lines<2>([&](int start) { Line::forward_o(patch.eigen_o[2], work.pressure + start, pressure_stride_of(2)); });
    }
  }
  static void backward_pressure(const PatchData<T>& patch, Arrays& work) {
    for_lines<0>([&](int start) { Line::backward_o(patch.eigen_o[0], work.pressure + start, pressure_stride_of(0)); });
    for_lines<1>([&](int start) { Line::backward_o(patch.eigen_o[1], work.pressure + start, pressure_stride_of(1)); });
    if constexpr (dim == 3) {
      for_lines<2>(
          [&](int start) { Line::backward_o(patch.eigen_o[2], work.pressure + start, pressure_stride_of(2)); });
    }
  }

  static void solve_stokes(const LocalArguments<T>& arguments, const PatchData<T>& patch, Arrays& work) {
    if (arguments.local == LocalSolverKind::dense) return solve_dense(patch, work);
    V* rhs = work.schur[0];
    for (int i = 0; i < pressures; ++i) rhs[i] = V{};
    forward_velocity<0>(patch, work);
    forward_velocity<1>(patch, work);
    if constexpr (dim == 3) forward_velocity<2>(patch, work);
    forward_pressure(patch, work);
    // S p = -(g + B A^-1 f)
    for (int i = 0; i < pressures; ++i) rhs[i] -= work.pressure[i];
    switch (arguments.local) {
      case LocalSolverKind::chebyshev: schur_chebyshev(patch, work); break;
      case LocalSolverKind::cg: schur_cg(patch, work); break;
      default: schur_direct(patch, work); break;
    }
    backward_velocity<0>(patch, work);
    backward_velocity<1>(patch, work);
    if constexpr (dim == 3) backward_velocity<2>(patch, work);
    backward_pressure(patch, work);
  }

  /// All lines of the pressure array in direction a.
  template <int a, class F>
  [[gnu::always_inline]] static void for_lines(F&& line) {
    constexpr int stride = power(modes, a);
    for (int i = 0; i < columns; ++i) line(i / stride * stride * modes + i % stride);
  }

  static int functions(const PatchData<T>& patch, int c) {
    return parity ? modes - 1 : patch.last[c] - patch.first[c] + 1;
  }
  /// Start in the pressure array of the line along c that belongs to a column of component c.
  template <int c>
  static constexpr int pressure_line(int column) {
    return column % modes * pressure_stride_of(a_of(c)) + (dim == 3 ? column / modes * pressure_stride_of(b_of(c)) : 0);
  }

  /// f <- A^-1 f in the eigenbasis (e from 0), rhs -= C f.
  template <int c>
  static void forward_velocity(const PatchData<T>& patch, Arrays& work) {
    const int np = functions(patch, c);
    const int first = parity ? 1 : patch.first[c];
    V* f = work.velocity[c];
    for (int e = first; e < first + np; ++e) {
      V* plane = f + e * columns;
      for (int i = 0; i < columns / modes; ++i) Line::forward_o(patch.eigen_o[a_of(c)], plane + i * modes, 1);
      if constexpr (dim == 3) {
        for (int i = 0; i < modes; ++i) Line::forward_o(patch.eigen_o[b_of(c)], plane + i, modes);
      }
    }
    const T* inverse_lambda = patch.inverse_lambda[c];
    for (int column = 0; column < columns; ++column) {
      V u[modes + 1];
      Line::forward_p(patch.eigen_p[c], np, f + first * columns + column, columns, u);
#pragma GCC unroll 20
      for (int e = 0; e < np; ++e) {
        u[e] *= inverse_lambda[e * columns + column];
        f[e * columns + column] = u[e];
      }
      Line::template add_divergence<-1>(patch.divergence[c], np, u, work.schur[0] + pressure_line<c>(column),
                                        pressure_stride_of(c));
    }
  }

  /// u = f + A^-1 C^T p, back to cell coordinates (functions first..last).
  template <int c>
  static void backward_velocity(const PatchData<T>& patch, Arrays& work) {
    const int np = functions(patch, c);
    const int first = parity ? 1 : patch.first[c];
    V* f = work.velocity[c];
    const T* inverse_lambda = patch.inverse_lambda[c];
    for (int column = 0; column < columns; ++column) {
      V u[modes + 1];
      Line::gradient(patch.divergence[c], np, work.pressure + pressure_line<c>(column), pressure_stride_of(c), u);
#pragma GCC unroll 20
      for (int e = 0; e < np; ++e) u[e] = f[e * columns + column] + inverse_lambda[e * columns + column] * u[e];
      Line::backward_p(patch.eigen_p[c], np, u, f + first * columns + column, columns);
    }
    for (int e = first; e < first + np; ++e) {
      V* plane = f + e * columns;
      if constexpr (dim == 3) {
        for (int i = 0; i < modes; ++i) Line::backward_o(patch.eigen_o[b_of(c)], plane + i, modes);
      }
      for (int i = 0; i < columns / modes; ++i) Line::backward_o(patch.eigen_o[a_of(c)], plane + i * modes, 1);
    }
  }

  // --- Schur complement solvers: work.schur[0] -> work.pressure ------------------------------------------------------

  static void schur_direct(const PatchData<T>& patch, Arrays& work) {
    V* in = work.schur[1];
    V* out = work.schur[2];
    for (int k = 0; k < patch.block_count; ++k) {
      const int* start = patch.block_start[k];
      const int lx = parity ? n : patch.block_length[k][0];
      const int ly = parity ? n : patch.block_length[k][1];
      const int lz = dim == 3 ? (parity ? n : patch.block_length[k][2]) : 1;
      const auto for_block = [&](auto&& visit) {
        int i = 0;
        for (int z = 0; z < lz; ++z) {
          for (int y = 0; y < ly; ++y) {
            for (int x = 0; x < lx; ++x) visit(i++, start[0] + x + modes * (start[1] + y + modes * (start[2] + z)));
          }
        }
      };
      for_block([&](int i, int position) { in[i] = work.schur[0][position]; });
      multiply_block(lx * ly * lz, patch.block_inverse[k], in, out);
      for_block([&](int i, int position) { work.pressure[position] = out[i]; });
    }
  }

  /// out = S v
  [[gnu::noinline]] static void schur_apply(const PatchData<T>& patch, const V* v, V* out) {
    for (int i = 0; i < pressures; ++i) out[i] = V{};
    schur_add<0>(patch, v, out);
    schur_add<1>(patch, v, out);
    if constexpr (dim == 3) schur_add<2>(patch, v, out);
  }
  template <int c>
  static void schur_add(const PatchData<T>& patch, const V* v, V* out) {
    const int np = functions(patch, c);
    for (int column = 0; column < columns; ++column) {
      V u[modes + 1];
      Line::gradient(patch.divergence[c], np, v + pressure_line<c>(column), pressure_stride_of(c), u);
#pragma GCC unroll 20
      for (int e = 0; e < np; ++e) u[e] *= patch.inverse_lambda[c][e * columns + column];
      Line::template add_divergence<1>(patch.divergence[c], np, u, out + pressure_line<c>(column),
                                       pressure_stride_of(c));
    }
  }

  static V dot(const V* x, const V* y) {
    V sum{};
    for (int i = 0; i < pressures; ++i) sum += x[i] * y[i];
    return sum;
  }
  static void remove_constant(const PatchData<T>& patch, V* x) {
    if (patch.constant == nullptr) return;
    V sum{};
    for (int i = 0; i < pressures; ++i) sum += patch.constant[i] * x[i];
    for (int i = 0; i < pressures; ++i) x[i] -= patch.constant[i] * sum;
  }

  /// P^-1 r, in z; r itself if there is no preconditioner.
  [[gnu::noinline]] static const V* preconditioned(const PatchData<T>& patch, const V* r, V* z) {
    if (patch.preconditioner == nullptr) return r;
    std::copy_n(r, pressures, z);
    const auto for_directions = [&](auto&& transform) {
      for_lines<0>([&](int start) { transform(patch.pressure_modes[0], z + start, pressure_stride_of(0)); });
      for_lines<1>([&](int start) { transform(patch.pressure_modes[1], z + start, pressure_stride_of(1)); });
      if constexpr (dim == 3) {
        for_lines<2>([&](int start) { transform(patch.pressure_modes[2], z + start, pressure_stride_of(2)); });
      }
    };
    for_directions([](const T* modes, V* line, int stride) { Line::to_pressure_modes(modes, line, stride); });
    for (int i = 0; i < pressures; ++i) z[i] *= patch.preconditioner[i];
    for_directions([](const T* modes, V* line, int stride) { Line::from_pressure_modes(modes, line, stride); });
    return z;
  }

  /// Chebyshev iteration of fixed degree on the known spectrum of P^-1 S: linear, no inner products.
  static void schur_chebyshev(const PatchData<T>& patch, Arrays& work) {
    constexpr int degree = 8;
    V* r = work.schur[0];
    V* d = work.schur[1];
    V* s = work.schur[2];
    V* x = work.pressure;
    remove_constant(patch, r);
    const T middle = T(0.5) * (patch.schur_bounds[1] + patch.schur_bounds[0]);
    const T half = T(0.5) * (patch.schur_bounds[1] - patch.schur_bounds[0]);
    const T sigma = middle / half;
    T rho = T(1) / sigma;
    const V* z = preconditioned(patch, r, work.schur[3]);
    for (int i = 0; i < pressures; ++i) {
      d[i] = z[i] / middle;
      x[i] = d[i];
    }
    for (int step = 1; step < degree; ++step) {
      schur_apply(patch, d, s);
      const T next = T(1) / (T(2) * sigma - rho);
      const T keep = next * rho;
      const T gain = T(2) * next / half;
      for (int i = 0; i < pressures; ++i) r[i] -= s[i];
      z = preconditioned(patch, r, work.schur[3]);
      for (int i = 0; i < pressures; ++i) {
        d[i] = keep * d[i] + gain * z[i];
        x[i] += d[i];
      }
      rho = next;
    }
  }

  /// Conjugate gradients, every lane its own; a lane whose residual is negligible stands still, as does one whose
  /// curvature is lost below the smallest number. The constant pressure is removed twice: rounding leaves some of a
  /// large one, and when all else is as small steps would go that way, in which S is nothing but rounding.
  static void schur_cg(const PatchData<T>& patch, Arrays& work) {
    constexpr int most = 30;
    constexpr T tolerance = sizeof(T) == 4 ? T(1e-5) : T(1e-9);
    V* r = work.schur[0];
    V* d = work.schur[1];
    V* s = work.schur[2];
    V* x = work.pressure;
    for (int pass = 0; pass < 2; ++pass) remove_constant(patch, r);
    const V* z = preconditioned(patch, r, work.schur[3]);
    for (int i = 0; i < pressures; ++i) {
      d[i] = z[i];
      x[i] = V{};
    }
    V rz = dot(r, z);
    const V enough = tolerance * tolerance * rz;
    for (int step = 0; step < most; ++step) {
      if (lanes_where([&](int l) { return rz[l] > enough[l]; }) == 0) break;
      schur_apply(patch, d, s);
      const V ds = dot(d, s);  // the curvature
      rz = select_greater(ds, V{}, rz, V{});
      const V alpha = select_greater(rz, enough, rz / ds, V{});
      for (int i = 0; i < pressures; ++i) {
        x[i] += alpha * d[i];
        r[i] -= alpha * s[i];
      }
      z = preconditioned(patch, r, work.schur[3]);
      const V next = dot(r, z);
      const V beta = select_greater(rz, enough, next / rz, V{});
      for (int i = 0; i < pressures; ++i) d[i] = z[i] + beta * d[i];
      rz = select_greater(rz, enough, next, rz);
    }
  }

  /// The whole patch matrix inverted (the paper's "direct solver").
  static void solve_dense(const PatchData<T>& patch, Arrays& work) {
    constexpr int most = dim * (modes + 1) * columns + pressures;
    V in[most];
    V out[most];
    const auto for_unknowns = [&](auto&& visit) {
      int i = 0;
      for (int c = 0; c < dim; ++c) {
        for (int e = patch.first[c]; e <= patch.last[c]; ++e) {
          for (int column = 0; column < columns; ++column) visit(i++, work.velocity[c][e * columns + column]);
        }
      }
      for (int k = 0; k < pressures; ++k) visit(i++, work.pressure[k]);
    };
    for_unknowns([&](int i, V& value) { in[i] = value; });
    multiply_block(static_cast<int>(patch.dense_size), patch.dense, in, out);
    for_unknowns([&](int i, V& value) { value = out[i]; });
  }
};

}  // namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE
