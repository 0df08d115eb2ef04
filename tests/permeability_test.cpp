// Permeabilities of images: values that are known, symmetries, what is checked of them, the command.

#include "solenoid/permeability.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <numbers>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "case/keys.hpp"
#include "flows.hpp"
#include "image/connectivity.hpp"
#include "image/generate.hpp"
#include "permeability/flow_setup.hpp"
#include "program.hpp"
#include "solenoid/case.hpp"
#include "solenoid/error.hpp"

namespace solenoid {
namespace {

using Image = std::shared_ptr<const VoxelImage>;

Image open_box(int dim, const std::array<int, 3>& extent, double voxel = 1.0) {
  return std::make_shared<const VoxelImage>(
      dim, extent, [](const auto&) { return false; }, std::array<double, 3>{voxel, voxel, voxel});
}

Image generated(const Generator& what) { return std::make_shared<const VoxelImage>(generate_image(what)); }

/// Spheres at random places, in a periodic box.
Generator random_spheres(int n) {
  return {.pattern = Pattern::grains, .extent = {n, n, n}, .porosity = 0.6, .radius = 2.5, .seed = 3};
}

PermeabilityOptions along_x(bool mac_alone) {
  PermeabilityOptions options;
  options.directions = {true, false, false};
  options.order = mac_alone ? 0 : 2;
  options.lumped = mac_alone;
  options.mac = false;
  return options;
}

double xx(const Permeability& result) { return result.value.tensor[0][0].value(); }

// Known values -------------------------------------------------------------------------------------------------------

/// K = w^2 / 12: exact for k >= 2, and 2 / w^2 more by differences.
TEST(Permeability, PlaneChannels) {
  for (const int w : {1, 2, 3, 4}) {
    const Image channel = open_box(2, {4, w, 1});
    EXPECT_NEAR(xx(permeability(channel, along_x(false), {.rtol = 1e-11})) * 12.0 / (w * w), 1.0, 1e-8) << w;
    EXPECT_NEAR(xx(permeability(channel, along_x(true), {.rtol = 1e-11})) * 12.0 / (w * w), 1.0 + 2.0 / (w * w), 1e-8)
        << w;
  }
}

/// K = .03514425 w^2; the deviations (in percent) were computed independently.
TEST(Permeability, SquareDucts) {
  struct Duct {
    int w;
    double mac, order_2;
  };
  for (const auto& [w, mac, order_2] : {Duct{1, 256, -0.2}, {2, 78, -0.4}, {3, 38, -0.1}, {4, 22, -0.04}}) {
    PermeabilityOptions options = along_x(false);
    options.mac = true;
    const Permeability result = permeability(open_box(3, {4, w, w}), options);
    const auto deviation = [&](double value) { return 100.0 * (value / (0.03514425 * w * w) - 1.0); };
    EXPECT_NEAR(deviation(xx(result)), order_2, 0.06) << w;
    EXPECT_NEAR(deviation(result.mac.value().tensor[0][0].value()), mac, 0.6) << w;
    EXPECT_TRUE(result.converged());
    EXPECT_LE(result.value.flows[0].flux_deviation, 1e-8);
  }
}

/// K = L^3 / (6 pi a D), D = 15.4 at a share .343 of spheres (Zick and Homsy): the staircase that spheres become is a
/// larger error than that of the discretisation, which differences hide.
TEST(Permeability, SpheresInASimpleCubicLattice) {
  constexpr double share = 0.343;
  constexpr int n = 16;
  const Image spheres =
      generated({.pattern = Pattern::array, .extent = {n, n, n}, .porosity = 1.0 - share, .period = n});
  PermeabilityOptions options = along_x(false);
  options.sides = SidesAcross::periodic;
  options.mac = true;
  const Permeability result = permeability(spheres, options);
  const double radius = std::cbrt(3.0 * share / (4.0 * std::numbers::pi));
  const double known = n * n / (6.0 * std::numbers::pi * radius * 15.4);
  EXPECT_NEAR(xx(result) / known, 0.85, 0.012);
  EXPECT_NEAR(result.mac.value().tensor[0][0].value() / known, 1.03, 0.012);
  EXPECT_NEAR(result.porosity, 1.0 - share, 0.01);
}

TEST(Permeability, IsInSquareMetres) {
  const double voxel = 2e-6;
  EXPECT_NEAR(xx(permeability(open_box(2, {4, 3, 1}, voxel), along_x(false))), 9.0 / 12.0 * voxel * voxel,
              1e-6 * voxel * voxel);
  // Half as wide in y as in x.
  const auto flat = std::make_shared<const VoxelImage>(
      2, std::array<int, 3>{4, 6, 1}, [](const auto&) { return false; },
      std::array<double, 3>{voxel, 0.5 * voxel, 1.0});
  EXPECT_NEAR(xx(permeability(flat, along_x(false))), 9.0 / 12.0 * voxel * voxel, 1e-6 * voxel * voxel);
}

// Symmetries ---------------------------------------------------------------------------------------------------------

PermeabilityOptions whole_tensor() {
  PermeabilityOptions options;
  options.sides = SidesAcross::periodic;
  options.order = 0;
  options.lumped = true;
  return options;
}

TEST(Permeability, TensorsAreSymmetric) {
  for (const bool lumped : {true, false}) {
    PermeabilityOptions options = whole_tensor();
    options.lumped = lumped;
    options.order = lumped ? 0 : 2;
    const Permeability result = permeability(generated(random_spheres(lumped ? 16 : 8)), options, {.rtol = 1e-9});
    ASSERT_TRUE(result.converged());
    EXPECT_LE(result.value.asymmetry.value(), 1e-7);
    EXPECT_EQ(result.value.flows.size(), 3U);
    EXPECT_GT(std::abs(*result.value.tensor[0][1]), 1e-4 * xx(result));
    const PrincipalPermeabilities& principal = result.principal.value();
    double trace = 0.0;
    for (int i = 0; i < 3; ++i) trace += *result.value.tensor[i][i] - principal.values[i];
    EXPECT_NEAR(trace, 0.0, 1e-12 * xx(result));
    EXPECT_GE(principal.values[0], principal.values[2]);
    EXPECT_GT(principal.values[2], 0.0);
  }
}

TEST(Permeability, RepeatedImagesHaveTheSame) {
  const Image once = generated(random_spheres(10));
  const auto twice = std::make_shared<const VoxelImage>(3, std::array<int, 3>{20, 10, 10}, [&](const auto& at) {
    return once->solid({at[0] % 10, at[1], at[2]});
  });
  const Permeability one = permeability(once, whole_tensor(), {.rtol = 1e-10});
  const Permeability two = permeability(twice, whole_tensor(), {.rtol = 1e-10});
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) EXPECT_NEAR(*one.value.tensor[i][j], *two.value.tensor[i][j], 1e-7 * xx(one));
  }
}

