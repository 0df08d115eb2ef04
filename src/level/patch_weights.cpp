#include "level/patch_weights.hpp"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "element/basis.hpp"
#include "level/patch_solver.hpp"

namespace solenoid {
namespace {

using Eigen::VectorXd;

/// With s = 1.
PatchWeights unscaled(int dim, const AffineMap& map) {
  const Matrix3& g = map.metric();
  const Matrix3& inverse = map.inverse_metric();
  PatchWeights weights;
  for (int c = 0; c < dim; ++c) {
    weights.mass[c] = g[c][c] / map.jacobian();
    for (int a = 0; a < dim; ++a) weights.viscous[c][a] = g[c][c] * inverse[a][a];
    for (int a = 0; a < dim; ++a) {
      for (int b = a + 1; b < dim; ++b) {
        const double t = g[a][b] * inverse[a][b];
        weights.viscous[c][c] += std::max(0.0, c == a || c == b ? -2.0 * t : 2.0 * t);
      }
    }
    for (double& weight : weights.viscous[c]) weight /= map.jacobian();
  }
  return weights;
}

/// Functions of one direction of a patch, eigenfunctions of its local problem, as Legendre coefficients of degree k + 1
/// in its two cells: a column each.
struct Line {
  Matrix value;
  Matrix derivative;
  Matrix lift;  ///< (lift u, v) = sum over faces of [u] {v}
  Matrix jump;  ///< on the three faces across the direction; what lies behind the ends is zero
};

/// Of the functions of a cell, both with 1 / sqrt(h).
struct CellFunctions {
  Matrix value;
  Matrix derivative;
};

template <class Basis>
CellFunctions project(int order, double h, const Basis& basis) {
  const Quadrature rule = gauss(order + 3);
  CellFunctions result;
  const auto count = static_cast<long>(basis(0.0, 0).size());
  result.value = result.derivative = Matrix::Zero(order + 2, count);
  for (std::size_t q = 0; q < rule.points.size(); ++q) {
    const std::vector<double> test = legendre(order + 1, rule.points[q]);
    const std::vector<double> value = basis(rule.points[q], 0);
    const std::vector<double> slope = basis(rule.points[q], 1);
    for (long i = 0; i < order + 2; ++i) {
      for (long j = 0; j < count; ++j) {
        result.value(i, j) += rule.weights[q] * test[i] * value[j];
        result.derivative(i, j) += rule.weights[q] * test[i] * slope[j] / h;
      }
    }
  }
  return result;
}

Line line_of_p(const Equation& equation, const PatchDirection& direction, double h) {
  const int n = equation.n();
  const auto cell = project(equation.order, h, [&](double x, int d) { return continuous(equation.order, x, d); });
  Matrix value = Matrix::Zero(2 * (n + 1), 2 * n + 1);
  Matrix derivative = value;
  for (int upper = 0; upper < 2; ++upper) {
    value.block(upper * (n + 1), upper * n, n + 1, n + 1) = cell.value;
    derivative.block(upper * (n + 1), upper * n, n + 1, n + 1) = cell.derivative;
  }
  const int np = direction.last - direction.first + 1;
  return {value.middleCols(direction.first, np) * direction.eigen_p,
          derivative.middleCols(direction.first, np) * direction.eigen_p, Matrix::Zero(2 * (n + 1), np),
          Matrix::Zero(3, np)};
}

Line line_of_o(const Equation& equation, const PatchDirection& direction, double h) {
  const int n = equation.n();
  const auto cell = project(equation.order, h, [&](double x, int d) { return legendre(equation.order, x, d); });
  Matrix value = Matrix::Zero(2 * (n + 1), 2 * n);
  Matrix derivative = value;
  Matrix jump = Matrix::Zero(3, 2 * n);
  Matrix mean = Matrix::Zero(3, 2 * (n + 1));
  for (int upper = 0; upper < 2; ++upper) {
    value.block(upper * (n + 1), upper * n, n + 1, n) = cell.value;
    derivative.block(upper * (n + 1), upper * n, n + 1, n) = cell.derivative;
    for (int end = 0; end < 2; ++end) {
      const std::vector<double> trace = legendre(equation.order + 1, end);
      for (int i = 0; i <= n; ++i) {
        const double of_mode = trace[i] / std::sqrt(h);
        mean(upper + end, upper * (n + 1) + i) = 0.5 * of_mode;
        if (i < n) jump(upper + end, upper * n + i) = end == 1 ? of_mode : -of_mode;
      }
    }
  }
  jump *= direction.eigen_o;
  return {value * direction.eigen_o, derivative * direction.eigen_o, mean.transpose() * jump, jump};
}

/// The exact matrix of a patch with neighbours on all sides, in the eigenbasis of its local problem: a sum of tensor
/// products. Velocities count x fastest.
class ExactPatch {
 public:
  ExactPatch(const Equation& equation, const AffineMap& map, const Point& h, const PatchSolver& solver)
      : dim_(equation.dim) {
    std::array<std::array<Line, 3>, 2> lines;  // [P, O][direction]
    for (int d = 0; d < dim_; ++d) {
      lines[0][d] = line_of_p(equation, solver.direction(d), h[d]);
      lines[1][d] = line_of_o(equation, solver.direction(d), h[d]);
    }
    for (int c = 0; c < dim_; ++c) {
      for (int d = 0; d < dim_; ++d) extent_[c][d] = static_cast<int>(lines[c == d ? 0 : 1][d].value.cols());
      size_[c] = extent_[c][0] * extent_[c][1] * (dim_ == 3 ? extent_[c][2] : 1);
    }
    for (int test = 0; test < dim_; ++test) {
      for (int trial = 0; trial < dim_; ++trial) {
        const auto line = [&](int component, int d) -> const Line& { return lines[component == d ? 0 : 1][d]; };
        const auto gram = [&](int d) -> Matrix { return line(test, d).value.transpose() * line(trial, d).value; };
        for (int a = 0; a < dim_; ++a) {    // derivative of what is tested
          for (int b = 0; b < dim_; ++b) {  // and of the test function
            const double factor = map.metric()[test][trial] * map.inverse_metric()[a][b] / map.jacobian();
            if (factor == 0.0) continue;
            Term term{test, trial, {}};
            for (int d = 0; d < dim_; ++d) term.factor[d] = gram(d);
            const Line& of_test = line(test, b);
            const Line& of_trial = line(trial, a);
            if (a == b) {
              const double penalty = equation.penalty(h[a]);
              term.factor[a] = factor * (of_test.derivative.transpose() * of_trial.derivative -
                                         of_test.lift.transpose() * of_trial.derivative -
                                         of_test.derivative.transpose() * of_trial.lift +
                                         penalty * of_test.jump.transpose() * of_trial.jump);
              terms_.push_back(term);
              continue;
            }
            Term of_lifts = term;
            term.factor[a] = factor * line(test, a).value.transpose() * (of_trial.derivative - of_trial.lift);
            term.factor[b] = (of_test.derivative - of_test.lift).transpose() * line(trial, b).value;
            of_lifts.factor[a] = -factor * line(test, a).value.transpose() * of_trial.lift;
            of_lifts.factor[b] = of_test.lift.transpose() * line(trial, b).value;
            terms_.push_back(term);
            terms_.push_back(of_lifts);
          }
        }
      }
    }
  }

