#include "solver/discretisation.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/parallel.hpp"
#include "problem/regions.hpp"
#include "problem/validate.hpp"
#include "solenoid/error.hpp"
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

}  // namespace

void check(const Problem& problem, const SolverOptions& options) {
  validate(problem);
  validate(problem, options);
  const Estimate need = estimate(problem, options);
  if (need.bytes_needed <= need.bytes_available) return;
  throw ResourceError(fmt::format(
      "not enough memory: {} unknowns need {:.2f} GB, {:.2f} GB are available; the largest refinement that fits is "
      "{}",
      need.dofs, static_cast<double>(need.bytes_needed) * 1e-9, static_cast<double>(need.bytes_available) * 1e-9,
      need.largest_refine >= 0 ? fmt::format("refine = {}", need.largest_refine) : "none"));
}

Discretisation::Discretisation(const Problem& problem, const SolverOptions& options, const DenseLimits& dense_limits)
    : problem_(problem),
      multigrid_(options.multigrid),
      random_load_(options.random_load),
      hierarchy_(problem, options.multigrid, dense_limits),
      lift_level_(
          std::make_shared<Level>(equation_of(problem), coefficients_of(problem),
                                  Grid(problem.mesh, problem.boundary, problem.equation == EquationKind::stokes))) {}

void Discretisation::set_coefficients(const Coefficients& coefficients) {
  hierarchy_.set_coefficients(coefficients);
  lift_level_->set_coefficients(coefficients);
  problem_.viscosity = coefficients.viscosity;
  problem_.mass = coefficients.reaction;
}

std::int64_t Discretisation::room() const {
  return has_boundary_velocity(problem_) ? lift_level_->size() : finest().size();
}

const HostVector& Discretisation::lift() {
  if (lift_.empty() && has_boundary_velocity(problem_)) lift_ = boundary_lift(problem_, *lift_level_);
  return lift_;
}

bool Discretisation::lifted() {
  const HostVector& values = lift();
  return std::any_of(values.begin(), values.end(), [](double value) { return value != 0.0; });
}

std::vector<HostVector> Discretisation::coarse_loads() {
  std::vector<HostVector> loads;
  if (random_load_ != 0 || !has_boundary_values(problem_) || lifted()) return loads;
  for (int l = 0; l < hierarchy_.size() - 1; ++l) loads.push_back(assemble_load(problem_, *hierarchy_.levels[l]));
  return loads;
}

void Discretisation::load(Engine& engine, Kernels<double>& kernels, Vector<double>& work, Vector<double>& b) {
  HostVector load = random_load_ != 0 ? random_vector(finest(), random_load_) : assemble_load(problem_, finest());
  subtract_lift(engine, work, b, load);
  engine.upload(load.data(), b.data(), load.size() * sizeof(double));
  if (random_load_ == 0) {
    balance(kernels, b.data());
  } else {
    kernels.project(b.data());
  }
}

void Discretisation::subtract_lift(Engine& engine, Vector<double>& work, Vector<double>& b, HostVector& load) {
  if (lift().empty()) return;
  // On the grid that stores all boundary hats.
  const auto kernels = make_kernels<double>(engine, *lift_level_, multigrid_.local_solver);
  work.upload(lift().data());
  kernels->apply(work.data(), b.data());
  HostVector image(lift_level_->size());
  b.download(image.data());
  subtract_common(*lift_level_, image, finest(), load);
  kernels->zero(work.data());
}

HostVector Discretisation::force_load(const VectorField& force) const {
  Problem problem = problem_;
  problem.force = force;
  problem.boundary = without_data(problem.boundary);
  return assemble_load(problem, finest());
}

void Discretisation::boundary_load(Engine& engine, Vector<double>& work, Vector<double>& b) {
  Problem problem = problem_;
  problem.force = {};
  HostVector load = assemble_load(problem, finest());
  subtract_lift(engine, work, b, load);
  engine.upload(load.data(), b.data(), load.size() * sizeof(double));
}

void Discretisation::balance(Kernels<double>& kernels, double* b) {
  check_mean_force(finest(), kernels, b);
  kernels.project(b);
}

Solution Discretisation::solution(const Vector<double>& x) {
  HostVector coefficients = zeros(lift_level_->size());
  x.download(coefficients.data());
  move_hats(finest(), *lift_level_, coefficients);
  const HostVector& boundary = lift();
  parallel_ranges({std::ssize(boundary), 1 << 16}, [&](CellRange range, std::int64_t) {
    for (auto i = range.begin; i < range.end; ++i) coefficients[i] += boundary[i];
  });
  return {problem_, std::shared_ptr<const Grid>(lift_level_, &lift_level_->grid), std::move(coefficients)};
}

}  // namespace solenoid
