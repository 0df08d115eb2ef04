#include "program/march.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/agreement.hpp"
#include "base/new_file.hpp"
#include "mesh/grid.hpp"
#include "problem/names.hpp"
#include "problem/regions.hpp"
#include "program/commands.hpp"
#include "solenoid/error.hpp"
#include "solenoid/interrupt.hpp"
#include "solenoid/output.hpp"
#include "solenoid/time_stepper.hpp"
#include "solution/gradients.hpp"
#include "time/settling.hpp"

namespace solenoid::program {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

bool is_first(const Case& what) { return what.solver.communicator == nullptr || what.solver.communicator->rank() == 0; }

/// Calls write(), which writes with an ending for one file if one rank has all cells, on the first rank then.
template <class Write>
void write_cells_of(const Case& what, const Grid& grid, const Write& write) {
  if (grid.partition() != nullptr) return write();
  in_agreement(what.solver.communicator.get(), [&] {
    if (is_first(what)) write();
  });
}

/// FILE_0007.h5
fs::path numbered(const fs::path& file, std::size_t number) {
  return file.parent_path() / fmt::format("{}_{:04}{}", file.stem().string(), number, file.extension().string());
}

/// The table of steps, a whole line at a time.
class History {
 public:
  /// `goes_on`: the file is there, and perhaps longer than what has been done.
  History(const Case& what, const fs::path& file, bool goes_on, Done& done)
      : what_(what), wanted_(!file.empty()), done_(done) {
    if (what.time->options.flow_rate) held_ = periodic_directions(what.problem);
    in_agreement(what.solver.communicator.get(), [&] {
      if (!wanted_ || !is_first(what)) return;
      fs::create_directories(folder_of(file));
      if (goes_on) cut(file);
      stream_.open(file, goes_on ? std::ios::app : std::ios::trunc);
      if (!stream_)
        throw Error(fmt::format("cannot create '{}': is the folder writable, the disk full?", file.string()));
      if (!goes_on) write_names();
    });
  }

  /// Of several ranks all call this.
  void add(const StepReport& step, const TimeStepper& flow) {
    if (!wanted_) return;
    const FlowSummary all = flow.summary();
    std::string line = fmt::format("{},{},{},{},{},{},{},{},{}", step.number, step.time, step.length, step.cfl,
                                   step.cycles, all.kinetic_energy, all.dissipation, all.enstrophy, all.divergence_max);
    if (what_.time->options.steady > 0.0) line += fmt::format(",{}", step.change.value_or(std::nan("")));
    for (const int a : held_) line += fmt::format(",{}", step.number > 0 ? step.gradient[a] : std::nan(""));
    line += at_places(flow) + '\n';
    in_agreement(what_.solver.communicator.get(), [&] {
      if (stream_.is_open()) write(line);
    });
  }

 private:
  /// At probes, of bodies, through planes.
  [[nodiscard]] std::string at_places(const TimeStepper& flow) const {
    std::string line;
    const auto velocity = what_.probes.empty() ? std::vector<Point>() : flow.velocity(what_.probes);
    const auto pressure = what_.probes.empty() ? std::vector<double>() : flow.pressure(what_.probes);
    for (std::size_t i = 0; i < what_.probes.size(); ++i) {
      for (int a = 0; a < what_.problem.mesh.dim; ++a) line += fmt::format(",{}", velocity[i][a]);
      line += fmt::format(",{}", pressure[i]);
    }
    if (what_.output.forces) {
      const auto forces = flow.has_forces() ? flow.forces(what_.output.torques_about) : std::vector<BoundaryForce>();
      for (std::size_t i = 0; i < bodies(what_.problem).size(); ++i) {
        for (int a = 0; a < what_.problem.mesh.dim; ++a) {
          line += fmt::format(",{}", forces.empty() ? std::nan("") : forces[i].force[a]);
        }
        for (const int a : turns()) line += fmt::format(",{}", forces.empty() ? std::nan("") : forces[i].torque[a]);
      }
    }
    for (const auto& [axis, position] : what_.output.fluxes) line += fmt::format(",{}", flow.flux(axis, position));
    return line;
  }

