#include "engine/cuda/points/device_integrator.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/statistics.hpp"
#include "element/basis.hpp"
#include "engine/cuda/foreign_array.hpp"
#include "engine/cuda/kernels/flow_integrals.hpp"
#include "engine/cuda/points/device_fields.hpp"
#include "engine/cuda/points/device_forces.hpp"
#include "engine/cuda/points/integrals.hpp"
#include "engine/flow_sums.hpp"

namespace solenoid::cuda {
namespace {

/// The rule and the functions at its points, as IntegralMemory has them first.
std::vector<double> make_tables(const IntegralMemory& memory) {
  const Quadrature rule = gauss(memory.points);
  std::vector<double> tables(memory.table_size(), 0.0);
  for (int q = 0; q < memory.points; ++q) {
    tables[q] = rule.points[q];
    tables[memory.weight_at() + q] = rule.weights[q];
    const auto enter = [&](bool of_p, const std::vector<double>& values) {
      std::ranges::copy(values, &tables[memory.function_at(of_p) + q * (memory.n + 1)]);
    };
    enter(false, legendre(memory.n - 1, rule.points[q]));
    enter(true, continuous(memory.n - 1, rule.points[q]));
  }
  return tables;
}

/// A rule of so many points in each direction.
struct Rule {
  IntegralMemory memory;
  Array<double> tables;

  Rule(Engine& engine, const Equation& equation, int points)
      : memory(equation.dim, equation.n(), points), tables(engine, make_tables(memory)) {}
};

class DeviceIntegrator final : public Integrator {
 public:
  DeviceIntegrator(Shared& shared, const Level& level)
      : shared_(shared),
        level_(level),
        places_(shared.engine, level.grid),
        for_errors_(shared.engine, level.equation, level.equation.n() + 2),
        functions_(make_point_tables(level.equation.order, flow_points(level.equation.order))),
        flow_(shared.engine, most_flow_blocks * shared.multiprocessors),
        map_(cell_map(level.grid)),
        blocks_(4 * shared.multiprocessors),
        difference_(shared.engine, blocks_),
        not_finite_(shared.engine, 1) {
    const Grid& grid = level.grid;
    for (int c = 0; c < level.equation.velocities(); ++c) {
      upper_[c] = {shared.engine, {grid.neighbours(2 * c + 1), static_cast<std::size_t>(cells())}};
    }
  }

  [[nodiscard]] FlowIntegrals flow(const double* x) override { return integrals_of(sums(x, {}), level_.grid); }
  [[nodiscard]] double dissipation(const double* x, const Coefficients& coefficients) override {
    const auto device = shared_.level(level_);
    return dissipation_of(sums(x, device->viscosity(coefficients)), level_.grid);
  }

  [[nodiscard]] std::optional<double> velocity_error_square(const VectorField& exact, const double* x) override {
    const auto fields = compiled(std::span(exact).first(level_.equation.dim));
    if (!fields) return {};
    const auto sums = integrate(difference(*fields, 0, x));
    if (!sums) return {};
    return sums->square;
  }

  [[nodiscard]] std::optional<std::vector<Variance>> scalar_errors(const ScalarField& exact, const double* x) override {
    const auto fields = compiled({&exact, 1});
    const int parts = level_.grid.parts();
    if (!fields || parts > most_parts) return {};
    Array<std::int32_t> part;  // of each cell, where there are several
    if (parts > 1) {
      std::vector<std::int32_t> of_cells;
      for (const Record cell : level_.grid.layout().owned_cells()) of_cells.push_back(level_.grid.part(cell));
      part = {shared_.engine, of_cells};
    }
    std::vector<Variance> errors;
    for (int i = 0; i < parts; ++i) {
      DifferenceArguments arguments = difference(*fields, level_.equation.velocities(), x);
      arguments.part = parts > 1 ? part.data() : nullptr;
      arguments.of_part = i;
      auto sums = integrate(arguments);
      if (!sums) return {};
      // Once more about the mean: nothing is lost to cancellation.
      arguments.shift = sums->sum / sums->measure;
      sums = integrate(arguments);
      const double rest = sums->sum / sums->measure;
      errors.push_back({sums->measure, arguments.shift + rest, sums->square - rest * sums->sum});
    }
    return errors;
  }

  [[nodiscard]] std::optional<SumsOfBodies> forces(const FlowOfForces& flow) override {
    if (level_.equation.kind != EquationKind::stokes) return {};
    if (!forces_) forces_.emplace(shared_, level_, flow.problem);
    return (*forces_)(flow, places_.places());
  }