TEST(Permeability, MirroredImagesHaveNoOtherComponents) {
  const Image image = generated(random_spheres(8));
  const auto mirrored = std::make_shared<const VoxelImage>(image->mirror({true, true, true}));
  const Permeability result = permeability(mirrored, whole_tensor(), {.rtol = 1e-10});
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      if (i == j) continue;
      EXPECT_NEAR(*result.value.tensor[i][j], 0.0, 1e-7 * xx(result)) << i << j;
    }
  }
}

// Pores --------------------------------------------------------------------------------------------------------------

TEST(Permeability, ClosedPoresChangeNothing) {
  // A duct through a solid block, with and without pores that do not touch it.
  const auto block = [](bool closed) {
    return std::make_shared<const VoxelImage>(3, std::array<int, 3>{6, 8, 8}, [closed](const auto& at) {
      if (at[1] >= 1 && at[1] < 4 && at[2] >= 1 && at[2] < 4) return false;
      return !(closed && at[0] >= 2 && at[0] < 4 && at[1] >= 5 && at[1] < 7 && at[2] >= 5 && at[2] < 7);
    });
  };
  PermeabilityOptions options = along_x(false);
  options.mac = true;
  const Permeability with = permeability(block(true), options);
  const Permeability without = permeability(block(false), options);
  EXPECT_NEAR(xx(with), xx(without), 1e-12 * xx(without));
  EXPECT_NEAR(*with.mac->tensor[0][0], *without.mac->tensor[0][0], 1e-12 * xx(without));
  EXPECT_GT(with.porosity, without.porosity);
  EXPECT_EQ(with.pores[0].porosity, without.porosity);
  EXPECT_EQ(with.pores[0].components, 2);
  EXPECT_EQ(with.value.dofs, without.value.dofs);
}

TEST(Permeability, NothingPercolates) {
  const auto closed =
      std::make_shared<const VoxelImage>(3, std::array<int, 3>{4, 4, 4}, [](const auto& at) { return at[0] == 1; });
  for (const Drive drive : {Drive::force, Drive::pressure}) {
    PermeabilityOptions options = along_x(false);
    options.drive = drive;
    const Permeability result = permeability(closed, options);
    EXPECT_EQ(xx(result), 0.0);
    EXPECT_FALSE(result.pores[0].percolates);
    EXPECT_TRUE(result.value.flows.empty());
    EXPECT_TRUE(result.device.empty());
    EXPECT_TRUE(result.converged());
  }
  PermeabilityOptions options = whole_tensor();
  const Permeability result = permeability(closed, options);
  EXPECT_EQ(xx(result), 0.0);
  EXPECT_GT(*result.value.tensor[1][1], 0.0);
  EXPECT_EQ(result.value.flows.size(), 2U);
}

