#include "solenoid/solution.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/host_vector.hpp"
#include "base/parallel.hpp"
#include "base/statistics.hpp"
#include "element/basis.hpp"
#include "mesh/grid.hpp"
#include "mesh/places.hpp"
#include "mesh/record.hpp"
#include "mesh/shared_records.hpp"
#include "problem/validate.hpp"
#include "solenoid/error.hpp"
#include "solution/cell_evaluator.hpp"
#include "solution/cell_rule.hpp"
#include "solution/cells_of.hpp"
#include "solution/field_evaluator.hpp"
#include "solution/gradients.hpp"
#include "solution/joined.hpp"
#include "solution/part_errors.hpp"
#include "solution/summary.hpp"

namespace solenoid {

namespace {

struct Sum {
  double value = 0.0;
  void merge(const Sum& other) { value += other.value; }
};

// Of the values of a velocity: FlowIntegrals without its gradient.
struct PartialIntegrals {
  FlowIntegrals all;
  void merge(const PartialIntegrals& other) {
    for (int c = 0; c < 3; ++c) all.velocity[c] += other.all.velocity[c];
    all.velocity_square += other.all.velocity_square;
    all.gradient_square += other.all.gradient_square;
    all.vorticity_square += other.all.vorticity_square;
    all.max_speed = max_or_nan(all.max_speed, other.all.max_speed);
    all.max_divergence = max_or_nan(all.max_divergence, other.all.max_divergence);
  }
};

// Of the parts of the domain that there are any cells of.
struct Variances {
  std::map<int, Variance> of_part;
  void merge(const Variances& other) {
    for (const auto& [part, variance] : other.of_part) of_part[part].merge(variance);
  }
};

// Integral of |field|^2 by `points` Gauss points per direction, where evaluate(evaluator, rule, cell, values) fills
// `components` numbers per point; each thread has its own copy of `evaluate`.
template <class Evaluate>
double integrate_square(const Solution& s, int points, int components, Evaluate evaluate) {
  const double mine = reduce_owned_cells<Sum>(s.grid(), [&] {
                        CellRule rule(s.grid(), points);
                        CellEvaluator evaluator(s);
                        evaluator.set_points(rule.xi());
                        std::vector<double> values(rule.size() * components);
                        return [=](CellRange range, Sum& sum) mutable {
                          for (std::int64_t cell = range.begin; cell < range.end; ++cell) {
                            rule.move_to(cell);
                            evaluate(evaluator, rule, cell, values.data());
                            for (std::size_t i = 0; i < values.size(); ++i) {
                              sum.value += rule.weights()[i / components] * values[i] * values[i];
                            }
                          }
                        };
                      }).value;
  return added_up(mine, s.grid());
}

FlowIntegrals integrate(const Solution& s) {
  const int dim = s.grid().dim();
  const PartialIntegrals mine = reduce_owned_cells<PartialIntegrals>(s.grid(), [&] {
    CellRule rule(s.grid(), s.problem().order + 2);
    CellEvaluator evaluator(s);
    evaluator.set_points(rule.xi(), CellEvaluator::Tables::values_and_derivatives);
    std::vector<double> u(rule.size() * dim);
    std::vector<double> g(rule.size() * dim * dim);
    return [=](CellRange range, PartialIntegrals& sum) mutable {
      FlowIntegrals& all = sum.all;
      for (std::int64_t cell = range.begin; cell < range.end; ++cell) {
        rule.move_to(cell);
        evaluator.velocity_and_gradient(cell, u.data(), g.data());
        for (std::size_t q = 0; q < rule.size(); ++q) {
          const double weight = rule.weights()[q];
          double square = 0.0;
          for (int c = 0; c < dim; ++c) {
            const double value = u[c + dim * q];
            all.velocity[c] += weight * value;
            square += value * value;
          }
          const Gradient gradient = gradient_of(dim, &g[q * dim * dim]);
          const Point w = vorticity_of(gradient);
          all.velocity_square += weight * square;
          all.gradient_square += weight * square_of(gradient);
          all.vorticity_square += weight * (w[0] * w[0] + w[1] * w[1] + w[2] * w[2]);
          all.max_speed = max_or_nan(all.max_speed, std::sqrt(square));
          all.max_divergence =
              max_or_nan(all.max_divergence, std::abs(gradient[0][0] + gradient[1][1] + gradient[2][2]));
        }
      }
    };
  });
  return joined(mine.all, s.grid());
}

double integrate_dissipation(const Solution& s, const CellPhysics& physics) {
  const int dim = s.grid().dim();
  const double mine = reduce_owned_cells<Sum>(s.grid(), [&] {
                        CellRule rule(s.grid(), s.problem().order + 2);
                        CellEvaluator evaluator(s);
                        evaluator.set_points(rule.xi(), CellEvaluator::Tables::values_and_derivatives);
                        ViscosityInCells viscosity = physics.viscosity_at(rule.xi(), dim);
                        std::vector<double> g(rule.size() * dim * dim);
                        return [=](CellRange range, Sum& sum) mutable {
                          for (std::int64_t cell = range.begin; cell < range.end; ++cell) {
                            rule.move_to(cell);
                            evaluator.gradient(cell, g.data());
                            const std::vector<double>& nu = viscosity.of(static_cast<Record>(cell));
                            for (std::size_t q = 0; q < rule.size(); ++q) {
                              sum.value += rule.weights()[q] *
                                           dissipation_of(physics.form(), nu[q], gradient_of(dim, &g[q * dim * dim]));
                            }
                          }
                        };
                      }).value;
  return added_up(mine, s.grid());
}

// L2 norm of the error of the pressure, or of Poisson's u.
double scalar_error(const Solution& s, const ScalarField& exact) {
  const auto variances = reduce_owned_cells<Variances>(s.grid(), [&] {
    CellRule rule(s.grid(), s.problem().order + 3);
    CellEvaluator evaluator(s);
    evaluator.set_points(rule.xi());
    std::vector<double> error(rule.size());
    return
        [&exact, grid = &s.grid(), rule, evaluator, error, values = error](CellRange range, Variances& total) mutable {
          for (std::int64_t cell = range.begin; cell < range.end; ++cell) {
            rule.move_to(cell);
            evaluator.pressure(cell, error.data());
            rule.evaluate(exact, values);
            const std::vector<double>& weights = rule.weights();
            Variance local;
            for (std::size_t q = 0; q < error.size(); ++q) {
              error[q] -= values[q];
              local.measure += weights[q];
              local.mean += weights[q] * error[q];
            }
            local.mean /= local.measure;
            for (std::size_t q = 0; q < error.size(); ++q) {
              local.square += weights[q] * (error[q] - local.mean) * (error[q] - local.mean);
            }
            total.of_part[grid->part(static_cast<Record>(cell))].merge(local);
          }
        };
  });
  std::vector<Variance> of_parts(s.grid().parts());
  for (const auto& [part, variance] : variances.of_part) of_parts[part] = variance;
  join(of_parts, s.grid());
  return error_norm(s.problem(), s.grid(), of_parts);
}

// A cell and reference coordinates of a point in it; cell -1: outside the domain.
struct Location {
  std::int64_t cell = -1;
  Point xi{};
};

Location locate(const Grid& grid, const Point& x) {
  const Point point = grid.metric().map() == nullptr ? x : grid.metric().map()->pulled_back(x);
  // A point on a lattice plane (to rounding) may belong to the cell on either side: the upper one is tried first.
  std::array<int, 3> index{0, 0, 0};
  std::array<int, 3> other{0, 0, 0};
  Point t{};
  for (int a = 0; a < grid.dim(); ++a) {
    const int extent = grid.extent()[a];
    const double slack = 1e-12 * extent;
    t[a] = grid.metric().lattice_coordinate(a, point[a]);
    if (!(t[a] >= -slack && t[a] <= extent + slack)) return {};
    index[a] = static_cast<int>(std::floor(t[a] + slack));
    other[a] = t[a] - index[a] <= slack ? index[a] - 1 : index[a];
  }
  for (int choice = 0; choice < 1 << grid.dim(); ++choice) {
    std::array<int, 3> position{0, 0, 0};
    bool inside = true;
    for (int a = 0; a < grid.dim(); ++a) {
      position[a] = (choice >> a & 1) != 0 ? other[a] : index[a];
      inside = inside && position[a] >= 0 && position[a] < grid.extent()[a];  // a query point does not wrap
    }
    if (!inside) continue;
    const std::int64_t cell = grid.at(position);
    if (cell < 0) continue;
    Point xi{};
    for (int a = 0; a < grid.dim(); ++a) xi[a] = std::clamp(t[a] - position[a], 0.0, 1.0);
    return {cell, xi};
  }
  return {};
}

// Values of points on all ranks from those of the rank that has their cell; a Value is so many numbers.
template <class Value>
void share_values(const Grid& grid, const std::vector<char>& mine, std::vector<Value>& values) {
  if (grid.partition() == nullptr || values.empty()) return;
  constexpr std::size_t numbers = sizeof(Value) / sizeof(double);
  const auto number = [&](std::size_t i, std::size_t k) -> double& {
    return reinterpret_cast<double*>(values.data())[i * numbers + k];
  };
  std::vector<double> sums;
  for (std::size_t i = 0; i < values.size(); ++i) {
    sums.push_back(mine[i] != 0 ? 1.0 : 0.0);
    for (std::size_t k = 0; k < numbers; ++k) sums.push_back(mine[i] != 0 ? number(i, k) : 0.0);
  }
  grid.add_up<double>(sums);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (sums[i * (numbers + 1)] == 0.0) continue;
    for (std::size_t k = 0; k < numbers; ++k) number(i, k) = sums[i * (numbers + 1) + 1 + k];
  }
}

// One Value per point: NaN outside the domain, else what evaluate(evaluator, cell, value) fills in. Of several cells of
// a point all ranks choose the same.
template <class Value, class Evaluate>
std::vector<Value> at_points(const Solution& s, std::span<const Point> points, const Value& outside,
                             CellEvaluator::Tables tables, Evaluate evaluate) {
  constexpr std::int64_t chunk = 1024;
  const auto count = static_cast<std::int64_t>(points.size());
  std::vector<Value> values(points.size(), outside);
  std::vector<char> mine(points.size(), 0);
  in_agreement(s.grid().communicator(), [&] {
    parallel_for((count + chunk - 1) / chunk, [&] {
      return [&, evaluator = CellEvaluator(s), xi = TensorPoints{{{0.0}, {0.0}, {0.0}}}](std::int64_t block) mutable {
        for (std::int64_t i = block * chunk; i < std::min(count, (block + 1) * chunk); ++i) {
          const Location where = locate(s.grid(), points[i]);
          if (!s.grid().layout().owned_cells().contains(static_cast<Record>(where.cell))) continue;
          mine[i] = 1;
          for (int a = 0; a < 3; ++a) xi[a][0] = where.xi[a];
          evaluator.set_points(xi, tables);
          evaluate(evaluator, where, values[i]);
        }
      };
    });
  });
  share_values(s.grid(), mine, values);
  return values;
}

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

// Integrals that have been computed, or not yet.
struct Solution::Known {
  std::mutex guard;
  std::optional<FlowIntegrals> integrals{};
  std::optional<double> dissipation{};  // of coefficients by cell
  std::shared_ptr<const CellCoefficients> by_cell{};
};

Solution::Solution(Problem problem, std::shared_ptr<const Grid> grid, HostVector coefficients,
                   const std::optional<FlowIntegrals>& integrals, std::shared_ptr<const CellCoefficients> by_cell)
    : problem_(std::move(problem)),
      grid_(std::move(grid)),
      coefficients_(std::make_shared<const HostVector>(std::move(coefficients))),
      known_(std::make_shared<Known>()) {
  known_->integrals = integrals;
  known_->by_cell = std::move(by_cell);
  const std::int64_t expected =
      std::int64_t{grid_->layout().storage()} * record_size(grid_->dim(), problem_.order, problem_.equation);
  if (static_cast<std::int64_t>(coefficients_->size()) != expected) {
    throw InputError("solution: " + std::to_string(coefficients_->size()) + " coefficients given, expected " +
                     std::to_string(expected) + " (whole blocks of records of the grid and of the null record)");
  }
  if (problem_.equation == EquationKind::stokes && !grid_->boundary_hats()) {
    throw InputError(
        "solution: the grid lacks the normal unknowns of upper boundary faces; make it with boundary_hats");
  }
}

std::span<const double> Solution::coefficients() const { return *coefficients_; }

std::vector<double> Solution::unknowns() const {
  require_whole(*grid_, "unknowns");
  const UnknownsByPlace unknowns(*grid_, problem_.order, problem_.equation);
  std::vector<double> values(unknowns.size());
  unknowns.pack(coefficients_->data(), values.data());
  return values;
}

void Solution::set_acceleration(const std::optional<Solution>& acceleration) {
  in_time_ = true;
  acceleration_ = acceleration ? std::make_shared<const Solution>(*acceleration) : nullptr;
}

std::int64_t Solution::find_cell(const Point& point) const { return locate(*grid_, point).cell; }

std::vector<Point> Solution::velocity(std::span<const Point> points) const {
  require_velocity(problem_);
  const double third = grid_->dim() == 3 ? nan : 0.0;
  return at_points(*this, points, Point{nan, nan, third}, CellEvaluator::Tables::values,
                   [](CellEvaluator& evaluator, const Location& where, Point& u) {
                     u[2] = 0.0;
                     evaluator.velocity(where.cell, u.data());
                   });
}

std::vector<double> Solution::pressure(std::span<const Point> points) const {
  return at_points(
      *this, points, nan, CellEvaluator::Tables::values,
      [](CellEvaluator& evaluator, const Location& where, double& p) { evaluator.pressure(where.cell, &p); });
}

std::vector<double> Solution::value(std::span<const Point> points) const { return pressure(points); }

std::vector<Gradient> Solution::velocity_gradient(std::span<const Point> points) const {
  require_velocity(problem_);
  const int dim = grid_->dim();
  Gradient outside{};
  for (int c = 0; c < dim; ++c) std::fill_n(outside[c].begin(), dim, nan);
  return at_points(*this, points, outside, CellEvaluator::Tables::values_and_derivatives,
                   [dim](CellEvaluator& evaluator, const Location& where, Gradient& gradient) {
                     std::array<double, 9> g{};
                     evaluator.gradient(where.cell, g.data());
                     gradient = gradient_of(dim, g.data());
                   });
}

std::vector<FieldValue> Solution::flow_field(FlowField field, std::span<const Point> points) const {
  require_velocity(problem_);
  FieldValue outside{};
  outside.fill(nan);
  const CellPhysics physics(*this);
  return at_points(*this, points, outside, CellEvaluator::Tables::values_and_derivatives,
                   [&](CellEvaluator& evaluator, const Location& where, FieldValue& value) {
                     const TensorPoints xi{{{where.xi[0]}, {where.xi[1]}, {where.xi[2]}}};
                     ViscosityInCells viscosity = physics.viscosity_at(xi, evaluator.dim());
                     FlowAtPoint at{.viscosity = viscosity.of(static_cast<Record>(where.cell))[0],
                                    .mass = physics.mass(where.cell),
                                    .form = physics.form()};
                     std::array<double, 9> g{};
                     evaluator.gradient(where.cell, g.data());
                     at.gradient = gradient_of(evaluator.dim(), g.data());
                     evaluator.pressure(where.cell, &at.pressure);
                     value = value_of(field, at);
                   });
}

Coefficients Solution::equation_coefficients() const {
  if (!has_coefficients_by_cell(problem_)) return coefficients_of(problem_);
  const std::lock_guard lock(known_->guard);
  if (known_->by_cell == nullptr) known_->by_cell = coefficients_of(problem_, *grid_).by_cell;
  return {.by_cell = known_->by_cell};
}

void Solution::evaluate_cell(std::int64_t cell, const std::array<std::vector<double>, 3>& xi, std::vector<double>& u,
                             std::vector<double>& p) const {
  CellEvaluator evaluator(*this);
  evaluator.set_points(xi);
  p.resize(evaluator.points());
  const bool has_velocity = problem_.equation == EquationKind::stokes;
  u.resize(has_velocity ? p.size() * grid_->dim() : 0);
  if (has_velocity) evaluator.velocity(cell, u.data());
  evaluator.pressure(cell, p.data());
}

void Solution::evaluate_cell_gradient(std::int64_t cell, const std::array<std::vector<double>, 3>& xi,
                                      std::vector<double>& g) const {
  require_velocity(problem_);
  CellEvaluator evaluator(*this);
  evaluator.set_points(xi, CellEvaluator::Tables::values_and_derivatives);
  g.resize(static_cast<std::size_t>(evaluator.points()) * grid_->dim() * grid_->dim());
  evaluator.gradient(cell, g.data());
}

std::vector<Record> cells_of_points(const Grid& grid, std::span<const Point> points) {
  std::vector<Record> cells;
  for (const Point& point : points) {
    const auto cell = static_cast<Record>(locate(grid, point).cell);
    if (grid.layout().owned_cells().contains(cell)) cells.push_back(cell);
  }
  return cells;
}

std::vector<std::pair<Record, double>> cells_of_plane(const Grid& grid, int axis, double position) {
  const int dim = grid.dim();
  if (axis < 0 || axis >= dim) {
    throw InputError("flux: axis " + std::to_string(axis) + ", expected 0 to " + std::to_string(dim - 1));
  }
  if (!std::isfinite(position)) throw InputError("flux: position " + std::to_string(position) + " is not finite");
  // The layers of cells that touch the plane: two if it is a lattice plane, where u.e is continuous.
  const double t = grid.metric().lattice_coordinate(axis, position);
  const int extent = grid.extent()[axis];
  const double slack = 1e-12 * extent;
  if (!(t >= -slack && t <= extent + slack)) return {};
  std::vector<int> layers;
  for (const int layer : {static_cast<int>(std::floor(t + slack)), static_cast<int>(std::ceil(t - slack)) - 1}) {
    const bool repeated = !layers.empty() && layers.front() == layer;
    if (layer >= 0 && layer < extent && !repeated) layers.push_back(layer);
  }

  std::vector<std::pair<Record, double>> cells;
  const int first = (axis + 1) % dim;
  const int second = 3 - axis - first;  // in 2D this is direction 2 with a single layer of cells
  std::array<int, 3> cell_position{0, 0, 0};
  for (int j = 0; j < (dim == 3 ? grid.extent()[second] : 1); ++j) {
    for (int i = 0; i < grid.extent()[first]; ++i) {
      for (const int layer : layers) {
        cell_position[axis] = layer;
        cell_position[first] = i;
        if (dim == 3) cell_position[second] = j;
        const Record cell = grid.at(cell_position);
        if (cell < 0) continue;
        if (grid.layout().owned_cells().contains(cell)) cells.emplace_back(cell, std::clamp(t - layer, 0.0, 1.0));
        break;
      }
    }
  }
  return cells;
}

std::vector<Record> records_of_cells(const Grid& grid, std::span<const Record> cells) {
  std::vector<Record> records;
  for (const Record cell : cells) {
    records.push_back(cell);
    for (int a = 0; a < grid.dim(); ++a) records.push_back(grid.neighbour(cell, 2 * a + 1));
  }
  std::ranges::sort(records);
  records.erase(std::ranges::unique(records).begin(), records.end());
  return records;
}

double Solution::flux(int axis, double position) const {
  require_velocity(problem_);
  const auto cells = cells_of_plane(*grid_, axis, position);
  // Over the face of a cell only the constant mode in the transverse directions has an integral:
  // sqrt(h_a) from 1/sqrt(h_a) psi_0, the normal direction contributes sum_j b_j(xi) u_j / sqrt(h_axis).
  const int dim = grid_->dim();
  const int order = problem_.order;
  const int record = record_size(dim, order);
  const int block = axis * power(order + 1, dim);
  const int stride = velocity_stride(dim, order, axis, axis);
  double sum = 0.0;
  for (const auto& [cell, xi] : cells) {
    const std::vector<double> b = continuous(order, xi);
    const Point widths = grid_->widths(cell);
    double scale = 1.0;
    for (int a = 0; a < dim; ++a) scale *= std::pow(widths[a], a == axis ? -0.5 : 0.5);
    const double* own = coefficients_->data() + record_offset(cell, record);
    const double* upper = coefficients_->data() + record_offset(grid_->neighbour(cell, 2 * axis + 1), record);
    double through = b[order + 1] * upper[interleave * block];
    for (int j = 0; j <= order; ++j) through += b[j] * own[interleave * (block + j * stride)];
    sum += scale * through;
  }
  return added_up(sum, *grid_);
}

FlowIntegrals Solution::integrals() const {
  require_velocity(problem_);
  const std::lock_guard lock(known_->guard);
  if (!known_->integrals) known_->integrals = integrate(*this);
  return *known_->integrals;
}

Point Solution::mean_velocity() const {
  Point mean = integrals().velocity;
  for (int a = 0; a < grid_->dim(); ++a) {
    for (double& component : mean) component /= length_along(problem_.mesh, a);
  }
  if (const AffineMap* const map = grid_->metric().map(); map != nullptr) {
    for (double& component : mean) component /= map->jacobian();
  }
  return mean;
}

Point Solution::permeability() const {
  validate_permeability(problem_);
  double square = 0.0;
  for (const ScalarField& f : problem_.force) square += std::pow(f.constant().value_or(0.0), 2);
  Point result = mean_velocity();
  for (double& component : result) component *= problem_.viscosity / std::sqrt(square);
  return result;
}

double Solution::kinetic_energy() const { return summary_of(integrals(), problem_.viscosity, *grid_).kinetic_energy; }

double Solution::dissipation() const {
  if (!has_coefficients_by_cell(problem_)) return summary_of(integrals(), problem_.viscosity, *grid_).dissipation;
  require_velocity(problem_);
  const CellPhysics physics(*this);
  const std::lock_guard lock(known_->guard);
  if (!known_->dissipation) known_->dissipation = integrate_dissipation(*this, physics);
  return *known_->dissipation;
}

double Solution::enstrophy() const { return summary_of(integrals(), problem_.viscosity, *grid_).enstrophy; }

double Solution::divergence_max() const { return summary_of(integrals(), problem_.viscosity, *grid_).divergence_max; }

double Solution::max_speed() const { return integrals().max_speed; }

Errors Solution::errors(const Exact& exact) const {
  Errors errors;
  if (exact.velocity) errors.velocity = velocity_error(*exact.velocity);
  if (exact.pressure) errors.pressure = pressure_error(*exact.pressure);
  if (exact.value) errors.value = value_error(*exact.value);
  return errors;
}

double Solution::velocity_error(const VectorField& exact) const {
  require_velocity(problem_);
  const int dim = grid_->dim();
  return std::sqrt(
      integrate_square(*this, problem_.order + 3, dim,
                       [&exact, dim, values = std::vector<double>()](CellEvaluator& evaluator, CellRule& rule,
                                                                     std::int64_t cell, double* error) mutable {
                         evaluator.velocity(cell, error);
                         values.resize(rule.size());
                         for (int c = 0; c < dim; ++c) {
                           rule.evaluate(exact[c], values);
                           for (std::size_t q = 0; q < values.size(); ++q) error[c + dim * q] -= values[q];
                         }
                       }));
}

double Solution::pressure_error(const ScalarField& exact) const { return scalar_error(*this, exact); }

double Solution::value_error(const ScalarField& exact) const { return scalar_error(*this, exact); }

std::optional<Solution> Solution::gathered() const {
  if (grid_->partition() == nullptr) return *this;
  const Communicator& ranks = grid_->partition()->communicator();
  const int record = record_size(grid_->dim(), problem_.order, problem_.equation);
  const auto visit = [&](const std::vector<Record>& records, auto&& move) {
    for (std::size_t j = 0; j < records.size(); ++j) {
      for (int i = 0; i < record; ++i) {
        move(record_offset(records[j], record) + std::int64_t{interleave} * i, j * record + i);
      }
    }
  };
  const auto message = [](int rank, std::vector<double>& values) {
    return Communicator::Message{rank, reinterpret_cast<std::byte*>(values.data()), values.size() * sizeof(double)};
  };
  const auto acceleration = acceleration_ ? acceleration_->gathered() : std::nullopt;
  const std::vector<Record> records = records_in(*grid_, grid_->owned_box());
  std::vector<double> mine(records.size() * record);
  visit(records, [&](std::int64_t place, std::size_t i) { mine[i] = (*coefficients_)[place]; });
  if (ranks.rank() != 0) {
    const auto send = message(0, mine);
    ranks.exchange({&send, 1}, {});
    return {};
  }
  const auto whole = std::make_shared<const Grid>(grid_->whole());
  HostVector all = zeros(std::int64_t{whole->layout().storage()} * record);
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const std::vector<Record> its = records_in(*whole, grid_->partition()->box(rank, whole->extent()));
    std::vector<double> values(rank == 0 ? 0 : its.size() * record);
    if (rank != 0) {
      const auto receive = message(rank, values);
      ranks.exchange({}, {&receive, 1});
    }
    const std::vector<double>& from = rank == 0 ? mine : values;
    visit(its, [&](std::int64_t place, std::size_t i) { all[place] = from[i]; });
  }
  Solution result(problem_, whole, std::move(all));
  result.in_time_ = in_time_;
  if (acceleration_) result.acceleration_ = std::make_shared<const Solution>(*acceleration);
  return result;
}

double error_norm(const Problem& problem, const Grid& grid, std::span<const Variance> of_parts) {
  const bool poisson = problem.equation == EquationKind::poisson;
  double square = 0.0;
  for (int part = 0; part < std::ssize(of_parts); ++part) {
    const bool known =
        poisson ? problem.mass > 0.0 || grid.has_face(part, Face::velocity) : grid.has_face(part, Face::outflow);
    const Variance& error = of_parts[part];
    square += error.square + (known ? error.measure * error.mean * error.mean : 0.0);
  }
  return std::sqrt(square);
}

}  // namespace solenoid
