#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/agreement.hpp"
#include "base/new_file.hpp"
#include "build_info.hpp"
#include "output/result_json.hpp"
#include "program/angles.hpp"
#include "program/commands.hpp"
#include "program/launch.hpp"
#include "program/march.hpp"
#include "program/progress.hpp"
#include "program/stopped.hpp"
#include "solenoid/error.hpp"
#include "solenoid/interrupt.hpp"
#include "solenoid/output.hpp"

namespace solenoid::program {
namespace {

namespace fs = std::filesystem;

using Clock = std::chrono::steady_clock;

struct Arguments {
  CaseArguments problem;  ///< or, to go on:
  fs::path checkpoint;
  std::optional<double> end;
  std::optional<int> threads;
  std::optional<DeviceChoice> device;

  fs::path json;
  fs::path output;
  fs::path save;
  fs::path start;
  double wall_time = std::numeric_limits<double>::infinity();  ///< seconds
  bool quiet = false;
  bool verbose = false;
  Clock::time_point began = Clock::now();

  [[nodiscard]] bool json_to_stdout() const { return json == "-"; }
  [[nodiscard]] Clock::time_point deadline() const {
    constexpr double for_ever = 1e9;
    if (wall_time > for_ever) return Clock::time_point::max();
    return began + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(wall_time));
  }
};

/// Files that a solve writes; empty paths are not asked for. \throws InputError if one could not be written, or would
/// replace another one or the case file.
struct Targets {
  fs::path json;
  fs::path vtu;
  fs::path picture;
  fs::path average;  ///< VTU
  fs::path profile;
  std::vector<fs::path> samples;            ///< or none
  std::map<int, fs::path> normal_stresses;  ///< by side
  fs::path speeds;
  fs::path save;
  MarchTargets march;  ///< on the way

  Targets(const Arguments& arguments, const Case& what, int ranks) : save(arguments.save) {
    const OutputOptions& asked = what.output;
    const std::string& name = what.name;
    march.from = arguments.checkpoint;
    if (!arguments.json_to_stdout()) json = arguments.json;
    if (!arguments.output.empty()) {
      if (arguments.json.empty()) json = arguments.output / "result.json";
      const std::string ending = ranks == 1 ? ".vtu" : ".pvtu";
      if (asked.vtu) vtu = arguments.output / (name + ending);
      if (what.time && what.time->options.average_start) {
        const auto& along = what.time->average_along;
        if (asked.vtu) average = arguments.output / (name + "_average" + ending);
        if (std::find(along.begin(), along.end(), true) != along.end()) {
          profile = arguments.output / (name + "_profile.csv");
        }
      }
      if (!asked.picture.empty()) picture = arguments.output / asked.picture;
      for (const Samples& set : asked.samples) samples.push_back(arguments.output / set.file);
      for (const auto& [side, file] : asked.normal_stresses) normal_stresses[side] = arguments.output / file;
      if (!asked.speeds.empty()) speeds = arguments.output / asked.speeds;
      if (!asked.history.empty()) march.history = arguments.output / asked.history;
      if (asked.checkpoint > 0.0) march.checkpoint = arguments.output / (name + "_checkpoint.h5");
      if (asked.every > 0.0) {
        march.vtu = std::exchange(vtu, {});
        march.picture = std::exchange(picture, {});
        march.average = average;  // at the end as well
        march.profile = profile;
      }
      check_writable(arguments.output);
    }
    if (!arguments.checkpoint.empty()) {
      take("the checkpoint", arguments.checkpoint);
    } else if (!arguments.problem.from_stdin()) {
      take("the case file", arguments.problem.file);
    }
    // The solution may take the place of the one that it began with.
    if (!arguments.start.empty() && arguments.start != save) take("the start", arguments.start);
    claim("the result file", json);
    claim("the VTU file", vtu);
    claim("the picture", picture);
    claim("the averages", average);
    claim("the profile", profile);
    for (const fs::path& file : samples) claim("the samples", file);
    for (const auto& [side, file] : normal_stresses) claim("the normal stress", file);
    claim("the speeds", speeds);
    claim("the solution", save);
    claim("the history", march.history);
  }

 private:
  void claim(const char* what, const fs::path& file) {
    if (file.empty()) return;
    check_target(what, file);
    take(what, file);
  }
  void take(const char* what, const fs::path& file) {
    const auto replaced = replaced_by(file);
    if (!replaced) return;  // a device or a pipe
    const auto [other, is_free] = taken_.emplace(fs::weakly_canonical(fs::absolute(*replaced)), what);
    if (is_free) return;
    throw InputError(fmt::format("{} '{}' would replace {}: give another name", what, file.string(), other->second));
  }

