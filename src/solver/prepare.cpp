#include "solver/prepare.hpp"

#include <cmath>
#include <future>
#include <optional>
#include <utility>

#include "base/available_memory.hpp"
#include "level/viscosity_points.hpp"
#include "solver/estimate.hpp"

namespace solenoid {
namespace {

/// More than levels take on the host for each cell of the finest, but for viscosities at points.
constexpr double bytes_of_cell = 512.0;
constexpr double part_of_memory = 0.25;

bool waits_for_gpu(const SolverOptions& options) {
  if (options.communicator != nullptr && options.communicator->size() > 1) return false;
  return options.device == DeviceChoice::cuda || (options.device == DeviceChoice::automatic && cuda_devices() > 0);
}

bool has_room_for_levels(const Problem& problem) {
  const Mesh& mesh = problem.mesh;
  double bytes = bytes_of_cell;
  if (problem.viscosity_points != ViscosityPlaces::cell) {
    bytes += static_cast<double>(sizeof(double)) * ViscosityPoints::in_cell(mesh.dim, problem.order);
  }
  for (int a = 0; a < mesh.dim; ++a) bytes *= std::ldexp(mesh.cells[a], mesh.refine);
  return bytes < part_of_memory * static_cast<double>(available_memory());
}

}  // namespace

Prepared prepare(const Problem& problem, const SolverOptions& options,
                 const std::function<Estimate(const Engine&)>& need) {
  const auto engine_with_room = [&] {
    auto engine = make_engine(options.device, options.threads, options.communicator, options.transport);
    require_memory(need(*engine));
    return engine;
  };
  if (!waits_for_gpu(options) || !has_room_for_levels(problem)) {
    auto engine = engine_with_room();
    Discretisation levels(problem, options, engine->dense_limits());
    return {std::move(engine), std::move(levels)};
  }
  auto coming = std::async(std::launch::async, [&, device = cuda_device()] {
    if (device != cuda_device()) use_cuda_device(device);
    return engine_with_room();
  });
  const DenseLimits expected = cuda_dense_limits();
  std::optional<Discretisation> levels(std::in_place, problem, options, expected);
  auto engine = coming.get();
  // There is a GPU, but not for this build.
  if (engine->dense_limits() != expected) levels.emplace(problem, options, engine->dense_limits());
  return {std::move(engine), *std::move(levels)};
}

}  // namespace solenoid
