#include "level/patch_solver.hpp"

#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include "base/exchange.hpp"
#include "base/parallel.hpp"

namespace solenoid {
namespace {

struct Eigenpairs {
  Matrix vectors;
  Eigen::VectorXd values;
};

Eigenpairs generalised_eigenpairs(const Matrix& stiffness, const Matrix& mass) {
  if (stiffness.rows() == 0) return {Matrix(0, 0), Eigen::VectorXd(0)};
  const Eigen::GeneralizedSelfAdjointEigenSolver<Matrix> solver(stiffness, mass);
  return {solver.eigenvectors(), solver.eigenvalues()};
}

/// Eigenpairs on the span of the columns of `basis`, in the full basis.
Eigenpairs eigenpairs_within(const Matrix& basis, const Matrix& stiffness, const Matrix& mass) {
  auto pairs = generalised_eigenpairs(basis.transpose() * stiffness * basis, basis.transpose() * mass * basis);
  pairs.vectors = basis * pairs.vectors;
  return pairs;
}

/// The same on the part of that span where all rows of `constraints` vanish; the columns are orthonormal. What is
/// missing are vectors 0 with infinite eigenvalues.
Eigenpairs constrained_eigenpairs(const Matrix& basis, const Matrix& stiffness, const Matrix& mass,
                                  const Matrix& constraints) {
  if (constraints.rows() == 0) return eigenpairs_within(basis, stiffness, mass);
  const Eigen::ColPivHouseholderQR<Matrix> qr((constraints * basis).transpose());
  const Matrix rotation = qr.householderQ();
  const long left = basis.cols() - qr.rank();
  const auto pairs = eigenpairs_within(basis * rotation.rightCols(left), stiffness, mass);
  Eigenpairs all{Matrix::Zero(basis.rows(), basis.cols()),
                 Eigen::VectorXd::Constant(basis.cols(), std::numeric_limits<double>::infinity())};
  all.vectors.leftCols(left) = pairs.vectors;
  all.values.head(left) = pairs.values;
  return all;
}

/// Reflection about the patch centre takes function i to sign[i] times function image[i] of the mirrored patch.
struct Reflection {
  std::vector<int> image;
  std::vector<double> sign;

