#include "solver/multigrid/coarse_solver.hpp"

#include "solver/multigrid/coarse_dense.hpp"
#include "solver/multigrid/coarse_krylov.hpp"
#include "solver/multigrid/coarse_mac.hpp"

namespace solenoid {
namespace {

/// One patch covers the level: its local solver is exact. The kernels have all tables.
template <class T>
class PatchCoarseSolver final : public CoarseSolver<T> {
 public:
  explicit PatchCoarseSolver(Kernels<T>& kernels) : kernels_(kernels) { kernels_.prepare_smoother(false); }
  void solve(T* b, T* x) override { kernels_.smooth(0, b, nullptr, x); }
  [[nodiscard]] std::shared_ptr<CoefficientTables> make_tables() override { return nullptr; }
  std::shared_ptr<CoefficientTables> use_tables(std::shared_ptr<CoefficientTables> /*tables*/) override {
    return nullptr;
  }

 private:
  Kernels<T>& kernels_;
};

}  // namespace

template <class T>
std::unique_ptr<CoarseSolver<T>> make_coarse_solver(Engine& engine, const Hierarchy& hierarchy,
                                                    const MultigridOptions& options, Kernels<T>& kernels) {
  switch (hierarchy.coarse) {
    case CoarseSolve::patch: return std::make_unique<PatchCoarseSolver<T>>(kernels);
    case CoarseSolve::dense: return std::make_unique<DenseCoarseSolver<T>>(engine, kernels, options.local_solver);
    // Where there are finer levels further rounds cost little of a cycle, and save whole ones.
    case CoarseSolve::mac:
      return std::make_unique<MacCoarseSolver<T>>(engine, kernels, options, hierarchy.size() == 1 ? 1 : 3);
    case CoarseSolve::krylov: return std::make_unique<KrylovCoarseSolver<T>>(engine, kernels, options);
  }
  return nullptr;
}

template std::unique_ptr<CoarseSolver<float>> make_coarse_solver(Engine&, const Hierarchy&, const MultigridOptions&,
                                                                 Kernels<float>&);
template std::unique_ptr<CoarseSolver<double>> make_coarse_solver(Engine&, const Hierarchy&, const MultigridOptions&,
                                                                  Kernels<double>&);

}  // namespace solenoid
