#include "solenoid/linear_system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "engine/engine.hpp"
#include "mesh/places.hpp"
#include "solenoid/error.hpp"
#include "solver/discretisation.hpp"
#include "solver/multigrid/preconditioner.hpp"

namespace solenoid {
namespace {

/// What an estimate has to count: cycle, right-hand side, solution, one more vector, no Krylov space.
SolverOptions without_method(SolverOptions options) {
  options.method = Method::vcycle;
  return options;
}

/// Checked before anything is allocated.
const SolverOptions& checked(const Problem& problem, const SolverOptions& options) {
  check(problem, options);
  return options;
}

}  // namespace

struct LinearSystem::Data {
  std::unique_ptr<Engine> engine;
  Discretisation discretisation;
  std::unique_ptr<Preconditioner> preconditioner;
  Vector<std::int64_t> places;  // of the unknowns, once they are asked for

  Data(const Problem& problem, const SolverOptions& options)
      : engine(make_engine(checked(problem, options).device, options.threads)),
        discretisation(problem, options, engine->dense_limits()) {
    if (options.progress) options.progress({"set-up", 0.5, "local solvers"});
    if (options.precision == Precision::mixed) {
      preconditioner = std::make_unique<CyclePreconditioner<float>>(*engine, discretisation.hierarchy(), options);
    } else {
      preconditioner = std::make_unique<CyclePreconditioner<double>>(*engine, discretisation.hierarchy(), options);
    }
    engine->synchronise();
    if (options.progress) options.progress({"set-up", 1.0, ""});
  }

  /// Of the finest level.
  Kernels<double>& kernels() { return preconditioner->outer(); }
  [[nodiscard]] const Level& level() const { return discretisation.finest(); }

  /// \throws InputError if a vector is not aligned as kernels of a GPU need it.
  void check_aligned(std::initializer_list<const double*> vectors) const {
    constexpr std::uintptr_t alignment = 128;
    if (engine->stream() == nullptr) return;
    for (const double* vector : vectors) {
      if (reinterpret_cast<std::uintptr_t>(vector) % alignment == 0) continue;
      throw InputError(fmt::format(
          "a vector on a GPU must be aligned to {} bytes, as memory is that is allocated there", alignment));
    }
  }

  /// LinearSystem::unknowns() in the engine's memory.
  const std::int64_t* unknowns() {
    if (places.size() == 0) {
      const auto host = unknowns_by_place(level().grid, level().equation.order, level().equation.kind);
      places = Vector<std::int64_t>(*engine, std::ssize(host));
      places.upload(host.data());
    }
    return places.data();
  }

  /// The numbers behind the whole blocks of cells, which not every kernel writes.
  void zero_end(double* y) const {
    const std::int64_t begin = level().index(level().grid.layout().cells().last() / interleave * interleave, 0);
    engine->zero(y + begin, (level().size() - begin) * sizeof(double));
  }
};

LinearSystem::LinearSystem(const Problem& problem, const SolverOptions& options)
    : data_(std::make_shared<Data>(problem, without_method(options))) {}
LinearSystem::LinearSystem(LinearSystem&&) noexcept = default;
LinearSystem& LinearSystem::operator=(LinearSystem&&) noexcept = default;
LinearSystem::~LinearSystem() = default;

const Problem& LinearSystem::problem() const { return data_->discretisation.problem(); }
std::int64_t LinearSystem::size() const { return data_->level().size(); }
std::int64_t LinearSystem::dofs() const { return data_->level().dofs(); }
std::vector<std::int64_t> LinearSystem::unknowns() const {
  const Level& level = data_->level();
  return unknowns_by_place(level.grid, level.equation.order, level.equation.kind);
}
std::string LinearSystem::device() const { return data_->engine->description(); }
bool LinearSystem::on_gpu() const { return stream() != nullptr; }
std::int64_t LinearSystem::memory_bytes() const { return data_->engine->bytes_in_use(); }

void LinearSystem::apply(const double* x, double* y) {
  if (x == y) throw InputError("the operator cannot be applied in place: x and y must be different vectors");
  data_->check_aligned({x, y});
  data_->zero_end(y);
  data_->kernels().apply(x, y);
}

void LinearSystem::precondition(const double* r, double* z) {
  data_->check_aligned({r, z});
  data_->preconditioner->apply(r, z);
}

void LinearSystem::load(double* b) {
  data_->check_aligned({b});
  Vector<double> work(*data_->engine, data_->discretisation.room());
  Vector<double> load(*data_->engine, data_->discretisation.room());
  data_->discretisation.load(*data_->engine, data_->kernels(), work, load);
  data_->kernels().copy(load.data(), b);
}

Solution LinearSystem::solution(const double* x) {
  data_->check_aligned({x});
  Vector<double> projected(*data_->engine, size());
  data_->kernels().copy(x, projected.data());
  data_->kernels().project(projected.data());
  return data_->discretisation.solution(projected);
}

void LinearSystem::pack(const double* x, double* values) {
  const std::int64_t* places = data_->unknowns();
  data_->kernels().gather(dofs(), places, x, values);
}

void LinearSystem::unpack(const double* values, double* x) {
  const std::int64_t* places = data_->unknowns();
  data_->kernels().scatter(dofs(), places, values, x);
}

std::shared_ptr<double> LinearSystem::make_vector() {
  const auto vector =
      std::make_shared<std::pair<std::shared_ptr<Data>, Vector<double>>>(data_, Vector<double>(*data_->engine, size()));
  return {vector, vector->second.data()};
}

void LinearSystem::upload(std::span<const double> from, double* to) {
  data_->engine->upload(from.data(), to, from.size_bytes());
}

void LinearSystem::download(const double* from, std::span<double> to) {
  data_->engine->download(from, to.data(), to.size_bytes());
}

void LinearSystem::wait_for(void* stream) { data_->engine->wait_for(stream); }
void LinearSystem::synchronise() { data_->engine->synchronise(); }
void* LinearSystem::stream() const { return data_->engine->stream(); }

}  // namespace solenoid
