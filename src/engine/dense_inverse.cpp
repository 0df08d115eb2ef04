#include "engine/dense_inverse.hpp"

#include <Eigen/Core>
#include <cmath>

#include "base/exchange.hpp"

namespace solenoid {
namespace {

using Eigen::MatrixXd;
using MappedMatrix = Eigen::Map<MatrixXd>;

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
double shift(const MappedMatrix& matrix, const DenseField& field) {
  double largest = 0.0;
  for (std::int64_t i = field.begin; i < field.end; ++i) {
    if (std::abs(matrix(i, i)) > std::abs(largest)) largest = matrix(i, i);
  }
  return largest != 0.0 ? largest : 1.0;
}

}  // namespace

/// With constants n in a kernel, A^+ = (A + s sum n n^T)^-1 - sum n n^T / s, where s has the sign and the size of the
/// field's diagonal.
template <class T>
void invert_on_host(std::span<const DenseField> fields, double* values, T* inverse) {
  const Eigen::Index count = fields.back().end;
  MappedMatrix matrix(values, count, count);
  std::vector<double> shifts;
  for (const DenseField& field : fields) {
    shifts.push_back(shift(matrix, field));
    add_constants(field, shifts.back(), matrix);
    exchange(matrix, field.begin, field.end);
  }
  MatrixXd result = matrix.selfadjointView<Eigen::Lower>();
  result = -result;
  for (std::size_t f = 0; f < fields.size(); ++f) add_constants(fields[f], -1.0 / shifts[f], result);
  Eigen::Map<Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>>(inverse, count, count) = result.cast<T>();
}

template void invert_on_host<float>(std::span<const DenseField>, double*, float*);
template void invert_on_host<double>(std::span<const DenseField>, double*, double*);

}  // namespace solenoid
