#include "studies/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <utility>

#include "base/agreement.hpp"
#include "base/new_file.hpp"
#include "build_info.hpp"
#include "mesh/record.hpp"
#include "program/launch.hpp"
#include "solenoid/error.hpp"
#include "solenoid/interrupt.hpp"
#include "solenoid/version.hpp"

namespace solenoid::studies {
namespace {

/// Reads lists of numbers in [lowest, highest].
class ListReader {
 public:
  ListReader(int lowest, int highest) : lowest_(lowest), highest_(highest) {}

  /// Ascending, without repetitions.
  [[nodiscard]] std::vector<int> operator()(const std::string& text) const {
    std::vector<int> list;
    for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
      end = text.find(',', begin);
      const std::string part = text.substr(begin, end - begin);
      if (part.empty() && begin > 0 && end == std::string::npos) break;  // "3,4," is a list of two
      const auto dots = part.find("..");
      const int first = number(part.substr(0, dots));
      const int last = dots == std::string::npos ? first : number(part.substr(dots + 2));
      if (last < first) throw InputError(fmt::format("the range '{}' is empty", part));
      for (int i = first; i <= last; ++i) list.push_back(i);
    }
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    return list;
  }

 private:
  [[nodiscard]] int number(const std::string& text) const {
    int value = 0;
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc() && rest == end && value >= lowest_ && value <= highest_) return value;
    throw InputError(fmt::format("'{}' is not a whole number from {} to {}; expected a list like 3,4,5 or 3..5", text,
                                 lowest_, highest_));
  }

  int lowest_;
  int highest_;
};

/// An entry in a line, of lists of rows each row: large files stay readable, and differences between them small.
std::string lines_of(const Json& json) {
  std::string text;
  for (const auto& [key, value] : json.items()) {
    std::string entry = value.dump();
    if (value.is_array() && !value.empty() && value[0].is_object()) {
      entry = "[";
      for (const Json& row : value) entry += fmt::format("{}\n    {}", entry == "[" ? "" : ",", row.dump());
      entry += "\n  ]";
    }
    text += fmt::format("{}\n  {}: {}", text.empty() ? "" : ",", Json(key).dump(), entry);
  }
  return "{" + text + "\n}\n";
}

}  // namespace

void add_list(const CommandOptions& line, const std::string& flag, std::vector<int>& target, int lowest, int highest,
              const std::string& help) {
  const ListReader read(lowest, highest);
  line.add_read(
          flag, [&target, read](const std::string& text) { target = read(text); }, help)
      .type("LIST");
}

void StudyArguments::add_to(const CommandOptions& line, const std::string& default_dim,
                            const std::string& default_orders) {
  line.add("--dim", dim, fmt::format("dimension (default: {})", default_dim)).one_of({"2", "3"}).shows("");
  constexpr int highest_order = 99;  // check_orders() knows the build
  add_list(line, "--orders", orders, 0, highest_order,
           fmt::format("k of RT_k x Q_k, as 1,2,3 or 1..3 (default: {})", default_orders));
  add_choice(line, "--device", device, "where to solve");
  add_threads(line, threads);
  line.add("--json", json, "write all numbers to this file").type("FILE");
}

void StudyArguments::add_transport_to(const CommandOptions& line) {
  add_choice(line, "--transport", transport, "of several ranks (mpirun): how messages between GPUs travel");
}

void check_orders(int dim, const std::vector<int>& orders, EquationKind equation) {
  const auto available = available_orders(dim, equation);
  for (const int order : orders) {
    if (std::find(available.begin(), available.end(), order) != available.end()) continue;
    throw InputError(
        fmt::format("--orders: this build has no order {} in {}D; it has {}", order, dim, fmt::join(available, ", ")));
  }
}

std::optional<Json> earlier_run(const std::filesystem::path& file, const std::string& flag, const Json& header,
                                const std::vector<const char*>& same, const char* rows) {
  std::ifstream stream(file);
  if (!stream) return std::nullopt;
  Json earlier = Json::parse(stream, nullptr, false);
  const std::string name = file.string();
  if (!earlier.is_object()) {
    throw InputError(fmt::format("'{}' is not what a study writes: delete it, or give another {}", name, flag));
  }
  for (const char* field : same) {
    if (earlier.contains(field) && earlier[field] == header[field]) continue;
    throw InputError(fmt::format(
        "'{}' has rows of another run ({} {} there, {} here), and rows of two runs are not mixed: give another {}, or "
        "delete it",
        name, field, earlier.contains(field) ? earlier[field].dump() : "nothing", header[field].dump(), flag));
  }
  if (!earlier.contains("date") || !earlier["date"].is_string() || !earlier.contains(rows)) {
    throw InputError(fmt::format(
        "'{}' has no `date` or no `{}`, as a file of this study has: delete it, or give another {}", name, rows, flag));
  }
  return earlier;
}

