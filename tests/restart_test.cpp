/// \file
/// Checkpoints of flows in time: what goes on from one has the bits of what never stopped. Of the library here; the
/// program is killed at the end.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "problem/orders.hpp"
#include "program.hpp"
#include "solenoid/checkpoint.hpp"
#include "solenoid/error.hpp"
#include "solenoid/interrupt.hpp"
#include "solenoid/time_stepper.hpp"

namespace solenoid {
namespace {

namespace fs = std::filesystem;

struct Kind {
  int dim;
  bool convection;
  bool moving;  ///< force and boundary data depend on the time
  double cfl;
  TimeScheme scheme;
  Precision precision;
  bool holds_rate = false;  ///< in z
};

class Restart : public testing::Test {
 protected:
  void SetUp() override {
    if (!solution_files_unavailable().empty()) GTEST_SKIP() << solution_files_unavailable();
    for (const int dim : {2, 3}) {
      const auto orders = available_orders(dim);
      if (std::find(orders.begin(), orders.end(), 2) == orders.end()) GTEST_SKIP() << "order 2 is not in this build";
    }
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  static ScalarField field(const std::string& text, int dim) {
    return ScalarField::expression(text, dim, "", {{"t", 0.0}});
  }
  /// Through a channel with a hole: inflow, outflow, a slip side.
  static Problem problem_of(const Kind& kind) {
    Problem problem;
    problem.mesh.dim = kind.dim;
    problem.mesh.cells = {4, 3, 1};
    problem.mesh.upper = {1.3, 1.0, 0.7};
    problem.mesh.refine = kind.dim == 2 ? 2 : 1;
    problem.mesh.holes = {{{1, 1, 0}, {2, 2, 1}}};
    problem.order = 2;
    problem.viscosity = 0.01;
    problem.convection = kind.convection;
    const std::string pulse = kind.moving ? "(1 + 0.5*sin(20*t))*" : "";
    Boundary& boundary = problem.boundary;
    boundary.sides[0].data[0] = field(pulse + "y*(1-y)", kind.dim);
    boundary.sides[1].kind = SideKind::outflow;
    if (kind.moving) boundary.sides[1].data[0] = field("0.1*cos(9*t)", kind.dim);
    boundary.sides[3].kind = SideKind::slip;
    if (kind.holds_rate) boundary.sides[4].kind = boundary.sides[5].kind = SideKind::periodic;
    problem.force[1] = field(pulse + "sin(x)", kind.dim);
    return problem;
  }
  static TimeOptions time_of(const Kind& kind) {
    // Averages begin within the steps.
    TimeOptions time{.scheme = kind.scheme, .step = 0.02, .cfl = kind.cfl, .average_start = 0.0005};
    if (kind.holds_rate) time.flow_rate = Point{0.0, 0.0, 0.3};
    time.initial[0] = field("y*(1-y)*(2 + cos(5*x))", kind.dim);
    return time;
  }
  static SolverOptions options_of(const Kind& kind, int threads) {
    SolverOptions options;
    options.device = DeviceChoice::cpu;
    options.threads = threads;
    options.precision = kind.precision;
    return options;
  }
  static void expect_same_bits(const Solution& a, const Solution& b) {
    ASSERT_EQ(a.coefficients().size(), b.coefficients().size());
    EXPECT_EQ(std::memcmp(a.coefficients().data(), b.coefficients().data(), a.coefficients().size_bytes()), 0);
  }

  static void expect_same_bits(const std::optional<Averages>& a, const std::optional<Averages>& b) {
    ASSERT_EQ(a.has_value(), b.has_value());
    if (!a) return;
    EXPECT_EQ(a->start, b->start);
    EXPECT_EQ(a->length, b->length);
    expect_same_bits(a->flow, b->flow);
    expect_same_bits(a->dissipation, b->dissipation);
    ASSERT_EQ(a->stresses.size(), b->stresses.size());
    for (std::size_t i = 0; i < a->stresses.size(); ++i) expect_same_bits(a->stresses[i], b->stresses[i]);
  }

  fs::path folder_ = fs::temp_directory_path() / fmt::format("solenoid_restart_{}", getpid());
  fs::path file_ = folder_ / "flow.h5";
};

TEST_F(Restart, HasTheBitsOfAFlowThatNeverStopped) {
  const std::vector<Kind> kinds{
      {2, true, true, 0.5, TimeScheme::sbdf3, Precision::mixed},
      {2, true, true, 0.0, TimeScheme::sbdf3, Precision::full_double},
      {2, true, false, 0.0, TimeScheme::sbdf4, Precision::mixed},
      {2, false, true, 0.0, TimeScheme::sbdf2, Precision::mixed},
      {3, true, true, 0.5, TimeScheme::bdf2_ext3, Precision::mixed},
      {3, false, false, 0.0, TimeScheme::sbdf3, Precision::full_double},
      {3, true, true, 0.5, TimeScheme::sbdf3, Precision::mixed, true},
      {2, true, true, 0.5, TimeScheme::ars233, Precision::mixed},
      {2, false, false, 0.0, TimeScheme::ars233, Precision::full_double},
      {2, true, true, 0.0, TimeScheme::ars443, Precision::full_double},
      {3, true, false, 0.5, TimeScheme::ars443, Precision::mixed},
      {3, true, true, 0.0, TimeScheme::ars233, Precision::mixed, true},
  };
  for (const Kind& kind : kinds) {
    const Problem problem = problem_of(kind);
    const TimeOptions time = time_of(kind);
    // Before and after start-up; in 3D once.
    const int steps = kind.dim == 2 ? 8 : 5;
    const std::vector<int> stops = kind.dim == 2 ? std::vector{0, 2, 6} : std::vector{2};
    TimeStepper whole(problem, time, options_of(kind, 2));
    std::deque<TimeStepper> rests;
    for (int i = 0; i < steps; ++i) {
      SCOPED_TRACE(fmt::format("{}D, convection {}, scheme {}, step {}", kind.dim, kind.convection,
                               static_cast<int>(kind.scheme), i));
      if (std::find(stops.begin(), stops.end(), i) != stops.end()) {
        whole.checkpoint()->save(file_);
        TimeStepper& rest = rests.emplace_back(problem, time, options_of(kind, 2), load_checkpoint(file_));
        EXPECT_EQ(rest.steps(), i);
        expect_same_bits(whole.solution(), rest.solution());
      }
      const double before = whole.time();
      const StepReport a = whole.step();
      const double between = 0.5 * (before + whole.time());
      for (TimeStepper& rest : rests) {
        SCOPED_TRACE(fmt::format("stopped after {} steps", stops[&rest - &rests.front()]));
        const StepReport b = rest.step();
        EXPECT_EQ(a.number, b.number);
        EXPECT_EQ(a.time, b.time);
        EXPECT_EQ(a.length, b.length);
        EXPECT_EQ(a.cfl, b.cfl);
        EXPECT_EQ(a.cycles, b.cycles);
        EXPECT_EQ(a.residual, b.residual);
        EXPECT_EQ(a.gradient, b.gradient);
        expect_same_bits(whole.solution(), rest.solution());
        expect_same_bits(whole.solution(between), rest.solution(between));
        expect_same_bits(whole.averages(), rest.averages());
      }
    }
    EXPECT_EQ(rests.size(), stops.size());
    EXPECT_TRUE(whole.averages());
  }
}

/// A step that is broken off leaves the flow as it was.
TEST_F(Restart, GoesOnAfterAnInterruption) {
  for (const TimeScheme scheme : {TimeScheme::sbdf3, TimeScheme::ars233}) {
    const Kind kind{2, true, true, 0.0, scheme, Precision::mixed};
    const Problem problem = problem_of(kind);
    TimeStepper whole(problem, time_of(kind), options_of(kind, 1));
    for (int i = 0; i < 6; ++i) whole.step();
    TimeStepper broken(problem, time_of(kind), options_of(kind, 1), *whole.checkpoint());
    {
      const Interruptible scope([] { return true; });
      EXPECT_THROW(broken.step(), Interrupted);
    }
    TimeStepper rest(problem, time_of(kind), options_of(kind, 1), *broken.checkpoint());
    EXPECT_TRUE(broken.checkpoint()->averages);
    for (int i = 0; i < 3; ++i) {
      whole.step();
      broken.step();
      rest.step();
    }
    expect_same_bits(whole.solution(), broken.solution());
    expect_same_bits(whole.solution(), rest.solution());
    expect_same_bits(whole.averages(), broken.averages());
    expect_same_bits(whole.averages(), rest.averages());
  }
}

/// Averages that a checkpoint does not have begin where it is; those that are not wanted any more end.
TEST_F(Restart, BeginsAveragesLater) {
  const Kind kind{2, true, true, 0.0, TimeScheme::sbdf3, Precision::mixed};
  const Problem problem = problem_of(kind);
  TimeOptions without = time_of(kind);
  without.average_start.reset();
  TimeStepper flow(problem, without, options_of(kind, 1));
  flow.advance(0.02);
  EXPECT_FALSE(flow.averages());
  TimeStepper averaged(problem, time_of(kind), options_of(kind, 1), *flow.checkpoint());
  EXPECT_FALSE(averaged.averages());
  averaged.step();
  EXPECT_EQ(averaged.averages()->start, flow.time());
  TimeStepper rest(problem, without, options_of(kind, 1), *averaged.checkpoint());
  EXPECT_FALSE(rest.averages());
  // On another mesh flows are interpolated, averages are not.
  Problem finer = problem;
  ++finer.mesh.refine;
  EXPECT_THROW(TimeStepper(finer, time_of(kind), options_of(kind, 1), *averaged.checkpoint()), InputError);
  EXPECT_NO_THROW(TimeStepper(finer, without, options_of(kind, 1), *averaged.checkpoint()));
}

/// The same flow makes the same file.
TEST_F(Restart, KeepsItsNoteAndItsBytes) {
  const Kind kind{2, true, true, 0.5, TimeScheme::sbdf3, Precision::mixed};
  TimeStepper flow(problem_of(kind), time_of(kind), options_of(kind, 2));
  flow.advance(0.01);
  Checkpoint checkpoint = *flow.checkpoint();
  ASSERT_TRUE(checkpoint.averages);
  for (const std::string& note : {std::string(), std::string("a\0b\xff", 4), std::string(100'000, 'x')}) {
    checkpoint.note = note;
    checkpoint.save(file_);
    const Checkpoint loaded = load_checkpoint(file_);
    EXPECT_EQ(loaded.note, note);
    EXPECT_EQ(loaded.steps, checkpoint.steps);
    ASSERT_EQ(loaded.states.size(), checkpoint.states.size());
    loaded.save(folder_ / "again.h5");
    const auto bytes = [](const fs::path& file) {
      std::ostringstream text;
      text << std::ifstream(file, std::ios::binary).rdbuf();
      return text.str();
    };
    EXPECT_EQ(bytes(file_), bytes(folder_ / "again.h5"));
  }
}

TEST_F(Restart, RefusesDamagedFiles) {
  const Kind kind{2, true, true, 0.5, TimeScheme::sbdf3, Precision::mixed};
  const Problem problem = problem_of(kind);
  TimeStepper flow(problem, time_of(kind), options_of(kind, 2));
  while (!flow.averages()) flow.step();
  flow.step();
  Checkpoint checkpoint = *flow.checkpoint();
  checkpoint.note = "a note";
  checkpoint.save(file_);
  const auto refusal = [&](const fs::path& file) -> std::string {
    try {
      (void)load_checkpoint(file);
    } catch (const InputError& error) {
      return error.what();
    }
    return "none";
  };
  expect_contains(refusal(folder_ / "none.h5"), {"none.h5", "there is no such file"});
  const auto size = fs::file_size(file_);
  const fs::path damaged = folder_ / "damaged.h5";
  for (const auto at : std::vector<std::uintmax_t>{0, 9, 40, 200, 700, 1500, 5000, size / 2, size - 5000, size - 1}) {
    fs::copy_file(file_, damaged, fs::copy_options::overwrite_existing);
    std::fstream stream(damaged, std::ios::binary | std::ios::in | std::ios::out);
    stream.seekg(static_cast<std::streamoff>(at));
    const int byte = stream.get();
    stream.seekp(static_cast<std::streamoff>(at));
    stream.put(static_cast<char>(byte ^ 4));
    stream.close();
    expect_contains(refusal(damaged), {"cannot read", "damaged.h5"});
  }
  fs::copy_file(file_, damaged, fs::copy_options::overwrite_existing);
  fs::resize_file(damaged, size - 100);
  expect_contains(refusal(damaged), {"was it cut off?"});
  flow.solution().save(damaged);
  expect_contains(refusal(damaged), {"not a checkpoint file"});
  EXPECT_THROW((void)load_solution(file_), InputError);

  checkpoint.averages->length = 0.0;
  checkpoint.save(file_);
  expect_contains(refusal(file_), {"averages are over no time"});
  checkpoint.averages.reset();
  checkpoint.states[0].time = checkpoint.states[1].time;
  checkpoint.save(file_);
  expect_contains(refusal(file_), {"times are not those of steps"});
  checkpoint.states.clear();
  EXPECT_THROW(checkpoint.save(file_), InputError);
  EXPECT_THROW(TimeStepper(problem, time_of(kind), options_of(kind, 1), checkpoint), InputError);

  Problem other = problem;
  other.mesh.holes.clear();
  EXPECT_THROW(TimeStepper(other, time_of(kind), options_of(kind, 1), *flow.checkpoint()), InputError);
}

// The program --------------------------------------------------------------------------------------------------------

class RestartedProgram : public Program {
 protected:
  void SetUp() override {
    if (!solution_files_unavailable().empty()) GTEST_SKIP() << solution_files_unavailable();
    const auto orders = available_orders(2);
    if (std::find(orders.begin(), orders.end(), 2) == orders.end()) GTEST_SKIP() << "order 2 is not in this build";
    write("flow.toml", flow);
    const auto start = std::chrono::steady_clock::now();
    ASSERT_EQ(run(solve + "-o whole --save whole.h5"), 0) << errors();
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    EXPECT_EQ(list("whole/*_checkpoint_*"), "whole/flow_checkpoint_0008.h5\nwhole/flow_checkpoint_0009.h5\n");
  }
  /// Exit code of `solenoid ARGUMENTS`, to which a signal is sent after a part of the time that the whole flow took.
  /// In the foreground `timeout` sends one signal: the program takes a second one for an order to die.
  int run_and_signal(const std::string& arguments, const std::string& name, double part) {
    return shell(fmt::format("timeout --foreground --preserve-status -s {} {} '" SOLENOID_PROGRAM
                             "' {} >out 2>err </dev/null",
                             name, part * seconds_, arguments));
  }
  /// The same, but the signal is sent once the flow in `folder` has left a checkpoint, however long its set-up takes.
  int run_and_signal_in_time(const std::string& arguments, const std::string& name, const std::string& folder) {
    return shell(fmt::format("( '" SOLENOID_PROGRAM "' {} >out 2>err </dev/null & program=$!; "
                             "while kill -0 $program 2>/dev/null && ! ls {}/*_checkpoint_*.h5 >/dev/null 2>&1; "
                             "do sleep 0.01; done; kill -s {} $program 2>/dev/null; wait $program )",
                             arguments, folder, name));
  }
  std::string list(const std::string& pattern) {
    shell("ls " + pattern + " >list 2>list_errors");
    return read("list");
  }
  /// A command that goes on from the last checkpoint of a folder, or begins if there is none.
  std::string go_on(const std::string& folder) {
    std::istringstream files(list(folder + "/*_checkpoint_????.h5"));
    std::string file;
    std::string last;
    while (std::getline(files, file)) last = file;
    return last.empty() ? solve + "-o " + folder : "restart " + last + " --save " + folder + ".h5 -q";
  }
  /// Of the result file what does not depend on when the program ran.
  std::string result(const std::string& folder) {
    std::istringstream lines(read(folder + "/result.json"));
    std::string text;
    for (std::string line; std::getline(lines, line);) {
      const auto has = [&](const std::string& key) { return line.find('"' + key + '"') != std::string::npos; };
      if (!has("setup") && !has("solve") && !has("memory_bytes")) text += line;
    }
    return text;
  }
  void expect_same_as_whole(const std::string& folder) {
    for (const std::string file : {"/history.csv", "/flow.pvd", "/flow_0000.vtu", "/flow_0004.vtu", "/flow_average.pvd",
                                   "/flow_average_0002.vtu", "/flow_average.vtu"}) {
      EXPECT_EQ(read("whole" + file), read(folder + file)) << file;
    }
    EXPECT_EQ(result("whole"), result(folder));
    EXPECT_EQ(read("whole.h5"), read(folder + ".h5"));
  }

  const std::string solve = "solve flow.toml --threads 2 -q ";
  const std::string flow = R"toml([mesh]
cells = [4, 2]
refine = 1
holes = [{lower = [1, 0], upper = [2, 1]}]
[time]
end = 0.4
cfl = 0.4
step = 0.01
initial = ["y*(1-y)*(2 + cos(5*x))", 0]
[physics]
viscosity = 0.01
convection = true
force = [0, "sin(x)*cos(3*t)"]
[boundary]
xmin = {velocity = ["(1 + 0.5*sin(20*t))*y*(1-y)", 0]}
xmax = {outflow = true}
[[side]]
on = "ymax"
where = "x < 0.5"
slip = true
[[probe]]
point = [0.9, 0.5]
[average]
start = 0.13
[output]
forces = true
vtu = true
every = 0.1
history = "history.csv"
checkpoint = 0.04
)toml";

 private:
  double seconds_ = 0.0;
};

TEST_F(RestartedProgram, HasTheSameFilesAfterItWasKilled) {
  std::mt19937 bits(std::random_device{}());
  std::uniform_real_distribution<double> part(0.05, 0.6);
  for (const std::string folder : {"first", "second"}) {
    SCOPED_TRACE(folder);
    for (int kills = 0; kills < 3; ++kills) run_and_signal(go_on(folder), "KILL", part(bits));
    if (list(folder + "/*_checkpoint_????.h5").empty()) run(go_on(folder));
    ASSERT_EQ(run(go_on(folder)), 0) << errors();
    expect_same_as_whole(folder);
  }
}

TEST_F(RestartedProgram, GoesOnAfterSignals) {
  for (const std::string signal : {"TERM", "INT"}) {
    SCOPED_TRACE(signal);
    EXPECT_EQ(run_and_signal_in_time(solve + "-o " + signal + " --save " + signal + ".h5", signal, signal), 1);
    expect_contains(errors(), {"interrupted at t = ", "to go on: solenoid restart '" + signal + "/flow_checkpoint_"});
    ASSERT_EQ(run(go_on(signal)), 0) << errors();
    expect_same_as_whole(signal);
  }
}

TEST_F(RestartedProgram, EndsInTimeAndHasAnotherEnd) {
  EXPECT_EQ(run(solve + "--wall-time 100"), 2);
  expect_contains(errors(), {"--wall-time", "set `checkpoint`", "-o"});
  EXPECT_EQ(run(solve + "-o none --wall-time 0.1"), 1);
  expect_contains(errors(), {"the wall time is used up at t = 0"});
  expect_contains(read("none/result.json"), {"\"forces\": []"});
  EXPECT_EQ(run(solve + "-o part --wall-time 1.2 --set time.end=1000"), 1);
  expect_contains(errors(), {"the wall time is used up at t = ", "solenoid restart 'part/flow_checkpoint_"});
  expect_contains(read("part/result.json"), {"the wall time is used up"});

  const std::string from = "restart whole/flow_checkpoint_0009.h5 -q ";
  ASSERT_EQ(run(from + "--end 0.45 -o there --device cpu --threads 1"), 0) << errors();
  expect_contains(read("there/result.json"), {"\"device\": \"cpu\"", "\"threads\": 1"});
  EXPECT_EQ(run(from + "--end 0.45 -o there --device gpu"), 2);
  expect_contains(errors(), {"--device"});
  EXPECT_EQ(run(from + "--end 0.2"), 2);
  expect_contains(errors(), {"--end 0.2", "is at t = 0.4", "later"});
  ASSERT_EQ(run(from + "--end 0.45 -o other"), 0) << errors();
  ASSERT_EQ(run(from + "--end 0.45 --save longer.h5"), 0) << errors();
  ASSERT_EQ(run(solve + "-o long --save long.h5 --set time.end=0.45"), 0) << errors();
  EXPECT_EQ(read("long/history.csv"), read("whole/history.csv"));
  EXPECT_EQ(read("long.h5"), read("longer.h5"));
  const std::string rest = read("other/history.csv");
  EXPECT_TRUE(read("long/history.csv").ends_with(rest.substr(rest.find('\n') + 1)));
}

TEST_F(RestartedProgram, SaysWhatIsWrong) {
  const std::string file = "whole/flow_checkpoint_0009.h5";
  shell("mkdir moved && cp " + file + " moved");
  EXPECT_EQ(run("restart moved/flow_checkpoint_0009.h5"), 2);
  expect_contains(errors(), {"moved/history.csv", "is not the history", "-o"});
  shell("head -c -1 whole/history.csv >moved/history.csv");
  EXPECT_EQ(run("restart moved/flow_checkpoint_0009.h5"), 2);
  expect_contains(errors(), {"moved/history.csv", "is not the history"});
  EXPECT_EQ(run("restart flow.toml"), 2);
  expect_contains(errors(), {"flow.toml", "not a checkpoint file"});
  EXPECT_EQ(run("restart none.h5"), 2);
  expect_contains(errors(), {"none.h5", "there is no such file"});
  write("steady.toml", "[mesh]\ncells = [1, 1]\n[output]\ncheckpoint = 1.0\n");
  EXPECT_EQ(run("solve steady.toml"), 2);
  expect_contains(errors(), {"[output] checkpoint", "[time]"});
}

}  // namespace
}  // namespace solenoid
