/// \file
/// Flows in time of the program: how they end.

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "problem/orders.hpp"
#include "program.hpp"
#include "solenoid/case.hpp"
#include "solenoid/solution.hpp"
#include "time/settling.hpp"

namespace solenoid {
namespace {

bool has_order_2() {
  const auto orders = available_orders(2);
  return std::find(orders.begin(), orders.end(), 2) != orders.end();
}

std::string setting(const std::string& key, const std::string& value) { return " --set '" + key + "=" + value + "'"; }

// Steady flows --------------------------------------------------------------------------------------------------------

TEST(Settling, SaysWhenItIsThere) {
  // A decade per unit of time.
  expect_contains(settling({{1.0, 1e-1}, {2.0, 1e-2}, {4.0, 1e-4}}, 1e-8),
                  {"1.00e-04", "at t = 2 ", "steady at t = 8"});
  expect_contains(settling({{1.0, 1e-3}, {2.0, 1e-2}, {4.0, 1e-2}}, 1e-8), {"1.00e-02", "not getting there"});
  EXPECT_EQ(settling({{1.0, 1e-3}}, 1e-8).find("pace"), std::string::npos);
  EXPECT_FALSE(settling({}, 1e-8).empty());
}

class SteadyFlow : public Program {
 protected:
  void SetUp() override {
    if (!has_order_2()) GTEST_SKIP() << "order 2 is not in this build";
    write("channel.toml", R"toml([mesh]
cells = [1, 1]
refine = 2
[time]
end = 5.0
step = 0.1
steady = 1e-6
[physics]
viscosity = 0.5
convection = true
force = [1, 0]
[boundary]
xmin = {periodic = true}
[exact]
velocity = ["y*(1-y)", 0]
[output]
vtu = true
every = 1.0
history = "history.csv"
checkpoint = 1.0
)toml");
  }
  const std::string solve = "solve channel.toml --threads 1 -q -o out_dir ";
};

TEST_F(SteadyFlow, EndsAndSaysSo) {
  ASSERT_EQ(run(solve), 0) << errors();
  EXPECT_EQ(errors(), "");
  expect_contains(
      read("out_dir/result.json"),
      {"\"converged\": true", "\"reason\": \"steady at t = ", "\"steady\": true", "\"change\": ", "\"steady\": 1e-06"});
  const std::string history = read("out_dir/history.csv");
  expect_contains(history.substr(0, history.find('\n')), {"divergence_max,change"});
  // The steady flow is the last one of the series.
  std::istringstream lines(history);
  std::string last;
  for (std::string line; std::getline(lines, line);) last = line;
  const std::string step = last.substr(0, last.find(','));
  const std::string time = last.substr(step.size() + 1, last.find(',', step.size() + 1) - step.size() - 1);
  expect_contains(read("out_dir/channel.pvd"), {"timestep=\"" + time + "\""});
}

TEST_F(SteadyFlow, SaysThatItIsNot) {
  EXPECT_EQ(run(solve + setting("time.end", "2.0")), 1);
  expect_contains(errors(),
                  {"not steady at t = 2", "1e-06 is asked for", "at t = 1", "at that pace it is steady at t = "});
  expect_contains(read("out_dir/result.json"), {"\"converged\": false", "\"reason\": \"not steady at t = 2",
                                                "\"steady\": false", "\"end_time\": 2.0"});
  EXPECT_TRUE(exists("out_dir/channel_0002.vtu"));
  if (!solution_files_unavailable().empty()) return;
  // With more time it is.
  EXPECT_EQ(run("restart out_dir/channel_checkpoint_0001.h5 -q --end 5"), 0) << errors();
  ASSERT_EQ(run("solve channel.toml --threads 1 -q -o whole"), 0);
  EXPECT_EQ(read("whole/history.csv"), read("out_dir/history.csv"));
  // Of a force that swings it never is.
  EXPECT_EQ(run(solve + setting("physics.force", "[\"sin(6*t)\", 0]")), 1);
  expect_contains(errors(), {"not getting there"});
}

// What goes wrong -----------------------------------------------------------------------------------------------------

class WrongFlow : public Program {
 protected:
  void SetUp() override {
    if (!has_order_2()) GTEST_SKIP() << "order 2 is not in this build";
    write("layer.toml", R"toml([mesh]
upper = [6.283185307179586, 6.283185307179586]
cells = [1, 1]
refine = 4
[time]
end = 20.0
step = 0.2
initial = ["tanh((min(y,2*pi-y)-pi/2)*15/pi)", "0.05*sin(x)"]
[physics]
viscosity = 1e-7
convection = true
[boundary]
xmin = {periodic = true}
ymin = {periodic = true}
[output]
history = "history.csv"
)toml");
    shell("mkdir run");
    write("run/result.json", "of another run");
  }
  /// What the program leaves when a step fails: the history up to it, and nothing else.
  void expect_stopped(int code) {
    EXPECT_EQ(code, 1) << errors();
    EXPECT_EQ(read("run/result.json"), "of another run");
    expect_contains(errors(), {"solenoid: step ", "nothing else was written"});
    const std::string text = errors();
    const auto place = text.rfind("solenoid: step ") + std::string("solenoid: step ").size();
    const int failed = std::stoi(text.substr(place));
    const std::string history = read("run/history.csv");
    EXPECT_EQ(std::count(history.begin(), history.end(), '\n'), failed + 1);  // names, the beginning, steps before
  }
  const std::string solve = "solve layer.toml --threads 1 -o run ";
};

TEST_F(WrongFlow, StopsWhereEnergyComesFromNowhere) {
  const bool files = solution_files_unavailable().empty();
  expect_stopped(run(solve + (files ? setting("output.checkpoint", "0.1") : "")));
  expect_contains(errors(), {"is above 0.6, up to which", "viscosity lifts that", "the kinetic energy has grown from",
                             "from the extrapolation of convection"});
  const std::string text = errors();
  EXPECT_EQ(text.find("up to which"), text.rfind("up to which"));  // once
  if (!files) return;
  const std::string name = "the last checkpoint from before that: '";
  ASSERT_NE(text.find(name), std::string::npos) << text;
  const auto place = text.find(name) + name.size();
  const std::string checkpoint = text.substr(place, text.find('\'', place) - place);
  EXPECT_TRUE(exists(checkpoint)) << checkpoint;
}

TEST_F(WrongFlow, StopsWhereSolvesFail) {
  expect_stopped(run(solve + setting("physics.force", "[\"1e160*t\", \"1e160*sin(x)*t\"]")));
  expect_contains(errors(), {"no checkpoint is from before that"});
}

TEST_F(WrongFlow, NoAlarmForWhatIsDriven) {
  // From rest to what a force and a lid make of it, with steps that viscosity allows alone.
  EXPECT_EQ(
      run(solve + setting("physics.viscosity", "1.0") + setting("physics.force", "[\"30*sin(y)*cos(x)\", \"x\"]") +
          setting("boundary.ymin", "{velocity = [\"5*t\", 0]}") + setting("boundary.ymax", "{slip = true}") +
          setting("time.initial", "[0, 0]") + setting("time.step", "0.02") + setting("time.end", "2.0")),
      0)
      << errors();
  expect_contains(errors(), {"up to which"});
}

// Shipped flows -------------------------------------------------------------------------------------------------------

class ShippedFlow : public Program {};

/// Those of cases/time begin, on coarse meshes; exact solutions are what they say.
TEST_F(ShippedFlow, Begins) {
  if (!has_order_2()) GTEST_SKIP() << "order 2 is not in this build";
  int exact = 0;
  for (const auto& entry : std::filesystem::directory_iterator(SOLENOID_SOURCE_DIR "/cases/time")) {
    SCOPED_TRACE(entry.path());
    std::string settings = setting("element.order", "2") + setting("mesh.refine", "1") + setting("time.end", "0.1") +
                           setting("average.start", "0.05") + setting("average.every", "0.02");
    const std::string solve = "solve '" + entry.path().string() + "' --device cpu --threads 1 -q -o run";
    ASSERT_EQ(run(solve + settings), 0) << errors();
    EXPECT_TRUE(exists("run/result.json"));
    const Case flow = read_case(entry.path(), {"element.order=2"});
    if (!flow.exact.velocity || is_zero(flow.time->options.initial)) continue;
    ++exact;
    const auto error = [&] {
      return nlohmann::json::parse(read("run/result.json"))["error"]["velocity_l2"].get<double>();
    };
    const double coarse = error();
    EXPECT_EQ(run(solve + settings + setting("mesh.refine", "2")), 0) << errors();
    EXPECT_LT(error(), coarse / 5.0);  // of third order
  }
  EXPECT_EQ(exact, 2);
}

}  // namespace
}  // namespace solenoid
