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

namespace solenoid::cuda {

/// The patches of a level that one family of kernels takes.
template <class T>
class ColourSmoother {
 public:
  virtual ~ColourSmoother() = default;
  /// Whether patches that have neighbours on all sides are its, and of x it reads only what lies around them and
  /// pressures.
  [[nodiscard]] virtual bool from_halo() const { return false; }
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
};

/// Families that share the patches of each colour. The multiplicative ones write y on every record. Where patches split
/// by parity and the local solver is direct, one family takes these (Shared::smoother, or the variant for the level's
/// size) and another one the rest; everywhere else one takes all.
template <class T>
ColourSmoothers<T> make_smoothers(const SmoothedLevel<T>& level, bool additive);

/// The families. That of parity takes the patches that split; `take[kind]`: whether another takes those of a kind.
template <class T>
std::unique_ptr<ColourSmoother<T>> make_parity_smoother(const SmoothedLevel<T>& level, const ParityKernel<T>& kernel);
/// `beside_parity`: the parity smoother goes before it in each colour.
template <class T>
std::unique_ptr<ColourSmoother<T>> make_general_smoother(const SmoothedLevel<T>& level, const std::vector<char>& take,
                                                         bool beside_parity);
template <class T>
std::unique_ptr<ColourSmoother<T>> make_poisson_smoother(const SmoothedLevel<T>& level);

/// y = x on the records that no patch of the colour has, where no kernel of the smoother sees to it.
template <class T>
void copy_uncovered(const SmoothedLevel<T>& level, const Colour<T>& colour);

/// The tables of each kind of patch that is taken, on the device. also(kind, tables in host memory) is done for these.
template <class T>
class DeviceKinds {
 public:
  using Also = std::function<void(std::size_t, const PatchData<T>&)>;
  DeviceKinds() = default;
  DeviceKinds(const SmoothedLevel<T>& level, const std::vector<char>& take, const Also& also = {});
  [[nodiscard]] const PatchData<T>* data() const { return kinds_.data(); }

 private:
  Vector<T> tables_;
  Array<PatchData<T>> kinds_;
};

}  // namespace solenoid::cuda