  /// Back to what it was at the checkpoint.
  void cut(const fs::path& file) const {
    std::error_code error;
    const std::uintmax_t size = fs::file_size(file, error);
    std::string end(done_.history_end.size(), '\0');
    if (!error && size >= done_.history_size) {
      std::ifstream stream(file, std::ios::binary);
      stream.seekg(static_cast<std::streamoff>(done_.history_size - end.size()));
      stream.read(end.data(), std::ssize(end));
    }
    if (error || end != done_.history_end) {
      throw InputError(fmt::format(
          "'{}' is not the history of the flow up to the checkpoint: expected {} bytes or more, the last of "
          "these its line of step {}; put it there, or have files written to another folder (-o)",
          file.string(), done_.history_size, done_.history_end.substr(0, done_.history_end.find(','))));
    }
    fs::resize_file(file, done_.history_size);
  }

  /// Axes of torques.
  [[nodiscard]] std::vector<int> turns() const {
    return what_.problem.mesh.dim == 2 ? std::vector<int>{2} : std::vector<int>{0, 1, 2};
  }

  void write_names() {
    std::string names = "step,time,length,cfl,cycles,kinetic_energy,dissipation,enstrophy,divergence_max";
    if (what_.time->options.steady > 0.0) names += ",change";
    for (const int a : held_) names += fmt::format(",gradient_{}", "xyz"[a]);
    for (std::size_t i = 0; i < what_.probes.size(); ++i) {
      for (int a = 0; a < what_.problem.mesh.dim; ++a) names += fmt::format(",probe{}_u_{}", i, "xyz"[a]);
      names += fmt::format(",probe{}_p", i);
    }
    if (what_.output.forces) {
      for (const std::string& body : bodies(what_.problem)) {
        for (int a = 0; a < what_.problem.mesh.dim; ++a) names += fmt::format(",{}_force_{}", body, "xyz"[a]);
        for (const int a : turns()) names += fmt::format(",{}_torque_{}", body, "xyz"[a]);
      }
    }
    for (std::size_t i = 0; i < what_.output.fluxes.size(); ++i) names += fmt::format(",flux{}", i);
    done_.history_size = 0;
    write(names + '\n');
  }
  void write(const std::string& line) {
    stream_ << line << std::flush;
    if (!stream_) throw Error("cannot write the history: is the disk full?");
    done_.history_size += line.size();
    done_.history_end = line;
  }

  const Case& what_;
  bool wanted_;
  Done& done_;
  std::vector<int> held_;  // directions of a flow rate
  std::ofstream stream_;   // of the first rank
};

/// Files at certain times.
class Series {
 public:
  /// `goes_on`: the files of the times before are there.
  Series(const Case& what, const MarchTargets& targets, bool goes_on, std::vector<double>& times)
      : what_(what), targets_(targets), first_(goes_on ? 0 : times.size()), times_(times) {}

  void add(double time, const TimeStepper& flow) {
    const Solution solution = flow.solution(time);
    const std::size_t number = times_.size();
    if (!targets_.vtu.empty()) {
      make_folder(targets_.vtu);
      write_cells(what_, solution, numbered(targets_.vtu, number));
    }
    if (!targets_.picture.empty()) {
      make_folder(targets_.picture);
      write_pictures(what_, solution, numbered(targets_.picture, number));
    }
    const auto averages = is_averaged(time) ? flow.averages() : std::nullopt;
    if (averages && !targets_.average.empty()) {
      make_folder(targets_.average);
      write_cells(what_, *averages, numbered(targets_.average, number));
    }
    if (averages && !targets_.profile.empty()) {
      make_folder(targets_.profile);
      write_profile(what_, *averages, numbered(targets_.profile, number));
    }
    times_.push_back(time);
    in_agreement(what_.solver.communicator.get(), [&] {
      if (!is_first(what_)) return;
      if (!targets_.vtu.empty()) write_index(targets_.vtu, [](double) { return true; });
      if (averages && !targets_.average.empty()) {
        write_index(targets_.average, [&](double t) { return is_averaged(t); });
      }
    });
  }

