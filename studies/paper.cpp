// Everything that "Multigrid methods for the Stokes problem on GPU systems" measures, in one report.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/new_file.hpp"
#include "solenoid/error.hpp"
#include "studies/paper/experiment.hpp"
#include "studies/paper/published.hpp"
#include "studies/run.hpp"
#include "studies/study.hpp"

namespace solenoid::studies {
namespace {

namespace fs = std::filesystem;
using paper::Experiment;
using paper::Rows;
using paper::Setting;
using paper::Task;

constexpr const Experiment* experiments[] = {&paper::table1,  &paper::iterations_3d, &paper::convergence_3d,
                                             &paper::kernels, &paper::precision,     &paper::table2};

struct Options {
  fs::path output;
  DeviceChoice device = DeviceChoice::automatic;
  int threads = 0;
  bool quick = false;
  std::vector<std::string> only;
};

void write(const fs::path& path, const std::string& content) {
  NewFile file(path);
  file.stream() << content;
  file.commit();
}

/// Rows as a table: a column for every field that a row has, named by its path ("error.velocity_l2").
std::string csv(const Rows& rows) {
  std::vector<std::string> fields;
  std::set<std::string> known;
  std::vector<Json> flat;
  for (const Json& row : rows) {
    flat.push_back(row.flatten());
    for (const auto& [field, value] : flat.back().items()) {
      if (known.insert(field).second) fields.push_back(field);
    }
  }
  std::string text;
  for (const std::string& field : fields) {
    std::string name = field.substr(1);
    std::replace(name.begin(), name.end(), '/', '.');
    text += (text.empty() ? "" : ",") + name;
  }
  for (const Json& row : flat) {
    std::string line;
    for (const std::string& field : fields) {
      if (!line.empty() || &field != fields.data()) line += ',';
      if (row.contains(field)) line += row[field].dump();
    }
    text += '\n' + line;
  }
  return text + '\n';
}

/// A run whose rows are kept in a file as they are measured, so that it can be interrupted and taken up again.
class PaperStudy {
 public:
  explicit PaperStudy(const Options& options)
      : options_(options),
        engine_(make_engine(options.device, options.threads)),
        setting_{*engine_, options.device, options.threads,
                 options.device != DeviceChoice::cpu && cuda_unavailable().empty(), options.quick},
        run_(StudyArguments{}, "paper", 1.0) {}

  int operator()() {
    check_writable(options_.output);
    fs::create_directories(options_.output);
    header_ = run_.json;
    header_["device"] = engine_->description();
    header_["threads"] = engine_->threads();
    header_["quick"] = options_.quick;
    take_up();
    std::vector<std::vector<Task>> tasks;
    for (const Experiment* experiment : experiments) {
      tasks.push_back(wanted(*experiment) ? experiment->tasks(setting_) : std::vector<Task>{});
    }
    double total = 0.0;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      for (const Task& task : tasks[i]) {
        if (!known(*experiments[i], task)) total += task.cost;
      }
    }
    run_.expect(total);
    run_.print(fmt::format("The paper on {}, results in {}", engine_->description(), options_.output.string()));
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      for (const Task& task : tasks[i]) {
        if (known(*experiments[i], task)) continue;
        measure(*experiments[i], task);
        if (StudyRun::interrupted()) {
          report();
          run_.print("Interrupted. The same command goes on from here.");
          return not_converged;
        }
      }
    }
    report();
    return solved;
  }

 private:
  [[nodiscard]] fs::path store() const { return options_.output / "paper.json"; }
  [[nodiscard]] bool wanted(const Experiment& experiment) const {
    return options_.only.empty() ||
           std::find(options_.only.begin(), options_.only.end(), experiment.name) != options_.only.end();
  }

  /// Rows of an earlier run, if there was one with the same code on the same device.
  void take_up() {
    const auto earlier =
        earlier_run(store(), "--output", header_, {"solenoid", "commit", "device", "threads", "quick"}, "experiments");
    if (!earlier) return;
    header_["date"] = (*earlier)["date"];
    const Json& experiments_there = (*earlier)["experiments"];
    for (const Experiment* experiment : experiments) {
      if (!experiments_there.contains(experiment->name)) continue;
      for (const Json& row : experiments_there[experiment->name]) rows_[experiment->name].push_back(row);
    }
  }

