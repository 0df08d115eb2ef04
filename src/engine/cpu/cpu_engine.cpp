#include <fmt/format.h>

#include "base/available_memory.hpp"
#include "base/threads.hpp"
#include "engine/cpu/assembly.hpp"
#include "engine/cpu/ceilings.hpp"
#include "engine/cpu/convection.hpp"
#include "engine/cpu/cpu_kernels.hpp"
#include "engine/cpu/flow_sums.hpp"
#include "engine/cpu/kernels/table.hpp"
#include "engine/cpu/memory.hpp"
#include "engine/cpu/sparse.hpp"
#include "engine/cpu/team.hpp"
#include "engine/engine.hpp"

namespace solenoid {
namespace {

class CpuEngine final : public Engine {
 public:
  explicit CpuEngine(int threads) : team_(threads) {}

  [[nodiscard]] std::string description() const override {
    const std::string_view set = cpu::instruction_set();
    const std::string_view name = set == "v4" ? "AVX-512" : set == "v3" ? "AVX2" : "SIMD of the build";
    return fmt::format("cpu, {} thread{}, {}", team_.size(), team_.size() == 1 ? "" : "s", name);
  }
  [[nodiscard]] int threads() const override { return team_.size(); }

  /// The level itself: lattice, neighbours, faces, patches.
  [[nodiscard]] std::int64_t bytes_per_cell(int dim) const override { return dim == 2 ? 150 : 175; }

  std::unique_ptr<Kernels<float>> kernels_float(const Level& level, LocalSolverKind local) override {
    return cpu::make_cpu_kernels<float>(team_, level, local);
  }
  std::unique_ptr<Kernels<double>> kernels_double(const Level& level, LocalSolverKind local) override {
    return cpu::make_cpu_kernels<double>(team_, level, local);
  }

  std::unique_ptr<SparseKernels<float>> sparse_float() override { return cpu::make_sparse_kernels<float>(team_); }
  std::unique_ptr<SparseKernels<double>> sparse_double() override { return cpu::make_sparse_kernels<double>(team_); }
  std::unique_ptr<SparseAssembly> make_assembly() override { return cpu::make_assembly(*this, team_); }

  std::unique_ptr<Integrator> make_integrator(const Level& level) override {
    return cpu::make_cpu_integrator(team_, level);
  }
  std::unique_ptr<FlowMoments> make_flow_moments(const Level& level) override {
    return cpu::make_cpu_flow_moments(team_, level);
  }

  std::unique_ptr<Convection> make_convection(const Level& level, ConvectiveFlux flux) override {
    return cpu::make_cpu_convection(team_, level, flux);
  }

  void* allocate(std::size_t bytes) override { return memory_.allocate(bytes); }
  void release(void* memory, std::size_t bytes) noexcept override { memory_.release(memory, bytes); }
  void zero(void* memory, std::size_t bytes) override { memory_.zero(memory, bytes); }
  void upload(const void* host, void* device, std::size_t bytes) override { memory_.copy(host, device, bytes); }
  void download(const void* device, void* host, std::size_t bytes) override { memory_.copy(device, host, bytes); }
  void synchronise() override {}
  Ceilings measure_ceilings() override {
    return {.memory = measure_copy(team_.size(), bytes_available()).bytes_per_second,
            .fma_float = measure_fma<float>(team_.size()),
            .fma_double = measure_fma<double>(team_.size())};
  }
  [[nodiscard]] std::int64_t bytes_in_use() const override { return memory_.in_use(); }
  [[nodiscard]] std::int64_t bytes_peak() const override { return memory_.peak(); }
  [[nodiscard]] std::int64_t bytes_available() const override { return available_memory(); }

 private:
  cpu::Team team_;
  cpu::Memory memory_{team_};
};

}  // namespace

std::unique_ptr<Engine> make_cpu_engine(int threads) { return std::make_unique<CpuEngine>(threads_for(threads)); }

}  // namespace solenoid
