#include "solenoid/linear_system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/agreement.hpp"
#include "engine/engine.hpp"
#include "mesh/places.hpp"
#include "problem/names.hpp"
#include "problem/other_coefficients.hpp"
#include "problem/support.hpp"
#include "problem/validate.hpp"
#include "solenoid/error.hpp"
#include "solver/description.hpp"
#include "solver/discretisation.hpp"
#include "solver/estimate.hpp"
#include "solver/kept_tables.hpp"
#include "solver/mass_matrix.hpp"
#include "solver/methods.hpp"
#include "solver/prepare.hpp"

namespace solenoid {
namespace {

/// What an estimate has to count: cycle, right-hand side, solution, one more vector, no Krylov space.
SolverOptions without_method(SolverOptions options) {
  options.method = Method::vcycle;
  return options;
}

/// Checked before anything is allocated.
const SolverOptions& checked(const Problem& problem, const SolverOptions& options) {
  if (options.method == Method::fmg) {
    throw InputError(
        "method: full multigrid needs the loads of all levels, which a vector b is not: use \"gmres\" or \"vcycle\" "
        "for a linear system, or solve() for the problem");
  }
  check(problem, without_method(options));
  return options;
}

}  // namespace

struct LinearSystem::Data {
  SolverOptions options;
  std::unique_ptr<Engine> engine;
  Discretisation discretisation;
  std::unique_ptr<LinearSolver> solver;
  std::int64_t dofs = 0;  // of this rank
  // Made once they are asked for.
  bool reserved = false;    // memory of the method
  Vector<double> balanced;  // b without constants
  std::optional<UnknownsByPlace> by_place;
  Vector<std::int64_t> places;
  Vector<double> boundary_load;  // of boundary data alone
  std::unique_ptr<MassMatrix> mass;
  KeptTables kept;
  std::mutex of_released;  // whoever releases a vector may do so in any thread
  std::vector<Vector<double>> released;

  /// A vector of make_vector(): released, it serves the next one, since allocating costs several times what a loop of
  /// short steps does with it.
  struct Lent {
    std::shared_ptr<Data> data;
    Vector<double> vector;

    Lent(std::shared_ptr<Data> data_, Vector<double> vector_) : data(std::move(data_)), vector(std::move(vector_)) {}
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;
    ~Lent() {
      const std::lock_guard lock(data->of_released);
      data->released.push_back(std::move(vector));
    }
  };

  Data(const Problem& problem, const SolverOptions& options_)
      : Data(options_, prepare(problem, checked(problem, options_), [&](const Engine& on) {
               return estimate(problem, without_method(options_), MoreVectors{}, on);
             })) {}
  Data(SolverOptions options_, Prepared prepared)
      : options(std::move(options_)),
        engine(std::move(prepared.engine)),
        discretisation(std::move(prepared.discretisation)) {
    const bool several = options.communicator != nullptr && options.communicator->size() > 1;
    if (several && level().grid.partition() == nullptr) {
      throw InputError(fmt::format(
          "communicator: this mesh of {} cells is not shared, each of {} ranks has all of it (it has too few cells, or "
          "they do not pair up), so that vectors would have no parts: use one rank",
          level().grid.cell_count(), options.communicator->size()));
    }
    if (several) {
      level().for_each_unknown([&](std::int64_t) { ++dofs; });
    } else {
      dofs = level().dofs();
    }
    const auto progress = std::exchange(options.progress, {});  // it need not outlive the set-up
    if (progress) progress({"set-up", 0.5, "local solvers"});
    solver = make_solver(*engine, discretisation.hierarchy(), options);
    engine->synchronise();
    if (progress) progress({"set-up", 1.0, ""});
  }

  Vector<double> take_vector() {
    Vector<double> vector;
    {
      const std::lock_guard lock(of_released);
      if (released.empty()) return {*engine, level().size()};
      vector = std::move(released.back());
      released.pop_back();
    }
    kernels().zero(vector.data());
    return vector;
  }

  /// Of the finest level.
  Kernels<double>& kernels() { return solver->outer(); }
  [[nodiscard]] const Level& level() const { return discretisation.finest(); }

  /// Those of a problem that is the same but for them.
  void set_coefficients(const Problem& changed) {
    validate(changed);
    Coefficients coefficients;
    in_agreement(options.communicator.get(), [&] { coefficients = coefficients_of(changed, level().grid); });
    if (!are_same(coefficients, level().coefficients, level().grid)) {
      kept.change(discretisation, solver->preconditioner(), coefficients);
      boundary_load = {};
    }
    discretisation.state_coefficients(changed);
  }

