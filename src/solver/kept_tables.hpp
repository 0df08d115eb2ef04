#pragma once
/// \file
/// Coefficients that change: what was made of those in use before is kept for a while.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "level/coefficients.hpp"
#include "solenoid/error.hpp"
#include "solver/discretisation.hpp"
#include "solver/multigrid/preconditioner.hpp"

namespace solenoid {

/// Tables of the last few coefficients that a preconditioner had; of fewer where these vary by cell, which take memory
/// for each cell and hardly come back.
class KeptTables {
 public:
  /// The discretisation and its preconditioner get other coefficients, with tables that are kept or new. \throws
  /// InputError, ResourceError as Discretisation::set_coefficients or if memory does not suffice; nothing is changed
  /// then.
  void change(Discretisation& discretisation, Preconditioner& preconditioner, const Coefficients& now) {
    const Coefficients before = discretisation.finest().coefficients;
    discretisation.set_coefficients(now);
    try {
      kept_.push_back(
          {before, preconditioner.use_tables(tables_of(discretisation.finest().grid, preconditioner, now))});
    } catch (...) {
      discretisation.set_coefficients(before);
      throw;
    }
    const std::size_t most = now.by_cell == nullptr ? 8 : 2;
    if (kept_.size() > most) kept_.erase(kept_.begin());
  }

 private:
  struct Kept {
    Coefficients coefficients;
    std::shared_ptr<CoefficientTables> tables;
  };

  std::shared_ptr<CoefficientTables> tables_of(const Grid& grid, Preconditioner& preconditioner,
                                               const Coefficients& coefficients) {
    const auto found = std::find_if(kept_.begin(), kept_.end(),
                                    [&](const Kept& each) { return are_same(each.coefficients, coefficients, grid); });
    if (found != kept_.end()) {
      auto tables = std::move(found->tables);
      kept_.erase(found);
      return tables;
    }
    try {
      return preconditioner.make_tables();
    } catch (const ResourceError&) {
      if (kept_.empty()) throw;
    }
    kept_.clear();
    return preconditioner.make_tables();
  }

  std::vector<Kept> kept_;  // the last ones last
};

}  // namespace solenoid