  std::map<fs::path, std::string> taken_;
};

struct Solved {
  Result result;
  Measures measures;
  std::optional<Averages> averages;
};
/// A flow in time that goes on later.
bool stopped_on_its_way(const Case& what, const Report& report) {
  return what.time && !report.converged && report.end_time < what.time->end;
}

struct Files {
  std::vector<std::string> written;
  std::vector<std::string> left_out;
  const char* reason = "";  ///< to leave files out
};

/// The first rank writes; of several all take part.
Files write(const Targets& targets, const Case& what, const Solved& solved, ProgressDisplay& display) {
  const auto& [result, measures, averages] = solved;
  Files files;
  const Communicator* const ranks = what.solver.communicator.get();
  const bool first = ranks == nullptr || ranks->rank() == 0;
  std::optional<Solution> whole;
  const auto of_whole = [&](const auto& write_file) {
    if (!whole) whole = result.solution.gathered();
    in_agreement(ranks, [&] {
      if (first) write_file(*whole);
    });
  };
  const auto file = [&](const fs::path& path, bool wanted, auto&& write_file) {
    if (path.empty()) return;
    if (!wanted) return files.left_out.push_back(path.string());
    display.show({"write", 0.0, path.string()});
    try {
      in_agreement(ranks, [&] {
        if (first) fs::create_directories(folder_of(path));
      });
      write_file();
      files.written.push_back(path.string());
    } catch (const Interrupted&) {
      files.left_out.push_back(path.string());
    }
  };
  file(targets.json, true, [&] {
    in_agreement(ranks, [&] {
      if (first) write_result(what, result.report, measures, targets.json);
    });
  });
  // A broken solve leaves nothing worth looking at.
  const auto& history = result.report.residual_history;
  const bool sound = std::isfinite(measures.divergence_max.value_or(history.empty() ? 0.0 : history.back()));
  // One that has not converged is a start for the next solve.
  file(targets.save, sound && !history.empty(),
       [&] { of_whole([&](const Solution& solution) { solution.save(targets.save); }); });
  files.reason = sound ? "interrupted" : "the solution is not finite";
  // When it goes on the rest has them.
  const bool stopped = stopped_on_its_way(what, result.report);
  const auto wanted = [&] { return sound && !stopped && !caught_interrupt(); };
  const Interruptible scope(caught_interrupt);
  file(targets.vtu, wanted(), [&] { write_cells(what, result.solution, targets.vtu); });
  file(targets.picture, wanted(), [&] {
    const auto pictures = write_pictures(what, result.solution, targets.picture);
    for (std::size_t i = 1; i < pictures.size(); ++i) files.written.push_back(pictures[i].string());
  });
  if (averages) {
    file(targets.average, wanted(), [&] { write_cells(what, *averages, targets.average); });
    file(targets.profile, wanted(), [&] { write_profile(what, *averages, targets.profile); });
  }
  for (std::size_t i = 0; i < targets.samples.size(); ++i) {
    file(targets.samples[i], wanted(), [&] {
      of_whole(
          [&](const Solution& solution) { write_csv(solution, what.output.samples[i].points(), targets.samples[i]); });
    });
  }
  for (const auto& [side, target] : targets.normal_stresses) {
    file(target, wanted(), [&, side = side, &target = target] {
      of_whole([&](const Solution& solution) { write_normal_stress(solution, side, target); });
    });
  }
  file(targets.speeds, wanted(),
       [&] { of_whole([&](const Solution& solution) { write_speeds(solution, targets.speeds); }); });
  return files;
}

void line(std::string_view name, const std::string& value) { fmt::print("{:<17} {}\n", name, value); }

std::string vector_text(const Point& v, int dim) {
  std::string text;
  for (int a = 0; a < dim; ++a) text += fmt::format("{}{:.6g}", a == 0 ? "" : ", ", v[a] + 0.0);  // + 0.0: no -0
  return fmt::format("({})", text);
}

/// A row for each of the first few of what there may be many of.
template <class Row>
void print_some(std::size_t count, const Row& print_row) {
  constexpr std::size_t most = 16;
  for (std::size_t i = 0; i < std::min(count, most); ++i) print_row(i);
  if (count > most) line("", fmt::format("and {} more: see the result file (--json)", count - most));
}

/// What the case asks for at points, on sides and holes, and as a whole.
void print_measures(const Case& what, const Measures& measures) {
  const int dim = what.problem.mesh.dim;
  print_some(what.probes.size(), [&](std::size_t i) {
    const bool poisson = what.problem.equation == EquationKind::poisson;
    const std::string scalar = fmt::format("{} = {:.6g}", poisson ? "u" : "p", measures.probe_pressure[i]);
    line(i == 0 ? "at points" : "",
         fmt::format("{}: {}{}", vector_text(what.probes[i], dim),
                     poisson ? "" : fmt::format("u = {}, ", vector_text(measures.probe_velocity[i], dim)), scalar));
  });
  print_some(measures.forces.size(), [&](std::size_t i) {
    const BoundaryForce& force = measures.forces[i];
    const Point& torque = force.torque;
    line(i == 0 ? "force, torque" : "",
         fmt::format("{}: {}, {}", force.name, vector_text(force.force, dim),
                     dim == 2 ? fmt::format("{:.6g}", torque[2]) : vector_text(torque, 3)));
  });
  print_some(measures.fluxes.size(), [&](std::size_t i) {
    const auto& [axis, position] = what.output.fluxes[i];
    line(i == 0 ? "flux" : "", fmt::format("{} = {:g}: {:.6g}", "xyz"[axis], position, measures.fluxes[i]));
  });
  if (measures.kinetic_energy) line("kinetic energy", fmt::format("{:.6g}", *measures.kinetic_energy));
  if (measures.dissipation) line("dissipation", fmt::format("{:.6g}", *measures.dissipation));
  if (measures.permeability) line("permeability", vector_text(*measures.permeability, dim));
}

/// "1.2e-05 s, 3.4 million unknowns/s"; no rate where nothing was iterated. Of a flow in time for each step.
std::string solve_text(const Report& report) {
  const std::string seconds = fmt::format("{:.3f} s", report.time_solve);
  if (report.iterations == 0) return seconds;
  if (report.steps > 0) {
    return fmt::format("{}, {:.1f} ns per unknown and step", seconds,
                       1e9 * report.time_solve / (static_cast<double>(report.dofs) * report.steps));
  }
  return fmt::format("{}, {:.3g} million unknowns/s", seconds,
                     static_cast<double>(report.dofs) * 1e-6 / report.time_solve);
}

/// Whether it still moves: the last few, and what each iteration took off them.
std::string last_residuals(const std::vector<double>& history) {
  constexpr std::size_t most = 10;
  const std::size_t count = std::min(most, history.size() - 1);
  const double before = history[history.size() - 1 - count];
  std::vector<std::string> texts;
  for (std::size_t i = history.size() - std::min<std::size_t>(count, 3); i < history.size(); ++i) {
    texts.push_back(fmt::format("{:.2e}", history[i]));
  }
  return fmt::format("{}; a factor of {:.3f} an iteration over the last {}", fmt::join(texts, ", "),
                     std::pow(history.back() / before, 1.0 / static_cast<double>(count)), count);
}

void print_iterations(const Report& report) {
  const auto& history = report.residual_history;
  line("levels", fmt::format("{}", report.levels));
  line("iterations", report.converged ? fmt::format("{} ({:.1f})", report.iterations, report.fractional_iterations)
                                      : fmt::format("{}", report.iterations));
  line("residual", (history.empty() ? "-" : fmt::format("{:.2e}", history.back())) +
                       (report.converged ? "" : ", not converged: " + report.reason));
  if (!report.converged && history.size() > 1) line("last residuals", last_residuals(history));
  if (const auto& estimate = report.error_estimate) {
    line("error estimate", (estimate->total ? fmt::format("{:.1e}", *estimate->total) : "none") +
                               fmt::format(", algebraic part {:.1e}", estimate->algebraic));
  }
}

void print_table(const Case& what, const Report& report, const Measures& measures,
                 const std::vector<std::string>& files) {
  line("device", fmt::format("{}, {} precision", report.device, report.precision));
  if (report.ranks > 1) {
    const auto [fewest, most] = std::minmax_element(report.rank_cells.begin(), report.rank_cells.end());
    line("ranks", fmt::format("{}, {} to {} cells each, messages: {}", report.ranks, *fewest, *most, report.transport));
  }
  line("unknowns", fmt::format("{}", report.dofs));
  line("cells", fmt::format("{}", report.cells));
  if (what.time) {
    line("steps", fmt::format("{} to t = {:g}, {} cycles{}", report.steps, report.end_time, report.iterations,
                              report.converged && !report.steady ? "" : ", " + report.reason));
  } else {
    print_iterations(report);
  }
  if (measures.errors.velocity) line("velocity error", fmt::format("{:.4e}", *measures.errors.velocity));
  if (measures.errors.pressure) line("pressure error", fmt::format("{:.4e}", *measures.errors.pressure));
  if (measures.errors.value) line("error of u", fmt::format("{:.4e}", *measures.errors.value));
  if (measures.divergence_max) line("divergence", fmt::format("{:.2e}", *measures.divergence_max));
  print_measures(what, measures);
  line("set-up", fmt::format("{:.3f} s", report.time_setup));
  line("solve", solve_text(report));
  line("memory", fmt::format("{:.1f} MB, {:.0f} bytes/unknown", static_cast<double>(report.memory_bytes) * 1e-6,
                             static_cast<double>(report.memory_bytes) / static_cast<double>(report.dofs)));
  for (const auto& file : files) line(&file == files.data() ? "written" : "", file);
}

/// \throws Interrupted, which says how far it came, where there is no solution or nothing is known of it yet.
Solved solve_and_measure(const Case& what, std::optional<Solution> start, std::optional<Stopped> from,
                         const MarchTargets& targets, Clock::time_point deadline, ProgressDisplay& display) {
  try {
    const Interruptible scope(caught_interrupt);
    std::optional<Averages> averages;
    Result result = [&] {
      if (!what.time) return start ? solve(what.problem, *start, what.solver) : solve(what.problem, what.solver);
      Marched marched = march(what, targets, std::move(from), deadline, display);
      averages = std::move(marched.averages);
      return std::move(marched.result);
    }();
    start.reset();
    display.show({"measure", 0.0, "solution"});
    const bool stopped = stopped_on_its_way(what, result.report);
    const Interruptible unless_stopped([&] { return !stopped && caught_interrupt(); });
    Measures measures = measure(what, result.solution, result.report.errors);
    return {std::move(result), std::move(measures), std::move(averages)};
  } catch (const Interrupted&) {
    const std::string latest = display.latest();
    throw Interrupted(fmt::format("interrupted{}; nothing was written", latest.empty() ? "" : " (" + latest + ")"));
  }
}

void print_result(const Case& what, const Solved& solved) {
  fmt::print("{}", result_json(what, solved.result.report, &solved.measures));
  if (std::fflush(stdout) != 0) throw Error("cannot write the result to stdout: is it closed, or the disk full?");
}

/// Before the solve: \throws InputError if what it gives could not be saved to the file.
void check_save(const fs::path& file) {
  const std::string why = solution_files_unavailable();
  if (!why.empty()) throw InputError(fmt::format("--save: {}", why));
  if (replaced_by(file)) return;
  throw InputError(fmt::format("--save '{}': expected the name of a file, got a device or a pipe", file.string()));
}

/// \throws InputError if a limit of time would only make the flow end early.
void check_wall_time(const Case& what, const Targets& targets) {
  if (!what.time) throw InputError("--wall-time: for flows in time; a steady solve cannot go on later");
  if (targets.march.checkpoint.empty()) {
    throw InputError(
        "--wall-time: without checkpoints the flow could not go on: set `checkpoint` in [output], and a folder by -o");
  }
}

int solve_case(const Arguments& arguments) {
  const auto ranks = launched_ranks();
  const bool first = ranks == nullptr || ranks->rank() == 0;
  Case what;
  std::optional<Targets> targets;
  std::optional<Solution> start;
  std::optional<Stopped> from;
  in_agreement(ranks.get(), [&] {
    if (ranks != nullptr && arguments.problem.from_stdin()) {
      throw InputError("stdin: several ranks have no common stdin: name a file");
    }
    if (arguments.checkpoint.empty()) {
      what = arguments.problem.read();
      if (what.permeability) {
        throw InputError(
            fmt::format("{0}: has a table [permeability]: use `solenoid permeability {0}`", arguments.problem.name()));
      }
    } else {
      from = read_stopped(arguments.checkpoint, arguments.end);
      what = from->what;
      if (arguments.threads) what.solver.threads = *arguments.threads;
      if (arguments.device) what.solver.device = *arguments.device;
    }
    if (first) targets.emplace(arguments, what, ranks == nullptr ? 1 : ranks->size());
    if (first && std::isfinite(arguments.wall_time)) check_wall_time(what, *targets);
    if (!arguments.save.empty()) check_save(arguments.save);
    if (!arguments.start.empty() && what.time) {
      throw InputError("--start-from: a flow in time begins with `initial` of [time], which may be {file = \"...\"}");
    }
    if (!arguments.start.empty()) start = load_solution(arguments.start);
  });
  if (ranks != nullptr) {
    check_same(*ranks, what, build_info::commit);
    warn_of_binding(*ranks, what.solver.threads, arguments.quiet);
  }
  if (const std::string warning = small_angles(what.problem.mesh); first && !arguments.quiet && !warning.empty()) {
    fmt::print(stderr, "solenoid: {}\n", warning);
  }
  if (!first) targets.emplace(arguments, what, ranks->size());
  what.solver.communicator = ranks;

  ProgressDisplay display(arguments.quiet || !first ? ProgressDisplay::Lines::none
                          : arguments.verbose       ? ProgressDisplay::Lines::all
                                                    : ProgressDisplay::Lines::stages);
  what.solver.exact = what.exact;
  what.solver.progress = [&](const Progress& progress) { display.show(progress); };
  caught_interrupt();  // from here on
  const Solved solved =
      solve_and_measure(what, std::move(start), std::move(from), targets->march, arguments.deadline(), display);
  const Report& report = solved.result.report;
  const Files files = write(*targets, what, solved, display);
  display.finish();

  if (!first) return report.converged && files.left_out.empty() ? ExitCode::solved : not_converged;
  if (arguments.json_to_stdout()) {
    print_result(what, solved);
  } else if (!arguments.quiet) {
    print_table(what, report, solved.measures, files.written);
    const OutputOptions& asked = what.output;
    const bool asks_for_files = asked.vtu || !asked.picture.empty() || !asked.samples.empty() ||
                                !asked.speeds.empty() || !asked.history.empty() || asked.checkpoint > 0.0 ||
                                (what.time && what.time->options.average_start);
    if (asks_for_files && arguments.output.empty()) {
      fmt::print("The case asks for files: add --output FOLDER to have them written.\n");
    }
  }
  if (!files.left_out.empty()) {
    fmt::print(stderr, "solenoid: {}, not written: {}\n", files.reason, fmt::join(files.left_out, ", "));
  }
  if (const std::string& why = solved.result.report.errors.not_measured; !why.empty()) {
    // The exact solution is not finite at a point that nobody had tried. The solution is as good without.
    fmt::print(stderr, "solenoid: no errors could be measured: {}\n", why);
    return bad_input;
  }
  return report.converged && files.left_out.empty() ? ExitCode::solved : not_converged;
}

/// What both commands have. `folder`: what is written if no folder is given.
void add_output(const CommandOptions& line, Arguments& arguments, const std::string& folder) {
  line.add("--json", arguments.json, "write the result to this file; -: to stdout, in place of the table").type("FILE");
  line.add("-o,--output", arguments.output,
           "write result.json and the files that the case asks for to this folder" + folder)
      .type("DIR");
  line.add("--save", arguments.save, "write the solution to this file (HDF5), for --start-from and from Python")
      .type("FILE");
  line.add("--wall-time", arguments.wall_time,
           "end a flow in time early enough to write a checkpoint before so many seconds are over")
      .from(0)
      .type("SECONDS");
  const Option quiet =
      line.add_flag("-q,--quiet", arguments.quiet, "print nothing but errors, and the result of --json -");
  line.add_flag("--verbose", arguments.verbose, "print a line for every iteration, on stderr").excludes(quiet);
}

}  // namespace

