#include "engine/engine.hpp"

namespace solenoid {

std::unique_ptr<Engine> make_engine(DeviceChoice device, int threads) {
  const bool cuda = device == DeviceChoice::cuda || (device == DeviceChoice::automatic && cuda_unavailable().empty());
  return cuda ? make_cuda_engine() : make_cpu_engine(threads);
}

}  // namespace solenoid
