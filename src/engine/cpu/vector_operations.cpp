#include "engine/cpu/vector_operations.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "element/matrices.hpp"
#include "engine/dense_inverse.hpp"
#include "engine/kernel_data.hpp"

namespace solenoid::cpu {
namespace {

constexpr std::int64_t grain = 512;
constexpr std::int64_t piece = 1 << 18;  // a millisecond
constexpr int streams = 8;               // of memory that are read at once

/// visit(count), at most `streams`, as a constant: a pass over all vectors of a sum at once is a loop of its own.
template <class Visit>
void with_count(int count, const Visit& visit) {
  const auto one_of = [&]<int... i>(std::integer_sequence<int, i...>) {
    ((count == i ? visit(std::integral_constant<int, i>()) : void()), ...);
  };
  one_of(std::make_integer_sequence<int, streams + 1>());
}

/// sum + sum_i factors[i] v[i][j]
template <class T, class S, std::size_t count>
[[gnu::always_inline]] inline T add_terms(T sum, const std::array<T, count>& factors,
                                          const std::array<const S*, count>& v, std::int64_t j) {
#pragma GCC unroll 8
  for (int i = 0; i < static_cast<int>(count); ++i) sum += factors[i] * static_cast<T>(v[i][j]);
  return sum;
}
template <class T, int count>
std::array<T, count> factors_of(const double* a) {
  std::array<T, count> factors;
  std::transform(a, a + count, factors.begin(), [](double factor) { return static_cast<T>(factor); });
  return factors;
}

}  // namespace

template <class T>
template <class F>
void VectorOperations<T>::for_range(F&& f) {
  team_.run([&](int t) { Team::in_pieces(team_.range(level_.size(), t, grain), piece, f); });
}

/// w = scale (w + sum_i a[i] v[i])
template <class T>
template <class S>
void VectorOperations<T>::add_all(int count, const double* a, const S* const* v, T scale, T* w) {
  if (count == 0 && scale == T(1)) return;
  for (int first = 0; first == 0 || first < count; first += streams) {
    const T last_scale = first + streams < count ? T(1) : scale;
    with_count(std::min(streams, count - first), [&](auto number) {
      const auto factors = factors_of<T, number>(a + first);
      std::array<const S*, number> from;
      std::copy_n(v + first, from.size(), from.begin());
      for_range([=](auto range) {
#pragma GCC ivdep
        for (auto j = range.begin; j < range.end; ++j) w[j] = last_scale * add_terms(w[j], factors, from, j);
      });
    });
  }
}
template <class T>
template <class S>
void VectorOperations<T>::convert(const S* x, T* y) {
  for_range([=](auto range) {
    for (auto i = range.begin; i < range.end; ++i) y[i] = static_cast<T>(x[i]);
  });
}

template <class T>
template <class V, class Visit>
void VectorOperations<T>::for_carriers(const Constant& constant, int t, V* x, Visit visit, bool owned) const {
  const Grid& grid = level_.grid;
  const VectorLayout& layout = grid.layout();
  const bool velocity = constant.field < level_.equation.velocities();
  const bool all = !owned || !layout.has_ghosts();
  // Cells have it, and hat-only records if they have this velocity's.
  const int i = constant.field * power(level_.equation.n(), level_.equation.dim);
  if (grid.parts() > 1) {
    const auto range = team_.range(std::ssize(constant.records), t);
    for (auto k = range.begin; k < range.end; ++k) {
      if (all || layout.is_owned(constant.records[k])) visit(x[level_.index(constant.records[k], i)]);
    }
    return;
  }
  const auto range = team_.range(layout.records().size(), t);
  for (auto r = static_cast<Record>(range.begin); r < range.end; ++r) {
    const bool carries = layout.is_cell(r) || (velocity && grid.hat_direction(r) == constant.field);
    if (carries && (all || layout.is_owned(r))) visit(x[level_.index(r, i)]);
  }
}

template <class T>
void VectorOperations<T>::sum_constants(const T* x, double* sums) {
  std::vector<double> parts(team_.size());
  for (const Constant& constant : level_.constants) {
    team_.run([&](int t) {
      double sum = 0.0;
      for_carriers(
          constant, t, x, [&](T value) { sum += static_cast<double>(value); }, true);
      parts[t] = sum;
    });
    *sums++ = std::accumulate(parts.begin(), parts.end(), 0.0);
  }
}

/// Subtracts from the mode that is constant its mean over the records that carry it.
template <class T>
void VectorOperations<T>::remove_constants(const double* sums, T* x) {
  for (const Constant& constant : level_.constants) {
    const T mean = static_cast<T>(*sums++ / static_cast<double>(constant.carriers));
    team_.run([&](int t) {
      for_carriers(
          constant, t, x, [&](T& value) { value -= mean; }, false);
    });
  }
}

template <class T>
void VectorOperations<T>::zero(T* x) {
  for_range([=](auto range) { std::memset(x + range.begin, 0, (range.end - range.begin) * sizeof(T)); });
}
template <class T>
void VectorOperations<T>::copy(const T* x, T* y) {
  for_range([=](auto range) { std::memcpy(y + range.begin, x + range.begin, (range.end - range.begin) * sizeof(T)); });
}
template <class T>
void VectorOperations<T>::scale(T a, const T* x, T* y) {
  for_range([=](auto range) {
    for (auto i = range.begin; i < range.end; ++i) y[i] = a * x[i];
  });
}
template <class T>
void VectorOperations<T>::axpy(T a, const T* x, T* y) {
  for_range([=](auto range) {
    for (auto i = range.begin; i < range.end; ++i) y[i] += a * x[i];
  });
}
template <class T>
void VectorOperations<T>::dots(int count, const T* const* v, const T* w, double* result) {
  // Blocks keep w in the first-level cache for all v; several partial sums keep the order of additions fixed and
  // fast.
  constexpr std::int64_t block = 2048;
  constexpr int partial = 16;
  // Ghosts do not count: whole blocks of owned cells, then what is owned of the others, record by record.
  const VectorLayout& layout = level_.grid.layout();
  const Record whole = layout.owned_cells().last() / interleave * interleave;
  const std::int64_t numbers = layout.has_ghosts() ? level_.index(whole, 0) : level_.size();
  std::vector<double> sums(static_cast<std::size_t>(team_.size()) * count, 0.0);
  team_.run([&](int t) {
    std::vector<double> mine(count, 0.0);
    for (const RecordRange rest : {RecordRange(whole, layout.owned_cells().last()), layout.owned_hats()}) {
      if (!layout.has_ghosts()) break;
      const auto range = team_.range(rest.size(), t);
      for (auto r = static_cast<Record>(rest.first() + range.begin); r < rest.first() + range.end; ++r) {
        for (int i = 0; i < count; ++i) {
          for (int value = 0; value < level_.equation.record(); ++value) {
            const std::int64_t at = level_.index(r, value);
            mine[i] += static_cast<double>(v[i][at]) * static_cast<double>(w[at]);
          }
        }
      }
    }
    Team::in_pieces(team_.range(numbers, t, grain), piece, [&](Team::Range range) {
      for (auto begin = range.begin; begin < range.end; begin += block) {
        const auto end = std::min(begin + block, range.end);
        for (int i = 0; i < count; ++i) {
          double sum[partial] = {};
          auto j = begin;
          for (; j + partial <= end; j += partial) {
            for (int l = 0; l < partial; ++l) {
              sum[l] += static_cast<double>(v[i][j + l]) * static_cast<double>(w[j + l]);
            }
          }
          for (; j < end; ++j) sum[0] += static_cast<double>(v[i][j]) * static_cast<double>(w[j]);
          for (const double part : sum) mine[i] += part;
        }
      }
    });
    std::copy(mine.begin(), mine.end(), sums.begin() + static_cast<std::ptrdiff_t>(t) * count);
  });
  for (int i = 0; i < count; ++i) {
    result[i] = 0.0;
    for (int t = 0; t < team_.size(); ++t) result[i] += sums[static_cast<std::size_t>(t) * count + i];
  }
}

template <class T>
void VectorOperations<T>::axpys(int count, const double* a, const T* const* v, double scale, T* w) {
  add_all(count, a, v, static_cast<T>(scale), w);
}

template <class T>
void VectorOperations<T>::two_sums(int count, const T* const* v, const double* a, T* x, const double* b, T* y) {
  static_assert(Kernels<T>::most_sums <= streams);
  with_count(count, [&](auto number) {
    const auto of_x = factors_of<T, number>(a);
    const auto of_y = factors_of<T, number>(b);
    std::array<const T*, number> from;
    std::copy_n(v, from.size(), from.begin());
    for_range([=](auto range) {
#pragma GCC ivdep
      for (auto j = range.begin; j < range.end; ++j) {
        x[j] = add_terms(T(0), of_x, from, j);
        y[j] = add_terms(T(0), of_y, from, j);
      }
    });
  });
}

template <class T>
double VectorOperations<T>::l2_norm(const T* x) {
  const Equation& equation = level_.equation;
  if (equation.velocities() == 0) return std::sqrt(this->dot(x, x));
  // In its own direction a component has the mass matrix of P, in the others that of O, which is the identity.
  const int n = equation.n();
  const int columns = power(n, equation.dim - 1);
  struct Product {
    int i;
    int j;
    double factor;
  };
  std::vector<Product> products;
  const Matrix mass = CellMatrices(equation.order).mass;
  for (int i = 0; i <= n; ++i) {
    for (int j = i; j <= n; ++j) {
      if (mass_couples(n, i, j)) products.push_back({i, j, (i == j ? 1.0 : 2.0) * mass(i, j)});
    }
  }
  const Grid& grid = level_.grid;
  std::vector<double> squares(team_.size(), 0.0);
  team_.run([&](int t) {
    const auto range = team_.range(grid.layout().owned_cells().size(), t, interleave);
    for (auto first = static_cast<Record>(range.begin); first < range.end; first += interleave) {
      const int lanes = static_cast<int>(std::min<std::int64_t>(interleave, range.end - first));
      double sum[interleave] = {};
      double value[max_n + 1][interleave] = {};
      for (int c = 0; c < equation.velocities(); ++c) {
        const int component = c * n * columns;
        const T* const block = x + level_.index(first, component);
        std::int64_t above[interleave];  // where the upper hats are
        for (int l = 0; l < lanes; ++l) above[l] = level_.index(grid.neighbour(first + l, 2 * c + 1), component);
        for (int m = 0; m < columns; ++m) {
          for (int i = 0; i < n; ++i) {
            for (int l = 0; l < interleave; ++l) value[i][l] = block[(m + i * columns) * interleave + l];
          }
          for (int l = 0; l < lanes; ++l) value[n][l] = x[above[l] + m * interleave];
          for (const auto& [i, j, factor] : products) {
            for (int l = 0; l < interleave; ++l) sum[l] += factor * value[i][l] * value[j][l];
          }
        }
      }
      squares[t] += std::accumulate(sum, sum + lanes, 0.0);
    }
  });
  return std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0));
}

