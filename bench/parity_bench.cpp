/// \file
/// The parity smoother alone: correctness against a plain double-precision implementation, and speed.
///
///     parity_bench check [dimension [order]]          instances on small meshes
///     parity_bench time [millions [mesh]]             nanoseconds per unknown of a smoothing step
///     parity_bench latency                            microseconds per colour on small levels, single precision

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>

#include "element/matrices.hpp"
#include "engine/cuda/error.hpp"
#include "engine/cuda/parity_plan.hpp"
#include "engine/tables.hpp"
#include "parity_instance.hpp"

namespace solenoid::cuda {
void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::printf("%s: %s\n", what, cudaGetErrorString(status));
  std::exit(3);
}
void note_launch(const char*) noexcept {}
bool Rehearsal::active() noexcept { return false; }
}  // namespace solenoid::cuda

namespace solenoid {
/// Grids look at the kinds of sides only; this stands in for the library's fields and expressions.
ScalarField::ScalarField(double value) : constant_(value) {}
}  // namespace solenoid

namespace solenoid::bench {

std::vector<Instance>& instances() {
  static std::vector<Instance> list;
  return list;
}

namespace {

using Record = Grid::Record;
using Values = std::vector<double>;

template <class S>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t size) : size_(size) {
    void* memory = nullptr;
    cuda::check(cudaMalloc(&memory, std::max<std::size_t>(size, 1) * sizeof(S)), "cudaMalloc");
    data_ = static_cast<S*>(memory);
  }
  explicit DeviceArray(const std::vector<S>& host) : DeviceArray(host.size()) { upload(host); }
  DeviceArray(const S* host, std::size_t size) : DeviceArray(size) {
    cuda::check(cudaMemcpy(data_, host, size * sizeof(S), cudaMemcpyHostToDevice), "upload");
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(data_); }
  void upload(const std::vector<S>& host) {
    cuda::check(cudaMemcpy(data_, host.data(), host.size() * sizeof(S), cudaMemcpyHostToDevice), "upload");
  }
  std::vector<S> download() const {
    std::vector<S> host(size_);
    cuda::check(cudaMemcpy(host.data(), data_, size_ * sizeof(S), cudaMemcpyDeviceToHost), "download");
    return host;
  }
  S* data() const { return data_; }

 private:
  S* data_ = nullptr;
  std::size_t size_;
};

// --- plain implementation --------------------------------------------------------------------------------------------

/// "residual, local solve, update" of one patch after the other, as level/patch_solver.hpp says.
class Reference {
 public:
  explicit Reference(const Level& level) : level_(level), cell_(level.equation.order) {
    for (const PatchKind& kind : level.patches.kinds) {
      solvers_.emplace_back(level.equation, level.grid.size(), kind, LocalSolverKind::direct);
    }
  }

  void smooth(int colour, const Values& b, const Values& x, Values& y) const {
    for (const PatchRun& run : level_.patches.colours[colour]) {
      for (auto i = run.begin; i < run.end; ++i) patch(level_.patches.lower_cell[i], solvers_[run.kind], b, x, y);
    }
    for (const Record r : level_.patches.uncovered[colour]) {
      for (int i = 0; i < level_.equation.record(); ++i) y[level_.index(r, i)] = x[level_.index(r, i)];
    }
  }

 private:
  using Sizes = std::array<int, 3>;

