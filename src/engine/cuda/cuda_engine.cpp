/// \file
/// The cuda engine: the device, its memory and its stream, graphs.

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>

#include "engine/cuda/assembly.hpp"
#include "engine/cuda/ceilings.hpp"
#include "engine/cuda/convection.hpp"
#include "engine/cuda/cuda_kernels.hpp"
#include "engine/cuda/dense.hpp"
#include "engine/cuda/error.hpp"
#include "engine/cuda/kernels/smoother/general.hpp"
#include "engine/cuda/kernels/smoother/parity.hpp"
#include "engine/cuda/points/device_integrator.hpp"
#include "engine/cuda/points/device_moments.hpp"
#include "engine/cuda/profile.hpp"
#include "engine/cuda/sparse.hpp"
#include "engine/cuda/staging.hpp"
#include "engine/engine.hpp"
#include "solenoid/error.hpp"

namespace solenoid {
namespace {

using cuda::check;
using cuda::Stream;

/// Why there is no usable device; empty if there is one.
std::string why_unavailable() {
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) return "no NVIDIA driver is installed";
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorInsufficientDriver) {
    return fmt::format("the NVIDIA driver is too old: it supports CUDA {}.{}, this build needs {}.{}", driver / 1000,
                       driver % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
  }
  if (status != cudaSuccess || count == 0) {
    return fmt::format("no CUDA device was found ({})", status == cudaSuccess ? "none" : cudaGetErrorString(status));
  }
  if (const cudaError_t code = cuda::probe(); code != cudaSuccess) {
    cudaGetLastError();  // the next call starts clean
    int device = 0;
    cudaGetDevice(&device);
    cudaDeviceProp properties{};
    cudaGetDeviceProperties(&properties, device);
    return fmt::format(
        "this build has no code for {} (compute capability {}.{}): {}; add it to "
        "CMAKE_CUDA_ARCHITECTURES and build again",
        properties.name, properties.major, properties.minor, cudaGetErrorString(code));
  }
  return {};
}

class CudaEngine final : public Engine {
 public:
  CudaEngine() {
    int device = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    check(cudaGetDeviceProperties(&properties_, device), "cudaGetDeviceProperties");
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    check(cudaStreamCreateWithFlags(&aside_, cudaStreamNonBlocking), "cudaStreamCreate");
    cudaMemPoolProps pool{};
    pool.allocType = cudaMemAllocationTypePinned;
    pool.location.type = cudaMemLocationTypeDevice;
    pool.location.id = device;
    check(cudaMemPoolCreate(&pool_, &pool), "cudaMemPoolCreate");
    std::uint64_t kept = kept_bytes;
    check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &kept), "cudaMemPoolSetAttribute");
    void* host = nullptr;
    check(cudaMallocHost(&host, sizeof(cuda::HostResults)), "cudaMallocHost");
    const auto results = new (host) cuda::HostResults{};
    constexpr std::int64_t partial = std::int64_t{cuda::batch_vectors} * cuda::reduction_blocks;
    reduction_ = Vector<double>(*this, partial + 2);
    double* const value = reduction_.data() + partial;
    const cuda::Reduction reduction{reduction_.data(), value, reinterpret_cast<std::uint32_t*>(value + 1)};
    shared_ = std::make_unique<cuda::Shared>(
        cuda::Shared{*this, stream_, properties_.multiProcessorCount, reduction, results});
  }
  ~CudaEngine() override {
    reduction_ = {};
    cudaStreamSynchronize(stream_);
    cudaFreeHost(shared_->results);
    cudaMemPoolDestroy(pool_);
    cudaStreamDestroy(aside_);
    cudaStreamDestroy(stream_);
  }
  CudaEngine(const CudaEngine&) = delete;
  CudaEngine& operator=(const CudaEngine&) = delete;

  [[nodiscard]] std::string description() const override {
    return fmt::format("cuda, {}, {:.0f} GB, compute capability {}.{}", properties_.name,
                       static_cast<double>(properties_.totalGlobalMem) * 1e-9, properties_.major, properties_.minor);
  }
  [[nodiscard]] int threads() const override { return 1; }
  /// As many patches as cells.
  [[nodiscard]] std::int64_t bytes_per_cell(int dim) const override {
    constexpr std::int64_t side = sizeof(Record) + sizeof(Face);  // what is behind
    constexpr std::int64_t patch = sizeof(Record) + sizeof(cuda::ParityPatch);
    constexpr std::int64_t transfer = 2 * sizeof(Record);        // parent and child
    constexpr std::int64_t position = 3 * sizeof(std::int32_t);  // for loads
    constexpr std::int64_t rest = 5;                             // tiles, blocks of records, batches of patches
    return 2 * dim * side + patch + transfer + position + rest;
  }

  [[nodiscard]] int vectors_by_elements(bool additive) const override {
    return additive ? 2 : 1;  // smoother/element_smoother.cpp
  }

  [[nodiscard]] DenseLimits dense_limits() const override { return cuda_dense_limits(); }

  [[nodiscard]] std::vector<std::string> smoother_variants(const Equation& equation, bool single) const override {
    std::vector<std::string> names;
    const auto append = [&](const auto& table) {
      for (const auto& kernel : table.parity) {
        if (kernel.smooth != nullptr) names.emplace_back(kernel.name);
      }
      if (table.general.smooth != nullptr) names.emplace_back(cuda::one_by_one);
      if (table.general.together > 1) names.emplace_back(cuda::in_pairs);
    };
    if (single) {
      append(cuda::kernel_table<float>(equation.kind, equation.dim, equation.order));
    } else {
      append(cuda::kernel_table<double>(equation.kind, equation.dim, equation.order));
    }
    return names;
  }
  void choose_smoother(std::string variant) override { shared_->smoother = std::move(variant); }

  std::unique_ptr<Kernels<float>> kernels_float(const Level& level, LocalSolverKind local) override {
    return cuda::make_kernels<float>(*shared_, level, local);
  }
  std::unique_ptr<Kernels<double>> kernels_double(const Level& level, LocalSolverKind local) override {
    return cuda::make_kernels<double>(*shared_, level, local);
  }

  std::unique_ptr<Integrator> make_integrator(const Level& level) override {
    return cuda::make_integrator(*shared_, level);
  }
  std::unique_ptr<FlowMoments> make_flow_moments(const Level& level) override {
    return cuda::make_flow_moments(*shared_, level);
  }
  std::unique_ptr<SparseKernels<float>> sparse_float() override { return cuda::make_sparse_kernels<float>(*shared_); }
  std::unique_ptr<SparseKernels<double>> sparse_double() override {
    return cuda::make_sparse_kernels<double>(*shared_);
  }
  std::unique_ptr<SparseAssembly> make_assembly() override { return cuda::make_assembly(*shared_); }

  std::unique_ptr<Convection> make_convection(const Level& level, ConvectiveFlux flux) override {
    return cuda::make_convection(*shared_, level, flux);
  }

  /// From a pool, in the order of the stream: nothing waits, and what was released is handed out again.
  void* allocate(std::size_t bytes) override {
    // Memory that is taken while work is recorded belongs to the engine, not to the graph.
    const Stream stream = recording_ ? aside_ : stream_;
    void* memory = nullptr;
    if (const cudaError_t status = cudaMallocFromPoolAsync(&memory, bytes, pool_, stream); status != cudaSuccess) {
      cudaGetLastError();
      throw ResourceError(
          fmt::format("out of device memory: {:.2f} GB asked for, {:.2f} GB in use by this solve, {:.2f} GB free on {}",
                      static_cast<double>(bytes) * 1e-9, static_cast<double>(bytes_in_use_) * 1e-9,
                      static_cast<double>(bytes_available()) * 1e-9, properties_.name));
    }
    bytes_in_use_ += static_cast<std::int64_t>(bytes);
    bytes_peak_ = std::max(bytes_peak_, bytes_in_use_);
    check(cudaMemsetAsync(memory, 0, bytes, stream), "zeroing of new memory");
    if (recording_) check(cudaStreamSynchronize(stream), "zeroing of new memory");
    return memory;
  }
  void release(void* memory, std::size_t bytes) noexcept override {
    cudaFreeAsync(memory, recording_ ? aside_ : stream_);  // after the kernels that use it
    bytes_in_use_ -= static_cast<std::int64_t>(bytes);
  }
  void zero(void* memory, std::size_t bytes) override {
    check(cudaMemsetAsync(memory, 0, bytes, stream_), "zeroing of memory");
  }
  void upload(const void* host, void* device, std::size_t bytes) override {
    staging_.upload(host, device, bytes, stream_);
  }
  void download(const void* device, void* host, std::size_t bytes) override {
    staging_.download(device, host, bytes, stream_);
  }
  void synchronise() override { check(cudaStreamSynchronize(stream_), "synchronisation"); }
  [[nodiscard]] void* stream() const override { return stream_; }
  void wait_for(void* stream) override {
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
    const cudaError_t recorded = cudaEventRecord(event, static_cast<cudaStream_t>(stream));
    const cudaError_t ordered = recorded == cudaSuccess ? cudaStreamWaitEvent(stream_, event) : recorded;
    cudaEventDestroy(event);
    check(ordered, "waiting for another stream");
  }

  Recorded record(std::function<void()> work) override {
    if (cuda::Profile::active() != nullptr) return Engine::record(std::move(work));  // which watches single kernels
    const auto recording = std::make_shared<Recording>(Recording{std::move(work), nullptr});
    refresh(*recording);
    return {[this, recording] {
              check(cudaGraphLaunch(recording->executable.get(), stream_), "launch of a graph");
              cuda::note_launch("graph of a cycle");
            },
            [this, recording] { refresh(*recording); }};
  }

  Ceilings measure_ceilings() override {
    constexpr std::int64_t enough = std::int64_t{2} << 30;
    const std::int64_t bytes = std::min(enough, bytes_available() / 4);
    Vector<unsigned char> from(*this, bytes);
    Vector<unsigned char> to(*this, bytes);
    return cuda::measure_ceilings(from.data(), to.data(), static_cast<std::size_t>(bytes), stream_);
  }
  std::vector<KernelUse> profile(const std::function<void()>& work) override {
    const cuda::Profile profile;
    work();
    synchronise();
    return profile.kernels();
  }

  [[nodiscard]] std::int64_t bytes_in_use() const override { return bytes_in_use_; }
  [[nodiscard]] std::int64_t bytes_peak() const override { return bytes_peak_; }
  [[nodiscard]] std::int64_t bytes_available() const override {
    std::size_t free = 0;
    std::size_t total = 0;
    check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    std::uint64_t reserved = 0;
    std::uint64_t used = 0;
    check(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent, &reserved), "cudaMemPoolGetAttribute");
    check(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrUsedMemCurrent, &used), "cudaMemPoolGetAttribute");
    return static_cast<std::int64_t>(free + reserved - used);
  }

 private:
  struct FreeGraph {
    void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
    void operator()(cudaGraphExec_t executable) const { cudaGraphExecDestroy(executable); }
  };
  using Graph = std::unique_ptr<CUgraph_st, FreeGraph>;
  using ExecutableGraph = std::unique_ptr<CUgraphExec_st, FreeGraph>;
  struct Recording {
    std::function<void()> work;
    ExecutableGraph executable;
  };

  /// The kernels that `work` starts, which do not run.
  Graph capture(const std::function<void()>& work) {
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), "start of a graph");
    cudaGraph_t graph = nullptr;
    recording_ = true;
    try {
      work();
    } catch (...) {
      recording_ = false;
      cudaStreamEndCapture(stream_, &graph);
      if (graph != nullptr) cudaGraphDestroy(graph);
      throw;
    }
    recording_ = false;
    check(cudaStreamEndCapture(stream_, &graph), "end of a graph");
    return Graph(graph);
  }
  /// Captures the work and has it in the graph that there is, or in a new one where there is none or a driver cannot do
  /// that.
  void refresh(Recording& recording) {
    ExecutableGraph executable = std::move(recording.executable);  // gone if the work cannot be captured any more
    const Graph graph = capture(recording.work);
    cudaGraphExecUpdateResultInfo result{};
    if (executable != nullptr && cudaGraphExecUpdate(executable.get(), graph.get(), &result) != cudaSuccess) {
      cudaGetLastError();  // the next call starts clean
      executable.reset();
    }
    if (executable == nullptr) {
      cudaGraphExec_t made = nullptr;
      check(cudaGraphInstantiate(&made, graph.get(), 0), "instantiation of a graph");
      executable.reset(made);
    }
    check(cudaGraphUpload(executable.get(), stream_), "upload of a graph");  // otherwise its first launch does
    recording.executable = std::move(executable);
  }

  /// Released memory that the pool keeps; the rest goes back to the device at the next synchronisation.
  static constexpr std::uint64_t kept_bytes = 1 << 30;

  cudaDeviceProp properties_{};
  Stream stream_ = nullptr;
  Stream aside_ = nullptr;  // apart from the work that is being recorded
  cudaMemPool_t pool_ = nullptr;
  bool recording_ = false;
  std::int64_t bytes_in_use_ = 0;
  std::int64_t bytes_peak_ = 0;
  Vector<double> reduction_;
  std::unique_ptr<cuda::Shared> shared_;
  cuda::Staging staging_;
};

}  // namespace

std::string cuda_unavailable() { return why_unavailable(); }

int cuda_devices() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  cudaGetLastError();  // the next call starts clean
  return 0;
}

int cuda_device() {
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) cudaGetLastError();  // the next call starts clean
  return device;
}

DenseLimits cuda_dense_limits() {
  return {
      .than_by_cycle = cuda::most_in_cache, .than_by_k_cycle = cuda::most_dense / 2, .than_by_mac = cuda::most_dense};
}

void use_cuda_device(int device) { check(cudaSetDevice(device), "cudaSetDevice"); }

std::unique_ptr<Engine> make_cuda_engine() {
  if (const std::string reason = why_unavailable(); !reason.empty()) {
    throw ResourceError(fmt::format("device cuda was asked for, but {}; use --device cpu", reason));
  }
  return std::make_unique<CudaEngine>();
}

}  // namespace solenoid