  using Velocity = std::array<VectorXd, 3>;

  [[nodiscard]] Velocity apply(const Velocity& w) const {
    Velocity result;
    for (int c = 0; c < dim_; ++c) result[c] = VectorXd::Zero(size_[c]);
    for (const Term& term : terms_) {
      VectorXd image = w[term.trial];
      std::array<int, 3> extent = extent_[term.trial];
      for (int d = 0; d < dim_; ++d) image = along(d, term.factor[d], image, extent);
      result[term.test] += image;
    }
    return result;
  }

  [[nodiscard]] const std::array<int, 3>& extent(int c) const { return extent_[c]; }

  /// A matrix on the lines in one direction.
  [[nodiscard]] static VectorXd along(int d, const Matrix& matrix, const VectorXd& x, std::array<int, 3>& extent) {
    long inner = 1;
    for (int a = 0; a < d; ++a) inner *= extent[a];
    const long outer = x.size() / (inner * extent[d]);
    VectorXd y(inner * matrix.rows() * outer);
    for (long i = 0; i < outer; ++i) {
      const Eigen::Map<const Matrix> in(x.data() + i * inner * matrix.cols(), inner, matrix.cols());
      Eigen::Map<Matrix>(y.data() + i * inner * matrix.rows(), inner, matrix.rows()).noalias() =
          in * matrix.transpose();
    }
    extent[d] = static_cast<int>(matrix.rows());
    return y;
  }

 private:
  struct Term {
    int test;
    int trial;
    std::array<Matrix, 3> factor;
  };
  int dim_;
  std::array<std::array<int, 3>, 3> extent_{};
  std::array<long, 3> size_{};
  std::vector<Term> terms_;
};

/// The local problem on divergence-free fields.
class LocalProblem {
 public:
  using Velocity = ExactPatch::Velocity;

  LocalProblem(const PatchSolver& solver, const ExactPatch& exact) : solver_(solver), exact_(exact) {
    const int dim = solver.dim();
    for (int c = 0; c < dim; ++c) {
      const int a = (c + 1) % dim;
      const int b = (c + 2) % dim;
      const auto& extent = exact.extent(c);
      inverse_[c].resize(static_cast<long>(solver.inverse_lambda(c).size()));
      for (long i = 0; i < inverse_[c].size(); ++i) {
        const std::array<long, 3> at{i % extent[0], i / extent[0] % extent[1], i / extent[0] / extent[1]};
        const long place = dim == 3 ? (at[c] * extent[b] + at[b]) * extent[a] + at[a] : at[c] * extent[a] + at[a];
        inverse_[c][i] = solver.inverse_lambda(c)[place];
      }
    }
  }

