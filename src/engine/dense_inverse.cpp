#include "engine/dense_inverse.hpp"

#include <Eigen/LU>
#include <algorithm>
#include <cmath>

#include "base/parallel.hpp"

namespace solenoid {
namespace {

using Eigen::MatrixXd;
using Matrix = Eigen::Map<MatrixXd>;

/// Unknowns that are exchanged together.
constexpr std::int64_t together = 64;

/// Adds s n n^T for the normalised constants n of a field.
void add_constants(const DenseField& field, double s, Eigen::Ref<MatrixXd> matrix) {
  for (const auto& constant : field.constants) {
    for (const std::int64_t i : constant) {
      for (const std::int64_t j : constant) matrix(i, j) += s / static_cast<double>(constant.size());
    }
  }
}

/// The entry of a field's diagonal that is largest in size: s of its constant. 1 where there is none but zeros, as with
/// the pressure of a lone cell.
double shift(const Matrix& matrix, const DenseField& field) {
  double largest = 0.0;
  for (std::int64_t i = field.begin; i < field.end; ++i) {
    if (std::abs(matrix(i, i)) > std::abs(largest)) largest = matrix(i, i);
  }
  return largest != 0.0 ? largest : 1.0;
}

/// Exchanges unknowns [begin, end) for their equations: M x = b becomes M' x' = b' with these unknowns, negative, in b'
/// and their right-hand sides in x'. M and M' are symmetric; of both the lower triangle is used. After all unknowns
/// M' = -M^-1.
void exchange(Matrix& matrix, std::int64_t begin, std::int64_t end) {
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
    const auto own = columns.middleRows(range.begin, width);
    if ((own.array() == 0.0).all()) {  // unknowns that are not coupled yet
      solved.middleRows(range.begin, width).setZero();
      return;
    }
    solved.middleRows(range.begin, width).noalias() = own * inverse;
    matrix.block(range.begin, range.begin, rows, width).noalias() -=
        columns.bottomRows(rows) * solved.middleRows(range.begin, width).transpose();
  });
  matrix.block(begin, 0, size, begin) = solved.topRows(begin).transpose();
  matrix.block(begin, begin, size, size) = -inverse;
  matrix.block(end, begin, below, size) = solved.bottomRows(below);
}

}  // namespace

/// With constants n in a kernel, A^+ = (A + s sum n n^T)^-1 - sum n n^T / s, where s has the sign and the size of the
/// field's diagonal.
template <class T>
void invert_on_host(std::span<const DenseField> fields, double* values, T* inverse) {
  const Eigen::Index count = fields.back().end;
  Matrix matrix(values, count, count);
  std::vector<double> shifts;
  for (const DenseField& field : fields) {
    shifts.push_back(shift(matrix, field));
    add_constants(field, shifts.back(), matrix);
    for (std::int64_t begin = field.begin; begin < field.end; begin += together) {
      exchange(matrix, begin, std::min(begin + together, field.end));
    }
  }
  MatrixXd result = matrix.selfadjointView<Eigen::Lower>();
  result = -result;
  for (std::size_t f = 0; f < fields.size(); ++f) add_constants(fields[f], -1.0 / shifts[f], result);
  Eigen::Map<Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>>(inverse, count, count) = result.cast<T>();
}

template void invert_on_host<float>(std::span<const DenseField>, double*, float*);
template void invert_on_host<double>(std::span<const DenseField>, double*, double*);

}  // namespace solenoid
