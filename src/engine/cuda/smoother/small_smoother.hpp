#pragma once
/// \file
/// How the cuda engine smooths the small patches of a level.

#include <memory>
#include <vector>

#include "engine/cuda/cuda_kernels.hpp"
#include "engine/cuda/smoother/small_patches.hpp"

namespace solenoid::cuda {

template <class T>
class SmallSmoother {
 public:
  SmallSmoother(Shared& shared, const Level& level);

  /// Those of a group.
  [[nodiscard]] PatchUnknowns unknowns(int group) const;
  /// Kernels::smooth_small.
  void smooth(int group, const T* r, T* x, T damping) const;
  /// As Kernels::make_tables.
  [[nodiscard]] std::shared_ptr<CoefficientTables> make_tables() const;
  std::shared_ptr<CoefficientTables> use_tables(const std::shared_ptr<CoefficientTables>& tables);

 private:
  struct Tables final : CoefficientTables {
    std::vector<Array<T>> inverses;  // [shape]
  };
  struct Shape {
    Array<SmallPlace> unknowns;
    int size;
  };

  Shared& shared_;
  const Level& level_;
  std::vector<Shape> shapes_;
  std::vector<Array<SmallRecords>> groups_;
  std::shared_ptr<Tables> tables_;
};

}  // namespace solenoid::cuda
