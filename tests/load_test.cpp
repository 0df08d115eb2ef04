/// \file
/// Loads: what engines assemble themselves against the host, boundary data alone against all of it, and the programs
/// that thread blocks carry out, carried out here.

#include "solver/load.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "engine/cuda/points/point_program.hpp"
#include "engines.hpp"
#include "levels.hpp"

namespace solenoid {
namespace {

/// All operators and functions, subexpressions of every set of coordinates, some of them used again late.
std::vector<std::string> expressions(int dim) {
  std::vector<std::string> all{
      "0.7",
      "x",
      "-x + (+y)",
      "2*y - 1",
      "sin(2*pi*x)*cos(2*pi*y) + x*exp(-y*y)*(1 + x*y)",
      "x^3*y^2 - (x + 2)^1.5/(3 + y)",
      "x < 0.3 ? y : x >= 0.8 ? 2*x : x <= y && y != 0.1 || x > 2*y ? 1 : x == y",
      "tan(x/9) + asin(x/99) + acos(y/99) + atan(x*y) + sinh(x/9) + cosh(y/9) + tanh(x)",
      "asinh(x) + acosh(2 + x^2) + atanh(y/99) + log2(2 + x^2) + log10(3 + x^2) + ln(4 + y^2)",
      "sqrt(1 + x^2) + abs(x - 0.5) + rint(3*y) + sign(x - y) + atan2(1 + x, 2 + y^2)",
      "min(x, y, 0.4) + max(x*y, 0.1) + sum(x, y, 1) + avg(x, y)",
      "(x*y + 1)*(x - y)*(x*y + 2) + (x - y)/(x*y + 3) + sin(x)*(x*y + sin(x)) + cos(y)*(sin(x) + cos(y)*x*y)",
  };
  if (dim == 3) {
    all.insert(all.end(), {"z", "y*z", "x*y*z - z^2 + (x*y + y*z + z*x)*exp(x*y*z)",
                           "sin(x)*sin(y)*sin(z) + (x*y - z)/(1 + z^2)*sin(y) + (y*z > x ? sin(z) : x*y)"});
  }
  return all;
}

/// As a thread block does it: memory where nothing is set, instructions for some directions one after the other, all
/// others point by point.
std::vector<double> carry_out(const cuda::PointProgram& program, const cuda::PointMemory& memory,
                              const std::vector<double>& coordinates) {
  std::vector<double> numbers(memory.most, std::numeric_limits<double>::quiet_NaN());
  std::copy(coordinates.begin(), coordinates.end(), numbers.begin() + memory.coordinates_at);
  std::copy(program.constants.begin(), program.constants.end(), numbers.begin() + memory.free_at);
  using Index = std::array<int, 4>;  // cell, points
  const auto index = [&](int axes, int i) {
    Index at{i % memory.cells, 0, 0, 0};
    i /= memory.cells;
    for (int a = 0; a < memory.dim; ++a) {
      if ((axes >> a & 1) == 0) continue;
      at[1 + a] = i % memory.points;
      i /= memory.points;
    }
    return at;
  };
  const auto value = [&](const cuda::PointOperand& operand, const Index& at) -> double& {
    if (operand.axes == 0) return numbers[operand.at];
    int place = 0;
    for (int a = memory.dim - 1; a >= 0; --a) {
      if ((operand.axes >> a & 1) != 0) place = place * memory.points + at[1 + a];
    }
    return numbers[operand.at + place * memory.cells + at[0]];
  };
  const auto carry_out = [&](const cuda::PointInstruction& instruction, const Index& at) {
    using Op = Program::Op;
    using F = Program::Function;
    const auto operand = [&](int i) { return value(instruction.operand[i], at); };
    const double a = operand(0);
    const double b = instruction.operands > 1 ? operand(1) : 0.0;
    const double result = [&]() -> double {
      switch (instruction.op) {
        case Op::less_equal: return a <= b;
        case Op::greater_equal: return a >= b;
        case Op::not_equal: return a != b;
        case Op::equal: return a == b;
        case Op::less: return a < b;
        case Op::greater: return a > b;
        case Op::add: return a + b;
        case Op::subtract: return a - b;
        case Op::multiply: return a * b;
        case Op::divide: return a / b;
        case Op::power: return std::pow(a, b);
        case Op::both: return a != 0.0 && b != 0.0;
        case Op::either: return a != 0.0 || b != 0.0;
        case Op::select: return a != 0.0 ? b : operand(2);
        case Op::constant:
        case Op::coordinate: break;
        case Op::call_one:
        case Op::call_two:
          switch (instruction.function) {
            case F::sin: return std::sin(a);
            case F::cos: return std::cos(a);
            case F::tan: return std::tan(a);
            case F::asin: return std::asin(a);
            case F::acos: return std::acos(a);
            case F::atan: return std::atan(a);
            case F::sinh: return std::sinh(a);
            case F::cosh: return std::cosh(a);
            case F::tanh: return std::tanh(a);
            case F::asinh: return std::asinh(a);
            case F::acosh: return std::acosh(a);
            case F::atanh: return std::atanh(a);
            case F::exp: return std::exp(a);
            case F::log: return std::log(a);
            case F::log2: return std::log2(a);
            case F::log10: return std::log10(a);
            case F::sqrt: return std::sqrt(a);
            case F::abs: return std::abs(a);
            case F::rint: return std::rint(a);
            case F::sign: return a < 0.0 ? -1.0 : a > 0.0 ? 1.0 : 0.0;
            case F::plus: return a;
            case F::minus: return -a;
            case F::atan2: return std::atan2(a, b);
            case F::min: return std::min(a, b);
            case F::max: return std::max(a, b);
            case F::other: break;
          }
      }
      return std::numeric_limits<double>::quiet_NaN();
    }();
    value(instruction.result, at) = result;
  };
  for (int i = 0; i < program.partial; ++i) {
    const auto& instruction = program.instructions[i];
    for (int k = 0; k < memory.size(instruction.result.axes); ++k) {
      carry_out(instruction, index(instruction.result.axes, k));
    }
  }
  const int every = (1 << memory.dim) - 1;
  std::vector<double> result;
  for (int k = 0; k < memory.size(every); ++k) {
    const Index at = index(every, k);
    for (std::size_t i = program.partial; i < program.instructions.size(); ++i) carry_out(program.instructions[i], at);
    result.push_back(value(program.result, at));
  }
  return result;
}

TEST(PointProgram, HasTheValuesOfTheField) {
  for (const int dim : {2, 3}) {
    const cuda::PointMemory memory{dim, 3, 4, 5, 5 + dim * 12, 4000};
    std::vector<double> coordinates;
    for (int i = 0; i < dim * 12; ++i) coordinates.push_back(0.1 + 0.9 * std::sin(1.0 + i * i));
    const auto expression = [](const std::string& text) { return ScalarField::expression(text, 3); };
    std::vector<std::pair<std::string, ScalarField>> fields;  // z is 0 in the plane
    for (const std::string& text : expressions(3)) fields.emplace_back(text, expression(text));
    fields.emplace_back(
        "pieces", ScalarField::piecewise(expression("x*y"), {{expression("x < 0.4"), 2.5},
                                                             {1.0, expression("sin(x) + y")},
                                                             {expression("x + y < 0.3"), expression("1/(x + y - 9)")},
                                                             {expression("y > 0.7"), expression("x*y*z + x")}}));
    for (const auto& [text, field] : fields) {
      const auto program = cuda::compile(*program_of(field), memory);
      ASSERT_TRUE(program) << text;
      const auto values = carry_out(*program, memory, coordinates);
      for (int i = 0; i < memory.size((1 << dim) - 1); ++i) {
        Point point{};
        int rest = i / 4;
        for (int a = 0; a < dim; ++a, rest /= 3) point[a] = coordinates[(a * 3 + rest % 3) * 4 + i % 4];
        const double expected = field(point);
        EXPECT_NEAR(values[i], expected, 1e-14 * (1.0 + std::abs(expected))) << text << ", point " << i;
      }
    }
  }
}

TEST(PointProgram, IsRefusedWhereItDoesNotFit) {
  const std::string text = "(x + y)*(x - y) + (x*y + 1)*(x/(2 + y))";
  const Program program = *program_of(ScalarField::expression(text, 2));
  cuda::PointMemory memory{2, 4, 8, 0, 64, 4000};
  const int needed = cuda::compile(program, memory)->end;
  memory.most = needed;
  EXPECT_TRUE(cuda::compile(program, memory));
  memory.most = needed - 1;
  EXPECT_FALSE(cuda::compile(program, memory));
  EXPECT_FALSE(program_of(ScalarField(std::function<double(const Point&)>([](const Point& x) { return x[0]; }))));
}

double norm(const HostVector& v) { return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0)); }

