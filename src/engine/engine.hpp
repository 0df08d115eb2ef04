#pragma once
/// \file
/// The kernel set: all that an engine implements. Algorithms (solver/) are written against it and know no engine.
///
/// A vector of a level is a pointer T* to Level::size() numbers in the engine's memory, interleaved records
/// (mesh/record.hpp). Normal unknowns on faces where the normal velocity is prescribed, the other values of hat-only
/// records, the null record and padding are zero in every vector, before and after every kernel.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/statistics.hpp"
#include "engine/ceilings.hpp"
#include "engine/convection.hpp"
#include "engine/flow_moments.hpp"
#include "engine/packed_records.hpp"
#include "engine/sparse.hpp"
#include "level/level.hpp"
#include "solenoid/communicator.hpp"
#include "solenoid/field.hpp"
#include "solenoid/integrals.hpp"
#include "solution/body_forces.hpp"

namespace solenoid {

/// The unknowns [begin, end) of a field in a dense matrix.
struct DenseField {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  /// Of each constant of the field that the matrix maps to zero (one for each part of the domain): the unknowns that
  /// are equal in it, the others being zero. No unknown is in two of them.
  std::vector<std::vector<std::int64_t>> constants;
};

/// What is made of the coefficients of a level: local solvers, matrices times coefficients, inverses. It lies where it
/// is used, by who made it and no other. Tables that are kept can be handed over again.
class CoefficientTables {
 public:
  virtual ~CoefficientTables() = default;

  const void* maker = nullptr;
};

/// Tables of class M by `maker`.
template <class M, class... Arguments>
std::shared_ptr<M> tables_by(const void* maker, Arguments&&... arguments) {
  auto tables = std::make_shared<M>(std::forward<Arguments>(arguments)...);
  tables->maker = maker;
  return tables;
}

/// Tables as the class M that `maker` made them as. \throws std::logic_error if another one made them.
template <class M>
std::shared_ptr<M> made_as(const std::shared_ptr<CoefficientTables>& tables, const void* maker) {
  auto mine = std::dynamic_pointer_cast<M>(tables);
  if (mine == nullptr || mine->maker != maker) {
    throw std::logic_error("coefficients were handed over to who did not make their tables");
  }
  return mine;
}

/// Messages between ranks that kernels of an engine exchange by themselves: transports for that engine make them.
class KernelMessages {
 public:
  virtual ~KernelMessages() = default;
};

/// Kernels of one level in precision T (float or double). Deterministic for a given engine and thread count.
/// Names follow the paper: A is the symmetric indefinite Stokes operator
///     (A x)_u = A_u u - B^T p,   (A x)_p = -B u,   B = div;
/// with Poisson's equation A is its (positive definite) interior-penalty operator.
template <class T>
class Kernels {
 public:
  virtual ~Kernels() = default;
  [[nodiscard]] virtual const Level& level() const = 0;

  /// From now on apply() and residual() are those of the viscosity at points, where the coefficients have that
  /// (CellCoefficients::points). Without this, and in smoothers, it is that of cells.
  virtual void take_points() = 0;
  /// y = A x
  virtual void apply(const T* x, T* y) = 0;
  /// r = b - A x
  virtual void residual(const T* b, const T* x, T* r) = 0;
  /// Whether these kernels gain from residual_rounded() in place of residual(), a norm and rounding. All ranks agree.
  [[nodiscard]] virtual bool rounds_residuals() const { return false; }
  /// r = b - A x, rounded; then norm_of_rounded() is |b - A x|.
  virtual void residual_rounded(const T* /*b*/, const T* /*x*/, float* /*r*/) { throw does_not_round(); }
  virtual double norm_of_rounded() { throw does_not_round(); }
  /// One colour of the multiplicative smoother: solves the local problem of every patch of the colour with the residual
  /// of x, y = x + sum_j R_j^T A_j^+ R_j (b - A x). x and y are different vectors; every value of y is written.
  /// x == nullptr stands for zero.
  virtual void smooth(int colour, const T* b, const T* x, T* y) = 0;
  /// One colour of the additive smoother: y += damping * sum_j R_j^T A_j^+ R_j (b - A x).
  virtual void smooth_add(int colour, const T* b, const T* x, T* y, T damping) = 0;

  /// r = b - A x where smooth_small() reads it for a group of small patches; elsewhere r is anything.
  virtual void residual_for_small(int /*group*/, const T* b, const T* x, T* r) { residual(b, x, r); }
  /// One group of small patches (Level::small_patches), which share no unknown, with the residual r: x += damping *
  /// sum_j R_j^T A_j^+ R_j r. x and r are different vectors.
  virtual void smooth_small(int group, const T* r, T* x, T damping) = 0;