  void patch(Record lower, const PatchSolver& solver, const Values& b, const Values& x, Values& y) const {
    const int dim = level_.equation.dim;
    const int n = level_.equation.n();
    const int modes = 2 * n;
    const int columns = power(n, dim - 1);
    const int block = power(n, dim);
    const int wide = power(modes, dim - 1);
    const auto cells = patch_cells(level_.grid, lower);
    std::array<Values, 3> f;
    for (int c = 0; c < dim; ++c) f[c].assign(static_cast<std::size_t>(modes + 1) * wide, 0.0);
    Values g(power(modes, dim), 0.0);
    const auto velocity_at = [&](int c, int bits, int i) {
      const int a = (c + 1) % dim;
      const int o = (c + 2) % dim;
      const int ia = i % n + n * (bits >> a & 1);
      const int ib = dim == 3 ? i / n % n + n * (bits >> o & 1) : 0;
      return (i / columns + n * (bits >> c & 1)) * wide + ib * modes + ia;
    };
    const auto pressure_at = [&](int bits, int i) {
      int at = 0;
      for (int a = 0; a < dim; ++a, i /= n) at += (i % n + n * (bits >> a & 1)) * power(modes, a);
      return at;
    };
    for (int bits = 0; bits < 1 << dim; ++bits) {
      Values q(block, 0.0);
      for (int c = 0; c < dim; ++c) {
        Values out = element(cells[bits], c, x, q);
        for (int i = 0; i < block + columns; ++i) {
          const bool mine = i < block && !(i < columns && (bits >> c & 1) == 0);
          f[c][velocity_at(c, bits, i)] += (mine ? b[level_.index(cells[bits], c * block + i)] : 0.0) - out[i];
        }
      }
      for (int i = 0; i < block; ++i) {
        g[pressure_at(bits, i)] = b[level_.index(cells[bits], dim * block + i)] + q[i];
      }
    }
    solve(solver, f, g);
    for (int bits = 0; bits < 1 << dim; ++bits) {
      for (int i = 0; i < (dim + 1) * block; ++i) {
        const int c = i / block;
        const auto at = level_.index(cells[bits], i);
        double correction = 0.0;
        if (c == dim) {
          correction = g[pressure_at(bits, i % block)];
        } else if (i % block >= columns || (bits >> c & 1) != 0) {
          correction = f[c][velocity_at(c, bits, i % block)];
        }
        y[at] = x[at] + correction;
      }
    }
  }

  /// Rows of component c of A x that come from one cell; q += B x.
  Values element(Record cell, int c, const Values& x, Values& q) const {
    const int dim = level_.equation.dim;
    const int n = level_.equation.n();
    const int columns = power(n, dim - 1);
    const int block = power(n, dim);
    const Grid& grid = level_.grid;
    const auto load = [&](Record r) {
      Values u(block + columns);
      for (int i = 0; i < block; ++i) u[i] = x[level_.index(r, c * block + i)];
      const Record up = grid.neighbour(r, 2 * c + 1);
      for (int i = 0; i < columns; ++i) u[block + i] = x[level_.index(up, c * block + i)];
      return u;
    };
    const Values u = load(cell);
    Values w(u.size());
    for (std::size_t i = 0; i < u.size(); ++i) w[i] = level_.equation.mass * u[i];
    for (int tau = 0; tau < dim - 1; ++tau) {
      const int t = (c + 1 + tau) % dim;
      const int stride = tau == 0 ? 1 : n;
      const double factor = level_.equation.viscosity / (grid.size()[t] * grid.size()[t]);
      const Values below = load(grid.neighbour(cell, 2 * t));
      const Values above = load(grid.neighbour(cell, 2 * t + 1));
      for (int start = 0; start < block + columns; ++start) {
        if (start / stride % n != 0) continue;
        double trace[2]{};  // own: lower, upper
        double slope[2]{};
        double value_from[2]{};
        double slope_from[2]{};
        const auto sign = [](int end, int j) { return end == 0 && j % 2 == 1 ? -1.0 : 1.0; };
        for (int j = 0; j < n; ++j) {
          const int at = start + j * stride;
          for (int end = 0; end < 2; ++end) {
            trace[end] += sign(end, j) * cell_.value[j] * u[at];
            slope[end] += sign(end, j) * cell_.slope[j] * u[at];
          }
          for (int end = 0; end < 2; ++end) {  // the neighbour's trace on its face opposite to `end`
            const double mode = sign(1 - end, j) * (end == 0 ? below : above)[at];
            value_from[end] += factor * (0.5 * cell_.slope[j] - cell_.penalty * cell_.value[j]) * mode;
            slope_from[end] += factor * 0.5 * cell_.value[j] * mode;
          }
        }
        for (int j = 0; j < n; ++j) {
          double& to = w[start + j * stride];
          for (int i = 0; i < n; ++i) to += factor * cell_.volume(j, i) * u[start + i * stride];
          for (int end = 0; end < 2; ++end) {
            const double weight = factor * face_weight(grid.face(cell, 2 * t + end));
            const double v = weight * (cell_.penalty * trace[end] - 0.5 * slope[end]) + value_from[end];
            const double d = weight * -0.5 * trace[end] + slope_from[end];
            to += sign(end, j) * (v * cell_.value[j] + d * cell_.slope[j]);
          }
        }
      }
    }
    const double inverse_h = 1.0 / grid.size()[c];
    Values out(u.size(), 0.0);
    for (int column = 0; column < columns; ++column) {
      const int a = (c + 1) % dim;
      const int o = (c + 2) % dim;
      const int base = column % n * power(n, a) + (dim == 3 ? column / n * power(n, o) : 0);
      for (int i = 0; i <= n; ++i) {
        double& to = out[i * columns + column];
        for (int j = 0; j <= n; ++j) {
          const double of_j = u[j * columns + column];
          to += cell_.mass(i, j) * w[j * columns + column];
          to += level_.equation.viscosity * inverse_h * inverse_h * cell_.stiffness(i, j) * of_j;
          if (i < n) q[base + i * power(n, c)] += inverse_h * cell_.divergence(i, j) * of_j;
        }
        for (int j = 0; j < n; ++j) {
          to -= inverse_h * cell_.divergence(j, i) * x[level_.index(cell, dim * block + base + j * power(n, c))];
        }
      }
    }
    return out;
  }

