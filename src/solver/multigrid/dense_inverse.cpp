#include "solver/multigrid/dense_inverse.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

namespace solenoid {
namespace {

/// Columns of the matrix that are computed together, on as many copies of the level.
constexpr std::int64_t together = 64;

/// Puts the places of a field's unknowns behind those that are there.
DenseField append_field(const Level& level, int field, std::vector<std::int64_t>& index) {
  const Equation& equation = level.equation;
  const int block = power(equation.n(), equation.dim);
  constexpr std::int64_t none = -1;
  std::vector<std::int64_t> first(level.grid.layout().storage(), none);  // [record]: the unknown of the constant mode
  DenseField result;
  result.begin = static_cast<std::int64_t>(index.size());
  for (const Record r : level.grid.layout().records()) {
    level.for_each_unknown_of(r, [&](int i) {
      if (i / block != field) return;
      if (i % block == 0) first[r] = static_cast<std::int64_t>(index.size());
      index.push_back(level.index(r, i));
    });
  }
  result.end = static_cast<std::int64_t>(index.size());
  for (const Constant& constant : level.constants) {
    if (constant.field != field) continue;
    auto& unknowns = result.constants.emplace_back();
    for (const Record r : constant.records) unknowns.push_back(first[r]);
    if (constant.records.empty()) {
      std::copy_if(first.begin(), first.end(), std::back_inserter(unknowns), [](auto i) { return i != none; });
    }
  }
  return result;
}

/// Places of a level's unknowns in vectors of Grid::copies.
std::vector<std::int64_t> places_in_copy(const Level& level, const std::vector<std::int64_t>& index,
                                         const Level& copies, std::int64_t copy) {
  const std::int64_t cells = level.grid.layout().cells().size();
  const std::int64_t hats = level.grid.layout().hats().size();
  const int record_size = level.equation.record();
  const auto of_copy = [&](std::int64_t record) {
    return record < cells ? copy * cells + record : copies.grid.layout().hats().first() + copy * hats + record - cells;
  };
  std::vector<std::int64_t> places(index.size());
  std::transform(index.begin(), index.end(), places.begin(), [&](std::int64_t place) {
    const std::int64_t block = place / (interleave * record_size);
    const std::int64_t in_block = place % (interleave * record_size);
    return copies.index(of_copy(block * interleave + in_block % interleave), static_cast<int>(in_block / interleave));
  });
  return places;
}

}  // namespace

/// Unit vectors on copies of the level: one application gives many columns.
Vector<double> operator_matrix(Engine& engine, const Level& level, LocalSolverKind local,
                               const std::vector<std::int64_t>& index) {
  const auto count = static_cast<std::int64_t>(index.size());
  const std::int64_t columns = std::min(together, count);
  const int count_of_copies = static_cast<int>(columns);
  const Level copies(level.equation, copied(level.coefficients, count_of_copies), level.grid.copies(count_of_copies));
  std::vector<std::int64_t> host(columns * count);
  for (std::int64_t copy = 0; copy < columns; ++copy) {
    const auto places = places_in_copy(level, index, copies, copy);
    std::copy(places.begin(), places.end(), host.begin() + copy * count);
  }
  Vector<std::int64_t> places(engine, columns * count);  // of all unknowns in the first copy, in the second and so on
  places.upload(host.data());
  for (std::int64_t j = 0; j < count; ++j) host[j] = host[j % columns * count + j];
  Vector<std::int64_t> units(engine, count);  // of unknown j in the copy that column j is computed on
  units.upload(host.data());

  const auto kernels = make_kernels<double>(engine, copies, local);
  Vector<double> x(engine, copies.size());
  Vector<double> y(engine, copies.size());
  Vector<double> values(engine, 2 * columns);
  const std::vector<double> ones(columns, 1.0);
  engine.upload(ones.data(), values.data(), columns * sizeof(double));
  const double* const one = values.data();
  const double* const zero = values.data() + columns;
  Vector<double> matrix(engine, count * count);
  for (std::int64_t first = 0; first < count; first += columns) {
    const std::int64_t number = std::min(columns, count - first);
    kernels->scatter(number, units.data() + first, one, x.data());
    kernels->apply(x.data(), y.data());
    kernels->gather(number * count, places.data(), y.data(), matrix.data() + first * count);
    kernels->scatter(number, units.data() + first, zero, x.data());
  }
  return matrix;
}

/// Velocities come first: their block is positive definite, and what remains for the pressure is negative definite.
template <class T>
DenseInverse<T> dense_inverse(Engine& engine, Kernels<T>& kernels, LocalSolverKind local) {
  const Level& level = kernels.level();
  std::vector<std::int64_t> index;
  std::vector<DenseField> fields;
  for (int field = 0; field <= level.equation.velocities(); ++field) {
    fields.push_back(append_field(level, field, index));
  }
  const auto count = static_cast<std::int64_t>(index.size());
  DenseInverse<T> inverse{Vector<std::int64_t>(engine, count), Vector<T>(engine, count * count)};
  inverse.index.upload(index.data());
  Vector<double> matrix = operator_matrix(engine, level, local, index);
  kernels.invert_dense(fields, matrix.data(), inverse.matrix.data());
  return inverse;
}

template DenseInverse<float> dense_inverse(Engine&, Kernels<float>&, LocalSolverKind);
template DenseInverse<double> dense_inverse(Engine&, Kernels<double>&, LocalSolverKind);

}  // namespace solenoid
