#include "base/exchange.hpp"

#include <Eigen/LU>
#include <algorithm>

#include "base/parallel.hpp"

namespace solenoid {
namespace {

using Eigen::MatrixXd;

/// Unknowns that are exchanged together.
constexpr std::int64_t together = 64;
/// Columns that a thread takes at a time: few, as the first ones are the longest.
constexpr std::int64_t columns_of_a_share = 32;

/// The unknowns from `begin` on, as many as `columns` has columns. `columns` and `solved` are scratch.
void exchange_together(Eigen::Ref<MatrixXd> matrix, std::int64_t begin, Eigen::Ref<MatrixXd> columns,
                       Eigen::Ref<MatrixXd> solved, int threads) {
  const std::int64_t count = matrix.rows();
  const std::int64_t size = columns.cols();
  const std::int64_t end = begin + size;
  const std::int64_t below = count - end;
  const MatrixXd pivot = matrix.block(begin, begin, size, size).selfadjointView<Eigen::Lower>();
  const MatrixXd inverse = pivot.partialPivLu().inverse();
  // Those of these unknowns, without their rows.
  columns.topRows(begin) = matrix.block(begin, 0, size, begin).transpose();
  columns.middleRows(begin, size).setZero();
  columns.bottomRows(below) = matrix.block(end, begin, below, size);
  parallel_ranges(
      Ranges{count, columns_of_a_share},
      [&](const CellRange& range, std::int64_t) {
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
      },
      threads);
  matrix.block(begin, 0, size, begin) = solved.topRows(begin).transpose();
  matrix.block(begin, begin, size, size) = -inverse;
  matrix.block(end, begin, below, size) = solved.bottomRows(below);
}

}  // namespace

void exchange(Eigen::Ref<MatrixXd> matrix, std::int64_t begin, std::int64_t end, int threads) {
  MatrixXd columns(matrix.rows(), together);
  MatrixXd solved(matrix.rows(), together);
  for (; begin < end; begin += together) {
    const std::int64_t size = std::min(together, end - begin);
    exchange_together(matrix, begin, columns.leftCols(size), solved.leftCols(size), threads);
  }
}

void fill_upper(Eigen::Ref<MatrixXd> matrix, int threads) {
  parallel_ranges(
      Ranges{matrix.rows(), columns_of_a_share},
      [&](const CellRange& range, std::int64_t) {
        for (std::int64_t row = range.begin; row < range.end; ++row) {
          matrix.col(row).head(row) = matrix.row(row).head(row).transpose();
        }
      },
      threads);
}

}  // namespace solenoid