  /// v <- m^T v or m v along the direction with the given stride and first index.
  static void along(const Matrix& m, bool transposed, Values& v, int first, int size, int stride, int full) {
    const int total = static_cast<int>(v.size());
    for (int start = 0; start < total; ++start) {
      if (start / stride % full != 0) continue;
      Eigen::VectorXd line(size);
      for (int i = 0; i < size; ++i) line[i] = v[start + (first + i) * stride];
      const Eigen::VectorXd out = transposed ? Eigen::VectorXd(m.transpose() * line) : Eigen::VectorXd(m * line);
      for (int i = 0; i < size; ++i) v[start + (first + i) * stride] = out[i];
    }
  }

  void solve(const PatchSolver& solver, std::array<Values, 3>& f, Values& g) const {
    const int dim = level_.equation.dim;
    const int modes = 2 * level_.equation.n();
    const int wide = power(modes, dim - 1);
    for (int a = 0; a < dim; ++a) along(solver.direction(a).eigen_o, true, g, 0, modes, power(modes, a), modes);
    Values rhs(g.size());
    for (std::size_t i = 0; i < g.size(); ++i) rhs[i] = -g[i];
    const auto transform = [&](int c, bool transposed) {
      const PatchDirection& d = solver.direction(c);
      along(solver.direction((c + 1) % dim).eigen_o, transposed, f[c], 0, modes, 1, modes);
      if (dim == 3) along(solver.direction((c + 2) % dim).eigen_o, transposed, f[c], 0, modes, modes, modes);
      along(d.eigen_p, transposed, f[c], d.first, d.last - d.first + 1, wide, modes + 1);
    };
    const auto lines = [&](int c, auto&& visit) {
      for (int column = 0; column < wide; ++column) {
        visit(column, column % modes * power(modes, (c + 1) % dim) +
                          (dim == 3 ? column / modes * power(modes, (c + 2) % dim) : 0));
      }
    };
    for (int c = 0; c < dim; ++c) {
      transform(c, true);
      const PatchDirection& d = solver.direction(c);
      lines(c, [&](int column, int base) {
        for (int e = 0; e < d.lambda_p.size(); ++e) {
          double& u = f[c][(d.first + e) * wide + column];
          u *= solver.inverse_lambda(c)[e * wide + column];
          for (int i = 0; i < modes; ++i) rhs[base + i * power(modes, c)] -= d.divergence(i, e) * u;
        }
      });
    }
    for (const SchurBlock& block : solver.blocks()) {
      std::vector<int> at;
      for (int z = 0; z < block.length[2]; ++z) {
        for (int y = 0; y < block.length[1]; ++y) {
          for (int x = 0; x < block.length[0]; ++x) {
            at.push_back(block.start[0] + x + modes * (block.start[1] + y + modes * (block.start[2] + z)));
          }
        }
      }
      for (std::size_t i = 0; i < at.size(); ++i) {
        g[at[i]] = 0.0;
        for (std::size_t j = 0; j < at.size(); ++j) g[at[i]] += block.inverse(i, j) * rhs[at[j]];
      }
    }
    for (int c = 0; c < dim; ++c) {
      const PatchDirection& d = solver.direction(c);
      lines(c, [&](int column, int base) {
        for (int e = 0; e < d.lambda_p.size(); ++e) {
          double sum = 0.0;
          for (int i = 0; i < modes; ++i) sum += d.divergence(i, e) * g[base + i * power(modes, c)];
          f[c][(d.first + e) * wide + column] += sum * solver.inverse_lambda(c)[e * wide + column];
        }
      });
      transform(c, false);
    }
    for (int a = 0; a < dim; ++a) along(solver.direction(a).eigen_o, false, g, 0, modes, power(modes, a), modes);
  }