  /// Makes what smooth (or smooth_add) and smooth_small need; otherwise their first use does.
  virtual void prepare_smoother(bool /*additive*/) {}
  /// Tables of the coefficients that the level has now (Level::set_coefficients), beside those in use. Local problems
  /// are solved for that, so it takes its time. Smoothers are prepared before.
  [[nodiscard]] virtual std::shared_ptr<CoefficientTables> make_tables() = 0;
  /// Hands over tables that these kernels made: they have those coefficients from now on. Returns those that were in
  /// use. That is quick. Recorded work is to be refreshed before it runs again (Recorded).
  virtual std::shared_ptr<CoefficientTables> use_tables(std::shared_ptr<CoefficientTables> tables) = 0;

  /// Makes what the transfers need; otherwise their first use does.
  virtual void prepare_transfer(const Level& /*coarse_level*/) {}
  /// coarse = P^T fine, where `coarse` is a vector of the next coarser level (`coarse_level`).
  virtual void restrict_to(const Level& coarse_level, const T* fine, T* coarse) = 0;
  /// fine += P coarse
  virtual void prolong_add(const Level& coarse_level, const T* coarse, T* fine) = 0;
  /// fine = P coarse
  virtual void prolong(const Level& coarse_level, const T* coarse, T* fine) {
    zero(fine);
    prolong_add(coarse_level, coarse, fine);
  }

  /// b = (f, v) for every basis function v, by k + 2 Gauss points per direction, as assemble_load (solver/load.hpp)
  /// has it; or false: this engine leaves that to the host, and what is in b means nothing.
  virtual bool load(const VectorField& /*force*/, T* /*b*/) { return false; }

  // Vector operations.
  virtual void zero(T* x) = 0;
  virtual void copy(const T* x, T* y) = 0;
  virtual void scale(T a, const T* x, T* y) = 0;  ///< y = a x; may be in place
  virtual void axpy(T a, const T* x, T* y) = 0;   ///< y += a x
  double dot(const T* x, const T* y) {
    double result = 0.0;
    dots(1, &x, y, &result);
    return result;
  }
  /// result[i] = (v[i], w), i < count: one pass over w. Of owned records, as l2_norm.
  virtual void dots(int count, const T* const* v, const T* w, double* result) = 0;
  /// w = scale (w + sum_i a[i] v[i]): one pass over w.
  virtual void axpys(int count, const double* a, const T* const* v, double scale, T* w) = 0;
  /// x = sum_i a[i] v[i] and y = sum_i b[i] v[i]: one pass over v, at most most_sums vectors, which x and y are not.
  virtual void two_sums(int count, const T* const* v, const double* a, T* x, const double* b, T* y) = 0;
  static constexpr int most_sums = 8;
  /// The L2 norm of the velocity with the coefficients x, or of Poisson's u.
  virtual double l2_norm(const T* x) = 0;
  /// Removes the constants that A maps to zero (Level::constants).
  virtual void project(T* x) = 0;
  // Of `count` numbers, which may be 0; of several ranks each moves its own.
  virtual void gather(std::int64_t count, const std::int64_t* index, const T* x,
                      T* values) = 0;  ///< values[i] = x[index[i]]
  virtual void scatter(std::int64_t count, const std::int64_t* index, const T* values,
                       T* x) = 0;  ///< x[index[i]] = values[i]
  /// x[index[i]] += values[i], each place once.
  virtual void scatter_add(std::int64_t count, const std::int64_t* index, const T* values, T* x) = 0;

  // Of the part of a level that a rank has (engine/distributed/): not all engines can do that.
  /// Whether smooth() reads of x no more than what lies around patches and the pressures in them, where patches have
  /// neighbours on all sides; of other patches their old values too.
  [[nodiscard]] virtual bool smooths_from_halo() const { return false; }
  /// Copies what messages have out of a vector, and into it.
  virtual void pack(std::span<const PackedRecords> /*what*/, const T* /*x*/, T* /*values*/) { throw whole_only(); }
  virtual void unpack(std::span<const PackedRecords> /*what*/, const T* /*values*/, T* /*x*/) { throw whole_only(); }
  /// The ghosts in x, a vector of level `of` (with records as those of these kernels' level), become what their owners
  /// have. Kernels see to those of their own level.
  virtual void bring_ghosts(const Level& /*of*/, T* /*x*/) {}
  /// sums[i] = the sum of the constant mode over the owned records that carry Level::constants[i].
  virtual void sum_constants(const T* /*x*/, double* /*sums*/) { throw whole_only(); }
  /// The rest of project(), from the sums over all ranks.
  virtual void remove_constants(const double* /*sums*/, T* /*x*/) { throw whole_only(); }

