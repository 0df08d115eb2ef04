#include "engine/cpu/sparse.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace solenoid::cpu {
namespace {

constexpr int slice = SparseFormat::slice;

/// sums[lane] -= the entries of a slice times x.
template <class T>
void subtract_entries(const SparseMatrix<T>& a, std::int64_t s, const T* __restrict x, T* __restrict sums) {
  for (std::int64_t e = a.begin[s]; e < a.begin[s + 1]; e += slice) {
    const std::uint16_t* const value = a.value + e;
    const std::int32_t* const column = a.column + e;
    for (int lane = 0; lane < slice; ++lane) sums[lane] -= entry_value<T>(value[lane]) * x[column[lane]];
  }
}

template <class T>
class CpuSparseKernels final : public SparseKernels<T> {
 public:
  explicit CpuSparseKernels(Team& team) : team_(team) {}

  void relax(const SparseMatrix<T>& a, int colour, const T* b, T* x) override {
    for_slices(a.colour_begin[colour], a.colour_begin[colour + 1], [&](std::int64_t s) {
      T sums[slice];
      std::copy_n(b + s * slice, slice, sums);
      subtract_entries(a, s, x, sums);
      for (int lane = 0; lane < slice; ++lane) x[s * slice + lane] = sums[lane] * a.inverse_diagonal[s * slice + lane];
    });
  }
  void relax_zero(const SparseMatrix<T>& a, const T* b, T* x) override {
    const std::int32_t end = a.colour_begin[1];
    for_slices(0, a.rows, [&](std::int64_t s) {
      const std::int64_t i = s * slice;
      for (int lane = 0; lane < slice; ++lane)
        x[i + lane] = i < end ? b[i + lane] * a.inverse_diagonal[i + lane] : T(0);
    });
  }
  void jacobi_twice_from_zero(const SparseMatrix<T>& a, T factor, const T* b, T* y) override {
    for_slices(0, a.rows, [&](std::int64_t s) {
      T sums[slice]{};
      for (std::int64_t e = a.begin[s]; e < a.begin[s + 1]; e += slice) {
        for (int lane = 0; lane < slice; ++lane) {
          const std::int32_t column = a.column[e + lane];
          sums[lane] += entry_value<T>(a.value[e + lane]) * (a.inverse_diagonal[column] * b[column]);
        }
      }
      for (int lane = 0; lane < slice; ++lane) {
        const std::int64_t i = s * slice + lane;
        y[i] = jacobi_from_zero(factor, a.inverse_diagonal[i], b[i], sums[lane]);
      }
    });
  }
  void jacobi(const SparseMatrix<T>& a, T factor, const T* b, const T* x, T* y) override {
    for_slices(0, a.rows, [&](std::int64_t s) {
      T sums[slice];
      residual_of_slice(a, s, b, x, sums);
      for (int lane = 0; lane < slice; ++lane) {
        const std::int64_t i = s * slice + lane;
        y[i] = x[i] + factor * a.inverse_diagonal[i] * sums[lane];
      }
    });
  }
  void residual(const SparseMatrix<T>& a, const T* b, const T* x, T* r) override {
    for_slices(0, a.solved_from, [&](std::int64_t s) {
      T sums[slice];
      residual_of_slice(a, s, b, x, sums);
      std::copy_n(sums, slice, r + s * slice);
    });
  }
  void restrict_to(const Aggregates& to, const T* r, T* coarse) override {
    for_range(to.coarse_rows, [&](std::int64_t i) {
      T sum = 0;
      for (std::int32_t c = to.child_begin[i]; c < to.child_begin[i + 1]; ++c) sum += r[to.child[c]];
      coarse[i] = sum;
    });
  }
  void prolong_add(const SparseMatrix<T>& a, const Aggregates& to, T factor, const T* coarse, T* x) override {
    for_range(a.solved_from, [&](std::int64_t i) { x[i] += factor * coarse[to.parent[i]]; });
  }
  void multiply(const SparseMatrix<T>& a, const T* x, T* y) override {
    for_slices(0, a.rows, [&](std::int64_t s) { multiply_slice(a, s, x, y); });
  }