// Drives and estimates -----------------------------------------------------------------------------------------------

TEST(Permeability, PressureDrivesWhatAForceDoesInStraightDucts) {
  const Image duct = generated({.pattern = Pattern::duct, .extent = {6, 5, 5}, .width = 3});
  for (const bool mac : {true, false}) {
    for (const SidesAcross sides : {SidesAcross::wall, SidesAcross::periodic}) {
      PermeabilityOptions options = along_x(mac);
      options.sides = sides;
      const Permeability by_force = permeability(duct, options, {.rtol = 1e-10});
      options.drive = Drive::pressure;
      const Permeability by_pressure = permeability(duct, options, {.rtol = 1e-10});
      EXPECT_TRUE(by_pressure.converged());
      EXPECT_NEAR(xx(by_pressure), xx(by_force), 1e-7 * xx(by_force)) << mac;
      EXPECT_FALSE(by_pressure.value.tensor[1][0].has_value());
      EXPECT_EQ(by_force.value.tensor[1][0].has_value(), sides == SidesAcross::periodic);
    }
  }
}

TEST(Permeability, SaysHowFarARefinementIs) {
  PermeabilityOptions options = along_x(true);
  options.error = ErrorCheck::refinement;
  const Permeability result = permeability(open_box(2, {4, 4, 1}), options, {.rtol = 1e-10});
  // 1 + 2 / w^2 by 1 + 2 / (2 w)^2
  EXPECT_NEAR(result.error.value(), 1.125 / 1.03125 - 1.0, 1e-7);
  EXPECT_EQ(result.finer->refine, 1);
}

TEST(Permeability, VisitsFlows) {
  PermeabilityOptions options = whole_tensor();
  std::vector<int> seen;
  options.visit = [&](int direction, const Solution& flow) {
    seen.push_back(direction);
    EXPECT_GT(flow.mean_velocity()[direction], 0.0);
  };
  permeability(generated(random_spheres(8)), options);
  EXPECT_EQ(seen, (std::vector<int>{0, 1, 2}));
}

TEST(Permeability, WhatDoesNotConvergeSaysSo) {
  const Permeability result = permeability(generated(random_spheres(12)), whole_tensor(), {.max_iterations = 1});
  EXPECT_FALSE(result.converged());
  EXPECT_FALSE(result.value.flows[0].reason.empty());
}

TEST(Permeability, WrongInput) {
  const Image image = open_box(2, {4, 4, 1});
  const auto error = [&](const Image& of, const PermeabilityOptions& options, const SolverOptions& solver = {}) {
    try {
      permeability(of, options, solver);
    } catch (const InputError& caught) {
      return std::string(caught.what());
    }
    return std::string("none");
  };
  PermeabilityOptions options;
  expect_contains(error(nullptr, options), {"there is none"});
  expect_contains(error(image, options, {.method = Method::fmg}), {"method", "gmres"});
  options.directions = {false, false, true};
  expect_contains(error(image, options), {"directions", "at least one"});
  options = {.order = available_orders(2).back(), .error = ErrorCheck::order};
  expect_contains(error(image, options), {"no order above", "refinement"});
  options = {.order = 77};
  expect_contains(error(image, options), {"77"});
}

// Memory -------------------------------------------------------------------------------------------------------------