  /// smooth() in two steps: patches that read no ghosts, while the caller's thread calls advance() now and then; then
  /// all else. Kernels may leave all to the second one.
  virtual void smooth_inner(int /*colour*/, const T* /*b*/, const T* /*x*/, T* /*y*/,
                            const std::function<void()>& /*advance*/) {}
  virtual void smooth_outer(int colour, const T* b, const T* x, T* y) { smooth(colour, b, x, y); }
  /// Whether one kernel smooths all patches of a colour and should bring ghosts.
  [[nodiscard]] virtual bool brings_ghosts() const { return false; }
  /// smooth(), whose kernel brings ghosts of `vector`, which is b or x, while it smooths patches that read none.
  virtual void smooth_bringing(int /*colour*/, const T* /*b*/, const T* /*x*/, T* /*y*/, KernelMessages& /*messages*/,
                               T* /*vector*/) {
    throw whole_only();
  }

  // Dense symmetric matrices, row-major in the engine's memory.
  /// x = Z b on the unknowns in `index` (`count` of them), the rest of x is left alone.
  virtual void dense(std::int64_t count, const std::int64_t* index, const T* matrix, const T* b, T* x) = 0;
  /// inverse = Z, rounded, where Z is the (pseudo-)inverse of `matrix`, whose unknowns are those of `fields` one after
  /// the other; it maps the constants of the fields to zero. No pivots are looked for: once the unknowns of earlier
  /// fields are eliminated, what remains must be (positive or negative) definite on each, up to its constants. `matrix`
  /// is overwritten.
  virtual void invert_dense(std::span<const DenseField> fields, double* matrix, T* inverse) = 0;

  // Between precisions (each engine implements both directions for its own T).
  virtual void from_double(const double* x, T* y) = 0;
  virtual void from_float(const float* x, T* y) = 0;
  /// w += sum_i a[i] v[i]: one pass over w.
  virtual void axpys_float(int count, const double* a, const float* const* v, T* w) = 0;

 private:
  static std::logic_error does_not_round() { return std::logic_error("these kernels do not round residuals"); }
  static std::logic_error whole_only() { return std::logic_error("this engine has kernels for whole levels only"); }
};

class SparseAssembly;

/// Integrals over the cells of a level of the fields whose coefficients are x, a vector of that level. What an engine
/// does not say otherwise is left to the host.
class Integrator {
 public:
  virtual ~Integrator() = default;
  [[nodiscard]] virtual FlowIntegrals flow(const double* x) = 0;
  /// Integral of nu |grad u|^2, in the stress form of 2 nu |eps(u)|^2, with the viscosity of these coefficients.
  [[nodiscard]] virtual double dissipation(const double* x, const Coefficients& coefficients) = 0;
  /// Integral of |u - exact|^2 by k + 3 Gauss points per direction; or nullopt, where `exact` is a function of the
  /// caller or not finite somewhere, or cells are sheared: that is left to the host.
  [[nodiscard]] virtual std::optional<double> velocity_error_square(const VectorField& /*exact*/, const double* /*x*/) {
    return {};
  }
  /// For each part of the domain (Grid::part) how the pressure, or Poisson's u, differs from `exact`; or nullopt, for
  /// the same reasons or because there are many parts.
  [[nodiscard]] virtual std::optional<std::vector<Variance>> scalar_errors(const ScalarField& /*exact*/,
                                                                           const double* /*x*/) {
    return {};
  }
  /// What Solution::forces() is made of: sums over the boundary faces of this rank's cells, of a level with the hats on
  /// all sides; or nullopt, where that is left to the host. If one rank throws, all do.
  [[nodiscard]] virtual std::optional<SumsOfBodies> forces(const FlowOfForces& /*flow*/) { return {}; }
  /// Arrays over all cells of the mesh (solenoid/arrays.hpp) in the memory of a device (Engine::stream), which makes
  /// them: the velocity at so many points per direction, NaN where there are no cells; and fluxes through faces, for
  /// each direction. Not of levels that ranks share.
  virtual void velocity_at(int /*points*/, const double* /*x*/, double* /*values*/) { throw no_arrays(); }
  virtual void face_fluxes(const double* /*x*/, const std::array<double*, 3>& /*fluxes*/) { throw no_arrays(); }

