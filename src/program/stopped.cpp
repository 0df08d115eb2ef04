#include "program/stopped.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "problem/names.hpp"
#include "solenoid/error.hpp"

namespace solenoid::program {
namespace {

using Json = nlohmann::json;

template <class Choice>
void read_choice(const Json& json, Choice& choice) {
  const auto word = json.get<std::string>();
  for (const auto& [name, value] : Names<Choice>::all) {
    if (name == word) choice = value;
  }
}

}  // namespace

std::string note_of(const Case& what, int threads, const Done& done) {
  const SolverOptions& solver = what.solver;
  const Json note{
      {"case", {{"name", what.source.name}, {"text", what.source.text}, {"settings", what.source.settings}}},
      {"solver",
       {{"device", name_of(solver.device)},
        {"precision", name_of(solver.precision)},
        {"transport", name_of(solver.transport)},
        {"threads", threads}}},
      {"done",
       {{"cycles", done.cycles},
        {"residuals", done.residuals},
        {"seconds", done.seconds},
        {"history_size", done.history_size},
        {"history_end", done.history_end},
        {"series", done.series},
        {"changes", done.changes},
        {"checkpoints", done.checkpoints}}}};
  return note.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Stopped read_stopped(const std::filesystem::path& file, std::optional<double> end) {
  Stopped stopped;
  stopped.flow = load_checkpoint(file);
  const double time = stopped.flow.states.front().time;
  CaseSource source;
  SolverOptions solver;
  Done& done = stopped.done;
  try {
    const Json note = Json::parse(stopped.flow.note);
    const Json& its_case = note.at("case");
    its_case.at("name").get_to(source.name);
    its_case.at("text").get_to(source.text);
    its_case.at("settings").get_to(source.settings);
    const Json& its_solver = note.at("solver");
    read_choice(its_solver.at("device"), solver.device);
    read_choice(its_solver.at("precision"), solver.precision);
    read_choice(its_solver.at("transport"), solver.transport);
    its_solver.at("threads").get_to(solver.threads);
    const Json& its_done = note.at("done");
    its_done.at("cycles").get_to(done.cycles);
    its_done.at("residuals").get_to(done.residuals);
    its_done.at("seconds").get_to(done.seconds);
    its_done.at("history_size").get_to(done.history_size);
    its_done.at("history_end").get_to(done.history_end);
    its_done.at("series").get_to(done.series);
    its_done.at("changes").get_to(done.changes);
    its_done.at("checkpoints").get_to(done.checkpoints);
  } catch (const Json::exception&) {
    throw InputError(
        fmt::format("'{}' holds a flow, but not its case: expected a checkpoint of `solenoid solve`; the program that "
                    "wrote it goes on from it",
                    file.string()));
  }
  if (end && *end <= time) {
    throw InputError(
        fmt::format("--end {:g}: the checkpoint '{}' is at t = {:g}: give a later time, or go on from an "
                    "earlier checkpoint",
                    *end, file.string(), time));
  }
  if (end) source.settings.push_back(fmt::format("time.end={}", *end));
  // The flow has begun: the file that it may have begun with need not be there any more.
  std::vector<std::string> settings = source.settings;
  settings.emplace_back(stopped.flow.states.front().flow.problem().mesh.dim == 2 ? "time.initial=[0, 0]"
                                                                                 : "time.initial=[0, 0, 0]");
  Case& what = stopped.what;
  what = parse_case(source.text, source.name, settings);
  if (!what.time) throw InputError(fmt::format("'{}': its case has no table [time]", file.string()));
  what.source = std::move(source);
  what.solver.device = solver.device;
  what.solver.precision = solver.precision;
  what.solver.transport = solver.transport;
  what.solver.threads = solver.threads;
  return stopped;
}

}  // namespace solenoid::program
