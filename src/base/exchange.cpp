#include "base/exchange.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "base/parallel.hpp"

namespace solenoid {
namespace {

using Eigen::MatrixXd;

/// Unknowns that are exchanged together.
constexpr std::int64_t together = 64;
/// Columns of a tile, the part of a product that registers hold; it has two registers of rows.
constexpr std::int64_t tile_columns = 6;
/// Unknowns of a block, of which pairs are shared out: a multiple of the columns and of the rows of all tiles.
constexpr std::int64_t block_size = 48;
constexpr std::int64_t most_rows = 16;

/// C -= A B^T for a tile of C, in columns `stride` apart. A has rows k one after another, and so has B.
template <int bytes>
[[gnu::always_inline]] inline void subtract_tile(std::int64_t depth, const double* a, const double* b, double* c,
                                                 std::int64_t stride) {
  using Lanes [[gnu::vector_size(bytes)]] = double;
  using Unaligned [[gnu::vector_size(bytes), gnu::aligned(alignof(double)), gnu::may_alias]] = double;
  constexpr std::int64_t lanes = bytes / sizeof(double);
  Lanes sum[tile_columns][2] = {};
  for (std::int64_t k = 0; k < depth; ++k, a += 2 * lanes, b += tile_columns) {
    const Lanes first = *reinterpret_cast<const Unaligned*>(a);
    const Lanes second = *reinterpret_cast<const Unaligned*>(a + lanes);
#pragma GCC unroll 6
    for (std::int64_t j = 0; j < tile_columns; ++j) {
      sum[j][0] += first * b[j];
      sum[j][1] += second * b[j];
    }
  }
#pragma GCC unroll 6
  for (std::int64_t j = 0; j < tile_columns; ++j, c += stride) {
    *reinterpret_cast<Unaligned*>(c) -= sum[j][0];
    *reinterpret_cast<Unaligned*>(c + lanes) -= sum[j][1];
  }
}

/// M becomes -M^-1, by elimination with row exchanges; columns are `together` apart.
[[gnu::always_inline]] inline void negative_inverse(std::int64_t size, double* matrix) {
  std::int64_t exchanged[together];
  double factor[together];
  for (std::int64_t k = 0; k < size; ++k) {
    double* const own = matrix + k * together;
    std::int64_t& row = exchanged[k];
    row = k;
    for (std::int64_t i = k + 1; i < size; ++i) {
      if (std::abs(own[i]) > std::abs(own[row])) row = i;
    }
    if (row != k) {
      for (std::int64_t j = 0; j < size; ++j) std::swap(matrix[k + j * together], matrix[row + j * together]);
    }
    const double pivot = 1.0 / own[k];
    for (std::int64_t i = 0; i < size; ++i) factor[i] = own[i] * pivot;
    factor[k] = 0.0;
    for (std::int64_t i = 0; i < size; ++i) own[i] = 0.0;
    own[k] = 1.0;
    for (std::int64_t j = 0; j < size; ++j) {
      double* const column = matrix + j * together;
      const double scale = column[k];
      for (std::int64_t i = 0; i < size; ++i) column[i] -= scale * factor[i];
      column[k] = scale * pivot;
    }
  }
  for (std::int64_t k = size; k-- > 0;) {
    if (exchanged[k] != k)
      std::swap_ranges(matrix + k * together, matrix + k * together + size, matrix + exchanged[k] * together);
  }
  for (std::int64_t j = 0; j < size; ++j) {
    for (std::int64_t i = 0; i < size; ++i) matrix[i + j * together] = -matrix[i + j * together];
  }
}

/// What takes the time, for an instruction set.
struct Kernels {
  std::int64_t rows;  ///< of a tile
  void (*subtract)(std::int64_t depth, const double* a, const double* b, double* c, std::int64_t stride);
  void (*invert)(std::int64_t size, double* matrix);
};

void subtract_128(std::int64_t depth, const double* a, const double* b, double* c, std::int64_t stride) {
  subtract_tile<16>(depth, a, b, c, stride);
}
void invert_128(std::int64_t size, double* matrix) { negative_inverse(size, matrix); }
#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void subtract_256(std::int64_t depth, const double* a, const double* b, double* c,
                                                      std::int64_t stride) {
  subtract_tile<32>(depth, a, b, c, stride);
}
__attribute__((target("avx2,fma"))) void invert_256(std::int64_t size, double* matrix) {
  negative_inverse(size, matrix);
}
__attribute__((target("avx512f"))) void subtract_512(std::int64_t depth, const double* a, const double* b, double* c,
                                                     std::int64_t stride) {
  subtract_tile<64>(depth, a, b, c, stride);
}
__attribute__((target("avx512f"))) void invert_512(std::int64_t size, double* matrix) {
  negative_inverse(size, matrix);
}
#endif

Kernels best_kernels() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") != 0) return {16, subtract_512, invert_512};
  if (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0) return {8, subtract_256, invert_256};
#endif
  return {4, subtract_128, invert_128};
}

