#include "engine/distributed/distributed_engine.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

#include "base/agreement.hpp"
#include "base/interrupt.hpp"
#include "engine/assembly.hpp"
#include "engine/distributed/distributed_kernels.hpp"
#include "solution/joined.hpp"

namespace solenoid {
namespace {

using distributed::DistributedKernels;
using distributed::Ghosts;

/// Integrals of all ranks.
class DistributedIntegrator final : public Integrator {
 public:
  DistributedIntegrator(std::unique_ptr<Integrator> integrator, const Communicator& ranks)
      : integrator_(std::move(integrator)), ranks_(ranks) {}

  [[nodiscard]] FlowIntegrals flow(const double* x) override { return joined(integrator_->flow(x), ranks_); }
  [[nodiscard]] double dissipation(const double* x, const Coefficients& coefficients) override {
    double sum = integrator_->dissipation(x, coefficients);
    ranks_.sum(std::span(&sum, 1));
    return sum;
  }
  [[nodiscard]] std::optional<double> velocity_error_square(const VectorField& exact, const double* x) override {
    auto square = integrator_->velocity_error_square(exact, x);
    if (!ranks_.all(square.has_value())) return {};
    ranks_.sum(std::span(&*square, 1));
    return square;
  }
  [[nodiscard]] std::optional<std::vector<Variance>> scalar_errors(const ScalarField& exact, const double* x) override {
    auto variances = integrator_->scalar_errors(exact, x);
    if (!ranks_.all(variances.has_value())) return {};
    join(*variances, ranks_);
    return variances;
  }
  [[nodiscard]] std::optional<SumsOfBodies> forces(const FlowOfForces& flow) override {
    std::optional<SumsOfBodies> sums;
    in_agreement(&ranks_, [&] { sums = integrator_->forces(flow); });
    if (!ranks_.all(sums.has_value())) return {};
    return sums;  // they are joined by body
  }

 private:
  std::unique_ptr<Integrator> integrator_;
  const Communicator& ranks_;
};

/// The convective term of all ranks.
class DistributedConvection final : public Convection {
 public:
  /// `kernels`: of the level, which ranks share.
  DistributedConvection(std::unique_ptr<Convection> convection, std::unique_ptr<Kernels<double>> kernels,
                        distributed::Shared& shared)
      : convection_(std::move(convection)), kernels_(std::move(kernels)), shared_(shared) {}

  double apply(const double* u, double* y, double* work) override {
    kernels_->bring_ghosts(kernels_->level(), const_cast<double*>(u));  // ghosts are caches: no vector is changed
    double rate = convection_->apply(u, y, work);
    shared_.ghosts.set(y, Ghosts::stale);
    shared_.ghosts.set(work, Ghosts::stale);
    shared_.ranks.maximum(std::span(&rate, 1));
    return rate;
  }

 private:
  std::unique_ptr<Convection> convection_;
  std::unique_ptr<Kernels<double>> kernels_;
  distributed::Shared& shared_;
};

class DistributedEngine final : public Engine {
 public:
  DistributedEngine(std::unique_ptr<Engine> engine, std::unique_ptr<distributed::Transport> transport,
                    std::shared_ptr<const Communicator> ranks)
      : engine_(std::move(engine)),
        transport_(std::move(transport)),
        ranks_(std::move(ranks)),
        shared_{.engine = *engine_, .transport = *transport_, .ranks = *ranks_} {}

  void poison_ghosts() { shared_.poisons = true; }
  void watch_messages(bool watched) { shared_.losses.watched = watched; }
  std::vector<PackedRecords> lose_values(std::int64_t first, std::int64_t last) {
    shared_.losses.first = first;
    shared_.losses.last = last;
    return std::exchange(shared_.losses.sent, {});
  }

  [[nodiscard]] std::string description() const override { return engine_->description(); }
  [[nodiscard]] int threads() const override { return engine_->threads(); }
  [[nodiscard]] std::string transport() const override { return std::string(transport_->name()); }
  [[nodiscard]] std::int64_t bytes_per_cell(int dim) const override { return engine_->bytes_per_cell(dim); }
  [[nodiscard]] DenseLimits dense_limits() const override { return engine_->dense_limits(); }
  [[nodiscard]] std::vector<std::string> smoother_variants(const Equation& equation, bool single) const override {
    return engine_->smoother_variants(equation, single);
  }
  void choose_smoother(std::string variant) override { engine_->choose_smoother(std::move(variant)); }

  std::unique_ptr<Kernels<float>> kernels_float(const Level& level, LocalSolverKind local) override {
    return shared_by_ranks(level, engine_->kernels_float(level, local));
  }
  std::unique_ptr<Kernels<double>> kernels_double(const Level& level, LocalSolverKind local) override {
    return shared_by_ranks(level, engine_->kernels_double(level, local));
  }
  std::unique_ptr<Integrator> make_integrator(const Level& level) override {
    auto integrator = engine_->make_integrator(level);
    if (integrator == nullptr || level.grid.partition() == nullptr) return integrator;
    return std::make_unique<DistributedIntegrator>(std::move(integrator), *ranks_);
  }

