#pragma once
/// \file
/// Inverse Schur complements that the levels of a hierarchy have in common, while they are set up.

#include <compare>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "element/matrices.hpp"
#include "level/level.hpp"

namespace solenoid {

/// What the Schur complement of a kind of patches depends on: it is the same for mirror images (PatchSolver). Without
/// reaction that is the shape of cells, not their size (C is like 1 / h, lambda like nu / h^2), to the last bit, as
/// widths double from level to level.
struct SchurKey {
  SchurKey(const Equation& equation, const Coefficients& coefficients, const Point& h, const PatchKind& patch);

  int dim;
  int order;
  double relative_penalty;
  double viscosity;
  double reaction;
  PatchWeights weights;
  Point cell;      ///< widths; without reaction over that in x
  PatchKind kind;  ///< PatchEnds::problem_or_image in each direction

  auto operator<=>(const SchurKey&) const = default;
};

/// For several threads.
class SchurInverses {
 public:
  using Blocks = std::vector<std::shared_ptr<const Matrix>>;  ///< of PatchSolver::blocks

  /// What is added while there is one of these can be found until there is none.
  class Keep {
   public:
    explicit Keep(SchurInverses& inverses);
    ~Keep();
    Keep(const Keep&) = delete;
    Keep& operator=(const Keep&) = delete;

   private:
    SchurInverses& inverses_;
  };

  /// None if they are not there.
  [[nodiscard]] Blocks find(const SchurKey& key) const;
  void add(const SchurKey& key, Blocks blocks);

 private:
  mutable std::mutex guard_;
  int keepers_ = 0;
  std::map<SchurKey, Blocks> blocks_;
};

}  // namespace solenoid
