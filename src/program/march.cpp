#include "program/march.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "base/agreement.hpp"
#include "base/new_file.hpp"
#include "program/commands.hpp"
#include "solenoid/error.hpp"
#include "solenoid/interrupt.hpp"
#include "solenoid/output.hpp"
#include "solenoid/time_stepper.hpp"

namespace solenoid::program {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

bool is_first(const Case& what) { return what.solver.communicator == nullptr || what.solver.communicator->rank() == 0; }

/// The table of steps, a whole line at a time.
class History {
 public:
  History(const Case& what, const fs::path& file) : what_(what), wanted_(!file.empty()) {
    in_agreement(what.solver.communicator.get(), [&] {
      if (!wanted_ || !is_first(what)) return;
      fs::create_directories(folder_of(file));
      stream_.open(file, std::ios::trunc);
      if (!stream_)
        throw Error(fmt::format("cannot create '{}': is the folder writable, the disk full?", file.string()));
      write_names();
    });
  }

  /// Of several ranks all call this.
  void add(const StepReport& step, const Solution& solution) {
    if (!wanted_) return;
    const std::vector<Point> velocity = solution.velocity(what_.probes);
    const std::vector<double> pressure = solution.pressure(what_.probes);
    std::string line =
        fmt::format("{},{},{},{},{},{},{},{}", step.number, step.time, step.length, step.cfl, step.cycles,
                    solution.kinetic_energy(), solution.dissipation(), solution.divergence_max());
    for (std::size_t i = 0; i < what_.probes.size(); ++i) {
      for (int a = 0; a < what_.problem.mesh.dim; ++a) line += fmt::format(",{}", velocity[i][a]);
      line += fmt::format(",{}", pressure[i]);
    }
    for (const auto& [axis, position] : what_.output.fluxes) line += fmt::format(",{}", solution.flux(axis, position));
    line += '\n';
    in_agreement(what_.solver.communicator.get(), [&] {
      if (!stream_.is_open()) return;
      stream_ << line << std::flush;
      if (!stream_) throw Error("cannot write the history: is the disk full?");
    });
  }

 private:
  void write_names() {
    std::string names = "step,time,length,cfl,cycles,kinetic_energy,dissipation,divergence_max";
    for (std::size_t i = 0; i < what_.probes.size(); ++i) {
      for (int a = 0; a < what_.problem.mesh.dim; ++a) names += fmt::format(",probe{}_u_{}", i, "xyz"[a]);
      names += fmt::format(",probe{}_p", i);
    }
    for (std::size_t i = 0; i < what_.output.fluxes.size(); ++i) names += fmt::format(",flux{}", i);
    stream_ << names << '\n' << std::flush;
  }

  const Case& what_;
  bool wanted_;
  std::ofstream stream_;  // of the first rank
};

/// Files at certain times.
class Series {
 public:
  Series(const Case& what, const MarchTargets& targets) : what_(what), targets_(targets) {}

  void add(double time, const Solution& solution) {
    const Communicator* const ranks = what_.solver.communicator.get();
    const auto numbered = [&](const fs::path& file) {
      return file.parent_path() /
             fmt::format("{}_{:04}{}", file.stem().string(), times_.size(), file.extension().string());
    };
    if (!targets_.vtu.empty()) {
      in_agreement(ranks, [&] {
        if (is_first(what_)) fs::create_directories(folder_of(targets_.vtu));
      });
      write_vtu(solution, numbered(targets_.vtu), what_.output.subdivide);
      files_.push_back(numbered(targets_.vtu).filename().string());
    }
    if (!targets_.picture.empty()) {
      const auto whole = solution.gathered();
      in_agreement(ranks, [&] {
        if (!is_first(what_)) return;
        fs::create_directories(folder_of(targets_.picture));
        write_picture(*whole, numbered(targets_.picture));
      });
    }
    times_.push_back(time);
    in_agreement(ranks, [&] {
      if (!targets_.vtu.empty() && is_first(what_)) write_index();
    });
  }

 private:
  /// The file that tells ParaView the times.
  void write_index() {
    NewFile output(fs::path(targets_.vtu).replace_extension(".pvd"));
    output.stream() << "<?xml version=\"1.0\"?>\n<VTKFile type=\"Collection\" version=\"0.1\">\n<Collection>\n";
    for (std::size_t i = 0; i < files_.size(); ++i) {
      output.stream() << fmt::format("<DataSet timestep=\"{}\" file=\"{}\"/>\n", times_[i], files_[i]);
    }
    output.stream() << "</Collection>\n</VTKFile>\n";
    output.commit();
  }

  const Case& what_;
  const MarchTargets& targets_;
  std::vector<double> times_;
  std::vector<std::string> files_;
};

}  // namespace

Result march(const Case& what, const MarchTargets& targets, ProgressDisplay& display) {
  const auto [options, end] = *what.time;
  const auto start = Clock::now();
  display.show({"set-up", 0.0, "mesh, patches and initial velocity"});
  TimeStepper flow(what.problem, options, what.solver);
  const double time_setup = seconds_since(start);

  History history(what, targets.history);
  Series series(what, targets);
  const double every = what.output.every;
  int written = 0;
  const auto write_up_to = [&](double now) {
    for (; every > 0.0 && written * every <= now * (1.0 + 1e-12); ++written) {
      const double time = std::min(written * every, now);
      series.add(time, flow.solution(time));
    }
  };
  history.add({}, flow.solution());
  write_up_to(0.0);

  const auto marching = Clock::now();
  int cycles = 0;
  std::vector<double> residuals;
  std::string interrupted;
  try {
    while (flow.time() < end * (1.0 - 1e-12)) {
      const StepReport step = flow.step();
      cycles += step.cycles;
      residuals.push_back(step.residual);
      history.add(step, flow.solution());
      write_up_to(std::min(step.time, end));
      const double ns = 1e9 * seconds_since(marching) / (static_cast<double>(flow.dofs()) * step.number);
      display.show(
          {"march", std::min(1.0, step.time / end),
           fmt::format("step {}, t = {:.4g}, dt = {:.2e}, CFL {:.2f}, {} cycle{}, {:.1f} ns per unknown", step.number,
                       step.time, step.length, step.cfl, step.cycles, step.cycles == 1 ? "" : "s", ns)});
    }
  } catch (const Interrupted&) {
    interrupted = fmt::format("interrupted at t = {:g}", flow.time());
  }
  Report report = flow.report();
  report.converged = interrupted.empty();
  report.reason = report.converged ? "the end is reached" : interrupted;
  report.iterations = cycles;
  report.residual_history = std::move(residuals);
  report.time_setup = time_setup;
  report.time_solve = seconds_since(marching);
  report.end_time = std::min(report.end_time, end);
  Solution last = flow.solution(report.end_time);
  Exact exact = what.exact;
  const auto at_end = [&](ScalarField& field) { field = field.at({{"t", report.end_time}}); };
  if (exact.velocity) std::for_each(exact.velocity->begin(), exact.velocity->end(), at_end);
  if (exact.pressure) at_end(*exact.pressure);
  report.errors = last.errors(exact);
  return {std::move(last), std::move(report)};
}

}  // namespace solenoid::program
