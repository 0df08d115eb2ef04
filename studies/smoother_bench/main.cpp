/// \file
/// The variants of the smoother that an engine chooses among by the size of a level, each timed on its own. Nothing is
/// checked here: tests/smoother_variants_test.cpp does.
///
///     smoother_bench time [MILLIONS [MESH]]   nanoseconds per unknown of a smoothing step on a large cube
///     smoother_bench latency                  microseconds per colour on small cubes with walls

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <random>
#include <string>

#include "engine/engine.hpp"
#include "solenoid/error.hpp"
#include "solenoid/solver.hpp"
#include "studies/timing.hpp"

namespace solenoid {
namespace {

/// A unit cube with `side` cells per direction; `mesh` as in `meshes`.
Level cube(int dim, int order, int side, const std::string& mesh) {
  Problem problem;
  problem.mesh.dim = dim;
  problem.order = order;
  for (int a = 0; a < dim; ++a) {
    problem.mesh.cells[a] = side;
    problem.mesh.upper[a] = mesh == "stretched" && a == dim - 1 ? 4.0 : 1.0;
    if (mesh == "periodic") {
      problem.boundary.sides[2 * a].kind = problem.boundary.sides[2 * a + 1].kind = SideKind::periodic;
    }
  }
  if (mesh == "outflow") problem.boundary.sides[1].kind = SideKind::outflow;
  if (mesh == "slip") problem.boundary.sides[2 * dim - 1].kind = SideKind::slip;
  if (mesh == "holes") {  // 8 of 64 boxes, in 2D 4 of 16
    const int box = side / 4;
    for (int i = 0; i < 1 << dim; ++i) {
      IndexBox& hole = problem.mesh.holes.emplace_back();
      for (int a = 0; a < dim; ++a) {
        hole.lower[a] = (i >> a & 1) * 2 * box;
        hole.upper[a] = hole.lower[a] + box;
      }
    }
  }
  const Equation equation{.dim = dim, .order = order};
  return {equation, Coefficients{}, Grid(problem.mesh, problem.boundary), PatchRules{}};
}
constexpr const char* meshes[]{"periodic", "walls", "holes", "stretched", "outflow", "slip"};

/// Kernels of a level with one variant, and vectors for them.
template <class T>
class Smoother {
 public:
  Smoother(Engine& engine, const Level& level, const std::string& variant) : engine_(engine), level_(level) {
    engine.choose_smoother(variant);
    kernels_ = make_kernels<T>(engine, level, LocalSolverKind::direct);
    kernels_->prepare_smoother(false);
    engine.choose_smoother({});
    std::mt19937 random(1);
    std::uniform_real_distribution<T> uniform(-1, 1);
    std::vector<T> values(level.size(), T(0));
    level.for_each_unknown([&](std::int64_t i) { values[i] = uniform(random); });
    for (auto* vector : {&b_, &x_, &y_}) {
      *vector = Vector<T>(engine, level.size());
      vector->upload(values.data());
    }
  }
  void step() {
    T* from = x_.data();
    T* to = y_.data();
    for (int colour = 0; colour < static_cast<int>(level_.patches.colours.size()); ++colour) {
      kernels_->smooth(colour, b_.data(), from, to);
      std::swap(from, to);
    }
  }
  /// Seconds of a step, as the cycle does it: recorded.
  double seconds() {
    const auto recorded = engine_.record([&] { step(); });
    return median_seconds(
        0.05, [] {},
        [&] {
          recorded();
          engine_.synchronise();
        });
  }

 private:
  Engine& engine_;
  const Level& level_;
  std::unique_ptr<Kernels<T>> kernels_;
  Vector<T> b_;
  Vector<T> x_;
  Vector<T> y_;
};

/// visit(dim, order, variant, T()) for every compiled variant.
template <class F>
void for_each_variant(Engine& engine, F&& visit) {
  for (const int dim : {2, 3}) {
    for (const int order : available_orders(dim, EquationKind::stokes)) {
      const Equation equation{.dim = dim, .order = order};
      try {
        for (const auto& variant : engine.smoother_variants(equation, true)) visit(dim, order, variant, float());
        for (const auto& variant : engine.smoother_variants(equation, false)) visit(dim, order, variant, double());
      } catch (const InputError&) {  // the engine has fewer orders than others
      }
    }
  }
}
template <class T>
std::string label(int dim, int order, const std::string& variant) {
  return fmt::format("{}D k={} {} {}", dim, order, sizeof(T) == sizeof(float) ? "fp32" : "fp64", variant);
}

void time_steps(Engine& engine, double millions, const std::string& only) {
  for (const std::string mesh : meshes) {
    if (!only.empty() && mesh != only) continue;
    for_each_variant(engine, [&]<class T>(int dim, int order, const std::string& variant, T) {
      if (variant.starts_with("teams")) return;  // not meant for large levels
      const double cells = millions * 1e6 / record_size(dim, order);
      const int side = static_cast<int>(std::round(std::pow(cells, 1.0 / dim) / 32)) * 32;
      const Level level = cube(dim, order, side, mesh);
      const double seconds = Smoother<T>(engine, level, variant).seconds();
      fmt::print("{:<40} {:<10} {:8.1f} M {:8.4f} ns/DoF\n", label<T>(dim, order, variant), mesh,
                 static_cast<double>(level.dofs()) * 1e-6, seconds / static_cast<double>(level.dofs()) * 1e9);
    });
  }
}

void time_colours(Engine& engine) {
  for_each_variant(engine, [&]<class T>(int dim, int order, const std::string& variant, T) {
    std::string line = fmt::format("{:<40} us per colour:", label<T>(dim, order, variant));
    for (const int side : {4, 8, 16, 32}) {
      const Level level = cube(dim, order, side, "walls");
      const auto colours = static_cast<double>(level.patches.colours.size());
      line += fmt::format("  {}: {:.2f}", side, Smoother<T>(engine, level, variant).seconds() / colours * 1e6);
    }
    fmt::print("{}\n", line);
  });
}

int run(int count, char** arguments) {
  const std::string what = count > 1 ? arguments[1] : "";
  if (what != "time" && what != "latency") {
    fmt::print("smoother_bench time [MILLIONS [periodic|walls|holes|stretched|outflow|slip]] | latency\n");
    return 2;
  }
  const auto engine = make_engine(DeviceChoice::cuda, 0);
  if (what == "time") {
    time_steps(*engine, count > 2 ? std::atof(arguments[2]) : 100.0, count > 3 ? arguments[3] : "");
  } else {
    time_colours(*engine);
  }
  return 0;
}

}  // namespace
}  // namespace solenoid

int main(int count, char** arguments) {
  try {
    return solenoid::run(count, arguments);
  } catch (const solenoid::Error& error) {
    fmt::print(stderr, "smoother_bench: {}\n", error.what());
    return 3;
  }
}