/// Numbers for panels, each in cache lines of its own.
class Panels {
 public:
  explicit Panels(std::int64_t count) : lines_(std::make_unique_for_overwrite<Line[]>((count + 7) / 8)) {}
  [[nodiscard]] double* data() const { return lines_[0].values; }

 private:
  struct alignas(64) Line {
    double values[8];
  };
  std::unique_ptr<Line[]> lines_;
};

/// Exchanges up to `together` unknowns at a time by a team of threads: with D the block of these, and C their columns
/// in the rows of the others,
///     [D  .]      [-D^-1     .         ]
///     [C  R]  ->  [C D^-1  R - C D^-1 C^T].
/// Panels are the rows of C and of C D^-1 as tiles read them; those of the unknowns themselves are zero.
class Exchange {
 public:
  Exchange(Eigen::Ref<MatrixXd> matrix, std::int64_t most)
      : matrix_(matrix),
        blocks_{matrix.rows(), block_size},
        coupled_(blocks_.number()),
        columns_(blocks_.number() * block_size * most),
        solved_(blocks_.number() * block_size * most) {}

  /// Of threads those that find something to do.
  [[nodiscard]] int worthwhile(int threads) const {
    return static_cast<int>(std::min<std::int64_t>(threads, blocks_.number()));
  }

  /// The work of each thread.
  void run(Team& team, std::int64_t begin, std::int64_t end) {
    const std::int64_t pairs = blocks_.number() * (blocks_.number() + 1) / 2;
    for (; begin < end; begin += together) {
      const std::int64_t size = std::min(together, end - begin);
      team.once([&] { invert(begin, size); });
      team.share(blocks_, [&](const CellRange& range, std::int64_t i) { coupled_[i] = solve(range, begin, size); });
      team.share({pairs, 1}, [&](const CellRange& pair, std::int64_t) { update(pair.begin, size); });
    }
  }

 private:
  /// Where the couplings of an unknown with those exchanged lie in the lower triangle; nullptr for these, and where
  /// there is no unknown.
  struct Couplings {
    double* first;
    std::int64_t stride;
  };
  [[nodiscard]] Couplings couplings(std::int64_t unknown, std::int64_t begin, std::int64_t size) {
    if (unknown < begin) return {&matrix_(begin, unknown), 1};
    if (unknown < begin + size || unknown >= blocks_.count) return {nullptr, 0};
    return {&matrix_(unknown, begin), matrix_.outerStride()};
  }

  void invert(std::int64_t begin, std::int64_t size) {
    Eigen::Map<MatrixXd, 0, Eigen::OuterStride<together>> inverse(pivot_, size, size);
    auto own = matrix_.block(begin, begin, size, size);
    inverse = own.selfadjointView<Eigen::Lower>();
    kernels_.invert(size, pivot_);
    own = inverse;
    double* panel = pivot_panels_;
    for (std::int64_t j = 0; j < size; j += tile_columns) {
      for (std::int64_t k = 0; k < size; ++k) {
        for (std::int64_t c = j; c < j + tile_columns; ++c) *panel++ = c < size ? inverse(k, c) : 0.0;
      }
    }
  }