  void multiply_sums(const SparseMatrix<T>& a, const Directions<T>& directions, const T* r) override {
    const int newest = directions.count - 1;
    const T* const d = directions.d[newest];
    T* const a_d = directions.a_d[newest];
    sum_up(a.rows, directions.count + 1, [&](std::int64_t s, double* sums) {
      if (s * slice < a.solved_to) {
        for (std::int64_t i = s * slice; i < (s + 1) * slice; ++i) a_d[i] = a.inverse_diagonal[i] > T(0) ? r[i] : T(0);
      } else {
        multiply_slice(a, s, d, a_d);
      }
      for (int lane = 0; lane < slice; ++lane) {
        const std::int64_t i = s * slice + lane;
        sums[newest + 1] += static_cast<double>(d[i]) * r[i];
        for (int t = 0; t < newest; ++t) sums[t] += static_cast<double>(d[i]) * directions.a_d[t][i];
        sums[newest] += static_cast<double>(d[i]) * a_d[i];
      }
    });
  }
  void advance(const SparseMatrix<T>& a, const Directions<T>& directions, const T* r, T* rest, bool first,
               T* x) override {
    const int newest = directions.count - 1;
    std::array<T, Directions<T>::most> share{};
    double curvature = sums_[newest];
    for (int t = 0; t < newest; ++t) {
      const double of_t = directions.curvature[t];
      const double part = of_t > 0.0 ? sums_[t] / of_t : 0.0;
      share[t] = static_cast<T>(part);
      curvature -= part * sums_[t];
    }
    const bool goes = curvature > 0.0 && std::isfinite(curvature) && std::isfinite(sums_[newest + 1]);
    directions.curvature[newest] = goes ? static_cast<T>(curvature) : T(0);
    const T alpha = goes ? static_cast<T>(sums_[newest + 1] / curvature) : T(0);
    T* const d = directions.d[newest];
    T* const a_d = directions.a_d[newest];
    for_range(a.rows, [&](std::int64_t i) {
      T direction = d[i];
      for (int t = 0; t < newest; ++t) direction -= share[t] * directions.d[t][i];
      x[i] = (first ? T(0) : x[i]) + alpha * direction;
      if (rest == nullptr) return;
      T image = a_d[i];
      for (int t = 0; t < newest; ++t) image -= share[t] * directions.a_d[t][i];
      d[i] = direction;
      a_d[i] = image;
      rest[i] = r[i] - alpha * image;
    });
  }

  void divergence(const Incidence<T>& incidence, const T* w, const T* u, T* g) override {
    for_range(incidence.cells, [&](std::int64_t cell) {
      g[cell] = net_flux(incidence, cell, [&](std::int32_t face) { return w[face] * u[face]; });
    });
  }
  void divergence_defect(const Incidence<T>& incidence, const T* r, const T* u, T* g) override {
    for_range(incidence.cells, [&](std::int64_t cell) {
      g[cell] = -r[cell] - net_flux(incidence, cell, [&](std::int32_t face) { return u[face]; });
    });
  }
  void gradient(const Incidence<T>& incidence, const T* w, const T* p, T* u) override {
    for_range(incidence.faces, [&](std::int64_t face) {
      const T slope =
          (p[incidence.cell_of_face[0][face]] - p[incidence.cell_of_face[1][face]]) * incidence.inverse_width[face];
      u[face] = w == nullptr ? slope : w[face] * slope;
    });
  }
  void axpy(std::int64_t count, T factor, const T* x, T* y) override {
    for_range(count, [&](std::int64_t i) { y[i] += factor * x[i]; });
  }
  double dot(std::int64_t count, const T* x, const T* y) override {
    sum_up(static_cast<std::int32_t>(count), 1, [&](std::int64_t s, double* sums) {
      const std::int64_t end = std::min<std::int64_t>(count, (s + 1) * slice);
      for (std::int64_t i = s * slice; i < end; ++i) sums[0] += static_cast<double>(x[i]) * y[i];
    });
    return sums_[0];
  }