  const Level& level_;
  CellMatrices cell_;
  std::vector<PatchSolver> solvers_;
};

// --- the kernel ------------------------------------------------------------------------------------------------------

template <class T>
class Smoother {
 public:
  Smoother(const Level& level, const cuda::ParityKernel<T>& kernel)
      : kernel_(kernel),
        cell_(make_cell_data<T>(level)),
        plan_(level, kernel.patches),
        patches_(plan_.patches),
        tables_(plan_.tables),
        schur_(plan_.schur) {
    const Grid& grid = level.grid;
    for (int side = 0; side < 6; ++side) {
      neighbours_.push_back(std::make_unique<DeviceArray<Record>>(grid.neighbours(side), grid.null() + 1));
      faces_.push_back(std::make_unique<DeviceArray<Face>>(grid.faces(side), grid.null() + 1));
    }
    for (std::size_t colour = 0; colour < plan_.colours.size(); ++colour) {
      batches_.push_back(std::make_unique<DeviceArray<cuda::PatchBatch>>(plan_.colours[colour]));
      uncovered_.push_back(std::make_unique<DeviceArray<Record>>(plan_.uncovered[colour]));
      cuda::ParityArguments<T> arguments{};
      arguments.cell = &cell_;
      for (int side = 0; side < 6; ++side) {
        arguments.topology.neighbour[side] = neighbours_[side]->data();
        arguments.topology.face[side] = faces_[side]->data();
      }
      arguments.patches = patches_.data();
      arguments.batches = batches_.back()->data();
      arguments.batch_count = static_cast<int>(plan_.colours[colour].size());
      arguments.uncovered = uncovered_.back()->data();
      arguments.uncovered_count = static_cast<int>(level.patches.uncovered[colour].size());
      arguments.tables = tables_.data();
      arguments.schur = schur_.data();
      arguments_.push_back(arguments);
    }
  }
  /// The kind of patch splits by parity, so that the kernel takes it.
  bool covers(int kind) const { return plan_.covered[kind] != 0; }
  int colours() const { return static_cast<int>(arguments_.size()); }
  void smooth(int colour, const T* b, const T* x, T* y, cuda::Stream stream = nullptr) {
    auto arguments = arguments_[colour];
    arguments.b = b;
    arguments.x = x;
    arguments.y = y;
    kernel_.smooth(arguments, stream);
  }

 private:
  const cuda::ParityKernel<T>& kernel_;
  CellData<T> cell_;
  cuda::ParityPlan<T> plan_;
  DeviceArray<cuda::ParityPatch> patches_;
  DeviceArray<T> tables_;
  DeviceArray<T> schur_;
  std::vector<std::unique_ptr<DeviceArray<Record>>> neighbours_;
  std::vector<std::unique_ptr<DeviceArray<Face>>> faces_;
  std::vector<std::unique_ptr<DeviceArray<cuda::PatchBatch>>> batches_;
  std::vector<std::unique_ptr<DeviceArray<Record>>> uncovered_;
  std::vector<cuda::ParityArguments<T>> arguments_;
};

struct Case {
  std::string name;
  Mesh mesh;
  Boundary boundary;
  double mass = 0.0;
};

Case make_case(std::string name, int dim, std::array<int, 3> cells, std::vector<int> periodic = {}, double mass = 0.0) {
  Case made{std::move(name), {}, {}, mass};
  made.mesh.dim = dim;
  made.mesh.cells = cells;
  if (dim == 2) made.mesh.cells[2] = 1;
  made.mesh.upper = {1.0, 1.3, 0.8};
  for (const int a : periodic) {
    made.boundary.sides[2 * a].kind = made.boundary.sides[2 * a + 1].kind = SideKind::periodic;
  }
  return made;
}

