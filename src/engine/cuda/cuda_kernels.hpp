#pragma once
/// \file
/// The kernel set on the device: which kernels run in which order on the engine's stream.

#include <map>
#include <memory>
#include <string>

#include "engine/cuda/device_level.hpp"
#include "engine/cuda/vector.hpp"
#include "engine/engine.hpp"

namespace solenoid::cuda {

/// What all kernels of an engine share.
struct Shared {
  Engine& engine;
  Stream stream;
  int multiprocessors;
  Reduction reduction;
  HostResults* results;      ///< host memory that the device writes to
  std::uint64_t ticket = 0;  ///< of the last results that were asked for
  std::string smoother{};    ///< the variant to smooth with where there is a choice; empty: by size
  std::map<const Level*, std::weak_ptr<DeviceLevel>> levels{};

  std::shared_ptr<DeviceLevel> level(const Level& host) {
    auto& known = levels[&host];
    auto level = known.lock();
    if (level == nullptr) {
      level = std::make_shared<DeviceLevel>(engine, host);
      known = level;
    }
    return level;
  }

  /// Waits for the results of the current ticket. Looks at them instead of asking the driver, which takes longer; asks
  /// now and then, so that an error ends the wait.
  void wait_for_results() const;
};

/// Kernels of a level, which must outlive them. \throws InputError if this build lacks the order.
template <class T>
std::unique_ptr<Kernels<T>> make_kernels(Shared& shared, const Level& level, LocalSolverKind local);

}  // namespace solenoid::cuda