 private:
  static std::logic_error no_arrays() { return std::logic_error("arrays of this level are made by the host"); }
};

/// Unknowns up to which an engine would rather solve a coarse level by a dense inverse (Kernels::dense)
struct DenseLimits {
  std::int64_t than_by_cycle = 0;    ///< than by a cycle on this level and coarser ones,
  std::int64_t than_by_k_cycle = 0;  ///< than by a K-cycle of sparse matrices (solver/mac), which comes by many times,
  std::int64_t than_by_mac = 0;      ///< than by the marker-and-cell scheme where there are no coarser ones.

  friend bool operator==(const DenseLimits&, const DenseLimits&) = default;
};

/// Work to be repeated (Engine::record).
class Recorded {
 public:
  Recorded() = default;
  Recorded(std::function<void()> repeat, std::function<void()> refresh)
      : repeat_(std::move(repeat)), refresh_(std::move(refresh)) {}

  explicit operator bool() const { return repeat_ != nullptr; }
  void operator()() const { repeat_(); }
  /// Brings it up to date after kernels were handed other tables: it starts the same kernels on the same vectors. Takes
  /// about a microsecond for each of them, much less than recording anew.
  void refresh() const { refresh_(); }

 private:
  std::function<void()> repeat_;
  std::function<void()> refresh_;
};

/// A device with its memory. Everything of a solve is allocated through it, so that it knows the peak.
class Engine {
 public:
  virtual ~Engine() = default;
  /// What people see: "cpu (2 threads, avx512)".
  [[nodiscard]] virtual std::string description() const = 0;
  [[nodiscard]] virtual int threads() const = 0;
  /// Of several ranks: how messages travel, as people know it.
  [[nodiscard]] virtual std::string transport() const { return {}; }
  /// Bytes per cell of what an engine keeps of a level beside vectors: for the prediction of memory.
  [[nodiscard]] virtual std::int64_t bytes_per_cell(int dim) const = 0;

  /// Vectors that the smoother keeps of a level whose operator is made element by element (Level::goes_by_elements).
  [[nodiscard]] virtual int vectors_by_elements([[maybe_unused]] bool additive) const { return 0; }

  [[nodiscard]] virtual DenseLimits dense_limits() const { return {}; }

  /// Names of the variants of the multiplicative smoother, with the direct local solver, that this engine has for an
  /// equation. Kernels choose by the size of a level; tests and benchmarks choose one for all kernels that are made
  /// from then on (an empty name: by size again).
  [[nodiscard]] virtual std::vector<std::string> smoother_variants(const Equation& /*equation*/,
                                                                   bool /*single*/) const {
    return {};
  }
  virtual void choose_smoother(std::string /*variant*/) {}

  /// Kernels of a level, which must outlive them. \throws InputError if this build lacks the order.
  virtual std::unique_ptr<Kernels<float>> kernels_float(const Level& level, LocalSolverKind local) = 0;
  virtual std::unique_ptr<Kernels<double>> kernels_double(const Level& level, LocalSolverKind local) = 0;

  /// Of a level, which must outlive it; nullptr where the host integrates by itself (solution/): x is in its memory
  /// then.
  virtual std::unique_ptr<Integrator> make_integrator(const Level& /*level*/) { return nullptr; }

  /// Of a level, which must outlive it; nullptr where the host's own will do (time/host_moments.hpp): vectors are in
  /// its memory then.
  virtual std::unique_ptr<FlowMoments> make_flow_moments(const Level& /*level*/) { return nullptr; }

  /// Kernels for sparse matrices.
  virtual std::unique_ptr<SparseKernels<float>> sparse_float() = 0;
  virtual std::unique_ptr<SparseKernels<double>> sparse_double() = 0;
  /// What makes their matrices.
  virtual std::unique_ptr<SparseAssembly> make_assembly() = 0;

  /// The convective term of a level, which must outlive it.
  virtual std::unique_ptr<Convection> make_convection(const Level& level, ConvectiveFlux flux) = 0;