 private:
  void make_folder(const fs::path& file) const {
    in_agreement(what_.solver.communicator.get(), [&] {
      if (is_first(what_)) fs::create_directories(folder_of(file));
    });
  }
  /// Whether files of a time are about averages as well.
  [[nodiscard]] bool is_averaged(double time) const {
    const TimeOptions& options = what_.time->options;
    return options.average_start && time > *options.average_start + options.average_every;
  }
  /// The file that tells ParaView the times.
  template <class IsThere>
  void write_index(const fs::path& file, const IsThere& is_there) {
    NewFile output(fs::path(file).replace_extension(".pvd"));
    output.stream() << "<?xml version=\"1.0\"?>\n<VTKFile type=\"Collection\" version=\"0.1\">\n<Collection>\n";
    for (std::size_t i = first_; i < times_.size(); ++i) {
      if (!is_there(times_[i])) continue;
      output.stream() << fmt::format("<DataSet timestep=\"{}\" file=\"{}\"/>\n", times_[i],
                                     numbered(file, i).filename().string());
    }
    output.stream() << "</Collection>\n</VTKFile>\n";
    output.commit();
  }

  const Case& what_;
  const MarchTargets& targets_;
  std::size_t first_;  // that is listed
  std::vector<double>& times_;
};

/// Checkpoints, of which the last two stay.
class Checkpoints {
 public:
  Checkpoints(const Case& what, const MarchTargets& targets, const TimeStepper& flow, Done& done)
      : what_(what),
        file_(targets.checkpoint),
        flow_(flow),
        done_(done),
        threads_(flow.report().threads),
        latest_(targets.from),
        steps_(flow.steps()) {
    if (!latest_.empty()) written_.emplace_back(steps_, latest_);
    constexpr double bytes_per_second = 1e8;  // until one has been written
    constexpr double states = 5.0;
    seconds_ = states * sizeof(double) * static_cast<double>(flow.dofs()) / bytes_per_second;
    wait();
  }

  [[nodiscard]] bool wanted() const { return !file_.empty(); }
  [[nodiscard]] bool due() const { return wanted() && flow_.time() >= next_; }
  /// One of the last step, if there is none yet. Of several ranks all call this.
  void add() {
    if (!wanted() || steps_ == flow_.steps()) return;
    const auto start = Clock::now();
    const int number = done_.checkpoints++;
    auto checkpoint = flow_.checkpoint();
    latest_ = numbered(file_, number);
    in_agreement(what_.solver.communicator.get(), [&] {
      if (!is_first(what_)) return;
      fs::create_directories(folder_of(file_));
      checkpoint->note = note_of(what_, threads_, done_);
      checkpoint->save(latest_);
      std::error_code ignored;
      if (number >= static_cast<int>(kept)) fs::remove(numbered(file_, number - kept), ignored);
    });
    written_.emplace_back(flow_.steps(), latest_);
    if (written_.size() > kept) written_.erase(written_.begin());
    steps_ = flow_.steps();
    seconds_ = seconds_since(start);
    wait();
  }
  /// That of the last step that has one; empty: none.
  [[nodiscard]] const fs::path& latest() const { return latest_; }
  /// The latest one of the steps up to this; empty: none.
  [[nodiscard]] fs::path latest(int step) const {
    fs::path result;
    for (const auto& [of_step, file] : written_) {
      if (of_step <= step) result = file;
    }
    return result;
  }
  /// That it takes to write one.
  [[nodiscard]] double seconds() const { return seconds_; }

 private:
  static constexpr std::size_t kept = 2;

  void wait() {
    if (!wanted()) return;
    const double every = what_.output.checkpoint;
    next_ = (std::floor(flow_.time() / every * (1.0 + 1e-12)) + 1.0) * every * (1.0 - 1e-12);
  }

