#include "solver/mac/sparse_multigrid.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <utility>

#include "base/parallel.hpp"

namespace solenoid {
namespace {

constexpr int slice = SparseFormat::slice;

/// Nodes of the coarsest matrix, which is inverted as a dense one, at least.
constexpr std::int64_t always_dense = 400;

/// Nodes up to which it pays to look for pairs, wherever they are, instead of blocks.
constexpr std::int64_t most_paired = 30'000;

/// What corrections of a V-cycle are multiplied with.
constexpr double stiffness_of_constants = 1.8;

/// The nodes of each part of a matrix that nothing holds: constants there are mapped to zero.
std::vector<std::vector<std::int64_t>> constants_of(const Eigen::MatrixXd& matrix) {
  const auto size = static_cast<int>(matrix.rows());
  std::vector<std::vector<std::int64_t>> constants;
  std::vector<bool> seen(size, false);
  std::vector<int> front;
  for (int first = 0; first < size; ++first) {
    if (seen[first]) continue;
    std::vector<std::int64_t> members;
    seen[first] = true;
    front.assign(1, first);
    while (!front.empty()) {
      const int here = front.back();
      front.pop_back();
      members.push_back(here);
      for (int other = 0; other < size; ++other) {
        if (seen[other] || matrix(here, other) == 0.0) continue;
        seen[other] = true;
        front.push_back(other);
      }
    }
    double held = 0.0;
    double largest = 0.0;
    for (const std::int64_t i : members) {
      largest = std::max(largest, matrix(i, i));
      for (const std::int64_t j : members) held += matrix(i, j);
    }
    constexpr double rounding = 1e-9;
    if (held <= rounding * largest) constants.push_back(std::move(members));
  }
  return constants;
}

}  // namespace

template <class T>
SparseMultigrid<T>::SparseMultigrid(Engine& engine, SparseKernels<T>& kernels, Kernels<T>& dense, SparseRows finest,
                                    Unset<NodePlace> nodes, NodeLattice lattice, const SparseMultigridOptions& options)
    : engine_(engine), kernels_(kernels), options_(options) {
  SparseRows rows = std::move(finest);
  const std::int64_t few_nodes = std::max(always_dense, engine.dense_limits().than_by_cycle);
  bool paired = false;
  for (;;) {
    add_level(rows);
    const std::int64_t count = std::ssize(rows.order.row);
    if (count <= few_nodes) break;
    paired = paired || (options.merge == Merge::connected && count <= most_paired);
    Aggregation aggregation = paired ? aggregate_pairs(rows) : aggregate_blocks(rows, nodes, lattice, options.merge);
    const std::int64_t coarse_count = std::ssize(aggregation.places);
    if (coarse_count == 0 || coarse_count == count) break;
    Coarsened coarse = coarsen(rows, aggregation);
    set_aggregates(levels_.back(), coarse);
    rows = std::move(coarse.matrix);
    nodes = std::move(aggregation.places);
    lattice = aggregation.lattice;
  }
  if (std::ssize(rows.order.row) <= few_nodes) invert_coarsest(rows, dense);
}

template <class T>
void SparseMultigrid<T>::add_level(const SparseRows& rows) {
  const RowOrder& order = rows.order;
  const std::int32_t count = order.rows();
  const std::int64_t slices = count / slice;
  Unset<std::int64_t> begin(slices + 1);
  begin[0] = 0;
  parallel_ranges({slices}, [&](CellRange range, std::int64_t) {
    for (std::int64_t s = range.begin; s < range.end; ++s) {
      std::int64_t longest = 0;
      for (std::int64_t i = s * slice; i < (s + 1) * slice; ++i) {
        longest = std::max(longest, rows.begin[i + 1] - rows.begin[i]);
      }
      begin[s + 1] = longest * slice;
    }
  });
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  Unset<std::int32_t> column(begin.back());
  Unset<T> value(begin.back());
  Unset<T> diagonal(count + slice);
  Unset<T> inverse(count + slice);
  std::fill_n(diagonal.begin() + count, slice, T(0));
  std::fill_n(inverse.begin() + count, slice, T(0));
  parallel_ranges({slices}, [&](CellRange range, std::int64_t) {
    for (std::int64_t s = range.begin; s < range.end; ++s) {
      for (int lane = 0; lane < slice; ++lane) {
        const std::int64_t i = s * slice + lane;
        diagonal[i] = static_cast<T>(rows.diagonal[i]);
        inverse[i] = diagonal[i] > T(0) ? static_cast<T>(1.0 / rows.diagonal[i]) : T(0);
        std::int64_t at = begin[s] + lane;
        for (std::int64_t e = rows.begin[i]; e < rows.begin[i + 1]; ++e, at += slice) {
          column[at] = rows.column[e];
          value[at] = static_cast<T>(rows.value[e]);
        }
        for (; at < begin[s + 1]; at += slice) {
          column[at] = count;
          value[at] = T(0);
        }
      }
    }
  });
  LevelData data;
  const auto keep = [&](auto& vector, const auto& values) {
    vector = std::remove_reference_t<decltype(vector)>(engine_, std::max<std::int64_t>(1, std::ssize(values)));
    engine_.upload(values.data(), vector.data(), values.size() * sizeof(values[0]));
  };
  keep(data.begin, begin);
  keep(data.column, column);
  keep(data.value, value);
  keep(data.diagonal, diagonal);
  keep(data.inverse_diagonal, inverse);
  data.matrix = {.rows = count,
                 .colours = order.colours,
                 .colour_begin = order.colour_begin,
                 .begin = data.begin.data(),
                 .column = data.column.data(),
                 .value = data.value.data(),
                 .diagonal = data.diagonal.data(),
                 .inverse_diagonal = data.inverse_diagonal.data()};
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
void SparseMultigrid<T>::set_aggregates(LevelData& fine, const Coarsened& coarse) {
  const auto keep = [&](Vector<std::int32_t>& vector, const auto& values) {
    vector = Vector<std::int32_t>(engine_, std::max<std::int64_t>(1, std::ssize(values)));
    engine_.upload(values.data(), vector.data(), values.size() * sizeof(std::int32_t));
  };
  keep(fine.parent, coarse.parent);
  keep(fine.child_begin, coarse.child_begin);
  keep(fine.child, coarse.child);
  fine.aggregates = {coarse.matrix.order.rows(), fine.parent.data(), fine.child_begin.data(), fine.child.data()};
}

template <class T>
void SparseMultigrid<T>::invert_coarsest(const SparseRows& rows, Kernels<T>& dense) {
  const auto& row = rows.order.row;
  const auto count = static_cast<int>(row.size());
  if (count == 0) return;
  std::vector<int> node(rows.order.rows(), -1);
  for (int i = 0; i < count; ++i) node[row[i]] = i;
  Eigen::MatrixXd matrix = Eigen::MatrixXd::Zero(count, count);
  for (int i = 0; i < count; ++i) {
    matrix(i, i) = rows.diagonal[row[i]];
    for (std::int64_t e = rows.begin[row[i]]; e < rows.begin[row[i] + 1]; ++e) {
      matrix(i, node[rows.column[e]]) = rows.value[e];
    }
  }
  const DenseField all{0, count, constants_of(matrix)};
  // What stands alone and is held by nothing is a constant, too; an inverse needs something on the diagonal.
  for (int i = 0; i < count; ++i) {
    if (matrix(i, i) == 0.0) matrix(i, i) = 1.0;
  }
  coarsest_row_ = on_device(engine_, row);
  coarsest_inverse_ = Vector<T>(engine_, matrix.size());
  Vector<double> symmetric(engine_, matrix.size());
  symmetric.upload(matrix.data());
  dense.invert_dense({&all, 1}, symmetric.data(), coarsest_inverse_.data());
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
  if (level + 1 == levels() && coarsest_inverse_.size() > 0) {
    kernels_.dense(static_cast<std::int32_t>(coarsest_row_.size()), coarsest_row_.data(), coarsest_inverse_.data(), b,
                   x);
    return;
  }
  kernels_.relax_zero(a, b, x);
  for (int colour = 1; colour < a.colours; ++colour) kernels_.relax(a, colour, b, x);
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
  for (int colour = a.colours - 1; colour >= 0; --colour) kernels_.relax(a, colour, b, x);
}

template class SparseMultigrid<float>;
template class SparseMultigrid<double>;

}  // namespace solenoid