  std::unique_ptr<FlowMoments> make_flow_moments(const Level& level) override {
    return engine_->make_flow_moments(level);
  }

  std::unique_ptr<SparseKernels<float>> sparse_float() override { return engine_->sparse_float(); }
  std::unique_ptr<SparseKernels<double>> sparse_double() override { return engine_->sparse_double(); }
  std::unique_ptr<SparseAssembly> make_assembly() override { return engine_->make_assembly(); }

  std::unique_ptr<Convection> make_convection(const Level& level, ConvectiveFlux flux) override {
    auto convection = engine_->make_convection(level, flux);
    if (level.grid.partition() == nullptr) return convection;
    return std::make_unique<DistributedConvection>(std::move(convection),
                                                   kernels_double(level, LocalSolverKind::direct), shared_);
  }

  void* allocate(std::size_t bytes) override {
    void* const memory = engine_->allocate(bytes);
    shared_.ghosts.set(memory, Ghosts::fresh);  // zero
    return memory;
  }
  void release(void* memory, std::size_t bytes) noexcept override {
    shared_.ghosts.forget(memory);
    engine_->release(memory, bytes);
  }
  void zero(void* memory, std::size_t bytes) override {
    engine_->zero(memory, bytes);
    shared_.ghosts.set(memory, Ghosts::fresh);
  }
  void upload(const void* host, void* device, std::size_t bytes) override {
    engine_->upload(host, device, bytes);
    shared_.ghosts.set(device, Ghosts::stale);
  }
  void download(const void* device, void* host, std::size_t bytes) override { engine_->download(device, host, bytes); }
  void changed_outside(const void* vector) override { shared_.ghosts.set(vector, Ghosts::stale); }

  /// Work that is recorded brings all ghosts that it has not made itself: when it is repeated they may be stale.
  Recorded record(std::function<void()> work) override {
    if (!transport_->recordable()) return Engine::record(std::move(work));
    const auto known = std::make_shared<Ghosts::Known>();
    const Recorded recorded = engine_->record([this, known, work = std::move(work)] {
      shared_.ghosts.forget();
      work();
      *known = shared_.ghosts.known();
    });
    return {[this, known, recorded] {
              recorded();
              for (const auto& [vector, state] : *known) shared_.ghosts.set(vector, state);
            },
            [recorded] { recorded.refresh(); }};
  }
  void synchronise() override {
    engine_->synchronise();
    transport_->check_peers();
  }
  [[nodiscard]] void* stream() const override { return engine_->stream(); }
  void wait_for(void* stream) override { engine_->wait_for(stream); }
  /// Of all ranks together, measured at the same time: they may share a machine.
  Ceilings measure_ceilings() override {
    static_cast<void>(ranks_->any(false));
    const auto [memory, cache, shared, fma_float, fma_double] = engine_->measure_ceilings();
    std::array all{memory, cache, shared, fma_float, fma_double};
    ranks_->sum(std::span<double>(all));
    return {all[0], all[1], all[2], all[3], all[4]};
  }
  std::vector<KernelUse> profile(const std::function<void()>& work) override { return engine_->profile(work); }
  [[nodiscard]] std::int64_t bytes_in_use() const override { return engine_->bytes_in_use(); }
  [[nodiscard]] std::int64_t bytes_peak() const override { return engine_->bytes_peak(); }
  /// The least that a rank has, and of the memory of a host its share.
  [[nodiscard]] std::int64_t bytes_available() const override {
    double least = -static_cast<double>(engine_->bytes_available());
    if (engine_->stream() == nullptr) least /= ranks_->ranks_on_host();
    ranks_->maximum(std::span(&least, 1));
    return static_cast<std::int64_t>(-least);
  }

 private:
  template <class T>
  std::unique_ptr<Kernels<T>> shared_by_ranks(const Level& level, std::unique_ptr<Kernels<T>> kernels) {
    if (level.grid.partition() == nullptr) return kernels;
    return std::make_unique<DistributedKernels<T>>(shared_, level, std::move(kernels));
  }

  DeferredInterruption deferred_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<distributed::Transport> transport_;
  std::shared_ptr<const Communicator> ranks_;
  distributed::Shared shared_;
};

}  // namespace

std::unique_ptr<Engine> make_distributed_engine(std::unique_ptr<Engine> engine,
                                                std::unique_ptr<distributed::Transport> transport,
                                                std::shared_ptr<const Communicator> ranks) {
  return std::make_unique<DistributedEngine>(std::move(engine), std::move(transport), std::move(ranks));
}

void poison_ghosts(Engine& engine) { dynamic_cast<DistributedEngine&>(engine).poison_ghosts(); }
void watch_messages(Engine& engine, bool watched) { dynamic_cast<DistributedEngine&>(engine).watch_messages(watched); }
std::vector<PackedRecords> lose_values(Engine& engine, std::int64_t first, std::int64_t last) {
  return dynamic_cast<DistributedEngine&>(engine).lose_values(first, last);
}

}  // namespace solenoid
