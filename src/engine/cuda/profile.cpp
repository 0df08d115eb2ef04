#include "engine/cuda/profile.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>

#include "engine/ceilings.hpp"

namespace solenoid::cuda {
namespace {

thread_local Profile* active_profile = nullptr;

/// "smooth_parity<float, 3, 2>"
std::string name_of(const void* kernel) {
  const char* mangled = nullptr;
  check(cudaFuncGetName(&mangled, kernel), "cudaFuncGetName");
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> plain(abi::__cxa_demangle(mangled, nullptr, nullptr, &status),
                                                          &std::free);
  std::string name = status == 0 ? plain.get() : mangled;
  for (const std::string_view part : {"void ", "solenoid::cuda::", "(anonymous namespace)::"}) {
    for (std::size_t at; (at = name.find(part)) != std::string::npos;) name.erase(at, part.size());
  }
  return name.substr(0, name.find('('));
}

}  // namespace

Profile::Profile() noexcept { active_profile = this; }

Profile::~Profile() {
  active_profile = nullptr;
  for (const Launch& launch : launches_) {
    cudaEventDestroy(launch.begin);
    cudaEventDestroy(launch.end);
  }
}

Profile* Profile::active() noexcept { return active_profile; }

void Profile::begin(const void* kernel, unsigned blocks, unsigned threads, std::size_t shared_bytes,
                    CUstream_st* stream) {
  launches_.push_back({kernel, blocks, threads, shared_bytes, nullptr, nullptr});
  Launch& launch = launches_.back();
  check(cudaEventCreate(&launch.begin), "cudaEventCreate");
  check(cudaEventCreate(&launch.end), "cudaEventCreate");
  check(cudaEventRecord(launch.begin, stream), "cudaEventRecord");
}

void Profile::end(CUstream_st* stream) { check(cudaEventRecord(launches_.back().end, stream), "cudaEventRecord"); }

std::vector<KernelUse> Profile::kernels() const {
  std::vector<const void*> known;
  for (const Launch& launch : launches_) {
    if (std::find(known.begin(), known.end(), launch.kernel) == known.end()) known.push_back(launch.kernel);
  }
  int device = 0;
  int most_threads = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&most_threads, cudaDevAttrMaxThreadsPerMultiProcessor, device),
        "cudaDeviceGetAttribute");
  std::vector<KernelUse> uses;
  for (const void* kernel : known) {
    std::vector<Launch> mine;
    std::copy_if(launches_.begin(), launches_.end(), std::back_inserter(mine),
                 [&](const Launch& launch) { return launch.kernel == kernel; });
    // Colours of one level differ a little.
    const auto largest = std::max_element(mine.begin(), mine.end(),
                                          [](const Launch& a, const Launch& b) { return a.blocks < b.blocks; });
    const unsigned enough = largest->blocks - largest->blocks / 8;
    KernelUse use{};
    use.name = name_of(kernel);
    use.threads = static_cast<int>(largest->threads);
    std::vector<float> milliseconds;
    for (const Launch& launch : mine) {
      float time = 0.0F;
      check(cudaEventElapsedTime(&time, launch.begin, launch.end), "cudaEventElapsedTime");
      use.all_seconds += time * 1e-3;
      if (launch.blocks >= enough) milliseconds.push_back(time);
    }
    use.launches = std::ssize(milliseconds);
    const auto middle = milliseconds.begin() + std::ssize(milliseconds) / 2;
    std::nth_element(milliseconds.begin(), middle, milliseconds.end());
    use.seconds = *middle * 1e-3;
    cudaFuncAttributes attributes{};
    check(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes");
    use.registers = attributes.numRegs;
    use.local_bytes = static_cast<std::int64_t>(attributes.localSizeBytes);
    use.shared_bytes = static_cast<std::int64_t>(attributes.sharedSizeBytes + largest->shared_bytes);
    int blocks = 0;
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, use.threads, largest->shared_bytes),
          "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
    use.occupancy = static_cast<double>(blocks) * use.threads / most_threads;
    uses.push_back(std::move(use));
  }
  return uses;
}

}  // namespace solenoid::cuda