  const Case& what_;
  fs::path file_;
  const TimeStepper& flow_;
  Done& done_;
  int threads_;
  fs::path latest_;
  std::vector<std::pair<int, fs::path>> written_;  // steps and files of those that are there
  int steps_;                                      // of the last one, or at the beginning
  double next_ = 0.0;
  double seconds_;
};

std::string above_stable_cfl(double cfl, double stable) {
  return fmt::format(
      "C = {:.2g} is above {:.2g}, up to which the scheme is stable without viscosity; viscosity lifts that. "
      "If the flow blows up, give a shorter `step`, or `cfl`",
      cfl, stable);
}

TimeStepper begin(const Case& what, const std::optional<Stopped>& from) {
  const TimeOptions& options = what.time->options;
  return from ? TimeStepper(what.problem, options, what.solver, from->flow)
              : TimeStepper(what.problem, options, what.solver);
}

}  // namespace

void write_cells(const Case& what, const Solution& solution, const fs::path& file) {
  write_cells_of(what, solution.grid(), [&] { write_vtu(solution, file, what.output.subdivide, what.output.fields); });
}

void write_cells(const Case& what, const Averages& averages, const fs::path& file) {
  write_cells_of(what, averages.flow.grid(), [&] { write_vtu(averages, file, what.output.subdivide); });
}

std::vector<fs::path> write_pictures(const Case& what, const Solution& solution, const fs::path& file) {
  std::vector<fs::path> files{file};
  const auto whole = solution.gathered();
  std::vector<FlowField> fields;
  std::copy_if(what.output.fields.begin(), what.output.fields.end(), std::back_inserter(fields),
               [](FlowField field) { return !is_tensor(field); });
  for (const FlowField field : fields) {
    files.push_back(file.parent_path() /
                    fmt::format("{}_{}{}", file.stem().string(), name_of(field), file.extension().string()));
  }
  in_agreement(what.solver.communicator.get(), [&] {
    if (!is_first(what)) return;
    const auto write = [&](const fs::path& target, std::optional<FlowField> field) {
      const auto scale = what.output.scales.find(field);
      write_picture(*whole, target, field,
                    scale == what.output.scales.end() ? std::nullopt : std::optional(scale->second));
    };
    write(file, {});
    for (std::size_t i = 0; i < fields.size(); ++i) write(files[i + 1], fields[i]);
  });
  return files;
}

void write_profile(const Case& what, const Averages& averages, const fs::path& file) {
  const Profile profile = averages.profile(what.time->average_along);
  in_agreement(what.solver.communicator.get(), [&] {
    if (is_first(what)) write_csv(profile, what.problem.mesh.dim, file);
  });
}

