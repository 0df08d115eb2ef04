#include "solver/multigrid/dense_inverse.hpp"

#include <Eigen/LU>
#include <algorithm>
#include <cmath>

#include "base/parallel.hpp"

namespace solenoid {
namespace {

using Eigen::MatrixXd;

/// Columns that are applied, or unknowns that are eliminated, together.
constexpr std::int64_t together = 64;

/// The unknowns of one field, a velocity component or the scalar one.
struct Field {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool singular = false;             ///< the operator maps the constant to zero
  std::vector<std::int64_t> lowest;  ///< the unknowns that are equal in a constant, the others being zero
};

/// Puts the places of a field's unknowns behind those that are there.
Field append_field(const Level& level, int field, std::vector<std::int64_t>& index) {
  const Equation& equation = level.equation;
  const int block = power(equation.n(), equation.dim);
  Field result;
  result.begin = static_cast<std::int64_t>(index.size());
  result.singular = field < equation.velocities() ? level.constants.velocity[field] : level.constants.pressure;
  for (Grid::Record r = 0; r < level.grid.records(); ++r) {
    level.for_each_unknown_of(r, [&](int i) {
      if (i / block != field) return;
      if (i % block == 0) result.lowest.push_back(static_cast<std::int64_t>(index.size()));
      index.push_back(level.index(r, i));
    });
  }
  result.end = static_cast<std::int64_t>(index.size());
  return result;
}

MatrixXd operator_matrix(Engine& engine, const Level& level, LocalSolverKind local,
                         const std::vector<std::int64_t>& index) {
  const auto kernels = make_kernels<double>(engine, level, local);
  const std::int64_t size = level.size();
  const auto count = static_cast<std::int64_t>(index.size());
  Vector<double> x(engine, together * size);
  Vector<double> y(engine, together * size);
  std::vector<double> host(together * size);
  MatrixXd matrix(count, count);
  for (std::int64_t first = 0; first < count; first += together) {
    const std::int64_t columns = std::min(together, count - first);
    std::fill(host.begin(), host.end(), 0.0);
    for (std::int64_t j = 0; j < columns; ++j) host[j * size + index[first + j]] = 1.0;
    x.upload(host.data());
    for (std::int64_t j = 0; j < columns; ++j) kernels->apply(x.data() + j * size, y.data() + j * size);
    y.download(host.data());
    for (std::int64_t j = 0; j < columns; ++j) {
      for (std::int64_t i = 0; i < count; ++i) matrix(i, first + j) = host[j * size + index[i]];
    }
  }
  return matrix;
}

/// Adds s n n^T, n the normalised constant of a field.
void add_constant(const Field& field, double s, MatrixXd& matrix) {
  for (const std::int64_t i : field.lowest) {
    for (const std::int64_t j : field.lowest) matrix(i, j) += s / static_cast<double>(field.lowest.size());
  }
}

/// The entry of a field's diagonal that is largest in size: s of its constant. 1 where there is none but zeros, as with
/// the pressure of a lone cell.
double shift(const MatrixXd& matrix, const Field& field) {
  double largest = 0.0;
  for (std::int64_t i = field.begin; i < field.end; ++i) {
    if (std::abs(matrix(i, i)) > std::abs(largest)) largest = matrix(i, i);
  }
  return largest != 0.0 ? largest : 1.0;
}

/// Exchanges unknowns [begin, end) for their equations: M x = b becomes M' x' = b' with these unknowns, negative, in b'
/// and their right-hand sides in x'. M and M' are symmetric; of both the lower triangle is used. After all unknowns
/// M' = -M^-1.
void exchange(MatrixXd& matrix, std::int64_t begin, std::int64_t end) {
  const std::int64_t count = matrix.rows();
  const std::int64_t size = end - begin;
  const std::int64_t below = count - end;
  const MatrixXd pivot = matrix.block(begin, begin, size, size).selfadjointView<Eigen::Lower>();
  const MatrixXd inverse = pivot.partialPivLu().inverse();
  MatrixXd columns(count, size);  // of these unknowns, without their rows
  columns.topRows(begin) = matrix.block(begin, 0, size, begin).transpose();
  columns.middleRows(begin, size).setZero();
  columns.bottomRows(below) = matrix.block(end, begin, below, size);
  MatrixXd solved(count, size);
  parallel_ranges(Ranges{count, together}, [&](const CellRange& range, std::int64_t) {
    const std::int64_t width = range.end - range.begin;
    const std::int64_t rows = count - range.begin;
    solved.middleRows(range.begin, width).noalias() = columns.middleRows(range.begin, width) * inverse;
    matrix.block(range.begin, range.begin, rows, width).noalias() -=
        columns.bottomRows(rows) * solved.middleRows(range.begin, width).transpose();
  });
  matrix.block(begin, 0, size, begin) = solved.topRows(begin).transpose();
  matrix.block(begin, begin, size, size) = -inverse;
  matrix.block(end, begin, below, size) = solved.bottomRows(below);
}

}  // namespace

/// Velocities are eliminated first: their block is positive definite, and what remains for the pressure is negative
/// definite, so that pivots need not be looked for. With a constant n in a kernel,
/// A^+ = (A + s n n^T)^-1 - n n^T / s, where s has the sign and the size of the field's diagonal.
DenseInverse invert(Engine& engine, const Level& level, LocalSolverKind local) {
  std::vector<std::int64_t> index;
  std::vector<Field> fields;
  for (int field = 0; field <= level.equation.velocities(); ++field) {
    fields.push_back(append_field(level, field, index));
  }
  MatrixXd matrix = operator_matrix(engine, level, local, index);
  std::vector<double> shifts;
  for (const Field& field : fields) {
    shifts.push_back(shift(matrix, field));
    if (field.singular) add_constant(field, shifts.back(), matrix);
    for (std::int64_t begin = field.begin; begin < field.end; begin += together) {
      exchange(matrix, begin, std::min(begin + together, field.end));
    }
  }
  MatrixXd inverse = matrix.selfadjointView<Eigen::Lower>();
  inverse = -inverse;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    if (fields[f].singular) add_constant(fields[f], -1.0 / shifts[f], inverse);
  }
  return {std::move(index), std::move(inverse)};
}

}  // namespace solenoid
