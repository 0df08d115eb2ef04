/// \file
/// The oracle of all tests: plain, slow, straight from the weak form. All arithmetic is in double precision.

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "engine/cpu/assembly.hpp"
#include "engine/cpu/sparse.hpp"
#include "engine/cpu/team.hpp"
#include "engine/dense_inverse.hpp"
#include "engine/engine.hpp"
#include "engine/reference/reference_convection.hpp"
#include "engine/reference/reference_level.hpp"
#include "solenoid/error.hpp"

namespace solenoid {
namespace {

using Eigen::VectorXd;

template <class T>
class ReferenceKernels final : public Kernels<T> {
 public:
  explicit ReferenceKernels(const Level& level)
      : reference_(tables_by<Tables>(this, level, false)), size_(level.size()) {}

  [[nodiscard]] const Level& level() const override { return reference_->level.level(); }

  [[nodiscard]] std::shared_ptr<CoefficientTables> make_tables() override {
    return tables_by<Tables>(this, level(), at_points_);
  }
  std::shared_ptr<CoefficientTables> use_tables(std::shared_ptr<CoefficientTables> tables) override {
    return std::exchange(reference_, made_as<Tables>(tables, this));
  }

  void take_points() override {
    at_points_ = true;
    use_tables(make_tables());
  }

  void apply(const T* x, T* y) override { store(reference_->level.apply(load(x)), y); }
  void residual(const T* b, const T* x, T* r) override { store(residual(b, x), r); }
  void smooth(int colour, const T* b, const T* x, T* y) override {
    store(load(x) + reference_->level.correction(colour, load(b), load(x)), y);
  }
  void smooth_add(int colour, const T* b, const T* x, T* y, T damping) override {
    store(load(y) + damping * reference_->level.correction(colour, load(b), load(x)), y);
  }

  void smooth_small(int group, const T* r, T* x, T damping) override {
    store(load(x) + damping * reference_->level.small_correction(group, load(r)), x);
  }

  void restrict_to(const Level& coarse_level, const T* fine, T* coarse) override {
    store(reference_->level.restricted(coarse_level, load(fine)), coarse);
  }
  void prolong_add(const Level& coarse_level, const T* coarse, T* fine) override {
    const VectorXd values = Eigen::Map<const Vector>(coarse, coarse_level.size()).template cast<double>();
    store(load(fine) + reference_->level.prolonged(coarse_level, values), fine);
  }

  void zero(T* x) override { std::fill_n(x, size_, T{0}); }
  void copy(const T* x, T* y) override { std::copy_n(x, size_, y); }
  void scale(T a, const T* x, T* y) override { store(a * load(x), y); }
  void axpy(T a, const T* x, T* y) override { store(load(y) + a * load(x), y); }
  void dots(int count, const T* const* v, const T* w, double* result) override {
    for (int i = 0; i < count; ++i) result[i] = load(v[i]).dot(load(w));
  }
  void axpys(int count, const double* a, const T* const* v, double scale, T* w) override {
    VectorXd sum = load(w);
    for (int i = 0; i < count; ++i) sum += a[i] * load(v[i]);
    store(scale * sum, w);
  }
  void two_sums(int count, const T* const* v, const double* a, T* x, const double* b, T* y) override {
    VectorXd first = VectorXd::Zero(size_);
    VectorXd second = VectorXd::Zero(size_);
    for (int i = 0; i < count; ++i) {
      first += a[i] * load(v[i]);
      second += b[i] * load(v[i]);
    }
    store(first, x);
    store(second, y);
  }
  double l2_norm(const T* x) override { return reference_->level.l2_norm(load(x)); }
  void project(T* x) override { store(reference_->level.projected(load(x)), x); }
  void gather(std::int64_t count, const std::int64_t* index, const T* x, T* values) override {
    for (std::int64_t i = 0; i < count; ++i) values[i] = x[index[i]];
  }
  void scatter(std::int64_t count, const std::int64_t* index, const T* values, T* x) override {
    for (std::int64_t i = 0; i < count; ++i) x[index[i]] = values[i];
  }
  void scatter_add(std::int64_t count, const std::int64_t* index, const T* values, T* x) override {
    for (std::int64_t i = 0; i < count; ++i) x[index[i]] += values[i];
  }
  void dense(std::int64_t count, const std::int64_t* index, const T* matrix, const T* b, T* x) override {
    for (std::int64_t i = 0; i < count; ++i) {
      double sum = 0.0;
      for (std::int64_t j = 0; j < count; ++j) sum += static_cast<double>(matrix[i * count + j]) * b[index[j]];
      x[index[i]] = static_cast<T>(sum);
    }
  }
  void invert_dense(std::span<const DenseField> fields, double* matrix, T* inverse) override {
    invert_on_host(fields, matrix, inverse);
  }