std::vector<Case> small_cases(int dim) {
  std::vector<Case> cases{
      make_case("walls", dim, {5, 4, 3}, {}, 7.0),      make_case("long", dim, {45, 4, 3}),
      make_case("periodic", dim, {8, 6, 4}, {0, 1, 2}), make_case("odd_ring", dim, {5, 3, 3}, {0, 1, 2}, 3.0),
      make_case("mixed", dim, {6, 5, 4}, {1}),          make_case("pair", dim, {2, 2, 2}, {0, 1, 2}),
  };
  cases.push_back(make_case("hole", dim, {6, 5, 4}));
  cases.back().mesh.holes.push_back({{2, 1, 1}, {4, 3, 2}});
  cases.push_back(make_case("slip_hole", dim, {6, 6, 4}, {0, 1, 2}, 2.0));
  cases.back().mesh.holes.push_back({{1, 2, 1}, {2, 4, 3}});
  cases.back().boundary.holes.kind = SideKind::slip;
  return cases;
}

template <class T>
double check(const Case& what, int order, const cuda::ParityKernel<T>& kernel) {
  Equation equation;
  equation.dim = what.mesh.dim;
  equation.order = order;
  equation.viscosity = 0.7;
  equation.mass = what.mass;
  const Level level(equation, Grid(what.mesh, what.boundary), PatchRules{});
  std::mt19937 random(order + 10 * equation.dim);
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  Values b(level.size(), 0.0);
  Values x(level.size(), 0.0);
  Values poison(level.size(), 0.0);
  level.for_each_unknown([&](std::int64_t i) {
    b[i] = static_cast<T>(uniform(random));
    x[i] = static_cast<T>(uniform(random));
    poison[i] = std::numeric_limits<double>::quiet_NaN();
  });
  const Reference reference(level);
  Smoother<T> smoother(level, kernel);
  DeviceArray<T> b_device(std::vector<T>(b.begin(), b.end()));
  double worst = 0.0;
  for (const bool zero : {false, true}) {
    if (zero) std::fill(x.begin(), x.end(), 0.0);
    DeviceArray<T> x_device(std::vector<T>(x.begin(), x.end()));
    DeviceArray<T> y_device(x.size());
    for (int colour = 0; colour < smoother.colours(); ++colour) {
      y_device.upload(std::vector<T>(poison.begin(), poison.end()));
      smoother.smooth(colour, b_device.data(), zero ? nullptr : x_device.data(), y_device.data());
      cuda::check(cudaDeviceSynchronize(), "smooth");
      const std::vector<T> got = y_device.download();
      Values expected(x.size(), 0.0);
      reference.smooth(colour, b, x, expected);
      std::vector<char> skipped(level.grid.storage(), 0);
      for (const PatchRun& run : level.patches.colours[colour]) {
        for (auto i = run.begin; i < run.end && !smoother.covers(run.kind); ++i) {
          for (const Record r : patch_cells(level.grid, level.patches.lower_cell[i])) skipped[r] = 1;
        }
      }
      double norms[2]{};
      double errors[2]{};
      const int block = power(equation.n(), equation.dim);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const auto place = static_cast<std::int64_t>(i);
        const auto value = place / interleave % equation.record();
        if (skipped[place / (interleave * equation.record()) * interleave + place % interleave] != 0) continue;
        const int pressure = value >= equation.dim * block ? 1 : 0;
        norms[pressure] += expected[i] * expected[i];
        errors[pressure] += (got[i] - expected[i]) * (got[i] - expected[i]);
      }
      for (int i = 0; i < 2; ++i) {
        const double error = std::sqrt(errors[i] / std::max(norms[i], 1e-300));
        if (!(error <= worst)) worst = error;
      }
    }
  }
  return worst;
}

const char* name_of(float) { return "float"; }
const char* name_of(double) { return "double"; }

/// `dim` and `order`: of the instances to check, or -1 for all.
int check_all(int dim, int order) {
  int failures = 0;
  for (const Instance& instance : instances()) {
    if ((dim >= 0 && instance.dim != dim) || (order >= 0 && instance.order != order)) continue;
    std::visit(
        [&]<class T>(const cuda::ParityKernel<T>* kernel) {
          std::printf("%dD k=%d %-6s variant %d", instance.dim, instance.order, name_of(T()), instance.variant);
          for (const Case& what : small_cases(instance.dim)) {
            const double error = check(what, instance.order, *kernel);
            const bool good = error < (sizeof(T) == 4 ? 1e-5 : 1e-12) * (instance.order + 1);
            std::printf(" %s %.1e%s", what.name.c_str(), error, good ? "" : " WRONG");
            failures += good ? 0 : 1;
          }
        },
        instance.kernel);
    std::printf("\n");
    std::fflush(stdout);
  }
  std::printf(failures == 0 ? "all good\n" : "%d WRONG\n", failures);
  return failures == 0 ? 0 : 1;
}

