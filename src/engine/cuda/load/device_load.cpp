#include "engine/cuda/load/device_load.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "element/basis.hpp"
#include "engine/cuda/kernels/load.hpp"
#include "engine/cuda/load/point_program.hpp"

namespace solenoid::cuda {
namespace {

/// Of a thread block's memory: so much that three fit on a multiprocessor, or else one.
constexpr int sparing_numbers = (72 << 10) / sizeof(double);
constexpr int most_numbers = (224 << 10) / sizeof(double);

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
      not_finite_(shared.engine, 1) {
  Engine& engine = shared.engine;
  const Grid& grid = level.grid;
  positions_ = {engine, {&grid.position(0), static_cast<std::size_t>(grid.layout().cells().size())}};
  for (int a = 0; a < grid.dim(); ++a) {
    std::vector<double> planes;
    std::vector<double> widths;
    for (int i = 0; i < grid.extent()[a]; ++i) {
      planes.push_back(grid.metric().plane(a, i));
      widths.push_back(grid.metric().width(a, i));
    }
    planes_[a] = {engine, planes};
    widths_[a] = {engine, widths};
  }
}

bool DeviceLoad::operator()(const VectorField& force, double* b) {
  Engine& engine = shared_.engine;
  const Equation& equation = level_.equation;
  const int components = equation.velocities() > 0 ? equation.dim : 1;
  std::vector<Program> programs;
  for (int c = 0; c < components; ++c) {
    auto program = program_of(force[c]);
    if (!program) return false;
    programs.push_back(std::move(*program));
  }

  const LoadMemory memory(equation.dim, equation.n());
  std::vector<PointProgram> compiled;
  for (const Program& program : programs) {
    PointMemory room{memory.dim,       memory.points(), memory.cells, memory.coordinates_at(),
                     memory.free_at(), sparing_numbers};
    auto one = compile(program, room);
    if (!one) {
      room.most = most_numbers;
      one = compile(program, room);
    }
    if (!one) return false;
    compiled.push_back(std::move(*one));
  }

  LoadArguments arguments{};
  arguments.topology = device_.topology();
  arguments.position = reinterpret_cast<const std::int32_t(*)[3]>(positions_.data());
  arguments.tables = make_tables(equation.n());
  arguments.numbers = memory.least();
  arguments.b = b;
  arguments.not_finite = not_finite_.data();
  for (int a = 0; a < equation.dim; ++a) {
    arguments.plane[a] = planes_[a].data();
    arguments.width[a] = widths_[a].data();
  }
  std::array<Array<PointInstruction>, 3> instructions;
  std::array<Array<double>, 3> constants;
  for (int c = 0; c < components; ++c) {
    instructions[c] = {engine, compiled[c].instructions};
    constants[c] = {engine, compiled[c].constants};
    arguments.component[c] = {instructions[c].data(),
                              constants[c].data(),
                              compiled[c].partial,
                              static_cast<int>(compiled[c].instructions.size()),
                              static_cast<int>(compiled[c].constants.size()),
                              compiled[c].result,
                              force[c].is_zero()};
    arguments.numbers = std::max(arguments.numbers, compiled[c].end);
  }
  engine.zero(b, level_.size() * sizeof(double));
  engine.zero(not_finite_.data(), sizeof(int));
  table_.load(arguments, shared_.stream);
  int not_finite = 0;
  not_finite_.download(&not_finite);
  return not_finite == 0;
}

}  // namespace solenoid::cuda