Command add_solve(const CommandOptions& line) {
  const auto arguments = std::make_shared<Arguments>();
  arguments->problem.add_to(line);
  add_output(line, *arguments, "");
  line.add("--start-from", arguments->start, "begin with the solution in this file, as --save writes it").type("FILE");
  return [arguments] { return solve_case(*arguments); };
}

Command add_restart(const CommandOptions& line) {
  const auto arguments = std::make_shared<Arguments>();
  line.add("checkpoint", arguments->checkpoint, "checkpoint of a flow in time, as `solve` writes it")
      .required()
      .type("FILE");
  const auto end = std::make_shared<double>(0.0);
  const Option ends =
      line.add("--end", *end, "time at which the flow ends, instead of that of the case").from(0).type("T");
  const auto threads = std::make_shared<int>(0);
  const Option threaded =
      line.add("--threads", *threads, "CPU threads, instead of as many as before; 0: all cores").from(0).type("N");
  const auto device = std::make_shared<DeviceChoice>(DeviceChoice::automatic);
  const Option placed =
      add_choice(line, "--device", *device, "where to solve, instead of where it was").shows("as before");
  add_output(line, *arguments, ", instead of that of the checkpoint");
  return [=] {
    if (ends.given()) arguments->end = *end;
    if (threaded.given()) arguments->threads = *threads;
    if (placed.given()) arguments->device = *device;
    if (arguments->output.empty()) arguments->output = folder_of(arguments->checkpoint);
    return solve_case(*arguments);
  };
}

}  // namespace solenoid::program
