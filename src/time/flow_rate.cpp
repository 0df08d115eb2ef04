#include "time/flow_rate.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

#include "problem/regions.hpp"
#include "problem/validate.hpp"
#include "solver/discretisation.hpp"

namespace solenoid {

FlowRate::FlowRate(Engine& engine, const Problem& problem, const Point& wanted, const Level& all,
                   Kernels<double>& kernels)
    : kernels_(kernels), volume_(1.0) {
  const Mesh& mesh = problem.mesh;
  for (int a = 0; a < mesh.dim; ++a) volume_ *= mesh.upper[a] - mesh.lower[a];
  Problem unit = problem;
  unit.boundary = without_data(unit.boundary);
  for (const int a : periodic_directions(problem)) {
    Direction& direction = directions_.emplace_back(
        Direction{a, mesh.upper[a] - mesh.lower[a], wanted[a], {engine, all.size()}, {engine, all.size()}});
    unit.force = {};
    unit.force[a] = 1.0;
    Discretisation::assemble(engine, all, kernels, unit, direction.load.data());
  }
}

void FlowRate::add_load(const Point& gradient, double* b) {
  for (const Direction& direction : directions_) kernels_.axpy(gradient[direction.axis], direction.load.data(), b);
}

std::vector<double> FlowRate::rates(const double* flow) {
  std::vector<const double*> loads;
  for (const Direction& direction : directions_) loads.push_back(direction.load.data());
  std::vector<double> result(loads.size());
  kernels_.dots(static_cast<int>(loads.size()), loads.data(), flow, result.data());
  for (std::size_t i = 0; i < result.size(); ++i) result[i] /= directions_[i].length;
  return result;
}

void FlowRate::respond(const Coefficients& coefficients, const Solve& solve, BoundaryHats& hats, Vector<double>& b) {
  if (coefficients_ == coefficients) return;
  coefficients_.reset();
  matrix_.clear();
  const std::size_t n = directions_.size();
  matrix_.resize(n * n);
  for (std::size_t j = 0; j < n; ++j) {
    Direction& direction = directions_[j];
    kernels_.copy(direction.load.data(), b.data());
    hats.to_some(kernels_, b.data());
    // From nothing, so that the same coefficients make the same bits.
    kernels_.zero(direction.response.data());
    solve(b, direction.response);
    hats.to_all(kernels_, direction.response.data());
    const std::vector<double> column = rates(direction.response.data());
    for (std::size_t i = 0; i < n; ++i) matrix_[i * n + j] = column[i];
  }
  coefficients_ = coefficients;
}

Point FlowRate::correct(const Coefficients& coefficients, const Solve& solve, BoundaryHats& hats, Vector<double>& b,
                        double* flow) {
  respond(coefficients, solve, hats, b);
  const std::size_t n = directions_.size();
  std::vector<double> lacking = rates(flow);
  std::vector<bool> blocked(n);
  for (std::size_t i = 0; i < n; ++i) {
    const auto& [axis, length, wanted, load, response] = directions_[i];
    lacking[i] = wanted - lacking[i];
    // Of a flow that nothing holds back it is the volume.
    constexpr double rounding = 1e-12;
    blocked[i] = matrix_[i * n + i] * coefficients.reaction * length <= rounding * volume_;
    if (blocked[i] && wanted != 0.0) {
      throw InvalidEntry("flow_rate",
                         fmt::format("nothing can flow in direction {}: walls or holes block it", "xyz"[axis]));
    }
  }
  const std::vector<double> lambda = solve_small(matrix_, std::move(lacking), blocked);
  Point result{};
  for (std::size_t i = 0; i < n; ++i) {
    kernels_.axpy(lambda[i], directions_[i].response.data(), flow);
    result[directions_[i].axis] = lambda[i];
  }
  return result;
}

std::vector<double> solve_small(std::vector<double> matrix, std::vector<double> right,
                                const std::vector<bool>& blocked) {
  const std::size_t n = right.size();
  for (std::size_t k = 0; k < n; ++k) {
    if (blocked[k]) continue;
    for (std::size_t i = k + 1; i < n; ++i) {
      const double factor = matrix[i * n + k] / matrix[k * n + k];
      for (std::size_t j = k; j < n; ++j) matrix[i * n + j] -= factor * matrix[k * n + j];
      right[i] -= factor * right[k];
    }
  }
  std::vector<double> x(n, 0.0);
  for (std::size_t k = n; k-- > 0;) {
    if (blocked[k]) continue;
    for (std::size_t j = k + 1; j < n; ++j) right[k] -= matrix[k * n + j] * x[j];
    x[k] = right[k] / matrix[k * n + k];
  }
  return x;
}

}  // namespace solenoid
