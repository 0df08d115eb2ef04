/// \file
/// The steps of engine/assembly_steps.hpp, a thread for each index. They take what reading and writing their arrays
/// takes; sums are those of CUB.

#include "engine/cuda/assembly.hpp"

#include <algorithm>
#include <cub/device/device_scan.cuh>
#include <span>

#include "engine/assembly_steps.hpp"
#include "engine/cuda/device_level.hpp"
#include "engine/cuda/launch.hpp"

namespace solenoid::cuda {
namespace {

template <class F>
__global__ void __launch_bounds__(256) for_all_kernel(std::int64_t count, const __grid_constant__ F f) {
  wait_for_earlier_kernels();
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) f(i);
}

class DeviceSteps {
 public:
  explicit DeviceSteps(Engine& /*engine*/, Shared& shared) : shared_(shared) {}

  template <class F>
  void for_all(std::int64_t count, const F& f) {
    constexpr int threads = 256;
    const std::int64_t blocks = std::min<std::int64_t>((count + threads - 1) / threads, most_blocks);
    launch("assembly", for_all_kernel<F>, static_cast<unsigned>(blocks), threads, 0, shared_.stream, count, f);
  }
  template <class T>
  void sum_before(std::int64_t count, T* x) {
    std::size_t bytes = 0;
    check(cub::DeviceScan::ExclusiveSum(nullptr, bytes, x, count + 1, shared_.stream), "sums");
    Vector<unsigned char> work(shared_.engine, static_cast<std::int64_t>(bytes));
    check(cub::DeviceScan::ExclusiveSum(work.data(), bytes, x, count + 1, shared_.stream), "sums");
  }
  template <class T>
  Array<T> view(std::span<const T> values) {
    return {shared_.engine, values};
  }
  template <class T>
  T fetch(const T* value) {
    T result;
    shared_.engine.download(value, &result, sizeof(T));
    return result;
  }
  CellTopology topology(const Level& level) {
    level_ = shared_.level(level);
    return level_->topology();
  }

 private:
  static constexpr std::int64_t most_blocks = 1 << 16;

  Shared& shared_;
  std::shared_ptr<DeviceLevel> level_;
};

}  // namespace

std::unique_ptr<SparseAssembly> make_assembly(Shared& shared) {
  return std::make_unique<assembly::Assembly<DeviceSteps>>(shared.engine, shared);
}

}  // namespace solenoid::cuda