  void from_double(const double* x, T* y) override { std::copy_n(x, size_, y); }
  void from_float(const float* x, T* y) override { std::copy_n(x, size_, y); }
  void axpys_float(int count, const double* a, const float* const* v, T* w) override {
    VectorXd sum = load(w);
    for (int i = 0; i < count; ++i) sum += a[i] * Eigen::Map<const Eigen::VectorXf>(v[i], size_).cast<double>();
    store(sum, w);
  }

 private:
  using Vector = Eigen::Matrix<T, Eigen::Dynamic, 1>;

  struct Tables final : CoefficientTables {
    Tables(const Level& what, bool at_points) : level(what, at_points) {}
    reference::ReferenceLevel level;
  };

  [[nodiscard]] VectorXd load(const T* x) const {
    if (x == nullptr) return VectorXd::Zero(size_);
    return Eigen::Map<const Vector>(x, size_).template cast<double>();
  }
  void store(const VectorXd& values, T* x) const { Eigen::Map<Vector>(x, values.size()) = values.template cast<T>(); }
  [[nodiscard]] VectorXd residual(const T* b, const T* x) const { return load(b) - reference_->level.apply(load(x)); }

  bool at_points_ = false;
  std::shared_ptr<Tables> reference_;
  std::int64_t size_;
};

class ReferenceEngine final : public Engine {
 public:
  [[nodiscard]] std::string description() const override { return "reference (1 thread, quadrature)"; }
  [[nodiscard]] int threads() const override { return 1; }

  [[nodiscard]] std::int64_t bytes_per_cell(int /*dim*/) const override { return 0; }

  // Every kind of local solver is exact here.
  std::unique_ptr<Kernels<float>> kernels_float(const Level& level, LocalSolverKind /*local*/) override {
    return std::make_unique<ReferenceKernels<float>>(level);
  }
  std::unique_ptr<Kernels<double>> kernels_double(const Level& level, LocalSolverKind /*local*/) override {
    return std::make_unique<ReferenceKernels<double>>(level);
  }

  std::unique_ptr<SparseKernels<float>> sparse_float() override { return cpu::make_sparse_kernels<float>(team_); }
  std::unique_ptr<SparseKernels<double>> sparse_double() override { return cpu::make_sparse_kernels<double>(team_); }
  std::unique_ptr<SparseAssembly> make_assembly() override { return cpu::make_assembly(*this, team_); }

  std::unique_ptr<Convection> make_convection(const Level& level, ConvectiveFlux flux) override {
    return std::make_unique<reference::ReferenceConvection>(level, flux);
  }

  void* allocate(std::size_t bytes) override {
    void* memory = std::calloc(bytes, 1);
    if (memory == nullptr) {
      throw ResourceError("reference engine: no memory for a vector of " + std::to_string(bytes) +
                          " bytes; choose a smaller problem");
    }
    in_use_ += static_cast<std::int64_t>(bytes);
    peak_ = std::max(peak_, in_use_);
    return memory;
  }
  void release(void* memory, std::size_t bytes) noexcept override {
    std::free(memory);
    in_use_ -= static_cast<std::int64_t>(bytes);
  }
  void zero(void* memory, std::size_t bytes) override { std::memset(memory, 0, bytes); }
  void upload(const void* host, void* device, std::size_t bytes) override { std::memcpy(device, host, bytes); }
  void download(const void* device, void* host, std::size_t bytes) override { std::memcpy(host, device, bytes); }
  void synchronise() override {}
  Ceilings measure_ceilings() override { return {}; }
  [[nodiscard]] std::int64_t bytes_in_use() const override { return in_use_; }
  [[nodiscard]] std::int64_t bytes_peak() const override { return peak_; }
  [[nodiscard]] std::int64_t bytes_available() const override {
    return static_cast<std::int64_t>(sysconf(_SC_AVPHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  }

 private:
  cpu::Team team_{1};
  std::int64_t in_use_ = 0;
  std::int64_t peak_ = 0;
};

}  // namespace

std::unique_ptr<Engine> make_reference_engine() { return std::make_unique<ReferenceEngine>(); }

}  // namespace solenoid
