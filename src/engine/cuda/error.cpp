#include "engine/cuda/error.hpp"

#include <fmt/format.h>

#include <atomic>

#include "solenoid/error.hpp"

namespace solenoid::cuda {
namespace {

std::atomic<const char*> last_launch{nullptr};
thread_local int rehearsals = 0;

}  // namespace

Rehearsal::Rehearsal() noexcept { ++rehearsals; }
Rehearsal::~Rehearsal() { --rehearsals; }
bool Rehearsal::active() noexcept { return rehearsals > 0; }

void note_launch(const char* kernel) noexcept { last_launch.store(kernel, std::memory_order_relaxed); }

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  const char* kernel = last_launch.load(std::memory_order_relaxed);
  throw ResourceError(fmt::format("cuda: {} failed: {} ({}){}", what, cudaGetErrorString(status),
                                  cudaGetErrorName(status),
                                  kernel == nullptr ? "" : fmt::format("; the last kernel was '{}'", kernel)));
}

}  // namespace solenoid::cuda