struct LoadCase {
  test::MeshCase mesh;
  int order;
};
std::vector<LoadCase> load_cases() {
  std::vector<LoadCase> cases;
  for (const int dim : {2, 3}) {
    for (const auto& mesh : test::mesh_cases(dim)) {
      for (const int order : available_orders(dim, mesh.equation)) cases.push_back({mesh, order});
    }
  }
  return cases;
}

std::string name_of(const testing::TestParamInfo<LoadCase>& info) {
  const auto& [mesh, order] = info.param;
  return std::to_string(mesh.mesh.dim) + "d_" + mesh.name + "_k" + std::to_string(order);
}

class Loads : public testing::TestWithParam<LoadCase> {
 protected:
  [[nodiscard]] static Problem problem() {
    const test::MeshCase& mesh = GetParam().mesh;
    return {.mesh = mesh.mesh, .order = GetParam().order, .boundary = mesh.boundary, .equation = mesh.equation};
  }
};

TEST_P(Loads, OfEnginesAreThoseOfTheHost) {
  const Level level = GetParam().mesh.level(GetParam().order);
  const int dim = level.equation.dim;
  const auto texts = expressions(dim);
  Problem problem = Loads::problem();
  problem.boundary = without_data(problem.boundary);
  for (const auto& choice : test::engines()) {
    if (!test::has_order_of(choice.get(), level)) continue;
    const auto kernels = make_kernels<double>(choice.get(), level, LocalSolverKind::direct);
    Vector<double> b(choice.get(), level.size());
    for (std::size_t first = 0; first < texts.size(); first += dim) {
      for (int c = 0; c < dim; ++c) problem.force[c] = ScalarField::expression(texts[(first + c) % texts.size()], dim);
      HostVector found(level.size());
      std::fill(found.begin(), found.end(), std::numeric_limits<double>::quiet_NaN());
      b.upload(found.data());
      if (!kernels->load(problem.force, b.data())) {
        EXPECT_EQ(choice.device, DeviceChoice::cpu);
        break;
      }
      b.download(found.data());
      const HostVector expected = assemble_load(problem, level);
      const double scale = norm(expected);
      std::transform(found.begin(), found.end(), expected.begin(), found.begin(), std::minus<>());
      EXPECT_LE(norm(found), 1e-13 * scale) << choice.name << ", from " << texts[first];
    }
    problem.force = {ScalarField(std::function<double(const Point&)>([](const Point& x) { return x[0]; })), 0.0, 0.0};
    EXPECT_FALSE(kernels->load(problem.force, b.data())) << "a function of the caller";
    problem.force[0] = ScalarField::expression("1/(x - x)", dim);
    EXPECT_FALSE(kernels->load(problem.force, b.data())) << "not finite";
  }
}

