#include "studies/paper_kernels/paper_kernels.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <random>

#include "engine/cuda/error.hpp"
#include "engine/engine.hpp"
#include "solenoid/error.hpp"
#include "studies/paper_kernels/cube.hpp"
#include "studies/timing.hpp"

namespace solenoid::paper {
namespace {

constexpr std::array operator_stages{"padding", "basic", "shared memory", "conflict-free"};
constexpr std::array solver_stages{"direct", "Schur complement", "conflict-free"};
constexpr int colours = 8;
constexpr int paper_iterations = 15;  // of CG, "on average"

/// CG to rounding: what rounding leaves of the constant in its residual stays there.
constexpr int most_iterations = 150;
template <class T>
constexpr T rounding = 30 * std::numeric_limits<T>::epsilon();

template <class T>
Kernels<T> kernels_of(int order) {
  Kernels<T> kernels{};
#define SOLENOID_PAPER_ORDER(k)    \
  if (order == (k)) {              \
    add_operator<T, (k)>(kernels); \
    add_solver<T, (k)>(kernels);   \
    return kernels;                \
  }
#include "paper_orders.inc"
#undef SOLENOID_PAPER_ORDER
  throw InputError(fmt::format("this build has no kernels of the paper for order {}", order));
}

void check_launch(const char* what) { cuda::check(cudaGetLastError(), what); }

template <class S>
class DeviceArray {
 public:
  /// Of zeros.
  explicit DeviceArray(std::int64_t size) : bytes_(size * sizeof(S)) {
    void* memory = nullptr;
    cuda::check(cudaMalloc(&memory, std::max<std::size_t>(bytes_, 1)), "cudaMalloc");
    data_ = static_cast<S*>(memory);
    clear();
  }
  explicit DeviceArray(const std::vector<S>& host) : DeviceArray(static_cast<std::int64_t>(host.size())) {
    cuda::check(cudaMemcpy(data_, host.data(), bytes_, cudaMemcpyHostToDevice), "upload");
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(data_); }

  void clear() { cuda::check(cudaMemsetAsync(data_, 0, bytes_), "zeroing"); }
  void copy(const DeviceArray& from) {
    cuda::check(cudaMemcpyAsync(data_, from.data_, bytes_, cudaMemcpyDeviceToDevice), "copy");
  }
  [[nodiscard]] std::vector<S> download() const {
    std::vector<S> host(bytes_ / sizeof(S));
    cuda::check(cudaMemcpy(host.data(), data_, bytes_, cudaMemcpyDeviceToHost), "download");
    return host;
  }
  S* data() { return data_; }
  const S* data() const { return data_; }