StudyRun::StudyRun(const StudyArguments& arguments, const std::string& name, double total)
    : arguments_(arguments),
      ranks_(launched_ranks()),
      display_(ProgressDisplay::Lines::transient),
      file_(ranks_ == nullptr || ranks_->rank() == 0 ? arguments.json : ""),
      total_(total) {
  in_agreement(ranks_.get(), [&] {
    if (!file_.empty()) check_target("--json", file_);
  });
  caught_interrupt();  // from here on
  json["study"] = name;
  json["solenoid"] = version;
  json["commit"] = build_info::commit;
  const std::time_t now = std::time(nullptr);
  std::array<char, sizeof "0000-00-00"> date{};
  std::strftime(date.data(), date.size(), "%Y-%m-%d", std::gmtime(&now));
  json["date"] = date.data();
  if (ranks_ == nullptr) return;
  json["ranks"] = ranks_->size();
  warn_of_binding(*ranks_, arguments.threads, false);
}

std::string StudyRun::ranks_text() const { return ranks_ == nullptr ? "" : fmt::format(", {} ranks", ranks_->size()); }

SolverOptions StudyRun::solver_options() const {
  SolverOptions options;
  options.device = arguments_.device;
  options.threads = arguments_.threads;
  options.communicator = ranks_;
  options.transport = arguments_.transport;
  return options;
}

std::optional<Result> StudyRun::solve(const std::string& label, const Problem& problem, SolverOptions options) {
  const double unknowns = unknowns_about(problem.mesh.dim, problem.order, problem.mesh.refine, problem.equation);
  validate(problem);
  const Estimate need = estimate(problem, options);
  if (need.bytes_needed > need.bytes_available) {
    print(fmt::format("{}: left out, needs {:.1f} GB of memory, {:.1f} GB are available", label,
                      static_cast<double>(need.bytes_needed) * 1e-9, static_cast<double>(need.bytes_available) * 1e-9));
    done(unknowns);
    return std::nullopt;
  }
  options.progress = [&](const Progress& progress) {
    const double part = progress.stage == "solve" ? progress.fraction * unknowns : 0.0;
    display_.show({json["study"], (done_ + part) / total_, label + ": " + progress.stage + ", " + progress.text});
  };
  std::optional<Result> result;
  try {
    const Interruptible scope(caught_interrupt);
    result = solenoid::solve(problem, options);
  } catch (const Interrupted&) {
    return std::nullopt;
  }
  done(unknowns);
  json["device"] = result->report.device;
  json["threads"] = result->report.threads;
  if (ranks_ != nullptr) json["transport"] = result->report.transport;
  return result;
}

void StudyRun::show(const std::string& text) { display_.show({json["study"], done_ / total_, text}); }

void StudyRun::print(const std::string& line) {
  display_.clear();
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

bool StudyRun::interrupted() {
  const auto ranks = launched_ranks();
  return ranks == nullptr ? caught_interrupt() : ranks->any(caught_interrupt());
}

void StudyRun::save() const {
  in_agreement(ranks_.get(), [&] {
    if (file_.empty()) return;
    std::filesystem::create_directories(folder_of(file_));
    NewFile target(file_);
    target.stream() << lines_of(json);
    target.commit();
  });
}

int StudyRun::finish(bool good, bool complete) {
  display_.clear();
  const bool stopped = interrupted();
  complete = complete && !stopped;
  json["complete"] = complete;
  save();
  if (!file_.empty()) fmt::print("\nwritten {}\n", file_.string());
  if (stopped) fmt::print("Interrupted: the study is not complete.\n");
  return good && complete ? solved : not_converged;
}

std::string element_name(EquationKind equation, int order) {
  return fmt::format("{}_{}", equation == EquationKind::poisson ? "Q" : "RT", order);
}

std::string cells_text(int dim, int refine) { return fmt::format("{}^{}", 1LL << refine, dim); }

double unknowns_about(int dim, int order, int refine, EquationKind equation) {
  return std::ldexp(static_cast<double>(record_size(dim, order, equation)), dim * refine);
}

int refine_about(int dim, int order, double size, EquationKind equation) {
  const double levels = std::log2(size / unknowns_about(dim, order, 0, equation)) / dim;
  return std::max(1, static_cast<int>(std::lround(levels)));
}

}  // namespace solenoid::studies
