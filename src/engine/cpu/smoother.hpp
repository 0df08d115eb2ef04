#pragma once
/// \file
/// The smoother of the cpu engine: patches in batches of one per lane, a range of them per thread.

#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/cpu/batches.hpp"
#include "engine/cpu/kernels/sheared_table.hpp"
#include "engine/cpu/kernels/varying_table.hpp"
#include "engine/cpu/team.hpp"
#include "engine/sheared.hpp"
#include "engine/tables.hpp"
#include "engine/varying.hpp"

namespace solenoid::cpu {

/// Where coefficients vary by cell: the local problems of patches, and batches of all patches by them.
template <class T>
struct VaryingProblems {
  std::vector<int> of_patch;                    // [Patches::lower_cell]: the number of its local problem
  std::vector<std::pair<double, int>> numbers;  // reaction and a kind of each
  std::vector<std::uint8_t> splits;             // [number]: by parity
  PatchBatches batches;
  std::vector<PatchTables<T>> values;
  std::vector<PatchData<T>> of_numbers;
};

/// Where local solves are exact and new values are put in place of the old, patches take the smoother that works
/// without old velocities (kernels/halo_smoother.hpp): all but those with a face on an end that is not like the others
/// there. These, iterative local solvers and additive smoothing take that with the true residual
/// (kernels/smoother.hpp), and where coefficients vary or cells are sheared all do (kernels/varying_smoother.hpp,
/// kernels/sheared_smoother.hpp).
template <class T>
class Smoother {
 public:
  /// Matrices of local problems with the coefficients of a level.
  class Tables {
   private:
    friend Smoother;
    bool multiplicative_ = false;
    bool additive_ = false;
    std::vector<PatchTables<T>> values_;
    std::vector<PatchData<T>> of_kinds_;     // [kind]: those that are needed
    std::vector<PatchData<T>> of_problems_;  // of HaloBatches
    std::vector<std::vector<T>> of_shapes_;  // of small patches
    // Where coefficients vary by cell.
    std::optional<VaryingCoefficients<T>> varying_;
    std::shared_ptr<const VaryingProblems<T>> problems_;
    std::optional<ShearedData<T>> sheared_;  // of cells that are parallelepipeds
  };

  Smoother(Team& team, const Level& level, LocalSolverKind local, const KernelTable<T>& table);

  /// Whether patches that have neighbours on all sides take the smoother without old velocities.
  [[nodiscard]] bool has_halo_form() const {
    return level_.equation.kind == EquationKind::stokes && local_ == LocalSolverKind::direct && varying_ == nullptr &&
           sheared_ == nullptr;
  }
  /// One way of smoothing is prepared, and small patches with it.
  [[nodiscard]] bool prepared() const { return halo_.has_value() || all_.has_value(); }
  /// Finds the batches for one way of smoothing. True if there were none: tables made before lack its local problems.
  bool prepare(bool additive);
  /// `before`: tables that there are, or nullptr. What is the same is shared.
  [[nodiscard]] Tables make_tables(const Tables* before) const;
  /// They have those of all ways of smoothing that are prepared.
  [[nodiscard]] bool complete(const Tables& tables) const;

  /// Of tables on a level whose coefficients vary.
  [[nodiscard]] static VaryingData<T> varying(const Tables& tables) { return tables.varying_->data(); }
  /// Of tables on a level of parallelepipeds.
  [[nodiscard]] static const ShearedData<T>& sheared(const Tables& tables) { return *tables.sheared_; }

  /// Of a colour, by some of its patches.
  struct Step {
    int colour;
    Reads what;
    const T* b;
    const T* x;
    T* y;
    const std::function<void()>* advance = nullptr;  ///< called by thread 0 now and then
  };
  /// Kernels::smooth, but for records that no patch of the colour covers, by thread t of the team.
  void smooth(const Tables& tables, const CellData<T>& cell, const Step& step, int t);
  /// Kernels::smooth_add, by thread t of the team.
  void smooth_add(const Tables& tables, const CellData<T>& cell, int colour, int t, const T* b, const T* x, T* y,
                  T damping);
  /// Kernels::smooth_small, by thread t of the team.
  void smooth_small(const Tables& tables, int group, int t, const T* r, T* x, T damping);

 private:
  using Arguments = SmoothArguments<T>;
  void smooth_with_residual(const Tables& tables, const PatchBatches& batches, const Step& step, int t,
                            Arguments arguments);
  void smooth_halo(const Tables& tables, const CellData<T>& cell, const Step& step, int t);
  [[nodiscard]] std::shared_ptr<const VaryingProblems<T>> make_problems(
      const std::shared_ptr<const VaryingProblems<T>>& before) const;
  [[nodiscard]] Arguments arguments(const CellData<T>& cell, const Step& step, int t) const;
  void reserve_workspace(std::int64_t bytes);
  static void advance(const Step& step, int t) {
    if (t == 0 && step.advance != nullptr) (*step.advance)();
  }

  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };

  Team& team_;
  const Level& level_;
  LocalSolverKind local_;
  const KernelTable<T>& table_;
  const VaryingTable<T>* varying_;  // where coefficients vary by cell, otherwise nullptr
  const ShearedTable<T>* sheared_;  // where cells are parallelepipeds, otherwise nullptr
  CellTopology topology_;
  std::vector<bool> takes_halo_;                       // [kind]
  std::vector<std::uint8_t> splits_;                   // [kind]: by parity
  std::vector<int> problem_of_;                        // [kind]: the first kind with its local problem
  std::optional<HaloBatches> halo_;                    // multiplicative
  std::optional<PatchBatches> others_;                 // multiplicative, of the other kinds
  std::optional<PatchBatches> all_;                    // additive, of all kinds
  std::vector<std::vector<SmallPlace>> small_places_;  // [shape]
  std::int64_t workspace_bytes_ = 0;
  std::vector<std::unique_ptr<std::byte, Free>> workspace_;  // [thread]
};

}  // namespace solenoid::cpu
