#pragma once
/// \file
/// What steps over the rows of sparse matrices (engine/assembly_steps.hpp) say of one row: its colour, its block, its
/// entries, and what several rows may write to one place. For the host and for devices.

#include <cstdint>

#ifndef __CUDA_ARCH__
#include <atomic>
#endif

#include "base/anywhere.hpp"
#include "engine/assembly.hpp"

namespace solenoid::assembly {

constexpr std::int32_t none = -1;
constexpr int slice = SparseFormat::slice;

/// Layers of aggregates: each takes two colours.
constexpr int most_layers = SparseFormat::most_colours / 2;

// What several threads may write ------------------------------------------------------------------

SOLENOID_ANYWHERE inline std::int32_t fetch_add(std::int32_t* at, std::int32_t value) {
#ifdef __CUDA_ARCH__
  return atomicAdd(at, value);
#else
  return std::atomic_ref(*at).fetch_add(value, std::memory_order_relaxed);
#endif
}
SOLENOID_ANYWHERE inline void set_bits(std::int32_t* at, std::int32_t bits) {
#ifdef __CUDA_ARCH__
  atomicOr(at, bits);
#else
  std::atomic_ref(*at).fetch_or(bits, std::memory_order_relaxed);
#endif
}
SOLENOID_ANYWHERE inline void lower_to(std::int32_t* at, std::int32_t value) {
#ifdef __CUDA_ARCH__
  atomicMin(at, value);
#else
  const std::atomic_ref there(*at);
  for (std::int32_t known = there; value < known && !there.compare_exchange_weak(known, value);) {
  }
#endif
}
SOLENOID_ANYWHERE inline std::int32_t read(const std::int32_t* at) {
#ifdef __CUDA_ARCH__
  return *reinterpret_cast<const volatile std::int32_t*>(at);
#else
  return std::atomic_ref(*const_cast<std::int32_t*>(at)).load(std::memory_order_relaxed);
#endif
}
SOLENOID_ANYWHERE inline void write(std::int32_t* at, std::int32_t value) {
#ifdef __CUDA_ARCH__
  *reinterpret_cast<volatile std::int32_t*>(at) = value;
#else
  std::atomic_ref(*at).store(value, std::memory_order_relaxed);
#endif
}

// Lattices and rows -------------------------------------------------------------------------------

/// Which colour a node has.
struct Colouring {
  std::int32_t last[3]{};  // place of a ring of an odd number of places that has neighbours of both colours, or -1
  int of_layer = 2;

  Colouring() = default;
  explicit Colouring(const NodeLattice& lattice) {
    for (int a = 0; a < 3; ++a) {
      const bool odd_ring = lattice.periodic[a] && lattice.extent[a] % 2 == 1 && lattice.extent[a] > 1;
      last[a] = odd_ring ? lattice.extent[a] - 1 : none;
      if (odd_ring) of_layer *= 2;
    }
  }
  [[nodiscard]] SOLENOID_ANYWHERE int operator()(const NodePlace& node) const {
    int colour = of_layer * node.layer + (node.at[0] + node.at[1] + node.at[2]) % 2;
    int bit = 2;
    for (int a = 0; a < 3; ++a) {
      if (last[a] == none) continue;
      if (node.at[a] == last[a]) colour += bit;
      bit *= 2;
    }
    return colour;
  }
};

/// Blocks of a lattice.
struct Blocks {
  std::int32_t extent[3];
  std::int32_t coarse[3];
  bool periodic[3];

  explicit Blocks(const NodeLattice& lattice) {
    const NodeLattice blocks = lattice.coarse();
    for (int a = 0; a < 3; ++a) {
      extent[a] = lattice.extent[a];
      coarse[a] = blocks.extent[a];
      periodic[a] = lattice.periodic[a];
    }
  }
  [[nodiscard]] SOLENOID_ANYWHERE std::int32_t of(int a, std::int32_t place) const {
    return periodic[a] ? static_cast<std::int32_t>(std::int64_t{place} * coarse[a] / extent[a]) : place / 2;
  }
  [[nodiscard]] SOLENOID_ANYWHERE bool same(const NodePlace& one, const NodePlace& other) const {
    if (one.field != other.field) return false;
    for (int a = 0; a < 3; ++a) {
      if (of(a, one.at[a]) != of(a, other.at[a])) return false;
    }
    return true;
  }
  [[nodiscard]] std::int64_t count() const { return std::int64_t{coarse[0]} * coarse[1] * coarse[2]; }
  /// A number for the block of a node, and of its field.
  [[nodiscard]] SOLENOID_ANYWHERE std::int64_t key(const NodePlace& node) const {
    return of(0, node.at[0]) +
           coarse[0] * (of(1, node.at[1]) +
                        coarse[1] * (of(2, node.at[2]) + coarse[2] * static_cast<std::int64_t>(node.field)));
  }
};

/// Entries of a matrix, for steps.
struct Entries {
  const std::int64_t* begin;
  const std::int32_t* column;
  const double* value;
  std::int32_t rows;

  Entries(const SparseRows& of, const AssembledMatrix& matrix)
      : Entries(of.count(), matrix.begin.data(), matrix.column.data(), matrix.value.data()) {}
  Entries(std::int32_t rows_, const std::int64_t* begin_, const std::int32_t* column_, const double* value_)
      : begin(begin_), column(column_), value(value_), rows(rows_) {}

  /// visit(column, value) for the entries of a row.
  template <class Visit>
  SOLENOID_ANYWHERE void for_row(std::int64_t row, const Visit& visit) const {
    const std::int64_t end = begin[row / slice + 1];
    for (std::int64_t e = begin[row / slice] + row % slice; e < end; e += slice) {
      if (column[e] != rows) visit(column[e], value[e]);
    }
  }
  /// Whether it has none.
  [[nodiscard]] SOLENOID_ANYWHERE bool empty(std::int64_t row) const {
    const std::int64_t first = begin[row / slice] + row % slice;  // entries come before padding
    return begin[row / slice] == begin[row / slice + 1] || column[first] == rows;
  }
};

/// A row with few entries as it is made: entries add up.
class RowBuilder {
 public:
  explicit SOLENOID_ANYWHERE RowBuilder(std::int32_t row) : row_(row) {}

  SOLENOID_ANYWHERE void add(std::int32_t column, double value) {
    if (column == row_) {
      diagonal_ += value;
      return;
    }
    for (int i = 0; i < count_; ++i) {
      if (column_[i] == column) {
        value_[i] += value;
        return;
      }
    }
    column_[count_] = column;
    value_[count_++] = value;
  }
  SOLENOID_ANYWHERE void add_diagonal(double value) { diagonal_ += value; }

  [[nodiscard]] SOLENOID_ANYWHERE int count() const { return count_; }
  [[nodiscard]] SOLENOID_ANYWHERE std::int32_t column(int i) const { return column_[i]; }
  [[nodiscard]] SOLENOID_ANYWHERE double value(int i) const { return value_[i]; }
  [[nodiscard]] SOLENOID_ANYWHERE double diagonal() const { return diagonal_; }

 private:
  static constexpr int most = 6;  // neighbours on a lattice

  std::int32_t row_;
  int count_ = 0;
  double diagonal_ = 0.0;
  std::int32_t column_[most];
  double value_[most];
};

}  // namespace solenoid::assembly
