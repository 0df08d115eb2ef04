/// \file
/// Flows in time on all engines of this machine: the same steps to the same flows.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "engines.hpp"
#include "flows.hpp"
#include "problem/orders.hpp"
#include "solenoid/arrays.hpp"
#include "solenoid/case.hpp"
#include "solenoid/error.hpp"
#include "solenoid/time_stepper.hpp"

namespace solenoid {
namespace {

struct Driven {
  std::string name;
  std::string text;
};

/// Sides of every kind, holes, periodic directions. They begin smoothly: where a flow jumps, the rule of the solve
/// leaves more than what engines differ by.
std::vector<Driven> flows() {
  return {
      {"channel2D",
       "[mesh]\ncells = [5, 3]\nrefine = 2\nholes = [{lower = [1, 1], upper = [2, 2]}]\n[time]\nend = 1\nstep = 0.02\n"
       "[physics]\nviscosity = 0.01\nconvection = true\nforce = [\"t*sin(5*x*y+t)\", \"t*t*x\"]\n[boundary]\n"
       "xmin = {velocity = [\"t*y*(1+sin(t))\", 0]}\nxmax = {outflow = true}\nymax = {velocity = [\"t\", 0]}\n"},
      {"periodic2D",
       "[mesh]\ncells = [2, 2]\nrefine = 3\n[time]\nend = 1\ncfl = 0.5\ninitial = [\"sin(6.283185307179586*y)\", "
       "\"0.5*sin(12.566370614359172*x)\"]\n[physics]\nviscosity = 0.001\nconvection = true\n[boundary]\n"
       "xmin = {periodic = true}\nymin = {periodic = true}\n"},
      {"lid3D",
       "[mesh]\ncells = [3, 2, 2]\nrefine = 1\n[time]\nend = 1\nstep = 0.05\nscheme = \"sbdf2\"\n[physics]\n"
       "viscosity = 0.02\nconvection = true\n[boundary]\nzmax = {velocity = [\"t\", \"0.5*t\", 0]}\n"
       "ymin = {slip = true}\nxmax = {outflow = true}\nxmin = {velocity = [\"t*y*z\", 0, 0]}\n"},
      {"stokes3D",
       "[mesh]\ncells = [2, 2, 2]\nrefine = 1\n[time]\nend = 1\nstep = 0.05\n[physics]\nviscosity = 0.1\n"
       "force = [\"t*z\", 0, \"t*t\"]\n[boundary]\nxmin = {periodic = true}\n"},
  };
}

class EnginesInTime : public testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(EnginesInTime, TakeTheSameSteps) {
  const auto [which, order] = GetParam();
  Case what = parse_case(flows()[which].text, flows()[which].name);
  if (!cuda_unavailable().empty()) GTEST_SKIP() << cuda_unavailable();
  what.problem.order = order;
  for (const DeviceChoice device : {DeviceChoice::cpu, DeviceChoice::cuda}) {
    const auto orders = orders_for(device, what.problem.mesh.dim, EquationKind::stokes);
    if (std::find(orders.begin(), orders.end(), order) == orders.end()) GTEST_SKIP() << "not in this build";
  }
  for (const Precision precision : {Precision::full_double, Precision::mixed}) {
    what.solver.precision = precision;
    what.solver.threads = 1;
    what.solver.device = DeviceChoice::cpu;
    TimeStepper expected(what.problem, what.time->options, what.solver);
    what.solver.device = DeviceChoice::cuda;
    TimeStepper got(what.problem, what.time->options, what.solver);
    // Solves end at a hundredth of the guess's residual, so that rounding may decide on a cycle.
    constexpr double tolerance = 3e-4;
    for (int i = 0; i < 8; ++i) {
      const StepReport step = expected.step();
      const StepReport on_gpu = got.step();
      ASSERT_NEAR(on_gpu.length, step.length, 1e-12 * step.length);
      EXPECT_NEAR(on_gpu.cfl, step.cfl, tolerance * step.cfl);
    }
    EXPECT_LE(test::difference_of_unknowns(got.solution(), expected.solution()), tolerance);
  }
}

/// Data of arrays that change from step to step.
TEST(EnginesCoupled, TakeTheSameArrays) {
  if (!cuda_unavailable().empty()) GTEST_SKIP() << cuda_unavailable();
  Case what = parse_case(flows()[0].text, flows()[0].name);
  for (const DeviceChoice device : {DeviceChoice::cpu, DeviceChoice::cuda}) {
    const auto orders = orders_for(device, 2, EquationKind::stokes);
    if (std::find(orders.begin(), orders.end(), what.problem.order) == orders.end())
      GTEST_SKIP() << "not in this build";
  }
  const Mesh& mesh = what.problem.mesh;
  what.solver.threads = 1;
  what.solver.precision = Precision::full_double;
  std::vector<Solution> reached;
  for (const DeviceChoice device : {DeviceChoice::cpu, DeviceChoice::cuda}) {
    what.solver.device = device;
    TimeStepper flow(what.problem, what.time->options, what.solver);
    std::vector<double> force(velocity_at(flow.solution(), 2).size());
    std::vector<double> inflow(2 * axes_of({mesh, 1, 0})[1].size());
    for (int step = 0; step < 8; ++step) {
      const double t = flow.time() + flow.next_step();
      for (std::size_t i = 0; i < force.size(); ++i) force[i] = t * std::sin(0.1 * static_cast<double>(i));
      for (std::size_t i = 0; i < inflow.size(); ++i) inflow[i] = t / static_cast<double>(1 + i);
      flow.set_force(field_of({mesh, 2}, force, "force"));
      flow.set_boundary(0, field_of({mesh, 1, 0}, inflow, "xmin"));
      flow.set_reaction(t);
      flow.step();
    }
    reached.push_back(flow.solution());
  }
  EXPECT_LE(test::difference_of_unknowns(reached[1], reached[0]), 3e-4);
  const auto fluxes = face_fluxes(reached[1]);
  const auto expected = face_fluxes(reached[0]);
  for (int a = 0; a < 2; ++a) {
    for (std::size_t i = 0; i < expected[a].size(); ++i) EXPECT_NEAR(fluxes[a][i], expected[a][i], 1e-6);
  }
}

void expect_equal(const std::vector<double>& got, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  double most = 0.0;
  for (const double value : expected) most = std::isnan(value) ? most : std::max(most, std::abs(value));
  ASSERT_GT(most, 0.0);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(std::isnan(got[i]), std::isnan(expected[i])) << i;
    if (!std::isnan(expected[i])) {
      ASSERT_NEAR(got[i], expected[i], tolerance * most) << i;
    }
  }
}

/// What the device makes of a flow is what the host makes of its solution, and a force is the same wherever its array
/// lies.
TEST_P(EnginesInTime, HaveTheSameArrays) {
  const auto [which, order] = GetParam();
  Case what = parse_case(flows()[which].text, flows()[which].name);
  if (!cuda_unavailable().empty()) GTEST_SKIP() << cuda_unavailable();
  what.problem.order = order;
  const int dim = what.problem.mesh.dim;
  const auto orders = orders_for(DeviceChoice::cuda, dim, EquationKind::stokes);
  if (std::find(orders.begin(), orders.end(), order) == orders.end()) GTEST_SKIP() << "not in this build";
  const auto engine = make_engine(DeviceChoice::cuda, 0);
  const Mesh& mesh = what.problem.mesh;
  what.solver.precision = Precision::full_double;
  const auto begin = [&](DeviceChoice device) {
    what.solver.device = device;
    return TimeStepper(what.problem, what.time->options, what.solver);
  };
  for (const int m : {1, 2, 3, 5, 16}) {
    if (m == 16 && order > 1) continue;
    TimeStepper of_host = begin(DeviceChoice::cuda);
    TimeStepper of_device = begin(DeviceChoice::cuda);
    TimeStepper on_processors = begin(DeviceChoice::cpu);
    std::vector<double> force(array_size({mesh, m}, dim));
    for (std::size_t i = 0; i < force.size(); ++i) force[i] = std::sin(0.7 * static_cast<double>(i));
    const Vector<double> there = on_device(*engine, force);
    of_host.set_force(field_of({mesh, m}, force, "force"));
    of_device.set_force(field_of({mesh, m}, DeviceArray{there.data(), force.size()}, "force"));
    on_processors.set_force(field_of({mesh, m}, DeviceArray{there.data(), force.size()}, "force"));
    for (TimeStepper* const flow : {&of_host, &of_device, &on_processors}) flow->step();
    const Solution reached = of_host.solution();
    EXPECT_EQ(test::difference_of_unknowns(of_device.solution(), reached), 0.0);
    EXPECT_LE(test::difference_of_unknowns(on_processors.solution(), reached), 3e-4);
    const std::vector<double> expected = velocity_at(reached, m);
    expect_equal(of_host.velocity_at(m), expected, 1e-12);
    Vector<double> values(*engine, static_cast<std::int64_t>(expected.size()));
    of_host.velocity_at(m, values.data());
    std::vector<double> got(expected.size());
    values.download(got.data());
    expect_equal(got, expected, 1e-12);
  }
  TimeStepper flow = begin(DeviceChoice::cuda);
  flow.step();
  flow.step();
  const auto expected = face_fluxes(flow.solution());
  const auto got = flow.face_fluxes();
  double most = 0.0;  // of all directions: a flow need not go in each
  for (const auto& direction : expected) {
    for (const double flux : direction) most = std::max(most, std::abs(flux));
  }
  ASSERT_GT(most, 0.0);
  for (int a = 0; a < dim; ++a) {
    ASSERT_EQ(got[a].size(), expected[a].size());
    for (std::size_t i = 0; i < expected[a].size(); ++i) ASSERT_NEAR(got[a][i], expected[a][i], 1e-12 * most);
  }
}

/// To a tolerance that is relative to the largest force and the largest torque.
void expect_same_forces(const std::vector<BoundaryForce>& got, const std::vector<BoundaryForce>& expected,
                        double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  double most_force = 0.0;
  double most_torque = 0.0;
  for (const BoundaryForce& each : expected) {
    for (int c = 0; c < 3; ++c) {
      most_force = std::max(most_force, std::abs(each.force[c]));
      most_torque = std::max(most_torque, std::abs(each.torque[c]));
    }
  }
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].name, expected[i].name);
    const double of_force = tolerance * most_force;
    for (int c = 0; c < 3; ++c) {
      EXPECT_NEAR(got[i].force[c], expected[i].force[c], of_force) << got[i].name;
      EXPECT_NEAR(got[i].torque[c], expected[i].torque[c], tolerance * most_torque) << got[i].name;
      EXPECT_NEAR(got[i].sampled_pressure[c], expected[i].sampled_pressure[c], of_force) << got[i].name;
      EXPECT_NEAR(got[i].sampled_viscous[c], expected[i].sampled_viscous[c], of_force) << got[i].name;
    }
  }
}

