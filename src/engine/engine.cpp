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

std::string why_passed_over(DeviceChoice device, EquationKind equation) {
  const bool passed =
      equation == EquationKind::poisson && device == DeviceChoice::automatic && cuda_unavailable().empty();
  return passed ? "cuda does not have Poisson's equation" : "";
}

}  // namespace solenoid