// --- speed -----------------------------------------------------------------------------------------------------------

template <class F>
double median_seconds(int repetitions, F&& work) {
  cudaEvent_t start{};
  cudaEvent_t stop{};
  cudaEventCreate(&start);
  cudaEventCreate(&stop);
  std::vector<float> times;
  for (int i = -2; i < repetitions; ++i) {
    cudaEventRecord(start);
    work();
    cudaEventRecord(stop);
    cuda::check(cudaEventSynchronize(stop), "timed work");
    float milliseconds = 0.0F;
    cudaEventElapsedTime(&milliseconds, start, stop);
    if (i >= 0) times.push_back(milliseconds);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2] * 1e-3;
}

template <class T>
std::vector<T> noise(std::int64_t size) {
  std::vector<T> values(size);
  std::uint32_t state = 12345;
  for (auto& value : values) {
    state = state * 1664525U + 1013904223U;
    value = static_cast<T>(static_cast<std::int32_t>(state) * 0x1p-31);
  }
  return values;
}

template <class T>
void time_instance(const Instance& instance, const Level& level, const cuda::ParityKernel<T>& kernel,
                   const std::string& name) {
  Smoother<T> smoother(level, kernel);
  const std::vector<T> values = noise<T>(level.size());
  DeviceArray<T> b(values);
  DeviceArray<T> x(values);
  DeviceArray<T> y(values);
  const double copy = median_seconds(
      11, [&] { cudaMemcpyAsync(y.data(), b.data(), level.size() * sizeof(T), cudaMemcpyDeviceToDevice); });
  const double bandwidth = 2.0 * sizeof(T) * level.size() / copy;
  const double step = median_seconds(11, [&] {
    for (int colour = 0; colour < smoother.colours(); ++colour) {
      T* from = colour % 2 == 0 ? x.data() : y.data();
      T* to = colour % 2 == 0 ? y.data() : x.data();
      smoother.smooth(colour, b.data(), from, to);
    }
  });
  const double per_dof = step / level.dofs() * 1e9;
  const double bytes = (instance.dim == 3 ? 2.0 + 3.0 / 4.0 : 2.0 + 2.0 / 3.0) * sizeof(T);
  const double floor = bytes * smoother.colours() / bandwidth * 1e9;
  std::printf(
      "%dD k=%d %-6s %-8s %6.1fM: %.4f ns/DoF, %.1f times the floor %.4f (copy %.2f TB/s); %d patches, f %s, %d "
      "registers,"
      " %d bytes local, %d shared, %d warps\n",
      instance.dim, instance.order, name_of(T()), name.c_str(), level.dofs() * 1e-6, per_dof, per_dof / floor, floor,
      bandwidth * 1e-12, kernel.patches, instance.resident ? "shared" : "stashed", instance.registers,
      instance.local_bytes, instance.shared_bytes, instance.blocks * instance.threads / 32);
  std::fflush(stdout);
}

/// Steps on cubes of about so many million unknowns; `only`: one of the names below. Holes are 8 of 64 boxes (2D: 4 of
/// 16), stretched cells four times as long.
int time_all(double millions, const std::string& only) {
  auto sorted = instances();
  std::stable_sort(sorted.begin(), sorted.end(), [](const Instance& a, const Instance& b) {
    return std::pair(a.dim, a.order) < std::pair(b.dim, b.order);
  });
  std::unique_ptr<Level> level;
  for (const std::string name : {"periodic", "walls", "holes", "stretched"}) {
    if (!only.empty() && name != only) continue;
    int dim = 0;
    int order = -1;
    for (const Instance& instance : sorted) {
      if (instance.variant > 0) continue;  // not meant for large levels
      if (instance.dim != dim || instance.order != order) {
        dim = instance.dim;
        order = instance.order;
        Equation equation;
        equation.dim = dim;
        equation.order = order;
        const double cells = millions * 1e6 / equation.record();
        const int side = static_cast<int>(std::round(std::pow(cells, 1.0 / dim) / 32)) * 32;
        const std::vector<int> periodic = name == "periodic" ? std::vector{0, 1, 2} : std::vector<int>{};
        Case what = make_case(name, dim, {side, side, side}, periodic);
        what.mesh.upper = {1.0, 1.0, 1.0};
        if (name == "stretched") what.mesh.upper[dim - 1] = 4.0;
        const int box = side / 4;
        for (int i = 0; i < 1 << dim && name == "holes"; ++i) {
          IndexBox& hole = what.mesh.holes.emplace_back();
          for (int a = 0; a < dim; ++a) {
            hole.lower[a] = (i >> a & 1) * 2 * box;
            hole.upper[a] = hole.lower[a] + box;
          }
        }
        level = std::make_unique<Level>(equation, Grid(what.mesh, what.boundary), PatchRules{});
      }
      std::visit([&](const auto* kernel) { time_instance(instance, *level, *kernel, name); }, instance.kernel);
    }
  }
  return 0;
}