/// What `check` says and what is taken, pores and sides of all kinds.
TEST(Permeability, MemoryIsPredictedWithinTenPercent) {
  struct Sample {
    Generator image;
    SidesAcross sides;
    Drive drive;
    double rtol;
  };
  const auto blobs = [](int dim, int n, double porosity) {
    return Generator{.pattern = Pattern::blobs,
                     .dim = dim,
                     .extent = {n, n, dim == 3 ? n : 1},
                     .porosity = porosity,
                     .feature = 4.0};
  };
  const auto expect_predicted = [](int order, bool mac_alone, const Sample& sample) {
    const int dim = sample.image.dim;
    if (!test::has_order(dim, order)) return;
    PermeabilityOptions options = along_x(mac_alone);
    options.order = order;
    options.sides = sample.sides;
    options.drive = sample.drive;
    const SolverOptions solver{.rtol = sample.rtol, .device = DeviceChoice::cpu, .threads = 2};
    const Image image = generated(sample.image);
    const FlowSetup setup = flow_setups(dim, options).front();
    const auto flowing = std::make_shared<const VoxelImage>(keep_flowing(*image, {true, false, false}, setup.periodic));
    ASSERT_GT(flowing->pores(), 0);
    const Problem problem = flow_problem(flowing, setup, options.drive, element_of(options));
    const auto predicted = static_cast<double>(estimate_flow(problem, solver).bytes_needed);
    const Permeability result = permeability(image, options, solver);
    EXPECT_NEAR(predicted / static_cast<double>(result.value.memory_bytes), 1.0, 0.1)
        << "order " << order << ", " << dim << "D, " << sample.image.extent[0] << " voxels, porosity "
        << sample.image.porosity << ", sides " << static_cast<int>(sample.sides) << ", drive "
        << static_cast<int>(sample.drive) << ", rtol " << sample.rtol;
  };
  constexpr auto periodic = SidesAcross::periodic;
  constexpr auto wall = SidesAcross::wall;
  expect_predicted(0, true, {blobs(3, 48, 0.2), periodic, Drive::force, 1e-8});
  expect_predicted(0, true, {blobs(3, 40, 0.5), wall, Drive::pressure, 1e-3});
  expect_predicted(0, true, {blobs(2, 256, 0.6), periodic, Drive::force, 1e-6});
  expect_predicted(1, false, {blobs(3, 32, 0.2), periodic, Drive::force, 1e-3});
  expect_predicted(1, false, {blobs(3, 24, 0.5), wall, Drive::force, 1e-8});
  expect_predicted(1, false, {blobs(2, 128, 0.6), periodic, Drive::force, 1e-4});
  expect_predicted(2, false, {blobs(3, 20, 0.3), periodic, Drive::force, 1e-6});
  expect_predicted(2, false, {blobs(3, 16, 0.5), periodic, Drive::pressure, 1e-8});
  expect_predicted(2, false, {blobs(2, 96, 0.6), wall, Drive::force, 1e-3});
}

// The case file and the command --------------------------------------------------------------------------------------

const std::string spheres = R"([mesh]
image = {generate = "array", shape = [8, 8, 8], porosity = 0.8, voxel = 1e-6}
[element]
order = "mac"
[permeability]
sides = "periodic"
[output]
picture = "speed.png"
speeds = "speeds.csv"
)";

TEST(PermeabilityCase, IsRead) {
  const Case read = parse_case(spheres + "[solver]\nrtol = 1e-6\n", "spheres.toml",
                               {"permeability.directions=[\"y\"]", "permeability.drive=\"pressure\""});
  const PermeabilityOptions& options = read.permeability.value();
  EXPECT_EQ(options.directions, (std::array{false, true, false}));
  EXPECT_EQ(options.sides, SidesAcross::periodic);
  EXPECT_EQ(options.drive, Drive::pressure);
  EXPECT_TRUE(options.lumped);
  EXPECT_EQ(read.problem.boundary.sides[2].kind, SideKind::outflow);
  EXPECT_EQ(read.problem.boundary.sides[0].kind, SideKind::periodic);
}

TEST(PermeabilityCase, DocumentedDefaultsAreTheDefaults) {
  std::string table = "[permeability]\n";
  for (const Section& section : case_sections()) {
    if (section.name != "permeability") continue;
    for (const KeyInfo& key : section.keys) table += fmt::format("{} = {}\n", key.name, key.fallback);
  }
  const std::string mesh = "[mesh]\nimage = {generate = \"duct\", shape = [4, 4, 4]}\n";
  const PermeabilityOptions documented = parse_case(mesh + table, "x.toml").permeability.value();
  const PermeabilityOptions defaults;
  EXPECT_EQ(documented.directions, defaults.directions);
  EXPECT_EQ(documented.sides, defaults.sides);
  EXPECT_EQ(documented.drive, defaults.drive);
  EXPECT_EQ(documented.mac, defaults.mac);
  EXPECT_EQ(documented.error, defaults.error);
}

TEST(PermeabilityCase, ThoseShippedAreValid) {
  for (const char* name : {"spheres", "duct", "rock"}) {
    const auto file = std::filesystem::path(SOLENOID_SOURCE_DIR) / "cases/permeability" / (std::string(name) + ".toml");
    EXPECT_TRUE(read_case(file).permeability.has_value());
  }
}