  /// Zeroed memory of the engine. What a solve uses is allocated before it, as far as it is known. \throws
  /// ResourceError
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* memory, std::size_t bytes) noexcept = 0;
  virtual void zero(void* memory, std::size_t bytes) = 0;
  virtual void upload(const void* host, void* device, std::size_t bytes) = 0;
  virtual void download(const void* device, void* host, std::size_t bytes) = 0;
  /// Others than kernels and this engine have written into a vector, or may have.
  virtual void changed_outside(const void* /*vector*/) {}
  /// Work to be repeated on the same memory. An engine for which starting kernels is slow records them (and may do so
  /// without running them); `work` must not depend on results of kernels, and lives as long as what is returned.
  virtual Recorded record(std::function<void()> work) {
    return {std::move(work), [] {}};
  }
  /// Waits for all work; timing needs it.
  virtual void synchronise() = 0;
  /// The cudaStream_t in whose order all work is, or nullptr where work is done when a call returns.
  [[nodiscard]] virtual void* stream() const { return nullptr; }
  /// What is started from now on comes after what is in another stream so far.
  virtual void wait_for(void* /*stream*/) {}
  /// What this machine can do at most; of several ranks all together.
  virtual Ceilings measure_ceilings() = 0;
  /// Does `work`, recording nothing, and lists the kernels that it starts. Empty where kernels are functions like all
  /// others.
  virtual std::vector<KernelUse> profile(const std::function<void()>& work) {
    work();
    return {};
  }
  [[nodiscard]] virtual std::int64_t bytes_in_use() const = 0;
  [[nodiscard]] virtual std::int64_t bytes_peak() const = 0;
  [[nodiscard]] virtual std::int64_t bytes_available() const = 0;
};

template <class T>
std::unique_ptr<Kernels<T>> make_kernels(Engine& engine, const Level& level, LocalSolverKind local) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return engine.kernels_float(level, local);
  } else {
    return engine.kernels_double(level, local);
  }
}

template <class T>
std::unique_ptr<SparseKernels<T>> make_sparse_kernels(Engine& engine) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return engine.sparse_float();
  } else {
    return engine.sparse_double();
  }
}

/// Engine memory for `size` numbers, zeroed.
template <class T>
class Vector {
 public:
  Vector() = default;
  Vector(Engine& engine, std::int64_t size)
      : engine_(&engine), size_(size), data_(static_cast<T*>(engine.allocate(bytes()))) {}
  Vector(Vector&& other) noexcept { swap(other); }
  Vector& operator=(Vector&& other) noexcept {
    swap(other);
    return *this;
  }
  Vector(const Vector&) = delete;
  Vector& operator=(const Vector&) = delete;
  ~Vector() {
    if (data_ != nullptr) engine_->release(data_, bytes());
  }

  [[nodiscard]] T* data() { return data_; }
  [[nodiscard]] const T* data() const { return data_; }
  [[nodiscard]] std::int64_t size() const { return size_; }
  void upload(const T* host) { engine_->upload(host, data_, size_ * sizeof(T)); }
  void download(T* host) const { engine_->download(data_, host, size_ * sizeof(T)); }

 private:
  [[nodiscard]] std::size_t bytes() const { return size_ * sizeof(T); }
  void swap(Vector& other) noexcept {
    std::swap(engine_, other.engine_);
    std::swap(size_, other.size_);
    std::swap(data_, other.data_);
  }
  Engine* engine_ = nullptr;
  std::int64_t size_ = 0;
  T* data_ = nullptr;
};

/// `values` in the engine's memory.
template <class T, class Allocator>
Vector<T> on_device(Engine& engine, const std::vector<T, Allocator>& values) {
  if (values.empty()) return {};
  Vector<T> vector(engine, std::ssize(values));
  vector.upload(values.data());
  return vector;
}

/// The engines of this build.
std::unique_ptr<Engine> make_cpu_engine(int threads = 0);
std::unique_ptr<Engine> make_reference_engine();
/// \throws ResourceError that says why there is none, as does cuda_unavailable().
std::unique_ptr<Engine> make_cuda_engine();
/// Of this host; the one that engines are made on by this thread, and from now on.
int cuda_devices();
int cuda_device();
void use_cuda_device(int device);
/// Engine::dense_limits() of an engine on one.
DenseLimits cuda_dense_limits();
/// Why no CUDA device can be used: no driver, no device, not in this build; empty if one can.
std::string cuda_unavailable();
/// The engine of a choice: `automatic` takes a CUDA device if there is one. `threads` is for the cpu engine. Of several
/// ranks each takes a device of its host, or its share of the cores.
std::unique_ptr<Engine> make_engine(DeviceChoice device, int threads,
                                    const std::shared_ptr<const Communicator>& ranks = nullptr,
                                    TransportChoice transport = TransportChoice::automatic);

}  // namespace solenoid
