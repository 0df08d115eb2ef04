// Everything that "Multigrid methods for the Stokes problem on GPU systems" measures, in one report.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/new_file.hpp"
#include "solenoid/error.hpp"
#include "solenoid/interrupt.hpp"
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
  bool render = false;
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

fs::path store(const fs::path& output) { return output / "paper.json"; }

/// What was measured: where and with which code, and the rows of each experiment.
struct Measured {
  Json header;
  std::map<std::string, Rows> rows;

  void take_rows(const Json& content) {
    for (const Experiment* experiment : experiments) {
      if (!content["experiments"].contains(experiment->name)) continue;
      for (const Json& row : content["experiments"][experiment->name]) rows[experiment->name].push_back(row);
    }
  }

  /// Writes report and tables to the folder; returns the report's path.
  [[nodiscard]] fs::path write_report(const fs::path& output) {
    const paper::Machine machine{header["device"], header["device"].get<std::string>().rfind("cuda", 0) == 0,
                                 header["quick"]};
    report::Page page("Multigrid methods for the Stokes problem on GPU systems, measured with solenoid");
    page.text(fmt::format("Measured with solenoid {} (commit {}) on {}, {}.{}", header["solenoid"].get<std::string>(),
                          header["commit"].get<std::string>(), machine.device, header["date"].get<std::string>(),
                          machine.quick ? " A quick run: small sizes." : ""));
    page.text(fmt::format("The paper: {}.", published::paper));
    page.text(
        "Every number is of this run, or is the paper's or its authors' and said to be. Times are medians of at least "
        "ten runs. paper.json and the CSV files beside this page have all rows.");
    if (StudyRun::interrupted()) page.remark("This run was interrupted: rows are missing.");
    for (const Experiment* experiment : experiments) {
      if (rows[experiment->name].empty()) continue;
      experiment->present(rows[experiment->name], machine, page);
      write(output / fmt::format("{}.csv", experiment->name), csv(rows[experiment->name]));
    }
    fs::path file = output / "report.html";
    write(file, page.html());
    return file;
  }
};

/// Report and tables once more, of rows that are there.
int render(const fs::path& output) {
  const fs::path file = store(output);
  const auto content = earlier_run(file, "--output", {}, {}, "experiments");
  if (!content) throw InputError(fmt::format("--render: there is no '{}' to make a report of", file.string()));
  Measured measured;
  for (const char* field : {"solenoid", "commit", "date", "device", "quick"}) {
    if (!content->contains(field)) throw InputError(fmt::format("'{}' has no `{}`", file.string(), field));
    measured.header[field] = (*content)[field];
  }
  measured.take_rows(*content);
  fmt::print("written {}\n", measured.write_report(output).string());
  return solved;
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
    measured_.header = run_.json;
    measured_.header["device"] = engine_->description();
    measured_.header["threads"] = engine_->threads();
    measured_.header["quick"] = options_.quick;
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
  [[nodiscard]] bool wanted(const Experiment& experiment) const {
    return options_.only.empty() ||
           std::find(options_.only.begin(), options_.only.end(), experiment.name) != options_.only.end();
  }

  /// Rows of an earlier run, if there was one with the same code on the same device.
  void take_up() {
    const auto earlier = earlier_run(store(options_.output), "--output", measured_.header,
                                     {"solenoid", "commit", "device", "threads", "quick"}, "experiments");
    if (!earlier) return;
    measured_.header["date"] = (*earlier)["date"];
    measured_.take_rows(*earlier);
  }

  [[nodiscard]] bool known(const Experiment& experiment, const Task& task) const {
    const auto found = measured_.rows.find(experiment.name);
    if (found == measured_.rows.end()) return false;
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
      const Interruptible scope(caught_interrupt);
      figures = task.measure();
    } catch (const Interrupted&) {
      return;
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
    measured_.rows[experiment.name].push_back(std::move(row));
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
    Json content = measured_.header;
    content["experiments"] = Json::object();
    for (const auto& [name, rows] : measured_.rows) content["experiments"][name] = rows;
    write(store(options_.output), content.dump(1) + '\n');
  }

  void report() { run_.print(fmt::format("\nwritten {}", measured_.write_report(options_.output).string())); }

  const Options& options_;
  std::unique_ptr<Engine> engine_;
  Setting setting_;
  StudyRun run_;
  Measured measured_;
};

}  // namespace

Command add_paper(const CommandOptions& line) {
  const auto options = std::make_shared<Options>();
  line.add("--output", options->output,
           "folder for report.html, paper.json and CSV files; a run that was "
           "interrupted goes on from what it finds there")
      .required()
      .type("DIR");
  add_choice(line, "--device", options->device, "where to solve");
  add_threads(line, options->threads);
  line.add_flag("--quick", options->quick, "small sizes: some minutes on two cores");
  std::vector<std::string> names;
  for (const Experiment* experiment : experiments) names.emplace_back(experiment->name);
  line.add("--only", options->only, fmt::format("some of the experiments: {}", fmt::join(names, ", ")))
      .one_of(names)
      .type("LIST");
  line.add_flag("--render", options->render,
                "measure nothing: make report and CSV files anew of the rows that are there");
  return [options] { return options->render ? render(options->output) : PaperStudy(*options)(); };
}

}  // namespace solenoid::studies