 private:
  std::size_t bytes_;
  S* data_ = nullptr;
};

template <class T>
std::vector<T> in_precision(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

class DevicePatches {
 public:
  explicit DevicePatches(const PatchList& list) : count_(list.count()), cells_(list.cells), kind_(list.kind) {}
  [[nodiscard]] Patches on(const DeviceArray<std::int32_t>& first) const {
    return {first.data(), cells_.data(), kind_.data(), count_};
  }
  [[nodiscard]] int count() const { return count_; }

 private:
  int count_;
  DeviceArray<std::int32_t> cells_;
  DeviceArray<std::uint8_t> kind_;
};

template <class T>
class Operator {
 public:
  Operator(const Cube& cube, double h, const Kernels<T>& kernels, const DeviceArray<std::int32_t>& first)
      : kernels_(kernels),
        first_(first),
        patches_(all_patches(cube)),
        exact_(in_precision<T>(operator_matrices(cube.order, h, false))) {
    const auto padded = in_precision<T>(operator_matrices(cube.order, h, true));
    const auto exact = in_precision<T>(operator_matrices(cube.order, h, false));
    kernels_.set_constants(padded.data(), exact.data());
    check_launch("constant memory");
  }
  /// y += factor A x
  void apply(Stage stage, const DeviceArray<T>& x, DeviceArray<T>& y, T factor) const {
    kernels_.apply(stage, {patches_.on(first_), exact_.data(), x.data(), y.data(), factor});
    check_launch("operator");
  }
  [[nodiscard]] Counts counts(Stage stage) const { return times(kernels_.count_apply(stage), patches_.count()); }

  static Counts times(Counts counts, int patches) {
    return {counts.flops * patches, counts.device_bytes * patches, counts.shared_bytes * patches};
  }

 private:
  const Kernels<T>& kernels_;
  const DeviceArray<std::int32_t>& first_;
  DevicePatches patches_;
  DeviceArray<T> exact_;
};

/// The local solvers of all colours.
template <class T>
class Solver {
 public:
  Solver(const Cube& cube, double h, const Kernels<T>& kernels, const DeviceArray<std::int32_t>& first)
      : kernels_(kernels), first_(first), matrices_(in_precision<T>(solver_matrices(cube.order, h))) {
    std::array<bool, patch_kinds> there{};
    for (int colour = 0; colour < colours; ++colour) {
      const PatchList list = patches_of_colour(cube, colour);
      for (const int kind : list.kind) there[kind] = true;
      patches_.push_back(std::make_unique<DevicePatches>(list));
    }
    make_inverses(cube.order, there);
  }
  /// x += sum_j R_j^T A_j^+ R_j r over the patches of a colour
  void solve(Local local, int colour, const DeviceArray<T>& r, DeviceArray<T>& x, int iterations, T tolerance) const {
    if (patches_[colour]->count() > 0) solve(local, patches_[colour]->on(first_), r, x, iterations, tolerance);
  }
  [[nodiscard]] Counts counts(Local local, int colour) const {
    return Operator<T>::times(kernels_.count_solve(local, paper_iterations), patches_[colour]->count());
  }

 private:
  void solve(Local local, const Patches& patches, const DeviceArray<T>& r, DeviceArray<T>& x, int iterations,
             T tolerance) const {
    SolverArguments<T> arguments{.patches = patches,
                                 .matrices = matrices_.data(),
                                 .inverse = nullptr,
                                 .inverse_of = {},
                                 .r = r.data(),
                                 .x = x.data(),
                                 .iterations = iterations,
                                 .tolerance = tolerance};
    if (local == Local::direct) {
      arguments.inverse = inverses_->data();
      std::copy(inverse_of_.begin(), inverse_of_.end(), arguments.inverse_of);
    }
    kernels_.solve(local, arguments);
    check_launch("local solver");
  }
  /// The columns of an inverse are what the iterative solver makes of unit vectors.
  void make_inverses(int order, const std::array<bool, patch_kinds>& there) {
    const std::int64_t square = std::int64_t{patch_unknowns(order)} * patch_unknowns(order);
    inverses_ = std::make_unique<DeviceArray<T>>(std::count(there.begin(), there.end(), true) * square);
    int made = 0;
    for (int kind = 0; kind < patch_kinds; ++kind) {
      if (!there[kind]) continue;
      const SeparatePatches separate(order, kind);
      const DeviceArray<std::int32_t> first(separate.first);
      const DevicePatches list(separate.patches);
      const Patches patches = list.on(first);
      DeviceArray<T> r(separate.size);
      DeviceArray<T> x(separate.size);
      kernels_.unit_loads(patches, r.data());
      solve(Local::conflict_free, patches, r, x, most_iterations, rounding<T>);
      kernels_.collect_inverse(patches, x.data(), inverses_->data() + made * square);
      check_launch("inverse of a patch");
      inverse_of_[kind] = static_cast<std::uint8_t>(made++);
    }
  }

  const Kernels<T>& kernels_;
  const DeviceArray<std::int32_t>& first_;
  DeviceArray<T> matrices_;
  std::vector<std::unique_ptr<DevicePatches>> patches_;
  std::unique_ptr<DeviceArray<T>> inverses_;
  std::array<std::uint8_t, patch_kinds> inverse_of_{};
};

// --- speed -----------------------------------------------------------------------------------------------------------

template <class Work>
double median_seconds(Work&& work) {
  constexpr int warm_up = 2;
  constexpr int runs = 11;
  cudaEvent_t start{};
  cudaEvent_t stop{};
  cuda::check(cudaEventCreate(&start), "cudaEventCreate");
  cuda::check(cudaEventCreate(&stop), "cudaEventCreate");
  std::vector<double> times;
  rest();
  for (int i = -warm_up; i < runs; ++i) {
    cuda::check(cudaEventRecord(start), "cudaEventRecord");
    work();
    cuda::check(cudaEventRecord(stop), "cudaEventRecord");
    cuda::check(cudaEventSynchronize(stop), "timed work");
    float milliseconds = 0.0F;
    cuda::check(cudaEventElapsedTime(&milliseconds, start, stop), "cudaEventElapsedTime");
    if (i >= 0) times.push_back(1e-3 * milliseconds);
  }
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
  std::sort(times.begin(), times.end());
  return times[runs / 2];
}

template <class T>
constexpr Real real_of() {
  return sizeof(T) == sizeof(float) ? Real::single_precision : Real::double_precision;
}

template <class T>
Timing timing(const char* kernel, const char* stage, const Cube& cube, double seconds, const Counts& counts) {
  return {kernel,  stage,        cube.order,          real_of<T>(),       cube.unknowns,
          seconds, counts.flops, counts.device_bytes, counts.shared_bytes};
}

/// The cube that comes closest to so many unknowns.
Cube cube_of(int order, std::int64_t unknowns) {
  const double cells = std::cbrt(static_cast<double>(unknowns) / (4.0 * std::pow(order + 1, 3)));
  const int pairs = std::max(2, static_cast<int>(std::lround(0.5 * cells)));
  return {order, {2 * pairs, 2 * pairs, 2 * pairs}};
}

/// What times the operator and what times the smoother have in common.
template <class T>
struct Bench {
  Bench(int order, std::int64_t unknowns)
      : kernels(kernels_of<T>(order)),
        cube(cube_of(order, unknowns)),
        first(cube.first),
        laplace(cube, h(), kernels, first),
        b(cube.size),
        x(cube.size),
        r(cube.size) {
    fill_noise(cube.size, b.data());
    fill_noise(cube.size, x.data());
    check_launch("noise");
  }
  [[nodiscard]] double h() const { return 1.0 / cube.extent[0]; }

  Kernels<T> kernels;
  Cube cube;
  DeviceArray<std::int32_t> first;
  Operator<T> laplace;
  DeviceArray<T> b;
  DeviceArray<T> x;
  DeviceArray<T> r;
};

template <class T>
std::vector<Timing> measure_operator_in(int order, std::int64_t unknowns) {
  Bench<T> bench(order, unknowns);
  std::vector<Timing> timings;
  for (const Stage stage : {Stage::padding, Stage::basic, Stage::shared_memory, Stage::conflict_free}) {
    const double seconds = median_seconds([&] {
      bench.r.clear();
      bench.laplace.apply(stage, bench.x, bench.r, T(1));
    });
    timings.push_back(timing<T>("operator", operator_stages[static_cast<int>(stage)], bench.cube, seconds,
                                bench.laplace.counts(stage)));
  }
  return timings;
}

template <class T>
std::vector<Timing> measure_smoother_in(int order, std::int64_t unknowns) {
  Bench<T> bench(order, unknowns);
  const Solver<T> solver(bench.cube, bench.h(), bench.kernels, bench.first);
  std::vector<Timing> timings;
  fill_noise(bench.cube.size, bench.r.data());
  for (const Local local : {Local::direct, Local::schur, Local::conflict_free}) {
    const double seconds = median_seconds([&] { solver.solve(local, 0, bench.r, bench.x, paper_iterations, T(0)); });
    timings.push_back(timing<T>("local solver", solver_stages[static_cast<int>(local)], bench.cube, seconds,
                                solver.counts(local, 0)));
  }
  for (const Local local : {Local::schur, Local::conflict_free}) {
    fill_noise(bench.cube.size, bench.x.data());
    const double seconds = median_seconds([&] {
      for (int colour = 0; colour < colours; ++colour) {
        bench.r.copy(bench.b);
        bench.laplace.apply(Stage::conflict_free, bench.x, bench.r, T(-1));
        solver.solve(local, colour, bench.r, bench.x, paper_iterations, T(0));
      }
    });
    Counts total;
    for (int colour = 0; colour < colours; ++colour) {
      for (const Counts& counts : {bench.laplace.counts(Stage::conflict_free), solver.counts(local, colour)}) {
        total.flops += counts.flops;
        total.device_bytes += counts.device_bytes;
        total.shared_bytes += counts.shared_bytes;
      }
    }
    timings.push_back(timing<T>("smoothing step", solver_stages[static_cast<int>(local)], bench.cube, seconds, total));
  }
  return timings;
}

// --- correctness -----------------------------------------------------------------------------------------------------

/// place(index in the library's vector, index in the paper's) for every unknown.
template <class Place>
void match_vectors(const Cube& cube, const Level& level, Place place) {
  const int n = level.equation.n();
  const int block = n * n * n;
  for (const Record cell : level.grid.layout().cells()) {
    const auto& position = level.grid.position(cell);
    const std::int32_t* const first = cube.first.data() + entities * cube.cell({position[0], position[1], position[2]});
    level.for_each_unknown_of(cell, [&](int i) {
      const int c = i / block;
      const int column = i % (n * n);
      const int row = i % block / (n * n);
      const std::int32_t at = c == 3     ? first[pressure] + i % block
                              : row == 0 ? first[2 * c + lower_face] + column
                                         : first[interior] + (c * (n - 1) + row - 1) * n * n + column;
      place(level.index(cell, i), at);
    });
  }
}

template <class T>
double difference(const Cube& cube, const Level& level, const std::vector<double>& expected,
                  const DeviceArray<T>& actual) {
  const std::vector<T> got = actual.download();
  double largest = 0.0;
  double worst = 0.0;
  match_vectors(cube, level, [&](std::int64_t library, std::int64_t paper) {
    largest = std::max(largest, std::abs(expected[library]));
    const double here = std::abs(expected[library] - static_cast<double>(got[paper]));
    if (!(here <= worst)) worst = here;
  });
  return worst / largest;
}

template <class T>
std::vector<Check> check_in(int order) {
  const Kernels<T> kernels = kernels_of<T>(order);
  const auto engine = make_cpu_engine(1);
  std::vector<Check> operators;
  for (const char* const stage : operator_stages) operators.push_back({"operator", stage, order, real_of<T>()});
  std::vector<Check> solvers;
  for (const char* const stage : solver_stages) solvers.push_back({"local solver", stage, order, real_of<T>()});

  constexpr double h = 0.25;
  for (const std::array<int, 3>& extent : {std::array{3, 4, 2}, std::array{2, 3, 4}, std::array{4, 2, 3}}) {
    Mesh mesh;
    mesh.cells = extent;
    for (int d = 0; d < 3; ++d) mesh.upper[d] = h * extent[d];
    const Equation equation{.dim = 3, .order = order};
    const PatchRules rules{.problem = PatchProblem::galerkin, .colour_order = ColourOrder::lexicographic};
    const Boundary walls;
    const Level level(equation, Coefficients{}, Grid(mesh, walls), rules);
    const auto library = engine->kernels_double(level, LocalSolverKind::direct);
    const Cube cube(order, extent);
    std::mt19937 generator(order);
    std::uniform_real_distribution<double> uniform(-1.0, 1.0);
    std::vector<double> load(level.size(), 0.0);
    std::vector<double> start(level.size(), 0.0);
    std::vector<T> paper_load(cube.size, T(0));
    std::vector<T> paper_start(cube.size, T(0));
    match_vectors(cube, level, [&](std::int64_t i, std::int64_t j) {
      load[i] = paper_load[j] = static_cast<T>(uniform(generator));
      start[i] = paper_start[j] = static_cast<T>(uniform(generator));
    });
    const DeviceArray<std::int32_t> first(cube.first);
    const Operator<T> laplace(cube, h, kernels, first);
    const Solver<T> solver(cube, h, kernels, first);
    const DeviceArray<T> x(paper_start);
    std::vector<double> expected(level.size());

    library->apply(start.data(), expected.data());
    for (int stage = 0; stage < 4; ++stage) {
      DeviceArray<T> y(cube.size);
      laplace.apply(static_cast<Stage>(stage), x, y, T(1));
      operators[stage].difference = std::max(operators[stage].difference, difference(cube, level, expected, y));
    }
    for (std::size_t i = 0; i < level.patches.colours.size(); ++i) {
      const auto& position = level.grid.position(level.patches.lower_cell[level.patches.colours[i].front().begin]);
      const int colour = position[0] % 2 + 2 * (position[1] % 2) + 4 * (position[2] % 2);
      library->smooth(static_cast<int>(i), load.data(), start.data(), expected.data());
      for (int local = 0; local < 3; ++local) {
        DeviceArray<T> r(paper_load);
        DeviceArray<T> y(paper_start);
        laplace.apply(Stage::conflict_free, x, r, T(-1));
        solver.solve(static_cast<Local>(local), colour, r, y, most_iterations, rounding<T>);
        solvers[local].difference = std::max(solvers[local].difference, difference(cube, level, expected, y));
      }
    }
  }
  for (Check& check : operators) check.tolerance = 100 * std::numeric_limits<T>::epsilon();
  for (Check& check : solvers) check.tolerance = 1000 * std::numeric_limits<T>::epsilon();
  solvers.front().tolerance = 5000 * std::numeric_limits<T>::epsilon();  // direct: every column has its own error
  operators.insert(operators.end(), solvers.begin(), solvers.end());
  return operators;
}

}  // namespace

std::vector<int> orders() {
  std::vector<int> list;
#define SOLENOID_PAPER_ORDER(k) list.push_back(k);
#include "paper_orders.inc"
#undef SOLENOID_PAPER_ORDER
  return list;
}

std::vector<Timing> measure_operator(int order, std::int64_t unknowns, Real real) {
  return real == Real::single_precision ? measure_operator_in<float>(order, unknowns)
                                        : measure_operator_in<double>(order, unknowns);
}

std::vector<Timing> measure_smoother(int order, std::int64_t unknowns, Real real) {
  return real == Real::single_precision ? measure_smoother_in<float>(order, unknowns)
                                        : measure_smoother_in<double>(order, unknowns);
}

std::vector<Check> check(int order, Real real) {
  return real == Real::single_precision ? check_in<float>(order) : check_in<double>(order);
}

}  // namespace solenoid::paper
