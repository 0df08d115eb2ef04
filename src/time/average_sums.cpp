#include "time/average_sums.hpp"

#include <utility>
#include <vector>

#include "base/host_vector.hpp"
#include "element/moments.hpp"
#include "level/level.hpp"
#include "mesh/record.hpp"
#include "solution/transfer.hpp"
#include "time/host_moments.hpp"

namespace solenoid {
namespace {

/// What the fields of moments are solutions of.
Problem of_field(Problem problem) {
  problem.equation = EquationKind::poisson;
  problem.convection = false;
  problem.varying_viscosity.reset();
  problem.varying_mass.reset();
  problem.viscosity_cap.reset();
  problem.viscosity_points = ViscosityPlaces::cell;
  problem.form.reset();
  for (Region& region : problem.regions) {
    region.viscosity.reset();
    region.mass.reset();
  }
  return problem;
}

}  // namespace

double AverageSums::vectors(int dim) { return 1.0 + static_cast<double>(flow_moments(dim)) / (dim + 1); }

AverageSums::AverageSums(Engine& engine, const Discretisation& of, Kernels<double>& kernels, const Problem& problem,
                         double start)
    : engine_(engine),
      of_(of),
      kernels_(kernels),
      problem_(problem),
      start_(start),
      sums_(engine.make_flow_moments(of.level_with_sides())),
      mean_(engine, of.room()),
      moments_(engine, flow_moments(problem.mesh.dim) * moment_size()) {
  if (sums_ == nullptr) sums_ = std::make_unique<HostMoments>(of.level_with_sides());
}

AverageSums::AverageSums(Engine& engine, const Discretisation& of, Kernels<double>& kernels, const Problem& problem,
                         const Averages& from)
    : AverageSums(engine, of, kernels, problem, from.start) {
  length_ = from.length;
  const auto upload = [&](const Solution& field, double* to) {
    const HostVector values =
        coefficients_on(field, of.level_with_sides().grid, problem.order, "averages of the checkpoint");
    engine.upload(values.data(), to, values.size() * sizeof(double));
  };
  upload(from.flow, mean_.data());
  kernels.bring_ghosts(of.level_with_sides(), mean_.data());
  double* moment = moments_.data();
  for (const Solution& stress : from.stresses) {
    upload(stress, moment);
    moment += moment_size();
  }
  upload(from.dissipation, moment);
}

std::int64_t AverageSums::moment_size() const {
  const Level& level = of_.level_with_sides();
  return std::int64_t{level.grid.layout().storage()} * power(level.equation.n(), level.grid.dim());
}

void AverageSums::add(Vector<double>& flow, double length, const Coefficients& coefficients) {
  const double r = length / (length_ + length);
  length_ += length;
  by_cell_ = coefficients.by_cell;
  if (by_cell_ == nullptr) {
    problem_.viscosity = coefficients.viscosity;
    problem_.mass = coefficients.reaction;
  }
  sums_->add(flow.data(), mean_.data(), r, coefficients, moment_size(), moments_.data());
  kernels_.axpy(-1.0, mean_.data(), flow.data());
  kernels_.axpy(r, flow.data(), mean_.data());
}

std::optional<Averages> AverageSums::averages() const {
  if (length_ == 0.0) return {};
  const Problem of_moments = of_field(problem_);
  std::vector<Solution> moments;
  for (int i = 0; i < flow_moments(problem_.mesh.dim); ++i) {
    HostVector values = zeros(moment_size());
    engine_.download(moments_.data() + i * moment_size(), values.data(), values.size() * sizeof(double));
    moments.emplace_back(of_moments, of_.grid_with_sides(), std::move(values));
  }
  Solution dissipation = std::move(moments.back());
  moments.pop_back();
  Solution flow(problem_, of_.grid_with_sides(), of_.downloaded(mean_), {}, by_cell_);
  flow.set_acceleration({});  // a mean has none, and so no forces
  return Averages{start_, length_, std::move(flow), std::move(moments), std::move(dissipation)};
}

}  // namespace solenoid