/// What copies of some cells give is what the whole flow gives, to the last bit; a device adds up forces in an order of
/// its own.
TEST(FlowAtPlaces, IsThatOfTheSolution) {
  std::vector<Driven> cases = flows();
  cases.push_back({"sheared3D",
                   "[mesh]\norigin = [0, 0, 0]\nedges = [[1, 0, 0], [0.3, 1, 0], [0, 0.2, 1]]\ncells = [2, 3, 2]\n"
                   "refine = 1\nholes = [{lower = [1, 1, 0], upper = [2, 2, 1]}]\n[time]\nend = 1\nstep = 0.05\n"
                   "scheme = \"ars443\"\n[physics]\nviscosity = 0.1\n[boundary]\n"
                   "xmin = {velocity = [\"t\", 0, 0]}\nxmax = {outflow = true}\n"});
  cases.push_back({"varying2D",
                   "[mesh]\ncells = [3, 2]\nrefine = 2\n[time]\nend = 1\nstep = 0.05\n[physics]\n"
                   "viscosity = \"0.1*(1+x)\"\nforce = [\"t*y\", \"x\"]\n[boundary]\nxmin = {periodic = true}\n"});
  cases.push_back({"points2D",
                   "[mesh]\ncells = [3, 2]\nrefine = 2\nholes = [{lower = [1, 0], upper = [2, 1]}]\n[time]\nend = 1\n"
                   "step = 0.05\n[physics]\nviscosity = \"0.1*exp(x*y + t)\"\nviscosity_points = \"gauss\"\n"
                   "force = [\"t*y\", \"x\"]\n[boundary]\nxmin = {velocity = [\"t\", 0]}\nxmax = {outflow = true}\n"});
  cases.push_back({"sheared_points3D",
                   "[mesh]\norigin = [0, 0, 0]\nedges = [[1, 0, 0], [0.3, 1, 0], [0, 0.2, 1]]\ncells = [2, 2, 2]\n"
                   "refine = 1\n[time]\nend = 1\nstep = 0.05\n[physics]\nviscosity = \"0.1*exp(x - z)\"\n"
                   "viscosity_points = \"gauss\"\nform = \"gradient\"\nconvection = true\n"
                   "[boundary]\nymax = {velocity = [\"t\", 0, 0]}\nzmin = {slip = true}\n"});
  for (const auto& [name, device] : test::engines()) {
    for (const auto& [of_case, text] : cases) {
      SCOPED_TRACE(of_case + " on " + name);
      Case what = parse_case(text, of_case);
      const int dim = what.problem.mesh.dim;
      const auto orders = orders_for(device, dim, EquationKind::stokes);
      if (std::find(orders.begin(), orders.end(), what.problem.order) == orders.end()) continue;
      what.solver.device = device;
      TimeStepper flow(what.problem, what.time->options, what.solver);
      std::vector<Point> points{{9.0, 9.0, 9.0}};  // outside
      for (int i = 0; i < 20; ++i) {
        const double t = 0.05 * (i + 0.5);
        points.push_back({t, 1.0 - t, dim == 3 ? 0.3 : 0.0});
      }
      EXPECT_FALSE(flow.has_forces());
      EXPECT_THROW((void)flow.forces(), InputError);
      EXPECT_THROW((void)flow.flux(dim, 0.5), InputError);
      for (int step = 0; step < 4; ++step) {
        if (step > 0) flow.step();
        const Solution all = flow.solution();
        const auto velocity = flow.velocity(points);
        const auto pressure = flow.pressure(points);
        const auto expected = all.velocity(points);
        const auto expected_pressure = all.pressure(points);
        for (std::size_t i = 0; i < points.size(); ++i) {
          EXPECT_EQ(std::isnan(velocity[i][0]), i == 0 || std::isnan(expected[i][0]));
          if (std::isnan(expected[i][0])) continue;
          EXPECT_EQ(velocity[i], expected[i]);
          EXPECT_EQ(pressure[i], expected_pressure[i]);
        }
        for (int axis = 0; axis < dim; ++axis) {
          for (const double position : {0.0, 0.3, 0.5, 1.0}) {
            EXPECT_EQ(flow.flux(axis, position), all.flux(axis, position)) << axis << ' ' << position;
          }
        }
        if (step == 0) continue;
        const double tolerance = device == DeviceChoice::cuda ? 1e-11 : 0.0;  // that integrates by itself
        expect_same_forces(flow.forces({0.1, 0.2, 0.3}), all.forces({0.1, 0.2, 0.3}), tolerance);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Flows, EnginesInTime, testing::Combine(testing::Range(0, 4), testing::Range(0, 5)),
                         [](const auto& info) {
                           return fmt::format("{}_k{}", flows()[std::get<0>(info.param)].name, std::get<1>(info.param));
                         });

}  // namespace
}  // namespace solenoid
