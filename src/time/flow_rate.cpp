#include "time/flow_rate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "problem/regions.hpp"
#include "problem/validate.hpp"
#include "problem/vectors.hpp"
#include "solver/discretisation.hpp"
#include "time/flow_coefficients.hpp"

namespace solenoid {

FlowRate::FlowRate(Engine& engine, const Problem& problem, const Point& wanted, const Level& all,
                   Kernels<double>& kernels, BoundaryHats& hats, int kept)
    : grid_(all.grid), kernels_(kernels), hats_(hats), volume_(1.0), responses_(kept) {
  const Mesh& mesh = problem.mesh;
  const AffineMap* const map = grid_.metric().map();
  for (int a = 0; a < mesh.dim; ++a) volume_ *= length_along(mesh, a);
  if (map != nullptr) volume_ *= map->jacobian();
  Problem unit = problem;
  unit.boundary = without_data(unit.boundary);
  for (const int a : periodic_directions(problem)) {
    Direction& direction =
        directions_.emplace_back(Direction{a, length_along(mesh, a), wanted[a], {}, {}, {engine, all.size()}});
    direction.across[a] = direction.edge[a] = 1.0;
    if (map != nullptr) {
      direction.across = map->inverse()[a];
      direction.edge = map->direction(a);
    }
    set_force(unit, {direction.across[0], direction.across[1], direction.across[2]});
    Discretisation::assemble(engine, all, kernels, unit, direction.load.data());
    hats.to_some(kernels, direction.load.data());
    hats.to_all(kernels, direction.load.data());
    for (Responses& responses : responses_) responses.flows.emplace_back(engine, all.size());
  }
}

void FlowRate::add_load(const Point& gradient, double* b) {
  for (const Direction& direction : directions_) {
    kernels_.axpy(dot_product(gradient, direction.edge), direction.load.data(), b);
  }
}

std::vector<double> FlowRate::rates(const double* flow) {
  std::vector<const double*> loads;
  for (const Direction& direction : directions_) loads.push_back(direction.load.data());
  std::vector<double> result(loads.size());
  kernels_.dots(static_cast<int>(loads.size()), loads.data(), flow, result.data());
  for (std::size_t i = 0; i < result.size(); ++i) result[i] /= directions_[i].length;
  return result;
}

const FlowRate::Responses& FlowRate::respond(const Coefficients& coefficients, const Solve& solve, Vector<double>& b) {
  const auto found = std::find_if(responses_.begin(), responses_.end(), [&](const Responses& each) {
    return each.coefficients && are_same(*each.coefficients, coefficients, grid_);
  });
  const bool is_known = found != responses_.end();
  const auto used = is_known ? found : responses_.end() - 1;
  std::rotate(responses_.begin(), used, used + 1);
  Responses& responses = responses_.front();
  if (is_known) return responses;
  responses.coefficients.reset();
  const std::ptrdiff_t n = std::ssize(directions_);
  responses.matrix.resize(n, n);
  for (std::ptrdiff_t j = 0; j < n; ++j) {
    Vector<double>& flow = responses.flows[j];
    kernels_.copy(directions_[j].load.data(), b.data());
    hats_.to_some(kernels_, b.data());
    // From nothing, so that the same coefficients make the same bits.
    kernels_.zero(flow.data());
    solve(b, flow);
    hats_.to_all(kernels_, flow.data());
    const std::vector<double> column = rates(flow.data());
    for (std::ptrdiff_t i = 0; i < n; ++i) responses.matrix(i, j) = column[i];
  }
  responses.coefficients = coefficients;
  return responses;
}

Point FlowRate::correct(const Coefficients& coefficients, const Solve& solve, const Point& prescribed,
                        Vector<double>& b, double* flow) {
  const Responses& responses = respond(coefficients, solve, b);
  const std::ptrdiff_t n = std::ssize(directions_);
  Eigen::MatrixXd matrix = responses.matrix;
  const std::vector<double> there = rates(flow);
  Eigen::VectorXd lacking(n);
  const double reaction = largest_reaction(coefficients, grid_);
  for (std::ptrdiff_t i = 0; i < n; ++i) {
    const Direction& direction = directions_[i];
    lacking[i] = direction.wanted - dot_product(prescribed, direction.across) / direction.length - there[i];
    // Of a flow that nothing holds back it is the volume.
    constexpr double rounding = 1e-12;
    if (matrix(i, i) * reaction * direction.length > rounding * volume_) continue;
    if (direction.wanted != 0.0) {
      throw InvalidEntry(
          "flow_rate", fmt::format("nothing can flow in direction {}: walls or holes block it", "xyz"[direction.axis]));
    }
    matrix.row(i).setZero();
    matrix.col(i).setZero();
    matrix(i, i) = 1.0;
    lacking[i] = 0.0;
  }
  const Eigen::VectorXd lambda = matrix.llt().solve(lacking);
  Point result{};
  for (std::ptrdiff_t i = 0; i < n; ++i) {
    kernels_.axpy(lambda[i], responses.flows[i].data(), flow);
    add_times(result, lambda[i], directions_[i].across);
  }
  return result;
}

}  // namespace solenoid
