#pragma once
/// \file
/// Kernels for sparse symmetric matrices with short rows, of which the block factorisation of the marker-and-cell
/// scheme (solver/mac/) is made: Gauss-Seidel by colours, damped Jacobi, transfers by aggregates, flexible conjugate
/// gradients whose scalars stay in the engine's memory.
///
/// Rows are numbered colour by colour, each colour padded to whole slices of `slice` rows; row `rows` is the null row.
/// A vector has `rows + slice` numbers; those of padding and of the null row are zero, before and after every kernel.
/// Entries besides the diagonal are stored by slices (sliced ELLPACK): entry j of row i at
///     begin[i / slice] + slice j + i % slice,   j < (begin[i / slice + 1] - begin[i / slice]) / slice;
/// those of shorter rows are 0, in the column of the null row.
///
/// These matrices precondition, and what multiplying by them takes is bringing their entries. So entries besides the
/// diagonal are rounded to bfloat16, the upper half of a single-precision number, and the diagonal takes up what that
/// leaves: row sums, and constants that are mapped to zero, stay. What is rounded is a sum of a_ij (e_i - e_j)
/// (e_i - e_j)^T with each a_ij changed by at most 2^-8 of itself, so that an M-matrix (a_ij <= 0, row sums >= 0) and
/// the rounded one are within factors 1 +- 2^-8 of each other, as quadratic forms.

#include <array>
#include <bit>
#include <cstdint>

#include "base/anywhere.hpp"

namespace solenoid {

struct SparseFormat {
  static constexpr int slice = 32;
  /// A lattice needs two, and as many again for each periodic direction with an odd number of places.
  static constexpr int most_colours = 16;
};

/// An entry besides the diagonal as a number, and a number rounded to an entry (to nearest, to even).
template <class T>
SOLENOID_ANYWHERE T entry_value(std::uint16_t entry) {
  return static_cast<T>(std::bit_cast<float>(static_cast<std::uint32_t>(entry) << 16U));
}
SOLENOID_ANYWHERE inline std::uint16_t rounded_entry(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U);
}

/// A value after two steps of Jacobi's method from zero, `beside` being the sum of a_ij b_j / a_jj over its neighbours.
template <class T>
SOLENOID_ANYWHERE T jacobi_from_zero(T factor, T inverse_diagonal, T b, T beside) {
  return factor * inverse_diagonal * ((T(2) - factor) * b - factor * beside);
}

/// A matrix in the engine's memory.
template <class T>
struct SparseMatrix {
  std::int32_t rows = 0;
  int colours = 0;
  std::array<std::int32_t, SparseFormat::most_colours + 1> colour_begin{};  ///< [colour]: its first row
  const std::int64_t* begin = nullptr;  ///< [slice]: of its entries; one more than there are slices
  const std::int32_t* column = nullptr;
  const std::uint16_t* value = nullptr;  ///< rounded entries
  const T* diagonal = nullptr;
  const T* inverse_diagonal = nullptr;  ///< 0 where the diagonal is
  /// Rows from here on have no residual after smoothing from zero: those of the last colour, or none.
  std::int32_t solved_from = 0;
  /// Rows up to here have none after smoothing to the end: those of the first colour, or none.
  std::int32_t solved_to = 0;

  [[nodiscard]] std::int32_t storage() const { return rows + SparseFormat::slice; }
};

/// Which rows become one row of a coarser matrix.
struct Aggregates {
  std::int32_t coarse_rows = 0;
  const std::int32_t* parent = nullptr;       ///< [fine row]: the coarse row, the null row of those that have none
  const std::int32_t* child_begin = nullptr;  ///< [coarse row]: of its children, without those from solved_from on
  const std::int32_t* child = nullptr;
};

/// The search directions of flexible conjugate gradients so far, with A times each.
template <class T>
struct Directions {
  static constexpr int most = 5;
  int count = 0;
  std::array<T*, most> d{};
  std::array<T*, most> a_d{};
  T* curvature = nullptr;  ///< [direction]: d . A d, in the engine's memory
};

/// Which faces a cell has and which cells a face: the divergence B of the scheme and the gradient - B^T, as
/// differences. Rows are those of the matrices of velocities and pressures.
template <class T>
struct Incidence {
  std::int32_t faces = 0;  ///< rows of velocities, padding included
  std::int32_t cells = 0;
  int dim = 0;
  const std::int32_t* cell_of_face[2]{};  ///< [face]: below, above it; the null row of cells where there is none
  const std::int32_t* face_of_cell[6]{};  ///< [side][cell]; the null row of faces where there is no unknown
  const T* inverse_width = nullptr;       ///< [face]: 1 / h across it
};

template <class T>
class SparseKernels {
 public:
  virtual ~SparseKernels() = default;

  /// One colour of Gauss-Seidel: x_i = (b_i - sum_j a_ij x_j) / a_ii in its rows.
  virtual void relax(const SparseMatrix<T>& a, int colour, const T* b, T* x) = 0;
  /// The same from x = 0, for colour 0: x is zero in all other rows.
  virtual void relax_zero(const SparseMatrix<T>& a, const T* b, T* x) = 0;
  /// y = two steps of x += factor D^-1 (b - A x), D the diagonal, from x = 0.
  virtual void jacobi_twice_from_zero(const SparseMatrix<T>& a, T factor, const T* b, T* y) = 0;
  /// y = x + factor D^-1 (b - A x)
  virtual void jacobi(const SparseMatrix<T>& a, T factor, const T* b, const T* x, T* y) = 0;
  /// r = b - A x in the rows before solved_from.
  virtual void residual(const SparseMatrix<T>& a, const T* b, const T* x, T* r) = 0;
  /// coarse_I = sum of r_i over the children i of I.
  virtual void restrict_to(const Aggregates& to, const T* r, T* coarse) = 0;
  /// x_i += factor coarse_parent(i) in the rows before solved_from.
  virtual void prolong_add(const SparseMatrix<T>& a, const Aggregates& to, T factor, const T* coarse, T* x) = 0;
  /// y = A x
  virtual void multiply(const SparseMatrix<T>& a, const T* x, T* y) = 0;
  /// a_d[s] = A d[s] for the newest direction s = count - 1, and the sums that advance() needs of it and of r. d solves
  /// A d = r in the rows before solved_to.
  virtual void multiply_sums(const SparseMatrix<T>& a, const Directions<T>& directions, const T* r) = 0;
  /// Makes the newest direction conjugate to the others and takes the step along it: x += alpha d, and, unless `rest`
  /// is null, rest = r - alpha A d (r may be rest). With `first` x = alpha d. A direction without curvature is a step
  /// of length zero.
  virtual void advance(const SparseMatrix<T>& a, const Directions<T>& directions, const T* r, T* rest, bool first,
                       T* x) = 0;

  /// g = B (w u), w weights of faces.
  virtual void divergence(const Incidence<T>& incidence, const T* w, const T* u, T* g) = 0;
  /// g = - r - B u; r may be g.
  virtual void divergence_defect(const Incidence<T>& incidence, const T* r, const T* u, T* g) = 0;
  /// u = w B^T p; w == nullptr stands for ones.
  virtual void gradient(const Incidence<T>& incidence, const T* w, const T* p, T* u) = 0;
  /// y += factor x
  virtual void axpy(std::int64_t count, T factor, const T* x, T* y) = 0;
  /// x . y, on the host
  virtual double dot(std::int64_t count, const T* x, const T* y) = 0;
};

}  // namespace solenoid
