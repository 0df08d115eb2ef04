#pragma once
/// \file
/// The engines that tests of numerics run on: all that this machine has.

#include <memory>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "solenoid/error.hpp"

namespace solenoid::test {

struct EngineChoice {
  std::string name;
  DeviceChoice device;

  /// One engine for all tests of a program.
  [[nodiscard]] Engine& get() const {
    static std::unique_ptr<Engine> made[3];
    auto& engine = made[static_cast<int>(device)];
    if (engine == nullptr) engine = make_engine(device, 2);
    return *engine;
  }
};

/// The CUDA engine of a build may have fewer orders than the cpu engine.
inline bool has_order_of(Engine& engine, const Level& level) {
  try {
    engine.kernels_double(level, LocalSolverKind::direct);
  } catch (const InputError&) {
    return false;
  }
  return true;
}

inline std::vector<EngineChoice> engines() {
  std::vector<EngineChoice> all{{"cpu", DeviceChoice::cpu}};
  if (cuda_unavailable().empty()) all.push_back({"cuda", DeviceChoice::cuda});
  return all;
}

}  // namespace solenoid::test