  /// \throws ResourceError if the method's vectors do not fit.
  void reserve() {
    if (reserved) return;
    const std::int64_t needed = solver_needs(options, sine_of(level())).finest * level().size();
    const std::int64_t available = engine->bytes_available();
    in_agreement(options.communicator.get(), [&] {
      if (needed <= available) return;
      throw ResourceError(fmt::format(
          "not enough memory: the vectors of method \"{}\" need {:.2f} GB, {:.2f} GB are available; "
          "\"vcycle\" needs the least",
          name_of(options.method), static_cast<double>(needed) * 1e-9, static_cast<double>(available) * 1e-9));
    });
    solver->reserve();
    reserved = true;
  }

  /// Vectors that are read: whoever has them may have written into them.
  void reads(std::initializer_list<const double*> vectors) {
    check_aligned(vectors);
    for (const double* vector : vectors) engine->changed_outside(vector);
  }
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

  /// The coefficients of the solution that x is without its boundary velocities.
  Vector<double> completed(const double* x) {
    reads({x});
    Vector<double> result(*engine, discretisation.room());
    kernels().copy(x, result.data());
    kernels().project(result.data());
    discretisation.complete(*engine, kernels(), result);
    return result;
  }

  [[nodiscard]] UnknownsByPlace unknowns() const {
    return {level().grid, level().equation.order, level().equation.kind};
  }
  /// For vectors on the host.
  const UnknownsByPlace& on_host() {
    if (!by_place) by_place.emplace(unknowns());
    return *by_place;
  }
  /// LinearSystem::unknowns() in the memory of a GPU, for vectors there.
  const std::int64_t* places_on_gpu() {
    if (places.size() == 0) {
      const auto index = unknowns().index();
      places = Vector<std::int64_t>(*engine, std::ssize(index));
      places.upload(index.data());
    }
    return places.data();
  }
};

LinearSystem::LinearSystem(const Problem& problem, const SolverOptions& options)
    : data_(std::make_shared<Data>(problem, options)) {}
LinearSystem::LinearSystem(LinearSystem&&) noexcept = default;
LinearSystem& LinearSystem::operator=(LinearSystem&&) noexcept = default;
LinearSystem::~LinearSystem() = default;

const Problem& LinearSystem::problem() const { return data_->discretisation.problem(); }
std::int64_t LinearSystem::size() const { return data_->level().size(); }
std::int64_t LinearSystem::dofs() const { return data_->dofs; }
std::int64_t LinearSystem::dofs_of_all() const { return data_->level().dofs(); }
std::vector<std::int64_t> LinearSystem::unknowns() const { return data_->unknowns().index(); }
std::string LinearSystem::device() const { return data_->engine->description(); }
bool LinearSystem::on_gpu() const { return stream() != nullptr; }
std::int64_t LinearSystem::memory_bytes() const { return data_->engine->bytes_in_use(); }
std::int64_t LinearSystem::peak_memory_bytes() const { return peak_memory(*data_->engine, data_->discretisation); }

void LinearSystem::set_reaction(const ScalarField& mass) { data_->set_coefficients(with_mass(problem(), mass)); }
void LinearSystem::set_viscosity(const ScalarField& viscosity) {
  data_->set_coefficients(with_viscosity(problem(), viscosity));
}
void LinearSystem::set_coefficients(const ScalarField& viscosity, const ScalarField& mass) {
  data_->set_coefficients(with_mass(with_viscosity(problem(), viscosity), mass));
}

void LinearSystem::set_parameters(const Parameters& values) {
  for (const SideRegion& region : problem().boundary.regions) {
    for (const auto& [name, value] : region.where.parameters()) {
      const auto found = values.find(name);
      if (found == values.end() || found->second == value) continue;
      throw InputError(fmt::format(
          "which part of a side a condition holds on depends on `{}`: another value takes another system", name));
    }
  }
  if (std::any_of(values.begin(), values.end(),
                  [&](const auto& value) { return coefficients_depend_on(problem(), value.first); })) {
    data_->set_coefficients(with_parameters(problem(), values));
  }
  data_->discretisation.set_parameters(values);
  data_->boundary_load = {};
}

void LinearSystem::apply(const double* x, double* y) {
  if (x == y) throw InputError("the operator cannot be applied in place: x and y must be different vectors");
  data_->check_aligned({y});
  data_->reads({x});
  zero_end(*data_->engine, data_->level(), y);
  data_->kernels().apply(x, y);
}

void LinearSystem::precondition(const double* r, double* z) {
  data_->check_aligned({z});
  data_->reads({r});
  data_->solver->preconditioner().apply(r, z);
}

LinearReport LinearSystem::solve(const double* b, double* x, bool from_x, std::optional<double> rtol) {
  if (b == x) throw InputError("b and x must be different vectors");
  data_->reads({b, x});
  SolverOptions options = data_->options;
  options.rtol = rtol.value_or(options.rtol);
  validate(problem(), options);
  data_->reserve();
  Kernels<double>& kernels = data_->kernels();
  if (!data_->level().constants.empty()) {
    if (data_->balanced.size() == 0) data_->balanced = Vector<double>(*data_->engine, size());
    kernels.copy(b, data_->balanced.data());
    b = data_->balanced.data();
    kernels.project(data_->balanced.data());
  }
  if (!from_x) kernels.zero(x);
  Convergence convergence;
  convergence.rtol = options.rtol;
  convergence.max_iterations = options.max_iterations;
  data_->solver->run(b, x, !from_x, convergence);
  kernels.project(x);
  return {convergence.converged, convergence.reason, convergence.iterations, std::move(convergence.history)};
}

void LinearSystem::apply_mass(const double* x, double* y) {
  if (x == y) throw InputError("the mass matrix cannot be applied in place: x and y must be different vectors");
  data_->check_aligned({y});
  data_->reads({x});
  if (data_->mass == nullptr) {
    data_->mass = std::make_unique<MassMatrix>(*data_->engine, data_->level(), data_->options.multigrid.local_solver);
  }
  zero_end(*data_->engine, data_->level(), y);
  data_->mass->apply(x, y);
}

void LinearSystem::load(double* b) {
  data_->check_aligned({b});
  Vector<double> work(*data_->engine, data_->discretisation.room());
  Vector<double> load(*data_->engine, data_->discretisation.room());
  data_->discretisation.load(*data_->engine, data_->kernels(), work, load);
  data_->kernels().copy(load.data(), b);
}

void LinearSystem::load(double* b, const VectorField& force) {
  data_->check_aligned({b});
  Discretisation& discretisation = data_->discretisation;
  if (data_->boundary_load.size() == 0) {
    Vector<double> work(*data_->engine, discretisation.room());
    Vector<double> of_boundary(*data_->engine, discretisation.room());
    discretisation.boundary_load(*data_->engine, data_->kernels(), work, of_boundary);
    data_->boundary_load = Vector<double>(*data_->engine, size());
    data_->kernels().copy(of_boundary.data(), data_->boundary_load.data());
  }
  discretisation.force_load(*data_->engine, data_->kernels(), force, b);
  data_->kernels().axpy(1.0, data_->boundary_load.data(), b);
  discretisation.balance(data_->kernels(), b);
}

Solution LinearSystem::solution(const double* x) {
  return data_->discretisation.solution(*data_->engine, data_->completed(x));
}

FlowIntegrals LinearSystem::integrals(const double* x) {
  if (problem().equation == EquationKind::poisson) throw InputError("Poisson's equation has no velocity to integrate");
  return data_->discretisation.integrals(*data_->engine, data_->completed(x));
}

Errors LinearSystem::errors(const double* x, const Exact& exact) {
  return data_->discretisation.errors(*data_->engine, data_->completed(x), exact);
}

void LinearSystem::pack(const double* x, double* values) {
  if (!on_gpu()) return data_->on_host().pack(x, values, data_->engine->threads());
  data_->kernels().gather(dofs(), data_->places_on_gpu(), x, values);
}

void LinearSystem::unpack(const double* values, double* x) {
  if (!on_gpu()) return data_->on_host().unpack(values, x, data_->engine->threads());
  data_->kernels().scatter(dofs(), data_->places_on_gpu(), values, x);
}

void LinearSystem::copy(const double* x, double* y) {
  data_->check_aligned({x, y});
  data_->kernels().copy(x, y);
}
void LinearSystem::axpy(double a, const double* x, double* y) {
  data_->check_aligned({x, y});
  data_->kernels().axpy(a, x, y);
}
void LinearSystem::scale(double a, double* x) {
  data_->check_aligned({x});
  data_->kernels().scale(a, x, x);
}
double LinearSystem::dot(const double* x, const double* y) {
  data_->check_aligned({x, y});
  return data_->kernels().dot(x, y);
}

std::shared_ptr<double> LinearSystem::make_vector() {
  const auto lent = std::make_shared<Data::Lent>(data_, data_->take_vector());
  return {lent, lent->vector.data()};
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
