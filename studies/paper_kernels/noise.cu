#include "studies/paper_kernels/arguments.hpp"

namespace solenoid::paper {
namespace {

template <class T>
__global__ void write_noise(std::int64_t count, T* x) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  auto bits = static_cast<std::uint32_t>(i) * 2654435761U;
  bits = (bits ^ bits >> 15) * 2246822519U;
  bits = (bits ^ bits >> 13) * 3266489917U;
  x[i] = static_cast<T>(static_cast<std::int32_t>(bits ^ bits >> 16) * 0x1p-31);
}

}  // namespace

template <class T>
void fill_noise(std::int64_t count, T* x) {
  write_noise<<<static_cast<unsigned>((count + 255) / 256), 256>>>(count, x);
}

template void fill_noise(std::int64_t, float*);
template void fill_noise(std::int64_t, double*);

}  // namespace solenoid::paper
