// Operator and smoother: the paper's kernels, stage by stage, and ours, on the same machine in the same run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "solver/hierarchy.hpp"
#include "studies/manufactured.hpp"
#include "studies/paper/experiment.hpp"
#include "studies/paper/published.hpp"
#include "studies/paper_kernels/paper_kernels.hpp"
#include "studies/report/svg.hpp"
#include "studies/run.hpp"
#include "studies/timed_solve.hpp"

namespace solenoid::studies::paper {
namespace {

using solenoid::paper::Real;
using solenoid::paper::Timing;

constexpr double rtol = 1e-6;  // of the solves, as in Table 2
constexpr int last_order = 4;

/// 28 to 131 million unknowns, as in the paper.
int refinement(const Setting& setting, int order) {
  if (setting.quick) return order == 1 ? 5 : order <= 3 ? 4 : 3;
  return order == 1 ? 7 : 6;
}

const char* name_of_real(Real real) { return real == Real::double_precision ? "double" : "single"; }

// --- rows ------------------------------------------------------------------------------------------------------------

Json ceilings(const Setting& setting) {
  const Ceilings found = setting.engine.measure_ceilings();
  return {{"copy_bytes_per_second", found.memory},
          {"shared_bytes_per_second", found.shared},
          {"fma_fp32_per_second", found.fma_float},
          {"fma_fp64_per_second", found.fma_double}};
}

template <class S>
void time_parts(const Setting& setting, const Hierarchy& hierarchy, const Problem& problem, Json& row) {
  SolverOptions options = setting.solver();
  options.rtol = rtol;
  options.method = Method::fmg;  // needs the least memory
  const bool single = sizeof(S) == sizeof(float);
  options.precision = single ? Precision::mixed : Precision::full_double;
  TimedSolve<S> timed(setting.engine, hierarchy, problem, options);
  const char* name = single ? "single" : "double";
  row["operator_seconds"][name] = timed.operator_seconds();
  row["smoothing_step_seconds"][name] = timed.smoothing_step_seconds();
}

Json ours(const Setting& setting, int order) {
  SolverOptions options = setting.solver();
  options.rtol = rtol;
  const Problem problem = manufactured_problem(ManufacturedKind::gaussian, 3, order, refinement(setting, order));
  validate(problem);
  const Hierarchy hierarchy(problem, options.multigrid, setting.engine.dense_limits());
  Json row = {{"dofs", hierarchy.finest().dofs()}};
  time_parts<float>(setting, hierarchy, problem, row);
  time_parts<double>(setting, hierarchy, problem, row);
  TimedSolve<float> timed(setting.engine, hierarchy, problem, options);
  row["solve_seconds"] = timed.solve_seconds();
  row["iterations"] = timed.convergence().iterations;
  row["converged"] = timed.convergence().converged;
  return row;
}

/// Iterations of the paper's method on the same problem.
Json paper_method(const Setting& setting, int order) {
  SolverOptions options = setting.solver();
  options.apply(Preset::paper);
  options.rtol = rtol;
  options.precision = Precision::full_double;
  return solve_row(manufactured_problem(ManufacturedKind::gaussian, 3, order, refinement(setting, order)), options);
}

Json baseline(const Setting& setting, const char* kernel, int order, Real real) {
  if (!setting.cuda) return left_out("the paper's kernels are CUDA code, and this run has no GPU");
  const auto unknowns = static_cast<std::int64_t>(unknowns_about(3, order, refinement(setting, order)));
  const auto timings = kernel == std::string("operator") ? solenoid::paper::measure_operator(order, unknowns, real)
                                                         : solenoid::paper::measure_smoother(order, unknowns, real);
  Json row;
  for (const Timing& timing : timings) {
    row["timings"].push_back({{"kernel", timing.kernel},
                              {"stage", timing.stage},
                              {"dofs", timing.unknowns},
                              {"seconds", timing.seconds},
                              {"flops", timing.flops},
                              {"device_bytes", timing.device_bytes},
                              {"shared_bytes", timing.shared_bytes}});
  }
  return row;
}

std::vector<Task> tasks(const Setting& setting) {
  std::vector<Task> list;
  list.push_back({{{"method", "ceilings"}}, "what the machine can do at most", 1e6, [&] { return ceilings(setting); }});
  for (const int order : {1, 2, 3, 4}) {
    const double unknowns = unknowns_about(3, order, refinement(setting, order));
    list.push_back({{{"method", "solenoid"}, {"order", order}},
                    fmt::format("RT_{}, our kernels", order),
                    20.0 * unknowns,
                    [=, &setting] { return ours(setting, order); }});
    list.push_back({{{"method", "paper"}, {"order", order}, {"kernel", "solve"}},
                    fmt::format("RT_{}, iterations of the paper's method", order),
                    5.0 * unknowns,
                    [=, &setting] { return paper_method(setting, order); }});
    for (const char* kernel : {"operator", "smoother"}) {
      for (const Real real : {Real::double_precision, Real::single_precision}) {
        list.push_back({{{"method", "paper"}, {"order", order}, {"kernel", kernel}, {"precision", name_of_real(real)}},
                        fmt::format("RT_{}, the paper's {} kernels, {} precision", order, kernel, name_of_real(real)),
                        setting.cuda ? 10.0 * unknowns : 1.0,
                        [=, &setting] { return baseline(setting, kernel, order, real); }});
      }
    }
  }
  return list;
}

// --- report ----------------------------------------------------------------------------------------------------------

/// The figures of one run, by order.
class Figures {
 public:
  explicit Figures(const Rows& rows) : rows_(measured(rows)) {}