TEST_P(Loads, OfTheBoundaryAreWhatItsDataAdd) {
  const Level level = GetParam().mesh.level(GetParam().order);
  Problem problem = Loads::problem();
  for (int side = 0; side < 6; ++side) {
    Side& at = problem.boundary.sides[side];
    if (at.kind == SideKind::periodic || at.kind == SideKind::slip) continue;
    at.data = {ScalarField::expression("x - 2*y", 2), 0.3 * side, ScalarField::expression("x*y + 1", 2)};
  }
  const HostVector expected = assemble_load(problem, level);
  HostVector found = zeros(level.size());
  const SparseVector sparse = assemble_boundary_load(problem, level);
  for (std::size_t i = 0; i < sparse.places.size(); ++i) {
    EXPECT_EQ(found[sparse.places[i]], 0.0) << "a place that is there twice";
    found[sparse.places[i]] = sparse.values[i];
  }
  const double scale = norm(expected);
  std::transform(found.begin(), found.end(), expected.begin(), found.begin(), std::minus<>());
  EXPECT_LE(norm(found), 1e-15 * scale);
}

INSTANTIATE_TEST_SUITE_P(Cases, Loads, testing::ValuesIn(load_cases()), name_of);

/// Uniform, and unlike those of other seeds and of neighbours.
TEST(RandomLoads, AreRandom) {
  const Level level({.dim = 2, .order = 1}, {}, Grid(Mesh::unit(2, 6), {}));
  std::vector<std::vector<double>> loads;
  for (const std::uint64_t seed : {1, 2, 3}) {
    const HostVector vector = random_vector(level, seed);
    std::vector<double>& load = loads.emplace_back();
    level.for_each_unknown([&](std::int64_t i) { load.push_back(vector[i]); });
  }
  const auto unknowns = std::ssize(loads[0]);
  ASSERT_EQ(unknowns, level.dofs());
  const double few = 4.0 / std::sqrt(static_cast<double>(unknowns));  // standard deviations of a mean of such numbers
  const auto product = [&](const std::vector<double>& a, const std::vector<double>& b, int shift) {
    return std::inner_product(a.begin(), a.end() - shift, b.begin() + shift, 0.0) / static_cast<double>(unknowns);
  };
  for (const std::vector<double>& load : loads) {
    const auto [least, most] = std::minmax_element(load.begin(), load.end());
    EXPECT_GE(*least, -1.0);
    EXPECT_LT(*most, 1.0);
    EXPECT_GT(*most - *least, 1.99);
    EXPECT_NEAR(std::accumulate(load.begin(), load.end(), 0.0) / static_cast<double>(unknowns), 0.0, few);
    EXPECT_NEAR(product(load, load, 0), 1.0 / 3.0, few);
    for (const int shift : {1, 2, 4, 12}) EXPECT_NEAR(product(load, load, shift), 0.0, few) << shift;
  }
  EXPECT_NEAR(product(loads[0], loads[1], 0), 0.0, few);
  EXPECT_NEAR(product(loads[1], loads[2], 0), 0.0, few);
}

}  // namespace
}  // namespace solenoid
