#include "solenoid/case.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "case/keys.hpp"
#include "case/nearest.hpp"
#include "engine/engine.hpp"
#include "output/result_json.hpp"
#include "program.hpp"
#include "solenoid/error.hpp"
#include "solenoid/output.hpp"

namespace solenoid {
namespace {

namespace fs = std::filesystem;

std::string message(const std::string& text) {
  try {
    parse_case(text, "test.toml");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

const std::string square = "[mesh]\ncells = [2, 2]\n";
const std::string cube = "[mesh]\ncells = [3, 3, 3]\n";

TEST(Case, EverythingIsRead) {
  const Case c = parse_case(R"(
[mesh]
lower = [-1, 0.5, 0]
upper = [1, 1.5, 3]
cells = [3, 2, 1]
refine = 4
holes = [{lower = [1, 0, 0], upper = [2, 1, 1]}]
[element]
order = 1
[physics]
viscosity = 2
mass = 0.5
force = ["x*y", 1.5, "0"]
[boundary]
xmin = {periodic = true}
ymax = {velocity = ["x", "0", "0"]}
ymin = {slip = true}
zmin = {traction = ["0", "0", "y"]}
zmax = {outflow = true}
holes = {velocity = [0, 0, "x"]}
[solver]
side = "left"
preset = "default"
method = "fmg"
rtol = 1e-5
max_iterations = 7
restart = 5
cycles = 2
smoother = "additive"
damping = 0.1
colour_order = "lexicographic"
patch = "galerkin"
local_solver = "cg"
[exact]
velocity = ["0", "0", "z"]
pressure = "x"
[[probe]]
point = [0, 1, 2]
[[probe]]
point = [1, 1, 3]
[output]
vtu = true
subdivide = 3
picture = "speed.png"
fields = ["q", "vorticity", "q"]
scale = {vorticity = [-2, 3]}
forces = true
torques_about = [1, 2, 3]
energy = true
[[output.flux]]
axis = "y"
position = 0.75
[[output.line]]
file = "line.csv"
from = [-1, 1, 0]
to = [1, 1, 3]
points = 5
[[output.plane]]
file = "plane.csv"
axis = "y"
position = 1
points = [3, 2]
[[output.plane]]
file = "middle.csv"
)",
                            "folder/name.toml");
  const Point p{0.5, 0.25, 2.0};
  EXPECT_EQ(c.name, "name");
  EXPECT_EQ(c.problem.mesh.dim, 3);
  EXPECT_EQ(c.problem.mesh.cells, (std::array<int, 3>{3, 2, 1}));
  EXPECT_EQ(c.problem.mesh.lower, (Point{-1, 0.5, 0}));
  EXPECT_EQ(c.problem.mesh.upper, (Point{1, 1.5, 3}));
  EXPECT_EQ(c.problem.mesh.refine, 4);
  ASSERT_EQ(c.problem.mesh.holes.size(), 1U);
  EXPECT_EQ(c.problem.mesh.holes[0].lower[0], 1);
  EXPECT_EQ(c.problem.order, 1);
  EXPECT_EQ(c.problem.viscosity, 2.0);
  EXPECT_EQ(c.problem.mass, 0.5);
  EXPECT_EQ(c.problem.force[0](p), 0.125);
  EXPECT_EQ(c.problem.force[1](p), 1.5);
  EXPECT_TRUE(c.problem.force[2].is_zero());
  const auto& sides = c.problem.boundary.sides;
  EXPECT_EQ(sides[0].kind, SideKind::periodic);
  EXPECT_EQ(sides[1].kind, SideKind::periodic);
  EXPECT_EQ(sides[2].kind, SideKind::slip);
  EXPECT_EQ(sides[3].kind, SideKind::velocity);
  EXPECT_EQ(sides[3].data[0](p), 0.5);
  EXPECT_EQ(sides[4].kind, SideKind::outflow);
  EXPECT_EQ(sides[4].data[2](p), 0.25);
  EXPECT_EQ(sides[5].kind, SideKind::outflow);
  EXPECT_EQ(c.problem.boundary.holes.data[2](p), 0.5);
  EXPECT_EQ(c.solver.method, Method::fmg);
  EXPECT_EQ(c.solver.side, PreconditionerSide::left);
  EXPECT_EQ(c.solver.rtol, 1e-5);
  EXPECT_EQ(c.solver.max_iterations, 7);
  EXPECT_EQ(c.solver.restart, 5);
  EXPECT_EQ(c.solver.cycles, 2);
  EXPECT_EQ(c.solver.multigrid.smoother, SmootherKind::additive);
  EXPECT_EQ(c.solver.multigrid.damping, 0.1);
  EXPECT_EQ(c.solver.multigrid.colour_order, ColourOrder::lexicographic);
  EXPECT_EQ(c.solver.multigrid.patch, PatchProblem::galerkin);
  EXPECT_EQ(c.solver.multigrid.local_solver, LocalSolverKind::cg);
  EXPECT_EQ((*c.exact.velocity)[2](p), 2.0);
  EXPECT_EQ((*c.exact.pressure)(p), 0.5);
  ASSERT_EQ(c.probes.size(), 2U);
  EXPECT_EQ(c.probes[1], (Point{1, 1, 3}));
  EXPECT_TRUE(c.output.vtu);
  EXPECT_EQ(c.output.subdivide, 3);
  EXPECT_EQ(c.output.picture, "speed.png");
  EXPECT_EQ(c.output.fields, (std::vector{FlowField::q, FlowField::vorticity}));
  EXPECT_EQ(c.output.scales.at(FlowField::vorticity), (Scale{-2, 3}));
  EXPECT_EQ(c.output.scales.size(), 1U);
  EXPECT_TRUE(c.output.forces && c.output.energy && !c.output.permeability);
  EXPECT_EQ(c.output.torques_about, (Point{1, 2, 3}));
  ASSERT_EQ(c.output.fluxes.size(), 1U);
  EXPECT_EQ(c.output.fluxes[0].axis, 1);
  EXPECT_EQ(c.output.fluxes[0].position, 0.75);
  ASSERT_EQ(c.output.samples.size(), 3U);
  EXPECT_EQ(c.output.samples[0].file, "line.csv");
  EXPECT_EQ(c.output.samples[0].points(),
            (std::vector<Point>{{-1, 1, 0}, {-0.5, 1, 0.75}, {0, 1, 1.5}, {0.5, 1, 2.25}, {1, 1, 3}}));
  EXPECT_EQ(c.output.samples[1].points(),
            (std::vector<Point>{{-1, 1, 0}, {0, 1, 0}, {1, 1, 0}, {-1, 1, 3}, {0, 1, 3}, {1, 1, 3}}));
  const std::vector<Point> middle = c.output.samples[2].points();
  ASSERT_EQ(middle.size(), 101U * 101U);
  EXPECT_EQ(middle.front(), (Point{-1, 0.5, 1.5}));
  EXPECT_EQ(middle.back(), (Point{1, 1.5, 1.5}));
}

/// Everything of a case that the reader sets, as text, to compare two cases.
std::string fingerprint(const Case& c) {
  std::ostringstream out;
  const Mesh& m = c.problem.mesh;
  out << m.dim << ' ' << m.refine << ' ' << m.holes.size() << ' ' << c.problem.order << ' ' << c.problem.viscosity
      << ' ' << c.problem.mass << ' ' << is_zero(c.problem.force);
  for (int a = 0; a < 3; ++a) out << ' ' << m.lower[a] << ' ' << m.upper[a] << ' ' << m.cells[a];
  for (const Side& side : c.problem.boundary.sides) out << ' ' << name_of(side.kind) << is_zero(side.data);
  const SolverOptions& s = c.solver;
  const MultigridOptions& g = s.multigrid;
  out << ' ' << name_of(s.method) << s.rtol << ' ' << s.max_iterations << ' ' << s.restart << s.cycles
      << name_of(s.side) << name_of(g.smoother) << g.damping << name_of(g.colour_order) << name_of(g.patch)
      << name_of(g.local_solver) << c.output.vtu << c.output.subdivide << c.output.picture << c.probes.size()
      << c.output.forces << c.output.energy << c.output.permeability << c.output.fluxes.size()
      << c.output.samples.size() << c.output.fields.size() << c.output.scales.size();
  if (c.time) {
    out << ' ' << c.time->options.average_start.value_or(-1.0) << ' ' << c.time->options.average_every;
    for (const bool along : c.time->average_along) out << along;
  }
  for (const double x : c.output.torques_about) out << ' ' << x;
  return out.str();
}

TEST(Case, DocumentedDefaultsAreTheDefaults) {
  const std::string mesh = "[mesh]\ncells = [1, 1, 1]\n";
  const std::string in_time = "end = 1.0\nstep = 0.1\n";
  const std::string average = "start = 0.5\n";
  std::string text = mesh;
  for (const Section& section : case_sections()) {
    const bool top = section.name == "mesh" || section.name.find('.') == std::string_view::npos;
    if (!top || section.name == "exact" || section.name == "permeability") continue;  // the latter: of images alone
    if (section.name == "probe" || section.name == "side" || section.name == "hole" || section.name == "region") {
      continue;  // lists
    }
    if (section.name != "mesh") text += "[" + std::string(section.name) + "]\n";
    if (section.name == "time") text += in_time;
    if (section.name == "average") text += average;
    for (const KeyInfo& key : section.keys) {
      EXPECT_FALSE(key.meaning.empty()) << key.name;
      if (key.fallback.empty() || key.fallback == "required") continue;
      text += std::string(key.name) + " = " + std::string(key.fallback) + "\n";
    }
  }
  EXPECT_EQ(fingerprint(parse_case(text, "x.toml")),
            fingerprint(parse_case(mesh + "[time]\n" + in_time + "[average]\n" + average, "x.toml")))
      << text;
}

TEST(Case, KnowsShearedCells) {
  const std::string mesh = "[mesh]\ncells = [2, 1]\norigin = [1, 2]\nedges = [[2, 0], [0.5, 1]]\n";
  const Case c = parse_case(mesh + "[[probe]]\npoint = [3.2, 2.5]\n[[output.plane]]\nfile = \"x.csv\"\n", "x.toml");
  EXPECT_EQ(c.problem.mesh.lower, (Point{1, 2, 0}));
  ASSERT_TRUE(c.problem.mesh.edges.has_value());
  EXPECT_EQ((*c.problem.mesh.edges)[0], (Point{2, 0, 0}));
  EXPECT_EQ((*c.problem.mesh.edges)[1], (Point{0.5, 1, 0}));
  EXPECT_EQ(c.output.samples.at(0).points().back(), (Point{3.5, 3, 0}));
  expect_contains(message(mesh + "[[probe]]\npoint = [3.2, 2.3]\n"), {"point, line 6", "outside", "edge 0"});
  expect_contains(message(mesh + "upper = [1, 1]\n"), {"[mesh]", "leave `lower` and `upper` out"});
  expect_contains(message("[mesh]\ncells = [1, 1]\norigin = [0, 0]\n"), {"`origin` is where `edges` begin"});
  expect_contains(message("[mesh]\ncells = [1, 1]\norigin = [0, 0]\nedgse = [[1, 0], [0, 1]]\n"), {"edgse", "edges"});
  expect_contains(message("[mesh]\ncells = [1, 1]\nedges = [[1, 0], [2, 0]]\n"),
                  {"[mesh] edges, line 3", "determinant"});
  EXPECT_EQ(parse_case(mesh + "[[output.flux]]\naxis = \"x\"\nposition = 1.5\n", "x.toml").output.fluxes[0].position,
            1.5);
  expect_contains(message(mesh + "[[output.flux]]\naxis = \"x\"\nposition = 2.5\n"), {"2.5 along edge x", "2 long"});
  EXPECT_TRUE(
      parse_case(mesh + "[physics]\nconvection = true\n[time]\nend = 1\nstep = 0.1\n", "x.toml").problem.convection);
}

TEST(Case, PresetIsOverriddenBySingleSettingsInAnyOrder) {
  const Case c = parse_case(square + "[solver]\nside = \"right\"\npreset = \"paper\"\n", "x.toml");
  EXPECT_EQ(c.solver.side, PreconditionerSide::right);
  EXPECT_EQ(c.solver.multigrid.colour_order, ColourOrder::lexicographic);
  EXPECT_EQ(c.solver.multigrid.patch, PatchProblem::galerkin);
}

TEST(Case, UnknownNamesSuggestTheNearest) {
  expect_contains(message(square + "[physics]\nvisosity = 1.0\n"),
                  {"test.toml", "unknown key `visosity` in [physics], line 4", "did you mean `viscosity`?"});
  expect_contains(message(square + "[phisics]\nviscosity = 1.0\n"), {"unknown table `phisics`, line 3", "`physics`"});
  expect_contains(message("order = 2\n" + square), {"unknown key `order`, line 1", "belongs in [element]"});
  expect_contains(message(square + "[boundary]\nymax = {velocty = [1, 0]}\n"),
                  {"`velocty` in [boundary] ymax, line 4", "did you mean `velocity`?"});
  expect_contains(message(square + "[boundary]\ntop = {slip = true}\n"), {"`top`", "valid are `xmin`", "`holes`"});
  expect_contains(message(square + "[solver]\nmethod = \"gmers\"\n"),
                  {"[solver] method, line 4", "did you mean `gmres`?"});
  expect_contains(message("[mesh]\ncells = [2, 2]\nholes = [{lower = [0, 0], uper = [1, 1]}]\n"),
                  {"`uper` in [mesh] holes[0], line 3", "`upper`"});
  expect_contains(message(square + "[[probe]]\npoints = [0, 0]\n"), {"`points` in [probe[0]]", "`point`"});
}

TEST(Case, TypesAndLengths) {
  expect_contains(message(square + "[physics]\nviscosity = \"abc\"\n"),
                  {"test.toml: [physics] viscosity, line 4: unknown name `abc`", "did you mean `abs`?"});
  expect_contains(message(square + "[physics]\nviscosity = -1\n"),
                  {"test.toml: [physics] viscosity, line 4: must be positive and finite, got -1"});
  expect_contains(message(square + "[physics]\nforce = [\"x\"]\n"),
                  {"[physics] force, line 4: expected a list of 2 expressions or numbers", "\"x\""});
  expect_contains(message("[mesh]\ncells = [2, 2]\nrefine = 1.5\n"),
                  {"[mesh] refine, line 3: expected an integer, got 1.5"});
  expect_contains(message("[mesh]\ncells = [2]\n"), {"[mesh] cells, line 2", "2 or 3 integers"});
  expect_contains(message("[mesh]\ncells = 3\n"), {"[mesh] cells, line 2", "2 or 3 integers, got 3"});
  expect_contains(message("[mesh]\nlower = [0, 0, 0]\ncells = [1, 1]\n"), {"[mesh] lower, line 2", "2 numbers"});
  expect_contains(message(square + "[boundary]\nymax = {velocity = [1, 0, 0]}\n"),
                  {"[boundary] ymax.velocity, line 4", "2"});
  expect_contains(message(square + "[boundary]\nymax = 3\n"), {"[boundary] ymax, line 4", "table"});
  expect_contains(message(square + "[boundary]\nymax = {slip = 1}\n"), {"ymax.slip", "true or false, got 1"});
  expect_contains(message(square + "[probe]\npoint = [0, 0]\n"), {"[probe]", "[[probe]]"});
  expect_contains(message(square + "[solver]\nrtol = 2.0\n"), {"[solver] rtol, line 4: expected a number > 0 and < 1"});
  expect_contains(message(square + "[solver]\nmax_iterations = 0\n"), {"[solver] max_iterations, line 4", ">= 1"});
  expect_contains(message(square + "[solver]\ndamping = 1.5\n"),
                  {"test.toml: [solver] damping, line 4: expected a number from 0 to 1, got 1.5"});
  expect_contains(message(square + "[output]\npicture = \"../speed.png\"\n"), {"[output] picture", "without folders"});
  expect_contains(message(square + "[[probe]]\npoint = [0.5, 7]\n"), {"[probe[0]] point", "y = 7", "outside"});
  expect_contains(message("[element]\norder = 2\n"), {"[mesh] is missing"});
  expect_contains(message("[mesh]\nrefine = 2\n"), {"`cells` is missing"});
  expect_contains(message("[mesh\ncells = [1, 1]\n"), {"test.toml", "line 1"});
  expect_contains(message("[mesh]\ncells = [1, 1]\ncells = [2, 2]\n"), {"line 3", "cells"});
}

TEST(Case, ExpressionsAreNamedByFileLineAndKey) {
  expect_contains(message(square + "[physics]\nforce = [\"0\", \"sin(x\"]\n"),
                  {"test.toml: [physics] force[1], line 4"});
  expect_contains(message(square + "[boundary]\nymax = {velocity = [\"xx\", 0]}\n"),
                  {"[boundary] ymax.velocity[0], line 4", "unknown name `xx`"});
  EXPECT_EQ(message(square + "[exact]\npressure = 3\n"), "no error");
}

TEST(Case, ExpressionsHaveParameters) {
  const std::string text = square + R"(
[physics]
force = ["omega*y", "x"]
[boundary]
ymax = {velocity = ["speed*x", 0]}
[exact]
pressure = "omega*x*y"
[parameters]
omega = 3
speed = "2*pi"
unused = 1
)";
  const Case c = parse_case(text, "test.toml");
  const Point at{0.5, 0.25, 0.0};
  EXPECT_EQ(c.problem.force[0](at), 0.75);
  EXPECT_DOUBLE_EQ(c.problem.boundary.sides[3].data[0](at), std::numbers::pi);
  EXPECT_EQ((*c.exact.pressure)(at), 0.375);
  EXPECT_EQ(parse_case(text, "test.toml", {"parameters.omega=5"}).problem.force[0](at), 1.25);

  const auto parameters = [&](const std::string& line) { return message(square + "[parameters]\n" + line + "\n"); };
  expect_contains(parameters("x = 1"),
                  {"test.toml: [parameters] x, line 4: cannot be a parameter: it is a coordinate"});
  expect_contains(parameters("t = 1"), {"[parameters] t, line 4", "the time"});
  expect_contains(parameters("a = \"2*x\""), {"[parameters] a, line 4", "unknown name `x`"});
  expect_contains(parameters("a = 1\nb = \"2*a\""), {"[parameters] b, line 5", "unknown name `a`"});
  expect_contains(parameters("a = true"), {"[parameters] a, line 4", "a number, or an expression", "true"});
  expect_contains(message(square + "parameters = 3\n"), {"unknown key `parameters` in [mesh]"});
}

TEST(Case, MeshesAreValidated) {
  const auto holes = [](const std::string& start, const std::string& list) {
    return message(start + "holes = " + list + "\n");
  };
  expect_contains(message("[mesh]\ncells = [0, 1]\n"), {"[mesh] cells, line 2", "at least 1"});
  expect_contains(message("[mesh]\ncells = [1, 1]\nupper = [0, 1]\n"), {"[mesh] upper, line 3", "larger than `lower`"});
  expect_contains(message("[mesh]\ncells = [1, 1]\nrefine = -1\n"), {"[mesh] refine, line 3"});
  expect_contains(message("[mesh]\ncells = [9, 9, 9]\nrefine = 15\n"), {"[mesh] refine, line 3", "exceed"});
  expect_contains(message("[mesh]\ncells = [100000, 100000]\n"), {"[mesh] cells", "coarse boxes"});
  expect_contains(holes(square, "[{lower = [1, 1], upper = [3, 2]}]"), {"[mesh] holes[0], line 3", "outside"});
  expect_contains(holes(square, "[{lower = [1, 1], upper = [1, 2]}]"), {"[mesh] holes[0], line 3", "empty in x"});
  expect_contains(holes(square, "[{lower = [0, 0], upper = [2, 2]}]"), {"[mesh] holes, line 3", "nothing"});
  EXPECT_EQ(holes(square, "[{lower = [1, 1], upper = [2, 2]}]"), "no error");
  EXPECT_EQ(holes(cube, "[{lower = [1, 1, 1], upper = [2, 2, 2]}]"), "no error");
  EXPECT_EQ(holes(cube, "[{lower = [1, 0, 0], upper = [2, 3, 3]}]"), "no error");  // two parts
}

TEST(Case, ProblemsAreValidated) {
  expect_contains(message(square + "[element]\norder = 99\n"), {"[element] order, line 4", "99", "build; it has"});
  expect_contains(message(square + "[physics]\nviscosity = 0\n"), {"[physics] viscosity, line 4", "positive"});
  expect_contains(message(square + "[physics]\nmass = -1\n"), {"[physics] mass, line 4"});
  Problem problem;
  problem.viscosity = NAN;
  EXPECT_THROW(validate(problem), InputError);
  problem.viscosity = 1.0;
  problem.mesh.dim = 4;
  EXPECT_THROW(validate(problem), InputError);
}

TEST(Case, BoundariesAreValidated) {
  const auto boundary = [](const std::string& keys) { return message(square + "[boundary]\n" + keys); };
  EXPECT_EQ(boundary("xmin = {periodic = true}\nxmax = {periodic = true}\n"), "no error");
  EXPECT_EQ(boundary("xmax = {periodic = true}\n"), "no error");
  expect_contains(boundary("xmin = {periodic = true}\nxmax = {slip = true}\n"),
                  {"[boundary] xmax, line 5", "periodic"});
  expect_contains(boundary("xmin = {slip = true, outflow = true}\n"), {"[boundary] xmin, line 4", "slip and outflow"});
  expect_contains(boundary("xmin = {velocity = [0, 0], traction = [0, 0]}\n"), {"velocity and outflow"});
  expect_contains(boundary("xmin = {traction = [1, 0], outflow = false}\n"),
                  {"[boundary] xmin.traction, line 4", "`outflow = false` contradicts"});
  expect_contains(message(square + "[physics]\nequation = \"poisson\"\n[boundary]\nxmin = {periodic = true}\n" +
                          "xmax = {value = 1}\n"),
                  {"[boundary] xmax, line 7", "is a value side"});
  expect_contains(boundary("xmin = {slip = false}\n"), {"[boundary] xmin, line 4", "expected one of"});
  expect_contains(boundary("zmin = {slip = true}\n"), {"[boundary] zmin, line 4", "2 dimensions"});
  expect_contains(boundary("holes = {periodic = true}\n"), {"[boundary] holes, line 4", "periodic"});
}

TEST(Case, PartsOfSidesAndSingleHoles) {
  const std::string holes = "[mesh]\ncells = [3, 3]\nrefine = 1\nholes = [{lower = [1, 1], upper = [2, 2]}]\n";
  const Case c = parse_case(holes +
                                "[[side]]\non = \"ymax\"\nwhere = \"x < 0.5\"\nvelocity = [\"x\", 0]\n"
                                "[[side]]\ntraction = [0, 2]\nwhere = \"1\"\non = \"xmin\"\n"
                                "[[hole]]\nindex = 0\nslip = true\n",
                            "x.toml");
  const auto& [sides, all_holes, regions, single_holes] = c.problem.boundary;
  ASSERT_EQ(regions.size(), 2U);
  EXPECT_EQ(regions[0].side, 3);
  EXPECT_EQ(regions[0].where({0.25, 1, 0}), 1.0);
  EXPECT_EQ(regions[0].where({0.75, 1, 0}), 0.0);
  EXPECT_EQ(regions[0].condition.kind, SideKind::velocity);
  EXPECT_EQ(regions[0].condition.data[0]({0.25, 1, 0}), 0.25);
  EXPECT_EQ(regions[1].side, 0);
  EXPECT_EQ(regions[1].condition.kind, SideKind::outflow);
  EXPECT_EQ(regions[1].condition.data[1]({}), 2.0);
  ASSERT_EQ(single_holes.size(), 1U);
  EXPECT_EQ(single_holes[0].hole, 0);
  EXPECT_EQ(single_holes[0].condition.kind, SideKind::slip);
  EXPECT_EQ(sides[3].kind, SideKind::velocity);

  const auto side = [&](const std::string& keys) { return message(holes + "[[side]]\n" + keys); };
  expect_contains(side("on = \"ymx\"\n"), {"[side[0]] on, line 6", "did you mean `ymax`?"});
  expect_contains(side("on = \"zmin\"\n"), {"[side[0]] on, line 6", "the name of a side"});
  expect_contains(side("on = \"ymin\"\nslip = true\n"), {"[side[0]], line 5", "`where` is missing"});
  expect_contains(side("on = \"ymin\"\nwhere = \"1\"\n"), {"[side[0]], line 5", "`outflow` and `traction`"});
  expect_contains(side("on = \"ymin\"\nwhere = \"1\"\nperiodic = true\n"), {"unknown key `periodic`", "line 8"});
  expect_contains(side("on = \"ymin\"\nwhere = \"x <\"\nslip = true\n"), {"[side[0]] where, line 7", "too early"});
  expect_contains(side("on = \"ymin\"\nwhere = \"x < 0.2\"\nvelocity = [0, 0]\n"),
                  {"[side[0]] where, line 7: ends within the face of a cell"});
  expect_contains(side("on = \"ymin\"\nwhere = \"1\"\nvalue = 1\n"), {"[side[0]] value, line 8", "Poisson"});
  expect_contains(message(holes + "[side]\non = \"ymin\"\n"), {"[side], line 5", "[[side]]"});
  expect_contains(message(holes + "[[hole]]\nslip = true\n"), {"[hole[0]], line 5", "`index` is missing"});
  expect_contains(message(holes + "[[hole]]\nindex = 1\nslip = true\n"), {"[hole[0]] index, line 6", "no hole 1"});
  const std::string poisson = holes + "[physics]\nequation = \"poisson\"\n";
  EXPECT_EQ(message(poisson + "[[hole]]\nindex = 0\nvalue = \"x\"\n"), "no error");
  expect_contains(message(poisson + "[[hole]]\nindex = 0\nslip = true\n"), {"[hole[0]], line 7", "is a slip side"});
}

TEST(Case, KeysOfPoissonsEquation) {
  const std::string poisson = square + "[physics]\nequation = \"poisson\"\nforce = \"x + y\"\n";
  const Case c = parse_case(poisson +
                                "[boundary]\nxmin = {periodic = true}\nymax = {value = \"2*x\"}\n"
                                "[solver]\npatch = \"fused\"\n[exact]\nvalue = 3\n",
                            "x.toml");
  EXPECT_EQ(c.problem.equation, EquationKind::poisson);
  EXPECT_EQ(c.problem.force[0]({1, 2, 0}), 3.0);
  EXPECT_EQ(c.problem.boundary.sides[1].kind, SideKind::periodic);
  EXPECT_EQ(c.problem.boundary.sides[3].data[0]({2, 0, 0}), 4.0);
  EXPECT_EQ(c.solver.multigrid.patch, PatchProblem::fused);
  EXPECT_EQ((*c.exact.value)({0, 0, 0}), 3.0);

  expect_contains(message(poisson + "[boundary]\nymax = {slip = true}\n"),
                  {"[boundary] ymax, line 7", "is a slip side", "Poisson"});
  expect_contains(message(poisson + "[boundary]\nymax = {velocity = [1, 0]}\n"), {"ymax.velocity, line 7"});
  expect_contains(message(poisson + "[boundary]\nymax = {}\n"), {"ymax, line 7", "`value` or `periodic`"});
  expect_contains(message(poisson + "[exact]\npressure = 1\n"), {"[exact] pressure, line 7"});
  expect_contains(message(poisson + "[solver]\nlocal_solver = \"cg\"\n"),
                  {"[solver] local_solver, line 7", "fast diagonalisation"});
  expect_contains(message(square + "[physics]\nequation = \"poisson\"\nforce = [0, 0]\n"), {"[physics] force, line 5"});
  expect_contains(message(square + "[boundary]\nymax = {value = 1}\n"), {"ymax.value, line 4", "Poisson"});
  expect_contains(message(square + "[solver]\npatch = \"fused\"\n"), {"[solver] patch, line 4", "Poisson"});
}

TEST(Case, MeasuresAndSamplesAreValidated) {
  const auto output = [](const std::string& keys, const std::string& physics = "") {
    return message(square + physics + "[output]\n" + keys);
  };
  expect_contains(output("force = true\n"), {"unknown key `force` in [output], line 4", "`forces`"});
  expect_contains(output("[[output.flux]]\naxis = 0\nposition = 0.5\n"),
                  {"[output] flux[0].axis, line 5: expected \"x\", \"y\" or \"z\", got 0"});
  expect_contains(output("[[output.flux]]\naxis = \"z\"\nposition = 0.5\n"), {"2 dimensions, so there is no z"});
  expect_contains(output("[[output.flux]]\naxis = \"x\"\nposition = 1.5\n"),
                  {"[output] flux[0].position, line 6: x = 1.5 lies outside the mesh"});
  expect_contains(output("[[output.flux]]\naxis = \"x\"\n"), {"[output] flux[0], line 4", "`position` is missing"});
  expect_contains(output("flux = {axis = \"x\"}\n"), {"[output] flux, line 4", "[[output.flux]]"});
  const std::string line = "[[output.line]]\nfile = \"a.csv\"\n";
  expect_contains(output(line + "from = [0, 0]\nto = [2, 0]\n"), {"line[0].to, line 7: x = 2 lies outside"});
  expect_contains(output(line + "from = [0, 0]\nto = [1, 0]\npoints = 1\n"),
                  {"line[0].points, line 8: expected an integer from 2 to 1000000, got 1"});
  expect_contains(output("[[output.line]]\nfile = \"../a.csv\"\nfrom = [0, 0]\nto = [1, 0]\n"), {"without folders"});
  const std::string plane = "[[output.plane]]\nfile = \"a.csv\"\n";
  expect_contains(output(plane + "axis = \"x\"\n"), {"plane[0].axis, line 6", "in 2D the plane is the domain"});
  expect_contains(output(plane + "points = [10, 1]\n"), {"plane[0].points[1], line 6", "from 2 to 10000"});
  EXPECT_EQ(output(plane), "no error");

  const std::string poisson = "[physics]\nequation = \"poisson\"\n";
  EXPECT_EQ(output(line + "from = [0, 0]\nto = [1, 0]\n", poisson), "no error");
  for (const char* key : {"forces = true\n", "energy = true\n", "permeability = true\n", "torques_about = [0, 0]\n",
                          "[[output.flux]]\naxis = \"x\"\nposition = 0.5\n"}) {
    expect_contains(output(key, poisson), {"[output] ", "is for the Stokes equations"});
  }
  // The permeability needs more than a key.
  const auto permeability = [&](const std::string& rest) { return output("permeability = true\n" + rest); };
  const std::string force = "[physics]\nforce = [1, 0]\n";
  const std::string periodic = "[boundary]\nxmin = {periodic = true}\n";
  EXPECT_EQ(permeability(force + periodic), "no error");
  expect_contains(permeability(periodic), {"[physics] force", "it is zero"});
  expect_contains(permeability(force), {"[physics] force[0], line 6", "x is not"});
  expect_contains(permeability("[physics]\nforce = [1, 0]\nmass = 2.0\n" + periodic),
                  {"[physics] mass, line 7", "without mass term"});
  expect_contains(permeability("[physics]\nforce = [\"1 + x\", 0]\n" + periodic),
                  {"force[0], line 6", "give a number"});
  expect_contains(permeability(force + periodic + "ymin = {outflow = true}\n"), {"[boundary] ymin, line 9"});
}

TEST(Case, FilesThatCannotBeRead) {
  EXPECT_THROW(read_case("/no/such/file.toml"), InputError);
  EXPECT_THROW(read_case(fs::temp_directory_path()), InputError);
}

TEST(Case, NearestNames) {
  EXPECT_EQ(nearest_name("Viscosity", {"mass", "viscosity"}), "viscosity");
  EXPECT_EQ(nearest_name("fmgg", {"gmres", "fmg", "vcycle"}), "fmg");
  EXPECT_EQ(nearest_name("xmni", {"xmax", "xmin"}), "xmin");
  EXPECT_EQ(nearest_name("something", {"gmres", "fmg"}), "");
}

class ShippedCase : public testing::TestWithParam<std::string> {};

TEST_P(ShippedCase, IsValid) {
  const Case c = read_case(fs::path(SOLENOID_SOURCE_DIR) / "cases" / (GetParam() + ".toml"));
  EXPECT_EQ(c.name, GetParam());
  EXPECT_TRUE(c.output.vtu);
  EXPECT_FALSE(c.output.picture.empty());
  EXPECT_FALSE(c.probes.empty());
}

INSTANTIATE_TEST_SUITE_P(Cases, ShippedCase,
                         testing::Values("paper_2d", "paper_3d", "cavity_2d", "cavity_3d", "channel_obstacle",
                                         "l_shape", "cube_holes", "poisson_2d", "poisson_3d"),
                         [](const auto& parameter) { return parameter.param; });

// -nu Laplace u + grad p = f and div u = 0 by finite differences of sixth order, and u = 0 on the sides.
TEST(Case, ExactSolutionsOfThePaperSolveTheEquation) {
  for (const char* name : {"paper_2d", "paper_3d"}) {
    const Case c = read_case(fs::path(SOLENOID_SOURCE_DIR) / "cases" / (std::string(name) + ".toml"));
    const int dim = c.problem.mesh.dim;
    const VectorField& u = *c.exact.velocity;
    const ScalarField& p = *c.exact.pressure;
    constexpr double h = 0.01;
    const auto at = [](Point x, int a, double step) {
      x[a] += step;
      return x;
    };
    const auto first = [&](const ScalarField& f, const Point& x, int a) {
      const auto odd = [&](int i) { return f(at(x, a, i * h)) - f(at(x, a, -i * h)); };
      return (45 * odd(1) - 9 * odd(2) + odd(3)) / (60 * h);
    };
    const auto second = [&](const ScalarField& f, const Point& x, int a) {
      const auto even = [&](int i) { return f(at(x, a, i * h)) + f(at(x, a, -i * h)) - 2 * f(x); };
      return (270 * even(1) - 27 * even(2) + 2 * even(3)) / (180 * h * h);
    };
    for (const Point x : {Point{0.3, 0.6, 0.2}, Point{0.85, 0.15, 0.55}, Point{0.1, 0.45, 0.9}}) {
      double divergence = 0.0;
      for (int i = 0; i < dim; ++i) {
        divergence += first(u[i], x, i);
        double left = first(p, x, i);
        for (int a = 0; a < dim; ++a) left -= c.problem.viscosity * second(u[i], x, a);
        EXPECT_NEAR(left, c.problem.force[i](x), 1e-6) << name << " component " << i;
        Point side = x;
        side[i] = 1.0;
        for (int j = 0; j < dim; ++j) EXPECT_NEAR(u[j](side), 0.0, 1e-15);
      }
      EXPECT_NEAR(divergence, 0.0, 1e-8) << name;
    }
  }
}

// ---- The program

TEST_F(Program, SolvesAndWritesWhatIsAskedFor) {
  write("cavity.toml", small_cavity);
  ASSERT_EQ(run("solve cavity.toml --output deep/er --threads 1 --precision double"), 0) << errors();
  EXPECT_TRUE(exists("deep/er/cavity.vtu"));
  EXPECT_TRUE(exists("deep/er/speed.png"));
  const auto json = nlohmann::json::parse(read("deep/er/result.json"));
  EXPECT_EQ(json["converged"], true);
  EXPECT_EQ(json["cells"], 64);
  EXPECT_EQ(json["dofs"].get<int>() > 1000, true);
  EXPECT_EQ(json["precision"], "double");
  EXPECT_EQ(json["residual_history"].size(), json["iterations"].get<std::size_t>() + 1);
  EXPECT_TRUE(json["error"]["velocity_l2"].is_null());
  EXPECT_TRUE(json["error"].contains("pressure_l2"));
  EXPECT_LT(json["divergence_max"], 1e-10);
  EXPECT_EQ(json["probes"].size(), 1U);
  EXPECT_EQ(json["probes"][0]["velocity"].size(), 2U);
  for (const char* key : {"reason", "fractional_iterations", "levels", "device", "memory_bytes"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_TRUE(json["time"].contains("setup") && json["time"].contains("solve"));
  EXPECT_EQ(json["settings"]["solver"]["method"], "gmres");
  EXPECT_EQ(json["settings"]["mesh"]["refine"], 3);
  expect_contains(output(), {"unknowns", "iterations", "residual", "divergence", "result.json", "speed.png"});
}

TEST_F(Program, SaysHowLargeTheErrorOfFullMultigridIs) {
  write("cavity.toml", std::string(small_cavity) + "[solver]\nmethod = \"fmg\"\ncycles = 2\n");
  ASSERT_EQ(run("solve cavity.toml --json result.json --threads 1"), 0) << errors();
  const auto estimate = nlohmann::json::parse(read("result.json"))["error_estimate"];
  EXPECT_GT(estimate["velocity_l2"], 0.0);
  EXPECT_LT(estimate["velocity_l2"], 1e-2);
  EXPECT_LT(estimate["algebraic"], 0.5 * estimate["velocity_l2"].get<double>());
  expect_contains(output(), {"error estimate", "algebraic part"});
  ASSERT_EQ(run("solve cavity.toml --json result.json --threads 1 --quiet"), 0);
  write("open.toml", R"(
[mesh]
cells = [1, 1]
refine = 3
[boundary]
xmin = {velocity = ["y-y^2", 0]}
xmax = {outflow = true}
[solver]
method = "fmg"
)");
  EXPECT_EQ(run("solve open.toml --json result.json --threads 1"), 1);
  const auto open = nlohmann::json::parse(read("result.json"));
  EXPECT_TRUE(open["error_estimate"]["velocity_l2"].is_null());
  EXPECT_NE(open["reason"].get<std::string>().find("flow through sides"), std::string::npos) << open["reason"];
}

TEST_F(Program, MeasuresAndSamples) {
  write("sample.toml", R"([mesh]
cells = [4, 4]
refine = 2
holes = [{lower = [1, 1], upper = [2, 3]}]
[physics]
viscosity = 0.5
force = [2, 0]
[boundary]
xmin = {periodic = true}
[solver]
rtol = 1e-11
[[probe]]
point = [0.8, 0.5]
[output]
forces = true
torques_about = [0.5, 0.5]
energy = true
permeability = true
[[output.flux]]
axis = "x"
position = 0.25
[[output.flux]]
axis = "y"
position = 0.5
[[output.line]]
file = "line.csv"
from = [0, 0.5]
to = [1, 0.5]
points = 3
[[output.plane]]
file = "plane.csv"
points = [4, 3]
)");
  ASSERT_EQ(run("solve sample.toml --output results --threads 1 --precision double"), 0) << errors();
  const auto json = nlohmann::json::parse(read("results/result.json"));
  ASSERT_EQ(json["forces"].size(), 3U);
  double drag = 0.0;
  for (const auto& force : json["forces"]) {
    drag += force["force"][0].get<double>();
    EXPECT_EQ(force["force"].size(), 2U);
    EXPECT_EQ(force["sampled_pressure"].size() + force["sampled_viscous"].size(), 4U);
    EXPECT_TRUE(force["torque"].is_number());
  }
  EXPECT_NEAR(drag, 2.0 * (1.0 - 2.0 / 16.0), 1e-8);
  EXPECT_EQ(json["forces"][2]["on"], "holes[0]");
  ASSERT_EQ(json["fluxes"].size(), 2U);
  const double flux = json["fluxes"][0]["flux"];
  EXPECT_EQ(json["fluxes"][0]["axis"], "x");
  EXPECT_EQ(json["fluxes"][0]["position"], 0.25);
  EXPECT_GT(flux, 0.01);
  EXPECT_NEAR(json["fluxes"][1]["flux"], 0.0, 1e-12);
  // The flux is the same through all planes of a unit square, so that it is the mean velocity.
  EXPECT_NEAR(json["permeability"][0], 0.5 * flux / 2.0, 1e-12);
  // The flow takes from the force what it dissipates, but for the penalty: the order of the element.
  EXPECT_NEAR(json["dissipation"].get<double>() / (2.0 * flux), 1.0, 0.1);
  EXPECT_GT(json["kinetic_energy"].get<double>(), 0.5 * flux * flux);
  expect_contains(output(), {"at points", "(0.8, 0.5): u = (", "force, torque", "holes[0]: (", "flux", "x = 0.25: ",
                             "kinetic energy", "dissipation", "permeability", "results/line.csv", "results/plane.csv"});
  const std::string line = read("results/line.csv");
  EXPECT_EQ(line.substr(0, line.find('\n')), "x,y,u_x,u_y,p");
  expect_contains(line, {"\n0.5,0.5,", "\n1,0.5,"});
  const std::string plane = read("results/plane.csv");
  EXPECT_EQ(std::count(plane.begin(), plane.end(), '\n'), 13);

  ASSERT_EQ(run("solve sample.toml --threads 1"), 0);
  expect_contains(output(), {"The case asks for files"});
  EXPECT_EQ(run("solve sample.toml --output results --json results/line.csv"), 2);
  expect_contains(errors(), {"the samples 'results/line.csv' would replace the result file"});
}

TEST(ResultFile, HasAllSettingsByTheNamesOfTheCaseFile) {
  const auto settings = [](const std::string& text) {
    return nlohmann::json::parse(result_json(parse_case(square + text, "x.toml"), {}, nullptr))["settings"];
  };
  const auto paper = settings("[solver]\npreset = \"paper\"\n")["solver"];
  const auto by_hand =
      settings("[solver]\nside = \"left\"\ncolour_order = \"lexicographic\"\npatch = \"galerkin\"\n")["solver"];
  EXPECT_EQ(paper["cycle_index"], 1);
  EXPECT_EQ(paper["coarse_penalty"], 1.0);
  EXPECT_EQ(paper["all_levels"], true);
  EXPECT_EQ(by_hand["cycle_index"], 0);
  EXPECT_EQ(by_hand["coarse_penalty"], 0.0);
  EXPECT_EQ(by_hand["all_levels"], false);
  EXPECT_FALSE(paper.contains("random_load"));
  const auto poisson = settings("[physics]\nequation = \"poisson\"\n[boundary]\nxmin = {periodic = true}\n");
  EXPECT_EQ(poisson["boundary"]["xmin"], "periodic");
  EXPECT_EQ(poisson["boundary"]["ymin"], "value");
}

TEST_F(Program, WritesNothingUnasked) {
  write("cavity.toml", small_cavity);
  ASSERT_EQ(run("solve cavity.toml"), 0) << errors();
  expect_contains(output(), {"--output"});
  EXPECT_FALSE(exists("cavity.vtu") || exists("speed.png") || exists("result.json"));
  ASSERT_EQ(run("solve cavity.toml --quiet --json result.json"), 0) << errors();
  EXPECT_TRUE(exists("result.json"));
  EXPECT_FALSE(exists("cavity.vtu"));
  EXPECT_EQ(output() + errors(), "");
}

TEST_F(Program, ReportsWhatDidNotConverge) {
  write("case.toml", small_cavity + "[solver]\nmax_iterations = 1\nrtol = 1e-12\n");
  EXPECT_EQ(run("solve case.toml --json result.json"), 1);
  const auto json = nlohmann::json::parse(read("result.json"));
  EXPECT_EQ(json["converged"], false);
  EXPECT_EQ(json["iterations"], 1);
  EXPECT_EQ(json["residual_history"].size(), 2U);
  EXPECT_NE(json["reason"], "");
}

TEST_F(Program, MistypedCommandsAreNamed) {
  EXPECT_EQ(run("sovle case.toml"), 2);
  expect_contains(errors(), {"sovle", "solve"});
  EXPECT_EQ(run("study itertions --levels 3"), 2);
  expect_contains(errors(), {"itertions", "iterations"});
  EXPECT_EQ(run("nonsense"), 2);
  expect_contains(errors(), {"nonsense", "solve", "check", "info", "study"});
}

TEST_F(Program, BadInputIsCodeTwoAndWritesNothing) {
  write("bad.toml", square + "[physics]\nvisosity = 1\n");
  EXPECT_EQ(run("solve bad.toml --output results --json result.json"), 2);
  expect_contains(errors(), {"bad.toml", "visosity", "viscosity", "line 4"});
  EXPECT_FALSE(exists("results") || exists("result.json"));
  EXPECT_EQ(run("check bad.toml"), 2);

  write("flux.toml", square + "refine = 2\n[boundary]\nymax = {velocity = [0, 1]}\n");
  EXPECT_EQ(run("solve flux.toml --output results"), 2);
  expect_contains(errors(), {"flux"});
  write("infinite.toml", square + "refine = 2\n[physics]\nforce = [\"1/(x-x)\", 0]\n");
  EXPECT_EQ(run("solve infinite.toml --output results"), 2);
  expect_contains(errors(), {"[physics] force[0], line 5", "point"});
  EXPECT_FALSE(exists("results"));

  write("cavity.toml", small_cavity);
  write("file", "");
  EXPECT_EQ(run("solve cavity.toml --output file/folder"), 2);
  expect_contains(errors(), {"file/folder", "not a folder"});
  EXPECT_EQ(run("solve cavity.toml --json ."), 2);
  EXPECT_EQ(run("solve missing.toml"), 2);
  expect_contains(errors(), {"missing.toml", "no such file"});
}

// What `solve` only finds on the mesh, `check` finds as well.
TEST_F(Program, CheckFindsWhatSolveWould) {
  write("flux.toml", square + "refine = 2\n[boundary]\nymax = {velocity = [0, 1]}\n");
  write("infinite.toml", square + "refine = 2\n[physics]\nforce = [\"sqrt(x-2)\", 0]\n");
  write("mean.toml", square + "refine = 2\n[boundary]\nxmin = {periodic = true}\nymin = {periodic = true}\n" +
                         "[physics]\nforce = [1, 0]\n");
  write("narrow.toml", "[mesh]\ncells = [400, 1]\n");
  for (const auto& [name, message] : {std::pair{"flux", "balance"}, std::pair{"infinite", "[physics] force[0], line 5"},
                                      std::pair{"mean", "mean"}, std::pair{"narrow", "refine = 1"}}) {
    EXPECT_EQ(run(std::string("check ") + name + ".toml"), 2) << name;
    expect_contains(errors(), {message});
    EXPECT_EQ(output(), "") << name;
  }
}

TEST_F(Program, FilesDoNotReplaceOthers) {
  write("cavity.toml", small_cavity);
  ASSERT_EQ(shell("ln -s cavity.toml link.toml"), 0);
  for (const char* arguments :
       {"--json cavity.toml", "--json ../$(basename $PWD)/cavity.toml", "--json link.toml",
        "--output results --json results/cavity.vtu", "--output results --json results/speed.png"}) {
    EXPECT_EQ(run(std::string("solve cavity.toml ") + arguments), 2) << arguments;
    expect_contains(errors(), {"would replace"});
  }
  EXPECT_EQ(read("cavity.toml"), small_cavity);
  EXPECT_EQ(read("link.toml"), small_cavity);
  EXPECT_FALSE(exists("results"));
}

TEST_F(Program, TargetsAreCheckedBeforeSolving) {
  write("cavity.toml", small_cavity);
  for (const char* arguments : {"solve cavity.toml --json ''", "solve cavity.toml --output ''",
                                "study convergence --json ''", "study paper --output ''"}) {
    EXPECT_EQ(run(arguments), 2) << arguments;
    expect_contains(errors(), {"nothing"});
  }
  for (const char* name : {"cavity.vtu", "speed.png"}) {
    ASSERT_EQ(shell("rm -rf results && mkdir -p results/" + std::string(name)), 0);
    EXPECT_EQ(run("solve cavity.toml --output results"), 2) << name;
    expect_contains(errors(), {name, "is a folder"});
    EXPECT_FALSE(exists("results/result.json"));
  }
  EXPECT_EQ(run("study paper --device cpu --output cavity.toml"), 2);
  expect_contains(errors(), {"cavity.toml", "not a folder"});
}

TEST_F(Program, ExactSolutionsThatAreNotFiniteAreFoundBeforeSolving) {
  write("case.toml", small_cavity + "[exact]\npressure = \"log(x-2)\"\n");
  for (const char* command : {"check", "solve"}) {
    EXPECT_EQ(run(command + std::string(" case.toml --json result.json")), 2) << command;
  }
  EXPECT_EQ(run("solve case.toml --json result.json"), 2);
  expect_contains(errors(), {"[exact] pressure", "line 12", "point"});
  EXPECT_EQ(errors().find("set-up"), std::string::npos) << errors();
  EXPECT_FALSE(exists("result.json"));
}

// Where only the quadrature points of the errors show it, the result is written all the same.
TEST_F(Program, ResultsWithoutErrorsAreWritten) {
  write("case.toml", small_cavity + "[exact]\npressure = \"sqrt(x-0.015)\"\n");
  EXPECT_EQ(run("solve case.toml --output results"), 2);
  expect_contains(errors(), {"no errors could be measured", "[exact] pressure", "line 12"});
  const auto json = nlohmann::json::parse(read("results/result.json"));
  EXPECT_EQ(json["converged"], true);
  EXPECT_TRUE(json["error"]["pressure_l2"].is_null());
  EXPECT_TRUE(exists("results/case.vtu") && exists("results/speed.png"));
}

// The result goes to a pipe, at which the program waits for us after the solve.
TEST_F(Program, InterruptedBeforeTheLastFileIsNotSuccess) {
  write("cavity.toml", small_cavity);
  ASSERT_EQ(shell("mkfifo pipe && { '" SOLENOID_PROGRAM "' solve cavity.toml --output results --json pipe >out 2>err & "
                  "until grep -q measure err; do sleep 0.01; done; "
                  "kill -INT $!; cat pipe >result.json; wait $!; }"),
            1)
      << errors();
  expect_contains(errors(), {"interrupted", "not written", "cavity.vtu", "speed.png"});
  EXPECT_FALSE(exists("results/cavity.vtu") || exists("results/speed.png"));
  EXPECT_EQ(nlohmann::json::parse(read("result.json"))["converged"], true);
}

TEST_F(Program, AGpuThatIsNotThereIsCodeThree) {
  if (cuda_unavailable().empty()) GTEST_SKIP() << "there is a GPU";
  write("cavity.toml", small_cavity);
  EXPECT_EQ(run("solve cavity.toml --device cuda --json result.json"), 3);
  expect_contains(errors(), {"cuda", "--device cpu"});
  EXPECT_FALSE(exists("result.json"));
}

TEST_F(Program, WrongUsageIsCodeTwo) {
  write("cavity.toml", small_cavity);
  for (const char* arguments : {"solve", "solve cavity.toml --precision half", "solve cavity.toml --threads -1",
                                "solve cavity.toml --device tpu", "slove cavity.toml", "study nothing"}) {
    EXPECT_EQ(run(arguments), 2) << arguments;
  }
  EXPECT_EQ(run("--help"), 0);
  EXPECT_EQ(run("solve --help"), 0);
  EXPECT_EQ(run("--version"), 0);
}

TEST_F(Program, TooLargeIsCodeThree) {
  write("huge.toml", "[mesh]\ncells = [1, 1, 1]\nrefine = 12\n");
  EXPECT_EQ(run("solve huge.toml --output results"), 3);
  expect_contains(errors(), {"refine"});
  EXPECT_FALSE(exists("results"));
  EXPECT_EQ(run("check huge.toml"), 3);
  expect_contains(errors(), {"largest refinement"});
}

TEST_F(Program, ChecksAndInforms) {
  write("cavity.toml", small_cavity);
  EXPECT_EQ(run("check cavity.toml"), 0) << errors();
  expect_contains(output(), {"valid", "unknowns", "memory"});
  EXPECT_EQ(run("info"), 0);
  expect_contains(output(), {"version", "commit", "compiler", "orders 2D", "orders 3D", "CPU targets", "CUDA build",
                             "devices", "cuda"});
}

}  // namespace
}  // namespace solenoid
