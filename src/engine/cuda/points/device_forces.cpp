#include "engine/cuda/points/device_forces.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/host_vector.hpp"
#include "base/parallel.hpp"
#include "engine/flow_sums.hpp"
#include "solution/cell_rule.hpp"
#include "solution/viscosity_of_forces.hpp"

namespace solenoid::cuda {
namespace {

bool is_constant(const VectorField& field) {
  return std::ranges::all_of(field, [](const ScalarField& c) { return c.constant().has_value(); });
}
Point constant_of(const VectorField& field) {
  Point result{};
  for (int c = 0; c < 3; ++c) result[c] = field[c].constant().value_or(0.0);
  return result;
}

/// Whether they are known to have the same values.
bool have_same_values(const VectorField& a, const VectorField& b) {
  const auto same = [](const ScalarField& one, const ScalarField& other) {
    if (one.constant() || other.constant()) return one.constant() == other.constant();
    return one.program() != nullptr && one.program() == other.program() && one.parameters() == other.parameters();
  };
  return std::ranges::equal(a, b, same);
}

}  // namespace

DeviceForces::DeviceForces(Shared& shared, const Level& level, const Problem& problem)
    : shared_(shared),
      level_(level),
      device_(shared.level(level)),
      memory_{level.equation.dim, {level.equation.n(), force_points(problem)}},
      tables_(shared.engine, make_tables(memory_.tables)) {
  find_faces(problem);
}

void DeviceForces::find_faces(const Problem& problem) {
  const Grid& grid = level_.grid;
  const Bodies bodies(problem.mesh, grid);
  std::vector<std::pair<int, BoundaryFace>> found;
  for (const Record cell : grid.layout().owned_cells()) {
    for (int side = 0; side < 2 * memory_.dim; ++side) {
      if (grid.face(cell, side) == Face::interior) continue;
      if (cells_.empty() || cells_.back() != cell) cells_.push_back(cell);
      found.push_back({bodies.at(cell, side), {cell, static_cast<std::int32_t>(cells_.size()) - 1, side}});
    }
  }
  std::ranges::stable_sort(found, {}, [](const auto& each) { return each.first; });
  // Several parts for each multiprocessor, so that they are all done at about the same time.
  const std::int64_t most = 1 + std::ssize(found) / (16 * std::int64_t{shared_.multiprocessors});
  std::vector<std::int32_t> first;
  for (const auto& [body, face] : found) {
    const auto number = static_cast<std::int32_t>(faces_.size());
    if (body_.empty() || body_.back() != body || number - first.back() == most) {
      body_.push_back(body);
      first.push_back(number);
    }
    faces_.push_back(face);
  }
  first.push_back(static_cast<std::int32_t>(faces_.size()));
  device_faces_ = {shared_.engine, faces_};
  first_ = {shared_.engine, first};
  if (!body_.empty()) sums_ = {shared_.engine, std::ssize(body_)};
}

std::optional<SumsOfBodies> DeviceForces::operator()(const FlowOfForces& flow, const CellPlaces& places) {
  const Coefficients& coefficients = flow.coefficients;
  if (faces_.empty()) return SumsOfBodies{};
  if (!take_data(flow.problem) || !take_force(flow.problem) || !take_viscosity(coefficients)) return {};
  const AffineMap* const map = level_.grid.metric().map();
  BoundaryForcesArguments arguments{};
  arguments.tested = tested_flow(flow.problem, level_.grid, flow.about);
  arguments.memory = memory_;
  arguments.tables = tables_.data();
  arguments.places = places;
  for (int side = 0; side < 2 * memory_.dim; ++side) {
    arguments.neighbour[side] = device_->topology().neighbour[side];
    arguments.face[side] = device_->topology().face[side];
  }
  arguments.map = cell_map(level_.grid);
  arguments.measure = map == nullptr ? 1.0 : map->jacobian();
  for (int a = 0; a < memory_.dim; ++a) {
    arguments.areas[a] = map == nullptr ? 1.0 : map->jacobian() * std::sqrt(map->inverse_metric()[a][a]);
  }
  arguments.faces = device_faces_.data();
  arguments.first = first_.data();
  arguments.parts = static_cast<std::int32_t>(body_.size());
  arguments.data_of = data_of_.data();
  arguments.constants = constants_.data();
  arguments.values = values_.data();
  arguments.force = constant_force_;
  arguments.force_at = force_at_.data();
  arguments.reaction = coefficients.reaction;
  arguments.reactions = reactions(coefficients);
  if (viscosity_at_.size() == 0) arguments.viscosity = device_->viscosity(coefficients);
  arguments.viscosity_at = viscosity_at_.data();
  arguments.flow = flow.flow;
  arguments.acceleration = flow.acceleration.flows.empty() ? nullptr : flow.acceleration.flows.front();
  boundary_forces(arguments, sums_.data(), shared_.stream);
  std::vector<ForceSums> of_parts(body_.size());
  sums_.download(of_parts.data());
  SumsOfBodies sums;
  for (std::size_t i = 0; i < of_parts.size(); ++i) sums.of_body[body_[i]].merge(of_parts[i]);
  return sums;
}

bool DeviceForces::take_data(const Problem& problem) {
  std::vector<VectorField> data = data_of_conditions(problem);
  if (std::ranges::equal(data, data_, have_same_values)) return true;
  data_.clear();  // until all of it is there
  number_data(data);
  std::vector<Point> constants;
  for (const VectorField& field : data) constants.push_back(constant_of(field));
  if (constants_.size() != std::ssize(constants)) constants_ = {shared_.engine, std::ssize(constants)};
  constants_.upload(constants.data());
  const int points = memory_.points_on_side();
  const auto evaluate = [&](std::vector<CellRule>& rules, std::int64_t i, std::span<double> values) {
    const BoundaryFace& face = functions_[i];
    CellRule& rule = rules[1 + face.side];
    rule.move_to(face.cell);
    const VectorField& field = data[condition_at(level_.grid, face.cell, face.side)];
    for (int c = 0; c < memory_.dim; ++c) rule.evaluate(field[c], values.subspan(c * points, points));
  };
  const auto rules = [&] { return rules_of_places(); };
  if (!take_values(std::ssize(functions_), memory_.dim * points, rules, evaluate, values_)) return false;
  data_ = std::move(data);
  return true;
}

void DeviceForces::number_data(const std::vector<VectorField>& data) {
  std::vector<bool> is_function;
  for (const VectorField& field : data) is_function.push_back(!is_constant(field));
  if (is_function == is_function_) return;
  is_function_.clear();
  functions_.clear();
  std::vector<DataOfSides> data_of(cells_.size());
  for (const BoundaryFace& face : faces_) {
    const int condition = condition_at(level_.grid, face.cell, face.side);
    std::int32_t& place = data_of[face.number].of[face.side];
    place = -1 - condition;
    if (!is_function[condition]) continue;
    place = static_cast<std::int32_t>(functions_.size());
    functions_.push_back(face);
  }
  data_of_ = {shared_.engine, data_of};
  is_function_ = std::move(is_function);
}

bool DeviceForces::take_force(const Problem& problem) {
  const VectorField force = force_field(problem);
  if (force_ && have_same_values(force, *force_)) return true;
  force_.reset();  // until all of it is there
  constant_force_ = constant_of(force);
  if (is_constant(force)) {
    force_at_ = {};
  } else {
    const int points = memory_.points_inside();
    const auto evaluate = [&](CellRule& rule, std::int64_t i, std::span<double> values) {
      rule.move_to(cells_[i]);
      for (int c = 0; c < memory_.dim; ++c) rule.evaluate(force[c], values.subspan(c * points, points));
    };
    const auto rule = [&] { return CellRule(level_.grid, memory_.tables.points); };
    if (!take_values(std::ssize(cells_), memory_.dim * points, rule, evaluate, force_at_)) return false;
  }
  force_ = force;
  return true;
}

bool DeviceForces::take_viscosity(const Coefficients& coefficients) {
  const auto& by_cell = coefficients.by_cell;
  const bool has_points = by_cell != nullptr && by_cell->points != nullptr;
  if (has_points && by_cell == viscosity_of_) return true;
  viscosity_of_.reset();  // until all of it is there
  viscosity_at_ = {};
  if (!has_points) return true;
  const auto places = [&] {
    std::vector<ViscosityOfForces> inside_and_on_sides;
    for (const CellRule& rule : rules_of_places()) {
      const auto side = static_cast<int>(inside_and_on_sides.size()) - 1;
      inside_and_on_sides.emplace_back(coefficients, level_.grid, rule.xi(), side);
    }
    return inside_and_on_sides;
  };
  const auto evaluate = [&](std::vector<ViscosityOfForces>& viscosities, std::int64_t i, std::span<double> values) {
    auto next = values.begin();
    for (ViscosityOfForces& viscosity : viscosities) next = std::ranges::copy(viscosity.of(cells_[i]), next).out;
  };
  if (!take_values(std::ssize(cells_), memory_.points(), places, evaluate, viscosity_at_)) return false;
  viscosity_of_ = by_cell;
  return true;
}

std::vector<CellRule> DeviceForces::rules_of_places() const {
  std::vector<CellRule> rules;
  for (int side = CellRule::inside; side < 2 * memory_.dim; ++side) {
    rules.emplace_back(level_.grid, memory_.tables.points, side);
  }
  return rules;
}

template <class MakePlaces, class Evaluate>
bool DeviceForces::take_values(std::int64_t count, int numbers, const MakePlaces& make_places, const Evaluate& evaluate,
                               Vector<double>& values) {
  const std::int64_t size = count * numbers;
  if (values.size() != size) {
    values = {};
    if (size * static_cast<std::int64_t>(sizeof(double)) > shared_.engine.bytes_available()) return false;
    if (size > 0) values = {shared_.engine, size};
  }
  if (size == 0) return true;
  HostVector host(size);
  parallel_ranges({count, 256}, [&](CellRange range, std::int64_t) {
    auto places = make_places();
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      evaluate(places, i, std::span(host).subspan(i * numbers, numbers));
    }
  });
  values.upload(host.data());
  return true;
}

const double* DeviceForces::reactions(const Coefficients& coefficients) {
  const auto& by_cell = coefficients.by_cell;
  if (by_cell == nullptr) return nullptr;
  if (by_cell != reactions_of_) {
    std::vector<double> values;
    for (const Record cell : cells_) values.push_back(by_cell->reaction[cell]);
    reactions_ = {shared_.engine, values};
    reactions_of_ = by_cell;
  }
  return reactions_.data();
}

}  // namespace solenoid::cuda
