#include "solver/discretisation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "base/parallel.hpp"
#include "problem/regions.hpp"
#include "problem/validate.hpp"
#include "solenoid/error.hpp"
#include "solution/part_errors.hpp"
#include "solver/boundary_hats.hpp"
#include "solver/estimate.hpp"
#include "solver/load.hpp"

namespace solenoid {
namespace {

/// A part of the domain that is periodic in all directions has a steady flow, and Poisson's equation a solution, only
/// if the force has no mean there (or there is a mass term).
void check_mean_force(const Level& level, Kernels<double>& kernels, double* b) {
  const bool poisson = level.equation.kind == EquationKind::poisson;
  const bool free = std::any_of(level.constants.begin(), level.constants.end(), [&](const Constant& constant) {
    return poisson || constant.field < level.equation.velocities();
  });
  if (!free) return;
  const double before = kernels.dot(b, b);
  kernels.project(b);
  const double after = kernels.dot(b, b);
  constexpr double tolerance = 1e-6;
  if (before - after > tolerance * tolerance * before) {
    if (poisson) {
      throw InvalidEntry("force",
                         "it has a mean, but no value is prescribed anywhere, so that there is no solution: subtract "
                         "the mean from the force, prescribe a value on a side, or set a mass term (mass > 0)");
    }
    throw InvalidEntry("force",
                       "its mean pushes a flow that no wall holds back, so that there is no steady solution: "
                       "subtract the mean from the force, add a wall, or set a mass term (mass > 0)");
  }
}

std::int64_t bytes_of(const Level& level) {
  std::int64_t sum = level.grid.bytes() + level.patches.bytes();
  for (const SmallGroup& group : level.small_patches.groups) {
    sum += std::ssize(group.patches) * std::int64_t{sizeof(SmallRecords)};
  }
  for (const Constant& constant : level.constants) {
    sum += std::ssize(constant.records) * std::int64_t{sizeof(Record)};
  }
  return sum;
}

/// Left preconditioning solves M A x = M b, which only makes sense of an M that is linear. A coarsest level that
/// Krylov methods take part in solving is not, so that the residual of M A x = M b would stop after a few digits.
void check_linear(const Hierarchy& hierarchy, const SolverOptions& options) {
  if (options.method != Method::gmres || options.side != PreconditionerSide::left) return;
  if (!is_by_krylov(hierarchy.coarse)) return;
  throw InvalidEntry(
      "side",
      fmt::format("\"left\" needs a cycle that is linear, but here the coarsest level has {} unknowns, too many "
                  "for a direct solve, and Krylov methods take part in solving it: use \"right\"",
                  hierarchy.levels.front()->dofs()));
}

/// Conditions on holes where no velocity can be prescribed: of images, whose pores have more faces there than
/// elsewhere.
std::vector<bool> resting_holes(const Problem& problem) {
  std::vector<bool> resting;
  if (problem.mesh.image == nullptr) return resting;
  for (int i = 0; i <= std::ssize(problem.boundary.single_holes); ++i) {
    resting.push_back(is_zero(hole_side(problem.boundary, i).data));
  }
  return resting;
}

}  // namespace

void check(const Problem& problem, const SolverOptions& options) {
  validate(problem);
  if (problem.convection) {
    throw InvalidEntry("convection",
                       "a steady flow with convection is that which one in time settles to: march in time");
  }
  validate(problem, options);
}

Discretisation::Discretisation(const Problem& problem, const SolverOptions& options, const DenseLimits& dense_limits)
    : problem_(problem),
      multigrid_(options.multigrid),
      random_load_(options.random_load),
      hierarchy_(problem, options.multigrid, dense_limits, {options.communicator, options.replicated_cells}),
      lift_level_(std::make_shared<Level>(equation_of(problem), hierarchy_.finest().coefficients,
                                          problem.equation == EquationKind::stokes
                                              ? hierarchy_.finest().grid.with_boundary_hats(resting_holes(problem))
                                              : hierarchy_.finest().grid)) {
  check_linear(hierarchy_, options);
  if (finest().has_free_rotation()) {
    throw InvalidEntry(
        "form",
        "in the stress form nothing holds rotations of the domain, or of a part of it: prescribe velocities "
        "somewhere, set a mass term (mass > 0), or use form = \"gradient\"");
  }
}

void Discretisation::set_coefficients(const Coefficients& coefficients) {
  hierarchy_.set_coefficients(coefficients);
  lift_level_->set_coefficients(coefficients);
  if (coefficients.by_cell != nullptr) return;  // fields of the problem
  problem_.viscosity = coefficients.viscosity;
  problem_.mass = coefficients.reaction;
}

void Discretisation::state_coefficients(const Problem& other) {
  problem_.viscosity = other.viscosity;
  problem_.mass = other.mass;
  problem_.varying_viscosity = other.varying_viscosity;
  problem_.varying_mass = other.varying_mass;
  problem_.regions = other.regions;
}

void Discretisation::set_parameters(const Parameters& values) {
  problem_ = with_parameters(problem_, values);
  lift_.reset();
}

void Discretisation::set_data(const Problem& data) {
  problem_.force = data.force;
  problem_.regions = data.regions;
  problem_.boundary = data.boundary;
  lift_.reset();
}

std::int64_t Discretisation::bytes() const {
  std::int64_t sum = bytes_of(*lift_level_);
  if (finest().has_viscosity_points()) {
    sum += std::ssize(finest().coefficients.by_cell->points->values()) * std::int64_t{sizeof(double)};
  }
  for (const auto& level : hierarchy_.levels) sum += bytes_of(*level);
  return sum;
}

std::int64_t Discretisation::room() const { return lift_level_->size(); }

const SparseVector& Discretisation::lift() {
  if (!lift_) lift_ = has_boundary_velocity(problem_) ? boundary_lift(problem_, *lift_level_) : SparseVector{};
  return *lift_;
}

bool Discretisation::on_some_rank(bool here) const {
  const Partition* const partition = lift_level_->grid.partition().get();
  return partition == nullptr ? here : partition->communicator().any(here);
}

bool Discretisation::lifted() {
  const std::vector<double>& values = lift().values;
  return on_some_rank(std::any_of(values.begin(), values.end(), [](double value) { return value != 0.0; }));
}

bool Discretisation::has_coarse_loads() { return random_load_ == 0 && has_boundary_values(problem_) && !lifted(); }

void Discretisation::coarse_load(Engine& engine, const Level& level, Kernels<double>& kernels, double* b) const {
  assemble(engine, level, kernels, problem_, b);
}

void Discretisation::load(Engine& engine, Kernels<double>& kernels, Vector<double>& work, Vector<double>& b) {
  if (random_load_ != 0) {
    const HostVector load = random_vector(finest(), random_load_);
    engine.upload(load.data(), b.data(), load.size() * sizeof(double));
    kernels.project(b.data());
    return;
  }
  assemble_lifted(engine, kernels, problem_, work, b);
  balance(kernels, b.data());
}

void Discretisation::force_load(Engine& engine, Kernels<double>& kernels, const VectorField& force, double* b) const {
  Problem problem = problem_;
  set_force(problem, force);
  problem.boundary = without_data(problem.boundary);
  assemble(engine, finest(), kernels, problem, b);
}

void Discretisation::boundary_load(Engine& engine, Kernels<double>& kernels, Vector<double>& work, Vector<double>& b) {
  Problem problem = problem_;
  set_force(problem, {});
  assemble_lifted(engine, kernels, problem, work, b);
}

void Discretisation::projection_load(Engine& engine, Kernels<double>& kernels, const VectorField& velocity,
                                     Vector<double>& work, Vector<double>& b) {
  Problem problem = problem_;
  set_force(problem, velocity);
  problem.boundary = without_data(problem.boundary);
  constexpr int more = 2;
  assemble_lifted(engine, kernels, problem, work, b, more);
  kernels.project(b.data());
}

void Discretisation::assemble(Engine& engine, const Level& level, Kernels<double>& kernels, const Problem& problem,
                              double* b, int more) {
  if (more > 0 || !kernels.load(force_field(problem), b)) {
    const HostVector load = assemble_load(problem, level, more);
    return engine.upload(load.data(), b, load.size() * sizeof(double));
  }
  if (has_boundary_data(problem)) SparseOnDevice(engine, assemble_boundary_load(problem, level)).add_to(kernels, b);
}

void Discretisation::assemble_lifted(Engine& engine, Kernels<double>& kernels, const Problem& problem,
                                     Vector<double>& work, Vector<double>& b, int more) {
  if (!on_some_rank(!lift().places.empty())) return assemble(engine, finest(), kernels, problem, b.data(), more);
  const Coefficients& now = lift_level_->coefficients;
  if (!lift_operator_ || !lift_operator_->is_of(engine) || !are_same(lift_operator_of_, now, finest().grid)) {
    lift_operator_.emplace(engine, *lift_level_, finest(), multigrid_.local_solver);
    lift_operator_of_ = now;
  }
  lift_operator_->apply(lift(), work.data(), b.data());
  assemble(engine, finest(), kernels, problem, work.data(), more);
  kernels.axpy(-1.0, b.data(), work.data());
  kernels.copy(work.data(), b.data());
  engine.zero(work.data(), work.size() * sizeof(double));
}
void Discretisation::balance(Kernels<double>& kernels, double* b) {
  check_mean_force(finest(), kernels, b);
  kernels.project(b);
}

void Discretisation::complete(Engine& engine, Kernels<double>& kernels, Vector<double>& x) {
  BoundaryHats(engine, *lift_level_, finest()).to_all(kernels, x.data());
  SparseOnDevice(engine, lift()).add_to(kernels, x.data());
  kernels.bring_ghosts(*lift_level_, x.data());
}

Integrator* Discretisation::integrator(Engine& engine) {
  if (!integrator_) integrator_ = engine.make_integrator(*lift_level_);
  return integrator_->get();
}

Solution Discretisation::solution(Engine& engine, const Vector<double>& completed) {
  return solution_of(problem_, finest().coefficients, completed, engine_integrals(engine, completed));
}

std::optional<FlowIntegrals> Discretisation::engine_integrals(Engine& engine, const Vector<double>& completed) {
  const bool flow = problem_.equation == EquationKind::stokes;
  if (!flow || integrator(engine) == nullptr) return {};
  return integrator(engine)->flow(completed.data());
}

Solution Discretisation::solution_of(const Problem& problem, const Coefficients& coefficients,
                                     const Vector<double>& completed,
                                     const std::optional<FlowIntegrals>& integrals) const {
  return {problem, grid_with_sides(), downloaded(completed), integrals, coefficients.by_cell};
}

Solution Discretisation::solution_of(const Problem& problem, const Coefficients& coefficients, Engine& engine,
                                     Kernels<double>& kernels, const Vector<double>& completed,
                                     const std::vector<Record>& records) const {
  return {problem, grid_with_sides(), downloaded(engine, kernels, completed, records), {}, coefficients.by_cell};
}

HostVector Discretisation::downloaded(Engine& engine, Kernels<double>& kernels, const Vector<double>& completed,
                                      const std::vector<Record>& records) const {
  HostVector coefficients(lift_level_->size());
  const int size = lift_level_->equation.record();
  const auto count = std::ssize(records);
  const auto copy = [&](const auto& value) {  // value(number of a record, its place, i)
    // Few records at a time, so that what is read lies side by side.
    parallel_ranges({count, 64}, [&](CellRange range, std::int64_t) {
      for (int i = 0; i < size; ++i) {
        for (std::int64_t j = range.begin; j < range.end; ++j) {
          const std::int64_t place = lift_level_->index(records[j], i);
          coefficients[place] = value(j, place, i);
        }
      }
    });
  };
  if (engine.stream() == nullptr) {  // its memory is that of the host
    copy([x = completed.data()](std::int64_t, std::int64_t place, int) { return x[place]; });
  } else if (count > 0) {
    const Vector<Record> on_engine = on_device(engine, records);
    Vector<double> packed(engine, count * size);
    const PackedRecords all{on_engine.data(), count, 0, size, 0};
    kernels.pack({&all, 1}, completed.data(), packed.data());
    HostVector values(packed.size());
    packed.download(values.data());
    copy([&](std::int64_t j, std::int64_t, int i) { return values[i * count + j]; });
  }
  return coefficients;
}

HostVector Discretisation::downloaded(const Vector<double>& completed) const {
  HostVector coefficients = zeros(lift_level_->size());
  completed.download(coefficients.data());
  return coefficients;
}

FlowIntegrals Discretisation::integrals(Engine& engine, const Vector<double>& completed) {
  if (integrator(engine) == nullptr) return solution_of(problem_, finest().coefficients, completed).integrals();
  return integrator(engine)->flow(completed.data());
}

double Discretisation::dissipation(Engine& engine, const Problem& problem, const Coefficients& coefficients,
                                   const Vector<double>& completed) {
  if (integrator(engine) == nullptr) return solution_of(problem, coefficients, completed).dissipation();
  return integrator(engine)->dissipation(completed.data(), coefficients);
}

std::optional<std::vector<BoundaryForce>> Discretisation::engine_forces(Engine& engine, const FlowOfForces& flow) {
  std::optional<SumsOfBodies> sums;
  if (Integrator* const here = integrator(engine)) sums = here->forces(flow);
  if (!sums && engine.stream() == nullptr) sums = sums_of_forces(lift_level_->grid, flow);  // its memory is the host's
  if (!sums) return {};
  return forces_on_bodies(flow.problem, lift_level_->grid, *sums);
}

Errors Discretisation::errors(Engine& engine, const Vector<double>& completed, const Exact& exact) {
  Errors errors;
  Exact left = exact;  // for the host
  if (Integrator* const here = integrator(engine); here != nullptr) {
    const auto of_scalar = [&](std::optional<ScalarField>& field, std::optional<double>& error) {
      if (!field) return;
      const auto parts = here->scalar_errors(*field, completed.data());
      if (!parts) return;
      error = error_norm(problem_, lift_level_->grid, *parts);
      field.reset();
    };
    of_scalar(left.pressure, errors.pressure);
    of_scalar(left.value, errors.value);
    if (left.velocity) {
      if (const auto square = here->velocity_error_square(*left.velocity, completed.data())) {
        errors.velocity = std::sqrt(*square);
        left.velocity.reset();
      }
    }
  }
  if (!left.velocity && !left.pressure && !left.value) return errors;
  const Errors others = solution_of(problem_, finest().coefficients, completed).errors(left);
  if (others.velocity) errors.velocity = others.velocity;
  if (others.pressure) errors.pressure = others.pressure;
  if (others.value) errors.value = others.value;
  return errors;
}

}  // namespace solenoid