  [[nodiscard]] std::optional<Json> ours(int order) const { return first(where(of("solenoid"), "order", order)); }
  /// ns per unknown of a part of ours.
  [[nodiscard]] std::optional<double> ours_ns(int order, const char* part, const char* precision) const {
    const auto row = ours(order);
    if (!row) return std::nullopt;
    return (*row)[part][precision].get<double>() / (*row)["dofs"].get<double>() * 1e9;
  }
  [[nodiscard]] std::optional<double> ours_solve_ns(int order) const {
    const auto row = ours(order);
    if (!row) return std::nullopt;
    return (*row)["solve_seconds"].get<double>() / (*row)["dofs"].get<double>() * 1e9;
  }
  [[nodiscard]] std::optional<int> paper_iterations(int order) const {
    const auto row = first(where(where(of("paper"), "order", order), "kernel", "solve"));
    if (!row) return std::nullopt;
    return (*row)["iterations"].get<int>();
  }
  /// The paper's kernels: "operator", "local solver" or "smoothing step".
  [[nodiscard]] Rows timings(int order, const char* kernel, const char* precision) const {
    Rows found;
    for (const Json& row : where(where(of("paper"), "order", order), "precision", precision)) {
      for (const Json& timing : row["timings"]) {
        if (timing["kernel"] == kernel) found.push_back(timing);
      }
    }
    return found;
  }
  /// ns per unknown of the fastest of them.
  [[nodiscard]] std::optional<double> fastest_ns(int order, const char* kernel, const char* precision) const {
    std::optional<double> least;
    for (const Json& timing : timings(order, kernel, precision)) {
      const double ns = ns_of(timing);
      if (!least || ns < *least) least = ns;
    }
    return least;
  }
  [[nodiscard]] std::optional<Json> ceilings() const { return first(of("ceilings")); }

  static double ns_of(const Json& timing) {
    return timing["seconds"].get<double>() / timing["dofs"].get<double>() * 1e9;
  }

 private:
  [[nodiscard]] Rows of(const char* method) const { return where(rows_, "method", method); }
  static std::optional<Json> first(const Rows& rows) { return rows.empty() ? std::nullopt : std::optional(rows[0]); }