  /// Images of functions, given as columns.
  [[nodiscard]] Matrix of(const Matrix& functions) const {
    Matrix images(functions.rows(), functions.cols());
    for (std::size_t i = 0; i < image.size(); ++i) {
      images.row(image[i]) = sign[i] * functions.row(static_cast<long>(i));
    }
    return images;
  }
};

Reflection reflection_of_o(int n) {
  Reflection reflection;
  for (int i = 0; i < 2 * n; ++i) {
    reflection.image.push_back((i + n) % (2 * n));
    reflection.sign.push_back(i % n % 2 == 0 ? 1.0 : -1.0);
  }
  return reflection;
}

/// Of functions first..last of P; the mirrored patch has 2n - last..2n - first. Bubble j is odd about its cell for even
/// j, hats change places.
Reflection reflection_of_p(int n, int first, int last) {
  Reflection reflection;
  for (int i = first; i <= last; ++i) {
    const int bubble = i % n;
    const int image = bubble == 0 ? 2 * n - i : (i + n) % (2 * n);
    reflection.image.push_back(image - (2 * n - last));
    reflection.sign.push_back(bubble == 0 || bubble % 2 == 1 ? 1.0 : -1.0);
  }
  return reflection;
}

/// Even and odd combinations about the patch centre.
Eigenpairs eigenpairs_by_parity(const Reflection& reflection, const Matrix& stiffness, const Matrix& mass,
                                const Matrix& constraints = Matrix()) {
  const auto& [mirror, sign] = reflection;
  const long size = stiffness.rows();
  Eigenpairs all{Matrix(size, size), Eigen::VectorXd(size)};
  long column = 0;
  for (const double parity : {1.0, -1.0}) {
    std::vector<Eigen::VectorXd> columns;
    for (int i = 0; i < size; ++i) {
      if (mirror[i] < i || (mirror[i] == i && parity < 0)) continue;
      Eigen::VectorXd v = Eigen::VectorXd::Zero(size);
      v[i] = 1.0;
      if (mirror[i] != i) v[mirror[i]] = parity * sign[i];
      columns.push_back(v.normalized());
    }
    Matrix basis(size, static_cast<long>(columns.size()));
    for (std::size_t j = 0; j < columns.size(); ++j) basis.col(static_cast<long>(j)) = columns[j];
    const auto pairs = constrained_eigenpairs(basis, stiffness, mass, constraints);
    all.vectors.middleCols(column, basis.cols()) = pairs.vectors;
    all.values.segment(column, basis.cols()) = pairs.values;
    column += basis.cols();
  }
  return all;
}

/// The same direction from the other end. D changes its sign under reflection; with that of P's images C stays.
PatchDirection image_of(PatchDirection d, int n) {
  d.eigen_o = reflection_of_o(n).of(d.eigen_o);
  d.eigen_p = -reflection_of_p(n, d.first, d.last).of(d.eigen_p);
  const int first = 2 * n - d.last;
  d.last = 2 * n - d.first;
  d.first = first;
  return d;
}

PatchDirection make_direction(const CellMatrices& cell, const PatchMatrices& patch, const PatchEnds& ends, double h) {
  const int n = cell.order + 1;
  if (const PatchEnds image = ends.problem_or_image(); image != ends.problem()) {
    return image_of(make_direction(cell, patch, image, h), n);
  }
  PatchDirection d;
  d.first = ends.hat[0] ? 0 : 1;
  d.last = ends.hat[1] ? 2 * n : 2 * n - 1;
  d.parity = ends.symmetric();
  const int np = d.last - d.first + 1;
  const Matrix laplace = patch.laplace_o(ends.weight[0], ends.weight[1]) / (h * h);
  const Matrix stiffness = patch.stiffness_p.block(d.first, d.first, np, np) / (h * h);
  const Matrix mass = patch.mass_p.block(d.first, d.first, np, np);
  const Matrix identity = Matrix::Identity(2 * n, 2 * n);
  Matrix traces(0, 2 * n);  // at ends where functions vanish
  for (int end = 0; end < 2; ++end) {
    if (!ends.cut[end]) continue;
    traces.conservativeResize(traces.rows() + 1, Eigen::NoChange);
    traces.bottomRows(1).setZero();
    for (int j = 0; j < n; ++j)
      traces(traces.rows() - 1, end * n + j) = (end == 0 && j % 2 == 1 ? -1 : 1) * cell.value[j];
  }
  Eigenpairs o;
  Eigenpairs p;
  if (d.parity) {
    o = eigenpairs_by_parity(reflection_of_o(n), laplace, identity, traces);
    p = eigenpairs_by_parity(reflection_of_p(n, d.first, d.last), stiffness, mass);
  } else {
    o = constrained_eigenpairs(identity, laplace, identity, traces);
    p = generalised_eigenpairs(stiffness, mass);
  }
  d.eigen_o = o.vectors;
  d.lambda_o = o.values;
  d.eigen_p = p.vectors;
  d.lambda_p = p.values;
  d.divergence = o.vectors.transpose() * patch.divergence.middleCols(d.first, np) * p.vectors / h;
  return d;
}

}  // namespace

PatchSolver::PatchSolver(const Equation& equation, const Coefficients& coefficients, const Point& h,
                         const PatchKind& kind)
    : equation_(equation), coefficients_(coefficients) {
  const int dim = equation.dim;
  const int n = equation.n();
  const int modes = 2 * n;
  const CellMatrices cell(equation.order, equation.relative_penalty, equation.lumped);
  const PatchMatrices matrices(cell);
  bool closed = true;
  for (int a = 0; a < dim; ++a) {
    directions_[a] = make_direction(cell, matrices, kind[a], h[a]);
    closed = closed && !kind[a].hat[0] && !kind[a].hat[1];
  }

  if (equation.kind == EquationKind::poisson) {
    for (int i = 0; i < power(modes, dim); ++i) {
      double lambda = 0.0;
      for (int a = 0, rest = i; a < dim; ++a, rest /= modes) lambda += directions_[a].lambda_o[rest % modes];
      inverse_lambda_[0].push_back(1.0 / (coefficients.viscosity * lambda + coefficients.reaction));
    }
    return;
  }

  for (int c = 0; c < dim; ++c) {
    const auto& own = directions_[c];
    const auto& first = directions_[(c + 1) % dim];
    const auto& weight = equation.weights.viscous[c];
    const double own_weight = weight[c];
    const double first_weight = weight[(c + 1) % dim];
    const double second_weight = dim == 3 ? weight[(c + 2) % 3] : 0.0;
    const double reaction = coefficients.reaction * equation.weights.mass[c];
    const int second_count = dim == 3 ? modes : 1;
    // Where all ends are free a constant velocity is in the kernel of the whole local problem: the pseudo-inverse has
    // 0.
    const double largest = own_weight * own.lambda_p.maxCoeff() + first_weight * first.lambda_o.maxCoeff() +
                           (dim == 3 ? second_weight * directions_[(c + 2) % 3].lambda_o.maxCoeff() : 0.0);
    const double nothing = 1e-12 * coefficients.viscosity * largest;
    for (int i = 0; i < own.lambda_p.size(); ++i) {
      for (int b = 0; b < second_count; ++b) {
        const double lambda_b = dim == 3 ? second_weight * directions_[(c + 2) % 3].lambda_o[b] : 0.0;
        for (int a = 0; a < modes; ++a) {
          const double lambda = own_weight * own.lambda_p[i] + first_weight * first.lambda_o[a] + lambda_b;
          const double sum = coefficients.viscosity * lambda + reaction;
          inverse_lambda_[c].push_back(sum > nothing ? 1.0 / sum : 0.0);
        }
      }
    }
  }

  if (closed) {
    constant_ = Eigen::VectorXd::Ones(1);
    for (int a = 0; a < dim; ++a) {
      const Eigen::VectorXd v = (directions_[a].eigen_o.row(0) + directions_[a].eigen_o.row(n)).transpose();
      Eigen::VectorXd product(constant_.size() * modes);
      for (int i = 0; i < modes; ++i) product.segment(i * constant_.size(), constant_.size()) = v[i] * constant_;
      constant_ = product;
    }
    constant_.normalize();
  }

  // One block per parity class.
  std::array<int, 3> classes{1, 1, 1};
  for (int a = 0; a < dim; ++a) classes[a] = directions_[a].parity ? 2 : 1;
  for (int z = 0; z < classes[2]; ++z) {
    for (int y = 0; y < classes[1]; ++y) {
      for (int x = 0; x < classes[0]; ++x) {
        SchurBlock block;
        const std::array<int, 3> parity{x, y, z};
        for (int a = 0; a < dim; ++a) {
          block.length[a] = modes / classes[a];
          block.start[a] = parity[a] * block.length[a];
        }
        blocks_.push_back(block);
      }
    }
  }
}

PatchSolver::PatchSolver(const Equation& equation, const Coefficients& coefficients, const Point& h,
                         const PatchKind& kind, LocalSolverKind local, SchurInverses* known)
    : PatchSolver(equation, coefficients, h, kind) {
  if (equation.kind == EquationKind::poisson) return;
  const bool chebyshev = local == LocalSolverKind::chebyshev;
  if ((chebyshev || local == LocalSolverKind::cg) && coefficients.reaction > 0.0) make_preconditioner();
  if (local == LocalSolverKind::direct) find_inverses({equation, coefficients, h, kind}, known);
  if (chebyshev) find_bounds();
  if (local == LocalSolverKind::dense) make_dense(h, kind);
}

double PatchSolver::regularise(const Eigen::VectorXd& null, Matrix& s) {
  if (null.size() == 0) return 0.0;
  // For k = 0 the block of the constant is nothing but the constant: any shift does.
  const double shift = s.rows() == 1 ? 1.0 : s.trace() / static_cast<double>(s.rows());
  s.selfadjointView<Eigen::Lower>().rankUpdate(null, shift);
  return shift;
}

/// In place, as blocks are large: exchange makes -S^-1 of S.
std::shared_ptr<const Matrix> PatchSolver::pseudo_inverse(const SchurBlock& block, int threads) const {
  auto matrix = std::make_shared<Matrix>(schur(block, threads));
  const Eigen::VectorXd null = constant_in(block);
  const double shift = regularise(null, *matrix);
  exchange(*matrix, 0, matrix->rows(), threads);
  parallel_ranges(
      Ranges{matrix->rows(), 32},
      [&](const CellRange& range, std::int64_t) {
        for (long j = range.begin; j < range.end; ++j) {
          const long below = matrix->rows() - j;
          auto column = matrix->col(j).tail(below);
          column = -column;
          if (null.size() > 0) column -= null[j] / shift * null.tail(below);
        }
      },
      threads);
  fill_upper(*matrix, threads);
  return matrix;
}

SchurInverses::Blocks PatchSolver::inverses() const {
  SchurInverses::Blocks inverses;
  for (const SchurBlock& block : blocks_) inverses.push_back(block.inverse);
  return inverses;
}

void PatchSolver::find_inverses(const SchurKey& key, SchurInverses* known) {
  if (const auto found = known == nullptr ? SchurInverses::Blocks{} : known->find(key); !found.empty()) {
    for (std::size_t i = 0; i < blocks_.size(); ++i) blocks_[i].inverse = found[i];
    return;
  }
  for (SchurBlock& block : blocks_) block.inverse = pseudo_inverse(block, 1);
  if (known != nullptr) known->add(key, inverses());
}

namespace {

/// Smaller local solvers take less time than starting threads.
int worthwhile_threads(const Equation& equation) { return power(equation.n(), equation.dim) >= 27 ? cores() : 1; }

}  // namespace

void PatchSolver::invert(const Level& level, const Coefficients& coefficients, const std::vector<int>& kinds) {
  const Point h = level.grid.metric().uniform_width();
  std::map<SchurKey, PatchSolver> missing;
  for (const int i : kinds) {
    const PatchKind& kind = level.patches.kinds[i];
    const SchurKey key(level.equation, coefficients, h, kind);
    if (missing.contains(key) || !level.schur_inverses->find(key).empty()) continue;
    missing.emplace(key, PatchSolver(level.equation, coefficients, h, kind));
  }
  struct Task {
    const PatchSolver* solver;
    SchurBlock* block;
  };
  std::vector<Task> tasks;
  for (auto& [key, solver] : missing) {
    for (SchurBlock& block : solver.blocks_) tasks.push_back({&solver, &block});
  }
  std::stable_sort(tasks.begin(), tasks.end(),
                   [](const Task& a, const Task& b) { return a.block->size() > b.block->size(); });
  // There are few large blocks, each worth many small ones: they have all cores, one after another.
  constexpr int large = 512;
  const auto small = std::find_if(tasks.begin(), tasks.end(), [](const Task& t) { return t.block->size() < large; });
  for (auto task = tasks.begin(); task != small; ++task) {
    task->block->inverse = task->solver->pseudo_inverse(*task->block, cores());
  }
  const auto invert_small = [&](std::int64_t i) {
    small[i].block->inverse = small[i].solver->pseudo_inverse(*small[i].block, 1);
  };
  parallel_for(
      tasks.end() - small, [&] { return invert_small; }, worthwhile_threads(level.equation));
  for (const auto& [key, solver] : missing) level.schur_inverses->add(key, solver.inverses());
}

void PatchSolver::find_bounds() {
  bounds_ = {1e300, 0.0};
  for (const SchurBlock& block : blocks_) {
    Matrix s = schur(block, 1);
    Eigen::VectorXd null = constant_in(block);
    if (!preconditioner_.inverse.empty()) {
      const Matrix modes = preconditioned_modes(block);
      s = modes.transpose() * s * modes;
      if (null.size() > 0) null = Eigen::VectorXd::Unit(null.size(), 0);
    }
    if (s.rows() == 1 && null.size() == 1) continue;  // nothing but the constant
    (void)regularise(null, s);
    const Eigen::SelfAdjointEigenSolver<Matrix> eigen(s, Eigen::EigenvaluesOnly);
    bounds_[0] = std::min(bounds_[0], eigen.eigenvalues().minCoeff());
    bounds_[1] = std::max(bounds_[1], eigen.eigenvalues().maxCoeff());
  }
  bounds_[0] = std::min(bounds_[0], 0.9 * bounds_[1]);  // Chebyshev divides by their distance
}

void PatchSolver::make_preconditioner() {
  const int dim = equation_.dim;
  const int modes = 2 * equation_.n();
  Eigen::VectorXd gamma = Eigen::VectorXd::Zero(1);
  for (int a = 0; a < dim; ++a) {
    const PatchDirection& d = directions_[a];
    const Matrix laplace = d.divergence * d.divergence.transpose();
    Matrix& vectors = preconditioner_.modes[a];
    vectors = Matrix::Zero(modes, modes);
    Eigen::VectorXd own(modes);
    const int length = d.parity ? modes / 2 : modes;
    for (int start = 0; start < modes; start += length) {
      const Eigen::SelfAdjointEigenSolver<Matrix> eigen(laplace.block(start, start, length, length));
      vectors.block(start, start, length, length) = eigen.eigenvectors();
      own.segment(start, length) = eigen.eigenvalues();
    }
    Eigen::VectorXd sum(gamma.size() * modes);
    for (int i = 0; i < modes; ++i) sum.segment(i * gamma.size(), gamma.size()) = gamma.array() + own[i];
    gamma = sum;
  }
  preconditioner_.inverse.resize(gamma.size());
  for (long i = 0; i < gamma.size(); ++i) {
    const bool constant = i == 0 && constant_.size() > 0;  // eigenvalues ascend
    preconditioner_.inverse[i] = constant ? 0.0 : coefficients_.viscosity + coefficients_.reaction / gamma[i];
  }
}

Eigen::VectorXd PatchSolver::constant_in(const SchurBlock& block) const {
  if (constant_.size() == 0) return {};
  const int modes = 2 * equation_.n();
  Eigen::VectorXd part(block.size());
  long i = 0;
  block.for_each(modes, [&](int at) { part[i++] = constant_[at]; });
  return part.norm() < 0.5 ? Eigen::VectorXd() : part;
}

Matrix PatchSolver::preconditioned_modes(const SchurBlock& block) const {
  Matrix product = Matrix::Ones(1, 1);
  for (int a = 0; a < equation_.dim; ++a) {
    const Matrix& modes = preconditioner_.modes[a];
    product = kronecker(modes.block(block.start[a], block.start[a], block.length[a], block.length[a]), product);
  }
  long i = 0;
  block.for_each(2 * equation_.n(), [&](int at) { product.col(i++) *= std::sqrt(preconditioner_.inverse[at]); });
  return product;
}

Matrix PatchSolver::schur(const SchurBlock& block, int threads) const {
  const int dim = equation_.dim;
  const int modes = 2 * equation_.n();
  const auto& len = block.length;
  const int size = block.size();
  const std::array<int, 3> stride{1, len[0], len[0] * len[1]};
  const int lines = dim == 3 ? modes * modes : modes;
  std::array<Matrix, 3> transposed;  // C^T of the block
  long longest = 0;
  for (int c = 0; c < dim; ++c) {
    transposed[c] = directions_[c].divergence.middleRows(block.start[c], len[c]).transpose();
    longest = std::max(longest, transposed[c].rows());
  }
  Matrix s(size, size);
  // Each column has the line in each direction through its pressure.
  parallel_ranges(
      Ranges{size, 32},
      [&](const CellRange& range, std::int64_t) {
        Eigen::VectorXd velocity(longest);
        for (long column = range.begin; column < range.end; ++column) {
          const int i = static_cast<int>(column);
          const std::array<int, 3> at{i % len[0], i / stride[1] % len[1], i / stride[2]};
          s.col(column).setZero();
          for (int c = 0; c < dim; ++c) {
            const int a = (c + 1) % dim;
            const int b = (c + 2) % dim;
            const int line = (dim == 3 ? (block.start[b] + at[b]) * modes : 0) + block.start[a] + at[a];
            const Matrix& divergence = transposed[c];
            for (long e = 0; e < divergence.rows(); ++e) {
              velocity[e] = inverse_lambda_[c][e * lines + line] * divergence(e, at[c]);
            }
            for (int j = 0; j < len[c]; ++j) {
              s(column + (j - at[c]) * stride[c], column) += divergence.col(j).dot(velocity.head(divergence.rows()));
            }
          }
        }
      },
      threads);
  return s;
}

void PatchSolver::make_dense(const Point& h, const PatchKind& kind) {
  const CellMatrices cell(equation_.order, equation_.relative_penalty, equation_.lumped);
  const PatchMatrices matrices(cell);
  const int dim = equation_.dim;
  const int modes = 2 * equation_.n();
  const Matrix one = Matrix::Identity(modes, modes);
  const int pressures = power(modes, dim);
  std::array<int, 3> offset{};
  int size = 0;
  for (int c = 0; c < dim; ++c) {
    offset[c] = size;
    size += (directions_[c].last - directions_[c].first + 1) * power(modes, dim - 1);
  }
  const int velocity = size;
  size += pressures;
  Matrix a = Matrix::Zero(size, size);
  for (int c = 0; c < dim; ++c) {
    const auto& d = directions_[c];
    const int np = d.last - d.first + 1;
    const Matrix mass = matrices.mass_p.block(d.first, d.first, np, np);
    const auto& weight = equation_.weights.viscous[c];
    const Matrix own =
        weight[c] * coefficients_.viscosity * matrices.stiffness_p.block(d.first, d.first, np, np) / (h[c] * h[c]) +
        coefficients_.reaction * equation_.weights.mass[c] * mass;
    const auto laplace = [&](int direction) {
      return Matrix(matrices.laplace_o(kind[direction].weight[0], kind[direction].weight[1]) *
                    (weight[direction] * coefficients_.viscosity / (h[direction] * h[direction])));
    };
    const Matrix tangential = dim == 2
                                  ? laplace((c + 1) % 2)
                                  : Matrix(kronecker(one, laplace((c + 1) % 3)) + kronecker(laplace((c + 2) % 3), one));
    const Matrix identity = Matrix::Identity(tangential.rows(), tangential.cols());
    const long rows = np * tangential.rows();
    a.block(offset[c], offset[c], rows, rows) = kronecker(own, identity) + kronecker(mass, tangential);
    // -B: pressure rows are counted (z, y, x), velocity columns (e, i_b, i_a).
    const Matrix div = matrices.divergence.middleCols(d.first, np) / h[c];
    const int stride_a = power(modes, (c + 1) % dim);
    const int stride_b = dim == 3 ? power(modes, (c + 2) % 3) : 0;
    const int stride_c = power(modes, c);
    const int nb = dim == 3 ? modes : 1;
    for (int ib = 0; ib < nb; ++ib) {
      for (int ia = 0; ia < modes; ++ia) {
        for (int e = 0; e < np; ++e) {
          for (int i = 0; i < modes; ++i) {
            const int row = velocity + i * stride_c + ia * stride_a + ib * stride_b;
            const int column = offset[c] + (e * nb + ib) * modes + ia;
            a(row, column) = a(column, row) = -div(i, e);
          }
        }
      }
    }
  }
  // Constants that the matrix maps to zero: mode 0 of every cell, equal, and, in the own direction of a velocity, hats.
  // With them bordered out, v to M v / shift, the inverse less v v^T shift is the pseudo-inverse on their complement.
  struct Constant {
    Eigen::VectorXd v;
    double shift;
  };
  std::vector<Constant> constants;
  const auto lowest = [&](int i) {
    bool all = true;
    for (; i > 0; i /= modes) all = all && i % modes % equation_.n() == 0;
    return all;
  };
  const auto border_out = [&](const Eigen::VectorXd& v, const Eigen::VectorXd& image, double shift) {
    const double scale = 1.0 / v.dot(image);
    a += scale / shift * image * image.transpose();
    constants.push_back({v, scale * shift});
  };
  for (int c = 0; c < dim; ++c) {
    const auto& inverses = inverse_lambda_[c];
    if (std::find(inverses.begin(), inverses.end(), 0.0) == inverses.end()) continue;
    const auto& d = directions_[c];
    const int np = d.last - d.first + 1;
    const int tangential = power(modes, dim - 1);
    Eigen::VectorXd v = Eigen::VectorXd::Zero(size);
    for (int i = 0; i < np * tangential; ++i) {
      const bool hat = (d.first + i / tangential) % equation_.n() == 0;
      if (hat && lowest(i % tangential)) v[offset[c] + i] = 1.0;
    }
    Eigen::VectorXd image = Eigen::VectorXd::Zero(size);
    image.segment(offset[c], np * tangential) =
        kronecker(matrices.mass_p.block(d.first, d.first, np, np), Matrix::Identity(tangential, tangential)) *
        v.segment(offset[c], np * tangential);
    border_out(v, image, h[c] * h[c] / coefficients_.viscosity);
  }
  if (constant_.size() > 0) {
    Eigen::VectorXd v = Eigen::VectorXd::Zero(size);
    for (int i = 0; i < pressures; ++i) v[velocity + i] = lowest(i) ? 1.0 : 0.0;
    border_out(v, v, -coefficients_.viscosity);
  }
  // Velocities first: of either field what is left is definite.
  exchange(a, 0, velocity, 1);
  exchange(a, velocity, size, 1);
  fill_upper(a, 1);
  dense_ = -a;
  for (const auto& [v, shift] : constants) dense_ -= shift * v * v.transpose();
}

void for_each_local_solver(const Level& level, const Coefficients& coefficients, const std::vector<int>& kinds,
                           LocalSolverKind local, BlockInverses inverses,
                           const std::function<void(std::size_t, const PatchSolver&)>& visit) {
  const SchurInverses::Keep keep(*level.schur_inverses);
  const bool direct = local == LocalSolverKind::direct && level.equation.kind == EquationKind::stokes;
  const bool without = direct && inverses == BlockInverses::elsewhere;
  if (direct && !without) PatchSolver::invert(level, coefficients, kinds);
  const Point h = level.grid.metric().uniform_width();
  const auto solve = [&](std::int64_t i) {
    const PatchKind& kind = level.patches.kinds[kinds[i]];
    visit(i, without ? PatchSolver(level.equation, coefficients, h, kind)
                     : PatchSolver(level.equation, coefficients, h, kind, local, level.schur_inverses.get()));
  };
  parallel_for(
      std::ssize(kinds), [&] { return solve; }, worthwhile_threads(level.equation));
}

}  // namespace solenoid
