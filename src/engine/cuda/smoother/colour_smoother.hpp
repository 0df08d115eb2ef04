#pragma once
/// \file
/// How the cuda engine smooths one colour: families of kernels, each for the patches that it is best at.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/cuda/cuda_kernels.hpp"
#include "engine/cuda/kernels/arguments.hpp"
#include "engine/cuda/kernels/smoother/colour.hpp"
#include "engine/sheared_data.hpp"

namespace solenoid::cuda {

/// The patches of a level that one family of kernels takes.
template <class T>
class ColourSmoother {
 public:
  virtual ~ColourSmoother() = default;
  /// Whether patches that have neighbours on all sides are its, and of x it reads only what lies around them and
  /// pressures.
  [[nodiscard]] virtual bool from_halo() const { return false; }
  /// Whether it brings ghosts itself (Colour::bringing), and that is worth it.
  [[nodiscard]] virtual bool brings_ghosts() const { return false; }
  /// Starts the kernels of its patches of a colour.
  virtual void smooth(const Colour<T>& colour) = 0;
  /// As Kernels::make_tables: what it has made of the level's coefficients, on the device.
  [[nodiscard]] virtual std::shared_ptr<CoefficientTables> make_tables() const = 0;
  virtual std::shared_ptr<CoefficientTables> use_tables(std::shared_ptr<CoefficientTables> tables) = 0;
};
template <class T>
using ColourSmoothers = std::vector<std::unique_ptr<ColourSmoother<T>>>;

/// What the smoothers of a level are made of.
template <class T>
struct SmoothedLevel {
  Shared& shared;
  const Level& level;
  const DeviceLevel& device;
  const CellData<T>& cell;
  const KernelTable<T>& table;
  LocalSolverKind local;
  const VaryingData<T>* varying;  ///< where coefficients vary by cell, those in use
  const ShearedData<T>* sheared;  ///< of parallelepipeds
};

/// Local problems that differ, and which patches have them.
struct LocalProblems {
  struct Problem {
    int kind;
    Coefficients coefficients;  ///< constant
  };
  struct Run {
    int problem;
    std::vector<Record> lower_cells;
  };
  /// Those with the same coefficients next to each other.
  std::vector<Problem> all;
  std::vector<std::vector<Run>> colours;
};
/// Those of some kinds, take[kind], with the coefficients of the level.
LocalProblems problems_of_kinds(const Level& level, const std::vector<char>& take);

/// Families that share the patches of each colour. The multiplicative ones write y on every record. Where patches split
/// by parity and the local solver is direct, one family takes these (Shared::smoother, or the variant for the level's
/// size) and another one the rest; everywhere else one takes all.
template <class T>
ColourSmoothers<T> make_smoothers(const SmoothedLevel<T>& level, bool additive);
/// The same where coefficients are constant.
template <class T>
ColourSmoothers<T> make_constant_smoothers(const SmoothedLevel<T>& level, bool additive);
/// The kernel for patches of a level that split by parity, or nullptr if another family takes them.
template <class T>
const ParityKernel<T>* parity_kernel_for(const SmoothedLevel<T>& level, bool additive);

/// The families. That of parity takes the patches that split; it has no tables yet.
template <class T>
std::unique_ptr<ColourSmoother<T>> make_parity_smoother(const SmoothedLevel<T>& level, const ParityKernel<T>& kernel);
/// `beside_parity`: the parity smoother goes before it in each colour.
template <class T>
std::unique_ptr<ColourSmoother<T>> make_general_smoother(const SmoothedLevel<T>& level, const LocalProblems& problems,
                                                         bool beside_parity);
template <class T>
std::unique_ptr<ColourSmoother<T>> make_poisson_smoother(const SmoothedLevel<T>& level);
template <class T>
std::unique_ptr<ColourSmoother<T>> make_element_smoother(const SmoothedLevel<T>& level, bool additive);

/// y = x on the records that no patch of the colour has, where no kernel of the smoother sees to it.
template <class T>
void copy_uncovered(const SmoothedLevel<T>& level, const Colour<T>& colour);

/// The tables of each local problem, on the device. also(problem, tables in host memory) is done for each.
template <class T>
class DeviceProblems {
 public:
  using Also = std::function<void(std::size_t, const PatchData<T>&)>;
  DeviceProblems() = default;
  DeviceProblems(const SmoothedLevel<T>& level, const std::vector<LocalProblems::Problem>& problems,
                 const Also& also = {});
  [[nodiscard]] const PatchData<T>* data() const { return data_.data(); }

 private:
  std::vector<Vector<T>> tables_;  // of all with the same coefficients
  Array<PatchData<T>> data_;
};

}  // namespace solenoid::cuda