  Rows rows_;
};

/// A variant of a kernel, and its colour in all charts.
struct Variant {
  const char* name;
  int colour;
};
constexpr Variant our_kernels{"solenoid", 4};
constexpr Variant operator_stages[] = {{"padding", 0}, {"basic", 1}, {"shared memory", 2}, {"conflict-free", 3}};
constexpr Variant smoother_stages[] = {{"direct", 0}, {"Schur complement", 1}, {"conflict-free", 3}};

/// To three digits, as tables have them.
std::string three_digits(double value) { return fmt::format("{:#.3g}", value); }

/// Unknowns per second of the paper's variants and of ours, in groups by order.
template <std::size_t stages>
void add_rates(const Figures& figures, const Variant (&variants)[stages], const char* kernel, const char* part,
               double share_of_part, const std::string& caption, report::Page& page) {
  report::PointChart chart{
      .y = {.title = "billion unknowns per second", .logarithmic = true}, .groups = {}, .series = {}};
  report::Table table{.caption = "ns per unknown, double precision (in brackets: single)", .head = {""}, .rows = {}};
  std::vector<std::vector<std::string>> lines;
  for (int order = 1; order <= last_order; ++order) {
    chart.groups.push_back(fmt::format("RT_{}", order));
    table.head.push_back(fmt::format("RT_{}", order));
  }
  const auto cell = [](std::optional<double> in_double, std::optional<double> in_single) {
    const auto text = [](std::optional<double> ns) { return ns ? three_digits(*ns) : std::string("-"); };
    return fmt::format("{} ({})", text(in_double), text(in_single));
  };
  for (const Variant& variant : variants) {
    report::PointChart::Values points{variant.name, {}, variant.colour};
    std::vector<std::string> line{fmt::format("the paper's, {}", variant.name)};
    for (int order = 1; order <= last_order; ++order) {
      const auto ns = [&](const char* precision) -> std::optional<double> {
        const Rows found = where(figures.timings(order, kernel, precision), "stage", variant.name);
        return found.empty() ? std::nullopt : std::optional(Figures::ns_of(found[0]));
      };
      const auto in_double = ns("double");
      points.values.push_back(in_double ? std::optional(1.0 / *in_double) : std::nullopt);
      line.push_back(cell(in_double, ns("single")));
    }
    chart.series.push_back(points);
    table.rows.push_back(line);
  }
  report::PointChart::Values points{our_kernels.name, {}, our_kernels.colour};
  std::vector<std::string> line{our_kernels.name};
  for (int order = 1; order <= last_order; ++order) {
    const auto ns = [&](const char* precision) -> std::optional<double> {
      const auto whole = figures.ours_ns(order, part, precision);
      return whole ? std::optional(*whole * share_of_part) : std::nullopt;
    };
    const auto in_double = ns("double");
    points.values.push_back(in_double ? std::optional(1.0 / *in_double) : std::nullopt);
    line.push_back(cell(in_double, ns("single")));
  }
  chart.series.push_back(points);
  table.rows.push_back(line);
  page.figure(svg(chart), caption);
  page.table(table);
}

void add_roofline(const Figures& figures, report::Page& page) {
  const auto ceilings = figures.ceilings();
  if (!ceilings || (*ceilings)["shared_bytes_per_second"].get<double>() == 0.0) return;
  const double shared = (*ceilings)["shared_bytes_per_second"];
  const double fma = (*ceilings)["fma_fp64_per_second"];
  report::LineChart chart;
  chart.x = {.title = "flops per byte of shared memory", .logarithmic = true};
  chart.y = {.title = "TFLOP/s", .logarithmic = true};
  bool any = false;
  double least = std::numeric_limits<double>::infinity();
  double most = 0.0;
  for (const auto& [stage, colour] : operator_stages) {
    report::Series series{.name = stage, .points = {}, .colour = colour, .marker = colour, .line = false};
    for (int order = 1; order <= last_order; ++order) {
      for (const Json& timing : where(figures.timings(order, "operator", "double"), "stage", stage)) {
        const double flops = timing["flops"];
        const double intensity = flops / timing["shared_bytes"].get<double>();
        series.points.push_back({intensity, 1e-12 * flops / timing["seconds"].get<double>()});
        least = std::min(least, intensity);
        most = std::max(most, intensity);
        any = true;
      }
    }
    chart.series.push_back(series);
  }
  if (!any) return;
  const double from = 0.5 * least;
  const double to = 2.0 * std::max(most, fma / shared);
  const auto roof = [&](double intensity) {
    return report::Pair{intensity, 1e-12 * std::min(shared * intensity, fma)};
  };
  chart.series.push_back(
      {.name = fmt::format("ceilings: {:.1f} TB/s shared memory, {:.1f} TFLOP/s fp64", 1e-12 * shared, 1e-12 * fma),
       .points = {roof(from), roof(fma / shared), roof(to)},
       .colour = 6,
       .marker = -1});
  page.heading("Shared-memory roofline of the operator");
  page.figure(svg(chart),
              "The paper's kernels, RT_1 to RT_4, double precision. Flops and bytes are counted from the kernels' "
              "formulas, in transactions of 128 bytes without conflicts (a wide load may move its bytes in fewer), the "
              "ceilings measured on this card in this run. Our operator is not bounded by shared memory, "
              "through which neighbouring cells of a tile share values, but by the time that loads from DRAM and the "
              "second-level cache take (docs/notebook.md).");
  page.text(
      "On an A100 the paper has its conflict-free kernel at 3.95 TFLOP/s, 45 % of the peak there, the basic one at "
      "3.62 "
      "and the padding one at 2.88.");
}

/// Why the ratios are not larger.
void add_limits(const Figures& figures, report::Page& page) {
  const auto ceilings = figures.ceilings();
  if (!ceilings) return;
  const double copy = (*ceilings)["copy_bytes_per_second"];
  const double operator_floor = 16.0 / copy * 1e9;   // bytes per unknown: x and y in double precision
  const double smoothing_floor = 96.0 / copy * 1e9;  // for each of eight colours b and x in, x out, in single precision
  report::Table table{.caption =
                          "What limits ours: the time that the fewest bytes take at the copy rate, as a part of the "
                          "time measured; and the ratio to the paper's kernels that this floor would have",
                      .head = {"", "RT_1", "RT_2", "RT_3", "RT_4"},
                      .rows = {}};
  const auto add = [&](const char* name, double floor, const char* part, const char* precision, const char* kernel) {
    std::vector<std::string> row{name};
    for (int order = 1; order <= last_order; ++order) {
      const auto ours = figures.ours_ns(order, part, precision);
      const auto theirs = figures.fastest_ns(order, kernel, precision);
      row.push_back(ours && theirs ? fmt::format("{:.2f}, {:.0f}", floor / *ours, *theirs / floor) : std::string("-"));
    }
    table.rows.push_back(row);
  };
  add("operator, double", operator_floor, "operator_seconds", "double", "operator");
  add("smoothing step, single", smoothing_floor, "smoothing_step_seconds", "single", "smoothing step");
  page.table(table);
  page.text(fmt::format(
      "What memory allows at most: an operator reads and writes every unknown once, {:.4f} ns at the copy rate of "
      "{:.2f} TB/s; a smoothing step reads two vectors and writes one for every colour, {:.3f} ns in single precision. "
      "The table has the part of it that ours reach; docs/notebook.md has the limits kernel by kernel. The paper's "
      "kernels are bounded by shared memory; written anew they are faster than the authors' own, so that the ratios "
      "are smaller than those to the authors' kernels.",
      operator_floor, copy * 1e-12, smoothing_floor));
}

void add_comparison(const Figures& figures, report::Page& page) {
  page.heading("The paper's method against ours, on one card");
  report::Table table{.caption = "ns per unknown: the paper's kernels, ours, and the ratio",
                      .head = {"", "RT_1", "RT_2", "RT_3", "RT_4"},
                      .rows = {}};
  const auto entry = [](std::optional<double> theirs, std::optional<double> ours) {
    return theirs && ours ? fmt::format("{} / {} = {:.{}f}", three_digits(*theirs), three_digits(*ours),
                                        *theirs / *ours, *theirs < 10.0 * *ours ? 1 : 0)
                          : std::string("-");
  };
  struct Part {
    const char* kernel;
    const char* ours;
  };
  for (const auto& [kernel, ours] :
       {Part{"operator", "operator_seconds"}, Part{"smoothing step", "smoothing_step_seconds"}}) {
    for (const char* precision : {"double", "single"}) {
      std::vector<std::string> line{fmt::format("{}, {}", kernel, precision)};
      for (int order = 1; order <= last_order; ++order) {
        line.push_back(entry(figures.fastest_ns(order, kernel, precision), figures.ours_ns(order, ours, precision)));
      }
      table.rows.push_back(line);
    }
  }
  std::vector<std::string> line{"solve to 1e-6, mixed"};
  for (int order = 1; order <= last_order; ++order) {
    const auto smoothing = figures.fastest_ns(order, "smoothing step", "single");
    const auto matvec = figures.fastest_ns(order, "operator", "double");
    const auto iterations = figures.paper_iterations(order);
    std::optional<double> theirs;
    // Two smoothing steps on every level, each level an eighth of the next, and an operator in every iteration.
    if (smoothing && matvec && iterations) theirs = *iterations * (2.0 * *smoothing * 8.0 / 7.0 + *matvec);
    line.push_back(entry(theirs, figures.ours_solve_ns(order)));
  }
  table.rows.push_back(line);
  page.table(table);
  page.text(
      "The fastest variant of the paper's kernels counts. Its solve is not run as a whole but bounded from below by "
      "what "
      "was measured: the iterations of its method, each of one operator and two smoothing steps a level; restriction, "
      "prolongation, the residual between smoother and coarse grid, and GMRES itself come on top. Ours is a whole "
      "solve.");
  report::Table authors{.caption =
                            "The authors' own kernels on an NVIDIA H200, double precision, ns per unknown: quoted / "
                            "their method written anew, here = ratio",
                        .head = {"", "RT_1", "RT_2", "RT_3", "RT_4"},
                        .rows = {}};
  const auto beside = [&](const char* name, const char* kernel, const std::array<double, 4>& printed) {
    std::vector<std::string> row{name};
    for (int order = 1; order <= last_order; ++order) {
      row.push_back(entry(printed[order - 1], figures.fastest_ns(order, kernel, "double")));
    }
    authors.rows.push_back(row);
  };
  beside("operator", "operator", published::authors_operator_ns);
  beside("smoothing step", "smoothing step", published::authors_smoothing_ns);
  page.table(authors);
  add_limits(figures, page);
}

void present(const Rows& rows, const Machine& machine, report::Page& page) {
  const Figures figures(rows);
  page.heading("Throughput of the operator");
  page.text(
      fmt::format("On {}: the kernels of the paper's Section 5.1, written from its text, and ours, on the same cubes "
                  "of 28 to 131 million unknowns{}.",
                  machine.device, machine.quick ? " (here, a quick run, fewer)" : ""));
  add_rates(figures, operator_stages, "operator", "operator_seconds", 1.0,
            "Double precision. On an A100 the paper's fastest variant comes close to 2 billion unknowns per second.",
            page);
  remark_left_out(where(rows, "kernel", "operator"), page);
  add_roofline(figures, page);
  page.heading("Throughput of the local solvers");
  page.text(
      "One colour: the local problems of one eighth of the patches. The paper's kernels take a residual that was "
      "computed "
      "before; our time is an eighth of a smoothing step and so includes the residual.");
  add_rates(figures, smoother_stages, "local solver", "smoothing_step_seconds", 0.125,
            "Double precision, unknowns of the whole mesh per second and colour.", page);
  remark_left_out(where(rows, "kernel", "smoother"), page);
  if (machine.cuda) add_comparison(figures, page);
}

}  // namespace

const Experiment kernels{"kernels", tasks, present};

}  // namespace solenoid::studies::paper
