#include "engine/cuda/points/device_load.hpp"

#include <algorithm>
#include <span>

#include "element/basis.hpp"
#include "engine/cuda/kernels/load.hpp"

namespace solenoid::cuda {
namespace {

LoadTables make_tables(int n) {
  const Quadrature rule = gauss(n + 1);
  LoadTables tables{};
  for (std::size_t q = 0; q < rule.points.size(); ++q) {
    tables.point[q] = rule.points[q];
    const auto psi = legendre(n - 1, rule.points[q]);
    const auto b = continuous(n - 1, rule.points[q]);
    for (int i = 0; i < n; ++i) tables.legendre[i][q] = rule.weights[q] * psi[i];
    for (int i = 0; i <= n; ++i) tables.continuous[i][q] = rule.weights[q] * b[i];
  }
  return tables;
}

}  // namespace

DeviceLoad::DeviceLoad(Shared& shared, const Level& level, const DeviceLevel& device)
    : shared_(shared),
      level_(level),
      device_(device),
      table_(kernel_table<double>(level.equation.kind, level.equation.dim, level.equation.order)),
      places_(shared.engine, level.grid),
      not_finite_(shared.engine, 1) {}

bool DeviceLoad::operator()(const VectorField& force, double* b) {
  Engine& engine = shared_.engine;
  const Equation& equation = level_.equation;
  const std::size_t components = equation.velocities() > 0 ? equation.dim : 1;
  const LoadMemory memory(equation.dim, equation.n());
  const auto fields =
      DeviceFields::compile(engine, level_.grid, std::span(force).first(components),
                            {memory.dim, memory.points(), memory.cells, memory.coordinates_at(), memory.free_at(), 0});
  if (!fields) return false;

  LoadArguments arguments{};
  arguments.topology = device_.topology();
  arguments.places = places_.places();
  arguments.tables = make_tables(equation.n());
  for (std::size_t c = 0; c < components; ++c) arguments.component[c] = (*fields)[c];
  arguments.numbers = std::max(memory.least(), fields->numbers());
  arguments.b = b;
  arguments.not_finite = not_finite_.data();
  engine.zero(b, level_.size() * sizeof(double));
  engine.zero(not_finite_.data(), sizeof(int));
  table_.load(arguments, shared_.stream);
  int not_finite = 0;
  not_finite_.download(&not_finite);
  return not_finite == 0;
}

}  // namespace solenoid::cuda
