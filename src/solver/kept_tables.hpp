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
#include "solver/multigrid/preconditioner.hpp"

namespace solenoid {

/// Tables of the last few coefficients that a preconditioner had.
class KeptTables {
 public:
  /// Hands the preconditioner, whose levels have them already, the tables of coefficients `now`, kept or new, in place
  /// of those of `before`. \throws ResourceError if memory does not suffice; nothing is changed then.
  void change(Preconditioner& preconditioner, const Coefficients& before, const Coefficients& now) {
    kept_.push_back({before, preconditioner.use_tables(tables_of(preconditioner, now))});
    constexpr std::size_t most = 8;
    if (kept_.size() > most) kept_.erase(kept_.begin());
  }

 private:
  struct Kept {
    Coefficients coefficients;
    std::shared_ptr<CoefficientTables> tables;
  };

  std::shared_ptr<CoefficientTables> tables_of(Preconditioner& preconditioner, const Coefficients& coefficients) {
    const auto found =
        std::find_if(kept_.begin(), kept_.end(), [&](const Kept& each) { return each.coefficients == coefficients; });
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
