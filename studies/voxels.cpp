// Flow through images made of a few numbers, by size and element: iterations, times, memory.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "image/connectivity.hpp"
#include "image/generate.hpp"
#include "problem/names.hpp"
#include "solenoid/error.hpp"
#include "solenoid/linear_system.hpp"
#include "studies/run.hpp"
#include "studies/study.hpp"
#include "studies/timing.hpp"

namespace solenoid::studies {
namespace {

struct Options : StudyArguments {
  std::vector<std::string> images{"blobs", "spheres"};
  std::vector<int> sizes{32, 64, 128};
  double rtol = 1e-8;
  int restart = 0;
  bool mac_alone = false;
};

/// Samples named in the tables: sandstone-like blobs, a packing of spheres, overlapping grains.
Generator sample(const std::string& name, int dim, int n) {
  Generator what{.dim = dim, .extent = {n, n, dim == 3 ? n : 1}};
  if (name == "blobs") {
    what.pattern = Pattern::blobs;
    what.porosity = dim == 3 ? 0.2 : 0.6;
    what.feature = 4.0;
  } else if (name == "spheres") {
    what.pattern = Pattern::grains;
    what.porosity = dim == 3 ? 0.4 : 0.7;
    what.radius = dim == 3 ? 6.0 : 4.0;
  } else if (name == "grains") {
    what.pattern = Pattern::grains;
    what.porosity = 0.15;
    what.radius = 8.0;
  } else {
    throw InputError(fmt::format("--images: expected names among blobs, spheres and grains, got \"{}\"", name));
  }
  return what;
}

class VoxelStudy {
 public:
  explicit VoxelStudy(const Options& options) : options_(options), run_(options, "voxels", 0.0) {}

  int operator()() {
    check_orders(options_.dim, options_.orders);
    run_.json["dim"] = options_.dim;
    run_.json["rtol"] = options_.rtol;
    run_.json["rows"] = Json::array();
    run_.print(
        fmt::format("Periodic images, a force along x, GMRES to {:.0e}; closed pores are filled\n"
                    "image      voxels  pores, million  element        unknowns  iterations  set-up, s  solve, s"
                    "  ns/unknown  bytes/pore  permeability",
                    options_.rtol));
    for (const std::string& name : options_.images) {
      for (const int n : options_.sizes) {
        const std::array<bool, 3> periodic{true, true, options_.dim == 3};
        const auto image = std::make_shared<const VoxelImage>(
            keep_flowing(generate_image(sample(name, options_.dim, n)), {true, false, false}, periodic));
        add(name, n, image, 0, true);
        if (options_.mac_alone) continue;
        for (const int order : options_.orders) {
          if (StudyRun::interrupted()) return run_.finish(false);
          add(name, n, image, order, false);
        }
      }
    }
    return run_.finish(converged_);
  }

 private:
  void add(const std::string& name, int n, const std::shared_ptr<const VoxelImage>& image, int order, bool lumped) {
    Problem problem;
    problem.mesh = Mesh::of(image);
    problem.order = order;
    problem.lumped = lumped;
    for (int side = 0; side < 2 * options_.dim; ++side) problem.boundary.sides[side].kind = SideKind::periodic;
    problem.force[0] = 1.0;
    SolverOptions solver;
    solver.device = options_.device;
    solver.threads = options_.threads;
    solver.rtol = options_.rtol;
    solver.restart = options_.restart;
    const std::string element = lumped ? "MAC" : element_name(EquationKind::stokes, order);
    run_.show(fmt::format("{} {}, {}", name, n, element));
    const auto start = std::chrono::steady_clock::now();
    LinearSystem system(problem, solver);
    const auto b = system.make_vector();
    const auto x = system.make_vector();
    system.load(b.get());
    system.synchronise();
    const double set_up = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    LinearReport report;
    const auto solve = [&] { report = system.solve(b.get(), x.get()); };
    const double seconds = median_seconds(
        0.1, [&] { system.synchronise(); }, solve, 1.0);
    const double permeability = system.solution(x.get()).mean_velocity()[0];
    converged_ = converged_ && report.converged;

    const auto pores = image->pores();
    run_.json["rows"].push_back({{"image", name},
                                 {"voxels", n},
                                 {"pores", pores},
                                 {"element", element},
                                 {"dofs", system.dofs()},
                                 {"device", system.device()},
                                 {"converged", report.converged},
                                 {"iterations", report.iterations},
                                 {"seconds", {{"set_up", set_up}, {"solve", seconds}}},
                                 {"memory_bytes", system.memory_bytes()},
                                 {"permeability", permeability}});
    run_.save();
    run_.print(fmt::format(
        "{:<8} {:>6}^{}  {:>14.3f}  {:<7} {:>15}  {:>10}  {:>9.3f}  {:>8.3f}  {:>10.2f}  {:>10.0f}  {:.6g}{}", name, n,
        options_.dim, 1e-6 * static_cast<double>(pores), element, system.dofs(), report.iterations, set_up, seconds,
        1e9 * seconds / static_cast<double>(system.dofs()),
        static_cast<double>(system.memory_bytes()) / static_cast<double>(pores), permeability,
        report.converged ? "" : "  not converged"));
  }

  const Options& options_;
  StudyRun run_;
  bool converged_ = true;
};

}  // namespace

Command add_voxels(const CommandOptions& line) {
  const auto options = std::make_shared<Options>();
  options->dim = 3;
  options->orders = {1, 2};
  options->add_to(line, "3", "1,2");
  line.add("--images", options->images, "among blobs, spheres and grains, as blobs,grains").shows_default();
  add_list(line, "--sizes", options->sizes, 4, 2048, "voxels per direction");
  line.add("--rtol", options->rtol, "relative residual").from(1e-15, 1).shows_default();
  line.add("--restart", options->restart, "of GMRES, to need less memory; 0: none").from(0, 1000).shows_default();
  line.add_flag("--mac-alone", options->mac_alone, "the marker-and-cell scheme, no orders beside it");
  return [options] { return VoxelStudy(*options)(); };
}

}  // namespace solenoid::studies
