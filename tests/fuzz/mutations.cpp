// Feeds the fuzz target of solution files and checkpoints valid files in which every byte was changed, one after the
// other, or which end at every byte, and thousands of files with something wrong in them that the HDF5 library has
// written.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "base/host_vector.hpp"
#include "mesh/grid.hpp"
#include "solenoid/checkpoint.hpp"
#include "solenoid/solution.hpp"

bool read_file(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

bool reads(const Bytes& input) { return read_file(input.data(), input.size()); }

struct Made {
  solenoid::Problem problem;
  std::shared_ptr<const solenoid::Grid> grid;

  [[nodiscard]] solenoid::Solution solution(solenoid::EquationKind equation) const {
    solenoid::Problem solved = problem;
    solved.equation = equation;
    solenoid::HostVector values(std::size_t(grid->layout().storage()) * solenoid::record_size(2, 1, equation), 0.0);
    for (std::size_t i = 0; i < 4; ++i) values[i] = 1.0 + double(i);
    return {solved, grid, std::move(values)};
  }
};

Made made(solenoid::EquationKind equation, bool open = false) {
  solenoid::Problem problem{.mesh = solenoid::Mesh::unit(2, 1), .order = 1, .equation = equation};
  problem.mesh.cells = {2, 1, 1};
  problem.mesh.holes = {{{0, 0, 0}, {1, 1, 1}}};
  if (open) problem.boundary.regions = {{3, solenoid::ScalarField(1.0), {solenoid::SideKind::outflow}}};
  auto grid = std::make_shared<const solenoid::Grid>(problem.mesh, problem.boundary, true);
  return {std::move(problem), std::move(grid)};
}

// An input that is a valid file, of what can be saved.
Bytes valid_file(const char* folder, const auto& what) {
  const auto path = std::filesystem::path(folder) / "mutations.h5";
  what.save(path);
  std::ifstream file(path, std::ios::binary);
  Bytes input{0};
  input.insert(input.end(), std::istreambuf_iterator<char>(file), {});
  return input;
}

solenoid::Checkpoint checkpoint() {
  using solenoid::EquationKind;
  const Made flow = made(EquationKind::stokes, true);
  const solenoid::Solution moment = flow.solution(EquationKind::poisson);
  const solenoid::Solution state = flow.solution(EquationKind::stokes);
  return {.states = {{0.3, 0.1, state}, {0.2, 0.1, state}},
          .steps = 7,
          .averages = solenoid::Averages{0.1, 0.2, state, {moment, moment, moment}, moment},
          .note = "as it was"};
}

int wrong = 0;

void expect(bool condition, const char* what, std::size_t where) {
  if (condition) return;
  std::printf("%s, byte %zu\n", what, where);
  ++wrong;
}

}  // namespace

int main(int /*argc*/, char** arguments) {
  std::size_t inputs = 0;
  const Made flow = made(solenoid::EquationKind::stokes);
  const Made poisson = made(solenoid::EquationKind::poisson);
  for (const Bytes& valid :
       {valid_file(arguments[1], flow.solution(flow.problem.equation)),
        valid_file(arguments[1], poisson.solution(poisson.problem.equation)), valid_file(arguments[1], checkpoint())}) {
    expect(reads(valid), "a valid file is not read", 0);
    for (std::size_t i = 1; i < valid.size(); ++i, inputs += 2) {
      Bytes changed = valid;
      changed[i] ^= std::uint8_t(1U << i % 8);
      expect(!reads(changed), "a changed file is read", i);
      expect(!reads(Bytes(valid.begin(), valid.begin() + std::ptrdiff_t(i))), "a file that was cut off is read", i);
    }
    Bytes longer = valid;
    longer.push_back(0);
    expect(!reads(longer), "a longer file is read", 0);
  }

  std::mt19937 random(1);
  std::size_t read = 0;
  constexpr std::size_t files = 10000;
  for (const std::uint8_t kind : {1, 2}) {  // solutions, checkpoints
    expect(reads({kind}), "a file as it should be is not read", kind);
    std::size_t of_kind = 0;
    for (std::size_t i = 0; i < files / 2; ++i, ++inputs) {
      Bytes input(1 + random() % 100);
      for (auto& byte : input) byte = std::uint8_t(random() % 4 == 0 ? random() : 0);
      input[0] = kind;
      of_kind += reads(input) ? 1 : 0;
    }
    expect(of_kind > 100 && of_kind < files / 2 - 100, "hardly a file is read, or hardly one is not", of_kind);
    read += of_kind;
  }
  std::printf("%zu inputs, %zu of %zu written files read\n", inputs, read, files);
  return wrong == 0 ? 0 : 1;
}