/// Microseconds per colour, in a graph, of every variant on small cubes with walls.
template <class T>
double colour_microseconds(const Level& level, const cuda::ParityKernel<T>& kernel) {
  constexpr int repetitions = 8;
  Smoother<T> smoother(level, kernel);
  const std::vector<T> values = noise<T>(level.size());
  DeviceArray<T> b(values);
  DeviceArray<T> x(values);
  DeviceArray<T> y(values);
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  cuda::check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "capture");
  for (int i = 0; i < repetitions; ++i) {
    for (int colour = 0; colour < smoother.colours(); ++colour) {
      T* from = colour % 2 == 0 ? x.data() : y.data();
      T* to = colour % 2 == 0 ? y.data() : x.data();
      smoother.smooth(colour, b.data(), from, to, stream);
    }
  }
  cuda::check(cudaStreamEndCapture(stream, &graph), "capture");
  cuda::check(cudaGraphInstantiate(&executable, graph, 0), "graph");
  cudaGraphDestroy(graph);
  std::vector<float> times;
  cudaEvent_t start{};
  cudaEvent_t stop{};
  cudaEventCreate(&start);
  cudaEventCreate(&stop);
  for (int i = -2; i < 11; ++i) {
    cudaEventRecord(start, stream);
    cudaGraphLaunch(executable, stream);
    cudaEventRecord(stop, stream);
    cuda::check(cudaEventSynchronize(stop), "timed work");
    float milliseconds = 0.0F;
    cudaEventElapsedTime(&milliseconds, start, stop);
    if (i >= 0) times.push_back(milliseconds);
  }
  std::sort(times.begin(), times.end());
  cudaGraphExecDestroy(executable);
  cudaStreamDestroy(stream);
  return times[times.size() / 2] * 1e3 / (repetitions * smoother.colours());
}

int latency_all() {
  for (const Instance& instance : instances()) {
    if (!std::holds_alternative<const cuda::ParityKernel<float>*>(instance.kernel)) continue;
    const auto& kernel = *std::get<const cuda::ParityKernel<float>*>(instance.kernel);
    std::printf("%dD k=%d variant %d: %2d patches, %3d threads, %3d registers, %3d bytes local, %6d shared; us:",
                instance.dim, instance.order, instance.variant, kernel.patches, instance.threads, instance.registers,
                instance.local_bytes, instance.shared_bytes);
    for (const int side : {4, 8, 16, 32}) {
      Equation equation;
      equation.dim = instance.dim;
      equation.order = instance.order;
      Case what = make_case("walls", instance.dim, {side, side, side}, {});
      what.mesh.upper = {1.0, 1.0, 1.0};
      const Level level(equation, Grid(what.mesh, what.boundary), PatchRules{});
      std::printf(" %d: %6.2f", side, colour_microseconds(level, kernel));
    }
    std::printf("\n");
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace solenoid::bench

int main(int count, char** arguments) {
  const std::string what = count > 1 ? arguments[1] : "";
  for (auto& instance : solenoid::bench::instances()) instance.query(instance);
  if (what == "check") {
    return solenoid::bench::check_all(count > 2 ? std::atoi(arguments[2]) : -1,
                                      count > 3 ? std::atoi(arguments[3]) : -1);
  }
  if (what == "time") {
    return solenoid::bench::time_all(count > 2 ? std::atof(arguments[2]) : 100.0, count > 3 ? arguments[3] : "");
  }
  if (what == "latency") return solenoid::bench::latency_all();
  std::printf("parity_bench check [dimension [order]] | time [millions [mesh]] | latency\n");
  return 2;
}