  void velocity_at(int points, const double* x, double* values) override {
    take_array(values, "velocities");
    const Rule rule(shared_.engine, level_.equation, points);
    const LatticeArray array{values, {counts(points)[0], counts(points)[1], counts(points)[2]}};
    cuda::velocity_at(field(rule, x), map_, array, blocks_, shared_.stream);
    shared_.engine.synchronise();
  }
  void face_fluxes(const double* x, const std::array<double*, 3>& fluxes) override {
    for (int a = 0; a < level_.equation.dim; ++a) {
      take_array(fluxes[a], "fluxes");
      auto count = counts(1);
      ++count[a];
      const LatticeArray array{fluxes[a], {count[0], count[1], count[2]}};
      cuda::face_fluxes(field(for_errors_, x), a, array, shared_.stream);
    }
    shared_.engine.synchronise();
  }

 private:
  [[nodiscard]] std::vector<FlowPartial> sums(const double* x, const ViscosityOfCells& viscosity) {
    const Equation& equation = level_.equation;
    FlowIntegralsArguments arguments{};
    arguments.tables = &functions_;
    arguments.places = places_.places();
    for (int c = 0; c < equation.dim; ++c) arguments.upper[c] = upper_[c].data();
    arguments.cells = cells();
    arguments.map = map_;
    arguments.stress_form = equation.form == ViscousForm::stress;
    arguments.viscosity = viscosity;
    arguments.x = x;
    arguments.multiprocessors = shared_.multiprocessors;
    arguments.partials = flow_.data();
    const int blocks =
        kernel_table<double>(equation.kind, equation.dim, equation.order).integrate_flow(arguments, shared_.stream);
    std::vector<FlowPartial> partials(blocks);
    shared_.engine.download(flow_.data(), partials.data(), partials.size() * sizeof(FlowPartial));
    return partials;
  }

  /// Of points along each direction, so many in each cell.
  [[nodiscard]] std::array<int, 3> counts(int points) const {
    std::array<int, 3> counts{1, 1, 1};
    for (int a = 0; a < level_.equation.dim; ++a) counts[a] = level_.grid.extent()[a] * points;
    return counts;
  }

  /// A part takes two passes over all cells; more of them are left to the host.
  static constexpr int most_parts = 8;

  [[nodiscard]] std::int32_t cells() const {
    return static_cast<std::int32_t>(level_.grid.layout().owned_cells().size());
  }
  [[nodiscard]] DiscreteField field(const Rule& rule, const double* x) const {
    return {rule.memory,
            rule.tables.data(),
            places_.places(),
            {upper_[0].data(), upper_[1].data(), upper_[2].data()},
            cells(),
            level_.equation.velocities(),
            x};
  }
  /// nullopt where the host has to know the fields; programs know points of boxes alone.
  [[nodiscard]] std::optional<DeviceFields> compiled(std::span<const ScalarField> exact) const {
    if (map_.sheared) return {};
    const IntegralMemory& memory = for_errors_.memory;
    return DeviceFields::compile(
        shared_.engine, level_.grid, exact,
        {memory.dim, memory.points, memory.cells, memory.coordinates_at(), memory.fourth_at(), 0});
  }
  [[nodiscard]] DifferenceArguments difference(const DeviceFields& fields, int component, const double* x) {
    DifferenceArguments arguments{};
    arguments.field = field(for_errors_, x);
    for (std::size_t c = 0; c < fields.size(); ++c) arguments.exact[c] = fields[c];
    arguments.component = component;
    arguments.components = static_cast<int>(fields.size());
    arguments.numbers = std::max(for_errors_.memory.numbers(), fields.numbers());
    arguments.not_finite = not_finite_.data();
    return arguments;
  }
  /// nullopt if a given field is not finite somewhere.
  std::optional<DifferencePartial> integrate(const DifferenceArguments& arguments) {
    shared_.engine.zero(not_finite_.data(), sizeof(int));
    integrate_difference(arguments, blocks_, difference_.data(), shared_.stream);
    DifferencePartial all{};
    for (const DifferencePartial& partial : downloaded(difference_)) {
      all.measure += partial.measure;
      all.sum += partial.sum;
      all.square += partial.square;
    }
    int not_finite = 0;
    not_finite_.download(&not_finite);
    if (not_finite != 0) return {};
    return all;
  }
  template <class T>
  static std::vector<T> downloaded(const Vector<T>& vector) {
    std::vector<T> values(vector.size());
    vector.download(values.data());
    return values;
  }

  Shared& shared_;
  const Level& level_;
  DevicePlaces places_;
  std::array<Array<Record>, 3> upper_;
  Rule for_errors_;
  PointTables functions_;  // for flow()
  Vector<FlowPartial> flow_;
  CellMap map_;
  int blocks_;
  Vector<DifferencePartial> difference_;
  Vector<int> not_finite_;
  std::optional<DeviceForces> forces_;  // once they are asked for
};

}  // namespace

std::unique_ptr<Integrator> make_integrator(Shared& shared, const Level& level) {
  return std::make_unique<DeviceIntegrator>(shared, level);
}

}  // namespace solenoid::cuda
