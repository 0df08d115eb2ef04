#include "engine/engine.hpp"

#include "solenoid/error.hpp"

namespace solenoid {

std::unique_ptr<Engine> make_engine(DeviceChoice device, int threads, EquationKind equation) {
  if (equation == EquationKind::poisson) {
    if (device == DeviceChoice::cuda) {
      throw InputError("the cuda engine does not have Poisson's equation: use the device cpu, or auto");
    }
    return make_cpu_engine(threads);
  }
  const bool cuda = device == DeviceChoice::cuda || (device == DeviceChoice::automatic && cuda_unavailable().empty());
  return cuda ? make_cuda_engine() : make_cpu_engine(threads);
}

}  // namespace solenoid