TEST(PermeabilityCase, WrongKeysAreNamed) {
  const auto error = [&](const std::string& more) {
    try {
      parse_case(spheres + more, "spheres.toml");
    } catch (const InputError& caught) {
      return std::string(caught.what());
    }
    return std::string("none");
  };
  expect_contains(error("[boundary]\nxmin = {slip = true}\n"), {"[boundary], line", "[permeability]"});
  expect_contains(error("[physics]\nforce = [1, 0, 0]\n"), {"[physics], line"});
  expect_contains(error("[time]\nend = 1\n"), {"[time], line"});
  expect_contains(error("[[side]]\non = \"xmin\"\n"), {"[side], line"});
  expect_contains(error("forces = true\n"), {"[output] forces, line"});
  expect_contains(error("[solver]\nmethod = \"fmg\"\n"), {"[solver] method, line 11"});
  EXPECT_THROW(parse_case("[mesh]\ncells = [4, 4]\n[permeability]\n", "box.toml"), InputError);
  EXPECT_THROW(parse_case("[mesh]\nimage = {generate = \"channel\", shape = [4, 4]}\n[permeability]\n"
                          "directions = [\"z\"]\n",
                          "flat.toml"),
               InputError);
}

TEST_F(Program, ComputesPermeabilities) {
  write("spheres.toml", spheres);
  const std::string save = solution_files_unavailable().empty() ? " --save flow.h5" : "";
  ASSERT_EQ(run("permeability spheres.toml --output out_folder --threads 1" + save), 0) << errors();
  EXPECT_EQ(exists("flow_y.h5"), !save.empty());
  expect_contains(output(),
                  {"porosity", "along x", "marker and cell", "darcy", "principal", "iterations", "speed_z.png"});
  EXPECT_TRUE(exists("out_folder/speed_x.png"));
  std::istringstream speeds(read("out_folder/speeds_z.csv"));
  std::string row;
  std::getline(speeds, row);
  EXPECT_EQ(row, "speed,density");
  double mass = 0.0;
  double mean = 0.0;
  double width = 0.0;
  while (std::getline(speeds, row)) {
    const double speed = std::stod(row);
    const double density = std::stod(row.substr(row.find(',') + 1));
    if (width == 0.0) width = 2.0 * speed;
    mass += density * width;
    mean += density * width * speed;
  }
  EXPECT_NEAR(mass, 1.0, 1e-12);
  EXPECT_NEAR(mean, 1.0, 0.02);
  const auto json = nlohmann::json::parse(read("out_folder/result.json"));
  EXPECT_EQ(json["converged"], true);
  const double xx = json["permeability"][0][0];
  EXPECT_NEAR(json["permeability_darcy"][0][0].get<double>(), xx / 9.869233e-13, 1e-12);
  EXPECT_NEAR(json["permeability"][2][2].get<double>(), xx, 1e-6 * xx);
  EXPECT_EQ(json["element"]["order"], "mac");
  EXPECT_EQ(json["element"]["flows"].size(), 3U);
  EXPECT_FALSE(json.contains("mac"));
  EXPECT_EQ(json["pores"][1]["direction"], "y");
  EXPECT_EQ(json["principal"]["axes"].size(), 3U);
  EXPECT_EQ(json["settings"]["permeability"]["sides"], "periodic");

  ASSERT_EQ(run("permeability spheres.toml --json - --set 'permeability.sides=\"wall\"' --threads 1"), 0) << errors();
  const auto walls = nlohmann::json::parse(output());
  EXPECT_TRUE(walls["permeability"][0][1].is_null());
  EXPECT_FALSE(walls.contains("principal"));
  EXPECT_LT(walls["permeability"][0][0].get<double>(), xx);  // walls hold the flow back

  EXPECT_EQ(run("permeability spheres.toml --set solver.max_iterations=1 --quiet"), 1);
  ASSERT_EQ(run("check spheres.toml"), 0) << errors();
  expect_contains(output(), {"along x, y, z", "porosity", "unknowns"});
}

TEST_F(Program, KnowsWhichCommandACaseIsFor) {
  write("spheres.toml", spheres);
  write("cavity.toml", small_cavity);
  EXPECT_EQ(run("solve spheres.toml"), 2);
  expect_contains(errors(), {"[permeability]", "solenoid permeability spheres.toml"});
  EXPECT_EQ(run("permeability cavity.toml"), 2);
  expect_contains(errors(), {"no table [permeability]", "solenoid solve"});
}

TEST_F(Program, SaysWhereNothingFlows) {
  write("closed.toml",
        "[mesh]\nimage = {generate = \"channel\", shape = [8, 8], width = 4}\n[permeability]\ndirections = [\"y\"]\n");
  ASSERT_EQ(run("permeability closed.toml"), 0) << errors();
  expect_contains(output(), {"along y", "nothing flows", "0 m^2"});
}

}  // namespace
}  // namespace solenoid
