#include "solver/mac/sparse_multigrid.hpp"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>

#include "solver/mac/pairs.hpp"

namespace solenoid {
namespace {

/// Nodes up to which it pays to look for pairs, wherever they are, instead of blocks.
constexpr std::int64_t most_paired = 30'000;

/// Rows whose neighbours take more colours than a lattice are few, and kernels for each colour would take long: these
/// are smoothed by Jacobi's method. Damped so that no eigenvalue of an M-matrix, up to 2, is amplified.
constexpr int colours_of_lattice = 2;
constexpr double damping = 0.7;

/// What corrections of a V-cycle are multiplied with.
constexpr double stiffness_of_constants = 1.8;

/// The nodes of each part of a matrix that nothing holds: constants there are mapped to zero. Nodes are numbered as in
/// HostMatrix::nodes.
std::vector<std::vector<std::int64_t>> constants_of(const HostMatrix& matrix) {
  std::vector<std::vector<std::int64_t>> constants;
  std::vector<std::int64_t> number(matrix.rows, -1);
  for (std::int64_t i = 0; i < std::ssize(matrix.nodes); ++i) number[matrix.nodes[i]] = i;
  std::vector<bool> seen(matrix.rows, false);
  std::vector<std::int32_t> front;
  for (const std::int32_t first : matrix.nodes) {
    if (seen[first]) continue;
    std::vector<std::int64_t> members;
    double held = 0.0;
    double largest = 0.0;
    seen[first] = true;
    front.assign(1, first);
    while (!front.empty()) {
      const std::int32_t here = front.back();
      front.pop_back();
      members.push_back(number[here]);
      held += matrix.diagonal[here];
      largest = std::max(largest, matrix.diagonal[here]);
      matrix.for_row(here, [&](std::int32_t other, double value) {
        held += value;
        if (seen[other] || value == 0.0) return;
        seen[other] = true;
        front.push_back(other);
      });
    }
    constexpr double rounding = 1e-9;
    if (held <= rounding * largest) constants.push_back(std::move(members));
  }
  return constants;
}

}  // namespace

template <class T>
SparseMultigrid<T>::SparseMultigrid(Engine& engine, SparseAssembly& assembly, SparseKernels<T>& kernels,
                                    Kernels<T>& dense, const SparseRows& rows, AssembledMatrix finest,
                                    const SparseMultigridOptions& options)
    : engine_(engine), kernels_(kernels), dense_(dense), options_(options) {
  const std::int64_t few_nodes = most_inverted(engine.dense_limits(), options.k_cycle);
  bool paired = false;
  SparseRows coarser;  // those of `matrix` on levels below the finest
  const SparseRows* of = &rows;
  AssembledMatrix matrix = std::move(finest);
  const auto coarsened = [&]() -> std::optional<Coarsened> {
    paired = paired || (options.merge == Merge::connected && of->nodes <= most_paired);
    std::optional<Aggregation> aggregation;
    if (paired) {
      aggregation = aggregate_pairs(engine, *of, matrix);
    } else {
      aggregation = assembly.aggregate(*of, matrix, options.merge);
    }
    if (!aggregation) return {};
    Coarsened coarse = assembly.coarsen(*of, matrix, *aggregation, smoothing_of(*of).solved_from);
    if (coarse.rows.nodes == 0 || coarse.rows.nodes == of->nodes) return {};
    return coarse;
  };
  while (of->nodes > few_nodes) {
    std::optional<Coarsened> coarse = coarsened();
    add_level(assembly, *of, std::move(matrix));
    if (!coarse) return;
    set_aggregates(levels_.back(), *coarse);
    coarser = std::move(coarse->rows);
    matrix = std::move(coarse->matrix);
    of = &coarser;
  }
  invert_coarsest(assembly, *of, matrix);
  add_level(assembly, *of, std::move(matrix));
}

template <class T>
typename SparseMultigrid<T>::Smoothing SparseMultigrid<T>::smoothing_of(const SparseRows& rows) const {
  const bool finest = levels_.empty();
  const bool inverted = coarsest_inverse_.size() > 0;
  if (inverted) return {.by_colours = true, .solved_from = rows.count(), .solved_to = 0};
  if (!finest && rows.colours > colours_of_lattice)
    return {.by_colours = false, .solved_from = rows.count(), .solved_to = 0};
  return {.by_colours = true, .solved_from = rows.colour_begin[rows.colours - 1], .solved_to = rows.colour_begin[1]};
}

template <class T>
void SparseMultigrid<T>::add_level(SparseAssembly& assembly, const SparseRows& rows, AssembledMatrix matrix) {
  LevelData data;
  data.value = Vector<std::uint16_t>(engine_, matrix.value.size());
  assembly.round_entries(rows, matrix, data.value.data());
  data.begin = std::move(matrix.begin);
  data.column = std::move(matrix.column);
  const auto keep = [&](Vector<double>& numbers) {
    if constexpr (std::is_same_v<T, double>) {
      return std::move(numbers);
    } else {
      Vector<T> converted(engine_, numbers.size());
      assembly.convert(numbers.size(), numbers.data(), converted.data());
      return converted;
    }
  };
  Vector<double> inverse(engine_, rows.storage());
  assembly.invert(rows.storage(), matrix.diagonal.data(), inverse.data());
  data.inverse_diagonal = keep(inverse);
  data.diagonal = keep(matrix.diagonal);
  const Smoothing smoothing = smoothing_of(rows);
  data.by_colours = smoothing.by_colours;
  data.matrix = {.rows = rows.count(),
                 .colours = rows.colours,
                 .colour_begin = rows.colour_begin,
                 .begin = data.begin.data(),
                 .column = data.column.data(),
                 .value = data.value.data(),
                 .diagonal = data.diagonal.data(),
                 .inverse_diagonal = data.inverse_diagonal.data(),
                 .solved_from = smoothing.solved_from,
                 .solved_to = smoothing.solved_to};
  const bool finest = levels_.empty();
  const auto vector = [&] { return Vector<T>(engine_, data.matrix.storage()); };
  if (!finest) {
    data.b = vector();
    data.x = vector();
  }
  data.r = vector();
  if (finest || options_.k_cycle) {
    const int steps = finest ? options_.steps : 2;
    if (steps > 1) data.rest = vector();
    for (int i = 0; i < steps; ++i) {
      data.d.push_back(vector());
      data.a_d.push_back(vector());
    }
    data.curvature = Vector<T>(engine_, Directions<T>::most);
  }
  levels_.push_back(std::move(data));
}

template <class T>
void SparseMultigrid<T>::set_aggregates(LevelData& fine, Coarsened& coarse) {
  fine.parent = std::move(coarse.parent);
  fine.child_begin = std::move(coarse.child_begin);
  fine.child = std::move(coarse.child);
  fine.aggregates = {coarse.rows.count(), fine.parent.data(), fine.child_begin.data(), fine.child.data()};
}

template <class T>
void SparseMultigrid<T>::invert_coarsest(SparseAssembly& assembly, const SparseRows& rows,
                                         const AssembledMatrix& sparse) {
  const HostMatrix host(engine_, rows, sparse);
  const auto count = std::ssize(host.nodes);
  if (count == 0) return;
  const DenseField all{0, count, constants_of(host)};
  coarsest_row_ = on_device(engine_, std::vector<std::int64_t>(host.nodes.begin(), host.nodes.end()));
  coarsest_inverse_ = Vector<T>(engine_, count * count);
  Vector<double> matrix(engine_, count * count);
  assembly.dense(rows, sparse, count, coarsest_row_.data(), matrix.data());
  dense_.invert_dense({&all, 1}, matrix.data(), coarsest_inverse_.data());
}

template <class T>
void SparseMultigrid<T>::conjugate_gradients(int level, int steps, const T* b, T* x) {
  LevelData& data = levels_[level];
  Directions<T> directions;
  directions.curvature = data.curvature.data();
  for (int step = 0; step < steps; ++step) {
    const T* const residual = step == 0 ? b : data.rest.data();
    T* const d = data.d[step].data();
    cycle(level, residual, d);
    directions.d[step] = d;
    directions.a_d[step] = data.a_d[step].data();
    directions.count = step + 1;
    kernels_.multiply_sums(data.matrix, directions, residual);
    T* const rest = step + 1 < steps ? data.rest.data() : nullptr;
    kernels_.advance(data.matrix, directions, residual, rest, step == 0, x);
  }
}

template <class T>
void SparseMultigrid<T>::cycle(int level, const T* b, T* x) {
  LevelData& data = levels_[level];
  const SparseMatrix<T>& a = data.matrix;
  if (is_inverted(level)) {
    dense_.dense(coarsest_row_.size(), coarsest_row_.data(), coarsest_inverse_.data(), b, x);
    return;
  }
  if (data.by_colours) {
    kernels_.relax_zero(a, b, x);
    for (int colour = 1; colour < a.colours; ++colour) kernels_.relax(a, colour, b, x);
  } else {
    kernels_.jacobi_twice_from_zero(a, T(damping), b, x);
  }
  if (level + 1 < levels()) {
    LevelData& coarse = levels_[level + 1];
    kernels_.residual(a, b, x, data.r.data());
    kernels_.restrict_to(data.aggregates, data.r.data(), coarse.b.data());
    const bool last = level + 2 == levels();
    if (options_.k_cycle && !last) {
      conjugate_gradients(level + 1, 2, coarse.b.data(), coarse.x.data());
    } else {
      cycle(level + 1, coarse.b.data(), coarse.x.data());
    }
    const double factor = options_.k_cycle || last ? 1.0 : stiffness_of_constants;
    kernels_.prolong_add(a, data.aggregates, static_cast<T>(factor), coarse.x.data(), x);
  }
  if (data.by_colours) {
    for (int colour = a.colours - 1; colour >= 0; --colour) kernels_.relax(a, colour, b, x);
  } else {
    kernels_.jacobi(a, T(damping), b, x, data.r.data());
    kernels_.jacobi(a, T(damping), b, data.r.data(), x);
  }
}

template class SparseMultigrid<float>;
template class SparseMultigrid<double>;

}  // namespace solenoid
