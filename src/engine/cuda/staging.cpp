#include "engine/cuda/staging.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/parallel.hpp"
#include "engine/cuda/error.hpp"

namespace solenoid::cuda {
namespace {

/// Below, starting threads takes longer than it saves.
constexpr std::size_t large_bytes = std::size_t{32} << 20;
/// Measured on an H200's host: more threads or larger buffers copy no faster.
constexpr int most_threads = 8;
constexpr std::size_t chunk_bytes = std::size_t{2} << 20;

struct FreeEvent {
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};
using Event = std::unique_ptr<CUevent_st, FreeEvent>;

Event make_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
  return Event(event);
}

}  // namespace

void Staging::FreeHost::operator()(std::byte* memory) const { cudaFreeHost(memory); }

/// copy(buffer, event, begin, bytes) for all chunks; the event is recorded after what the buffer was last used for.
template <class Copy>
void Staging::in_chunks(std::size_t bytes, Stream stream, const Copy& copy) {
  if (buffers_ == nullptr) {
    void* memory = nullptr;
    check(cudaMallocHost(&memory, most_threads * chunk_bytes), "cudaMallocHost");
    buffers_.reset(static_cast<std::byte*>(memory));
  }
  std::atomic<int> workers = 0;
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  const auto chunks = static_cast<std::int64_t>((bytes + chunk_bytes - 1) / chunk_bytes);
  try {
    parallel_for(
        chunks,
        [&] {
          check(cudaSetDevice(device), "cudaSetDevice");  // of this thread
          return [&, buffer = buffers_.get() + workers++ * chunk_bytes, event = make_event()](std::int64_t i) {
            const std::size_t begin = static_cast<std::size_t>(i) * chunk_bytes;
            copy(buffer, event.get(), begin, std::min(chunk_bytes, bytes - begin));
          };
        },
        std::min(most_threads, cores()));
  } catch (...) {
    cudaStreamSynchronize(stream);  // buffers and the caller's memory are in use until then
    throw;
  }
  check(cudaStreamSynchronize(stream), "synchronisation");
}

void Staging::upload(const void* host, void* device, std::size_t bytes, Stream stream) {
  if (bytes < large_bytes) {
    check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream), "upload");
    return check(cudaStreamSynchronize(stream), "synchronisation");
  }
  in_chunks(bytes, stream, [&](std::byte* buffer, cudaEvent_t event, std::size_t begin, std::size_t count) {
    check(cudaEventSynchronize(event), "upload");
    std::memcpy(buffer, static_cast<const std::byte*>(host) + begin, count);
    check(cudaMemcpyAsync(static_cast<std::byte*>(device) + begin, buffer, count, cudaMemcpyHostToDevice, stream),
          "upload");
    check(cudaEventRecord(event, stream), "upload");
  });
}

void Staging::download(const void* device, void* host, std::size_t bytes, Stream stream) {
  if (bytes < large_bytes) {
    check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream), "download");
    return check(cudaStreamSynchronize(stream), "synchronisation");
  }
  in_chunks(bytes, stream, [&](std::byte* buffer, cudaEvent_t event, std::size_t begin, std::size_t count) {
    check(cudaMemcpyAsync(buffer, static_cast<const std::byte*>(device) + begin, count, cudaMemcpyDeviceToHost, stream),
          "download");
    check(cudaEventRecord(event, stream), "download");
    check(cudaEventSynchronize(event), "download");
    std::memcpy(static_cast<std::byte*>(host) + begin, buffer, count);
  });
}

}  // namespace solenoid::cuda
