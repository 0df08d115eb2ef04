#pragma once
/// \file
/// Aggregates of matrices with few nodes, found on the host.

#include <optional>
#include <vector>

#include "engine/assembly_rows.hpp"

namespace solenoid {

/// A matrix on the host, in the format of SparseMatrix.
struct HostMatrix {
  HostMatrix(Engine& engine, const SparseRows& rows, const AssembledMatrix& matrix);

  std::int32_t rows;
  std::vector<std::int32_t> nodes;  ///< rows that are not padding
  std::vector<std::int64_t> begin;
  std::vector<std::int32_t> column;
  std::vector<double> value;
  std::vector<double> diagonal;

  /// visit(column, value) for the entries of a row.
  template <class Visit>
  void for_row(std::int64_t row, const Visit& visit) const {
    assembly::Entries(rows, begin.data(), column.data(), value.data()).for_row(row, visit);
  }
};

/// Pairs with the largest entries, then pairs of these; what finds none joins the one that it is most coupled to,
/// wherever they are: of their places is said no more than colours that go together. None where there would be more
/// colours than a matrix can have.
std::optional<Aggregation> aggregate_pairs(Engine& engine, const SparseRows& rows, const AssembledMatrix& matrix);

}  // namespace solenoid