Marched march(const Case& what, const MarchTargets& targets, std::optional<Stopped> from, Clock::time_point deadline,
              ProgressDisplay& display) {
  const double end = what.time->end;
  const Communicator* const ranks = what.solver.communicator.get();
  const auto start = Clock::now();
  display.show({"set-up", 0.0, from ? "mesh, patches and the checkpoint" : "mesh, patches and initial velocity"});
  TimeStepper flow = begin(what, from);
  const bool begins = !from;
  Done done = begins ? Done() : std::move(from->done);
  from.reset();
  const double time_setup = seconds_since(start);

  const auto goes_on = [&](const fs::path& file) {
    std::error_code ignored;
    return !begins && !file.empty() && fs::equivalent(folder_of(file), folder_of(targets.from), ignored);
  };
  History history(what, targets.history, goes_on(targets.history), done);
  Series series(what, targets, goes_on(targets.vtu), done.series);
  Checkpoints checkpoints(what, targets, flow, done);
  const double every = what.output.every;
  const auto write_series = [&] {
    const double now = std::min(flow.time(), end);
    for (;;) {
      const double next = static_cast<double>(done.series.size()) * every;
      if (every == 0.0 || next > now * (1.0 + 1e-12)) return;
      const double time = std::min(next, now);
      series.add(time, flow);
    }
  };
  if (begins) history.add({}, flow);
  write_series();

  const double seconds_before = done.seconds;
  const auto marching = Clock::now();
  double longest = 0.0;
  const auto is_out_of_time = [&] {
    if (deadline == Clock::time_point::max()) return false;
    const std::chrono::duration<double> left = deadline - Clock::now();
    const bool mine = left.count() < 1.0 + 1.5 * (longest + checkpoints.seconds());
    return ranks == nullptr ? mine : ranks->any(mine);
  };
  const double stable = stable_cfl(what.time->options.scheme, what.problem.order);
  bool warned = false;
  std::string stopped;  // why
  while (flow.time() < end * (1.0 - 1e-12) && !flow.steady()) {
    if (is_out_of_time()) {
      stopped = fmt::format("the wall time is used up at t = {:g}", flow.time());
      break;
    }
    const auto step_start = Clock::now();
    StepReport step;
    try {
      step = flow.step();
    } catch (const Interrupted&) {
      stopped = fmt::format("interrupted at t = {:g}", flow.time());
      break;
    } catch (const StepFailed& failed) {
      display.finish();
      const fs::path good = checkpoints.latest(failed.sound);
      throw StepFailed(
          fmt::format("{}; {}; nothing else was written", failed.what(),
                      good.empty() ? "no checkpoint is from before that"
                                   : fmt::format("the last checkpoint from before that: '{}'", good.string())),
          failed.sound);
    }
    if (!warned && what.problem.convection && stable > 0.0 && step.cfl > stable) {
      warned = true;
      display.warn(fmt::format("step {} to t = {:g}: {}", step.number, step.time, above_stable_cfl(step.cfl, stable)));
    }
    const Interruptible scope([] { return false; });  // what is written of a step is written whole
    done.cycles += step.cycles;
    done.residuals.push_back(step.residual);
    if (step.change) done.changes.push_back({step.time, *step.change});
    history.add(step, flow);
    write_series();
    done.seconds = seconds_before + seconds_since(marching);
    longest = std::max(longest, seconds_since(step_start));
    if (checkpoints.due()) checkpoints.add();
    const double ns = 1e9 * done.seconds / (static_cast<double>(flow.dofs()) * step.number);
    display.show(
        {"march", std::min(1.0, step.time / end),
         fmt::format("step {}, t = {:.4g}, dt = {:.2e}, CFL {:.2f}, {} cycle{}, {:.1f} ns per unknown", step.number,
                     step.time, step.length, step.cfl, step.cycles, step.cycles == 1 ? "" : "s", ns)});
  }
  // What has stopped is measured all the same.
  const Interruptible scope([&] { return stopped.empty() && caught_interrupt(); });
  {
    const Interruptible never([] { return false; });
    checkpoints.add();
  }
  if (flow.steady() && every > 0.0 && done.series.back() < flow.time()) series.add(flow.time(), flow);
  if (!stopped.empty() && is_first(what)) {
    display.finish();
    const fs::path latest = checkpoints.latest();
    fmt::print(stderr, "solenoid: {}{}\n", stopped,
               latest.empty() ? "" : fmt::format("; to go on: solenoid restart '{}'", latest.string()));
  }
  Report report = flow.report();
  report.converged = stopped.empty() && report.steady.value_or(true);
  report.reason = !stopped.empty() ? stopped : "the end is reached";
  if (stopped.empty() && report.steady) {
    report.reason = *report.steady ? fmt::format("steady at t = {:g}", flow.time())
                                   : fmt::format("not steady at t = {:g}: {}", flow.time(),
                                                 settling(done.changes, what.time->options.steady));
    if (!*report.steady && is_first(what)) {
      display.finish();
      fmt::print(stderr, "solenoid: {}\n", report.reason);
    }
  }
  report.iterations = done.cycles;
  report.residual_history = std::move(done.residuals);
  report.time_setup = time_setup;
  report.time_solve = done.seconds;
  report.end_time = std::min(report.end_time, end);
  Solution last = flow.solution(report.end_time);
  Exact exact = what.exact;
  const auto at_end = [&](ScalarField& field) { field = field.at({{"t", report.end_time}}); };
  if (exact.velocity) std::for_each(exact.velocity->begin(), exact.velocity->end(), at_end);
  if (exact.pressure) at_end(*exact.pressure);
  report.errors = last.errors(exact);
  return {{std::move(last), std::move(report)}, flow.averages()};
}

}  // namespace solenoid::program