template <class T>
void VectorOperations<T>::project(T* x) {
  std::vector<double> sums(level_.constants.size());
  sum_constants(x, sums.data());
  remove_constants(sums.data(), x);
}

template <class T>
void VectorOperations<T>::gather(std::int64_t count, const std::int64_t* index, const T* x, T* values) {
  team_.run([&](int t) {
    const auto range = team_.range(count, t, grain);
    for (auto i = range.begin; i < range.end; ++i) values[i] = x[index[i]];
  });
}
template <class T>
void VectorOperations<T>::scatter(std::int64_t count, const std::int64_t* index, const T* values, T* x) {
  team_.run([&](int t) {
    const auto range = team_.range(count, t, grain);
    for (auto i = range.begin; i < range.end; ++i) x[index[i]] = values[i];
  });
}
template <class T>
void VectorOperations<T>::scatter_add(std::int64_t count, const std::int64_t* index, const T* values, T* x) {
  team_.run([&](int t) {
    const auto range = team_.range(count, t, grain);
    for (auto i = range.begin; i < range.end; ++i) x[index[i]] += values[i];
  });
}

/// move(place in the message, place in a vector) for all of a message.
template <class T>
template <class Move>
void VectorOperations<T>::for_packed(std::span<const PackedRecords> what, const Move& move) {
  // Few records at a time, so that what is read of a record lies side by side.
  constexpr int few = 16;
  team_.run([&](int t) {
    for (const PackedRecords& some : what) {
      const auto range = team_.range(some.count, t);
      for (auto begin = range.begin; begin < range.end; begin += few) {
        const int count = static_cast<int>(std::min<std::int64_t>(few, range.end - begin));
        std::array<std::int64_t, few> places{};
        for (int j = 0; j < count; ++j) places[j] = level_.index(some.records[begin + j], some.first);
        for (int i = 0; i < some.last - some.first; ++i) {
          for (int j = 0; j < count; ++j) move(some.at + i * some.count + begin + j, places[j] + interleave * i);
        }
      }
    }
  });
}
template <class T>
void VectorOperations<T>::pack(std::span<const PackedRecords> what, const T* x, T* values) {
  for_packed(what, [=](std::int64_t at, std::int64_t place) { values[at] = x[place]; });
}
template <class T>
void VectorOperations<T>::unpack(std::span<const PackedRecords> what, const T* values, T* x) {
  for_packed(what, [=](std::int64_t at, std::int64_t place) { x[place] = values[at]; });
}