  /// The divergence-free u with A u = f up to a gradient.
  [[nodiscard]] Velocity solve(const Velocity& f) const {
    const int dim = solver_.dim();
    const int modes = static_cast<int>(solver_.direction(0).lambda_o.size());
    Velocity u;
    VectorXd divergence;
    for (int c = 0; c < dim; ++c) {
      u[c] = inverse_[c].cwiseProduct(f[c]);
      std::array<int, 3> extent = exact_.extent(c);
      const VectorXd image = ExactPatch::along(c, solver_.direction(c).divergence, u[c], extent);
      divergence = c == 0 ? image : VectorXd(divergence + image);
    }
    VectorXd p = VectorXd::Zero(divergence.size());
    for (const SchurBlock& block : solver_.blocks()) {
      std::vector<int> places;
      block.for_each(modes, [&](int at) { places.push_back(at); });
      p(places) = *block.inverse * divergence(places);
    }
    for (int c = 0; c < dim; ++c) {
      std::array<int, 3> extent{modes, modes, dim == 3 ? modes : 1};
      const Matrix gradient = solver_.direction(c).divergence.transpose();
      u[c] -= inverse_[c].cwiseProduct(ExactPatch::along(c, gradient, p, extent));
    }
    return u;
  }

  /// (u, A v)
  [[nodiscard]] double product(const Velocity& u, const Velocity& v) const {
    double sum = 0.0;
    for (int c = 0; c < solver_.dim(); ++c) sum += u[c].cwiseQuotient(inverse_[c]).dot(v[c]);
    return sum;
  }

 private:
  const PatchSolver& solver_;
  const ExactPatch& exact_;
  std::array<VectorXd, 3> inverse_;  // 1 / lambda, x fastest
};

}  // namespace

/// Lanczos's method on A^-1 A_exact, which is symmetric in the product of A.
double largest_ratio(const Equation& equation, const AffineMap& map, const Point& h) {
  constexpr int most_steps = 30;
  Equation local = equation;
  local.weights = unscaled(equation.dim, map);
  const PatchSolver solver(local, {}, h, PatchKind{}, LocalSolverKind::direct);
  const ExactPatch exact(equation, map, h, solver);
  const LocalProblem problem(solver, exact);

  ExactPatch::Velocity start;
  std::uint32_t random = 1;
  for (int c = 0; c < equation.dim; ++c) {
    start[c].resize(static_cast<long>(solver.inverse_lambda(c).size()));
    for (double& value : start[c]) {
      random = random * 1664525U + 1013904223U;
      value = random / 2147483648.0 - 1.0;
    }
  }
  std::vector<ExactPatch::Velocity> basis;
  std::vector<double> diagonal;
  std::vector<double> beside;
  ExactPatch::Velocity next = problem.solve(start);
  for (int step = 0; step < most_steps; ++step) {
    const double norm = std::sqrt(problem.product(next, next));
    if (step > 0 && norm < 1e-10 * diagonal.front()) break;  // of all divergence-free fields
    if (step > 0) beside.push_back(norm);
    for (int c = 0; c < equation.dim; ++c) next[c] /= norm;
    basis.push_back(next);
    next = problem.solve(exact.apply(basis.back()));
    diagonal.push_back(problem.product(basis.back(), next));
    for (int pass = 0; pass < 2; ++pass) {
      for (const auto& known : basis) {
        const double part = problem.product(known, next);
        for (int c = 0; c < equation.dim; ++c) next[c] -= part * known[c];
      }
    }
  }
  const auto size = static_cast<long>(diagonal.size());
  Eigen::SelfAdjointEigenSolver<Matrix> eigen;
  eigen.computeFromTridiagonal(Eigen::Map<const VectorXd>(diagonal.data(), size),
                               Eigen::Map<const VectorXd>(beside.data(), size - 1), Eigen::EigenvaluesOnly);
  return eigen.eigenvalues().maxCoeff();
}

PatchWeights patch_weights(const Equation& equation, const AffineMap& map, const Point& h, bool by_cell) {
  const double most = by_cell && equation.dim == 3 ? 1.2 : 1.8;
  PatchWeights weights = unscaled(equation.dim, map);
  const double scale = std::max(1.0, largest_ratio(equation, map, h) / most);
  for (auto& of_component : weights.viscous) {
    for (double& weight : of_component) weight *= scale;
  }
  return weights;
}

}  // namespace solenoid