  [[nodiscard]] bool known(const Experiment& experiment, const Task& task) const {
    const auto found = rows_.find(experiment.name);
    if (found == rows_.end()) return false;
    return std::any_of(found->second.begin(), found->second.end(), [&](const Json& row) {
      return std::all_of(task.key.items().begin(), task.key.items().end(), [&](const auto& field) {
        return row.contains(field.key()) && row[field.key()] == field.value();
      });
    });
  }

  void measure(const Experiment& experiment, const Task& task) {
    run_.show(task.label);
    Json figures;
    try {
      figures = task.measure();
    } catch (const InputError& error) {
      figures = paper::left_out(error.what());
    } catch (const ResourceError& error) {
      figures = paper::left_out(error.what());
    }
    if (StudyRun::interrupted()) return;
    Json row = task.key;
    row.update(figures);
    run_.print(
        fmt::format("{:<15} {}{}", experiment.name, task.label,
                    figures.contains("left_out") ? ": " + figures["left_out"].get<std::string>() : summary(figures)));
    rows_[experiment.name].push_back(std::move(row));
    run_.done(task.cost);
    save();
  }

  /// The figures of a row that are numbers, in a line.
  static std::string summary(const Json& figures) {
    std::string text;
    for (const auto& [field, value] : figures.items()) {
      if (value.is_number_float()) text += fmt::format("  {} {:.4g}", field, value.get<double>());
      if (value.is_number_integer()) text += fmt::format("  {} {}", field, value.get<std::int64_t>());
    }
    return text;
  }

  void save() const {
    Json content = header_;
    content["experiments"] = Json::object();
    for (const auto& [name, rows] : rows_) content["experiments"][name] = rows;
    write(store(), content.dump(1) + '\n');
  }

  void report() {
    report::Page page("Multigrid methods for the Stokes problem on GPU systems, measured with solenoid");
    page.text(fmt::format("Measured with solenoid {} (commit {}) on {}, {}.{}", header_["solenoid"].get<std::string>(),
                          header_["commit"].get<std::string>(), engine_->description(),
                          header_["date"].get<std::string>(), options_.quick ? " A quick run: small sizes." : ""));
    page.text(fmt::format("The paper: {}.", published::paper));
    page.text(
        "Every number is of this run, or is the paper's or its authors' and said to be. Times are medians of at least "
        "ten runs. paper.json and the CSV files beside this page have all rows.");
    if (StudyRun::interrupted()) page.remark("This run was interrupted: rows are missing.");
    for (const Experiment* experiment : experiments) {
      const Rows& rows = rows_[experiment->name];
      if (rows.empty()) continue;
      experiment->present(rows, setting_, page);
      write(options_.output / fmt::format("{}.csv", experiment->name), csv(rows));
    }
    const fs::path file = options_.output / "report.html";
    write(file, page.html());
    run_.print(fmt::format("\nwritten {}", file.string()));
  }

  const Options& options_;
  std::unique_ptr<Engine> engine_;
  Setting setting_;
  StudyRun run_;
  Json header_;
  std::map<std::string, Rows> rows_;
};

}  // namespace

Command add_paper(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  add_path(app, "--output", options->output,
           "folder for report.html, paper.json and CSV files; a run that was "
           "interrupted goes on from what it finds there")
      ->required()
      ->type_name("DIR");
  add_choice(app, "--device", options->device, "where to solve");
  add_threads(app, options->threads);
  app.add_flag("--quick", options->quick, "small sizes: some minutes on two cores");
  std::vector<std::string> names;
  for (const Experiment* experiment : experiments) names.emplace_back(experiment->name);
  app.add_option("--only", options->only, fmt::format("some of the experiments: {}", fmt::join(names, ", ")))
      ->delimiter(',')
      ->check(CLI::IsMember(names))
      ->type_name("LIST");
  return [options] { return PaperStudy(*options)(); };
}

}  // namespace solenoid::studies
