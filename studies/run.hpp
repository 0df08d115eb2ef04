#pragma once
/// \file
/// What the studies share: their common options, solves with progress, and their JSON file.

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "program/progress.hpp"
#include "solenoid/solver.hpp"
#include "studies/study.hpp"

namespace solenoid::studies {

using Json = nlohmann::ordered_json;

/// An option that is a list of integers in [lowest, highest]: "1,2,3", "2..5" or both, "0,2..5".
void add_list(const CommandOptions& line, const std::string& flag, std::vector<int>& target, int lowest, int highest,
              const std::string& help);

/// The options of every study.
struct StudyArguments {
  int dim = 0;              ///< 0: the study chooses
  std::vector<int> orders;  ///< empty: the study chooses
  DeviceChoice device = DeviceChoice::automatic;
  int threads = 0;
  TransportChoice transport = TransportChoice::automatic;
  std::filesystem::path json;

  /// The defaults are what the help says; the study sets them.
  void add_to(const CommandOptions& line, const std::string& default_dim, const std::string& default_orders);
  /// Of a study that several ranks do together.
  void add_transport_to(const CommandOptions& line);
};

/// \throws InputError that names the first of the orders that this build lacks.
void check_orders(int dim, const std::vector<int>& orders, EquationKind equation = EquationKind::stokes);

/// What an earlier run left in `file`, to go on from; nothing if there is no such file. \throws InputError if it is not
/// of the same study, code and device, which is to say if one of the fields `same` is not that of `header`, or if it
/// lacks `rows` or a date; `flag` is the option that names the file.
std::optional<Json> earlier_run(const std::filesystem::path& file, const std::string& flag, const Json& header,
                                const std::vector<const char*>& same, const char* rows);

/// One run of a study. Work is counted in unknowns, of which `total` are to be done, for the time left. Several ranks
/// that were launched do a study together: each calls all of this, in the same order, and the first one prints and
/// writes.
class StudyRun {
 public:
  /// \throws InputError if the JSON file cannot be written.
  StudyRun(const StudyArguments& arguments, const std::string& name, double total);

  /// Those of this run, or nullptr.
  [[nodiscard]] const std::shared_ptr<const Communicator>& ranks() const { return ranks_; }
  /// ", 2 ranks", or nothing.
  [[nodiscard]] std::string ranks_text() const;
  /// Where and by whom is solved, as asked for.
  [[nodiscard]] SolverOptions solver_options() const;
  /// Solves with progress on a terminal. Nothing if interrupted, or if the memory does not suffice: a line says so.
  std::optional<Result> solve(const std::string& label, const Problem& problem, SolverOptions options);
  /// Shows on a terminal what is being done other than by solve().
  void show(const std::string& text);
  /// What there is to do in all, where it was not known at the beginning.
  void expect(double total) { total_ = total; }
  /// Counts work as done.
  void done(double unknowns) { done_ += unknowns; }
  /// Prints a line of the table at once.
  void print(const std::string& line);
  /// Ctrl-C was pressed, on some rank: the study ends after what it is at.
  [[nodiscard]] static bool interrupted();

  Json json;  ///< the content of the JSON file
  /// Writes the JSON file as it is, if one is asked for.
  void save() const;
  /// Writes the JSON file, if one is asked for, and returns the exit code; `good`: the study found what it should;
  /// `complete`: and did all that it was to do.
  int finish(bool good, bool complete = true);

 private:
  StudyArguments arguments_;
  std::shared_ptr<const Communicator> ranks_;
  ProgressDisplay display_;
  std::filesystem::path file_;  // of the first rank
  double total_;
  double done_ = 0.0;
};

/// "RT_2", with Poisson's equation "Q_2".
std::string element_name(EquationKind equation, int order);
/// Cells of a mesh of 2^refine cells per direction: "16^3".
std::string cells_text(int dim, int refine);
/// Cells times numbers per record: close to the unknowns.
double unknowns_about(int dim, int order, int refine, EquationKind equation = EquationKind::stokes);
/// The refinement, at least 1, whose unknowns are about `size`.
int refine_about(int dim, int order, double size, EquationKind equation = EquationKind::stokes);

}  // namespace solenoid::studies