template <class T>
void VectorOperations<T>::invert_dense(std::span<const DenseField> fields, double* matrix, T* inverse) {
  invert_on_host(fields, matrix, inverse);
}
template <class T>
void VectorOperations<T>::dense(std::int64_t count, const std::int64_t* index, const T* matrix, const T* b, T* x) {
  team_.run([&](int t) {
    const auto range = team_.range(count, t);
    for (auto i = range.begin; i < range.end; ++i) {
      constexpr int partial = 16;
      T sum[partial] = {};
      const T* row = matrix + i * count;
      std::int64_t j = 0;
      for (; j + partial <= count; j += partial) {
        for (int l = 0; l < partial; ++l) sum[l] += row[j + l] * b[index[j + l]];
      }
      for (; j < count; ++j) sum[0] += row[j] * b[index[j]];
      T total = T(0);
      for (const T part : sum) total += part;
      x[index[i]] = total;
    }
  });
}

template <class T>
void VectorOperations<T>::from_double(const double* x, T* y) {
  convert(x, y);
}
template <class T>
void VectorOperations<T>::from_float(const float* x, T* y) {
  convert(x, y);
}
template <class T>
void VectorOperations<T>::axpys_float(int count, const double* a, const float* const* v, T* w) {
  add_all(count, a, v, T(1), w);
}

template class VectorOperations<float>;
template class VectorOperations<double>;

}  // namespace solenoid::cpu
