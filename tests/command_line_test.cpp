/// \file
/// What the command line understands, and how it says that it does not.

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "program.hpp"
#include "solenoid/case.hpp"
#include "solenoid/error.hpp"

namespace solenoid {
namespace {

using Json = nlohmann::json;

// ---- --set

Case with(const std::vector<std::string>& settings) { return parse_case(small_cavity, "c.toml", settings); }

std::string refusal(const std::vector<std::string>& settings) {
  try {
    with(settings);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Settings, SetKeysOfAllKinds) {
  const Case c = with({"mesh.refine=5", "physics.viscosity = 0.1", R"(physics.force=["y", 2])",
                       R"(solver.method="fmg")", "boundary.ymin={slip = true}", "output.vtu=false",
                       R"(physics.force[1]="x")", "probe[0].point[1]=0.25", "mesh.refine=4", "mesh.upper=[2, 1]"});
  EXPECT_EQ(c.problem.mesh.refine, 4);
  EXPECT_EQ(c.problem.mesh.upper[0], 2.0);
  EXPECT_EQ(c.problem.viscosity, 0.1);
  EXPECT_EQ(c.problem.force[0]({0.0, 3.0, 0.0}), 3.0);
  EXPECT_EQ(c.problem.force[1]({7.0, 3.0, 0.0}), 7.0);
  EXPECT_EQ(c.solver.method, Method::fmg);
  EXPECT_EQ(c.problem.boundary.sides[2].kind, SideKind::slip);
  EXPECT_EQ(c.problem.boundary.sides[3].data[0]({0.5, 1.0, 0.0}), 1.0);
  EXPECT_FALSE(c.output.vtu);
  EXPECT_EQ(c.probes.at(0)[0], 0.5);
  EXPECT_EQ(c.probes.at(0)[1], 0.25);
}

TEST(Settings, ReachIntoSides) {
  const Case c =
      with({R"(boundary.ymax.velocity[0]="x")", R"(probe=[{point = [0, 0]}, {point = [1, 1]}])", "mesh.cells=[4, 2]",
            "mesh.holes=[{lower = [1, 0], upper = [2, 1]}]", "mesh.holes[0].upper[0]=3"});
  EXPECT_EQ(c.problem.boundary.sides[3].data[0]({0.25, 1.0, 0.0}), 0.25);
  EXPECT_EQ(c.probes.size(), 2U);
  EXPECT_EQ(c.problem.mesh.holes.at(0).upper[0], 3);
}

TEST(Settings, AreNamedWhereTheyAreWrong) {
  expect_contains(refusal({"mesh.refine=-1"}), {"c.toml: [mesh] refine, --set mesh.refine=-1: must be from 0"});
  expect_contains(refusal({"mesh.refine=1.5"}), {"[mesh] refine, --set mesh.refine=1.5: expected an integer, got 1.5"});
  expect_contains(refusal({"mesh.refin=2"}), {"unknown key `refin` in [mesh], --set mesh.refin=2", "`refine`"});
  expect_contains(refusal({"msh.refine=2"}), {"msh", "`mesh`", "--set msh.refine=2"});
  expect_contains(refusal({"mesh=2"}), {"[mesh], --set mesh=2: expected a table, got 2"});
  expect_contains(refusal({R"(physics.force=["sin(", 0])"}), {"[physics] force[0], --set physics.force=[\"sin(\", 0]"});
  expect_contains(refusal({"boundary.ymax.slip=true"}), {"contradict", "--set boundary.ymax.slip=true"});
  expect_contains(refusal({"element.order=99"}), {"[element] order, --set element.order=99", "build"});
}

TEST(Settings, AreRefusedWhereTheyAreNone) {
  expect_contains(refusal({"mesh.refine"}), {"--set mesh.refine: expected KEY=VALUE"});
  expect_contains(refusal({"mesh.refine="}), {"--set mesh.refine=: `` is no value"});
  expect_contains(refusal({"solver.method=fmg"}), {"--set solver.method=fmg", "`fmg` is no value", "quotes"});
  expect_contains(refusal({"mesh.refine=1\n[physics]\nviscosity=2"}), {"expected one value"});
  for (const char* path : {"=1", ".refine=1", "mesh..refine=1", "mesh.=1", "[0]=1", "a b=1"}) {
    expect_contains(refusal({path}), {"--set " + std::string(path), "expected keys with dots"});
  }
  for (const char* path : {"probe[=1", "probe[x]=1", "probe[0=1", "probe[-1]=1", "probe[0]x=1", "probe[]=1"}) {
    expect_contains(refusal({path}), {"--set " + std::string(path), "expected the place of an entry of `probe`"});
  }
  expect_contains(refusal({"probe[1].point=[0, 0]"}), {"the list `probe` has 1 entry, counted from 0"});
  expect_contains(refusal({"probe[0].point[2]=0"}), {"the list `probe[0].point` has 2 entries"});
  expect_contains(refusal({"mesh.holes[0].upper=[1, 1]"}), {"no list `mesh.holes`"});
  expect_contains(refusal({"mesh[0]=1"}), {"no list `mesh`"});
  expect_contains(refusal({"mesh.refine.x=1"}), {"`mesh.refine` is no table, and so has no `x`"});
}

TEST_F(Program, SetsKeys) {
  write("cavity.toml", small_cavity);
  ASSERT_EQ(run("solve cavity.toml --set mesh.refine=4 --set physics.viscosity=0.1 --json result.json --threads 1"), 0)
      << errors();
  const auto json = Json::parse(read("result.json"));
  EXPECT_EQ(json["cells"], 256);
  EXPECT_EQ(json["settings"]["physics"]["viscosity"], 0.1);
  ASSERT_EQ(run("check --set mesh.refine=1 cavity.toml"), 0) << errors();
  expect_contains(output(), {"refined 1 time"});
  EXPECT_EQ(run("check cavity.toml --set mesh.refine=x"), 2);
  expect_contains(errors(), {"--set mesh.refine=x"});
}

/// A small stiff body in one cell of a fluid: how hard that is is said before, and by how much it went on after.
TEST_F(Program, SaysHowMuchViscositiesDiffer) {
  const std::string text = R"toml(
[mesh]
cells = [1, 1]
refine = 3
[element]
order = 2
[physics]
viscosity = "abs(x-0.3) < 0.1 && abs(y-0.4) < 0.1 || abs(x-0.7) < 0.1 && abs(y-0.7) < 0.1 ? NU : 1"
force = [0, "sin(3*x)"]
[solver]
max_iterations = 4
)toml";
  const auto of_contrast = [&](const std::string& viscosity) {
    std::string changed = text;
    changed.replace(changed.find("NU"), 2, viscosity);
    return changed;
  };
  write("hard.toml", of_contrast("1e6"));
  write("easy.toml", of_contrast("100"));
  ASSERT_EQ(run("check easy.toml"), 0) << errors();
  expect_contains(output(), {"largest over smallest 100, in a patch 100\n"});
  ASSERT_EQ(run("check hard.toml"), 0) << errors();
  expect_contains(output(), {"in a patch 1e+06: the solve may take many iterations", "`viscosity_cap` limits it"});
  ASSERT_EQ(run("check hard.toml --set 'physics.viscosity_cap=[1, 500]'"), 0) << errors();
  expect_contains(output(), {"in a patch 500\n"});
  ASSERT_EQ(run("solve hard.toml --threads 1 --json result.json"), 1) << errors();
  expect_contains(output(),
                  {"not converged: max_iterations reached", "last residuals", "an iteration over the last 4"});
  EXPECT_EQ(Json::parse(read("result.json"))["converged"], false);
  ASSERT_EQ(run("solve hard.toml --threads 1 --set solver.max_iterations=200"), 0) << errors();
  EXPECT_EQ(output().find("last residuals"), std::string::npos);
}

// ---- stdin and stdout

TEST_F(Program, ReadsStdinAndWritesStdout) {
  write("cavity.toml", small_cavity);
  ASSERT_EQ(shell("cat cavity.toml | '" SOLENOID_PROGRAM "' solve - --json - --threads 1 >out 2>err"), 0) << errors();
  EXPECT_EQ(Json::parse(output())["cells"], 64);
  EXPECT_FALSE(exists("-"));
  ASSERT_EQ(shell("'" SOLENOID_PROGRAM "' solve - -q --json - -o files --threads 1 <cavity.toml >out 2>err"), 0);
  EXPECT_EQ(Json::parse(output())["converged"], true);
  EXPECT_EQ(errors(), "");
  EXPECT_TRUE(exists("files/stdin.vtu") && exists("files/speed.png"));
  EXPECT_FALSE(exists("files/result.json"));
  ASSERT_EQ(shell("'" SOLENOID_PROGRAM "' check - <cavity.toml >out 2>err"), 0);
  expect_contains(output(), {"stdin: valid"});
  EXPECT_EQ(run("solve -"), 2);
  expect_contains(errors(), {"stdin: is empty", "[mesh]"});
  ASSERT_EQ(shell("test ! -e /dev/full || ! '" SOLENOID_PROGRAM "' solve cavity.toml --json - >/dev/full 2>err"), 0);
}

TEST_F(Program, FilesThatCannotBeReadSayWhy) {
  write("empty.toml", "");
  EXPECT_EQ(run("check empty.toml"), 2);
  expect_contains(errors(), {"empty.toml: is empty"});
  EXPECT_EQ(run("check missing.toml"), 2);
  expect_contains(errors(), {"missing.toml", "no such file"});
  EXPECT_EQ(run("check ."), 2);
  expect_contains(errors(), {"folder"});
  EXPECT_EQ(run("check /proc/self/mem"), 2);  // opens, and cannot be read from the beginning
  expect_contains(errors(), {"/proc/self/mem", "nput/output error"});
}

// ---- Options and help

TEST_F(Program, PrintsItsHelp) {
  EXPECT_EQ(run(""), 0);
  const std::string help = output();
  expect_contains(help, {"Usage: solenoid", "solve", "check", "info", "study"});
  for (const char* arguments : {"help", "--help", "-h"}) {
    EXPECT_EQ(run(arguments), 0);
    EXPECT_EQ(output(), help) << arguments;
  }
  EXPECT_EQ(run("solve --help"), 0);
  const std::string of_solve = output();
  expect_contains(of_solve, {"--set", "-o,--output", "-q,--quiet", "--verbose", "CASE.toml"});
  EXPECT_EQ(run("help solve"), 0);
  EXPECT_EQ(output(), of_solve);
  EXPECT_EQ(run("help sovle"), 2);
  expect_contains(errors(), {"sovle", "`solve`"});
  for (const char* arguments : {"study", "help study", "study help"}) {
    EXPECT_EQ(run(arguments), 0) << arguments;
    expect_contains(output(), {"solenoid study", "convergence"});
  }
  EXPECT_EQ(run("-V"), 0);
  const std::string version = output();
  EXPECT_EQ(run("--version"), 0);
  EXPECT_EQ(output(), version);
}

TEST_F(Program, MistypedOptionsAreNamed) {
  write("cavity.toml", small_cavity);
  for (const auto& [arguments, option, meant] :
       std::vector<std::array<const char*, 3>>{{"solve cavity.toml --outptu x", "`--outptu`", "`--output`"},
                                               {"solve --outptu=x cavity.toml", "`--outptu`", "`--output`"},
                                               {"solve --quite", "`--quite`", "`--quiet`"},
                                               {"check cavity.toml --thread 1", "`--thread`", "`--threads`"},
                                               {"info --jsno", "`--jsno`", "`--json`"},
                                               {"--verison", "`--verison`", "`--version`"},
                                               {"study convergence --refin 2", "`--refin`", "`--refine`"}}) {
    EXPECT_EQ(run(arguments), 2) << arguments;
    expect_contains(errors(), {"unknown option", option, meant});
  }
  EXPECT_EQ(run("solve cavity.toml other.toml"), 2);
  expect_contains(errors(), {"other.toml"});
}

TEST_F(Program, RangesAreShort) {
  write("cavity.toml", small_cavity);
  for (const char* arguments : {"solve cavity.toml --threads -1", "solve cavity.toml --threads x",
                                "study throughput --rtol 2", "study corners --pairs -1", "study corners --time -1"}) {
    EXPECT_EQ(run(arguments), 2) << arguments;
    expect_contains(errors(), {"expected a number"});
    EXPECT_LT(errors().size(), 120U) << errors();
  }
}

TEST_F(Program, SaysHowAPowerIsWritten) {
  write("cavity.toml", small_cavity);
  EXPECT_EQ(run(R"(check cavity.toml --set 'boundary.ymax.velocity[0]="16*x**2"')"), 2);
  expect_contains(errors(), {"`**`", "`^`", "at position 5"});
}

TEST_F(Program, InformsProgramsToo) {
  ASSERT_EQ(run("info --json"), 0) << errors();
  const auto info = Json::parse(output());
  for (const char* key : {"version", "commit", "compiler", "orders", "devices", "dependencies"}) {
    EXPECT_TRUE(info.contains(key)) << key;
  }
  EXPECT_FALSE(info["devices"].empty());
  EXPECT_FALSE(info["orders"]["stokes"]["2D"].empty());
  ASSERT_EQ(run("info"), 0);
  expect_contains(output(), {info["version"], info["commit"], info["devices"][0]});
  ASSERT_EQ(run("info --support --json"), 0);
  EXPECT_TRUE(Json::parse(output()).contains("refused"));
}

TEST_F(Program, CheckSaysFirstWhatDoesNotFit) {
  write("huge.toml", "[mesh]\ncells = [1, 1, 1]\nrefine = 12\n");
  EXPECT_EQ(run("check huge.toml"), 3);
  EXPECT_EQ(output().find("huge.toml: does not fit into memory"), 0U) << output();
  EXPECT_EQ(output().find("valid"), std::string::npos) << output();
}

// ---- What is printed of a solve

TEST_F(Program, VerbosePrintsEveryIteration) {
  write("cavity.toml", small_cavity);
  ASSERT_EQ(run("solve cavity.toml --verbose --json result.json --threads 1"), 0);
  const auto iterations = Json::parse(read("result.json"))["iterations"].get<int>();
  ASSERT_GT(iterations, 1);
  for (int i = 0; i <= iterations; ++i) {
    expect_contains(errors(), {"iteration " + std::to_string(i) + ", residual"});
  }
  ASSERT_EQ(run("solve cavity.toml --threads 1"), 0);
  EXPECT_EQ(errors().find("iteration 1, residual"), std::string::npos) << errors();
  EXPECT_EQ(run("solve cavity.toml --verbose --quiet"), 2);
}

TEST_F(Program, PrintsNoRateOfNothing) {
  write("still.toml", "[mesh]\ncells = [1, 1]\nrefine = 3\n");
  ASSERT_EQ(run("solve still.toml --threads 1"), 0) << errors();
  expect_contains(output(), {"iterations        0", "solve"});
  EXPECT_EQ(output().find("unknowns/s"), std::string::npos) << output();
}

// ---- Ctrl-C

/// Its set-up takes seconds, for inverses of 756 x 756, and so does an iteration.
const std::string long_case = R"case([mesh]
cells = [2, 2, 2]
refine = 3
[boundary]
ymax = {velocity = ["x*(1-x)*z*(1-z)", 0, 0]}
[solver]
method = "vcycle"
max_iterations = 100000
rtol = 1e-30
local_solver = "dense"
[output]
vtu = true
picture = "speed.png"
)case";

/// Wherever the signal comes, nothing is written and nothing printed but that, and soon.
TEST_F(Program, CtrlCEndsSetUpAndSolve) {
  write("long.toml", long_case);
  for (const char* what : {"set-up", "iteration 0", "iteration 1"}) {
    const std::string command =
        "{ '" SOLENOID_PROGRAM "' solve long.toml --verbose --output results >out 2>err & until grep -q '" +
        std::string(what) +
        "' err || ! kill -0 $!; do sleep 0.02; done; kill -INT $!; s=$(date +%s%N); wait $!; c=$?; "
        "e=$(date +%s%N); echo $(((e - s) / 1000000)) >time; exit $c; }";
    EXPECT_EQ(shell(command), 1) << what << errors();
    expect_contains(errors(), {"solenoid: interrupted (", "nothing was written"});
    EXPECT_EQ(output(), "") << what;
    EXPECT_FALSE(exists("results")) << what;
    EXPECT_LT(std::stoi(read("time")), 3000) << what;  // a busy machine has other things to do
  }
}

}  // namespace
}  // namespace solenoid