  /// Panels and new couplings of unknowns; false if these are not coupled yet.
  bool solve(const CellRange& range, std::int64_t begin, std::int64_t size) {
    const std::int64_t rows = kernels_.rows;
    bool coupled = false;
    for (std::int64_t i = range.begin; i < range.begin + block_size; ++i) {
      const auto [first, stride] = couplings(i, begin, size);
      double* to = columns_.data() + i / rows * rows * size + i % rows;
      for (std::int64_t k = 0; k < size; ++k, to += rows) {
        *to = first == nullptr ? 0.0 : first[k * stride];
        coupled |= *to != 0.0;
      }
    }
    if (!coupled) return false;
    for (std::int64_t i = range.begin; i < range.begin + block_size; i += rows) {
      for (std::int64_t j = 0; j < size; j += tile_columns) {
        double tile[most_rows * tile_columns] = {};
        kernels_.subtract(size, columns_.data() + i * size, pivot_panels_ + j * size, tile, rows);
        const std::int64_t width = std::min(tile_columns, size - j);
        for (std::int64_t r = i; r < i + rows; ++r) {
          const auto [first, stride] = couplings(r, begin, size);
          double* to = solved_.data() + (r / tile_columns * size + j) * tile_columns + r % tile_columns;
          for (std::int64_t c = 0; c < width; ++c) {
            const double value = tile[r - i + c * rows];
            to[c * tile_columns] = value;
            if (first != nullptr) first[(j + c) * stride] = value;
          }
        }
      }
    }
    return true;
  }

  /// R - C D^-1 C^T in the part of the lower triangle that belongs to a pair of blocks; pairs are counted by rows.
  void update(std::int64_t pair, std::int64_t size) {
    auto row_block = static_cast<std::int64_t>((std::sqrt(8.0 * static_cast<double>(pair) + 1.0) - 1.0) / 2.0);
    const std::int64_t column_block = pair - row_block * (row_block + 1) / 2;
    if (!coupled_[row_block] || !coupled_[column_block]) return;
    const std::int64_t rows = kernels_.rows;
    const auto [row_begin, row_end] = blocks_[row_block];
    const auto [column_begin, column_end] = blocks_[column_block];
    for (std::int64_t j = column_begin; j < column_end; j += tile_columns) {
      for (std::int64_t i = std::max(row_begin, j / rows * rows); i < row_end; i += rows) {
        const double* a = columns_.data() + i * size;
        const double* b = solved_.data() + j * size;
        const std::int64_t height = std::min(rows, row_end - i);
        const std::int64_t width = std::min(tile_columns, column_end - j);
        if (height == rows && width == tile_columns) {
          kernels_.subtract(size, a, b, &matrix_(i, j), matrix_.outerStride());
          continue;
        }
        double tile[most_rows * tile_columns] = {};
        kernels_.subtract(size, a, b, tile, rows);
        matrix_.block(i, j, height, width) +=
            Eigen::Map<const MatrixXd, 0, Eigen::OuterStride<>>(tile, height, width, Eigen::OuterStride<>(rows));
      }
    }
  }

  Kernels kernels_ = best_kernels();
  Eigen::Ref<MatrixXd> matrix_;
  Ranges blocks_;
  std::vector<char> coupled_;  // not bits, as threads write them
  Panels columns_;
  Panels solved_;
  alignas(64) double pivot_[together * together];
  double pivot_panels_[together * (together + tile_columns)];
};

}  // namespace

void exchange(Eigen::Ref<MatrixXd> matrix, std::int64_t begin, std::int64_t end, int threads) {
  if (begin >= end) return;
  Exchange work(matrix, std::min(together, end - begin));
  parallel_team(work.worthwhile(threads), [&](Team& team) { work.run(team, begin, end); });
}

void fill_upper(Eigen::Ref<MatrixXd> matrix, int threads) {
  parallel_ranges(
      Ranges{matrix.rows(), block_size},
      [&](const CellRange& range, std::int64_t) {
        const std::int64_t width = range.end - range.begin;
        for (std::int64_t i = 0; i < range.begin; i += block_size) {
          matrix.block(i, range.begin, block_size, width) = matrix.block(range.begin, i, width, block_size).transpose();
        }
        for (std::int64_t row = range.begin; row < range.end; ++row) {
          const std::int64_t before = row - range.begin;
          matrix.col(row).segment(range.begin, before) = matrix.row(row).segment(range.begin, before).transpose();
        }
      },
      threads);
}

}  // namespace solenoid