 private:
  static constexpr int most_sums = Directions<T>::most + 1;

  /// Of `value` on the faces of a cell, over their widths.
  template <class Value>
  static T net_flux(const Incidence<T>& incidence, std::int64_t cell, const Value& value) {
    T sum = 0;
    for (int side = 0; side < 2 * incidence.dim; ++side) {
      const std::int32_t face = incidence.face_of_cell[side][cell];
      const T flux = value(face) * incidence.inverse_width[face];
      sum += side % 2 == 0 ? -flux : flux;
    }
    return sum;
  }
  /// r = b - A x in the rows of a slice.
  static void residual_of_slice(const SparseMatrix<T>& a, std::int64_t s, const T* b, const T* x, T* r) {
    for (int lane = 0; lane < slice; ++lane) {
      const std::int64_t i = s * slice + lane;
      r[lane] = b[i] - a.diagonal[i] * x[i];
    }
    subtract_entries(a, s, x, r);
  }
  /// y = A x in the rows of a slice.
  static void multiply_slice(const SparseMatrix<T>& a, std::int64_t s, const T* x, T* y) {
    T sums[slice]{};
    subtract_entries(a, s, x, sums);
    for (int lane = 0; lane < slice; ++lane) {
      const std::int64_t i = s * slice + lane;
      y[i] = a.diagonal[i] * x[i] - sums[lane];
    }
  }
  /// work(begin, end) for the parts of a range, by all threads if there is enough of it.
  template <class Work>
  void share(std::int64_t begin, std::int64_t end, std::int64_t worth, const Work& work) {
    if (end - begin <= worth || team_.size() == 1) {
      if (begin < end) work(begin, end, 0);
      return;
    }
    team_.run([&](int t) {
      const Team::Range range = team_.range(end - begin, t);
      if (range.begin < range.end) work(begin + range.begin, begin + range.end, t);
    });
  }
  template <class Work>
  void for_slices(std::int32_t first, std::int32_t last, const Work& work) {
    constexpr int worth = 4096 / slice;
    share(first / slice, last / slice, worth, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t s = begin; s < end; ++s) work(s);
    });
  }
  template <class Work>
  void for_range(std::int64_t count, const Work& work) {
    constexpr int worth = 1 << 14;
    share(0, count, worth, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t i = begin; i < end; ++i) work(i);
    });
  }
  /// sums_ = what work(slice, sums) adds up over the slices of rows.
  template <class Work>
  void sum_up(std::int32_t rows, int count, const Work& work) {
    partial_.assign(team_.size() * most_sums, 0.0);
    constexpr int worth = 4096 / slice;
    share(0, (rows + slice - 1) / slice, worth, [&](std::int64_t begin, std::int64_t end, int t) {
      std::array<double, most_sums> mine{};
      for (std::int64_t s = begin; s < end; ++s) work(s, mine.data());
      std::copy_n(mine.begin(), count, partial_.begin() + t * most_sums);
    });
    for (int i = 0; i < count; ++i) {
      sums_[i] = 0.0;
      for (int t = 0; t < team_.size(); ++t) sums_[i] += partial_[t * most_sums + i];
    }
  }

  Team& team_;
  std::array<double, most_sums> sums_{};
  std::vector<double> partial_;
};

}  // namespace

template <class T>
std::unique_ptr<SparseKernels<T>> make_sparse_kernels(Team& team) {
  return std::make_unique<CpuSparseKernels<T>>(team);
}

template std::unique_ptr<SparseKernels<float>> make_sparse_kernels(Team&);
template std::unique_ptr<SparseKernels<double>> make_sparse_kernels(Team&);

}  // namespace solenoid::cpu
